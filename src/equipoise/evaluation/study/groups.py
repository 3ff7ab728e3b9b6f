"""The groups that results are given for: by sensitive attributes, and by attributes of ``also``."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise.lattice import Group
from equipoise.values import MISSING, Value

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from equipoise.evaluation.request import EvaluationRequest
    from equipoise.evaluation.training.material import Material

_LEAST_ROWS = 30  # a smaller group is not reported, since its scores would move with single rows
_MOST_GROUPS = 60  # of more groups, only the largest are reported


@dataclass(frozen=True, eq=False)
class ReportedGroups:
    """Groups, and which of the finest groups and cells belong to each."""

    names: tuple[str, ...]
    rows: tuple[int, ...]  # of the table
    members: NDArray[np.bool_]  # groups × finest groups
    is_sensitive: NDArray[np.bool_]  # defined by sensitive attributes only
    is_judged: NDArray[np.bool_]  # and without a missing value, as groups that are repaired
    cell_members: NDArray[np.bool_]  # groups × cells of a plan
    cell_label: NDArray[np.int64]  # of each cell

    def tally(self, outcomes: Iterable[Sequence[int]], labels: int) -> NDArray[np.int64]:
        """Add up outcomes to labels × predictions, for each group and last for all rows."""
        table = np.zeros((len(self.names) + 1, labels, labels), np.int64)
        for finest, label, predicted, n in outcomes:
            table[:-1, label, predicted] += n * self.members[:, finest]
            table[-1, label, predicted] += n
        return table

    def cell_sums(self, cells: NDArray[np.int64], labels: int) -> NDArray[np.int64]:
        """Add up the rows of cells to groups × labels."""
        by_label = cells[:, None] * (self.cell_label[:, None] == np.arange(labels))
        return np.asarray(self.cell_members @ by_label)

    def plain(self) -> list[dict[str, Any]]:
        """Return the groups as plain data."""
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
        _members(groups, material.groups),
        sensitive,
        sensitive & known,
        _members(groups, cells),
        np.asarray(label, np.int64),
    )


def _members(groups: Sequence[Group], parts: Sequence[Mapping[str, Value]]) -> NDArray[np.bool_]:
    found = [[group.matches(part) for part in parts] for group in groups]
    return np.array(found, np.bool_).reshape(len(groups), len(parts))  # there may be no group


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
