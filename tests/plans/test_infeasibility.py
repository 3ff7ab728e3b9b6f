"""Requests that cannot be met: every change that is named does, and one row less does not."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import equipoise as eq
from equipoise.plans.infeasibility import Infeasible
from equipoise.plans.planner import make_plan
from equipoise.plans.problem import pose
from equipoise.plans.request import PlanRequest
from equipoise.plans.solution import solve
from strategies import SEX_AND_RACE as CELLS
from strategies import repairable

SCARCE = "sex=w, race=z, o=h"


@pytest.fixture
def counts():
    return eq.Counts.from_mapping(CELLS, sensitive=["sex", "race"], label="o")


def refusal(counts, request):
    with pytest.raises(Infeasible) as caught:
        make_plan(counts, request)
    error = caught.value
    assert error.exit_code == 1
    assert error.to_dict()["feasible"] is False
    assert len(error.to_dict()["explanation"]) == 1 + len(error.relaxations)
    return error


def feasible(counts, request):
    """Whether there is a plan, without the long way round by an explanation."""
    return solve(pose(counts, request)).rows is not None


def one_step_back(relaxation):
    """The value next to the one that would do, towards what was asked."""
    step = -1 if relaxation.needed > relaxation.asked else 1
    return relaxation.needed + step


def every_relaxation_is_the_smallest(counts, request):
    error = refusal(counts, request)
    assert error.relaxations
    for relaxation in error.relaxations:
        assert relaxation.sentence in str(error)
        assert feasible(counts, relaxation.apply(request)), relaxation
        if relaxation.option not in ("available", "at_least", "min_rows", "max_rows"):
            continue
        back = one_step_back(relaxation)
        short = relaxation.__class__(
            relaxation.option, relaxation.pattern, relaxation.asked, back, ""
        )
        assert not feasible(counts, short.apply(request)), relaxation
    return {(r.option, r.pattern): r.needed for r in error.relaxations}


ORIGINAL = {"reference": "original", "tolerance": 0.05}
CASES = {
    "available": {**ORIGINAL, "available": {SCARCE: 2}},
    "available to several cells": {**ORIGINAL, "available": {"sex=w": 3}},
    "available at zero": {"reference": "original", "available": {SCARCE: 2}},
    "available to several cells at zero": {"reference": "original", "available": {"o=h": 10}},
    "two that are scarce": {**ORIGINAL, "available": {SCARCE: 2, "sex=m, race=z, o=h": 500}},
    "delete and at least": {**ORIGINAL, "allow": "delete", "at_least": {"sex=w": 90}},
    "at least and available": {**ORIGINAL, "at_least": {SCARCE: 40}, "available": {SCARCE: 20}},
    "max rows": {**ORIGINAL, "max_rows": 262},
    "max rows at zero": {"reference": "original", "max_rows": 262},
    "min rows": {**ORIGINAL, "allow": "delete", "min_rows": 240},
    "nothing to delete": {**ORIGINAL, "allow": "both", "deletable": ("sex=m",), "max_rows": 90},
}


@pytest.mark.parametrize("name", CASES)
def test_what_is_named_would_do_and_one_row_less_would_not(counts, name):
    every_relaxation_is_the_smallest(counts, PlanRequest(**CASES[name]))


def test_the_tolerance_that_can_be_reached_is_named(counts):
    request = PlanRequest(**CASES["available"])
    needed = {r.option: r.needed for r in refusal(counts, request).relaxations}
    tolerance = needed["tolerance"]
    assert feasible(counts, request.but(tolerance=tolerance))
    assert not feasible(counts, request.but(tolerance=tolerance * 0.999 - 1e-4))
    assert needed["allow"] == "both"


@pytest.mark.slow
@settings(max_examples=10)
@given(
    repairable(shape=(2, 2), largest=30, empty=False),
    st.sampled_from([0.0, 0.05, 0.1]),
    st.integers(0, 3),
)
def test_scarce_rows(counts, tolerance, rows):
    request = PlanRequest(tolerance=tolerance, reference="original", available={"y=y0": rows})
    assume(not feasible(counts, request))
    needed = every_relaxation_is_the_smallest(counts, request)
    assert needed["available", "y=y0"] > rows


def holds_somewhere(cells, tolerance, scarce, rows):
    """Whether any table of up to 120 more rows a cell holds, with `rows` more of the scarce one."""
    several = np.arange(121)
    ranges = [[rows] if cell == scarce else several for cell in cells]
    table = [n + more for n, more in zip(cells.values(), np.ix_(*ranges), strict=True)]
    (mh, mn, wh, wn), old = table, sum(n for (_, y), n in cells.items() if y == "h")
    rate = (mh + wh) / (mh + mn + wh + wn)
    before = old / sum(cells.values())
    good = np.True_
    for group, own in ((mh / (mh + mn), rate), (wh / (wh + wn), rate), (rate, before)):
        off = np.maximum(np.abs(group / own - 1), np.abs((1 - group) / (1 - own) - 1))
        good = good & (off <= tolerance + 1e-12)
    return bool(good.any())


@pytest.mark.slow
def test_against_the_new_frequencies():
    """How near to the least a search comes depends on the time it has; below it is nothing."""
    cells = {("m", "h"): 160, ("m", "n"): 290, ("w", "h"): 40, ("w", "n"): 110}
    counts = eq.Counts.from_mapping(cells, sensitive=["sex"], label="o")
    request = PlanRequest(tolerance=0.05, available={"sex=w, o=h": 2})
    error = refusal(counts, request)
    scarce = error.relaxations[0]
    assert scarce.option == "available"
    assert feasible(counts, scarce.apply(request))
    least = next(n for n in range(99) if holds_somewhere(cells, 0.05, ("w", "h"), n))
    assert 2 < least <= scarce.needed <= 15  # 15 rows are what zero bias takes


def test_a_pool_that_lacks_rows(counts):
    pool = eq.Counts.from_mapping(
        {**dict.fromkeys(CELLS, 100), ("w", "z", "h"): 3}, sensitive=["sex", "race"], label="o"
    )
    request = PlanRequest(tolerance=0.05, reference="original", pool=pool)
    error = refusal(counts, request)
    without = next(r for r in error.relaxations if r.option == "pool")
    assert "3 of the" in without.sentence
    assert "sex=w, race=z" in without.sentence
    assert feasible(counts, without.apply(request))


def test_bounds_that_exclude_each_other_are_a_reason(counts):
    request = PlanRequest(**CASES["at least and available"])
    assert "must have at least 40 rows and can have at most 25" in str(refusal(counts, request))


def test_the_sentence_of_the_design(counts):
    """How many there are, how many are needed, and which tolerance can be reached."""
    error = refusal(counts, PlanRequest(**CASES["available"]))
    text = str(error)
    assert f"2 of the {error.relaxations[0].needed} rows of {SCARCE}" in text
    assert "can be reached" in text
    assert error.proved


def test_nothing_single_is_to_blame(counts):
    """Two cells lack rows: more of one alone does not do."""
    available = {SCARCE: 2, "sex=w, race=x, o=h": 0}
    error = refusal(counts, PlanRequest(**ORIGINAL, available=available))
    assert "available" not in {r.option for r in error.relaxations}


def test_extra_rows_do_not_hide_the_reason(counts):
    request = PlanRequest(reference="original", extra={"sex=w": 10}, available={SCARCE: 2})
    error = refusal(counts, request)
    for relaxation in error.relaxations:
        assert feasible(counts, relaxation.apply(request))
