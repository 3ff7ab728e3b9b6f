"""Reasons for missing rows: each missing row is attributed to one reason."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise.errors import InputError
from equipoise.lake.cover.supply import whole_numbers

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from equipoise.lake.cover.worth import Whole

NO_TABLE = "no table offers them"
"""Reason for missing rows that no other reason accounts for."""


@dataclass(frozen=True)
class Lack:
    """A cell with fewer rows than needed; the rows of the reasons add up to the missing ones."""

    cell: int
    need: int
    found: int
    missing: int
    reasons: dict[str, int]

    def sentence(self, name: str) -> str:
        """Describe the lack, with the name of the cell."""
        why = "; ".join(f"{n:,}: {reason}" for reason, n in self.reasons.items())
        return (
            f"{name}: {self.found:,} of {self.need:,} rows found; {self.missing:,} missing ({why})."
        )

    def to_dict(self, name: str) -> dict[str, Any]:
        """Plain data, with the name of the cell."""
        return {**vars(self), "cell": name}


def explain_shortfall(
    need: ArrayLike, found: ArrayLike, lost: Mapping[str, ArrayLike]
) -> list[Lack]:
    """Explain the missing rows of each cell by the rows lost for each reason.

    A missing row is attributed to the first reason with rows left, so the order of the reasons
    matters. The remaining rows are attributed to :data:`NO_TABLE`.
    """
    needed, has = whole_numbers("need", need, 1), whole_numbers("found", found, 1)
    why = {reason: whole_numbers(reason, rows, 1) for reason, rows in lost.items()}
    for name, given in {"found": has, **why}.items():
        if len(given) != len(needed):
            raise InputError(
                f"{name!r} has {len(given)} cells but need has {len(needed)}; both must have the "
                "same cells."
            )
    return [
        _lack(cell, int(needed[cell]), int(has[cell]), why)
        for cell in np.flatnonzero(needed > has).tolist()
    ]


def _lack(cell: int, need: int, found: int, lost: Mapping[str, Whole]) -> Lack:
    left = need - found
    reasons: dict[str, int] = {}
    for reason, rows in lost.items():
        accounted = min(left, int(rows[cell]))
        if accounted:
            reasons[reason] = accounted
            left -= accounted
    if left:
        reasons[NO_TABLE] = left
    return Lack(cell, need, found, need - found, reasons)
