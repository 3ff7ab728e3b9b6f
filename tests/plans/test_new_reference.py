"""Plans against the repaired table's own frequencies: always certified, bounded, and never silly."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import equipoise as eq
from equipoise.plans.problem import pose
from equipoise.plans.request import PlanRequest
from equipoise.plans.solvers.separable import solve_separable
from strategies import SEX_AND_RACE as CELLS
from strategies import enumerated, exact, kept, label_rates, largest_bias, repairable, rows_of

TOLERANCES = (0.05, 0.1, 0.2, 0.3, 0.5)
QUICK = {"time_limit": 10}
slow = settings(max_examples=8, suppress_health_check=[HealthCheck.too_slow])


@pytest.mark.slow
@slow
@given(
    repairable(shape=(2, 2), labels=3, largest=60) | repairable(shape=(3,), largest=200),
    st.sampled_from(TOLERANCES),
    st.sampled_from(["ub", "rate"]),
    st.sampled_from(["keep", "free"]),
    st.sampled_from(["add", "both"]),
)
def test_every_plan_is_within_its_tolerance(counts, tolerance, on, labels, allow):
    plan = eq.plan(
        counts, tolerance=tolerance, tolerance_on=on, labels=labels, allow=allow, **QUICK
    )
    before, after = rows_of(counts), rows_of(plan.after())
    assert plan.certificate.reference == "new"
    assert plan.reached
    assert largest_bias(after, on=on) <= exact(tolerance)
    assert plan.bound <= plan.cost + 1e-9
    if labels == "keep":
        assert kept(before, after, tolerance, on)
    if allow == "add":
        assert all(after[cell] >= rows for cell, rows in before.items())


@pytest.mark.slow
@settings(max_examples=8, suppress_health_check=[HealthCheck.too_slow])
@given(
    repairable(shape=(2,), largest=7) | repairable(shape=(3,), largest=3),
    st.sampled_from((0.1, 0.2, 0.3, 0.5)),
    st.sampled_from(["keep", "free"]),
)
def test_the_lower_bound_is_one(counts, tolerance, labels):
    """No table at all costs less than the bound, and the plan is one of the tables."""
    plan = eq.plan(counts, tolerance=tolerance, allow="both", labels=labels, **QUICK)
    best = enumerated(counts, tolerance, labels, 4 if len(counts.axis("a")) < 3 else 2)
    if best is not None:
        assert plan.bound <= best + 1e-9
        assert plan.cost <= 3 * best + 3
    if best is not None and max(plan.add.rows, default=0) <= 2:
        assert best <= plan.cost


@pytest.mark.slow
@settings(max_examples=8, suppress_health_check=[HealthCheck.too_slow])
@given(
    repairable(shape=(2, 2), labels=3, largest=80, empty=False),
    st.sampled_from(TOLERANCES),
    st.sampled_from(["ub", "rate"]),
)
def test_it_is_never_worse_than_the_fall_back(counts, tolerance, on):
    """Against the original frequencies at τ/(2+τ), or ε/2, the new ones hold at τ."""
    plan = eq.plan(counts, tolerance=tolerance, tolerance_on=on, allow="both", **QUICK)
    tight = tolerance / (2 + tolerance) if on == "ub" else tolerance / 2
    problem = pose(counts, PlanRequest(tolerance=tolerance, tolerance_on=on, allow="both"))
    back = solve_separable(problem.cells, problem.band(problem.rates, tight))
    assert plan.timed_out or plan.cost <= back.cost + 1e-9


@pytest.mark.slow
@settings(max_examples=3, suppress_health_check=[HealthCheck.too_slow])
@given(
    repairable(shape=(2, 2), labels=3, largest=60, empty=False), st.sampled_from(["add", "both"])
)
def test_more_tolerance_never_costs_more_with_the_tighter_plan_at_hand(counts, allow):
    plans: list[eq.Plan] = []
    for tolerance in (0.1, 0.3):
        plans.append(
            eq.plan(counts, tolerance=tolerance, allow=allow, candidates=plans[-1:], **QUICK)
        )
    costs = [plan.cost for plan in plans]
    assert costs == sorted(costs, reverse=True)
    assert all(plan.reached for plan in plans)


@pytest.mark.slow
@settings(max_examples=3, suppress_health_check=[HealthCheck.too_slow])
@given(repairable(shape=(2, 2), labels=3, largest=60, empty=False), st.sampled_from(TOLERANCES))
def test_free_labels_cost_no_more_than_kept_ones_with_their_plan_at_hand(counts, tolerance):
    options = {"tolerance": tolerance, "allow": "both", **QUICK}
    kept_ = eq.plan(counts, **options)
    free = eq.plan(counts, labels="free", candidates=[kept_], **options)
    assert free.cost <= kept_.cost


@pytest.fixture
def counts():
    return eq.Counts.from_mapping(CELLS, sensitive=["sex", "race"], label="o")


def test_a_table_that_holds_already_is_left_alone(counts):
    plan = eq.plan(counts, tolerance=0.7)
    assert largest_bias(CELLS) <= Fraction(7, 10)
    assert plan.cost == plan.bound == 0
    assert not plan.moves


@pytest.mark.slow
def test_the_price_of_keeping_the_labels_is_not_negative(counts):
    for tolerance, allow in ((0.05, "both"), (0.2, "both")):
        plan = eq.plan(counts, tolerance=tolerance, allow=allow, labels="free", time_limit=2)
        assert plan.price["free"] <= plan.price["keep"]


def test_coupled_plans_hold_as_well(counts):
    plan = eq.plan(counts, tolerance=0.1, allow="both", max_rows=250, **QUICK)
    assert plan.reached
    assert plan.after().n <= 250
    assert largest_bias(rows_of(plan.after())) <= Fraction(1, 10)


@pytest.mark.slow
def test_fewer_groups_to_count_never_cost_more(counts):
    """The plan that holds for all groups holds for women: 44 additions, but 48 are planned."""
    everyone = eq.plan(counts, tolerance=0.05, time_limit=2)
    women = eq.plan(counts, tolerance=0.05, constrain="sex=w", time_limit=2)
    assert women.cost <= everyone.cost


@pytest.mark.parametrize("drift", [0.0, 0.001])
def test_label_frequencies_that_may_not_move(counts, drift):
    """With 12 rows added and 12 deleted the frequencies stay exactly, and |UB| ≤ 0.1 holds."""
    options = {"tolerance": 0.1, "allow": "both", "label_drift": drift, "time_limit": 3}
    original = eq.plan(counts, reference="original", **options)
    assert largest_bias(rows_of(original.after())) <= Fraction(1, 10)
    assert eq.plan(counts, reference="new", **options).cost <= original.cost


@pytest.mark.parametrize("drift", [0.01, 0.05])
def test_label_drift_is_kept(counts, drift):
    plan = eq.plan(counts, tolerance=0.1, allow="both", label_drift=drift, **QUICK)
    assert kept(CELLS, rows_of(plan.after()), drift)
    assert any(f"{drift:g} of itself" in h.constraint for h in plan.certificate.constraints)


def test_label_frequencies_that_are_given(counts):
    """Held against the repaired table's own, which lie within the tolerance of those given."""
    plan = eq.plan(counts, tolerance=0.05, allow="both", labels={"h": 0.4, "n": 0.6}, **QUICK)
    after = rows_of(plan.after())
    assert plan.reached
    assert largest_bias(after) <= Fraction(1, 20)
    assert abs(label_rates(after)["h"] / Fraction(2, 5) - 1) <= Fraction(1, 20)


def test_not_every_group_may_vanish():
    cells = {("m", "h"): 1, ("m", "n"): 2, ("w", "h"): 2, ("w", "n"): 5}
    counts = eq.Counts.from_mapping(cells, sensitive=["sex"], label="o")
    options = {"tolerance": 0.01, "allow": "delete", "may_vanish": True, "labels": "free", **QUICK}
    plan = eq.plan(counts, **options)  # one of the two groups can stay alone
    assert plan.after().n > 0
    assert plan.reached


def test_not_every_group_may_vanish_against_the_original():
    cells = {("m", "h"): 1, ("m", "n"): 2, ("w", "h"): 2, ("w", "n"): 5}
    counts = eq.Counts.from_mapping(cells, sensitive=["sex"], label="o")
    with pytest.raises(eq.Infeasible):
        eq.plan(counts, tolerance=0.01, allow="delete", may_vanish=True, reference="original")
