"""A bias table as a page."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from equipoise.reports.bias.charts import heat_map, interval_chart
from equipoise.reports.bias.data import summarize
from equipoise.reports.charts.vega import CaptionedChart
from equipoise.reports.frame.html import Section, bullets, html_table, more, render_page

if TYPE_CHECKING:
    from equipoise.measures.table import BiasTable


def render(table: BiasTable, *, source: str | None = None, top: int = 50) -> str:
    """The page of a bias table."""
    summary = summarize(table.ordered, source=source, top=top)
    return render_page(
        title=summary["title"],
        source=summary["source"] or summary["heading"],
        figures=summary["figures"],
        sections=_sections(summary),
        facts=[*summary["facts"], *summary["provenance"]],
    )


def plot(table: BiasTable) -> list[CaptionedChart]:
    """The ranking of UB with intervals, and matrices of UB by pairs of attributes."""
    charts = _charts(summarize(table.worst() if table.view is None else table))
    # A picture may be all that its reader sees, so the worst groups come first.
    return sorted(charts, key=lambda chart: chart.draw is heat_map)


def _charts(summary: Mapping[str, Any]) -> list[CaptionedChart]:
    captions, data = summary["captions"], summary["charts"]
    charts = [
        CaptionedChart(captions[f"matrix-{i}"], heat_map, matrix)
        for i, matrix in enumerate(data["matrices"], start=1)
    ]
    if data["ranking"]["bars"]:
        charts.append(CaptionedChart(captions["ranking"], interval_chart, data["ranking"]))
    return charts


def _sections(summary: Mapping[str, Any]) -> list[Section]:
    said = {
        t["id"]: Section(t["id"], t["title"], [bullets(t["sentences"])]) for t in summary["topics"]
    }
    table, rule = summary["table"], said.pop("four-fifths", None)
    parts = [said.pop("overview"), Section("charts", "Charts", _charts(summary))]
    parts += [said.pop(name) for name in ("largest", "hidden", "measures") if name in said]
    after = f"{table['more']}." if table["more"] else ""
    parts.append(
        Section("table", "Numbers" if after else "All numbers", [html_table(table, after)])
    )
    if rule is not None:
        data = summary["four_fifths"]
        left_out = more(data["total"] - len(data["table"]["rows"]), "groups")
        content = [*rule.content, html_table(data["table"], left_out)]
        parts.append(Section(rule.id, rule.title, content))
    # The other topics are caveats; they belong below the numbers they are about.
    parts += said.values()
    if summary["hints"]:
        parts.append(Section("hints", "Hints", [bullets(summary["hints"])]))
    return parts
