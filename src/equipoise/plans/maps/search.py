"""Search a policy map for the cheapest point, and the point with the smallest |UB|."""

from __future__ import annotations

import functools
import itertools
import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise.measures.uniform_bias import ub_of
from equipoise.plans.maps.geometry import Affine, Conic, Exact, HalfPlane, Point, clip, corners

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from numpy.typing import NDArray

_SLACK = 1e-9  # relative rounding error of points computed in floats
_LEAST = 1e-6  # with less than a millionth of a row a group is empty
_NEAR = 50  # whole rows around the best real point that are tried in each direction


@dataclass(frozen=True, kw_only=True)
class Surface:
    """Uniform Bias as a function of x and y, by the rows after the moves.

    >>> rows = [Affine(Fraction(c), Fraction(0), Fraction(1)) for c in (20, 100, 80, 200)]
    >>> surface = Surface(n_gy=rows[0], n_g=rows[1], n_y=rows[2], n=rows[3])
    >>> surface.exact(0, 0), surface.exact(0, 100)
    (Fraction(1, 2), Fraction(0, 1))
    """

    n_gy: Affine
    n_g: Affine
    n_y: Affine
    n: Affine

    def exact(self, x: float | Fraction, y: float | Fraction) -> Fraction | None:
        """UB at a point without rounding; None if the group or the label has no rows."""
        n_g, n_y = self.n_g(x, y), self.n_y(x, y)
        if n_g <= _LEAST or n_y <= _LEAST:
            return None
        return Fraction(ub_of(n=self.n(x, y), n_y=n_y, n_g=n_g, n_gy=self.n_gy(x, y)))

    def ub(self, x: Any, y: Any) -> NDArray[np.float64]:
        """UB at many points; nan where it is undefined or a number of rows would be negative."""
        x, y = np.broadcast_arrays(np.asarray(x, np.float64), np.asarray(y, np.float64))
        n_gy, n_g, n_y, n = (
            float(f.const) + float(f.x) * x + float(f.y) * y
            for f in (self.n_gy, self.n_g, self.n_y, self.n)
        )
        least = np.minimum.reduce([n_gy, n_g - n_gy, n_y - n_gy, n - n_g - n_y + n_gy])
        valid = (least >= -_SLACK * (1 + n)) & (n_g > _LEAST) & (n_y > _LEAST)
        return np.where(valid, ub_of(n=n, n_y=n_y, n_g=n_g, n_gy=n_gy), np.nan)

    def level(self, ub: Fraction = Fraction(0)) -> Conic:
        """The curve on which UB has a value: ``n_gy·n = (1 − UB)·n_g·n_y``."""
        return Conic.product(self.n_gy, self.n).less(Conic.product(self.n_g, self.n_y), 1 - ub)


@dataclass(frozen=True, kw_only=True)
class Search:
    """A surface, the feasible region, and the cost of a point."""

    surface: Surface
    region: tuple[HalfPlane, ...]
    cost_x: Fraction
    cost_y: Fraction
    tolerance: Fraction

    @functools.cached_property
    def curves(self) -> tuple[Conic, ...]:
        """The curves on which |UB| equals the tolerance."""
        levels = dict.fromkeys((self.tolerance, -self.tolerance))
        return tuple(self.surface.level(level) for level in levels)

    def cost(self, x: float | Fraction, y: float | Fraction) -> Fraction:
        """The cost of a point."""
        return self.cost_x * Fraction(x) + self.cost_y * Fraction(y)

    def cheapest(self) -> Point | None:
        """The cheapest point of the region with |UB| within the tolerance, if there is one.

        It is a corner of the region, a point where one of the curves meets its boundary, or one
        where the cost along a curve is stationary.
        """
        found = [p for p in self._candidates() if self._is_inside(*p) and self._is_near_enough(*p)]
        # Rounding can put a point on an axis just below 0.
        points = [(max(x, 0.0), max(y, 0.0)) for x, y in found]
        return min(points, key=lambda p: self.cost(*p), default=None)

    def _candidates(self) -> Iterator[Point]:
        yield from ((float(x), float(y)) for x, y in corners(self.region))
        for curve in self.curves:
            yield from curve.touches(self.cost_x, self.cost_y)
            for line in self.region:
                yield from curve.meet(line)

    def _is_inside(self, x: float, y: float) -> bool:
        return all(half.nearly_holds(x, y) for half in self.region)

    def _is_near_enough(self, x: float, y: float) -> bool:
        ub = self.surface.exact(x, y)
        return ub is not None and abs(ub) <= self.tolerance + Fraction(_SLACK)

    # -------------------------------------------------------------- in whole numbers

    def allows(self, x: int, y: int) -> bool:
        """Whether a whole-number point is in the region and has a UB, without rounding."""
        inside = all(half.holds(x, y) for half in self.region)
        return inside and self.surface.exact(x, y) is not None

    def whole_near(self, point: Point) -> tuple[int, int] | None:
        """The best whole-number point near another.

        Without a tolerance it is the neighbour with the smallest |UB|, otherwise the cheapest point
        whose |UB| is within the tolerance without rounding.
        """
        if not self.tolerance:
            return self._least_neighbour(point)
        found = dict.fromkeys(self._whole_candidates(point))
        good = [p for p in found if self.allows(*p) and self._gap(p) <= self.tolerance]
        return min(good, key=lambda p: (self.cost(*p), self._gap(p)), default=None)

    def _gap(self, point: tuple[int, int]) -> Fraction:
        return abs(self.surface.exact(*point) or Fraction(0))

    def _least_neighbour(self, point: Point) -> tuple[int, int] | None:
        for reach in (0, 1, 3):
            ways = (range(math.floor(v) - reach, math.ceil(v) + reach + 1) for v in point)
            near = [(x, y) for x, y in itertools.product(*ways) if self.allows(x, y)]
            if near:
                return min(near, key=lambda p: (self._gap(p), self.cost(*p)))
        return None

    def _whole_candidates(self, point: Point) -> Iterator[tuple[int, int]]:
        """The points next to a boundary or curve, in each whole column and row near a point."""
        for axis, other in ((0, 1), (1, 0)):
            middle = round(point[axis])
            for at in range(max(middle - _NEAR, 0), middle + _NEAR + 1):
                line = HalfPlane(Fraction(1 - axis), Fraction(axis), Fraction(at))
                for place in {v for end in self._ends(line, other) for v in end}:
                    yield (at, place) if axis == 0 else (place, at)

    def _ends(self, line: HalfPlane, other: int) -> Iterator[tuple[int, int]]:
        crossed: list[Sequence[Any]] = [p for curve in self.curves for p in curve.meet(line)]
        crossed += [p for p in map(line.meet, self.region) if p is not None]
        for point in crossed:
            yield math.floor(point[other]), math.ceil(point[other])

    # -------------------------------------------------------------- the second best

    def nearest(self, box: Iterable[Exact]) -> Point | None:
        """The point of the region with the smallest |UB| in a box."""
        polygon = [(float(x), float(y)) for x, y in clip(box, self.region)]
        if not polygon:
            return None
        ends = np.array(polygon)
        found = [_zoomed(self._gaps, a, b) for a, b in zip(ends, np.roll(ends, -1, 0), strict=True)]
        inner = self._inner(ends)
        gaps = [*(self._gaps(p[None])[0] for p in found), self._gaps(inner[None])[0]]
        best = [*found, inner][int(np.argmin(gaps))]
        return None if np.isinf(min(gaps)) else (float(best[0]), float(best[1]))

    def _gaps(self, points: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.nan_to_num(np.abs(self.surface.ub(points[:, 0], points[:, 1])), nan=np.inf)

    def _inner(self, ends: NDArray[np.float64]) -> NDArray[np.float64]:
        low, high = ends.min(axis=0), ends.max(axis=0)
        best: NDArray[np.float64] = (low + high) / 2
        half = (high - low) / 2
        halves = [(float(h.a), float(h.b), float(h.c)) for h in self.region]
        for _ in range(40):
            steps = np.linspace(-1, 1, 21)
            grid = np.stack(np.meshgrid(steps, steps), axis=-1).reshape(-1, 2) * half + best
            gaps = self._gaps(grid)
            for a, b, c in halves:
                gaps[a * grid[:, 0] + b * grid[:, 1] > c] = np.inf
            if np.isfinite(gaps).any():
                best = grid[int(np.argmin(gaps))]
            half = half / 2
        if all(a * best[0] + b * best[1] <= c for a, b, c in halves):
            return best
        first: NDArray[np.float64] = ends[0]
        return first


def _zoomed(gaps: Any, start: NDArray[np.float64], end: NDArray[np.float64]) -> NDArray[np.float64]:
    low, high = 0.0, 1.0
    for _ in range(12):
        steps = np.linspace(low, high, 101)
        best = steps[int(np.argmin(gaps(start + steps[:, None] * (end - start))))]
        reach = (high - low) / 20
        low, high = max(0.0, best - reach), min(1.0, best + reach)
    place: NDArray[np.float64] = start + best * (end - start)
    return place
