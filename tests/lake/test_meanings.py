"""Hashes of values in SQL are those of Python, on every engine."""

from __future__ import annotations

import contextlib
import datetime
import decimal
import math
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

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
    "TIMESTAMP": pa.array([1614816000000000, 1614816000000500, 1614852301000000, None], pa.timestamp("us")),
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


def numbers():
    """Numbers in many notations, and texts that look like them."""
    digits = st.text("0123456789", min_size=1, max_size=6)
    joined = st.lists(digits, min_size=1, max_size=4).flatmap(
        lambda parts: st.lists(
            st.sampled_from([".", ",", "-", "/", " ", "e", "t", ":"]),
            min_size=len(parts),
            max_size=len(parts),
        ).map(lambda marks: "".join(a + b for a, b in zip(parts, marks, strict=True)))
    )
    return st.builds(
        lambda sign, text, end: sign + text + end,
        st.sampled_from(["", "+", "-", " "]),
        joined,
        digits | st.just(""),
    )


def dates():
    """Dates in many notations, possible and impossible ones."""
    part = st.integers(0, 2030).map(str) | st.integers(0, 31).map(lambda n: f"{n:02}")
    time = st.sampled_from(["", " 00:00", "T10:05", " 1:05 pm", " 12:00am", " 23:59:59.000"])
    return st.builds(
        lambda a, b, c, mark, time: f"{a}{mark}{b}{mark}{c}{time}",
        part,
        part,
        part,
        st.sampled_from("-/."),
        time,
    )


@pytest.fixture(scope="module")
def local():
    """The engines that are fast enough for many queries."""
    from equipoise.engines.postgres import PostgresEngine

    with servers.new_database() as address, contextlib.closing(PostgresEngine(address)) as engine:
        yield DuckDBEngine(), engine


@pytest.mark.slow
@settings(
    max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(texts=st.lists(numbers() | dates() | st.text(max_size=8), min_size=1, max_size=120))
def test_any_texts_have_the_same_hashes(local, texts):
    column = pa.array([text.replace("\x00", "") for text in texts], pa.string())
    for loose in (False, True):
        expected = in_python(column, loose=loose)
        for engine in local:
            assert in_sql(engine, column, "VARCHAR", loose=loose) == expected


@pytest.mark.slow
@settings(
    max_examples=5, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(bits=st.lists(st.integers(0, 2**64 - 1), min_size=50, max_size=200))
def test_any_doubles_have_the_same_hashes(local, bits):
    column = pa.array(np.array(bits, np.uint64).view(np.float64))
    for engine in local:
        assert in_sql(engine, column, "DOUBLE") == in_python(column)


def test_known_hashes_are_looked_up_and_others_computed(engine):
    column = pa.array(["a", "b", None, " A"])
    told = in_sql(engine, column, "VARCHAR", known={"a": "f" * 16, "x": "0" * 16})
    plain = in_python(column)
    assert told == ["f" * 16, *plain[1:]]
    numbers = pa.array([1, 2, None])
    assert in_sql(engine, numbers, "BIGINT", known={"1": "f" * 16})[0] == "f" * 16


def test_every_letter_has_the_same_hash(engine):
    letters = [chr(i) for i in range(1, 0x1F000) if not 0xD800 <= i < 0xE000]
    column = pa.array(
        ["x" + "".join(letters[i : i + 40]) + "y" for i in range(0, len(letters), 40)]
    )
    assert in_sql(engine, column, "VARCHAR") == in_python(column)
    settled = pa.array([f"x{letter}y" for letter in letters if letter < "\u0600"])
    assert in_sql(engine, settled, "VARCHAR") == in_python(settled)
