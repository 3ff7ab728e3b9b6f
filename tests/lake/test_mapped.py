"""A table as the base has it: names, values and types; what cannot be is told, not guessed."""

from __future__ import annotations

import pyarrow as pa
import pytest

from equipoise.counts import CountRequest, Counts
from equipoise.engines.routing import shared_engine
from equipoise.engines.sources import locate
from equipoise.lake.matching.columns.alignment import Alignment, ColumnMatch
from equipoise.lake.matching.columns.target import wanted
from equipoise.lake.matching.mapped_table import failed_column, mapped_source
from equipoise.lake.matching.values.vocabulary import ValueMap

ENGINE = shared_engine()


def mapped(base, table, columns=None, request=None):
    """Give the rows of a table as the base has them, and which of them failed."""
    request = request or CountRequest(sensitive=("sex",), label="hired")
    counts = ENGINE.counts(locate(base), request)
    want = wanted(counts, ENGINE.profile(locate(base)))
    columns = columns or {name: name for name in table.column_names}
    values = {}
    for name, vocabulary in want.vocabularies.items():
        same = {v: v for v in vocabulary}
        values[name] = ValueMap(same, (), (), {}, "exact", True, "")
    match = {b: ColumnMatch(b, s, 1.0) for b, s in columns.items()}
    alignment = Alignment(columns=match, values=values, doubts={})
    located = locate(table)
    source = mapped_source(located, ENGINE.profile(located), alignment, want)
    none = Counts.from_mapping({}, sensitive=request.sensitive, label=request.label)
    rows = ENGINE.rows(
        source, CountRequest(sensitive=request.sensitive, label=request.label), none, rest=True
    )
    failed = [place is not None for place in rows[failed_column(want)].to_pylist()]
    return rows.drop_columns([failed_column(want)]), failed


def table(column, kind=None, name="x"):
    n = len(column)
    return pa.table(
        {
            name: pa.array(column, kind),
            "sex": ["f", "m"] * (n // 2) + ["f"] * (n % 2),
            "hired": ["y"] * n,
        }
    )


CASES = [
    (pa.int64(), ["1", "2.0", "1e3", "+4", " 5 ", "", None], [1, 2, 1000, 4, 5, None, None]),
    (
        pa.int64(),
        [str(2**63 - 1), str(-(2**63)), "9007199254740993.0"],
        [2**63 - 1, -(2**63), 2**53 + 1],
    ),
    (pa.int8(), ["127", "-128"], [127, -128]),
    (pa.uint64(), [str(2**64 - 1), "0"], [2**64 - 1, 0]),
    (pa.float64(), ["1", "2.5", "1e-3", "-0"], [1.0, 2.5, 0.001, -0.0]),
    (pa.bool_(), ["true", "false", "1", "0"], [True, False, True, False]),
]
FAILING = [
    (pa.int64(), ["1.5", "x", "1,000", "1e30", str(2**63)]),
    (pa.int8(), ["128", "-129", "1e3"]),
    (pa.uint64(), ["-1", str(2**64)]),
    (pa.float64(), ["x", "1,5", "1 000"]),
    (pa.bool_(), ["maybe", "2020-01-01"]),
    (pa.date32(), ["31.12.2024", "2024-13-01"]),
]


@pytest.mark.parametrize(("kind", "texts", "expected"), CASES)
def test_text_is_read_digit_by_digit(kind, texts, expected):
    rows, failed = mapped(table([None] * 2, kind), table(texts, pa.string()))
    assert rows["x"].to_pylist() == expected
    assert failed == [False] * len(texts)


@pytest.mark.parametrize(("kind", "texts"), FAILING)
def test_what_cannot_become_the_type_fails_the_row(kind, texts):
    rows, failed = mapped(table([None] * 2, kind), table([*texts, None], pa.string()))
    assert failed == [True] * len(texts) + [False]
    assert rows["x"].to_pylist() == [None] * (len(texts) + 1)
    assert rows["sex"].to_pylist()[:-1] == [None] * len(texts)
    assert rows["hired"].to_pylist()[-1] == "y"


def test_numbers_become_text_as_the_base_writes_it():
    rows, _ = mapped(table(["1", "20"]), table([3.0, 4.5, float("nan"), 1e20]))
    assert rows["x"].to_pylist() == ["3", "4.5", None, "1e+20"]
    rows, _ = mapped(table(["1.5", "20"]), table([3.0, 4.5]))
    assert rows["x"].to_pylist() == ["3.0", "4.5"]


def test_zeros_in_front_stay():
    rows, _ = mapped(table(["01234", "00501"]), table(["07030", " 00010.0 "]))
    assert rows["x"].to_pylist() == ["07030", "00010"]


def test_blanks_around_text_go_unless_the_base_has_such():
    rows, _ = mapped(table(["a", "b"]), table([" c ", "  "]))
    assert rows["x"].to_pylist() == ["c", None]
    rows, _ = mapped(table([" a", "b"]), table([" c ", "d"]))
    assert rows["x"].to_pylist() == [" c ", "d"]


@pytest.mark.parametrize("name", ["equipoise_failed", "EQUIPOISE_FAILED", "Equipoise_Failed"])
def test_a_column_of_the_base_may_have_the_name_of_ours(name):
    rows, failed = mapped(table(["a", "b"], name=name), table(["c", "d"], name=name))
    assert rows[name].to_pylist() == ["c", "d"]
    assert failed == [False, False]


def test_a_value_that_looks_like_the_end_of_a_query_is_a_value():
    base = pa.table({"sex": ["f;--", "'; DROP TABLE x; --"], "hired": ["y", "y"], "x": ["1", "2"]})
    rows, failed = mapped(base, base)
    assert rows["sex"].to_pylist() == base["sex"].to_pylist()
    assert failed == [False, False]


def test_a_binned_text_that_is_no_number_fails_the_row():
    request = CountRequest(sensitive=("x",), label="hired", bins={"x": (2.0,)})
    rows, failed = mapped(
        table(["1", "3"]), table(["1.0", "abc", None, "nan", "3e0"]), request=request
    )
    assert failed == [False, True, False, False, False]
    assert rows["x"].to_pylist() == ["1", None, None, "nan", "3e0"]
