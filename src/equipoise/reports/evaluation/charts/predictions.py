"""UB of predictions, group by group."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from equipoise.reports.charts.vega import finished, plotting
from equipoise.reports.evaluation.charts.intervals import (
    ABOUT,
    cleaned,
    legend,
    legend_width,
    limits,
    said,
    version_colour,
    version_colours,
    version_names,
)
from equipoise.reports.evaluation.charts.lanes import Lanes, Places, spans, zero_line

if TYPE_CHECKING:
    from types import ModuleType

    import altair


def prediction_chart(data: Mapping[str, Any]) -> dict[str, Any]:
    """Draw the UB of predictions, group by group: a dot for each version, a tick for the data.

    Parameters
    ----------
    data
        ``versions``, each a pair of a short name and what it means; and ``pairs``, each with
        ``name``, ``data`` (the UB of the test data itself) and ``points``, which have
        ``version``, ``ub``, ``low`` and ``high``. Numbers that are ``None`` are not drawn.

    Returns
    -------
    dict
        A Vega-Lite specification.

    Examples
    --------
    >>> point = {"version": "u", "ub": 0.62, "low": 0.58, "high": 0.66}
    >>> pair = {"name": "sex=w, outcome=hired", "data": 0.55, "points": [point]}
    >>> data = {"versions": [["u", "as it is"]], "pairs": [pair]}
    >>> prediction_chart(data)["layer"][-1]["data"]["values"][0]["about"]
    'sex=w, outcome=hired, u: UB of the predictions +0.620 (+0.580 … +0.660)'
    """
    alt = plotting()
    dots = [dot for pair in data["pairs"] for dot in _predicted(pair, data["versions"])]
    ticks = [_itself(pair) for pair in map(cleaned, data["pairs"]) if pair["data"] is not None]
    ends = limits([*dots, *ticks], "ub")
    names = [pair["name"] for pair in data["pairs"]]
    lanes = Lanes("pair", names, data["versions"], ends, title="UB of the predictions")
    place = lanes.places(alt)
    layers = [
        zero_line(alt, place),
        *spans(alt, dots, ends, place),
        _data_ticks(alt, ticks, place, lanes.line - 6),
        _dots(alt, dots, place, lanes),
    ]
    return finished(alt.layer(*layers).properties(**lanes.size))


_DATA = "the test data itself"


def _predicted(pair: Mapping[str, Any], versions: Sequence[Sequence[str]]) -> list[dict[str, Any]]:
    names, colours = version_names(versions), version_colours(versions)
    return [
        {
            **{key: p[key] for key in ("version", "ub", "low", "high")},
            "pair": pair["name"],
            "name": names[p["version"]],
            "colour": colours[p["version"]],
            "about": f"{pair['name']}, {p['version']}: UB of the predictions {said(p, 'ub')}",
        }
        for p in map(cleaned, pair["points"])
        if p["ub"] is not None
    ]


def _itself(pair: Mapping[str, Any]) -> dict[str, Any]:
    about = f"{pair['name']}: UB of the test data {said({'ub': pair['data']}, 'ub')}"
    return {"pair": pair["name"], "what": _DATA, "ub": pair["data"], "about": about}


def _data_ticks(
    alt: ModuleType, ticks: Sequence[Mapping[str, Any]], place: Places, tall: float
) -> altair.Chart:
    at = place("ub")
    scale = alt.Scale(domain=[_DATA], range=["#c3c7cd"])
    key = legend(alt, [_DATA], symbolType="M-0.3,-1H0.3V1H-0.3Z", symbolStrokeWidth=0)
    chart: altair.Chart = (
        alt.Chart(alt.Data(values=ticks))
        .mark_tick(orient="vertical", thickness=3, size=tall, opacity=1)
        .encode(x=at["x"], y=at["y"], fill=alt.Fill("what:N", scale=scale, legend=key), **ABOUT)
    )
    return chart


def _dots(
    alt: ModuleType,
    dots: Sequence[Mapping[str, Any]],
    place: Places,
    lanes: Lanes,
) -> altair.Chart:
    room = lanes.room - legend_width([_DATA])
    chart: altair.Chart = (
        alt.Chart(alt.Data(values=dots))
        .mark_point(filled=True, size=60, opacity=1)
        .encode(color=version_colour(alt, lanes.versions, room=room), **place("ub"), **ABOUT)
    )
    return chart
