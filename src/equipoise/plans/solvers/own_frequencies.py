"""Plans relative to the label frequencies of the repaired table, which depend on the plan."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise.plans.cells import UNLIMITED
from equipoise.plans.clock import end_after
from equipoise.plans.solvers.box import Box, allowed_box
from equipoise.plans.solvers.incumbent import Incumbent
from equipoise.plans.solvers.many_labels import search_many_labels
from equipoise.plans.solvers.overlap.own import boxes_exclude_plans, search_coupled
from equipoise.plans.solvers.separable import solve_separable
from equipoise.plans.solvers.two_labels import search_two_labels

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from equipoise.plans.cells import Cells, Real, Whole
    from equipoise.plans.problem import Problem


FINISHED = 120
"""Maximum number of cells of two labels for which linear programs finish what is left of the gap."""

FEW_ROWS, FEW_CELLS = 100, 24
"""Maximum numbers of rows and cells of tables that are solved in whole rows from the start."""

LAST = 0.04
"""Share of the usual effort for what is left of the gap of a small table."""

QUICK = 0.2
"""With less effort than this, a requested gap is not searched for until it is reached."""


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
    box = _of_whole_rows(allowed_box(problem, base), problem.cells)
    found = Incumbent(problem.request.solver_gap, enough, most, problem.cells.lowest_cost)
    for rows in (problem.have, *candidates):
        found.offer(problem, rows, box)
    if found.done:
        return found
    deadline = end_after(problem.request.time_limit)
    until = problem.request.gap is not None and enough is None and effort >= QUICK
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
    left = few or (enough is None and problem.have.size <= FINISHED)
    if (left or problem.cells.labels > 2) and not found.done:
        search_many_labels(problem, box, found, gap=found.gap, effort=asked, **how)
    small = not few and enough is None and problem.have.size <= FEW_CELLS
    if small and effort >= QUICK and not found.near(found.gap):
        search_coupled(problem, box, found, effort=LAST * min(effort, 1.0), **how)
    return _finished(problem, box, base, found)


def excludes_plans(problem: Problem, base: Real, *, boxes: int) -> bool:
    """Whether a few linear models prove that no plan keeps all limits."""
    box = _of_whole_rows(allowed_box(problem, base), problem.cells)
    deadline = end_after(problem.request.time_limit)
    return boxes_exclude_plans(problem, box, boxes=boxes, deadline=deadline)


def _finished(problem: Problem, box: Box, base: Real, found: Incumbent) -> Incumbent:
    """If nothing was found, fall back on a plan that is always valid."""
    if found.rows is None and found.bound < math.inf:
        _plan_surely(problem, box, base, found)
    found.bound = min(found.bound, found.cost)
    return found


def _of_whole_rows(box: Box, cells: Cells) -> Box:
    """A label that has rows has at least one of the rows that the table can have.

    Frequencies of one in a million are below what solvers tell from zero.
    """
    most = float(cells.most.sum(dtype=float))  # whole numbers would overflow in large tables
    if most >= UNLIMITED:
        return box
    least = np.where(box.low > 0, 1 / max(most, 1.0), 0.0)
    return Box(np.maximum(box.low, np.minimum(least, box.high)), box.high)


def _plan_surely(problem: Problem, box: Box, base: Real, found: Incumbent) -> None:
    """Plan at smaller and smaller tolerances around a centre; τ/(2+τ) always gives a valid plan."""
    tolerance = problem.request.tolerance
    sure = tolerance / (2 + tolerance) if problem.request.tolerance_on == "ub" else tolerance / 2
    for trial in (tolerance, (tolerance + sure) / 2, sure):
        solved = solve_separable(problem.cells, problem.band(box.clip(base), trial))
        if solved.feasible:
            found.offer(problem, solved.rows, box)
