"""Groups that no repair with real rows can reach, since the table has no row of one of their cells.

They are looked for in every split before any model is trained, so that nobody waits for an error.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from equipoise.errors import InputError
from equipoise.evaluation.request import MITIGATED, EvaluationRequest
from equipoise.evaluation.training.versions import make_version, split
from equipoise.lake.repair.planned import rows_text
from equipoise.lattice import Group
from equipoise.plans.infeasibility import Infeasible

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from equipoise.evaluation.training.material import Material

    Rows = NDArray[np.int64]

ADDING = (*MITIGATED, "duplicated")
"""The versions that add rows to cells."""


@dataclass(frozen=True, eq=False)
class _Groups:
    """The groups of some sensitive attributes, by the cells each is made of.

    Attributes
    ----------
    patterns
        The groups.
    of_cell
        The group of each cell, or -1 for a cell that lacks a value.
    lacks
        Groups × labels: whether the table has no row of both.
    """

    patterns: tuple[Group, ...]
    of_cell: Rows
    lacks: NDArray[np.bool_]

    def sizes(self, cells: Rows) -> Rows:
        """Add up rows of cells by group."""
        known = self.of_cell >= 0
        return np.bincount(self.of_cell[known], cells[known], minlength=len(self.patterns)).astype(
            np.int64
        )


def require_repairable(material: Material, request: EvaluationRequest) -> None:
    """Refuse versions that need rows of a cell of which the table has none.

    Raises
    ------
    InputError
        Says which group it is, how many rows it has in the samples, and which ``min_group``
        would leave it out; or that ``min_group`` leaves no group to repair.
    """
    versions = [v for v in request.chosen if v in ADDING]
    if request.is_of_two or not versions:
        return
    lattice = list(_lattice(material))
    largest: dict[Group, int] = {}
    top = second = material.n  # the largest group and the second largest of the finest, at least
    for cells in _samples(material, request):
        sizes = [groups.sizes(cells) for groups in lattice]
        top = min(top, max(int(s.max(initial=0)) for s in sizes))
        second = min(second, int(np.sort(np.append(sizes[-1], [0, 0]))[-2]))
        for groups, own in zip(lattice, sizes, strict=True):
            for place in _lacking(material, groups, own, cells, request):
                group = groups.patterns[place]
                largest[group] = max(largest.get(group, 0), int(own[place]))
    _require_some_group(request, top)
    if largest and request.tolerance < 1:  # a group without a label has a UB of 1
        raise InputError(_told(material, request, lattice, largest, versions, second))


def _lattice(material: Material) -> Iterator[_Groups]:
    """The groups of every set of sensitive attributes."""
    counts = material.counts
    label = counts.codes[:, len(counts.sensitive)]
    for order in range(1, len(counts.sensitive) + 1):
        for places in itertools.combinations(range(len(counts.sensitive)), order):
            chosen = counts.codes[:, places]
            codes, line = np.unique(chosen[material.is_known], axis=0, return_inverse=True)
            of_cell = np.full(len(chosen), -1, np.int64)
            of_cell[material.is_known] = line.ravel()
            axes = [counts.sensitive[i] for i in places]
            patterns = tuple(
                Group({a.name: a.values[c] for a, c in zip(axes, codes_of, strict=True)})
                for codes_of in codes.tolist()
            )
            lacks = np.ones((len(patterns), len(counts.label)), np.bool_)
            there = material.is_known & (counts.rows > 0)
            lacks[of_cell[there], label[there]] = False
            yield _Groups(patterns, of_cell, lacks)


def _samples(material: Material, request: EvaluationRequest) -> Iterator[Rows]:
    """Count the cells of every initial sample."""
    for repeat in range(request.repeats):
        for size in request.sizes:
            sample = split(material, request, repeat, size).sample
            yield np.bincount(material.cells[sample], minlength=len(material.counts.rows))


def _lacking(
    material: Material, groups: _Groups, sizes: Rows, cells: Rows, request: EvaluationRequest
) -> list[int]:
    """The groups of a sample that are to be repaired and lack a label that the sample has."""
    counts = material.counts
    label = counts.codes[:, len(counts.sensitive)]
    there = material.is_known & (cells > 0)
    has = np.zeros(len(counts.label), np.bool_)
    has[label[there]] = True
    lacks = (groups.lacks & has).any(axis=1)
    return np.flatnonzero(lacks & (sizes >= request.min_group)).tolist()


def _require_some_group(request: EvaluationRequest, most: int) -> None:
    if most < request.min_group:
        raise InputError(
            f"--min-group {request.min_group:,} leaves no group to repair: it counts the rows of a "
            f"group in the initial sample ({_percent(request)} of the table), and in some repeat the "
            f"largest group has {rows_text(most)} there. Use --min-group {most:,} or less, or a larger "
            "--sample."
        )


def _told(
    material: Material,
    request: EvaluationRequest,
    lattice: list[_Groups],
    largest: dict[Group, int],
    versions: list[str],
    second: int,
) -> str:
    most = max(largest.values())
    worst = min(largest, key=lambda g: (-largest[g], str(g)))
    more = f"; {len(largest) - 1:,} more groups lack a label, too" if len(largest) > 1 else ""
    said = (
        f"{material.name} has no row of {_absent_cell(material, lattice, worst)} at all, so a repair "
        f"cannot add any{more}. --min-group counts the rows of a group in the initial sample "
        f"({_percent(request)} of the table), and {worst} has up to {rows_text(most)} there. "
    )
    other = "merge small groups, or train without added rows: --versions u,reweighed."
    if second > most and _is_possible(material, replace(request, min_group=most + 1), versions):
        return f"{said}Leave groups of that size out of the repair with --min-group {most + 1:,}, {other}"
    return f"{said}No --min-group leaves two groups or more that can be repaired; {other}"


def _absent_cell(material: Material, lattice: list[_Groups], group: Group) -> Group:
    label = material.counts.label
    for groups in lattice:
        if group in groups.patterns:
            lacks = groups.lacks[groups.patterns.index(group)]
            return Group({**group, label.name: label.values[int(lacks.argmax())]})
    raise AssertionError(group)


def _is_possible(material: Material, request: EvaluationRequest, versions: list[str]) -> bool:
    """Tell whether all versions can be made, as far as the first repeat tells."""
    try:
        for size in request.sizes:
            parts = split(material, request, 0, size)
            for version in versions:
                make_version(material, request, version, parts, 0, size)
    except (Infeasible, InputError):
        return False
    return True


def _percent(request: EvaluationRequest) -> str:
    return " and ".join(f"{size:g} %" for size in request.sizes)
