"""The repair without new rows: a weight per row that brings every weighted UB to 0.

A row of the finest group s with the label y gets n_s·n_y/(n·n_sy), the rows expected over
those there are, which is 1/(1 − UB). Groups and labels keep their total weight. It needs a row
in every cell, and a tool that takes weights; where it gives few rows large weights, results
hang on those few.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from equipoise.counts import Counts
from equipoise.counts.columns import Coded, bin_codes, encode_arrow, numbers_in, take
from equipoise.errors import InputError
from equipoise.lattice import Group
from equipoise.values import MISSING

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class Reweighing:
    """The weight of each cell, and what it cannot do.

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

    Attributes
    ----------
    counts
        What was weighed.
    weights
        For each cell of the counts the weight of its rows.
    empty
        The cells without rows of groups that have rows.
    """

    counts: Counts
    weights: NDArray[np.float64]
    empty: tuple[Group, ...]

    @classmethod
    def of(cls, counts: Counts) -> Reweighing:
        """Weigh the cells of counts."""
        return cls(counts, cell_weights(counts), tuple(_empty_cells(counts)))

    @property
    def sentences(self) -> tuple[str, ...]:
        """The largest weight, and the cells that no weight helps."""
        most = int(self.weights.argmax())
        cell = _cell(self.counts, self.counts.codes[most].tolist())
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
    """Give for each cell the rows expected over the rows there are: 1/(1 − UB).

    >>> hiring = Counts.from_mapping(
    ...     {("m", "hired"): 160, ("m", "not"): 290, ("w", "hired"): 40, ("w", "not"): 110},
    ...     sensitive=["sex"],
    ...     label="outcome",
    ... )
    >>> cell_weights(hiring).round(3).tolist()
    [0.938, 1.034, 1.25, 0.909]
    """
    if counts.weights is not None:
        raise InputError("these rows have weights already; count them without, and weigh again.")
    if not counts.n:
        raise InputError("there are no rows to weigh.")
    width = len(counts.sensitive)
    _, line = np.unique(counts.codes[:, :width], axis=0, return_inverse=True)
    line = line.ravel()
    group = np.bincount(line, counts.rows)[line]
    label = np.bincount(counts.codes[:, width], counts.rows)[counts.codes[:, width]]
    return np.asarray(group * label / (counts.rows * float(counts.n)))


def row_weights(table: pa.Table, counts: Counts) -> NDArray[np.float64]:
    """Give each row of a table, in its order, the weight of its cell; 0 if it was not counted.

    >>> import pyarrow as pa
    >>> people = pa.table({"sex": ["m", "m", "w", "w"], "y": ["1", "1", "1", None]})
    >>> row_weights(people, Counts.from_frame(people, sensitive=["sex"], label="y")).tolist()
    [1.0, 1.0, 1.0, 0.0]
    """
    weights = cell_weights(counts)
    cells = np.zeros(len(weights), np.int64)
    rows = np.zeros(len(table), np.int64)
    space = 1
    for position, axis in enumerate(counts.axes):
        codes = _codes(table[axis.name], counts, position)
        size = len(axis) + 1  # and one for values that were not counted
        if space * size >= 2**62:  # number anew only the cells there are
            cells, rows, space = _renumbered(cells, rows)
        cells = cells * size + counts.codes[:, position]
        rows = rows * size + codes
        space *= size
    order = np.argsort(cells)
    place = np.minimum(np.searchsorted(cells, rows, sorter=order), len(cells) - 1)
    found = order[place]
    return np.where(cells[found] == rows, weights[found], 0.0)


def _renumbered(
    cells: NDArray[np.int64], rows: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64], int]:
    values, numbers = np.unique(np.concatenate([cells, rows]), return_inverse=True)
    return numbers[: len(cells)], numbers[len(cells) :], len(values)


def _codes(column: pa.ChunkedArray, counts: Counts, position: int) -> NDArray[np.int32]:
    """Number the values of a column as an axis does, and others by one number more."""
    axis = counts.axes[position]
    binned = axis.name in counts.bins
    values, codes = _coded(column, counts, axis.name)
    na = () if binned or counts.request is None else counts.request.na
    known = (axis.codes.get(MISSING if v in na else v, len(axis)) for v in values)
    return take(list(known), codes)


def _coded(column: pa.ChunkedArray, counts: Counts, name: str) -> Coded:
    if name not in counts.bins:
        return encode_arrow(column, None)
    na = () if counts.request is None else counts.request.na
    return bin_codes(numbers_in(name, column, na), counts.bins[name])


def _empty_cells(counts: Counts) -> list[Group]:
    groups, (rows, *_) = counts.finest()
    used = np.flatnonzero(rows.sum(axis=0))
    return [
        _cell(counts, [*groups[line].tolist(), label])
        for line, label in np.argwhere(rows == 0).tolist()
        if label in used
    ]


def _cell(counts: Counts, codes: list[int]) -> Group:
    return Group({a.name: a.values[c] for a, c in zip(counts.axes, codes, strict=True)})
