"""Each group for itself: the search against enumeration, against HiGHS, and against common sense."""

from __future__ import annotations

import itertools
import math
import time
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from equipoise.plans.cells import UNLIMITED, Band, Cells
from equipoise.plans.solvers.separable import granularity, solve_separable

COSTS = (0.0, 0.1, 0.25, 0.5, 1.0, 1.0, 1.0, 2.0, 3.7)
TOLERANCES = (0.02, 0.05, 0.1, 0.2, 0.25, 0.3, 0.5, 0.9)


@st.composite
def one_group(draw, *, labels=None, largest=8, caps=True):
    """A group with costs, caps, coverage; and a band, all in exact numbers beside the floats."""
    k = draw(st.integers(2, 5)) if labels is None else labels
    have = np.array([draw(st.lists(st.integers(0, largest), min_size=k, max_size=k))])
    prices = st.lists(st.sampled_from(COSTS), min_size=k, max_size=k)
    least, most = np.zeros_like(have), np.full_like(have, UNLIMITED)
    group_least = draw(st.sampled_from([0, 1, 1, 5, 12]))
    if caps:
        for y in range(k):
            kind = draw(st.integers(0, 5))
            if kind == 0:
                least[0, y] = have[0, y]
            elif kind == 1:
                most[0, y] = have[0, y] + draw(st.integers(0, 6))
            elif kind == 2:
                least[0, y] = draw(st.integers(0, largest))
    weights = draw(st.lists(st.integers(1, 9), min_size=k, max_size=k))
    target = [Fraction(w, sum(weights)) for w in weights]
    cells = Cells.of(
        have,
        least=least,
        most=most,
        add=[draw(prices)],
        drop=[draw(prices)],
        group_least=group_least,
    )
    return cells, target, draw(st.sampled_from(TOLERANCES)), draw(st.sampled_from(["ub", "rate"]))


def edges(target, tolerance, on):
    """Between which shares each label must lie, in fractions."""
    t = Fraction(repr(tolerance))
    if on == "ub":
        return [(max(q * (1 - t), Fraction(0)), q * (1 + t)) for q in target]
    return [(max(q - t, Fraction(0)), q + t) for q in target]


def price(cells, rows, line=0):
    """What rows cost, a cell at a time."""
    total = Fraction(0)
    for have, got, add, drop in zip(
        cells.have[line], rows, cells.add[line], cells.drop[line], strict=True
    ):
        change = int(got) - int(have)
        total += change * Fraction(repr(float(add))) if change > 0 else Fraction(0)
        total -= change * Fraction(repr(float(drop))) if change < 0 else Fraction(0)
    return total


def allowed(cells, rows, bounds, line=0):
    """Whether rows hold everything, exactly."""
    size = sum(rows)
    if size < cells.group_least[line]:
        return False
    inside = zip(rows, cells.least[line], cells.most[line], strict=True)
    if any(not low <= x <= high for x, low, high in inside):
        return False
    return all(low * size <= x <= high * size for x, (low, high) in zip(rows, bounds, strict=True))


def enumerated(cells, bounds, top):
    """The least cost among all rows up to a number for each label."""
    ranges = [
        range(int(low), int(min(top, high)) + 1)
        for low, high in zip(cells.least[0], cells.most[0], strict=True)
    ]
    costs = [
        price(cells, rows) for rows in itertools.product(*ranges) if allowed(cells, rows, bounds)
    ]
    return min(costs, default=None)


def by_highs(cells, bounds):
    """The same by a model of additions and deletions; None if there is no solution."""
    from scipy.optimize import Bounds, LinearConstraint, milp

    k = cells.labels
    have = cells.have[0].astype(float)
    costs = np.concatenate([cells.add[0], cells.drop[0]])
    room = np.where(cells.most[0] >= UNLIMITED, 2000.0, (cells.most[0] - have).clip(0))
    low = np.concatenate([(cells.least[0] - have).clip(0), (have - cells.most[0]).clip(0)])
    high = np.concatenate([room, (have - cells.least[0]).clip(0)])
    if (low > high).any():
        return None
    matrix, below, above = [], [], []
    change = np.concatenate([np.eye(k), -np.eye(k)], axis=1)
    total = change.sum(axis=0)
    for y, (low_share, high_share) in enumerate(bounds):
        n = math.lcm(low_share.denominator, high_share.denominator)
        for share, sign in ((low_share, 1), (high_share, -1)):
            row = sign * (n * change[y] - float(share * n) * total)
            fixed = sign * (n * have[y] - float(share * n) * have.sum())
            matrix.append(row)
            below.append(-fixed)
            above.append(np.inf)
    matrix.append(total)
    below.append(float(cells.group_least[0]) - have.sum())
    above.append(np.inf)
    found = milp(
        costs,
        integrality=np.ones(2 * k),
        bounds=Bounds(low, high),
        constraints=LinearConstraint(np.array(matrix), below, above),
        options={"mip_rel_gap": 0.0, "time_limit": 20},
    )
    if found.status == 2:
        return None
    assert found.status == 0, found.message
    return found.fun


def greedy(cells, bounds, steps=400):
    """Add or delete the one row that leaves the least worst excess, until nothing is outside."""
    rows = cells.have[0].copy()

    def excess(rows):
        size = max(int(rows.sum()), 1)
        return max(
            max(float(low) - x / size, x / size - float(high), 0.0)
            for x, (low, high) in zip(rows, bounds, strict=True)
        )

    for _ in range(steps):
        if allowed(cells, rows.tolist(), bounds):
            return rows
        moves = []
        for y, step in itertools.product(range(cells.labels), (1, -1)):
            trial = rows.copy()
            trial[y] += step
            if cells.least[0, y] <= trial[y] <= cells.most[0, y] and trial.sum():
                moves.append((excess(trial), y, step))
        if not moves:
            return None
        _, y, step = min(moves)
        rows[y] += step
    return None


def band_of(bounds, n=1):
    low, high = (np.array([[float(b[i]) for b in bounds]] * n) for i in (0, 1))
    return Band(low, high)


def solved(cells, target, tolerance, on, **how):
    band = Band.around([[float(q) for q in target]], tolerance, on=on)
    return solve_separable(cells, band, **how)


# --- against enumeration and HiGHS ----------------------------------------------------------------


@pytest.mark.slow
@settings(max_examples=60)
@given(one_group(labels=2, largest=7) | one_group(labels=3, largest=4))
def test_the_search_is_as_cheap_as_the_best_of_all_rows(case):
    cells, target, tolerance, on = case
    bounds = edges(target, tolerance, on)
    top = 45 if cells.labels == 2 else 14
    best = enumerated(cells, bounds, top)
    found = solved(*case)
    if best is None:
        if found.feasible:
            assert max(found.rows[0]) > top
        return
    assert found.feasible
    assert price(cells, found.rows[0]) <= best + Fraction(1, 10**9)
    if max(found.rows[0]) <= top:
        assert float(best) == pytest.approx(found.cost, abs=1e-9)


@settings(max_examples=60)
@given(one_group())
def test_what_it_gives_holds_everything_exactly(case):
    cells, target, tolerance, on = case
    found = solved(*case)
    if not found.feasible:
        return
    rows = found.rows[0].tolist()
    if sum(rows) == 0:  # a group may vanish if its least size is none
        assert cells.group_least[0] == 0
        assert not cells.least.any()
    else:
        assert allowed(cells, rows, edges(target, tolerance, on))
    assert float(price(cells, rows)) == pytest.approx(found.cost, abs=1e-9)
    assert float(cells.cost(found.rows)[0]) == pytest.approx(found.cost, abs=1e-9)


@pytest.mark.slow
@settings(max_examples=50)
@given(one_group(largest=30))
def test_highs_finds_nothing_else(case):
    cells, target, tolerance, on = case
    least = replace(cells, group_least=np.maximum(cells.group_least, 1))
    mine = solved(least, target, tolerance, on)
    theirs = by_highs(least, edges(target, tolerance, on))
    if theirs is None:
        assert not mine.feasible
    else:
        assert mine.cost == pytest.approx(theirs, abs=1e-5)


@pytest.mark.slow
@settings(max_examples=50)
@given(one_group(largest=40))
def test_it_is_never_worse_than_going_greedily(case):
    cells, target, tolerance, on = case
    rows = greedy(cells, edges(target, tolerance, on))
    if rows is not None:
        assert solved(*case).cost <= float(price(cells, rows)) + 1e-9


# --- more freedom never costs more ----------------------------------------------------------------


@pytest.mark.slow
@settings(max_examples=50)
@given(one_group(), st.sampled_from(TOLERANCES), st.integers(0, 20), st.integers(0, 5))
def test_more_freedom_never_costs_more(case, other, more, fewer):
    cells, target, tolerance, on = case
    cost = solved(*case).cost
    wider = max(tolerance, other)
    assert solved(cells, target, wider, on).cost <= cost + 1e-9
    assert solved(replace(cells, most=cells.most + more), target, tolerance, on).cost <= cost + 1e-9
    less = (cells.least - fewer).clip(0)
    assert solved(replace(cells, least=less), target, tolerance, on).cost <= cost + 1e-9
    smaller = (cells.group_least - fewer).clip(0)
    assert solved(replace(cells, group_least=smaller), target, tolerance, on).cost <= cost + 1e-9


@settings(max_examples=30)
@given(one_group())
def test_twice_the_prices_is_twice_the_cost(case):
    cells, target, tolerance, on = case
    twice = replace(cells, add=2 * cells.add, drop=2 * cells.drop)
    one, two = solved(*case).cost, solved(twice, target, tolerance, on).cost
    assert two == pytest.approx(2 * one, abs=1e-9) or (math.isinf(one) and math.isinf(two))


# --- many groups at once --------------------------------------------------------------------------


@pytest.mark.slow
@settings(max_examples=25)
@given(st.lists(one_group(labels=3), min_size=2, max_size=5), st.data())
def test_many_groups_are_as_one_by_one(cases, data):
    """Alike and different groups in one call, in any order, with bands of their own."""
    bands = [band_of(edges(target, t, on)) for _, target, t, on in cases]
    each = [solve_separable(cells, band) for (cells, *_), band in zip(cases, bands, strict=True)]
    order = data.draw(st.lists(st.integers(0, len(cases) - 1), min_size=1, max_size=12))
    names = Cells.__dataclass_fields__
    together = Cells(**{n: np.concatenate([getattr(cases[i][0], n) for i in order]) for n in names})
    band = Band(*(np.concatenate([getattr(bands[i], n) for i in order]) for n in ("low", "high")))
    found = solve_separable(together, band)
    for line, i in enumerate(order):
        assert found.costs[line] == pytest.approx(each[i].costs[0], abs=1e-9)
        if math.isfinite(each[i].costs[0]):
            assert found.costs[line] == pytest.approx(
                float(cases[i][0].cost(found.rows[line : line + 1])[0]), abs=1e-9
            )


def test_a_hundred_thousand_alike_groups_are_one_search():
    cells = Cells.of(np.tile([[30, 18], [5, 0]], (60_000, 1)))
    found = solve_separable(cells, Band.around([[0.5, 0.5]], 0.1))
    assert found.rows.shape == (120_000, 2)
    assert (found.rows[0::2] == found.rows[0]).all()
    assert (found.rows[1::2] == found.rows[1]).all()
    assert found.cost == 60_000 * (found.costs[0] + found.costs[1])


def test_no_groups_cost_nothing():
    found = solve_separable(Cells.of(np.zeros((0, 2), int)), Band.around([[0.5, 0.5]], 0.1))
    assert found.cost == 0
    assert found.feasible


def test_progress_is_told():
    told = []
    cells = Cells.of(np.arange(20).reshape(10, 2))
    solve_separable(cells, Band.around([[0.5, 0.5]], 0.1), progress=told.append)
    assert told[-1] == 1
    assert told == sorted(told)


# --- edges ----------------------------------------------------------------------------------------


def test_unequal_costs():
    """DESIGN §5: stopping at |S − s| ≥ best, which is right for unit costs, would give 6.0."""
    cells = Cells.of([[30, 18]], add=0.5, drop=[[0.1, 2.0]])
    found = solve_separable(cells, Band.around([[1 / 6, 5 / 6]], 0.2, on="rate"))
    assert found.cost == pytest.approx(2.0, abs=1e-12)
    bounds = edges([Fraction(1, 6), Fraction(5, 6)], 0.2, "rate")
    assert enumerated(cells, bounds, 60) == 2


def test_the_edge_of_the_band_is_inside_it():
    """3 of 10 with a target of a quarter is off by exactly 0.2."""
    cells = Cells.of([[3, 7]])
    assert solve_separable(cells, Band.around([[0.25, 0.75]], 0.2)).cost == 0
    assert solve_separable(cells, Band.around([[0.25, 0.75]], 0.2), strict=True).cost > 0


@pytest.mark.slow
@settings(max_examples=40)
@given(one_group())
def test_strict_keeps_off_the_edge(case):
    _, target, tolerance, on = case
    strict = solved(*case, strict=True)
    assert strict.cost >= solved(*case).cost - 1e-9
    rows = strict.rows[0].tolist()
    if strict.feasible and sum(rows):
        size = sum(rows)
        for x, (low, high) in zip(rows, edges(target, tolerance, on), strict=True):
            assert low * size < x or (x == 0 and low == 0)
            assert x < high * size or high >= 1


def test_a_group_may_vanish_only_if_it_may_be_empty():
    band = Band.around([[0.5, 0.5]], 0.01)
    stays = solve_separable(Cells.of([[1, 0]], most=[[1, 0]]), band)
    assert not stays.feasible
    gone = solve_separable(Cells.of([[1, 0]], most=[[1, 0]], group_least=0), band)
    assert gone.rows.tolist() == [[0, 0]]
    assert gone.cost == 1


def test_a_group_with_rows_that_must_stay_does_not_vanish():
    cells = Cells.of([[1, 0]], least=[[1, 0]], most=[[1, 0]], group_least=0)
    assert not solve_separable(cells, Band.around([[0.5, 0.5]], 0.01)).feasible


def test_an_empty_group_that_may_be_empty_stays_so():
    found = solve_separable(Cells.of([[0, 0]], group_least=0), Band.around([[0.5, 0.5]], 0.1))
    assert found.rows.tolist() == [[0, 0]]
    assert found.cost == 0


@pytest.mark.parametrize("tolerance", [1e-3, 1e-4, 1e-5])
def test_a_small_tolerance_needs_many_rows(tolerance):
    """One row, a third of the rest: whole numbers fit only at multiples of three."""
    cells = Cells.of([[1, 0]], least=[[1, 0]])
    found = solve_separable(cells, Band.around([[1 / 3, 2 / 3]], tolerance))
    assert found.rows.tolist() == [[1, 2]]


def test_granularity():
    assert granularity(np.array([1.0, 2.0, 3.0])) == 1
    assert granularity(np.array([0.5, 0.75])) == 0.25
    assert granularity(np.array([0.0])) == 0
    assert granularity(np.array([0.1, 0.3])) == pytest.approx(0.1)
    assert granularity(np.array([1.0, math.pi])) == 0
    assert granularity(np.arange(1, 100.0)) == 0


def test_a_band_without_width_is_given_up():
    """Its shares are no simple fractions: no size fits, and not every size is tried."""
    share = [0.3612239583333333, 0.6387760416666667]
    band = Band(np.array([share]), np.array([share]))
    started = time.process_time()
    solved = solve_separable(Cells.of([[2, 2]], least=[[2, 2]]), band)
    assert not solved.feasible
    assert time.process_time() - started < 1
    half = Band(np.full((1, 2), 0.5), np.full((1, 2), 0.5))
    assert solve_separable(Cells.of([[2, 5]]), half).cost == 3


@pytest.mark.parametrize("drop", [-1.0, 0.0])
def test_changes_that_are_paid_for(drop):
    """With a price below zero for deletions, the smallest group that fits is the cheapest."""
    cells = Cells.of([[3, 4], [2, 4]], add=1.0, drop=drop)
    band = Band(np.full((2, 2), 0.36), np.full((2, 2), 0.64))
    solved = solve_separable(cells, band)
    costs = [
        min(
            float(cells.cost(np.array([[a, b], [a, b]]))[line])
            for a in range(1, 9)
            for b in range(1, 9)
            if 0.36 <= a / (a + b) <= 0.64
        )
        for line in (0, 1)
    ]
    assert solved.costs.tolist() == costs
    assert cells.lowest_cost == drop * 13
