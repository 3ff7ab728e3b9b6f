"""What every engine promises, on every engine; and that all engines agree."""

from __future__ import annotations

import collections
import datetime
import decimal
import functools
import math
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import servers
from equipoise.counts import CountRequest, Counts
from equipoise.engines import engines
from equipoise.engines.base import Engine, Part
from equipoise.engines.duckdb import DuckDBEngine
from equipoise.engines.profiling import SAMPLE, value_hash
from equipoise.engines.sources import locate
from equipoise.errors import ColumnNotFound, CountsError, EquipoiseError, InputError, Unsupported
from equipoise.lattice import Group
from equipoise.values import MISSING, as_value
from strategies import NASTY, text_tables
from written import write_rows

# Small frames are counted in place; here DuckDB must show what it can do.
DUCKDB, MEMORY = engines()["duckdb"](in_place=0), engines()["memory"]()
ENGINES = {"duckdb": DUCKDB, "memory": MEMORY}
"""Engines that need no server, on which tests can try very many tables."""

PEOPLE = pa.table(
    {
        "sex": ["m", "w", "w", None, "m", "w"],
        "age": [31, 25, 45, 60, 25, 18],
        "hired": ["yes", "no", "yes", "no", None, "no"],
    }
)
REQUEST = CountRequest(sensitive=("sex",), label="hired")


@functools.cache
def engine_named(name: str) -> Engine:
    if name == "postgres":
        return engines()[name](servers.postgres_address())
    if name == "spark":
        return engines()[name](servers.spark_session())
    return ENGINES[name]


@pytest.fixture(
    params=[*ENGINES, "postgres", pytest.param("spark", marks=pytest.mark.spark)], scope="module"
)
def engine(request) -> Engine:
    return engine_named(request.param)


@pytest.fixture(params=list(ENGINES), scope="module")
def file_engine(request) -> Engine:
    """An engine that reads and writes files."""
    return ENGINES[request.param]


# ---------------------------------------------------------------------- declarations


def test_an_engine_declares_what_it_reads_and_writes(file_engine):
    assert ENGINES[file_engine.name] is file_engine
    assert "frame" in file_engine.reads
    assert all(how for how in file_engine.reads.values())
    assert {".csv", ".parquet", ".jsonl"} <= set(file_engine.writes)


def test_what_an_engine_does_not_declare_it_refuses(tmp_path):
    pq.write_table(PEOPLE, tmp_path / "people.parquet")
    with pytest.raises(Unsupported, match=r"cannot read parquet .* use the duckdb engine"):
        MEMORY.schema(locate(tmp_path / "people.parquet"))
    with pytest.raises(Unsupported, match="cannot run SQL"):
        MEMORY.counts(locate(PEOPLE, sql="SELECT * FROM input"), REQUEST)


# ---------------------------------------------------------------------------- tables


def test_tables_of_a_frame_and_of_files(file_engine, tmp_path):
    for name in ("b.csv", "a.csv"):
        (tmp_path / name).write_text("x,y\n1,2\n", "utf-8")
    assert file_engine.tables(locate(PEOPLE)) == ("the frame",)
    assert file_engine.tables(locate(tmp_path)) == (
        str(tmp_path / "a.csv"),
        str(tmp_path / "b.csv"),
    )


def test_schema_names_columns_in_order(engine):
    columns = engine.schema(locate(PEOPLE))
    assert [c.name for c in columns] == ["sex", "age", "hired"]
    assert all(c.type for c in columns)


# --------------------------------------------------------------------------- profile


def test_profile_tells_rows_nulls_values_and_quantiles(engine):
    profile = engine.profile(locate(PEOPLE))
    assert profile.rows == 6
    sex, age, hired = profile.columns
    assert (sex.nulls, sex.distinct, set(sex.values)) == (1, 2, {"m", "w"})
    assert (sex.numeric, sex.quantiles) == (0, None)
    assert (age.nulls, age.distinct, age.numeric) == (0, 5, 1)
    assert (age.quantiles[0], age.quantiles[-1]) == (18, 60)
    assert list(age.quantiles) == sorted(age.quantiles)
    assert (hired.nulls, hired.distinct) == (1, 2)


def test_profile_samples_whole_rows(engine):
    table = pa.table({"a": [str(i) for i in range(3000)], "b": [str(-i) for i in range(3000)]})
    a, b = engine.profile(locate(table)).columns
    assert len(a.sample) == SAMPLE
    assert [str(-int(x)) for x in a.sample] == list(b.sample)
    assert len({int(x) // 300 for x in a.sample}) > 5  # from all over the table
    assert a.values is None
    assert a.distinct == pytest.approx(3000, rel=0.25)
    assert list(a.sketch) == sorted(value_hash(str(i)) for i in range(3000))[:256]


def test_profile_takes_not_a_number_for_missing(engine):
    (column,) = engine.profile(locate({"x": pa.array([1.5, math.nan, None, -0.0])})).columns
    assert (column.nulls, column.values) == (2, {"0.0": 1, "1.5": 1})


def test_profile_of_a_column_of_nothing(engine):
    (column,) = engine.profile(locate({"x": [None, None]})).columns
    assert (column.nulls, column.distinct, column.values, column.quantiles) == (2, 0, {}, None)


# -------------------------------------------------------------------------- distinct


def test_distinct_gives_the_most_frequent_first_and_text_order_after(engine):
    found = engine.distinct(locate(PEOPLE), "sex")
    assert list(found.items()) == [("w", 3), ("m", 2), (MISSING, 1)]
    assert list(engine.distinct(locate(PEOPLE), "sex", limit=1)) == ["w"]


def test_distinct_of_a_column_that_is_not_there(engine):
    with pytest.raises(ColumnNotFound, match="Did you mean 'age'"):
        engine.distinct(locate(PEOPLE), "aeg")


@pytest.mark.slow
@given(table=text_tables())
def test_engines_agree_on_distinct(table):
    for name in table.column_names:
        expected = collections.Counter(map(as_value, table[name].to_pylist()))
        found = [list(e.distinct(locate(table), name).items()) for e in ENGINES.values()]
        assert dict(found[0]) == expected
        assert found[0] == found[1]


# ---------------------------------------------------------------------------- counts


def test_counts_by_hand(engine):
    counts = engine.counts(locate(PEOPLE), REQUEST)
    cells = {("m", "yes"): 1, ("w", "yes"): 1, ("w", "no"): 2, (MISSING, "no"): 1}
    assert counts == Counts.from_mapping(cells, sensitive=["sex"], label="hired")
    assert counts.missing_values == {"sex": 1, "hired": 1}
    assert counts.dropped == 1


@pytest.mark.parametrize(
    ("policies", "n", "dropped"),
    [
        ({"missing": "drop"}, 4, 2),
        ({"missing": "drop", "missing_label": "group"}, 5, 1),
        ({"missing_label": "group"}, 6, 0),
    ],
)
def test_missing_value_policies(engine, policies, n, dropped):
    request = CountRequest(sensitive=("sex",), label="hired", **policies)
    counts = engine.counts(locate(PEOPLE), request)
    assert (counts.n, counts.dropped) == (n, dropped)


def test_missing_values_can_be_refused(engine):
    request = CountRequest(sensitive=("sex",), label="hired", missing="raise")
    with pytest.raises(InputError, match="'sex' has no value in 1 rows"):
        engine.counts(locate(PEOPLE), request)


def test_texts_that_mean_missing(engine):
    table = {"s": ["?", "n/a", "x", None], "y": ["1", "1", "?", "1"]}
    request = CountRequest(sensitive=("s",), label="y", na=("?", "n/a"))
    counts = engine.counts(locate(table), request)
    assert counts.of("s=<missing>") == 3
    assert counts.missing_values == {"s": 3, "y": 1}
    assert counts.dropped == 1


def test_numbers_that_mean_missing_by_their_text(engine):
    table = {"s": [-1, 5, 7], "y": ["1", "1", "1"]}
    plain = CountRequest(sensitive=("s",), label="y", na=("-1",))
    assert engine.counts(locate(table), plain).of("s=<missing>") == 1
    for edges in ((0.0, 6.0), (6.5,)):  # whole, evenly spaced edges take another path
        binned = CountRequest(sensitive=("s",), label="y", na=("-1",), bins={"s": edges})
        counts = engine.counts(locate(table), binned)
        assert counts.of("s=<missing>") == 1, edges
        assert counts.n == 3


def test_a_table_without_rows(engine):
    empty = pa.table({"sex": pa.array([], pa.string()), "hired": pa.array([], pa.string())})
    with pytest.raises(InputError, match="has no rows"):
        engine.counts(locate(empty), REQUEST)


def test_a_table_without_labels(engine):
    with pytest.raises(
        InputError, match=r"every row .* has a missing value \('hired' in 2 of 2 rows\)"
    ):
        engine.counts(locate({"sex": ["m", "w"], "hired": [None, None]}), REQUEST)


def test_columns_that_are_not_there(engine):
    request = CountRequest(sensitive=("Sexx",), label="hired")
    with pytest.raises(ColumnNotFound, match=r"'Sexx' not found .* it has: sex, age, hired.*'sex'"):
        engine.counts(locate(PEOPLE), request)


def test_a_table_of_counts(engine):
    for numbers in ([3, 4], ["3", "4"], [3.0, 4.0], [decimal.Decimal(3), decimal.Decimal(4)]):
        table = {"s": ["a", "b"], "y": ["1", "1"], "n": numbers}
        counts = engine.counts(locate(table), CountRequest(sensitive=("s",), label="y", count="n"))
        assert (counts.n, counts.of("s=b")) == (7, 4)


@pytest.mark.parametrize(
    ("numbers", "shown"),
    [
        ([1, -2], "'-2'"),
        ([1, 2.5], "'2.5'"),
        (["1", "many"], "'many'"),
        ([1, None], "empty fields"),
        ([1.0, math.inf], "'inf'"),
        (["1", "1e30"], "'1e30'"),
        ([1, 2**63], "'9223372036854775808'"),
    ],
)
def test_counts_that_are_none(engine, numbers, shown):
    table = {"s": ["a", "b"], "y": ["1", "1"], "n": numbers}
    with pytest.raises(CountsError) as caught:
        engine.counts(locate(table), CountRequest(sensitive=("s",), label="y", count="n"))
    assert str(caught.value).startswith(f"column 'n' holds {shown}")


def test_row_weights(engine):
    for weights in ([0.5, 1.5, 0.0], ["0.5", "1.5", "0"]):
        table = {"s": ["a", "a", "b"], "y": ["1", "1", "1"], "w": weights}
        counts = engine.counts(locate(table), CountRequest(sensitive=("s",), label="y", weight="w"))
        assert counts.rows.tolist() == [2, 1]
        assert counts.weights is not None
        assert counts.weights.tolist() == [[2.0, 2.5], [0.0, 0.0]]


@pytest.mark.parametrize("bad", [-1.0, None, math.nan, math.inf])
def test_weights_that_are_none(engine, bad):
    table = {"s": ["a", "a"], "y": ["1", "1"], "w": pa.array([1.0, bad], pa.float64())}
    with pytest.raises(CountsError, match="'w' has 1 weights that are missing, negative"):
        engine.counts(locate(table), CountRequest(sensitive=("s",), label="y", weight="w"))


def test_nested_values_are_refused(file_engine):
    table = locate({"s": [[1], [2]], "y": ["1", "1"]})
    with pytest.raises(InputError, match=r"'s' of the frame holds nested values"):
        file_engine.counts(table, CountRequest(sensitive=("s",), label="y"))


def test_a_nested_column_beside_is_no_obstacle(file_engine):
    table = locate({"s": ["a", "b"], "y": ["1", "1"], "beside": [[1], [2]]})
    assert file_engine.counts(table, CountRequest(sensitive=("s",), label="y")).n == 2


@pytest.mark.slow
@given(table=text_tables())
def test_engines_agree_on_counts_of_text(table):
    *sensitive, label = table.column_names
    request = CountRequest(sensitive=tuple(sensitive), label=label)
    lines = zip(*(map(as_value, c.to_pylist()) for c in table.columns), strict=True)
    expected = collections.Counter(line for line in lines if line[-1] is not MISSING)
    found = [e.counts(locate(table), request) for e in ENGINES.values()]
    assert found[0] == Counts.from_mapping(expected, sensitive=sensitive, label=label)
    assert found[0] == found[1]
    assert found[0].missing_values == found[1].missing_values
    assert found[0].fingerprint == found[1].fingerprint
    assert [a.values for a in found[0].axes] == [a.values for a in found[1].axes]


# ----------------------------------------------------------------------------- types

UTC = datetime.UTC
MOMENT = datetime.datetime(2020, 2, 29, 12, 30, 5, 120_000)  # noqa: DTZ001 (naive on purpose)
TYPED = {
    "int8": pa.array([1, -128, None], pa.int8()),
    "int64": pa.array([2**63 - 1, -(2**63), 0]),
    "uint64": pa.array([2**64 - 1, 0, None], pa.uint64()),
    "float64": pa.array([1.0, 0.1, -0.0, 0.0, 1e20, 1e16, 1e-5, 5e-324, math.inf, -math.inf]),
    "nan": pa.array([math.nan, None, 1.5]),
    "float32": pa.array([0.25, 1e8, 16777216, -0.0, math.nan, math.inf], pa.float32()),
    "unround float32": pa.array([0.1, 1e20, 1e-5, 1048576.75, 97474816.0], pa.float32()),
    "float16": pa.array(np.array([0.1, 65504, math.nan], np.float16)),
    "bool": pa.array([True, False, None]),
    "date": pa.array([datetime.date(2020, 2, 29), datetime.date(1, 1, 1), None]),
    "timestamp[s]": pa.array([MOMENT.replace(microsecond=0), None], pa.timestamp("s")),
    "timestamp[us]": pa.array([MOMENT, MOMENT.replace(microsecond=1)], pa.timestamp("us")),
    "timestamp[ns]": pa.array([1577934245123456789, 1577934245000000000], pa.timestamp("ns")),
    "timestamp with zone": pa.array(
        [MOMENT, MOMENT.replace(hour=0, microsecond=0)], pa.timestamp("us", "Asia/Kolkata")
    ),
    "time": pa.array([datetime.time(3, 4, 5), datetime.time(3, 4, 5, 120), None]),
    "duration": pa.array(
        [datetime.timedelta(1, 3), datetime.timedelta(0, 0.5), datetime.timedelta(-1), None]
    ),
    "decimal": pa.array([decimal.Decimal("1.50"), decimal.Decimal("-0.05")], pa.decimal128(10, 2)),
    "small decimal": pa.array(
        [decimal.Decimal("1E-10"), decimal.Decimal(0)], pa.decimal128(38, 10)
    ),
    "decimal below 1": pa.array(
        [decimal.Decimal("0.50"), decimal.Decimal("-0.05"), None], pa.decimal128(2, 2)
    ),
    "text": pa.array([*NASTY, None]),
    "large text": pa.array(["a", None], pa.large_string()),
    "text view": pa.array(["a", "b", None], pa.string_view()),
    "category": pa.array(["b", "a", None, "b"]).dictionary_encode(),
    "category of numbers": pa.array([10, 9, None]).dictionary_encode(),
    "bytes": pa.array([b"a", b"\x00\xff", b"it's \\", None]),
    "nothing": pa.array([None, None]),
}


NOT_IN = {
    "postgres": ("timestamp[ns]", "duration", "text", "bytes"),  # and no text with a NUL
    "spark": ("timestamp[ns]", "time", "duration", "bytes"),
}
"""Types that a database does not have."""


def typed_table(kind: str) -> pa.Table:
    column = TYPED[kind]
    return pa.table({"s": column, "y": ["1"] * len(column)})


TYPED_REQUEST = CountRequest(sensitive=("s",), label="y")


@pytest.mark.parametrize("kind", TYPED)
def test_engines_know_values_of_every_type_by_the_same_text(kind):
    source = locate(typed_table(kind))
    counts = [e.counts(source, TYPED_REQUEST) for e in ENGINES.values()]
    assert counts[0] == counts[1]
    assert counts[0].n == len(TYPED[kind])
    assert [a.values for a in counts[0].axes] == [a.values for a in counts[1].axes]
    assert DUCKDB.distinct(source, "s") == MEMORY.distinct(source, "s")
    assert {v: counts[0].of(Group({"s": v})) for v in counts[0].axis("s").values} == (
        MEMORY.distinct(source, "s")
    )


@pytest.mark.parametrize("kind", TYPED)
def test_rows_of_every_type_are_found_by_their_counts(engine, kind):
    if kind in NOT_IN.get(engine.name, ()):
        pytest.xfail(
            f"{engine.name} has no such type; see test_types_that_a_database_does_not_have"
        )
    source = locate(typed_table(kind))
    counts = engine.counts(source, TYPED_REQUEST)
    assert len(engine.rows(source, TYPED_REQUEST, counts)) == counts.n


@pytest.mark.parametrize("kind", TYPED)
def test_engines_agree_on_profiles_of_every_type(kind):
    (fast, _), (plain, _) = (e.profile(locate(typed_table(kind))).columns for e in ENGINES.values())
    assert replace(fast, type=plain.type) == plain


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        pytest.param(name, kind, marks=[pytest.mark.spark] if name == "spark" else [])
        for name, kinds in NOT_IN.items()
        for kind in kinds
    ],
)
def test_types_that_a_database_does_not_have_are_refused(name, kind):
    with pytest.raises(InputError, match=r"has no counterpart|cannot hold|cannot contain NUL"):
        engine_named(name).counts(locate(typed_table(kind)), TYPED_REQUEST)


def test_rows_at_places_are_fetched_again(file_engine):
    everything = file_engine.rows(
        locate(PEOPLE), REQUEST, file_engine.counts(locate(PEOPLE), REQUEST), located=True
    )
    places = everything.column("place").to_pylist()
    again = file_engine.fetch(locate(PEOPLE), [*places[:2], 99])
    assert again.column_names == everything.column_names
    by_place = {row["place"]: row for row in everything.to_pylist()}
    assert again.to_pylist() == [by_place[place] for place in sorted(places[:2])]


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        ("float64", ("-inf", "0.0", "5e-324", "1e-05", "0.1", "1.0", "1e+16", "1e+20", "inf")),
        ("float32", ("0.0", "0.25", "16777216.0", "100000000.0", "inf", MISSING)),
        ("nan", ("1.5", MISSING)),
        ("bool", ("false", "true", MISSING)),
        ("timestamp with zone", ("2020-02-29 00:30:05+00", "2020-02-29 12:30:05.12+00")),
        ("decimal", ("-0.05", "1.50")),
        ("category of numbers", ("9", "10", MISSING)),
        ("bytes", ("\\x00\\xFF", "a", "it\\x27s \\x5C", MISSING)),
        ("nothing", (MISSING,)),
    ],
)
def test_texts_of_values_and_their_order(engine, kind, values):
    if kind in NOT_IN.get(engine.name, ()):
        pytest.xfail(
            f"{engine.name} has no such type; see test_types_that_a_database_does_not_have"
        )
    assert engine.counts(locate(typed_table(kind)), TYPED_REQUEST).axis("s").values == values


@pytest.mark.slow
@given(st.lists(st.floats() | st.floats(width=32) | st.none(), min_size=1, max_size=20))
def test_engines_agree_on_floats(numbers):
    for kind in (pa.float64(), pa.float32()):
        with np.errstate(over="ignore"):
            narrow = np.array([math.nan if x is None else x for x in numbers]).astype(
                kind.to_pandas_dtype()
            )
        source = locate({"s": pa.array(narrow, kind), "y": ["1"] * len(numbers)})
        counts = [e.counts(source, TYPED_REQUEST) for e in ENGINES.values()]
        assert counts[0] == counts[1]
        chosen = [e.rows(source, TYPED_REQUEST, counts[0])["s"] for e in ENGINES.values()]
        assert np.array_equal(chosen[0].to_numpy(), chosen[1].to_numpy(), equal_nan=True)


# ------------------------------------------------------------------------------ bins


def test_bins_by_edges(engine):
    request = CountRequest(sensitive=("age",), label="hired", bins={"age": (25, 45)})
    counts = engine.counts(locate(PEOPLE), request)
    assert counts.axis("age").values == ("<25", "25 to <45", ">=45")
    assert [counts.of(Group({"age": v})) for v in counts.axis("age").values] == [1, 2, 2]
    assert counts.bins == {"age": (25.0, 45.0)}


def test_bins_by_quantiles_print_their_edges(engine):
    table = {"age": list(range(100)), "y": ["1"] * 100}
    request = CountRequest(sensitive=("age",), label="y", bins={"age": 4})
    counts = engine.counts(locate(table), request)
    assert counts.bins == {"age": (24.0, 49.0, 74.0)}
    assert counts.axis("age").values == ("<24", "24 to <49", "49 to <74", ">=74")


def test_a_bin_without_rows_is_kept(engine):
    request = CountRequest(sensitive=("age",), label="hired", bins={"age": (25, 26, 30, 100)})
    counts = engine.counts(locate(PEOPLE), request)
    assert counts.axis("age").values == ("<25", "25 to <26", "26 to <30", "30 to <100", ">=100")
    assert counts.of("age='26 to <30'") == counts.of("age=>=100") == 0


@pytest.mark.parametrize("bins", [2, (20, 30)])
def test_binning_text(engine, bins):
    table = locate({"age": ["20", "unknown"], "y": ["1", "1"]})
    with pytest.raises(InputError, match="'age' is to be binned but holds 'unknown'"):
        engine.counts(table, CountRequest(sensitive=("age",), label="y", bins={"age": bins}))


def test_binning_dates(engine):
    table = locate({"born": [datetime.date(2000, 1, 1)], "y": ["1"]})
    with pytest.raises(InputError, match="'born' is to be binned but holds '2000-01-01'"):
        engine.counts(table, CountRequest(sensitive=("born",), label="y", bins={"born": (1, 2)}))


def test_binning_nothing(engine):
    for column in (pa.array([None, None], pa.float64()), ["?", "?"], [math.nan, math.nan]):
        table = locate({"age": column, "y": ["1", "1"]})
        request = CountRequest(sensitive=("age",), label="y", bins={"age": 3}, na=("?",))
        with pytest.raises(InputError, match="'age' has no numbers to bin"):
            engine.counts(table, request)


def test_binning_one_number_by_quantiles(engine):
    table = locate({"age": [5, 5, 5], "y": ["1", "1", "1"]})
    with pytest.raises(InputError, match="too few different numbers"):
        engine.counts(table, CountRequest(sensitive=("age",), label="y", bins={"age": 3}))


@pytest.mark.parametrize(
    ("numbers", "low", "high"),
    [
        ([3, 1, 2], 2, 2),
        ([4, 1, 2, 3], 2, 3),
        ([5], 5, 5),
        ([7, None, 1], 1, 7),
        ([2, 2, 2, 9], 2, 2),
    ],
)
def test_the_middle_of_a_column(engine, numbers, low, high):
    found = engine.middle(locate({"score": numbers, "y": ["1"] * len(numbers)}), "score")
    assert (found.low, found.high) == (low, high)
    present = [number for number in numbers if number is not None]
    assert found.numbers == len(present)
    assert found.median == np.median(present)


def test_the_middle_leaves_out_texts_that_mean_missing_and_refuses_others(engine):
    table = locate({"score": ["1", "n/a", "4", "", "9"], "y": ["1"] * 5})
    with pytest.raises(InputError, match=r"'score' holds '(n/a)?', which is not a number"):
        engine.middle(table, "score")
    assert engine.middle(table, "score", ("n/a", ""))[:2] == (4, 4)
    with pytest.raises(InputError, match="'score' has no numbers"):
        engine.middle(locate({"score": [None, math.nan]}), "score")
    with pytest.raises(ColumnNotFound, match="'scroe'"):
        engine.middle(table, "scroe")


@given(st.lists(st.floats(-1e9, 1e9) | st.sampled_from([0.0, -0.0, 0.1]) | st.none(), min_size=1))
@settings(max_examples=40, deadline=None)
def test_engines_agree_on_the_middle(numbers):
    source = locate({"score": pa.array(numbers, pa.float64())})
    present = [number for number in numbers if number is not None]
    if not present:
        return
    fast, plain = (each.middle(source, "score") for each in ENGINES.values())
    assert fast == plain
    assert fast.low in present
    assert fast.high in present
    assert sum(number > fast.median for number in present) == sum(
        number > fast.low for number in present
    )


whole = st.integers(-130, 130)
broken = st.floats(-5, 5) | st.sampled_from([0.1, 0.3, -0.0, math.inf, -math.inf, math.nan])
number_texts = st.sampled_from(
    ["1", "1.5", " 2 ", "1e1", "-3", "nan", "inf", "+4", ".5", "5.", "1_0", "?", "-1", None]
)
BINNED = {
    "tinyint": (whole.map(lambda x: max(-128, min(x, 127))), pa.int8()),
    "bigint": (whole | st.sampled_from([2**63 - 1, -(2**63), 2**53 + 1]), pa.int64()),
    "ubigint": (st.integers(0, 2**64 - 1) | st.integers(0, 50), pa.uint64()),
    "double": (broken, pa.float64()),
    "float": (broken.map(lambda x: float(np.float32(x))), pa.float32()),
    "decimal": (
        st.decimals(-99, 99, places=2, allow_nan=False, allow_infinity=False),
        pa.decimal128(10, 2),
    ),
    "text": (number_texts, pa.string()),
    "bool": (st.booleans(), pa.bool_()),
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", BINNED)
@settings(max_examples=40)
@given(data=st.data())
def test_engines_agree_on_bins(kind, data):
    strategy, arrow_type = BINNED[kind]
    column = data.draw(st.lists(strategy | st.none(), min_size=1, max_size=20))
    evenly = st.builds(
        lambda first, step, n: tuple(float(first + step * i) for i in range(n)),
        st.integers(-130, 130), st.integers(1, 60), st.integers(1, 5),
    )  # fmt: skip
    uneven = st.lists(st.floats(-140, 140) | st.just(0.1), min_size=1, max_size=4, unique=True)
    edges = data.draw(evenly | uneven.map(lambda e: tuple(sorted(e))) | st.integers(2, 7))
    na = data.draw(st.sampled_from([("?",), ("?", "-1"), ("?", "0", "nan")]))
    request = CountRequest(sensitive=("s",), label="y", bins={"s": edges}, na=na)
    source = locate({"s": pa.array(column, arrow_type), "y": ["1"] * len(column)})
    fast, plain = (outcome(e, source, request) for e in ENGINES.values())
    assert fast == plain
    if isinstance(plain, Counts):
        assert isinstance(fast, Counts)
        assert fast.bins == plain.bins
        chosen = [e.rows(source, request, plain)["s"].to_pylist() for e in ENGINES.values()]
        assert len(chosen[0]) == len(column)
        assert list(map(str, chosen[0])) == list(map(str, chosen[1]))


def outcome(engine, source, request):
    """Counts, or the sentence of the error."""
    try:
        return engine.counts(source, request)
    except InputError as error:
        return str(error)


# ------------------------------------------------------------------------------ rows


def drawn(engine, table, request, take, seed=0) -> list[tuple]:
    found = engine.rows(locate(table), request, take, seed)
    assert found.column_names == table.column_names
    return list(zip(*(map(as_value, c.to_pylist()) for c in found.columns), strict=True))


def lines(table) -> collections.Counter:
    return collections.Counter(
        zip(*(map(as_value, c.to_pylist()) for c in table.columns), strict=True)
    )


def requested(table) -> CountRequest:
    """Count the first and the last column; those between are along for the ride."""
    return CountRequest(sensitive=(table.column_names[0],), label=table.column_names[-1])


@pytest.mark.slow
@given(table=text_tables(), data=st.data())
def test_rows_are_real_enough_and_the_same_on_every_engine(table, data):
    request = requested(table)
    counts = MEMORY.counts(locate(table), request)
    asked = [data.draw(st.integers(0, n + 2)) for n in counts.rows.tolist()]
    take = Counts.from_mapping(
        dict(zip(counts._cells(), asked, strict=True)),
        sensitive=request.sensitive,
        label=request.label,
    )
    seed = data.draw(st.integers(-5, 2**40))
    shuffled = table.take(data.draw(st.permutations(range(len(table)))))
    found = drawn(DUCKDB, table, request, take, seed)
    assert found == drawn(DUCKDB, shuffled, request, take, seed)
    assert found == drawn(MEMORY, table, request, take, seed)
    assert found == drawn(MEMORY, shuffled, request, take, seed)
    assert collections.Counter(found) <= lines(table)  # without replacement, repeats are honest
    cells = collections.Counter((row[0], row[-1]) for row in found)
    for cell, there, wanted in zip(counts._cells(), counts.rows.tolist(), asked, strict=True):
        assert cells[cell] == min(there, wanted)


def test_all_rows_are_found_in_the_order_of_their_md5(engine):
    import hashlib

    table = pa.table({"s": ["a", "a", "a"], "x": ["p", None, "p"], "y": ["1", "1", "1"]})
    request = CountRequest(sensitive=("s",), label="y")
    take = engine.counts(locate(table), request)
    texts = {"7/1/1:a,1:p,1:1": "p", "7/2/1:a,1:p,1:1": "p", "7/1/1:a,-,1:1": MISSING}
    ordered = sorted(texts, key=lambda text: hashlib.md5(text.encode()).hexdigest())
    assert [r[1] for r in drawn(engine, table, request, take, seed=7)] == [
        texts[t] for t in ordered
    ]


def test_another_seed_gives_another_choice(engine):
    table = pa.table({"s": ["a"] * 50, "x": [str(i) for i in range(50)], "y": ["1"] * 50})
    request = CountRequest(sensitive=("s",), label="y")
    take = Counts.from_mapping({("a", "1"): 10}, sensitive=["s"], label="y")
    assert len({tuple(drawn(engine, table, request, take, seed)) for seed in range(5)}) == 5


def test_rows_by_quantile_bins_use_the_edges_that_were_counted(engine):
    table = pa.table({"age": list(range(12)), "y": ["1"] * 12})
    request = CountRequest(sensitive=("age",), label="y", bins={"age": 3})
    counts = engine.counts(locate(table), request)
    take = counts.select(Group({"age": counts.axis("age").values[1]}))
    found = drawn(engine, table, request, take)
    assert sorted(int(age) for age, _ in found) == [3, 4, 5, 6]


def test_columns_may_be_called_like_what_the_engine_uses(engine):
    names = ["cell", "want", "k0", "c0", "n", "w", "t", "v", "x", "text", "md5_", "place", "y"]
    table = pa.table({name: ["1", "2", "3"] for name in names})
    request = CountRequest(sensitive=("cell", "n", "w", "k0"), label="y", bins={"w": 2})
    take = engine.counts(locate(table), request)
    assert sorted(drawn(engine, table, request, take)) == [(text,) * 13 for text in "123"]
    for name in names:
        assert engine.distinct(locate(table), name) == {"1": 1, "2": 1, "3": 1}
    assert engine.profile(locate(table)).rows == 3


def test_missing_values_are_chosen_only_by_missing_cells(engine):
    table = pa.table({"s": [None, "<missing>", "?"], "y": ["1", "1", "1"]})
    request = CountRequest(sensitive=("s",), label="y", na=("?",))
    for value, expected in ((MISSING, {MISSING, "?"}), ("<missing>", {"<missing>"})):
        take = Counts.from_mapping({(value, "1"): 5}, sensitive=["s"], label="y")
        assert {row[0] for row in drawn(engine, table, request, take)} == expected


def test_nothing_wanted_gives_no_rows(engine):
    counts = engine.counts(locate(PEOPLE), REQUEST)
    found = engine.rows(locate(PEOPLE), REQUEST, counts - counts)
    assert len(found) == 0
    assert found.column_names == PEOPLE.column_names


@pytest.mark.slow
@given(table=text_tables(), data=st.data())
def test_engines_agree_on_where_rows_are_and_on_what_is_left(table, data):
    request = requested(table)
    counts = MEMORY.counts(locate(table), request)
    cells = {cell: data.draw(st.integers(0, n + 1)) for cell, (n,) in counts._cells().items()}
    take = Counts.from_mapping(cells, sensitive=request.sensitive, label=request.label)
    seed = data.draw(st.integers(0, 9))
    taken = [e.rows(locate(table), request, take, seed, located=True) for e in ENGINES.values()]
    left = [
        e.rows(locate(table), request, take, seed, rest=True, located=True)
        for e in ENGINES.values()
    ]
    assert taken[0].to_pydict() == taken[1].to_pydict()
    assert left[0].to_pydict() == left[1].to_pydict()
    width = len(table.column_names)
    assert taken[0].select(range(width)).to_pylist() == (
        MEMORY.rows(locate(table), request, take, seed).to_pylist()
    )
    gone, stays = (t.column(width).to_pylist() for t in (taken[0], left[0]))
    assert sorted(gone + stays) == list(range(len(table)))
    assert stays == sorted(stays)
    for found, places in ((taken[0], gone), (left[0], stays)):
        assert table.take(pa.array(places, pa.int64())).to_pylist() == (
            found.select(range(width)).to_pylist()
        )
    for engine in ENGINES.values():
        plain = engine.rows(locate(table), request, take, seed, rest=True)
        assert plain.to_pylist() == left[0].select(range(width)).to_pylist()


def test_a_row_is_known_by_its_place_and_the_md5_of_its_text(file_engine):
    import hashlib

    table = pa.table({"s": ["a", "b", "a"], "Place": ["p", None, "p"], "y": ["1", "1", "1"]})
    request = CountRequest(sensitive=("s",), label="y")
    take = Counts.from_mapping({("b", "1"): 1}, sensitive=["s"], label="y")
    found = file_engine.rows(locate(table), request, take, located=True)
    assert found.column_names == ["s", "Place", "y", "place_", "md5"]
    assert found["place_"].to_pylist() == [1]
    assert found["md5"].to_pylist() == [hashlib.md5(b"1:b,-,1:1").hexdigest()]


def test_of_equal_rows_the_choice_says_which(file_engine):
    table = pa.table({"s": ["a"] * 6, "y": ["1"] * 6})
    take = Counts.from_mapping({("a", "1"): 3}, sensitive=["s"], label="y")
    places = [
        file_engine.rows(locate(table), TYPED_REQUEST, take, seed, located=True)[
            "place"
        ].to_pylist()
        for seed in (0, 0, 1, 2)
    ]
    assert (
        places[0]
        == places[1]
        == MEMORY.rows(locate(table), TYPED_REQUEST, take, located=True)["place"].to_pylist()
    )
    assert len({tuple(p) for p in places}) == 3


def test_rows_that_were_not_counted_are_left(file_engine):
    request = CountRequest(sensitive=("sex",), label="hired", missing="drop")
    everything = file_engine.counts(locate(PEOPLE), request)
    left = file_engine.rows(locate(PEOPLE), request, everything, rest=True)
    assert left.to_pylist() == [
        {"sex": None, "age": 60, "hired": "no"},
        {"sex": "m", "age": 25, "hired": None},
    ]
    nothing = everything - everything
    assert file_engine.rows(locate(PEOPLE), request, nothing, rest=True).equals(PEOPLE)


def test_a_whole_table_is_read_in_its_order(file_engine):
    assert file_engine.read(locate(PEOPLE)).equals(PEOPLE)
    assert file_engine.read(locate(PEOPLE), ["hired", "sex"]).equals(
        PEOPLE.select(["hired", "sex"])
    )
    with pytest.raises(ColumnNotFound, match="'race' not found"):
        file_engine.read(locate(PEOPLE), ["sex", "race"])


@given(table=text_tables())
def test_engines_read_a_table_alike(table):
    read = [e.read(locate(table)) for e in ENGINES.values()]
    assert read[0].to_pydict() == read[1].to_pydict() == table.to_pydict()


@pytest.mark.parametrize("kind", TYPED)
def test_rows_of_every_type_are_located_alike(kind):
    source = locate(typed_table(kind))
    take = MEMORY.counts(source, TYPED_REQUEST)
    for rest, wanted in ((False, take), (True, take - take)):
        fast, plain = (
            e.rows(source, TYPED_REQUEST, wanted, 3, rest=rest, located=True)
            for e in ENGINES.values()
        )
        assert len(plain) == len(TYPED[kind])
        assert fast.select([2, 3]).to_pydict() == plain.select([2, 3]).to_pydict()


MANY = 400_000


@pytest.fixture(scope="module")
def many_rows(tmp_path_factory):
    """One table of many rows in every kind of file; its order is the number in each row."""
    import duckdb

    folder = tmp_path_factory.mktemp("many")
    numbers = np.arange(MANY)
    texts = pa.array([f"{'x' * (i % 40)}{i}" for i in range(MANY)])
    sex = np.where(numbers // 50_000 == 5, "rare", "often")  # in one row group only
    table = pa.table({"i": numbers, "sex": sex, "text": texts, "hired": ["yes"] * MANY})
    for ending in (".csv", ".csv.gz", ".tsv", ".jsonl"):
        write_rows(DUCKDB, table, folder / f"many{ending}")
    pq.write_table(table, folder / "many.parquet", row_group_size=50_000)
    with duckdb.connect(str(folder / "many.duckdb")) as connection:
        connection.register("rows", table)
        connection.execute("CREATE TABLE many AS FROM rows")
    (folder / "parts").mkdir()
    for part in range(4):
        piece = table.slice(part * MANY // 4, MANY // 4)
        pq.write_table(piece, folder / "parts" / f"{part}.parquet", row_group_size=20_000)
    return folder, table


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [
        *("many.csv", "many.csv.gz", "many.tsv", "many.jsonl", "many.parquet", "parts"),
        *("many.duckdb", "frame", "relation", "sql"),
    ],
)
def test_the_order_of_a_table_is_that_of_its_file(many_rows, name):
    import duckdb

    folder, table = many_rows
    engine = engines()["duckdb"](threads=2)
    source = {
        "frame": lambda: locate(pa.Table.from_batches(table.to_batches(10_000))),
        "relation": lambda: locate(duckdb.connect().read_parquet(str(folder / "many.parquet"))),
        "sql": lambda: locate(folder / "many.parquet", sql="SELECT * FROM input WHERE true"),
    }.get(name, lambda: locate(folder / name))()
    take = Counts.from_mapping(
        {("rare", "yes"): 40_000, ("often", "yes"): 5}, sensitive=["sex"], label="hired"
    )
    found = engine.rows(source, REQUEST, take, located=True)
    assert len(found) == 40_005
    assert list(map(int, found["i"].to_pylist())) == found["place"].to_pylist()
    left = engine.rows(source, REQUEST, take, rest=True)
    stays = sorted(set(range(MANY)) - set(found["place"].to_pylist()))
    assert list(map(int, left["i"].to_pylist())) == stays
    assert list(map(int, engine.read(source, ["i"])["i"].to_pylist())) == list(range(MANY))
    engine.close()


def test_what_is_left_is_the_rest_of_one_look_at_a_view(tmp_path):
    import duckdb

    table = pa.table({"i": range(5000), "sex": ["w", "m"] * 2500, "hired": ["yes"] * 5000})
    with duckdb.connect(str(tmp_path / "people.duckdb")) as connection:
        connection.register("rows", table)
        connection.execute("CREATE TABLE people AS FROM rows")
        connection.execute("CREATE VIEW shuffled AS FROM people ORDER BY random()")
    take = Counts.from_mapping({("w", "yes"): 1000}, sensitive=["sex"], label="hired")
    chosen = MEMORY.rows(locate(table), REQUEST, take)["i"].to_pylist()
    memory = duckdb.connect()
    memory.register("rows", table)
    shuffled = "FROM {} ORDER BY random()"
    for source in (
        locate(f"{tmp_path / 'people.duckdb'}::shuffled"),
        locate(table, sql=shuffled.format("input")),
        locate(memory.sql(shuffled.format("rows"))),
    ):
        left = DUCKDB.rows(source, REQUEST, take, rest=True)["i"].to_pylist()
        assert sorted(left + chosen) == list(range(5000))


@pytest.mark.slow
@pytest.mark.parametrize("ending", [".csv", ".csv.gz", ".tsv", ".jsonl", ".parquet"])
def test_rows_are_written_in_their_order(many_rows, tmp_path, ending):
    _, table = many_rows
    engine = engines()["duckdb"](threads=2)
    write_rows(engine, table, tmp_path / f"rows{ending}")
    nothing = Counts.from_mapping({("often", "yes"): 0}, sensitive=["sex"], label="hired")
    again = engine.rows(locate(tmp_path / f"rows{ending}"), REQUEST, nothing, rest=True)
    assert list(map(int, again["i"].to_pylist())) == list(range(MANY))
    engine.close()


@pytest.mark.slow
def test_chunks_of_frames_are_written_in_their_order(tmp_path):
    first = pa.table({"i": range(1000)})
    pq.write_table(first, tmp_path / "first.parquet")
    pieces = [pa.table({"i": range(1000 + 9 * n, 1009 + 9 * n)}) for n in range(7)]
    more = locate(pa.concat_tables(pieces))
    for _ in range(100):  # it went wrong once in a hundred times
        DUCKDB.write(
            tmp_path / "out.parquet", [Part(locate(tmp_path / "first.parquet")), Part(more)]
        )
        found = pq.read_table(tmp_path / "out.parquet")["i"].to_pylist()
        assert found == list(range(1063))


def test_rows_refuse_counts_of_other_columns(engine):
    take = Counts.from_mapping({("a", "1"): 1}, sensitive=["s"], label="y")
    with pytest.raises(CountsError, match="rows are chosen by sex, hired, not by s, y"):
        engine.rows(locate(PEOPLE), REQUEST, take)


def test_a_table_of_counts_has_no_rows_to_choose(engine):
    request = CountRequest(sensitive=("sex",), label="hired", count="age")
    with pytest.raises(InputError, match="cannot be chosen from a table of counts"):
        engine.rows(locate(PEOPLE), request, engine.counts(locate(PEOPLE), request))


# ----------------------------------------------------------------------------- write


def reread(path) -> pa.Table:
    """Read a written file by the engine that reads all."""
    counts_all = CountRequest(sensitive=("s",), label="y", missing_label="group")
    source = locate(path)
    return DUCKDB.rows(source, counts_all, DUCKDB.counts(source, counts_all))


@pytest.mark.slow
@pytest.mark.parametrize("ending", [".csv", ".parquet", ".jsonl"])
@settings(max_examples=30)
@given(texts=st.lists(st.sampled_from(NASTY) | st.text(max_size=5), min_size=1, max_size=8))
def test_what_is_written_is_read_again(file_engine, tmp_path_factory, ending, texts):
    if ending == ".csv":
        # An empty field of a CSV file is a missing value, and NUL no text.
        texts = [t for t in texts if t and "\x00" not in t] or ["x"]
    table = pa.table({"s": [*texts, None], "y": [*texts, "end"]})
    path = tmp_path_factory.mktemp("written") / f"rows{ending}"
    write_rows(file_engine, table, path)
    assert lines(reread(path)) == lines(table)
    if ending == ".csv":
        assert MEMORY.distinct(locate(path), "s") == MEMORY.distinct(locate(table), "s")


def test_what_cannot_be_written_leaves_nothing(file_engine, tmp_path):
    months = pa.array([pa.MonthDayNano([1, 2, 3])])
    odd = pa.table({"s": months.cast(pa.month_day_nano_interval()), "t": pa.array([b"\xff"])})
    for ending in file_engine.writes:
        try:
            write_rows(file_engine, odd, tmp_path / f"rows{ending}")
        except EquipoiseError as error:
            assert str(error).endswith(".")  # noqa: PT017 (either way is fine)
            assert list(tmp_path.iterdir()) == []
        else:
            (tmp_path / f"rows{ending}").unlink()


@pytest.mark.parametrize("ending", [".csv", ".parquet", ".jsonl"])
def test_numbers_are_written_by_their_shortest_text(file_engine, tmp_path, ending):
    table = pa.table({"s": [0.1, 1e20, None], "y": [1, 2, 3], "d": [datetime.date(2020, 1, 2)] * 3})
    write_rows(file_engine, table, tmp_path / f"rows{ending}")
    assert lines(reread(tmp_path / f"rows{ending}")) == lines(table)


def test_writing_replaces_a_file_whole_or_not_at_all(file_engine, tmp_path, monkeypatch):
    target = tmp_path / "rows.csv"
    target.write_text("old", "utf-8")
    with monkeypatch.context() as patch:
        patch.setattr("os.replace", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            write_rows(file_engine, PEOPLE, target)
    assert target.read_text("utf-8") == "old"
    assert list(tmp_path.iterdir()) == [target]
    write_rows(file_engine, PEOPLE, target)
    assert target.read_text("utf-8").startswith("sex,age,hired\n")
    assert list(tmp_path.iterdir()) == [target]


@pytest.mark.parametrize("name", ["rows.xlsx", "rows", "rows.csv.bz2"])
def test_endings_that_cannot_be_written(file_engine, tmp_path, name):
    with pytest.raises(InputError, match=r"cannot be written; use one of .*\.csv"):
        write_rows(file_engine, PEOPLE, tmp_path / name)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_not_there(file_engine, tmp_path):
    with pytest.raises(InputError, match="does not exist; create it first"):
        write_rows(file_engine, PEOPLE, tmp_path / "no" / "rows.csv")


# ------------------------------------------------------------------------------- CSV

FIELDS = st.sampled_from([*NASTY, "x", "y"]).filter(lambda t: "\x00" not in t)


@pytest.mark.slow
@settings(max_examples=60)
@given(
    data=st.data(),
    delimiter=st.sampled_from(",;|\t"),
    end=st.sampled_from(["\n", "\r\n"]),
    quote_all=st.booleans(),
)
def test_engines_read_csv_alike(tmp_path_factory, data, delimiter, end, quote_all):
    import csv

    width = data.draw(st.integers(2, 3))
    rows = data.draw(st.lists(st.tuples(*[FIELDS] * width), min_size=1, max_size=6))
    rows.append(("x",) * width)
    path = tmp_path_factory.mktemp("csv") / "table.csv"
    with path.open("w", encoding="utf-8", newline="") as file:
        quoting = csv.QUOTE_ALL if quote_all else csv.QUOTE_MINIMAL
        writer = csv.writer(file, delimiter=delimiter, lineterminator=end, quoting=quoting)
        writer.writerow([f"c{i}" for i in range(width)])
        writer.writerows(rows)
    request = CountRequest(sensitive=("c0",), label=f"c{width - 1}", missing_label="group")
    source = locate(path, delimiter=delimiter)
    expected = collections.Counter(tuple(f or MISSING for f in row) for row in rows)
    for engine in ENGINES.values():
        everything = engine.counts(source, request)
        assert collections.Counter(drawn_from(engine, source, request, everything)) == expected
        in_order = engine.rows(source, request, everything - everything, rest=True)
        assert list(zip(*in_order.to_pydict().values(), strict=True)) == [
            tuple(f or None for f in row) for row in rows
        ]
    located = [e.rows(source, request, everything, 5, located=True) for e in ENGINES.values()]
    assert located[0].to_pydict() == located[1].to_pydict()


def drawn_from(engine, source, request, take):
    found = engine.rows(source, request, take)
    return list(zip(*(map(as_value, c.to_pylist()) for c in found.columns), strict=True))


@pytest.mark.slow
def test_rows_are_written_in_their_order_however_they_are_stored(tmp_path):
    stored = tmp_path / "stored.parquet"
    pq.write_table(pa.table({"x": range(5000)}), stored, row_group_size=100)
    chunks = pa.concat_tables(pa.table({"x": range(i, i + 20)}) for i in range(10_000, 10_400, 20))
    expected = [x for x in range(5000) if x not in (5, 4017)] + list(range(10_000, 10_400))
    engine, target = DuckDBEngine(threads=4), tmp_path / "target.parquet"
    for _ in range(40):  # threads finish in another order each time
        engine.write(target, [Part(locate(stored), [5, 4017]), Part(locate(chunks))])
        assert pq.read_table(target)["x"].to_pylist() == expected
