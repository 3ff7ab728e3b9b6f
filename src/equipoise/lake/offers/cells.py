"""In which cell each of some rows is."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from equipoise.counts import CountRequest, Counts
from equipoise.counts.columns import Coded, bin_codes, encode_arrow, numbers_in
from equipoise.values import MISSING

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray


def cell_numbers(rows: pa.Table, cells: Counts, request: CountRequest) -> NDArray[np.int64]:
    """Tell in which of the needed cells each row is; −1 if in none."""
    numbers = np.zeros(len(rows), np.int64)
    keys = np.zeros(len(cells.rows), np.int64)
    for i, axis in enumerate(cells.axes):
        values, codes = coded(rows, axis.name, request)
        place = {value: j for j, value in enumerate(axis.values)}
        known = [-1 if v is MISSING or v in request.na else place.get(v, -1) for v in values]
        own = np.array(known, np.int64)[codes]
        width = len(axis.values) + 1
        numbers = np.where((numbers < 0) | (own < 0), -1, numbers * width + own)
        keys = keys * width + cells.codes[:, i]
    order = np.argsort(keys)
    at = np.minimum(np.searchsorted(keys[order], numbers), len(keys) - 1)
    return np.where(keys[order][at] == numbers, order[at], -1)


def coded(rows: pa.Table, name: str, request: CountRequest) -> Coded:
    """Number the values of a column as counts know them, which is in bins if they are binned."""
    edges = request.bins.get(name)
    if isinstance(edges, tuple):
        return bin_codes(numbers_in(name, rows[name], request.na), edges)
    return encode_arrow(rows[name], None)
