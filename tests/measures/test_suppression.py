"""Suppression against an attacker with all published numbers and linear algebra."""

from __future__ import annotations

import itertools
import json
import math
from dataclasses import replace
from types import ModuleType

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from equipoise import count
from equipoise.counts import CountRequest, Counts
from equipoise.errors import InputError, LatticeTooLarge
from equipoise.lattice import Group
from equipoise.measures import _audit, _families, suppression
from equipoise.measures.request import MeasureRequest
from equipoise.measures.suppression import suppress
from equipoise.measures.table import SORTS, BiasTable, bias_table

PRIME = 2**31 - 1
QUICK = MeasureRequest(uncertainty=False)


# --- tables --------------------------------------------------------------------------------


@st.composite
def small_tables(draw: st.DrawFn) -> Counts:
    """Draw 2 to 4 attributes of 1 to 3 values, 2 or 3 labels, few or many rows a cell."""
    width = draw(st.integers(2, 4))
    sizes = [draw(st.integers(1, 3)) for _ in range(width)]
    labels = draw(st.integers(2, 3))
    rows = draw(st.sampled_from([st.integers(0, 3), st.integers(0, 12), st.integers(0, 60)]))
    often = st.one_of(rows, st.integers(5, 40), st.just(0))
    shape = [*map(range, sizes), range(labels)]
    cells = {key: draw(often) for key in itertools.product(*shape)}
    assume(sum(cells.values()))
    return counted(cells)


def counted(cells: dict[tuple[int, ...], int], prefix: str = "v") -> Counts:
    """Count cells whose keys are numbers of values, the label's last."""
    width = len(next(iter(cells))) - 1
    named = {tuple(f"{prefix}{i}" for i in key): n for key, n in cells.items() if n}
    return Counts.from_mapping(named, sensitive=[f"a{i}" for i in range(width)], label="y")


def flat(numbers: list[list[int]], others: int = 50) -> Counts:
    """Count a table of two attributes; the first label has the numbers, the second others."""
    cells = {
        (row, column, label): n if label == 0 else others
        for row, line in enumerate(numbers)
        for column, n in enumerate(line)
        for label in (0, 1)
    }
    return counted(cells)


# --- the attacker --------------------------------------------------------------------------


def published(table: BiasTable) -> tuple[dict[Group, dict[str, int]], set[Group]]:
    """Read from the JSON text alone which groups are told, with their counts, and which not."""
    told: dict[Group, dict[str, int]] = {}
    hidden = set()
    for row in json.loads(table.to_json())["rows"]:
        group = Group(row["group"])
        if row["n_cell"] is None:
            hidden.add(group)
        else:
            told.setdefault(group, {})[row["label"]] = row["n_cell"]
    return told, hidden


def indicators(counts: Counts, groups: list[Group]) -> np.ndarray:
    """Say of which finest groups that have rows each group is the sum."""
    cells = [
        Group({a.name: a.values[c] for a, c in zip(counts.sensitive, codes, strict=True)})
        for codes in counts.finest()[0].tolist()
    ]
    return np.array([[g.matches(c) for c in cells] for g in groups], np.int64).reshape(
        -1, len(cells)
    )


def combinations_of(known: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """Tell which wanted lines are linear combinations of known ones; exact, modulo a prime."""
    known, wanted = known.copy() % PRIME, wanted.copy() % PRIME
    top = 0
    for column in range(known.shape[1]):
        below = np.flatnonzero(known[top:, column])
        if not len(below):
            continue
        pivot = top + below[0]
        known[[top, pivot]] = known[[pivot, top]]
        known[top] = known[top] * pow(int(known[top, column]), -1, PRIME) % PRIME
        known[top + 1 :] -= known[top + 1 :, [column]] * known[top] % PRIME
        known[top + 1 :] %= PRIME
        wanted -= wanted[:, [column]] * known[top] % PRIME
        wanted %= PRIME
        top += 1
    return ~wanted.any(axis=1)


def small_groups(counts: Counts, below: int) -> list[Group]:
    """Every group of the whole lattice with a small count, but those of all rows."""
    m = bias_table(counts, QUICK).measured
    cells = m.n_cell[:, m.n_label > 0]
    small = (cells < below).any(axis=1) & (m.n_group < counts.n)
    return [m.group(line) for line in np.flatnonzero(small).tolist()]


def given_away(table: BiasTable, below: int) -> list[Group]:
    """List the small groups that the attacker computes from a table and the totals."""
    told, _ = published(table)
    secrets = small_groups(table.counts, below)
    known = indicators(table.counts, [Group({}), *told])
    derived = combinations_of(known, indicators(table.counts, secrets))
    return [group for group, found in zip(secrets, derived, strict=True) if found]


def test_the_attacker_does_find_what_is_not_protected() -> None:
    counts = flat([[3, 30], [30, 30]])
    table = bias_table(counts, QUICK)
    hidden = np.array([[str(table.measured.group(i)) == "a0=v0, a1=v0"] * 2 for i in range(8)])
    only_primary = BiasTable(replace(table.measured, suppressed=hidden))
    assert given_away(only_primary, 5) == [Group({"a0": "v0", "a1": "v0"})]


# --- safety --------------------------------------------------------------------------------


@pytest.mark.slow
@given(small_tables(), st.integers(1, 12))
def test_no_small_count_can_be_computed(counts: Counts, below: int) -> None:
    assert given_away(suppress(bias_table(counts, QUICK), below), below) == []


@pytest.mark.slow
@given(small_tables(), st.integers(1, 12), st.integers(1, 20), st.integers(1, 4))
def test_nor_from_a_pruned_table(counts: Counts, below: int, least: int, order: int) -> None:
    options = MeasureRequest(uncertainty=False, min_count=least, max_order=order)
    assert given_away(suppress(bias_table(counts, options), below), below) == []


@pytest.mark.slow
@given(small_tables(), st.integers(1, 12))
def test_families_have_no_hidden_child_or_two_that_are_large_together(
    counts: Counts, below: int
) -> None:
    told, hidden = published(suppress(bias_table(counts, QUICK), below))
    names = [a.name for a in counts.sensitive]
    totals = {v: counts.of(Group({"y": v})) for v in counts.label.values}
    for parent, rows in [(Group({}), totals), *told.items()]:
        for name in set(names) - set(parent):
            split = {g for g in hidden if {k: v for k, v in g.items() if k != name} == dict(parent)}
            split = {g for g in split if name in g}
            if not split or min(totals.values()) < below:
                continue
            if counts.of(next(iter(split))) == counts.n:
                continue
            assert len(split) >= 2
            for label in rows:
                assert sum(counts.of(Group({**g, "y": label})) for g in split) >= below


@pytest.mark.slow
@given(small_tables(), st.integers(1, 12))
def test_the_sum_of_shown_children_never_is_a_hidden_parent(counts: Counts, below: int) -> None:
    told, hidden = published(suppress(bias_table(counts, QUICK), below))
    for parent in hidden:
        for axis in counts.sensitive:
            if axis.name not in parent:
                children = {Group({**parent, axis.name: v}) for v in axis.values}
                assert not (children & set(told)) or children & hidden


@pytest.mark.slow
@given(small_tables(), st.integers(1, 12))
def test_groups_of_the_same_rows_share_their_fate(counts: Counts, below: int) -> None:
    told, hidden = published(suppress(bias_table(counts, QUICK), below))
    held = {g: tuple(line) for g, line in zip(told, indicators(counts, [*told]), strict=True)}
    lines = [tuple(line) for line in indicators(counts, [*hidden])]
    assert not set(held.values()) & set(lines)


BRIDGE = [
    [4, 4, 50, 50],
    [4, 4, 4, 50],
    [50, 50, 4, 4],
    [50, 50, 4, 4],
]


def test_the_audit_finds_what_families_do_not_show() -> None:
    # The family rule holds: two hidden cells in each row and column, 8 rows together. But
    # the middle one is the upper rows less the left columns, and less what is shown.
    counts = flat(BRIDGE)
    measured = bias_table(counts, QUICK).measured
    units = _families.Units.of(measured, 5)
    hidden = units.secret | ~units.listed
    _families.settle(units, hidden, 5)
    assert hidden.sum() == 9
    system = _audit.System.of(units, hidden)
    assert _audit.derivable_groups(units, system).tolist() == [[1, 2]]
    assert given_away(suppress(bias_table(counts, QUICK), 5), 5) == []


@pytest.mark.slow
@pytest.mark.parametrize("below", [5, 10, 30])
@pytest.mark.parametrize("options", [{}, {"max_order": 2}, {"min_count": 30}])
def test_real_data_are_safe(below: int, options: dict[str, int]) -> None:
    names = ["sex", "race", "education", "relationship"]
    counts = count("adult", sensitive_features=names, label="income")
    table = bias_table(counts, MeasureRequest(uncertainty=False, **options))
    shown = suppress(table, below)
    assert given_away(shown, below) == []
    assert 0 < np.asarray(shown.measured.suppressed).mean() < 1


@pytest.mark.slow
@pytest.mark.parametrize(
    ("module", "name", "value"),
    [
        (_audit, "STEPS", 0),
        (_audit, "STEPS", 2),
        (suppression, "ROUNDS", 0),
        (_audit, "TARGETS", 1),
    ],
)
@given(counts=small_tables(), below=st.integers(2, 9))
def test_stopping_early_hides_more_never_less(
    module: ModuleType, name: str, value: int, counts: Counts, below: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, name, value)
        assert given_away(suppress(bias_table(counts, QUICK), below), below) == []


@pytest.mark.slow
@given(small_tables(), st.integers(1, 12), st.integers(1, 20), st.integers(1, 3))
def test_a_lattice_too_large_to_complete_is_audited_to_the_next_order_and_the_finest(
    counts: Counts, below: int, least: int, order: int
) -> None:
    options = MeasureRequest(uncertainty=False, min_count=least, max_order=order)
    table = bias_table(counts, options)
    assume(len(table.measured.lattice))
    audited = int(table.measured.lattice.orders.max()) + 1
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_families, "WHOLE_ENTRIES", 0)
        found = given_away(suppress(table, below), below)
    assert not [g for g in found if len(g) <= audited or len(g) == len(counts.sensitive)]


def test_too_much_work_is_refused() -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_families, "AUDIT_ENTRIES", 50)
        with pytest.raises(LatticeTooLarge, match=r"16 finest groups .* 4 sets .* 3 sets can be"):
            suppress(bias_table(flat(BRIDGE)), 5)


# --- what is shown -------------------------------------------------------------------------


@pytest.mark.slow
@given(small_tables(), st.integers(1, 12))
def test_shown_numbers_are_unchanged_and_hidden_rows_have_none(counts: Counts, below: int) -> None:
    options = MeasureRequest(measures=("impact-ratio", "mean-difference"))
    before = bias_table(counts, options)
    after = suppress(before, below)
    for old, new in zip(before.to_dict()["rows"], after.to_dict()["rows"], strict=True):
        if new["note"] == "suppressed":
            kept = {k for k, v in new.items() if v is not None}
            assert kept - {"group", "label"} == {"overall_rate", "hidden", "evident", "note"}
            assert new["hidden"] is new["evident"] is False
            assert new["overall_rate"] == old["overall_rate"]
        else:
            assert {**new, "hidden": None} == {**old, "hidden": None}
            assert old["hidden"] or not new["hidden"]


@pytest.mark.slow
@given(small_tables())
def test_whatever_is_small_is_hidden_and_only_then_anything(counts: Counts) -> None:
    table = bias_table(counts, QUICK)
    cells = table.measured.n_cell[:, table.measured.n_label > 0]
    hidden = np.asarray(suppress(table, 3).measured.suppressed)
    assert hidden[(cells < 3).any(axis=1)].all()
    assert hidden.any() == (cells < 3).any()
    assert (hidden.all(axis=1) == hidden.any(axis=1)).all()


def test_one_hides_zeros_and_nothing_else() -> None:
    assert not np.asarray(suppress(bias_table(flat([[1, 2], [3, 4]])), 1).measured.suppressed).any()
    told, hidden = published(suppress(bias_table(flat([[0, 2, 9], [3, 4, 9], [9, 9, 9]])), 1))
    assert Group({"a0": "v0", "a1": "v0"}) in hidden
    assert Group({"a0": "v0"}) in told


def test_a_label_that_no_row_has_does_not_count() -> None:
    counts = flat([[9, 9], [9, 9]])
    label = replace(counts.label, values=(*counts.label.values, "never"))
    wider = replace(counts, axes=(*counts.sensitive, label))
    assert not np.asarray(suppress(bias_table(wider), 5).measured.suppressed).any()


def test_a_huge_threshold_hides_all_but_the_totals() -> None:
    shown = suppress(bias_table(flat(BRIDGE)), 10**9)
    assert np.asarray(shown.measured.suppressed).all()
    data = shown.to_dict()
    assert data["n"] == sum(map(sum, BRIDGE)) + 16 * 50
    assert {row["overall_rate"] for row in data["rows"]} == set(
        shown.measured.margins.overall_rate.tolist()
    )


def test_a_threshold_below_one_is_refused() -> None:
    with pytest.raises(InputError, match="`below` must be a number of at least 1"):
        suppress(bias_table(flat(BRIDGE)), 0)


def test_a_pruned_table_without_groups_is_left_alone() -> None:
    table = bias_table(flat(BRIDGE), MeasureRequest(min_count=10**6))
    assert len(suppress(table, 5)) == 0


def test_a_large_group_left_out_by_pruning_needs_no_protection() -> None:
    # a1 splits the only line of v0 into one group of 100, which max_order leaves out.
    counts = counted({(0, 0, 0): 50, (0, 0, 1): 50, (1, 1, 0): 50, (1, 1, 1): 50})
    table = bias_table(counts, MeasureRequest(max_order=1))
    assert not np.asarray(suppress(table, 5).measured.suppressed).any()


# --- leaks beside the numbers --------------------------------------------------------------

SECRET = [[1, 4, 60, 70], [3, 2, 80, 90], [60, 70, 80, 95], [51, 52, 53, 54]]
OTHER_SECRET = [[2, 3, 60, 70], [2, 3, 80, 90], [60, 70, 80, 95], [51, 52, 53, 54]]


@pytest.mark.parametrize("sort", SORTS)
@pytest.mark.parametrize("reference", ["rest", "best", "a0=v0, a1=v1"])
def test_two_tables_that_differ_only_in_secrets_give_the_same_output(
    sort: str, reference: str
) -> None:
    options = MeasureRequest(
        uncertainty=False,
        reference=reference,
        measures=("impact-ratio", "mean-difference", "odds-ratio-group-over-reference"),
    )
    texts = []
    for numbers in (SECRET, OTHER_SECRET):
        shown = suppress(bias_table(flat(numbers), options), 5)
        hidden = np.asarray(shown.measured.suppressed)
        assert hidden.any()
        assert not hidden.all()
        ordered = shown.sort(sort)
        data = {k: v for k, v in ordered.to_dict().items() if k != "time"}
        arrow = ordered.to_arrow()
        buffers = [
            b.to_pybytes()
            for column in arrow.columns
            for b in column.combine_chunks().buffers()
            if b is not None
        ]
        texts.append((json.dumps(data), repr(ordered), repr(shown), ordered._repr_html_(), buffers))
        assert len(ordered.filter(hidden=True)) == sum(row["hidden"] for row in data["rows"])
        for name in options.measures:
            assert np.isnan(shown.measure(name)[hidden]).all()
    assert texts[0] == texts[1]


@pytest.mark.parametrize("sort", [s for s in SORTS if s != "group"])
def test_hidden_rows_come_last_in_the_order_of_groups(sort: str) -> None:
    shown = suppress(bias_table(flat(SECRET)), 5).sort(sort)
    line, label = shown.places
    hidden = np.asarray(shown.measured.suppressed)[line, label]
    assert_array_equal(hidden, np.sort(hidden))
    assert (np.diff((line * 2 + label)[hidden]) > 0).all()
    again = np.stack(shown.sort("worst").sort(sort).places)
    assert_array_equal(again[:, hidden], np.stack(shown.places)[:, hidden])


def test_of_rows_chosen_before_the_hidden_ones_are_left_out() -> None:
    table = bias_table(flat(SECRET))
    assert {row.note for row in suppress(table.sort("ub").top(12), 5)} == {None}
    shown = suppress(table, 5)
    assert len(shown.worst(7)) == 7
    assert "suppressed" not in {row.note for row in shown.worst(7)}
    assert len(suppress(table.filter(label_value="v1"), 5)) < len(table) / 2


def test_the_best_group_is_the_best_of_those_shown() -> None:
    few = {
        (0, 0): 4,
        (0, 1): 1,
        (1, 0): 30,
        (1, 1): 30,
        (2, 0): 60,
        (2, 1): 20,
        (3, 0): 50,
        (3, 1): 50,
    }
    table = bias_table(counted(few), MeasureRequest(reference="best", measures=("impact-ratio",)))
    assert table["a0=v2", "v0"].measures["impact_ratio"] == pytest.approx(0.75 / 0.8)
    shown = suppress(table, 5)
    assert [row.note for row in shown][::2] == ["suppressed", "suppressed", None, None]
    ratios = shown.measure("impact_ratio")[:, 0]
    np.testing.assert_allclose(ratios, [np.nan, np.nan, 1, 0.5 / 0.75])


def test_a_hidden_reference_compares_with_nothing() -> None:
    options = MeasureRequest(reference="a0=v0, a1=v0", measures=("impact-ratio",))
    shown = suppress(bias_table(flat(SECRET), options), 5)
    assert all(math.isnan(row.measures["impact_ratio"]) for row in shown)


def test_a_group_with_a_hidden_parent_is_not_said_to_be_hidden_inside_it() -> None:
    counts = flat([[200, 10, 200], [10, 200, 200], [200, 200, 10]], others=200)
    shown = suppress(bias_table(counts, MeasureRequest(limit=0.3)), 15)
    m = shown.measured
    for line, label in np.argwhere(m.hidden).tolist():
        parents = [Group({k: v}) for k, v in m.group(line).items()]
        assert not any(np.asarray(m.suppressed)[m.line(p), label] for p in parents)


def test_the_fingerprint_and_the_missing_values_of_a_hidden_group_are_left_out() -> None:
    frame = {
        "a": [None] * 3 + ["x"] * 60 + ["y"] * 60 + ["z"] * 60,
        "b": [None] * 20 + ["u"] * 83 + ["w"] * 80,
        "y": ["0", "1", "0"] + ["0", "1"] * 90,
    }
    request = CountRequest(sensitive=("a", "b"), label="y")
    counts = Counts.from_arrow(pa.table(frame), request)
    table = bias_table(counts)
    assert table.to_dict()["missing_values"] == {"a": 3, "b": 20, "y": 0}
    data = suppress(table, 5).to_dict()
    assert data["missing_values"] == {"b": 20, "y": 0}
    assert data["fingerprint"] is None
    assert table.to_dict()["fingerprint"]


def test_weighted_rates_of_hidden_groups_are_hidden() -> None:
    rows = [(a, y) for a, n in (("p", 3), ("q", 20), ("r", 40)) for y in "01" for _ in range(n)]
    frame = pa.table({"a": [a for a, _ in rows], "y": [y for _, y in rows], "w": [1.5] * len(rows)})
    counts = Counts.from_arrow(frame, CountRequest(sensitive=("a",), label="y", weight="w"))
    shown = suppress(bias_table(counts), 5)
    rates = {str(row.group): row.rate for row in shown if row.label == "0"}
    assert {g: r for g, r in rates.items() if r == r} == {"a=r": 0.5}
