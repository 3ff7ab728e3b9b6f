"""The policy map: Uniform Bias of one group and label over two moves, and the cheapest way to 0."""

from __future__ import annotations

import datetime
import functools
import json
import math
import textwrap
from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise.errors import InputError, PatternError
from equipoise.lattice import Group
from equipoise.measures.display import number
from equipoise.plain import Grid
from equipoise.plans.maps.geometry import Affine, Conic, HalfPlane, Point, clip, corners
from equipoise.plans.maps.moves import LARGEST, MapLimit, Move
from equipoise.plans.maps.search import Search, Surface
from equipoise.plans.maps.sentences import map_sentences, rows_text
from equipoise.plans.maps.window import QUADRANT, box, branches, window
from equipoise.results import Drawable, FlatTable
from equipoise.validate import a_number, at_least
from equipoise.values import Value, as_value, plain

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from equipoise.counts import Axis, Counts

SCHEMA = "equipoise.map/1"
_WRAP = 100
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
class PolicyMap(Drawable):
    """Uniform Bias of one group and label as a surface over two moves.

    Made by :func:`policy_map`.

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
    time
        When it was made.
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
    time: str

    # --------------------------------------------------------------------- reading

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
        line = HalfPlane(Fraction(1), _ZERO, _exact(x))
        return tuple(sorted(max(y, 0.0) for _, y in self.zero.meet(line) if self.is_possible(x, y)))

    def zero_x(self, y: float) -> tuple[float, ...]:
        """The x at which UB is 0, for a y: none, one or two, the least first."""
        a_number("y", y)
        line = HalfPlane(_ZERO, Fraction(1), _exact(y))
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
        return (*_caps(self.x, self.y), *self.kept)

    @functools.cached_property
    def kept(self) -> tuple[MapLimit, ...]:
        """Of the limits that are built in, those by which a row stays."""
        return _kept((self.x, self.y), self.search.surface, self.group, self.label_pattern)

    def curve(self, ub: float = 0.0, points: int = 201) -> tuple[tuple[Point, ...], ...]:
        """The curve of a UB within the map as lines to draw: each a row of points."""
        a_number("ub", ub)
        return branches(self, self.search.surface.level(_exact(ub)), points)

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

    # ---------------------------------------------------------------------- saying

    @property
    def label_pattern(self) -> Group:
        """The label value, as a pattern."""
        return Group({self.counts.label.name: self.label_value})

    @property
    def heading(self) -> str:
        """What is mapped, in one line."""
        return f"Policy map: Uniform Bias of {self.group} for {self.label_pattern}"

    @functools.cached_property
    def sentences(self) -> tuple[str, ...]:
        """What the map says, in sentences."""
        return map_sentences(self)

    def grid(self) -> Grid:
        """The points worth knowing, as a table for people."""
        headers = ("point", "x", "y", "UB", "cost", "rows after", "inside limits")
        rows = tuple(
            (
                p.name,
                *map(rows_text, (p.x, p.y)),
                number(p.ub),
                *map(rows_text, (p.cost, p.n)),
                "yes" if p.inside else "no",
            )
            for p in self.points
        )
        return Grid(headers, rows, frozenset(range(1, 6)))

    def text(self) -> str:
        """The map in words: moves, limits, points and sentences."""
        limits = ", ".join(limit.text for limit in self.limits) or "none but the rows there are"
        about = f"x: {self.x}\ny: {self.y}\nlimits: {limits}"
        said = "\n".join(
            textwrap.fill(s, _WRAP, initial_indent="- ", subsequent_indent="  ", **_WHOLE_WORDS)
            for s in self.sentences
        )
        return f"{self.heading}\n\n{about}\n\n{self.grid().text()}\n\n{said}"

    def to_dict(self) -> dict[str, Any]:
        """Plain data: what ``--json`` prints."""
        from equipoise.version import __version__

        best = {"cheapest": self.cheapest, "nearest": self.nearest, "whole": self.whole}
        return {
            "schema": SCHEMA,
            "n": self.counts.n,
            "sensitive": [a.name for a in self.counts.sensitive],
            "label": self.counts.label.name,
            "group": {k: plain(v) for k, v in self.group.items()},
            "label_value": plain(self.label_value),
            "x": self.x.to_dict(),
            "y": self.y.to_dict(),
            "parameters": {k: getattr(self, k) for k in ("cost_x", "cost_y", "tolerance")},
            "limits": [_limit_dict(limit) for limit in (*self.limits, *self.built_in)],
            "window": {"x_max": self.x_max, "y_max": self.y_max},
            "ub": self.points[0].to_dict()["ub"],
            "zero_curve": {
                "kind": self.zero.name,
                **dict(zip("ABCDEF", map(float, self.zero.coefficients), strict=True)),
            },
            "feasible": [list(p) for p in self.feasible],
            "reached": self.reached,
            **{k: None if p is None else p.to_dict() for k, p in best.items()},
            "points": [p.to_dict() for p in self.points],
            "sentences": list(self.sentences),
            "reading": self.counts.reading.to_dict(),
            "fingerprint": self.counts.fingerprint,
            "version": __version__,
            "time": self.time,
        }

    def to_json(self, *, indent: int | None = None) -> str:
        """One JSON document of :meth:`to_dict`."""
        return json.dumps(self.to_dict(), ensure_ascii=False, indent=indent, allow_nan=False)

    def __repr__(self) -> str:
        return self.text()

    def _said(self) -> list[str]:
        return [self.heading, f"x: {self.x} · y: {self.y}", *self.sentences]

    def _table(self) -> FlatTable:
        names = ("name", "x", "y", "ub", "cost", "n", "inside")
        return names, [[getattr(point, name) for name in names] for point in self.points]


_WHOLE_WORDS: Any = {"break_long_words": False, "break_on_hyphens": False}


def policy_map(
    counts: Counts,
    *,
    x: str,
    y: str,
    group: Group | str | None = None,
    label_value: Any = None,
    limits: Sequence[str] = (),
    cost_x: float = 1.0,
    cost_y: float = 1.0,
    tolerance: float = 0.0,
    x_max: float | None = None,
    y_max: float | None = None,
) -> PolicyMap:
    """Map the Uniform Bias of a group and label over two moves.

    Parameters
    ----------
    counts
        The table; without weights.
    x, y
        The moves: ``add PATTERN`` or ``delete PATTERN``. The pattern names sensitive
        attributes, the label, or both. Rows of several cells are split over them in
        proportion to their present rows.
    group, label_value
        Whose UB is mapped; if not given, what the pattern of ``y`` names, else that of ``x``.
    limits
        Linear limits in x, y, n (the rows after the moves) and cost, such as ``"x<=4500"``,
        ``"n>=30000"`` or ``"2*x + y <= 9000"``.
    cost_x, cost_y
        What a row of each move costs.
    tolerance
        The |UB| that is small enough.
    x_max, y_max
        How far the map is drawn; chosen to show limits and zero curve, if not given.

    Examples
    --------
    >>> counts = Counts.from_mapping(
    ...     {("m", "hired"): 160, ("m", "not"): 290, ("w", "hired"): 40, ("w", "not"): 110},
    ...     sensitive=["sex"],
    ...     label="outcome",
    ... )
    >>> map_ = policy_map(
    ...     counts,
    ...     x="delete sex=m, outcome=hired",
    ...     y="add sex=w, outcome=hired",
    ...     limits=["y<=15"],
    ... )
    >>> map_.zero.name, round(map_.zero_y(0)[0], 3), round(map_.cheapest.x, 3), map_.cheapest.y
    ('line', 20.69, 15.0, 15.0)
    """
    if counts.weights is not None:
        raise InputError("a policy map counts rows, and these are weighted; leave out the weights.")
    moves = Move.parse(x, counts), Move.parse(y, counts)
    whose, value = _chosen(counts, moves, group, label_value)
    costs = _cost("cost_x", cost_x), _cost("cost_y", cost_y)
    at_least("tolerance", tolerance, 0)
    if not tolerance <= LARGEST:
        raise InputError(f"`tolerance` must be a number such as 0.05, not {tolerance}.")
    surface = _surface(counts, moves, whose, value)
    forms = {
        "x": (0, 1, 0),
        "y": (0, 0, 1),
        "n": (surface.n.const, surface.n.x, surface.n.y),
        "cost": (0, *costs),
    }
    asked = [limits] if isinstance(limits, str) else limits
    read = tuple(MapLimit.parse(text, forms) for text in asked)
    kept = _kept(moves, surface, whose, Group({counts.label.name: value}))
    caps = tuple(limit.half for limit in (*_caps(*moves), *kept))
    search = Search(
        surface=surface,
        region=(*QUADRANT, *(limit.half for limit in read), *caps),
        cost_x=costs[0],
        cost_y=costs[1],
        tolerance=_exact(tolerance),
    )
    width, height = window(search, caps, moves, (x_max, y_max))
    return PolicyMap(
        counts=counts,
        x=moves[0],
        y=moves[1],
        group=whose,
        label_value=value,
        limits=read,
        cost_x=float(cost_x),
        cost_y=float(cost_y),
        tolerance=float(tolerance),
        x_max=width,
        y_max=height,
        search=search,
        time=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
    )


# ---------------------------------------------------------------------------- reading in


def _chosen(
    counts: Counts, moves: tuple[Move, Move], group: Group | str | None, label_value: Any
) -> tuple[Group, Value]:
    """Whose UB is mapped: as asked, else of the move of y, else of that of x."""
    label = counts.label.name
    patterns = [move.pattern for move in reversed(moves)]
    groups = [Group({k: v for k, v in p.items() if k != label}) for p in patterns]
    if group is None and label_value is None:
        full = [(g, p[label]) for g, p in zip(groups, patterns, strict=True) if g and label in p]
        group, label_value = full[0] if full else (None, None)
    elif group is None:
        group = next((g for g in groups if g), None)
    elif label_value is None:
        label_value = next((p[label] for p in patterns if label in p), None)
    if group is None or label_value is None:
        raise InputError(
            "whose bias is mapped is not said by the moves; name a group and a label value, as in "
            "--group sex=Female --label-value '>50K'."
        )
    whose, value = _group(counts, group), as_value(label_value)
    counts.label.code(value)
    return whose, value


def _group(counts: Counts, group: Group | str) -> Group:
    whose = Group.parse(group) if isinstance(group, str) else group
    names = [a.name for a in counts.sensitive]
    for name, value in whose.items():
        axis: Axis = counts.axis(name)
        if name not in names:
            raise PatternError(
                f"the group {whose} names {name!r}, which is no sensitive attribute; there are: "
                f"{', '.join(names)}. The label is chosen by --label-value."
            )
        axis.code(value)
    if not whose:
        raise PatternError("the group of all rows has no bias; name one, as in sex=Female.")
    return whose


def _cost(name: str, cost: float) -> Fraction:
    a_number(name, cost)
    if not 1e-9 <= cost <= LARGEST:
        raise InputError(f"{name} must be above 0 and at most {LARGEST:.0e}, not {cost}.")
    return _exact(cost)


def _exact(value: float) -> Fraction:
    """The number a person wrote: 0.1 is a tenth."""
    if isinstance(value, (int, Fraction)):
        return Fraction(value)
    if not math.isfinite(value):
        raise InputError(f"{value} is not a number of rows; give a finite one.")
    return Fraction(repr(float(value)))


def _surface(counts: Counts, moves: tuple[Move, Move], group: Group, value: Value) -> Surface:
    label = {counts.label.name: value}
    patterns = Group({**group, **label}), group, Group(label), Group()
    n_gy, n_g, n_y, n = (
        Affine(Fraction(counts.of(pattern)), *(move.sign * move.share(pattern) for move in moves))
        for pattern in patterns
    )
    return Surface(n_gy=n_gy, n_g=n_g, n_y=n_y, n=n)


def _caps(x: Move, y: Move) -> tuple[MapLimit, ...]:
    """No more is deleted than there is, by each move and by both together."""
    caps = []
    for move, name, a, b in ((x, "x", 1, 0), (y, "y", 0, 1)):
        if move.kind == "delete":
            half = HalfPlane(Fraction(a), Fraction(b), Fraction(move.rows))
            caps.append(MapLimit(f"{name}<={move.rows}", half))
    if len(caps) == 2 and x.overlaps(y):
        half = HalfPlane(Fraction(1, x.rows), Fraction(1, y.rows), Fraction(1))
        caps.append(MapLimit(f"x/{x.rows} + y/{y.rows} <= 1", half))
    return tuple(caps)


def _kept(
    moves: tuple[Move, Move], rows: Surface, group: Group, label: Group
) -> tuple[MapLimit, ...]:
    """At least one row stays on each side of the group and of the label."""
    sides = (
        (f"at least 1 row of {group}", rows.n_g, Affine(_ZERO, _ZERO, _ZERO)),
        (f"at least 1 row of {label}", rows.n_y, Affine(_ZERO, _ZERO, _ZERO)),
        (f"at least 1 row not of {group}", rows.n, rows.n_g),
        (f"at least 1 row not of {label}", rows.n, rows.n_y),
    )
    found = []
    for text, all_rows, part in sides:
        const, x, y = all_rows.const - part.const, all_rows.x - part.x, all_rows.y - part.y
        least = const + sum(min(c, _ZERO) * m.rows for c, m in zip((x, y), moves, strict=True))
        if least < 1 and (const >= 1 or x > 0 or y > 0 or not part.const):
            found.append(MapLimit(text, HalfPlane(-x, -y, const - 1)))
    return tuple(found)


def _limit_dict(limit: MapLimit) -> dict[str, Any]:
    half = limit.half
    return {"text": limit.text, "a": float(half.a), "b": float(half.b), "c": float(half.c)}
