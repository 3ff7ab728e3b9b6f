"""Texts are read as values by the same rules in every database."""

from __future__ import annotations

import datetime
import functools
import itertools
from dataclasses import dataclass, replace

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import servers
from equipoise.engines import engines
from equipoise.engines.sources import locate
from equipoise.lake.matching.conversions import Conversion
from equipoise.lake.matching.notations import NOTATIONS, date_formats, without_absent
from strategies import NASTY

DUCKDB = engines()["duckdb"](in_place=0)
WHOLE = ("TINYINT", "UTINYINT", "INTEGER", "BIGINT", "UBIGINT")
KINDS = (
    *WHOLE,
    *("DOUBLE", "FLOAT", "DECIMAL(5,2)", "DECIMAL(18,0)", "DECIMAL(38,10)", "BOOLEAN"),
    *("DATE", "TIMESTAMP", "TIMESTAMP WITH TIME ZONE"),
)


@functools.cache
def database(name):
    if name == "postgres":
        return engines()[name](servers.postgres_address())
    return engines()[name](servers.spark_session())


@pytest.fixture(params=["postgres", pytest.param("spark", marks=pytest.mark.spark)])
def other(request):
    return database(request.param)


@dataclass(frozen=True)
class Read:
    """A view of what texts are, each way of reading them with the type of its result."""

    ways: tuple

    def query(self, d):
        values = ", ".join(f"{how(d)} AS v{j}" for j, (how, _) in enumerate(self.ways))
        texts = ", ".join(f"{d.exact(f'v{j}', k)} AS x{j}" for j, (_, k) in enumerate(self.ways))
        return f"SELECT i, {texts}\nFROM (SELECT i, {values}\nFROM input) AS told"


def way(method, kind, *more):
    """A way of reading the column ``t`` by a method of a dialect."""
    return lambda d: getattr(d, method)("t", *more, *([kind] if not more else [])), kind


def answers(engine, texts, ways):
    rows = pa.table({"i": range(len(texts)), "t": pa.array(texts, pa.string())})
    found = engine.read(replace(locate(rows), view=Read(tuple(ways)))).sort_by("i")
    columns = [column.to_pylist() for column in found.columns[1:]]
    return [dict(zip(texts, column, strict=True)) for column in columns]


def assert_same(engine, texts, ways):
    texts = list(dict.fromkeys(texts))
    different = [
        (kind, t, here[t], there[t])
        for (_, kind), here, there in zip(
            ways, answers(DUCKDB, texts, ways), answers(engine, texts, ways), strict=True
        )
        for t in texts
        if here[t] != there[t]
    ]
    assert not different


TYPED = [
    *(way("tried", kind) for kind in KINDS if kind[0] != "U"),
    *(way("whole", kind) for kind in WHOLE),
    *(way("converted", kind) for kind in ("BIGINT", "DOUBLE", "FLOAT", "DATE", "BOOLEAN")),
    (lambda d: d.without_zeros("t"), "VARCHAR"),
    (lambda d: without_absent(d, "t"), "VARCHAR"),
]
TEXTS = [
    *(t for t in NASTY if t not in ("\x00", "0x1F")),  # PostgreSQL has no zero byte
    *("yesterday", "now", "today", "tomorrow", "allballs", "t", "T", "on", "off", "yes", "No", "y"),
    *("TRUE", "tru", " true", "1", "0", "2", "1.0", "1.", ".5", ".", "-.5", "+1", "007", "-007.00"),
    *("1.5", "2.5", "-0.5", "127.5", "128", "-129", "255", "256", "1e2", "1E+2", "12.50e1", "1e-2"),
    *("9223372036854775807", "9223372036854775808", "-9223372036854775808", "18446744073709551615"),
    *("9007199254740993", "9007199254740993.0", "1e15", "1e16", "1e400", "-1e400", "1e-400"),
    *("999.99", "999.994", "999.995", "1.005", "-.005", "00001.5", "3.4028236e38", "1e39", "1e-46"),
    *("nan", "-nan", "1,5", "1 000", "12a", "0x10z", "١", "1e", "e1"),
    *("2021-01-05", "2021-1-5", "2021/01/05", "2021/1/5", "2021-01/05", "2021.01.05", "20210105"),
    *("2021-02-29", "2020-02-29", "1900-02-29", "2000-02-29", "2021-04-31", "2021-13-01"),
    *("2021-00-01", "2021-01-00", "0000-01-01", "0044-03-15 (BC)", "12021-01-05", "2021 01 05"),
    *("2021-01-05 10:00:00", "2021-01-05T10:00:00", "2021-01-05 10:00", "2021-01-05 10"),
    *("2021-01-05 1:2:3", "2021-01-05 10:00:00.5", "2021-01-05 10:00:00.123456789"),
    *("2021-01-05 10:00:00.9999999", "2021-01-05 10:00:00Z", "2021-01-05 10:00:00+02"),
    *("2021-01-05 10:00:00-05:30", "2021-01-05 10:00:00.5+0530", "2021-01-05 10:00:00 UTC"),
    *("2021-01-05 23:59:60", "2021-01-05 24:00:00", "2021-01-05 24:00:01", "2021-01-05 25:00:00"),
    *(
        "2021-01-05x",
        "2021-01-05 x",
        "x2021-01-05",
        "January 5, 2021",
        "05/01/2021",
        "2021-1",
        "2021",
    ),
    *(" 2021-01-05", "2021-01-05 10:00:00 ", "2021-01-05 10:60", "J2459220", "1:00", "2021-w01-1"),
    *("?", "n/a", "N/A", "--", "#", "-5", "5", ":", "0", "9", "unknown"),
]


def test_texts_are_read_as_in_duckdb(other):
    assert_same(other, TEXTS, TYPED)


def test_infinity_is_a_number_and_no_date(other):
    texts = ["inf", "-Infinity", "+inf"]
    assert_same(other, texts, [way("tried", "DOUBLE"), way("tried", "BIGINT")])
    (dates,) = answers(other, texts, [way("tried", "DATE")])  # which Spark does not have
    assert set(dates.values()) == {None}


def test_the_kinds_are_told_apart():
    """Texts that a cast of PostgreSQL or Spark would read are none."""
    (dates,) = answers(
        database("postgres"), ["yesterday", "2021", "2021-02-30"], [way("tried", "DATE")]
    )
    assert set(dates.values()) == {None}


def moments():
    """Dates of all formats, possible and impossible ones."""
    day = st.tuples(
        st.integers(0, 9999) | st.sampled_from([1900, 2000, 2020, 2021, 1969, 2068]),
        st.integers(0, 13) | st.just(2),
        st.integers(0, 32) | st.integers(28, 31),
    )
    return st.tuples(
        day, st.integers(0, 24), st.integers(0, 60), st.integers(0, 999), st.booleans()
    )


def written(moment, form):
    """Write a date, which may not exist, in a format; with or without leading zeros."""
    (year, month, day), hour, minute, thousandths, is_short = moment
    names = datetime.date(2000, min(max(month, 1), 12), 1)
    two = "" if is_short and form != "%Y%m%d" else "02"
    fields = {
        "%Y": f"{year:04}",
        "%y": f"{year % 100:02}",
        "%m": f"{month:{two}}",
        "%d": f"{day:{two}}",
        "%H": f"{hour:{two}}",
        "%I": f"{hour % 12 or 12:{two}}",
        "%M": f"{minute:02}",
        "%S": f"{minute:02}",
        "%g": f"{thousandths:03}",
        "%p": "pm" if hour > 11 else "AM",
        "%b": names.strftime("%b").upper() if is_short else names.strftime("%b"),
        "%B": names.strftime("%B").lower() if is_short else names.strftime("%B"),
    }
    for field, text in fields.items():
        form = form.replace(field, text)
    return form


FORMS = tuple(date_formats())
OUTPUTS = tuple(dict.fromkeys(w for form in date_formats().values() for w in form.written))


@pytest.mark.slow
@settings(max_examples=15, deadline=None)
@given(st.data())
def test_dates_are_rewritten_as_in_duckdb(data):
    read = data.draw(st.sampled_from(FORMS))
    writes = data.draw(st.lists(st.sampled_from(OUTPUTS), min_size=1, max_size=4))
    texts = [written(m, read) for m in data.draw(st.lists(moments(), min_size=1, max_size=20))]
    assert_same(database("postgres"), texts, [rewritten(read, write) for write in writes])


def rewritten(read, write):
    return lambda d: Conversion("date", read, write).sql(d, "t"), "VARCHAR"


@pytest.mark.slow
def test_dates_of_all_formats_are_rewritten_as_in_duckdb(other, request):
    """Every format is read, and every one is written, by Spark every second: it compiles each."""
    dates = [((2021, 2, 28), 0, 0, 0, True), ((1999, 12, 31), 23, 59, 7, False)]
    dates += [((2020, 2, 29), 12, 5, 50, True), ((68, 2, 30), 13, 7, 0, False)]
    pairs = list(zip(itertools.cycle(FORMS), OUTPUTS, strict=False))
    pairs = pairs[:: 2 if "spark" in request.node.keywords else 1]
    assert {read for read, _ in pairs} == set(FORMS)
    for some in (pairs[i : i + 60] for i in range(0, len(pairs), 60)):
        texts = [written(moment, read) for moment in dates for read, _ in some]
        assert_same(other, texts, [rewritten(*pair) for pair in some])


@pytest.mark.slow
@settings(max_examples=20, deadline=None)
@given(
    st.lists(
        st.from_regex(r"[+-]?[0-9]{0,20}[.]?[0-9]{0,12}(e[+-]?[0-9]{1,2})?", fullmatch=True),
        min_size=1,
    )
)
def test_numbers_are_read_as_in_duckdb(texts):
    numbers = [
        *(way("whole", kind) for kind in WHOLE),
        way("converted", "BIGINT"),
        way("tried", "DOUBLE"),
    ]
    assert_same(database("postgres"), texts, numbers)


@pytest.mark.slow
@settings(max_examples=20, deadline=None)
@given(
    st.lists(
        st.text("-/ :T.0123456789Z+", max_size=22).map(str.strip) | st.datetimes().map(str),
        min_size=1,
    )
)
def test_moments_are_read_as_in_duckdb(texts):
    kinds = ("DATE", "TIMESTAMP", "TIMESTAMP WITH TIME ZONE")
    assert_same(database("postgres"), texts, [way("tried", kind) for kind in kinds])


def test_notations_of_numbers_match_the_same_texts(other):
    texts = ["1.234,5", "1,234.5", "12,5", "1234", "1,23", "1.2.3", "-1.234", "+12", "1e5", "", "a"]
    ways = [
        (lambda d, r=r, w=w: Conversion("number", r, w).sql(d, "t"), "VARCHAR")
        for r, w in itertools.product(NOTATIONS, repeat=2)
    ]
    assert_same(other, texts, ways)
