"""The exact optimum for independent groups: one small search per group.

For a group of new size S, the rows of every label lie between two multiples of S, and making the
cheapest changes first gives the cheapest rows that add up to S. The real-valued relaxation is convex
in S: bisection finds its minimum, and whole sizes are tried outward from there until even the
relaxation costs as much as the best found. All groups are searched at once, in arrays.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from equipoise.plans.cells import UNLIMITED, Band

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from equipoise.plans.cells import Cells, Real, Whole

CHUNK = 60_000
"""Number of groups searched at once, to limit memory."""

SIMPLE = 1e4
"""Largest size at which a band without width is searched."""

_HAIR = 1e-14  # relative rounding error of products of a few floats that should be whole
_NEVER = 1e30


@dataclass(frozen=True, eq=False)
class Separated:
    """The rows of each group after the repair and their cost; infinite if there is no solution."""

    rows: Whole
    costs: Real

    @property
    def cost(self) -> float:
        """The total cost."""
        return math.fsum(self.costs.tolist()) if np.isfinite(self.costs).all() else math.inf

    @property
    def feasible(self) -> bool:
        """Whether every group has a solution."""
        return bool(np.isfinite(self.costs).all())


def solve_separable(
    cells: Cells,
    band: Band,
    *,
    strict: bool = False,
    progress: Callable[[float], None] | None = None,
) -> Separated:
    """Find the cheapest whole rows of every group whose labels' shares lie in the band.

    Floats cannot resolve the edge of a band, so rows may exceed it by a rounding error; with
    ``strict`` they stay inside by as much.
    """
    band = band.lines(len(cells))
    hair = -_HAIR if strict else _HAIR
    which, back = _alike(cells, band)
    parts = []
    for start in range(0, len(which), CHUNK):
        lines = which[start : start + CHUNK]
        parts.append(_Search(cells.take(lines), band.take(lines), hair).run())
        if progress is not None:
            progress(min(start + CHUNK, len(which)) / len(which))
    if not parts:
        return Separated(cells.have.copy(), np.zeros(0))
    rows, costs = (np.concatenate(p) for p in zip(*parts, strict=True))
    return Separated(rows[back], costs[back])


def solve_relaxed(cells: Cells, band: Band) -> Real:
    """The least real-valued cost of every group at whole sizes; infinite if there is none."""
    search = _Search(cells, band.lines(len(cells)), _HAIR)
    return search.relax()


def solve_bands(
    cells: Cells, bands: Sequence[Band], times: Real | float = 1.0
) -> tuple[Real, Whole]:
    """Solve for several bands at once: the total cost and the rows of each.

    ``times`` is how often each group occurs.
    """
    n, k = cells.have.shape
    if not bands:
        return np.zeros(0), np.zeros((0, n, k), np.int64)
    band = Band(np.concatenate([b.low for b in bands]), np.concatenate([b.high for b in bands]))
    solved = solve_separable(cells.take(np.tile(np.arange(n), len(bands))), band)
    costs = solved.costs.reshape(-1, n) * times
    return costs.sum(axis=1), solved.rows.reshape(-1, n, k)


def _alike(cells: Cells, band: Band) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Find the distinct groups and the kind of every group, because many groups are equal."""
    if not len(cells):
        return np.zeros(0, np.intp), np.zeros(0, np.intp)
    parts = [cells.have, cells.least, cells.most, cells.group_least]
    parts += [cells.add, cells.drop, band.low, band.high]  # type: ignore[list-item]
    told = [p.reshape(len(cells), -1).view(np.int64) for p in map(np.ascontiguousarray, parts)]
    columns = [c for p in told for c in p.T if len(c) and (c != c[0]).any()]
    if not columns:
        return np.zeros(1, np.intp), np.zeros(len(cells), np.intp)
    order = np.lexsort(columns)
    fresh = np.zeros(len(cells), np.bool_)
    fresh[0] = True
    for column in columns:
        ordered = column[order]
        fresh[1:] |= ordered[1:] != ordered[:-1]
    back = np.empty(len(cells), np.intp)
    back[order] = np.cumsum(fresh) - 1
    return order[fresh], back


class _Search:
    """The search for the best size of each group."""

    def __init__(self, cells: Cells, band: Band, hair: float) -> None:
        self.cells, self.band, self.hair = cells, band, hair
        # A label with a positive minimum rate has at least one row, unless the group is empty.
        self.least = np.maximum(cells.least, (band.low > 0).astype(np.int64))
        slopes = np.concatenate([-cells.drop, cells.add], axis=1)
        self.order = np.argsort(slopes, axis=1, kind="stable")
        self.slopes = np.take_along_axis(slopes, self.order, axis=1)
        self.step = granularity(slopes)
        self.bottom = np.maximum(cells.group_least, 1)
        self.top = self._largest_worth_a_look()
        self.best, self.dropped = np.full((2, len(cells)), np.inf)  # cost and deletions so far

    def _largest_worth_a_look(self) -> Whole:
        """A size above which every band contains whole numbers with that sum, and costs rise."""
        low, high, k = self.band.low, self.band.high, self.cells.labels
        room = np.minimum(1 - low.sum(axis=1), high.sum(axis=1) - 1)
        width = np.minimum((high - low).min(axis=1), room / k)
        # A band without width has whole numbers only where shares are simple fractions.
        enough = np.where(width > 1e-9, 1 / np.maximum(width, 1e-9), SIMPLE)
        share = np.maximum(low, high / 2)
        present = np.where(
            share > 0, self.cells.have.clip(self.least) / np.maximum(share, 1e-12), 0
        )
        top = 2 * (enough + present.max(axis=1) + self.cells.have.sum(axis=1)) + self.bottom + k
        return np.asarray(np.minimum(np.ceil(top).astype(np.int64), UNLIMITED))

    def run(self) -> tuple[Whole, Real]:
        start = self._relaxed_minimum()
        self.size = start.copy()
        self._look(np.arange(len(self.cells)), start[:, None])
        for direction in (1, -1):
            self._walk(direction, start)
        self._vanish()
        rows = self.cells.have.copy()
        found = np.flatnonzero(np.isfinite(self.best))
        rows[found] = self._whole(found, self.size[found])[1]
        rows[found[self.size[found] == 0]] = 0
        return rows, self.best

    def relax(self) -> Real:
        """The least real-valued cost of each group."""
        size = self._relaxed_minimum()
        cost = self._relaxed(np.arange(len(self.cells)), size)
        cost = np.where(cost < _NEVER, cost, np.inf)
        return np.asarray(np.where(self._may_vanish(), np.minimum(cost, self._all_gone()), cost))

    def _may_vanish(self) -> NDArray[np.bool_]:
        """Which groups may lose all their rows."""
        return (self.cells.group_least <= 0) & (self.cells.least <= 0).all(axis=1)

    def _all_gone(self) -> Real:
        """The cost of deleting all rows of each group."""
        return np.asarray((self.cells.drop * self.cells.have).sum(axis=1))

    def _vanish(self) -> None:
        """Try the empty group, where it is allowed."""
        cost = self._all_gone()
        gone = self._may_vanish() & (cost < _less(self.best))
        self.best[gone], self.size[gone] = cost[gone], 0

    def _relaxed_minimum(self) -> Whole:
        """Find the largest of the cheapest real-valued sizes, by bisection."""
        low, high = np.minimum(self.bottom, self.top), self.top.copy()
        open_ = np.flatnonzero(low < high)
        while len(open_):
            middle = (low[open_] + high[open_]) // 2
            here, next_ = self._relaxed(open_, middle), self._relaxed(open_, middle + 1)
            right = next_ <= here + 1e-12 * (1 + np.abs(here))
            low[open_[right]] = middle[right] + 1
            high[open_[~right]] = middle[~right]
            open_ = open_[low[open_] < high[open_]]
        return low

    def _walk(self, direction: int, start: Whole) -> None:
        """Try sizes outward until even the relaxation costs as much as the best."""
        active = np.arange(len(self.cells))
        reached, block = start.copy(), 4
        while len(active):
            steps = direction * np.arange(1, block + 1)
            sizes = reached[active][:, None] + steps
            self._look(active, sizes)
            reached[active] = sizes[:, -1]
            last = reached[active]
            inside = (last < self.top[active]) & (last > self.bottom[active])
            bound = self._bound(active, last)
            active = active[inside & (bound < np.minimum(_less(self.best[active]), _NEVER))]
            block = min(2 * block, max(4, 2_000_000 // max(len(active), 1)), 4096)

    def _bound(self, lines: NDArray[np.intp], size: Whole) -> Real:
        """Lower bound in whole numbers: the relaxed cost, rounded up to the next possible cost."""
        relaxed = self._relaxed(lines, size)
        if not self.step:
            return relaxed
        stepped: Real = np.ceil(relaxed / self.step - 1e-7) * self.step
        return np.where(relaxed < _NEVER, stepped, relaxed)

    def _look(self, lines: NDArray[np.intp], sizes: Whole) -> None:
        """Solve groups at given sizes, one line per group, and keep improvements."""
        many = np.repeat(lines, sizes.shape[1])
        cost, rows = self._whole(many, sizes.ravel())
        gone = (self.cells.have[many] - rows).clip(0).sum(axis=1).astype(float)
        cost, gone = cost.reshape(sizes.shape), gone.reshape(sizes.shape)
        least = cost.min(axis=1)
        tied = _less(cost) <= least[:, None]
        place = np.where(tied, gone, np.inf).argmin(axis=1)[:, None]
        cost, gone = (np.take_along_axis(a, place, 1)[:, 0] for a in (cost, gone))
        # Of plans that cost the same, the one that deletes fewer rows is better.
        best, dropped = self.best[lines], self.dropped[lines]
        tied = (_less(cost) <= best) & (gone < dropped) & np.isfinite(cost)
        better = (cost < _less(best)) | tied
        won = lines[better]
        self.best[won], self.dropped[won] = cost[better], gone[better]
        self.size[won] = np.take_along_axis(sizes, place, 1)[:, 0][better]

    def _relaxed(self, lines: NDArray[np.intp], size: Whole) -> Real:
        """The real-valued cost; infeasible sizes get a huge one that grows with the violation."""
        s = size[:, None].astype(float)
        low = np.maximum(self.least[lines], self.band.low[lines] * s)
        high = np.minimum(self.cells.most[lines], self.band.high[lines] * s)
        slack = 1e-9 * np.maximum(s, 1)
        excess = np.maximum(low - high - slack, 0).sum(axis=1)
        excess += np.maximum(low.sum(axis=1) - size - slack[:, 0], 0)
        excess += np.maximum(size - high.sum(axis=1) - slack[:, 0], 0)
        cost = self._filled(lines, low, np.maximum(low, high), size)[0]
        return np.where(excess > 0, _NEVER * (1 + excess), cost)

    def _whole(self, lines: NDArray[np.intp], size: Whole) -> tuple[Real, Whole]:
        """The cheapest whole numbers at a size; the cost is infinite if there are none."""
        s = size[:, None].astype(float)
        below, above = self.band.low[lines] * s, self.band.high[lines] * s
        low = np.maximum(self.least[lines], np.ceil(below * (1 - self.hair)))
        high = np.minimum(self.cells.most[lines], np.floor(above * (1 + self.hair)))
        possible = (low <= high).all(axis=1)
        possible &= (low.sum(axis=1) <= size) & (size <= high.sum(axis=1))
        possible &= size >= self.bottom[lines]
        cost, rows = np.full(len(lines), np.inf), low
        which = np.flatnonzero(possible)  # few, where bands are narrow
        cost[which], rows[which] = self._filled(lines[which], low[which], high[which], size[which])
        return cost, rows.astype(np.int64)

    def _filled(
        self, lines: NDArray[np.intp], low: Real, high: Real, size: Whole
    ) -> tuple[Real, Real]:
        """Start from the minimum rows and make the cheapest changes until the size is reached."""
        have = self.cells.have[lines]
        keep = np.maximum(np.minimum(have, high) - low, 0)  # rows that need not be deleted
        gain = np.maximum(high - np.maximum(have, low), 0)  # rows that can be added
        room = np.concatenate([keep, gain], axis=1)
        order = self.order[lines]
        room = np.take_along_axis(room, order, axis=1)
        filled = np.cumsum(room, axis=1)
        need = (size - low.sum(axis=1))[:, None]
        taken = np.minimum(np.maximum(need - (filled - room), 0), room)
        over = low - have
        base = np.where(over > 0, self.cells.add[lines] * over, -self.cells.drop[lines] * over)
        cost = base.sum(axis=1) + (taken * self.slopes[lines]).sum(axis=1)
        unsorted = np.empty_like(taken)
        np.put_along_axis(unsorted, order, taken, axis=1)
        k = low.shape[1]
        return cost, low + unsorted[:, :k] + unsorted[:, k:]


def _less(cost: Real) -> Real:
    """Subtract a rounding error, so that sums in another order do not look cheaper."""
    return np.where(cost > 0, cost * (1 - 1e-10), cost * (1 + 1e-10)) - 1e-10


def granularity(slopes: Real) -> float:
    """The largest number of which all costs are whole multiples, or 0 if there is no useful one."""
    distinct = np.unique(np.abs(slopes))
    distinct = distinct[distinct > 0]
    if not len(distinct) or len(distinct) > 50:
        return 0.0
    parts = [Fraction(repr(float(c))) for c in distinct]
    below = math.lcm(*(p.denominator for p in parts))
    step = Fraction(math.gcd(*(int(p * below) for p in parts)), below)
    return float(step) if step * 1_000_000 > parts[-1] else 0.0
