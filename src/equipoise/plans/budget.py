"""Plans within a budget: minimise the largest bias, or follow the user's priorities."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise.plans.judgement import compared_with, keeps_limits, off_target
from equipoise.plans.patterns import cell_numbers
from equipoise.plans.tolerance import least_tolerance, pays, what_is_left

if TYPE_CHECKING:
    from collections.abc import Callable

    from equipoise.plans.cells import Real, Whole
    from equipoise.plans.problem import Problem
    from equipoise.plans.solution import Solution

REST = "everything else"

PARTS = 200
"""Maximum number of partial plans for zero bias that are compared."""


@dataclass(frozen=True)
class Step:
    """One entry of a priority list, and how much of it the budget paid for."""

    pattern: str
    needed: int  # changes of these cells in the full plan
    cost: float  # of all of them
    served: int  # changes that the budget paid for
    left: float  # budget left after this entry

    @property
    def missing(self) -> int:
        """Number of changes that were not paid for."""
        return self.needed - self.served

    def to_dict(self) -> dict[str, Any]:
        """Plain data, for JSON."""
        names = ("pattern", "needed", "cost", "served", "missing", "left")
        return {name: getattr(self, name) for name in names}


@dataclass(frozen=True, eq=False, kw_only=True)
class Spent:
    """The part of a request that is carried out."""

    solution: Solution
    rows: Whole
    needed: float  # cost of the full plan
    steps: tuple[Step, ...] = ()
    in_full: bool = True
    cut_short: bool = False  # the budget did not pay for zero bias: what is left is not rounding


def spend(
    problem: Problem, solution: Solution, *, progress: Callable[[float], None] = lambda _: None
) -> Spent | None:
    """Spend the budget of a request by its priorities, or to minimise the largest bias.

    A budget that pays for the whole plan changes nothing of it. Returns None if the budget does not
    pay for the limits.
    """
    assert solution.rows is not None  # noqa: S101 - infeasible requests have raised before
    request, budget = problem.request, problem.request.budget
    needed = problem.cells.total_cost(solution.rows)
    everything = Spent(solution=solution, rows=solution.rows, needed=needed)
    if budget is None or pays(budget, needed):
        return everything
    if request.priority:
        rows, steps = _serve(problem, solution.rows, budget)
        cut = not request.tolerance
        return replace(everything, rows=rows, steps=steps, in_full=False, cut_short=cut)
    best, remains = None, math.inf
    for trial in (problem.unlimited(), problem) if problem.limited else (problem,):
        best, remains = _least_left(trial, solution, budget, progress)
        if best is not None and best.rows is not None and keeps_limits(problem, best.rows):
            break
    if best is None or best.rows is None:
        return None
    return Spent(
        solution=replace(best, sizes=None, held=None, base=_held_to(problem, best)),
        rows=best.rows,
        needed=needed,
        in_full=False,
        cut_short=not request.tolerance and remains > 0,
    )


def _least_left(
    problem: Problem, solution: Solution, budget: float, progress: Callable[[float], None]
) -> tuple[Solution | None, float]:
    """The plan within a budget that leaves the least: a part of the full plan, or another plan."""
    part, unless = _best_part(problem, solution, budget)
    found = least_tolerance(problem, budget, unless=unless, progress=progress)
    return (part, unless) if found is None or found[0] >= unless else (found[1], found[0])


def _held_to(problem: Problem, found: Solution) -> Real:
    """Label frequencies that rounding is judged by: the resulting ones if labels are free."""
    request = problem.request
    free = request.labels == "free" and request.label_drift is None
    if found.rows is None or request.tolerance or not free or problem.reference != "new":
        return found.base
    return np.asarray(found.rows.sum(axis=0) / found.rows.sum())


def _best_part(problem: Problem, ideal: Solution, budget: float) -> tuple[Solution | None, float]:
    """The part of a plan for zero bias, worst groups first, that leaves the least bias.

    The parts do not depend on the budget, so a larger budget never gives a worse result.
    """
    assert ideal.rows is not None  # noqa: S101 - there is a plan to take parts of
    best, least = None, math.inf
    if ideal.method != "closed form" or problem.request.label_drift is not None:
        return best, least
    held = compared_with(problem, problem.have, ideal.base).real
    off = off_target(problem.have, problem.ratios, held, problem.request.tolerance_on)
    order = np.argsort(-np.nan_to_num(off, nan=math.inf).max(axis=1), kind="stable")
    cost = np.cumsum(problem.cells.cost(ideal.rows)[order])
    for end in np.unique(np.linspace(0, len(order), PARTS).astype(np.int64)).tolist():
        if end and not pays(budget, cost[end - 1]):
            break
        rows = problem.have.copy()
        rows[order[:end]] = ideal.rows[order[:end]]
        part = replace(ideal, rows=rows)
        if problem.holds(rows) and (left := what_is_left(problem, part)) < least:
            best, least = part, left
    return best, least


def _serve(problem: Problem, ideal: Whole, left: float) -> tuple[Whole, tuple[Step, ...]]:
    """Spend the budget on the full plan in the order of the priorities.

    An entry that the remaining budget does not cover is served in part, in proportion to what its
    cells need. Cells that are not in the list come last.
    """
    rows = problem.have.ravel().copy()
    change = ideal.ravel() - rows
    open_ = change != 0
    steps = []
    for pattern in (*problem.request.priority, REST):
        if pattern == REST:
            chosen = np.flatnonzero(open_)
            if not len(chosen):
                break
        else:
            cells = cell_numbers(problem.counts, problem.codes, pattern)
            chosen = cells[open_[cells]]
        price = np.where(change > 0, problem.cells.add.ravel(), problem.cells.drop.ravel())[chosen]
        need = np.abs(change[chosen])
        take = need if float(need @ price) <= left + 1e-9 else _in_part(need, price, left)
        left = max(left - float(take @ price), 0.0)
        rows[chosen] += np.sign(change[chosen]) * take
        open_[chosen] = False
        steps.append(
            Step(pattern, int(need.sum()), float(need @ price), int(take.sum()), round(left, 9))
        )
    return rows.reshape(problem.have.shape), tuple(steps)


def _in_part(need: Whole, price: Any, left: float) -> Whole:
    """Share the remaining budget in proportion to the need; spend what is left on the cheapest."""
    exact = need * (left / float(need @ price))
    take = np.floor(exact + 1e-12).astype(np.int64)
    left -= float(take @ price)
    for cell in np.argsort(take - exact, kind="stable"):
        if take[cell] < need[cell] and price[cell] <= left + 1e-9:
            take[cell] += 1
            left -= float(price[cell])
    for cell in np.argsort(price, kind="stable"):
        missing = int(need[cell] - take[cell])
        paid = int((left + 1e-9) // price[cell]) if price[cell] > 0 else missing
        take[cell] += min(missing, paid)
        left -= min(missing, paid) * float(price[cell])
    return np.asarray(take)
