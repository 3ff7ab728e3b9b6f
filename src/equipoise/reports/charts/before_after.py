"""Numbers before and after, name by name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from equipoise.reports.charts.axes import beside, name_axis
from equipoise.reports.charts.vega import BLUE, GREY, RED, finished, plotting

if TYPE_CHECKING:
    from types import ModuleType

    import altair


def bias_chart(data: Mapping[str, Any]) -> dict[str, Any]:
    """Draw |UB| before and after a plan, group by group, the tolerance as a dashed line.

    Parameters
    ----------
    data
        From :func:`equipoise.reports.plan.data.biases`.

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
