"""A plan as a page: what it changes, and the certificate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from equipoise.lattice import format_value
from equipoise.measures.display import whole
from equipoise.plain import Grid, counted
from equipoise.plans.plan import SCENARIO, steps_grid
from equipoise.plans.targets import Targets
from equipoise.reports.charts.before_after import bias_chart
from equipoise.reports.charts.vega import CaptionedChart
from equipoise.reports.frame.html import (
    Section,
    bullets,
    folded,
    html_table,
    more,
    paragraph,
    render_page,
)
from equipoise.reports.plan.charts import change_chart
from equipoise.reports.plan.data import biases, changes

if TYPE_CHECKING:
    from equipoise.plans.plan import Plan
    from equipoise.plans.request import PlanRequest

_NAMES = {
    "tolerance_on": "tolerance on",
    "label_drift": "label drift",
    "cost_add": "cost of adding a row",
    "cost_delete": "cost of deleting a row",
    "at_least": "at least",
    "min_rows": "minimum rows after the plan",
    "max_rows": "maximum rows after the plan",
    "available": "maximum rows that can be added",
    "min_group": "minimum rows of a judged group",
    "constrain": "judged groups",
    "extra": "additional rows",
    "exact": "no bias is left at all",
    "plan_missing": "missing values count as values",
    "may_vanish": "a group may lose all its rows",
    "target": "targets K",
    "target_rates": "target rates",
    "target_shares": "target shares of groups",
    "at_least_each": "at least, for every group of",
    "group_shares": "shares of groups",
    "share_tolerance": "tolerance of shares",
    "time_limit": "time limit",
}
"""Names of options whose own name does not explain what they are."""

_UNFOLDED = 20
"""Maximum number of groups whose sentences are shown at once."""


def render(plan: Plan, *, source: str | None = None, top: int = 50) -> str:
    """The page of a plan.

    >>> import equipoise as eq
    >>> counts = eq.Counts.from_mapping(
    ...     {("<m>", "y"): 60, ("<m>", "n"): 40, ("w", "y"): 20, ("w", "n"): 80},
    ...     sensitive=["sex"],
    ...     label="l",
    ... )
    >>> page = render(eq.plan(counts))
    >>> "sex=&lt;m&gt;" in page, "<m>" in page
    (True, False)
    """
    counts = plan.counts
    cells = html_table(plan.grid(top), more(len(plan.moves[top:]), "cells"))
    sections = [
        Section("said", "Summary", [bullets(plan.explanation)]),
        Section("charts", "Charts", plot(plan)),
        Section("cells", "Cells that change", [cells if plan.moves else paragraph("None.")]),
        *_reasons(plan),
        _certificate(plan),
    ]
    if plan.steps:
        steps = html_table(steps_grid(plan.steps))
        sections.append(Section("budget", "How the budget is spent", [steps]))
    sections.append(Section("asked", "Request", [html_table(asked_grid(plan.request, plan))]))
    return render_page(
        title=f"Plan: {counts.label.name} by {', '.join(a.name for a in counts.sensitive)}",
        source=source or f"{whole(counts.n)} rows",
        figures=_figures(plan),
        sections=sections,
        facts=_facts(plan, source),
    )


def _reasons(plan: Plan) -> list[Section]:
    """A sentence for each group that changes; the summary has those of the largest changes only."""
    if set(plan.reasons) <= set(plan.explanation):
        return []
    said = bullets(plan.reasons)
    if len(plan.reasons) > _UNFOLDED:
        said = folded(f"All {len(plan.reasons):,} groups that change", said)
    return [Section("reasons", "Groups that change", [said])]


def plot(plan: Plan) -> list[CaptionedChart]:
    """The cells that change, and |UB| before and after."""
    return [*change_charts(changes(plan)), *bias_charts(biases(plan))]


def change_charts(data: Mapping[str, Any]) -> list[CaptionedChart]:
    """The chart of the cells that change, if there are any."""
    caption = (
        "The cells that change, those with the most changes first: rows that stay are grey, rows "
        "to delete red, rows to add blue."
    )
    if left := data["left_out"]:
        cells = f"{counted(left, 'cell')} with smaller changes"
        caption += f" {cells} {'is' if left == 1 else 'are'} not drawn."
    return [CaptionedChart(caption, change_chart, data)] if data["bars"] else []


def bias_charts(
    data: Mapping[str, Any], when: str = "now (ring) and after the plan (dot)"
) -> list[CaptionedChart]:
    """The chart of |UB| before and after, if there are groups to draw."""
    kind = data["title"].split(" for ")[0]
    held = " against the original label frequencies" if data["reference"] == "original" else ""
    parts = [f"{kind[0].upper()}{kind[1:]} of groups {when}{held}, the largest first."]
    if data["limit"] is not None:
        parts.append(
            f"The dashed line is the tolerance, {data['limit']:g}; dots beyond it are red."
        )
    if data["targets"]:
        parts.append("The request has targets K, so UB is not meant to be 0.")
    if data["least"] > 1:
        unless = "are not drawn" if data["limit"] is None else "are drawn only beyond the tolerance"
        parts.append(f"Groups of fewer than {data['least']} rows {unless}.")
    if left := data["left_out"]:
        parts.append(f"{counted(left, 'more line')} {'is' if left == 1 else 'are'} not drawn.")
    return [CaptionedChart(" ".join(parts), bias_chart, data)] if data["pairs"] else []


def _figures(plan: Plan) -> list[list[str]]:
    proof = plan.certificate
    against = " against original frequencies" if proof.reference == "original" else ""
    goal = "policy" if proof.policy else f"tolerance {proof.tolerance:g}"
    if proof.rounding_bound is not None:
        goal = "every target, up to rounding," if proof.targets else "zero bias, up to rounding,"
    goal = f"{goal}{against} reached" if proof.has_tolerance else "every limit holds"
    figures = [
        [whole(plan.additions), "rows to add"],
        [whole(plan.deletions), "rows to delete"],
        [f"{proof.max_abs_ub_before:.3f}", "largest |UB| now"],
        [_small(proof.max_abs_ub_after), "largest |UB| after"],
        ["yes" if plan.reached else "NO", goal],
    ]
    # At unit costs the cost is the number of rows, which is there already.
    if plan.cost != plan.additions + plan.deletions:
        figures.insert(2, [f"{plan.cost:,.6g}", "cost"])
    return figures


def _small(value: float) -> str:
    return f"{value:.3f}" if value >= 0.001 or not value else f"{value:.1g}"


def _certificate(plan: Plan) -> Section:
    grid = plan.certificate.grid()
    said = paragraph(
        "The plan was applied to the counts, and all groups were measured again in whole numbers, "
        "independently of how the plan was found. The certificate is about counts: it does not "
        "say whether such rows exist, or what a model learns from them."
    )
    wide = Grid(("what", "before", "after", "result"), grid.rows, grid.numbers)
    return Section("certificate", "Certificate", [said, html_table(wide)])


def _facts(plan: Plan, source: str | None) -> list[list[str]]:
    counts = plan.counts
    sure = f"{plan.bound:,.6g} (gap {plan.gap:.2%})" if plan.gap > 1e-9 else f"{plan.bound:,.6g}"
    return [
        *([["source", source]] if source else []),
        *counts.reading.facts,
        ["rows", whole(counts.n)],
        ["sensitive attributes", ", ".join(a.name for a in counts.sensitive)],
        ["label", counts.label.name],
        ["cost", f"{plan.cost:,.6g}"],
        ["no plan costs less than", sure if plan.reached and plan.bound else "–"],
        ["found by", _found(plan)],
        ["fingerprint of the counts", f"sha256:{counts.fingerprint}"],
        ["made by", f"equipoise {plan.version}"],
        ["time", plan.created],
    ]


def _found(plan: Plan) -> str:
    """How the plan was found, and why the search was stopped, if it was."""
    if plan.method == SCENARIO:
        return "hand, not optimised"
    if plan.stopped == "work":
        return f"{plan.method}, stopped at the limit of work"
    return plan.method + (", stopped at the time limit" if plan.timed_out else "")


# ----------------------------------------------------------------------------- request


def asked_grid(request: PlanRequest, plan: Plan | None = None) -> Grid:
    """The request in words; options at their default only if a reader needs to know them."""
    given = request.to_dict()
    given.pop("pool", None)  # a whole table of counts, named by its rows below
    zero = "zero bias, up to rounding"
    if plan is not None and not plan.certificate.has_tolerance:
        zero = "none"
    first: dict[str, Any] = {
        "tolerance": request.tolerance or zero,
        "tolerance_on": "|UB|" if request.tolerance_on == "ub" else "difference of rates",
        "reference": f"{plan.certificate.reference} label frequencies" if plan else None,
        "allow": {"add": "additions", "delete": "deletions", "both": "additions and deletions"}[
            request.allow
        ],
        "labels": request.labels,
    }
    if request.policy is not None:
        given["policy"] = "; ".join(rule.words for rule in request.policy.rules)
        first |= {"tolerance": None, "tolerance_on": None}
    told = {**{k: v for k, v in first.items() if v is not None}, **given, **first}
    if request.pool is not None:
        told["pool"] = f"{request.pool.n:,} rows"
    rows = tuple(
        (_NAMES.get(k, k), _worded(k, v)) for k, v in told.items() if v is not None and v != ""
    )
    return Grid(("option", "value"), rows)


def _worded(name: str, value: Any) -> str:
    if name == "target" and not isinstance(value, str):
        return _targets(Targets.of(value))
    if name in ("target_rates", "target_shares"):
        table = value["rates"] if name == "target_rates" else value["shares"]
        return f"{len(table):,} groups from {value['source'] or 'a table'}"
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
