"""Roundings of the exact plan for zero bias: whole rows, less than a row off in every judged label."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise.plans.clock import seconds_left
from equipoise.plans.judgement import exact_rows, keeps_drift, off_by, within_a_row
from equipoise.plans.solvers.closed_form import whole_rows
from equipoise.plans.solvers.program import Program, Undecided
from equipoise.plans.solvers.sizes import holds_drift, is_balanced

if TYPE_CHECKING:
    from equipoise.options.plan import Rounding
    from equipoise.plans.cells import Real, Whole
    from equipoise.plans.problem import Problem
    from equipoise.plans.solvers.sizes import Exact

LEAST_UB_FIRST = 1e-3
"""What a |UB| of 1 counts among changes of rounding, each of which counts 1."""


def is_plan(problem: Problem, rows: Whole, base: Real, exact: Exact) -> bool:
    """Whether whole rows are a rounding of the exact plan that keeps every limit."""
    near = within_a_row(problem, rows, base, exact.sizes)
    return near and problem.holds(rows) and keeps_frequencies(problem, rows, base)


def keeps_frequencies(problem: Problem, rows: Whole, base: Real) -> bool:
    """Whether the label frequencies are where a request holds them, up to rounding."""
    n, totals = float(rows.sum()), rows.sum(axis=0)
    if is_balanced(problem) and (np.abs(totals - base * n) > len(rows) + 1).any():
        return False
    return keeps_drift(problem, rows)


def rounded(problem: Problem, base: Real, exact: Exact) -> Whole | None:
    """Round the exact plan as the request says; None if no rounding keeps the limits.

    If the rounding breaks a limit, the fewest labels are rounded the other way.
    """
    wanted = problem.request.rounding
    ways: tuple[Rounding, ...] = ("optimal", "nearest") if wanted == "optimal" else (wanted,)
    tried = sorted(
        (_round(problem, base, exact, way) for way in ways),
        key=lambda rows: (off_by(problem, rows, base), int(rows.sum())),
    )
    for rows in tried:
        if is_plan(problem, rows, base, exact):
            return rows
    mended = _Rounding(problem, base, exact, tried[0]).mend()
    if mended is not None and not is_plan(problem, mended, base, exact):
        raise Undecided  # the solver was not exact
    return mended


def _round(problem: Problem, base: Real, exact: Exact, way: Rounding) -> Whole:
    cells, judged = problem.cells, problem.judged
    rows = np.floor(exact.rows) if way == "floor" else np.floor(exact.rows + 0.5)
    rows = np.clip(rows, cells.least, cells.most).astype(np.int64)
    targets = (problem.ratios * base)[judged]
    rows[judged] = whole_rows(cells.take(judged), targets, exact.sizes[: judged.sum()], way)
    return rows


class _Rounding:
    """All roundings of an exact plan that keep the limits, as a program in whole numbers."""

    def __init__(self, problem: Problem, base: Real, exact: Exact, rows: Whole) -> None:
        cells, judged = problem.cells, problem.judged[:, None]
        self.problem, self.base, self.exact = problem, base, exact
        self.low = np.where(judged, np.maximum(np.floor(exact.rows), cells.least), cells.least)
        self.high = np.where(judged, np.minimum(np.ceil(exact.rows), cells.most), cells.most)
        self.rows = np.clip(rows, self.low, self.high).astype(np.int64)

    def mend(self) -> Whole | None:
        """Change the fewest roundings until every limit holds, those with the smallest |UB| first."""
        if (self.low > self.high).any():
            return None
        p = self._program(self.rows, whole=True)
        off = self._ub().ravel()
        price = p.price(
            np.concatenate([p.gain, p.lose]), np.tile(1 + LEAST_UB_FIRST * np.minimum(off, 1), 2)
        )
        found = p.minimise(
            price, time_limit=seconds_left(self.problem.request.time_limit), gap=1e-6
        )
        return None if found.x is None else np.rint(p.read(found.x)).astype(np.int64)

    def bound(self) -> float:
        """Lower bound of the cost of all roundings that keep the limits."""
        problem, cells = self.problem, self.problem.cells
        if problem.judged.all():
            ends = [np.clip(e(self.exact.rows), self.low, self.high) for e in (np.floor, np.ceil)]
            costs = [_cell_costs(problem, rows) for rows in ends]
            inside = (self.low <= cells.have) & (cells.have <= self.high)
            return float(np.where(inside, 0.0, np.minimum(*costs)).sum())
        p = self._program(cells.have, whole=False)
        price = np.concatenate([cells.add.ravel(), cells.drop.ravel()])
        price = p.price(np.concatenate([p.gain, p.lose]), price)
        try:
            found = p.minimise(price, time_limit=seconds_left(problem.request.time_limit))
        except Undecided:
            return 0.0
        return 0.0 if found.x is None else max(found.value - 1e-6 * max(found.value, 1.0), 0.0)

    def _program(self, start: Whole, *, whole: bool) -> Program:
        """The program around some rows, which need not be within the bounds themselves."""
        problem = self.problem
        gain, lose = (self.high - start).clip(0), (start - self.low).clip(0)
        p = Program(problem, start, gain, lose, whole=whole)
        p.low[0] = (self.low - start).clip(0).astype(float).ravel()
        p.low[1] = (start - self.high).clip(0).astype(float).ravel()
        p.hold_sizes(np.arange(len(start)))
        coarse = exact_rows(self.exact.sizes, problem.judged_ratios * self.base)
        for j, exact in zip(problem.coarse, coarse[problem.judged.sum() :], strict=True):
            row = np.tile(np.arange(p.k), len(j.lines))
            p.cell_rows(row, p.cells_of(j.lines), 1.0, np.floor(exact), np.ceil(exact))
        if is_balanced(problem):
            p.hold_frequencies(self.base, self.base, len(start) + 1 - 1e-6)
        if holds_drift(problem):
            share = problem.request.label_drift or 0.0
            wide = share * problem.base * self.exact.rows.sum() >= len(start) + 1
            low, high = (problem.base * (1 + np.where(wide, s * share, 0.0)) for s in (-1, 1))
            p.hold_frequencies(low, high, np.where(wide, -1e-6, len(start) + 1 - 1e-6))
        for limit in problem.coupling:
            p.hold_limit(limit, added=self._added(p, limit) if limit.kind == "available" else None)
        return p

    def _added(self, p: Program, limit: Any) -> Any:
        """Columns of at least what each cell of a limit has more than at present."""
        cells = limit.cells
        added, have = p.columns(len(cells)), self.problem.have.ravel()[cells].astype(float)
        row = np.arange(len(cells))
        p.cell_rows(
            row, cells, 1.0, np.full(len(cells), -np.inf), have, (row, added, -np.ones(len(cells)))
        )
        return added

    def _ub(self) -> Real:
        """The |UB| that rounding a cell the other way leaves it."""
        exact = np.maximum(self.exact.rows, 1e-300)
        other = np.where(self.rows > self.exact.rows, self.low, self.high)
        off = np.abs(np.minimum(other, 2 * exact + 1) / exact - 1)
        return np.where(self.problem.judged[:, None], off, 0.0)


def _cell_costs(problem: Problem, rows: Any) -> Real:
    change = rows - problem.have
    return np.asarray(np.where(change > 0, problem.cells.add, -problem.cells.drop) * change)


def rounding_cost(problem: Problem, base: Real, exact: Exact) -> float:
    """A lower bound of the cost of any rounding of the exact plan."""
    return _Rounding(problem, base, exact, problem.have).bound()
