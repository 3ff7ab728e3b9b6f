"""Biases, evidence and the population of a stream over time."""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping, Sequence
from typing import Any

from equipoise.plain import wrap
from equipoise.reports.charts.axes import signed_axis
from equipoise.reports.charts.names import WrappedNames, told_apart
from equipoise.reports.charts.vega import ABOUT, BLUE, GREY, RED, Layer, Spec, alt, finished, marks

WIDE, NARROW = 915, 256
"""Pixels from the first time to the last, on a page and on the screen of a phone."""
_BESIDE = 44
"""Pixels for the numbers of an axis, so that the charts below each other begin at the same place."""
_HEIGHT = 150
_LETTER, _TITLE_LETTER = 6.4, 7.2
"""Pixels that a letter takes."""
COLOURS = [BLUE, RED, "#b8860b", "#4d9b6d", "#a06fc4", "#7a8494", "#d16ba5", "#3a9dab", "#8c6d4a"]
"""Colours of lines; on a dark page the first two are replaced by lighter ones."""


def bias_charts(data: Mapping[str, Any]) -> Spec:
    """Draw UB over time, a chart for each group and label; ``data["lines"]`` are their data."""
    parts = [_bias_chart(line, data["width"]) for line in data["lines"]]
    return finished(alt.vconcat(*parts, spacing=18))


def _bias_chart(line: Mapping[str, Any], width: int) -> Any:
    x = _time(line, width)
    scale = alt.Scale(domain=line["domain"], nice=False)
    ends = tuple(line["domain"])
    axis = alt.Axis(title="UB", **_AXIS, **signed_axis(ends, _HEIGHT))
    y = alt.Y("ub:Q", scale=scale, axis=axis)
    layers: list[Layer] = [
        marks(line["band"])
        .mark_area(color=BLUE, opacity=0.16, clip=True, aria=False)
        .encode(
            x=x,
            y=alt.Y("low:Q", scale=scale, axis=axis),
            y2=alt.Y2("high:Q"),
            detail=alt.Detail("piece:N"),
        ),
        marks([{"at": 0.0}]).mark_rule(color=GREY, opacity=0.7, aria=False).encode(y=alt.Y("at:Q")),
        marks(line["limits"])
        .mark_rule(color=GREY, strokeDash=[5, 4], aria=False)
        .encode(y=alt.Y("limit:Q")),
        marks(line["window"])
        .mark_line(color=BLUE, strokeWidth=2, clip=True, aria=False)
        .encode(x=x, y=y),
        marks(line["points"])
        .mark_point(filled=True, size=32, color=BLUE, opacity=0.55, clip=True)
        .encode(x=x, y=y, **ABOUT),
        *_breaks(line["breaks"], x),
        *_alarms(line["alarms"], x),
    ]
    # Between the name and the chart is room for the words above the lines of alerts.
    title = _title(line["name"], width, offset=18 if line["alarms"] else 6)
    return alt.layer(*layers).properties(width=width, height=_HEIGHT, title=title)


def _breaks(breaks: Sequence[Mapping[str, Any]], x: Any) -> list[Layer]:
    """A thin line where alerts were acknowledged."""
    rules = marks(breaks).mark_rule(color=GREY, strokeWidth=1)
    return [rules.encode(x=x, **ABOUT)] if breaks else []


def _alarms(alarms: Sequence[Mapping[str, Any]], x: Any) -> list[Layer]:
    """A line where an alert was raised, and a word above it that stays inside of the chart."""
    if not alarms:
        return []
    rules = marks(alarms).mark_rule(color=RED, strokeWidth=1.5).encode(x=x, **ABOUT)
    align = alt.ExprRef("datum.share < 0.1 ? 'left' : datum.share > 0.9 ? 'right' : 'center'")
    words = marks(alarms).mark_text(align=align, color=RED, fontSize=12, aria=False)
    return [rules, words.encode(x=x, y=alt.value(-8), text=alt.Text("word:N"))]


def evidence_chart(data: Mapping[str, Any]) -> Spec:
    """Draw the evidence over time; ``data`` is that of `evidence`."""
    width = data["width"]
    x = _time(data, width)
    powers = _written(data["powers"])
    axis = alt.Axis(title="e-value (logarithmic)", **powers, **_AXIS)
    scale = alt.Scale(domain=data["domain"], nice=False, zero=False)
    y = alt.Y("log10_e:Q", scale=scale, axis=axis)
    named = {"color": _colour(data["names"], width), "description": alt.Description("name:N")}
    lines = (
        marks(data["points"])
        .mark_line(strokeWidth=2)
        .encode(x=x, y=y, detail=alt.Detail("piece:N"), **named)
    )
    at = alt.Y("at:Q", scale=scale, axis=axis)
    drawn = marks(data["thresholds"])
    rules = drawn.mark_rule(color=GREY, strokeDash=[5, 4], aria=False).encode(y=at)
    words = [
        drawn.mark_text(align="right", dy=dy, dx=-4, aria=False).encode(
            x=alt.value(width), y=at, text=alt.Text(f"{side}:N")
        )
        for side, dy in (("above", -8), ("below", 10))
    ]
    chart = alt.layer(rules, *_breaks(data["breaks"], x), lines, *words)
    return finished(chart.properties(width=width, height=200))


def population_charts(data: Mapping[str, Any]) -> Spec:
    """Draw rows, label rates, shares of groups and distances; ``data`` is that of `population`."""
    width = data["width"]
    x = _time(data, width)
    bars = marks(_bars(data, width)).mark_rect(color=GREY, opacity=0.7)
    parts = [
        bars.encode(
            x=_time(data, width, "from"),
            x2=alt.X2("to"),
            y=_plain("rows:Q", "rows", ",d"),
            y2=alt.Y2("zero:Q"),
            **ABOUT,
        ).properties(width=width, height=90, title=_title("Rows", width)),
        _shares(data, "rates", "labels", data["titles"]["rates"]),
        _shares(data, "sizes", "groups", data["titles"]["sizes"]),
        _distances(data, x),
    ]
    chart = alt.vconcat(*parts, spacing=18).resolve_scale(color="independent")
    return finished(chart)


def _bars(data: Mapping[str, Any], width: int) -> list[dict[str, Any]]:
    """The rows of each period as a bar, no wider than the time to the next one allows."""
    low, high = _ends(data)
    pixel = (high - low) / width
    places = [row["t"] for row in data["rows"]]
    gaps = [b - a for a, b in itertools.pairwise(places)]
    found = []
    for row, before, after in zip(data["rows"], [high, *gaps], [*gaps, high], strict=True):
        half = max(0.6 * pixel, min(0.4 * before, 0.4 * after, 12 * pixel))
        found.append({**row, "from": row["t"] - half, "to": row["t"] + half, "zero": 0})
    return found


def _shares(data: Mapping[str, Any], items: str, names: str, title: str) -> Any:
    width = data["width"]
    x, y = _time(data, width), _plain("share:Q", "share", "%")
    named = {"color": _colour(data[names], width), "description": alt.Description("name:N")}
    lines = marks(data[items]).mark_line(strokeWidth=1.5).encode(x=x, y=y, **named)
    return lines.properties(width=width, height=_HEIGHT, title=_title(title, width))


def _distances(data: Mapping[str, Any], x: Any) -> Any:
    items, width = data["distances"], data["width"]
    y = _plain("distance:Q", "share of rows", "%")
    dots = marks(items).mark_point(filled=True, size=30, opacity=0.8)
    chance = marks(items).mark_line(color=GREY, strokeWidth=1.5, aria=False)
    far = alt.condition("datum.far", alt.value(RED), alt.value(BLUE))
    layers = [chance.encode(x=x, y=alt.Y("expected:Q")), dots.encode(x=x, y=y, color=far, **ABOUT)]
    title = (
        "Distance from the mix of all other periods (dots; red: more than chance explains), and the distance "
        "expected by chance (line)"
    )
    return alt.layer(*layers).properties(width=width, height=110, title=_title(title, width))


def _title(text: str, width: int, offset: int = 6) -> Any:
    lines = wrap(text, int(width / _TITLE_LETTER))
    return alt.TitleParams(
        lines, anchor="start", frame="group", fontWeight="normal", offset=offset, limit=0
    )


_AXIS: dict[str, Any] = {"gridColor": "#8a8f9833", "minExtent": _BESIDE, "titlePadding": 6}


def _plain(field: str, title: str, form: str) -> Any:
    return alt.Y(field, axis=alt.Axis(title=title, format=form, tickCount=4, **_AXIS))


def _colour(names: Sequence[str], width: int) -> Any:
    """A colour for each name; the legend shortens long ones, which the lines tell in full."""
    letters = int((width - 30) / _LETTER)
    short = dict(zip(names, told_apart(names, letters), strict=True))
    wrapped = WrappedNames.wrapped(list(names), letters + 2, shown=short)
    columns = max(1, int(width / (60 + _LETTER * wrapped.letters)))
    legend = alt.Legend(
        title=None,
        orient="bottom",
        direction="vertical",
        columns=columns,
        symbolType="stroke",
        columnPadding=28,
        **wrapped.keyed(),
    )
    scale = alt.Scale(domain=list(names), range=COLOURS[: len(names)])
    return alt.Color("name:N", scale=scale, legend=legend)


def _ends(data: Mapping[str, Any]) -> tuple[float, float]:
    """The ends of the axis of time, with some room for bars and dots."""
    low, high = data["span"]
    if not data["even"]:
        return low - 0.6, high + 0.6
    room = 0.01 * (high - low)
    return low - room, high + room


def _time(data: Mapping[str, Any], width: int, field: str = "t") -> Any:
    axis: dict[str, Any] = {"title": None, "grid": False, "labelOverlap": True}
    axis["labelSeparation"] = 10
    if data["ticks"] is not None:
        ticks = data["ticks"]
        # Of few periods there is room for the first and the last.
        kept = ticks if width == WIDE or len(ticks) < 3 else [ticks[0], ticks[-1]]
        axis |= {**_written(kept), "labelFlush": True}
        scale = alt.Scale(domain=list(_ends(data)), nice=False, zero=False)
        return alt.X(f"{field}:Q", scale=scale, axis=alt.Axis(**axis))
    axis["tickCount"] = max(3, width // 110)
    if data["format"] is not None:
        axis["format"] = data["format"]
    scale = alt.Scale(type="utc", domain=list(_ends(data)), nice=False)
    return alt.X(f"{field}:T", scale=scale, axis=alt.Axis(**axis))


def _written(ticks: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """What is written at some places of an axis."""
    places, texts = [each["at"] for each in ticks], [each["text"] for each in ticks]
    told = f"{json.dumps(texts)}[indexof({json.dumps(places)}, datum.value)]"
    return {"values": places, "labelExpr": told}
