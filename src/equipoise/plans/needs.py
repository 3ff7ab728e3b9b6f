"""What a limit that groups share needs: searches in which only what it counts has a price.

Without its one shared limit a problem is often quick to solve, because groups are independent. The
plan that needs least of what the limit counts then decides whether there is a plan within it.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from equipoise.plans.cells import UNLIMITED, Cells
from equipoise.plans.problem import pose
from equipoise.plans.rounds import solve
from equipoise.plans.solution import Solution

if TYPE_CHECKING:
    from collections.abc import Iterable

    from equipoise.plans.cells import Whole
    from equipoise.plans.limits import Limit
    from equipoise.plans.problem import Problem
    from equipoise.plans.request import PlanRequest

PROVED = 100
"""Number of cells up to which a search goes on until no smaller change is proved to help."""

SHORT_OF_A_ROW = 0.5
"""A plan and a bound this close prove that one row less does not do."""

FEW_ROWS = 1_000
"""Number of rows up to which a search that decides nothing is followed by one of all limits."""

LITTLE = 0.01
"""What changes that a limit does not count cost together, if they are as many as there are rows."""


class _Priced(NamedTuple):
    """Cells whose cost is what a limit counts, and the cost at which it is just met."""

    cells: Cells
    enough: float


def nearest_number(problem: Problem, limit: Limit, loose: PlanRequest) -> int | None:
    """Find the value nearest to a limit on rows for which there is a plan.

    ``loose`` is the request without the limit. None if such a search does not apply.
    """
    free = pose(problem.counts, loose)
    others = (x for x in free.coupling if (x.kind, x.pattern) != (limit.kind, limit.pattern))
    free = replace(free, coupling=tuple(others))
    priced = _priced(free, limit)
    if priced is None or len(free.cells) != len(problem.cells):
        return None
    if free.have.size <= PROVED:
        free = replace(free, request=loose.but(gap=0.0))
    counting = replace(free, cells=priced.cells)
    rows = solve(counting, all_limits=True, within=SHORT_OF_A_ROW).rows
    if rows is None:
        return None
    return int(limit.measured(rows, problem.have, problem.aside))


def find_any(problem: Problem, candidates: Iterable[Whole] = (), effort: float = 1.0) -> Solution:
    """Find any plan, whatever it costs; the bound is infinite if there is proved to be none."""
    known = tuple(candidates)
    shared = problem.coupling
    if len(shared) == 1 and not problem.coarse:
        free = replace(problem, coupling=())
        priced = _priced(free, shared[0])
        if priced is not None:
            found = _within(problem, replace(free, cells=priced.cells), priced.enough, effort)
            if found is not None or int(problem.have.sum()) > FEW_ROWS:
                return found or Solution(None, 0.0, "centre", problem.base)
    return solve(problem, candidates=known, enough=math.inf, effort=effort)


def _within(problem: Problem, counting: Problem, enough: float, effort: float) -> Solution | None:
    """Decide by the least that the shared limit counts; None if that remains open."""
    found = solve(counting, enough=enough, effort=effort, all_limits=True)
    if found.rows is not None and problem.holds(found.rows):
        return replace(found, bound=0.0)
    return replace(found, rows=None, bound=math.inf) if found.bound > enough else None


def _priced(free: Problem, limit: Limit) -> _Priced | None:
    """Price what a limit counts; other changes cost next to nothing."""
    if not free.request.tolerance or free.ruled is not None or free.coarse:
        return None
    cells, shape = free.cells, free.have.shape
    counted = np.zeros(free.have.size, np.bool_)
    counted[limit.cells] = True
    inside = counted.reshape(shape)
    little = np.full(shape, LITTLE / max(float(cells.have.sum()), 100.0))
    one = np.where(inside, 1.0, little)
    if limit.kind == "available":
        return _Priced(replace(cells, add=one, drop=little), limit.rows + SHORT_OF_A_ROW)
    # The rows after the repair are counted from where changes cost nothing. Limits on additions
    # count from the present rows, and do not go with that.
    if any(other.of_additions for other in free.coupling):
        return None
    if limit.kind == "max_rows":
        least = replace(cells, have=cells.least, add=one, drop=little)
        return _Priced(least, limit.high - float(cells.least.sum()) + SHORT_OF_A_ROW)
    if limit.kind in ("at_least", "min_rows"):
        most = np.where(cells.most < UNLIMITED, cells.most, max(limit.rows, 1))
        have = np.where(inside, np.maximum(most, cells.least), cells.have)
        wanted = replace(cells, have=have, add=little, drop=one)
        return _Priced(wanted, float(have[inside].sum()) - limit.low + SHORT_OF_A_ROW)
    return None
