"""Methods to treat missing values as a page: how each changes Uniform Bias, or how it errs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from equipoise.reports.charts.before_after import bias_chart
from equipoise.reports.charts.vega import CaptionedChart
from equipoise.reports.frame.html import Part, Section, bullets, html_table, more, render_page
from equipoise.reports.missing.data import chart_data, summarize_missing

if TYPE_CHECKING:
    from equipoise.reports.missing.data import MissingResult


def render(result: MissingResult, *, source: str | None = None, top: int = 50) -> str:
    """The page of a comparison or a simulation of missing values."""
    data = summarize_missing(result, source=source, top=top)
    methods: list[Part] = [*plot(result), html_table(data["methods"]), bullets(data["columns"])]
    groups = html_table(data["groups"], more(data["left_out"], "groups and labels"))
    return render_page(
        title=data["title"],
        source=data["source"],
        figures=data["figures"],
        sections=[
            Section("said", "Summary", [bullets(data["sentences"])]),
            Section("methods", "Comparison of the methods", methods),
            Section("groups", "Groups that change most", [groups]),
            Section("meanings", "What each method does", [bullets(data["meanings"])]),
        ],
        facts=data["facts"],
    )


def plot(result: MissingResult) -> list[CaptionedChart]:
    """How much each method changes UB: the mean and the largest change."""
    data = chart_data(result)
    caption = f"{data['title']}: the mean (ring) and the largest value (dot) of each method."
    return [CaptionedChart(caption, bias_chart, data)] if data["pairs"] else []
