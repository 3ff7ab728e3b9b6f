"""Guesses of the smallest tolerance, and quick proofs that there is no plan."""

import math
from dataclasses import replace

import numpy as np
import pytest

import equipoise as eq
from equipoise.plans import guess
from equipoise.plans import tolerance as trials
from equipoise.plans.guess import Guess
from equipoise.plans.infeasibility import Infeasible
from equipoise.plans.judgement import off_by
from equipoise.plans.planner import make_plan
from equipoise.plans.problem import pose
from equipoise.plans.reach import any_plan
from equipoise.plans.request import PlanRequest
from equipoise.plans.solution import is_excluded


def drawn(seed, groups, labels, rows):
    rng = np.random.default_rng(seed)
    rates = rng.dirichlet(np.full(labels, 4.0), groups)
    have = rng.poisson(rng.gamma(2.0, rows / 2, groups)[:, None] * rates)
    have[:, 0] += 1
    have[0] += 1
    cells = {
        (f"g{g}", f"y{y}"): int(n) for g, line in enumerate(have) for y, n in enumerate(line) if n
    }
    return eq.Counts.from_mapping(cells, sensitive=["g"], label="y")


@pytest.mark.parametrize("needed", [0.12, 0.3, 0.47])
def test_guesses_close_in_on_the_tolerance_that_is_needed(needed):
    """Rows fall with the tolerance about as they do in tables."""
    counts = drawn(3, 12, 3, 300)
    problem = pose(counts, PlanRequest(tolerance=0.05, max_rows=counts.n + 200))
    guess = Guess(problem, 0.05, 0.8, 0.005)
    guess.saw(0.8, -200.0, fits=True)
    tried = 0
    while (trial := guess.next()) is not None and tried < 20:
        tried += 1
        rows = 200 * math.exp(6 * (needed - trial))
        guess.saw(trial, rows - 200, fits=rows <= 200)
    assert needed <= guess.high <= needed * 1.015
    assert tried <= 12


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("labels", ["keep", "free"])
def test_no_request_that_has_a_plan_is_excluded(seed, labels):
    counts = drawn(seed, 6, 2 + seed % 3, 40)
    plan = eq.plan(counts, tolerance=0.1, labels=labels, time_limit=0.4)  # any plan will do
    size = counts.n + plan.cost
    request = PlanRequest(tolerance=0.1, labels=labels, max_rows=int(size))
    problem = pose(counts, request)
    for boxes in (1, 4, 16):
        assert not is_excluded(problem, boxes=boxes)
    few = replace(request, max_rows=counts.n)
    if off_by(problem, problem.have, problem.base) > 0.1 and is_excluded(pose(counts, few)):
        with pytest.raises(Infeasible) as none:
            make_plan(counts, few, explain=False)
        assert none.value.proved


def test_rows_at_fixed_frequencies_are_found_by_moves_if_any_will_do():
    """The search for any plan begins without one, so no cost is low enough yet."""
    counts = drawn(1, 20, 4, 400)
    request = PlanRequest(
        tolerance=0.05, allow="both", reference="original", max_rows=counts.n - 50
    )
    problem = pose(counts, request)
    rows = any_plan(problem, 0.04).rows
    assert rows is not None
    assert rows.sum() <= counts.n - 50
    assert off_by(problem, rows, problem.base) <= 0.05


@pytest.mark.slow
def test_what_is_named_in_a_larger_table_helps_and_few_plans_are_tried(monkeypatch):
    counts = drawn(7, 20, 3, 400)
    request = PlanRequest(tolerance=0.05, max_rows=counts.n + 100)
    tried = []
    monkeypatch.setattr(trials, "any_plan", lambda *given: tried.append(given) or any_plan(*given))
    with pytest.raises(Infeasible) as none:
        make_plan(counts, request)
    assert len(tried) <= 14
    options = {r.option for r in none.value.relaxations}
    assert {"max_rows", "tolerance"} <= options
    for relaxation in none.value.relaxations:
        make_plan(counts, relaxation.apply(request), explain=False)


def test_a_tolerance_that_real_valued_rows_do_not_need_is_found_with_few_models(monkeypatch):
    problem = pose(drawn(1, 6, 3, 40), PlanRequest(tolerance=0.05))
    asked = []
    monkeypatch.setattr(guess, "fits_at", lambda *given: asked.append(given) or True)
    assert guess.needed_by_real_rows(problem, 0.0, 1.0) <= 1e-3
    assert len(asked) < 40
