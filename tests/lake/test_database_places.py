"""Schemas of PostgreSQL and of Spark's catalog as places of a lake, beside files."""

from __future__ import annotations

import contextlib
import uuid
from dataclasses import replace

import psycopg
import pytest

import equipoise as eq
import servers
from equipoise.cli.app import run
from equipoise.engines.sources import locate
from equipoise.errors import InputError, SourceNotFound
from equipoise.lake.lake import Lake
from lakes import HEADER, more, write

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


OLD = [(n, "F" if sex == "Female" else "M", hired, age) for n, sex, hired, age in both(2000, 9)]
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
        with self.connected() as connection:
            connection.execute("UPDATE archive.new SET age = '99' WHERE sex = 'Male'")


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
        self.session.sql(f"INSERT INTO {self.schema}.new SELECT * FROM {self.schema}.new LIMIT 1")


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


def test_search_and_find_as_over_files(database):
    places = [database.place, "files"]
    assert len(Lake(places).search("people.csv").hits) == 3
    there = found_in([database.place])
    assert set(there) == {"old", "new"}
    assert there == found_in(["copies"])
    assert set(found_in(places)) == {"old", "new", "a"}
