"""Zero bias under limits: label frequencies, the exact plan at these, and its rounding."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from equipoise.plans.solvers.box import allowed_box
from equipoise.plans.solvers.labels import LabelChoice, cheapest_labels, searched_labels
from equipoise.plans.solvers.rounding import rounded, rounding_cost
from equipoise.plans.solvers.sizes import Exact, exact_plan, stands_alone

if TYPE_CHECKING:
    from equipoise.plans.cells import Real, Whole
    from equipoise.plans.problem import Problem

SHORT = 1e4
"""Cost of a row that a limit lacks, in a search for label frequencies."""


@dataclass(frozen=True, eq=False)
class Zero:
    """A plan for zero bias up to rounding, or None, with a lower bound of the cost of any such plan."""

    rows: Whole | None
    bound: float
    base: Real
    exact: Exact | None = None
    chosen: LabelChoice | None = None
    alone: bool = True  # whether each group was planned on its own


def solve_zero(problem: Problem, effort: float = 1.0) -> Zero:
    """Find the plan for zero bias: the exact plan under all limits, rounded as the request says."""
    base, chosen = problem.base, None
    if problem.request.labels == "free":
        chosen = _chosen(problem, effort)
        base = chosen.rates
    proved = chosen is None or chosen.proved
    alone = stands_alone(problem)
    exact = exact_plan(problem, base)
    if exact is None:
        return Zero(None, math.inf if proved else 0.0, base, chosen=chosen, alone=alone)
    rows = rounded(problem, base, exact)
    if rows is None:
        return Zero(None, math.inf if proved else 0.0, base, exact, chosen, alone)
    bound = rounding_cost(problem, base, exact) if proved else 0.0
    return Zero(rows, bound, base, exact, chosen, alone)


def _chosen(problem: Problem, effort: float) -> LabelChoice:
    """The label frequencies at which zero bias is cheapest under the limits of a problem."""
    box = allowed_box(problem, problem.base)
    start = problem.base
    if problem.judged.any():
        alone = cheapest_labels(problem, start, box)
        if stands_alone(problem):
            return alone
        start = alone.rates

    def cost(rates: Real) -> float:
        exact = exact_plan(problem, rates, tied=True)
        return math.inf if exact is None else exact.cost + SHORT * exact.short

    return searched_labels(cost, [start, box.clip(problem.base)], box, effort)
