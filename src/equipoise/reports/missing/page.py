"""Ways to treat missing values as a page: how each moves Uniform Bias, or errs."""

from __future__ import annotations

import os
from collections.abc import Mapping
from html import escape
from typing import Any

from equipoise import atomic
from equipoise.errors import MissingDependency
from equipoise.reports.frame.html import Section, bullets, figure, html_table, render_page
from equipoise.reports.missing.data import MissingResult, chart_caption, summarize_missing


def write_missing(
    result: MissingResult, path: str | os.PathLike[str], *, source: str | None = None, top: int = 50
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


def draw_missing(data: Mapping[str, Any]) -> dict[str, str]:
    """Draw the chart of a page: an HTML fragment, or why there is none."""
    from equipoise.reports.charts.before_after import bias_chart
    from equipoise.reports.charts.vega import to_html_fragment

    try:
        return {"chart": to_html_fragment(bias_chart(data["chart"]))}
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


def _methods(data: Mapping[str, Any], charts: Mapping[str, str]) -> str:
    picture = ""
    if "chart" in charts:
        picture = figure(chart_caption(data["chart"]), charts["chart"])
    return picture + html_table(data["methods"]) + bullets(data["columns"])
