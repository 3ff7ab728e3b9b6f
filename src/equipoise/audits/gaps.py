"""The gaps of a table: missing values, empty cells, and groups that are too small to say anything."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from equipoise.audits.subject import Subject
from equipoise.lattice import Group
from equipoise.measures.display import percent
from equipoise.measures.measurement import group_of
from equipoise.measures.sentences import hints
from equipoise.plain import Grid, counted, rows_text
from equipoise.values import MISSING

_LISTED = 20


@dataclass(frozen=True)
class Gaps:
    """What a table lacks; numbers that small counts could be derived from are None."""

    missing: tuple[tuple[str, int | None], ...]
    """Rows without a value, by column."""
    rows: int
    """All rows that were read."""
    dropped: int
    """Rows that were left out because of a missing value."""
    absent: int | None
    """Combinations of known values without any row."""
    empty: tuple[tuple[str, int], ...] | None
    """Empty cells of groups that have rows, with the rows of the group, the largest first."""
    empty_cells: int | None
    too_small: int
    """Pairs of a group and a label for which even the most extreme outcome could be chance."""
    hints: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Plain data, for JSON."""
        empty = None if self.empty is None else [{"cell": c, "n_group": n} for c, n in self.empty]
        return {
            "missing_values": dict(self.missing),
            "rows": self.rows,
            "dropped": self.dropped,
            "absent_groups": self.absent,
            "empty_cells": self.empty_cells,
            "largest_empty": empty,
            "too_small": self.too_small,
        }

    @property
    def grid(self) -> Grid:
        """Missing values by column."""
        rows = tuple(
            (name, "–", "–") if n is None else (name, f"{n:,}", percent(n / self.rows))
            for name, n in self.missing
        )
        return Grid(("column", "missing values", "share of rows"), rows, frozenset({1, 2}))

    @property
    def empty_grid(self) -> Grid | None:
        """The empty cells of the largest groups."""
        if not self.empty:
            return None
        rows = tuple((cell, f"{n:,}") for cell, n in self.empty)
        return Grid(("cell without rows", "rows of its group"), rows, frozenset({1}))

    def sentences(self, label: str) -> list[str]:
        """The gaps in sentences."""
        said = []
        if self.dropped:
            is_ = "is" if self.dropped == 1 else "are"
            said.append(f"{rows_text(self.dropped)} without a value of {label!r} {is_} left out.")
        if self.absent:
            have = "has" if self.absent == 1 else "have"
            said.append(
                f"{counted(self.absent, 'combination')} of known values of the attributes {have} no rows at all."
            )
        if self.empty_cells is not None:
            shown = len(self.empty or ())
            which = (
                f"; the table shows those of the {shown} largest groups"
                if shown < self.empty_cells
                else ""
            )
            have = "has" if self.empty_cells == 1 else "have"
            said.append(
                f"{counted(self.empty_cells, 'cell')} of groups that have rows {have} none: the group "
                f"lacks a label altogether{which}."
                if self.empty_cells
                else "Every group that has rows has rows of every label."
            )
        else:
            said.append("Empty cells are not listed, because small counts are hidden.")
        if self.too_small:
            said.append(
                f"For {counted(self.too_small, 'pair')} of a group and a label, even the most extreme "
                "outcome could be chance: the group is too small to say anything."
            )
        return [*said, *self.hints]


def find_gaps(subject: Subject) -> Gaps:
    """Find the gaps of a table."""
    counts, table = subject.counts, subject.table
    told = table.counts.missing_values  # without those that would reveal small counts
    missing = tuple((a.name, told.get(a.name, None if counts.missing_values.get(a.name) else 0))
                    for a in counts.axes)  # fmt: skip
    hidden = subject.options.suppress_below is not None
    small = int(table.pairs.noted("too small to say").sum())
    rows = counts.n + counts.dropped
    if hidden:
        return Gaps(missing, rows, counts.dropped, None, None, None, small)
    absent, empty = _empty_cells(subject)
    said = tuple(f"Perhaps a missing value: {hint}" for hint in hints(counts))
    return Gaps(missing, rows, counts.dropped, absent, empty[:_LISTED], len(empty), small, said)


def _empty_cells(subject: Subject) -> tuple[int, tuple[tuple[str, int], ...]]:
    counts = subject.counts
    groups, (pivot, *_) = counts.finest()
    known = np.ones(len(groups), np.bool_)
    for place, axis in enumerate(counts.sensitive):
        known &= groups[:, place] != axis.codes.get(MISSING, -1)
    sizes = [sum(value is not MISSING for value in axis.values) for axis in counts.sensitive]
    groups, pivot = groups[known], pivot[known]
    rows = pivot.sum(axis=1)
    group, label = np.nonzero(pivot == 0)
    order = np.argsort(-rows[group], kind="stable")
    name = counts.label.name
    cells = tuple(
        (str(Group({**group_of(counts, groups[g]), name: counts.label.values[y]})), int(rows[g]))
        for g, y in zip(group[order].tolist(), label[order].tolist(), strict=True)
    )
    return math.prod(sizes) - len(groups), cells
