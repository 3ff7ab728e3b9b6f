"""The smallest tolerance that the limits of a request and a budget allow."""

from __future__ import annotations

import math
import time
from dataclasses import replace
from typing import TYPE_CHECKING

from equipoise.plans.judgement import drift, off_by
from equipoise.plans.rounds import solve
from equipoise.plans.solution import Solution

if TYPE_CHECKING:
    from collections.abc import Callable

    from equipoise.plans.cells import Whole
    from equipoise.plans.problem import Problem


def least_tolerance(
    problem: Problem,
    budget: float = math.inf,
    *,
    unless: float = math.inf,
    progress: Callable[[float], None] = lambda _: None,
) -> tuple[float, Solution] | None:
    """Find the smallest tolerance that the limits and a budget allow, and its plan.

    By bisection; what a plan leaves is often less than the tolerance it was made for, and counts.
    None if there is no plan at any tolerance. The search stops when it is certain that nothing
    below ``unless`` is found, because another plan leaves as much.

    A larger budget never leaves more, unless time runs out: which tolerances are tried, and with
    which known plans, depends on the budget only through what it could pay for so far. Two budgets
    take the same steps up to the first plan that only the larger one pays for. From there the
    larger one ends at or below that tolerance, and the smaller one above it.
    """
    asked = problem.request.tolerance
    end = time.monotonic() + problem.request.time_limit
    each = max(problem.request.time_limit / 60, 0.2)
    # The reference is fixed as it is at the requested tolerance, which may be zero.
    settled = problem.request.but(time_limit=each, reference=problem.reference)
    problem = replace(problem, request=settled)
    started = _first_affordable(problem, budget)
    if started is None:
        return None
    low, high, best = started
    # Only separated plans are exact; a search for a centre is too rough for more digits.
    width = 1e-7 if problem.separable and problem.reference == "original" else 2e-3
    start = max(high - low, 1e-12)
    late = False
    while high - low > width * max(high, 1e-3) and low < unless and not late:
        middle = (low + high) / 2
        found = _affordable(problem, middle, budget, best.rows)
        left = math.inf if found is None else what_is_left(problem, found)
        if found is None or asked < left <= low:
            low = middle  # second case: at the tolerance that it leaves, no plan was found
        else:
            best, high = found, min(left, middle)
        progress(min(1.0, math.log(start / max(high - low, 1e-300)) / math.log(1 / width)))
        late = time.monotonic() > end
    return high, replace(best, timed_out=best.timed_out or late)


def _first_affordable(problem: Problem, budget: float) -> tuple[float, float, Solution] | None:
    """A tolerance that cannot be paid, what a plan that can be paid leaves, and that plan."""
    low = problem.request.tolerance
    trial = max(2 * low, off_by(problem, problem.have, problem.base), 1e-6)
    for _ in range(12):  # up to millions of times the present bias
        found = _affordable(problem, trial, budget, None)
        if found is not None:
            return low, what_is_left(problem, found), found
        low, trial = trial, 4 * trial + 1e-3
    return None


def _affordable(
    problem: Problem, tolerance: float, budget: float, known: Whole | None
) -> Solution | None:
    trial = replace(problem, request=problem.request.widened(tolerance))
    candidates = () if known is None else (known,)
    found = solve(trial, candidates=candidates, effort=0.05, enough=budget)
    if found.rows is None or not pays(budget, problem.cells.total_cost(found.rows)):
        return None
    return found


def pays(budget: float, cost: float) -> bool:
    """Whether a budget pays for a cost, up to the rounding of sums of costs."""
    return cost <= budget * (1 + 1e-12) + 1e-9


def what_is_left(problem: Problem, found: Solution) -> float:
    """What a plan leaves: the largest distance from a target, or move of labels that are kept."""
    assert found.rows is not None  # noqa: S101 - only plans that have rows leave something
    request = problem.request
    off = off_by(problem, found.rows, found.base)
    if request.labels == "free" or problem.special:
        return off
    return max(off, drift(found.rows, found.base, request.tolerance_on))
