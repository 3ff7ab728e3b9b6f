"""Units: sets of rows that must stay in one part of a split, such as duplicates or a person's rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from equipoise.counts.columns import encode_arrow
from equipoise.evaluation.request import EvaluationRequest
from equipoise.evaluation.training.copies import Copies, find_copies, same_rows
from equipoise.values import MISSING

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray

    Rows = NDArray[np.int64]


def find_duplicates(
    request: EvaluationRequest, values: NDArray[np.float64], label: Rows, group: Rows
) -> Copies:
    """Find duplicates among rows by what models see of them.

    Of two tables all equal rows are duplicates: a repair of a table contains rows of it.
    """
    seen = np.column_stack([values, label, group])
    if request.is_of_two:
        return find_copies(seen, "together")
    if same_rows(seen).max() == same_rows(seen[:, :-1]).max():
        # The group follows from other columns. Such a column has no neighbours that differ in it
        # alone, so it would hide what the others reveal about chance.
        seen = seen[:, :-1]
    return find_copies(seen, request.equal_rows)


def find_units(table: pa.Table, request: EvaluationRequest, copies: Copies) -> Rows:
    """Give the unit of each row: duplicates, and rows with the same value of ``keep_together``."""
    if request.keep_together is None:
        return copies.unit
    together = _units_in(table[request.keep_together], request.counting.na)
    return _joined(together, copies.unit) if copies.held else together


def _joined(first: Rows, second: Rows) -> Rows:
    """Merge units that have a row in common, directly or through other units."""
    from scipy.sparse import coo_matrix
    from scipy.sparse.csgraph import connected_components

    size = int(first.max()) + 1
    nodes = size + int(second.max()) + 1
    edges = coo_matrix((np.ones(len(first)), (first, size + second)), shape=(nodes, nodes))
    return np.asarray(connected_components(edges, directed=False)[1][first], np.int64)


def _units_in(column: pa.ChunkedArray, na: tuple[str, ...]) -> Rows:
    """Make a unit of each value; a row without a value is a unit of its own."""
    values, codes = encode_arrow(column, None)
    absent = np.array([v is MISSING or v in na for v in values])[codes]
    return np.where(absent, len(values) + np.arange(len(codes)), codes).astype(np.int64)
