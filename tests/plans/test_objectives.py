"""Objectives: the best value of all small tables, and then the least cost."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import equipoise as eq
from enumeration import all_tables, costs, within
from equipoise.errors import InputError
from equipoise.plans.infeasibility import Infeasible
from equipoise.plans.planner import make_plan
from equipoise.plans.problem import pose
from equipoise.plans.request import PlanRequest

SMALL = st.lists(st.integers(1, 4), min_size=4, max_size=4).map(lambda n: np.reshape(n, (2, 2)))
OBJECTIVES = ("rows", "additions", "groups")


def counts_of(have):
    cells = {
        (g, y): int(have[i, j])
        for i, g in enumerate(["g0", "g1", "g2"][: len(have)])
        for j, y in enumerate("ny")
    }
    return eq.Counts.from_mapping(cells, sensitive=["sex"], label="hired")


def values_of(tables, have, objective):
    if objective == "rows":
        return tables.sum(axis=(1, 2))
    if objective == "additions":
        return (tables - have).clip(0).sum(axis=(1, 2))
    return (tables != have).any(axis=2).sum(axis=1)


def best_of(tables, have, objective, delete=1):
    """The best value, and the least cost of the tables that have it."""
    values = values_of(tables, have, objective)
    prices = costs(tables, have, delete=delete)
    return int(values.min()), float(prices[values == values.min()].min())


def rows_after(plan, have):
    problem = pose(plan.counts, plan.request)
    rows = problem.have.copy()
    for counts, sign in ((plan.add, 1), (plan.delete, -1)):
        for (line, label), n in zip(counts.codes.tolist(), counts.rows.tolist(), strict=True):
            rows[line, label] += sign * n
    assert rows.shape == have.shape
    return rows


@pytest.mark.slow
@pytest.mark.parametrize("objective", OBJECTIVES)
@settings(max_examples=25, deadline=None)
@given(
    have=SMALL,
    tolerance=st.sampled_from([0.2, 0.34, 0.5]),
    allow=st.sampled_from(["add", "delete", "both"]),
    delete=st.sampled_from([0.5, 1, 2]),
    least=st.sampled_from([None, 5, 9]),
)
def test_the_best_value_and_then_the_least_cost(objective, have, tolerance, allow, delete, least):
    tables = all_tables(have, allow=allow, more=4)
    good = within(tables, have, tolerance) & (tables.sum(axis=(1, 2)) >= (least or 0))
    request = PlanRequest(
        objective=objective,
        tolerance=tolerance,
        allow=allow,
        cost_delete={"*": delete},
        min_rows=least,
        reference="original",
        gap=0.0,
    )
    try:
        plan = make_plan(counts_of(have), request, explain=False)
    except Infeasible:
        assert not good.any()
        return
    assert plan.reached
    rows = rows_after(plan, have)
    value = int(values_of(rows[None], have, objective)[0])
    assert value == plan.optimum["value"]
    assert plan.optimum["bound"] <= value
    if not good.any():  # the plan adds more rows than the tables that were listed
        assert (rows > have + 4).any()
        return
    best, cost = best_of(tables[good], have, objective, delete)
    assert plan.optimum["bound"] <= best
    assert value <= best
    if (rows <= have + 4).all():
        assert value == best
        assert plan.cost == pytest.approx(cost)


@pytest.mark.slow
@pytest.mark.parametrize("objective", OBJECTIVES)
@settings(max_examples=3, deadline=None)
@given(
    have=SMALL,
    tolerance=st.sampled_from([0.2, 0.34]),
    allow=st.sampled_from(["add", "both"]),
)
def test_with_new_frequencies_no_claim_is_false(objective, have, tolerance, allow):
    tables = all_tables(have, allow=allow, more=3)
    good = within(tables, have, tolerance, reference="new")
    request = PlanRequest(objective=objective, tolerance=tolerance, allow=allow)
    plan = make_plan(counts_of(have), request, explain=False)
    assert plan.reached
    value = int(values_of(rows_after(plan, have)[None], have, objective)[0])
    assert value == plan.optimum["value"]
    if good.any():
        best, _ = best_of(tables[good], have, objective)
        assert plan.optimum["bound"] <= best
    cheapest = make_plan(counts_of(have), request.but(objective="cost"), explain=False)
    assert value <= int(values_of(rows_after(cheapest, have)[None], have, objective)[0])


SHARED = {"group_shares": {"sex=g0": 0.5}, "share_tolerance": 0.05}


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_limits_that_groups_share_go_with_every_objective(objective):
    have = np.array([[3, 4], [2, 3], [1, 1]])
    tables = all_tables(have, allow="both", more=2)
    share = tables[:, 0].sum(axis=1) * 100
    whole = tables.sum(axis=(1, 2))
    good = within(tables, have, 0.34) & (share >= 45 * whole) & (share <= 55 * whole)
    request = PlanRequest(
        objective=objective, tolerance=0.34, allow="both", reference="original", **SHARED
    )
    plan = make_plan(counts_of(have), request)
    best, cost = best_of(tables[good], have, objective)
    assert (plan.optimum["value"], plan.cost) == (best, cost)
    assert plan.optimum["bound"] == best


@pytest.mark.slow
def test_each_objective_does_what_it_says_and_says_so():
    counts = eq.count("compas", sensitive_features=["sex", "race"], label="risk", count="n")
    how = {"tolerance": 0.1, "allow": "both", "reference": "original"}
    plans = {
        objective: eq.plan(counts, objective=objective, at_least_each={"sex, race": 1000}, **how)
        for objective in ("cost", *OBJECTIVES)
    }
    sizes = {name: plan.after().n for name, plan in plans.items()}
    assert sizes["rows"] == min(sizes.values()) == 4000
    assert plans["additions"].additions == 0
    assert plans["cost"].cost == min(plan.cost for plan in plans.values())
    assert plans["cost"].optimum is None
    changed = {n: len({str(c.group) for c in plan.moves}) for n, plan in plans.items()}
    assert changed["groups"] == min(changed.values())
    for name in OBJECTIVES:
        assert any("no plan for this request has fewer" in s for s in plans[name].explanation)
        again = eq.Plan.from_json(plans[name].to_json())
        assert again.to_dict() == plans[name].to_dict()


@pytest.mark.slow
def test_at_zero_tolerance_the_fewest_additions_delete_instead():
    counts = eq.count("compas", sensitive_features=["sex", "race"], label="risk", count="n")
    plan = eq.plan(counts, objective="additions", allow="both")
    assert plan.reached
    assert plan.additions <= len(plan.cells)  # rounding only
    rows = eq.plan(counts, objective="rows")
    assert rows.additions == eq.plan(counts).additions


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"objective": "rows", "tolerance": 0.1, "budget": 5}, "budget"),
        ({"objective": "groups"}, "above 0"),
        ({"objective": "rows", "allow": "both"}, "if rows may be deleted"),
        ({"objective": "speed"}, "'cost'"),
    ],
)
def test_what_an_objective_does_not_go_with_is_refused(options, words):
    with pytest.raises(InputError, match=words):
        eq.plan(counts_of(np.array([[3, 4], [2, 3]])), **options)


def test_a_frontier_has_no_objective():
    with pytest.raises(InputError, match="about the cost"):
        eq.frontier(counts_of(np.array([[3, 4], [2, 3]])), objective="rows")


@pytest.mark.parametrize(("labels", "fewest"), [("keep", 10), ("free", 6)])
def test_groups_that_stay_have_a_frequency_in_common(labels, fewest):
    counts = eq.count("adult", sensitive_features=["sex", "race"], label="income")
    plan = eq.plan(counts, tolerance=0.1, allow="both", labels=labels, objective="groups")
    assert plan.optimum == {"name": "groups", "value": fewest, "bound": fewest}
    assert plan.reached


@pytest.mark.slow
@settings(max_examples=10, deadline=None)
@given(
    have=st.lists(st.integers(1, 5), min_size=6, max_size=6).map(lambda n: np.reshape(n, (3, 2))),
    tolerance=st.sampled_from([0.1, 0.2, 0.34]),
)
def test_no_plan_changes_fewer_groups_than_the_bound(have, tolerance):
    tables = all_tables(have, more=2)
    good = within(tables, have, tolerance, reference="new")
    request = PlanRequest(objective="groups", tolerance=tolerance, allow="both", time_limit=6)
    plan = make_plan(counts_of(have), request, explain=False)
    if good.any():
        best, _ = best_of(tables[good], have, "groups")
        assert plan.optimum["bound"] <= best
