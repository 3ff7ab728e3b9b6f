"""Which cell each row of a table belongs to."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from equipoise.counts.columns import Coded, bin_codes, encode_arrow, numbers_in, take
from equipoise.counts.cube import Counts
from equipoise.values import MISSING

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray


def cells_of_rows(table: pa.Table, counts: Counts) -> NDArray[np.int64]:
    """Give each row of a table, in its order, the number of its cell; −1 if it was not counted.

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
        size = len(axis) + 1  # and one for values that were not counted
        if space * size >= 2**62:  # number anew only the cells there are
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
