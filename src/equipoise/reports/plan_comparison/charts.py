"""The charts of plans side by side."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from equipoise.plans.comparison import NOW
from equipoise.reports.charts.axes import beside, name_axis, signed_axis, stacked_bars
from equipoise.reports.charts.vega import ABOUT, BLUE, GREY, RED, Spec, alt, marks

_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#6a3d9a", "#7f6000")
"""Colours of plans, which colour-blind people can tell apart; shapes tell them apart as well."""
_SHAPES = ("circle", "square", "triangle-up", "diamond", "cross", "triangle-down")
_WIDTH = 380


def row_chart(data: Mapping[str, Any]) -> Spec:
    """Draw the rows that each plan adds and deletes.

    ``data`` is that of :func:`equipoise.reports.plan_comparison.data.moved_rows`.
    """
    parts = []
    for bar in data["bars"]:
        ends = {"added": (0, bar["add"]), "deleted": (bar["add"], bar["add"] + bar["delete"])}
        kept = {"name": bar["name"], "about": bar["about"]}
        for fate, (start, end) in ends.items():
            parts.append({**kept, "fate": fate, "start": start, "end": end})
    scale = alt.Scale(domain=["added", "deleted"], range=[BLUE, RED])
    legend = alt.Legend(title=None, orient="bottom", direction="horizontal", symbolType="square")
    colour = alt.Color("fate:N", scale=scale, legend=legend)
    return stacked_bars(data["bars"], parts, colour=colour, title="rows")


def group_chart(data: Mapping[str, Any]) -> Spec:
    """Draw UB of each group: a ring for the present table, and a mark for each plan.

    ``data`` is that of :func:`equipoise.reports.plan_comparison.data.group_lines`.
    """
    lines, names = data["lines"], data["names"]
    low, high = (
        f([0.0, *(line[end] for line in lines)]) for f, end in ((min, "low"), (max, "high"))
    )
    room = 0.03 * (high - low or 1.0)
    ends = (low - room, high + room)
    scale = alt.Scale(domain=list(ends), nice=False)
    axis = alt.Axis(
        title=data["title"], orient="top", grid=False, tickSize=4, **signed_axis(ends, _WIDTH)
    )
    at = alt.X("ub:Q", scale=scale, axis=axis)
    zero = marks([{"ub": 0}]).mark_rule(color=GREY, strokeDash=[4, 3], aria=False).encode(x=at)
    spans = marks(lines).mark_rule(strokeWidth=1, color=GREY, aria=False)
    points = marks(data["points"]).mark_point(size=70, strokeWidth=2, opacity=0.9)
    return beside(
        alt.layer(
            zero,
            spans.encode(x=alt.X("low:Q", scale=scale, axis=axis), x2="high:Q", y=name_axis(lines)),
            points.encode(x=at, y=name_axis(lines), **_looks(names), **ABOUT),
        ),
        lines,
    )


def _looks(names: list[str]) -> dict[str, Any]:
    """The colour and shape of each table, in one legend."""
    tables = [NOW, *names]
    colours = [GREY, *(_COLOURS[i % len(_COLOURS)] for i in range(len(names)))]
    shapes = ["circle", *(_SHAPES[i % len(_SHAPES)] for i in range(len(names)))]
    fills = ["white", *colours[1:]]
    legend = alt.Legend(title=None, orient="bottom", direction="horizontal", columns=4)
    return {
        "stroke": alt.Stroke(
            "table:N", sort=tables, scale=alt.Scale(domain=tables, range=colours), legend=legend
        ),
        "fill": alt.Fill(
            "table:N", sort=tables, scale=alt.Scale(domain=tables, range=fills), legend=legend
        ),
        "shape": alt.Shape(
            "table:N", sort=tables, scale=alt.Scale(domain=tables, range=shapes), legend=legend
        ),
    }
