"""Which tables to open where tables have rows in common, of which each is taken once."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise.plans.highs import solve_milp

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from equipoise.lake.cover.worth import Real, Whole


_MOST_PARTS = 20_000
"""HiGHS is asked about models with so many columns for rows at most; of larger ones it may take
far longer than it is given."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Shared:
    """The rows of some tables, and which of them are alike, so that only one can be taken.

    Attributes
    ----------
    table, cell
        Of which table each row is, and of which cell.
    alike
        Pairs of rows.
    """

    table: Whole
    cell: Whole
    alike: Whole


@dataclass(frozen=True, eq=False)
class TableChoice:
    """Tables to open.

    Attributes
    ----------
    tables
        Their numbers; none if nothing was found in time, or there are too many rows.
    rows
        Which rows to take of those that others are like, where it matters which.
    bound
        No choice costs less.
    """

    tables: list[int]
    rows: Whole
    bound: float


def cheapest_tables(
    shared: Shared, need: Whole, table_cost: Real, row_cost: Real, *, time_limit: float
) -> TableChoice:
    """Choose tables that have all that is needed, at the least cost that is found in time.

    Parameters
    ----------
    shared
        The rows that tables have, of cells that are needed.
    need
        How many rows of each cell are needed, no more than there are.
    table_cost, row_cost
        What it costs to open each table, and to take a row from it.
    time_limit
        After how many seconds HiGHS stops.

    Examples
    --------
    The first two tables have the same two rows, so the dearer third is opened beside one:

    >>> shared = Shared(
    ...     table=np.array([0, 0, 1, 1, 2, 2]),
    ...     cell=np.zeros(6, np.int64),
    ...     alike=np.array([[0, 2], [1, 3]]),
    ... )
    >>> cost = np.array([1.0, 1.0, 2.0])
    >>> choice = cheapest_tables(shared, np.array([4]), cost, np.zeros(3), time_limit=9)
    >>> len(choice.tables), 2 in choice.tables, round(choice.bound, 6)
    (2, True, 3.0)
    """
    from scipy.optimize import Bounds, LinearConstraint

    parts = _Parts.of(shared)
    if len(parts.table) > _MOST_PARTS:
        return TableChoice([], np.zeros(0, np.int64), 0.0)
    matrix, least = parts.lines(need, len(table_cost))
    cost = np.concatenate([row_cost[parts.table] * parts.rows, table_cost])
    scale = 1e3 / max(float(cost.sum()), 1e-9)  # HiGHS ends at an absolute distance
    found = solve_milp(
        cost * scale,
        integrality=np.concatenate([parts.row >= 0, np.ones(len(table_cost))]),
        bounds=Bounds(0, 1),
        constraints=LinearConstraint(matrix, least, np.inf),
        options={"time_limit": time_limit, "mip_rel_gap": 0.0},
    )
    bound = found.mip_dual_bound
    bound = bound / scale if bound is not None and math.isfinite(bound) else 0.0
    if found.x is None:
        return TableChoice([], np.zeros(0, np.int64), bound)
    taken, opened = np.split(found.x > 0.5, [len(parts.table)])
    rows = parts.row[taken & (parts.row >= 0)]
    return TableChoice(np.flatnonzero(opened).tolist(), np.sort(rows), bound)


@dataclass(frozen=True, eq=False, kw_only=True)
class _Parts:
    """What can be taken from a table, whole or in part.

    That is rows of a cell that others are like in the same tables, one by one; or a single row,
    if it is like others that are not alike.

    Attributes
    ----------
    table, cell, rows
        From which table, of which cell, and how many.
    row
        The row, if it is one; else −1.
    group, mate
        Of each group of parts that are alike, one at most can be taken in all: pairs of the
        number of a group and of a part.
    """

    table: Whole
    cell: Whole
    rows: Whole
    row: Whole
    group: Whole
    mate: Whole

    @classmethod
    def of(cls, shared: Shared) -> _Parts:
        """Sort rows into parts."""
        from scipy import sparse
        from scipy.sparse.csgraph import connected_components

        n, (a, b) = len(shared.table), shared.alike.T
        links = sparse.csr_array((np.ones(len(a)), (a, b)), shape=(n, n))
        circle = connected_components(links, directed=False)[1].astype(np.int64)
        size = np.bincount(circle)
        each_with_each = np.bincount(circle[a], minlength=len(size)) == size * (size - 1) // 2
        first = np.zeros(len(size), np.int64)
        first[circle] = shared.cell
        each_with_each[circle[shared.cell != first[circle]]] = False  # where the cell matters, too
        kinds = _kinds(shared, circle, each_with_each)
        parts = [(t, c, n, -1) for kind, n in kinds.items() for t, c in kind]
        group = np.repeat(np.arange(len(kinds)), [len(kind) for kind in kinds])
        single = np.flatnonzero(~each_with_each[circle])
        where = zip(shared.table[single].tolist(), shared.cell[single].tolist(), strict=True)
        parts += [(t, c, 1, row) for row, (t, c) in zip(single.tolist(), where, strict=True)]
        pairs = shared.alike[~each_with_each[circle[a]]]
        place = len(group) + np.searchsorted(single, pairs)
        table, cell, rows, row = np.array(parts, np.int64).reshape(-1, 4).T
        return cls(
            table=table,
            cell=cell,
            rows=rows,
            row=row,
            group=np.append(group, len(kinds) + np.repeat(np.arange(len(pairs)), 2)),
            mate=np.append(np.arange(len(group)), place.ravel()),
        )

    def lines(self, need: Whole, tables: int) -> tuple[Any, Real]:
        """``matrix @ columns >= least``: the columns are parts, as shares of them, and tables.

        Every cell must have all it needs, a part is taken only from an open table, and of a
        group only one.
        """
        from scipy import sparse

        n, ones = len(self.table), np.ones(len(self.table))
        _, cell = np.unique(self.cell, return_inverse=True)
        needed = sparse.csr_array((self.rows / need[self.cell], (cell, np.arange(n))))
        if_open = sparse.csr_array((ones, (np.arange(n), self.table)), shape=(n, tables))
        once = sparse.csr_array((-np.ones(len(self.mate)), (self.group, self.mate)))
        once = once[np.flatnonzero(np.bincount(self.group) > 1)]
        blocks: Any = [[needed, None], [-sparse.eye_array(n), if_open], [once, None]]
        least = np.repeat([1.0, 0.0, -1.0], [needed.shape[0], n, once.shape[0]])
        return sparse.block_array(blocks, format="csr"), least


def _kinds(
    shared: Shared, circle: Whole, each_with_each: NDArray[np.bool_]
) -> Counter[tuple[tuple[int, int], ...]]:
    """Count circles of rows that are all alike by their tables, and the cells they have there."""
    rows = np.flatnonzero(each_with_each[circle])
    rows = rows[np.argsort(circle[rows], kind="stable")]
    starts = np.flatnonzero(np.diff(circle[rows])) + 1
    tables, cells = (np.split(of[rows], starts) for of in (shared.table, shared.cell))
    return Counter(
        tuple(zip(t.tolist(), c.tolist(), strict=True)) for t, c in zip(tables, cells, strict=True)
    )
