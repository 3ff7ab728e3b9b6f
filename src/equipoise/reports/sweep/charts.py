"""The cost, or what else a sweep is about, against the value that varies."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from equipoise.reports.charts.vega import ABOUT, BLUE, GREY, RED, Layer, Spec, alt, finished, marks

_WIDTH, _HEIGHT = 640, 340


def sweep_chart(data: Mapping[str, Any]) -> Spec:
    """Draw a sweep; ``data`` is that of :func:`equipoise.reports.sweep.data.curve`."""
    x = alt.X(
        "x:Q",
        scale=alt.Scale(type="log" if data["log"] else "linear", nice=False, padding=12),
        axis=alt.Axis(title=data["title"], grid=False, format="~g", tickCount=8, labelOverlap=True),
    )
    y = alt.Y(
        "y:Q",
        scale=alt.Scale(domain=[0, data["y_max"]], nice=False),
        axis=alt.Axis(title=data["measure"], format=",.6~g", grid=True, gridColor="#8a8f9844"),
    )
    layers = [*_bounds(data, x), *_series(data, x, y)]
    return finished(alt.layer(*layers).properties(width=_WIDTH, height=_HEIGHT))


def _series(data: Mapping[str, Any], x: Any, y: Any) -> list[Layer]:
    layers: list[Layer] = []
    for name, colour in zip(data["series"], (BLUE, RED), strict=False):
        items = [item for item in data["points"] if item["what"] == name]
        good = [item for item in items if not item["dominated"]]
        line = marks(good).mark_line(color=colour, strokeWidth=1, opacity=0.6, aria=False)
        dots = marks(good).mark_point(filled=True, size=50, color=colour, opacity=1)
        rings = marks([item for item in items if item["dominated"]])
        hollow = rings.mark_point(size=50, color=GREY, opacity=1)
        layers += [line.encode(x=x, y=y), dots.encode(x=x, y=y, **ABOUT)]
        layers += [hollow.encode(x=x, y=y, **ABOUT)] * (len(good) < len(items))
        if len(data["series"]) > 1:
            text = marks(good[-1:]).mark_text(align="left", dx=8, fontSize=12, aria=False)
            layers.append(text.encode(x=x, y=y, text="what:N"))
    return layers


def _bounds(data: Mapping[str, Any], x: Any) -> list[Layer]:
    if not data["bounds"]:
        return []
    spans = marks(data["bounds"]).mark_rule(color=GREY, strokeWidth=2, aria=False)
    return [spans.encode(x=x, y=alt.Y("low:Q"), y2="high:Q")]
