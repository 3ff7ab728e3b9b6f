"""Duplicates: rows of a source that the base has, or that were taken from another source."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, get_args

import numpy as np

from equipoise.errors import InputError
from equipoise.lake.offers.fingerprints import RowHashes
from equipoise.lake.offers.matches import Matches, occurrences
from equipoise.options.search import Dedupe
from equipoise.validate import one_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from equipoise.lake.cover.worth import Whole

    _Pool: TypeAlias = tuple[RowHashes, Whole, Whole]

_ENOUGH_IN_COMMON = 0.5
"""Share of the columns that two sources must have in common for their rows to be compared."""

_MOST_ALIKE = 200_000
"""Maximum number of pairs of duplicates that are searched for."""

_MOST_POOLS = 250
"""Maximum number of sets of columns, since each set is compared with every other."""


class KnownRows(Protocol):
    """Rows of a base, in memory or in an engine, with hashes by the names of columns."""

    @property
    def columns(self) -> Mapping[str, Any]:
        """The columns that can be compared."""

    def count_equal(self, rows: RowHashes, names: Sequence[str]) -> Whole:
        """Count the rows here that equal each of some others in some columns."""


@dataclass
class Known:
    """Known rows: those of the base, and those taken so far.

    By policy, a duplicate is a row equal to another (``strict``), an equal row beyond the number of
    them in any other table (``multiset``), or a row with the key of another (``key``). All rows of a
    cell agree in the columns ``cell``, which therefore do not tell rows apart.

    >>> import pyarrow as pa
    >>> base = RowHashes.of(pa.table({"sex": ["w", "m"], "age": [31, 52]}))
    >>> more = RowHashes.of(pa.table({"sex": ["w", "w", "w"], "age": [31, 40, 40]}))
    >>> Known(base, "strict").is_new(more).tolist()
    [False, True, False]
    >>> Known(base, "multiset").is_new(more).tolist()
    [False, True, True]
    """

    base: KnownRows
    policy: Dedupe = "strict"
    key: Sequence[str] = ()
    cell: frozenset[str] = frozenset()
    _taken: list[RowHashes] = field(default_factory=list)
    matches: Matches = field(default_factory=Matches)
    """Equal rows of tables, found once however often rows are chosen among them."""

    def __post_init__(self) -> None:
        one_of("dedupe", self.policy, get_args(Dedupe))
        if (self.policy == "key") != bool(self.key):
            raise InputError(
                "set `dedupe='key'` together with `key`, the columns of the key, or neither."
            )
        for name in self.key:
            if name not in self.base.columns:
                columns = ", ".join(self.base.columns)
                raise InputError(f"the key column {name!r} is not in the base; it has: {columns}.")

    def add(self, rows: RowHashes) -> None:
        """Remember rows that were taken."""
        if rows.length:
            self._taken.append(rows)

    def is_new(self, rows: RowHashes) -> NDArray[np.bool_]:
        """Mark the new rows of a source; of equal rows the first is new."""
        occurrence = occurrences(rows.over(self.compared(rows, self.base)))
        # Rows that were taken are known in addition to those of the base.
        known = self._count_in_base(rows) + self._count_taken(rows)
        new = occurrence > known if self.policy == "multiset" else (occurrence == 1) & (known == 0)
        return np.asarray(new)

    def is_absent(self, rows: RowHashes) -> NDArray[np.bool_]:
        """Mark the rows that the base does not have, whatever the other rows of the source."""
        return np.asarray(self._count_in_base(rows) == 0)

    def compare_all(self, tables: Sequence[RowHashes]) -> None:
        """Find the equal rows of tables at once, which is faster than for each pair of them."""
        if self.policy == "key":
            for rows in tables:
                self.compared(rows, rows)  # refuses tables without the key
        self.matches.compare_all(tables, self._shared)

    def _shared(self, rows: RowHashes, others: RowHashes) -> list[str] | None:
        """Return the columns in which rows of two sources are compared; None if they are not."""
        columns = self.compared(rows, others)
        return columns if self.comparable(rows, others, columns) else None

    def _count_in_base(self, rows: RowHashes) -> Whole:
        """Count the rows of the base that equal each row."""
        if not isinstance(self.base, RowHashes):  # which are not in memory, and asked for few rows
            return self.base.count_equal(rows, self.compared(rows, self.base))
        whole = rows.origin or rows
        found = self.matches.in_base.get(whole)
        if found is None:
            found = self.base.count_equal(whole, self.compared(whole, self.base))
            self.matches.in_base[whole] = found
        return found if rows.lines is None else found[rows.lines]

    def _count_taken(self, rows: RowHashes) -> Whole:
        """Count the rows taken so far that equal each row."""
        known = np.zeros(rows.length, np.int64)
        for others in self._taken:
            found = self.matches.count(rows, others, self._shared)
            if found is not None:
                known += found
        return known

    def chance(self, rows: RowHashes, cells: Whole, many: int) -> NDArray[np.float64]:
        """Estimate the share of new rows of each cell that equal a row of the base by chance.

        The estimate is the share of the base's own rows of the cell that equal another of its
        rows in the compared columns. Equal rows are spread unevenly, so the share in the whole
        base would say little about the few cells that get rows. ``cells`` holds the cell of each
        row of the base, from 0 to ``many`` - 1, or -1 for rows in none of them.
        """
        base = self.base
        if not isinstance(base, RowHashes):
            raise TypeError("rows that are not in memory are counted where they are.")
        if self.policy == "key" or not base.length:
            return np.zeros(many)
        rising, order = base.rising_over(self.compared(rows, base))
        as_before = np.concatenate([[False], rising[1:] == rising[:-1], [False]])
        alike = np.empty(len(rising), bool)
        alike[order] = as_before[1:] | as_before[:-1]
        inside = cells >= 0
        there = np.bincount(cells[inside], minlength=many)
        found = np.bincount(cells[inside & alike], minlength=many)
        return found / np.maximum(there, 1)

    def compared(self, rows: RowHashes, others: KnownRows) -> list[str]:
        """Return the columns in which rows of two tables are compared."""
        if self.policy == "key":
            for name in self.key:
                if name not in rows.columns:
                    raise InputError(
                        f"a source does not have the key column {name!r}; leave it out."
                    )
            return list(self.key)
        return [name for name in rows.columns if name in others.columns]

    def comparable(self, rows: RowHashes, others: RowHashes, columns: Sequence[str]) -> bool:
        """Whether tables share enough columns; with few of them, different rows would be equal."""
        if self.policy == "key":
            return True
        fewer = min(len(rows.columns.keys() - self.cell), len(others.columns.keys() - self.cell))
        return not fewer or len(set(columns) - self.cell) > _ENOUGH_IN_COMMON * fewer


def alike_rows(known: Known, tables: Sequence[RowHashes]) -> Whole | None:
    """Find the pairs of rows of several tables of which only one can be taken.

    Rows are numbered consecutively over all tables. Being duplicates is not transitive, because
    each pair of tables is compared in the columns they share. With too many pairs there is None.

    >>> import pyarrow as pa
    >>> base = RowHashes.of(pa.table({"sex": ["w"], "age": [31]}))
    >>> ours = RowHashes.of(pa.table({"sex": ["w", "m"], "age": [40, 20]}))
    >>> theirs = RowHashes.of(pa.table({"sex": ["m", "m"], "age": [20, 21]}))
    >>> alike_rows(Known(base), [ours, theirs]).tolist()
    [[1, 2]]
    """
    by_columns: dict[frozenset[str], list[int]] = {}
    for i, rows in enumerate(tables):
        by_columns.setdefault(frozenset(rows.columns), []).append(i)
    if len(by_columns) > _MOST_POOLS:
        return None
    pools = [_pool(tables, some) for some in by_columns.values()]
    found, total = [np.zeros((0, 2), np.int64)], 0
    for ours, theirs in itertools.combinations_with_replacement(pools, 2):
        pairs = _alike_in(known, ours, theirs, _MOST_ALIKE - total)
        if pairs is None:
            return None
        found.append(pairs)
        total += len(pairs)
    return np.concatenate(found)


def _pool(tables: Sequence[RowHashes], some: Sequence[int]) -> _Pool:
    """Join tables with the same columns: rows, their numbers, and their occurrence in the table."""
    starts = np.cumsum([0, *(rows.length for rows in tables)])
    numbers = np.concatenate([np.arange(starts[i], starts[i + 1]) for i in some])
    nth = np.concatenate([occurrences(tables[i].over(list(tables[i].columns))) for i in some])
    return RowHashes.joined([tables[i] for i in some]), numbers, nth


def _alike_in(known: Known, ours: _Pool, theirs: _Pool, most: int) -> Whole | None:
    """Find the pairs between two pools of tables, each with one set of columns."""
    (rows, numbers, nth), (others, their_numbers, _) = ours, theirs
    columns = known.compared(rows, others)
    # As many equal rows as one table has can be taken, so the n-th of them equals the n-th of others.
    counted = known.policy == "multiset"
    if not known.comparable(rows, others, columns) or (counted and ours is not theirs):
        return np.zeros((0, 2), np.int64)
    digests, (rising, order) = rows.over(columns), others.rising_over(columns)
    if counted:
        digests = digests ^ nth.astype(np.uint64)
        order = np.argsort(digests, kind="stable")
        rising = digests[order]
    first = np.searchsorted(rising, digests, "left")
    there = np.searchsorted(rising, digests, "right") - first
    # Within a pool each pair is found twice, and each row with itself.
    if there.sum() > 2 * most + rows.length:
        return None
    row = np.repeat(np.arange(rows.length), there)
    other = order[np.repeat(first - np.cumsum(there) + there, there) + np.arange(len(row))]
    pairs: Whole = np.column_stack([numbers[row], their_numbers[other]])
    if ours is theirs:
        pairs = pairs[row < other]
    return pairs if len(pairs) <= most else None
