"""What ends a search: a plan that is cheap enough, and never the lack of one."""

from __future__ import annotations

import math

import numpy as np
import pytest

import equipoise as eq
from equipoise.plans.problem import pose
from equipoise.plans.request import PlanRequest
from equipoise.plans.solution import solve
from equipoise.plans.solvers.incumbent import Incumbent


def test_any_plan_is_enough_but_there_must_be_one():
    assert not Incumbent(enough=math.inf).done
    assert Incumbent(enough=math.inf, rows=np.ones((1, 2)), cost=5.0).done
    assert Incumbent(enough=math.inf, lowest=math.inf).done  # the bound begins at the lowest cost
    assert Incumbent(enough=4.0, lowest=4.5).done
    assert not Incumbent(enough=4.0, rows=np.ones((1, 2)), cost=5.0).done


@pytest.mark.parametrize("most", [None, 4, 6])
def test_a_search_for_any_plan_finds_one(most):
    cells = {("m", "n"): 2, ("m", "y"): 3, ("w", "n"): 4, ("w", "y"): 4}
    counts = eq.Counts.from_mapping(cells, sensitive=["sex"], label="hired")
    problem = pose(counts, PlanRequest(tolerance=0.1, allow="both", max_rows=most))
    found = solve(problem, enough=math.inf)
    assert found.rows is not None
    assert problem.holds(found.rows)
