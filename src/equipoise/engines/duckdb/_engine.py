"""The default engine: DuckDB reads, counts and writes, in parallel and beyond memory."""

from __future__ import annotations

import contextlib
import functools
import glob
import itertools
import re
import tempfile
import threading
import weakref
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar, cast

import duckdb

from equipoise.atomic import atomic_path
from equipoise.counts import Condition, CountRequest, Counts
from equipoise.counts.columns import (
    checked_counts,
    distinct_edges,
    not_a_count,
    not_a_number,
    not_weights,
)
from equipoise.counts.skipped import Skipped
from equipoise.engines import conditions, sql
from equipoise.engines.base import (
    Column,
    count_frame,
    require_choice,
    require_columns,
    require_rows,
    require_writable,
)
from equipoise.engines.column_names import refuse_duplicates
from equipoise.engines.csv.dialects import Dialect, require_same_columns
from equipoise.engines.csv.encodings import as_utf8, not_encoded
from equipoise.engines.csv.records import MEND, NULL, copy_records
from equipoise.engines.profiling import Profile, Profiler
from equipoise.engines.readers import spreadsheets, sqlite
from equipoise.engines.readers.copies import Copy, Spool
from equipoise.engines.sources import (
    Source,
    called,
    chosen_table,
    dialect_of,
    explain_renamed,
)
from equipoise.errors import ColumnNotFound, InputError, SourceNotFound
from equipoise.progress import Reporter, silent, watched
from equipoise.scratch import ScratchFolder, make_folder
from equipoise.values import MISSING, Value

if TYPE_CHECKING:
    import os
    from pathlib import Path

    import pyarrow as pa

T = TypeVar("T")
V = TypeVar("V", bound=Callable[..., Any])

_COPY_OPTIONS = {
    ".parquet": "FORMAT parquet, COMPRESSION zstd",
    ".csv": "FORMAT csv, HEADER",
    ".csv.gz": "FORMAT csv, HEADER, COMPRESSION gzip",
    ".tsv": "FORMAT csv, HEADER, DELIMITER '\t'",
    ".jsonl": "FORMAT json",
    ".ndjson": "FORMAT json",
}


_MEANINGLESS = (
    duckdb.BinderException,
    duckdb.ConversionException,
    duckdb.InvalidInputException,
    duckdb.OutOfRangeException,
)
"""What a condition fails with that cannot be evaluated."""


def _tidied(verb: V) -> V:
    """Read CSV files again, record by record, that DuckDB gave up on; it takes one line ending."""

    @functools.wraps(verb)
    def tried(self: DuckDBEngine, source: Source, *args: Any, **options: Any) -> Any:
        try:
            return verb(self, source, *args, **options)
        except _Unparsed:
            self._untidy.update(source.paths)
            return verb(self, source, *args, **options)

    return cast("V", tried)


class _Unparsed(InputError):
    """A CSV file that is not as DuckDB expects, which says no more of it."""


class DuckDBEngine:
    """Nine verbs over files, DuckDB databases and frames.

    Parameters
    ----------
    threads
        How many cores to use; all, if not given.
    memory
        How much memory to use, as in ``"2GB"``; beyond it DuckDB spills to a temporary
        folder that is removed at the end.
    in_place
        Frames of at most so many rows are counted where they are: that takes less time than
        starting a query.
    report
        Is told how far a long scan is.

    >>> import pyarrow as pa
    >>> from equipoise.engines.sources import locate
    >>> people = locate(pa.table({"sex": ["m", "w", "w"], "hired": ["yes", "no", "yes"]}))
    >>> DuckDBEngine().counts(people, CountRequest(sensitive=("sex",), label="hired"))
    <Counts of 3 rows in 3 cells: sex (2) × hired (2)>
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
    ) -> None:
        self._lock = threading.RLock()
        self._report, self._in_place = report, in_place
        self._registrations = itertools.count()
        folder = make_folder()
        self._temporary = str(folder.path)
        self._spool = Spool(self._temporary)
        self._untidy: set[Path] = set()
        settings: dict[str, Any] = {
            "temp_directory": self._temporary,
            # Nothing is ever fetched from outside.
            "autoinstall_known_extensions": False,
            "autoload_known_extensions": False,
            "preserve_insertion_order": False,
        }
        if threads is not None:
            settings["threads"] = threads
        if memory is not None:
            settings["memory_limit"] = memory
        try:
            _require_settings(threads, memory)
            self._connection = duckdb.connect(":memory:", config=settings)
        except (duckdb.Error, ValueError, TypeError) as error:
            folder.remove()
            raise InputError(
                f"threads={threads}, memory={memory!r} cannot be set; threads is a whole number of "
                f"at least 1 and memory a size such as 2GB ({_reason(error)})."
            ) from None
        # Also when nobody closes it: at the end of the engine, or of the program.
        self._close = weakref.finalize(self, _close, self._connection, folder)
        self._connection.execute(
            "SET enable_progress_bar = true; SET enable_progress_bar_print = false"
        )
        # DuckDB 2.0 lets the CSV reader do a TRY_CAST, and that fails instead of giving null
        # (duckdb/duckdb#23818). Older ones do not know the setting.
        with contextlib.suppress(duckdb.Error):
            self._connection.execute("SET disabled_optimizers = 'type_pushdown'")

    def close(self) -> None:
        """Close the connection and remove the temporary folder."""
        self._close()

    # -------------------------------------------------------------------- verbs

    def tables(self, source: Source) -> tuple[str, ...]:
        """Names of the tables at a source: of a database its tables, else its files.

        Views are left out: they hold no rows of their own.
        """
        if source.kind == "sqlite":
            return sqlite.tables(source.paths[0], source.name, views=False)
        if source.kind == "excel":
            return spreadsheets.sheets(source.paths[0])
        if source.kind != "duckdb":
            return tuple(str(p) for p in source.paths) or (source.name,)
        with self._lock, self._attached(source) as alias:
            return tuple(self._tables_in(alias, views=False))

    @_tidied
    def schema(self, source: Source) -> tuple[Column, ...]:
        """The columns of a table."""
        with self._opened(source) as (_, columns):
            return columns

    @_tidied
    def settled(self, source: Source) -> Source:
        """The same source with its condition settled; see :class:`~equipoise.engines.base.Engine`."""
        if source.where is None or source.where.types is not None:
            return source
        with self._opened(replace(source, where=None)) as (table, columns):
            return replace(source, where=self._settle(source, table, columns))

    @_tidied
    def profile(self, source: Source) -> Profile:
        """What one pass over the table tells."""
        with self._opened(source) as (table, columns), self._in_order():
            texts = [f"{sql.value_text(c.name, c.type)} AS c{i}" for i, c in enumerate(columns)]
            query = f"SELECT {', '.join(texts)} FROM {table}"

            def work() -> Profile:
                profiler = Profiler([c.name for c in columns], [c.type for c in columns])
                for batch in self._batches(source, query):
                    profiler.add(batch.columns)
                return replace(profiler.profile(), skipped=self.skipped(source))

            return self._watched(source, work, f"profiling {source.name}")

    @_tidied
    def counts(self, source: Source, request: CountRequest) -> Counts:
        """How many rows each cell has: one scan, whatever the size."""
        is_whole = source.sql is None and source.where is None
        if source.kind == "frame" and is_whole and len(source.data) <= self._in_place:
            return count_frame(source.data, request, source.name)
        with self._opened(source) as (table, columns):
            require_columns(columns, request, source.name)
            request = self._with_edges(source, table, columns, request)
            query = sql.count_cells(table, columns, request)
            cells = self._arrow(source, query, f"counting {source.name}")
            types = {c.name: c for c in columns}
            counted = [types[name] for name in request.columns]
            counts = self._to_counts(source, table, counted, cells, request)
            where = "" if source.where is None else f" where {source.where.one_line}"
            require_rows(counts, f"{source.name}{where}")
            return replace(counts, skipped=self.skipped(source))

    @_tidied
    def distinct(self, source: Source, column: str, limit: int = 1000) -> dict[Value, int]:
        """The values of a column with their rows, most frequent first."""
        with self._opened(source) as (table, columns):
            types = {c.name: c.type for c in columns}
            if column not in types:
                raise ColumnNotFound(column, table=source.name, columns=types)
            query = (
                f"SELECT {sql.value_text(column, types[column])} AS v, count(*) AS n FROM {table} "
                f"GROUP BY ALL ORDER BY 2 DESC, 1 LIMIT {int(limit)}"
            )
            found = self._arrow(source, query, "listing values")
        return {
            MISSING if v is None else v: n
            for v, n in zip(found["v"].to_pylist(), found["n"].to_pylist(), strict=True)
        }

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
        """Choose real rows by cell, each at most once; see :class:`~equipoise.engines.base.Engine`."""
        import pyarrow as pa

        request = require_choice(request, take)
        with self._opened(source) as (table, columns), self._registered(_wanted(take)) as wanted:
            require_columns(columns, request, source.name)
            choose = functools.partial(
                sql.choose_rows, columns=columns, request=request, wanted=wanted, seed=seed
            )
            if not rest:
                query = functools.partial(choose, located=located)
                return self._brought(source, table, query, "choosing rows", in_order=located)
            if not take.n:
                return self._remaining(source, table, columns, pa.array([], pa.int64()), located)
            with self._twice(source, table) as (here, again):
                query = functools.partial(choose, located=True)
                chosen = self._brought(here, again, query, "choosing rows", in_order=True)
                places = chosen.column(len(columns))
                return self._remaining(here, again, columns, places, located)

    @_tidied
    def fetch(self, source: Source, places: Sequence[int]) -> pa.Table:
        """Fetch the rows at some places; see :class:`~equipoise.engines.base.Engine`."""
        import pyarrow as pa

        wanted = pa.table({"place": pa.array(places, pa.int64())})
        with self._opened(source) as (table, columns), self._registered(wanted) as chosen:
            query = functools.partial(sql.rows_at, columns=columns, chosen=chosen)
            return self._brought(source, table, query, "fetching rows", in_order=True)

    def write(self, rows: pa.Table, path: str | os.PathLike[str]) -> None:
        """Write rows, in their order, to a file that is whole or not there."""
        options = _COPY_OPTIONS[require_writable(path, self.writes)]
        with (
            self._lock,
            self._registered(rows) as name,
            atomic_path(path) as temporary,
            self._in_order(),
        ):
            quoted = _nulls_to_quote(rows) if "FORMAT csv" in options else ""
            copy = f"COPY (FROM {name}) TO {sql.literal(str(temporary))} ({options}{quoted})"
            try:
                self._watch(lambda: self._connection.execute(copy), "writing")
            except duckdb.InterruptException:
                raise KeyboardInterrupt from None
            except duckdb.Error as error:
                raise InputError(f"{path} cannot be written: {_reason(error)}.") from None

    def skipped(self, source: Source) -> Skipped:
        """Lines that are left out of a table that is read leniently."""
        if source.kind != "csv" or not source.lenient:
            return Skipped()
        copies = (self._copy_of_records(source, path) for path in source.paths)
        return sum((copy.skipped for copy in copies), Skipped())

    # ------------------------------------------------------------------ opening

    @contextlib.contextmanager
    def _opened(self, source: Source) -> Iterator[tuple[str, tuple[Column, ...]]]:
        """Give the SQL text of a table, and its columns, while it can be read."""
        with self._lock, self._input(source) as table:
            if source.sql is None:
                opened = table
            else:  # on lines of its own, since it may end in a comment
                query = self._one_query(source.sql)
                opened = f"(WITH input AS (FROM {table}) SELECT * FROM (\n{query}\n))"
                with contextlib.suppress(duckdb.Error):  # which opening it will explain
                    bare = self._relation(source, f"WITH input AS (FROM {table}) (\n{query}\n)")
                    refuse_duplicates(bare.columns, "the result of the SQL")
            try:
                if source.where is not None:
                    opened = self._restricted(source, opened)
                yield opened, self._describe(source, opened)
            except ColumnNotFound as error:
                raise explain_renamed(error, source) from None

    def _describe(self, source: Source, opened: str) -> tuple[Column, ...]:
        """Name the columns by planning a query, which is quicker than running a DESCRIBE."""
        planned = self._planned(source, f"FROM {opened}")
        return tuple(Column(n, str(t)) for n, t in zip(planned.columns, planned.types, strict=True))

    # --------------------------------------------------------------- conditions

    def _restricted(self, source: Source, table: str) -> str:
        """Give the rows of a table that satisfy the source's condition."""
        where, columns = source.where, self._describe(replace(source, where=None), table)
        if where is None or where.types is None:
            where = self._settle(source, table, columns)
        else:  # a plan's file may have been edited, and names columns of another table
            self._named(where.text, columns, source)
        return conditions.restricted(table, columns, where)

    def _named(self, text: str, columns: tuple[Column, ...], source: Source) -> list[Column]:
        """Find the columns a condition names, if it is one."""
        tree = self._connection.execute(
            "SELECT json_serialize_sql(?)", [conditions.to_parse(text)]
        ).fetchall()
        parsed = conditions.parse(text, tree[0][0])
        have = {column.name.casefold() for column in columns}
        called = [*parsed.functions, *(n for n in parsed.columns if n.casefold() not in have)]
        known = self._connection.execute(
            "SELECT DISTINCT function_name, function_type, stability FROM duckdb_functions() "
            "WHERE list_contains(?, function_name) ORDER BY ALL",
            [[name.lower() for name in called]],
        ).fetchall()
        conditions.require_steady(text, known)
        return conditions.resolve(text, parsed.columns, columns, source.name)

    def _settle(self, source: Source, table: str, columns: tuple[Column, ...]) -> Condition:
        """Decide as what a condition compares columns; refuse one that no row satisfies."""
        text = "" if source.where is None else source.where.text.strip()
        if not text:
            raise conditions.not_a_condition(text, "it is empty")
        named = self._named(text, columns, source)
        texts = [column for column in named if sql.is_text(column.type)]
        natural = {}
        if texts:
            answers = self._one(source, conditions.tell_types(table, texts), "reading values")
            natural = conditions.natural_types(texts, answers)
        first: duckdb.Error | None = None
        for types in conditions.typings(named, natural):
            condition = Condition(text, types)
            try:
                kept = self._satisfying(source, table, columns, condition)
            except duckdb.Error as error:
                if not isinstance(error, _MEANINGLESS) or "CSV Error" in str(error):
                    raise _explained(error, source) from None
                first = first or error
                continue
            if not kept:
                raise InputError(
                    f"no row of {source.name} satisfies the condition {condition.one_line}; "
                    f"{conditions.how_compared(condition)}."
                )
            return condition
        usual = Condition(text, conditions.typings(named, natural)[0])
        raise conditions.not_evaluated(usual, source.name, "" if first is None else _reason(first))

    def _satisfying(
        self, source: Source, table: str, columns: tuple[Column, ...], condition: Condition
    ) -> int:
        """Count the rows that satisfy a condition, which must be true or false."""
        said = conditions.truth(table, columns, condition)
        (kind,) = self._relation(source, said).types
        if str(kind) not in ("BOOLEAN", '"NULL"'):
            raise conditions.not_a_condition(
                condition.text, f"it gives {kind}, not whether a row is meant"
            )
        query = f"SELECT count(*) AS n FROM {conditions.restricted(table, columns, condition)}"
        counted = self._watch(
            lambda: self._relation(source, query).to_arrow_table(), f"reading {source.name}"
        )
        return int(counted["n"][0].as_py())

    @contextlib.contextmanager
    def _input(self, source: Source) -> Iterator[str]:
        with called(source), self._spool.held():
            if source.kind in ("sqlite", "excel"):
                yield _parquet([self._copy_of_table(source)])
            else:
                with self._read(source) as table:
                    yield table

    @contextlib.contextmanager
    def _read(self, source: Source) -> Iterator[str]:
        if source.kind == "relation":
            yield "input_relation"
        elif source.kind == "frame":
            with self._registered(source.data) as name:
                yield name
        elif source.kind == "duckdb":
            with self._attached(source) as alias:
                yield self._database_table(source, alias)
        elif source.kind == "csv":
            with tempfile.TemporaryDirectory(dir=self._temporary) as folder:
                yield self._csv_table(source, folder)
        elif source.kind == "parquet":
            yield _parquet(source.paths)
        else:
            yield self._json_table(source)

    @contextlib.contextmanager
    def _registered(self, data: Any) -> Iterator[str]:
        name = f"frame_{next(self._registrations)}"
        try:
            self._connection.register(name, data)
        except duckdb.Error as error:
            raise InputError(f"the frame cannot be read: {_reason(error)}.") from None
        try:
            yield name
        finally:
            self._connection.unregister(name)

    @contextlib.contextmanager
    def _attached(self, source: Source) -> Iterator[str]:
        file = str(source.paths[0])
        try:
            self._connection.execute(f"ATTACH {sql.literal(file)} AS attached (READ_ONLY)")
        except duckdb.Error as error:
            raise InputError(
                f"{file} cannot be opened as a DuckDB database: {_reason(error)}."
            ) from None
        try:
            yield "attached"
        finally:
            self._connection.execute("DETACH attached")

    def _tables_in(self, alias: str, *, views: bool = True) -> dict[str, str]:
        """The tables and views of a database: what a user calls each, and its SQL text."""
        found = self._connection.execute(
            "SELECT schema_name, name FROM (SELECT database_name, schema_name, table_name AS name "
            "FROM duckdb_tables() UNION ALL SELECT database_name, schema_name, view_name FROM "
            "duckdb_views() WHERE NOT internal AND ?) WHERE database_name = ? ORDER BY ALL",
            [views, alias],
        ).fetchall()
        return {
            name if schema == "main" else f"{schema}.{name}": ".".join(
                (alias, sql.identifier(schema), sql.identifier(name))
            )
            for schema, name in found
        }

    def _database_table(self, source: Source, alias: str) -> str:
        tables = self._tables_in(alias)
        return tables[chosen_table(source, tables)]

    # ------------------------------------------------------------------ copying

    def _copy_of_table(self, source: Source) -> Path:
        """Copy a table that DuckDB cannot read as Parquet; the copy is used again."""
        path = source.paths[0]
        if source.kind == "sqlite":
            table = chosen_table(source, sqlite.tables(path, source.name))
        else:
            table = chosen_table(source, spreadsheets.sheets(path), "sheet")

        def write(target: Path) -> None:
            self._report(f"reading {source.name}", 0)
            if source.kind == "sqlite":
                sqlite.copy_table(path, table, target, source.name)
            else:
                spreadsheets.copy_sheet(path, table, target, header=source.header)

        return self._spool.copy(path, (table, source.header), write).path

    def _copy_of_records(self, source: Source, path: Path) -> Copy:
        """Copy a CSV file record by record, without its broken lines if that was asked for."""
        dialect = dialect_of(source, path)
        name = source.name if len(source.paths) == 1 else str(path)

        def write(target: Path) -> Skipped:
            self._report(f"reading {source.name}", 0)
            return copy_records(path, dialect, target, name=name, lenient=source.lenient)

        copy = self._spool.copy(path, (dialect, source.lenient), write)
        if len(source.paths) > 1:
            first = tuple(f"{line} of {path.name}" for line in copy.skipped.first)
            copy = replace(copy, skipped=replace(copy.skipped, first=first))
        return copy

    def _csv_table(self, source: Source, folder: str) -> str:
        """Read CSV as text by the dialect of each file; files of one dialect are read together."""
        files: dict[Dialect | None, list[Path]] = defaultdict(list)
        dialects = {path: dialect_of(source, path) for path in source.paths}
        require_same_columns(dialects)
        for path, dialect in dialects.items():
            if source.lenient or path in self._untidy:
                files[None].append(self._copy_of_records(source, path).path)
            else:
                is_utf8 = dialect.encoding == "utf-8"
                plain = path if is_utf8 else as_utf8(path, dialect.encoding, folder)
                files[replace(dialect, renamed=())].append(plain)
        columns = next(iter(dialects.values())).columns
        names = ", ".join(map(sql.identifier, columns))
        reads = [
            f"SELECT {names} FROM {_parquet(paths)}"
            if dialect is None
            else f"SELECT {_without_blanks(columns)} FROM {_csv(paths, dialect)}"
            for dialect, paths in files.items()
        ]
        return f"({' UNION ALL '.join(reads)})"

    def _json_table(self, source: Source) -> str:
        paths = _paths(source.paths)
        # All lines are looked at, since a sample would miss columns that come late.
        looked = "format = 'auto', union_by_name = true, sample_size = -1"
        columns = self._all(source, f"DESCRIBE FROM read_json({paths}, {looked})", "opening")
        # DuckDB would read texts that look like dates as dates, and print them in its own way;
        # beside values of another kind it would leave texts in their quotes.
        kinds = {n: "VARCHAR" if _reformatted(k) else k for n, k, *_ in columns}
        listed = ", ".join(f"{sql.literal(n)}: {sql.literal(k)}" for n, k in kinds.items())
        return f"read_json({paths}, format = 'auto', columns = {{{listed}}})"

    # ------------------------------------------------------------------ running

    def _one_query(self, text: str) -> str:
        """Take one query; a second statement would end the brackets it stands in."""
        try:
            statements = self._connection.extract_statements(text)
        except duckdb.Error as error:
            raise InputError(f"the SQL cannot be read: {_reason(error)}.") from None
        is_one = len(statements) == 1 and statements[0].type == duckdb.StatementType.SELECT
        # DuckDB 1 rewrites a PRAGMA as a query, which is then not what was given.
        if not is_one or statements[0].query.strip() not in text:
            raise InputError(
                "--sql takes one SELECT over the table, which is called input, as in "
                "\"SELECT * FROM input WHERE age >= '18'\"."
            )
        return re.sub(r";\s*(--[^\n]*\s*)*$", "", statements[0].query.rstrip())

    def _arrow(self, source: Source, query: str, title: str) -> pa.Table:
        return self._watched(source, lambda: self._relation(source, query).to_arrow_table(), title)

    def _brought(
        self,
        source: Source,
        table: str,
        query: Callable[[str], str],
        title: str,
        *,
        in_order: bool,
    ) -> pa.Table:
        """Run a query over rows; those of a relation are brought here first."""
        with self._in_order() if in_order else contextlib.nullcontext():
            if source.kind != "relation":
                return self._arrow(source, query(table), title)
            with self._streamed(source, table) as here:
                return self._arrow(replace(source, kind="frame"), query(here), title)

    def _remaining(
        self,
        source: Source,
        table: str,
        columns: tuple[Column, ...],
        places: pa.Array | pa.ChunkedArray,
        located: bool,
    ) -> pa.Table:
        import pyarrow as pa

        with self._registered(pa.table({"place": places})) as chosen:
            query = functools.partial(
                sql.remaining_rows, columns=columns, chosen=chosen, located=located
            )
            return self._brought(source, table, query, "reading rows", in_order=True)

    @contextlib.contextmanager
    def _twice(self, source: Source, table: str) -> Iterator[tuple[Source, str]]:
        """Give a table that has the same order each time; a view or a query may have others."""
        if source.sql is None and source.kind not in ("duckdb", "relation"):
            yield source, table
            return
        here = replace(source, kind="frame", sql=None, where=None)
        copy = f"copy_{next(self._registrations)}"
        rows = table
        with contextlib.ExitStack() as stack:
            if source.kind == "relation":
                rows = stack.enter_context(self._streamed(source, table))
            stack.enter_context(self._in_order())
            make = f"CREATE TEMP TABLE {copy} AS FROM {rows}"
            self._watched(here, lambda: self._connection.execute(make), "reading rows")
        try:
            yield here, copy
        finally:
            self._connection.execute(f"DROP TABLE {copy}")

    @contextlib.contextmanager
    def _streamed(self, source: Source, table: str) -> Iterator[str]:
        """Read a relation here, since its own connection does not know our tables."""
        import pyarrow as pa

        rows = source.data.query("input_relation", f"FROM {table}")
        with self._registered(pa.RecordBatchReader.from_stream(rows)) as name:
            yield name

    @contextlib.contextmanager
    def _in_order(self) -> Iterator[None]:
        """Read and write rows in their order, which takes longer and is not always needed."""
        self._connection.execute("SET preserve_insertion_order = true")
        try:
            yield
        finally:
            self._connection.execute("SET preserve_insertion_order = false")

    def _relation(self, source: Source, query: str) -> duckdb.DuckDBPyRelation:
        if source.kind == "relation":
            relation: duckdb.DuckDBPyRelation = source.data.query("input_relation", query)
        else:
            relation = self._connection.sql(query)
        return relation

    def _batches(self, source: Source, query: str) -> Iterator[pa.RecordBatch]:
        """Give the result of a query bit by bit."""
        import pyarrow as pa

        try:
            yield from pa.RecordBatchReader.from_stream(self._relation(source, query))
        except (
            pa.ArrowException,
            OSError,
        ) as error:  # in which a stream wraps what the database says
            raise _explained(error, source) from None

    def _planned(self, source: Source, query: str) -> duckdb.DuckDBPyRelation:
        try:
            return self._relation(source, query)
        except duckdb.Error as error:
            raise _explained(error, source) from None

    def _watched(self, source: Source, work: Callable[[], T], title: str) -> T:
        """Watch work on a source, and explain what goes wrong."""
        try:
            return self._watch(work, title)
        except duckdb.Error as error:
            raise _explained(error, source) from None

    def _watch(self, work: Callable[[], T], title: str) -> T:
        """Work in a thread, so that it can report how far it is and be interrupted."""
        connection = self._connection
        return watched(
            work,
            title=title,
            share=lambda: max(connection.query_progress(), 0) / 100,
            interrupt=connection.interrupt,
            report=self._report,
        )

    def _all(self, source: Source, query: str, title: str) -> list[tuple[Any, ...]]:
        table = self._arrow(source, query, title)
        return list(zip(*(c.to_pylist() for c in table.columns), strict=True))

    def _one(self, source: Source, query: str, title: str) -> tuple[Any, ...]:
        return self._all(source, query, title)[0]

    # ----------------------------------------------------------------- counting

    def _with_edges(
        self, source: Source, table: str, columns: tuple[Column, ...], request: CountRequest
    ) -> CountRequest:
        edges = {}
        for column in columns:
            bins = request.bins.get(column.name)
            if isinstance(bins, int):
                present = self._require_numbers(source, table, column, request)
                if not present:
                    raise InputError(f"column {column.name!r} has no numbers to bin.")
                places = [max(-(-present * i // bins), 1) for i in range(bins)]
                query = sql.numbers_in_order(table, column, request.na)
                least, *found = self._numbers_at(source, query, places)
                edges[column.name] = distinct_edges(column.name, found, least)
        return request.with_edges(edges)

    def _numbers_at(self, source: Source, query: str, places: list[int]) -> list[float]:
        """Give the numbers at some places, the first being 1, of a stream of numbers in order."""
        import numpy as np

        def work() -> list[float]:
            found: list[float] = []
            passed = 0
            for batch in self._batches(source, query):
                up_to = passed + np.cumsum(batch["n"].to_numpy())
                while len(found) < len(places) and places[len(found)] <= up_to[-1]:
                    found.append(float(batch["x"][np.searchsorted(up_to, places[len(found)])]))
                passed = int(up_to[-1])
            return found

        return self._watched(source, work, "binning")

    def _to_counts(
        self,
        source: Source,
        table: str,
        columns: list[Column],
        cells: pa.Table,
        request: CountRequest,
    ) -> Counts:
        import numpy as np

        for i, name in enumerate(request.columns):
            if name in request.bins and -1 in cells[f"c{i}"].unique().to_pylist():
                self._require_numbers(source, table, columns[i], request)
        _refuse_bad_numbers(cells, request)
        names = {name: cells[f"c{i}"] for i, name in enumerate(request.columns)}
        rows = checked_counts(cells["n"].to_numpy())
        weights = None
        if request.weight is not None:
            weights = np.stack([cells["w"].to_numpy(), cells["w2"].to_numpy()], axis=1)
        return Counts.from_encoded(names, rows, weights, request)

    def _require_numbers(
        self, source: Source, table: str, column: Column, request: CountRequest
    ) -> int:
        """Refuse a column to bin that holds text, or tell how many numbers it holds."""
        bin_number = sql.bin_number(column.name, column.type, (0,), request.na)
        text = sql.value_text(column.name, column.type)
        query = (
            f"SELECT min({text}) FILTER (WHERE {bin_number} = -1), "
            f"count(*) FILTER (WHERE {bin_number} >= 0) FROM {table}"
        )
        found, numbers = self._one(source, query, "binning")
        if found is not None:
            raise not_a_number(column.name, found)
        return int(numbers)


@functools.lru_cache(maxsize=4)
def shared_engine(
    threads: int | None = None, memory: str | None = None, report: Reporter = silent
) -> DuckDBEngine:
    """One engine per setting and process: opening a connection costs more than small counts."""
    return DuckDBEngine(threads=threads, memory=memory, report=report)


def _require_settings(threads: object, memory: object) -> None:
    if threads is not None and not (isinstance(threads, int) and threads >= 1):
        raise ValueError(f"not {threads!r} threads")
    if memory is not None and not str(memory).strip()[:1].isdigit():
        raise ValueError(f"not {memory!r} of memory")


def _close(connection: duckdb.DuckDBPyConnection, folder: ScratchFolder) -> None:
    connection.close()
    folder.remove()


def _paths(paths: tuple[Path, ...]) -> str:
    return "[" + ", ".join(sql.literal(glob.escape(str(p))) for p in paths) + "]"


def _parquet(paths: Sequence[Path]) -> str:
    by_name = ", union_by_name = true" if len(paths) > 1 else ""
    # Or DuckDB believes the file's statistics, which know no not-a-number.
    return f"read_parquet({_paths(tuple(paths))}, can_have_nan = true{by_name})"


def _csv(paths: Sequence[Path], dialect: Dialect) -> str:
    return (
        f"read_csv({_paths(tuple(paths))}, auto_detect = false, "
        f"header = {str(dialect.header).lower()}, "
        f"nullstr = ['', {sql.literal(NULL)}], allow_quoted_nulls = false, "
        """quote = '"', escape = '"', """
        f"delim = {sql.literal(dialect.delimiter)}, skip = {dialect.empty_lines}, "
        f"columns = {_text_columns(dialect.columns)}{_line_end(dialect)})"
    )


def _without_blanks(names: Sequence[str]) -> str:
    """Take nothing in quotes for missing, too; the null of dumps in quotes is a text."""
    return ", ".join(f"nullif({c}, '') AS {c}" for c in map(sql.identifier, names))


def _line_end(dialect: Dialect) -> str:
    # Guessed by DuckDB, one inside quotes in the header makes all rows vanish.
    return f", new_line = {sql.literal(repr(dialect.line_end)[1:-1])}" if dialect.line_end else ""


def _text_columns(names: tuple[str, ...]) -> str:
    return "{" + ", ".join(f"{sql.literal(n)}: 'VARCHAR'" for n in names) + "}"


def _reformatted(column_type: str) -> bool:
    return column_type.upper().startswith(("DATE", "TIME", "UUID", "INTERVAL", "JSON"))


def _nulls_to_quote(rows: pa.Table) -> str:
    """Quote the columns of which a text would be read as missing."""
    import pyarrow as pa
    import pyarrow.compute as pc

    found = []
    for field, column in zip(rows.schema, rows.columns, strict=True):
        kind = field.type.value_type if pa.types.is_dictionary(field.type) else field.type
        is_text = pa.types.is_string(kind) or pa.types.is_large_string(kind)
        if is_text and pc.any(pc.equal(column.cast(kind), NULL)).as_py():
            found.append(sql.identifier(field.name))
    return f", FORCE_QUOTE ({', '.join(found)})" if found else ""


def _wanted(take: Counts) -> pa.Table:
    import pyarrow as pa

    cells = take.to_arrow()
    keys = {f"k{i}": cells.column(i) for i in range(len(take.axes))}
    places = pa.array(range(len(cells)), pa.int64())
    return pa.table({**keys, "want": pa.array(take.rows), "cell": places})


def _refuse_bad_numbers(cells: pa.Table, request: CountRequest) -> None:
    import pyarrow.compute as pc

    if request.count is not None:
        bad = [b for b in cells["bad"].to_pylist() if b is not None]
        if bad or pc.sum(cells["unknown"]).as_py():
            raise not_a_count(request.count, bad[0] if bad else MISSING)
    if request.weight is not None and pc.sum(cells["bad_weights"]).as_py():
        raise not_weights(request.weight, pc.sum(cells["bad_weights"]).as_py())


def _reason(error: BaseException) -> str:
    """The first line of a database's message, without its end, to stand inside a sentence."""
    return str(error).strip().splitlines()[0].rstrip(".!? ")


def _explained(error: Exception, source: Source) -> Exception:
    """Turn a database's message into a sentence with what to do."""
    text = str(error)
    if isinstance(error, duckdb.InterruptException) or text.startswith("INTERRUPT Error"):
        return KeyboardInterrupt()  # type: ignore[return-value]
    if "not utf-8 encoded" in text or "Invalid unicode" in text or "Invalid UTF" in text:
        return not_encoded(source.name, source.encoding)
    if "Out of Memory" in text or isinstance(error, duckdb.OutOfMemoryException):
        return InputError(
            f"{source.name} needs more memory than allowed; give more with --memory, or name "
            f"fewer attributes ({_reason(error)})."
        )
    ragged = re.search(r"CSV Error on Line: (\d+)", text)
    if ragged:
        wide = re.search(r"Expected Number of Columns: (\d+) Found: (\d+)", text)
        if wide:
            what = f"has {wide[2]} fields where {wide[1]} are expected"
            return InputError(f"line {ragged[1]} of {source.name} {what}; {MEND}.")
        lines = (x.strip(" .") for x in text.splitlines()[2:] if x.strip())
        return _Unparsed(
            f"line {ragged[1]} of {source.name} cannot be read: {next(lines, 'it is broken')}; {MEND}."
        )
    if "state machine reached an invalid state" in text:
        return _Unparsed(f"{source.name} is not well-formed CSV; {MEND}.")
    if isinstance(error, duckdb.IOException):
        return SourceNotFound(f"{source.name} cannot be read: {_reason(error)}.")
    if source.where is not None and isinstance(error, _MEANINGLESS):
        return conditions.not_evaluated(source.where, source.name, _reason(error))
    if source.sql is not None:
        return InputError(f"the SQL over {source.name} failed: {_reason(error)}.")
    return InputError(f"{source.name} cannot be read: {_reason(error)}.")
