"""ANY and MISSING are objects; everything else is known by one text."""

from __future__ import annotations

import copy
import datetime
import decimal
import math
import pickle

import duckdb
import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from equipoise.values import ANY, MISSING, as_value
from strategies import texts


def test_the_two_objects_are_like_no_text():
    assert ANY != "*"
    assert MISSING != "<missing>"
    assert ANY is not MISSING
    assert (str(ANY), str(MISSING)) == ("*", "<missing>")
    assert (repr(ANY), repr(MISSING)) == ("ANY", "MISSING")


@pytest.mark.parametrize("special", [ANY, MISSING])
def test_the_two_objects_stay_themselves(special):
    assert copy.deepcopy(special) is special
    assert pickle.loads(pickle.dumps(special)) is special


@given(texts())
def test_text_is_its_own_value(text):
    assert as_value(text) == text
    assert type(as_value(np.str_(text))) is str


@pytest.mark.parametrize(
    "absent",
    [
        None, MISSING, math.nan, -math.nan, np.float64("nan"), np.float32("nan"), pd.NA, pd.NaT,
        np.datetime64("NaT"), decimal.Decimal("NaN"),
    ],
)  # fmt: skip
def test_what_is_missing(absent):
    assert as_value(absent) is MISSING


MOMENT = datetime.datetime(2020, 2, 29, 1, 2, 3, 120_000)  # noqa: DTZ001 (naive on purpose)


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        (1, "1"),
        (-(10**30), "-1000000000000000000000000000000"),
        (True, "true"),
        (np.bool_(False), "false"),
        (np.int8(5), "5"),
        (1.0, "1.0"),
        (-0.0, "0.0"),
        (0.1, "0.1"),
        (1e20, "1e+20"),
        (1e-5, "1e-05"),
        (math.inf, "inf"),
        (-math.inf, "-inf"),
        (np.float64(0.1), "0.1"),
        (np.float32(0.5), "0.5"),
        (np.float32(0.1), "0.10000000149011612"),  # what it is; databases print it variously
        (np.float32(1e8), "100000000.0"),
        (np.float32(-0.0), "0.0"),
        (decimal.Decimal("1.50"), "1.50"),
        (decimal.Decimal("1E-10"), "0.0000000001"),
        (datetime.date(2020, 2, 29), "2020-02-29"),
        (MOMENT, "2020-02-29 01:02:03.12"),
        (MOMENT.replace(microsecond=0), "2020-02-29 01:02:03"),
        (MOMENT.replace(tzinfo=datetime.UTC), "2020-02-29 01:02:03.12+00"),
        (
            MOMENT.replace(tzinfo=datetime.timezone(datetime.timedelta(hours=2))),
            "2020-02-28 23:02:03.12+00",
        ),
        (datetime.time(1, 2, 3), "01:02:03"),
        (datetime.time(1, 2, 3, 500_000), "01:02:03.5"),
        (pd.Timestamp("2020-01-01 00:00:00.000000100"), "2020-01-01 00:00:00.0000001"),
        (datetime.timedelta(days=2, seconds=3), "48:00:03"),
        (datetime.timedelta(seconds=-0.5), "-00:00:00.5"),
        (datetime.timedelta(0), "00:00:00"),
        (b"it's \x00\xff", "it\\x27s \\x00\\xFF"),
        (pd.Interval(0, 10), "(0, 10]"),
    ],
)
def test_the_text_of_a_value(raw, text):
    assert as_value(raw) == text


@pytest.fixture(scope="module")
def connection():
    with duckdb.connect() as connection:
        yield connection


@given(
    raw=st.floats(allow_nan=False)
    | st.integers(-(2**63), 2**63 - 1)
    | st.booleans()
    | st.dates()
    | st.datetimes()
    | st.times()
    | st.timedeltas(datetime.timedelta(0), datetime.timedelta(hours=23))  # DuckDB keeps days apart
    | st.binary()
    | st.decimals(1, 10**9, places=5)
)
def test_the_text_is_what_duckdb_gives(connection, raw):
    expected = connection.execute("SELECT CAST(? AS VARCHAR)", [raw]).fetchall()[0][0]
    if isinstance(raw, float) and raw == 0:
        expected = "0.0"  # there is one zero
    assert as_value(raw) == expected
