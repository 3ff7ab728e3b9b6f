"""Budgets: never exceeded, spent well, and in the user's order if there is one."""

from __future__ import annotations

import itertools
import math
import random
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import equipoise as eq
from equipoise.errors import InputError
from equipoise.plans.plan import rows_after
from equipoise.plans.planner import make_plan
from equipoise.plans.problem import pose
from equipoise.plans.request import PlanRequest
from equipoise.plans.solution import Solution
from equipoise.plans.tolerance import pays, what_is_left
from strategies import label_rates, largest_bias, repairable, rows_of

BUDGETS = (0, 3, 10, 25, 60)
CELLS = {("m", "+"): 160, ("m", "-"): 290, ("w", "+"): 40, ("w", "-"): 110}


@pytest.fixture
def counts():
    return eq.Counts.from_mapping(CELLS, sensitive=["sex"], label="y")


def off(plan):
    """The largest |UB| against the original frequencies, exactly."""
    return largest_bias(rows_of(plan.after()), rates=label_rates(rows_of(plan.counts)))


@pytest.mark.slow
@settings(max_examples=10)
@given(
    repairable(shape=(2, 2), labels=2, largest=40, empty=False),
    st.sampled_from([1, 0.5, 3]),
    st.sampled_from(["add", "both"]),
)
def test_more_budget_never_leaves_more(counts, cost, allow):
    left = []
    for budget in BUDGETS:
        plan = eq.plan(
            counts,
            tolerance=0.001,
            reference="original",
            allow=allow,
            budget=budget,
            costs={"a=a0": cost},
        )
        assert plan.cost <= budget + 1e-9
        assert plan.reached == (off(plan) <= Fraction(1, 1000))
        left.append(off(plan))
    assert all(after <= before + Fraction(1, 10**6) for before, after in itertools.pairwise(left))


@pytest.mark.slow
@settings(max_examples=10)
@given(repairable(shape=(2, 2), labels=2, largest=40, empty=False), st.sampled_from(BUDGETS))
def test_no_smaller_tolerance_is_affordable(counts, budget):
    """A hair below what it reached costs more than the budget."""
    options = {"reference": "original", "allow": "both"}
    plan = eq.plan(counts, tolerance=1e-4, budget=budget, **options)
    if plan.reached:
        return
    below = float(off(plan)) * (1 - 1e-4)
    assert eq.plan(counts, tolerance=below, **options).cost > budget


def left(plan, labels="keep"):
    """What a plan leaves, exactly: of bias, and of the label frequencies' own move if kept."""
    before, after = rows_of(plan.counts), rows_of(plan.after())
    bias = largest_bias(after)
    if labels == "free":
        return bias
    new = label_rates(after)
    return max(bias, *(abs(new[y] / f - 1) for y, f in label_rates(before).items()))


SMALL_GROUP = {("m", "+"): 20, ("m", "-"): 40, ("w", "+"): 5, ("w", "-"): 35, ("x", "-"): 1}
"""To whole rows zero bias leaves a |UB| of 1 in the group of one row."""


@pytest.fixture(scope="module")
def with_small_group():
    return eq.Counts.from_mapping(SMALL_GROUP, sensitive=["sex"], label="y")


@pytest.mark.slow
def test_a_budget_that_suffices_changes_nothing_even_where_less_money_leaves_less(with_small_group):
    """What rounding leaves to a group of one row is more than a cheaper plan would leave."""
    full = eq.plan(with_small_group)
    less = eq.plan(with_small_group, budget=full.cost - 1)
    assert left(less) < Fraction(1, 2) < left(full)
    assert not less.reached
    for budget in (full.cost, 10 * full.cost):
        plan = eq.plan(with_small_group, budget=budget)
        assert plan.cells == full.cells
        assert plan.reached


THREE = {("m", "+"): 9, ("m", "-"): 4, ("w", "+"): 3, ("w", "-"): 7, ("x", "+"): 1, ("x", "-"): 5}
TWO = {("m", "+"): 6, ("m", "-"): 7, ("w", "+"): 9, ("w", "-"): 1}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("cells", "allow", "labels", "shares"),
    [
        (SMALL_GROUP, "both", "keep", (0.6, 0.9)),
        (THREE, "both", "free", (0.3, 0.6)),
        (TWO, "add", "free", (0.3, 0.6)),
        (TWO, "both", "free", (0.6, 0.9)),
    ],
)
def test_more_budget_never_leaves_more_at_zero_tolerance(cells, allow, labels, shares):
    """On tables where no solver runs into its time limit, so that load changes nothing."""
    counts = eq.Counts.from_mapping(cells, sensitive=["sex"], label="y")
    options = {"allow": allow, "labels": labels}
    full = eq.plan(counts, **options)
    found = []
    for share in shares:
        plan = eq.plan(counts, budget=round(full.cost * share), **options)
        assert plan.cost <= min(round(full.cost * share), full.cost) + 1e-9
        assert not plan.timed_out
        found.append(max(left(plan, labels), Fraction(1, 1000)))  # what is near zero is alike
    assert found == sorted(found, reverse=True)


def test_zero_bias_that_leaves_next_to_nothing_is_taken():
    options = {"sensitive_features": ["sex", "race"], "label": "risk", "count": "n"}
    full = eq.plan("compas", **options)
    rich = eq.plan("compas", budget=20_000, **options)
    assert rich.reached
    assert rich.cells == full.cells


def affordable_best(counts, budget):
    """The least that any table leaves that adds so many rows at most."""
    before = rows_of(counts)
    cells = [(*g, y) for g in sorted({c[:-1] for c in before}) for y in counts.label.values]
    every = []
    for add in itertools.product(range(budget + 1), repeat=len(cells)):
        if sum(add) <= budget:
            after = {c: before.get(c, 0) + n for c, n in zip(cells, add, strict=True)}
            new = label_rates(after)
            moved = max(abs(new[y] / f - 1) for y, f in label_rates(before).items())
            every.append(max(largest_bias(after), moved))
    return min(every)


@pytest.mark.slow
@pytest.mark.parametrize("budget", [2, 5])
def test_a_budget_buys_the_best_of_all_small_tables(budget):
    counts = eq.Counts.from_mapping(TWO, sensitive=["sex"], label="y")
    plan = eq.plan(counts, budget=budget)
    best = affordable_best(counts, min(budget, int(eq.plan(counts).cost)))
    assert best <= left(plan) <= best * Fraction(11, 10) + Fraction(1, 100)


@pytest.mark.parametrize("rounding", ["floor", "nearest"])
def test_a_rounding_goes_with_a_budget(counts, rounding):
    """It says how zero bias is rounded; short of money whole rows are chosen by what they leave."""
    full = eq.plan(counts, rounding=rounding)
    assert eq.plan(counts, rounding=rounding, budget=full.cost).cells == full.cells
    options = {"budget": 20, "reference": "original"}
    less = eq.plan(counts, rounding=rounding, **options)
    assert less.cells == eq.plan(counts, **options).cells
    assert less.cost <= 20
    assert eq.Plan.from_json(less.to_json()).cells == less.cells


@pytest.mark.slow
def test_a_rounding_does_not_hide_what_a_budget_lacks(counts):
    with pytest.raises(eq.Infeasible, match="budget of 10") as caught:
        eq.plan(counts, rounding="floor", budget=10, at_least={"sex=w": 200})
    assert {"budget", "at_least"} <= {r.option for r in caught.value.relaxations}


@pytest.mark.slow
def test_a_budget_against_the_new_frequencies(counts):
    plan = eq.plan(counts, tolerance=0.01, budget=20, allow="both", time_limit=1)
    assert plan.cost <= 20
    assert not plan.reached
    assert plan.exit_code == 1
    worst = float(largest_bias(rows_of(plan.after())))
    assert plan.certificate.off_after == pytest.approx(worst, rel=1e-9)
    assert worst < float(largest_bias(CELLS))
    assert any("With the budget of 20" in s for s in plan.explanation)


def test_a_budget_that_suffices_buys_the_plan(counts):
    assert eq.plan(counts, budget=45).cells == eq.plan(counts).cells
    assert eq.plan(counts, budget=45).reached
    assert not eq.plan(counts, budget=40, time_limit=1).reached


def test_no_plan_that_reaches_it_costs_less_than_the_bound(counts):
    less = eq.plan(counts, budget=44, priority=["sex=m", "sex=w"])
    assert not less.reached  # what a budget cut off is not rounding, however little it is
    assert less.cost < eq.plan(counts).bound == 45  # all exact numbers are whole


def test_no_budget_at_all_leaves_the_table_alone(counts):
    plan = eq.plan(counts, tolerance=0.01, reference="original", budget=0)
    assert not plan.moves
    assert not plan.reached


def test_free_rows_need_no_budget(counts):
    plan = eq.plan(counts, tolerance=0.01, reference="original", budget=0, costs={"*": 0})
    assert plan.reached
    assert plan.cost == 0


@pytest.mark.parametrize("budget", [0, 1, 7, 20, 40, 45, 46])
def test_priorities_are_served_in_order(counts, budget):
    """Men lack 30 rows, women 15."""
    plan = eq.plan(counts, budget=budget, priority=["sex=w", "sex=m"])
    women, men = min(budget, 15), min(max(budget - 15, 0), 30)
    assert plan.add.of("sex=w") == women
    assert plan.add.of("sex=m") == men
    assert plan.cost == women + men
    assert plan.reached == (budget >= 45)
    if budget < 45:
        assert [s.served for s in plan.steps] == [women, men]
        assert [s.missing for s in plan.steps] == [15 - women, 30 - men]
        assert [s.left for s in plan.steps] == [max(budget - 15, 0), max(budget - 45, 0)]


def test_an_entry_served_in_part_gets_cells_in_proportion():
    cells = {("m", y): 100 for y in "abc"} | {("w", "a"): 100, ("w", "b"): 40, ("w", "c"): 70}
    counts = eq.Counts.from_mapping(cells, sensitive=["sex"], label="y")
    full = eq.plan(counts, rounding="floor")
    half = full.add.of("sex=w") // 2
    plan = eq.plan(counts, rounding="floor", budget=half, priority=["sex=w"])
    assert plan.additions == half
    for label in "bc":
        cell = f"sex=w, y={label}"
        assert abs(plan.add.of(cell) - full.add.of(cell) / 2) <= 1


def test_a_priority_that_names_nothing_known(counts):
    with pytest.raises(InputError, match="it has: m, w"):
        eq.plan(counts, budget=5, priority=["sex=x"])


def test_a_priority_without_a_budget(counts):
    with pytest.raises(InputError, match="`budget`"):
        eq.plan(counts, priority=["sex=w"])


@pytest.mark.parametrize("budget", [-1, float("nan"), float("inf"), "much"])
def test_what_is_no_budget(counts, budget):
    with pytest.raises(InputError, match="budget"):
        eq.plan(counts, budget=budget)


def test_a_budget_that_does_not_pay_for_the_other_limits(counts):
    with pytest.raises(eq.Infeasible, match="budget of 10"):
        eq.plan(counts, tolerance=0.05, reference="original", budget=10, at_least={"sex=w": 200})


def test_the_budget_that_would_do_is_named(counts):
    with pytest.raises(eq.Infeasible) as caught:
        eq.plan(counts, tolerance=0.05, reference="original", budget=10, at_least={"sex=w": 200})
    named = {r.option: r.needed for r in caught.value.relaxations}
    assert named["budget"] > 10
    assert named["at_least"] < 200


def least_within(problem, budget):
    """The least that any plan within a budget leaves, of all tables with some of every label."""
    cells = problem.cells
    ranges = [
        range(max(int(low), int(n - budget / drop)), min(int(high), int(n + budget / add)) + 1)
        for low, high, n, add, drop in zip(
            *(getattr(cells, name).ravel() for name in ("least", "most", "have", "add", "drop")),
            strict=True,
        )
    ]
    least = math.inf
    for table in itertools.product(*ranges):
        rows = np.array(table).reshape(problem.have.shape)
        if pays(budget, cells.total_cost(rows)) and rows.sum(axis=0).all() and problem.holds(rows):
            plan = Solution(rows, 0.0, "solver", problem.base)
            least = min(least, what_is_left(problem, plan))
    return least


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(20))
def test_the_same_money_cannot_leave_less(seed):
    rng = random.Random(seed)
    cells = {(g, y): rng.randint(1, 6) for g in "pq" for y in "01"}
    counts = eq.Counts.from_mapping(cells, sensitive=["g"], label="y")
    request = PlanRequest(
        tolerance=rng.choice([0.0, 0.01]),
        allow=rng.choice(["add", "both", "delete"]),
        reference=rng.choice(["new", "original"]),
        cost_add={"g=p": rng.choice([1, 0.5, 2])},
        budget=rng.choice([1, 2, 3, 4]),
    )
    try:
        plan = make_plan(counts, request)
    except eq.Infeasible:
        return
    if plan.reached:
        return
    problem = pose(counts, request)
    mine = Solution(rows_after(problem, plan), 0.0, "solver", problem.base)
    left = what_is_left(problem, mine)
    assert left <= max(least_within(problem, request.budget), request.tolerance) + 1e-7
