"""Charts of a plan: the cells it changes, and UB before and after."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from equipoise.reports.charts.axes import beside, name_axis
from equipoise.reports.charts.vega import BLUE, RED, finished, plotting

if TYPE_CHECKING:
    from types import ModuleType

    import altair

_FATES = {"stay": "#b9bec6", "deleted": RED, "added": BLUE}


def change_chart(data: Mapping[str, Any]) -> dict[str, Any]:
    """Draw the cells a plan changes: the rows that stay, those deleted and those added.

    Parameters
    ----------
    data
        From :func:`equipoise.reports.plan.data.changes`.

    Returns
    -------
    dict
        A Vega-Lite specification.
    """
    alt = plotting()
    parts = [part for bar in data["bars"] for part in _parts(bar)]
    most = max(part["end"] for part in parts)
    axis = alt.Axis(title="rows", orient="top", format=",d", tickCount=5, grid=False)
    scale = alt.Scale(domain=[0, most], nice=False)
    bars = (
        alt.Chart(alt.Data(values=parts))
        .mark_bar(height=13)
        .encode(
            y=name_axis(alt, data["bars"]),
            x=alt.X("start:Q", axis=axis, scale=scale),
            x2="end:Q",
            color=_fates(alt),
            description="about:N",
            tooltip="about:N",
        )
    )
    return finished(beside(alt, bars, data["bars"]))


def _parts(bar: Mapping[str, Any]) -> list[dict[str, Any]]:
    start, parts = 0, []
    for fate, key in (("stay", "stay"), ("deleted", "delete"), ("added", "add")):
        if bar[key]:
            end = start + bar[key]
            kept = {"name": bar["name"], "about": bar["about"]}
            parts.append({**kept, "fate": fate, "start": start, "end": end})
            start = end
    return parts


def _fates(alt: ModuleType) -> altair.Color:
    scale = alt.Scale(domain=list(_FATES), range=list(_FATES.values()))
    legend = alt.Legend(title=None, orient="bottom", direction="horizontal", symbolType="square")
    colour: altair.Color = alt.Color("fate:N", scale=scale, legend=legend)
    return colour
