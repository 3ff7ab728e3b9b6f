"""Versions of a sample that models are trained on: as it is, repaired, and the baselines."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise.errors import InputError
from equipoise.evaluation.request import AFTER, BEFORE, MITIGATED, EvaluationRequest
from equipoise.evaluation.training.material import Material
from equipoise.evaluation.training.splits import cut, generator_for
from equipoise.lake.repair.planned import cells_of, named
from equipoise.plans.approximation import nearest_rows
from equipoise.plans.infeasibility import Infeasible
from equipoise.plans.planner import make_plan
from equipoise.plans.request import PlanRequest
from equipoise.rows.draw import draw

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from equipoise.counts import Counts
    from equipoise.plans.plan import Plan

    Rows = NDArray[np.int64]

_CUTTING, _DRAWING, _TESTING = 1, 2, 3  # keep the random choices of a repeat apart


@dataclass(frozen=True, eq=False)
class Version:
    """Rows to train and test on, and how they were made.

    Attributes
    ----------
    rows
        The places of its rows, drawn back to the size of the sample; a repeated row is there
        several times.
    cells
        How many rows of each cell the version had before it was drawn back.
    need, found
        How many rows the plan asks for, and how many were added or deleted.
    lacks
        The cells of which the pool has too few rows for it, with the rows needed and there.
    is_weighed
        Whether rows get weights in training.
    """

    rows: Rows
    cells: Rows
    need: int = 0
    found: int = 0
    lacks: tuple[tuple[str, int, int], ...] = ()
    is_weighed: bool = False


@dataclass(frozen=True, eq=False)
class Split:
    """The rows of one repeat: set aside for the test, the sample, and the pool."""

    test: Rows
    sample: Rows
    pool: Rows


def split(material: Material, request: EvaluationRequest, repeat: int, size: float) -> Split:
    """Set the test aside, then part the rest into the sample and the pool.

    A repeat sets the same rows aside for every size, and a larger sample has all rows of a
    smaller one.
    """
    generator = generator_for(request.seed, repeat, _CUTTING)
    if not request.is_of_two:
        test, sample, pool = cut(material.unit, [request.test / 100, size / 100], generator)
        return Split(test, sample, pool)
    first = np.flatnonzero(~material.is_after)
    test, sample = (
        first[part] for part in cut(material.unit[first], [request.test / 100], generator)
    )
    second = np.flatnonzero(material.is_after)
    apart = ~np.isin(material.unit[second], material.unit[test])
    return Split(test, sample, second[apart])


def make_version(
    material: Material,
    request: EvaluationRequest,
    name: str,
    parts: Split,
    repeat: int,
    size: float,
) -> Version:
    """Make one version of the sample.

    Raises
    ------
    Infeasible
        If there is no plan for it.
    InputError
        If a repair needs rows that the whole table has none of, or no rows are left to train on.
    """
    generator = generator_for(request.seed, repeat, round(size * 1000), _DRAWING)
    sample = parts.sample
    if name in (BEFORE, AFTER):
        return _one_of_two(material, request, name, parts, generator)
    if name in (*MITIGATED, "duplicated"):
        return _added_to(material, request, name, parts, generator)
    if name == "deleted":
        plan = _reachable(material, sample, request, allow="delete")
        gone = draw(material.cells[sample], _by_cell(material, plan.delete), generator)
        rows = np.delete(sample, gone)
        return Version(rows, _cells(material, rows), plan.deletions, len(gone))
    return Version(sample, _cells(material, sample), is_weighed=name == "reweighed")


def _added_to(
    material: Material,
    request: EvaluationRequest,
    name: str,
    parts: Split,
    generator: np.random.Generator,
) -> Version:
    """Add rows of the pool, or of the sample itself, and draw the whole back to its size."""
    again = name == "duplicated"
    source = parts.sample if again else parts.pool
    there = _cells(material, source)
    labels = "free" if name == "n" else "keep"
    plan = _reachable(material, parts.sample, request, labels=labels)
    need = taken = _by_cell(material, plan.add)
    lacks = np.flatnonzero(there < need)
    if not again and len(lacks):
        taken = _what_there_is(material, parts, request, need, labels)
    added = source[draw(material.cells[source], taken, generator, again=again)]
    whole = np.concatenate([parts.sample, added])
    rows = generator.choice(whole, len(parts.sample), replace=False)
    if again:  # rows that are there can be repeated; where none is, none can
        lacks = np.flatnonzero((there == 0) & (need > 0))
    told = ((str(_cell(material, c)), int(need[c]), int(there[c])) for c in lacks.tolist())
    return Version(np.sort(rows), _cells(material, whole), int(need.sum()), len(added), tuple(told))


def _one_of_two(
    material: Material,
    request: EvaluationRequest,
    name: str,
    parts: Split,
    generator: np.random.Generator,
) -> Version:
    rows = parts.sample if name == BEFORE else parts.pool
    least = min(len(parts.sample), len(parts.pool))
    if not least:
        raise InputError(
            "no rows are left to train on: all those of the second table equal rows that the first "
            "one's test has; take a smaller --test, or tables with more columns."
        )
    drawn = rows
    if request.same_size and len(rows) > least:
        drawn = np.sort(generator.choice(rows, least, replace=False))
    return Version(drawn, _cells(material, rows))


def part_for_test(
    material: Material, request: EvaluationRequest, version: Version, repeat: int, size: float
) -> tuple[Rows, Rows]:
    """Part a version's rows: those to train on, and those for its own test."""
    generator = generator_for(request.seed, repeat, round(size * 1000), _TESTING)
    test, train = cut(material.unit[version.rows], [request.own_test / 100], generator)
    return version.rows[train], version.rows[test]


def _plan(
    material: Material,
    rows: Rows,
    request: EvaluationRequest,
    *,
    explain: bool = True,
    **how: Any,
) -> Plan:
    asked = PlanRequest(tolerance=request.tolerance, min_group=request.min_group, **how)
    return make_plan(material.count(rows), asked, explain=explain)


def _reachable(material: Material, sample: Rows, request: EvaluationRequest, **how: Any) -> Plan:
    """Plan with cells that some row of the table has.

    Groups that are too small to be judged are still part of larger ones, so a plan may want rows
    of their cells. If no row of the table is of one, such groups are left as they are, and the
    others are planned without them.
    """
    reached = sample[~_is_out_of_reach(material, sample, request)[material.cells[sample]]]
    try:
        plan = _plan(material, sample, request, **how)
    except Infeasible:
        if not 0 < len(reached) < len(sample):
            raise
    else:
        known = cells_of(material.counts)
        if all(cell in known for cell, n in cells_of(plan.add).items() if n) or not len(reached):
            return plan
    return _plan(material, reached, request, **how)


def _is_out_of_reach(
    material: Material, sample: Rows, request: EvaluationRequest
) -> NDArray[np.bool_]:
    """Which cells are of finest groups that are not judged and lack a label in the whole table."""
    place, shape = _places(material)
    here = _table(_cells(material, sample), place, shape)
    lacks = (_table(material.counts.rows, place, shape) == 0) & (here.sum(axis=0) > 0)
    return np.asarray((lacks.any(axis=1) & (here.sum(axis=1) < request.min_group))[place[0]])


def _what_there_is(
    material: Material, parts: Split, request: EvaluationRequest, need: Rows, labels: str
) -> Rows:
    """Say which rows to take of a pool that lacks some.

    Free label frequencies may have another repair, with the rows that the pool has. Where there
    is none, each group comes as near as it can, to the frequencies of the repair that lacks rows.
    """
    if labels == "free":
        pool = material.count(parts.pool)
        with contextlib.suppress(Infeasible):
            within = _plan(material, parts.sample, request, explain=False, labels=labels, pool=pool)
            return _by_cell(material, within.add)
    have, there = _cells(material, parts.sample), _cells(material, parts.pool)
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


def _places(material: Material) -> tuple[tuple[Rows, Rows], tuple[int, int]]:
    """For every cell its line and column in a table of groups and labels."""
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


def _by_cell(material: Material, change: Counts) -> Rows:
    """Give a change for each cell there is; refuse one for a cell that no row has."""
    lines = {cell: line for line, cell in enumerate(cells_of(material.counts))}
    wanted = np.zeros(len(lines), np.int64)
    for cell, n in cells_of(change).items():
        if n and cell not in lines:
            raise InputError(
                f"{material.name} has no row of {named(change, cell)} at all, and a repair needs "
                f"{n:,}; merge small groups, leave groups as small as this one out of the plan with "
                "--min-group, or ask for --versions u,reweighed."
            )
        if n:
            wanted[lines[cell]] = n
    return wanted


def _cell(material: Material, line: int) -> Any:
    codes = material.counts.codes[line].tolist()
    values = [a.values[c] for a, c in zip(material.counts.axes, codes, strict=True)]
    return named(material.counts, values)


def _cells(material: Material, rows: Rows) -> Rows:
    return np.bincount(material.cells[rows], minlength=len(material.counts.rows))
