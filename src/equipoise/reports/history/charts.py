"""Biases, evidence and the population of a stream over time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from equipoise.reports.charts.axes import signed_axis
from equipoise.reports.charts.names import WrappedNames
from equipoise.reports.charts.vega import ABOUT, BLUE, GREY, RED, Layer, Spec, alt, finished, marks

_WIDTH, _HEIGHT = 660, 150
_COLOURS = [BLUE, RED, "#b8860b", "#4d9b6d", "#a06fc4", "#5b6472", "#d16ba5", "#3fa7b5", "#8c6d4a"]


def bias_charts(data: Mapping[str, Any]) -> Spec:
    """Draw UB over time, a chart for each group and label; ``data["lines"]`` are their data."""
    parts = [_bias_chart(line) for line in data["lines"]]
    return finished(alt.vconcat(*parts, spacing=18))


def _bias_chart(line: Mapping[str, Any]) -> Any:
    x = _time(line["span"])
    ends = tuple(line["domain"])
    scale = alt.Scale(domain=line["domain"], nice=False)
    axis = alt.Axis(title="UB", gridColor="#8a8f9833", **signed_axis(ends, _HEIGHT))
    y = alt.Y("ub:Q", scale=scale, axis=axis)
    layers: list[Layer] = [
        marks(line["band"])
        .mark_area(color=BLUE, opacity=0.16, clip=True, aria=False)
        .encode(x=x, y=alt.Y("low:Q", scale=scale, axis=axis), y2="high:Q"),
        marks([{"at": 0.0}]).mark_rule(color=GREY, opacity=0.7, aria=False).encode(y="at:Q"),
        marks(line["limits"])
        .mark_rule(color=GREY, strokeDash=[5, 4], aria=False)
        .encode(y="limit:Q"),
        marks(line["window"])
        .mark_line(color=BLUE, strokeWidth=2, clip=True, aria=False)
        .encode(x=x, y=y),
        marks(line["points"])
        .mark_point(filled=True, size=32, color=BLUE, opacity=0.55, clip=True)
        .encode(x=x, y=y, **ABOUT),
    ]
    if line["alarms"]:
        alarms = marks(line["alarms"])
        layers.append(alarms.mark_rule(color=RED, strokeWidth=1.5).encode(x=x, **ABOUT))
        words = alarms.mark_text(
            align="left",
            dx=5,
            dy=-_HEIGHT // 2 + 8,
            color=RED,
            fontSize=12,
            text="alert",
            aria=False,
        )
        layers.append(words.encode(x=x, y=alt.value(_HEIGHT / 2)))
    title = alt.TitleParams(line["name"], anchor="start", frame="group", fontWeight="normal")
    return alt.layer(*layers).properties(width=_WIDTH, height=_HEIGHT, title=title)


def evidence_chart(data: Mapping[str, Any]) -> Spec:
    """Draw the evidence over time; ``data`` is that of `evidence`."""
    x = _time(data["span"])
    y = alt.Y(
        "log10_e:Q",
        axis=alt.Axis(title="evidence: 10 to the power of", gridColor="#8a8f9833", tickCount=5),
    )
    lines = (
        marks(data["points"])
        .mark_line(strokeWidth=2)
        .encode(x=x, y=y, color=_colour(data["names"]), description="name:N")
    )
    rule = marks([{"at": data["threshold"]}]).mark_rule(color=GREY, strokeDash=[5, 4], aria=False)
    chart = alt.layer(rule.encode(y="at:Q"), lines)
    return finished(chart.properties(width=_WIDTH, height=200))


def population_charts(data: Mapping[str, Any]) -> Spec:
    """Draw rows, label rates, shares of groups and distances; ``data`` is that of `population`."""
    x = _time(data["span"])
    parts = [
        marks(data["rows"])
        .mark_bar(
            color=GREY, opacity=0.7, width=max(1.5, min(0.7 * _WIDTH / len(data["rows"]), 24))
        )
        .encode(x=x, y=_plain("rows:Q", "rows", ",d"), **ABOUT)
        .properties(width=_WIDTH, height=90, title=_title("Rows")),
        _shares(data["rates"], data["labels"], x, f"Rates of {data['label']}"),
        _shares(data["sizes"], data["groups"], x, "Shares of groups"),
        _distances(data["distances"], x),
    ]
    chart = alt.vconcat(*parts, spacing=18).resolve_scale(color="independent")
    return finished(chart)


def _shares(items: Sequence[Mapping[str, Any]], names: Sequence[str], x: Any, title: str) -> Any:
    lines = (
        marks(items)
        .mark_line(strokeWidth=1.5)
        .encode(x=x, y=_plain("share:Q", "share", "%"), color=_colour(names), description="name:N")
    )
    return lines.properties(width=_WIDTH, height=_HEIGHT, title=_title(title))


def _distances(items: Sequence[Mapping[str, Any]], x: Any) -> Any:
    y = _plain("distance:Q", "share of rows", "%")
    dots = marks(items).mark_point(filled=True, size=30, color=RED, opacity=0.8)
    chance = marks(items).mark_line(color=GREY, strokeWidth=1.5, aria=False)
    layers = [chance.encode(x=x, y=alt.Y("expected:Q")), dots.encode(x=x, y=y, **ABOUT)]
    title = _title(
        "Distance from the mix of all other periods (dots), and what chance gives (line)"
    )
    return alt.layer(*layers).properties(width=_WIDTH, height=110, title=title)


def _title(text: str) -> Any:
    return alt.TitleParams(text, anchor="start", frame="group", fontWeight="normal")


def _plain(field: str, title: str, form: str) -> Any:
    axis = alt.Axis(title=title, format=form, gridColor="#8a8f9833", tickCount=4)
    return alt.Y(field, axis=axis)


def _colour(names: Sequence[str]) -> Any:
    wrapped = WrappedNames.wrapped(list(names), 40)
    legend = alt.Legend(
        title=None,
        orient="bottom",
        direction="vertical",
        columns=2,
        symbolType="stroke",
        columnPadding=28,
        **wrapped.keyed(),
    )
    scale = alt.Scale(domain=list(names), range=_COLOURS[: len(names)])
    return alt.Color("name:N", scale=scale, legend=legend)


def _time(span: Sequence[int]) -> Any:
    # A single batch would leave a scale without a span.
    low, high = span
    room = 0.01 * (high - low) or 43_200_000
    scale = alt.Scale(type="utc", domain=[low - room, high + room], nice=False)
    axis = alt.Axis(title=None, grid=False, labelOverlap=True, tickCount=8)
    return alt.X("t:T", scale=scale, axis=axis)
