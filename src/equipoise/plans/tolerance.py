"""The smallest tolerance that the limits of a request and a budget allow."""

from __future__ import annotations

import math
import time
from dataclasses import replace
from typing import TYPE_CHECKING

from equipoise.plans.clock import end_after
from equipoise.plans.guess import Guess
from equipoise.plans.judgement import drift, off_by
from equipoise.plans.reach import LITTLE_EFFORT, any_plan, is_small, share_of_work
from equipoise.plans.rounds import solve
from equipoise.plans.solution import Solution

if TYPE_CHECKING:
    from collections.abc import Callable

    from equipoise.plans.problem import Problem


WIDTH = 2e-3
"""Relative width of the bracket of tolerances after which only less than the best is tried."""

ROUGH_WIDTH = 5e-3
"""The same without a budget, where only three digits of the tolerance are told."""

EXACT_WIDTH = 1e-7
"""The same for groups that are planned one by one around fixed frequencies, which is quick."""

BELOW, ROUGHLY_BELOW = 1e-9, 1e-4
"""By how much less than the best is tried, as a share, with a budget and without."""

MOST_TRIALS = 20
"""Number of tolerances that are tried at most without a budget."""

NOTHING = 1e-4
"""What is left below this is not made less."""

SMALL_EFFORT, EFFORT = 0.19, 0.3
"""Shares of the usual work of a search, in a small table to the last row and in a larger one."""

ANYTHING = 1e6
"""A tolerance that every table is within."""


def least_tolerance(
    problem: Problem,
    budget: float = math.inf,
    *,
    unless: float = math.inf,
    progress: Callable[[float], None] = lambda _: None,
) -> tuple[float, Solution] | None:
    """Find the smallest tolerance that the limits and a budget allow, and its plan.

    By bisection; what a plan leaves is often less than the tolerance it was made for, and counts.
    In small tables less than the best is tried whenever a smaller tolerance failed, until there is no
    plan for that. None if there is no plan at any tolerance. The search stops when it is certain
    that nothing below ``unless`` is found, because another plan leaves as much.

    A larger budget never leaves more, unless time runs out: which tolerances are tried depends on
    the budget only through what it could pay for so far, and the plan at a tolerance does not depend
    on it. Two budgets take the same steps up to the first plan that only the larger one pays for.
    From there the larger one ends at or below that tolerance, and the smaller one above it.
    """
    asked = problem.request.tolerance
    end = end_after(problem.request.time_limit)
    # The reference is fixed as it is at the requested tolerance, which may be zero.
    settled = problem.request.but(reference=problem.reference, gap=_gap(problem))
    problem = replace(problem, request=settled)
    started = _first_affordable(problem, budget, end)
    if started is None:
        return None
    low, high, best = started
    exact = problem.separable and problem.reference == "original"
    width = EXACT_WIDTH if exact else ROUGH_WIDTH if math.isinf(budget) else WIDTH
    if math.isinf(budget) and problem.reference == "new" and not is_small(problem):
        return _by_guesses(problem, low, high, best, end, progress)
    start, late, small, failed = max(high - low, 1e-12), False, is_small(problem), False
    took = 0.0
    while low < min(unless, high) and high > max(asked, NOTHING):
        near = high - low <= width * max(high, 1e-3)
        below = small and (failed or near)
        if near and not below:
            break
        less = BELOW if math.isfinite(budget) else ROUGHLY_BELOW
        middle = max(high * (1 - less), low) if below else (low + high) / 2
        began = time.monotonic()
        late = began + took > end  # the next trial takes about as long as the last one
        if late:
            break
        found = _affordable(problem, middle, budget, end, last=below)
        took = time.monotonic() - began
        left = math.inf if found is None else what_is_left(problem, found)
        failed = found is None or asked < left < low * (1 - BELOW)
        if failed:
            low = middle  # second case: at the tolerance that it leaves, no plan was found
        else:
            assert found is not None  # noqa: S101 - that was a failure
            best, high = found, min(left, middle)
        if failed and below:
            break
        progress(min(1.0, math.log(start / max(high - low, 1e-300)) / math.log(1 / width)))
    return high, replace(best, timed_out=best.timed_out or late)


def _gap(problem: Problem) -> float | None:
    """In small tables plans are compared to the last row."""
    return 0.0 if is_small(problem) else problem.request.gap


def _first_affordable(
    problem: Problem, budget: float, end: float
) -> tuple[float, float, Solution] | None:
    """A tolerance that cannot be paid, what a plan that can be paid leaves, and that plan."""
    low = problem.request.tolerance
    # A little more than the present bias, so that rounding does not exclude the table as it is.
    trial = max(2 * low, off_by(problem, problem.have, problem.base) * (1 + BELOW), 1e-6)
    while trial < ANYTHING:
        found = _affordable(problem, trial, budget, end)
        if found is not None:
            return low, what_is_left(problem, found), found
        if low == problem.request.tolerance and _affordable(problem, ANYTHING, budget, end) is None:
            return None
        low, trial = trial, 4 * trial + 1e-3
    return None


def _affordable(
    problem: Problem, tolerance: float, budget: float, end: float, *, last: bool = False
) -> Solution | None:
    """The plan at a tolerance, if the budget pays for it."""
    found = _tried(problem, tolerance, budget, end, last=last)
    if found.rows is None or not pays(budget, problem.cells.total_cost(found.rows)):
        return None
    return found


def _tried(
    problem: Problem, tolerance: float, budget: float, end: float, *, last: bool = False
) -> Solution:
    """What is found at a tolerance; the ``last`` one is hardly less than one for which there is a plan."""
    # The clock is the last resort: what is answered depends on the work alone.
    left = max(end - time.monotonic(), 0.05)
    request = problem.request.widened(tolerance, time_limit=left)
    trial = replace(problem, request=request)
    if math.isinf(budget):
        little = LITTLE_EFFORT / (3 if last else 1)
        effort = little if is_small(problem) else EFFORT * share_of_work(problem)
        return any_plan(trial, effort)
    effort = SMALL_EFFORT if is_small(problem) else EFFORT
    return solve(trial, effort=effort, most=budget * (1 + 1e-12) + 1e-9)


def _by_guesses(
    problem: Problem,
    low: float,
    high: float,
    best: Solution,
    end: float,
    progress: Callable[[float], None],
) -> tuple[float, Solution]:
    """Find the smallest tolerance without a budget, with fewer plans than by bisection."""
    guess = Guess(problem, low, high, ROUGH_WIDTH)
    guess.saw(high, best.short, fits=True)
    for trial in range(MOST_TRIALS):
        if guess.high <= max(problem.request.tolerance, NOTHING) or time.monotonic() > end:
            break
        tolerance = guess.next()
        if tolerance is None:
            break
        found = _tried(problem, tolerance, math.inf, end)
        fits = found.rows is not None
        if fits:
            best, tolerance = found, min(what_is_left(problem, found), tolerance)
        guess.saw(tolerance, found.short, fits=fits)
        progress((trial + 1) / MOST_TRIALS)
    return guess.high, replace(best, timed_out=best.timed_out or time.monotonic() > end)


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
