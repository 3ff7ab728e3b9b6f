"""The chart of the cells that a plan changes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from equipoise.reports.charts.axes import stacked_bars
from equipoise.reports.charts.vega import BLUE, RED, Spec, alt

_FATES = {"stay": "#b9bec6", "deleted": RED, "added": BLUE}


def change_chart(data: Mapping[str, Any]) -> Spec:
    """Draw the rows of each cell that stay, that are deleted and that are added.

    ``data`` is that of :func:`equipoise.reports.plan.data.changes`.
    """
    parts = [part for bar in data["bars"] for part in _parts(bar)]
    scale = alt.Scale(domain=list(_FATES), range=list(_FATES.values()))
    legend = alt.Legend(title=None, orient="bottom", direction="horizontal", symbolType="square")
    colour = alt.Color("fate:N", scale=scale, legend=legend)
    return stacked_bars(data["bars"], parts, colour=colour, title="rows")


def _parts(bar: Mapping[str, Any]) -> list[dict[str, Any]]:
    start, parts = 0, []
    for fate, key in (("stay", "stay"), ("deleted", "delete"), ("added", "add")):
        if bar[key]:
            end = start + bar[key]
            kept = {"name": bar["name"], "about": bar["about"]}
            parts.append({**kept, "fate": fate, "start": start, "end": end})
            start = end
    return parts
