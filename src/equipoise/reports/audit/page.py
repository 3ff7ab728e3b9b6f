"""A form of an audit as a page."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from equipoise.reports.audit.charts import ratio_chart
from equipoise.reports.audit.data import summarize_audit
from equipoise.reports.bias import page as bias_page
from equipoise.reports.charts.vega import CaptionedChart
from equipoise.reports.frame.html import Part, Section, bullets, html_table, more, render_page

if TYPE_CHECKING:
    from equipoise.audits.audit import Audit


def render(result: Audit, *, source: str | None = None, top: int = 50) -> str:
    """The page of a form."""
    data = summarize_audit(result, source=source, top=top)
    charts = {name: _ratio_chart(chart) for name, chart in data["charts"].items() if chart["bars"]}
    drawn: dict[str, list[CaptionedChart]] = {name: [chart] for name, chart in charts.items()}
    if result.biases is not None:
        drawn["biases"] = bias_page.plot(result.biases)
    return render_page(
        title=data["title"],
        source=data["source"],
        figures=data["figures"],
        sections=[_section(part, drawn.get(part["id"], [])) for part in data["sections"]],
        facts=data["facts"],
    )


def plot(result: Audit) -> list[CaptionedChart]:
    """The impact ratios of every table, or the biases of forms about data."""
    if result.biases is not None:
        return bias_page.plot(result.biases)
    charts = summarize_audit(result)["charts"].values()
    return [_ratio_chart(chart) for chart in charts if chart["bars"]]


def _ratio_chart(chart: Mapping[str, Any]) -> CaptionedChart:
    caption = (
        f"{chart['title'][0].upper()}{chart['title'][1:]}. The dashed line is {chart['limit']}; diamonds are "
        "below it. On the right are the ratio and, in brackets, the selected rows of all rows."
    )
    if chart["small"]:
        caption += " Grey categories are small."
    if chart["left_out"]:
        caption += f" {chart['left_out']:,} categories with higher ratios are left out."
    return CaptionedChart(caption, ratio_chart, chart)


def _section(part: Mapping[str, Any], charts: list[CaptionedChart]) -> Section:
    content: list[Part] = [bullets(part["sentences"])] if part["sentences"] else []
    content += charts
    content += [html_table(table, more(table["left_out"])) for table in part["tables"]]
    return Section(part["id"], part["title"], content)
