"""UB of predictions, group by group."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from equipoise.reports.charts.vega import ABOUT, Layer, Spec, alt, finished, marks
from equipoise.reports.evaluation.charts.intervals import (
    Items,
    drawable,
    legend,
    legend_width,
    limits,
    said,
    version_colour,
    version_looks,
)
from equipoise.reports.evaluation.charts.lanes import Lanes, Places, spans, zero_line


def prediction_chart(data: Mapping[str, Any]) -> Spec:
    """Draw the UB of predictions, group by group: a dot for each version, a tick for the data.

    Numbers that are ``None`` are not drawn.

    >>> point = {"version": "u", "ub": 0.62, "low": 0.58, "high": 0.66}
    >>> pair = {"name": "sex=w, outcome=hired", "data": 0.55, "points": [point]}
    >>> data = {"versions": [["u", "as it is"]], "pairs": [pair]}
    >>> prediction_chart(data)["layer"][-1]["data"]["values"][0]["about"]
    'sex=w, outcome=hired, u: UB of the predictions +0.620 (+0.580 … +0.660)'
    """
    looks = version_looks(data["versions"])
    dots = [dot for pair in data["pairs"] for dot in _predicted(pair, looks)]
    ticks = [_itself(pair) for pair in drawable(data["pairs"], "data")]
    ends = limits([*dots, *ticks], "ub")
    names = [pair["name"] for pair in data["pairs"]]
    lanes = Lanes("pair", names, data["versions"], ends, title="UB of the predictions")
    place = lanes.places()
    layers = [
        zero_line(place),
        *spans(dots, ends, place),
        _data_ticks(ticks, place, lanes.line - 6),
        _dots(dots, place, lanes),
    ]
    return finished(alt.layer(*layers).properties(**lanes.size))


_DATA = "the test data itself"


def _predicted(pair: Mapping[str, Any], looks: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [
        {
            **{key: p[key] for key in ("version", "ub", "low", "high")},
            "pair": pair["name"],
            **looks[p["version"]],
            "about": f"{pair['name']}, {p['version']}: UB of the predictions {said(p, 'ub')}",
        }
        for p in drawable(pair["points"], "ub")
    ]


def _itself(pair: Mapping[str, Any]) -> dict[str, Any]:
    about = f"{pair['name']}: UB of the test data {said({'ub': pair['data']}, 'ub')}"
    return {"pair": pair["name"], "what": _DATA, "ub": pair["data"], "about": about}


def _data_ticks(ticks: Items, place: Places, tall: float) -> Layer:
    at = place("ub")
    scale = alt.Scale(domain=[_DATA], range=["#c3c7cd"])
    key = legend([_DATA], symbolType="M-0.3,-1H0.3V1H-0.3Z", symbolStrokeWidth=0)
    return (
        marks(ticks)
        .mark_tick(orient="vertical", thickness=3, size=tall, opacity=1)
        .encode(x=at["x"], y=at["y"], fill=alt.Fill("what:N", scale=scale, legend=key), **ABOUT)
    )


def _dots(dots: Items, place: Places, lanes: Lanes) -> Layer:
    room = lanes.room - legend_width([_DATA])
    return (
        marks(dots)
        .mark_point(filled=True, size=60, opacity=1)
        .encode(color=version_colour(lanes.versions, room=room), **place("ub"), **ABOUT)
    )
