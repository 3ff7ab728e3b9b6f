"""Which cell each row of a table belongs to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from equipoise.counts.columns import bin_codes, encode_arrow, numbers_in, take
from equipoise.counts.cube import Counts
from equipoise.values import MISSING

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray


def cells_of_rows(table: pa.Table, counts: Counts) -> NDArray[np.int64]:
    """Return the number of each row's cell, in the order of the rows; −1 if it was not counted.

    The number is the line of the cell in ``counts.codes`` and ``counts.rows``.

    >>> import pyarrow as pa
    >>> people = pa.table({"sex": ["m", "w", "m", "w"], "y": ["1", "1", "1", None]})
    >>> cells_of_rows(people, Counts.from_frame(people, sensitive=["sex"], label="y")).tolist()
    [0, 1, 0, -1]
    """
    if not len(counts.rows):
        return np.full(len(table), -1, np.int64)
    cells = np.zeros(len(counts.rows), np.int64)
    rows = np.zeros(len(table), np.int64)
    space = 1
    for position, axis in enumerate(counts.axes):
        codes = _codes(table[axis.name], counts, position)
        size = len(axis) + 1  # one more for values that were not counted
        if space * size >= 2**62:  # keys would overflow: renumber those that occur
            cells, rows, space = _renumbered(cells, rows)
        cells = cells * size + counts.codes[:, position]
        rows = rows * size + codes
        space *= size
    order = np.argsort(cells)
    place = np.minimum(np.searchsorted(cells, rows, sorter=order), len(cells) - 1)
    found = order[place]
    return np.where(cells[found] == rows, found, -1)


def _renumbered(
    cells: NDArray[np.int64], rows: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64], int]:
    values, numbers = np.unique(np.concatenate([cells, rows]), return_inverse=True)
    return numbers[: len(cells)], numbers[len(cells) :], len(values)


def _codes(column: pa.ChunkedArray, counts: Counts, position: int) -> NDArray[np.int32]:
    """The codes of a column's values on an axis; values that are not on it get one code more."""
    axis = counts.axes[position]
    na: Sequence[str] = () if counts.request is None else counts.request.na
    if axis.name in counts.bins:
        values, codes = bin_codes(numbers_in(axis.name, column, na), counts.bins[axis.name])
        na = ()  # numbers_in has already read them as missing
    else:
        values, codes = encode_arrow(column, None)
    known = (axis.codes.get(MISSING if v in na else v, len(axis)) for v in values)
    return take(list(known), codes)
