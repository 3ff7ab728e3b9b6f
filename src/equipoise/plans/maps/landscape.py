"""What a policy map shows: Uniform Bias over two moves, the zero curve, and the best points."""

from __future__ import annotations

import functools
import math
from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise.errors import InputError
from equipoise.lattice import Group
from equipoise.plans.maps.curves import branches
from equipoise.plans.maps.geometry import Conic, HalfPlane, Point, clip, corners
from equipoise.plans.maps.limits import MapLimit, deletion_limits, kept_rows
from equipoise.plans.maps.window import QUADRANT, box
from equipoise.validate import a_number, at_least
from equipoise.values import Value, plain

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from equipoise.counts import Counts
    from equipoise.plans.maps.moves import Move
    from equipoise.plans.maps.search import Search

_ZERO = Fraction(0)


@dataclass(frozen=True)
class MapPoint:
    """A point of the map: how many rows each move takes, and what comes of it.

    Attributes
    ----------
    name
        What the point is.
    x, y
        The rows of the two moves.
    ub
        Uniform Bias after them.
    cost
        What they cost.
    n
        How many rows the table has after them.
    inside
        Whether all limits hold.
    """

    name: str
    x: float
    y: float
    ub: float
    cost: float
    n: float
    inside: bool

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return {k: plain(v) for k, v in asdict(self).items()}


@dataclass(frozen=True, eq=False, kw_only=True)
class Landscape:
    """Uniform Bias of one group and label over two moves, within limits.

    Attributes
    ----------
    counts
        The table as it is.
    x, y
        The two moves.
    group, label_value
        Whose bias is shown.
    limits
        What was asked for, such as ``x<=4500``.
    cost_x, cost_y
        What a row of each move costs.
    tolerance
        The |UB| that is small enough.
    x_max, y_max
        How far the map is drawn.
    """

    counts: Counts
    x: Move
    y: Move
    group: Group
    label_value: Value
    limits: tuple[MapLimit, ...]
    cost_x: float
    cost_y: float
    tolerance: float
    x_max: float
    y_max: float
    search: Search

    @property
    def label_pattern(self) -> Group:
        """The label value, as a pattern."""
        return Group({self.counts.label.name: self.label_value})

    def ub(self, x: Any, y: Any) -> NDArray[np.float64]:
        """UB after so many rows of each move; arrays give arrays.

        It is nan where the group or the label would have no rows, or a cell less than none.
        """
        return self.search.surface.ub(x, y)

    def surface(
        self, points: int = 61
    ) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
        """A grid over the map: the x, the y, and UB with a line for each y."""
        at_least("points", points, 2, whole=True)
        x, y = (np.linspace(0, most, points) for most in (self.x_max, self.y_max))
        return x, y, self.ub(x[None, :], y[:, None])

    @functools.cached_property
    def zero(self) -> Conic:
        """The curve on which UB is 0: the conic ``n_gy·n_ḡȳ = n_gȳ·n_ḡy``."""
        return self.search.surface.level()

    def zero_y(self, x: float) -> tuple[float, ...]:
        """The y at which UB is 0, for an x: none, one or two, the least first."""
        a_number("x", x)
        line = HalfPlane(Fraction(1), _ZERO, exact(x))
        return tuple(sorted(max(y, 0.0) for _, y in self.zero.meet(line) if self.is_possible(x, y)))

    def zero_x(self, y: float) -> tuple[float, ...]:
        """The x at which UB is 0, for a y: none, one or two, the least first."""
        a_number("y", y)
        line = HalfPlane(_ZERO, Fraction(1), exact(y))
        return tuple(sorted(max(x, 0.0) for x, _ in self.zero.meet(line) if self.is_possible(x, y)))

    def is_possible(self, x: float, y: float) -> bool:
        """Tell whether so many rows can be moved, whatever limits were asked for."""
        bounds = (*QUADRANT, *(limit.half for limit in self.built_in))
        return all(h.nearly_holds(x, y) for h in bounds) and not np.isnan(self.ub(x, y))

    @functools.cached_property
    def built_in(self) -> tuple[MapLimit, ...]:
        """The limits that nobody has to ask for.

        No more is deleted than there is; and a row stays of the group, of the rest, of the
        label and of the others, since without one UB is undefined or 0 whatever the rates are.
        """
        return (*deletion_limits(self.x, self.y), *self.kept)

    @functools.cached_property
    def kept(self) -> tuple[MapLimit, ...]:
        """Of the limits that are built in, those by which a row stays."""
        return kept_rows((self.x, self.y), self.search.surface, self.group, self.label_pattern)

    def curve(self, ub: float = 0.0, points: int = 201) -> tuple[tuple[Point, ...], ...]:
        """The curve of a UB within the map as lines to draw: each a row of points."""
        a_number("ub", ub)
        curve = self.search.surface.level(exact(ub))
        return branches(curve, points, (self.x_max, self.y_max), self.is_possible)

    @functools.cached_property
    def feasible(self) -> tuple[Point, ...]:
        """The corners of what the limits allow, as far as it is on the map."""
        found = clip(box(self.x_max, self.y_max), self.search.region)
        return tuple((float(x), float(y)) for x, y in found)

    @functools.cached_property
    def is_empty(self) -> bool:
        """Whether no point is inside all limits."""
        return next(corners(self.search.region), None) is None

    @functools.cached_property
    def cheapest(self) -> MapPoint | None:
        """The cheapest point within the limits whose |UB| is at most the tolerance.

        x and y are real numbers, not rounded to rows.
        """
        found = self.search.cheapest()
        return None if found is None else self.point(*found, name="cheapest")

    @functools.cached_property
    def reached(self) -> bool:
        """Whether the tolerance can be reached within the limits."""
        return self.cheapest is not None

    @functools.cached_property
    def nearest(self) -> MapPoint | None:
        """The point with the least |UB| within the limits, where the tolerance is not reached."""
        if self.reached or self.is_empty:
            return None
        far = [*corners(self.search.region), *box(self.x_max, self.y_max)]
        whole = box(*(float(max(p[i] for p in far)) for i in (0, 1)))
        found = self.search.nearest(whole)
        return None if found is None else self.point(*found, name="least |UB|")

    @functools.cached_property
    def whole(self) -> MapPoint | None:
        """The best point of whole rows near the cheapest, or near that of the least |UB|.

        Every limit holds exactly. With a tolerance above 0, so does that; without, it is the
        neighbour with the least |UB|.
        """
        best = self.cheapest or self.nearest
        if best is None:
            return None
        search = self.search if self.reached else replace(self.search, tolerance=_ZERO)
        found = search.whole_near((best.x, best.y))
        return None if found is None else self.point(*found, name="in whole rows")

    def point(self, x: float, y: float, *, name: str = "") -> MapPoint:
        """What comes of so many rows of each move."""
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
        """The points worth knowing: now, where UB is 0 on the axes and limits, and the best."""
        zeros = [("UB 0 by y alone", (0.0, y)) for y in self.zero_y(0)]
        zeros += [("UB 0 by x alone", (x, 0.0)) for x in self.zero_x(0)]
        for limit in self.limits:
            met = [p for p in self.zero.meet(limit.half) if self.is_possible(*p)]
            zeros += [(f"UB 0 at {limit.text}", p) for p in met]
        found = [self.point(0.0, 0.0, name="now")]
        found += [self.point(*p, name=name) for name, p in zeros]
        best = [self.cheapest or self.nearest, self.whole]
        return (*found, *(p for p in best if p is not None))


def exact(value: float) -> Fraction:
    """The number a person wrote: 0.1 is a tenth."""
    if isinstance(value, (int, Fraction)):
        return Fraction(value)
    if not math.isfinite(value):
        raise InputError(f"{value} is not a number of rows; give a finite one.")
    return Fraction(repr(float(value)))
