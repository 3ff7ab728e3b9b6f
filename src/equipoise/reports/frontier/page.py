"""A frontier as a page: the least cost of each tolerance."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from equipoise.plain import Grid
from equipoise.reports.charts.vega import CaptionedChart
from equipoise.reports.frame.html import Section, bullets, html_table, paragraph, render_page
from equipoise.reports.frontier.charts import step_chart
from equipoise.reports.frontier.data import steps
from equipoise.reports.plan.page import asked_grid

if TYPE_CHECKING:
    from equipoise.plans.frontier import Frontier


def render(frontier: Frontier, *, source: str | None = None, **_: Any) -> str:
    """The page of a frontier."""
    found = any(math.isfinite(point.cost) for point in frontier.points)
    none = paragraph("No plan reaches any of the requested tolerances, so nothing is drawn.")
    return render_page(
        title="Frontier: least cost against tolerance",
        source=source or f"counts sha256:{frontier.fingerprint[:12]}",
        figures=_figures(frontier),
        sections=[
            Section("said", "Summary", [bullets(frontier.sentences)]),
            Section("charts", "Chart", plot(frontier) if found else [none]),
            Section("points", "All tolerances", [html_table(frontier.grid())]),
            Section("asked", "Request", [html_table(_asked(frontier))]),
        ],
        facts=_facts(frontier, source),
    )


def plot(frontier: Frontier) -> list[CaptionedChart]:
    """The least cost against the tolerance."""
    data = steps(frontier)
    return [CaptionedChart(_caption(data), step_chart, data)]


def _figures(frontier: Frontier) -> list[list[str]]:
    found = [p for p in frontier.points if math.isfinite(p.cost)]
    kind = "|UB|" if frontier.request.tolerance_on == "ub" else "difference of rates"
    figures = [[f"{frontier.now:.3f}", f"largest {kind} now"]]
    if found:
        tight = found[0]
        figures.append([f"{tight.cost:,.6g}", f"least cost at tolerance {tight.tolerance:.4g}"])
    figures += [
        [f"{b.tolerance:.4g}", f"tolerance for a budget of {b.budget:,g}"]
        for b in frontier.budgets
        if b.tolerance is not None
    ]
    return [*figures, [f"{len(frontier.points):,}", "tolerances examined"]]


def _asked(frontier: Frontier) -> Grid:
    # The request has no single tolerance, and only the frontier knows the reference it chose.
    grid = asked_grid(frontier.request)
    rows = [row for row in grid.rows if row[0] not in ("tolerance", "reference")]
    rows.insert(1, ("reference", f"{frontier.reference} label frequencies"))
    return Grid(grid.headers, tuple(rows))


def _facts(frontier: Frontier, source: str | None) -> list[list[str]]:
    sure = "the least possible" if frontier.exact else "the least found, each with a lower bound"
    return [
        *([["source", source]] if source else []),
        *frontier.reading.facts,
        ["costs are", sure],
        ["fingerprint of the counts", f"sha256:{frontier.fingerprint}"],
        ["made by", f"equipoise {frontier.version}"],
        ["time", frontier.time],
    ]


def _caption(data: Mapping[str, Any]) -> str:
    parts = [
        "Each dot is a requested tolerance.",
        "The thick line on its left ends at the bias that its plan leaves; the cost is the same there.",
        "Thin lines are upper bounds on the cost of other tolerances, from the plans found.",
    ]
    parts += ["Grey bars end at a lower bound on the cost of any plan."] * bool(data["bounds"])
    parts += ["Crosses are tolerances that no plan reaches."] * bool(data["none"])
    parts += ["Dashed lines are budgets, and rings what they pay for."] * bool(data["budgets"])
    return " ".join(parts)
