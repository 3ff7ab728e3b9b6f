"""The eleven verbs over DuckDB."""

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
from equipoise.counts.columns import (
    checked_counts,
    distinct_edges,
    not_a_count,
    not_a_number,
    not_numbers,
    not_weights,
)
from equipoise.counts.skipped import Skipped
from equipoise.engines import sql
from equipoise.engines.base import (
    Column,
    Middle,
    count_frame,
    require_choice,
    require_columns,
    require_names,
    require_plain,
    require_rows,
    require_writable,
)
from equipoise.engines.csv.records import NULL
from equipoise.engines.duckdb._conditions import settle
from equipoise.engines.duckdb._errors import Unparsed, reason
from equipoise.engines.duckdb._session import Session
from equipoise.engines.duckdb._tables import Tables
from equipoise.engines.profiling import Profile, Profiler
from equipoise.engines.readers import spreadsheets, sqlite
from equipoise.engines.sources import Source
from equipoise.errors import InputError
from equipoise.progress import Reporter, silent
from equipoise.values import MISSING, Value

if TYPE_CHECKING:
    import os

V = TypeVar("V", bound=Callable[..., Any])

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


class DuckDBEngine:
    """Eleven verbs over files, DuckDB databases and frames.

    By default there are as many threads as cores. Beyond the limit of ``memory``, such as
    ``"2GB"``, DuckDB spills to a temporary folder that is removed at the end. Frames of at most
    ``in_place`` rows are counted without a query, which takes less time than starting one. With
    ``within``, only files below these folders can be read and written, and no links that lead out of them.
    """

    name: ClassVar[str] = "duckdb"
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
        "SQL": "over any of these, called input",
    }
    writes: ClassVar[tuple[str, ...]] = tuple(_COPY_OPTIONS)

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
        with self._tables.opened(source) as (_, columns):
            return columns

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
        with self._tables.opened(source) as (table, columns), self._session.in_order():
            texts = ", ".join(
                f"{sql.value_text(c.name, c.type)} AS c{i}" for i, c in enumerate(columns)
            )

            def work() -> Profile:
                profiler = Profiler([c.name for c in columns], [c.type for c in columns])
                for batch in self._session.batches(source, f"SELECT {texts} FROM {table}"):
                    profiler.add(batch.columns)
                return replace(profiler.profile(), skipped=self.skipped(source))

            return self._session.work(source, work, f"profiling {source.name}")

    @_tidied
    def counts(self, source: Source, request: CountRequest) -> Counts:
        """Count the rows of each cell, in one scan."""
        is_whole = source.sql is None and source.where is None
        if source.kind == "frame" and is_whole and len(source.data) <= self._in_place:
            return count_frame(source.data, request, source.name)
        with self._tables.opened(source) as (table, columns):
            require_columns(columns, request, source.name)
            request = self._with_edges(source, table, columns, request)
            query = sql.count_cells(table, columns, request)
            cells = self._session.arrow(source, query, f"counting {source.name}")
            counts = self._to_counts(source, table, columns, cells, request)
            where = "" if source.where is None else f" where {source.where.one_line}"
            require_rows(counts, f"{source.name}{where}")
            return replace(counts, skipped=self.skipped(source))

    @_tidied
    def distinct(self, source: Source, column: str, limit: int = 1000) -> dict[Value, int]:
        """Count the rows of each value of a column, most frequent first."""
        with self._tables.opened(source) as (table, columns):
            types = {c.name: c.type for c in columns}
            require_names(list(types), [column], source.name)
            query = (
                f"SELECT {sql.value_text(column, types[column])} AS v, count(*) AS n FROM {table} "
                f"GROUP BY ALL ORDER BY 2 DESC, 1 LIMIT {int(limit)}"
            )
            found = self._session.lines(source, query, "listing values")
        return {MISSING if value is None else value: n for value, n in found}

    @_tidied
    def middle(self, source: Source, column: str, na: Sequence[str] = ()) -> Middle:
        """Find the middle of the numbers of a column; see :class:`~equipoise.engines.base.Engine`."""
        with self._tables.opened(source) as (table, columns):
            require_plain(columns, column, source.name)
            known = next(c for c in columns if c.name == column)
            strange, numbers = self._strange_text(source, table, known, na)
            if strange is not None or not numbers:
                raise not_numbers(column, strange)
            query = sql.numbers_in_order(table, known, na)
            low, high = self._numbers_at(source, query, Middle.places(numbers))
            return Middle(low + 0.0, high + 0.0, numbers)  # −0.0 is 0.0

    @_tidied
    def read(self, source: Source, columns: Sequence[str] | None = None) -> pa.Table:
        """Read all rows of a table, or of some of its columns, in their order."""
        with self._tables.opened(source) as (table, known):
            wanted = require_names([c.name for c in known], columns, source.name)
            names = ", ".join(map(sql.identifier, wanted))
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
        with (
            self._tables.opened(source) as (table, columns),
            self._session.registered(_wanted(take)) as wanted,
        ):
            request = require_choice(columns, request, take, source.name)
            choose = functools.partial(
                sql.choose_rows, columns=columns, request=request, wanted=wanted, seed=seed
            )
            if not rest:
                query = functools.partial(choose, located=located)
                return self._brought(source, table, query, "choosing rows", in_order=located)
            remaining = functools.partial(self._at, columns=columns, others=True, located=located)
            if not take.n:  # nothing is chosen, so one reading is enough
                return remaining(source, table, places=pa.array([], pa.int64()))
            with self._twice(source, table) as (here, again):
                query = functools.partial(choose, located=True)
                chosen = self._brought(here, again, query, "choosing rows", in_order=True)
                return remaining(here, again, places=chosen.column(len(columns)))

    @_tidied
    def fetch(self, source: Source, places: Sequence[int]) -> pa.Table:
        """Fetch the rows at some places; see :class:`~equipoise.engines.base.Engine`."""
        wanted = pa.array(places, pa.int64())
        with self._tables.opened(source) as (table, columns):
            return self._at(source, table, columns, wanted, others=False, located=True)

    def write(self, rows: pa.Table, path: str | os.PathLike[str]) -> None:
        """Write rows to a file in their order, atomically."""
        options = _COPY_OPTIONS[require_writable(path, self.writes)]
        with (
            self._session.lock,
            self._session.registered(rows) as name,
            atomic_path(path) as temporary,
            self._session.in_order(),
        ):
            quoted = _nulls_to_quote(rows) if "FORMAT csv" in options else ""
            copy = f"COPY (FROM {name}) TO {sql.literal(str(temporary))} ({options}{quoted})"
            try:
                self._session.watch(lambda: self._session.connection.execute(copy), "writing")
            except duckdb.InterruptException:
                raise KeyboardInterrupt from None
            except duckdb.Error as error:
                raise InputError(f"{path} cannot be written: {reason(error)}.") from None

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
                sql.rows_at, columns=columns, chosen=chosen, others=others, located=located
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
        here = replace(source, kind="frame", sql=None, where=None)
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

    # ----------------------------------------------------------------- counting

    def _with_edges(
        self, source: Source, table: str, columns: tuple[Column, ...], request: CountRequest
    ) -> CountRequest:
        edges = {}
        for column in columns:
            bins = request.bins.get(column.name)
            if isinstance(bins, int):
                present = self._require_numbers(source, table, column, request.na)
                if not present:
                    raise InputError(f"column {column.name!r} has no numbers to bin.")
                # The ceiling of present · i / bins, in integers; the first is the minimum.
                places = [max(-(-present * i // bins), 1) for i in range(bins)]
                query = sql.numbers_in_order(table, column, request.na)
                least, *found = self._numbers_at(source, query, places)
                edges[column.name] = distinct_edges(column.name, found, least)
        return request.with_edges(edges)

    def _numbers_at(self, source: Source, query: str, places: list[int]) -> list[float]:
        """Return the numbers at some places, counted from 1, of a stream of sorted numbers."""

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

    def _to_counts(
        self,
        source: Source,
        table: str,
        columns: tuple[Column, ...],
        cells: pa.Table,
        request: CountRequest,
    ) -> Counts:
        known = {c.name: c for c in columns}
        # The table is read again only to name a value that is not a number.
        for i, name in enumerate(request.columns):
            if name in request.bins and -1 in cells[f"c{i}"].unique().to_pylist():
                self._require_numbers(source, table, known[name], request.na)
        _refuse_bad_numbers(cells, request)
        names = {name: cells[f"c{i}"] for i, name in enumerate(request.columns)}
        rows = checked_counts(cells["n"].to_numpy())
        weights = None
        if request.weight is not None:
            weights = np.stack([cells["w"].to_numpy(), cells["w2"].to_numpy()], axis=1)
        return Counts.from_encoded(names, rows, weights, request)

    def _require_numbers(
        self, source: Source, table: str, column: Column, na: Sequence[str]
    ) -> int:
        """Refuse a column to bin that holds text; return the number of numbers it holds."""
        strange, numbers = self._strange_text(source, table, column, na)
        if strange is not None:
            raise not_a_number(column.name, strange)
        return numbers

    def _strange_text(
        self, source: Source, table: str, column: Column, na: Sequence[str]
    ) -> tuple[str | None, int]:
        """Return a text of a column that is no number, if there is one, and how many numbers it has."""
        bin_number = sql.bin_number(column.name, column.type, (0,), na)
        text = sql.value_text(column.name, column.type)
        query = (
            f"SELECT min({text}) FILTER (WHERE {bin_number} = -1), "
            f"count(*) FILTER (WHERE {bin_number} >= 0) FROM {table}"
        )
        ((found, numbers),) = self._session.lines(source, query, "binning")
        return found, int(numbers)


@functools.lru_cache(maxsize=4)
def shared_engine(
    threads: int | None = None,
    memory: str | None = None,
    report: Reporter = silent,
    within: tuple[str, ...] | None = None,
) -> DuckDBEngine:
    """Return one engine per setting, since opening a connection takes longer than small counts."""
    return DuckDBEngine(threads=threads, memory=memory, report=report, within=within)


def _nulls_to_quote(rows: pa.Table) -> str:
    """Quote columns with a text that would be read as a missing value if it were bare."""
    import pyarrow.compute as pc

    found = []
    for field, column in zip(rows.schema, rows.columns, strict=True):
        kind = field.type.value_type if pa.types.is_dictionary(field.type) else field.type
        is_text = pa.types.is_string(kind) or pa.types.is_large_string(kind)
        if is_text and pc.any(pc.equal(column.cast(kind), NULL)).as_py():
            found.append(sql.identifier(field.name))
    return f", FORCE_QUOTE ({', '.join(found)})" if found else ""


def _wanted(take: Counts) -> pa.Table:
    cells = take.to_arrow()
    keys = {f"k{i}": cells.column(i) for i in range(len(take.axes))}
    places = pa.array(range(len(cells)), pa.int64())
    return pa.table({**keys, "want": pa.array(take.rows), "cell": places})


def _refuse_bad_numbers(cells: pa.Table, request: CountRequest) -> None:
    if request.count is None and request.weight is None:
        return  # without loading Arrow's functions, which takes long
    import pyarrow.compute as pc

    if request.count is not None:
        bad = [b for b in cells["bad"].to_pylist() if b is not None]
        if bad or pc.sum(cells["unknown"]).as_py():
            raise not_a_count(request.count, bad[0] if bad else MISSING)
    if request.weight is not None and pc.sum(cells["bad_weights"]).as_py():
        raise not_weights(request.weight, pc.sum(cells["bad_weights"]).as_py())
