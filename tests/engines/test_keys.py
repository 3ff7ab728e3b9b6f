"""Keys of tables are checked: by the database's own indexes, or else by counting, once."""

from __future__ import annotations

import hashlib
from dataclasses import replace

import numpy as np
import psycopg
import pytest

import servers
from equipoise.counts import CountRequest
from equipoise.engines.postgres import PostgresEngine
from equipoise.engines.sources import locate
from equipoise.errors import InputError

REQUEST = CountRequest(sensitive=("sex",), label="hired")
ROWS = "SELECT i, i % 7, CASE i % 2 WHEN 0 THEN 'w' ELSE 'm' END, 'yes' FROM generate_series(1, 60) AS t(i)"
PLAIN = "id int, part int, sex text, hired text"


@pytest.fixture(scope="module")
def database():
    with servers.new_database() as address, psycopg.connect(address, autocommit=True) as connection:
        yield address, connection


@pytest.fixture
def engine(monkeypatch):
    engine = PostgresEngine()
    engine.asked = []
    ask = engine._arrow

    def noted(source, query, title):
        engine.asked.append(title.partition(" of ")[0])
        return ask(source, query, title)

    monkeypatch.setattr(engine, "_arrow", noted)
    yield engine
    engine.close()


def choose(engine, address: str, key: str = "id"):
    source = locate(f"{address}&table=people&id={key}")
    take = engine.counts(source, REQUEST)
    return engine.rows(source, REQUEST, take, located=True)


def fill(connection, *statements: str) -> None:
    connection.execute("DROP TABLE IF EXISTS kin, people CASCADE")
    for statement in statements:
        connection.execute(statement)


@pytest.mark.parametrize(
    ("made", "key", "is_guaranteed"),
    [
        ([f"CREATE TABLE people ({PLAIN}, PRIMARY KEY (id))"], "id", True),
        ([f"CREATE TABLE people ({PLAIN}, UNIQUE (id))"], "id", False),  # null may be repeated
        (
            [f"CREATE TABLE people ({PLAIN}, PRIMARY KEY (id))"],
            "id,part",
            False,  # the second column may be null
        ),
        (
            [
                f"CREATE TABLE people ({PLAIN}, PRIMARY KEY (id))",
                "ALTER TABLE people ALTER part SET NOT NULL",
            ],
            "id,part",
            True,
        ),
        ([f"CREATE TABLE people ({PLAIN}, PRIMARY KEY (id, part))"], "id", False),
        (
            [f"CREATE TABLE people ({PLAIN}, PRIMARY KEY (id) DEFERRABLE INITIALLY DEFERRED)"],
            "id",
            False,
        ),
        (
            [
                f"CREATE TABLE people ({PLAIN}, PRIMARY KEY (id))",
                "CREATE TABLE kin () INHERITS (people)",
            ],
            "id",
            False,
        ),
        (
            [
                f"CREATE TABLE people ({PLAIN}, PRIMARY KEY (id)) PARTITION BY RANGE (id)",
                "CREATE TABLE kin PARTITION OF people DEFAULT",
            ],
            "id",
            True,
        ),
        (
            [
                f"CREATE TABLE people ({PLAIN})",
                "ALTER TABLE people ALTER id SET NOT NULL",
                "CREATE UNIQUE INDEX ON people (id) INCLUDE (part)",
            ],
            "id",
            True,
        ),
        (
            [
                f"CREATE TABLE people ({PLAIN})",
                "ALTER TABLE people ALTER id SET NOT NULL",
                "CREATE UNIQUE INDEX ON people (id) WHERE part > 3",
            ],
            "id",
            False,
        ),
    ],
)
def test_an_index_of_the_database_saves_the_check(database, engine, made, key, is_guaranteed):
    address, connection = database
    fill(connection, *made, f"INSERT INTO people {ROWS}")
    assert len(choose(engine, address, key)) == 60
    assert ("checking the key" not in engine.asked) is is_guaranteed


def test_a_key_is_checked_again_only_if_rows_came_or_went(database, engine):
    address, connection = database
    fill(connection, f"CREATE TABLE people ({PLAIN})", f"INSERT INTO people {ROWS}")
    checks: list[str] = []
    look = engine._require_key

    def checked(source, table, rows):
        before = len(engine.asked)
        look(source, table, rows)
        checks.extend(engine.asked[before:])

    engine._require_key = checked
    choose(engine, address)
    choose(engine, address)
    assert len(checks) == 1  # that of the second choice knows the number of rows from their cells
    connection.execute("INSERT INTO people VALUES (7, 1, 'w', 'yes')")
    with pytest.raises(InputError, match="id is not a key of"):
        choose(engine, address)


def test_rows_inherited_twice_are_found(database, engine):
    address, connection = database
    fill(
        connection,
        f"CREATE TABLE people ({PLAIN}, PRIMARY KEY (id))",
        "CREATE TABLE kin () INHERITS (people)",
        f"INSERT INTO people {ROWS}",
        "INSERT INTO kin VALUES (7, 1, 'w', 'yes')",
    )
    with pytest.raises(InputError, match="id is not a key of"):
        choose(engine, address)


def test_rows_of_small_and_large_cells_are_those_with_the_smallest_hashes(database, engine):
    """Of large cells only rows with small hashes are looked at, of small ones, also null, all."""
    address, connection = database
    sex = "CASE WHEN i % 400 = 0 THEN NULL WHEN i % 40 = 0 THEN 'w' ELSE 'm' END"
    hired = "CASE i % 3 WHEN 0 THEN 'yes' ELSE 'no' END"
    fill(
        connection,
        f"CREATE TABLE people ({PLAIN}, PRIMARY KEY (id))",
        f"INSERT INTO people SELECT i, 0, {sex}, {hired} FROM generate_series(1, 20000) AS t(i)",
    )
    source = locate(f"{address}&table=people&id=id")
    request = replace(REQUEST, missing="group")
    counts = engine.counts(source, request)
    take = replace(counts, rows=np.full_like(counts.rows, 6))
    found = engine.rows(source, request, take, seed=3)
    stored: dict[tuple[str | None, str], list[int]] = {}
    for number, *cell in connection.execute("SELECT id, sex, hired FROM people ORDER BY id"):
        stored.setdefault(tuple(cell), []).append(number)

    def place(number: int) -> str:
        text = f"3/{len(str(number))}:{number}"
        return hashlib.md5(text.encode()).hexdigest()

    lines = found.select(["id", "sex", "hired"]).to_pylist()
    for cell, numbers in stored.items():
        chosen = [line["id"] for line in lines if (line["sex"], line["hired"]) == cell]
        assert chosen == sorted(numbers, key=place)[:6]
    assert len(found) == 6 * len(stored)
    assert engine.asked.count("choosing rows") == 1  # enough rows are found at once
