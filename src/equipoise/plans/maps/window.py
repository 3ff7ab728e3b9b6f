"""The part of a policy map that is drawn: its axes, and curves as polylines."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise.errors import InputError
from equipoise.plans.maps.geometry import Conic, Exact, HalfPlane, Point, corners, rays, roots
from equipoise.plans.maps.limits import LARGEST
from equipoise.validate import at_least

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from equipoise.plans.maps.search import Search
    from equipoise.plans.moves import Move

_ZERO = Fraction(0)
QUADRANT = (HalfPlane(Fraction(-1), _ZERO, _ZERO), HalfPlane(_ZERO, Fraction(-1), _ZERO))
"""Moves have at least 0 rows."""


def box(x_max: float, y_max: float) -> list[Exact]:
    """The corners of the map."""
    x, y = Fraction(x_max), Fraction(y_max)
    return [(_ZERO, _ZERO), (x, _ZERO), (x, y), (_ZERO, y)]


def window(
    search: Search,
    caps: Sequence[HalfPlane],
    moves: tuple[Move, Move],
    given: tuple[float | None, float | None],
) -> tuple[float, float]:
    """Choose the ends of the axes: show a bounded feasible region, and UB 0 if it is near."""
    free = replace(search, region=(*QUADRANT, *caps), tolerance=_ZERO)
    ways = [p for p in (search.cheapest(), free.cheapest()) if p is not None]
    found = []
    for axis, move in enumerate(moves):
        if given[axis] is not None:
            found.append(_edge("xy"[axis], given[axis]))
            continue
        most = _extent(search.region, axis)
        near = [p[axis] for p in ways if not most or p[axis] <= 4 * most]
        far = max([1.2 * most, *(1.15 * v for v in near)])
        far = far or max((1.15 * v for v in _crossings(free, axis)), default=0.0)
        far = _rounded_up(far or max(0.2 * search.surface.n.const, 10))
        found.append(min(far, float(move.rows)) if move.kind == "delete" else far)
    return found[0], found[1]


def _edge(name: str, value: Any) -> float:
    at_least(f"{name}_max", value, 1)
    if not value <= LARGEST:
        raise InputError(f"`{name}_max` must be at most {LARGEST:.0e}, not {value}.")
    return float(value)


def _extent(region: Sequence[HalfPlane], axis: int) -> float:
    """The extent of the region along an axis; 0 if it is unbounded or empty."""
    if any(ray[axis] > 0 for ray in rays(region)):
        return 0.0
    return float(max((corner[axis] for corner in corners(region)), default=0))


def _crossings(search: Search, axis: int) -> list[float]:
    crossed = search.surface.level().meet(QUADRANT[1 - axis])
    return [p[axis] for p in crossed if p[axis] > 0 and not np.isnan(search.surface.ub(*p))]


def _rounded_up(value: float) -> float:
    """Round up to two digits, which are enough for the edge of a picture.

    >>> _rounded_up(3501.8), _rounded_up(9.1)
    (3600.0, 10.0)
    """
    step = 10.0 ** max(math.floor(math.log10(value)) - 1, 0)
    return float(math.ceil(value / step) * step)


def branches(
    curve: Conic, points: int, ends: Point, is_possible: Callable[[float, float], bool]
) -> tuple[tuple[Point, ...], ...]:
    """The polylines of a curve: its lower and upper branch, and its vertical lines."""
    at_least("points", points, 2, whole=True)
    x_max, y_max = ends
    edges = (QUADRANT[1], HalfPlane(_ZERO, Fraction(1), Fraction(y_max)))
    marks = [*np.linspace(0, x_max, 2 if curve.name == "line" else points).tolist()]
    marks += [*curve.turns(), *(x for edge in edges for x, _ in curve.meet(edge))]
    upright = [x for x in _upright(curve) if 0 <= x <= x_max]
    marks += [x * near for x in upright for near in (1 - 1e-5, 1 + 1e-5)]
    inside = sorted({x for x in marks if 0 <= x <= x_max})
    columns = [(x, curve.meet(HalfPlane(Fraction(1), _ZERO, Fraction(x)))) for x in inside]
    lines = [[(x, y) for y in np.linspace(0, y_max, points).tolist()] for x in upright]
    # The lower of two y is one branch, the upper the other; one alone is both.
    lines += [[(x, which(met)[1]) for x, met in columns if met] for which in (min, max)]
    cut = [_drawable(line, y_max, is_possible) for line in lines]
    return tuple(dict.fromkeys(part for parts in cut for part in parts))


def _upright(curve: Conic) -> list[float]:
    """The x of vertical lines that are part of the curve."""
    if curve.C:
        return []
    if curve.B:
        x = -curve.E / curve.B
        return [] if curve.at(x, _ZERO) else [float(x)]
    return [] if curve.E else list(roots(curve.A, curve.D, curve.F))


def _drawable(
    line: Sequence[Point], y_max: float, is_possible: Callable[[float, float], bool]
) -> list[tuple[Point, ...]]:
    """Split a polyline into the parts that lie on the map."""
    parts: list[list[Point]] = [[]]
    for x, exact in line:
        y = max(exact, 0.0)
        on_map = exact >= -1e-9 and y <= y_max * (1 + 1e-12) and is_possible(x, y)
        if on_map:
            parts[-1].append((x, y))
        elif parts[-1]:
            parts.append([])
    return [tuple(part) for part in parts if len(part) > 1]
