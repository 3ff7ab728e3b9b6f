"""Choice of tables that have rows in common, each of which can be taken only once."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise.lake.cover.model import Clock
from equipoise.plans.highs import Answer, LinearModel

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from equipoise.lake.cover.worth import Real, Whole


_MOST_PARTS = 20_000
"""Maximum number of columns for rows in a model; with more, HiGHS may far exceed its time limit."""

_GAP = 0.002
"""Share of the cost that a choice may be above its bound: less takes HiGHS many times as long."""

_NOTHING = 1e-9
"""Share of a part that is taken for none."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Shared:
    """The table and cell of each row, and pairs of duplicates, of which only one can be taken."""

    table: Whole
    cell: Whole
    alike: Whole


@dataclass(frozen=True, eq=False)
class TableChoice:
    """Tables to open, rows to take where it matters which, and a lower bound on the cost.

    There are no tables if nothing was found in time, or if there are too many rows.
    """

    tables: list[int]
    rows: Whole
    bound: float


def cheapest_tables(
    shared: Shared, need: Whole, table_cost: Real, row_cost: Real, *, time_limit: float
) -> TableChoice:
    """Choose tables that meet the whole need, at the least cost found in time.

    The first two tables have the same two rows, so the more expensive third is opened as well:

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
    parts = _Parts.of(shared)
    if len(parts.table) > _MOST_PARTS:
        return TableChoice([], np.zeros(0, np.int64), 0.0)
    matrix, least = parts.lines(need, len(table_cost))
    cost = np.concatenate([row_cost[parts.table] * parts.rows, table_cost])
    scale = 1e3 / max(float(cost.sum()), 1e-9)  # HiGHS also stops at an absolute gap
    model, entry = LinearModel(cost * scale, low=0.0, high=1.0), matrix.tocoo()
    i, j = entry.coords
    model.add_rows(i, j, entry.data, low=least, high=np.full(len(least), np.inf))
    whole = np.flatnonzero(np.append(parts.row >= 0, np.ones(len(table_cost), np.bool_)))
    found = _solved(model, whole, Clock(time_limit))
    bound = found.bound / scale if math.isfinite(found.bound) else 0.0
    if found.columns is None:
        return TableChoice([], np.zeros(0, np.int64), bound)
    taken, opened = np.split(found.columns > 0.5, [len(parts.table)])
    rows = parts.row[taken & (parts.row >= 0)]
    return TableChoice(np.flatnonzero(opened).tolist(), np.sort(rows), bound)


def _solved(model: LinearModel, whole: Whole, clock: Clock) -> Answer:
    """Solve a model, first with what its relaxation takes, which is mostly enough and much less."""
    relaxed = model.solve(time_limit=clock.left)
    model.whole(whole)
    if relaxed.columns is None:
        return model.solve(time_limit=clock.left, gap=_GAP)
    every = np.arange(model.width)
    model.bound_columns(every, 0.0, relaxed.columns > _NOTHING)
    first = model.solve(time_limit=clock.left, gap=_GAP / 10)
    if first.cost * (1 - _GAP) <= relaxed.bound:
        return replace(first, bound=relaxed.bound)
    model.bound_columns(every, 0.0, 1.0)
    if first.columns is not None:
        model.start(first.columns)
    last = model.solve(time_limit=clock.left, gap=_GAP)
    # The time may have ended before the last search knew as much as the others.
    best = min(first, last, key=lambda answer: answer.cost)
    return replace(best, bound=max(last.bound, relaxed.bound))


@dataclass(frozen=True, eq=False, kw_only=True)
class _Parts:
    """Units that can be taken from a table, completely or in part.

    A part is all rows of a cell that have duplicates in the same tables; or a single row, if its
    duplicates are not duplicates of each other. Merging rows this way keeps the model small.
    """

    table: Whole
    cell: Whole
    rows: Whole
    """Number of rows of each part."""

    row: Whole
    """Number of the row if the part is a single row, otherwise -1."""

    group: Whole
    mate: Whole
    """Pairs of a group and a part of it; in sum at most one part of a group can be taken."""

    @classmethod
    def of(cls, shared: Shared) -> _Parts:
        """Group rows into parts."""
        from scipy import sparse
        from scipy.sparse.csgraph import connected_components

        n, (a, b) = len(shared.table), shared.alike.T
        links = sparse.csr_array((np.ones(len(a)), (a, b)), shape=(n, n))
        circle = connected_components(links, directed=False)[1].astype(np.int64)
        size = np.bincount(circle)
        each_with_each = np.bincount(circle[a], minlength=len(size)) == size * (size - 1) // 2
        first = np.zeros(len(size), np.int64)
        first[circle] = shared.cell
        # Duplicates in different cells meet different needs, so it matters which of them is taken.
        each_with_each[circle[shared.cell != first[circle]]] = False
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
        """Build ``matrix @ columns >= least``; the columns are shares of parts, and tables.

        The need of every cell is met, parts are taken only from open tables, and of each group
        at most one.
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
    """Count the cliques of duplicates by the tables and cells of their rows."""
    rows = np.flatnonzero(each_with_each[circle])
    rows = rows[np.argsort(circle[rows], kind="stable")]
    starts = np.flatnonzero(np.diff(circle[rows])) + 1
    tables, cells = (np.split(of[rows], starts) for of in (shared.table, shared.cell))
    return Counter(
        tuple(zip(t.tolist(), c.tolist(), strict=True)) for t, c in zip(tables, cells, strict=True)
    )
