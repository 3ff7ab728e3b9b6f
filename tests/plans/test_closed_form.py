"""Zero bias in closed form: sizes and whole numbers, against fractions and enumeration."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import equipoise as eq
from equipoise.plans.cells import UNLIMITED, Cells
from equipoise.plans.request import ROUNDINGS
from equipoise.plans.solvers.closed_form import best_sizes, rounding_bound, whole_rows
from strategies import biases, repairable, rows_of

COSTS = (0.0, 0.25, 0.5, 1.0, 1.0, 2.0, 3.7)


@st.composite
def groups(draw, *, largest=60, labels=None):
    """One group with rows, and the target of each label as a fraction."""
    k = draw(st.integers(2, 5)) if labels is None else labels
    have = draw(st.lists(st.integers(0, largest), min_size=k, max_size=k).filter(any))
    weights = draw(st.lists(st.integers(1, 30), min_size=k, max_size=k))
    return have, [Fraction(w, sum(weights)) for w in weights]


def floats(target):
    return np.array([[float(q) for q in target]])


def residual(rows, target):
    """The largest |UB| against the target, exactly."""
    size = sum(rows)
    return max(abs(Fraction(int(x), size) / q - 1) for x, q in zip(rows, target, strict=True))


def bound_of(rows, target):
    """What rounding can leave a group with those rows."""
    return rounding_bound(floats(target), np.array([rows.sum()]))[0]


def only_additions(have):
    return Cells.of([have], least=[have])


# --- sizes ----------------------------------------------------------------------------------------


@settings(max_examples=60)
@given(groups())
def test_without_deletions_the_largest_ratio_decides(case):
    """The paper's formula: t = max c/q, so that the free label stays as it is."""
    have, target = case
    size = max(Fraction(c) / q for c, q in zip(have, target, strict=True))
    found = best_sizes(only_additions(have), floats(target))
    assert found.size[0] == pytest.approx(float(size), rel=1e-12)
    assert found.feasible.all()


@settings(max_examples=60)
@given(groups())
def test_floor_is_the_papers_formula_in_whole_numbers(case):
    """x_y = ⌊c_i·q_y/q_i⌋ for the free label i, worked out without floats."""
    have, target = case
    free = max(range(len(have)), key=lambda y: Fraction(have[y]) / target[y])
    expected = [int(have[free] * q / target[free]) for q in target]
    cells = only_additions(have)
    size = best_sizes(cells, floats(target)).size
    assert whole_rows(cells, floats(target), size, "floor")[0].tolist() == expected


@settings(max_examples=60)
@given(groups(), st.data())
def test_with_deletions_it_is_the_best_of_all_sizes(case, data):
    """The weighted quantile costs as little as any corner, in fractions; corners hold a minimum."""
    have, target = case
    prices = st.lists(st.sampled_from(COSTS), min_size=len(have), max_size=len(have))
    add, drop = data.draw(prices), data.draw(prices)
    cells = Cells.of([have], add=[add], drop=[drop])
    size = best_sizes(cells, floats(target)).size[0]

    def cost(t):
        change = [t * q - c for c, q in zip(have, target, strict=True)]
        prices = zip(change, add, drop, strict=True)
        return sum(Fraction(repr(a)) * d if d > 0 else -Fraction(repr(b)) * d for d, a, b in prices)

    corners = [Fraction(c) / q for c, q in zip(have, target, strict=True)]
    best = min(cost(max(t, Fraction(1))) for t in [*corners, Fraction(1)])
    assert float(cost(Fraction(float(size)))) == pytest.approx(float(best), abs=1e-9)
    assert size >= 1


@settings(max_examples=40)
@given(groups(), st.data())
def test_caps_and_coverage_bound_the_size(case, data):
    have, target = case
    k = len(have)
    more = data.draw(st.lists(st.integers(0, 40), min_size=k, max_size=k))
    least = [c + data.draw(st.integers(0, 3)) for c in have]
    cells = Cells.of([have], least=[least], most=[[c + m for c, m in zip(have, more, strict=True)]])
    found = best_sizes(cells, floats(target))
    low = max([*(Fraction(c) / q for c, q in zip(least, target, strict=True)), Fraction(1)])
    high = min(Fraction(c + m) / q for c, m, q in zip(have, more, target, strict=True))
    assert found.feasible[0] or low > high
    if low <= high:
        assert float(low) * (1 - 1e-9) <= found.size[0] <= float(high) * (1 + 1e-9)


@settings(max_examples=40)
@given(groups(), st.integers(1, 50))
def test_extra_rows_are_rows_of_the_free_label(case, extra):
    """The general solution: Δsy_i more of the free label, and the others in proportion."""
    have, target = case
    ratios = [Fraction(c) / q for c, q in zip(have, target, strict=True)]
    free = ratios.index(max(ratios))
    assume(ratios.count(max(ratios)) == 1)
    size = (have[free] + extra) / target[free]
    found = best_sizes(only_additions(have), floats(target), np.array([extra]))
    assert found.size[0] == pytest.approx(float(size), rel=1e-12)


# --- rounding -------------------------------------------------------------------------------------


@settings(max_examples=80)
@given(groups(), st.sampled_from(ROUNDINGS))
def test_what_rounding_leaves_is_bounded(case, rounding):
    have, target = case
    cells = only_additions(have)
    size = best_sizes(cells, floats(target)).size
    rows = whole_rows(cells, floats(target), size, rounding)[0]
    assert (rows >= have).all()
    assert float(residual(rows.tolist(), target)) <= bound_of(rows, target) + 1e-12


@settings(max_examples=80)
@given(groups(largest=12), st.sampled_from(ROUNDINGS), st.data())
def test_what_rounding_leaves_is_bounded_with_deletions(case, rounding, data):
    have, target = case
    price = data.draw(st.sampled_from(COSTS))
    cells = Cells.of([have], drop=price)
    size = best_sizes(cells, floats(target)).size
    rows = whole_rows(cells, floats(target), size, rounding)[0]
    assert rows.sum() > 0
    assert float(residual(rows.tolist(), target)) <= bound_of(rows, target) + 1e-12


@settings(max_examples=80)
@given(groups())
def test_optimal_is_the_best_of_all_neighbours(case):
    have, target = case
    cells = only_additions(have)
    size = best_sizes(cells, floats(target)).size
    rows = whole_rows(cells, floats(target), size, "optimal")[0].tolist()
    exact = max(Fraction(c) / q for c, q in zip(have, target, strict=True))
    around = [
        sorted({max(int(exact * q), c), max(-int(-exact * q // 1), c)})
        for c, q in zip(have, target, strict=True)
    ]
    assert all(x in choice for x, choice in zip(rows, around, strict=True))
    best = min(residual(x, target) for x in itertools.product(*around) if sum(x))
    assert residual(rows, target) <= best + Fraction(1, 10**11)


@settings(max_examples=40)
@given(groups())
def test_optimal_leaves_no_more_than_the_others(case):
    have, target = case
    cells = only_additions(have)
    size = best_sizes(cells, floats(target)).size
    left = {
        r: residual(whole_rows(cells, floats(target), size, r)[0].tolist(), target)
        for r in ROUNDINGS
    }
    assert left["optimal"] <= min(left.values()) + Fraction(1, 10**11)


def test_numbers_that_are_whole_stay_whole():
    """3/10 of 10·n is 3n, though 0.3·10n is not in floats."""
    for n in range(1, 200):
        cells = only_additions([3 * n, 7 * n])
        for rounding in ROUNDINGS:
            size = best_sizes(cells, np.array([[0.3, 0.7]])).size
            assert whole_rows(cells, np.array([[0.3, 0.7]]), size, rounding).tolist() == [
                [3 * n, 7 * n]
            ]


def test_cutting_does_not_empty_a_group():
    cells = Cells.of([[1, 0, 0]], drop=0.01)
    target = np.array([[1 / 3, 1 / 3, 1 / 3]])
    for rounding in ROUNDINGS:
        rows = whole_rows(cells, target, best_sizes(cells, target).size, rounding)
        assert rows.sum() >= 1


# --- plans ----------------------------------------------------------------------------------------


@pytest.mark.slow
@settings(max_examples=12)
@given(
    repairable(labels=3, largest=40), st.sampled_from(ROUNDINGS), st.sampled_from(["add", "both"])
)
def test_a_plan_of_zero_bias_leaves_what_its_certificate_says(counts, rounding, allow):
    plan = eq.plan(counts, rounding=rounding, allow=allow)
    found = biases(rows_of(plan.after()))
    assert plan.method == "closed form"
    assert plan.reached
    worst = float(max(abs(b) for b in found.values()))
    assert plan.certificate.max_abs_ub_after == pytest.approx(worst, abs=1e-12)
    assert worst <= plan.certificate.rounding_bound + 1e-9


@pytest.mark.slow
@settings(max_examples=15)
@given(repairable(labels=2, largest=40), st.integers(1, 30))
def test_a_plan_with_extra_rows_is_unbiased_and_larger(counts, extra):
    least = eq.plan(counts, rounding="floor")
    more = eq.plan(counts, rounding="floor", extra={"a=a0": extra})
    assert more.reached
    assert more.additions >= least.additions
    inside = [counts.of(f"a=a0, b={b}") for b in ("b0", "b1") if b in counts.axis("b").values]
    assume(any(inside))
    assert more.additions >= least.additions + extra


def test_extra_rows_are_those_asked_for():
    cells = {("m", "+"): 160, ("m", "-"): 290, ("w", "+"): 40, ("w", "-"): 110}
    counts = eq.Counts.from_mapping(cells, sensitive=["sex"], label="y")
    plan = eq.plan(counts, extra={"sex=w": 10})
    assert plan.reached
    assert rows_of(plan.after())["w", "-"] == 120
    assert rows_of(plan.after())["w", "+"] == 60


def test_extra_rows_and_coverage_go_together():
    cells = {("m", "+"): 160, ("m", "-"): 290, ("w", "+"): 40, ("w", "-"): 110}
    counts = eq.Counts.from_mapping(cells, sensitive=["sex"], label="y")
    assert eq.plan(counts, extra={"sex=w": 10}, at_least={"sex=w, y=-": 500}).reached


def test_extra_rows_that_are_not_available_are_refused():
    from equipoise.plans.infeasibility import Infeasible

    cells = {("m", "+"): 160, ("m", "-"): 290, ("w", "+"): 40, ("w", "-"): 110}
    counts = eq.Counts.from_mapping(cells, sensitive=["sex"], label="y")
    with pytest.raises(Infeasible):
        eq.plan(counts, extra={"sex=w": 10}, available={"sex=w, y=-": 5})


def test_floor_needs_only_the_rows_it_adds():
    """The corollary's floor adds 107 M to wo; one more is never used."""
    options = {"sensitive_features": ["sex", "race"], "label": "risk", "rounding": "floor"}
    plan = eq.plan("compas", **options)
    cell = next(c for c in plan.moves if str(c.group) == "sex=w, race=o" and c.label == "M")
    assert cell.add == 107
    bounded = eq.plan("compas", **options, available={"sex=w, race=o, risk=M": cell.add})
    assert bounded.reached


def test_unlimited_is_out_of_reach_of_any_count():
    assert UNLIMITED > 10**15
