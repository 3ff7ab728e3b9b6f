"""The chart of where the rows of a repair came from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from equipoise.reports.charts.axes import stacked_bars
from equipoise.reports.charts.names import WrappedNames
from equipoise.reports.charts.vega import RED, Spec, alt

_TABLES = ("#4477aa", "#ccbb44", "#228833", "#aa3377", "#66ccee", "#997744", "#aabb88", "#8a8f98")
"""Colours that colour-blind people can tell apart; red is kept for missing rows."""
MISSING_ROWS = "missing"
"""The name in the legend for rows that no table has."""


def source_chart(data: Mapping[str, Any]) -> Spec:
    """Draw the rows that each cell needed, in the colours of the tables they came from.

    ``data`` is that of :func:`equipoise.reports.repair.sources.source_bars`.
    """
    names = data["names"]
    colours = [RED if name == MISSING_ROWS else _TABLES[i] for i, name in enumerate(names)]
    legend = alt.Legend(
        title=None,
        orient="bottom",
        columns=2,
        rowPadding=6,
        symbolType="square",
        **WrappedNames.wrapped(names, 54, most=1).keyed(),
    )
    colour = alt.Color("table:N", scale=alt.Scale(domain=names, range=colours), legend=legend)
    parts = [part for bar in data["bars"] for part in bar["parts"]]
    title, number = ("share of the rows needed", "%") if data["shares"] else ("rows needed", ",d")
    return stacked_bars(data["bars"], parts, colour=colour, title=title, number=number)
