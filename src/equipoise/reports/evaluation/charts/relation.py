"""UB in the training data against the error it goes with."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from equipoise.measures.display import whole
from equipoise.reports.charts.axes import signed_axis
from equipoise.reports.charts.names import told_apart
from equipoise.reports.charts.vega import GREY, PAGE_WIDTH, finished, plotting
from equipoise.reports.evaluation.charts.intervals import (
    ABOUT,
    cleaned,
    cuts,
    legend,
    legend_width,
    limits,
    said,
    version_colour,
    version_colours,
    version_names,
    whiskers,
)
from equipoise.reports.evaluation.charts.labels import WORDS, Frame, placed

if TYPE_CHECKING:
    from types import ModuleType

    import altair


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
        color=version_colour(alt, data["versions"], room=room),
        shape=alt.Shape("shape:N", scale=None),
        **place("ub", "error"),
        **ABOUT,
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
