"""A frontier as a page: the least cost of each tolerance."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from equipoise import atomic
from equipoise.plain import Grid
from equipoise.reports.frame.html import Section, bullets, html_table, render_page
from equipoise.reports.frontier import data as frontier_data
from equipoise.reports.plan.page import asked_grid, drawn_figure

if TYPE_CHECKING:
    from equipoise.plans.frontier import Frontier


def write_frontier(
    frontier: Frontier, path: str | os.PathLike[str], *, source: str | None = None
) -> None:
    """Write a frontier as a page; without the chart if it cannot be drawn.

    Parameters
    ----------
    frontier
        The frontier.
    path
        The file to write; it is whole or not there.
    source
        What it is of, as the reader knows it.
    """
    from equipoise.reports.frontier.charts import step_chart

    data = frontier_data.steps(frontier)
    chart = drawn_figure(steps_caption(data), step_chart, data) if data["pieces"] else ""
    atomic.write_text(path, render_frontier(frontier, chart, source=source))


def render_frontier(frontier: Frontier, chart: str = "", *, source: str | None = None) -> str:
    """Write a frontier as a page.

    Parameters
    ----------
    frontier
        The frontier.
    chart
        A figure in HTML.
    source
        What it is of.

    Examples
    --------
    >>> import equipoise as eq
    >>> counts = eq.Counts.from_mapping(
    ...     {("m", "y"): 60, ("m", "n"): 40, ("w", "y"): 20, ("w", "n"): 80},
    ...     sensitive=["sex"],
    ...     label="l",
    ... )
    >>> page = render_frontier(eq.frontier(counts, tolerances=[0.1]))
    >>> "<h1>Frontier: least cost against tolerance</h1>" in page
    True
    """
    picture = chart or "<p>No tolerance that was asked for has a plan, so nothing is drawn.</p>"
    return render_page(
        title="Frontier: least cost against tolerance",
        source=source or f"counts sha256:{frontier.fingerprint[:12]}",
        figures=_frontier_figures(frontier),
        sections=[
            Section("said", "What the frontier says", bullets(frontier.sentences)),
            Section("charts", "The picture", picture),
            Section("points", "Every tolerance", html_table(frontier.grid())),
            Section("asked", "What was asked", html_table(_frontier_asked(frontier))),
        ],
        facts=_frontier_facts(frontier, source),
    )


def _frontier_figures(frontier: Frontier) -> list[list[str]]:
    found = [p for p in frontier.points if math.isfinite(p.cost)]
    kind = "|UB|" if frontier.request.tolerance_on == "ub" else "difference of rates"
    figures = [[f"{frontier.now:.3f}", f"largest {kind} now"]]
    if found:
        tight = found[0]
        figures.append([f"{tight.cost:,.6g}", f"least cost of {tight.tolerance:.4g}"])
    figures += [
        [f"{b.tolerance:.4g}", f"bought by {b.budget:,g}"]
        for b in frontier.budgets
        if b.tolerance is not None
    ]
    return [*figures, [f"{len(frontier.points):,}", "tolerances looked at"]]


def _frontier_asked(frontier: Frontier) -> Grid:
    grid = asked_grid(frontier.request)
    rows = [row for row in grid.rows if row[0] not in ("tolerance", "reference")]
    rows.insert(1, ("reference", f"{frontier.reference} label frequencies"))
    return Grid(grid.headers, tuple(rows))


def _frontier_facts(frontier: Frontier, source: str | None) -> list[list[str]]:
    facts = [["source", source]] if source else []
    sure = "the least there are" if frontier.exact else "the least found, each with its bound"
    return [
        *facts,
        *frontier.reading.facts,
        ["costs are", sure],
        ["fingerprint of the counts", f"sha256:{frontier.fingerprint}"],
        ["made by", f"equipoise {frontier.version}"],
        ["time", frontier.time],
    ]


def steps_caption(data: Mapping[str, Any]) -> str:
    """Say what the chart of the least costs shows."""
    parts = [
        "Each dot is a tolerance that was asked for.",
        "The thick line to its left ends where its plan arrives: in between the cost is the same.",
        "Thin lines are what the plans found cost at other tolerances, at most.",
    ]
    parts += ["Grey bars reach down to what no plan is below."] * bool(data["bounds"])
    parts += ["Crosses are tolerances no plan reaches."] * bool(data["none"])
    parts += ["Dashed lines are budgets, rings what they buy."] * bool(data["budgets"])
    return " ".join(parts)
