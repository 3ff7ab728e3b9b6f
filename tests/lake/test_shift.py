"""Added rows against base rows of their cells: what differs is named, what is chance is not."""

from __future__ import annotations

import datetime
import itertools
import json
import math

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from equipoise.errors import ColumnNotFound, InputError
from equipoise.lake.repair.shift import chance
from equipoise.lake.repair.shift.measure import measure_shift
from equipoise.lake.repair.shift.shift import Shift


def compared(base, added, cells=None, **options):
    """Compare columns given as lists; all rows are of one cell unless told otherwise."""
    base, added = pa.table(base), pa.table(added)
    numbers = cells or ([0] * len(base), [0] * len(added))
    options.setdefault("columns", base.column_names)
    return measure_shift(base, added, numbers, **options)


def joined(lists):
    return list(itertools.chain.from_iterable(lists))


def farthest(a, b):
    """By how much the shares of two lists at or below a number differ at most."""
    return max(
        abs(sum(x <= t for x in a) / len(a) - sum(x <= t for x in b) / len(b)) for t in a + b
    )


def only(shift):
    (column,) = shift.columns
    return column


# --------------------------------------------------------------------------------- distances

NUMBERS = st.lists(st.integers(-5, 5), min_size=1, max_size=40)


@given(base=NUMBERS, added=NUMBERS)
def test_numbers_are_apart_by_the_largest_difference_of_shares_below(base, added):
    found = only(compared({"x": base}, {"x": added}, min_rows=1))
    assert found.distance == pytest.approx(farthest(base, added), abs=1e-12)
    assert float(found.base_text) == pytest.approx(np.mean(base), rel=0.01, abs=1e-9)
    assert float(found.added_text) == pytest.approx(np.mean(added), rel=0.01, abs=1e-9)
    spread = math.sqrt((np.var(base) + np.var(added)) / 2)
    if spread:
        apart = (np.mean(added) - np.mean(base)) / spread
        assert found.mean_difference == pytest.approx(apart, abs=1e-9)
    else:
        assert found.mean_difference is None


@pytest.mark.slow
@given(
    base=st.lists(st.sampled_from("abcd"), min_size=1),
    added=st.lists(st.sampled_from("abcd"), min_size=1),
)
def test_categories_are_half_the_sum_of_differences_apart(base, added):
    found = only(compared({"x": base}, {"x": added}, min_rows=1))
    apart = {v: added.count(v) / len(added) - base.count(v) / len(base) for v in "abcd"}
    assert found.distance == pytest.approx(sum(map(abs, apart.values())) / 2, abs=1e-12)
    assert abs(apart[found.value]) == pytest.approx(max(map(abs, apart.values())), abs=1e-12)


@settings(max_examples=50)
@given(data=st.data())
def test_base_rows_count_as_their_cells_do_among_added_rows(data):
    sizes = data.draw(st.lists(st.integers(1, 6), min_size=3, max_size=3))
    mix = data.draw(st.lists(st.integers(1, 4), min_size=3, max_size=3))
    values = st.integers(0, 9)
    base = [data.draw(st.lists(values, min_size=n, max_size=n)) for n in sizes]
    added = [data.draw(st.lists(values, min_size=m, max_size=m)) for m in mix]
    # By hand: every base row repeated until cells are mixed as the added rows are.
    times = [math.prod(sizes) // n * m for n, m in zip(sizes, mix, strict=True)]
    alike = [v for rows, k in zip(base, times, strict=True) for v in rows * k]
    expected = farthest(alike, joined(added))
    cells = tuple([c for c, rows in enumerate(side) for _ in rows] for side in (base, added))
    found = compared({"x": joined(base)}, {"x": joined(added)}, cells, min_rows=1)
    assert only(found).distance == pytest.approx(expected, abs=1e-12)


def test_a_difference_between_cells_is_none_within_them():
    # Women work fewer hours in the base, and only women were added.
    base = {"hours": [40, 42] * 50 + [20, 22] * 50}
    found = only(compared(base, {"hours": [20, 22] * 20}, ([7] * 100 + [3] * 100, [3] * 40)))
    assert (found.distance, found.notable, found.base_text, found.added_text) == (
        0,
        False,
        "21",
        "21",
    )


def test_the_worst_cell_is_named_by_the_callers_number():
    base = {"hours": [40, 42] * 20 + [20, 22] * 20}
    added = {"hours": [40, 42] * 20 + [60, 62] * 10}
    found = only(compared(base, added, ([7] * 40 + [3] * 40, [7] * 40 + [3] * 20)))
    assert (found.worst_cell, found.worst_distance) == (3, 1.0)
    assert found.distance == pytest.approx(1 / 3)


def test_cells_with_few_added_rows_are_not_the_worst():
    base, added = {"x": [1, 2] * 40}, {"x": [1, 2] * 10 + [9] * 3}
    found = only(compared(base, added, ([0] * 40 + [1] * 40, [0] * 20 + [1] * 3)))
    assert (found.worst_cell, found.worst_distance) == (0, 0.0)


# ------------------------------------------------------------------------------------ chance


@pytest.mark.parametrize("most", [0, 20_000])
def test_rows_drawn_alike_are_rarely_notable(most, monkeypatch):
    monkeypatch.setattr(chance, "MOST_PERMUTED", most)
    random = np.random.default_rng(5)
    flagged = 0
    for _ in range(40):
        n, m = 400, int(random.integers(5, 60))
        cells = (random.integers(0, 3, n), random.integers(0, 3, m))
        sides = [
            {
                "a": random.normal(c),
                "b": random.choice(list("uvwxyz"), len(c)),
                "c": random.integers(0, 3, len(c)),
            }
            for c in cells
        ]
        flagged += sum(c.notable for c in compared(*sides, cells).columns)
    assert flagged <= 6  # of 120, where 1 in 100 is expected


@pytest.mark.parametrize("most", [0, 20_000])
def test_another_population_is_notable(most, monkeypatch):
    monkeypatch.setattr(chance, "MOST_PERMUTED", most)
    random = np.random.default_rng(5)
    base = {"a": random.normal(size=500), "b": random.choice(list("uv"), 500)}
    added = {"a": random.normal(1.5, size=60), "b": random.choice(list("uvvvvvvv"), 60)}
    assert all(c.notable for c in compared(base, added).columns)


def test_a_large_distance_of_few_rows_is_not_notable():
    found = only(compared({"x": list(range(0, 100, 2)) * 2}, {"x": [80, 90]}))
    assert found.distance > 0.7
    assert found.by_chance >= found.distance
    assert not found.notable


def test_the_formula_is_no_less_careful_than_permutations(monkeypatch):
    random = np.random.default_rng(2)
    sides = [{"a": random.normal(size=n), "b": random.choice(list("uvwx"), n)} for n in (900, 90)]
    permuted = {c.column: c.by_chance for c in compared(*sides).columns}
    monkeypatch.setattr(chance, "MOST_PERMUTED", 0)
    for column in compared(*sides).columns:
        assert permuted[column.column] / 1.25 < column.by_chance < 3 * permuted[column.column]


def test_the_same_rows_give_the_same_result():
    random = np.random.default_rng(2)
    sides = [{"a": random.normal(size=n), "b": [None, "x", "y"] * (n // 3)} for n in (300, 30)]
    assert compared(*sides).to_dict() == compared(*sides).to_dict()


# ----------------------------------------------------------------------------- kinds of column


def test_text_that_is_numbers_is_compared_as_numbers():
    base = {"x": [str(i % 9) for i in range(100)] + ["?", None, ""]}
    found = only(compared(base, {"x": [3, 4, 5] * 5}))
    assert (found.kind, found.base_text) == (
        "number",
        f"{np.mean([i % 9 for i in range(100)]):.3g}",
    )
    assert found.base_missing == pytest.approx(3 / 103)


def test_text_with_too_few_numbers_is_compared_as_categories():
    base = {"x": [str(i % 9) for i in range(90)] + ["?"] * 10}
    assert only(compared(base, {"x": ["3", "?"] * 8})).kind == "category"


@pytest.mark.parametrize(
    "column",
    [
        pa.array([True, False] * 20),
        pa.array(["u", "v"] * 20).dictionary_encode(),
        pa.array([datetime.date(2020, 1, 1), datetime.date(2021, 1, 1)] * 20),
        pa.array(["2020-01-01", "2021-01-01"] * 20),
        pa.array(["u", None] * 20),
    ],
)
def test_values_without_an_order_are_categories(column):
    found = only(compared({"x": column}, {"x": column.take(pa.array([0] * 10))}))
    assert found.kind == "category"
    assert found.added_text == "100%"


@pytest.mark.parametrize(
    ("column", "reason"),
    [
        (pa.array([f"id{i}" for i in range(100)]), "nearly all values are different"),
        (pa.array(range(1000, 1100)), "it numbers the rows"),
        (pa.array([str(i) for i in range(100)]), "it numbers the rows"),
        (
            pa.array([datetime.date(2020, 1, 1) + datetime.timedelta(i) for i in range(100)]),
            "dates, 100",
        ),
        (pa.array([f"2020-01-01 00:{i // 60:02}:{i % 60:02}" for i in range(100)]), "dates, 100"),
        (pa.array([[i] for i in range(100)]), "nested"),
        (pa.nulls(100), "no values in the base"),
    ],
)
def test_what_says_nothing_is_skipped_with_the_reason(column, reason):
    found = only(compared({"x": column}, {"x": column.slice(0, 20)}))
    assert (found.kind, found.distance, found.notable) == ("skipped", None, False)
    assert reason in found.reason
    assert found.sentence == f"x was not compared: {found.reason}."


def test_numbers_that_happen_to_differ_are_no_row_numbers():
    salaries = [20_000 + 977 * i % 60_013 for i in range(100)]
    assert only(compared({"x": salaries}, {"x": salaries[:20]})).kind == "number"


@pytest.mark.parametrize("column", [[1, 2] * 20, ["u", "v"] * 20])
@pytest.mark.parametrize("there", [True, False])
def test_a_column_that_added_rows_lack_is_a_kind_of_its_own(column, there):
    base = {"x": column, "y": column}
    added = {"y": column[:10], **({"x": pa.nulls(10)} if there else {})}
    shift = compared(base, added, limit=0.0)
    found = {c.column: c for c in shift.columns}["x"]
    assert (found.kind, found.distance, found.added_missing) == ("missing", None, 1.0)
    assert "x is missing in all added rows." in shift.sentences
    assert "x" not in shift.exceeded


def test_a_difference_in_missing_values_alone_is_notable():
    base = {"x": [1, 2, 3, 4] * 25}
    found = only(compared(base, {"x": [1, 2, 3, 4, None, None, None, None] * 5}))
    assert (found.distance, found.notable) == (0, True)
    assert found.sentence.endswith("it is missing in 50% of them against 0%.")
    assert not only(compared(base, {"x": [1, 2, 3, 4] * 5 + [None]})).notable


def test_a_column_known_in_other_cells_only_is_skipped():
    base = {"x": [1] * 20 + [None] * 20}
    added = {"x": [None] * 5 + [1] * 5}
    cells = ([0] * 20 + [1] * 20, [0] * 5 + [1] * 5)
    assert only(compared(base, added, cells)).reason == "no cell has values of it on both sides"


def test_numbers_that_are_not_finite_are_missing():
    found = only(compared({"x": [1.0, 2.0, math.nan, math.inf] * 10}, {"x": [1.0, 2.0] * 10}))
    assert (found.distance, found.base_missing) == (0, 0.5)


# ------------------------------------------------------------------------------- what is left out


def test_cells_with_too_few_base_rows_are_left_out_and_counted():
    base, added = {"x": [1, 2] * 10 + [5] * 9 + [6] * 30}, {"x": [1, 2] * 5 + [9] * 4}
    cells = ([0] * 20 + [1] * 9 + [2] * 30, [0] * 10 + [1] * 3 + [8])
    shift = compared(base, added, cells)
    assert (shift.rows_compared, shift.rows_left_out) == (10, 4)
    assert (shift.cells_compared, shift.cells_left_out, shift.cells_without_added) == (1, 2, 1)
    assert only(shift).distance == 0
    assert (
        "4 added rows of 2 cells with fewer than 10 base rows were not compared." in shift.sentences
    )


@pytest.mark.parametrize("n", [0, 5])
def test_nothing_to_compare_is_said(n):
    shift = compared({"x": [1] * 5}, {"x": pa.array([1] * n, pa.int64())})
    assert only(shift).reason == "no added row is in a cell with at least 10 base rows"
    assert shift.rows_left_out == n
    assert "no added row" in shift.text()


def test_no_columns_are_no_difference():
    shift = compared({"x": [1] * 20}, {"x": [1]}, columns=[])
    assert (shift.columns, shift.sentences, shift.text()) == ((), (), "")


# ------------------------------------------------------------------------------------- words


def shifted(n=8, **options):
    """Added rows that are further off in every column than in the one before."""
    base = {f"c{i}": list(range(10)) * 10 for i in range(n)}
    added = {f"c{i}": [v + i for v in range(10)] * 10 for i in range(n)}
    return compared(base, added, **options)


def test_columns_stand_by_their_distance_and_five_sentences_are_said():
    shift = shifted()
    assert [c.column for c in shift.columns] == [f"c{i}" for i in reversed(range(8))]
    assert len(shift.sentences) == 5
    assert shift.sentences[0] == (
        "Of the same cells, added rows have c7 of 11.5 on average against 4.5 (KS distance 0.70)."
    )


def test_no_more_than_five_sentences_with_all_there_is_to_say():
    base = {f"c{i}": list(range(10)) * 10 + [99] for i in range(8)} | {"gone": [1] * 101}
    added = {f"c{i}": [v + 5 for v in range(10)] * 10 + [1] for i in range(8)}
    shift = compared(base, added, ([0] * 100 + [1], [0] * 100 + [1]), limit=0.1)
    assert len(shift.sentences) == 5
    said = " ".join(shift.sentences)
    for words in (
        "KS distance 0.50",
        "gone is missing in all",
        "beyond the limit of 0.1",
        "1 added row of 1 cell",
    ):
        assert words in said


def test_categories_are_told_by_the_value_that_differs_most():
    base = {"work": ["Private"] * 40 + ["State, local"] * 60}
    shift = compared(base, {"work": ["Private"] * 5 + ["State, local"] * 45})
    (said,) = shift.sentences
    assert said == (
        "Of the same cells, 90% of the added rows have work='State, local' against 60% (total "
        "variation distance 0.30)."
    )


def test_no_difference_is_said_as_that():
    (said,) = shifted(n=1).sentences
    assert said == (
        "On 1 other column added rows differ from base rows of the same cells no more than "
        "expected by chance."
    )


def test_a_limit_is_exceeded_only_beyond_chance():
    assert shifted(limit=0.45).exceeded == ("c7", "c6", "c5")
    assert shifted().exceeded == ()
    few = compared({"x": list(range(0, 100, 2)) * 2}, {"x": [80, 90]}, limit=0.1)
    assert only(few).distance > 0.1
    assert few.exceeded == ()


def test_plain_data_and_text_hold_every_column():
    shift = shifted(limit=0.45)
    plain = json.loads(shift.to_json())
    assert plain["exceeded"] == ["c7", "c6", "c5"]
    assert plain["limit"] == 0.45
    assert [c["column"] for c in plain["columns"]] == [c.column for c in shift.columns]
    assert plain["columns"][0]["sentence"] == shift.sentences[0]
    assert all(c.column in shift.text() for c in shift.columns)
    assert "beyond the limit" in str(shift)
    assert isinstance(shift, Shift)


# ------------------------------------------------------------------------------------ refusing


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"cells": ([0] * 3, [0] * 2)}, "the base table has 2 rows, but 3 cells are given"),
        ({"cells": ([0] * 2, [0] * 3)}, "the added table has 2 rows, but 3 cells are given"),
        ({"cells": ([0.5] * 2, [0] * 2)}, "the cells of the base table must be whole numbers"),
        ({"limit": 1.5}, "a limit on a distance is from 0 to 1, not 1.5"),
        ({"limit": math.nan}, "a limit on a distance is from 0 to 1, not nan"),
        ({"min_rows": 0}, "`min_rows` must be at least 1, not 0"),
    ],
)
def test_what_cannot_be_compared_is_refused(options, says):
    with pytest.raises(InputError, match=says.replace(".", r"\.")):
        compared({"x": [1, 2]}, {"x": [1, 2]}, **options)


def test_a_column_the_base_lacks_is_refused():
    with pytest.raises(ColumnNotFound, match="column 'y' not found in the base table"):
        compared({"x": [1, 2]}, {"x": [1, 2], "y": [1, 2]}, columns=["y"])


def test_values_that_the_base_has_nowhere_are_told_of_whatever_the_distance():
    base = {"town": ["Rome", "Oslo"] * 30}
    spelled = only(compared(base, {"town": ["ROMA", "Oslo", "Rome", "Oslo"] * 3}))
    assert (spelled.unseen, spelled.notable) == (0.25, True)
    assert "25% of them have values that no row of the base has" in spelled.sentence
    alike = only(compared(base, {"town": ["Rome", "Oslo", "Rome", "Oslo"] * 3}))
    assert (alike.unseen, alike.notable) == (0.0, False)
