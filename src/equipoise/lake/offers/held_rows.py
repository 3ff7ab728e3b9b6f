"""Rows of a base in memory."""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from equipoise.counts import CountRequest, Counts
from equipoise.engines.base import count_frame
from equipoise.engines.profiling import ColumnProfile
from equipoise.engines.sources import Source
from equipoise.lake.offers.duplicates import Known
from equipoise.lake.offers.fingerprints import RowHashes, loose_hashes, loosely, value_hashes
from equipoise.lake.offers.need import Need
from equipoise.rows.texts import without_categories

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray

Chances: TypeAlias = "Callable[[RowHashes], NDArray[np.float64]]"

Located: TypeAlias = tuple[Any, str, tuple[Any, ...]]
"""Place of a row, its md5, and its cell."""


class Sample(NamedTuple):
    """Rows of a base in needed cells, and of how many rows they are a sample, if they are one."""

    rows: pa.Table
    of: int | None = None
    outside: int = 0
    """Number of rows in other cells that were left out."""


@dataclass(frozen=True, eq=False)
class HeldRows:
    """Rows of a base in memory."""

    source: Source
    table: pa.Table

    @property
    def n(self) -> int:
        """Number of rows."""
        return len(self.table)

    @property
    def like(self) -> pa.Table:
        """The columns in their types, without rows."""
        return without_categories(self.table.slice(0, 0))

    @functools.cached_property
    def _hashes(self) -> RowHashes:
        return RowHashes.of(self.table)

    def informed(self, profiles: Sequence[ColumnProfile]) -> HeldRows:  # noqa: ARG002
        """The same rows."""
        return self

    def in_order(self) -> Source:
        """The rows as they were read."""
        return in_place_of(self.source, kind="frame", data=self.table)

    def hashes(self, loose: Collection[str] = ()) -> RowHashes:
        """Hash all values."""
        more = {loosely(name): loose_hashes(self.table[name]) for name in sorted(loose)}
        whole = self._hashes
        return replace(whole, columns={**whole.columns, **more}) if more else whole

    def counts(self, request: CountRequest) -> Counts:
        """Count the rows of each cell."""
        return count_frame(self.table, request, self.source.name)

    def chances(self, known: Known, need: Need) -> Chances:
        """Return a function that estimates the share of new rows that equal a row here by chance."""
        cells = need.numbers(self.table)
        return lambda rows: known.chance(rows, cells, len(need.rows))

    def without(self, removed: Sequence[Located]) -> HeldRows:
        """The rows but for those that are removed."""
        import pyarrow as pa

        table = self.table
        if removed:
            stay = np.ones(len(table), bool)
            stay[[place for place, *_ in removed]] = False
            table = table.filter(pa.array(stay))
        return HeldRows(self.source, without_categories(table))

    def sample(self, need: Need) -> Sample:  # noqa: ARG002
        """All rows."""
        return Sample(self.table)

    def known_again(self, added: pa.Table, counted: Collection[str]) -> dict[str, int]:
        """Count added rows that may be a person of the base, by columns that identify its rows."""
        found = {}
        base = self.table
        for name in base.column_names if len(added) and len(base) > 1 else ():
            if name in counted:
                continue
            ours, theirs = value_hashes(base[name]), value_hashes(added[name])
            # A column identifies rows only if all its values in the base differ.
            same = int(np.isin(theirs, ours).sum()) if len(np.unique(ours)) == len(ours) else 0
            if same:
                found[name] = same
        return found


def in_place_of(base: Source, **where: Any) -> Source:
    """Return a source of the same rows at another place, without what they were chosen by."""
    return replace(base, **{"sql": None, "where": None, "table": None, "data": None, **where})
