"""Solve a problem by the method that fits it."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, TypeAlias

from equipoise.plans.clock import end_after
from equipoise.plans.judgement import within_tolerance
from equipoise.plans.solvers.box import Box, allowed_box
from equipoise.plans.solvers.incumbent import Incumbent
from equipoise.plans.solvers.multiples import solve_exactly
from equipoise.plans.solvers.overlap.fixed import solve_fixed
from equipoise.plans.solvers.own_frequencies import excludes_plans, solve_new
from equipoise.plans.solvers.separable import solve_separable
from equipoise.plans.solvers.zero import solve_zero
from equipoise.plans.ties import settle_ties
from equipoise.plans.trials import least_limited

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from equipoise.plans.cells import Real, Whole
    from equipoise.plans.problem import Problem
    from equipoise.plans.solvers.incumbent import Stopped
    from equipoise.plans.solvers.labels import LabelChoice

ANY_PLAN = 1e6
"""A gap at which a solver takes the first plan it finds."""

SMALL, FINE = 100, 1e-4
"""Number of cells up to which plans at fixed label frequencies are searched for to a finer gap."""

CHECKED = 400
"""Maximum number of cells of tables for which limits are first tried on a linear model."""

FEW = 4
"""Number of such models where label frequencies are free."""

Method: TypeAlias = Literal["closed form", "separated", "solver", "centre"]


@dataclass(frozen=True, eq=False)
class Solution:
    """The rows of each cell after the repair, with a lower bound of the cost of any plan."""

    rows: Whole | None  # None if no plan was found
    bound: float  # infinite if there is proved to be no plan
    method: Method
    base: Real  # the label frequencies the plan was made for
    timed_out: bool = False
    stopped: Stopped | None = None
    sizes: Real | None = None  # of each finest group before rounding, at zero tolerance
    held: Real | None = None  # the same of the judged groups, the coarser ones last
    short: float = 0.0  # rows that limits lack, if there is no plan; below zero: that they leave
    parts: Whole | None = None  # rows of each label that each group is a multiple of, without bias
    chosen: LabelChoice | None = None  # if labels were free at zero tolerance
    inside: float | None = None  # bound of plans that keep a rule in the way that was searched for
    tolerance: float = 0.0  # the one the plan was made for, which a budget may have raised


def solve(
    problem: Problem,
    *,
    candidates: Iterable[Whole] = (),
    effort: float = 1.0,
    enough: float | None = None,
    most: float = math.inf,
    at_once: bool = False,
    progress: Callable[[float], None] = lambda _: None,
) -> Solution:
    """Find the cheapest plan by the method that fits the problem.

    With ``enough`` a search only decides whether a plan costs at most that; infinite: whether
    there is one. Otherwise limits that exclude nothing of the plan do not change it. A search also
    ends when every plan is proved to cost more than ``most``. With ``at_once`` all limits are held
    from the start.
    """
    known, end = tuple(candidates), end_after(problem.request.time_limit)

    def trial(posed: Problem) -> Solution:
        left = max(end - time.monotonic(), problem.request.time_limit / 10)
        hurried = replace(posed, request=posed.request.but(time_limit=left))
        return _solve_or_any(hurried, known, effort, progress, enough, most)

    decides = enough is not None and problem.request.tolerance
    found = trial(problem) if at_once or decides else least_limited(problem, trial)
    return replace(found, tolerance=problem.request.tolerance)


def is_excluded(problem: Problem, *, boxes: int = 1) -> bool:
    """Whether limits exclude every plan, as far as a few linear models prove that."""
    if (problem.cells.least > problem.cells.most).any():
        return True
    if not problem.limited or not problem.request.tolerance or problem.reference != "new":
        return False
    small = problem.have.size <= CHECKED
    return small and excludes_plans(problem, problem.base, boxes=boxes)


def _solve_or_any(
    problem: Problem,
    candidates: tuple[Whole, ...],
    effort: float,
    progress: Callable[[float], None],
    enough: float | None,
    most: float,
) -> Solution:
    found = _solve(problem, candidates, effort, progress, enough, most)
    again = problem.request.tolerance and enough is None  # at zero tolerance no gap ends a search
    if found.rows is None and found.bound < most and not found.timed_out and again:
        any_plan = replace(problem, request=problem.request.but(gap=ANY_PLAN))
        other = _solve(any_plan, candidates, effort, progress, math.inf)
        found = replace(found, rows=other.rows, timed_out=other.timed_out)
    settles = again and effort >= 1 and problem.ruled is None and not found.timed_out
    if found.rows is not None and settles:
        new = problem.reference == "new"
        box = allowed_box(problem, problem.base) if new else label_balance(problem, problem.base)
        found = replace(found, rows=settle_ties(problem, found.rows, box))
    return found


def _solve(
    problem: Problem,
    candidates: tuple[Whole, ...],
    effort: float,
    progress: Callable[[float], None],
    enough: float | None,
    most: float = math.inf,
) -> Solution:
    base = problem.base
    if (problem.cells.least > problem.cells.most).any():
        return Solution(None, math.inf, "separated", base)
    if problem.request.exact:
        return _exactly(problem)
    if not problem.request.tolerance:
        return _zero(problem, effort)
    if problem.reference == "new":
        found = solve_new(
            problem,
            base,
            candidates=candidates,
            effort=effort,
            enough=enough,
            most=most,
            progress=progress,
        )
        return Solution(found.rows, found.bound, "centre", base, found.timed_out, found.stopped)
    if problem.separable and label_balance(problem, base) is None:
        return _separated(problem, base, progress)
    return _overlapping(problem, base, candidates, effort, progress, enough, most)


def _separated(problem: Problem, base: Real, progress: Callable[[float], None]) -> Solution:
    # Floats cannot resolve the edge of a band: only if the generous reading fails, use the strict one.
    for strict in (False, True):
        found = solve_separable(problem.cells, problem.band(base), strict=strict, progress=progress)
        if not found.feasible:
            return Solution(None, math.inf, "separated", base)
        if within_tolerance(problem, found.rows, base):
            break
    return Solution(found.rows, found.cost, "separated", base)


def _overlapping(
    problem: Problem,
    base: Real,
    candidates: tuple[Whole, ...],
    effort: float,
    progress: Callable[[float], None],
    enough: float | None,
    most: float,
) -> Solution:
    """Plan for groups that depend on each other, at fixed label frequencies."""
    gap = problem.request.solver_gap
    if problem.request.gap is None and problem.have.size <= SMALL:
        gap = FINE
    sought = Incumbent(gap, enough, most, problem.cells.lowest_cost)
    found = solve_fixed(
        problem,
        base,
        label_balance(problem, base),
        sought,
        candidates=candidates,
        deadline=end_after(problem.request.time_limit),
        effort=math.inf if problem.request.gap is not None and enough is None else effort,
        progress=progress,
    )
    return Solution(found.rows, found.bound, "solver", base, found.timed_out)


def label_balance(problem: Problem, base: Real) -> Box | None:
    """The range for the resulting label frequencies, unless the other constraints imply it."""
    request = problem.request
    if not problem.may_drift or (problem.special and request.label_drift is None):
        return None
    return allowed_box(problem, base)


def _zero(problem: Problem, effort: float) -> Solution:
    """Solve for zero bias: exact sizes, rounded to whole rows."""
    found = solve_zero(problem, effort)
    method: Method = "closed form" if found.alone else "solver"
    late = found.timed_out
    solution = Solution(found.rows, found.bound, method, found.base, late, chosen=found.chosen)
    if found.exact is None:
        return solution
    exact = found.exact
    return replace(solution, sizes=exact.rows.sum(axis=1), held=exact.sizes, short=exact.short)


def _exactly(problem: Problem) -> Solution:
    """Solve for no bias at all: whole multiples of the same numbers of each label."""
    found = solve_exactly(problem)
    method: Method = "closed form" if found.alone else "solver"
    base = problem.base if found.chosen is None else found.base
    solution = Solution(found.rows, found.bound, method, base, chosen=found.chosen)
    return replace(solution, parts=found.parts)
