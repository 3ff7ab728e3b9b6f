"""Charts of UB: matrices in colours, and a ranking with intervals."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from equipoise.reports.charts.drawing import (
    BLUE,
    GREY,
    INK,
    PAGE_WIDTH,
    RED,
    finished,
    middle_cut,
    plotting,
    to_html_fragment,
)

if TYPE_CHECKING:
    from types import ModuleType

    import altair

_DIVERGING = [BLUE, "#67a9cf", "#d1e5f0", "#f7f7f7", "#fddbc7", "#ef8a62", RED]
_SMALL = "#d5d8dc"
_CELL_WIDTH, _CELL_HEIGHT, _CHART_WIDTH = 70, 31, 440


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
    alt = plotting()
    labels = matrix["labels"] or [None]
    abreast = max(1, min(len(labels), PAGE_WIDTH // (_CELL_WIDTH * len(matrix["columns"]))))
    panels = [_panel(alt, matrix, label, named=i % abreast == 0) for i, label in enumerate(labels)]
    whole = panels[0] if len(panels) == 1 else alt.concat(*panels, columns=abreast, spacing=18)
    return finished(whole)


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
    alt = plotting()
    low = ranking["low"]
    x = _scale_of_ub(alt, ranking)
    y = alt.Y(
        "name:N",
        sort=[bar["name"] for bar in ranking["bars"]],
        axis=alt.Axis(
            title=None,
            labelLimit=460,
            labelExpr=middle_cut(66),
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
    return finished(layers.properties(width=_CHART_WIDTH, height=alt.Step(22)))


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
    return light.when("datum.unsure").then(alt.value("#5b626c")).otherwise(alt.value(INK))


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


_AXIS: dict[str, Any] = {
    "labelExpr": f"datum.label === '*' ? 'any' : {middle_cut(34)}",
    "labelLimit": 220,
    "labelPadding": 6,
    "ticks": False,
    "domain": False,
}


_EXACT = "datum.value === 0 ? '0' : format(datum.value, '+.2f')"


_CLAMPED = f"(datum.value < 0 ? '≤ ' : '') + ({_EXACT})"


def _colour(alt: ModuleType, matrix: Mapping[str, Any]) -> Any:
    known = colour_of_ub(alt, matrix["bound"], clamped=matrix["clamped"])
    return alt.condition("datum.unsure || !isValid(datum.ub)", alt.value(_SMALL), known)


def colour_of_ub(alt: ModuleType, bound: float, *, clamped: bool) -> altair.Color:
    """The colour of a UB, with its legend; beyond the bound it grows no stronger."""
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
