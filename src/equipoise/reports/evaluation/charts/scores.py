"""Scores as bars, a cluster for each version."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from equipoise.reports.charts.names import WrappedNames
from equipoise.reports.charts.vega import ABOUT, PAGE_WIDTH, Layer, Spec, alt, finished, marks
from equipoise.reports.evaluation.charts.intervals import (
    FAINT,
    drawable,
    legend,
    said,
    text_width,
    whiskers,
)
from equipoise.reports.evaluation.charts.lanes import Places


def score_chart(data: Mapping[str, Any]) -> Spec:
    """Draw scores as bars with whiskers: a cluster for each version, a panel for each half.

    Bars start at 0 and share one axis up to 1. Means are written above them if there is room.
    Numbers that are ``None`` are not drawn.

    >>> bar = {"version": "p", "half": "mitigated", "measure": "accuracy"}
    >>> bars = [{**bar, "mean": 0.81, "low": 0.80, "high": 0.82}]
    >>> data = {"measures": ["accuracy"], "order": ["p"], "halves": ["mitigated"], "bars": bars}
    >>> [panel["title"]["text"] for panel in score_chart(data)["hconcat"]]
    ['mitigated']
    """
    halves = {half: _versions_of(data, half) for half in data["halves"]}
    shown = [half for half, versions in halves.items() if versions] or data["halves"][:1]
    room = PAGE_WIDTH - 34 * len(shown) - _HALVES_APART
    clusters = sum(len(versions) for versions in halves.values())
    cluster = min(room / max(clusters, 1), 44 * len(data["measures"]) + 30)
    # Slanted names need room on the left, which the bars then lose.
    level = max(map(text_width, data["order"]), default=0) < cluster
    if not level:
        cluster = min(cluster, (room - _LEANING) / clusters)
    panels = [
        _score_panel(data, half, halves[half], cluster=cluster, level=level, first=half == shown[0])
        for half in shown
    ]
    return finished(alt.hconcat(*panels, spacing=_HALVES_APART))


_HALVES_APART, _SCORE_HEIGHT = 16, 250


_LEANING = 48
"""Pixels to the left of the bars that a slanted name takes."""


_BETWEEN = 0.2
"""Share of a cluster's width that is left free before the next."""


_MEASURES = ("#76a5e0", "#efcb66", "#d9728a", "#7b7d1c", "#7fe9c6", "#a8b27a")
"""Colours that colour-blind people can tell apart, light enough to see a whisker on them."""


def _versions_of(data: Mapping[str, Any], half: str) -> list[str]:
    there = {bar["version"] for bar in data["bars"] if bar["half"] == half}
    return [version for version in data["order"] if version in there]


def _score_panel(
    data: Mapping[str, Any],
    half: str,
    versions: Sequence[str],
    *,
    cluster: float,
    level: bool,
    first: bool,
) -> Layer:
    bar_width = (1 - _BETWEEN) * cluster / len(data["measures"])
    here = [bar for bar in data["bars"] if bar["half"] == half]
    bars = [_scored(bar, bar_width) for bar in drawable(here, "mean")]
    place = _score_places(data["measures"], versions, level=level, first=first)
    base, ends = (marks(v) for v in (bars, whiskers(bars, (0.0, 1.0))))
    tall = base.mark_bar().encode(color=_measure_colour(data), **place("mean"), **ABOUT)
    span = ends.mark_rule(color="#545b67", strokeWidth=1.5, aria=False)
    mean = base.mark_text(baseline="bottom", dy=-2, fontSize=10, aria=False)
    return alt.layer(
        tall, span.encode(y2="high:Q", **place("low")), mean.encode(text="text:N", **place("top"))
    ).properties(
        title=alt.TitleParams(half, anchor="start", frame="group", offset=14),
        width=cluster * max(len(versions), 1),
        height=_SCORE_HEIGHT,
    )


def _scored(bar: Mapping[str, Any], bar_width: float) -> dict[str, Any]:
    score = f"{bar['measure']} {said(bar, 'mean', signed=False)}"
    return {
        **{key: bar[key] for key in ("version", "measure", "mean", "low", "high")},
        "about": f"{bar['version']}, {bar['half']}: {score}",
        "text": _short(bar["mean"], bar_width),
        "top": bar["mean"] if bar["high"] is None else max(bar["mean"], min(bar["high"], 1)),
    }


def _short(mean: float, room: float) -> str:
    """Write a mean with as many digits as there is room for, or not at all."""
    texts = [f"{mean:.3f}", f"{mean:.2f}", f"{mean:.2f}".removeprefix("0")]
    return next((text for text in texts if text_width(text, 10) + 2 <= room), "")


def _score_places(
    measures: Sequence[str],
    versions: Sequence[str],
    *,
    level: bool,
    first: bool,
) -> Places:
    x_axis = alt.Axis(
        title=None,
        labelAngle=0 if level else -40,
        **WrappedNames.wrapped(versions, 80 if level else 24, most=1).keyed(),
        labelPadding=6,
        ticks=False,
    )
    bands = alt.Scale(domain=list(versions), paddingInner=_BETWEEN, paddingOuter=_BETWEEN / 2)
    # The right half has invisible labels too, so that the titles of both halves are level.
    y_axis = alt.Axis(
        title=None,
        labelOpacity=int(first),
        ticks=False,
        domain=False,
        grid=True,
        gridColor=FAINT,
        tickCount=5,
    )
    y_scale = alt.Scale(domain=[0, 1], nice=False)

    def channels(field: str) -> dict[str, Any]:
        return {
            "x": alt.X("version:N", scale=bands, axis=x_axis),
            "xOffset": alt.XOffset("measure:N", scale=alt.Scale(domain=list(measures))),
            "y": alt.Y(f"{field}:Q", scale=y_scale, axis=y_axis),
        }

    return channels


def _measure_colour(data: Mapping[str, Any]) -> alt.Color:
    names = list(data["measures"])
    scale = alt.Scale(domain=names, range=[_MEASURES[i % 6] for i in range(len(names))])
    key = legend(names, symbolType="square")
    return alt.Color("measure:N", scale=scale, legend=key)
