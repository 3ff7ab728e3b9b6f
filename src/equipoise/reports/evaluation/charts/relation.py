"""UB in the training data and the errors of models."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from equipoise.measures.display import whole
from equipoise.reports.charts.axes import signed_axis
from equipoise.reports.charts.names import told_apart
from equipoise.reports.charts.vega import ABOUT, GREY, PAGE_WIDTH, Layer, Spec, alt, finished, marks
from equipoise.reports.evaluation.charts.intervals import (
    Items,
    cuts,
    drawable,
    legend,
    legend_width,
    limits,
    said,
    version_colour,
    version_looks,
    whiskers,
)
from equipoise.reports.evaluation.charts.labels import WORDS, Frame, placed


def relation_chart(data: Mapping[str, Any]) -> Spec:
    """Draw UB in the training data against the error of models, before and after repairs.

    A thin line joins the points of a group and a label, in the order of the versions. Points
    without a UB or an error are not drawn.

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
    points = _related(data)
    frame = Frame(limits([{"ub": p["ub"]} for p in points], "ub"), limits(points, "error"))
    place = _plane(frame, data)
    layers = [
        *_shape_key(points, place, data),
        *_zero_lines(place),
        *_moves(points, place, frame),
        _marked(points, place, data),
        *_group_names(points, place, frame),
    ]
    return finished(alt.layer(*layers).properties(width=frame.width, height=frame.height))


_SHAPES = ("circle", "square", "triangle-up", "diamond", "cross", "triangle-down")


_NAMED = 12
"""How many pairs of a group and a label are named; more names would cover each other."""


_Plane = Callable[[str, str], dict[str, Any]]


def _related(data: Mapping[str, Any]) -> list[dict[str, Any]]:
    looks, shapes = version_looks(data["versions"]), _shapes_of(data["points"])
    return [
        {
            **{key: p[key] for key in ("group", "label", "ub", "error", "low", "high")},
            "shape": shapes.get(p["label"], "circle"),
            "i": list(looks).index(p["version"]),
            **looks[p["version"]],
            "about": f"{p['group']} → {p['label']}, {p['version']}: UB {said({'ub': p['ub']}, 'ub')}, "
            f"error {said(p, 'error')}, {whole(p['rows'])} rows",
        }
        for p in drawable(data["points"], "ub", "error")
    ]


def _plane(frame: Frame, data: Mapping[str, Any]) -> _Plane:
    look: dict[str, Any] = {"grid": False, "tickSize": 4, "titlePadding": 10}
    x_axis = alt.Axis(title=data["x"], **look, **signed_axis(frame.x, frame.width))
    y_axis = alt.Axis(title=data["y"], **look, **signed_axis(frame.y, frame.height))
    x_scale, y_scale = (alt.Scale(domain=list(ends), nice=False) for ends in (frame.x, frame.y))

    def channels(x: str, y: str) -> dict[str, Any]:
        return {
            "x": alt.X(f"{x}:Q", scale=x_scale, axis=x_axis),
            "y": alt.Y(f"{y}:Q", scale=y_scale, axis=y_axis),
        }

    return channels


def _zero_lines(place: _Plane) -> list[Layer]:
    line = marks([{"at": 0}]).mark_rule(color=GREY, aria=False)
    at = place("at", "at")
    return [line.encode(x=at["x"]), line.encode(y=at["y"])]


def _moves(points: Items, place: _Plane, frame: Frame) -> list[Layer]:
    """Whiskers of the errors, and lines that join the versions of a group and a label."""
    ends, colour = frame.y, alt.Color("colour:N", scale=None)
    rules, gone, ways = (
        marks(values)
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


def _marked(points: Items, place: _Plane, data: Mapping[str, Any]) -> Layer:
    aside = legend_width(list(_shapes_of(data["points"])))
    room = PAGE_WIDTH - 80 - min(aside, PAGE_WIDTH / 2)
    base = marks(points).mark_point(filled=True, size=70, opacity=1)
    return base.encode(
        color=version_colour(data["versions"], room=room),
        shape=alt.Shape("shape:N", scale=None),
        **place("ub", "error"),
        **ABOUT,
    )


def _shape_key(points: Items, place: _Plane, data: Mapping[str, Any]) -> list[Layer]:
    """Hollow points below the others, so that the legend of shapes has no version's colour."""
    shapes = _shapes_of(data["points"])
    if not shapes:
        return []
    scale = alt.Scale(domain=list(shapes), range=list(shapes.values()))
    shape = alt.Shape("label:N", scale=scale, legend=legend(list(shapes), room=PAGE_WIDTH / 2))
    base = marks(points).mark_point(size=50, strokeWidth=1.5, opacity=1, color=GREY, aria=False)
    return [base.encode(shape=shape, **place("ub", "error"))]


def _shapes_of(points: Items) -> dict[str, str]:
    """A shape for each label; none if there is one label only, or more labels than shapes."""
    labels = list(dict.fromkeys(point["label"] for point in points))
    return dict(zip(labels, _SHAPES, strict=False)) if 1 < len(labels) <= len(_SHAPES) else {}


def _group_names(points: Items, place: _Plane, frame: Frame) -> list[Layer]:
    """Names beside the first point of each pair, if they are few."""
    pairs: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for point in sorted(points, key=lambda p: int(p["i"])):
        pairs.setdefault((point["group"], point["label"]), []).append(point)
    if not 0 < len(pairs) <= _NAMED:
        return []
    lines = [[(p["ub"], p["error"]) for p in way] for way in pairs.values()]
    # Names should not cover whiskers either.
    lines += [[(w["ub"], w["low"]), (w["ub"], w["high"])] for w in whiskers(points, frame.y)]
    several = len({label for _, label in pairs}) > len(_SHAPES)
    texts = [f"{group} → {label}" if several else group for group, label in pairs]
    unique = list(dict.fromkeys(texts))  # shapes tell the labels of one group apart
    short = dict(zip(unique, told_apart(unique, 40), strict=True))
    names = [(short[text], lines[i][0]) for i, text in enumerate(texts)]
    words = placed(names, [*lines, *frame.zeros()], frame)
    far = marks([word for word in words if word["far"]])
    leads = far.mark_rule(color=GREY, strokeWidth=0.7, strokeDash=[2, 2], aria=False)
    return [
        leads.encode(x2="x2:Q", y2="y2:Q", **place("x", "y")),
        *(
            marks([w for w in words if w["align"] == align])
            .mark_text(align=align, baseline="middle", fontSize=WORDS, aria=False)
            .encode(text="text:N", **place("x", "y"))
            for align in ("left", "right", "center")
        ),
    ]
