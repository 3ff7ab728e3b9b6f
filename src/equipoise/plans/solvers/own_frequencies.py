"""Plans relative to the label frequencies of the repaired table, which depend on the plan."""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING

from equipoise.plans.solvers.box import Box, allowed_box
from equipoise.plans.solvers.incumbent import Incumbent
from equipoise.plans.solvers.separable import solve_separable
from equipoise.plans.solvers.two_labels import search_two_labels

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from equipoise.plans.cells import Real, Whole
    from equipoise.plans.problem import Problem


def solve_new(
    problem: Problem,
    base: Real,
    *,
    candidates: Iterable[Whole] = (),
    effort: float = 1.0,
    enough: float | None = None,
    most: float = math.inf,
    progress: Callable[[float], None] = lambda _: None,
) -> Incumbent:
    """Find a cheap plan relative to its own label frequencies, with a lower bound of the cost.

    The tolerance must be above zero. The label frequencies stay near ``base``, ``candidates`` are
    rows known to be feasible, and an ``effort`` below 1 searches less. With ``enough`` the search
    only decides whether there is a plan that costs at most that; it ends when every plan is proved to
    cost more than ``most``.
    """
    if not problem.separable or problem.cells.labels > 2:
        from equipoise.plans.solvers import centre

        return centre.solve_new(
            problem, base, candidates=candidates, effort=effort, enough=enough, progress=progress
        )
    box = allowed_box(problem, base)
    found = Incumbent(problem.request.solver_gap, enough, most, problem.cells.lowest_cost)
    for rows in (problem.have, *candidates):
        found.offer(problem, rows, box)
    if found.done:
        return found
    deadline = time.monotonic() + problem.request.time_limit
    search_two_labels(problem, box, found, effort=effort, deadline=deadline, progress=progress)
    if found.rows is None and found.bound < math.inf:
        _plan_surely(problem, box, base, found)
    found.bound = min(found.bound, found.cost)
    return found


def _plan_surely(problem: Problem, box: Box, base: Real, found: Incumbent) -> None:
    """Plan at smaller and smaller tolerances around a centre; τ/(2+τ) always gives a valid plan."""
    tolerance = problem.request.tolerance
    sure = tolerance / (2 + tolerance) if problem.request.tolerance_on == "ub" else tolerance / 2
    for trial in (tolerance, (tolerance + sure) / 2, sure):
        solved = solve_separable(problem.cells, problem.band(box.clip(base), trial))
        if solved.feasible:
            found.offer(problem, solved.rows, box)
