"""The smallest tolerance that the limits of a request and a budget allow."""

from __future__ import annotations

import math
import time
from dataclasses import replace
from typing import TYPE_CHECKING

from equipoise.plans.frequencies import base_rates, drift, off_by, reference_of
from equipoise.plans.solution import Solution, solve

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

    By bisection; what a plan leaves is often less than it was asked for, and counts. None if
    no tolerance will do.

    With a larger budget what is left is never more, unless time runs out. Which tolerances are
    tried, and with which plans at hand, depends on the budget only through what could be paid so
    far. So two budgets go the same way up to the first plan that only the larger one pays: there
    the larger ends at or below that tolerance, and the smaller above it.

    Parameters
    ----------
    problem, budget
        What is planned for, and how much may be spent.
    unless
        Stop where it is certain that nothing below this is found: another plan leaves as much.
    progress
        Progress callback.
    """
    asked = problem.request.tolerance
    end = time.monotonic() + problem.request.time_limit
    each = max(problem.request.time_limit / 60, 0.2)
    reference = _settled(replace(problem, request=problem.request.but(time_limit=each)))
    started = _first_affordable(reference, budget)
    if started is None:
        return None
    low, high, best = started
    precise = reference.separable and reference.request.reference == "original"
    width = 1e-7 if precise else 2e-3
    start = max(high - low, 1e-12)
    late = False
    while high - low > width * max(high, 1e-3) and low < unless and not late:
        middle = (low + high) / 2
        found = _affordable(reference, middle, budget, best.rows)
        left = math.inf if found is None else what_is_left(reference, found)
        if found is None or asked < left <= low:
            low = middle  # the second is luck: asked for as much as it leaves, it was not found
        else:
            best, high = found, min(left, middle)
        progress(min(1.0, math.log(start / max(high - low, 1e-300)) / math.log(1 / width)))
        late = time.monotonic() > end
    return high, replace(best, timed_out=best.timed_out or late)


def _first_affordable(problem: Problem, budget: float) -> tuple[float, float, Solution] | None:
    """A tolerance that cannot be paid, what a plan that can be paid leaves, and that plan."""
    low = problem.request.tolerance
    trial = max(2 * low, _present(problem))
    for _ in range(12):
        found = _affordable(problem, trial, budget, None)
        if found is not None:
            return low, what_is_left(problem, found), found
        low, trial = trial, 4 * trial + 1e-3
    return None


def _settled(problem: Problem) -> Problem:
    """The problem with its reference named, as it would be at zero tolerance."""
    return replace(problem, request=problem.request.but(reference=reference_of(problem)))


def _present(problem: Problem) -> float:
    return max(off_by(problem, problem.have, base_rates(problem)), 1e-6)


def _affordable(
    problem: Problem, tolerance: float, budget: float, known: Whole | None
) -> Solution | None:
    trial = replace(problem, request=problem.request.widened(tolerance))
    candidates = () if known is None else (known,)
    found = solve(trial, candidates=candidates, effort=0.05, first=math.isinf(budget))
    if found.rows is None or problem.cells.cost(found.rows).sum() > budget * (1 + 1e-12) + 1e-9:
        return None
    return found


def what_is_left(problem: Problem, found: Solution) -> float:
    """What a plan leaves: the largest distance from a target, or move of labels that are kept."""
    assert found.rows is not None  # noqa: S101 - only plans that have rows leave something
    request = problem.request
    off = off_by(problem, found.rows, found.base)
    if request.labels == "free" or problem.special:
        return off
    return max(off, drift(found.rows, found.base, request.tolerance_on))
