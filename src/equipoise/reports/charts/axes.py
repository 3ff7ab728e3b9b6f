"""A line for each name: its name on the left, its numbers on the right."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from equipoise.reports.charts.names import LINE, WrappedNames
from equipoise.reports.charts.vega import GREY, alt, finished, marks

_WIDTH = 380
_LETTERS = 62
"""Maximum number of letters of a name on a line."""
_ROW = 22

Bars = Sequence[Mapping[str, Any]]
"""Lines of a chart; each has a ``name``."""


def name_axis(bars: Bars) -> alt.Y:
    """The names of the lines, in their order; long ones take several lines."""
    wrapped = _names(bars)
    axis = alt.Axis(
        title=None, labelPadding=8, ticks=False, domain=False, grid=False, **wrapped.beside()
    )
    return alt.Y("name:N", sort=list(wrapped.names), axis=axis)


def line_height(bars: Bars) -> alt.Step:
    """The height of a line, which is that of the longest name."""
    return alt.Step(_ROW + LINE * (_names(bars).height - 1))


def _names(bars: Bars) -> WrappedNames:
    return WrappedNames.wrapped([bar["name"] for bar in bars], _LETTERS, most=12)


def beside(chart: Any, bars: Bars) -> dict[str, Any]:
    """The specification of a chart with the ``text`` of each line on its right."""
    words = (
        marks([{"name": bar["name"], "text": bar["text"]} for bar in bars])
        .mark_text(align="left", color=GREY, fontSize=11, aria=False)
        .encode(y=name_axis(bars), x=alt.value(_WIDTH + 10), text="text:N")
    )
    return finished(alt.layer(chart, words).properties(width=_WIDTH, height=line_height(bars)))


def stacked_bars(
    bars: Bars, parts: Bars, *, colour: alt.Color, title: str, number: str = ",d"
) -> dict[str, Any]:
    """The specification of a line for each bar, made of parts from ``start`` to ``end``."""
    axis = alt.Axis(title=title, orient="top", format=number, tickCount=5, grid=False)
    scale = alt.Scale(domain=[0, max(part["end"] for part in parts)], nice=False)
    chart = (
        marks(parts)
        .mark_bar(height=13)
        .encode(
            y=name_axis(bars),
            x=alt.X("start:Q", axis=axis, scale=scale),
            x2="end:Q",
            color=colour,
            description="about:N",
            tooltip="about:N",
        )
    )
    return beside(chart, bars)


def signed_axis(ends: tuple[float, float], room: float) -> dict[str, Any]:
    """Round numbers to write on an axis with their sign: 0, and as many as there is room for.

    >>> axis = signed_axis((-0.021, 0.034), room=200)
    >>> axis["values"], axis["format"]
    ([-0.02, 0.0, 0.02], '+.2f')
    """
    span = ends[1] - ends[0]
    # From a hundredth of the span to ten times it there is always a step with enough room.
    first = math.floor(math.log10(span)) - 2
    # A number of the axis takes 30 pixels, and 7 more for each digit beyond two before the point.
    widest = 30 + 7 * max(0, math.floor(math.log10(max(map(abs, ends)))) - 1)
    step, digits = next(
        (factor * 10.0**power, max(0, -power))
        for power in range(first, first + 4)
        for factor in (1, 2, 5)
        if factor * 10.0**power / span * room >= widest + 7 * max(0, -power)
    )
    multiples = range(math.ceil(ends[0] / step), math.floor(ends[1] / step) + 1)
    return {
        # Rounded, since 3 * 0.1 would be written as 0.30000000000000004.
        "values": [round(i * step, digits) for i in multiples],
        "format": f"+.{digits}f",
        "labelExpr": "datum.value === 0 ? '0' : datum.label",
        "labelFlush": False,
        "labelOverlap": False,
    }
