"""Charts of impact ratios."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from equipoise.reports.charts.axes import beside, name_axis
from equipoise.reports.charts.vega import ABOUT, BLUE, GREY, RED, Spec, alt, marks

_MOST = 2.0
"""Where the scale ends if an interval reaches farther, unless a ratio does."""


def ratio_chart(data: Mapping[str, Any]) -> Spec:
    """Draw impact ratios with their intervals, four fifths as a dashed line and 1 as a solid one.

    An interval that is longer than the scale ends in an arrow.
    """
    bars, end = data["bars"], _end(data["bars"])
    scale = alt.Scale(domain=[0, end], nice=False)
    axis = alt.Axis(
        title=data["title"],
        titleLimit=0,
        orient="top",
        grid=False,
        tickSize=4,
        values=[
            0,
            0.2,
            0.4,
            0.6,
            0.8,
            1.0,
            *([1.5] if end > 1.5 else []),
            *([2.0] if end >= 2 else []),
        ],
    )
    x: dict[str, Any] = {"scale": scale, "axis": axis}
    base = marks([_drawn(bar, end) for bar in bars]).encode(y=name_axis(bars), **ABOUT)
    colour = alt.Color("colour:N", scale=None)
    lines = marks([{"at": 1.0, "dash": False}, {"at": data["limit"], "dash": True}]).mark_rule(
        color=GREY, aria=False
    )
    dash = alt.condition("datum.dash", alt.value([4, 3]), alt.value([1, 0]))
    layers = [
        lines.encode(x=alt.X("at:Q", **x), strokeDash=dash),
        base.mark_rule(strokeWidth=2).encode(x=alt.X("low:Q", **x), x2="high:Q", color=colour),
        base.mark_point(filled=True, size=64, opacity=1).encode(
            x=alt.X("at:Q", **x), color=colour, shape=alt.Shape("shape:N", scale=None)
        ),
    ]
    if any(bar["high"] > end for bar in bars):
        arrow = base.transform_filter("datum.cut").mark_point(
            filled=True, size=60, opacity=1, shape="triangle-right", aria=False
        )
        layers.append(arrow.encode(x=alt.X("high:Q", **x), color=colour))
    return beside(alt.layer(*layers), bars)


def _end(bars: Sequence[Mapping[str, Any]]) -> float:
    """The end of the scale: every ratio, and intervals as far as is useful."""
    ratios: float = max(bar["ratio"] for bar in bars)
    highest: float = max(bar["high"] for bar in bars)
    return max(1.05, 1.03 * ratios, min(_MOST, 1.03 * highest) if math.isfinite(highest) else _MOST)


def _drawn(bar: Mapping[str, Any], end: float) -> dict[str, Any]:
    side = RED if bar["below"] else BLUE
    return {
        "name": bar["name"],
        "at": bar["ratio"],
        "low": bar["low"],
        "high": min(bar["high"], end),
        "cut": bar["high"] > end,
        "colour": GREY if bar["small"] else side,
        # The shape tells the sides apart, too, for readers who do not see colours.
        "shape": "diamond" if bar["below"] else "circle",
        "about": bar["about"],
    }
