"""Plans relative to the label frequencies of the repaired table, which depend on the plan."""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING, Any

from equipoise.plans.solvers.box import Box, allowed_box
from equipoise.plans.solvers.incumbent import Incumbent
from equipoise.plans.solvers.many_labels import search_many_labels
from equipoise.plans.solvers.overlap.own import search_coupled
from equipoise.plans.solvers.separable import solve_separable
from equipoise.plans.solvers.two_labels import search_two_labels

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from equipoise.plans.cells import Real, Whole
    from equipoise.plans.problem import Problem


FINISHED = 120
"""Maximum number of cells of two labels for which linear programs finish what is left of the gap."""

FEW_ROWS, FEW_CELLS = 500, 60
"""Maximum numbers of rows and cells of tables that are solved in whole rows from the start."""

QUICK = 0.2
"""With less effort than this, a requested gap is not searched for until it is reached."""


def solve_new(
    problem: Problem,
    base: Real,
    found: Incumbent,
    candidates: Iterable[Whole] = (),
    *,
    effort: float = 1.0,
    progress: Callable[[float], None] = lambda _: None,
) -> Incumbent:
    """Find a cheap plan relative to its own label frequencies, with a lower bound of the cost.

    The tolerance must be above zero. The label frequencies stay near ``base``, ``found`` is updated
    and says what the search is for, ``candidates`` are rows known to be feasible, and an ``effort``
    below 1 searches less.
    """
    box = allowed_box(problem, base)
    for rows in (problem.have, *candidates):
        found.offer(problem, rows, box)
    if found.done:
        return found
    deadline = time.monotonic() + problem.request.time_limit
    until = problem.request.gap is not None and found.enough is None and effort >= QUICK
    asked = math.inf if until else effort
    how: dict[str, Any] = {"deadline": deadline, "progress": progress}
    few = problem.have.sum() <= FEW_ROWS and problem.have.size <= FEW_CELLS
    if not problem.separable:
        search_coupled(problem, box, found, effort=asked, **how)
        return _finished(problem, box, base, found)
    if few:
        search_coupled(problem, box, found, effort=effort, **how)
    elif problem.cells.labels == 2:
        search_two_labels(problem, box, found, effort=effort, **how)
    left = few or (found.enough is None and problem.have.size <= FINISHED)
    if (left or problem.cells.labels > 2) and not found.done:
        search_many_labels(problem, box, found, gap=found.gap, effort=asked, **how)
    return _finished(problem, box, base, found)


def _finished(problem: Problem, box: Box, base: Real, found: Incumbent) -> Incumbent:
    """If nothing was found, fall back on a plan that is always valid."""
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
