"""Sources as tables that DuckDB can query: files, databases, frames, and copies of other files."""

from __future__ import annotations

import contextlib
import functools
import re
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import duckdb

from equipoise.counts.skipped import Skipped
from equipoise.engines.base import Column
from equipoise.engines.column_names import refuse_duplicates
from equipoise.engines.csv.dialects import CsvDialect, require_same_columns
from equipoise.engines.csv.encodings import as_utf8
from equipoise.engines.csv.records import NULL, copy_records
from equipoise.engines.duckdb._conditions import restrict
from equipoise.engines.duckdb._dialect import DIALECT
from equipoise.engines.duckdb._errors import reason
from equipoise.engines.duckdb._listed import listed_table
from equipoise.engines.duckdb._session import Session
from equipoise.engines.duckdb._window import path_in_sql
from equipoise.engines.readers import spreadsheets, sqlite
from equipoise.engines.readers.copies import Copy, Spool
from equipoise.engines.sources import (
    WORD,
    Source,
    called,
    chosen_table,
    dialect_of,
    explain_renamed,
)
from equipoise.engines.sql import over
from equipoise.engines.stored import FilePath
from equipoise.engines.stores import delta, iceberg
from equipoise.engines.stores.file_lists import FileList
from equipoise.errors import ColumnNotFound, InputError


class Tables:
    """Opens sources on a session: each becomes the SQL text of a table."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._spool = Spool(session.folder)
        self._untidy: set[FilePath] = set()

    def read_by_record(self, source: Source) -> None:
        """Read the CSV files of a source record by record from now on, since DuckDB cannot."""
        self._untidy.update(source.files)

    @contextlib.contextmanager
    def opened(
        self, source: Source, *, described: bool = True
    ) -> Iterator[tuple[str, tuple[Column, ...]]]:
        """Yield the SQL text of a table, and its columns if they are asked for, while it can be read."""
        with self._session.lock, self._input(source) as table, self._asked(source) as asked:
            text = table if source.sql is None else self._query_over(table, source)
            try:
                if source.where is not None:
                    text = restrict(self._session, source, text)
                if source.view is not None:
                    text = over(text, source.view.query(DIALECT), asked)
                yield text, self._session.columns(source, text) if described else ()
            except ColumnNotFound as error:
                raise explain_renamed(error, source) from None

    def _asked(self, source: Source) -> contextlib.AbstractContextManager[str]:
        if source.asked is None:
            return contextlib.nullcontext("")
        if source.kind == "relation":  # the connection of which does not have our tables
            words = ",".join(source.asked[WORD].to_pylist())
            return contextlib.nullcontext(
                f"(SELECT unnest(string_split('{words}', ',')) AS {WORD})"
            )
        return self._session.registered(source.asked)

    @contextlib.contextmanager
    def _input(self, source: Source) -> Iterator[str]:
        self._session.reach(source, source.files)
        with called(source), self._spool.held():
            if source.kind == "relation":
                yield "input_relation"
            elif source.kind == "frame":
                with self._session.registered(source.data) as name:
                    yield name
            elif source.kind == "duckdb":
                with self._attached(source):
                    tables = self._attached_tables()
                    yield tables[chosen_table(source, tables)]
            elif source.kind == "csv":
                with tempfile.TemporaryDirectory(dir=self._session.folder) as folder:
                    yield self._csv_table(source, folder)
            elif source.kind == "parquet":
                yield _parquet(source.files)
            elif source.kind == "json":
                yield self._json_table(source)
            elif source.kind == "delta":
                yield self._listed_table(source, delta.file_list(source))
            elif source.kind == "iceberg":
                yield self._listed_table(source, iceberg.file_list(source))
            else:
                yield _parquet([self._copy_of_table(source)])

    def _listed_table(self, source: Source, listed: FileList) -> str:
        self._session.reach(source, listed.files)
        return listed_table(listed)

    def _query_over(self, table: str, source: Source) -> str:
        """Return the user's query over a table, which it calls ``input``."""
        query = self._one_query(source.sql or "")
        with contextlib.suppress(duckdb.Error):  # the error is explained when the result is opened
            bare = self._session.relation(source, f"WITH input AS (FROM {table}) (\n{query}\n)")
            refuse_duplicates(bare.columns, "the result of the SQL")
        return over(table, query)

    def _one_query(self, text: str) -> str:
        """Refuse more than one query, since a second one would break out of the brackets."""
        try:
            statements = self._session.connection.extract_statements(text)
        except duckdb.Error as error:
            raise InputError(f"the SQL cannot be read: {reason(error)}.") from None
        is_one = len(statements) == 1 and statements[0].type == duckdb.StatementType.SELECT
        # DuckDB 1 rewrites a PRAGMA as a query, which is then not what was given.
        if not is_one or statements[0].query.strip() not in text:
            raise InputError(
                "`sql` takes one SELECT over the table, which is called input, as in "
                "\"SELECT * FROM input WHERE age >= '18'\"."
            )
        return re.sub(r";\s*(--[^\n]*\s*)*$", "", statements[0].query.rstrip())

    # ---------------------------------------------------------------- databases

    def names(self, source: Source) -> tuple[str, ...]:
        """Names of the tables in a DuckDB database, without its views, which have no own rows."""
        with self._session.lock, self._attached(source):
            return tuple(self._attached_tables(views=False))

    @contextlib.contextmanager
    def _attached(self, source: Source) -> Iterator[None]:
        file = str(source.paths[0])
        try:
            self._session.connection.execute(
                f"ATTACH {DIALECT.literal(file)} AS attached (READ_ONLY)"
            )
        except duckdb.Error as error:
            raise InputError(
                f"{file} cannot be opened as a DuckDB database: {reason(error)}."
            ) from None
        try:
            yield
        finally:
            self._session.connection.execute("DETACH attached")

    def _attached_tables(self, *, views: bool = True) -> dict[str, str]:
        """Return the SQL text of each table and view by the name that a user gives it."""
        found = self._session.connection.execute(
            "SELECT schema_name, name FROM (SELECT database_name, schema_name, table_name AS name "
            "FROM duckdb_tables() UNION ALL SELECT database_name, schema_name, view_name FROM "
            "duckdb_views() WHERE NOT internal AND ?) WHERE database_name = 'attached' ORDER BY ALL",
            [views],
        ).fetchall()
        return {
            name if schema == "main" else f"{schema}.{name}": (
                f"attached.{DIALECT.identifier(schema)}.{DIALECT.identifier(name)}"
            )
            for schema, name in found
        }

    # ------------------------------------------------------------------- copies

    def skipped(self, source: Source) -> Skipped:
        """Lines that are left out of a CSV table that is read leniently."""
        if source.kind != "csv" or not source.lenient:
            return Skipped()
        copies = (self._copy_of_records(source, path) for path in source.files)
        return sum((copy.skipped for copy in copies), Skipped())

    def _copy_of_table(self, source: Source) -> Path:
        """Copy a table that DuckDB cannot read to Parquet; the copy is reused."""
        path = source.paths[0]
        if source.kind == "sqlite":
            table = chosen_table(source, sqlite.tables(path, source.name))
            copy = functools.partial(sqlite.copy_table, name=source.name)
        else:
            table = chosen_table(source, spreadsheets.sheets(path), "sheet")
            copy = functools.partial(spreadsheets.copy_sheet, header=source.header)

        def write(target: Path) -> None:
            self._session.report(f"reading {source.name}", 0)
            copy(path, table, target)

        return self._spool.copy(path, (table, source.header), write).path

    def _copy_of_records(self, source: Source, path: FilePath) -> Copy:
        """Copy a CSV file record by record, without its broken lines if requested."""
        dialect = dialect_of(source, path)
        name = source.name if len(source.files) == 1 else str(path)

        def write(target: Path) -> Skipped:
            self._session.report(f"reading {source.name}", 0)
            return copy_records(path, dialect, target, name=name, lenient=source.lenient)

        copy = self._spool.copy(path, (dialect, source.lenient), write)
        if len(source.files) > 1:
            first = tuple(f"{line} of {path.name}" for line in copy.skipped.first)
            copy = replace(copy, skipped=replace(copy.skipped, first=first))
        return copy

    # -------------------------------------------------------------------- files

    def _csv_table(self, source: Source, folder: str) -> str:
        """Read CSV files as text; files of the same dialect are read together."""
        files: dict[CsvDialect | None, list[FilePath]] = defaultdict(list)
        dialects = {path: dialect_of(source, path) for path in source.files}
        require_same_columns(dialects)
        for path, dialect in dialects.items():
            if source.lenient or path in self._untidy:
                files[None].append(self._copy_of_records(source, path).path)
            else:
                is_utf8 = dialect.encoding == "utf-8"
                plain = path if is_utf8 else as_utf8(path, dialect.encoding, folder)
                files[replace(dialect, renamed=())].append(plain)
        columns = next(iter(dialects.values())).columns
        names = ", ".join(map(DIALECT.identifier, columns))
        reads = [
            f"SELECT {names} FROM {_parquet(paths)}"
            if dialect is None
            else f"SELECT {_without_blanks(columns)} FROM {_csv(paths, dialect)}"
            for dialect, paths in files.items()
        ]
        return f"({' UNION ALL '.join(reads)})"

    def _json_table(self, source: Source) -> str:
        paths = _paths(source.files)
        # All lines are inspected, since a sample would miss columns that first occur later.
        looked = "format = 'auto', union_by_name = true, sample_size = -1"
        columns = self._session.lines(
            source, f"DESCRIBE FROM read_json({paths}, {looked})", "opening"
        )
        # DuckDB would read texts that look like dates as dates, and print them in its own way;
        # beside values of another kind it would leave texts in their quotes.
        reformatted = ("DATE", "TIME", "UUID", "INTERVAL", "JSON")
        kinds = {n: "VARCHAR" if k.upper().startswith(reformatted) else k for n, k, *_ in columns}
        listed = ", ".join(f"{DIALECT.literal(n)}: {DIALECT.literal(k)}" for n, k in kinds.items())
        return f"read_json({paths}, format = 'auto', columns = {{{listed}}})"


def _paths(paths: Sequence[FilePath]) -> str:
    return "[" + ", ".join(DIALECT.literal(path_in_sql(p)) for p in paths) + "]"


def _parquet(paths: Sequence[FilePath]) -> str:
    by_name = ", union_by_name = true" if len(paths) > 1 else ""
    # By default DuckDB relies on the file's statistics, which ignore not-a-number.
    return f"read_parquet({_paths(paths)}, can_have_nan = true{by_name})"


def _csv(paths: Sequence[FilePath], dialect: CsvDialect) -> str:
    columns = ", ".join(f"{DIALECT.literal(name)}: 'VARCHAR'" for name in dialect.columns)
    # If DuckDB guesses, a line break inside quotes in the header makes all rows disappear.
    end = (
        f", new_line = {DIALECT.literal(repr(dialect.line_end)[1:-1])}" if dialect.line_end else ""
    )
    return (
        f"read_csv({_paths(paths)}, auto_detect = false, "
        f"header = {str(dialect.header).lower()}, "
        f"nullstr = ['', {DIALECT.literal(NULL)}], allow_quoted_nulls = false, "
        """quote = '"', escape = '"', """
        f"delim = {DIALECT.literal(dialect.delimiter)}, skip = {dialect.empty_lines}, "
        f"columns = {{{columns}}}{end})"
    )


def _without_blanks(names: Sequence[str]) -> str:
    """Read an empty text in quotes as missing, too; a quoted null of dumps is text."""
    return ", ".join(f"nullif({c}, '') AS {c}" for c in map(DIALECT.identifier, names))
