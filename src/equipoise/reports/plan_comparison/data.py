"""The charts of a comparison of plans, as plain data: rows by plan, and UB of groups by plan."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from equipoise.lattice import Group, format_value
from equipoise.measures.display import number
from equipoise.plans.comparison import NOW

if TYPE_CHECKING:
    from equipoise.plans.comparison import PlanComparison
    from equipoise.plans.planned_biases import PlannedBias

LINES = 24
"""Maximum number of groups in the chart."""


def moved_rows(both: PlanComparison) -> dict[str, Any]:
    """The rows that each plan adds and deletes."""
    bars = []
    for name, plan in zip(both.names, both.plans, strict=True):
        text = f"+ {plan.additions:,} − {plan.deletions:,}, cost {plan.cost:,.6g}"
        moved = {"add": plan.additions, "delete": plan.deletions}
        bars.append({"name": name, **moved, "text": text, "about": f"{name}: {text}"})
    return {"bars": bars}


def group_lines(both: PlanComparison) -> dict[str, Any]:
    """The groups and labels with the largest |UB|, now and after each plan.

    >>> import equipoise as eq
    >>> counts = eq.Counts.from_mapping(
    ...     {("m", "hired"): 160, ("m", "not"): 290, ("w", "hired"): 40, ("w", "not"): 110},
    ...     sensitive=["sex"],
    ...     label="outcome",
    ... )
    >>> drawn = eq.scenario(counts, add={"sex=w, outcome=hired": 10})
    >>> data = group_lines(eq.compare({"drawn": drawn}))
    >>> data["title"], [(p["name"], p["table"], round(p["ub"], 3)) for p in data["points"]]
    ('UB for outcome=hired', [('sex=w', 'now', 0.2), ('sex=w', 'drawn', 0.092), ('sex=m', 'now', -0.067), ('sex=m', 'drawn', -0.033)])
    """
    told = both.biases.told
    rows = sorted(both.biases.telling(), key=lambda row: -_largest(row))
    rows = [row for row in rows if _numbers(row)]
    shown = rows[:LINES]
    label = both.counts.label
    what = label.name if told is None else str(Group({label.name: told}))
    lines, points = [], []
    for row in shown:
        name = str(row.group) if told is not None else f"{row.group} → {format_value(row.label)}"
        known = _numbers(row)
        text = " · ".join(number(ub, 2) for ub in (row.before, *row.after))
        lines.append({"name": name, "low": min(known), "high": max(known), "text": text})
        for table, ub in zip((NOW, *both.names), (row.before, *row.after), strict=True):
            if math.isfinite(ub):
                about = f"{name}: UB {number(ub)}, {table}"
                points.append({"name": name, "table": table, "ub": ub, "about": about})
    return {
        "title": f"UB for {what}",
        "names": list(both.names),
        "lines": lines,
        "points": points,
        "left_out": len(rows) - len(shown),
    }


def _numbers(row: PlannedBias) -> list[float]:
    return [ub for ub in (row.before, *row.after) if math.isfinite(ub)]


def _largest(row: PlannedBias) -> float:
    return max(map(abs, _numbers(row)), default=0.0)
