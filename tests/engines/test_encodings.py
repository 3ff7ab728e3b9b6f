"""Databases of PostgreSQL with other encodings than UTF-8 count, choose and hash as all others do."""

from __future__ import annotations

from dataclasses import replace

import psycopg
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import equipoise as eq
import servers
from equipoise.counts import CountRequest, Counts
from equipoise.engines.duckdb import DuckDBEngine
from equipoise.engines.postgres import PostgresEngine
from equipoise.engines.postgres._encodings import _CODECS, dialect_of
from equipoise.engines.sources import locate
from equipoise.errors import InputError
from equipoise.lake.verify.views import KnownTexts

ASKED = {"sensitive_features": ["sex"], "label": "hired"}
REQUEST = CountRequest(sensitive=("sex",), label="hired")
CODECS = {"LATIN1": "latin-1", "WIN1251": "cp1251", "EUC_JP": "euc-jp"}


def letters_of(encoding: str) -> list[str]:
    """List characters of an encoding beyond ASCII, also those whose order in it is another one."""
    if encoding == "EUC_JP":
        return list("ア日本―ぁЖΩ亜龠")
    return list(bytes(range(0x99, 0x100)).decode(CODECS[encoding]))


def people_in(encoding: str, rows: int, start: int = 0) -> pa.Table:
    """Make people whose names have characters of an encoding."""
    some = letters_of(encoding)
    name = [f"{some[i % len(some)]}{'a' * (i % 3)}{i}" for i in range(start, start + rows)]
    sex = ["Female" if i % 5 < 2 else f"Other {some[-1] * 3}" for i in range(rows)]
    hired = ["yes" if i % 7 < (2 if i % 5 < 2 else 4) else "no" for i in range(rows)]
    return pa.table({"name": name, "sex": sex, "hired": hired})


def as_database(encoding: str):
    return servers.new_database(
        f"ENCODING '{encoding}' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0"
    )


def store(address: str, name: str, rows: pa.Table) -> str:
    """Store texts in a table of a database; return its address."""
    with psycopg.connect(address, autocommit=True, client_encoding="utf8") as connection:
        columns = ", ".join(f"{column} text" for column in rows.column_names)
        connection.execute(f"CREATE TABLE {name} ({columns})".encode())
        with connection.cursor() as cursor, cursor.copy(f"COPY {name} FROM STDIN".encode()) as copy:
            for line in zip(*(c.to_pylist() for c in rows.columns), strict=True):
                copy.write_row(line)
    return f"{address}&table={name}"


@pytest.fixture(params=list(CODECS))
def encoding(request):
    return request.param


@pytest.fixture
def stored(encoding):
    """A table in a database of an encoding, and the same rows in memory."""
    rows = people_in(encoding, 240)
    with as_database(encoding) as address:
        yield store(address, "people", rows), rows


def half_of(counts: Counts) -> Counts:
    cells = {cell: -(-n // 2) for cell, n in counts.cells().items()}
    return Counts.from_mapping(cells, sensitive=["sex"], label="hired")


def test_other_encodings_give_what_files_give(stored):
    address, rows = stored
    engine, duckdb = PostgresEngine(), DuckDBEngine(in_place=0)
    theirs, ours = locate(rows), locate(address)
    counts = duckdb.counts(theirs, REQUEST)
    assert engine.counts(ours, REQUEST) == counts
    for column in rows.column_names:
        found, expected = (
            list(e.distinct(s, column).items()) for e, s in ((engine, ours), (duckdb, theirs))
        )
        assert found == expected
    here = duckdb.rows(theirs, REQUEST, half_of(counts), 3, located=True)
    chosen = engine.rows(ours, REQUEST, half_of(counts), 3, located=True)
    assert chosen["name"].to_pylist() == here["name"].to_pylist()
    assert chosen["md5"].to_pylist() == here["md5"].to_pylist()
    engine.close()


def test_rows_with_a_key_are_chosen_in_another_encoding_as_in_utf8(stored):
    address, rows = stored
    engine, counts = PostgresEngine(), eq.count(rows, **ASKED)
    with servers.new_database() as other:
        chosen = [
            engine.rows(
                locate(f"{table}&id=name,hired,sex"), REQUEST, half_of(counts), 5, located=True
            )
            for table in (address, store(other, "people", rows))
        ]
        engine.close()
    assert chosen[0].num_rows
    assert chosen[0].equals(chosen[1])


@pytest.mark.slow
def test_conditions_compare_texts_in_other_encodings_as_in_files(stored, encoding):
    address, rows = stored
    for letter in letters_of(encoding)[::9]:
        where = f"name <= '{letter}z'"
        assert eq.count(address, **ASKED, where=where) == eq.count(rows, **ASKED, where=where)


def test_texts_of_other_encodings_lose_the_same_blanks_and_capitals(stored, encoding):
    address, rows = stored
    d = dialect_of(encoding)
    shown = d.without_blanks(d.in_lower_case("name"))
    with psycopg.connect(address.partition("&table")[0], client_encoding="utf8") as connection:
        query = f"SELECT name, {shown}, {d.is_ascii('name')} FROM people"
        found = connection.execute(query.encode()).fetchall()
    assert [line[1:] for line in found] == [(n.lower().strip(), n.isascii()) for n, *_ in found]
    assert len(found) == len(rows)


def test_missing_marks_that_an_encoding_does_not_have_match_nothing(stored):
    address, rows = stored
    asked = {**ASKED, "na": ["no", "漢\u0e01"], "missing_label": "group"}
    assert eq.count(address, **asked) == eq.count(rows, **asked)


@pytest.mark.slow
def test_a_repair_of_a_table_in_another_encoding_is_verified(stored, encoding, tmp_path):
    address, rows = stored
    pool = people_in(encoding, 400, start=1000)
    store(address.partition("&table")[0], "pool", pool)
    table, lake = tmp_path / "people.parquet", tmp_path / "lake"
    lake.mkdir()
    pq.write_table(rows, table)
    pq.write_table(pool, lake / "pool.parquet")
    hashes = []
    for base, others in ((address, address.replace("=people", "=pool")), (table, lake)):
        n = len(hashes)
        found = eq.Lake(others, index=tmp_path / f"{n}.duckdb")
        done = eq.repair(base, found, tmp_path / f"{n}.parquet", **ASKED, dedupe="multiset")
        assert done.acquired.added
        assert done.verification.ok, done.verification.text()
        ledger = pq.read_table(done.acquired.ledger)
        hashes.append(
            sorted(zip(ledger["action"].to_pylist(), ledger["hash"].to_pylist(), strict=True))
        )
    assert hashes[0] == hashes[1]


def test_no_row_is_in_a_cell_that_an_encoding_does_not_have(stored):
    address, rows = stored
    counts = eq.count(rows, **ASKED)
    more = {**half_of(counts).cells(), ("\u0e01", "yes"): 3}
    take = Counts.from_mapping(more, sensitive=["sex"], label="hired")
    engine, source = PostgresEngine(), locate(address)
    chosen = [engine.rows(source, REQUEST, wanted, 3) for wanted in (take, half_of(counts))]
    assert sorted(chosen[0]["name"].to_pylist()) == sorted(chosen[1]["name"].to_pylist())
    column = next(c for c in engine.schema(source) if c.name == "hired")
    for texts, known in ((["\u0e01"], []), (["\u0e01", "no"], ["no"])):
        found = engine.read(replace(source, view=KnownTexts(column, texts)))
        assert found["v"].to_pylist() == known
    engine.close()


def test_a_text_that_an_encoding_does_not_have_is_refused_in_words():
    with as_database("LATIN1") as address:
        engine = PostgresEngine(address)
        with pytest.raises(
            InputError, match=r"encoding of the database, LATIN1: .*; copy its tables"
        ):
            engine.counts(locate(people_in("WIN1251", 10)), REQUEST)
        engine.close()


@pytest.mark.slow
def test_texts_of_no_certain_encoding_are_counted_and_not_compared(tmp_path):
    rows = people_in("WIN1251", 60)
    with as_database("SQL_ASCII") as address:
        table = store(address, "people", rows)
        counts = eq.count(rows, **ASKED)
        assert eq.count(table, **ASKED) == counts
        engine = PostgresEngine()
        source = locate(table)
        assert engine.distinct(source, "sex") == DuckDBEngine().distinct(locate(rows), "sex")
        refused = pytest.raises(
            InputError, match=r"unencoded text \(sql_ascii\): its encoding does"
        )
        with refused:
            engine.rows(source, REQUEST, half_of(counts))
        with refused:
            engine.snapshot(source)
        lake = eq.Lake(table, index=tmp_path / "index.duckdb")
        with refused:
            eq.repair(table, lake, tmp_path / "repaired.parquet", **ASKED)
        assert not (tmp_path / "repaired.parquet").exists()
        engine.close()


def test_bytes_that_are_no_text_are_refused_in_words():
    with as_database("SQL_ASCII") as address:
        with psycopg.connect(address, autocommit=True) as connection:
            connection.execute("SET client_encoding = 'SQL_ASCII'")
            connection.execute(b"CREATE TABLE people AS SELECT '\xe9' AS sex, 'no' AS hired")
        with pytest.raises(
            InputError, match=r"encoding of the database, SQL_ASCII: .*; copy its tables"
        ):
            eq.count(f"{address}&table=people", **ASKED)


def test_letters_of_an_encoding_are_those_of_python():
    """Python knows each encoding by its name, with at least the capital letters of ASCII."""
    for encoding in _CODECS:
        capital, small = dialect_of(encoding)._letters
        assert capital.startswith("ABC")
        assert small.startswith("abc")
