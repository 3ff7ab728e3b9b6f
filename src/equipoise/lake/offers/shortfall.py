"""Why needed rows were not found: every missing row is put down to one reason."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from equipoise.errors import InputError
from equipoise.lake.cover.supply import whole_numbers

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from equipoise.lake.cover.worth import Whole

NO_TABLE = "no table offers them"
"""Why rows are missing that nothing else accounts for."""


@dataclass(frozen=True)
class Lack:
    """A cell with fewer rows than needed, and why.

    Attributes
    ----------
    cell
        Its number.
    need, found, missing
        How many rows.
    reasons
        How many of the missing rows each reason accounts for; they add up to all.
    """

    cell: int
    need: int
    found: int
    missing: int
    reasons: dict[str, int]

    def sentence(self, name: str) -> str:
        """Say it to a person, with the name of the cell.

        >>> Lack(0, 10, 3, 7, {"duplicates": 5, NO_TABLE: 2}).sentence("sex=Female, hired=yes")
        'sex=Female, hired=yes: 3 of 10 rows found; 7 missing (5: duplicates; 2: no table offers them).'
        """
        why = "; ".join(f"{n}: {reason}" for reason, n in self.reasons.items())
        return f"{name}: {self.found} of {self.need} rows found; {self.missing} missing ({why})."


def explain_shortfall(
    need: ArrayLike, found: ArrayLike, lost: Mapping[str, ArrayLike]
) -> list[Lack]:
    """Say for each cell that lacks rows how many, and why.

    Parameters
    ----------
    need, found
        How many rows of each cell were needed and found.
    lost
        For each reason how many rows of each cell were lost to it. A missing row is put down
        to the first reason that has rows left; what remains, no table offers.

    Returns
    -------
    list of Lack
        One for each cell with missing rows.

    Examples
    --------
    >>> lacks = explain_shortfall([5, 9], [5, 2], {"duplicates": [3, 4], "over budget": [0, 9]})
    >>> [(lack.cell, lack.missing, lack.reasons) for lack in lacks]
    [(1, 7, {'duplicates': 4, 'over budget': 3})]
    """
    needed, has = whole_numbers("need", need, 1), whole_numbers("found", found, 1)
    why = {reason: whole_numbers(reason, rows, 1) for reason, rows in lost.items()}
    for name, given in {"found": has, **why}.items():
        if len(given) != len(needed):
            raise InputError(
                f"{name!r} is of {len(given)} cells and need of {len(needed)}; both must be of "
                "the same cells."
            )
    return [
        _lack(int(cell), int(needed[cell]), int(has[cell]), why)
        for cell in np.flatnonzero(needed > has)
    ]


def _lack(cell: int, need: int, found: int, lost: Mapping[str, Whole]) -> Lack:
    left = need - found
    reasons: dict[str, int] = {}
    for reason, rows in lost.items():
        put_down = min(left, int(rows[cell]))
        if put_down:
            reasons[reason] = put_down
            left -= put_down
    if left:
        reasons[NO_TABLE] = reasons.get(NO_TABLE, 0) + left
    return Lack(cell, need, found, need - found, reasons)
