"""Moves: rows added to, or deleted from, the cells of a pattern, and how they are split over these."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from equipoise.errors import InputError, PatternError
from equipoise.lattice import Group
from equipoise.plans.patterns import group_of
from equipoise.values import MISSING, plain

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from equipoise.counts import Counts

Kind: TypeAlias = Literal["add", "delete"]

CELLS = 10_000
"""Maximum number of cells over which the rows of a pattern without rows are split equally."""


@dataclass(frozen=True, eq=False)
class Move:
    """Rows to add to, or delete from, the cells of a pattern."""

    kind: Kind
    pattern: Group
    counts: Counts
    codes: NDArray[np.int32]  # the cells, one line each
    parts: NDArray[np.int64]  # present rows, by which the moved rows are split; 1 if none has any
    equally: bool = False  # no cell has rows

    @classmethod
    def parse(cls, text: str, counts: Counts) -> Move:
        """Read ``add PATTERN`` or ``delete PATTERN``."""
        kind, pattern = (*str(text).split(None, 1), "", "")[:2]
        if kind not in ("add", "delete"):
            raise InputError(
                f"the move {text!r} is neither an addition nor a deletion; write add or delete "
                "and a pattern, as in: add sex=Female, income=>50K."
            )
        return cls.of("add" if kind == "add" else "delete", pattern, counts)

    @classmethod
    def of(cls, kind: Kind, pattern: str, counts: Counts, *, missing: bool = True) -> Move:
        """The move of a pattern; without ``missing``, rows with missing values are left alone."""
        text, group = f"{kind} {pattern}", Group.parse(pattern)
        if not group:
            raise PatternError(
                f"the move {text!r} names no attribute; write a pattern, as in: {kind} sex=Female."
            )
        codes, rows = _cells(counts, group, missing=missing and kind == "delete")
        if rows.sum():
            return cls(kind, group, counts, codes, rows)
        if kind == "delete":
            raise InputError(f"{text!r} deletes nothing: no row of the table is {group}.")
        codes = _empty_cells(counts, group)
        return cls("add", group, counts, codes, np.ones(len(codes), np.int64), equally=True)

    def __str__(self) -> str:
        return f"{self.kind} {self.pattern}"

    @property
    def sign(self) -> int:
        """1 for an addition, −1 for a deletion."""
        return 1 if self.kind == "add" else -1

    @property
    def rows(self) -> int:
        """Number of rows of the pattern in the table."""
        return self.counts.of(self.pattern)

    def share(self, pattern: Group | str) -> Fraction:
        """The share of the moved rows that also match another pattern."""
        group = Group.parse(pattern) if isinstance(pattern, str) else pattern
        inside = np.ones(len(self.codes), np.bool_)
        for name, value in group.items():
            axis = self.counts.axis(name)
            inside &= self.codes[:, self.counts.axes.index(axis)] == axis.code(value)
        return Fraction(int(self.parts[inside].sum()), int(self.parts.sum()))

    @property
    def cells(self) -> list[tuple[Group, Fraction]]:
        """The cells and their shares of the moved rows, the largest first."""
        axes, total = self.counts.axes, int(self.parts.sum())
        return [
            (group_of(axes, self.codes[i].tolist()), Fraction(int(self.parts[i]), total))
            for i in np.argsort(-self.parts, kind="stable").tolist()
        ]

    def whole(self, rows: int) -> NDArray[np.int64]:
        """Split whole rows over the cells: each gets its share, rounded by the largest remainders."""
        total = int(self.parts.sum())
        # In whole numbers of Python: rows times parts can be more than 64 bits hold.
        split = [divmod(rows * part, total) for part in self.parts.tolist()]
        left = rows - sum(whole for whole, _ in split)
        largest = sorted(range(len(split)), key=lambda i: -split[i][1])[:left]
        found = np.array([whole for whole, _ in split], np.int64)
        found[largest] += 1
        return found

    @property
    def split(self) -> str | None:
        """A sentence on how the rows are split over several cells; None for one cell."""
        if len(self.codes) == 1:
            return None
        how = "equally, as none has rows" if self.equally else "in proportion to their present rows"
        shown = "; ".join(f"{cell} {float(share):.1%}" for cell, share in self.cells[:6])
        more = f"; and {len(self.codes) - 6:,} more" if len(self.codes) > 6 else ""
        return (
            f"The rows of “{self}” are split over {len(self.codes):,} cells, {how}: {shown}{more}."
        )

    def overlaps(self, other: Move) -> bool:
        """Whether the two moves change the same cell."""
        mine = set(map(tuple, self.codes.tolist()))
        return any(tuple(line) in mine for line in other.codes.tolist())

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return {
            "move": str(self),
            "kind": self.kind,
            "pattern": {k: plain(v) for k, v in self.pattern.items()},
            "rows": self.rows,
            "split": self.split,
            "cells": [
                {"cell": {k: plain(v) for k, v in cell.items()}, "share": float(share)}
                for cell, share in self.cells
            ],
        }


def _cells(
    counts: Counts, group: Group, *, missing: bool
) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """The cells of a pattern that have rows, and those of missing values it does not name if wanted."""
    chosen = counts.select(group)
    kept = np.ones(len(chosen.rows), np.bool_)
    for position, axis in enumerate(counts.axes):
        if not missing and axis.name not in group and MISSING in axis.codes:
            kept &= chosen.codes[:, position] != axis.codes[MISSING]
    return chosen.codes[kept], chosen.rows[kept]


def _empty_cells(counts: Counts, group: Group) -> NDArray[np.int32]:
    choices = [
        [axis.code(group[axis.name])]
        if axis.name in group
        else [code for value, code in axis.codes.items() if value is not MISSING]
        for axis in counts.axes
    ]
    size = math.prod(map(len, choices))
    if not 0 < size <= CELLS:
        raise InputError(
            f"no row of the table is {group}, and its {size:,} cells are too many to split rows "
            "over; name more attributes."
        )
    return (
        np.stack(np.meshgrid(*choices, indexing="ij"), axis=-1).reshape(size, -1).astype(np.int32)
    )
