"""Hashes of values in SQL are those of Python, on every engine."""

from __future__ import annotations

import datetime
import decimal
import math
from dataclasses import dataclass, replace

import pyarrow as pa
import pytest

import servers
from equipoise.engines.dialect import Dialect
from equipoise.engines.duckdb import DuckDBEngine
from equipoise.engines.sources import locate
from equipoise.lake.offers.fingerprints import RowHashes, loose_hashes
from equipoise.lake.offers.meanings import HashedColumn, hashed
from strategies import NASTY

NUMBERS = ["0", "-0", "+0", "007", "7", "+7", "7.", "7.0", ".5", "0,5", "0.5", "-,5", "1e3", "1E3", "1000", "1,000",
           "1.000", "1,000.5", "1.000,5", "12.345.678", "12,345,678", "1,5", "01,5", "1234567890123456",
           "999999999999999", "1e99", "1e-99", "1e100", "inf", "nan", "-", "+", ".", "1.2.3", "1,2,3", "0x10", "1_000",
           "1,5e3", "5%", "-1,000.25", "+1.000,25", "000", "0.1", "123456789,123456789", "²", "٣", "１"]  # fmt: skip
DATES = ["2021-03-04", "2021-3-4", "2021/03/04", "2021.3.4", "04.03.2021", "25.12.2021", "12/25/2021", "3/3/2021",
         "13.13.2021", "04-03-21", "2021-03/04", "2021-03-04 00:00:00", "2021-03-04T00:00", "2021-03-04 10:00:00",
         "2021-03-04 10:00", "2021-03-04 10:00:00.000", "2021-03-04 10:00:00.5", "2021-03-04 10:00 PM",
         "2021-03-04 12:00 am", "2021-03-04 12:00pm", "25/12/2021 1:05", "20210304", "99-99-9999", "2021-03-04 99:99",
         "1/2/3", "10000-01-01", "2021-03-04 10:00:00+00", "0044-03-15 (BC)"]  # fmt: skip
WORDS = ["Y", "yes", "TRUE", "true ", "n", "No", "FALSE", "t", "f", "Straße", "STRASSE", "ÉCOLE", "école", "ΣΟΦΟΣ",
         "İstanbul", "ｱＡ", "\u00a0blank\u3000", "ДОМ", "\u1e9e", "Ⓐ", "𐐀", "a\tb", "\x1ftab\x85"]  # fmt: skip


@dataclass(frozen=True)
class _Hashes:
    column: HashedColumn

    def query(self, d: Dialect) -> str:
        """Select the hash of each value beside its number."""
        return hashed(d, [self.column], {"n": "input.n"}, "__")


def in_sql(engine, column, column_type, *, source=None, known=None, loose=False):
    """Hash a column by an engine, in its order."""
    source = source or locate(pa.table({"n": range(len(column)), "x": column}))
    view = _Hashes(HashedColumn("x", column_type, loose, known))
    found = engine.read(replace(source, view=view)).sort_by("n")
    return found["h0"].to_pylist()


def in_python(column, *, loose=False):
    table = pa.table({"x": column})
    hashes = loose_hashes(table["x"]) if loose else RowHashes.of(table).columns["x"]
    return [f"{h:016x}" for h in hashes.tolist()]


TEXTS = [*(t for t in NASTY if "\x00" not in t), *NUMBERS, *DATES, *WORDS, None]
TYPED = {
    "BIGINT": pa.array([0, -1, 7, 10**15 - 1, 10**15, -(10**15), 2**63 - 1, -(2**63), None]),
    "INTEGER": pa.array([0, -5, 2**31 - 1, None], pa.int32()),
    "DOUBLE": pa.array([0.0, -0.0, 7.0, 0.1, 1e15, 1e23, 5e-324, math.inf, -math.inf, math.nan, None]),
    "FLOAT": pa.array([0.0, 0.1, -0.0, 1e10, None], pa.float32()),
    "BOOLEAN": pa.array([True, False, None]),
    "DATE": pa.array([datetime.date(2021, 3, 4), datetime.date(1, 1, 1), None]),
    "TIMESTAMP": pa.array([datetime.datetime(2021, 3, 4), datetime.datetime(2021, 3, 4, 10, 5, 1, 500), None]),  # noqa: DTZ001
    "DECIMAL(10,2)": pa.array([decimal.Decimal("1.50"), decimal.Decimal("-0.25"), None], pa.decimal128(10, 2)),
}  # fmt: skip


@pytest.fixture(
    scope="module", params=["duckdb", "postgres", pytest.param("spark", marks=pytest.mark.spark)]
)
def engine(request):
    """An engine that hashes frames."""
    if request.param == "duckdb":
        yield DuckDBEngine()
        return
    if request.param == "spark":
        from equipoise.engines.spark import SparkEngine

        yield SparkEngine(servers.spark_session())
        return
    from equipoise.engines.postgres import PostgresEngine

    with servers.new_database() as address:
        engine = PostgresEngine(address)
        yield engine
        engine.close()


@pytest.mark.parametrize("loose", [False, True])
def test_texts_have_the_same_hashes(engine, loose):
    column = pa.array(TEXTS, pa.string())
    ours, theirs = in_sql(engine, column, "VARCHAR", loose=loose), in_python(column, loose=loose)
    assert [(t, a, b) for t, a, b in zip(TEXTS, ours, theirs, strict=True) if a != b] == []


@pytest.mark.parametrize("column_type", TYPED)
def test_typed_values_have_the_same_hashes(engine, column_type):
    assert in_sql(engine, TYPED[column_type], column_type) == in_python(TYPED[column_type])


def test_every_letter_has_the_same_hash(engine):
    letters = [chr(i) for i in range(1, 0x1F000) if not 0xD800 <= i < 0xE000 and chr(i) != "\x00"]
    column = pa.array([f"x{c}y" for c in letters])
    assert in_sql(engine, column, "VARCHAR") == in_python(column)
