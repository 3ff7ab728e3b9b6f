"""Comparison of the rows of two tables, by sums of hashes that each engine adds up for itself.

Each row has a hash, and each hash is hashed again with a salt that is made for this comparison alone.
If the sums of two tables agree, their rows do, in whatever order: nobody who wrote a row could know
the salt, so that rows whose sums agree by chance are one case in 2⁶⁰. Only where sums disagree, the
hashes of a few rows are fetched to name those that differ.
"""

from __future__ import annotations

import hashlib
import heapq
import itertools
import secrets
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from equipoise.lake.verify.tables import CheckedTable, ListedRow, Sum

_PART = 200
"""About how many rows of a table have hashes that begin with the same digits."""

_AT_ONCE = 500_000
"""About how many rows of a table are listed at once."""

_NAMED = 10


@dataclass
class Explained:
    """Rows of a table that a ledger accounts for: by their places, or if they have none by hash."""

    places: set[Any] = field(default_factory=set)
    hashes: list[str] = field(default_factory=list)


@dataclass
class Unmatched:
    """How many rows of a table the other one does not have, and what the first are known by."""

    rows: int = 0
    named: list[Any] = field(default_factory=list)

    def add(self, places: Iterable[Any]) -> None:
        """Count some more rows."""
        new = list(places)
        self.rows += len(new)
        self.named = heapq.nsmallest(_NAMED, [*self.named, *new])


class Pair:
    """Two tables whose rows are compared."""

    def __init__(self, old: CheckedTable, new: CheckedTable) -> None:
        self.tables = old, new
        self._salt = secrets.token_hex(16)
        self.alike = {c.name for c in old.columns} == {c.name for c in new.columns}
        self._sums = [table.sums(self._salt).get("", Sum()) for table in self.tables]

    @property
    def rows(self) -> tuple[int, int]:
        """The numbers of rows."""
        old, new = self._sums
        return old.n, new.n

    def unmatched(
        self, gone: Explained, came: Explained, reported: Collection[Any] = ()
    ) -> tuple[Unmatched, Unmatched]:
        """Find rows of one table that the other does not have, but for those that are explained.

        Rows of the new table that are ``reported`` already are not listed again.
        """
        if not self.alike:
            apart = came.places | (set(reported) if self.tables[1].numbered else set())
            return self._all_but(0, gone.places), self._all_but(1, apart)
        lost, strange = Unmatched(), Unmatched()
        for ours, theirs in self.differences(gone, came):
            lost.add(row.place for row in ours)
            strange.add(row.place for row in theirs if row.place not in reported)
        return lost, strange

    def _all_but(self, which: int, apart: Collection[Any]) -> Unmatched:
        """Take all rows of a table as unmatched but for some, since no row can equal one of the other."""
        rows, table = self.rows[which], self.tables[which]
        if not table.numbered:
            return Unmatched(rows - len(apart))
        inside = {place for place in apart if 0 <= place < rows}
        left = (i for i in range(rows) if i not in inside)
        return Unmatched(rows - len(inside), list(itertools.islice(left, _NAMED)))

    def differences(
        self, gone: Explained, came: Explained
    ) -> Iterator[tuple[list[ListedRow], list[ListedRow]]]:
        """Yield the rows that only the old table has, and those that only the new one has."""
        explained = gone, came
        totals = [
            _less(sum_, _summed(self._salt, some.hashes, 0).get("", Sum()))
            for sum_, some in zip(self._sums, explained, strict=True)
        ]
        if totals[0] == totals[1]:
            return
        digits = _digits(max(self.rows))
        for parts in self._differing(explained, digits):
            ours, theirs = (
                _others(table.listed(parts), some, parts, is_numbered=table.numbered)
                for table, some in zip(self.tables, explained, strict=True)
            )
            yield _surplus(ours, theirs), _surplus(theirs, ours)

    def _differing(self, explained: Sequence[Explained], digits: int) -> Iterator[list[str]]:
        """Yield the beginnings of hashes whose sums disagree, some at a time."""
        old, new = (
            _all_less(table.sums(self._salt, digits), _summed(self._salt, some.hashes, digits))
            for table, some in zip(self.tables, explained, strict=True)
        )
        parts: list[str] = []
        rows = 0
        for part in sorted(old.keys() | new.keys()):
            ours, theirs = old.get(part, Sum()), new.get(part, Sum())
            if ours != theirs:
                parts.append(part)
                rows += max(ours.n, theirs.n)
            if rows >= _AT_ONCE:
                yield parts
                parts, rows = [], 0
        if parts:
            yield parts


def _digits(rows: int) -> int:
    """Return by how many digits a table falls into small parts.

    >>> _digits(100), _digits(10_000_000)
    (1, 4)
    """
    digits = 1
    while 16**digits * _PART < rows:
        digits += 1
    return digits


def _summed(salt: str, hashes: Iterable[str], digits: int) -> dict[str, Sum]:
    """Add up hashes as :class:`~equipoise.lake.verify.views.SummedRows` does."""
    sums: dict[str, Sum] = {}
    for text in hashes:
        n, total = sums.get(text[:digits], Sum())
        salted = hashlib.md5(f"{salt}{text}".encode(), usedforsecurity=False).hexdigest()
        sums[text[:digits]] = Sum(n + 1, total + int(salted[:15], 16))
    return sums


def _less(a: Sum, b: Sum) -> Sum:
    return Sum(a.n - b.n, a.total - b.total)


def _all_less(a: Mapping[str, Sum], b: Mapping[str, Sum]) -> dict[str, Sum]:
    return {part: _less(a.get(part, Sum()), b.get(part, Sum())) for part in a.keys() | b.keys()}


def _others(
    rows: Sequence[ListedRow], explained: Explained, parts: Sequence[str], *, is_numbered: bool
) -> list[ListedRow]:
    """Return the rows that are not explained."""
    if is_numbered:
        return [row for row in rows if row.place not in explained.places]
    asked, digits = set(parts), len(parts[0])
    return _beyond(rows, (text for text in explained.hashes if text[:digits] in asked))


def _surplus(mine: Sequence[ListedRow], theirs: Sequence[ListedRow]) -> list[ListedRow]:
    """Return my rows that the others do not have, or have fewer times."""
    return _beyond(mine, (row.hash for row in theirs))


def _beyond(rows: Sequence[ListedRow], hashes: Iterable[str]) -> list[ListedRow]:
    """Return the rows that are left if each hash takes one of its rows away."""
    left = Counter(hashes)
    more = []
    for row in rows:
        if left[row.hash]:
            left[row.hash] -= 1
        else:
            more.append(row)
    return more
