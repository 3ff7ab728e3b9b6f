"""The engine that most work uses: each verb is done by the engine that the data is on."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from equipoise.engines.base import Part
from equipoise.engines.choices import rows_but
from equipoise.engines.duckdb import DuckDBEngine
from equipoise.engines.kinds import DATABASES
from equipoise.errors import InputError, MissingDependency
from equipoise.progress import Reporter, silent

if TYPE_CHECKING:
    import os

    import pyarrow as pa

    from equipoise.counts import CountRequest, Counts
    from equipoise.counts.skipped import Skipped
    from equipoise.engines.base import Column, Engine, MadeTable, Middle
    from equipoise.engines.profiling import Profile
    from equipoise.engines.sources import Source
    from equipoise.values import Value


class Routing:
    """Does each verb on the engine that a source is on: PostgreSQL, Spark, or DuckDB for the rest.

    The parameters are those of :class:`~equipoise.engines.duckdb.DuckDBEngine`. An engine is made
    when the first source needs it. With ``within``, only files can be read.
    """

    name: ClassVar[str] = "routing"
    reads: ClassVar[Mapping[str, str]] = DuckDBEngine.reads
    writes: ClassVar[tuple[str, ...]] = DuckDBEngine.writes
    ways: ClassVar[Mapping[str, str]] = DuckDBEngine.ways

    def __init__(
        self,
        *,
        threads: int | None = None,
        memory: str | None = None,
        report: Reporter = silent,
        within: Sequence[str] | None = None,
    ) -> None:
        self.local = DuckDBEngine(threads=threads, memory=memory, report=report, within=within)
        self._report = report
        self._is_confined = within is not None
        self._others: dict[str, Engine] = {}

    def close(self) -> None:
        """Close the connections of all engines."""
        for engine in (self.local, *self._others.values()):
            engine.close()

    def engine_of(self, source: Source) -> Engine:
        """Return the engine that a source is on."""
        if source.kind not in DATABASES:
            return self.local
        if self._is_confined:
            raise InputError(f"{source.name} is not a file; only files can be read here.")
        if source.kind not in self._others:
            self._others[source.kind] = make_engine(source.kind, self._report)
        return self._others[source.kind]

    # -------------------------------------------------------------------- verbs

    def tables(self, source: Source) -> tuple[str, ...]:
        """Names of the tables at a source."""
        return self.engine_of(source).tables(source)

    def schema(self, source: Source) -> tuple[Column, ...]:
        """The columns of a table."""
        return self.engine_of(source).schema(source)

    def settled(self, source: Source) -> Source:
        """The same source with its condition settled."""
        return self.engine_of(source).settled(source)

    def profile(self, source: Source) -> Profile:
        """Profile the columns of a table."""
        return self.engine_of(source).profile(source)

    def counts(self, source: Source, request: CountRequest) -> Counts:
        """Count the rows of each cell."""
        return self.engine_of(source).counts(source, request)

    def distinct(self, source: Source, column: str, limit: int = 1000) -> dict[Value, int]:
        """Count the rows of each value of a column, most frequent first."""
        return self.engine_of(source).distinct(source, column, limit)

    def middle(self, source: Source, column: str, na: Sequence[str] = ()) -> Middle:
        """Find the middle of the numbers of a column."""
        return self.engine_of(source).middle(source, column, na)

    def read(self, source: Source, columns: Sequence[str] | None = None) -> pa.Table:
        """Read all rows of a table, or of some of its columns."""
        return self.engine_of(source).read(source, columns)

    def rows(
        self,
        source: Source,
        request: CountRequest,
        take: Counts,
        seed: int = 0,
        *,
        rest: bool = False,
        located: bool = False,
    ) -> pa.Table:
        """Choose rows by cell; see :class:`~equipoise.engines.base.Engine`."""
        engine = self.engine_of(source)
        return engine.rows(source, request, take, seed, rest=rest, located=located)

    def fetch(self, source: Source, places: Sequence[Any]) -> pa.Table:
        """Fetch the rows at some places."""
        return self.engine_of(source).fetch(source, places)

    def require_key(self, source: Source) -> None:
        """Refuse a table whose rows are known by a key that is none."""
        self.engine_of(source).require_key(source)

    def require_free(self, target: Source, *, only: str = "") -> None:
        """Refuse the name of a table of a database under which none can be made."""
        self.engine_of(target).require_free(target, only=only)

    def creating(
        self, target: Source, parts: Sequence[Part], comment: str = ""
    ) -> contextlib.AbstractContextManager[MadeTable]:
        """Make a table of a database; rows of other engines and of other servers are brought to it."""
        engine = self.engine_of(target)
        near = [part if self._is_near(target, part) else self._brought(part) for part in parts]
        return engine.creating(target, near, comment)

    def _is_near(self, target: Source, part: Part) -> bool:
        engine = self.engine_of(target)
        if not self._is_at(engine, part):
            return False
        is_there: bool = engine.is_near(target, part.source)  # type: ignore[attr-defined] # all are databases
        return is_there

    def _is_at(self, engine: Engine, part: Part) -> bool:
        return part.source.kind == "frame" or self.engine_of(part.source) is engine

    def _brought(self, part: Part) -> Part:
        from equipoise.engines.sources import locate

        engine = self.engine_of(part.source)
        if engine is self.local:
            rows = rows_but(engine.read(part.source), part.without)
        else:
            rows = engine.part_rows(part)  # type: ignore[attr-defined] # only databases are not local
        return Part(locate(rows), foreign=part.foreign)

    def write(
        self,
        target: str | os.PathLike[str],
        parts: Sequence[Part],
        types: Mapping[str, str] | None = None,
    ) -> None:
        """Write the rows of some parts to a file, atomically."""
        near = [part if self._is_at(self.local, part) else self._brought(part) for part in parts]
        self.local.write(target, near, types)

    def skipped(self, source: Source) -> Skipped:
        """Lines that are left out of a CSV table that is read leniently."""
        return self.local.skipped(source)


def make_engine(kind: str, report: Reporter = silent) -> Engine:
    """Make an engine whose driver is an extra."""
    try:
        if kind == "postgres":
            from equipoise.engines.postgres import PostgresEngine

            return PostgresEngine(report=report)
        from equipoise.engines.spark import SparkEngine

        return SparkEngine(report=report)
    except ImportError as error:
        what = "tables of PostgreSQL" if kind == "postgres" else "tables of Spark"
        raise MissingDependency(error.name or kind, extra=kind, purpose=f"reading {what}") from None


@functools.lru_cache(maxsize=4)
def shared_engine(
    threads: int | None = None,
    memory: str | None = None,
    report: Reporter = silent,
    within: tuple[str, ...] | None = None,
) -> Routing:
    """Return one engine per setting, since opening a connection takes longer than small counts."""
    return Routing(threads=threads, memory=memory, report=report, within=within)
