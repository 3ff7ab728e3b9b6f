"""A policy map as a page: what its chart draws, as plain data, and the page around it."""

from __future__ import annotations

import os
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise import atomic
from equipoise.errors import MissingDependency
from equipoise.measures.display import number, whole
from equipoise.plans.maps.geometry import HalfPlane
from equipoise.plans.maps.sentences import rows_text
from equipoise.reports.html import Section, bullets, html_table, render_page
from equipoise.version import __version__

if TYPE_CHECKING:
    from equipoise.plans.maps.policy_map import MapPoint, PolicyMap

COLUMNS, ROWS = 60, 40
"""Of the heat map."""


def write_map(map_: PolicyMap, path: str | os.PathLike[str], *, source: str | None = None) -> None:
    """Write a policy map as a page; without the chart if that cannot be drawn.

    Parameters
    ----------
    map_
        The map.
    path
        The file to write; it is whole or not there.
    source
        What was mapped, as the reader knows it.
    """
    from equipoise.reports.charts import policy_map_chart, to_html_fragment

    try:
        chart = to_html_fragment(policy_map_chart(chart_data(map_)))
    except MissingDependency as absent:
        chart = f"<p>{escape(str(absent))}</p>"
    atomic.write_text(path, render_map(map_, chart, source=source))


def render_map(map_: PolicyMap, chart: str = "", *, source: str | None = None) -> str:
    """Write a policy map as a page.

    Parameters
    ----------
    map_
        The map.
    chart
        An HTML fragment.
    source
        What was mapped.

    Examples
    --------
    >>> from equipoise.counts import Counts
    >>> from equipoise.plans.maps.policy_map import policy_map
    >>> counts = Counts.from_mapping(
    ...     {("<m>", "y"): 60, ("<m>", "n"): 40, ("w", "y"): 20, ("w", "n"): 80},
    ...     sensitive=["sex"],
    ...     label="l",
    ... )
    >>> page = render_map(policy_map(counts, x="add sex=<m>, l=n", y="add sex=w, l=y"))
    >>> "add sex=&lt;m&gt;, l=n" in page, "<m>" in page
    (True, False)
    """
    grid = map_.grid()
    table = {"headers": grid.headers, "rows": grid.rows, "numbers": grid.numbers}
    figure = f"<figure><figcaption>{escape(_caption(map_))}</figcaption>{chart}</figure>"
    return render_page(
        title=map_.heading,
        source=source or f"{whole(map_.counts.n)} rows",
        figures=_figures(map_),
        sections=[
            Section("said", "What the map says", bullets(map_.sentences)),
            Section("chart", "The map", figure),
            Section("points", "Points worth knowing", html_table(table)),
        ],
        facts=_facts(map_, source),
    )


def _figures(map_: PolicyMap) -> list[list[str]]:
    best = map_.cheapest or map_.nearest
    figures = [[number(map_.points[0].ub), "UB now"]]
    if best is None:
        return [*figures, ["none", "points inside all limits"]]
    which = "of the cheapest point" if map_.reached else "of the least |UB|"
    return [
        *figures,
        [rows_text(best.x), f"x {which}"],
        [rows_text(best.y), f"y {which}"],
        [number(best.ub), "UB there"],
        [rows_text(best.cost), "its cost"],
    ]


def _caption(map_: PolicyMap) -> str:
    whose = f"UB of {map_.group} for {map_.label_pattern} after x and y rows are moved"
    colours = "red where the group still has fewer such rows than its share, blue where it has more"
    zero = "On the dark line UB is 0." if map_.curve(0.0, 21) else "UB is 0 nowhere on the map."
    parts = [f"{whose}: {colours}.", zero]
    if map_.tolerance and any(map_.curve(ub, 21) for ub in (map_.tolerance, -map_.tolerance)):
        parts.append(f"Dotted lines are where |UB| is {map_.tolerance:g}.")
    if _limits(map_):
        parts.append("Dashed lines are the limits; what is outside them is greyed.")
    best = map_.cheapest or map_.nearest
    if best is not None and best.x <= map_.x_max and best.y <= map_.y_max:
        which = "the cheapest point" if map_.reached else "the point of the least |UB|"
        parts.append(f"The ring is {which} inside the limits.")
    return " ".join(parts)


def _facts(map_: PolicyMap, source: str | None) -> list[list[str]]:
    counts = map_.counts
    facts = [["source", source]] if source else []
    return [
        *facts,
        *counts.reading.facts,
        ["rows", whole(counts.n)],
        ["x", str(map_.x)],
        ["y", str(map_.y)],
        ["limits", ", ".join(limit.text for limit in map_.limits) or "none"],
        ["cost of a row", f"{map_.cost_x:g} of x, {map_.cost_y:g} of y"],
        ["tolerance", f"|UB| up to {map_.tolerance:g}"],
        ["zero curve", _equation(map_)],
        ["sensitive attributes", ", ".join(a.name for a in counts.sensitive)],
        ["label", counts.label.name],
        ["fingerprint of the counts", f"sha256:{counts.fingerprint}"],
        ["made by", f"equipoise {__version__}"],
        ["time", map_.time],
    ]


def _equation(map_: PolicyMap) -> str:
    names = ("x²", "xy", "y²", "x", "y", "")
    pairs = zip(map_.zero.coefficients, names, strict=True)
    terms = [f"{float(c):+,.10g} {name}".rstrip() for c, name in pairs if c]
    return (" ".join(terms) or "0").replace("-", "−") + f" = 0 ({map_.zero.name})"


# --------------------------------------------------------------------------------- chart


def chart_data(map_: PolicyMap) -> dict[str, Any]:
    """What the chart of a policy map draws, as plain data.

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
        "kind": "policy-map",
        "x_title": f"x: {map_.x}",
        "y_title": f"y: {map_.y}",
        "x_max": map_.x_max,
        "y_max": map_.y_max,
        "cells": cells,
        "bound": bound,
        "clamped": any(cell["ub"] < -bound for cell in cells),
        "zero": _lines(map_, 0.0),
        "tolerated": [line for ub in tolerated for line in _lines(map_, ub)],
        "limits": _limits(map_),
        "feasible": [list(p) for p in map_.feasible],
        "best": _best(map_),
    }


def _cells(map_: PolicyMap) -> list[dict[str, float]]:
    x, y = (np.linspace(0, most, n + 1) for most, n in ((map_.x_max, COLUMNS), (map_.y_max, ROWS)))
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
    """The end of the colours: every UB inside the limits is told apart, and what is positive."""
    inside = [
        abs(cell["ub"])
        for cell in cells
        if all(h.nearly_holds(cell["x"], cell["y"]) for h in map_.search.region)
    ]
    positive = [cell["ub"] for cell in cells]
    return max(0.05, min(1.0, max([*inside, *positive], default=0.0)))


def _lines(map_: PolicyMap, ub: float) -> list[list[list[float]]]:
    return [[list(p) for p in line] for line in map_.curve(ub, 121)]


def _limits(map_: PolicyMap) -> list[dict[str, Any]]:
    """Where the line of each limit crosses the map, and the side at which it leaves it."""
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
    """The two points where a line leaves the map, the upper right one last."""
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
    unique = {(round(x / most[0], 9), round(y / most[1], 9)): (x, y) for x, y in met}
    return [unique[key] for key in sorted(unique, key=lambda p: (p[0] + p[1], p[0]))]


def _best(map_: PolicyMap) -> dict[str, Any] | None:
    best: MapPoint | None = map_.cheapest or map_.nearest
    if best is None or best.x > map_.x_max or best.y > map_.y_max:
        return None
    text = f"x {rows_text(best.x)}, y {rows_text(best.y)}"
    about = f"{best.name}: {text}, UB {number(best.ub)}, cost {rows_text(best.cost)}"
    return {"x": best.x, "y": best.y, "text": text, "about": about}
