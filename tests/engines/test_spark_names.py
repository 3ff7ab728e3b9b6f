"""Tables of Spark are known by their full names, also those that do not exist yet."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from pyspark.errors import PySparkException

from equipoise.engines.sources import locate
from equipoise.engines.stores.states import is_replaced, is_same_place, is_same_target, tables_at
from equipoise.errors import EquipoiseError, InputError, SourceNotFound


class Catalog:
    """A catalog with the table raw.people, which answers as that of Spark does."""

    def currentCatalog(self):  # noqa: N802 (as Spark calls it)
        return "spark_catalog"

    def currentDatabase(self):  # noqa: N802
        return "default"

    def tableExists(self, name):  # noqa: N802
        return name.casefold().removeprefix("spark_catalog.") == "raw.people"

    def getTable(self, name):  # noqa: N802
        if not self.tableExists(name):
            raise InputError("the table or view cannot be found")
        return SimpleNamespace(catalog="spark_catalog", namespace=["raw"], name="people")

    def listTables(self, _=None):  # noqa: N802
        return []

    def databaseExists(self, name):  # noqa: N802
        if name == "lost":
            raise PySparkException("org.apache.HiveException: no metastore\n\tat a.b")
        return name == "raw"

    def listDatabases(self):  # noqa: N802
        return [SimpleNamespace(name="raw")]


@pytest.fixture(autouse=True)
def _catalog(monkeypatch):
    from equipoise.engines.spark import SparkEngine, places

    session = SimpleNamespace(catalog=Catalog(), sql=lambda _: SimpleNamespace(collect=list))
    monkeypatch.setattr(places, "_engine", lambda: SparkEngine(session))


def test_a_new_table_may_have_the_own_name_of_one_that_is_read():
    people = locate("spark:raw.people?id=number")
    assert not is_replaced(people, locate("spark:clean.people"))
    assert is_replaced(people, locate("spark:spark_catalog.raw.people"))
    assert is_same_place(people, locate("spark:RAW.people"))
    with pytest.raises(SourceNotFound, match=r"clean\.people does not exist"):
        is_same_place(people, locate("spark:clean.people"))


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("clean.out", "spark_catalog.Clean.out", True),
        ("out", "default.`out`", True),
        ("out", "clean.out", False),
        ("raw.people", "spark_catalog.raw.people", True),
    ],
)
def test_tables_that_do_not_exist_yet_are_compared_by_full_names(one, other, same):
    assert is_same_target(locate(f"spark:{one}"), locate(f"spark:{other}")) is same


@pytest.mark.parametrize(
    ("place", "said"),
    [
        (
            "spark:rwa",
            r"names neither a table nor a schema .*; there are the schemas raw\. Did you mean 'raw'\?",
        ),
        ("spark:raw", r"names neither a table nor a schema .* views are not tables of a lake\.$"),
        (
            "spark:lost",
            r"^Spark refused a query over spark:lost: org\.apache\.HiveException: no metastore\.$",
        ),
    ],
)
def test_a_place_without_tables(place, said):
    with pytest.raises(EquipoiseError, match=said):
        tables_at(place)


def test_a_session_that_the_user_has_stopped_is_not_used_again(monkeypatch):
    from equipoise.engines.spark import SparkEngine, _engine

    sessions = [SimpleNamespace(_sc=SimpleNamespace(_jsc="a JVM")) for _ in range(2)]
    found = iter(sessions)
    monkeypatch.setattr(_engine, "find_session", lambda: next(found))
    engine = SparkEngine()
    assert engine.session is engine.session is sessions[0]
    sessions[0]._sc._jsc = None
    assert engine.session is engine.session is sessions[1]


def test_a_module_that_workers_do_not_have():
    from equipoise.engines.spark._errors import explained

    told = "An exception was thrown from the Python worker\n  File a.py\nModuleNotFoundError: No module named 'pyarrow'"
    said = str(explained(PySparkException(told), locate("spark:raw.people")))
    assert said.startswith(
        "the workers of Spark cannot read spark:raw.people, since their Python has no pyarrow;"
    )
