"""Linear programs over the rows of cells, in real or in whole numbers.

A cell has ``start`` rows, and two columns that count what it gains and what it loses. Limits are
rows of the program over the sum of the three, so one function writes each limit for every program.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise.plans.cells import UNLIMITED
from equipoise.plans.highs import LinearModel

if TYPE_CHECKING:
    from equipoise.plans.cells import Real
    from equipoise.plans.limits import Limit
    from equipoise.plans.problem import Problem


class Undecided(Exception):
    """The time limit ended before a program was solved or proved to have no solution."""


@dataclass(frozen=True, eq=False)
class Minimum:
    """The columns of a program at its minimum; None if it is proved to have no solution."""

    x: Real | None
    value: float
    proved: bool = True  # whether there is no lower value


class Program:
    """A linear program under construction."""

    def __init__(self, problem: Problem, start: Any, gain: Any, lose: Any, *, whole: bool) -> None:
        self.problem, self.k = problem, problem.cells.labels
        self.start = np.asarray(start, float).ravel()
        self.low: list[Real] = []
        self.high: list[Real] = []
        self.whole: list[Any] = []
        self.width = self.height = 0
        self.parts: list[tuple[Any, ...]] = []  # row, column, value; lower and upper bound
        n = len(self.start)
        self.gain = self.columns(n, high=_bound(gain), whole=whole)
        self.lose = self.columns(n, high=_bound(lose), whole=whole)

    def columns(self, n: int, *, low: Any = 0.0, high: Any = np.inf, whole: bool = False) -> Any:
        """Add columns with bounds, and return their numbers."""
        self.low.append(np.broadcast_to(np.asarray(low, float).ravel(), n))
        self.high.append(np.broadcast_to(np.asarray(high, float).ravel(), n))
        self.whole.append(np.full(n, int(whole)))
        self.width += n
        return np.arange(self.width - n, self.width)

    def rows(self, i: Any, j: Any, value: Any, low: Any, high: Any) -> None:
        """Add rows by their entries (row, column, value) and bounds."""
        value = np.broadcast_to(np.asarray(value, float), np.shape(i))
        self.parts.append((np.asarray(i) + self.height, j, value, low, high))
        self.height += len(low)

    def cell_rows(self, i: Any, cell: Any, value: Any, low: Any, high: Any, *more: Any) -> None:
        """Add rows on the rows that cells have, and on other columns given as ``more`` entries."""
        value = np.broadcast_to(np.asarray(value, float), np.shape(i))
        there = np.bincount(i, value * self.start[cell], minlength=len(low))
        extra = [np.concatenate(part) for part in zip(*more, strict=True)] if more else None
        row, column = np.concatenate([i, i]), np.concatenate([self.gain[cell], self.lose[cell]])
        values = np.concatenate([value, -value])
        if extra is not None:
            row, column = np.concatenate([row, extra[0]]), np.concatenate([column, extra[1]])
            values = np.concatenate([values, extra[2]])
        self.rows(row, column, values, np.asarray(low) - there, np.asarray(high) - there)

    def cells_of(self, lines: Any) -> Any:
        """The numbers of the cells of some groups."""
        return (np.asarray(lines)[:, None] * self.k + np.arange(self.k)).ravel()

    def hold_sizes(self, lines: Any) -> None:
        """Keep the minimum sizes of groups."""
        least = self.problem.cells.group_least[lines].astype(float)
        if len(least):
            row = np.repeat(np.arange(len(least)), self.k)
            self.cell_rows(row, self.cells_of(lines), 1.0, least, np.full(len(least), np.inf))

    def hold_limit(self, limit: Limit, *, short: Any = None, added: Any = None) -> None:
        """Keep a limit that groups share, up to ``short`` rows if that column is given.

        ``added`` are columns of at least what each cell of the limit gains on its present rows.
        """
        cells, factor = limit.coefficients
        row, none = np.zeros(len(cells), int), np.array([np.inf])
        for bound, sign in ((limit.low, 1.0), (limit.high, -1.0)):
            if not np.isfinite(bound):
                continue
            at = np.array([bound])
            low, high = (at, none) if sign > 0 else (-none, at)
            more = [] if short is None else [(np.array([0]), np.atleast_1d(short), [sign])]
            if not limit.of_additions:
                self.cell_rows(row, cells, factor, low, high, *more)
                continue
            entries = [(row, self.gain[cells] if added is None else added, factor), *more]
            i, j, value = (np.concatenate(part) for part in zip(*entries, strict=True))
            self.rows(i, j, value, low, high)

    def hold_frequencies(self, low: Real, high: Real, room: Any) -> None:
        """Keep each label's rows between shares of the table, up to ``room`` rows."""
        k, n = self.k, len(self.start)
        cell, row = np.tile(np.arange(n), k), np.repeat(np.arange(k), n)
        own = (cell % k == row).astype(float)
        none, room = np.full(k, np.inf), np.broadcast_to(np.asarray(room, float), k)
        self.cell_rows(row, cell, own - high[row], -none, room)
        self.cell_rows(row, cell, own - low[row], -room, none)

    def at_most(self, price: Real, value: float) -> None:
        """Keep the sum of columns, each with a price, below a value."""
        j = np.flatnonzero(price)
        self.rows(np.zeros(len(j), int), j, price[j], np.array([-np.inf]), np.array([value]))

    def price(self, columns: Any, each: Any) -> Real:
        """The prices of all columns: those given, and 0 for the others."""
        price = np.zeros(self.width)
        price[columns] = each
        return price

    def minimise(self, price: Real, *, time_limit: float, gap: float = 0.0) -> Minimum:
        """Minimise the sum of columns, each with a price."""
        low, high = np.concatenate(self.low), np.concatenate(self.high)
        if (low > high).any():
            return Minimum(None, math.inf)
        model = LinearModel(price, low=low, high=high)
        for i, j, value, least, most in _joined(self.parts):
            model.add_rows(i, j, value, low=least, high=most)
        whole = np.flatnonzero(np.concatenate(self.whole))
        if len(whole):
            model.whole(whole)
        found = model.solve(time_limit=time_limit, gap=gap)
        if found.columns is None and found.status != "infeasible":
            raise Undecided
        if found.columns is None:
            return Minimum(None, math.inf)
        return Minimum(found.columns, found.cost, proved=found.optimal)

    def read(self, x: Real) -> Real:
        """The rows of each cell."""
        rows = self.start + x[self.gain] - x[self.lose]
        return np.asarray(rows.reshape(-1, self.k))


def _bound(high: Any) -> Any:
    """Bounds of columns; what stands for none becomes infinite."""
    high = np.asarray(high, float)
    return np.where(high >= UNLIMITED / 2, np.inf, high)


def _joined(parts: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """All rows together, because HiGHS takes one large block quicker than many small ones."""
    return [tuple(np.concatenate(each) for each in zip(*parts, strict=True))] if parts else []
