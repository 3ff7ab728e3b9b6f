"""Ways to treat missing values as a page: how each moves Uniform Bias, or errs."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING, Any, TypeAlias

from equipoise import atomic
from equipoise.errors import MissingDependency
from equipoise.evaluation.missing.comparison import MissingValues
from equipoise.evaluation.missing.imputation import METHODS
from equipoise.evaluation.missing.simulation import MissingSimulation
from equipoise.measures.display import percent, whole
from equipoise.reports.html import Section, bullets, html_table, render_page
from equipoise.reports.plan import figure

if TYPE_CHECKING:
    from equipoise.plain import Grid

Result: TypeAlias = MissingValues | MissingSimulation

SCHEMA = "equipoise.missing-page/1"

_AWAY = (
    "Away from 0 is the mean change of UB in the direction away from 0: below 0, groups look more "
    "alike than they do {otherwise}."
)
_CHANGES = (
    (
        "A change is UB under a method less UB under {baseline}; the mean is over all groups and "
        "labels compared, each of which counts the same."
    ),
    "The last columns are the shares of the labels; what lacks to 100% are rows without a label.",
)
_ERRORS = (
    (
        "An error is UB under a method less the true UB; means are over all groups and labels "
        "compared, each of which counts the same, and then over the repeats."
    ),
    (
        "The mean error has signs, and groups that gain make up for groups that lose: it is near "
        "0 even where single errors are not."
    ),
    "The largest |error| is that of a repeat, the mean of all repeats.",
    (
        "Filled right is the share of values taken away for which the method found the true one; "
        "this says little of UB, which is about shares and not about single rows."
    ),
)


def write_missing(
    result: Result, path: str | os.PathLike[str], *, source: str | None = None, top: int = 50
) -> None:
    """Write a comparison or a simulation of missing values as a page.

    Parameters
    ----------
    result
        What :func:`~equipoise.evaluation.missing.comparison.compare_missing` or
        :func:`~equipoise.evaluation.missing.comparison.simulate_missing` gave.
    path
        The file to write; it is whole or not there.
    source
        What the page calls the table.
    top
        How many groups and labels are listed, those that are moved most first.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import pyarrow as pa
    >>> from equipoise.counts import CountRequest
    >>> from equipoise.evaluation.missing.comparison import compare_missing
    >>> people = pa.table(
    ...     {"sex": ["m", "w", "m", "w", None] * 20, "y": ["1", "1", "0", "0", "0"] * 20}
    ... )
    >>> request = CountRequest(sensitive=("sex",), label="y")
    >>> found = compare_missing(people, request, methods=["drop", "group"])
    >>> page = pathlib.Path(tempfile.mkdtemp()) / "missing.html"
    >>> write_missing(found, page, source="people.csv")
    >>> "<h2>Groups that are moved most</h2>" in page.read_text("utf-8")
    True
    """
    data = summarize_missing(result, source=source, top=top)
    atomic.write_text(path, render_missing(data, draw_missing(data)))


def summarize_missing(
    result: Result, *, source: str | None = None, top: int = 50
) -> dict[str, Any]:
    """Gather all that the page says, as plain data, ready for JSON."""
    known = isinstance(result, MissingSimulation)
    what = f"{result.request.label} by {', '.join(result.request.sensitive)}"
    shown = result.groups_grid(top)
    return {
        "schema": SCHEMA,
        "title": f"{'Missing values taken away' if known else 'Missing values'}: {what}",
        "source": source or f"{result.table_rows:,} rows",
        "figures": _figures(result),
        "sentences": list(result.sentences),
        "methods": _table(result.methods_grid()),
        "meanings": [f"{name}: {METHODS[name].sentence}." for name in result.names],
        "columns": _columns(result),
        "chart": _chart(result),
        "groups": _table(shown),
        "left_out": len(result.groups) - len(shown.rows),
        "facts": _facts(result, source),
    }


def _table(grid: Grid) -> dict[str, Any]:
    return {
        "headers": list(grid.headers),
        "rows": [list(row) for row in grid.rows],
        "numbers": sorted(grid.numbers),
    }


def _figures(result: Result) -> list[list[str]]:
    groups = whole(len({entry.group for entry in result.groups}))
    shown = [[whole(result.n), "rows"]]
    if isinstance(result, MissingSimulation):
        errors = [simulated.mean_abs_error.mean for simulated in result.methods]
        return [
            *shown,
            [percent(result.taken / result.n), f"lose {result.column}"],
            [groups, "groups compared"],
            [f"{min(errors):.3f} – {max(errors):.3f}", "mean |error| of UB, by method"],
        ]
    most = max(result.methods, key=lambda treated: treated.largest_change)
    return [
        *shown,
        [percent(result.incomplete / result.n), "lack a value"],
        [groups, "groups compared"],
        [f"{most.largest_change:.3f}", f"largest change of UB ({most.method})"],
    ]


def _columns(result: Result) -> list[str]:
    if isinstance(result, MissingSimulation):
        return [*_ERRORS, _AWAY.format(otherwise="in truth")]
    changes = [text.format(baseline=result.baseline) for text in _CHANGES]
    return [*changes, _AWAY.format(otherwise=f"under {result.baseline}")]


def _chart(result: Result) -> dict[str, Any]:
    """The mean and the largest of each method, as the chart of two moments takes them."""
    if isinstance(result, MissingSimulation):
        title = "|error of UB|"
        found = [(s.method, s.mean_abs_error.mean, s.largest_error.mean) for s in result.methods]
    else:
        title = f"|change of UB| against {result.baseline}"
        others = [t for t in result.methods if t.method != result.baseline]
        found = [(t.method, t.mean_change, t.largest_change) for t in others]
    pairs = [
        {
            "name": name,
            "before": mean,
            "after": largest,
            "outside": False,
            "text": f"{mean:.3f}, at most {largest:.3f}",
            "about": f"{name}: {mean:.4f} on average, {largest:.3f} at most",
        }
        for name, mean, largest in found
    ]
    return {"title": title, "limit": None, "pairs": pairs}


def _facts(result: Result, source: str | None) -> list[list[str]]:
    told = result.to_dict()
    facts = [["table", source]] if source else []
    more: list[tuple[str, Sequence[str]]] = [
        ("sensitive attributes", result.request.sensitive),
        ("label", [result.request.label]),
        ("texts that mean a missing value", result.request.na),
        ("columns imputers looked at", result.looked_at),
        ("columns they did not look at", result.left_out),
    ]
    return [
        *facts,
        *result.reading.facts,
        *([name, ", ".join(texts)] for name, texts in more if texts),
        ["least rows of a group", whole(result.min_count)],
        ["seed", str(result.seed)],
        ["schema", told["schema"]],
        ["made by", f"equipoise {told['version']}"],
        ["time", result.time],
    ]


# ---------------------------------------------------------------------------------- page


def draw_missing(data: Mapping[str, Any]) -> dict[str, str]:
    """Draw the chart of a page: an HTML fragment, or why there is none."""
    from equipoise.reports import charts

    try:
        return {"chart": charts.to_html_fragment(charts.bias_chart(data["chart"]))}
    except MissingDependency as absent:
        return {"absent": f"<p>{escape(str(absent))}</p>"}


def render_missing(data: Mapping[str, Any], charts: Mapping[str, str] | None = None) -> str:
    """Write a page.

    Parameters
    ----------
    data
        From :func:`summarize_missing`.
    charts
        HTML fragments by name, from :func:`draw_missing`.
    """
    drawn = charts or {}
    left = data["left_out"]
    more = f'<p class="after">… and {left:,} more groups and labels.</p>' if left else ""
    sections = [
        Section("said", "What was found", bullets(data["sentences"]) + drawn.get("absent", "")),
        Section("methods", "Method by method", _methods(data, drawn)),
        Section("groups", "Groups that are moved most", html_table(data["groups"]) + more),
        Section("meanings", "What the methods do", bullets(data["meanings"])),
    ]
    return render_page(
        title=data["title"],
        source=data["source"],
        figures=data["figures"],
        sections=sections,
        facts=data["facts"],
    )


def chart_caption(data: Mapping[str, Any]) -> str:
    """What stands above the chart."""
    return f"{data['title']}: the mean (ring) and the largest (dot) of each method."


def _methods(data: Mapping[str, Any], charts: Mapping[str, str]) -> str:
    picture = ""
    if "chart" in charts:
        picture = figure(chart_caption(data["chart"]), charts["chart"])
    return picture + html_table(data["methods"]) + bullets(data["columns"])
