"""Numbers before and after, name by name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from equipoise.reports.charts.axes import beside, name_axis
from equipoise.reports.charts.vega import ABOUT, BLUE, GREY, RED, Spec, alt, marks


def bias_chart(data: Mapping[str, Any]) -> Spec:
    """Draw |UB| before (ring) and after (dot), with the tolerance as a dashed line.

    ``data`` is that of :func:`equipoise.reports.plan.data.biases`.
    """
    pairs, limit = data["pairs"], data["limit"]
    numbers = [v for pair in pairs for v in (pair["before"], pair["after"]) if v is not None]
    # The tolerance is on the chart even where all groups are well inside it.
    most = max([*numbers, 1.2 * (limit or 0), 1e-9]) * 1.02
    scale = alt.Scale(domain=[0, most], nice=False)
    axis = alt.Axis(title=data["title"], orient="top", grid=False, tickCount=6, tickSize=4)
    at = alt.X("at:Q", scale=scale, axis=axis)
    line = marks([_line(pair) for pair in pairs]).mark_rule(strokeWidth=2, color=GREY)
    points = marks([p for pair in pairs for p in _points(pair)]).mark_point(
        size=70, strokeWidth=2, opacity=1
    )
    layers = [
        line.encode(
            x=alt.X("before:Q", scale=scale, axis=axis), x2="after:Q", y=name_axis(pairs), **ABOUT
        ),
        points.encode(
            x=at,
            y=name_axis(pairs),
            stroke=alt.Stroke("stroke:N", scale=None),
            fill=alt.Fill("fill:N", scale=None),
            **ABOUT,
        ),
    ]
    if limit is not None:
        dashed = marks([{"at": limit}]).mark_rule(color=GREY, strokeDash=[4, 3], aria=False)
        layers.insert(0, dashed.encode(x=at))
    return beside(alt.layer(*layers), pairs)


def _line(pair: Mapping[str, Any]) -> dict[str, Any]:
    # A group may be empty before or after; its line then has no length.
    known = [v for v in (pair["before"], pair["after"]) if v is not None]
    return {"name": pair["name"], "about": pair["about"], "before": known[0], "after": known[-1]}


def _points(pair: Mapping[str, Any]) -> list[dict[str, Any]]:
    colour = RED if pair["outside"] else BLUE
    looks = {
        "before": {"fill": "white", "stroke": GREY},
        "after": {"fill": colour, "stroke": colour},
    }
    kept = {"name": pair["name"], "about": pair["about"]}
    return [
        {**kept, "at": pair[when], **look} for when, look in looks.items() if pair[when] is not None
    ]
