"""Trials: a problem with only those limits that its plan would break without them.

A limit that excludes nothing of a plan so changes nothing of it, neither its rows nor its cost.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Protocol, TypeVar

from equipoise.plans.judgement import keeps_limits

if TYPE_CHECKING:
    from collections.abc import Callable

    from equipoise.plans.cells import Whole
    from equipoise.plans.problem import Problem


class HasRows(Protocol):
    """The outcome of a trial."""

    @property
    def rows(self) -> Whole | None:
        """The rows of each cell after the repair; None if there is no plan."""


Outcome = TypeVar("Outcome", bound=HasRows)


def least_limited(problem: Problem, solve: Callable[[Problem], Outcome]) -> Outcome:
    """Solve without limits on rows and label frequencies, then with those that the plan breaks.

    Where a trial has no plan, the last one has all limits and decides.
    """
    unlimited = problem.unlimited()
    if unlimited.cells.bounded_as(problem.cells):
        unlimited = replace(unlimited, cells=problem.cells)
    trial = unlimited if problem.limited else problem
    while True:
        found = solve(trial)
        if _has_all_limits(trial, problem):
            return found
        if found.rows is not None and keeps_limits(problem, found.rows):
            return found
        trial = problem if found.rows is None else _joined(problem, unlimited, trial, found.rows)


def _has_all_limits(trial: Problem, problem: Problem) -> bool:
    limited = trial.cells is problem.cells and len(trial.coupling) == len(problem.coupling)
    return limited and trial.request.label_drift == problem.request.label_drift


def _joined(problem: Problem, unlimited: Problem, trial: Problem, rows: Whole) -> Problem:
    """A trial with more of the limits that its plan breaks: one kind at a time, cells first.

    Limits of another kind that are broken as well may hold once these do.
    """
    fits = problem.cells.contain(rows)
    if not fits and trial.cells is problem.cells:
        return problem  # the solver was not exact
    bounded = trial.cells is problem.cells or not fits
    coupling = tuple(
        limit
        for limit in problem.coupling
        if limit in trial.coupling or (fits and problem.slack(limit, rows) < 0)
    )
    drifts = trial.request.label_drift is not None
    if fits and len(coupling) == len(trial.coupling):
        if drifts or problem.request.label_drift is None:
            return problem  # it breaks a limit that it has: the solver was not exact
        drifts = True
    return replace(
        problem,
        cells=problem.cells if bounded else unlimited.cells,
        coupling=coupling,
        request=problem.request if drifts else problem.request.but(label_drift=None),
    )
