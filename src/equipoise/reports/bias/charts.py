"""Charts of UB: matrices in colours, and a ranking with intervals."""

from __future__ import annotations

import re
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from equipoise.plain import width_of, wrap
from equipoise.reports.charts.axes import line_height, name_axis, signed_axis
from equipoise.reports.charts.colours import colour_of_ub
from equipoise.reports.charts.names import LINE, WrappedNames
from equipoise.reports.charts.vega import (
    ABOUT,
    BLUE,
    GREY,
    INK,
    PAGE_WIDTH,
    RED,
    Layer,
    Spec,
    alt,
    finished,
    marks,
)

_SMALL = "#d5d8dc"
_CELL_WIDTHS, _CELL_HEIGHT, _CHART_WIDTH = (70, 92, 116, 140), 31, 440
_ROW_LETTERS = 40


def heat_map(matrix: Mapping[str, Any]) -> Spec:
    """Draw one of ``summary["charts"]["matrices"]``; groups with too few rows to tell are grey."""
    labels = matrix["labels"] or [None]
    heads = _heads(matrix["columns"])
    abreast = max(1, min(len(labels), PAGE_WIDTH // (heads.width * len(matrix["columns"]))))
    panels = [
        _panel(matrix, label, heads, named=i % abreast == 0) for i, label in enumerate(labels)
    ]
    whole = panels[0] if len(panels) == 1 else alt.concat(*panels, columns=abreast, spacing=18)
    return finished(whole)


def interval_chart(ranking: Mapping[str, Any]) -> Spec:
    """Draw ``summary["charts"]["ranking"]``: UB with intervals, the limits as dashed lines.

    The scale contains 0 and fits the numbers. If a few UB are far below the others, it ends before
    them: an arrow replaces each, with its number on the right, and the title explains this.
    """
    bars, ends = ranking["bars"], scale_ends(ranking["bars"], ranking["limit"])
    x = _scale_of_ub(ranking["title"], bars, ends)
    values = [_ranked(bar, ends) for bar in bars]
    base = marks(values).encode(y=name_axis(bars), **ABOUT)
    colour = alt.Color("colour:N", scale=None)
    span = base.transform_filter("datum.spanned").mark_rule(strokeWidth=2)
    point = base.transform_filter("!datum.beyond").mark_point(filled=True, size=64, opacity=1)
    layers = [
        _lines(ranking["limit"], ends, x),
        span.encode(x=x("low:Q"), x2="high:Q", color=colour),
        point.encode(x=x("at:Q"), color=colour),
    ]
    if any(value["cut"] for value in values):
        arrow = base.transform_filter("datum.cut").mark_point(
            filled=True, size=60, opacity=1, shape="triangle-left", aria=False
        )
        layers.append(arrow.encode(x=x("low:Q"), color=colour))
    rows = base.mark_text(align="left", color=GREY, fontSize=11, aria=False)
    layers.append(rows.encode(x=alt.value(_CHART_WIDTH + 10), text="rows:N"))
    chart = alt.layer(*layers)
    return finished(chart.properties(width=_CHART_WIDTH, height=line_height(bars)))


# ---------------------------------------------------------------------------- matrices


def _drawn(cell: Mapping[str, Any], bound: float) -> dict[str, Any]:
    unsure, known = cell["unsure"], cell["ub"] is not None
    return {
        **{k: cell[k] for k in ("row", "column", "label", "ub", "about", "unsure")},
        "shown": f"({cell['text']})" if unsure and known else cell["text"],
        # On the strongest colours only white text is legible.
        "strong": known and not unsure and abs(cell["ub"]) > 0.8 * bound,
    }


def _ink() -> Any:
    light = alt.when("datum.strong").then(alt.value("white"))
    return light.when("datum.unsure").then(alt.value("#5b626c")).otherwise(alt.value(INK))


def _panel(matrix: Mapping[str, Any], label: str | None, heads: _Heads, *, named: bool) -> Layer:
    rows = WrappedNames.wrapped(matrix["rows"], _ROW_LETTERS, shown=_any(matrix["rows"]))
    cells = [_drawn(c, matrix["bound"]) for c in matrix["cells"] if label in (None, c["label"])]
    base = marks(cells).encode(
        x=_columns(matrix, heads), y=_rows(matrix, rows, named=named), tooltip="about:N"
    )
    rect = base.mark_rect(cornerRadius=3).encode(color=_colour(matrix), description="about:N")
    text = base.mark_text(fontSize=12, aria=False).encode(text="shown:N", color=_ink())
    panel = alt.layer(rect, text).properties(
        width=heads.width * len(matrix["columns"]),
        height=max(_CELL_HEIGHT, LINE * rows.height + 6) * len(matrix["rows"]),
    )
    if label is not None:
        letters = max(heads.width * len(matrix["columns"]) // 7, 30)
        title = alt.TitleParams(wrap(f"{matrix['label_name']}: {label}", letters))
        panel = panel.properties(title=title)
    return panel


@dataclass(frozen=True)
class _Heads:
    """The names above columns, how wide these are, and whether the names are horizontal."""

    names: WrappedNames
    width: int
    level: bool


def _heads(values: Sequence[str]) -> _Heads:
    """Write names horizontally if their words fit columns of some width, else vertically."""
    shown = _any(values)
    longest = max(width_of(w) for v in values for w in re.split(r"\s", shown.get(v, v)))
    # The narrowest columns first; wider ones only as long as the matrix fits the page.
    for width in _CELL_WIDTHS:
        letters = int((width - 8) / 6.4)  # a letter of 12 pixels is about 6.4 wide
        names = WrappedNames.wrapped(values, letters, shown=shown)
        room = width == _CELL_WIDTHS[0] or width * len(values) <= PAGE_WIDTH - 230
        if longest <= letters and names.height <= 4 and room:
            return _Heads(names, width, level=True)
    upright = WrappedNames.wrapped(values, _ROW_LETTERS, most=4, shown=shown)
    return _Heads(upright, _CELL_WIDTHS[0], level=False)


def _any(values: Sequence[str]) -> dict[str, str]:
    """``*`` is written as "any", unless a value has that name."""
    return {} if "any" in values else {"*": "any"}


def _columns(matrix: Mapping[str, Any], heads: _Heads) -> alt.X:
    written = heads.names.above(6) if heads.level else {"labelPadding": 6, **heads.names.beside()}
    axis = alt.Axis(
        **_AXIS,
        **written,
        title=matrix["column_name"],
        labelAngle=0 if heads.level else -90,
        orient="top",
    )
    scale = alt.Scale(domain=matrix["columns"], paddingInner=0.04, paddingOuter=0)
    return alt.X("column:N", scale=scale, sort=None, axis=axis)


def _rows(matrix: Mapping[str, Any], names: WrappedNames, *, named: bool) -> alt.Y:
    axis = alt.Axis(
        **_AXIS,
        **names.beside(),
        labelPadding=6,
        title=matrix["row_name"] if named else None,
        labels=named,
        titleAngle=0,
        titleAlign="right",
        titleX=-6,
        titleY=-10,
    )
    scale = alt.Scale(domain=matrix["rows"], paddingInner=0.08, paddingOuter=0)
    return alt.Y("row:N", scale=scale, sort=None, axis=axis)


_AXIS: dict[str, Any] = {
    "ticks": False,
    "domain": False,
    "grid": False,
    "titleLimit": 0,
    "titlePadding": 8,
}


def _colour(matrix: Mapping[str, Any]) -> Any:
    known = colour_of_ub(matrix["bound"], clamped=matrix["clamped"])
    return alt.condition("datum.unsure || !isValid(datum.ub)", alt.value(_SMALL), known)


# ----------------------------------------------------------------------------- ranking


def scale_ends(bars: Sequence[Mapping[str, Any]], limit: float) -> tuple[float, float]:
    """Ends of the scale of UB: 0, the limits, every UB and intervals as far as is useful.

    UB is at most 1 but has no lower bound: what is far below the others is cut off.

    >>> low, high = scale_ends([{"ub": 0.2, "low": 0.1, "high": 0.3}], 0.1)
    >>> round(low, 3), round(high, 3)
    (-0.143, 0.313)
    """
    ubs, reach = [bar["ub"] for bar in bars], 1.3 * min(limit, 1.0)
    # One UB of −100 would press all others together, so the scale ends at three times the median.
    farthest = -3 * max([1.0, *([statistics.median_low(map(abs, ubs))] if ubs else [])])
    # An interval may reach 1 below the smallest UB; what is longer is cut off.
    lows = max(min((bar["low"] for bar in bars), default=0.0), min(ubs, default=0.0) - 1)
    low = min(-reach, max(lows, farthest))
    high = max(reach, *(bar["high"] for bar in bars), *ubs, 0.0)
    # Room for the dots at the ends, which would be cut in half.
    margin = 0.03 * (high - low) or 0.05
    return low - margin, high + margin


def _ranked(bar: Mapping[str, Any], ends: tuple[float, float]) -> dict[str, Any]:
    low, high = ends
    return {
        "name": bar["name"],
        "rows": bar["rows"] + (f", UB {bar['text']}" if bar["ub"] < low else ""),
        "low": max(bar["low"], low),
        "high": min(bar["high"], high),
        "at": max(bar["ub"], low),
        "beyond": bar["ub"] < low,
        "spanned": bar["high"] > low,
        "cut": bar["low"] < low,
        "colour": {"fewer": RED, "more": BLUE}.get(bar["side"], GREY),
        "about": f"{bar['name']}: UB {bar['text']}, interval {bar['interval']}, {bar['rows']} rows",
    }


_Place = Callable[[str], "alt.X"]


def _scale_of_ub(
    title: str, bars: Sequence[Mapping[str, Any]], ends: tuple[float, float]
) -> _Place:
    lines = wrap(title, 80)
    if any(bar["ub"] < ends[0] for bar in bars):
        lines.append("An arrow without a dot: UB is beyond the scale and written on the right.")
    axis = alt.Axis(
        title=lines,
        titleLimit=0,
        orient="top",
        grid=False,
        tickSize=4,
        **signed_axis(ends, _CHART_WIDTH),
    )
    scale = alt.Scale(domain=list(ends), nice=False)
    return lambda field: alt.X(field, scale=scale, axis=axis)


def _lines(limit: float, ends: tuple[float, float], x: _Place) -> Layer:
    dashed = [at for at in (limit, -limit) if ends[0] <= at <= ends[1]]
    places: list[dict[str, Any]] = [
        {"at": 0, "dash": False},
        *({"at": at, "dash": True} for at in dashed),
    ]
    dash = alt.condition("datum.dash", alt.value([4, 3]), alt.value([1, 0]))
    rule = marks(places).mark_rule(color=GREY, aria=False, clip=True)
    return rule.encode(x=x("at:Q"), strokeDash=dash)
