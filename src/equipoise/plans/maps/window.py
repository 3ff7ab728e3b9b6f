"""The part of a policy map that is drawn."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise.errors import InputError
from equipoise.plans.maps.geometry import Exact, HalfPlane, corners, rays
from equipoise.plans.maps.limits import LARGEST
from equipoise.validate import at_least

if TYPE_CHECKING:
    from collections.abc import Sequence

    from equipoise.plans.maps.moves import Move
    from equipoise.plans.maps.search import Search

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
