"""SQLite databases: their tables as they are stored, read only, and what cannot be read."""

from __future__ import annotations

import contextlib
import hashlib
import sqlite3

import duckdb
import pytest
from hypothesis import given
from hypothesis import strategies as st

from equipoise.counts import CountRequest
from equipoise.engines.readers import sqlite
from equipoise.engines.routing import shared_engine
from equipoise.engines.sources import locate
from equipoise.errors import InputError
from equipoise.values import MISSING

ENGINE = shared_engine()
REQUEST = CountRequest(sensitive=("sex",), label="hired")
MAKE = "CREATE TABLE people (sex TEXT, hired TEXT, age INTEGER)"
PEOPLE = [("m", "yes", 31), ("w", "no", 25), ("w", "no", None), (None, "yes", 60)]


def database(path, *tables, rows=PEOPLE):
    with contextlib.closing(sqlite3.connect(path)) as connection:
        for make in tables or (MAKE,):
            connection.execute(make)
        if not tables:
            connection.executemany("INSERT INTO people VALUES (?, ?, ?)", rows)
        connection.commit()
    return path


def table(data):
    found = ENGINE.fetch(locate(data), range(10_000))
    return found.select(range(found.num_columns - 2)).to_pydict()


def said(data):
    with pytest.raises(InputError) as caught:
        ENGINE.counts(locate(data), REQUEST)
    assert str(caught.value).endswith((".", "?"))
    return str(caught.value)


@pytest.mark.parametrize("ending", ["sqlite", "sqlite3", "db"])
def test_the_only_table_needs_no_name(tmp_path, ending):
    path = database(tmp_path / f"a.{ending}")
    before = hashlib.sha256(path.read_bytes()).digest()
    for data in (path, f"{path}::people"):
        counts = ENGINE.counts(locate(data), REQUEST)
        assert (counts.n, counts.of("sex=w, hired=no"), counts.missing_values["sex"]) == (4, 2, 1)
    assert table(path)["age"] == [31, 25, None, 60]
    assert hashlib.sha256(path.read_bytes()).digest() == before
    assert [p.name for p in tmp_path.iterdir()] == [path.name]


def test_of_several_tables_one_is_named(tmp_path):
    path = database(
        tmp_path / "a.sqlite", MAKE, 'CREATE TABLE "x y" (a)', "CREATE VIEW v AS SELECT 1 b"
    )
    assert ENGINE.tables(locate(path)) == ("people", "x y")
    assert said(path).endswith(f"name one as {path}::TABLE; it has: people, v, x y.")
    assert "has no table 'poeple'" in said(f"{path}::poeple")
    assert table(f"{path}::v") == {"b": [1]}


def test_a_database_of_duckdb_that_ends_in_db_is_one_still(tmp_path):
    with contextlib.closing(duckdb.connect(tmp_path / "a.db")) as connection:
        connection.execute("CREATE TABLE t AS SELECT 7 AS x")
    assert table(tmp_path / "a.db") == {"x": [7]}


@pytest.mark.slow
@given(
    st.lists(
        st.tuples(
            st.none() | st.integers(-(2**63), 2**63 - 1),
            st.none() | st.floats(allow_nan=False),
            st.none() | st.text(st.characters(exclude_categories=["Cs"])),
            st.none() | st.integers(-9, 9) | st.sampled_from([0.5, 1.5]),
        ),
        min_size=1,
        max_size=30,
    )
)
def test_values_are_as_stored_and_rows_in_their_order(tmp_path_factory, rows):
    path = tmp_path_factory.mktemp("lite") / "a.sqlite"
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE t (i INTEGER, r REAL, t TEXT, n NUMERIC)")
        # An index that covers the table must not decide the order.
        connection.execute("CREATE INDEX x ON t (t, n, i, r)")
        connection.executemany("INSERT INTO t VALUES (?, ?, ?, ?)", rows)
        connection.commit()
    found = table(path)
    assert list(zip(*found.values(), strict=True)) == rows
    assert all(type(v) is int for v in found["i"] if v is not None)


def test_values_of_several_types_in_one_column_are_text(tmp_path):
    path = tmp_path / "a.sqlite"
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE t (a, b)")
        large = 2**60 + 1
        connection.executemany("INSERT INTO t VALUES (?, ?)", [(1, large), ("x", 0.5), (None, 2)])
        connection.commit()
    assert table(path) == {"a": ["1", "x", None], "b": [str(large), "0.5", "2"]}


@pytest.mark.slow
def test_many_columns_and_batches(tmp_path, monkeypatch):
    monkeypatch.setattr(sqlite, "_BATCH", 7)
    path = tmp_path / "a.sqlite"
    names = [f"c{i}" for i in range(1200)]
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute(f"CREATE TABLE t ({', '.join(names)})")
        connection.executemany(
            "INSERT INTO t (c0, c1199) VALUES (?, ?)", [(i, -i) for i in range(50)]
        )
        connection.commit()
    assert list(ENGINE.distinct(locate(path), "c0")) == [str(i) for i in range(50)]
    assert set(ENGINE.distinct(locate(path), "c1199")) == {str(-i) for i in range(50)}


def test_rows_chosen_by_place_are_the_same_each_time(tmp_path):
    path = database(tmp_path / "a.sqlite", rows=[("m", "yes", i) for i in range(500)])
    source = locate(path)
    take = ENGINE.counts(source, REQUEST)
    chosen = ENGINE.rows(source, REQUEST, take, located=True)
    places = chosen["place"].to_pylist()
    assert dict(zip(places, chosen["age"].to_pylist(), strict=True)) == {i: i for i in range(500)}
    again = ENGINE.fetch(source, places[:9])
    assert sorted(again["age"].to_pylist()) == sorted(places[:9])


def test_rows_that_break_the_rules_of_their_table_are_read(tmp_path):
    path = tmp_path / "a.sqlite"
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE t (a CHECK (a > 0), b)")
        connection.execute("PRAGMA ignore_check_constraints = on")
        connection.execute("INSERT INTO t VALUES (-1, 2)")
        connection.commit()
    assert table(path) == {"a": [-1], "b": [2]}


def test_an_empty_table_and_one_without_row_numbers(tmp_path):
    path = database(tmp_path / "a.sqlite", MAKE)
    assert "has no rows" in said(path)
    keyed = database(
        tmp_path / "b.sqlite",
        "CREATE TABLE t (rowid TEXT PRIMARY KEY, b) WITHOUT ROWID",
        "INSERT INTO t VALUES ('b', 1), ('a', 2)",
    )
    assert table(keyed) == {"rowid": ["a", "b"], "b": [2, 1]}


def test_what_cannot_be_read_is_told(tmp_path, monkeypatch):
    monkeypatch.setattr(sqlite, "_PATIENCE", 0.0)
    path = database(tmp_path / "a.sqlite")
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("BEGIN EXCLUSIVE")
        assert "the database is locked); try again later." in said(path)
    whole = path.read_bytes()
    for content in (
        b"sex,hired\nm,yes\n" * 50,
        whole[:16] + bytes(4096),
        whole[:5000] + b"x" * 3000,
    ):
        path.write_bytes(content)
        assert "it is damaged, or in another format." in said(path)
    path.write_bytes(b"")
    assert "has no tables" in said(path)


def test_missing_values_are_missing(tmp_path):
    assert ENGINE.distinct(locate(database(tmp_path / "a.sqlite")), "sex") == {
        "w": 2,
        "m": 1,
        MISSING: 1,
    }
