"""Tables of ibis are taken as their connection and query, and never read whole."""

from __future__ import annotations

import re

import pytest

import equipoise as eq
import servers
from equipoise.engines.postgres import PostgresEngine
from equipoise.engines.sources import locate
from equipoise.errors import EquipoiseError, InputError

# ibis calls DuckDB by old names, and loads what PySpark warns of.
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
ASKED = {"sensitive_features": ["sex"], "label": "hired"}
ROWS = "SELECT i AS number, CASE WHEN i % 2 = 0 THEN 'w' ELSE 'O''Brien' END AS sex, i % 3 = 0 AS hired FROM "


@pytest.fixture(scope="module")
def ibis():
    import ibis  # which takes a second, and other tests do not need

    return ibis


@pytest.fixture(scope="module")
def in_duckdb(ibis):
    connection = ibis.duckdb.connect()
    connection.con.execute(f"CREATE TABLE people AS {ROWS} range(600) AS t(i)")
    return connection.table("people")


def require_measured(table) -> None:
    some = table.filter(table.number < 100)
    counts = eq.count(some, **ASKED)
    assert (counts.n, counts.of("sex=O'Brien")) == (100, 50)
    assert eq.count(table, **ASKED, where="number < 100") == counts
    assert eq.count(table, **ASKED, sql="SELECT * FROM input WHERE number < 100") == counts
    assert eq.measure(some, **ASKED).counts == counts


@pytest.fixture
def unread(monkeypatch, ibis):
    """Let ibis hand out no rows."""

    def refuse(*_, **__):
        raise AssertionError("rows of the table were read through ibis")

    for name in ("execute", "to_pyarrow", "to_pandas", "to_pyarrow_batches", "__arrow_c_stream__"):
        monkeypatch.setattr(ibis.expr.types.Table, name, refuse, raising=False)


@pytest.mark.slow
def test_in_duckdb(in_duckdb, unread):
    require_measured(in_duckdb)


@pytest.mark.slow
def test_in_postgres(unread, ibis):
    with servers.new_database() as address:
        socket = re.search(r"host=([^&]*)", address)[1]
        name = re.search(r"/(test_\d+_\d+)\?", address)[1]
        connection = ibis.postgres.connect(host=socket, user="postgres", database=name)
        connection.con.execute(f"CREATE TABLE people AS {ROWS} generate_series(0, 599) AS t(i)")
        connection.con.commit()
        table = connection.table("people")
        require_measured(table)
        engine, source = PostgresEngine(), locate(table)
        plan = eq.plan(table, **ASKED, engine=engine, allow="delete", tolerance=0.01)
        assert plan.counts.n == 600
        assert engine.session(source).fetched < 1000
        with pytest.raises(InputError, match="'nosuch' not found"):
            eq.measure(table, sensitive_features=["nosuch"], label="hired")
        connection.disconnect()
        with pytest.raises(EquipoiseError, match="the connection is closed"):
            eq.measure(table, **ASKED)


@pytest.mark.spark
def test_in_spark(unread, ibis):
    session = servers.spark_session()
    session.sql(f"{ROWS} (SELECT id AS i FROM range(600))").createOrReplaceTempView("ibis_people")
    zone = session.conf.get("spark.sql.session.timeZone")
    table = ibis.pyspark.connect(session).table("ibis_people")
    session.conf.set("spark.sql.session.timeZone", zone)  # which ibis has changed
    require_measured(table)
    session.catalog.dropTempView("ibis_people")
    with pytest.raises(InputError, match="the ibis table cannot be read as a query"):
        eq.measure(table, **ASKED)


@pytest.mark.slow
def test_others_are_refused(ibis):
    unbound = ibis.table({"sex": "string", "hired": "string"}, name="people")
    with pytest.raises(InputError, match="the ibis table cannot be read as a query"):
        eq.measure(unbound, **ASKED)

    class Backend:
        name = "bigquery"

    other = type("Table", (), {"__module__": "ibis.expr", "get_backend": lambda _: Backend()})()
    with pytest.raises(InputError, match=r"on the backend 'bigquery'; .* Give its rows"):
        eq.measure(other, **ASKED)


@pytest.mark.slow
def test_what_only_ibis_can_run_is_refused(in_duckdb, ibis):
    rows = {"sex": ["w", "O'Brien"], "hired": [True, False]}

    @ibis.udf.scalar.python
    def doubled(number: int) -> int:
        return 2 * number

    @ibis.udf.scalar.builtin
    def upper(text: str) -> str:
        """Return the text in capitals."""

    brought = (
        ibis.memtable(rows),
        in_duckdb.join(ibis.memtable({"sex": ["w"]}), "sex"),
        in_duckdb.mutate(doubled=doubled(in_duckdb.number)),
    )
    for table in brought:
        with pytest.raises(InputError, match="uses rows in memory or a Python function"):
            eq.count(table, **ASKED)
    assert [eq.count(t.to_pyarrow(), **ASKED).n for t in brought] == [2, 300, 600]
    shouted = in_duckdb.mutate(sex=upper(in_duckdb.sex))
    assert eq.count(shouted, **ASKED).of("sex=O'BRIEN") == 300


@pytest.mark.slow
def test_errors_of_the_driver_are_explained(ibis):
    connection = ibis.duckdb.connect()
    connection.con.execute("CREATE TABLE people (sex text, hired text)")
    table = connection.table("people")
    connection.con.execute("DROP TABLE people")
    with pytest.raises(InputError, match=r"cannot be read as a query: .* people does not exist"):
        eq.count(table, **ASKED)
    connection.disconnect()
    with pytest.raises(InputError, match=r"cannot be read as a query: .*closed"):
        eq.count(table, **ASKED)
