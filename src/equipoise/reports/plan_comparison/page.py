"""Plans side by side as a page: their totals, UB of every group, and the cells they change."""

from __future__ import annotations

from typing import TYPE_CHECKING

from equipoise.measures.display import whole
from equipoise.plain import counted
from equipoise.reports.charts.vega import CaptionedChart
from equipoise.reports.frame.html import Section, bullets, html_table, more, paragraph, render_page
from equipoise.reports.plan_comparison.charts import group_chart, row_chart
from equipoise.reports.plan_comparison.data import group_lines, moved_rows

if TYPE_CHECKING:
    from equipoise.plans.comparison import PlanComparison


def render(both: PlanComparison, *, source: str | None = None, top: int = 50) -> str:
    """The page of a comparison.

    >>> import equipoise as eq
    >>> counts = eq.Counts.from_mapping(
    ...     {("<m>", "y"): 60, ("<m>", "n"): 40, ("w", "y"): 20, ("w", "n"): 80},
    ...     sensitive=["sex"],
    ...     label="l",
    ... )
    >>> page = render(eq.compare({"<b>": eq.scenario(counts, add={"sex=w, l=y": 5})}))
    >>> "sex=&lt;m&gt;" in page, "&lt;b&gt;" in page, "<m>" in page, "<b>" in page
    (True, True, False, False)
    """
    counts = both.counts
    groups = html_table(both.grid(top), more(max(len(both.biases) - top, 0), "groups"))
    cells = html_table(both.changes(top), more(len(both.cells[top:]), "cells"))
    return render_page(
        title=f"{counted(len(both.plans), 'plan')} side by side: {counts.label.name} by "
        f"{', '.join(a.name for a in counts.sensitive)}",
        source=source or f"{whole(counts.n)} rows",
        figures=_figures(both),
        sections=[
            Section("said", "Summary", [bullets(both.sentences)]),
            Section("totals", "The plans", [html_table(both.totals())]),
            Section("charts", "Charts", plot(both)),
            Section("groups", "UB of every group", [paragraph(_measured(both)), groups]),
            Section("cells", "Cells that change", [cells if both.cells else paragraph("None.")]),
        ],
        facts=_facts(both, source),
    )


def plot(both: PlanComparison) -> list[CaptionedChart]:
    """UB of groups now and after each plan, and the rows that each plan moves."""
    groups, rows = group_lines(both), moved_rows(both)
    caption = (
        "UB of groups now (ring) and after each plan, the largest |UB| first; the numbers on the "
        "right are in the order of the legend. The dashed line is UB 0."
    )
    if left := groups["left_out"]:
        caption += f" {counted(left, 'more line')} {'is' if left == 1 else 'are'} not drawn."
    charts = [CaptionedChart(caption, group_chart, groups)] if groups["lines"] else []
    if any(bar["add"] or bar["delete"] for bar in rows["bars"]):
        moved = "Rows that each plan adds (blue) and deletes (red), and what it costs."
        charts.append(CaptionedChart(moved, row_chart, rows))
    return charts


def _figures(both: PlanComparison) -> list[list[str]]:
    proofs = [plan.certificate for plan in both.plans]
    least = min(range(len(proofs)), key=lambda i: proofs[i].max_abs_ub_after)
    return [
        [whole(len(proofs)), "plans"],
        [f"{proofs[0].max_abs_ub_before:.3f}", "largest |UB| now"],
        [f"{proofs[least].max_abs_ub_after:.3f}", f"largest |UB| after {both.names[least]}"],
        [whole(len(both.cells)), "cells that some plan changes"],
    ]


def _measured(both: PlanComparison) -> str:
    label, told = both.counts.label.name, both.biases.told
    mirrored = (
        "" if told is None else f" Only one label of {label} is shown, as the other mirrors it."
    )
    return (
        "Each UB is measured against the label frequencies of its own table; the largest "
        f"differences come first.{mirrored}"
    )


def _facts(both: PlanComparison, source: str | None) -> list[list[str]]:
    counts = both.counts
    made = [
        [name, f"{plan.method}, made {plan.created} by equipoise {plan.version}"]
        for name, plan in zip(both.names, both.plans, strict=True)
    ]
    return [
        *([["source", source]] if source else []),
        *counts.reading.facts,
        ["rows", whole(counts.n)],
        ["sensitive attributes", ", ".join(a.name for a in counts.sensitive)],
        ["label", counts.label.name],
        *made,
        ["fingerprint of the counts", f"sha256:{counts.fingerprint}"],
        ["made by", f"equipoise {both.version}"],
        ["time", both.time],
    ]
