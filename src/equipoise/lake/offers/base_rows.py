"""The rows of a base: in memory if they are few, and else where they are, in an engine."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Protocol

from equipoise.counts import CountRequest, Counts
from equipoise.engines.base import Engine
from equipoise.engines.kinds import DATABASES
from equipoise.engines.profiling import ColumnProfile
from equipoise.engines.sources import Source
from equipoise.lake.offers.copies import LARGE
from equipoise.lake.offers.duplicates import Known, KnownRows
from equipoise.lake.offers.held_rows import Chances, HeldRows, Located, Sample
from equipoise.lake.offers.need import Need
from equipoise.lake.offers.stored_rows import StoredRows

if TYPE_CHECKING:
    import pyarrow as pa


class BaseRows(Protocol):
    """The rows of a base, wherever they are."""

    @property
    def source(self) -> Source:
        """The base."""

    @property
    def n(self) -> int:
        """Number of rows."""

    @property
    def like(self) -> pa.Table:
        """The columns in their types, without rows."""

    def informed(self, profiles: Sequence[ColumnProfile]) -> BaseRows:
        """The same rows, with profiles of the columns, which save work."""

    def hashes(self, loose: Collection[str] = ()) -> KnownRows:
        """What rows of other tables are compared with; columns in ``loose`` are ambiguous there."""

    def in_order(self) -> Source:
        """A source of these rows that has them in the same order each time it is read."""

    def counts(self, request: CountRequest) -> Counts:
        """Count the rows of each cell."""

    def chances(self, known: Known, need: Need) -> Chances:
        """Return a function that estimates the share of new rows that equal a row here by chance.

        It is given the hashes of some rows, and returns a share for each needed cell.
        """

    def without(self, removed: Sequence[Located]) -> BaseRows:
        """The rows but for those that are removed."""

    def sample(self, need: Need) -> Sample:
        """Rows to compare added rows with: all, or a sample of those in the needed cells."""

    def known_again(self, added: pa.Table, counted: Collection[str]) -> dict[str, int]:
        """Count added rows that may be a person of the base, by columns that identify its rows."""


def rows_of(engine: Engine, base: Source, rows: int) -> BaseRows:
    """Read a base with about so many rows into memory, if they are few and not in a database."""
    held = len(base.data) if base.kind == "frame" and base.sql is None else rows
    if base.kind in DATABASES or held > LARGE:
        return StoredRows(base, engine)
    return HeldRows(base, engine.read(base))
