"""The groups that results are given for: by sensitive attributes, and by attributes of ``also``."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise.lattice import Group
from equipoise.values import MISSING

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from equipoise.evaluation.request import EvaluationRequest
    from equipoise.evaluation.training.material import Material

LEAST_TESTED = 30
"""Minimum number of tested rows for a group to count in the largest |UB| of predictions."""

_LEAST_ROWS = 30  # a smaller group is not reported, since its scores would say nothing
_MOST_GROUPS = 60  # of more groups, only the largest are reported


@dataclass(frozen=True, eq=False)
class ReportedGroups:
    """Groups, and which of the finest groups and cells belong to each.

    Attributes
    ----------
    names, rows
        Pattern of each group, and its number of rows in the table.
    members
        Whether each finest group (column) belongs to each group (line).
    is_sensitive
        Whether a group is defined by sensitive attributes only.
    is_judged
        Whether it also has no missing value, as groups that are repaired.
    cell_members, cell_label
        Whether each cell of a plan belongs to each group, and the label of each cell.
    """

    names: tuple[str, ...]
    rows: tuple[int, ...]
    members: NDArray[np.bool_]
    is_sensitive: NDArray[np.bool_]
    is_judged: NDArray[np.bool_]
    cell_members: NDArray[np.bool_]
    cell_label: NDArray[np.int64]

    def tally(self, outcomes: Iterable[Sequence[int]], labels: int) -> NDArray[np.int64]:
        """Add up outcomes to labels × predictions, for each group and last for all rows."""
        table = np.zeros((len(self.names) + 1, labels, labels), np.int64)
        for finest, label, predicted, n in outcomes:
            table[:-1, label, predicted] += n * self.members[:, finest]
            table[-1, label, predicted] += n
        return table

    def cell_sums(self, cells: NDArray[np.int64], labels: int) -> NDArray[np.float64]:
        """Add up the rows of cells to groups × labels."""
        table = np.zeros((len(self.names), labels))
        for label in range(labels):
            here = self.cell_label == label
            table[:, label] = self.cell_members[:, here] @ cells[here]
        return table

    def plain(self) -> list[dict[str, Any]]:
        """Give the groups as plain data."""
        lines = zip(self.names, self.rows, self.is_sensitive.tolist(), strict=True)
        return [{"group": g, "rows": n, "sensitive": s} for g, n, s in lines]


def reported_groups(material: Material, request: EvaluationRequest) -> ReportedGroups:
    """Choose the groups: all by sensitive attributes, and one for each value of the others."""
    sizes = np.bincount(material.group, minlength=len(material.groups))
    found: dict[Group, int] = {}
    for finest, n in zip(material.groups, sizes.tolist(), strict=True):
        for group in _above(finest, request):
            found[group] = found.get(group, 0) + n
    largest = sorted((g for g, n in found.items() if n >= _LEAST_ROWS), key=lambda g: -found[g])
    kept = {*largest[:_MOST_GROUPS]}
    groups = [g for g in _in_order(found, request) if g in kept]
    members = np.array([[g.matches(f) for f in material.groups] for g in groups], np.bool_)
    members = members.reshape(len(groups), len(material.groups))
    sensitive = np.array([{*g} <= {*request.counting.sensitive} for g in groups], np.bool_)
    known = np.array([MISSING not in g.values() for g in groups], np.bool_)
    cells = [
        {a.name: a.values[c] for a, c in zip(material.counts.axes, codes, strict=True)}
        for codes in material.counts.codes.tolist()
    ]
    _, label = np.unique(
        material.counts.codes[:, len(material.counts.sensitive)], return_inverse=True
    )
    return ReportedGroups(
        tuple(str(g) for g in groups),
        tuple(found[g] for g in groups),
        members,
        sensitive,
        sensitive & known,
        np.array([[g.matches(c) for c in cells] for g in groups], np.bool_).reshape(
            len(groups), len(cells)
        ),
        np.asarray(label, np.int64),
    )


def _above(finest: Group, request: EvaluationRequest) -> list[Group]:
    """List the groups that contain a finest group and may be reported."""
    sensitive = request.counting.sensitive
    sets = [
        names
        for order in range(1, len(sensitive) + 1)
        for names in itertools.combinations(sensitive, order)
    ]
    return [
        Group({n: finest[n] for n in names}) for names in (*sets, *((n,) for n in request.also))
    ]


def _in_order(found: dict[Group, int], request: EvaluationRequest) -> list[Group]:
    """Sort groups: fewer attributes first, sensitive attributes before others, then by name."""
    place = {n: i for i, n in enumerate((*request.counting.sensitive, *request.also))}
    return sorted(found, key=lambda g: (len(g), sorted(place[n] for n in g), str(g)))
