"""Reweighing: a repair without new rows, by weights that bring every weighted UB to 0.

A row of the finest group s with the label y gets the weight n_s·n_y/(n·n_sy), the expected number
of rows divided by the actual one, which is 1/(1 − UB). Groups and labels keep their total weight.
Every cell needs at least one row, and the learner must accept weights. Where a few rows get large
weights, results depend on those few.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from equipoise.counts.rows import cells_of_rows
from equipoise.errors import InputError
from equipoise.lattice import Group
from equipoise.plans.patterns import group_of

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray

    from equipoise.counts import Counts


@dataclass(frozen=True, eq=False)
class Reweighing:
    """The weight of each cell, and the cells that have no rows to weigh.

    >>> from equipoise import Counts
    >>> hiring = Counts.from_mapping(
    ...     {("m", "hired"): 160, ("m", "not"): 290, ("w", "hired"): 40},
    ...     sensitive=["sex"],
    ...     label="outcome",
    ... )
    >>> for sentence in Reweighing.of(hiring).sentences:
    ...     print(sentence)
    The largest weight is 1.15, of sex=m, outcome=hired.
    1 cell has no rows to weigh, such as sex=w, outcome=not: UB is not 0 there, and rows must be \
added.
    """

    counts: Counts
    weights: NDArray[np.float64]  # of the rows of each cell
    empty: tuple[Group, ...]  # cells without rows, in groups that have rows

    @classmethod
    def of(cls, counts: Counts) -> Reweighing:
        """Weigh the cells of counts."""
        return cls(counts, cell_weights(counts), tuple(_empty_cells(counts)))

    @property
    def sentences(self) -> tuple[str, ...]:
        """The largest weight, and the cells that no weight can repair."""
        most = int(self.weights.argmax())
        cell = group_of(self.counts.axes, self.counts.codes[most].tolist())
        said = [f"The largest weight is {self.weights[most]:,.2f}, of {cell}."]
        if self.empty:
            n = len(self.empty)
            have = "1 cell has" if n == 1 else f"{n:,} cells have"
            said.append(
                f"{have} no rows to weigh, such as {self.empty[0]}: UB is not 0 there, and rows "
                "must be added."
            )
        return tuple(said)


def cell_weights(counts: Counts) -> NDArray[np.float64]:
    """Compute the weight of each cell: expected rows divided by actual rows, 1/(1 − UB)."""
    if counts.weights is not None:
        raise InputError(
            "these rows have weights already; count them without weights, and reweigh them then."
        )
    if not counts.n:
        raise InputError("there are no rows to weigh.")
    width = len(counts.sensitive)
    _, line = np.unique(counts.codes[:, :width], axis=0, return_inverse=True)
    line = line.ravel()
    group = np.bincount(line, counts.rows)[line]
    label = np.bincount(counts.codes[:, width], counts.rows)[counts.codes[:, width]]
    return np.asarray(group * label / (counts.rows * float(counts.n)))


def row_weights(table: pa.Table, counts: Counts) -> NDArray[np.float64]:
    """Compute the weight of each row of a table; 0 for rows that were not counted."""
    cells = cells_of_rows(table, counts)
    return np.where(cells < 0, 0.0, cell_weights(counts)[cells])


def _empty_cells(counts: Counts) -> list[Group]:
    groups, (rows, *_) = counts.finest()
    used = np.flatnonzero(rows.sum(axis=0))
    return [
        group_of(counts.axes, [*groups[line].tolist(), label])
        for line, label in np.argwhere(rows == 0).tolist()
        if label in used
    ]
