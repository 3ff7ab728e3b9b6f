"""Differences of scores, with their intervals."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from equipoise.reports.charts.vega import ABOUT, GREY, Layer, Spec, alt, finished, marks
from equipoise.reports.evaluation.charts.intervals import (
    Items,
    Versions,
    drawable,
    legend,
    legend_width,
    limits,
    said,
    version_colour,
    version_looks,
)
from equipoise.reports.evaluation.charts.lanes import LANES_APART, Lanes, Places, spans, zero_line


def difference_chart(data: Mapping[str, Any]) -> Spec:
    """Draw paired differences with their intervals: a line for each model, a panel for each measure.

    A mark is filled if it is clear of 0 after correction for many comparisons, and hollow if not.
    All panels share one scale; an arrow marks an interval that is too wide for it. Numbers that
    are ``None`` are not drawn.

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
    looks = version_looks(data["versions"])
    rows = [_compared(row, looks[row["version"]]) for row in drawable(data["rows"], "mean")]
    abreast = min(len(data["measures"]), _ABREAST)
    lanes = Lanes(
        "model", data["models"], data["versions"], limits(rows, "mean"), data["unit"], 30, abreast
    )
    panels = [
        _difference_panel(lanes, measure, rows, named=i % _ABREAST == 0)
        for i, measure in enumerate(data["measures"])
    ]
    return finished(alt.concat(*panels, columns=_ABREAST, spacing=LANES_APART))


_ABREAST = 3
_MARK: dict[str, Any] = {"size": 60, "strokeWidth": 1.8, "opacity": 1}
_CLEAR, _UNCLEAR = "clear of 0 after correction", "not clear of 0"


def _compared(row: Mapping[str, Any], look: Mapping[str, str]) -> dict[str, Any]:
    return {
        **{key: row[key] for key in ("model", "version", "measure", "mean", "low", "high")},
        **look,
        "clear": _CLEAR if row["clear"] else _UNCLEAR,
        "about": f"{row['model']}, {row['version']}: {row['measure']} {said(row, 'mean')}",
    }


def _difference_panel(lanes: Lanes, measure: str, rows: Items, *, named: bool) -> Layer:
    here, place = [row for row in rows if row["measure"] == measure], lanes.places(named=named)
    return alt.layer(
        zero_line(place),
        *spans(here, lanes.ends, place),
        *_full_or_hollow(here, place, lanes.versions, lanes.room),
    ).properties(title=alt.TitleParams(measure, offset=10), **lanes.size)


def _full_or_hollow(rows: Items, place: Places, versions: Versions, room: float) -> list[Layer]:
    """Marks on white, so that no whisker is seen through a hollow one."""
    base = marks(rows).encode(**place("mean"))
    kinds = [_CLEAR, _UNCLEAR]
    scale = alt.Scale(domain=kinds, range=[GREY, "white"])
    kind = legend(kinds, symbolStrokeColor=GREY, symbolStrokeWidth=1.8)
    below = base.mark_point(filled=True, stroke=GREY, **_MARK, aria=False).encode(
        fill=alt.Fill("clear:N", scale=scale, legend=kind)
    )
    above = base.mark_point(filled=True, **_MARK).encode(
        color=version_colour(versions, room=room - legend_width(kinds)),
        stroke=alt.Stroke("colour:N", scale=None),
        fillOpacity=alt.when(alt.datum.clear == _CLEAR).then(alt.value(1)).otherwise(alt.value(0)),
        **ABOUT,
    )
    return [below, above]
