"""The frontier: at every tolerance what a plan costs there, and never rising."""

from __future__ import annotations

import csv
import io
import itertools
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import equipoise as eq
from equipoise.errors import InputError
from strategies import SEX_AND_RACE as CELLS
from strategies import repairable

TOLERANCES = (0.02, 0.05, 0.1, 0.2, 0.4)


@pytest.fixture
def counts():
    return eq.Counts.from_mapping(CELLS, sensitive=["sex", "race"], label="o")


@settings(max_examples=15)
@given(
    repairable(shape=(2, 2), labels=3, largest=50),
    st.sampled_from(["ub", "rate"]),
    st.sampled_from(["add", "both"]),
    st.sampled_from([1, 0.5, 3]),
)
def test_each_point_is_the_plan_at_its_tolerance(counts, on, allow, cost):
    options = {"tolerance_on": on, "allow": allow, "costs": {"y=y0": cost}}
    front = eq.frontier(counts, tolerances=TOLERANCES, **options)
    assert front.exact
    assert front.reference == "original"
    assert [p.tolerance for p in front.points] == list(TOLERANCES)
    for point in front.points:
        plan = eq.plan(counts, tolerance=point.tolerance, reference="original", **options)
        assert point.cost == pytest.approx(plan.cost, abs=1e-9)
        assert point.bound == pytest.approx(point.cost, abs=1e-9)
        assert (point.additions, point.deletions) == (plan.additions, plan.deletions)
        assert point.reached == pytest.approx(plan.certificate.off_after, abs=1e-12)
        assert point.reached <= point.tolerance + 1e-12
    costs = [p.cost for p in front.points]
    assert all(a >= b - 1e-9 for a, b in itertools.pairwise(costs))


OPTIONS = {
    "coupled": {"max_rows": 255, "allow": "both"},
    "marginals": {"constrain": "marginals", "allow": "both"},
    "available": {"available": {"sex=w, race=z, o=h": 9}},
    "targets": {"target": {"sex=w, race=x": {"h": 0.9}}, "allow": "both"},
    "labels given": {"labels": {"h": 0.3, "n": 0.7}, "allow": "both"},
    "label drift": {"label_drift": 0.001, "allow": "both"},
}


@pytest.mark.parametrize("name", OPTIONS)
def test_limits_hold_on_the_frontier_as_well(counts, name):
    front = eq.frontier(counts, tolerances=[0.05, 0.2], **OPTIONS[name])
    for point in front.points:
        try:
            plan = eq.plan(counts, tolerance=point.tolerance, reference="original", **OPTIONS[name])
        except eq.Infeasible:
            assert point.to_dict()["cost"] is None
        else:
            assert point.cost == pytest.approx(plan.cost)


def test_a_tolerance_without_a_plan(counts):
    front = eq.frontier(counts, tolerances=[0.01, 0.6], available={"o=h": 1})
    first, last = front.points
    assert first.to_dict()["cost"] is None
    assert last.cost >= 0
    assert "no plan" in front.text()
    json.loads(front.to_json())


@pytest.mark.slow
@settings(max_examples=8)
@given(repairable(shape=(2, 2), labels=2, largest=50, empty=False))
def test_budgets_buy_what_they_cost(counts):
    budgets = [1, 5, 20, 80]
    front = eq.frontier(counts, tolerances=[0.1], budget=budgets, allow="both")
    bought = [b.tolerance for b in front.budgets]
    assert bought == sorted(bought, reverse=True)
    for b in front.budgets:
        assert b.cost <= b.budget
        options = {"reference": "original", "allow": "both"}
        if b.tolerance > 1e-6:
            at = eq.plan(counts, tolerance=b.tolerance * (1 + 1e-9), **options)
            assert at.cost <= b.budget
            less = eq.plan(counts, tolerance=b.tolerance * (1 - 1e-4), **options)
            assert less.cost > b.budget


def test_points_reach_from_near_zero_to_the_present_bias(counts):
    front = eq.frontier(counts, points=7, allow="both")
    tolerances = [p.tolerance for p in front.points]
    assert len(tolerances) == 7
    assert tolerances == sorted(set(tolerances))
    assert front.points[-1].cost == 0
    assert tolerances[-1] >= front.now
    costs = [p.cost for p in front.points]
    assert costs == sorted(costs, reverse=True)


@pytest.mark.slow
def test_against_the_new_frequencies(counts):
    front = eq.frontier(
        counts, tolerances=[0.1, 0.3], allow="both", reference="new", time_limit=0.3
    )
    assert front.reference == "new"
    assert all(p.bound <= p.cost for p in front.points)
    assert front.points[0].cost >= front.points[1].cost


def test_csv_and_json_say_the_same(counts):
    front = eq.frontier(counts, tolerances=[0.05, 0.2], budget=10)
    rows = list(csv.DictReader(io.StringIO(front.to_csv())))
    data = json.loads(front.to_json())
    assert [float(r["cost"]) for r in rows] == [p["cost"] for p in data["points"]]
    assert data["budgets"][0]["budget"] == 10
    assert data["exact"] is True


@pytest.mark.parametrize(
    "options",
    [
        {"tolerances": [-0.1]},
        {"tolerances": [0]},
        {"tolerances": [float("nan")]},
        {"tolerances": [float("inf")]},
        {"tolerances": []},
        {"points": 1},
        {"budget": -1},
        {"budget": float("nan")},
        {"allow": "none"},
    ],
)
def test_what_is_no_frontier(counts, options):
    with pytest.raises(InputError):
        eq.frontier(counts, **options)


@pytest.mark.slow
def test_fifty_points_against_the_new_frequencies():
    """Costs never rise, each has a bound, and both are within half a percent."""
    options = {"sensitive_features": ["sex", "race"], "label": "income", "reference": "new"}
    front = eq.frontier("adult", labels="free", allow="both", **options)
    assert len(front.points) == 50
    costs = [p.cost for p in front.points]
    assert costs == sorted(costs, reverse=True)
    for point in front.points:
        assert point.reached <= point.tolerance * (1 + 1e-9)
        assert 0 <= point.cost - point.bound <= 0.005 * point.cost + 1e-9
