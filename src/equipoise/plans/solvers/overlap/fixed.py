"""Plans for overlapping groups against fixed label frequencies."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from equipoise.plans.cells import Band, Edges
from equipoise.plans.judgement import within_tolerance
from equipoise.plans.solvers.incumbent import CLOSED, Incumbent
from equipoise.plans.solvers.overlap.groups import Groups, cuts_at
from equipoise.plans.solvers.overlap.moves import walk_from
from equipoise.plans.solvers.overlap.relaxation import ChangeModel
from equipoise.plans.solvers.overlap.whole import most_cells, solve_whole
from equipoise.plans.solvers.separable import granularity, solve_separable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from equipoise.plans.cells import Real, Whole
    from equipoise.plans.problem import Problem
    from equipoise.plans.solvers.box import Box
    from equipoise.plans.solvers.overlap.relaxation import RelaxedChanges

MARGINS = (0.0, 1e-6)
"""Margins in rows: with the second, what floats allow is within the tolerance in fractions, too."""


def solve_fixed(
    problem: Problem,
    base: Real,
    balance: Box | None,
    found: Incumbent,
    *,
    candidates: Iterable[Whole] = (),
    deadline: float,
    effort: float = 1.0,
    progress: Callable[[float], None] = lambda _: None,
) -> Incumbent:
    """Find cheap whole rows whose groups are within the limits around ``base``, and a bound.

    The label frequencies of the table must lie in ``balance``, if given. ``found`` is updated.
    With infinite ``effort`` only the gap or the deadline ends the search.
    """
    search = _Fixed(problem, base, balance, found, deadline, effort)
    for rows in (problem.have, separated(problem, base, problem.request.tolerance), *candidates):
        search.offer(rows)
    return search.run(progress)


def separated(problem: Problem, base: Real, tolerance: float) -> Whole | None:
    """Rows with every finest group repaired on its own, which repairs all others as well.

    They are dear, and there at once.
    """
    if not problem.coarse or problem.special:
        return None
    every = Edges.around(np.ones(problem.have.shape), tolerance, problem.request.tolerance_on)
    band = every.at(base)
    solved = solve_separable(problem.cells, Band(band.low, np.minimum(band.high, 1.0)))
    return solved.rows if solved.feasible else None


class _Fixed:
    def __init__(
        self,
        problem: Problem,
        base: Real,
        balance: Box | None,
        found: Incumbent,
        deadline: float,
        effort: float,
    ) -> None:
        self.problem, self.base, self.balance, self.found = problem, base, balance, found
        self.gap, self.deadline, self.effort = max(found.gap, CLOSED), deadline, effort
        self.groups = Groups.of(problem)
        self.cuts = cuts_at(self.groups.edges, base)
        self.step = cost_step(problem)

    def run(self, progress: Callable[[float], None]) -> Incumbent:
        found, problem = self.found, self.problem
        if found.done:
            return found
        relaxation = ChangeModel(problem, self.groups)
        relaxation.deadline = self.deadline
        least = self.groups.alone(problem, self.groups.band(self.base, self.base)).costs
        relaxed = relaxation.solve(self.cuts, self.balance, least=least)
        found.bound = max(rounded_up(relaxed.bound, self.step), found.lowest)
        progress(0.5)
        if found.bound == math.inf:
            found.bound = found.cost
            return found
        if found.settled:
            return found
        self.walk(relaxed)
        progress(0.8)
        if problem.have.size <= most_cells(self.effort) and not found.timed_out:
            self.finish()
        found.timed_out &= not found.near(self.gap)
        return found

    def walk(self, start: RelaxedChanges) -> None:
        """Make whole rows of real-valued ones."""
        table = None
        if self.balance is not None:
            table = Band(self.balance.low[None], self.balance.high[None])
        walk = walk_from(
            self.problem,
            self.groups,
            self.groups.band(self.base, self.base),
            start,
            table=table,
            accepts=self.accepts,
            deadline=self.deadline,
            effort=self.effort,
            enough=self.found.sufficient,
        )
        self.offer(walk.best)
        self.found.timed_out |= walk.late

    def finish(self) -> None:
        """Solve a small problem in whole rows."""
        found = self.found
        for margin in MARGINS if not found.done else ():
            solved = solve_whole(
                self.problem,
                self.groups,
                self.cuts,
                self.balance,
                gap=self.gap,
                deadline=self.deadline,
                start=found.rows,
                cheaper=found.cost,
                inside=margin,
                effort=self.effort,
            )
            found.timed_out |= solved.timed_out
            if not margin:  # with a margin the model is narrower, so its bound does not count
                found.bound = max(found.bound, rounded_up(solved.bound, self.step))
            before, rows = found.cost, solved.rows
            self.offer(rows)
            if rows is None or found.cost < before:
                break
            if self.problem.cells.total_cost(rows) >= before - 1e-9:
                break
        found.bound = min(found.bound, found.cost)

    def offer(self, rows: Whole | None) -> None:
        """Keep rows that hold everything and cost less."""
        if rows is None:
            return
        cost = self.problem.cells.total_cost(rows)
        if cost < self.found.cost - 1e-9 and self.accepts(rows):
            self.found.rows, self.found.cost = rows.copy(), cost

    def accepts(self, rows: Whole) -> bool:
        """Whether rows hold every limit, in whole numbers and fractions."""
        if not rows.sum() or not self.problem.holds(rows):
            return False
        if self.balance is not None:
            shares = rows.sum(axis=0) / rows.sum()
            low, high = self.balance.low - 1e-12, self.balance.high + 1e-12
            if ((shares < low) | (shares > high)).any():
                return False
        return within_tolerance(self.problem, rows, self.base)


def cost_step(problem: Problem) -> float | None:
    """The largest number that all costs are multiples of, if there is one."""
    cells = problem.cells
    return granularity(np.concatenate([cells.add, cells.drop], axis=1))


def rounded_up(bound: float, step: float | None) -> float:
    """Round a bound up to the next possible cost, if costs are multiples of a step."""
    if not math.isfinite(bound):
        return bound
    return math.ceil(bound / step - 1e-5) * step if step else bound - 1e-9
