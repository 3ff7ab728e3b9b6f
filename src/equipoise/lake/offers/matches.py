"""Equal rows of tables, found once and then looked up."""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Callable, MutableMapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from equipoise.lake.offers.fingerprints import Hashes, RowHashes
from equipoise.progress import pulse

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from equipoise.lake.cover.worth import Whole

    _Lines: TypeAlias = tuple[Whole, Whole]

Shared: TypeAlias = Callable[[RowHashes, RowHashes], list[str] | None]
"""The columns in which rows of two tables are compared; None if they are not."""

_MOST_POOLS = 300
"""Maximum number of sets of columns that are compared with each other at once."""

_MOST_PAIRS = 2_000_000
"""Maximum number of pairs of equal rows that are kept; beyond it, rows are compared each time."""


@dataclass(eq=False)
class Matches:
    """Which rows of tables are equal.

    Rows are chosen many times among the same tables. What equals what does not change meanwhile, so
    it is found once; afterwards only tables that share rows at all have to be looked at.
    """

    in_base: MutableMapping[RowHashes, Whole] = field(default_factory=weakref.WeakKeyDictionary)
    """For each row of a table, the number of equal rows of the base."""

    _pairs: dict[tuple[int, int], _Lines] = field(default_factory=dict)
    _compared: dict[int, RowHashes] = field(default_factory=dict)
    _kept: int = 0

    def compare_all(self, tables: Sequence[RowHashes], shared: Shared) -> None:
        """Compare all rows of some tables, unless there are too many sets of columns or pairs."""
        whole = list({id(rows.origin or rows): rows.origin or rows for rows in tables}.values())
        if all(id(rows) in self._compared for rows in whole):
            return
        pools: dict[frozenset[str], list[RowHashes]] = {}
        for rows in whole:
            pools.setdefault(frozenset(rows.columns), []).append(rows)
        if len(pools) > _MOST_POOLS:
            return
        joined = [_Pool.of(some) for some in pools.values()]
        found: dict[tuple[int, int], _Lines] = {}
        total = 0
        for ours, theirs in itertools.combinations_with_replacement(joined, 2):
            columns = shared(ours.rows, theirs.rows)
            if columns is None:
                continue
            lines = _equal(ours.rows, theirs.rows, columns, _MOST_PAIRS - total)
            if lines is None:
                return
            total += len(lines[0])
            found |= ours.split(theirs, lines)
            pulse()
        self._pairs, self._kept = found, total
        self._compared = {id(rows): rows for rows in whole}  # which keeps the numbers valid

    def count(self, rows: RowHashes, others: RowHashes, shared: Shared) -> Whole | None:
        """Count the rows of another table that equal each row; None if there is none."""
        one, other = rows.origin or rows, others.origin or others
        if id(one) not in self._compared or id(other) not in self._compared:
            columns = shared(rows, others)
            return None if columns is None else others.count_equal(rows, columns)
        lines = self._pairs.get((id(one), id(other)))
        if lines is None:
            return None
        mine, theirs = lines
        if others.lines is not None:
            is_there = np.zeros(other.length, bool)
            is_there[others.lines] = True
            mine = mine[is_there[theirs]]
        found = np.bincount(mine, minlength=one.length).astype(np.int64)
        return found if rows.lines is None else found[rows.lines]


@dataclass(frozen=True)
class _Pool:
    """The rows of tables with the same columns, one table after the other."""

    tables: Sequence[RowHashes]
    rows: RowHashes
    starts: Whole

    @classmethod
    def of(cls, tables: Sequence[RowHashes]) -> _Pool:
        starts = np.cumsum([0, *(rows.length for rows in tables)])
        return cls(tables, RowHashes.joined(tables), starts)

    def split(self, other: _Pool, lines: _Lines) -> dict[tuple[int, int], _Lines]:
        """Sort pairs of rows of two pools by their tables."""
        found: dict[tuple[int, int], _Lines] = {}
        if not len(lines[0]):
            return found
        mine = np.searchsorted(self.starts, lines[0], "right") - 1
        theirs = np.searchsorted(other.starts, lines[1], "right") - 1
        both = mine * len(other.tables) + theirs
        order = np.argsort(both, kind="stable")
        edges = np.flatnonzero(np.diff(both[order], prepend=-1, append=-1))
        for start, end in itertools.pairwise(edges.tolist()):
            some = order[start:end]
            i, j = int(mine[some[0]]), int(theirs[some[0]])
            one, two = lines[0][some] - self.starts[i], lines[1][some] - other.starts[j]
            a, b = id(self.tables[i]), id(other.tables[j])
            found[a, b] = one, two
            if self is not other:  # within one pool, every pair is found both ways
                found[b, a] = two, one
        return found


def _equal(ours: RowHashes, theirs: RowHashes, columns: Sequence[str], most: int) -> _Lines | None:
    """Find all pairs of equal rows; None if there are too many."""
    digests, (rising, order) = ours.over(columns), theirs.rising_over(columns)
    first = np.searchsorted(rising, digests, "left")
    there = np.searchsorted(rising, digests, "right") - first
    if there.sum() > most:
        return None
    mine = np.repeat(np.arange(ours.length), there)
    place = np.repeat(first - np.cumsum(there) + there, there) + np.arange(len(mine))
    return mine, order[place]


def occurrences(digests: Hashes) -> NDArray[np.int64]:
    """Number equal rows from 1 in their order."""
    order = np.argsort(digests, kind="stable")
    rising = digests[order]
    starts = np.flatnonzero(np.concatenate([[True], rising[1:] != rising[:-1]]))
    lengths = np.diff(np.append(starts, len(rising)))
    numbers = np.empty(len(digests), np.int64)
    numbers[order] = np.arange(len(rising)) - np.repeat(starts, lengths) + 1
    return numbers
