"""Small problems in whole rows, solved by HiGHS up to a number of branches."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise.plans.solvers.overlap.relaxation import ChangeModel

if TYPE_CHECKING:
    from collections.abc import Sequence

    from equipoise.plans.cells import Real, Whole
    from equipoise.plans.problem import Problem
    from equipoise.plans.solvers.box import Box
    from equipoise.plans.solvers.overlap.groups import Cuts, Groups

SMALL, MOST = 400, 4_000
"""Maximum number of cells of a model in whole rows, and of one that may take all the time."""

BRANCHES = 60_000
"""Number of cells times branches that are tried: the same on every machine."""


@dataclass(frozen=True, eq=False)
class Solved:
    """Whole rows, or None, and a lower bound of the cost; infinite if there are none."""

    rows: Whole | None
    bound: float
    timed_out: bool = False
    pivots: int = 0


def most_cells(effort: float) -> int:
    """Maximum number of cells of a model in whole rows."""
    return MOST if effort == math.inf else SMALL


def solve_whole(
    problem: Problem,
    groups: Groups,
    cuts: Sequence[Cuts],
    box: Box | None,
    *,
    gap: float,
    deadline: float,
    start: Whole | None = None,
    cheaper: float = math.inf,
    inside: float = 0.0,
    effort: float = 1.0,
) -> Solved:
    """Find the cheapest whole rows that keep all cuts, below a cost, starting from known rows.

    ``inside`` is a margin in rows, because HiGHS keeps constraints only up to its own tolerance.
    """
    model = _WholeModel(problem, groups, inside)
    model.hold_all(cuts, box, cheaper)
    if start is not None:
        model.begin(start)
    nodes = None if effort == math.inf else max(int(effort * BRANCHES / model.n), 20)
    left = max(0.9 * (deadline - time.monotonic()), 0.05)  # HiGHS looks at the clock now and then
    started = time.monotonic()
    answer = model.model.solve(time_limit=left, gap=gap, nodes=nodes)
    if answer.status == "infeasible":
        return Solved(None, math.inf, pivots=answer.pivots)
    bound = max(answer.bound - 1e-6, problem.cells.lowest_cost)
    late = answer.status != "optimal" and time.monotonic() - started >= left
    rows = None
    if answer.columns is not None:
        rows = np.rint(model.rows_of(answer.columns)).astype(np.int64)
    return Solved(rows, bound, late, answer.pivots)


class _WholeModel(ChangeModel):
    """The linear model with every limit in it, and whole changes."""

    def __init__(self, problem: Problem, groups: Groups, inside: float) -> None:
        super().__init__(problem, groups)
        self.inside = inside

    def hold_all(self, cuts: Sequence[Cuts], box: Box | None, cheaper: float) -> None:
        """Put all limits into the model, and bounds on every column."""
        if box is not None:
            self._balance(box)
        shape = (len(self.groups), self.k)
        for each in cuts:
            c, y = np.divmod(np.arange(shape[0] * shape[1]), self.k)
            self._put(each, c, y)
        lines = np.flatnonzero(self.problem.cells.group_least > 0)
        if len(lines):
            self._hold_sizes(lines)
        changes = np.arange(self.totals[0])
        self.model.whole(changes)
        most = np.minimum(self.high[changes], _far_away(self.problem, cuts[0].f))
        if math.isfinite(cheaper):
            paid = np.flatnonzero(self.price > 0)
            most[paid] = np.minimum(most[paid], np.floor(cheaper / self.price[paid] + 1e-6))
            row = np.zeros(len(changes), int)
            self.model.add_rows(row, changes, self.price, low=[-np.inf], high=[cheaper])
        low = self.low[changes]
        self.model.bound_columns(changes, low, np.maximum(most, low))

    def begin(self, rows: Whole) -> None:
        """Start from known rows."""
        change = rows.ravel() - self.have
        columns: Any = [change.clip(0), (-change).clip(0)[self.deletable], rows.sum(axis=0)]
        self.model.start(np.concatenate(columns), good=True)


def _far_away(problem: Problem, centre: Real) -> float:
    """More rows than a plan adds to a cell."""
    rates = (problem.ratios * centre)[problem.ratios * centre > 0]
    far = 100.0 * (problem.have.sum() + problem.cells.least.sum() + len(problem.cells))
    far += sum(limit.reach(int(problem.have.sum())) for limit in problem.coupling)
    far += 100 / (max(problem.request.tolerance, 1e-3) * float(rates.min())) if len(rates) else 0.0
    return float(far)
