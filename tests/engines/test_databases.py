"""PostgreSQL and Spark count, list, choose and hash rows exactly as DuckDB and memory do."""

from __future__ import annotations

import datetime
import decimal
import re
import struct
import subprocess
import sys
import tempfile
import threading
import time
from urllib.parse import unquote

import numpy as np
import psycopg
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from psycopg.rows import dict_row

import equipoise as eq
import servers
from equipoise.counts import CountRequest, Counts
from equipoise.counts.columns import values_in
from equipoise.engines.base import Part
from equipoise.engines.duckdb import DuckDBEngine
from equipoise.engines.memory import MemoryEngine
from equipoise.engines.postgres import PostgresEngine
from equipoise.engines.postgres._session import Session
from equipoise.engines.routing import shared_engine
from equipoise.engines.sources import locate
from equipoise.errors import InputError, SourceNotFound
from strategies import NASTY

DUCKDB, MEMORY = DuckDBEngine(in_place=0), MemoryEngine()
REQUEST = CountRequest(sensitive=("s",), label="y", missing_label="group")


@pytest.fixture(scope="module")
def postgres():
    engine = PostgresEngine(servers.postgres_address())
    yield engine
    engine.close()


@pytest.fixture(scope="module")
def spark():
    from equipoise.engines.spark import SparkEngine

    return SparkEngine(servers.spark_session())


@pytest.fixture
def people():
    """A database with a table of people; its address, and a connection to it."""
    with servers.new_database() as address, psycopg.connect(address, autocommit=True) as connection:
        connection.execute(
            "CREATE TABLE people (number int, sex text, hired text);"
            "INSERT INTO people SELECT i, CASE i % 2 WHEN 0 THEN 'w' ELSE 'm' END, "
            "CASE i % 3 WHEN 0 THEN 'yes' ELSE 'no' END FROM generate_series(1, 60) AS t(i)"
        )
        yield f"{address}&table=people", connection


def require_alike(engine, column: pa.Array) -> None:
    """Compare counts, lists of values, chosen rows in their order, and hashes of all rows."""
    table = pa.table({"s": column, "y": ["1"] * len(column)})
    source = locate(table)
    counts = MEMORY.counts(source, REQUEST)
    half = Counts.from_mapping(
        {cell: -(-n // 2) for cell, n in counts.cells().items()}, sensitive=["s"], label="y"
    )
    found = engine.counts(source, REQUEST)
    assert found == counts
    assert [a.values for a in found.axes] == [a.values for a in counts.axes]
    assert list(engine.distinct(source, "s").items()) == list(MEMORY.distinct(source, "s").items())
    for take in (counts, half):
        ours, theirs = (e.rows(source, REQUEST, take, 3, located=True) for e in (engine, MEMORY))
        assert ours["md5"].to_pylist() == theirs["md5"].to_pylist()
        assert values_in(ours["s"]) == values_in(theirs["s"])


bit_patterns = st.integers(0, 2**64 - 1).map(lambda n: struct.unpack(">d", struct.pack(">Q", n))[0])
large = st.floats(1e15, 1e30) | st.floats(-1e30, -1e15)
small = st.floats(-2.3e-308, 2.3e-308)  # most of them subnormal
odd = st.sampled_from([0.0, -0.0, 0.1, 1e23, 2.0**53 + 1, 5e-324, float("inf"), float("nan")])
floats = st.lists(bit_patterns | large | small | odd | st.none(), min_size=1, max_size=30)
TEXTS = [text for text in NASTY if "\0" not in text]
texts = st.lists(
    st.sampled_from(TEXTS)
    | st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=6)
    | st.none(),
    min_size=1,
    max_size=30,
)
dates = st.lists(st.dates() | st.none(), min_size=1, max_size=20)
moments = st.lists(st.datetimes() | st.none(), min_size=1, max_size=20)
decimals = st.lists(
    st.decimals(-(10**8), 10**8, places=3, allow_nan=False) | st.none(), min_size=1, max_size=20
)
wholes = st.lists(st.integers(-(2**63), 2**63 - 1) | st.none(), min_size=1, max_size=20)


@pytest.mark.slow
@settings(max_examples=40)
@given(floats)
def test_floats_in_postgres(postgres, numbers):
    require_alike(postgres, pa.array(numbers, pa.float64(), from_pandas=False))


@pytest.mark.slow
@settings(max_examples=40)
@given(texts)
def test_texts_in_postgres(postgres, values):
    require_alike(postgres, pa.array(values, pa.string()))


@pytest.mark.slow
@settings(max_examples=20)
@given(dates, moments, decimals, wholes)
def test_other_types_in_postgres(postgres, days, times, numbers, whole):
    require_alike(postgres, pa.array(days, pa.date32()))
    require_alike(postgres, pa.array(times, pa.timestamp("us")))
    require_alike(postgres, pa.array(times, pa.timestamp("us", "Asia/Kolkata")))
    require_alike(postgres, pa.array(numbers, pa.decimal128(12, 3)))
    require_alike(postgres, pa.array(whole, pa.int64()))


@pytest.mark.spark
def test_odd_names_in_spark(spark):
    names = ["a.b", "`a`", "c0", "x`y", 'O\'Brien "x"', "\\", "c 1", "ü"]
    rows = pa.table({name: pa.array([i, None, i]) for i, name in enumerate(names)})
    found = spark.profile(locate(rows)).columns
    assert [(c.name, c.type, c.nulls, c.values) for c in found] == [
        (name, "BIGINT", 1, {str(i): 2}) for i, name in enumerate(names)
    ]


@pytest.mark.spark
def test_odd_values_in_spark(spark):
    random = np.random.default_rng(5)
    patterns = random.integers(0, 2**64, 300, np.uint64, endpoint=False).view(np.float64)
    numbers = [*patterns, *(10.0 ** random.uniform(15, 30, 100)), 0.0, -0.0, 1e23, 5e-324, None]
    require_alike(spark, pa.array(numbers, pa.float64()))
    require_alike(spark, pa.array([*NASTY, *NASTY[:9], None], pa.string()))
    days = [datetime.date(1, 1, 1), datetime.date(1582, 10, 10), datetime.date(9999, 12, 31), None]
    require_alike(spark, pa.array(days, pa.date32()))
    times = [datetime.datetime(1600, 2, 29, 1, 2, 3, 4), datetime.datetime(2021, 10, 31, 1, 30)]  # noqa: DTZ001
    for zone in (None, "Europe/Rome"):
        require_alike(spark, pa.array([*times, times[0], None], pa.timestamp("us", zone)))
    exact = [decimal.Decimal("0.50"), decimal.Decimal("-0.05"), decimal.Decimal(0), None]
    require_alike(spark, pa.array(exact, pa.decimal128(2, 2)))
    require_alike(spark, pa.array([2**53 + 1, None, 2**53, -(2**63)], pa.int64()))


def test_weights_agree_to_many_digits(postgres):
    random = np.random.default_rng(0)
    table = pa.table(
        {"s": random.choice(["a", "b"], 500), "y": ["1"] * 500, "w": random.random(500) * 1e6}
    )
    asked = CountRequest(sensitive=("s",), label="y", weight="w")
    ours, theirs = (e.counts(locate(table), asked).weights for e in (postgres, MEMORY))
    assert np.allclose(ours, theirs, rtol=1e-12, atol=0)


def test_bins_and_the_middle_agree(postgres):
    random = np.random.default_rng(1)
    table = pa.table({"s": random.normal(size=300), "y": ["1"] * 300})
    for bins in (4, (-1.0, 0.0, 0.5)):
        asked = CountRequest(sensitive=("s",), label="y", bins={"s": bins})
        assert postgres.counts(locate(table), asked) == MEMORY.counts(locate(table), asked)
    assert postgres.middle(locate(table), "s") == MEMORY.middle(locate(table), "s")


# ------------------------------------------------------------------- types of PostgreSQL


def measured(people, query: str):
    address, connection = people
    connection.execute(query)
    return shared_engine(), locate(address.replace("table=people", "table=odd"))


def test_padded_text_enumerations_and_domains(people):
    engine, source = measured(
        people,
        "CREATE TYPE mood AS ENUM ('sad', 'glad'); CREATE DOMAIN short AS text CHECK (length(VALUE) < 9);"
        "CREATE TABLE odd (a char(6), b mood, c short, d varchar(9), e uuid);"
        "INSERT INTO odd VALUES ('x', 'sad', 'y', 'z ', '00000000-0000-0000-0000-000000000001')",
    )
    assert {c.type for c in engine.schema(source)} == {"VARCHAR"}
    (row,) = engine.read(source).to_pylist()
    nil = "00000000-0000-0000-0000-000000000001"
    assert row == {"a": "x", "b": "sad", "c": "y", "d": "z ", "e": nil}


def test_numbers_of_any_scale_are_equal_by_value(people):
    engine, source = measured(
        people,
        "CREATE TABLE odd (s numeric, y text);"
        "INSERT INTO odd VALUES (1.5, '1'), (1.50, '1'), ('NaN', '1'), (1e40, '1'), (NULL, '1')",
    )
    counts = engine.counts(source, REQUEST)
    assert counts.of("s=1.5") == 2
    assert counts.of("s=<missing>") == 2
    assert counts.of(f"s=1{'0' * 40}") == 1


def test_dates_that_other_programs_do_not_have(people):
    engine, source = measured(
        people,
        "CREATE TABLE odd (s date, t timestamptz, y text); INSERT INTO odd VALUES "
        "('infinity', '-infinity', '1'), ('0044-03-15 BC', '1600-01-01', '1'), ('1677-01-01', NULL, '1')",
    )
    assert set(engine.distinct(source, "s")) == {"infinity", "0044-03-15 (BC)", "1677-01-01"}
    everything = engine.counts(source, REQUEST)
    assert len(engine.rows(source, REQUEST, everything)) == 3


def test_a_type_that_cannot_be_compared_is_refused_where_it_matters(people):
    engine, source = measured(
        people,
        "CREATE TABLE odd (s text, y text, j jsonb); INSERT INTO odd VALUES ('a', '1', '[]')",
    )
    counts = engine.counts(source, REQUEST)
    assert counts.n == 1
    with pytest.raises(InputError, match=r"'j' of .* has the type jsonb, whose values cannot be"):
        engine.rows(source, REQUEST, counts)


@pytest.mark.parametrize("schema", ["public", '"Odd Schema"'])
def test_a_loose_collation_is_refused_where_it_matters(people, schema):
    address, connection = people
    # This server is built without ICU, which alone has such collations, so that the catalogue says
    # of another one that it is one. With ICU the same was tried by hand.
    connection.execute(
        f'CREATE SCHEMA IF NOT EXISTS {schema}; CREATE COLLATION {schema}."Loose" FROM "C";'
        f'ALTER TABLE people ADD other text COLLATE {schema}."Loose";'
        "CREATE TABLE hollow AS SELECT other AS sex, hired FROM people WITH NO DATA;"
        "SET allow_system_table_mods = on; "
        "UPDATE pg_collation SET collisdeterministic = false WHERE collname = 'Loose'".encode()
    )
    asked = {"sensitive_features": ["other"], "label": "hired"}
    with pytest.raises(InputError, match=r"'other' of .* takes different texts for equal; give it"):
        eq.measure(address, **asked)
    with pytest.raises(InputError, match=r"'sex' of .* takes different texts for equal"):
        eq.measure(address.replace("table=people", "table=hollow"), **ASKED)
    counts = eq.count(address, **ASKED)
    assert counts.n == 60
    with pytest.raises(InputError, match=r"'other' of .* takes different texts for equal"):
        shared_engine().rows(locate(address), counts.request_for_rows(), counts)
    sharp = 'SELECT coalesce(other, sex) COLLATE "C" AS other, hired FROM input'
    assert eq.count(address, **asked, sql=sharp).n == 60


def test_every_table_of_a_query_has_a_name(people, monkeypatch):
    """PostgreSQL needs no name of a query in FROM since version 16; older ones refuse it."""
    asked = []
    monkeypatch.setattr(
        "equipoise.engines.postgres._session.Session.arrow",
        lambda self, query, *rest, arrow=Session.arrow: (
            asked.append(query) or arrow(self, query, *rest)
        ),
    )
    address, _ = people
    engine = PostgresEngine()
    for key in ("", "&id=number"):
        source = locate(f"{address}{key}", where="number > 3", sql="SELECT * FROM input")
        source = engine.settled(source)
        counts = engine.counts(source, REQUEST_OF_PEOPLE)
        engine.distinct(source, "sex")
        engine.middle(source, "number")
        engine.profile(source)
        engine.snapshot(source)
        chosen = engine.rows(source, REQUEST_OF_PEOPLE, counts, located=True)
        engine.rows(source, REQUEST_OF_PEOPLE, counts, rest=True)
        engine.fetch(source, chosen["place"].to_pylist()[:3])
    engine.close()
    assert len(asked) > 15
    for query in asked:
        assert unnamed_queries(query) == [], query


REQUEST_OF_PEOPLE = CountRequest(sensitive=("sex",), label="hired", bins={})


def unnamed_queries(query: str) -> list[str]:
    """Find what follows queries in FROM or JOIN without a name."""
    found = []
    for start in re.finditer(r"\b(?:FROM|JOIN)\s*\(", query):
        depth, end = 1, start.end()
        while depth:
            depth += {"(": 1, ")": -1}.get(query[end], 0)
            end += 1
        if not re.match(r"\s*AS\s+\w", query[end:]):
            found.append(query[start.start() : end + 20])
    return found


def test_a_connection_may_return_its_rows_as_dictionaries(people):
    address, _ = people
    bare = address.replace("&table=people", "")
    with psycopg.connect(bare, row_factory=dict_row) as connection:
        asked = {"sensitive_features": ["sex"], "label": "hired"}
        assert eq.count((connection, "people"), **asked) == eq.count(address, **asked)


# ------------------------------------------------------------------------------ bad input

ASKED = {"sensitive_features": ["sex"], "label": "hired"}


def test_what_is_not_there(people):
    address, connection = people
    with pytest.raises(SourceNotFound, match=r"no table 'poeple'; it has: .*Did you mean 'people'"):
        eq.measure(address.replace("people", "poeple"), **ASKED)
    connection.execute("CREATE SCHEMA archive; CREATE TABLE archive.staff AS TABLE people")
    with pytest.raises(SourceNotFound, match=r"Did you mean 'archive\.staff'\?$"):
        eq.measure(address.replace("people", "staff"), **ASKED)
    with pytest.raises(InputError, match=r"names it, as in postgresql://.*\?table=people"):
        eq.measure(address.partition("?")[0], **ASKED)
    with pytest.raises(InputError, match="'sexx' not found"):
        eq.measure(address, sensitive_features=["sexx"], label="hired")


def test_a_view_without_the_right_to_select(people):
    address, connection = people
    connection.execute(
        "CREATE VIEW secret AS TABLE people; DROP ROLE IF EXISTS guest; CREATE ROLE guest LOGIN"
    )
    as_guest = address.replace("postgres:@", "guest:@").replace("table=people", "table=secret")
    with pytest.raises(InputError, match=r"no right to select from public\.secret"):
        eq.measure(as_guest, **ASKED)
    connection.execute("DROP ROLE guest")


@pytest.mark.parametrize(
    "sql",
    [
        "DROP TABLE input",
        "SELECT 1; DROP TABLE people",
        "SELECT * FROM input) x; DELETE FROM people --",
    ],
)
def test_a_query_can_only_read(people, sql):
    address, connection = people
    with pytest.raises(InputError):
        eq.measure(address, **ASKED, sql=sql)
    assert connection.execute("SELECT count(*) FROM people").fetchone() == (60,)


def test_a_password_is_never_shown(people, tmp_path, capfd, monkeypatch):
    from equipoise.cli import main

    address, _ = people
    secret = address.replace("postgres:@", "postgres:Geheim42@")
    out = str(tmp_path / "out.html")
    for arguments in (
        ["measure", secret, "-s", "sex", "-l", "hired", "-o", out],
        ["measure", secret, "-s", "sex", "-l", "hired", "--json"],
        ["measure", f"{secret}x", "-s", "sex", "-l", "hired"],
        ["measure", "postgresql://ann:Geheim42@127.0.0.1:1/db?table=x", "-s", "sex", "-l", "hired"],
        ["plan", secret, "-s", "sex", "-l", "hired", "-o", str(tmp_path / "plan.json")],
        [
            *("apply", str(tmp_path / "plan.json"), "--to", secret, "--pool", f"{secret}x"),
            "-o",
            secret,
        ],
    ):
        monkeypatch.setattr("sys.argv", ["equipoise", *arguments])
        with pytest.raises(SystemExit):
            main()
    said = "".join(capfd.readouterr())
    written = "".join(path.read_text("utf-8") for path in tmp_path.iterdir())
    assert "Geheim" not in said + written
    assert "table=people" in said


# --------------------------------------------------------------------------------- faults


def terminated(connection, attempts: int) -> threading.Thread:
    """End every connection of ours while its query runs, some times."""

    def work() -> None:
        left = attempts
        for _ in range(400):
            time.sleep(0.02)
            ended = connection.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'equipoise' "
                "AND datname = current_database() AND state = 'active' AND query LIKE 'COPY%'"
            ).fetchall()
            left -= len(ended)
            if left <= 0:
                return

    thread = threading.Thread(target=work)
    thread.start()
    return thread


SLOW = "SELECT * FROM input, (SELECT pg_sleep(0.6)) AS slow"


@pytest.mark.slow
def test_a_terminated_query_is_tried_again_once(people):
    address, connection = people
    expected = eq.count(address, **ASKED)
    engine = PostgresEngine()
    killer = terminated(connection, 1)
    assert eq.count(address, **ASKED, sql=SLOW, engine=engine) == expected
    killer.join()
    killer = terminated(connection, 2)
    with pytest.raises(eq.EquipoiseError, match="connection to the database was lost"):
        eq.count(address, **ASKED, sql=SLOW, engine=engine)
    killer.join()
    assert eq.count(address, **ASKED, engine=engine) == expected
    engine.close()


WIRE = """
import contextlib, socket, sys, threading, time
here, server, cuts = sys.argv[1], sys.argv[2], [None] * int(sys.argv[3])

def pass_on(one, other):
    with contextlib.suppress(OSError):
        while data := one.recv(65536):
            other.sendall(data)
            if b"COPY (" in data and cuts:
                cuts.pop()
                time.sleep(0.3)  # the query runs, and its result is not there yet
                print("cut", flush=True)
                for end in (one, other):
                    end.shutdown(socket.SHUT_RDWR)

listener = socket.socket(socket.AF_UNIX)
listener.bind(here)
listener.listen()
print("ready", flush=True)
while True:
    ours, _ = listener.accept()
    theirs = socket.socket(socket.AF_UNIX)
    theirs.connect(server)
    for ends in ((ours, theirs), (theirs, ours)):
        threading.Thread(target=pass_on, args=ends, daemon=True).start()
"""
"""A program that passes everything on to the server, and cuts connections in the middle of some queries."""


@pytest.mark.slow
@pytest.mark.parametrize("cuts", [1, 2])
def test_a_connection_that_is_cut(people, cuts):
    address, _ = people
    expected = eq.count(address, **ASKED)
    own = re.search(r"host=([^&]*)", address)[1]
    engine = PostgresEngine()
    with tempfile.TemporaryDirectory() as folder:  # a short name, as sockets need
        ends = [f"{place}/.s.PGSQL.5432" for place in (folder, unquote(own))]
        command = [sys.executable, "-c", WIRE, *ends, str(cuts)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as wire:
            assert wire.stdout.readline() == "ready\n"
            through = address.replace(own, folder)
            if cuts == 1:
                assert eq.count(through, **ASKED, sql=SLOW, engine=engine) == expected
            else:
                with pytest.raises(eq.EquipoiseError, match="connection to the database was lost"):
                    eq.count(through, **ASKED, sql=SLOW, engine=engine)
            assert [wire.stdout.readline() for _ in range(cuts)] == ["cut\n"] * cuts
            assert eq.count(through, **ASKED, engine=engine) == expected
            engine.close()
            wire.kill()


def test_changes_between_two_queries_of_one_measurement_are_not_seen(people, monkeypatch):
    address, connection = people
    asked = {"sensitive_features": ["number"], "label": "hired", "bins": {"number": 3}}
    expected = eq.count(address, **asked)
    queries = []

    def arrow(self, query, *rest, arrow=Session.arrow):
        queries.append(query)
        found = arrow(self, query, *rest)
        connection.execute(
            "INSERT INTO people SELECT 1000 + i, 'x', 'no' FROM generate_series(1, 99) AS t(i)"
        )
        return found

    with monkeypatch.context() as patched:
        patched.setattr(Session, "arrow", arrow)
        assert eq.count(address, **asked) == expected
    assert len(queries) > 1
    assert eq.count(address, **asked).n == 60 + 99 * len(queries)


@pytest.mark.slow
def test_a_connection_of_the_user_that_is_lost_is_not_replaced(people):
    address, connection = people
    own = psycopg.connect(address.partition("&table")[0], application_name="equipoise")
    killer = terminated(connection, 1)
    with pytest.raises(eq.EquipoiseError, match="connection to the database was lost"):
        eq.count((own, "people"), **ASKED, sql=SLOW)
    killer.join()
    own.close()


@pytest.mark.parametrize("zone", ["SET TimeZone", "SET LOCAL TimeZone"])
def test_a_transaction_of_the_user_keeps_its_settings(people, zone):
    address, connection = people
    with psycopg.connect(address.partition("&table")[0]) as own:
        own.execute(
            f"{zone} = 'Asia/Kolkata'; SET DateStyle = 'German'; SET extra_float_digits = 0; "
            "SET standard_conforming_strings = off; SET client_encoding = 'LATIN1'".encode()
        )

        def settings() -> list[tuple[str, ...]]:
            named = (
                "name IN ('TimeZone', 'DateStyle', 'extra_float_digits', 'standard_conforming_strings', "
                "'client_encoding', 'statement_timeout', 'transaction_isolation')"
            )
            query = (
                f"SELECT name, current_setting(name) FROM pg_settings WHERE {named} ORDER BY name"
            )
            return own.execute(query.encode()).fetchall()

        before = settings()
        assert ("TimeZone", "Asia/Kolkata") in before
        assert len(before) == 7
        assert eq.count((own, "people"), **ASKED).n == 60
        assert settings() == before
        with pytest.raises(InputError, match="'sexx' not found"):
            eq.count((own, "people"), sensitive_features=["sexx"], label="hired")
        with pytest.raises(InputError, match="refused a query"):
            eq.count((own, "people"), **ASKED, sql="SELECT 1 / 0 AS sex, hired FROM input")
        assert settings() == before
        own.commit()
        kept = (
            "Asia/Kolkata" if "LOCAL" not in zone else connection.info.parameter_status("TimeZone")
        )
        assert dict(settings())["TimeZone"] == kept
        assert dict(settings())["DateStyle"] == dict(before)["DateStyle"]


def test_a_query_that_takes_too_long_ends_with_a_sentence(people):
    address, _ = people
    limited = address.replace("&table", "&options=-c%20statement_timeout=200&table")
    with pytest.raises(InputError, match=r"took longer than the limit .* set statement_timeout"):
        eq.measure(limited, **ASKED, sql="SELECT * FROM input, (SELECT pg_sleep(5)) AS slow")


@pytest.mark.slow
def test_a_table_is_made_whole_or_not_at_all(people):
    address, connection = people
    plan = eq.plan(address, **ASKED, allow="delete", tolerance=0.01)
    connection.execute(
        "CREATE FUNCTION wait() RETURNS trigger LANGUAGE plpgsql AS "
        "$$ BEGIN PERFORM pg_sleep(0.05); RETURN NEW; END $$"
    )
    out = address.replace("table=people", "table=out")
    done = eq.apply(plan, to=address, pool=None, output=out)
    assert done.as_planned
    before = connection.execute("SELECT * FROM out ORDER BY number").fetchall()

    def end() -> None:
        for _ in range(300):
            time.sleep(0.01)
            if connection.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'equipoise' "
                "AND datname = current_database() AND query LIKE 'INSERT%' AND state = 'active'"
            ).fetchall():
                return

    thread = threading.Thread(target=end)
    thread.start()
    slow = "SELECT input.* FROM input, LATERAL (SELECT pg_sleep(0.02), input.number) AS slow"
    part = eq.plan(address, **ASKED, sql=slow, allow="delete", tolerance=0.01)
    with pytest.raises(eq.EquipoiseError, match="connection to the database was lost"):
        eq.apply(part, to=address, pool=None, output=out)
    thread.join()
    assert connection.execute("SELECT * FROM out ORDER BY number").fetchall() == before
    left = connection.execute("SELECT relname FROM pg_class WHERE relname ~ '^equipoise'")
    assert left.fetchall() == []


def test_a_connection_lost_while_a_table_is_made_leaves_the_old_one(people, monkeypatch):
    address, connection = people
    connection.execute("CREATE TABLE out AS SELECT 1 AS old")
    engine = PostgresEngine()
    base, out = locate(address), locate(address.replace("table=people", "table=out"))
    ends = []

    def arrow(self, *query, arrow=Session.arrow):
        if not ends:  # the next query is the first that notices
            ends.append(self.execute("SELECT pg_backend_pid()"))
            connection.execute("SELECT pg_terminate_backend(%s)", ends[0][0])
        return arrow(self, *query)

    monkeypatch.setattr(Session, "arrow", arrow)

    def make() -> None:
        with engine.creating(out, [Part(base)]):
            with pytest.raises(eq.EquipoiseError, match="connection to the database was lost"):
                engine.read(base)
            with pytest.raises(eq.EquipoiseError, match="connection to the database was lost"):
                engine.read(base)

    with pytest.raises(eq.EquipoiseError, match="connection to the database was lost"):
        make()
    assert ends
    assert connection.execute("SELECT * FROM out").fetchall() == [(1,)]
    left = connection.execute("SELECT relname FROM pg_class WHERE relname ~ '^equipoise'")
    assert left.fetchall() == []
    ends.clear()
    assert engine.read(base).num_rows == 60  # which is tried again outside of a transaction
    assert ends
    engine.close()
