"""The chart of a frontier, as plain data."""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from equipoise.plans.frontier import Bought, Frontier, Point


def steps(frontier: Frontier) -> dict[str, Any]:
    """The cost against the tolerance: requested points, plans in between, budgets and gaps.

    >>> import equipoise as eq
    >>> counts = eq.Counts.from_mapping(
    ...     {("m", "hired"): 160, ("m", "not"): 290, ("w", "hired"): 40, ("w", "not"): 110},
    ...     sensitive=["sex"],
    ...     label="outcome",
    ... )
    >>> data = steps(eq.frontier(counts, tolerances=[0.05, 0.1], budget=5))
    >>> [(piece["high"], piece["cost"]) for piece in data["pieces"]]
    [(0.05, 19.0), (0.1, 8.0)]
    """
    found = [p for p in frontier.points if math.isfinite(p.cost)]
    tolerances = [p.tolerance for p in frontier.points]
    low, high = min(tolerances), max(tolerances)
    # On a linear axis the small tolerances, where the cost rises, would be pressed together.
    log = high > 20 * low
    left = low * 0.9 if log else min([low, *(p.reached for p in found)])
    top = max((p.cost for p in found), default=0.0)
    budgets = [_budget(b) for b in frontier.budgets]
    # A budget far above all costs would press the steps together; the sentences name it.
    near = [b["budget"] for b in budgets if b["budget"] <= 1.5 * top]
    return {
        "title": "tolerance: largest "
        + ("|UB|" if frontier.request.tolerance_on == "ub" else "difference of rates")
        + " left",
        "log": log,
        "x": [left, high * 1.03 if log else high + 0.03 * (high - left or high)],
        "y_max": 1.05 * max([top, *near, 1.0]),
        "pieces": [_piece(p, left) for p in found],
        "path": _path(found, left),
        "bounds": [_bound(p) for p in found if p.bound < p.cost - 1e-6 * max(p.cost, 1)],
        "none": [p.tolerance for p in frontier.points if not math.isfinite(p.cost)],
        "budgets": [b for b in budgets if b["budget"] in near],
    }


def _piece(point: Point, left: float) -> dict[str, Any]:
    about = (
        f"tolerance {point.tolerance:.4g}: cost {point.cost:,.6g}, {point.additions:,} rows added "
        f"and {point.deletions:,} deleted, reaches {point.reached:.4g}"
    )
    return {
        "low": max(min(point.reached, point.tolerance), left),
        "high": point.tolerance,
        "cost": point.cost,
        "about": about,
    }


def _path(found: list[Point], left: float) -> list[dict[str, float]]:
    """Upper bounds on the cost between the requested tolerances, from the plans found."""
    corners = []
    for point, after in itertools.pairwise(found):
        turn = max(min(after.reached, after.tolerance), point.tolerance, left)
        corners += [(point.tolerance, point.cost), (turn, point.cost), (turn, after.cost)]
    corners += [(p.tolerance, p.cost) for p in found[-1:]]
    return [{"i": i, "x": x, "cost": cost} for i, (x, cost) in enumerate(corners)]


def _bound(point: Point) -> dict[str, float]:
    return {"x": point.tolerance, "low": point.bound, "high": point.cost}


def _budget(bought: Bought) -> dict[str, Any]:
    text = f"budget {bought.budget:,g}"
    got = "buys nothing" if bought.tolerance is None else f"buys {bought.tolerance:.4g}"
    return {
        "budget": bought.budget,
        "tolerance": bought.tolerance,
        "cost": bought.cost,
        "text": f"{text} {got}",
    }
