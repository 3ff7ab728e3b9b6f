"""Curves of a policy map as polylines."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from equipoise.plans.maps.geometry import Conic, HalfPlane, Point, roots
from equipoise.plans.maps.window import QUADRANT
from equipoise.validate import at_least

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_ZERO = Fraction(0)


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
