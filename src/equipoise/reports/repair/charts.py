"""Where the rows of a repair came from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from equipoise.reports.charts.axes import beside, name_axis
from equipoise.reports.charts.names import WrappedNames
from equipoise.reports.charts.vega import RED, finished, plotting

if TYPE_CHECKING:
    from types import ModuleType

    import altair

_TABLES = ("#4477aa", "#ccbb44", "#228833", "#aa3377", "#66ccee", "#997744", "#aabb88", "#8a8f98")
"""Tables, told apart by colour-blind people too; red is left for what lacks."""
MISSING_ROWS = "missing"
"""What the rows are called that no table gave."""


def source_chart(data: Mapping[str, Any]) -> dict[str, Any]:
    """Draw the rows each cell needed: a colour for each table they came from, and what lacks.

    Parameters
    ----------
    data
        From :func:`equipoise.reports.repair.data.source_bars`.

    Returns
    -------
    dict
        A Vega-Lite specification.
    """
    alt = plotting()
    bars, parts = data["bars"], [part for bar in data["bars"] for part in bar["parts"]]
    most = max(part["end"] for part in parts)
    title, number = ("share of the rows needed", "%") if data["shares"] else ("rows needed", ",d")
    axis = alt.Axis(title=title, orient="top", format=number, tickCount=5, grid=False)
    scale = alt.Scale(domain=[0, most], nice=False)
    stack = (
        alt.Chart(alt.Data(values=parts))
        .mark_bar(height=13)
        .encode(
            y=name_axis(alt, bars),
            x=alt.X("start:Q", axis=axis, scale=scale),
            x2="end:Q",
            color=_tables(alt, data["names"]),
            description="about:N",
            tooltip="about:N",
        )
    )
    return finished(beside(alt, stack, bars))


def _tables(alt: ModuleType, names: Sequence[str]) -> altair.Color:
    """Colours of tables, in their order; the last name may be that of missing rows."""
    colours = [RED if name == MISSING_ROWS else _TABLES[i] for i, name in enumerate(names)]
    legend = alt.Legend(
        title=None,
        orient="bottom",
        columns=2,
        rowPadding=6,
        symbolType="square",
        **WrappedNames.wrapped(names, 54, most=1).keyed(),
    )
    scale = alt.Scale(domain=list(names), range=colours)
    colour: altair.Color = alt.Color("table:N", scale=scale, legend=legend)
    return colour
