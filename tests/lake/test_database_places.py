"""Schemas of PostgreSQL and of Spark's catalog as places of a lake, beside files."""

from __future__ import annotations

import contextlib
import uuid
from dataclasses import replace
from pathlib import Path

import psycopg
import pytest

import equipoise as eq
import servers
from equipoise.cli.app import run
from equipoise.engines.sources import locate
from equipoise.engines.stores.states import is_same_place
from equipoise.errors import InputError, SourceNotFound
from equipoise.lake.lake import Lake
from lakes import HEADER, ledger, more, write

SEX = {"sensitive_features": ["sex"], "label": "hired"}
PEOPLE = [
    *((i, "Female", "no", 30 + i) for i in range(80)),
    *((i, "Female", "yes", 30 + i) for i in range(80, 100)),
    *((i, "Male", "no", 30 + i) for i in range(100, 150)),
    *((i, "Male", "yes", 30 + i) for i in range(150, 200)),
]


def both(first, n):
    """Rows of two cells, n of each."""
    return [*more(first, n), *more(first + 500, n, sex="Male", hired="no")]


OLD = [
    (n, "F" if sex == "Female" else "M", hired, 30 + 3 * (n % 9))
    for n, sex, hired, _ in both(2000, 9)
]
OLD += OLD[:2]  # equal rows
NEW = both(3000, 6)


@pytest.fixture(autouse=True)
def _here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    write("people.csv", HEADER, PEOPLE)
    write("files/a.csv", HEADER, both(1000, 6))
    # What the databases hold, as files.
    write("copies/old.csv", ["nr", "gender", "hired", "age"], OLD)
    write("copies/new.csv", HEADER, NEW)


class Postgres:
    """A schema with two tables and a view."""

    def __init__(self, address):
        self.address = address
        self.place = f"{address}&schema=archive"
        columns = "(nr bigint, gender char(3), hired text, age integer)"
        with self.connected() as connection:
            connection.execute("CREATE SCHEMA archive")
            connection.execute(f"CREATE TABLE archive.old {columns}".encode())
            connection.execute(
                f"CREATE TABLE archive.new ({', '.join(f'{n} text' for n in HEADER)})".encode()
            )
            connection.execute("CREATE VIEW archive.seen AS SELECT * FROM archive.old")
            for name, rows in (("old", OLD), ("new", NEW)):
                with connection.cursor().copy(f"COPY archive.{name} FROM STDIN".encode()) as copy:
                    for row in rows:
                        copy.write_row(row)

    def connected(self):
        return psycopg.connect(self.address)

    def table(self, name):
        return f"{self.address}&table=archive.{name}"

    def change(self):
        self.do("UPDATE archive.new SET age = '99' WHERE sex = 'Male'")

    def do(self, *statements):
        with self.connected() as connection:
            for statement in statements:
                connection.execute(statement.encode())


class Spark:
    """The same in the catalog of Spark."""

    def __init__(self, session, schema):
        self.session, self.schema = session, schema
        self.place = f"spark:{schema}"
        old = session.createDataFrame(OLD, "nr bigint, gender string, hired string, age int")
        new = session.createDataFrame(
            [tuple(map(str, row)) for row in NEW], ", ".join(f"{n} string" for n in HEADER)
        )
        old.write.saveAsTable(f"{schema}.old")
        new.write.saveAsTable(f"{schema}.new")
        session.sql(f"CREATE VIEW {schema}.seen AS SELECT * FROM {schema}.old")

    def table(self, name):
        return f"spark:{self.schema}.{name}"

    def change(self):
        self.do(f"INSERT INTO {self.schema}.new SELECT * FROM {self.schema}.new LIMIT 1")

    def do(self, *statements):
        for statement in statements:
            self.session.sql(statement)


@contextlib.contextmanager
def in_postgres():
    with servers.new_database() as address:
        yield Postgres(address)


@contextlib.contextmanager
def in_spark():
    session, schema = servers.spark_session(), f"lake_{uuid.uuid4().hex}"
    session.sql(f"CREATE DATABASE {schema}")
    try:
        yield Spark(session, schema)
    finally:
        session.sql(f"DROP DATABASE {schema} CASCADE")


@pytest.fixture(params=["postgres", pytest.param("spark", marks=pytest.mark.spark)])
def database(request):
    with in_postgres() if request.param == "postgres" else in_spark() as made:
        yield made


@pytest.mark.slow
def test_an_index_of_mixed_places_sees_what_changes(database):
    places = [database.place, "files"]
    lake = Lake(places)
    first = lake.refresh()
    assert (first.new, first.same) == (3, 0)
    shown = [locate(database.table(name)).name for name in ("new", "old")]
    assert sorted(t.name for t in lake.tables) == sorted(["a.csv", *shown])
    assert {t.name: (t.rows, t.problem) for t in lake.tables} == {
        "a.csv": (12, None),
        shown[0]: (12, None),
        shown[1]: (20, None),
    }
    assert Lake(places).refresh().same == 3
    database.change()
    later = Lake(places).refresh()
    assert (later.new, later.changed, later.gone, later.same) == (0, 1, 0, 2)
    (again,) = [t for t in Lake(places, refresh=False).tables if t.name == shown[1]]
    assert Lake(places).engine.read(again.source).num_rows == 20


def keyed_place(database):
    """Add tables whose column id is no key; return a place that names it as one."""
    new = database.table("new").rpartition("table=")[2].removeprefix("spark:")
    named = ", ".join(HEADER[1:])
    database.do(
        f"CREATE TABLE {new.replace('new', 'twice')} AS SELECT * FROM {new} UNION ALL SELECT * FROM {new}",
        f"CREATE TABLE {new.replace('new', 'gaps')} AS SELECT nullif(id, '3001') AS id, {named} FROM {new}",
    )
    return f"{database.place}{'?' if database.place.startswith('spark') else '&'}id=id"


@pytest.mark.slow
def test_tables_whose_key_is_none_are_listed_with_the_reason(database):
    problems = {t.name: t.problem for t in Lake(keyed_place(database)).tables}
    (gaps,), (kept,), (old,), (twice,) = (
        [p for n, p in problems.items() if f".{name}" in n]
        for name in ("gaps", "new", "old", "twice")
    )
    assert kept is None
    assert "1 row without a value of it, and 0 rows with" in gaps
    assert "0 rows without a value of it, and 12 rows with the value of another row" in twice
    assert "column 'id' not found" in old


@pytest.mark.slow
def test_tables_whose_key_is_none_are_left_out_of_a_repair(postgres):
    done = repaired([keyed_place(postgres), "files"])
    assert done.verification.ok
    taken = {line["source"] for line in ledger() if line["action"] == "add"}
    assert any(".new" in name for name in taken)
    assert not any(".twice" in name or ".gaps" in name for name in taken)


def found_in(places):
    """What tables offer, by their short names, and the rows themselves."""
    plan = eq.plan("people.csv", **SEX, tolerance=0.1)
    found = Lake(places).find(plan, base="people.csv")
    return {
        ranked.offer.candidate.name.removesuffix(".csv").rpartition(".")[2]: (
            ranked.offer.rows.tolist(),
            ranked.offer.duplicates.tolist(),
        )
        for ranked in found.offers
    }


@pytest.mark.slow
def test_search_and_find_as_over_files(database):
    places = [database.place, "files"]
    assert len(Lake(places).search("people.csv").hits) == 3
    there = found_in([database.place])
    assert set(there) == {"old", "new"}
    assert there == found_in(["copies"])
    assert set(found_in(places)) == {"old", "new", "a"}


def repaired(places):
    return eq.repair("people.csv", Lake(places), "out.csv", **SEX, tolerance=0.1)


@pytest.mark.slow
def test_a_source_that_has_gone_is_told_even_if_it_was_the_last_of_its_place(database):
    repaired([database.place])
    new = database.table("new").rpartition("table=")[2].removeprefix("spark:")
    schema = new.rpartition(".")[0]
    database.do(f"DROP VIEW {schema}.seen", f"DROP TABLE {schema}.old", f"DROP TABLE {new}")
    for places in ([database.place], [database.place, "files"]):
        again = Lake(places).replay("out.csv.ledger.parquet")
        assert again.exit_code == 1
        assert len(again.problems) == again.sources == 2
        assert all("is no longer in the lake; " in problem for problem in again.problems), again
    with pytest.raises(SourceNotFound, match="tables"):
        Lake(database.place).refresh()
    assert [t.name for t in Lake([database.place, "files"]).tables] == ["a.csv"]


@pytest.mark.slow
def test_a_repair_from_a_database_is_that_from_files_and_is_replayed(database):
    places = [database.place, "files"]
    expected = repaired(["copies", "files"])
    rows = sorted(Path("out.csv").read_text().splitlines())
    done = repaired(places)
    assert done.verification.ok
    assert done.reached == expected.reached
    assert sorted(Path("out.csv").read_text().splitlines()) == rows
    lines = [line for line in ledger() if line["action"] == "add"]
    taken = {line["place"] for line in lines if line["source"].endswith("old")}
    assert taken
    assert all(len(place.partition("#")[0]) == 32 for place in taken)
    again = Lake(places).replay("out.csv.ledger.parquet", repaired="out.csv")
    assert again.ok, again.problems
    whole = {"base": "people.csv", "plan": "out.csv.plan.json"}
    assert eq.verify("out.csv", **whole, ledger="out.csv.ledger.parquet").ok
    database.change()
    later = Lake(places).replay("out.csv.ledger.parquet", repaired="out.csv")
    assert not later.ok


@pytest.fixture
def postgres():
    with in_postgres() as made:
        yield made


def test_rows_of_a_mapped_table_are_known_by_the_rows_they_are_made_of(postgres):
    """By a key that the place names, or by hash and occurrence; equal rows are told apart."""
    from equipoise.counts import CountRequest
    from equipoise.engines.routing import shared_engine
    from equipoise.lake.matching.conversions import MeantView

    engine, request = shared_engine(), CountRequest(sensitive=("sex",), label="hired")
    view = MeantView({"sex": ("gender", "VARCHAR"), "hired": ("hired", "VARCHAR")}, {}, (), {})
    for more_of_it, rows in (("", 20), ("&id=age,nr", 18)):
        source = locate(postgres.table("old") + more_of_it)
        if more_of_it:  # two equal rows are in the way of a key
            with pytest.raises(InputError, match="not a key"):
                engine.rows(
                    replace(source, view=view), request, all_of(engine, source, view), located=True
                )
            with postgres.connected() as connection:
                connection.execute(
                    "DELETE FROM archive.old WHERE ctid NOT IN (SELECT min(ctid) FROM archive.old GROUP BY nr)"
                )
        found = engine.rows(
            replace(source, view=view), request, all_of(engine, source, view), located=True
        )
        places = found["place"].to_pylist()
        assert len(set(places)) == len(places) == rows
        fetched = engine.fetch(source, places)
        assert fetched["place"].to_pylist() == sorted(places)
        meant = {
            p: (g, h)
            for p, g, h in zip(
                *(fetched[n].to_pylist() for n in ("place", "gender", "hired")), strict=True
            )
        }
        shown = zip(*(found[n].to_pylist() for n in ("place", "sex", "hired")), strict=True)
        assert {p: (s, h) for p, s, h in shown} == meant
        again = engine.fetch(replace(source, view=view), places[:5])
        assert {
            p: (s, h)
            for p, s, h in zip(
                *(again[n].to_pylist() for n in ("place", "sex", "hired")), strict=True
            )
        } == {p: meant[p] for p in places[:5]}


def all_of(engine, source, view):
    from equipoise.counts import CountRequest

    return engine.counts(
        replace(source, view=view), CountRequest(sensitive=("sex",), label="hired")
    )


def test_places_that_are_not_there(postgres):
    with pytest.raises(SourceNotFound, match=r"no schema 'archiv'.* Did you mean 'archive'\?"):
        Lake(f"{postgres.address}&schema=archiv").refresh()
    with postgres.connected() as connection:
        connection.execute("CREATE SCHEMA bare; CREATE VIEW bare.seen AS SELECT 1 AS x")
    with pytest.raises(SourceNotFound, match="has no tables; views are not"):
        Lake(f"{postgres.address}&schema=bare").refresh()


@pytest.mark.slow
def test_all_schemas_and_partitions(postgres):
    with postgres.connected() as connection:
        connection.execute(
            "CREATE TABLE whole (sex text, hired text) PARTITION BY LIST (sex); "
            "CREATE TABLE half PARTITION OF whole FOR VALUES IN ('Male'); "
            "CREATE TABLE other PARTITION OF whole DEFAULT; "
            "INSERT INTO whole VALUES ('Male', 'yes'), ('Female', 'no')"
        )
    lake = Lake(postgres.address)
    names = [t.name.rpartition("table=")[2] for t in lake.tables]
    assert sorted(names) == ["archive.new", "archive.old", "public.whole"]
    with postgres.connected() as connection:
        connection.execute("UPDATE whole SET hired = 'no'")
    assert Lake(postgres.address).refresh().changed == 1


@pytest.mark.slow
def test_a_table_that_cannot_be_read_is_told(postgres):
    with postgres.connected() as connection:
        connection.execute(
            "DROP ROLE IF EXISTS reader; CREATE ROLE reader LOGIN; GRANT USAGE ON SCHEMA archive TO reader; "
            "GRANT SELECT ON archive.new TO reader"
        )
    place = postgres.place.replace("://postgres", "://reader")
    try:
        problems = {t.name[-3:]: t.problem for t in Lake(place).tables}
        assert problems["new"] is None
        assert "no right to select from archive.old" in problems["old"]
    finally:
        with postgres.connected() as connection:
            connection.execute("DROP OWNED BY reader; DROP ROLE reader")


@pytest.mark.slow
def test_no_password_is_in_an_index_or_shown(postgres, capsys):
    place = postgres.place.replace("://postgres:@", "://postgres@").replace(
        "://postgres@", "://postgres:hunter2@"
    )
    assert "hunter2" in place
    assert run(["lake", "index", place, "files"]) == 0
    assert run(["lake", "search", "people.csv", place, "files"]) == 0
    said = capsys.readouterr()
    assert "archive.new" in said.out
    assert "hunter2" not in said.out + said.err
    assert not any(b"hunter2" in p.read_bytes() for p in Path().rglob("*") if p.is_file())


@pytest.mark.slow
def test_a_condition_of_the_base_holds_for_tables_of_a_database(database):
    where = "age >= 35 AND hired IN ('yes', 'no')"
    plan = eq.plan("people.csv", **SEX, tolerance=0.1, where=where)
    offers = {}
    for place in (database.place, "copies"):
        found = Lake(place).find(plan, base="people.csv")
        offers[place] = sorted(
            (r.offer.rows.tolist(), r.offer.duplicates.tolist(), r.offer.outside)
            for r in found.offers
        )
    assert offers[database.place] == offers["copies"]
    assert offers["copies"]


def test_a_base_in_a_database_is_measured_and_planned_where_a_condition_holds(database):
    there, here = (
        eq.plan(data, sensitive_features=["gender"], label="hired", where="age > 40")
        for data in (database.table("old"), "copies/old.csv")
    )
    assert there.counts == here.counts
    assert there.counts.n < len(OLD)


def test_a_table_is_known_however_it_is_addressed(database):
    """By this the base is never one of its own sources."""
    tables = {t.name[-3:]: t.source for t in Lake(database.place).tables}
    assert is_same_place(tables["new"], locate(database.table("new")))
    assert not is_same_place(tables["old"], locate(database.table("new")))
    assert not is_same_place(tables["new"], locate("people.csv"))
    if isinstance(database, Postgres):
        path = f"{database.address}&table=new&options=-csearch_path%3Darchive"
        assert is_same_place(tables["new"], locate(path))
