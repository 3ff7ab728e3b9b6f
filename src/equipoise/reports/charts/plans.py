"""Charts of a plan: the cells it changes, and UB before and after."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from equipoise.reports.charts.drawing import BLUE, GREY, RED, finished, plotting
from equipoise.reports.charts.listing import beside, name_axis

if TYPE_CHECKING:
    from types import ModuleType

    import altair

_FATES = {"stay": "#b9bec6", "deleted": RED, "added": BLUE}


def change_chart(data: Mapping[str, Any]) -> dict[str, Any]:
    """Draw the cells a plan changes: the rows that stay, those deleted and those added.

    Parameters
    ----------
    data
        From :func:`equipoise.reports.plan_data.changes`.

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


def bias_chart(data: Mapping[str, Any]) -> dict[str, Any]:
    """Draw |UB| before and after a plan, group by group, the tolerance as a dashed line.

    Parameters
    ----------
    data
        From :func:`equipoise.reports.plan_data.biases`.

    Returns
    -------
    dict
        A Vega-Lite specification.
    """
    alt = plotting()
    pairs, limit = data["pairs"], data["limit"]
    ends = [v for pair in pairs for v in (pair["before"], pair["after"]) if v is not None]
    scale = alt.Scale(domain=[0, max([*ends, 1.2 * (limit or 0), 1e-9]) * 1.02], nice=False)
    axis = alt.Axis(title=data["title"], orient="top", grid=False, tickCount=6, tickSize=4)
    x = alt.X("at:Q", scale=scale, axis=axis)
    values = [_whiskered(pair) for pair in pairs]
    base = alt.Chart(alt.Data(values=values)).encode(
        y=name_axis(alt, pairs), description="about:N", tooltip="about:N"
    )
    way = base.mark_rule(strokeWidth=2, color=GREY).encode(
        x=alt.X("before:Q", scale=scale, axis=axis), x2="after:Q"
    )
    points = (
        alt.Chart(alt.Data(values=[p for pair in pairs for p in _moments(pair)]))
        .mark_point(size=70, strokeWidth=2, opacity=1)
        .encode(
            y=name_axis(alt, pairs),
            x=x,
            stroke=alt.Stroke("stroke:N", scale=None),
            fill=alt.Fill("fill:N", scale=None),
            description="about:N",
            tooltip="about:N",
        )
    )
    layers = [way, points] if limit is None else [_at_limit(alt, limit, x), way, points]
    return finished(beside(alt, alt.layer(*layers), pairs))


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


def _whiskered(pair: Mapping[str, Any]) -> dict[str, Any]:
    known = [v for v in (pair["before"], pair["after"]) if v is not None]
    ends = {"before": known[0], "after": known[-1]}
    return {"name": pair["name"], "about": pair["about"], **ends}


def _moments(pair: Mapping[str, Any]) -> list[dict[str, Any]]:
    then = RED if pair["outside"] else BLUE
    looks = {"before": {"fill": "white", "stroke": GREY}, "after": {"fill": then, "stroke": then}}
    kept = {"name": pair["name"], "about": pair["about"]}
    return [
        {**kept, "at": pair[when], **look} for when, look in looks.items() if pair[when] is not None
    ]


def _at_limit(alt: ModuleType, limit: float, x: altair.X) -> altair.Chart:
    line: altair.Chart = (
        alt.Chart(alt.Data(values=[{"at": limit}]))
        .mark_rule(color=GREY, strokeDash=[4, 3], aria=False)
        .encode(x=x)
    )
    return line
