"""How far a limit on rows must be moved: a search with prices on what the limit counts, and no others.

The limit is left out. Rows that it counts cost one, so the cheapest plan says which number suffices,
and the lower bound of its cost that no nearer number does.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from equipoise.plans.judgement import keeps_limits
from equipoise.plans.solution import solve

if TYPE_CHECKING:
    from equipoise.plans.cells import Cells, Whole
    from equipoise.plans.limits import Limit
    from equipoise.plans.problem import Problem

KINDS = ("available", "at_least", "min_rows", "max_rows")
"""Limits whose numbers are sums of rows."""

LITTLE = 2.0**-12
"""Price of rows that the limit does not count, in the search for a natural plan."""

SMALL = (24, 500)
"""Maximum numbers of cells and rows of a table in which the number is proved to be the nearest."""

EFFORT = 0.19
"""Share of the usual work in a larger table."""

FAR = 10
"""How many times as many rows as there are a plan may add to a cell that the limit does not count."""


@dataclass(frozen=True, eq=False)
class Reach:
    """The number nearest to a limit for which there is a plan, that plan, and what is proved."""

    number: int
    rows: Whole
    proved: int  # no plan is nearer than this number


def reach(problem: Problem, limit: Limit) -> Reach | None:
    """Find the number nearest to a limit on rows for which there is a plan; None if there is none.

    The tolerance must be above zero, and no plan may keep the limit as it is.
    """
    free = _bounded(problem.without(limit), limit)
    counted = np.zeros(problem.have.size, np.bool_)
    counted[limit.cells] = True
    counted = counted.reshape(problem.have.shape)
    small = problem.have.size <= SMALL[0] and problem.have.sum() <= SMALL[1]
    free = replace(free, request=free.request.but(gap=0.0, budget=None, priority=()))
    known: list[Whole] = []
    for price in (LITTLE, 0.0):
        priced = replace(free, cells=_priced(free.cells, limit, counted, price))
        effort = 1.0 if small and not price else EFFORT
        found = solve(priced, candidates=known, effort=effort, at_once=True)
        if found.rows is None and found.bound == math.inf:
            return None
        known = known if found.rows is None else [found.rows]
    if not known:
        return None
    return _reached(problem, limit, known[0], found.bound)


def _reached(problem: Problem, limit: Limit, rows: Whole, bound: float) -> Reach:
    """The number that a plan reaches, and the one that the bound of the priced cost stands for."""
    start = 0 if limit.kind == "available" else int(problem.have.ravel()[limit.cells].sum())
    if limit.kind in ("min_rows", "max_rows"):
        start += problem.aside
    sign = 1 if limit.kind in ("available", "max_rows") else -1
    chosen, have = rows.ravel()[limit.cells], problem.have.ravel()[limit.cells]
    change = (chosen - have).clip(0) if limit.kind == "available" else chosen - have
    number = start + int(change.sum())
    proved = start + sign * math.ceil(bound - 1e-6) if math.isfinite(bound) else number
    return Reach(number, rows, proved)


def _priced(cells: Cells, limit: Limit, counted: np.ndarray, price: float) -> Cells:
    """Prices of one for what the limit counts, which is to be small or, for a minimum, large."""
    others = np.full(counted.shape, price)
    if limit.kind == "available":
        return replace(cells, add=np.where(counted, 1.0, others), drop=others)
    sign = 1.0 if limit.kind == "max_rows" else -1.0
    return replace(
        cells, add=np.where(counted, sign, others), drop=np.where(counted, -sign, others)
    )


def _bounded(problem: Problem, limit: Limit) -> Problem:
    """Bound all cells, since rows without a price would grow without end.

    Cells of a minimum that cannot be reached stay below it.
    """
    cells = problem.cells
    n = int(cells.have.sum()) + limit.rows
    room = FAR * n + math.ceil(20 / problem.request.tolerance)
    most = np.minimum(cells.most, np.maximum(cells.have, cells.least) + room)
    if limit.kind in ("at_least", "min_rows"):
        flat = most.ravel().copy()
        top = np.maximum(cells.have, cells.least).ravel()
        flat[limit.cells] = np.minimum(flat, np.maximum(top, limit.rows))[limit.cells]
        most = flat.reshape(most.shape)
    return replace(problem, cells=replace(cells, most=most))


def plan_at_edge(problem: Problem) -> Whole | None:
    """A plan that keeps all limits, found by moving one of those that groups share to its edge."""
    if not problem.request.tolerance:
        return None
    for limit in problem.coupling:
        found = reach(problem, limit) if limit.kind in KINDS else None
        if found is not None and keeps_limits(problem, found.rows):
            return found.rows
    return None
