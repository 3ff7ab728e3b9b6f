"""Biases of two tables side by side: which rows there are, and how far they moved."""

from __future__ import annotations

import itertools
import json
import math

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

import equipoise as eq
from equipoise.counts import Counts
from equipoise.errors import CountsError, InputError
from equipoise.measures.change import bias_change
from equipoise.measures.request import MeasureRequest
from equipoise.measures.table import bias_table
from equipoise.values import MISSING

NUMBERS = ("change", "change_low", "change_high", "p_value", "q_value")


@st.composite
def tables(draw: st.DrawFn) -> Counts:
    """Counts over two attributes; each table may lack values the other has."""
    cell = st.tuples(st.sampled_from("mwx"), st.sampled_from("oc"), st.sampled_from("LMH"))
    cells = draw(st.dictionaries(cell, st.integers(1, 60), min_size=1, max_size=12))
    return Counts.from_mapping(cells, sensitive=["sex", "race"], label="risk")


def two(**cells: int) -> Counts:
    """Counts of one attribute from ``w_y=3`` and the like."""
    parts = {tuple(name.split("_")): n for name, n in cells.items()}
    return Counts.from_mapping(parts, sensitive=["sex"], label="hired")


BEFORE = two(m_y=60, m_n=40, w_y=20, w_n=80)


def by_key(change) -> dict[tuple[object, object], object]:
    return {(row.group, row.label): row for row in change}


@pytest.mark.slow
@given(tables(), tables())
def test_rows_are_the_union_and_biases_those_of_each_table(before: Counts, after: Counts) -> None:
    change = by_key(bias_change(before, after))
    alone = [{(r.group, r.label): r for r in bias_table(c)} for c in (before, after)]
    groups = {g for table in alone for g, _ in table}
    labels = {*before.label.values, *after.label.values}
    assert change.keys() == {(g, y) for g in groups for y in labels}
    for (group, label), row in change.items():
        for table, n, ub in zip(
            alone, (row.n_before, row.n_after), (row.ub_before, row.ub_after), strict=True
        ):
            twin = table.get((group, label))
            if twin is None:
                assert math.isnan(ub)
                assert n == next((r.n_group for (g, _), r in table.items() if g == group), 0)
            else:
                assert_allclose((n, ub), (twin.n_group, twin.ub), rtol=1e-12)
        assert_allclose(row.change, row.ub_after - row.ub_before, atol=1e-12)


@pytest.mark.slow
@given(tables(), tables())
def test_to_and_fro_is_the_same_change_with_the_other_sign(before: Counts, after: Counts) -> None:
    there, back = by_key(bias_change(before, after)), by_key(bias_change(after, before))
    assert there.keys() == back.keys()
    for key, row in there.items():
        twin = back[key]
        assert (row.n_before, row.n_after) == (twin.n_after, twin.n_before)
        assert_allclose(
            (row.change, row.change_low, row.change_high, row.p_value, row.q_value),
            (-twin.change, -twin.change_high, -twin.change_low, twin.p_value, twin.q_value),
            rtol=1e-9,
            atol=1e-12,
        )


@pytest.mark.slow
@given(tables())
def test_a_table_does_not_differ_from_itself(counts: Counts) -> None:
    for row in bias_change(counts, counts):
        assert row.change == 0 or math.isnan(row.ub_before)
        assert row.note is None
        assert math.isnan(row.p_value) or row.p_value == 1


@pytest.mark.slow
@given(tables(), tables(), st.sampled_from([0.5, 0.95, 0.99]))
def test_the_interval_contains_the_change(before: Counts, after: Counts, level: float) -> None:
    for row in bias_change(before, after, MeasureRequest(confidence=level)):
        if math.isnan(row.change):
            assert math.isnan(row.change_low)
            assert math.isnan(row.change_high)
        else:
            assert row.change_low <= row.change + 1e-12
            assert row.change <= row.change_high + 1e-12
            assert math.isnan(row.p_value) or 0 <= row.p_value <= row.q_value + 1e-12 <= 1 + 2e-12


@pytest.mark.slow
@given(tables(), tables())
@settings(max_examples=50)
def test_the_largest_change_comes_first_and_undefined_ones_last(before, after) -> None:
    """Of those with enough rows to tell, and then of the others."""
    rows = list(bias_change(before, after))
    known = [(not r.evident, -abs(r.change)) for r in rows if not math.isnan(r.change)]
    assert all(not math.isnan(r.change) for r in rows[: len(known)])
    assert all(a <= (b[0], b[1] + 1e-9) for a, b in itertools.pairwise(known))


def test_a_small_change_comes_before_a_group_that_is_new() -> None:
    after = BEFORE + two(w_y=1, x_y=10, x_n=10)
    rows = list(bias_change(BEFORE, after))
    assert [str(r.group) for r in rows[-2:]] == ["sex=x", "sex=x"]
    assert 0 < abs(rows[0].change) < 0.2


def test_notes_say_where_a_group_is() -> None:
    change = bias_change(BEFORE + two(x_y=9), BEFORE + two(z_n=8))
    notes = {(str(r.group), r.note, r.n_before, r.n_after) for r in change}
    assert notes == {
        ("sex=m", None, 100, 100),
        ("sex=w", None, 100, 100),
        ("sex=x", "only before", 9, 0),
        ("sex=z", "only after", 0, 8),
    }
    assert all(math.isnan(r.change) == (r.note is not None) for r in change)


def test_a_group_left_out_for_its_size_is_not_called_absent() -> None:
    change = bias_change(
        two(m_y=60, m_n=40, w_y=10, w_n=10), BEFORE + two(x_y=9), MeasureRequest(min_count=30)
    )
    rows = {str(r.group): r for r in change}
    assert set(rows) == {"sex=m", "sex=w"}  # nobody has 30 rows of x
    assert (rows["sex=w"].n_before, rows["sex=w"].n_after) == (20, 100)
    assert rows["sex=w"].note == "too few rows before"
    back = bias_change(
        BEFORE, two(m_y=60, m_n=40, w_y=10, w_n=10), MeasureRequest(min_count=30, max_order=1)
    )
    assert {r.note for r in back if r.group["sex"] == "w"} == {"too few rows after"}


def test_values_of_one_table_only_are_lined_up_by_value_not_by_place() -> None:
    before = two(w_y=30, w_n=70, m_y=50, m_n=50)
    after = two(a_n=10, m_n=50, w_n=70, w_y=30, m_y=50)
    for row in bias_change(before, after):
        if row.group["sex"] != "a":
            assert row.ub_after == bias_table(after)[row.group, row.label].ub
            assert row.ub_before == bias_table(before)[row.group, row.label].ub


def test_missing_values_are_one_group_in_both() -> None:
    frames = [pa.table({"sex": ["w", None, "w"], "y": ["1", "0", last]}) for last in "01"]
    counts = [Counts.from_frame(f, sensitive=["sex"], label="y") for f in frames]
    groups = {row.group["sex"] for row in bias_change(*counts)}
    assert groups == {"w", MISSING}
    data = bias_change(*counts).to_dict()
    assert {row["group"]["sex"] for row in data["rows"]} == {"w", None}


def test_a_table_of_no_rows_is_refused() -> None:
    nothing = BEFORE - BEFORE
    for pair in ((nothing, BEFORE), (BEFORE, nothing)):
        with pytest.raises(InputError, match="there are no rows to measure"):
            bias_change(*pair)


def test_a_table_whose_groups_are_all_too_small_can_be_compared() -> None:
    small = two(w_y=2, w_n=3, m_y=4)
    change = bias_change(small, BEFORE, MeasureRequest(min_count=50))
    assert {(str(r.group), r.n_before, r.note) for r in change} == {
        ("sex=w", 5, "too few rows before"),
        ("sex=m", 4, "too few rows before"),
    }
    assert len(bias_change(small, small, MeasureRequest(min_count=50))) == 0


def test_two_tables_far_apart_differ_and_two_alike_do_not() -> None:
    far = bias_change(BEFORE, two(m_y=20, m_n=80, w_y=60, w_n=40))
    assert all(row.q_value < 0.001 and not row.change_low <= 0 <= row.change_high for row in far)
    near = bias_change(BEFORE, two(m_y=58, m_n=42, w_y=21, w_n=79))
    assert all(row.q_value > 0.5 and row.change_low < 0 < row.change_high for row in near)


@pytest.mark.parametrize(
    "other",
    [
        Counts.from_mapping({("w", "y"): 1}, sensitive=["gender"], label="hired"),
        Counts.from_mapping({("w", "y"): 1}, sensitive=["sex"], label="fired"),
        Counts.from_mapping({("w", "o", "y"): 1}, sensitive=["sex", "race"], label="hired"),
        Counts.from_frame(
            pa.table({"sex": ["w"], "hired": ["y"], "n": [2.5]}),
            sensitive=["sex"],
            label="hired",
            weight="n",
        ),
    ],
    ids=["another attribute", "another label", "more attributes", "weighted"],
)
def test_tables_of_other_columns_are_refused(other: Counts) -> None:
    for pair in ((BEFORE, other), (other, BEFORE)):
        with pytest.raises(CountsError, match="the two tables cannot be compared: counts "):
            bias_change(*pair)


def test_tables_of_other_bins_are_refused() -> None:
    frame = pa.table({"age": [20, 30, 40], "y": ["1", "0", "1"]})
    young, old = (
        Counts.from_frame(frame, sensitive=["age"], label="y", bins={"age": (edge,)})
        for edge in (25, 35)
    )
    with pytest.raises(CountsError, match="cannot be compared: counts with different bins"):
        bias_change(young, old)


def test_json_of_a_change() -> None:
    after = BEFORE + two(w_y=100, x_n=5)
    change = bias_change(BEFORE, after)
    data = json.loads(change.to_json())
    assert list(data) == [
        "schema",
        "sensitive",
        "label",
        "labels",
        "parameters",
        "reading",
        "version",
        "time",
        "reading_after",
        "n_before",
        "n_after",
        "skipped_before",
        "skipped_after",
        "fingerprint_before",
        "fingerprint_after",
        "rows",
    ]
    assert data["schema"] == "equipoise.diff/1"
    assert (data["n_before"], data["n_after"]) == (200, 305)
    assert data["fingerprint_before"] == BEFORE.fingerprint
    assert data["fingerprint_after"] == after.fingerprint
    assert list(data["rows"][0]) == [
        *(
            "group",
            "label",
            "n_before",
            "n_after",
            "ub_before",
            "ub_after",
            *NUMBERS,
            "evident",
            "note",
        )
    ]
    for plain, row in zip(data["rows"], change, strict=True):
        assert plain["group"] == dict(row.group)
        for name in ("label", "n_before", "n_after", "note"):
            assert plain[name] == getattr(row, name)
        for name in NUMBERS:
            value = getattr(row, name)
            assert plain[name] == (None if math.isnan(value) else value)


def test_text_of_a_change() -> None:
    change = bias_change(BEFORE, BEFORE + two(w_y=100))
    lines = repr(change).splitlines()
    assert lines[0] == "Change of Uniform Bias: 200 rows before, 300 after"
    assert lines[4].split()[:7] == ["sex=w", "y", "100", "200", "+0.500", "0.000", "−0.500"]
    assert len(change.top(1)) == 1
    assert len(change.top(None)) == len(change) == 4


def test_diff_through_the_front_door() -> None:
    frames = [
        pa.table({"sex": ["w", "w", "m", "m", *more], "hired": ["y", "n", "y", "y", *more_labels]})
        for more, more_labels in (([], []), (["w", "w"], ["y", "y"]))
    ]
    change = eq.diff(*frames, sensitive_features=["sex"], label="hired", confidence=0.9)
    assert change.before.options.confidence == 0.9
    row = by_key(change)[eq.Group({"sex": "w"}), "y"]
    assert_allclose((row.ub_before, row.ub_after), (1 - 0.5 / 0.75, 1 - 0.75 / (5 / 6)), rtol=1e-12)


def test_changes_that_chance_may_explain_stand_below_a_line() -> None:
    tiny = two(x_y=4, x_n=4), two(x_y=6, x_n=2)
    before, after = (c + c + c for c in (BEFORE, BEFORE + two(w_y=60)))
    change = bias_change(before + tiny[0], after + tiny[1])
    told = [r.evident for r in change]
    assert told == sorted(told, reverse=True)
    assert {str(r.group) for r in change if r.evident} == {"sex=m", "sex=w"}
    assert {str(r.group) for r in change if not r.evident} == {"sex=x"}
    lines = change.text().splitlines()
    line = next(i for i, x in enumerate(lines) if "too few rows to tell" in x)
    assert lines[line + 1].startswith("sex=x")
    assert "of sex=w for" in change.sentence


def test_a_sentence_names_no_largest_change_that_may_be_chance() -> None:
    change = bias_change(two(w_y=5, w_n=5, m_y=6, m_n=4), two(w_y=6, w_n=4, m_y=5, m_n=5))
    assert "0 of 4 group and label pairs changed by more than chance" in change.sentence
    assert "largest" not in change.sentence


def test_no_fingerprint_tells_of_suppressed_counts() -> None:
    """Whoever tries small counts would find those that a hash was made of."""
    cells = {("a", "y"): 40, ("a", "n"): 60, ("b", "y"): 30, ("b", "n"): 20, ("c", "y"): 2}
    counts = Counts.from_mapping(cells, sensitive=["s"], label="l")
    shown = bias_change(counts, counts, MeasureRequest(suppress_below=5)).to_dict()
    assert shown["fingerprint_before"] is None
    assert shown["fingerprint_after"] is None
    whole = bias_change(counts, counts).to_dict()
    assert whole["fingerprint_before"] == whole["fingerprint_after"] == counts.fingerprint
