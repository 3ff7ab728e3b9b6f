"""The fewest groups that must change: one mixed integer model with a binary for each group."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise.plans.cells import UNLIMITED
from equipoise.plans.clock import seconds_left
from equipoise.plans.highs import Answer, LinearModel

if TYPE_CHECKING:
    from equipoise.plans.cells import Band, Real, Whole
    from equipoise.plans.problem import Problem
    from equipoise.plans.solvers.box import Box


@dataclass(frozen=True, eq=False)
class Fewest:
    """Rows that change the fewest groups and, among those, cost the least; None if none were found."""

    rows: Whole | None
    bound: int  # no plan changes fewer groups
    timed_out: bool = False


def fewest_groups(
    problem: Problem, base: Real, balance: Box | None, *, inside: float = 0.0
) -> Fewest:
    """Find the rows that change the fewest groups, with bands around the frequencies ``base``.

    ``inside`` is a margin to the bands in rows, because HiGHS satisfies constraints only up to its
    own tolerance.
    """
    model = _Model(problem)
    lines = np.flatnonzero(problem.judged)
    model.hold([np.array([line]) for line in lines], problem.band(base).take(lines), inside)
    if problem.coarse:
        model.hold([j.lines for j in problem.coarse], problem.coarse_band(base), inside)
    if balance is not None:
        model.hold([np.arange(len(problem.cells))], _as_band(balance), inside)
    model.limit(problem)
    seconds = seconds_left(problem.request.time_limit)
    first = model.solve(np.repeat([0.0, 1.0], [2 * model.n, model.g]), seconds / 2)
    if first.columns is None:
        return Fewest(None, 0, timed_out=first.status == "limit")
    changed = int(np.rint(first.columns[2 * model.n :]).sum())
    bound = max(math.ceil(first.bound - 1e-6), 0) if math.isfinite(first.bound) else 0
    model.row(2 * model.n + np.arange(model.g), np.ones(model.g), -math.inf, changed)
    cells = problem.cells
    price = np.concatenate([cells.add.ravel(), cells.drop.ravel(), np.zeros(model.g)])
    second = model.solve(price, seconds / 2)
    x = first.columns if second.columns is None else second.columns
    late = "limit" in (first.status, second.status)
    return Fewest(model.rows_of(x), min(bound, changed), timed_out=late)


def _as_band(box: Box) -> Band:
    from equipoise.plans.cells import Band

    return Band(box.low[None], box.high[None])


class _Model:
    """Additions and deletions of each cell, and whether each group changes."""

    def __init__(self, problem: Problem) -> None:
        cells = problem.cells
        self.cells, self.n, self.k, self.g = cells, cells.have.size, cells.labels, len(cells)
        have, least, most = (a.ravel() for a in (cells.have, cells.least, cells.most))
        limits = sum(limit.reach(int(have.sum())) for limit in problem.limits)
        # A finite bound stands for none; it is kept small, because it multiplies the binaries.
        far = 4.0 * (have.sum() + least.sum() + cells.group_least.sum()) + limits + 1000.0
        self.low = np.concatenate([(least - have).clip(0), np.zeros(self.n + self.g)])
        up = np.where(most >= UNLIMITED, far, (most - have).clip(0)).astype(float)
        self.high = np.concatenate([up, (have - least).clip(0), np.ones(self.g)])
        self.entries: list[tuple[Any, Any, float, float]] = []
        group = 2 * self.n + np.arange(self.n) // self.k
        for start in (0, self.n):
            for cell in range(self.n):
                most_here = self.high[start + cell]
                if most_here > 0:
                    columns, factors = [start + cell, group[cell]], [1.0, -most_here]
                    self.row(np.array(columns), np.array(factors), -math.inf, 0.0)

    def row(self, columns: Any, factors: Any, low: float, high: float) -> None:
        """Add a constraint on variables."""
        self.entries.append((columns, factors, low, high))

    def on_rows(self, cell: Any, factor: Any, low: float, high: float) -> None:
        """Add a constraint on the final rows of cells."""
        present = float(factor @ self.cells.have.ravel()[cell])
        columns = np.concatenate([cell, cell + self.n])
        self.row(columns, np.concatenate([factor, -factor]), low - present, high - present)

    def hold(self, groups: list[Any], band: Band, inside: float) -> None:
        """Keep the label rates of groups, each given by its lines, inside a band."""
        for number, lines in enumerate(groups):
            cell = (lines[:, None] * self.k + np.arange(self.k)).ravel()
            for y in range(self.k):
                own = (cell % self.k == y).astype(float)
                low, high = band.low[number, y], band.high[number, y]
                self.on_rows(cell, own - high, -math.inf, -inside)
                self.on_rows(cell, own - low, inside, math.inf)

    def limit(self, problem: Problem) -> None:
        """Keep minimum sizes, and the limits that groups share."""
        for line in np.flatnonzero(self.cells.group_least > 0):
            cell = line * self.k + np.arange(self.k)
            self.on_rows(cell, np.ones(self.k), float(self.cells.group_least[line]), math.inf)
        for limit in problem.coupling:
            add = self.row if limit.of_additions else self.on_rows
            add(*limit.coefficients, limit.low, limit.high)

    def solve(self, price: Real, seconds: float) -> Answer:
        """Solve the model for a price of each variable."""
        sizes = [len(columns) for columns, *_ in self.entries]
        i = np.repeat(np.arange(len(sizes)), sizes)
        j = np.concatenate([columns for columns, *_ in self.entries])
        value = np.concatenate([factors for _, factors, *_ in self.entries])
        low, high = (np.array([entry[place] for entry in self.entries]) for place in (2, 3))
        model = LinearModel(price, low=self.low, high=self.high)
        model.add_rows(i, j, value, low=low, high=high)
        model.whole(np.arange(2 * self.n + self.g))
        return model.solve(time_limit=seconds)

    def rows_of(self, x: Any) -> Whole:
        """The rows of each cell after the changes of a solution."""
        change = np.rint(x[: 2 * self.n]).astype(np.int64)
        moved = (change[: self.n] - change[self.n :]).reshape(self.cells.have.shape)
        return np.asarray(self.cells.have + moved)
