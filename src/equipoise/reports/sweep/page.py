"""A sweep as a page: the cheapest plan at each value of an option."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from equipoise.plans.sweeps import WORDS
from equipoise.reports.charts.vega import CaptionedChart
from equipoise.reports.frame.html import Section, bullets, html_table, paragraph, render_page
from equipoise.reports.plan.page import asked_grid
from equipoise.reports.sweep.charts import sweep_chart
from equipoise.reports.sweep.data import curve

if TYPE_CHECKING:
    from equipoise.plans.sweeps import Sweep


def render(sweep: Sweep, *, source: str | None = None, **_: Any) -> str:
    """The page of a sweep."""
    found = any(point.found for point in sweep.points)
    none = paragraph("There is no plan at any of the values, so nothing is drawn.")
    sure = "the least possible" if sweep.exact else "the least found, each with a lower bound"
    return render_page(
        title=f"Frontier: plans by {sweep.sweep}",
        source=source or f"counts sha256:{sweep.fingerprint[:12]}",
        figures=_figures(sweep),
        sections=[
            Section("said", "Summary", [bullets(sweep.sentences)]),
            Section("charts", "Chart", plot(sweep) if found else [none]),
            Section("points", "All values", [html_table(sweep.grid())]),
            Section("asked", "Request", [html_table(asked_grid(sweep.request))]),
        ],
        facts=[
            *([["source", source]] if source else []),
            *sweep.reading.facts,
            *([["costs are", sure]] if sweep.sweep != "budget" else []),
            ["fingerprint of the counts", f"sha256:{sweep.fingerprint}"],
            ["made by", f"equipoise {sweep.version}"],
            ["time", sweep.time],
        ],
    )


def plot(sweep: Sweep) -> list[CaptionedChart]:
    """The cost, or the bias, against what varies."""
    data = curve(sweep)
    return [CaptionedChart(_caption(data), sweep_chart, data)]


def _figures(sweep: Sweep) -> list[list[str]]:
    found = [point for point in sweep.points if point.found]
    ends = {point.value: point for point in (found[:1] + found[-1:])}
    shown = [
        [f"{point.cost:,.6g}", f"cost at {sweep.sweep} {point.value:,g}"] for point in ends.values()
    ]
    return [*shown, [f"{len(sweep.points):,}", f"values of the {WORDS[sweep.sweep]}"]]


def _caption(data: Mapping[str, Any]) -> str:
    parts = ["Each dot is the plan found for one value."]
    if any(point["dominated"] for point in data["points"]):
        parts.append("Grey rings are plans that another one equals or beats in both respects.")
    parts += ["Grey bars end at a lower bound on the cost of any plan."] * bool(data["bounds"])
    if data["none"]:
        parts.append(f"There is no plan at {', '.join(f'{v:g}' for v in data['none'])}.")
    return " ".join(parts)
