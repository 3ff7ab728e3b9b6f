"""A line for each name: its name to the left, its numbers to the right."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from equipoise.reports.charts.names import LINE, WrappedNames
from equipoise.reports.charts.vega import GREY

if TYPE_CHECKING:
    from types import ModuleType

    import altair

_WIDTH = 380
_LETTERS = 62
"""How many letters of a name stand on a line."""
_ROW = 22


def name_axis(alt: ModuleType, bars: Sequence[Mapping[str, Any]]) -> altair.Y:
    """The names of the lines, in their order; long ones take several lines."""
    wrapped = _names(bars)
    axis = alt.Axis(
        title=None, labelPadding=8, ticks=False, domain=False, grid=False, **wrapped.beside()
    )
    y: altair.Y = alt.Y("name:N", sort=list(wrapped.names), axis=axis)
    return y


def line_height(alt: ModuleType, bars: Sequence[Mapping[str, Any]]) -> altair.Step:
    """The height of a line: as much as the longest name takes."""
    step: altair.Step = alt.Step(_ROW + LINE * (_names(bars).height - 1))
    return step


def _names(bars: Sequence[Mapping[str, Any]]) -> WrappedNames:
    return WrappedNames.wrapped([bar["name"] for bar in bars], _LETTERS, most=12)


def beside(alt: ModuleType, chart: Any, bars: Sequence[Mapping[str, Any]]) -> altair.LayerChart:
    """A chart with the numbers of each line to its right."""
    values = [{"name": bar["name"], "text": bar["text"]} for bar in bars]
    words = (
        alt.Chart(alt.Data(values=values))
        .mark_text(align="left", color=GREY, fontSize=11, aria=False)
        .encode(y=name_axis(alt, bars), x=alt.value(_WIDTH + 10), text="text:N")
    )
    layers: altair.LayerChart = alt.layer(chart, words).properties(
        width=_WIDTH, height=line_height(alt, bars)
    )
    return layers


def signed_axis(ends: tuple[float, float], room: float) -> dict[str, Any]:
    """Round numbers to write on an axis, with their sign: 0 and as many as there is room for.

    >>> axis = signed_axis((-0.021, 0.034), room=200)
    >>> axis["values"], axis["format"]
    ([-0.02, 0.0, 0.02], '+.2f')
    """
    span = ends[1] - ends[0]
    first = math.floor(math.log10(span)) - 2
    step, digits = next(
        (factor * 10.0**power, max(0, -power))
        for power in range(first, first + 4)
        for factor in (1, 2, 5)
        if factor * 10.0**power / span * room >= 30 + 7 * max(0, -power)
    )
    marks = range(math.ceil(ends[0] / step), math.floor(ends[1] / step) + 1)
    return {
        "values": [round(i * step, digits) for i in marks],
        "format": f"+.{digits}f",
        "labelExpr": "datum.value === 0 ? '0' : datum.label",
        "labelFlush": False,
        "labelOverlap": False,
    }
