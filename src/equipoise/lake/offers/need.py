"""Rows that a plan needs: the cells that get rows, and the number of rows of each."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol

import numpy as np

from equipoise.counts import CountRequest, Counts
from equipoise.counts.rows import cells_of_rows
from equipoise.lattice import Group
from equipoise.values import MISSING, Value

if TYPE_CHECKING:
    import pyarrow as pa

    from equipoise.lake.cover.worth import Whole


EVERY_ROW = 2**40
"""A number of rows that no table has: as many as are there are needed."""


class Planned(Protocol):
    """The part of a plan that is carried out."""

    @property
    def counts(self) -> Counts:
        """Counts of the table that the plan was made for."""

    @property
    def add(self) -> Counts:
        """Number of rows of each cell to add."""

    @property
    def delete(self) -> Counts:
        """Number of rows of each cell to delete."""


@dataclass(frozen=True)
class Need:
    """Cells that get rows, the number of rows of each, and how rows are counted."""

    request: CountRequest
    cells: Counts

    @property
    def rows(self) -> Whole:
        """Number of rows needed of each cell."""
        return self.cells.rows

    @functools.cached_property
    def values(self) -> list[tuple[Value, ...]]:
        """The values of each cell."""
        return list(self.cells.cells())

    def named(self, i: int) -> Group:
        """Return a cell as a pattern."""
        return self.cells.pattern(self.values[i])

    def found_in(self, there: Mapping[tuple[Value, ...], int]) -> Whole:
        """Look up the rows of each needed cell; 0 for cells with a missing value."""
        return np.array([0 if MISSING in c else there.get(c, 0) for c in self.values], np.int64)

    def numbers(self, rows: pa.Table) -> Whole:
        """Return the number of the needed cell of each row; -1 for other rows."""
        # No row can be taken for a cell with a missing value, so none counts as being in it.
        whole = np.array([MISSING not in cell for cell in self.values], np.bool_)
        found = cells_of_rows(rows, self.cells)
        return np.where(np.append(whole, False)[found], found, -1)


def need_of(add: Counts, request: CountRequest) -> Need:
    """Keep the cells that get rows.

    >>> add = Counts.from_mapping({("w", "yes"): 3}, sensitive=["sex"], label="hired")
    >>> need = need_of(add, add.request_for_rows())
    >>> str(need.named(0)), need.rows
    ('sex=w, hired=yes', array([3]))
    """
    some = np.flatnonzero(add.rows > 0)
    edges = {name: bins for name, bins in request.bins.items() if isinstance(bins, tuple)}
    cells = replace(
        add,
        codes=add.codes[some],
        rows=add.rows[some],
        weights=None,
        missing_values={},
        dropped=0,
        bins=edges,
        request=request,
    )
    return Need(request, cells)
