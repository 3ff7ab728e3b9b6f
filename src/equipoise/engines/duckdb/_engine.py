"""The verbs over DuckDB."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar, cast

import duckdb
import numpy as np
import pyarrow as pa

from equipoise.atomic import atomic_path
from equipoise.counts import CountRequest, Counts
from equipoise.counts.skipped import Skipped
from equipoise.engines import sql
from equipoise.engines.base import (
    Column,
    Identity,
    MadeTable,
    Middle,
    Part,
    cannot_create,
    count_frame,
    require_choice,
    require_names,
    require_writable,
)
from equipoise.engines.choices import as_wanted, wanted_cells
from equipoise.engines.column_types import is_text
from equipoise.engines.csv.records import NULL
from equipoise.engines.database import Database
from equipoise.engines.duckdb._conditions import settle
from equipoise.engines.duckdb._dialect import DIALECT
from equipoise.engines.duckdb._errors import Unparsed, reason
from equipoise.engines.duckdb._session import Session, release_memory
from equipoise.engines.duckdb._tables import Tables
from equipoise.engines.profiling import Profile, Profiler
from equipoise.engines.readers import spreadsheets, sqlite
from equipoise.engines.sources import Source
from equipoise.errors import InputError
from equipoise.progress import Reporter, silent
from equipoise.values import Value

if TYPE_CHECKING:
    import os

V = TypeVar("V", bound=Callable[..., Any])

_MANY = 100_000
"""Number of rows from which on a pass over texts leaves much unused memory behind."""

_COPY_OPTIONS = {
    ".parquet": "FORMAT parquet, COMPRESSION zstd",
    ".csv": "FORMAT csv, HEADER",
    ".csv.gz": "FORMAT csv, HEADER, COMPRESSION gzip",
    ".tsv": "FORMAT csv, HEADER, DELIMITER '\t'",
    ".jsonl": "FORMAT json",
    ".ndjson": "FORMAT json",
}


def _tidied(verb: V) -> V:
    """Read CSV files that DuckDB cannot parse again, record by record.

    DuckDB accepts only one kind of line break in a file, and finds out while it reads.
    """

    @functools.wraps(verb)
    def tried(self: DuckDBEngine, source: Source, *args: Any, **options: Any) -> Any:
        try:
            return verb(self, source, *args, **options)
        except Unparsed:
            self._tables.read_by_record(source)
            return verb(self, source, *args, **options)

    return cast("V", tried)


class DuckDBEngine(Database):
    """The verbs over files, DuckDB databases and frames.

    By default there are as many threads as cores. Beyond the limit of ``memory``, such as
    ``"2GB"``, DuckDB spills to a temporary folder that is removed at the end. Frames of at most
    ``in_place`` rows are counted without a query, which takes less time than starting one. With
    ``within``, only files below these folders can be read and written, and no links that lead out of them.
    """

    name: ClassVar[str] = "duckdb"
    dialect = DIALECT
    reads: ClassVar[Mapping[str, str]] = {
        "CSV, TSV": "plain or gzip, every value as text; an empty field and a bare \\N are missing",
        "Parquet": "as stored",
        "JSON lines": "plain or gzip; arrays of objects, too",
        "folder, glob": "files of one kind with the same columns",
        "DuckDB file": "file.duckdb::table",
        "SQLite file": "file.sqlite::table, read only",
        "Excel file": "book.xlsx::sheet, with the extra excel",
        "Delta table": "delta:PATH, read only, with the extra lakehouse",
        "Iceberg table": "iceberg:CATALOG?table=NAME, read only, with the extra lakehouse",
        "object store": "CSV, Parquet and JSON files as s3://…, read only, with the extra storage",
        "standard input": "-, as any of these files",
        "frame": "pandas, polars, Arrow",
        "DuckDB relation": "on its own connection",
        "ibis table": "of its backend duckdb, in Python",
        "SQL": "over any of these, called input",
    }
    writes: ClassVar[tuple[str, ...]] = tuple(_COPY_OPTIONS)
    ways: ClassVar[Mapping[str, str]] = {
        "rows are known by": "their number in the file, in a snapshot: its hash, the version of a Delta table, "
        "the snapshot of an Iceberg table",
        "files are replaced": "atomically",
    }

    def __init__(
        self,
        *,
        threads: int | None = None,
        memory: str | None = None,
        in_place: int = 1_000_000,
        report: Reporter = silent,
        within: Sequence[str] | None = None,
    ) -> None:
        self._in_place = in_place
        self._session = Session(threads=threads, memory=memory, report=report, within=within)
        self._tables = Tables(self._session)

    def close(self) -> None:
        """Close the connection and remove the temporary folder."""
        self._session.close()

    # -------------------------------------------------------------------- verbs

    def tables(self, source: Source) -> tuple[str, ...]:
        """Names of the tables of a database, without its views, or of the files of a source."""
        if source.kind == "sqlite":
            return sqlite.tables(source.paths[0], source.name, views=False)
        if source.kind == "excel":
            return spreadsheets.sheets(source.paths[0])
        if source.kind != "duckdb":
            return tuple(str(p) for p in source.files) or (source.name,)
        return self._tables.names(source)

    @_tidied
    def schema(self, source: Source) -> tuple[Column, ...]:
        """The columns of a table."""
        return super().schema(source)

    @_tidied
    def settled(self, source: Source) -> Source:
        """The same source with its condition settled; see :class:`~equipoise.engines.base.Engine`."""
        if source.where is None or source.where.types is not None:
            return source
        with self._tables.opened(replace(source, where=None)) as (table, columns):
            return replace(source, where=settle(self._session, source, table, columns))

    @_tidied
    def profile(self, source: Source) -> Profile:
        """Profile the columns of a table, in one pass."""
        found = replace(self.profiler(source).profile(), skipped=self.skipped(source))
        if found.rows >= _MANY:
            release_memory()
        return found

    def profiler(self, source: Source, start: int = 0) -> Profiler:
        """Gather the profile of a table, or of a part of one that begins with the row ``start``."""
        with self._tables.opened(source) as (table, columns), self._session.in_order():
            texts = ", ".join(
                f"{DIALECT.text(DIALECT.identifier(c.name), c.type)} AS c{i}"
                for i, c in enumerate(columns)
            )

            def work() -> Profiler:
                profiler = Profiler(
                    [c.name for c in columns], [c.type for c in columns], start=start
                )
                for batch in self._session.batches(source, f"SELECT {texts} FROM {table}"):
                    profiler.add(batch.columns)
                return profiler

            return self._session.work(source, work, f"profiling {source.name}")

    @_tidied
    def counts(self, source: Source, request: CountRequest) -> Counts:
        """Count the rows of each cell, in one scan."""
        is_whole = source.sql is None and source.view is None and source.where is None
        if source.kind == "frame" and is_whole and len(source.data) <= self._in_place:
            return count_frame(source.data, request, source.name)
        return replace(super().counts(source, request), skipped=self.skipped(source))

    @_tidied
    def distinct(self, source: Source, column: str, limit: int = 1000) -> dict[Value, int]:
        """Count the rows of each value of a column, most frequent first."""
        return super().distinct(source, column, limit)

    @_tidied
    def middle(self, source: Source, column: str, na: Sequence[str] = ()) -> Middle:
        """Find the middle of the numbers of a column; see :class:`~equipoise.engines.base.Engine`."""
        return super().middle(source, column, na)

    @_tidied
    def read(self, source: Source, columns: Sequence[str] | None = None) -> pa.Table:
        """Read all rows of a table, or of some of its columns, in their order."""
        # Planning a query for its columns takes as long as reading a small table.
        described = columns is not None
        with self._tables.opened(source, described=described) as (table, known):
            wanted = require_names([c.name for c in known], columns, source.name)
            names = ", ".join(map(DIALECT.identifier, wanted)) if described else "*"
            return self._brought(
                source, table, lambda t: f"SELECT {names} FROM {t}", "reading rows", in_order=True
            )

    @_tidied
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
        with self._tables.opened(source) as (table, columns):
            request = require_choice(columns, request, take, source.name)
            known = Identity(numbered=True)
            cells = wanted_cells(take, columns, request)
            with self._session.registered(cells) as name:
                wanted = as_wanted(name, cells)

                def choose(located: bool, table: str) -> str:
                    return sql.choose_rows(
                        DIALECT, table, columns, request, wanted, seed, known=known, located=located
                    )

                if not rest:
                    query = functools.partial(choose, located)
                    return self._brought(source, table, query, "choosing rows", in_order=located)
                remaining = functools.partial(
                    self._at, columns=columns, others=True, located=located
                )
                if not take.n:  # nothing is chosen, so one reading is enough
                    return remaining(source, table, places=pa.array([], pa.int64()))
                with self._twice(source, table) as (here, again):
                    query = functools.partial(choose, True)
                    chosen = self._brought(here, again, query, "choosing rows", in_order=True)
                    return remaining(here, again, places=chosen.column(len(columns)))

    @_tidied
    def fetch(self, source: Source, places: Sequence[Any]) -> pa.Table:
        """Fetch the rows at some places; see :class:`~equipoise.engines.base.Engine`."""
        wanted = pa.array(places, pa.int64())
        with self._tables.opened(source) as (table, columns):
            return self._at(source, table, columns, wanted, others=False, located=True)

    def require_free(self, target: Source, *, only: str = "") -> None:  # noqa: ARG002
        """Refuse to make a table of a database."""
        raise cannot_create(self.name, target)

    def creating(
        self,
        target: Source,
        parts: Sequence[Part],  # noqa: ARG002
        comment: str = "",  # noqa: ARG002
    ) -> contextlib.AbstractContextManager[MadeTable]:
        """Refuse to make a table of a database."""
        raise cannot_create(self.name, target)

    def write(
        self,
        target: str | os.PathLike[str],
        parts: Sequence[Part],
        types: Mapping[str, str] | None = None,
    ) -> None:
        """Write the rows of some parts in their order, atomically and without holding them in memory."""
        options = _COPY_OPTIONS[require_writable(target, self.writes)]
        for part in parts:
            self.schema(part.source)  # CSV files that DuckDB cannot parse are found out here
        with contextlib.ExitStack() as stack:
            stack.enter_context(self._session.lock)
            # If one part is numbered, DuckDB keeps the order of the others only if they are, too.
            numbered = any(len(part.without) for part in parts)
            selects = [self._selected(stack, p, types or {}, numbered=numbered) for p in parts]
            rows = " UNION ALL ".join(f"({select})" for select in selects)
            columns = self._session.columns(parts[0].source, f"({selects[0]})")
            temporary = stack.enter_context(atomic_path(target))
            stack.enter_context(self._session.in_order())
            quoted = self._nulls_to_quote(rows, columns) if "FORMAT csv" in options else ""
            copy = f"COPY ({rows}) TO {DIALECT.literal(str(temporary))} ({options}{quoted})"
            try:
                self._session.watch(lambda: self._session.connection.execute(copy), "writing")
            except duckdb.InterruptException:
                raise KeyboardInterrupt from None
            except duckdb.Error as error:
                raise InputError(f"{target} cannot be written: {reason(error)}.") from None

    def _selected(
        self, stack: contextlib.ExitStack, part: Part, types: Mapping[str, str], *, numbered: bool
    ) -> str:
        """Return the query of the rows of a part, which can be run until the stack is closed."""
        source = part.source
        if source.kind == "frame":  # DuckDB may swap chunks of a frame
            source = replace(source, data=source.data.combine_chunks())
        table, columns = stack.enter_context(self._tables.opened(source))
        if source.kind == "relation":
            table = stack.enter_context(self._session.streamed(source, table))
        chosen = None
        if numbered:
            places = pa.table({"place": pa.array(part.without, pa.int64())})
            chosen = stack.enter_context(self._session.registered(places))
        return sql.rows_to_write(DIALECT, table, columns, chosen, types)

    def _nulls_to_quote(self, rows: str, columns: Sequence[Column]) -> str:
        """Quote columns with a text that would be read as a missing value if it were bare."""
        texts = [DIALECT.identifier(c.name) for c in columns if is_text(c.type)]
        if not texts:
            return ""
        asked = ", ".join(f"coalesce(bool_or({name} = '{NULL}'), false)" for name in texts)
        query = f"SELECT {asked} FROM ({rows})"
        (told,) = self._session.watch(
            lambda: self._session.connection.execute(query).fetchall(), "reading rows"
        )
        found = [name for name, is_null in zip(texts, told, strict=True) if is_null]
        return f", FORCE_QUOTE ({', '.join(found)})" if found else ""

    def skipped(self, source: Source) -> Skipped:
        """Lines that are left out of a CSV table that is read leniently."""
        return self._tables.skipped(source)

    # ----------------------------------------------------------------- choosing

    def _brought(
        self,
        source: Source,
        table: str,
        query: Callable[[str], str],
        title: str,
        *,
        in_order: bool,
    ) -> pa.Table:
        """Run a query over rows; those of a relation are first read into this connection."""
        with self._session.in_order() if in_order else contextlib.nullcontext():
            if source.kind != "relation":
                return self._session.arrow(source, query(table), title)
            with self._session.streamed(source, table) as here:
                return self._session.arrow(replace(source, kind="frame"), query(here), title)

    def _at(
        self,
        source: Source,
        table: str,
        columns: tuple[Column, ...],
        places: pa.Array | pa.ChunkedArray,
        *,
        others: bool,
        located: bool,
    ) -> pa.Table:
        """Read the rows at some places, or all others."""
        with self._session.registered(pa.table({"place": places})) as chosen:
            query = functools.partial(
                sql.rows_at, DIALECT, columns=columns, chosen=chosen, others=others, located=located
            )
            return self._brought(source, table, query, "reading rows", in_order=True)

    @contextlib.contextmanager
    def _twice(self, source: Source, table: str) -> Iterator[tuple[Source, str]]:
        """Make a table that can be read twice in the same order.

        A view or a query may return its rows in another order each time, so it is copied.
        """
        if source.sql is None and source.kind not in ("duckdb", "relation"):
            yield source, table
            return
        here = replace(source, kind="frame", sql=None, view=None, where=None)
        copy = self._session.new_name("copy")
        rows = table
        with contextlib.ExitStack() as stack:
            if source.kind == "relation":
                rows = stack.enter_context(self._session.streamed(source, table))
            stack.enter_context(self._session.in_order())
            make = f"CREATE TEMP TABLE {copy} AS FROM {rows}"
            self._session.work(here, lambda: self._session.connection.execute(make), "reading rows")
        try:
            yield here, copy
        finally:
            self._session.connection.execute(f"DROP TABLE {copy}")

    # ------------------------------------------------------------------ queries

    @contextlib.contextmanager
    def _opened(
        self,
        source: Source,
        *,
        carried: str = "",  # noqa: ARG002 - rows have numbers
    ) -> Iterator[tuple[str, tuple[Column, ...]]]:
        """Yield the SQL text of a table, and its columns, while it can be read."""
        with self._tables.opened(source) as found:
            yield found

    def _arrow(self, source: Source, query: str, title: str) -> pa.Table:
        """Run a query, and explain errors."""
        return self._session.arrow(source, query, title)

    @contextlib.contextmanager
    def _registered(self, rows: pa.Table) -> Iterator[str]:
        """Give rows to the database, under a name that queries can use."""
        with self._session.registered(rows) as name:
            yield name

    def _numbers_at(
        self, source: Source, table: str, column: Column, na: Sequence[str], places: Sequence[int]
    ) -> list[float]:
        """Return numbers at some places of a stream, which takes less memory than a running sum."""
        query = sql.numbers_in_order(DIALECT, table, column, na)

        def work() -> list[float]:
            found: list[float] = []
            passed = 0
            for batch in self._session.batches(source, query):
                up_to = passed + np.cumsum(batch["n"].to_numpy())
                while len(found) < len(places) and places[len(found)] <= up_to[-1]:
                    found.append(float(batch["x"][np.searchsorted(up_to, places[len(found)])]))
                passed = int(up_to[-1])
            return found

        return self._session.work(source, work, "binning")
