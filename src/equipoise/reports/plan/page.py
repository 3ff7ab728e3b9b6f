"""Plans and frontiers as pages: what they say, what they change, and the proof."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING, Any

from equipoise import atomic
from equipoise.counts import Counts
from equipoise.errors import MissingDependency
from equipoise.lattice import format_value
from equipoise.measures.display import whole
from equipoise.plain import Grid, counted
from equipoise.plans.plan import steps_grid
from equipoise.plans.targets import Targets
from equipoise.reports.frame.html import Section, bullets, figure, html_table, render_page
from equipoise.reports.plan import data as plan_data

if TYPE_CHECKING:
    from equipoise.plans.plan import Plan
    from equipoise.plans.request import PlanRequest

NAMES = {
    "tolerance_on": "tolerance on",
    "label_drift": "label drift",
    "cost_add": "cost of adding a row",
    "cost_delete": "cost of deleting a row",
    "at_least": "at least",
    "min_rows": "rows after, at least",
    "max_rows": "rows after, at most",
    "available": "rows that can be added, at most",
    "min_group": "groups that count have rows, at least",
    "constrain": "groups that count",
    "extra": "rows beyond the least",
    "plan_missing": "missing values are values",
    "may_vanish": "a group may lose all its rows",
    "target": "targets K",
    "time_limit": "time limit",
}
"""What options of a request are called on a page, where their own name says too little."""


def write_plan(
    plan: Plan, path: str | os.PathLike[str], *, source: str | None = None, top: int = 50
) -> None:
    """Write a plan as a page; without the charts if they cannot be drawn.

    Parameters
    ----------
    plan
        The plan.
    path
        The file to write; it is whole or not there.
    source
        What it was made for, as the reader knows it.
    top
        How many of the cells that change are listed.
    """
    from equipoise.reports.charts.before_after import bias_chart
    from equipoise.reports.plan.charts import change_chart

    drawn = {}
    if plan.moves:
        drawn["changes"] = _drawn(change_chart, plan_data.changes(plan))
    biases = plan_data.biases(plan)
    if biases["pairs"]:
        drawn["biases"] = _drawn(bias_chart, biases)
    atomic.write_text(path, render_plan(plan, drawn, source=source, top=top))


def _drawn(chart: Callable[[Mapping[str, Any]], dict[str, Any]], data: Mapping[str, Any]) -> str:
    return drawn_figure(caption_of(data), chart, data)


def drawn_figure(
    caption: str, chart: Callable[[Mapping[str, Any]], dict[str, Any]], data: Mapping[str, Any]
) -> str:
    """A figure: its caption and its chart, or why there is none."""
    from equipoise.reports.charts.vega import to_html_fragment

    try:
        picture = to_html_fragment(chart(data))
    except MissingDependency as absent:
        picture = f"<p>{escape(str(absent))}</p>"
    return figure(caption, picture)


def caption_of(data: Mapping[str, Any]) -> str:
    """What stands above a chart of a plan or a frontier."""
    return _CAPTIONS[data["kind"]](data)


def render_plan(
    plan: Plan,
    charts: Mapping[str, str] | None = None,
    *,
    source: str | None = None,
    top: int = 50,
) -> str:
    """Write a plan as a page.

    Parameters
    ----------
    plan
        The plan.
    charts
        Figures in HTML, by name.
    source
        What it was made for.
    top
        How many of the cells that change are listed.

    Examples
    --------
    >>> import equipoise as eq
    >>> counts = eq.Counts.from_mapping(
    ...     {("<m>", "y"): 60, ("<m>", "n"): 40, ("w", "y"): 20, ("w", "n"): 80},
    ...     sensitive=["sex"],
    ...     label="l",
    ... )
    >>> page = render_plan(eq.plan(counts))
    >>> "sex=&lt;m&gt;" in page, "<m>" in page
    (True, False)
    """
    counts = plan.counts
    pictures = "".join((charts or {}).values())
    sections = [Section("said", "What the plan says", bullets(plan.explanation))]
    sections += [Section("charts", "The picture", pictures)] if pictures else []
    sections += [_cells(plan, top), _certificate(plan)]
    if plan.steps:
        sections.append(
            Section("budget", "The budget, in order", html_table(steps_grid(plan.steps)))
        )
    sections.append(Section("asked", "What was asked", html_table(asked_grid(plan.request, plan))))
    return render_page(
        title=f"Plan: {counts.label.name} by {', '.join(a.name for a in counts.sensitive)}",
        source=source or f"{whole(counts.n)} rows",
        figures=_plan_figures(plan),
        sections=sections,
        facts=_plan_facts(plan, source),
    )


def _plan_figures(plan: Plan) -> list[list[str]]:
    proof = plan.certificate
    against = " against original frequencies" if proof.reference == "original" else ""
    goal = f"tolerance {proof.tolerance:g}"
    if proof.rounding_bound is not None:
        goal = "every target, up to rounding," if proof.targets else "zero bias, up to rounding,"
    figures = [
        [whole(plan.additions), "rows to add"],
        [whole(plan.deletions), "rows to delete"],
        [f"{proof.max_abs_ub_before:.3f}", "largest |UB| now"],
        [_small(proof.max_abs_ub_after), "largest |UB| after"],
        ["yes" if plan.reached else "NO", f"{goal}{against} reached"],
    ]
    if plan.cost != plan.additions + plan.deletions:
        figures.insert(2, [f"{plan.cost:,.6g}", "cost"])
    return figures


def _small(value: float) -> str:
    return f"{value:.3f}" if value >= 0.001 or not value else f"{value:.1g}"


def _cells(plan: Plan, top: int) -> Section:
    if not plan.moves:
        return Section("cells", "The cells that change", "<p>None.</p>")
    left = len(plan.moves) - len(plan.moves[:top])
    after = f'<p class="after">… and {left:,} more cells.</p>' if left else ""
    return Section("cells", "The cells that change", html_table(plan.grid(top)) + after)


def _certificate(plan: Plan) -> Section:
    grid = plan.certificate.grid()
    said = (
        "<p>The plan applied to the counts, and all groups measured again in whole numbers, "
        "apart from how the plan was found. It is about counts: it does not say whether the "
        "rows exist, nor what a model makes of them.</p>"
    )
    wide = Grid(("what", "before", "after", "result"), grid.rows, grid.numbers)
    return Section("certificate", "Certificate", said + html_table(wide))


def _plan_facts(plan: Plan, source: str | None) -> list[list[str]]:
    sure = f"{plan.bound:,.6g} (gap {plan.gap:.2%})" if plan.gap > 1e-9 else f"{plan.bound:,.6g}"
    return [
        *_counted(plan.counts, source),
        ["cost", f"{plan.cost:,.6g}"],
        ["no plan costs less than", sure if plan.reached and plan.bound else "–"],
        ["found by", plan.method + _ended(plan)],
        ["fingerprint of the counts", f"sha256:{plan.counts.fingerprint}"],
        ["made by", f"equipoise {plan.version}"],
        ["time", plan.created],
    ]


def _ended(plan: Plan) -> str:
    """What ended the search for the cheapest plan, if something did."""
    if plan.stopped == "work":
        return ", until its limit of work"
    return ", time ran out" if plan.timed_out else ""


def _counted(counts: Counts, source: str | None) -> list[list[str]]:
    facts = [["source", source]] if source else []
    return [
        *facts,
        *counts.reading.facts,
        ["rows", whole(counts.n)],
        ["sensitive attributes", ", ".join(a.name for a in counts.sensitive)],
        ["label", counts.label.name],
    ]


# ----------------------------------------------------------------------------- request


def asked_grid(request: PlanRequest, plan: Plan | None = None) -> Grid:
    """Everything that was asked for, in words; what was left as it is only where it matters."""
    given = request.to_dict()
    given.pop("pool", None)
    first: dict[str, Any] = {
        "tolerance": "zero bias, up to rounding" if not request.tolerance else request.tolerance,
        "tolerance_on": "|UB|" if request.tolerance_on == "ub" else "difference of rates",
        "reference": f"{plan.certificate.reference} label frequencies" if plan else None,
        "allow": {"add": "additions", "delete": "deletions", "both": "additions and deletions"}[
            request.allow
        ],
        "labels": request.labels,
    }
    told = {**{k: v for k, v in first.items() if v is not None}, **given, **first}
    if request.pool is not None:
        told["pool"] = f"{request.pool.n:,} rows"
    rows = tuple(
        (NAMES.get(k, k), _worded(k, v)) for k, v in told.items() if v is not None and v != ""
    )
    return Grid(("what", "asked"), rows)


def _worded(name: str, value: Any) -> str:
    if name == "target" and not isinstance(value, str):
        return _targets(Targets.of(value))
    if name == "labels" and not isinstance(value, str):
        return ", ".join(f"{format_value(v)} {share:g}" for v, share in value)
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, Sequence) and not isinstance(value, str):
        return "; ".join(f"{v[0]}: {v[1]:,g}" if isinstance(v, list) else str(v) for v in value)
    return f"{value:,g}" if isinstance(value, (int, float)) else str(value)


def _targets(targets: Targets) -> str:
    kept = targets.keep_rates_of
    parts = [f"keep rates of: {', '.join(kept)}"] if kept else []
    for target in targets.targets:
        inside = ", each group inside" if target.inside else ""
        ratios = ", ".join(f"{format_value(label)} {k:g}" for label, k in target.k)
        parts.append(f"{target.group}{inside}: {ratios}")
    return "; ".join(parts)


# ---------------------------------------------------------------------------- captions


def changes_caption(data: Mapping[str, Any]) -> str:
    """Say what the chart of the cells that change shows."""
    said = (
        "The cells that change, those with the most changes first: rows that stay are grey, rows "
        "to delete red, rows to add blue."
    )
    left = data["left_out"]
    more = f" {counted(left, 'cell')} with smaller changes {'are' if left > 1 else 'is'} not drawn."
    return said + more * bool(left)


def biases_caption(
    data: Mapping[str, Any], when: str = "now (ring) and after the plan (dot)"
) -> str:
    """Say what the chart of biases before and after shows."""
    kind = data["title"].split(" for ")[0]
    what = f"{kind[0].upper()}{kind[1:]} of groups {when}"
    held = " against the original label frequencies" if data["reference"] == "original" else ""
    parts = [f"{what}{held}, the largest first."]
    if data["limit"] is not None:
        parts.append(
            f"The dashed line is the tolerance, {data['limit']:g}; dots beyond it are red."
        )
    if data["targets"]:
        parts.append("Targets K were asked for, so it is not meant to be 0.")
    if data["least"] > 1:
        unless = "are not drawn" if data["limit"] is None else "are drawn only beyond the tolerance"
        parts.append(f"Groups of fewer than {data['least']} rows {unless}.")
    if data["left_out"]:
        parts.append(f"{counted(data['left_out'], 'line')} more are not drawn.")
    return " ".join(parts)


_CAPTIONS: dict[str, Callable[[Mapping[str, Any]], str]] = {
    "changes": changes_caption,
    "biases": biases_caption,
}
