"""How far a limit on rows must be moved: a search with prices on what the limit counts, and no others.

The limit is left out. Rows that it counts cost one, so the cheapest plan says which number suffices,
and the lower bound of its cost that no nearer number does.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from equipoise.plans import rounds
from equipoise.plans.judgement import keeps_limits
from equipoise.plans.solution import ANY_PLAN, FEW, Solution, is_excluded

if TYPE_CHECKING:
    from equipoise.plans.cells import Whole
    from equipoise.plans.limits import Limit
    from equipoise.plans.problem import Problem

KINDS = ("available", "at_least", "min_rows", "max_rows")
"""Limits whose numbers are sums of rows."""

LITTLE = 2.0**-12
"""Price of rows that the limit does not count, in the search for a natural plan."""

SMALL = (24, 500)
"""Maximum numbers of cells and rows of a table in which the number is proved to be the nearest."""

EFFORT, WORK = 0.1, 40.0
"""Share of the usual work in a larger table, and for how many cells all of that is done."""

COUPLED = 0.2
"""Share of that work where groups depend on each other, in a trial."""

LITTLE_EFFORT = 0.01
"""Share of the usual work in a small table that often suffices to prove that there is no plan."""

NEAR = 1e-3
"""Gap of the number in a larger table, as a share of the rows that a plan adds or leaves out."""

FAR = 10
"""How many times as many rows as there are a plan may add to a cell that the limit does not count."""


@dataclass(frozen=True, eq=False)
class Reach:
    """The number nearest to a limit for which there is a plan, that plan, and what is proved."""

    number: int
    rows: Whole
    proved: int  # no plan is nearer than this number

    @property
    def exact(self) -> bool:
        """Whether the number is proved to be the nearest."""
        return self.number == self.proved


def reach(problem: Problem, limit: Limit) -> Reach | None:
    """Find the number nearest to a limit on rows for which there is a plan; None if there is none.

    The tolerance must be above zero, and no plan may keep the limit as it is.
    """
    small = is_small(problem)
    alone = problem.without(limit).separable
    effort, gap = (
        (1.0, 0.0) if small else (EFFORT if alone else EFFORT * share_of_work(problem), NEAR)
    )
    found = rounds.solve(_priced(problem, limit, 0.0, gap), effort=effort, at_once=True)
    if found.rows is None and found.bound == math.inf:
        return None
    best = None if found.rows is None else _reached(problem, limit, found.rows, found.bound)
    if (best is None and (small or alone)) or (small and best is not None and not best.exact):
        priced = _priced(problem, limit, LITTLE, gap)
        natural = rounds.solve(priced, effort=effort, at_once=True).rows
        other = None if natural is None else _reached(problem, limit, natural, found.bound)
        best = min((x for x in (best, other) if x is not None), key=_off, default=None)
    return best


def nearest_rows(problem: Problem) -> Whole | None:
    """Rows that keep everything, if a search for the nearest number of a limit comes to such.

    What an explanation names is found by that search, so there must be a plan for it.
    """
    if not problem.request.tolerance or is_small(problem):
        return None
    for limit in problem.coupling:
        found = reach(problem, limit) if limit.kind in KINDS else None
        if found is not None and keeps_limits(problem, found.rows):
            return found.rows
    return None


def any_plan(problem: Problem, effort: float = 1.0) -> Solution:
    """Decide whether there is a plan, whatever it costs.

    If groups of a larger table share one limit on rows only, they are planned without it, at the
    price of what it counts.
    """
    shared = problem.coupling
    ranged = problem.ruled is not None and problem.ruled.best is not None
    plain = problem.request.tolerance and not ranged and not problem.coarse
    if (
        plain
        and not is_small(problem)
        and len(shared) == 1
        and shared[0].kind in ("available", "max_rows")  # a minimum would need a cap on its cells
        and problem.reference == "new"
    ):
        priced, allowed = _priced(problem, shared[0], 0.0, None), allowed_rows(problem, shared[0])
        found = rounds.solve(priced, effort=effort, enough=allowed)
        # The model leaves out plans with very many rows, so it proves nothing.
        if found.rows is None:
            return replace(found, bound=0.0, short=math.inf)
        fits, short = (
            keeps_limits(problem, found.rows),
            priced.cells.total_cost(found.rows) - allowed,
        )
        return replace(found, rows=found.rows if fits else None, bound=0.0, short=short)
    if problem.reference == "original" and problem.request.tolerance:
        # One model, which a wide gap ends at its first plan.
        problem = replace(problem, request=problem.request.but(gap=ANY_PLAN))
    elif not problem.separable and not is_small(problem) and effort < 1:
        effort *= COUPLED
    return rounds.solve(problem, enough=math.inf, effort=effort)


def is_impossible(problem: Problem) -> bool:
    """Whether it is quickly proved that the limits exclude every plan."""
    if is_excluded(problem, boxes=FEW if problem.request.labels == "free" else 1):
        return True
    if not is_small(problem) or not problem.limited or not problem.request.tolerance:
        return False
    return rounds.solve(problem, enough=math.inf, effort=LITTLE_EFFORT).bound == math.inf


def possible_rows(problem: Problem, effort: float) -> Whole | None:
    """Rows that keep everything, if a plan is found; linear models tell quickly of most that none is.

    Deletions nearly always make a plan possible, so less is tried to prove the contrary.
    """
    boxes = FEW if problem.request.allow == "add" else 1
    return None if is_excluded(problem, boxes=boxes) else any_plan(problem, effort).rows


def share_of_work(problem: Problem) -> float:
    """Less work in larger tables, so that an explanation takes about as long."""
    return min(1.0, WORK / problem.have.size)


def is_small(problem: Problem) -> bool:
    """Whether models in whole rows decide quickly."""
    return problem.have.size <= SMALL[0] and int(problem.have.sum()) <= SMALL[1]


def _off(found: Reach) -> int:
    """How far a number is from what is proved."""
    return abs(found.number - found.proved)


def _start(problem: Problem, limit: Limit) -> int:
    """The number that the limit counts in the table as it is."""
    if limit.kind == "available":
        return 0
    aside = problem.aside if limit.kind in ("min_rows", "max_rows") else 0
    return int(problem.have.ravel()[limit.cells].sum()) + aside


def allowed_rows(problem: Problem, limit: Limit) -> float:
    """The priced cost up to which the limit is kept."""
    return _sign(limit) * float(limit.rows - _start(problem, limit))


def _sign(limit: Limit) -> int:
    """Whether less of what the limit counts is better, or more."""
    return -1 if limit.kind in ("at_least", "min_rows") else 1


def _reached(problem: Problem, limit: Limit, rows: Whole, bound: float) -> Reach:
    """The number that a plan reaches, and the one that the bound of the priced cost stands for."""
    change = (rows - problem.have).ravel()[limit.cells]
    change = change.clip(0) if limit.kind == "available" else change
    start = _start(problem, limit)
    number = start + int(change.sum())
    proved = start + _sign(limit) * math.ceil(bound - 1e-6) if math.isfinite(bound) else number
    return Reach(number, rows, proved)


def _priced(problem: Problem, limit: Limit, price: float, gap: float | None) -> Problem:
    """Leave a limit out; what it counts has the price of one, and other rows a given price."""
    free = problem.without(limit)
    flags = np.zeros(problem.have.size, np.bool_)
    flags[limit.cells] = True
    counted = flags.reshape(problem.have.shape)
    add, drop = np.full((2, *counted.shape), price)
    add[counted] = _sign(limit)
    if limit.kind != "available":
        drop[counted] = -_sign(limit)
    cells = replace(free.cells, add=add, drop=drop, most=_most(free, limit))
    request = problem.request.but(gap=gap, budget=None, priority=())
    return replace(free, cells=cells, request=request)


def _most(problem: Problem, limit: Limit) -> Whole:
    """Bounds of all cells, since rows without a price would grow without end.

    Cells of a minimum that cannot be reached stay below it.
    """
    cells = problem.cells
    present = np.maximum(cells.have, cells.least)
    # A power of two, so that a limit that is a little further away has the same nearest number.
    there = 2 ** math.ceil(math.log2(int(cells.have.sum()) + limit.rows + 1))
    room = FAR * there + math.ceil(20 / problem.request.tolerance)
    most = np.minimum(cells.most, present + room).ravel()
    if limit.kind in ("at_least", "min_rows"):
        top = np.maximum(present.ravel(), limit.rows)[limit.cells]
        most[limit.cells] = np.minimum(most[limit.cells], top)
    return np.asarray(most.reshape(cells.most.shape))
