"""Rows that tables offer for a plan: bounds from profiles, and exact numbers from scans."""

from __future__ import annotations

import bisect
import functools
import math
from collections import Counter, deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from equipoise.counts import Axis, bin_names
from equipoise.counts.columns import as_number
from equipoise.engines.base import Engine
from equipoise.engines.profiling import ColumnProfile
from equipoise.lake.matching.columns.target import Wanted
from equipoise.lake.matching.restriction import Restriction
from equipoise.lake.offers.base_rows import BaseRows
from equipoise.lake.offers.duplicates import Known
from equipoise.lake.offers.fingerprints import RowHashes
from equipoise.lake.offers.held_rows import Chances
from equipoise.lake.offers.need import Need
from equipoise.lake.offers.ranking import frechet
from equipoise.lake.offers.reads import Drawn, Reads
from equipoise.lake.offers.stored_rows import StoredRows
from equipoise.lake.offers.survey import Candidate
from equipoise.plain import rows_text
from equipoise.progress import Reporter, silent
from equipoise.values import MISSING, Value

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from equipoise.lake.cover.worth import Whole

_Counted: TypeAlias = "tuple[Whole, dict[str, int], int]"

_MANY = 0.2
"""Share of duplicates that, if chance explains it, is worth a warning."""

_KEPT = {"ample": 300_000, "tight": 100_000}
"""Maximum number of rows kept in memory, so that their tables are not read twice; fewer if the base is large."""

_DEEPER = 4
"""Factor by which more rows are looked at if too few of them are new."""


@dataclass(frozen=True, kw_only=True)
class Offer:
    """Numbers of new rows and of duplicates that one table has of each needed cell.

    Of a large table only as many rows are looked at as may be taken, in the order in which they
    would be.
    """

    candidate: Candidate
    there: Whole
    """Number of rows of each needed cell, whether they were looked at or not."""

    rows: Whole
    """New rows among those that were looked at: at least as many as are needed, or all."""

    duplicates: Whole
    """The other rows that were looked at."""

    at_most: Whole
    """Rows of each needed cell that the base does not have. These are more than ``rows`` if equal
    rows are in different cells: any of them can be taken, and ``rows`` counts the first."""

    chance: NDArray[np.float64]
    """Share of new rows of each needed cell that equal a row of the base by chance."""

    failures: Mapping[str, int]
    """Number of rows, by column, with a value that cannot be converted to the type of the base.
    A row counts once."""

    unmapped: int
    """Number of rows with a value of a required column that has no counterpart in the base."""

    outside: int
    """Number of rows that do not satisfy the condition of the base."""

    @property
    def name(self) -> str:
        """Name of the table in the lake."""
        return self.candidate.name

    @property
    def failed(self) -> int:
        """Number of rows with a value that cannot be converted to the type of the base."""
        return sum(self.failures.values())

    @property
    def offered(self) -> Whole:
        """Rows of each needed cell that are not known to be duplicates."""
        return self.there - self.duplicates

    @property
    def tells_anything(self) -> bool:
        """Whether the table has usable rows, or rows that are left out for a reason to report."""
        some = self.rows.any() or self.duplicates.any()
        return bool(some or self.failed or self.unmapped or self.outside)

    @property
    def by_chance(self) -> float:
        """Expected number of rows left out by chance if all of them were new."""
        return float((self.chance * (self.rows + self.duplicates)).sum())


@dataclass(frozen=True)
class Scanner:
    """Scans tables for rows of the needed cells."""

    engine: Engine
    want: Wanted
    need: Need
    known: Known | None = None
    seed: int = 0
    base: BaseRows | None = None
    within: Restriction | None = None
    reads: Reads | None = None
    """What was read for other needs of the same base."""

    kept: dict[str, Drawn] = field(default_factory=dict)
    _counted: dict[str, _Counted] = field(default_factory=dict)
    _depths: dict[str, Whole] = field(default_factory=dict)
    """How many rows of each needed cell are looked at, of tables that are not read as a whole."""

    deepened: list[str] = field(default_factory=list)
    """The tables that were looked at again, each time for more rows."""

    @functools.cached_property
    def _reads(self) -> Reads:
        return self.reads or Reads(self.engine, self.want, self.seed, self.within)

    @functools.cached_property
    def _chances(self) -> Chances | None:
        """Share of new rows of each needed cell that equal a row of the base by chance."""
        if self.base is None or self.known is None:
            return None
        return self.base.chances(self.known, self.need)

    def lacking(self, candidate: Candidate) -> tuple[str, ...]:
        """Return the columns of the condition that a table does not have."""
        return () if self.within is None else self.within.lacking(candidate.alignment)

    def bound(self, candidate: Candidate) -> Whole:
        """Bound the rows of each needed cell in a table from its profile."""
        margins = [self._margin(candidate, axis) for axis in self.need.cells.axes]
        return frechet(margins, self.need.cells.codes)

    def _margin(self, candidate: Candidate, axis: Axis) -> Whole:
        """Bound the rows with each value of an attribute."""
        match = candidate.alignment.columns[axis.name]
        column = next(c for c in candidate.profile.columns if c.name == match.source)
        if axis.name in self.want.bins:
            return _binned(column, self.want.bins[axis.name], axis.values, candidate.profile.rows)
        values = candidate.alignment.values[axis.name].values
        rows: Counter[Value] = Counter()
        if column.values is None:  # a mapping file maps a column with too many values to profile
            rows.update(dict.fromkeys(values.values(), candidate.profile.rows))
        else:
            for source, base in values.items():
                rows[base] += column.values.get(source, 0)
        return np.array([0 if v is MISSING else rows[v] for v in axis.values], np.int64)

    def possible(self, candidate: Candidate) -> Whole:
        """Bound the rows of each needed cell in a table whose mapping is not certain."""
        certain = [n for n, v in candidate.alignment.values.items() if v.certain and v.values]
        margins = [
            self._margin(candidate, axis)
            if axis.name in certain
            else np.full(len(axis.values), candidate.profile.rows, np.int64)
            for axis in self.need.cells.axes
        ]
        return frechet(margins, self.need.cells.codes)

    def scan(self, candidate: Candidate) -> Offer:
        """Count the rows that a table offers."""
        there, failures, outside = self._count(candidate)
        looked_at = new = at_most = there
        chance = np.zeros(len(there))
        if self.known is not None and there.sum():
            drawn, is_new = self._new_rows(candidate, self.known)
            looked_at = np.bincount(drawn.cells, minlength=len(there)).astype(np.int64)
            new = at_most = drawn.by_cell(is_new, len(there))
            if self._chances is not None:
                chance = self._chances(drawn.hashes)
            # Equal rows are in one cell, as they agree in all columns; rows of one key may not be.
            if self.known.policy == "key":
                at_most = drawn.by_cell(self.known.is_absent(drawn.hashes), len(there))
        return Offer(
            candidate=candidate,
            there=there,
            rows=new,
            duplicates=looked_at - new,
            at_most=at_most,
            chance=chance,
            failures=failures,
            unmapped=_unmapped(candidate),
            outside=outside,
        )

    def _new_rows(self, candidate: Candidate, known: Known) -> tuple[Drawn, NDArray[np.bool_]]:
        """Draw rows until enough of them are new, or no more are there."""
        while True:
            drawn = self.draw(candidate)
            is_new = known.is_new(drawn.hashes)
            found = drawn.by_cell(is_new, len(self.need.rows))
            if not self.deepen(candidate, found < self.need.rows):
                return drawn, is_new

    def deepen(self, candidate: Candidate, cells: NDArray[np.bool_] | None = None) -> bool:
        """Look at more rows of some cells, or of all, from now on; False if no more are there."""
        if candidate.name not in self._depths:  # all its rows are looked at
            return False
        depth, (there, *_) = self._depths[candidate.name], self._count(candidate)
        more = depth < there if cells is None else (depth < there) & cells
        if not more.any():
            return False
        self._depths[candidate.name] = np.where(more, np.minimum(_DEEPER * depth, there), depth)
        self.kept.pop(candidate.name, None)
        self.deepened.append(candidate.name)
        return True

    def draw(self, candidate: Candidate) -> Drawn:
        """Fetch the rows of the needed cells, cell by cell, in the order of the seed.

        Of a table that is not read as a whole, the first are fetched that may be taken. Which row is
        new does not depend on those after it, unless rows of different cells can have the same key.
        """
        candidate.require_unchanged()
        if candidate.name in self.kept:
            return self.kept[candidate.name]
        whole = self._reads.whole(candidate, self.need)
        if whole is not None:
            drawn = whole.drawn(self.need)
        else:
            drawn = self._reads.rows(candidate, self.need, self._depth(candidate))
        if self._is_kept(len(drawn.places)):
            self.kept[candidate.name] = drawn
        return drawn

    def _depth(self, candidate: Candidate) -> Whole:
        """Return how many rows of each needed cell are looked at, of those that are there."""
        there, *_ = self._count(candidate)
        if self.known is not None and self.known.policy == "key":
            return there
        first = np.minimum(_first_depth(self.need.rows), there)
        return self._depths.setdefault(candidate.name, first)

    def expect(self, candidates: Sequence[Candidate], progress: Reporter = silent) -> None:
        """Draw the rows of several tables; count their equals at once, if the base has to be queried."""
        tables = self._drawn(candidates, progress)
        if self.known is not None and isinstance(self.known.base, StoredRows):
            self.known.base.expect(tables, self.known)
        else:
            deque(tables, maxlen=0)

    def _drawn(self, candidates: Sequence[Candidate], progress: Reporter) -> Iterator[RowHashes]:
        for i, candidate in enumerate(candidates):
            progress(f"scanning {candidate.name}", i / len(candidates))
            yield self.draw(candidate).hashes

    def _is_kept(self, rows: int) -> bool:
        most = _KEPT["tight" if isinstance(self.base, StoredRows) else "ample"]
        return rows + sum(len(drawn.places) for drawn in self.kept.values()) <= most

    def compare_all(self, candidates: Sequence[Candidate]) -> None:
        """Find the rows that tables share, of those tables whose rows are kept."""
        if self.known is not None:
            kept = [c for c in candidates if c.name in self.kept or self._reads.whole(c, self.need)]
            self.known.compare_all([self.draw(candidate).hashes for candidate in kept])

    def _count(self, candidate: Candidate) -> tuple[Whole, dict[str, int], int]:
        """Count the rows of each needed cell, those that cannot be converted, and those outside."""
        candidate.require_unchanged()
        whole = self._reads.whole(candidate, self.need)
        if whole is not None:
            return whole.there(self.need), dict(whole.failures), whole.outside
        if candidate.name not in self._counted:
            self._counted[candidate.name] = self._reads.count(candidate, self.need)
        return self._counted[candidate.name]


class Union:
    """Counts the distinct rows of several tables together."""

    def __init__(self, scanner: Scanner) -> None:
        self.scanner = scanner
        self.known = None if scanner.known is None else replace(scanner.known, _taken=[])
        self.found = 0 * scanner.need.rows

    def add(self, candidate: Candidate) -> Whole:
        """Count the rows of each needed cell that no earlier table had; more than needed need not be."""
        need = self.scanner.need.rows
        while True:
            drawn = self.scanner.draw(candidate)
            if self.known is not None:
                drawn = drawn.take(self.known.is_new(drawn.hashes))
            rows = np.bincount(drawn.cells, minlength=len(need)).astype(np.int64)
            if not self.scanner.deepen(candidate, self.found + rows < need):
                break
        if self.known is not None:
            self.known.add(drawn.hashes)
        self.found = self.found + rows
        return rows


def _first_depth(need: Whole) -> Whole:
    """As many rows as are needed, and some more, since a few may be duplicates.

    >>> _first_depth(np.array([0, 100, 10_000])).tolist()
    [20, 200, 10820]
    """
    return need + 8 * np.sqrt(need).astype(np.int64) + 20


def _unmapped(candidate: Candidate) -> int:
    """Bound the rows with a required value that has no counterpart in the base."""
    columns = {c.name: c for c in candidate.profile.columns}
    total = 0
    for name, values in candidate.alignment.values.items():
        known = columns[candidate.alignment.columns[name].source].values or {}
        told = {*values.values, *values.missing}
        total += sum(n for value, n in known.items() if value not in told)
    return min(total, candidate.profile.rows)


def _binned(
    column: ColumnProfile, edges: tuple[float, ...], names: Sequence[Value], rows: int
) -> Whole:
    if column.values is None:
        return np.full(len(names), rows - column.nulls, np.int64)
    found: Counter[Value] = Counter()
    called = bin_names(edges)
    for text, n in column.values.items():
        number = as_number(text)
        if number is not None and not math.isnan(number):
            found[called[bisect.bisect_right(edges, number)]] += n
    return np.array([found[name] for name in names], np.int64)


def warn_of_chance(duplicates: int, chance: float) -> str | None:
    """Warn if many of the rows that are left out as duplicates may be other people."""
    if not duplicates or chance < max(1.0, _MANY * duplicates):
        return None
    return (
        f"Many of the {rows_text(duplicates)} left out as duplicates may be other people who look "
        f"alike, since few columns are compared: among as many new rows, about {chance:,.0f} would "
        "be left out by chance. Consider `dedupe='multiset'` or `dedupe='key'`."
    )
