"""Zero bias under limits: label frequencies, the exact plan at these, and its rounding."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from equipoise.plans.clock import end_after
from equipoise.plans.solvers.box import allowed_box
from equipoise.plans.solvers.labels import LabelChoice, cheapest_labels, searched_labels
from equipoise.plans.solvers.program import Undecided
from equipoise.plans.solvers.rounding import rounded, rounding_cost
from equipoise.plans.solvers.sizes import Exact, exact_plan, stands_alone

if TYPE_CHECKING:
    from equipoise.plans.cells import Real, Whole
    from equipoise.plans.problem import Problem

SHORT = 1e4
"""Cost of a row that a limit lacks, in a search for label frequencies."""


CROWDED = 1_000_000
"""Number of finest groups times coarser judged ones from which on roundings are not searched for."""


@dataclass(frozen=True, eq=False)
class Zero:
    """A plan for zero bias up to rounding, or None, with a lower bound of the cost of any such plan."""

    rows: Whole | None
    bound: float
    base: Real
    exact: Exact | None = None
    chosen: LabelChoice | None = None
    alone: bool = True  # whether each group was planned on its own
    timed_out: bool = False


def solve_zero(problem: Problem, effort: float = 1.0) -> Zero:
    """Find the plan for zero bias: the exact plan under all limits, rounded as the request says."""
    base, chosen = problem.base, None
    if problem.request.labels == "free":
        chosen = _chosen(problem, effort)
        base = chosen.rates
    proved = chosen is None or chosen.proved
    alone, end = stands_alone(problem), end_after(problem.request.time_limit)
    try:
        exact = exact_plan(problem, base)
        left = max(end - time.monotonic(), problem.request.time_limit / 20)
        problem = replace(problem, request=problem.request.but(time_limit=left))
        rows = None if exact is None else rounded(problem, base, exact)
    except Undecided:
        return Zero(None, 0.0, base, chosen=chosen, alone=alone, timed_out=True)
    bound = math.inf if proved else 0.0
    if exact is not None and rows is not None:
        bound = rounding_cost(problem, base, exact) if proved else 0.0
    return Zero(rows, bound, base, exact, chosen, alone)


def is_crowded(problem: Problem) -> bool:
    """Whether too many groups overlap to find whole rows that are within a row in all of them.

    Such rows need not exist, and with thousands of groups neither they nor a proof is found.
    """
    return len(problem.coarse) * len(problem.cells) > CROWDED


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
        try:
            exact = exact_plan(problem, rates, tied=True)
        except Undecided:
            return math.inf
        return math.inf if exact is None else exact.cost + SHORT * exact.short

    return searched_labels(cost, [start, box.clip(problem.base)], box, effort)
