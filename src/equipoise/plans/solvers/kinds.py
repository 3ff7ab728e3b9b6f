"""Groups of two labels, solved at many prices and bands at once.

The rows of a group are m of the rarer label and c of the other one. The share of m lies in a band, and
every row has a price that depends on the balance of the labels. For a fixed m the best c is a number
clipped to a range, and the cost of real-valued rows is convex in m with few corners. Whole numbers are
tried in a window around the cheapest corner; outside the window the real-valued cost is a lower bound.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from equipoise.plans.cells import UNLIMITED

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from equipoise.plans.cells import Cells, Edges, Real

BIG = 1e18
"""More rows than any table has."""

WINDOW = 3
"""Whole numbers that are tried on each side of the real-valued optimum."""

WIDER = (16, 96, 768)
"""Windows that are tried for groups whose optimum is not in the first one."""

CHUNK = 200_000
"""Numbers tried at once, to limit memory."""

_PARTS = ("below", "above", "free", "start", "end")
_HAIR = 1e-12  # rounding error of a product that should be whole
_NEAR = 1e-9  # costs that differ by less are equal


class PricedRows(NamedTuple):
    """The cheapest rows of every kind of group, by interval and multiplier."""

    value: Real  # lower bound of the priced cost; infinite if there are no rows
    m: Real
    c: Real


@dataclass(frozen=True, eq=False)
class TwoLabelKinds:
    """The distinct groups of a problem with two labels, and how many there are of each."""

    many: Real
    have: Real  # the columns of these five are the rarer label and the other one
    least: Real
    most: Real
    add: Real
    drop: Real
    group_least: Real
    low: Real  # lower limit on the share of the rarer label: the larger of two functions of P
    low_shift: Real
    high: Real  # upper limit: the smaller of two
    high_shift: Real

    def band(self, low: Real, high: Real) -> tuple[Real, Real]:
        """The shares allowed when P is between ``low`` and ``high``; a line per interval."""
        least = self.low * low[:, None, None] + self.low_shift
        most = self.high * high[:, None, None] + self.high_shift
        return least.max(axis=2).clip(0.0, 1.0), most.min(axis=2).clip(0.0, 1.0)

    def take(self, lines: Any) -> TwoLabelKinds:
        """Select kinds, possibly repeatedly."""
        return TwoLabelKinds(**{f.name: getattr(self, f.name)[lines] for f in fields(self)})

    def cost(self, y: int, rows: Real) -> Real:
        """The cost of changing one label to some rows."""
        change = rows - self.have[:, y]
        return np.maximum(self.add[:, y] * change, -self.drop[:, y] * change)


def kinds_of(cells: Cells, edges: Edges, rare: int) -> tuple[TwoLabelKinds, NDArray[np.intp]]:
    """Find the distinct groups, and the kind of every group; ``rare`` is the label scanned."""
    order = [rare, 1 - rare]
    # The share of the rarer label is also limited by what the other label may have.
    low = np.stack([edges.low[:, rare], edges.high[:, 1 - rare]], axis=1)
    low_shift = np.stack(
        [edges.low_shift[:, rare], 1 - edges.high[:, 1 - rare] - edges.high_shift[:, 1 - rare]],
        axis=1,
    )
    high = np.stack([edges.high[:, rare], edges.low[:, 1 - rare]], axis=1)
    high_shift = np.stack(
        [edges.high_shift[:, rare], 1 - edges.low[:, 1 - rare] - edges.low_shift[:, 1 - rare]],
        axis=1,
    )
    parts = [cells.have[:, order], cells.least[:, order], cells.most[:, order]]
    parts += [cells.add[:, order], cells.drop[:, order], cells.group_least[:, None]]  # type: ignore[list-item]
    parts += [low, low_shift, high, high_shift]  # type: ignore[list-item]
    table = np.concatenate([p.astype(float) for p in parts], axis=1)
    distinct, kind, many = np.unique(table, axis=0, return_inverse=True, return_counts=True)
    columns = np.split(distinct, np.cumsum([p.shape[1] for p in parts])[:-1], axis=1)
    have, least, most, add, drop, group_least, *limits = columns
    most = np.where(most >= UNLIMITED, BIG, most)
    group = TwoLabelKinds(
        many.astype(float), have, least, most, add, drop, group_least[:, 0], *limits
    )
    return group, kind.ravel()


@dataclass(frozen=True, eq=False)
class Curves:
    """TwoLabelKinds in bands: the corners of their costs, which do not depend on prices.

    All arrays have a line per interval and a column per kind, or are flat.
    """

    kinds: TwoLabelKinds
    below: Real  # c is at most m·above + free and at least m·below
    above: Real
    free: Real
    start: Real  # the range of m
    end: Real
    corners: Real  # stacked on the first axis

    @classmethod
    def of(cls, kinds: TwoLabelKinds, low: Real, high: Real) -> Curves:
        """Prepare kinds whose share of the rarer label lies between ``low`` and ``high``."""
        with np.errstate(divide="ignore"):
            below = np.minimum((1 - high) / high, BIG)
            above = np.minimum((1 - low) / low, BIG)
        free = np.where(low <= 0, BIG, 0.0)
        n_b, least_b, most_b = kinds.have[:, 1], kinds.least[:, 1], kinds.most[:, 1]
        size = kinds.group_least
        loose = free > 0
        start = np.where(loose, 0.0, np.maximum(_over(least_b, above), _over(size, 1 + above)))
        start = np.maximum(np.maximum(start, kinds.least[:, 0]), size - most_b)
        end = np.minimum(
            kinds.most[:, 0], np.where(below > 0, most_b / np.maximum(below, 1e-30), BIG)
        )
        far = np.where(end < BIG / 1e3, end, start)
        shape = np.broadcast_shapes(start.shape, n_b.shape)
        listed = (
            kinds.have[:, 0],
            _over(n_b, below),
            _over(n_b, above),
            size - n_b,
            _over(least_b, below),
            _over(size, 1 + below),
            np.where(most_b < BIG, _over(most_b, above), start),
            size - least_b,
            start,
            far,
        )
        corners = np.stack([np.broadcast_to(c, shape) for c in listed])
        corners = np.minimum(np.maximum(corners, start), np.maximum(end, start))
        return cls(kinds, below, above, free, start, end, corners)

    @property
    def impossible(self) -> Any:
        """Where the band and the bounds leave no rows at all."""
        return (self.start > self.end * (1 + _HAIR) + _HAIR) | (
            self.below > self.above * (1 + _HAIR)
        )

    def at(self, where: Any) -> Curves:
        """Select single lines, as flat arrays; ``where`` has indices of intervals and kinds."""
        row, kind = where
        return self._with(
            self.kinds.take(kind),
            lambda part: np.broadcast_to(part, self.corners.shape[1:])[row, kind],
            self.corners[:, row, kind],
        )

    def spread(self) -> Curves:
        """The same with an axis for multipliers."""
        return self._with(self.kinds, lambda part: part[:, None, :], self.corners)

    def _with(self, kinds: TwoLabelKinds, change: Callable[[Real], Real], corners: Real) -> Curves:
        parts = {name: change(getattr(self, name)) for name in _PARTS}
        return Curves(kinds=kinds, corners=corners, **parts)

    def solve(self, price_m: Real, price_c: Real, windows: tuple[int, ...] = WIDER) -> PricedRows:
        """Find the cheapest whole rows at prices that come on top of the costs.

        The prices have a line per interval and a column per multiplier; results have a third axis
        for the kinds. Without wider ``windows`` more of the bounds are real-valued, which is quick.
        """
        best = _wanted(self.kinds, price_c[:, :, None])
        costs = _Costs(self.spread(), price_m[:, :, None], price_c[:, :, None], best)
        centre = np.floor(costs.cheapest(self.corners[:, :, None, :]))
        value, outside, m, c = costs.search(centre, WINDOW)
        open_ = outside < value - _NEAR
        for window in windows:
            if not open_.any():
                break
            i, j, k = np.nonzero(open_)
            for start in range(0, len(i), CHUNK):
                part = slice(start, start + CHUNK)
                a, b, d = i[part], j[part], k[part]
                flat = _Costs(self.at((a, d)), price_m[a, b], price_c[a, b], best[a, b, d])
                found = flat.search(centre[a, b, d], window)
                value[a, b, d], outside[a, b, d], m[a, b, d], c[a, b, d] = found
                open_[a, b, d] = found[1] < found[0] - _NEAR
        lost = ~np.isfinite(value)
        if lost.any():  # the gradient is that of real-valued rows where no whole ones were found
            m = np.where(lost, centre, m)
            c = np.where(lost, costs.other(centre), c)
        value = np.minimum(value, outside)
        value = np.where(self.impossible[:, None, :], np.inf, value)
        return self._vanished(PricedRows(value, m, c))

    def _vanished(self, solved: PricedRows) -> PricedRows:
        """Take the empty group where that is allowed and cheaper."""
        kinds = self.kinds
        may = (kinds.group_least <= 0) & (kinds.least <= 0).all(axis=1)
        if not may.any():
            return solved
        gone = np.where(may, (kinds.drop * kinds.have).sum(axis=1), np.inf)
        empty = gone < solved.value - _NEAR
        value, m, c = solved
        return PricedRows(
            np.where(empty, gone, value), np.where(empty, 0, m), np.where(empty, 0, c)
        )


def _over(top: Any, bottom: Any) -> Real:
    """A quotient: 0 if nothing is divided, and huge if by nothing."""
    return np.where(top <= 0, 0.0, np.minimum(top / np.maximum(bottom, 1e-30), BIG))


def _portions(steps: Real, size: int) -> list[Real]:
    """Split the first axis, so that arrays of all steps for ``size`` lines stay in the cache."""
    many = max(1, CHUNK // max(size, 1))
    return [steps[start : start + many] for start in range(0, len(steps), many)]


def _wanted(kinds: TwoLabelKinds, price: Real) -> Real:
    """The cheapest number of rows of the other label if nothing limited it."""
    up, down = kinds.add[:, 1] + price, -kinds.drop[:, 1] + price
    return np.where(up < -_NEAR, BIG, np.where(down > _NEAR, 0.0, kinds.have[:, 1]))


@dataclass(frozen=True, eq=False)
class _Costs:
    """The priced costs of lines, in real and in whole numbers of m."""

    lines: Curves
    price_m: Real
    price_c: Real
    best: Real

    def other(self, m: Real) -> Real:
        """The best c at some m, real-valued."""
        low, high = self._range(m)
        return np.minimum(np.maximum(self.best, low), high)

    def _range(self, m: Real) -> tuple[Real, Real]:
        lines, kinds = self.lines, self.lines.kinds
        low = np.maximum(np.maximum(kinds.least[:, 1], m * lines.below), kinds.group_least - m)
        return low, np.minimum(kinds.most[:, 1], m * lines.above + lines.free)

    def real(self, m: Real) -> Real:
        """The cost of real-valued rows with the best c."""
        return self._total(m, self.other(m))

    def _total(self, m: Real, c: Real) -> Real:
        kinds = self.lines.kinds
        return kinds.cost(0, m) + kinds.cost(1, c) + self.price_m * m + self.price_c * c

    def cheapest(self, corners: Real) -> Real:
        """The corner with the lowest real-valued cost."""
        best, value = corners[0], np.full(self.best.shape, np.inf)
        for part in _portions(corners, self.best.size):
            cost = self.real(part)
            place = cost.argmin(axis=0)[None]
            least = np.take_along_axis(cost, place, 0)[0]
            at = np.take_along_axis(np.broadcast_to(part, cost.shape), place, 0)[0]
            best, value = np.where(least < value, at, best), np.minimum(least, value)
        return np.asarray(best)

    def search(self, centre: Real, window: int) -> tuple[Real, Real, Real, Real]:
        """Try whole numbers of m; the cost, a bound of the cost outside the window, m and c."""
        lines = self.lines
        steps = np.arange(1 - window, window + 1, dtype=float)
        value = np.full(centre.shape, np.inf)
        m, c = np.zeros((2, *centre.shape))
        for part in _portions(steps.reshape(-1, *(1,) * centre.ndim), centre.size):
            trial = centre + part
            cost, other = self._whole(trial)
            place = cost.argmin(axis=0)[None]
            least, at, then = (np.take_along_axis(a, place, 0)[0] for a in (cost, trial, other))
            better = least < value - _NEAR
            value = np.where(better, least, value)
            m, c = np.where(better, at, m), np.where(better, then, c)
        ends = np.stack([centre - window, centre + window + 1])
        inside = (ends >= lines.start - _HAIR) & (ends <= lines.end * (1 + _HAIR) + _HAIR)
        beyond = np.where(inside & (ends >= 0), self.real(ends), np.inf).min(axis=0)
        return value, beyond, m, c

    def _whole(self, m: Real) -> tuple[Real, Real]:
        lines, kinds = self.lines, self.lines.kinds
        low = np.maximum(
            np.maximum(kinds.least[:, 1], np.ceil(m * lines.below * (1 - _HAIR) - _HAIR)),
            kinds.group_least - m,
        )
        high = np.floor(m * lines.above * (1 + _HAIR) + _HAIR) + lines.free
        high = np.minimum(kinds.most[:, 1], high)
        c = np.minimum(np.maximum(self.best, low), high)
        possible = (low <= high) & (m >= kinds.least[:, 0]) & (m <= kinds.most[:, 0])
        possible &= m + c >= 1  # the empty group is another case
        return np.where(possible, self._total(m, c), np.inf), c
