"""A line for each name: its name to the left, its numbers to the right."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from equipoise.reports.charts.drawing import GREY, middle_cut

if TYPE_CHECKING:
    from types import ModuleType

    import altair

_WIDTH = 380


def name_axis(alt: ModuleType, bars: Sequence[Mapping[str, Any]]) -> altair.Y:
    """The names of the lines, in their order; long ones are cut in the middle."""
    axis = alt.Axis(
        title=None,
        labelLimit=460,
        labelExpr=middle_cut(66),
        labelPadding=8,
        ticks=False,
        domain=False,
    )
    y: altair.Y = alt.Y("name:N", sort=[bar["name"] for bar in bars], axis=axis)
    return y


def beside(alt: ModuleType, chart: Any, bars: Sequence[Mapping[str, Any]]) -> altair.LayerChart:
    """A chart with the numbers of each line to its right."""
    values = [{"name": bar["name"], "text": bar["text"]} for bar in bars]
    words = (
        alt.Chart(alt.Data(values=values))
        .mark_text(align="left", color=GREY, fontSize=11, aria=False)
        .encode(y=name_axis(alt, bars), x=alt.value(_WIDTH + 10), text="text:N")
    )
    layers: altair.LayerChart = alt.layer(chart, words).properties(
        width=_WIDTH, height=alt.Step(22)
    )
    return layers
