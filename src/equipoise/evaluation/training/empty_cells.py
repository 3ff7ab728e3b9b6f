"""Groups that no repair with real rows can reach, because the table has no row of one of their cells.

They are looked for in every split before any model is trained, so that nobody waits for an error.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from equipoise.errors import InputError
from equipoise.evaluation.request import MITIGATED, EvaluationRequest
from equipoise.evaluation.training.versions import make_version, split
from equipoise.lattice import Group
from equipoise.plain import rows_text
from equipoise.plans.infeasibility import Infeasible

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from equipoise.evaluation.training.material import Material

    Rows = NDArray[np.int64]

_ADDING = (*MITIGATED, "duplicated")  # the versions that add rows to cells


def require_repairable(material: Material, request: EvaluationRequest) -> None:
    """Refuse versions that need rows of a cell of which the table has none.

    The error names the group, its rows in the samples, and the ``min_group`` that would leave it
    out, or says that ``min_group`` leaves no group to repair.
    """
    versions = [v for v in request.chosen if v in _ADDING]
    if request.is_of_two or not versions:
        return
    lattice = list(_lattice(material))
    found = _look_through_samples(material, request, lattice)
    if found.largest_group < request.min_group:
        most = found.largest_group
        raise InputError(
            f"`min_group={request.min_group}` leaves no group to repair: it counts the rows of a "
            f"group in the initial sample ({_percent(request)} of the table), and in some repeat the "
            f"largest group has {rows_text(most)} there. Use `min_group={most}` or less, or a larger "
            "`sample`."
        )
    # A group without a label has a UB of 1, which a tolerance of 1 allows.
    if found.unreachable and request.tolerance < 1:
        raise InputError(_message(material, request, lattice, found, versions))


@dataclass(frozen=True, eq=False)
class _Groups:
    """The groups of some sensitive attributes.

    ``of_cell`` is the group of each cell, or -1 for a cell with a missing value; ``lacks`` says by
    group and label whether the table has no row of both.
    """

    patterns: tuple[Group, ...]
    of_cell: Rows
    lacks: NDArray[np.bool_]

    def sizes(self, cells: Rows) -> Rows:
        known = self.of_cell >= 0
        sums = np.bincount(self.of_cell[known], cells[known], minlength=len(self.patterns))
        return sums.astype(np.int64)


def _lattice(material: Material) -> Iterator[_Groups]:
    """Return the groups of every set of sensitive attributes; the finest come last."""
    counts = material.counts
    label = counts.codes[:, len(counts.sensitive)]
    there = material.is_known & (counts.rows > 0)
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
            lacks[of_cell[there], label[there]] = False
            yield _Groups(patterns, of_cell, lacks)


@dataclass(frozen=True)
class _Found:
    """What the samples have, over all repeats and sizes.

    ``largest_group`` and ``second_finest`` are the smallest numbers of rows that the largest group,
    and the second largest of the finest groups, have in a sample; ``unreachable`` has the largest
    number of rows of each group out of reach.
    """

    largest_group: int
    second_finest: int
    unreachable: dict[Group, int]


def _look_through_samples(
    material: Material, request: EvaluationRequest, lattice: Sequence[_Groups]
) -> _Found:
    unreachable: dict[Group, int] = {}
    top = second = material.n
    for repeat, size in itertools.product(range(request.repeats), request.sizes):
        cells = material.tally(split(material, request, repeat, size).sample)
        sizes = [groups.sizes(cells) for groups in lattice]
        top = min(top, max(int(s.max(initial=0)) for s in sizes))
        second = min(second, int(np.sort(np.append(sizes[-1], [0, 0]))[-2]))
        for groups, own in zip(lattice, sizes, strict=True):
            for place in _lacking(material, groups, own, cells, request):
                group = groups.patterns[place]
                unreachable[group] = max(unreachable.get(group, 0), int(own[place]))
    return _Found(top, second, unreachable)


def _lacking(
    material: Material, groups: _Groups, sizes: Rows, cells: Rows, request: EvaluationRequest
) -> list[int]:
    """Find the groups to repair without a row, in the whole table, of a label in the sample."""
    counts = material.counts
    there = material.is_known & (cells > 0)
    has = np.zeros(len(counts.label), np.bool_)
    has[counts.codes[there, len(counts.sensitive)]] = True
    lacks = (groups.lacks & has).any(axis=1)
    return np.flatnonzero(lacks & (sizes >= request.min_group)).tolist()


def _message(
    material: Material,
    request: EvaluationRequest,
    lattice: Sequence[_Groups],
    found: _Found,
    versions: Sequence[str],
) -> str:
    largest = found.unreachable
    most = max(largest.values())
    worst = min(largest, key=lambda g: (-largest[g], str(g)))
    more = (
        f"; {len(largest) - 1:,} more groups have no row of a label either"
        if len(largest) > 1
        else ""
    )
    said = (
        f"{material.name} has no row of {_absent_cell(material, lattice, worst)} at all, so a repair "
        f"cannot add any{more}. `min_group` counts the rows of a group in the initial sample "
        f"({_percent(request)} of the table), and {worst} has up to {rows_text(most)} there. "
    )
    other = "merge small groups, or train without added rows: `versions=['u', 'reweighed']`."
    # Tried out before it is advised: a plan may still want rows of groups that are left out, since
    # they belong to larger groups.
    without = replace(request, min_group=most + 1)
    if found.second_finest > most and _is_possible(material, without, versions):
        return f"{said}Leave groups of that size out of the repair with `min_group={most + 1}`, {other}"
    return f"{said}No `min_group` leaves two or more groups that can be repaired; {other}"


def _absent_cell(material: Material, lattice: Sequence[_Groups], group: Group) -> Group:
    label = material.counts.label
    groups = next(groups for groups in lattice if group in groups.patterns)
    lacks = groups.lacks[groups.patterns.index(group)]
    return Group({**group, label.name: label.values[int(lacks.argmax())]})


def _is_possible(material: Material, request: EvaluationRequest, versions: Sequence[str]) -> bool:
    """Return whether all versions can be made in the first repeat."""
    try:
        for size, version in itertools.product(request.sizes, versions):
            make_version(material, request, version, split(material, request, 0, size))
    except (Infeasible, InputError):
        return False
    return True


def _percent(request: EvaluationRequest) -> str:
    return " and ".join(f"{size:g} %" for size in request.sizes)
