"""The number nearest to a limit on rows: held against all small tables, and the same at any load."""

from __future__ import annotations

import itertools
import random
import time

import numpy as np
import pytest

import equipoise as eq
from equipoise.plans.infeasibility import Infeasible
from equipoise.plans.planner import make_plan
from equipoise.plans.problem import pose
from equipoise.plans.reach import any_plan, reach
from equipoise.plans.request import PlanRequest
from equipoise.plans.solvers.box import allowed_box
from equipoise.plans.solvers.incumbent import holds_everything

FOUR = {
    ("p", "0"): 1,
    ("p", "1"): 1,
    ("q", "0"): 4,
    ("q", "1"): 4,
    ("r", "1"): 1,
    ("s", "0"): 2,
}


def counts_of(cells):
    return eq.Counts.from_mapping(cells, sensitive=["g"], label="y")


def counted(limit, have, rows):
    """The number that a limit counts."""
    change = rows.ravel()[limit.cells]
    if limit.kind == "available":
        return int((change - have.ravel()[limit.cells]).clip(0).sum())
    return int(change.sum())


def nearest_of_all(problem, limit, more):
    """The nearest number that any table of a few more rows per cell reaches without the limit."""
    free = problem.without(limit)
    box, have = allowed_box(problem, problem.base), problem.have.ravel()
    ranges = [
        range(int(low), min(int(high), int(n) + more) + 1)
        for low, high, n in zip(
            free.cells.least.ravel(), free.cells.most.ravel(), have, strict=True
        )
    ]
    sign = -1 if limit.kind in ("at_least", "min_rows") else 1
    tables = np.array(list(itertools.product(*ranges)))
    numbers = np.array([sign * counted(limit, problem.have, t) for t in tables])
    for place in np.argsort(numbers, kind="stable"):
        rows = tables[place].reshape(problem.have.shape)
        if holds_everything(free, rows, box):
            return sign * int(numbers[place])
    return None


def random_request(rng, n):
    tolerance, labels = rng.choice([0.05, 0.1, 0.2]), rng.choice(["keep", "free"])
    limits = {
        "available": {"available": {rng.choice(["g=p, y=0", "y=1"]): 0}},
        "max_rows": {"max_rows": 4, "allow": "both"},
        "at_least": {"at_least": {rng.choice(["g=p", "y=1"]): 3 * n}, "allow": "delete"},
        "min_rows": {"min_rows": 3 * n, "allow": "delete"},
    }
    limit = limits[rng.choice(sorted(limits))]
    return PlanRequest(tolerance=tolerance, labels=labels, reference="new", **limit)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(24))
def test_the_nearest_of_all_small_tables(seed):
    rng = random.Random(seed)
    cells = {(g, y): rng.randint(1, 5) for g in "pq" for y in "01"}
    problem = pose(counts_of(cells), random_request(rng, sum(cells.values())))
    (limit,) = problem.limits
    found, least = reach(problem, limit), nearest_of_all(problem, limit, more=10)
    if found is None:
        assert least is None
        return
    assert counted(limit, problem.have, found.rows) == found.number
    free = problem.without(limit)
    assert holds_everything(free, found.rows, allowed_box(problem, problem.base))
    further = -1 if limit.kind in ("at_least", "min_rows") else 1
    assert further * found.proved <= further * found.number
    if least is not None:  # a table of more rows may be nearer
        assert further * found.number <= further * least
        assert further * found.proved <= further * least


@pytest.mark.slow
def test_a_table_whose_groups_are_small():
    """21 rows are needed; 20 are proved to be too few."""
    request = PlanRequest(tolerance=0.05, max_rows=19)
    with pytest.raises(Infeasible) as caught:
        make_plan(counts_of(FOUR), request)
    assert caught.value.proved
    needed = {r.option: r.needed for r in caught.value.relaxations}
    assert needed["max_rows"] == 21
    assert make_plan(counts_of(FOUR), request.but(max_rows=21)).after().n == 21


@pytest.mark.parametrize("rows", [30, 60, 90])
def test_any_plan_keeps_the_limit_or_is_proved_not_to_exist(rows):
    rng = np.random.default_rng(3)
    cells = {
        (f"g{g}", y): int(n)
        for g in range(9)
        for y, n in zip("01", rng.integers(40, 90, 2), strict=True)
    }
    problem = pose(counts_of(cells), PlanRequest(tolerance=0.1, available={"y=1": rows}))
    found = any_plan(problem)
    (limit,) = problem.limits
    nearest = reach(problem, limit)
    if found.rows is None:
        assert found.bound == np.inf
        assert nearest.proved > rows
    else:
        assert holds_everything(problem, found.rows, allowed_box(problem, problem.base))
        assert nearest.proved <= rows


def scarce():
    rng = np.random.default_rng(11)
    cells = {
        (f"g{g}", y): int(n)
        for g in range(12)
        for y, n in zip("01", rng.integers(30, 90, 2), strict=True)
    }
    return counts_of(cells), PlanRequest(tolerance=0.05, available={"y=1": 5}, time_limit=1e6)


@pytest.mark.slow
def test_the_same_at_any_load(monkeypatch):
    """On a clock that runs fifteen times faster, as on a busy machine, the explanation is the same."""
    counts, request = scarce()
    told = []
    clock = time.monotonic
    for factor in (1.0, 15.0):
        monkeypatch.setattr(time, "monotonic", lambda factor=factor: factor * clock())
        with pytest.raises(Infeasible) as caught:
            make_plan(counts, request)
        told.append(caught.value.sentences)
    assert len(told[0]) > 2
    assert told[0] == told[1]


@pytest.mark.slow
def test_the_time_limit_is_kept():
    rng = np.random.default_rng(2)
    cells = {
        (f"g{g}", y): int(n)
        for g in range(150)
        for y, n in zip("01", rng.integers(9, 99, 2), strict=True)
    }
    counts = counts_of(cells)
    request = PlanRequest(tolerance=0.02, available={"y=1": 5}, max_rows=counts.n + 9)
    started = time.monotonic()
    with pytest.raises(Infeasible):
        make_plan(counts, request.but(time_limit=1))
    assert time.monotonic() - started < 4  # one second each for the plan and for its explanation


def test_a_minimum_that_changes_are_paid_for_is_reached_as_far_as_enumeration_says():
    """Prices below zero must not lift the bound to zero: 29 rows can be reached, not only 27."""
    rows = {("F", "x"): (9, 3), ("F", "y"): (8, 5), ("M", "x"): (12, 7)}
    cells = {
        (*group, y): n for group, pair in rows.items() for y, n in zip("ab", pair, strict=True)
    }
    counts = eq.Counts.from_mapping(cells, sensitive=["s", "t"], label="y")
    asked = PlanRequest(tolerance=0.1, allow="both", available={"*": 4}, at_least={"s=F": 60})
    problem = pose(counts, asked)
    limit = next(x for x in problem.limits if x.kind == "at_least")
    found = reach(problem, limit)
    assert found is not None
    assert found.number == 29


def test_a_group_may_need_many_more_rows_than_its_minimum():
    rows = {("F", "x"): (1, 0), ("F", "y"): (1, 0), ("M", "x"): (1000, 10), ("M", "y"): (1000, 10)}
    cells = {
        (*group, y): n for group, pair in rows.items() for y, n in zip("ab", pair, strict=True)
    }
    counts = eq.Counts.from_mapping(cells, sensitive=["s", "t"], label="y")
    problem = pose(counts, PlanRequest(tolerance=0.2, at_least={"s=F": 5}))
    assert any_plan(problem).rows is not None
