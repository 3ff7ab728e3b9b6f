"""The numbers of a policy map: Uniform Bias over two moves, the zero curve, the best points."""

from __future__ import annotations

import functools
import math
from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise.errors import InputError
from equipoise.lattice import Group
from equipoise.plans.maps.geometry import Conic, HalfPlane, Point, clip, corners
from equipoise.plans.maps.limits import MapLimit
from equipoise.plans.maps.window import QUADRANT, box, branches
from equipoise.validate import a_number, at_least
from equipoise.values import Value, plain

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from equipoise.counts import Counts
    from equipoise.plans.maps.search import Search
    from equipoise.plans.moves import Move

_ZERO = Fraction(0)


@dataclass(frozen=True)
class MapPoint:
    """A point of the map, and the table after the moves."""

    name: str
    x: float
    y: float
    ub: float
    cost: float
    n: float  # rows of the table
    inside: bool  # whether all limits hold

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return {k: plain(v) for k, v in asdict(self).items()}


@dataclass(frozen=True, eq=False, kw_only=True)
class Landscape:
    """Uniform Bias of one group and label over two moves, within limits.

    Attributes
    ----------
    counts
        The table before the moves.
    x, y
        The two moves.
    group, label_value
        Group and label whose UB is shown.
    limits, deletions, kept
        Requested limits, such as ``x<=4500``, and those that always apply: deletions are limited by
        the existing rows, and at least one row stays of the group, the label and their complements,
        because UB is undefined or trivially 0 without.
    cost_x, cost_y
        Cost of one row of each move.
    tolerance
        Largest acceptable |UB|.
    x_max, y_max
        Upper ends of the axes.
    at
        Rows of each move at the point that was chosen, if one was.
    """

    counts: Counts
    x: Move
    y: Move
    group: Group
    label_value: Value
    limits: tuple[MapLimit, ...]
    deletions: tuple[MapLimit, ...]
    kept: tuple[MapLimit, ...]
    cost_x: float
    cost_y: float
    tolerance: float
    x_max: float
    y_max: float
    search: Search
    at: tuple[int, int] | None = None

    @property
    def label_pattern(self) -> Group:
        """The label value, as a pattern."""
        return Group({self.counts.label.name: self.label_value})

    def ub(self, x: Any, y: Any) -> NDArray[np.float64]:
        """UB after x and y rows of the moves, which can be arrays.

        It is nan where the group or the label has no rows, or a cell would have fewer than 0.
        """
        return self.search.surface.ub(x, y)

    def surface(
        self, points: int = 61
    ) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
        """A grid over the map: the values of x and of y, and UB with one row per y."""
        at_least("points", points, 2, whole=True)
        x, y = (np.linspace(0, most, points) for most in (self.x_max, self.y_max))
        return x, y, self.ub(x[None, :], y[:, None])

    @functools.cached_property
    def zero(self) -> Conic:
        """The curve on which UB is 0: the conic ``n_gy·n_ḡȳ = n_gȳ·n_ḡy``."""
        return self.search.surface.level()

    def zero_y(self, x: float) -> tuple[float, ...]:
        """The values of y at which UB is 0 for an x: at most two, in ascending order."""
        a_number("x", x)
        line = HalfPlane(Fraction(1), _ZERO, exact(x))
        return tuple(sorted(max(y, 0.0) for _, y in self.zero.meet(line) if self.is_possible(x, y)))

    def zero_x(self, y: float) -> tuple[float, ...]:
        """The values of x at which UB is 0 for a y: at most two, in ascending order."""
        a_number("y", y)
        line = HalfPlane(_ZERO, Fraction(1), exact(y))
        return tuple(sorted(max(x, 0.0) for x, _ in self.zero.meet(line) if self.is_possible(x, y)))

    def is_possible(self, x: float, y: float) -> bool:
        """Whether the moves are possible and UB is defined after them; requested limits are ignored."""
        bounds = (*QUADRANT, *(limit.half for limit in self.built_in))
        return all(h.nearly_holds(x, y) for h in bounds) and not np.isnan(self.ub(x, y))

    @property
    def built_in(self) -> tuple[MapLimit, ...]:
        """The limits that always apply."""
        return (*self.deletions, *self.kept)

    def curve(self, ub: float = 0.0, points: int = 201) -> tuple[tuple[Point, ...], ...]:
        """The curve on which UB has a value, as polylines within the map."""
        a_number("ub", ub)
        curve = self.search.surface.level(exact(ub))
        return branches(curve, points, (self.x_max, self.y_max), self.is_possible)

    @functools.cached_property
    def feasible(self) -> tuple[Point, ...]:
        """The corners of the feasible region within the map."""
        found = clip(box(self.x_max, self.y_max), self.search.region)
        return tuple((float(x), float(y)) for x, y in found)

    @functools.cached_property
    def is_empty(self) -> bool:
        """Whether no point is inside all limits."""
        return next(corners(self.search.region), None) is None

    @functools.cached_property
    def cheapest(self) -> MapPoint | None:
        """The cheapest point within the limits whose |UB| is at most the tolerance.

        Its x and y are real numbers, not rounded to whole rows.
        """
        found = self.search.cheapest()
        return None if found is None else self.point(*found, name="cheapest")

    @functools.cached_property
    def reached(self) -> bool:
        """Whether the tolerance can be reached within the limits."""
        return self.cheapest is not None

    @functools.cached_property
    def nearest(self) -> MapPoint | None:
        """The point with the smallest |UB| within the limits, if the tolerance is not reached."""
        if self.reached or self.is_empty:
            return None
        far = [*corners(self.search.region), *box(self.x_max, self.y_max)]
        whole = box(*(float(max(p[i] for p in far)) for i in (0, 1)))
        found = self.search.nearest(whole)
        return None if found is None else self.point(*found, name="least |UB|")

    @functools.cached_property
    def whole(self) -> MapPoint | None:
        """The best point in whole rows near :attr:`cheapest`, or near :attr:`nearest`.

        Every limit holds exactly, and so does a tolerance above 0. With a tolerance of 0, it is the
        neighbour with the smallest |UB|.
        """
        best = self.cheapest or self.nearest
        if best is None:
            return None
        search = self.search if self.reached else replace(self.search, tolerance=_ZERO)
        found = search.whole_near((best.x, best.y))
        return None if found is None else self.point(*found, name="in whole rows")

    @functools.cached_property
    def chosen(self) -> MapPoint | None:
        """The point that was chosen, or else the best one in whole rows."""
        return self.whole if self.at is None else self.point(*self.at, name="chosen")

    def point(self, x: float, y: float, *, name: str = "") -> MapPoint:
        """The point for a number of rows of each move."""
        exact = self.search.surface.exact(x, y)
        return MapPoint(
            name=name,
            x=x,
            y=y,
            ub=math.nan if exact is None else float(exact),
            cost=float(self.search.cost(x, y)),
            n=float(self.search.surface.n(x, y)),
            inside=all(h.nearly_holds(x, y) for h in self.search.region),
        )

    @functools.cached_property
    def points(self) -> tuple[MapPoint, ...]:
        """The start, the points on axes and limits where UB is 0, and the best points."""
        zeros = [("UB 0 by y alone", (0.0, y)) for y in self.zero_y(0)]
        zeros += [("UB 0 by x alone", (x, 0.0)) for x in self.zero_x(0)]
        for limit in self.limits:
            met = [p for p in self.zero.meet(limit.half) if self.is_possible(*p)]
            zeros += [(f"UB 0 at {limit.text}", p) for p in met]
        found = [self.point(0.0, 0.0, name="now")]
        found += [self.point(*p, name=name) for name, p in zeros]
        best = [self.cheapest or self.nearest, self.whole, self.chosen if self.at else None]
        return (*found, *(p for p in best if p is not None))


def exact(value: float) -> Fraction:
    """The decimal number as written: 0.1 is exactly one tenth, which no float is."""
    if isinstance(value, (int, Fraction)):
        return Fraction(value)
    if not math.isfinite(value):
        raise InputError(f"{value} is not a number of rows; use a finite number.")
    return Fraction(repr(float(value)))
