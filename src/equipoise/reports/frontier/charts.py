"""The least cost against the tolerance, as steps."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from equipoise.reports.charts.vega import ABOUT, BLUE, GREY, RED, Layer, Spec, alt, finished, marks

_STEPS_WIDTH, _STEPS_HEIGHT = 640, 340


def step_chart(data: Mapping[str, Any]) -> Spec:
    """Draw the least cost against the tolerance, which is a step function.

    ``data`` is that of :func:`equipoise.reports.frontier.data.steps`.
    """
    at = _scales(data)
    layers = [*_budget_lines(data, at), *_known_steps(data, at), *_no_plans(data, at)]
    return finished(alt.layer(*layers).properties(width=_STEPS_WIDTH, height=_STEPS_HEIGHT))


_Channels = Callable[..., dict[str, Any]]


def _scales(data: Mapping[str, Any]) -> _Channels:
    x_scale = alt.Scale(type="log" if data["log"] else "linear", domain=data["x"], nice=False)
    y_scale = alt.Scale(domain=[0, data["y_max"]], nice=False)
    x_axis = alt.Axis(title=data["title"], grid=False, format="~g", tickCount=8, labelOverlap=True)
    y_axis = alt.Axis(title="least cost", format=",.6~g", grid=True, gridColor="#8a8f9844")

    def channels(x: str, y: str, **more: Any) -> dict[str, Any]:
        place = alt.X(f"{x}:Q", scale=x_scale, axis=x_axis)
        return {"x": place, "y": alt.Y(f"{y}:Q", scale=y_scale, axis=y_axis), **more}

    return channels


def _known_steps(data: Mapping[str, Any], at: _Channels) -> list[Layer]:
    path = marks(data["path"]).mark_line(
        color=BLUE, strokeWidth=1, opacity=0.6, aria=False, clip=True
    )
    pieces = marks(data["pieces"]).encode(**ABOUT)
    bars = pieces.mark_rule(color=BLUE, strokeWidth=4, clip=True)
    dots = pieces.mark_point(filled=True, size=36, color=BLUE, opacity=1)
    charts = [
        path.encode(**at("x", "cost", order="i:Q")),
        bars.encode(**at("low", "cost", x2="high:Q")),
        dots.encode(**at("high", "cost")),
    ]
    if data["bounds"]:
        spans = marks(data["bounds"]).mark_rule(color=GREY, strokeWidth=2, aria=False)
        charts.insert(0, spans.encode(**at("x", "low", y2="high:Q")))
    return charts


def _budget_lines(data: Mapping[str, Any], at: _Channels) -> list[Layer]:
    if not data["budgets"]:
        return []
    base = marks(data["budgets"])
    bought = marks([b for b in data["budgets"] if b["tolerance"] is not None])
    rings = bought.mark_point(size=90, strokeWidth=2, color=RED, opacity=1, clip=True)
    line = base.mark_rule(color=RED, strokeDash=[5, 4], aria=False)
    words = base.mark_text(align="left", baseline="middle", dx=8, fontSize=12, aria=False)
    y = at("tolerance", "budget")["y"]
    return [
        line.encode(y=y),
        words.encode(y=y, x=alt.value(_STEPS_WIDTH), text="text:N"),
        rings.encode(**at("tolerance", "cost", description="text:N")),
    ]


def _no_plans(data: Mapping[str, Any], at: _Channels) -> list[Layer]:
    """Mark tolerances that no plan reaches, at the top of the chart."""
    if not data["none"]:
        return []
    values = [
        {"x": t, "y": data["y_max"], "about": f"tolerance {t:.4g}: no plan"} for t in data["none"]
    ]
    cross = marks(values).mark_point(
        shape="cross", angle=45, filled=True, size=60, color=GREY, opacity=1
    )
    # Only the last cross is named; names beside all of them would cover each other.
    last = marks(values[-1:]).mark_text(
        align="left", dx=10, fontSize=12, text="no plan", aria=False
    )
    return [cross.encode(**at("x", "y", description="about:N")), last.encode(**at("x", "y"))]
