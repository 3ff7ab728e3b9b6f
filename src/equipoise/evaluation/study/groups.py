"""The groups results are given for: those of the sensitive attributes, and of some more."""

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

LEAST_ROWS = 30
"""A smaller group is not reported: its scores would say nothing."""

LEAST_TESTED = 30
"""A group with fewer tested rows is left out where the largest |UB| of predictions is asked for."""

MOST_GROUPS = 60
"""If there are more groups, the largest are reported."""


@dataclass(frozen=True, eq=False)
class Reported:
    """Groups, and which of the finest groups and cells belong to each.

    Attributes
    ----------
    names, rows
        Their patterns, and how many rows of the table each has.
    members
        A line a group, a column a finest group: whether it belongs to it.
    is_sensitive
        Whether a group fixes sensitive attributes only.
    is_judged
        Whether it also lacks no value, as a group that is repaired.
    cell_members, cell_label
        The same as members for the cells of the plan, and the label of each cell.
    """

    names: tuple[str, ...]
    rows: tuple[int, ...]
    members: NDArray[np.bool_]
    is_sensitive: NDArray[np.bool_]
    is_judged: NDArray[np.bool_]
    cell_members: NDArray[np.bool_]
    cell_label: NDArray[np.int64]

    def tally(self, outcomes: Iterable[Sequence[int]], labels: int) -> NDArray[np.int64]:
        """Add up outcomes: a table of labels and predictions for each group, then for all rows."""
        table = np.zeros((len(self.names) + 1, labels, labels), np.int64)
        for finest, label, predicted, n in outcomes:
            table[:-1, label, predicted] += n * self.members[:, finest]
            table[-1, label, predicted] += n
        return table

    def cell_sums(self, cells: NDArray[np.int64], labels: int) -> NDArray[np.float64]:
        """Add up rows of cells: groups × labels."""
        table = np.zeros((len(self.names), labels))
        for label in range(labels):
            here = self.cell_label == label
            table[:, label] = self.cell_members[:, here] @ cells[here]
        return table

    def plain(self) -> list[dict[str, Any]]:
        """As plain data."""
        lines = zip(self.names, self.rows, self.is_sensitive.tolist(), strict=True)
        return [{"group": g, "rows": n, "sensitive": s} for g, n, s in lines]


def reported_groups(material: Material, request: EvaluationRequest) -> Reported:
    """Choose the groups: all of the sensitive attributes, and each value of the others."""
    sizes = np.bincount(material.group, minlength=len(material.groups))
    found: dict[Group, int] = {}
    for finest, n in zip(material.groups, sizes.tolist(), strict=True):
        for group in _above(finest, request):
            found[group] = found.get(group, 0) + n
    largest = sorted((g for g, n in found.items() if n >= LEAST_ROWS), key=lambda g: -found[g])
    kept = {*largest[:MOST_GROUPS]}
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
    return Reported(
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
    """The groups a finest group is part of, as far as they are reported."""
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
    """Fewer attributes first, those of the plan before others, then by name."""
    place = {n: i for i, n in enumerate((*request.counting.sensitive, *request.also))}
    return sorted(found, key=lambda g: (len(g), sorted(place[n] for n in g), str(g)))
