"""A gap that is asked for is reached, or the plan says what ended the search."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

import equipoise as eq
from equipoise.errors import InputError
from equipoise.plans.request import PlanRequest, request_from_dict
from strategies import SEX_AND_RACE, enumerated, exact, largest_bias, repairable, rows_of


@pytest.fixture(scope="module")
def compas():
    return eq.count("compas", sensitive_features=["sex", "race"], label="risk", count="n")


def certainty(plan):
    return next(s for s in plan.explanation if s.startswith("It costs"))


@pytest.mark.slow
@settings(max_examples=5, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    repairable(shape=(2,), largest=7),
    st.sampled_from((0.1, 0.2, 0.3, 0.5)),
    st.sampled_from(["keep", "free"]),
)
def test_without_a_gap_it_is_the_cheapest_of_all_tables(counts, tolerance, labels):
    best = enumerated(counts, tolerance, labels, 4)
    assume(best is not None)
    plan = eq.plan(counts, tolerance=tolerance, allow="both", labels=labels, gap=0)
    assert plan.reached
    assert largest_bias(rows_of(plan.after())) <= exact(tolerance)
    assert plan.bound <= best
    assert plan.stopped == "gap"
    assert plan.cost == plan.bound
    # The enumeration adds at most four rows to a cell; where the plan adds more, it is cheaper.
    if max(plan.add.rows, default=0) <= 4:
        assert plan.cost == best


@pytest.mark.slow
def test_the_gap_that_was_asked_for_is_reached(compas):
    usual = eq.plan(compas, tolerance=0.1)
    assert usual.stopped == "gap"
    assert 0.0005 < usual.gap <= 0.002
    assert "the search ends at 0.002" in certainty(usual)
    asked = eq.plan(compas, tolerance=0.1, gap=0.0005)
    assert asked.stopped == "gap"
    assert asked.gap <= 0.0005
    assert not asked.timed_out
    assert usual.bound <= asked.bound <= asked.cost <= usual.cost
    assert "the gap of 0.0005 is reached" in certainty(asked)
    assert eq.Plan.from_json(asked.to_json()).stopped == "gap"


@pytest.mark.slow
def test_the_time_limit_ends_it_and_is_named(compas):
    plan = eq.plan(compas, tolerance=0.1, gap=0, time_limit=0.02)
    assert plan.stopped == "time"
    assert plan.timed_out
    assert plan.gap > 0
    assert "the time limit of 0.02 seconds ended the search" in certainty(plan)
    assert f"a gap of {plan.gap:.2%}" in certainty(plan)


@pytest.mark.slow
@pytest.mark.parametrize(
    "options", [{"tolerance_on": "rate"}, {"max_rows": 250}, {"constrain": "marginals"}]
)
def test_a_gap_goes_with_the_other_options(options):
    counts = eq.Counts.from_mapping(SEX_AND_RACE, sensitive=["sex", "race"], label="o")
    how = {"tolerance": 0.05, "allow": "both", **options}
    usual, asked = eq.plan(counts, **how), eq.plan(counts, gap=0.02, **how)
    assert asked.reached
    assert asked.bound <= usual.cost
    assert asked.cost <= usual.cost
    assert asked.stopped == "gap"
    assert asked.gap <= 0.02


def test_what_is_no_gap():
    for gap in (-0.1, float("nan"), float("inf")):
        with pytest.raises(InputError, match="gap"):
            PlanRequest(gap=gap)
    assert request_from_dict(PlanRequest(gap=0.5).to_dict()).gap == 0.5
    assert "gap" not in PlanRequest().to_dict()
