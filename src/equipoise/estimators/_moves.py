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
from equipoise.plain import rows_text, sentences
from equipoise.plans.infeasibility import Infeasible
from equipoise.plans.planner import make_plan, nearest_plan
from equipoise.plans.request import PlanRequest
from equipoise.values import Value

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from equipoise.plans.plan import Plan

_SHOWN = 5


@dataclass(frozen=True, eq=False)
class Moves:
    """How many rows of each cell are left out, and how many are added.

    Attributes
    ----------
    counts
        The counts they are for.
    add, delete
        The rows, by cell.
    plan
        The plan that says so, if it was one.
    shortfall
        Why this is less than was asked for, in words; empty if it is all.
    """

    counts: Counts
    add: Counts
    delete: Counts
    plan: Plan | None = None
    shortfall: str = ""

    @property
    def after(self) -> Counts:
        """The counts after them."""
        return self.counts + self.add - self.delete


def planned_moves(
    counts: Counts, request: PlanRequest, pool: Counts | None = None, *, partial: bool = False
) -> Moves:
    """Plan the moves of a repair, within what a pool has.

    Parameters
    ----------
    counts, request
        As :func:`~equipoise.plans.planner.make_plan` takes them.
    pool
        The rows that can be added.
    partial
        If the pool lacks rows, come as near as it allows, in |UB| and where labels are kept in
        their frequencies; and never leave a larger |UB| than there was.

    Raises
    ------
    PoolTooSmall
        If the pool lacks rows, and a part is not enough.
    Infeasible
        If no plan reaches what was asked, whatever the pool.

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
        return _require_none_added(moves, "leave rows out with allow='delete'")
    lacks, plan = "", _plan_within(counts, request.but(pool=pool), partial=partial)
    if plan is None or plan.certificate.planned_at > request.tolerance:
        free = make_plan(counts, request)
        lacks = _lacks(free.add, pool)
        plan = plan if lacks else free
    if plan is None:
        raise _too_small(lacks)
    return _never_worse(plan, lacks) if partial else _moves(plan)


def _plan_within(counts: Counts, request: PlanRequest, *, partial: bool) -> Plan | None:
    """The plan that a pool has the rows for, or if a part will do what comes nearest."""
    if partial:
        return nearest_plan(counts, request)
    with contextlib.suppress(Infeasible):
        return make_plan(counts, request, explain=False)
    return None


def _never_worse(plan: Plan, lacks: str) -> Moves:
    """Stay with the rows given where a plan would leave a larger |UB| than there is.

    One that comes nearest may, if it is held against other label frequencies than its own, and
    one of few rows, by rounding.
    """
    found = plan.certificate
    if found.max_abs_ub_after <= found.max_abs_ub_before * (1 + 1e-9):
        return _moves(plan, lacks)
    present = found.max_abs_ub_before * (1 + 1e-9)
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
    """Read the moves from the rows wanted of each cell.

    Parameters
    ----------
    counts
        The rows there are.
    strategy
        ``{(group, label): rows}`` for the cells that change; a group is a value, or a tuple of
        values if there are several sensitive features. Where there is one group, ``{label: rows}``.
    pool
        The rows that can be added.
    allow
        ``"add"`` or ``"delete"``, if only that may be asked for.
    partial
        Whether to take what there is if the pool lacks rows.

    Raises
    ------
    PoolTooSmall
        If the pool lacks rows, and a part is not enough.

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
            f"{rows_text(moves.add.n)} must be added and there is no pool to take them from; give "
            f"one as pool=(X, y), or {otherwise}."
        )
    return moves


def _there(wanted: Counts, pool: Counts) -> NDArray[np.int64]:
    """How many rows a pool has of each cell that is wanted."""
    there = pool.cells()
    return np.array([there.get(cell, 0) for cell in wanted.cells()], np.int64)


def _lacks(wanted: Counts, pool: Counts) -> str:
    """Say of which cells a pool has too few rows, those that lack most first."""
    lines = zip(wanted.cells().items(), _there(wanted, pool).tolist(), strict=True)
    lacks = [(there - need, cell, need, there) for (cell, need), there in lines if there < need]
    if not lacks:
        return ""
    lacks.sort(key=lambda lack: lack[0])
    shown = [f"{wanted.pattern(c)} needs {n:,} and has {has:,}" for _, c, n, has in lacks[:_SHOWN]]
    more = len(lacks) - _SHOWN
    shown += [f"so on for {more:,} more cells"] if more > 0 else []
    return f"the pool has too few rows: {sentences(shown)}"


def _too_small(lacks: str) -> PoolTooSmall:
    return PoolTooSmall(
        f"{lacks}; give a larger pool, ask for less, or take what there is with partial=True."
    )


def _as_counts(cells: Mapping[tuple[Value, ...], int], counts: Counts) -> Counts:
    names = [axis.name for axis in counts.sensitive]
    return Counts.from_mapping(cells, sensitive=names, label=counts.label.name)
