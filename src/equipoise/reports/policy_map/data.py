"""The chart of a policy map, as plain data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise.measures.display import number
from equipoise.plans.maps.geometry import HalfPlane
from equipoise.plans.maps.sentences import rows_text

if TYPE_CHECKING:
    from equipoise.plans.maps.landscape import MapPoint
    from equipoise.plans.maps.policy_map import PolicyMap


_COLUMNS, _ROWS = 60, 40
"""Size of the heat map."""


def chart_data(map_: PolicyMap) -> dict[str, Any]:
    """The chart of a policy map, as plain data.

    >>> from equipoise.counts import Counts
    >>> from equipoise.plans.maps.policy_map import policy_map
    >>> counts = Counts.from_mapping(
    ...     {("m", "y"): 60, ("m", "n"): 40, ("w", "y"): 20, ("w", "n"): 80},
    ...     sensitive=["sex"],
    ...     label="l",
    ... )
    >>> data = chart_data(
    ...     policy_map(counts, x="add sex=m, l=n", y="add sex=w, l=y", limits=["y<=90"])
    ... )
    >>> data["limits"][0]["text"], data["limits"][0]["side"], data["best"]["text"]
    ('y<=90', 'right', 'x 29.28, y 49.28')
    """
    cells = _cells(map_)
    bound = _bound(map_, cells)
    tolerated = (map_.tolerance, -map_.tolerance) if map_.tolerance else ()
    return {
        "x_title": f"x: {map_.x}",
        "y_title": f"y: {map_.y}",
        "x_max": map_.x_max,
        "y_max": map_.y_max,
        "cells": cells,
        "bound": bound,
        "clamped": any(cell["ub"] < -bound for cell in cells),
        "zero": _lines(map_, 0.0),
        "tolerated": [line for ub in tolerated for line in _lines(map_, ub)],
        "limits": drawn_limits(map_),
        "feasible": [list(p) for p in map_.feasible],
        "best": _described(best_point(map_)),
        "chosen": _described(map_.chosen if map_.at is not None else None),
    }


def _cells(map_: PolicyMap) -> list[dict[str, float]]:
    x, y = (
        np.linspace(0, most, n + 1) for most, n in ((map_.x_max, _COLUMNS), (map_.y_max, _ROWS))
    )
    ub = map_.ub((x[None, :-1] + x[None, 1:]) / 2, (y[:-1, None] + y[1:, None]) / 2)
    return [
        {
            "x": float(x[j]),
            "x2": float(x[j + 1]),
            "y": float(y[i]),
            "y2": float(y[i + 1]),
            "ub": round(float(ub[i, j]), 4),
        }
        for i, j in np.argwhere(np.isfinite(ub)).tolist()
    ]


def _bound(map_: PolicyMap, cells: list[dict[str, float]]) -> float:
    """The UB at the end of the colours."""
    # Below 0 UB has no bound, and one far away would take the colours from what can be reached.
    inside = [
        abs(cell["ub"])
        for cell in cells
        if all(h.nearly_holds(cell["x"], cell["y"]) for h in map_.search.region)
    ]
    positive = [cell["ub"] for cell in cells]
    return max(0.05, min(1.0, max([*inside, *positive], default=0.0)))


def _lines(map_: PolicyMap, ub: float) -> list[list[list[float]]]:
    return [[list(p) for p in line] for line in map_.curve(ub, 121)]


def drawn_limits(map_: PolicyMap) -> list[dict[str, Any]]:
    """The lines of the limits that cross the map, and the side where each of them ends."""
    found = []
    for limit in (*map_.limits, *map_.built_in):
        if limit in map_.kept:
            continue
        ends = _ends(map_, limit.half)
        if len(ends) < 2 or ends[0][0] == ends[1][0] == map_.x_max:
            continue  # it is not on the map, or is the map's own edge
        if ends[0][1] == ends[1][1] == map_.y_max:
            continue
        first, last = ends[0], ends[-1]
        at_top, at_right = last[1] >= 0.999 * map_.y_max, last[0] >= 0.999 * map_.x_max
        # Names are written above or beside the map, where they cover nothing of it.
        side = "top" if at_top and not (at_right and first[1] > 0) else "right"
        found.append(
            {
                "text": limit.text,
                "ends": [list(first), list(last)],
                "side": side if at_top or at_right else "inside",
            }
        )
    return found


def _ends(map_: PolicyMap, line: HalfPlane) -> list[tuple[float, float]]:
    """The two points where a line leaves the map, the one on the upper right last."""
    edges = [(0, 0.0), (0, map_.x_max), (1, 0.0), (1, map_.y_max)]
    most = map_.x_max, map_.y_max
    met = []
    for axis, value in edges:
        a, b = float(line.a), float(line.b)
        along, across = (a, b) if axis == 1 else (b, a)
        if along:
            other = (float(line.c) - across * value) / along
            if -1e-9 <= other <= most[1 - axis] * (1 + 1e-9):
                met.append((value, other) if axis == 0 else (other, value))
    # A line through a corner meets two edges at the same point.
    unique = {(round(x / most[0], 9), round(y / most[1], 9)): (x, y) for x, y in met}
    return [unique[key] for key in sorted(unique, key=lambda p: (p[0] + p[1], p[0]))]


def best_point(map_: PolicyMap) -> MapPoint | None:
    """The best point, if it is on the map."""
    best = map_.cheapest or map_.nearest
    return None if best is None or best.x > map_.x_max or best.y > map_.y_max else best


def _described(point: MapPoint | None) -> dict[str, Any] | None:
    if point is None:
        return None
    text = f"x {rows_text(point.x)}, y {rows_text(point.y)}"
    about = f"{point.name}: {text}, UB {number(point.ub)}, cost {rows_text(point.cost)}"
    return {"x": point.x, "y": point.y, "text": text, "about": about}
