"""Charts of models before and after a repair: scores, differences, errors and predictions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from equipoise.measures.display import whole
from equipoise.reports.charts.drawing import GREY, PAGE_WIDTH, finished, plotting
from equipoise.reports.charts.intervals import (
    FAINT,
    cleaned,
    cuts,
    legend,
    legend_width,
    limits,
    said,
    signed_axis,
    text_width,
    version_colours,
    version_names,
    whiskers,
)
from equipoise.reports.charts.lanes import LANES_APART, Lanes, Places, spans, zero_line
from equipoise.reports.charts.naming import Names, told_apart
from equipoise.reports.charts.placing import WORDS, Frame, placed

if TYPE_CHECKING:
    from types import ModuleType

    import altair

_TOLD = {"description": "about:N", "tooltip": "about:N"}


def score_chart(data: Mapping[str, Any]) -> dict[str, Any]:
    """Draw scores as bars with whiskers: a cluster for each version, a panel for each half.

    Bars start at 0 and share one axis up to 1. Means are written above them if there is room.

    Parameters
    ----------
    data
        ``measures``, the names in the order of the bars; ``order``, the versions in theirs;
        ``halves``, the names of the panels; and ``bars``, each with ``version``, ``half``,
        ``measure``, ``mean``, ``low`` and ``high``. Numbers that are ``None`` are not drawn.

    Returns
    -------
    dict
        A Vega-Lite specification.

    Examples
    --------
    >>> bar = {"version": "p", "half": "mitigated", "measure": "accuracy"}
    >>> bars = [{**bar, "mean": 0.81, "low": 0.80, "high": 0.82}]
    >>> data = {"measures": ["accuracy"], "order": ["p"], "halves": ["mitigated"], "bars": bars}
    >>> [panel["title"]["text"] for panel in score_chart(data)["hconcat"]]
    ['mitigated']
    """
    alt = plotting()
    halves = {half: _versions_of(data, half) for half in data["halves"]}
    shown = [half for half, versions in halves.items() if versions] or data["halves"][:1]
    room = PAGE_WIDTH - 34 * len(shown) - _HALVES_APART
    clusters = sum(len(versions) for versions in halves.values())
    cluster = min(room / max(clusters, 1), 44 * len(data["measures"]) + 30)
    level = max(map(text_width, data["order"]), default=0) < cluster
    if not level:
        cluster = min(cluster, (room - _LEANING) / clusters)
    panels = [
        _score_panel(
            alt, data, half, halves[half], cluster=cluster, level=level, first=half == shown[0]
        )
        for half in shown
    ]
    return finished(alt.hconcat(*panels, spacing=_HALVES_APART))


def difference_chart(data: Mapping[str, Any]) -> dict[str, Any]:
    """Draw paired differences with their intervals: models below each other, measures abreast.

    A mark is filled if it is clear of 0 after correction for many comparisons, and hollow if not.
    All panels share one scale; an interval far wider than the others may leave it, which an arrow
    says.

    Parameters
    ----------
    data
        ``measures`` and ``models``, in their order; ``versions``, each a pair of a short name and
        what it means; ``unit``, the title of the scale; and ``rows``, each with ``model``,
        ``version``, ``measure``, ``mean``, ``low``, ``high`` and ``clear``. Numbers that are
        ``None`` are not drawn.

    Returns
    -------
    dict
        A Vega-Lite specification.

    Examples
    --------
    >>> row = {"model": "tree", "version": "p", "measure": "recall", "clear": True}
    >>> data = {
    ...     "measures": ["recall"],
    ...     "models": ["tree"],
    ...     "versions": [["p", "label frequencies kept"]],
    ...     "unit": "difference to u",
    ...     "rows": [{**row, "mean": 0.012, "low": 0.004, "high": 0.02}],
    ... }
    >>> [panel["title"]["text"] for panel in difference_chart(data)["concat"]]
    ['recall']
    """
    alt = plotting()
    found = [row for row in map(cleaned, data["rows"]) if row["mean"] is not None]
    rows = [_compared(row, data["versions"]) for row in found]
    abreast = min(len(data["measures"]), _ABREAST)
    lanes = Lanes(
        "model", data["models"], data["versions"], limits(rows, "mean"), data["unit"], 30, abreast
    )
    panels = [
        _difference_panel(alt, lanes, measure, rows, named=i % _ABREAST == 0)
        for i, measure in enumerate(data["measures"])
    ]
    return finished(alt.concat(*panels, columns=_ABREAST, spacing=LANES_APART))


def relation_chart(data: Mapping[str, Any]) -> dict[str, Any]:
    """Draw UB in the training data against the error it goes with, and where repairs move both.

    A thin line joins what is the same group and label, from version to version.

    Parameters
    ----------
    data
        ``x`` and ``y``, the titles of the axes; ``versions``, each a pair of a short name and what
        it means, in the order of the line; and ``points``, each with ``group``, ``label``,
        ``version``, ``ub``, ``error``, ``low``, ``high`` (of the error) and ``rows``. Points
        without a UB or an error are not drawn.

    Returns
    -------
    dict
        A Vega-Lite specification.

    Examples
    --------
    >>> point = {"group": "sex=w", "label": "hired", "version": "u", "rows": 40}
    >>> data = {
    ...     "points": [{**point, "ub": 0.5, "error": 0.1, "low": 0.0, "high": 0.2}],
    ...     "versions": [["u", "as it is"]],
    ...     "x": "UB in the training data",
    ...     "y": "misses beyond those of all rows with the label",
    ... }
    >>> drawn = [
    ...     value for layer in relation_chart(data)["layer"] for value in layer["data"]["values"]
    ... ]
    >>> next(value["about"] for value in drawn if "about" in value)
    'sex=w → hired, u: UB +0.500, error +0.100 (0.000 … +0.200), 40 rows'
    """
    alt = plotting()
    points = _related(data)
    frame = Frame(limits([{"ub": p["ub"]} for p in points], "ub"), limits(points, "error"))
    place = _plane(alt, frame, data)
    layers = [
        *_shape_key(alt, points, place, data),
        *_zero_lines(alt, place),
        *_moves(alt, points, place, frame),
        _marked(alt, points, place, data),
        *_group_names(alt, points, place, frame),
    ]
    return finished(alt.layer(*layers).properties(width=frame.width, height=frame.height))


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


# ------------------------------------------------------------------------------ scores

_HALVES_APART, _SCORE_HEIGHT = 16, 250
_LEANING = 48
"""Pixels to the left of the bars that a name takes if it leans."""
_BETWEEN = 0.2
"""The share of a cluster's width that is left free before the next."""
_MEASURES = ("#76a5e0", "#efcb66", "#d9728a", "#7b7d1c", "#7fe9c6", "#a8b27a")
"""Measures, told apart by colour-blind people too, and light enough to see a whisker on them."""


def _versions_of(data: Mapping[str, Any], half: str) -> list[str]:
    there = {bar["version"] for bar in data["bars"] if bar["half"] == half}
    return [version for version in data["order"] if version in there]


def _score_panel(
    alt: ModuleType,
    data: Mapping[str, Any],
    half: str,
    versions: Sequence[str],
    *,
    cluster: float,
    level: bool,
    first: bool,
) -> altair.LayerChart:
    bar_width = (1 - _BETWEEN) * cluster / len(data["measures"])
    found = [cleaned(bar) for bar in data["bars"] if bar["half"] == half]
    bars = [_scored(bar, bar_width) for bar in found if bar["mean"] is not None]
    place = _score_places(alt, data["measures"], versions, level=level, first=first)
    base, ends = (alt.Chart(alt.Data(values=v)) for v in (bars, whiskers(bars, (0.0, 1.0))))
    tall = base.mark_bar().encode(color=_measure_colour(alt, data), **place("mean"), **_TOLD)
    span = ends.mark_rule(color="#545b67", strokeWidth=1.5, aria=False)
    mean = base.mark_text(baseline="bottom", dy=-2, fontSize=10, aria=False)
    panel: altair.LayerChart = alt.layer(
        tall, span.encode(y2="high:Q", **place("low")), mean.encode(text="text:N", **place("top"))
    ).properties(
        title=alt.TitleParams(half, anchor="start", frame="group", offset=14),
        width=cluster * max(len(versions), 1),
        height=_SCORE_HEIGHT,
    )
    return panel


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
    alt: ModuleType,
    measures: Sequence[str],
    versions: Sequence[str],
    *,
    level: bool,
    first: bool,
) -> Places:
    x_axis = alt.Axis(
        title=None,
        labelAngle=0 if level else -40,
        **Names.wrapped(versions, 80 if level else 24, most=1).keyed(),
        labelPadding=6,
        ticks=False,
    )
    bands = alt.Scale(domain=list(versions), paddingInner=_BETWEEN, paddingOuter=_BETWEEN / 2)
    # Labels are there on the right too, unseen: so the names of the halves stand level.
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


def _measure_colour(alt: ModuleType, data: Mapping[str, Any]) -> altair.Color:
    names = list(data["measures"])
    scale = alt.Scale(domain=names, range=[_MEASURES[i % 6] for i in range(len(names))])
    key = legend(alt, names, symbolType="square")
    colour: altair.Color = alt.Color("measure:N", scale=scale, legend=key)
    return colour


# ------------------------------------------------------------------------- differences

_ABREAST = 3
_MARK = {"size": 60, "strokeWidth": 1.8, "opacity": 1}
_CLEAR, _UNCLEAR = "clear of 0 after correction", "not clear of 0"


def _compared(row: Mapping[str, Any], versions: Sequence[Sequence[str]]) -> dict[str, Any]:
    return {
        **{key: row[key] for key in ("model", "version", "measure", "mean", "low", "high")},
        "name": version_names(versions)[row["version"]],
        "colour": version_colours(versions)[row["version"]],
        "clear": _CLEAR if row["clear"] else _UNCLEAR,
        "about": f"{row['model']}, {row['version']}: {row['measure']} {said(row, 'mean')}",
    }


def _difference_panel(
    alt: ModuleType,
    lanes: Lanes,
    measure: str,
    rows: Sequence[Mapping[str, Any]],
    *,
    named: bool,
) -> altair.LayerChart:
    here, place = [row for row in rows if row["measure"] == measure], lanes.places(alt, named=named)
    panel: altair.LayerChart = alt.layer(
        zero_line(alt, place),
        *spans(alt, here, lanes.ends, place),
        *_full_or_hollow(alt, here, place, lanes.versions, lanes.room),
    ).properties(title=alt.TitleParams(measure, offset=10), **lanes.size)
    return panel


def _full_or_hollow(
    alt: ModuleType,
    rows: Sequence[Mapping[str, Any]],
    place: Places,
    versions: Sequence[Sequence[str]],
    room: float,
) -> list[altair.Chart]:
    """Marks on white, so that no whisker is seen through a hollow one."""
    base = alt.Chart(alt.Data(values=rows)).encode(**place("mean"))
    kinds = [_CLEAR, _UNCLEAR]
    scale = alt.Scale(domain=kinds, range=[GREY, "white"])
    kind = legend(alt, kinds, symbolStrokeColor=GREY, symbolStrokeWidth=1.8)
    below = base.mark_point(filled=True, stroke=GREY, **_MARK, aria=False).encode(
        fill=alt.Fill("clear:N", scale=scale, legend=kind)
    )
    marks = base.mark_point(filled=True, **_MARK).encode(
        color=_version_colour(alt, versions, room=room - legend_width(kinds)),
        stroke=alt.Stroke("colour:N", scale=None),
        fillOpacity=alt.when(alt.datum.clear == _CLEAR).then(alt.value(1)).otherwise(alt.value(0)),
        **_TOLD,
    )
    return [below, marks]


def _version_colour(
    alt: ModuleType, versions: Sequence[Sequence[str]], *, room: float
) -> altair.Color:
    names = list(version_names(versions).values())
    scale = alt.Scale(domain=names, range=list(version_colours(versions).values()))
    key = legend(alt, names, room=room, symbolType="circle", symbolStrokeWidth=0)
    colour: altair.Color = alt.Color("name:N", scale=scale, legend=key)
    return colour


# ---------------------------------------------------------------------------- relation

_SHAPES = ("circle", "square", "triangle-up", "diamond", "cross", "triangle-down")
_NAMED = 12
"""How many pairs of a group and a label are named; more names would cover each other."""
_Plane = Callable[[str, str], dict[str, Any]]


def _related(data: Mapping[str, Any]) -> list[dict[str, Any]]:
    names, colours = version_names(data["versions"]), version_colours(data["versions"])
    shapes = _shapes_of(data["points"])
    found = [p for p in map(cleaned, data["points"]) if None not in (p["ub"], p["error"])]
    return [
        {
            **{key: p[key] for key in ("group", "label", "ub", "error", "low", "high")},
            "shape": shapes.get(p["label"], "circle"),
            "i": list(names).index(p["version"]),
            "name": names[p["version"]],
            "colour": colours[p["version"]],
            "about": f"{p['group']} → {p['label']}, {p['version']}: UB {said({'ub': p['ub']}, 'ub')}, "
            f"error {said(p, 'error')}, {whole(p['rows'])} rows",
        }
        for p in found
    ]


def _plane(alt: ModuleType, frame: Frame, data: Mapping[str, Any]) -> _Plane:
    look = {"grid": False, "tickSize": 4, "titlePadding": 10}
    x_axis = alt.Axis(title=data["x"], **look, **signed_axis(frame.x, frame.width))
    y_axis = alt.Axis(title=data["y"], **look, **signed_axis(frame.y, frame.height))
    x_scale, y_scale = (alt.Scale(domain=list(ends), nice=False) for ends in (frame.x, frame.y))

    def channels(x: str, y: str) -> dict[str, Any]:
        return {
            "x": alt.X(f"{x}:Q", scale=x_scale, axis=x_axis),
            "y": alt.Y(f"{y}:Q", scale=y_scale, axis=y_axis),
        }

    return channels


def _zero_lines(alt: ModuleType, place: _Plane) -> list[altair.Chart]:
    line = alt.Chart(alt.Data(values=[{"at": 0}])).mark_rule(color=GREY, aria=False)
    at = place("at", "at")
    return [line.encode(x=at["x"]), line.encode(y=at["y"])]


def _moves(
    alt: ModuleType, points: Sequence[Mapping[str, Any]], place: _Plane, frame: Frame
) -> list[altair.Chart]:
    """Whiskers of the errors, and the way of each pair from version to version."""
    ends, colour = frame.y, alt.Color("colour:N", scale=None)
    rules, gone, ways = (
        alt.Chart(alt.Data(values=values))
        for values in (
            whiskers(points, ends),
            cuts(points, ends, ("triangle-down", "triangle-up")),
            points,
        )
    )
    return [
        rules.mark_rule(strokeWidth=1.5, strokeOpacity=0.4, aria=False).encode(
            color=colour, y2="high:Q", **place("ub", "low")
        ),
        gone.mark_point(filled=True, size=50, opacity=1, fillOpacity=0.4, aria=False).encode(
            color=colour, shape=alt.Shape("arrow:N", scale=None), **place("ub", "at")
        ),
        ways.mark_line(color=GREY, strokeWidth=1, strokeOpacity=0.8, aria=False).encode(
            order="i:Q", detail=["group:N", "label:N"], **place("ub", "error")
        ),
    ]


def _marked(
    alt: ModuleType, points: Sequence[Mapping[str, Any]], place: _Plane, data: Mapping[str, Any]
) -> altair.Chart:
    aside = legend_width(list(_shapes_of(data["points"])))
    room = PAGE_WIDTH - 80 - min(aside, PAGE_WIDTH / 2)
    base = alt.Chart(alt.Data(values=points)).mark_point(filled=True, size=70, opacity=1)
    chart: altair.Chart = base.encode(
        color=_version_colour(alt, data["versions"], room=room),
        shape=alt.Shape("shape:N", scale=None),
        **place("ub", "error"),
        **_TOLD,
    )
    return chart


def _shape_key(
    alt: ModuleType, points: Sequence[Mapping[str, Any]], place: _Plane, data: Mapping[str, Any]
) -> list[altair.Chart]:
    """Hollow points below the others, for a legend of shapes that has no version's colour."""
    shapes = _shapes_of(data["points"])
    if not shapes:
        return []
    scale = alt.Scale(domain=list(shapes), range=list(shapes.values()))
    shape = alt.Shape("label:N", scale=scale, legend=legend(alt, list(shapes), room=PAGE_WIDTH / 2))
    base = alt.Chart(alt.Data(values=points)).mark_point(
        size=50, strokeWidth=1.5, opacity=1, color=GREY, aria=False
    )
    return [base.encode(shape=shape, **place("ub", "error"))]


def _shapes_of(points: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """A shape for each label; none if there is but one, or more than shapes to tell apart."""
    labels = list(dict.fromkeys(point["label"] for point in points))
    return dict(zip(labels, _SHAPES, strict=False)) if 1 < len(labels) <= len(_SHAPES) else {}


def _group_names(
    alt: ModuleType, points: Sequence[Mapping[str, Any]], place: _Plane, frame: Frame
) -> list[altair.Chart]:
    """Names beside the first point of each pair, if they are few."""
    pairs: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for point in sorted(points, key=lambda p: int(p["i"])):
        pairs.setdefault((point["group"], point["label"]), []).append(point)
    if not 0 < len(pairs) <= _NAMED:
        return []
    lines = [[(p["ub"], p["error"]) for p in way] for way in pairs.values()]
    lines += [[(w["ub"], w["low"]), (w["ub"], w["high"])] for w in whiskers(points, frame.y)]
    several = len({label for _, label in pairs}) > len(_SHAPES)
    texts = [f"{group} → {label}" if several else group for group, label in pairs]
    unique = list(dict.fromkeys(texts))  # shapes tell the labels of one group apart
    short = dict(zip(unique, told_apart(unique, 40), strict=True))
    names = [(short[text], lines[i][0]) for i, text in enumerate(texts)]
    words = placed(names, [*lines, *frame.zeros()], frame)
    far = alt.Chart(alt.Data(values=[word for word in words if word["far"]]))
    leads = far.mark_rule(color=GREY, strokeWidth=0.7, strokeDash=[2, 2], aria=False)
    return [
        leads.encode(x2="x2:Q", y2="y2:Q", **place("x", "y")),
        *(
            alt.Chart(alt.Data(values=[w for w in words if w["align"] == align]))
            .mark_text(align=align, baseline="middle", fontSize=WORDS, aria=False)
            .encode(text="text:N", **place("x", "y"))
            for align in ("left", "right", "center")
        ),
    ]


# ------------------------------------------------------------------------- predictions

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
        .encode(x=at["x"], y=at["y"], fill=alt.Fill("what:N", scale=scale, legend=key), **_TOLD)
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
        .encode(color=_version_colour(alt, lanes.versions, room=room), **place("ub"), **_TOLD)
    )
    return chart
