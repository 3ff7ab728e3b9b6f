"""Charts of models before and after a repair: scores, differences, errors and predictions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from equipoise.reports.charts.vega import GREY, finished, plotting
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
from equipoise.reports.evaluation.charts.lanes import LANES_APART, Lanes, Places, spans, zero_line

if TYPE_CHECKING:
    from types import ModuleType

    import altair


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
        color=version_colour(alt, versions, room=room - legend_width(kinds)),
        stroke=alt.Stroke("colour:N", scale=None),
        fillOpacity=alt.when(alt.datum.clear == _CLEAR).then(alt.value(1)).otherwise(alt.value(0)),
        **ABOUT,
    )
    return [below, marks]
