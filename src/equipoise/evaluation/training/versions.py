"""Versions of a sample that models are trained on: unrepaired, repaired, and the baselines."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from equipoise.errors import InputError
from equipoise.evaluation.request import AFTER, BEFORE, MITIGATED, EvaluationRequest
from equipoise.evaluation.training.material import Material
from equipoise.evaluation.training.repairs import plan_repair, rows_by_cell, rows_within_pool
from equipoise.evaluation.training.splits import cut, generator_for
from equipoise.rows.draw import draw

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Rows = NDArray[np.int64]

_CUTTING, _DRAWING, _TESTING = 1, 2, 3  # independent random streams within a repeat


@dataclass(frozen=True, eq=False)
class Split:
    """Positions of the rows of one repeat: held-out test set, initial sample, and pool."""

    test: Rows
    sample: Rows
    pool: Rows
    repeat: int
    size: float  # of the sample, in percent of the table

    def generator(self, seed: int, stream: int) -> np.random.Generator:
        """Make a random number generator for one purpose in this split."""
        return generator_for(seed, self.repeat, round(self.size * 1000), stream)


@dataclass(frozen=True, eq=False)
class Version:
    """Rows to train and test on, and how they were made."""

    rows: Rows  # positions, sampled down to the size of the sample; repeated rows occur repeatedly
    cells: Rows  # rows of each cell, before they were sampled down
    need: int = 0  # rows that the plan asks for
    found: int = 0  # rows that were added or deleted
    # Cells of which the pool has too few rows, with the rows needed and available.
    lacks: tuple[tuple[str, int, int], ...] = ()


def split(material: Material, request: EvaluationRequest, repeat: int, size: float) -> Split:
    """Set the test set aside, then split the rest into the sample and the pool.

    A repeat sets the same rows aside for every size, and a larger sample contains all rows of a
    smaller one. Of two tables, the second is the pool, without the rows of the test set.
    """
    generator = generator_for(request.seed, repeat, _CUTTING)
    if not request.is_of_two:
        test, sample, pool = cut(material.unit, [request.test / 100, size / 100], generator)
        return Split(test, sample, pool, repeat, size)
    first, second = np.flatnonzero(~material.is_after), np.flatnonzero(material.is_after)
    parts = cut(material.unit[first], [request.test / 100], generator)
    test, sample = (first[part] for part in parts)
    apart = ~np.isin(material.unit[second], material.unit[test])
    return Split(test, sample, second[apart], repeat, size)


def make_version(
    material: Material, request: EvaluationRequest, name: str, parts: Split
) -> Version:
    """Make one version of the sample; raises Infeasible if there is no plan for it."""
    generator = parts.generator(request.seed, _DRAWING)
    sample = parts.sample
    if name in (BEFORE, AFTER):
        return _one_of_two(material, request, name, parts, generator)
    if name in (*MITIGATED, "duplicated"):
        return _with_added_rows(material, request, name, parts, generator)
    if name == "deleted":
        plan = plan_repair(material, request, sample, allow="delete")
        gone = draw(material.cells[sample], rows_by_cell(material, plan.delete), generator)
        rows = np.delete(sample, gone)
        return Version(rows, material.tally(rows), plan.deletions, len(gone))
    return Version(sample, material.tally(sample))


def _with_added_rows(
    material: Material,
    request: EvaluationRequest,
    name: str,
    parts: Split,
    generator: np.random.Generator,
) -> Version:
    """Add rows of the pool, or of the sample itself, and sample down to the original size."""
    repeats_rows = name == "duplicated"
    source = parts.sample if repeats_rows else parts.pool
    there = material.tally(source)
    labels = "free" if name == "n" else "keep"
    plan = plan_repair(material, request, parts.sample, labels=labels)
    need = taken = rows_by_cell(material, plan.add)
    # A row can be repeated any number of times, so only cells without rows fall short.
    short = np.flatnonzero((there == 0) & (need > 0) if repeats_rows else there < need)
    if not repeats_rows and len(short):
        taken = rows_within_pool(material, request, parts.sample, parts.pool, need, labels)
    added = source[draw(material.cells[source], taken, generator, again=repeats_rows)]
    whole = np.concatenate([parts.sample, added])
    rows = np.sort(generator.choice(whole, len(parts.sample), replace=False))
    cells, pattern = tuple(material.counts.cells()), material.counts.pattern
    lacks = tuple((str(pattern(cells[c])), int(need[c]), int(there[c])) for c in short.tolist())
    return Version(rows, material.tally(whole), int(need.sum()), len(added), lacks)


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
            "no rows are left to train on: all rows of the second table equal rows in the test set of "
            "the first; use a smaller `test`, or tables with more columns."
        )
    cells = material.tally(rows)
    if request.same_size and len(rows) > least:
        rows = np.sort(generator.choice(rows, least, replace=False))
    return Version(rows, cells)


def part_for_test(
    material: Material, request: EvaluationRequest, version: Version, parts: Split
) -> tuple[Rows, Rows]:
    """Split a version's rows into those to train on and its own test set."""
    generator = parts.generator(request.seed, _TESTING)
    test, train = cut(material.unit[version.rows], [request.own_test / 100], generator)
    return version.rows[train], version.rows[test]
