"""How many rows of each cell are added and deleted: by a plan, or as a mapping says."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise.counts import Counts
from equipoise.errors import InputError, PoolTooSmall
from equipoise.estimators._strategy import read_strategy
from equipoise.plain import in_words, rows_text
from equipoise.plans.infeasibility import Infeasible
from equipoise.plans.planner import make_plan, nearest_plan
from equipoise.plans.request import PlanRequest
from equipoise.values import Value

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from equipoise.plans.plan import Plan

_SHOWN = 5  # cells listed in a message
_ROUNDING = 1 + 1e-9  # a plan is not worse if it differs by rounding only


@dataclass(frozen=True, eq=False)
class Moves:
    """How many rows of each cell are deleted, and how many are added."""

    counts: Counts  # of the given rows
    add: Counts
    delete: Counts
    plan: Plan | None = None
    shortfall: str = ""  # why this is less than was requested, if it is

    @property
    def after(self) -> Counts:
        """Counts after the moves."""
        return self.counts + self.add - self.delete


def planned_moves(
    counts: Counts, request: PlanRequest, pool: Counts | None = None, *, partial: bool = False
) -> Moves:
    """Plan the moves of a repair, with the rows that a pool has.

    If it has too few, a ``partial`` repair comes as close as possible in |UB| and, if labels are
    kept, in their frequencies, never with a larger |UB| than before.

    Examples
    --------
    >>> cells = {("m", "1"): 4, ("m", "0"): 4, ("w", "1"): 1, ("w", "0"): 3}
    >>> counts = Counts.from_mapping(cells, sensitive=["sex"], label="hired")
    >>> pool = Counts.from_mapping(dict.fromkeys(cells, 9), sensitive=["sex"], label="hired")
    >>> request = PlanRequest(tolerance=0.3, reference="original")
    >>> planned_moves(counts, request, pool).add.n
    1
    """
    if pool is None:
        alone = make_plan(counts, request)
        moves = _never_worse(alone, "") if partial else _moves(alone)
        return _require_none_added(moves, "delete rows with `allow='delete'`")
    lacks, plan = "", _plan_within(counts, request.but(pool=pool), partial=partial)
    if plan is None or plan.certificate.planned_at > request.tolerance:
        # The pool is to blame only if a plan without it needs rows that the pool does not have.
        free = make_plan(counts, request)
        lacks = _lacks(free.add, pool)
        plan = plan if lacks else free
    if plan is None:
        raise _too_small(lacks)
    return _never_worse(plan, lacks) if partial else _moves(plan)


def _plan_within(counts: Counts, request: PlanRequest, *, partial: bool) -> Plan | None:
    if partial:
        return nearest_plan(counts, request)
    with contextlib.suppress(Infeasible):
        return make_plan(counts, request, explain=False)
    return None


def _never_worse(plan: Plan, lacks: str) -> Moves:
    """Keep the given rows if a plan would leave a larger |UB| than there is.

    The nearest plan may do so if groups are compared with other label frequencies than its own, and
    a plan for few rows because of rounding.
    """
    found = plan.certificate
    present = found.max_abs_ub_before * _ROUNDING
    if found.max_abs_ub_after <= present:
        return _moves(plan, lacks)
    nothing = make_plan(plan.counts, PlanRequest(tolerance=present, allow=plan.request.allow))
    return _moves(nothing, lacks or "no plan that was found leaves less bias than there is")


def _moves(plan: Plan, shortfall: str = "") -> Moves:
    return Moves(plan.counts, plan.add, plan.delete, plan, shortfall)


def asked_moves(
    counts: Counts,
    strategy: Any,
    pool: Counts | None = None,
    *,
    allow: str | None = None,
    partial: bool = False,
) -> Moves:
    """Derive the moves from the rows wanted of each cell.

    If the pool has too few of them, a ``partial`` resampling takes the rows available.

    Examples
    --------
    >>> cells = {("m", "1"): 4, ("m", "0"): 4, ("w", "1"): 1, ("w", "0"): 3}
    >>> counts = Counts.from_mapping(cells, sensitive=["sex"], label="hired")
    >>> asked_moves(counts, {("m", 1): 1}).delete.of("sex=m, hired=1")
    3
    """
    moves = read_strategy(strategy, counts, allow)
    add = _as_counts({cell: n for cell, n in moves.items() if n > 0}, counts)
    gone = _as_counts({cell: -n for cell, n in moves.items() if n < 0}, counts)
    if pool is None:
        asked = Moves(counts, add, gone)
        return _require_none_added(asked, "ask for no more rows than there are")
    lacks = _lacks(add, pool)
    if lacks and not partial:
        raise _too_small(lacks)
    found = replace(add, rows=np.minimum(add.rows, _there(add, pool)))
    return Moves(counts, found, gone, shortfall=lacks)


def _require_none_added(moves: Moves, otherwise: str) -> Moves:
    if moves.add.n:
        raise InputError(
            f"{rows_text(moves.add.n)} must be added and there is no pool to take them from; provide "
            f"one with `pool=(X, y)`, or {otherwise}."
        )
    return moves


def _there(wanted: Counts, pool: Counts) -> NDArray[np.int64]:
    """Count the rows that a pool has of each wanted cell."""
    there = pool.cells()
    return np.array([there.get(cell, 0) for cell in wanted.cells()], np.int64)


def _lacks(wanted: Counts, pool: Counts) -> str:
    """Name the cells of which a pool has too few rows, the largest shortfalls first."""
    lines = zip(wanted.cells().items(), _there(wanted, pool).tolist(), strict=True)
    lacks = [(there - need, cell, need, there) for (cell, need), there in lines if there < need]
    if not lacks:
        return ""
    lacks.sort(key=lambda lack: lack[0])
    shown = [f"{wanted.pattern(c)} needs {n:,} and has {has:,}" for _, c, n, has in lacks[:_SHOWN]]
    more = len(lacks) - _SHOWN
    shown += [f"so on for {more:,} more cells"] if more > 0 else []
    return f"the pool has too few rows: {in_words(shown)}"


def _too_small(lacks: str) -> PoolTooSmall:
    return PoolTooSmall(
        f"{lacks}; provide a larger pool, ask for less, or use the rows available with `partial=True`."
    )


def _as_counts(cells: Mapping[tuple[Value, ...], int], counts: Counts) -> Counts:
    names = [axis.name for axis in counts.sensitive]
    return Counts.from_mapping(cells, sensitive=names, label=counts.label.name)
