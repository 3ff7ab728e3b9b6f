"""Plans that leave no bias at all, against enumeration of multiples and of small tables."""

from __future__ import annotations

import itertools
import math
import random
from fractions import Fraction

import numpy as np
import pytest

import equipoise as eq
from equipoise.errors import InputError
from equipoise.plans.problem import pose
from equipoise.plans.request import PlanRequest
from equipoise.plans.solution import solve
from strategies import label_rates, largest_bias, rows_of

HIRED = {("m", "yes"): 160, ("m", "no"): 290, ("w", "yes"): 40, ("w", "no"): 110}


@pytest.fixture
def counts():
    return eq.Counts.from_mapping(HIRED, sensitive=["sex"], label="hired")


def table(have):
    cells = {(f"g{g}", f"y{y}"): n for g, row in enumerate(have) for y, n in enumerate(row) if n}
    return eq.Counts.from_mapping(cells, sensitive=["g"], label="y")


def test_a_third_of_every_group_is_a_whole_number(counts):
    plan = eq.plan(counts, exact=True)
    assert largest_bias(rows_of(plan.after())) == 0
    assert label_rates(rows_of(plan.after())) == label_rates(HIRED)
    assert plan.cost == plan.bound == eq.plan(counts).cost == 45  # its exact numbers are whole
    assert plan.certificate.rounding_bound is None
    assert any("a multiple of 1 yes and 2 no" in s for s in plan.explanation)
    assert any("the price of leaving nothing is 0" in s for s in plan.explanation)
    assert eq.Plan.from_json(plan.to_json()).cells == plan.cells


@pytest.mark.slow
def test_the_price_of_leaving_nothing_is_told():
    options = {"sensitive_features": ["sex", "race"], "label": "risk", "count": "n"}
    plan = eq.plan("compas", exact=True, **options)
    assert plan.reached
    assert plan.certificate.off_after == 0
    rounded = eq.plan("compas", **options).cost
    words = f"This costs {plan.cost:,.6g}; up to rounding, zero bias costs {rounded:,.6g}"
    assert any(words in s for s in plan.explanation)
    small = eq.plan("compas", exact=True, labels={"L": 0.6, "M": 0.25, "H": 0.15}, **options)
    assert any("a multiple of 3 H, 12 L and 5 M" in s for s in small.explanation)
    assert largest_bias(rows_of(small.after())) == 0


def enumerated(problem, parts, largest):
    """The least cost of all multiples of p that keep the limits."""
    found = math.inf
    for times in itertools.product(range(largest), repeat=len(problem.cells)):
        rows = np.array(times)[:, None] * parts
        if problem.holds(rows):
            found = min(found, problem.cells.total_cost(rows))
    return found


@pytest.mark.slow
def test_no_cheaper_multiple_keeps_the_limits():
    rng = random.Random(1)
    outcomes = set()
    for _ in range(60):
        have = [[rng.randrange(0, 9) * 2, rng.randrange(0, 9)] for _ in range(3)]
        have[0] = [4, 3]
        have = [row if any(row) else [1, 1] for row in have]
        totals = np.array(have).sum(axis=0)
        parts = totals // math.gcd(*map(int, totals))
        request = {"exact": True, "allow": rng.choice(["add", "both"])}
        request["cost_delete"] = {"*": rng.choice([0.5, 1, 3])}
        if rng.random() < 0.5:
            request["max_rows"] = int(totals.sum()) + rng.randrange(-5, 60)
        if rng.random() < 0.5:
            request["available"] = {rng.choice(["y=y1", "g=g1", "g=g1, y=y0"]): rng.randrange(25)}
        problem = pose(table(have), PlanRequest(**request))
        found = solve(problem)
        best = enumerated(problem, parts, 2 + max(1, 40 // int(parts.sum())))
        if found.rows is None:
            assert found.bound == best == math.inf
        else:
            assert problem.cells.total_cost(found.rows) == pytest.approx(best)
            assert found.bound <= best
            assert largest_bias(rows_after(problem, found.rows)) == 0
        outcomes.add((found.rows is None, found.method))
    assert len(outcomes) >= 3


def rows_after(problem, rows):
    return {
        (f"g{g}", f"y{y}"): int(n) for g, row in enumerate(rows) for y, n in enumerate(row) if n
    }


def cheapest_without_bias(have, more):
    """The fewest changes to a table of equal shares, of all tables with so many rows more."""
    ranges = [range(n + more + 1) for row in have for n in row]
    before, best = np.array(have), math.inf
    for cells in itertools.product(*ranges):
        rows = np.array(cells).reshape(before.shape)
        cost = int(np.abs(rows - before).sum())
        if cost < best and rows.sum(axis=1).all() and rows.sum(axis=0).all():
            shares = {tuple(Fraction(int(n), int(row.sum())) for n in row) for row in rows}
            best = cost if len(shares) == 1 else best
    return best


@pytest.mark.slow
@pytest.mark.parametrize("have", [[[3, 1], [2, 4]], [[5, 2], [4, 4]], [[1, 3], [6, 2]]])
def test_free_labels_are_searched_among_small_numbers(have):
    plan = eq.plan(table(have), exact=True, labels="free", allow="both")
    assert plan.reached
    assert largest_bias(rows_of(plan.after())) == 0
    assert plan.cost == cheapest_without_bias(have, 3)
    assert plan.bound == 0  # a search proves nothing
    assert any("does not prove" in s for s in plan.explanation)


def test_groups_that_are_not_judged_leave_the_others_without_bias():
    cells = {
        ("a", "x", "+"): 30, ("a", "x", "-"): 50, ("a", "z", "+"): 20, ("a", "z", "-"): 60,
        ("b", "x", "+"): 10, ("b", "x", "-"): 40, ("b", "z", "+"): 5, ("b", "z", "-"): 45,
    }  # fmt: skip
    counts = eq.Counts.from_mapping(cells, sensitive=["s", "t"], label="y")
    plan = eq.plan(counts, exact=True, constrain="marginals", allow="both")
    assert plan.reached
    after = plan.after()
    whole = Fraction(after.of("y=+"), after.n)
    for group in ("s=a", "s=b", "t=x", "t=z"):
        assert Fraction(after.of(f"{group}, y=+"), after.of(group)) == whole


@pytest.mark.slow
def test_a_limit_in_the_way_is_told(counts):
    with pytest.raises(eq.Infeasible, match="are a multiple of 1 yes and 2 no") as caught:
        eq.plan(counts, exact=True, max_rows=640)
    named = {r.option: r.needed for r in caught.value.relaxations}
    assert named["max_rows"] == 645
    assert caught.value.proved


@pytest.mark.slow
def test_a_budget_that_is_short_leaves_bias(counts):
    plan = eq.plan(counts, exact=True, budget=40, time_limit=1)
    assert plan.cost <= 40
    assert not plan.reached
    assert eq.plan(counts, exact=True, budget=45).reached


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"tolerance": 0.1}, "`tolerance=0.1` allows some"),
        ({"rounding": "floor"}, "nothing to round"),
        ({"extra": {"sex=w": 3}}, "nothing to round"),
        ({"target": "keep rates of: sex"}, "decimal numbers"),
        ({"reference": "original", "labels": "free"}, "`labels='keep'`"),
        ({"labels": {"yes": 0.333333333333, "no": 0.666666666667}}, "fewer digits"),
    ],
)
def test_what_does_not_go_with_it_is_refused(counts, options, words):
    with pytest.raises(InputError, match=words):
        eq.plan(counts, exact=True, **options)
