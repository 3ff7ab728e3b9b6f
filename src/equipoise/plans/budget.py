"""When money does not suffice: the least largest bias it buys, or the user's own order."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise.plans.frequencies import against, reference_of
from equipoise.plans.judgement import off_target
from equipoise.plans.patterns import cell_numbers
from equipoise.plans.tolerance import least_tolerance, what_is_left

if TYPE_CHECKING:
    from collections.abc import Callable

    from equipoise.plans.cells import Real, Whole
    from equipoise.plans.problem import Problem
    from equipoise.plans.solution import Solution

REST = "everything else"

PARTS = 200
"""How many parts of a plan of zero bias are compared at most."""

NEAR_ZERO = 1e-3
"""Zero bias up to rounding that leaves no more is taken as soon as it can be paid."""


@dataclass(frozen=True)
class Step:
    """One entry of a priority list, and how far the budget served it.

    Attributes
    ----------
    pattern
        The cells it is about.
    needed, cost
        How many changes it takes, and what they cost.
    served
        How many of them the budget paid.
    left
        What was left of the budget after it.
    """

    pattern: str
    needed: int
    cost: float
    served: int
    left: float

    @property
    def missing(self) -> int:
        """How many changes were not paid for."""
        return self.needed - self.served

    def to_dict(self) -> dict[str, Any]:
        """Plain data, for JSON."""
        return {
            "pattern": self.pattern,
            "needed": self.needed,
            "cost": self.cost,
            "served": self.served,
            "missing": self.missing,
            "left": self.left,
        }


@dataclass(frozen=True, eq=False, kw_only=True)
class Spent:
    """What is done of all that was asked for.

    Attributes
    ----------
    solution, rows
        The plan, and the rows of each cell in the end.
    needed
        What all that was asked for costs.
    steps
        How far a budget served each priority.
    in_full
        Whether it is the plan for all that was asked for.
    cut_short
        Whether a budget did not pay for zero bias, so that what is left is not rounding.
    passed_over
        What the plan for all that was asked for would leave, if it was passed over for leaving
        more than this one.
    """

    solution: Solution
    rows: Whole
    needed: float
    steps: tuple[Step, ...] = ()
    in_full: bool = True
    cut_short: bool = False
    passed_over: float | None = None

    @classmethod
    def on_all(cls, problem: Problem, solution: Solution) -> Spent:
        """Everything that was asked for."""
        assert solution.rows is not None  # noqa: S101 - what cannot be done is not paid for
        cost = float(problem.cells.cost(solution.rows).sum())
        return cls(solution=solution, rows=solution.rows, needed=cost)


def spend(
    problem: Problem,
    solution: Solution,
    *,
    progress: Callable[[float], None] = lambda _: None,
) -> Spent | None:
    """Spend the budget of a request: in the user's order, or on the least largest bias.

    At zero tolerance whole rows can leave much to small groups, and a plan that costs less can
    leave less; then it is the better one, however much money there is. A rounding, a priority or
    extra rows that were named are kept to. None if the budget does not pay for the limits.
    """
    request = problem.request
    budget = request.budget or 0.0
    everything = Spent.on_all(problem, solution)
    short = everything.needed > budget * (1 + 1e-12) + 1e-9
    if short and request.priority:
        rows, steps = serve(problem, everything.rows)
        cut = not request.tolerance
        return replace(everything, rows=rows, steps=steps, in_full=False, cut_short=cut)
    named = request.priority or request.extra or request.rounding != "optimal"
    left = what_is_left(problem, solution)
    if not short and (request.tolerance or named or left <= NEAR_ZERO):
        return everything
    limit = min(budget, everything.needed)
    part, unless = _best_part(problem, solution, limit)
    found = least_tolerance(problem, limit, unless=unless, progress=progress)
    best, remains = (part, unless) if found is None or found[0] >= unless else (found[1], found[0])
    if best is None or best.rows is None:
        return None if short else everything
    if not short and remains >= left:
        return everything
    return Spent(
        solution=replace(best, sizes=None, base=_held_to(problem, best)),
        rows=best.rows,
        needed=everything.needed,
        in_full=False,
        cut_short=short and not request.tolerance and remains > 0,
        passed_over=None if short else left,
    )


def _held_to(problem: Problem, found: Solution) -> Real:
    """The label frequencies that rounding is judged by: where they are free, those that come out."""
    request = problem.request
    free = request.labels == "free" and request.label_drift is None
    if found.rows is None or request.tolerance or not free or reference_of(problem) != "new":
        return found.base
    return np.asarray(found.rows.sum(axis=0) / found.rows.sum())


def _best_part(problem: Problem, ideal: Solution, budget: float) -> tuple[Solution | None, float]:
    """Zero bias carried out group by group, the worst first, up to where it leaves least.

    Which parts there are does not depend on the budget, so that more money has more to choose
    from.
    """
    assert ideal.rows is not None  # noqa: S101 - parts are parts of a plan
    best, least = None, math.inf
    if ideal.method != "closed form" or problem.request.label_drift is not None:
        return best, least
    held = against(problem, ideal.base, problem.have).real
    off = off_target(problem.have, problem.ratios, held, problem.request.tolerance_on)
    order = np.argsort(-np.nan_to_num(off, nan=math.inf).max(axis=1), kind="stable")
    cost = np.cumsum(problem.cells.cost(ideal.rows)[order])
    for end in np.unique(np.linspace(0, len(order), PARTS).astype(np.int64)).tolist():
        if end and cost[end - 1] > budget * (1 + 1e-12) + 1e-9:
            break
        rows = problem.have.copy()
        rows[order[:end]] = ideal.rows[order[:end]]
        part = replace(ideal, rows=rows)
        if _holds(problem, rows) and (left := what_is_left(problem, part)) < least:
            best, least = part, left
    return best, least


def _holds(problem: Problem, rows: Whole) -> bool:
    """Whether rows keep to every limit but the tolerance."""
    cells = problem.cells
    inside = bool((rows >= cells.least).all() and (rows <= cells.most).all())
    return inside and bool((rows.sum(axis=1) >= cells.group_least).all()) and problem.holds(rows)


def serve(problem: Problem, ideal: Whole) -> tuple[Whole, tuple[Step, ...]]:
    """Spend the budget on an ideal plan in the order of the priorities.

    The first entry that the rest of the budget cannot pay is served in part, in proportion
    to what its cells need; what is not in the list comes last.
    """
    left = float(problem.request.budget or 0.0)
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
    """As many changes as the money pays, in proportion to the need; the rest buys the cheapest."""
    exact = need * (left / float(need @ price))
    take = np.floor(exact + 1e-12).astype(np.int64)
    left -= float(take @ price)
    for cell in np.argsort(take - exact, kind="stable"):
        if take[cell] < need[cell] and price[cell] <= left + 1e-9:
            take[cell] += 1
            left -= float(price[cell])
    for cell in np.argsort(price, kind="stable"):
        lacking = int(need[cell] - take[cell])
        paid = int((left + 1e-9) // price[cell]) if price[cell] > 0 else lacking
        take[cell] += min(lacking, paid)
        left -= min(lacking, paid) * float(price[cell])
    return np.asarray(take)
