"""A bias table as a page."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING, Any

from equipoise import atomic
from equipoise.errors import MissingDependency
from equipoise.reports.bias.data import summarize
from equipoise.reports.frame.html import Section, bullets, html_table, render_page

if TYPE_CHECKING:
    from equipoise.measures.table import BiasTable


def write_report(
    table: BiasTable,
    path: str | os.PathLike[str],
    *,
    source: str | None = None,
    top: int = 50,
) -> None:
    """Write the report of a table as a page; without the charts if they cannot be drawn.

    Parameters
    ----------
    table
        A measured table.
    path
        The file to write; it is whole or not there.
    source
        What was measured, as the reader knows it.
    top
        How many rows to show.
    """
    from equipoise.reports.bias.charts import draw

    summary = summarize(table, source=source, top=top)
    try:
        charts = draw(summary)
    except MissingDependency as absent:
        charts = {"absent": f"<p>{escape(str(absent))}</p>"}
    atomic.write_text(path, render_html(summary, charts))


def render_html(
    summary: Mapping[str, Any],
    charts: Mapping[str, str] | None = None,
    *,
    sections: Sequence[Section] = (),
) -> str:
    """Write a summary as a page.

    Parameters
    ----------
    summary
        From :func:`equipoise.reports.bias.data.summarize`.
    charts
        HTML fragments by name, from :func:`equipoise.reports.charts.draw`.
    sections
        Further sections, after those of the summary.

    Examples
    --------
    >>> from equipoise.counts import Counts
    >>> from equipoise.measures.table import bias_table
    >>> counts = Counts.from_mapping(
    ...     {("<b>", "hired"): 160, ("<b>", "not"): 290}, sensitive=["sex"], label="outcome"
    ... )
    >>> page = render_html(summarize(bias_table(counts)))
    >>> "&lt;b&gt;" in page, "<b>" in page
    (True, False)
    """
    return render_page(
        title=summary["title"],
        source=summary["source"] or summary["heading"],
        figures=summary["figures"],
        sections=[*_sections(summary, charts or {}), *sections],
        facts=[*summary["facts"], *summary["provenance"]],
    )


def _sections(summary: Mapping[str, Any], charts: Mapping[str, str]) -> list[Section]:
    said = {
        t["id"]: Section(t["id"], t["title"], bullets(t["sentences"])) for t in summary["topics"]
    }
    rule = said.pop("four-fifths", None)
    parts = [said.pop("overview"), _pictures(summary, charts)]
    parts += [said.pop(name) for name in ("largest", "hidden", "measures") if name in said]
    parts.append(_table(summary))
    if rule is not None:
        parts.append(_four_fifths(summary["four_fifths"], rule))
    parts += said.values()
    if summary["hints"]:
        parts.append(Section("hints", "Hints", bullets(summary["hints"])))
    return parts


def _pictures(summary: Mapping[str, Any], charts: Mapping[str, str]) -> Section:
    captions = summary["captions"]
    drawn = [
        f"<figure><figcaption>{escape(captions.get(name, ''))}</figcaption>{fragment}</figure>"
        for name, fragment in charts.items()
    ]
    absent = (
        "<p>This page was made without charts; install them with: "
        "<code>pip install 'equipoise[charts]'</code></p>"
    )
    return Section("charts", "The picture", "".join(drawn) or absent)


def _table(summary: Mapping[str, Any]) -> Section:
    table = summary["table"]
    more = table["more"]
    after = f'<p class="after">{escape(more)}.</p>' if more else ""
    content = html_table(table, marked=table["ub"], sides=table["sides"])
    return Section("table", "All numbers" if not more else "The numbers", content + after)


def _four_fifths(rule: Mapping[str, Any], said: Section) -> Section:
    more = rule["total"] - len(rule["table"]["rows"])
    after = f'<p class="after">… and {more:,} more groups.</p>' if more else ""
    return Section(said.id, said.title, said.content + html_table(rule["table"]) + after)
