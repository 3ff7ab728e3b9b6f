"""The chart of a policy map: UB over two moves, with its curves, limits and words."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from equipoise.plain import wrap
from equipoise.reports.charts.colours import colour_of_ub
from equipoise.reports.charts.vega import INK, Layer, Spec, alt, finished, marks

_MAP_WIDTH, _MAP_HEIGHT = 720, 480
_Channels = Callable[..., dict[str, Any]]


def policy_map_chart(data: Mapping[str, Any]) -> Spec:
    """Draw UB over two moves, its zero curve, the limits and the best point.

    ``data`` is that of :func:`equipoise.reports.policy_map.data.chart_data`.
    """
    place = _places(data)
    layers = [
        _surface(data, place),
        _outside(data, place),
        *_strokes(data, place),
        *_limit_names(data, place),
        *_marks(data, place),
    ]
    return finished(alt.layer(*layers).properties(width=_MAP_WIDTH, height=_MAP_HEIGHT))


def _places(data: Mapping[str, Any]) -> _Channels:
    """The scales of the map, as a function that returns the channels x and y, and others."""
    axes = {
        axis: alt.Axis(
            title=wrap(data[f"{axis}_title"], letters),
            titleLimit=0,
            titlePadding=10,
            format=",.0f" if data[f"{axis}_max"] >= 10 else ",.1f",
            grid=False,
            tickCount=8,
        )
        for axis, letters in (("x", 100), ("y", 64))
    }
    scales = {
        axis: alt.Scale(domain=[0, data[f"{axis}_max"]], nice=False, zero=False) for axis in "xy"
    }

    def channels(**more: Any) -> dict[str, Any]:
        x = alt.X("x:Q", scale=scales["x"], axis=axes["x"])
        return {"x": x, "y": alt.Y("y:Q", scale=scales["y"], axis=axes["y"]), **more}

    return channels


def _surface(data: Mapping[str, Any], place: _Channels) -> Layer:
    colour = colour_of_ub(data["bound"], clamped=data["clamped"])
    base = marks(data["cells"]).mark_rect(aria=False, clip=True)
    return base.encode(**place(x2="x2:Q", y2="y2:Q", color=colour))


def _outside(data: Mapping[str, Any], place: _Channels) -> Layer:
    """A grey area over everything outside the limits."""
    # One path: around the map, and back around the feasible region, which so stays free.
    most = data["x_max"], data["y_max"]
    edge = [[0, 0], [most[0], 0], [*most], [0, most[1]], [0, 0]]
    inner = [*data["feasible"], *data["feasible"][:1]][::-1]
    path = [{"i": i, "x": p[0], "y": p[1]} for i, p in enumerate([*edge, *inner, [0, 0]])]
    base = marks(path).mark_line(
        filled=True, fill="#6b7280", fillOpacity=0.45, strokeWidth=0, aria=False, clip=True
    )
    return base.encode(**place(order="i:Q"))


def _strokes(data: Mapping[str, Any], place: _Channels) -> list[Layer]:
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
            base = marks(values)
            # A light edge keeps dark lines visible on the dark ends of the colours.
            light = {"color": "white", "opacity": 0.5, "strokeWidth": look["strokeWidth"] + 2}
            for mark in ({**light, "aria": False}, {"color": INK, "aria": False, **look}):
                stroke = base.mark_line(clip=True, **mark)
                charts.append(stroke.encode(**place(order="i:Q", detail="line:N")))
    return charts


def _limit_names(data: Mapping[str, Any], place: _Channels) -> list[Layer]:
    """Name each limit where its line leaves the map, or beside its middle if it never does."""
    charts = []
    sides = {"top": (0, "left", -8), "right": (8, "left", 0), "inside": (6, "left", -8)}
    for side, (dx, align, dy) in sides.items():
        here = _apart([li for li in data["limits"] if li["side"] == side], side, data)
        for limit in here:
            drawn = [{"x": limit["x"], "y": limit["y"], "text": limit["text"]}]
            look = {"align": align, "dx": dx, "dy": dy + limit["shift"], "limit": 190}
            look["baseline"] = "bottom" if side != "right" else "middle"
            charts += _words(drawn, place, look, halo=side == "inside")
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
            # Names are cut at 190 pixels, about 28 letters.
            shift, end = -15.0 * level, max(end, left + 7 * min(len(limit["text"]), 28) + 12)
        else:
            shift = max(0.0, end - top)
            end = top + shift + 15
        placed.append({"text": limit["text"], "x": x, "y": y, "shift": shift})
    return placed


def _pixels(data: Mapping[str, Any], point: Sequence[float]) -> tuple[float, float]:
    x, y = point
    return x / data["x_max"] * _MAP_WIDTH, (1 - y / data["y_max"]) * _MAP_HEIGHT


def _marks(data: Mapping[str, Any], place: _Channels) -> list[Layer]:
    charts, best = [], data["best"]
    spot = _zero_spot(data)
    if spot is not None:
        look = {**_free_side(data, spot, "UB = 0")[1], "fontStyle": "italic"}
        charts += _words([{"x": spot[0], "y": spot[1], "text": "UB = 0"}], place, look)
    if best is not None:
        ring = marks([best]).mark_point(
            size=130, filled=True, fill="white", stroke=INK, strokeWidth=2.5, opacity=1
        )
        charts.append(ring.encode(**place(description="about:N")))
        look = {**_free_side(data, (best["x"], best["y"]), best["text"])[1], "fontWeight": "bold"}
        charts += _words([{k: best[k] for k in ("x", "y", "text")}], place, look)
    if data["chosen"] is not None:
        diamond = marks([data["chosen"]]).mark_point(
            shape="diamond", size=130, filled=True, fill=INK, opacity=1, clip=True
        )
        charts.append(diamond.encode(**place(description="about:N")))
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
        return 10_000 * int(out) + hits  # outside the map words would be cut off

    best = min(((way, down) for down in (-17, 17, 0) for way in (1, -1)), key=covered)
    look = {"align": "left" if best[0] > 0 else "right", "dx": 11 * best[0], "dy": best[1]}
    return covered(best), {**look, "baseline": "middle"}


def _zero_spot(data: Mapping[str, Any]) -> Sequence[float] | None:
    """Where to write that UB is 0: on the curve, away from other words, lines and edges."""
    best = data["best"] or {"x": 0, "y": 0}
    # Every fourth point is enough: the curve has 121, and each is compared with all lines.
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
    values: list[dict[str, Any]],
    place: _Channels,
    look: Mapping[str, Any],
    *,
    halo: bool = True,
) -> list[Layer]:
    """Words on the map; a halo keeps them legible on any colour."""
    base = marks(values)
    plain: dict[str, Any] = {"fontSize": 12, "aria": False, **look}
    if not halo:
        return [base.mark_text(**plain).encode(**place(text="text:N"))]
    back: dict[str, Any] = {
        "stroke": "white",
        "strokeWidth": 4,
        "strokeOpacity": 0.85,
        "strokeJoin": "round",
    }
    return [
        base.mark_text(**plain, **back).encode(**place(text="text:N")),
        base.mark_text(**plain, color=INK).encode(**place(text="text:N")),
    ]
