"""Uniform Bias of every group and label, before and after one plan or several."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise.errors import LatticeTooLarge
from equipoise.lattice import Group, roll_up
from equipoise.measures.uniform_bias import ub_of
from equipoise.plans.patterns import group_of
from equipoise.plans.problem import known_rows
from equipoise.values import Value, plain

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from equipoise.counts import Counts

MEMORY = 1_000_000_000
"""Maximum memory of the lattice, in bytes; above it only the finest groups are measured."""


@dataclass(frozen=True)
class PlannedBias:
    """UB of a group and label before and after, each against its own table's label frequencies."""

    group: Group
    label: Value
    before: float  # nan where undefined
    after: tuple[float, ...]  # one for each plan

    @property
    def change(self) -> float:
        """The largest difference between two of these numbers."""
        known = [v for v in (self.before, *self.after) if not math.isnan(v)]
        return max(known) - min(known) if known else 0.0

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return {
            "group": {name: plain(value) for name, value in self.group.items()},
            "label": plain(self.label),
            "before": plain(self.before),
            "after": [plain(ub) for ub in self.after],
        }


@dataclass(frozen=True, eq=False, kw_only=True)
class PlannedBiases:
    """UB of all groups and labels, those that change most first."""

    counts: Counts  # before, with the rows that are measured
    lines: NDArray[np.int32]  # the groups
    ub: NDArray[np.float64]  # by table, group and label
    order: NDArray[np.intp]  # of group × labels + label
    told: Value | None  # with two labels the rarer one, since the other mirrors it
    is_complete: bool  # whether the whole lattice was measured, or only the finest groups

    def __len__(self) -> int:
        """Number of groups, each with every label that is not the mirror of another."""
        return len(self._telling)

    @functools.cached_property
    def rows(self) -> tuple[PlannedBias, ...]:
        """Every group and label."""
        return self._made(self.order)

    def telling(self, top: int | None = None) -> tuple[PlannedBias, ...]:
        """The first rows, without those that mirror others."""
        return self._made(self._telling[:top])

    @property
    def _telling(self) -> NDArray[np.intp]:
        if self.told is None:
            return self.order
        label = self.counts.label
        return np.asarray(self.order[self.order % len(label) == label.code(self.told)])

    def _made(self, places: NDArray[np.intp]) -> tuple[PlannedBias, ...]:
        """Make rows only of what is asked for: a lattice can have a million of them."""
        axes, values = self.counts.sensitive, self.counts.label.values
        made = []
        for place in places.tolist():
            line, y = divmod(place, len(values))
            before, *after = self.ub[:, line, y].tolist()
            group = group_of(axes, self.lines[line].tolist())
            made.append(PlannedBias(group, values[y], before, tuple(after)))
        return tuple(made)


def planned_biases(
    before: Counts, after: Sequence[Counts], *, plan_missing: bool = False
) -> PlannedBiases:
    """Measure all groups before and after; without ``plan_missing``, rows with missing values are left out.

    >>> from equipoise.counts import Counts
    >>> rows = {("m", "y"): 6, ("m", "n"): 4, ("w", "y"): 2, ("w", "n"): 8}
    >>> counts = Counts.from_mapping(rows, sensitive=["sex"], label="hired")
    >>> for row in planned_biases(counts, [counts + counts.select("sex=m")]).telling():
    ...     print(row.group, row.label, round(row.before, 3), round(row.after[0], 3))
    sex=m y -0.5 -0.286
    sex=w y 0.5 0.571
    """
    known = [known_rows(c, plan_missing=plan_missing)[0] for c in (before, *after)]
    first = known[0]
    codes, tables = _tables([first, *(c.with_axes(first) for c in known[1:])])
    lines, sums, is_complete = _rolled_up(first, codes, tables)
    ub = np.stack([_ub(rows, t.sum(axis=0)) for rows, t in zip(sums, tables, strict=True)])
    totals = np.array([t.sum(axis=0) for t in tables])
    present = np.flatnonzero(totals.any(axis=0))
    told = None
    if len(present) == 2:
        told = first.label.values[int(present[totals[0, present].argmin()])]
    return PlannedBiases(
        counts=first,
        lines=lines,
        ub=ub,
        order=_order(ub, present),
        told=told,
        is_complete=is_complete,
    )


def _order(ub: NDArray[np.float64], present: NDArray[np.intp]) -> NDArray[np.intp]:
    """The groups and labels by the largest difference between their tables; absent labels are left out."""
    known = ~np.isnan(ub)
    most = np.where(known, ub, -np.inf).max(axis=0)
    least = np.where(known, ub, np.inf).min(axis=0)
    change = np.where(known.any(axis=0), most - least, 0.0)
    places = np.argsort(-change, axis=None, kind="stable")
    return places[np.isin(places % ub.shape[2], present)]


def _tables(counts: Sequence[Counts]) -> tuple[NDArray[np.int32], list[NDArray[np.int64]]]:
    """The finest groups of all tables, and the rows of each table by group and label."""
    every = np.concatenate([c.codes[:, :-1] for c in counts])
    codes, place = np.unique(every, axis=0, return_inverse=True)
    tables, start = [], 0
    for each in counts:
        table = np.zeros((len(codes), len(each.label)), np.int64)
        lines = place.ravel()[start : start + len(each.rows)]
        np.add.at(table, (lines, each.codes[:, -1]), each.rows)
        tables.append(table)
        start += len(each.rows)
    return codes.astype(np.int32), tables


def _rolled_up(
    counts: Counts, codes: NDArray[np.int32], tables: list[NDArray[np.int64]]
) -> tuple[NDArray[np.int32], list[NDArray[np.int64]], bool]:
    together = np.sum(tables, axis=0)  # first, so that a group that is empty in one table is there
    sizes = [len(a) for a in counts.sensitive]
    try:
        lattice = roll_up(codes, sizes, [together, *tables], memory=MEMORY)
    except LatticeTooLarge:
        return codes, tables, False
    return lattice.codes, list(lattice.columns[1:]), True


def _ub(rows: NDArray[np.int64], labels: NDArray[np.int64]) -> NDArray[np.float64]:
    n_g = rows.sum(axis=1, keepdims=True)
    return np.asarray(ub_of(n=labels.sum(), n_y=labels, n_g=n_g, n_gy=rows))
