"""Charts of a summary: Vega-Lite specifications, and pictures made of them.

The only module that imports altair and vl-convert. They carry the JavaScript they need, so
nothing is fetched from elsewhere.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from equipoise.errors import MissingDependency

if TYPE_CHECKING:
    from types import ModuleType

    import altair

RED, BLUE, GREY = "#b2182b", "#2166ac", "#8a8f98"
"""Fewer rows than a group's share, more, and neither: told apart by colour-blind people too."""
_DIVERGING = [BLUE, "#67a9cf", "#d1e5f0", "#f7f7f7", "#fddbc7", "#ef8a62", RED]
_SMALL = "#d5d8dc"
_INK = "#1c2430"
_CELL_WIDTH, _CELL_HEIGHT, _CHART_WIDTH, _PAGE_WIDTH = 70, 31, 440, 850


def heat_map(matrix: Mapping[str, Any]) -> dict[str, Any]:
    """Draw a matrix of UB: red where a group has fewer rows than its share, blue where more.

    Groups too small to say anything are grey.

    Parameters
    ----------
    matrix
        One of ``summary["charts"]["matrices"]``.

    Returns
    -------
    dict
        A Vega-Lite specification.
    """
    alt = _altair()
    labels = matrix["labels"] or [None]
    abreast = max(1, min(len(labels), _PAGE_WIDTH // (_CELL_WIDTH * len(matrix["columns"]))))
    panels = [_panel(alt, matrix, label, named=i % abreast == 0) for i, label in enumerate(labels)]
    whole = panels[0] if len(panels) == 1 else alt.concat(*panels, columns=abreast, spacing=18)
    return _finished(whole)


def interval_chart(ranking: Mapping[str, Any]) -> dict[str, Any]:
    """Draw the largest UB with their intervals, the limits as dashed lines.

    Parameters
    ----------
    ranking
        ``summary["charts"]["ranking"]``.

    Returns
    -------
    dict
        A Vega-Lite specification.
    """
    alt = _altair()
    low = ranking["low"]
    x = _scale_of_ub(alt, ranking)
    y = alt.Y(
        "name:N",
        sort=[bar["name"] for bar in ranking["bars"]],
        axis=alt.Axis(
            title=None,
            labelLimit=460,
            labelExpr=_middle_cut(66),
            labelPadding=8,
            ticks=False,
            domain=False,
        ),
    )
    base = alt.Chart(alt.Data(values=[_ranked(bar, low) for bar in ranking["bars"]])).encode(
        y=y, description="about:N", tooltip="about:N"
    )
    colour = alt.Color("colour:N", scale=None)
    span = base.mark_rule(strokeWidth=2).encode(x=x("low:Q"), x2="high:Q", color=colour)
    point = base.mark_point(filled=True, size=64, opacity=1, clip=True).encode(
        x=x("ub:Q"), color=colour
    )
    rows = base.mark_text(align="left", color=GREY, fontSize=11, aria=False).encode(
        x=alt.value(_CHART_WIDTH + 10), text="rows:N"
    )
    layers = alt.layer(_lines(alt, ranking["limit"], x), span, point, rows)
    return _finished(layers.properties(width=_CHART_WIDTH, height=alt.Step(22)))


def policy_map_chart(data: Mapping[str, Any]) -> dict[str, Any]:
    """Draw a policy map: UB over two moves, its zero curve, the limits and the best point.

    Parameters
    ----------
    data
        From :func:`equipoise.reports.policy_map.chart_data`.

    Returns
    -------
    dict
        A Vega-Lite specification.
    """
    alt = _altair()
    place = _places(alt, data)
    layers = [
        _surface(alt, data, place),
        _outside(alt, data, place),
        *_strokes(alt, data, place),
        *_limit_names(alt, data, place),
        *_marks(alt, data, place),
    ]
    return _finished(alt.layer(*layers).properties(width=_MAP_WIDTH, height=_MAP_HEIGHT))


def change_chart(data: Mapping[str, Any]) -> dict[str, Any]:
    """Draw the cells a plan changes: the rows that stay, those deleted and those added.

    Parameters
    ----------
    data
        From :func:`equipoise.reports.plan_data.changes`.

    Returns
    -------
    dict
        A Vega-Lite specification.
    """
    alt = _altair()
    parts = [part for bar in data["bars"] for part in _parts(bar)]
    most = max(part["end"] for part in parts)
    axis = alt.Axis(title="rows", orient="top", format=",d", tickCount=5, grid=False)
    scale = alt.Scale(domain=[0, most], nice=False)
    bars = (
        alt.Chart(alt.Data(values=parts))
        .mark_bar(height=13)
        .encode(
            y=_names(alt, data["bars"]),
            x=alt.X("start:Q", axis=axis, scale=scale),
            x2="end:Q",
            color=_fates(alt),
            description="about:N",
            tooltip="about:N",
        )
    )
    return _finished(_beside(alt, bars, data["bars"]))


def bias_chart(data: Mapping[str, Any]) -> dict[str, Any]:
    """Draw |UB| before and after a plan, group by group, the tolerance as a dashed line.

    Parameters
    ----------
    data
        From :func:`equipoise.reports.plan_data.biases`.

    Returns
    -------
    dict
        A Vega-Lite specification.
    """
    alt = _altair()
    pairs, limit = data["pairs"], data["limit"]
    ends = [v for pair in pairs for v in (pair["before"], pair["after"]) if v is not None]
    scale = alt.Scale(domain=[0, max([*ends, 1.2 * (limit or 0), 1e-9]) * 1.02], nice=False)
    axis = alt.Axis(title=data["title"], orient="top", grid=False, tickCount=6, tickSize=4)
    x = alt.X("at:Q", scale=scale, axis=axis)
    values = [_whiskered(pair) for pair in pairs]
    base = alt.Chart(alt.Data(values=values)).encode(
        y=_names(alt, pairs), description="about:N", tooltip="about:N"
    )
    way = base.mark_rule(strokeWidth=2, color=GREY).encode(
        x=alt.X("before:Q", scale=scale, axis=axis), x2="after:Q"
    )
    points = (
        alt.Chart(alt.Data(values=[p for pair in pairs for p in _moments(pair)]))
        .mark_point(size=70, strokeWidth=2, opacity=1)
        .encode(
            y=_names(alt, pairs),
            x=x,
            stroke=alt.Stroke("stroke:N", scale=None),
            fill=alt.Fill("fill:N", scale=None),
            description="about:N",
            tooltip="about:N",
        )
    )
    layers = [way, points] if limit is None else [_at_limit(alt, limit, x), way, points]
    return _finished(_beside(alt, alt.layer(*layers), pairs))


def source_chart(data: Mapping[str, Any]) -> dict[str, Any]:
    """Draw the rows each cell needed: a colour for each table they came from, and what lacks.

    Parameters
    ----------
    data
        From :func:`equipoise.reports.repair_data.source_bars`.

    Returns
    -------
    dict
        A Vega-Lite specification.
    """
    alt = _altair()
    bars, parts = data["bars"], [part for bar in data["bars"] for part in bar["parts"]]
    most = max(part["end"] for part in parts)
    title, number = ("share of the rows needed", "%") if data["shares"] else ("rows needed", ",d")
    axis = alt.Axis(title=title, orient="top", format=number, tickCount=5, grid=False)
    scale = alt.Scale(domain=[0, most], nice=False)
    stack = (
        alt.Chart(alt.Data(values=parts))
        .mark_bar(height=13)
        .encode(
            y=_names(alt, bars),
            x=alt.X("start:Q", axis=axis, scale=scale),
            x2="end:Q",
            color=_tables(alt, data["names"]),
            description="about:N",
            tooltip="about:N",
        )
    )
    return _finished(_beside(alt, stack, bars))


def step_chart(data: Mapping[str, Any]) -> dict[str, Any]:
    """Draw the least cost against the tolerance, as the step function it is.

    Parameters
    ----------
    data
        From :func:`equipoise.reports.plan_data.steps`.

    Returns
    -------
    dict
        A Vega-Lite specification.
    """
    alt = _altair()
    layers = [
        *_budget_lines(alt, data),
        *_known_steps(alt, data),
        *_no_plans(alt, data),
    ]
    return _finished(alt.layer(*layers).properties(width=_STEPS_WIDTH, height=_STEPS_HEIGHT))


def to_png(spec: Mapping[str, Any], *, scale: float = 2.0) -> bytes:
    """Render a specification as a PNG picture."""
    png: bytes = _converter().vegalite_to_png(json.dumps(spec), scale=scale)
    return png


def to_svg(spec: Mapping[str, Any]) -> str:
    """Render a specification as an SVG picture."""
    svg: str = _converter().vegalite_to_svg(json.dumps(spec))
    return svg


def to_html_fragment(spec: Mapping[str, Any]) -> str:
    """Render a specification as SVG for a page: in the page's ink, with its own tooltips."""
    config = {**spec["config"], "background": None, **_inked("currentColor")}
    return _TITLED.sub(r"\1><title>\2</title></path>", to_svg({**spec, "config": config}))


_TITLED = re.compile(r'(<path aria-label="([^"<]*)"[^<>]*?)/?>(?:</path>)?')


def draw(summary: Mapping[str, Any]) -> dict[str, str]:
    """Draw every chart of a summary for a page: HTML fragments by name."""
    charts = summary["charts"]
    drawn = {
        f"matrix-{i}": to_html_fragment(heat_map(matrix))
        for i, matrix in enumerate(charts["matrices"], start=1)
    }
    if charts["ranking"]["bars"]:
        drawn["ranking"] = to_html_fragment(interval_chart(charts["ranking"]))
    return drawn


# ---------------------------------------------------------------------------- matrices


def _drawn(cell: Mapping[str, Any], bound: float) -> dict[str, Any]:
    unsure, known = cell["unsure"], cell["ub"] is not None
    return {
        **{k: cell[k] for k in ("row", "column", "label", "ub", "about", "unsure")},
        "shown": f"({cell['text']})" if unsure and known else cell["text"],
        "strong": known and not unsure and abs(cell["ub"]) > 0.8 * bound,
    }


def _ink(alt: ModuleType) -> Any:
    light = alt.when("datum.strong").then(alt.value("white"))
    return light.when("datum.unsure").then(alt.value("#5b626c")).otherwise(alt.value(_INK))


def _panel(
    alt: ModuleType, matrix: Mapping[str, Any], label: str | None, *, named: bool
) -> altair.LayerChart:
    cells = [_drawn(c, matrix["bound"]) for c in matrix["cells"] if label in (None, c["label"])]
    base = alt.Chart(alt.Data(values=cells)).encode(
        x=_columns(alt, matrix), y=_rows(alt, matrix, named=named), tooltip="about:N"
    )
    rect = base.mark_rect(cornerRadius=3).encode(color=_colour(alt, matrix), description="about:N")
    text = base.mark_text(fontSize=12, aria=False).encode(text="shown:N", color=_ink(alt))
    panel: altair.LayerChart = alt.layer(rect, text).properties(
        width=_CELL_WIDTH * len(matrix["columns"]), height=_CELL_HEIGHT * len(matrix["rows"])
    )
    if label is not None:
        title = alt.TitleParams(f"{matrix['label_name']}: {label}", limit=400)
        panel = panel.properties(title=title)
    return panel


def _columns(alt: ModuleType, matrix: Mapping[str, Any]) -> altair.X:
    values = matrix["columns"]
    longest = max((len(v) for v in values), default=0)
    axis = alt.Axis(
        **_AXIS,
        title=matrix["column_name"],
        labelAngle=0 if longest * 7 <= _CELL_WIDTH else -40,
        orient="top",
    )
    scale = alt.Scale(domain=values, paddingInner=0.04, paddingOuter=0)
    x: altair.X = alt.X("column:N", scale=scale, sort=None, axis=axis)
    return x


def _rows(alt: ModuleType, matrix: Mapping[str, Any], *, named: bool) -> altair.Y:
    axis = alt.Axis(
        **_AXIS,
        title=matrix["row_name"] if named else None,
        labels=named,
        titleAngle=0,
        titleAlign="right",
        titleX=-6,
        titleY=-10,
    )
    scale = alt.Scale(domain=matrix["rows"], paddingInner=0.08, paddingOuter=0)
    y: altair.Y = alt.Y("row:N", scale=scale, sort=None, axis=axis)
    return y


def _middle_cut(most: int) -> str:
    """Shorten long axis labels in the middle: names often differ only at the end."""
    half = most // 2
    cut = f"slice(datum.label, 0, {half}) + '…' + slice(datum.label, -{half})"
    return f"length(datum.label) > {most} ? {cut} : datum.label"


_AXIS: dict[str, Any] = {
    "labelExpr": f"datum.label === '*' ? 'any' : {_middle_cut(34)}",
    "labelLimit": 220,
    "labelPadding": 6,
    "ticks": False,
    "domain": False,
}


_EXACT = "datum.value === 0 ? '0' : format(datum.value, '+.2f')"
_CLAMPED = f"(datum.value < 0 ? '≤ ' : '') + ({_EXACT})"


def _colour(alt: ModuleType, matrix: Mapping[str, Any]) -> Any:
    known = _known_colour(alt, matrix["bound"], clamped=matrix["clamped"])
    return alt.condition("datum.unsure || !isValid(datum.ub)", alt.value(_SMALL), known)


def _known_colour(alt: ModuleType, bound: float, *, clamped: bool) -> altair.Color:
    scale = alt.Scale(domain=[bound * i / 3 for i in range(-3, 4)], range=_DIVERGING, clamp=True)
    legend = alt.Legend(
        title="UB: red, fewer rows than its share; blue, more",
        titleLimit=400,
        labelExpr=_CLAMPED if clamped else _EXACT,
        orient="bottom",
        direction="horizontal",
        gradientLength=260,
        gradientThickness=10,
        values=[-bound, 0, bound],
    )
    colour: altair.Color = alt.Color("ub:Q", scale=scale, legend=legend)
    return colour


# ----------------------------------------------------------------------------- ranking


def _ranked(bar: Mapping[str, Any], low: float) -> dict[str, Any]:
    colour = {"fewer": RED, "more": BLUE}.get(bar["side"], GREY)
    about = f"{bar['name']}: UB {bar['text']}, interval {bar['interval']}, {bar['rows']} rows"
    kept = {k: bar[k] for k in ("name", "ub", "high", "rows")}
    return {**kept, "low": max(bar["low"], low), "colour": colour, "about": about}


def _scale_of_ub(alt: ModuleType, ranking: Mapping[str, Any]) -> Callable[[str], altair.X]:
    low = ranking["low"]
    step = next(
        s for s in (0.2, 0.5, 1, 2, 5, 10, 20, 50, 10.0 ** len(f"{-low:.0f}")) if -low < 8 * s
    )
    marks = [round(i * step, 1) for i in range(int(low / step), int(1 / step) + 1)]
    axis = alt.Axis(
        title=ranking["title"], orient="top", grid=False, values=marks, format="+.1f", tickSize=4
    )
    scale = alt.Scale(domain=[low - 0.02 * (1 - low), 1 + 0.02 * (1 - low)], nice=False)
    return lambda field: alt.X(field, scale=scale, axis=axis)


def _lines(alt: ModuleType, limit: float, x: Callable[[str], altair.X]) -> altair.Chart:
    places = [{"at": 0, "dash": False}, {"at": limit, "dash": True}, {"at": -limit, "dash": True}]
    dash = alt.condition("datum.dash", alt.value([4, 3]), alt.value([1, 0]))
    lines: altair.Chart = (
        alt.Chart(alt.Data(values=places))
        .mark_rule(color=GREY, aria=False, clip=True)
        .encode(x=x("at:Q"), strokeDash=dash)
    )
    return lines


# -------------------------------------------------------------------------- policy map

_MAP_WIDTH, _MAP_HEIGHT = 720, 480


def _places(alt: ModuleType, data: Mapping[str, Any]) -> Callable[..., dict[str, Any]]:
    """Scales of the map: give the channels of two fields, or of more."""
    axes = {
        axis: alt.Axis(
            title=_cut(data[f"{axis}_title"], most),
            titleLimit=_MAP_WIDTH,
            titlePadding=10,
            format=",.0f" if data[f"{axis}_max"] >= 10 else ",.1f",
            grid=False,
            tickCount=8,
        )
        for axis, most in (("x", 100), ("y", 64))
    }
    scales = {
        axis: alt.Scale(domain=[0, data[f"{axis}_max"]], nice=False, zero=False) for axis in "xy"
    }

    def channels(**more: Any) -> dict[str, Any]:
        x = alt.X("x:Q", scale=scales["x"], axis=axes["x"])
        return {"x": x, "y": alt.Y("y:Q", scale=scales["y"], axis=axes["y"]), **more}

    return channels


def _cut(text: str, most: int) -> str:
    half = most // 2
    return text if len(text) <= most else f"{text[:half]}…{text[-half:]}"


def _surface(alt: ModuleType, data: Mapping[str, Any], place: Any) -> altair.Chart:
    colour = _known_colour(alt, data["bound"], clamped=data["clamped"])
    base = alt.Chart(alt.Data(values=data["cells"])).mark_rect(aria=False, clip=True)
    chart: altair.Chart = base.encode(**place(x2="x2:Q", y2="y2:Q", color=colour))
    return chart


def _outside(alt: ModuleType, data: Mapping[str, Any], place: Any) -> altair.Chart:
    """Grey what the limits leave out: the map's edge one way round, the region's the other."""
    most = data["x_max"], data["y_max"]
    edge = [[0, 0], [most[0], 0], [*most], [0, most[1]], [0, 0]]
    inner = [*data["feasible"], *data["feasible"][:1]][::-1]
    path = [{"i": i, "x": p[0], "y": p[1]} for i, p in enumerate([*edge, *inner, [0, 0]])]
    base = alt.Chart(alt.Data(values=path)).mark_line(
        filled=True, fill="#6b7280", fillOpacity=0.45, strokeWidth=0, aria=False, clip=True
    )
    chart: altair.Chart = base.encode(**place(order="i:Q"))
    return chart


def _strokes(alt: ModuleType, data: Mapping[str, Any], place: Any) -> list[altair.Chart]:
    kinds: tuple[tuple[list[Any], dict[str, Any]], ...] = (
        (data["tolerated"], {"strokeDash": [1, 4], "strokeWidth": 1.5}),
        ([limit["ends"] for limit in data["limits"]], {"strokeDash": [7, 4], "strokeWidth": 1.5}),
        (data["zero"], {"strokeWidth": 2.5}),
    )
    charts = []
    for lines, look in kinds:
        values = [
            {"x": x, "y": y, "i": i, "line": number}
            for number, line in enumerate(lines)
            for i, (x, y) in enumerate(line)
        ]
        if values:
            base = alt.Chart(alt.Data(values=values))
            light = {"color": "white", "opacity": 0.5, "strokeWidth": look["strokeWidth"] + 2}
            for mark in ({**light, "aria": False}, {"color": _INK, "aria": False, **look}):
                stroke = base.mark_line(clip=True, **mark)
                charts.append(stroke.encode(**place(order="i:Q", detail="line:N")))
    return charts


def _limit_names(alt: ModuleType, data: Mapping[str, Any], place: Any) -> list[altair.Chart]:
    """Name each limit where its line leaves the map, or beside its middle if it never does."""
    charts = []
    sides = {"top": (0, "left", -8), "right": (8, "left", 0), "inside": (6, "left", -8)}
    for side, (dx, align, dy) in sides.items():
        here = _apart([li for li in data["limits"] if li["side"] == side], side, data)
        for limit in here:
            drawn = [{"x": limit["x"], "y": limit["y"], "text": limit["text"]}]
            look = {"align": align, "dx": dx, "dy": dy + limit["shift"], "limit": 190}
            look["baseline"] = "bottom" if side != "right" else "middle"
            charts += _words(alt, drawn, place, look, halo=side == "inside")
    return charts


def _apart(
    limits: list[Mapping[str, Any]], side: str, data: Mapping[str, Any]
) -> list[dict[str, Any]]:
    """Move names that would cover each other: those on top up, the others down."""
    placed: list[dict[str, Any]] = []
    end, level, on_top = float("-inf"), 0, side == "top"
    for limit in sorted(limits, key=lambda li: li["ends"][1][0 if on_top else 1] * (on_top or -1)):
        (x0, y0), (x1, y1) = limit["ends"]
        x, y = ((x0 + x1) / 2, (y0 + y1) / 2) if side == "inside" else (x1, y1)
        left, top = _pixels(data, (x, y))
        if on_top:
            level = level + 1 if left < end else 0
            shift, end = -15.0 * level, max(end, left + 7 * min(len(limit["text"]), 28) + 12)
        else:
            shift = max(0.0, end - top)
            end = top + shift + 15
        placed.append({"text": limit["text"], "x": x, "y": y, "shift": shift})
    return placed


def _pixels(data: Mapping[str, Any], point: Sequence[float]) -> tuple[float, float]:
    x, y = point
    return x / data["x_max"] * _MAP_WIDTH, (1 - y / data["y_max"]) * _MAP_HEIGHT


def _marks(alt: ModuleType, data: Mapping[str, Any], place: Any) -> list[altair.Chart]:
    charts, best = [], data["best"]
    spot = _zero_spot(data)
    if spot is not None:
        look = {**_free_side(data, spot, "UB = 0")[1], "fontStyle": "italic"}
        charts += _words(alt, [{"x": spot[0], "y": spot[1], "text": "UB = 0"}], place, look)
    if best is not None:
        ring = alt.Chart(alt.Data(values=[best])).mark_point(
            size=130, filled=True, fill="white", stroke=_INK, strokeWidth=2.5, opacity=1
        )
        charts.append(ring.encode(**place(description="about:N")))
        look = {**_free_side(data, (best["x"], best["y"]), best["text"])[1], "fontWeight": "bold"}
        charts += _words(alt, [{k: best[k] for k in ("x", "y", "text")}], place, look)
    return charts


def _free_side(
    data: Mapping[str, Any], point: Sequence[float], text: str
) -> tuple[int, dict[str, Any]]:
    """The side of a point on which words cover the least of any line, and how much that is."""
    lines = [*data["zero"], *data["tolerated"], *(limit["ends"] for limit in data["limits"])]
    drawn = [_pixels(data, p) for line in lines for p in _filled(line)]
    (x, y), width = _pixels(data, point), 7 * len(text)

    def covered(side: tuple[int, int]) -> int:
        left = x + (9 if side[0] > 0 else -9 - width)
        top = y + side[1] - 10
        out = left < 0 or left + width > _MAP_WIDTH or top < 0 or top + 20 > _MAP_HEIGHT
        hits = sum(left <= u <= left + width and top <= v <= top + 20 for u, v in drawn)
        return 10_000 * int(out) + hits

    best = min(((way, down) for down in (-17, 17, 0) for way in (1, -1)), key=covered)
    look = {"align": "left" if best[0] > 0 else "right", "dx": 11 * best[0], "dy": best[1]}
    return covered(best), {**look, "baseline": "middle"}


def _zero_spot(data: Mapping[str, Any]) -> Sequence[float] | None:
    """Where to write that UB is 0: on the curve, away from other words, lines and edges."""
    best = data["best"] or {"x": 0, "y": 0}
    points = [p for line in data["zero"] for p in _filled(line)][::4]

    def room(point: Sequence[float]) -> tuple[int, float]:
        u, v = point[0] / data["x_max"], point[1] / data["y_max"]
        apart = max(abs(u - best["x"] / data["x_max"]), abs(v - best["y"] / data["y_max"]))
        free = min(apart, 2 * u, 2 * (1 - u), 2 * v, 2 * (1 - v))
        return -_free_side(data, point, "UB = 0")[0], float(free)

    return max(points, key=room, default=None)


def _filled(line: list[list[float]]) -> list[list[float]]:
    """The points of a line, with some between where they are far apart."""
    if len(line) > 20:
        return line
    steps = [i / 60 for i in range(61)]
    return [
        [x0 + t * (x1 - x0), y0 + t * (y1 - y0)]
        for (x0, y0), (x1, y1) in itertools.pairwise(line)
        for t in steps
    ]


def _words(
    alt: ModuleType,
    values: list[dict[str, Any]],
    place: Any,
    look: Mapping[str, Any],
    *,
    halo: bool = True,
) -> list[altair.Chart]:
    """Words on the map; a halo keeps them legible on any colour."""
    base = alt.Chart(alt.Data(values=values))
    plain: dict[str, Any] = {"fontSize": 12, "aria": False, **look}
    if not halo:
        return [base.mark_text(**plain).encode(**place(text="text:N"))]
    back = {"stroke": "white", "strokeWidth": 4, "strokeOpacity": 0.85, "strokeJoin": "round"}
    return [
        base.mark_text(**plain, **back).encode(**place(text="text:N")),
        base.mark_text(**plain, color=_INK).encode(**place(text="text:N")),
    ]


# ------------------------------------------------------------------------------- plans

_FATES = {"stay": "#b9bec6", "deleted": RED, "added": BLUE}
_PLAN_WIDTH = 380


def _parts(bar: Mapping[str, Any]) -> list[dict[str, Any]]:
    start, parts = 0, []
    for fate, key in (("stay", "stay"), ("deleted", "delete"), ("added", "add")):
        if bar[key]:
            end = start + bar[key]
            kept = {"name": bar["name"], "about": bar["about"]}
            parts.append({**kept, "fate": fate, "start": start, "end": end})
            start = end
    return parts


def _fates(alt: ModuleType) -> altair.Color:
    scale = alt.Scale(domain=list(_FATES), range=list(_FATES.values()))
    legend = alt.Legend(title=None, orient="bottom", direction="horizontal", symbolType="square")
    colour: altair.Color = alt.Color("fate:N", scale=scale, legend=legend)
    return colour


_TABLES = ("#4477aa", "#ccbb44", "#228833", "#aa3377", "#66ccee", "#997744", "#aabb88", "#8a8f98")
"""Tables, told apart by colour-blind people too; red is left for what lacks."""


def _tables(alt: ModuleType, names: Sequence[str]) -> altair.Color:
    """Colours of tables, in their order; the last name may be that of missing rows."""
    colours = [RED if name == MISSING_ROWS else _TABLES[i] for i, name in enumerate(names)]
    legend = alt.Legend(
        title=None,
        orient="bottom",
        columns=2,
        rowPadding=6,
        symbolType="square",
        labelLimit=360,
        labelExpr=_middle_cut(48),
    )
    scale = alt.Scale(domain=list(names), range=colours)
    colour: altair.Color = alt.Color("table:N", scale=scale, legend=legend)
    return colour


MISSING_ROWS = "missing"
"""What the rows are called that no table gave."""


def _names(alt: ModuleType, bars: Sequence[Mapping[str, Any]]) -> altair.Y:
    axis = alt.Axis(
        title=None,
        labelLimit=460,
        labelExpr=_middle_cut(66),
        labelPadding=8,
        ticks=False,
        domain=False,
    )
    y: altair.Y = alt.Y("name:N", sort=[bar["name"] for bar in bars], axis=axis)
    return y


def _beside(alt: ModuleType, chart: Any, bars: Sequence[Mapping[str, Any]]) -> altair.LayerChart:
    """A chart with the numbers of each line to its right."""
    values = [{"name": bar["name"], "text": bar["text"]} for bar in bars]
    words = (
        alt.Chart(alt.Data(values=values))
        .mark_text(align="left", color=GREY, fontSize=11, aria=False)
        .encode(y=_names(alt, bars), x=alt.value(_PLAN_WIDTH + 10), text="text:N")
    )
    layers: altair.LayerChart = alt.layer(chart, words).properties(
        width=_PLAN_WIDTH, height=alt.Step(22)
    )
    return layers


def _whiskered(pair: Mapping[str, Any]) -> dict[str, Any]:
    known = [v for v in (pair["before"], pair["after"]) if v is not None]
    ends = {"before": known[0], "after": known[-1]}
    return {"name": pair["name"], "about": pair["about"], **ends}


def _moments(pair: Mapping[str, Any]) -> list[dict[str, Any]]:
    then = RED if pair["outside"] else BLUE
    looks = {"before": {"fill": "white", "stroke": GREY}, "after": {"fill": then, "stroke": then}}
    kept = {"name": pair["name"], "about": pair["about"]}
    return [
        {**kept, "at": pair[when], **look} for when, look in looks.items() if pair[when] is not None
    ]


def _at_limit(alt: ModuleType, limit: float, x: altair.X) -> altair.Chart:
    line: altair.Chart = (
        alt.Chart(alt.Data(values=[{"at": limit}]))
        .mark_rule(color=GREY, strokeDash=[4, 3], aria=False)
        .encode(x=x)
    )
    return line


# ---------------------------------------------------------------------------- frontier

_STEPS_WIDTH, _STEPS_HEIGHT = 640, 340


def _scales(alt: ModuleType, data: Mapping[str, Any]) -> Callable[..., dict[str, Any]]:
    kind = "log" if data["log"] else "linear"
    x_scale = alt.Scale(type=kind, domain=data["x"], nice=False)
    y_scale = alt.Scale(domain=[0, data["y_max"]], nice=False)
    x_axis = alt.Axis(title=data["title"], grid=False, format="~g", tickCount=8, labelOverlap=True)
    y_axis = alt.Axis(title="least cost", format=",.6~g", grid=True, gridColor="#8a8f9844")

    def channels(x: str, y: str, **more: Any) -> dict[str, Any]:
        place = alt.X(f"{x}:Q", scale=x_scale, axis=x_axis)
        return {"x": place, "y": alt.Y(f"{y}:Q", scale=y_scale, axis=y_axis), **more}

    return channels


def _known_steps(alt: ModuleType, data: Mapping[str, Any]) -> list[altair.Chart]:
    at = _scales(alt, data)
    path = alt.Chart(alt.Data(values=data["path"])).mark_line(
        color=BLUE, strokeWidth=1, opacity=0.6, aria=False, clip=True
    )
    pieces = alt.Chart(alt.Data(values=data["pieces"])).encode(
        description="about:N", tooltip="about:N"
    )
    bars = pieces.mark_rule(color=BLUE, strokeWidth=4, clip=True)
    dots = pieces.mark_point(filled=True, size=36, color=BLUE, opacity=1)
    charts = [
        path.encode(**at("x", "cost", order="i:Q")),
        bars.encode(**at("low", "cost", x2="high:Q")),
        dots.encode(**at("high", "cost")),
    ]
    if data["bounds"]:
        spans = alt.Chart(alt.Data(values=data["bounds"])).mark_rule(
            color=GREY, strokeWidth=2, aria=False
        )
        charts.insert(0, spans.encode(**at("x", "low", y2="high:Q")))
    return charts


def _budget_lines(alt: ModuleType, data: Mapping[str, Any]) -> list[altair.Chart]:
    if not data["budgets"]:
        return []
    at = _scales(alt, data)
    base = alt.Chart(alt.Data(values=data["budgets"]))
    bought = [b for b in data["budgets"] if b["tolerance"] is not None]
    rings = alt.Chart(alt.Data(values=bought)).mark_point(
        size=90, strokeWidth=2, color=RED, opacity=1, clip=True
    )
    line = base.mark_rule(color=RED, strokeDash=[5, 4], aria=False)
    words = base.mark_text(align="left", baseline="middle", dx=8, fontSize=12, aria=False)
    y = at("tolerance", "budget")["y"]
    return [
        line.encode(y=y),
        words.encode(y=y, x=alt.value(_STEPS_WIDTH), text="text:N"),
        rings.encode(**at("tolerance", "cost", description="text:N")),
    ]


def _no_plans(alt: ModuleType, data: Mapping[str, Any]) -> list[altair.Chart]:
    """Mark tolerances that no plan reaches, at the top of the chart."""
    if not data["none"]:
        return []
    at = _scales(alt, data)
    values = [
        {"x": t, "y": data["y_max"], "about": f"tolerance {t:.4g}: no plan"} for t in data["none"]
    ]
    base = alt.Chart(alt.Data(values=values))
    cross = base.mark_point(shape="cross", angle=45, filled=True, size=60, color=GREY, opacity=1)
    last = alt.Chart(alt.Data(values=values[-1:])).mark_text(
        align="left", dx=10, fontSize=12, text="no plan", aria=False
    )
    return [cross.encode(**at("x", "y", description="about:N")), last.encode(**at("x", "y"))]


# ------------------------------------------------------------------------------ shared


def _finished(chart: altair.TopLevelMixin) -> dict[str, Any]:
    spec: dict[str, Any] = chart.to_dict()
    font = "Arial, Liberation Sans, sans-serif"  # the same widths everywhere, so nothing is cut
    spec["config"] = {"background": "white", "font": font, "view": {"stroke": None}, **_inked(_INK)}
    return spec


def _inked(ink: str) -> dict[str, Any]:
    words = {"labelColor": ink, "titleColor": ink, "labelFontSize": 12, "titleFontSize": 12}
    axis = {**words, "tickColor": GREY, "domainColor": GREY, "titleFontWeight": "normal"}
    legend = {**words, "titleFontWeight": "normal"}
    title = {"color": ink, "fontSize": 13}
    return {"axis": axis, "legend": legend, "title": title, "text": {"color": ink}}


def _altair() -> ModuleType:
    try:
        import altair
    except ImportError:
        raise MissingDependency("altair", extra="charts", purpose="drawing charts") from None
    return altair


def _converter() -> ModuleType:
    try:
        import vl_convert
    except ImportError:
        raise MissingDependency(
            "vl-convert-python", extra="charts", purpose="rendering charts"
        ) from None
    module: ModuleType = vl_convert
    return module
