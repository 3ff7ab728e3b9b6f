"""Repairs of a sample: how many rows of each cell to add or delete, given the rows of the table."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise.errors import InputError
from equipoise.evaluation.request import EvaluationRequest
from equipoise.evaluation.training.material import Material
from equipoise.plans.approximation import nearest_rows
from equipoise.plans.infeasibility import Infeasible
from equipoise.plans.planner import make_plan
from equipoise.plans.request import PlanRequest

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from equipoise.counts import Counts
    from equipoise.plans.plan import Plan

    Rows = NDArray[np.int64]


def plan_repair(
    material: Material, request: EvaluationRequest, sample: Rows, **options: Any
) -> Plan:
    """Plan a repair that only needs cells of which the table has rows.

    Groups below ``min_group`` are not judged but still belong to larger groups, so a plan may want
    rows of their cells. If the table has no such rows, these groups stay as they are and the repair
    is planned without them.
    """
    # A second plan, without the groups that are out of reach, is made only if the first one fails or
    # needs rows that do not exist: leaving groups out changes the label frequencies to keep.
    reached = sample[~_is_out_of_reach(material, request, sample)[material.cells[sample]]]
    try:
        plan = _plan(material, request, sample, **options)
    except Infeasible:
        if not 0 < len(reached) < len(sample):
            raise
    else:
        known = material.counts.cells()
        if all(cell in known for cell, n in plan.add.cells().items() if n) or not len(reached):
            return plan
    return _plan(material, request, reached, **options)


def _plan(
    material: Material,
    request: EvaluationRequest,
    rows: Rows,
    *,
    explain: bool = True,
    **options: Any,
) -> Plan:
    asked = PlanRequest(tolerance=request.tolerance, min_group=request.min_group, **options)
    return make_plan(material.count(rows), asked, explain=explain)


def _is_out_of_reach(
    material: Material, request: EvaluationRequest, sample: Rows
) -> NDArray[np.bool_]:
    """Find the cells of groups that are not judged and without some label in the whole table."""
    place, shape = _places(material)
    here = _table(material.tally(sample), place, shape)
    lacks = (_table(material.counts.rows, place, shape) == 0) & (here.sum(axis=0) > 0)
    return np.asarray((lacks.any(axis=1) & (here.sum(axis=1) < request.min_group))[place[0]])


def rows_within_pool(
    material: Material,
    request: EvaluationRequest,
    sample: Rows,
    pool: Rows,
    need: Rows,
    labels: str,
) -> Rows:
    """Decide which rows to take from a pool that has too few for a repair.

    With free label frequencies, another repair may get by with the rows of the pool. If none does,
    each group comes as close as it can to the label frequencies of the original repair.
    """
    if labels == "free":
        within = {"labels": labels, "pool": material.count(pool)}
        with contextlib.suppress(Infeasible):
            # Explaining why there is no plan takes several more, and nobody would read it here.
            plan = _plan(material, request, sample, explain=False, **within)
            return rows_by_cell(material, plan.add)
    have, there = material.tally(sample), material.tally(pool)
    place, shape = _places(material)
    aim = np.where(material.is_known, have + need if labels == "free" else have, 0)
    shares = np.bincount(place[1], aim, shape[1]) / max(1, aim.sum())
    known = shares > 0
    now, ideal, most = (_table(c, place, shape) for c in (have, have + need, have + there))
    rows = now.copy()
    rows[:, known] = nearest_rows(
        now[:, known], ideal[:, known], most[:, known], shares[known], tolerance=request.tolerance
    )
    return np.asarray(rows[place] - have)


def rows_by_cell(material: Material, change: Counts) -> Rows:
    """Return a change for each cell of the table; refuse one for a cell that no row has."""
    lines = {cell: line for line, cell in enumerate(material.counts.cells())}
    wanted = np.zeros(len(lines), np.int64)
    for cell, n in change.cells().items():
        if n and cell not in lines:
            raise InputError(
                f"{material.name} has no row of {change.pattern(cell)} at all, and a repair needs "
                f"{n:,}; merge small groups, leave groups of this size out of the repair with "
                "`min_group`, or use `versions=['u', 'reweighed']`."
            )
        if n:
            wanted[lines[cell]] = n
    return wanted


def _places(material: Material) -> tuple[tuple[Rows, Rows], tuple[int, int]]:
    """Return the line and column of every cell in a table of groups and labels, and its shape."""
    width = len(material.counts.sensitive)
    codes = material.counts.codes
    groups, line = np.unique(codes[:, :width], axis=0, return_inverse=True)
    column = codes[:, width].astype(np.int64)
    shape = (len(groups), len(material.counts.label))
    return (np.asarray(line.ravel(), np.int64), column), shape


def _table(cells: Rows, place: tuple[Rows, Rows], shape: tuple[int, int]) -> Rows:
    table = np.zeros(shape, np.int64)
    table[place] = cells
    return table
