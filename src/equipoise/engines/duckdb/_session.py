"""A connection to DuckDB: its settings, its temporary folder, and how queries run on it."""

from __future__ import annotations

import contextlib
import ctypes
import itertools
import threading
import weakref
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

import duckdb
import pyarrow as pa

from equipoise.engines.base import Column
from equipoise.engines.duckdb._dialect import DIALECT
from equipoise.engines.duckdb._errors import explained, reason
from equipoise.engines.duckdb._window import SCHEME, Window
from equipoise.engines.sources import Source
from equipoise.engines.stored import FilePath, StoredFile
from equipoise.errors import InputError
from equipoise.progress import Reporter, watched
from equipoise.scratch import ScratchFolder, make_folder

T = TypeVar("T")


class Session:
    """One connection, used by one thread at a time while it holds ``lock``."""

    def __init__(
        self,
        *,
        threads: int | None,
        memory: str | None,
        report: Reporter,
        within: Sequence[str] | None = None,
    ) -> None:
        self.lock = threading.RLock()
        self.report = report
        self._names = itertools.count()
        folder = make_folder()
        self.folder = folder.path
        settings: dict[str, Any] = {
            "temp_directory": str(folder.path),
            # Nothing is ever fetched from outside.
            "autoinstall_known_extensions": False,
            "autoload_known_extensions": False,
            # Most queries do not need the order of rows, and keeping it takes time and memory.
            "preserve_insertion_order": False,
        }
        limits = {"threads": threads, "memory_limit": memory}
        settings |= {name: limit for name, limit in limits.items() if limit is not None}
        try:
            _require_settings(threads, memory)
            self.connection = duckdb.connect(":memory:", config=settings)
        except (duckdb.Error, ValueError, TypeError) as error:
            folder.remove()
            raise InputError(
                f"threads={threads}, memory={memory!r} cannot be set; threads is a whole number of "
                f"at least 1 and memory a size such as 2GB ({reason(error)})."
            ) from None
        self._within, self._window = within, Window(folder.path)
        if within is not None:
            self._confine([*within, str(folder.path)])
        # If nobody closes it, this happens when it is collected, or at the end of the program.
        self.close = weakref.finalize(self, _close, self.connection, folder)
        # In a notebook without ipywidgets DuckDB refuses these settings; progress stays unknown.
        with contextlib.suppress(duckdb.Error):
            self.connection.execute(
                "SET enable_progress_bar = true; SET enable_progress_bar_print = false"
            )
        # The same on every machine: a moment without a zone, as in older Parquet files, is in UTC.
        with contextlib.suppress(duckdb.Error):
            self.connection.execute("SET TimeZone = 'UTC'")
        # DuckDB 2.0 pushes TRY_CAST into the CSV reader, where it fails instead of returning null
        # (duckdb/duckdb#23818). Older versions do not know the setting.
        with contextlib.suppress(duckdb.Error):
            self.connection.execute("SET disabled_optimizers = 'type_pushdown'")

    def _confine(self, folders: Sequence[str]) -> None:
        """Refuse every file that is not below these folders, and everything outside the machine."""
        listed = ", ".join(DIALECT.literal(folder) for folder in folders)
        self.connection.execute(f"SET allowed_directories = [{listed}]")
        self.connection.execute("SET enable_external_access = false")

    def reach(self, source: Source, files: Sequence[FilePath]) -> None:
        """Make the stores of files known to the connection; refuse them if reading is confined."""
        if self._within is not None and not self._is_within(source, files):
            raise InputError(
                f"{source.name} is not below the folders that may be read here; only files of these "
                "folders are."
            )
        stored = [file for file in files if isinstance(file, StoredFile)]
        if stored and not self.connection.filesystem_is_registered(SCHEME):
            self.connection.register_filesystem(self._window.filesystem())
        for file in stored:
            self._window.add(file)

    def _is_within(self, source: Source, files: Sequence[FilePath]) -> bool:
        """Whether a source is of this machine; DuckDB itself checks the files of its rows.

        An Iceberg table is refused, since its metadata names other files, which are read before.
        """
        if source.address is None:
            return True
        place = source.address.removeprefix("delta:")
        folders = [Path(folder).resolve() for folder in self._within or ()]
        return (
            source.kind == "delta"
            and "://" not in place
            and any(Path(place).resolve().is_relative_to(folder) for folder in folders)
            and all(isinstance(file, Path) for file in files)
        )

    # ------------------------------------------------------------------- tables

    def new_name(self, prefix: str) -> str:
        """Return a name that no table of this connection has."""
        return f"{prefix}_{next(self._names)}"

    @contextlib.contextmanager
    def registered(self, data: Any) -> Iterator[str]:
        """Register Arrow data under a name that queries can use."""
        name = self.new_name("frame")
        try:
            self.connection.register(name, data)
        except duckdb.Error as error:
            raise InputError(f"the frame cannot be read: {reason(error)}.") from None
        try:
            yield name
        finally:
            self.connection.unregister(name)

    @contextlib.contextmanager
    def streamed(self, source: Source, table: str) -> Iterator[str]:
        """Read a relation into this connection, since its own does not have our tables."""
        rows = source.data.query("input_relation", f"FROM {table}")
        with self.registered(pa.RecordBatchReader.from_stream(rows)) as name:
            yield name

    @contextlib.contextmanager
    def in_order(self) -> Iterator[None]:
        """Keep the order of rows, which takes longer and is not always needed."""
        self.connection.execute("SET preserve_insertion_order = true")
        try:
            yield
        finally:
            self.connection.execute("SET preserve_insertion_order = false")

    # ------------------------------------------------------------------ queries

    def relation(self, source: Source, query: str) -> duckdb.DuckDBPyRelation:
        """Plan a query; one over a relation runs on the connection of the relation."""
        if source.kind != "relation":
            return self.connection.sql(query)
        relation: duckdb.DuckDBPyRelation = source.data.query("input_relation", query)
        return relation

    def columns(self, source: Source, table: str) -> tuple[Column, ...]:
        """Find the columns by planning a query, which is faster than running a DESCRIBE."""
        try:
            planned = self.relation(source, f"FROM {table}")
        except duckdb.Error as error:
            raise explained(error, source) from None
        return tuple(Column(n, str(t)) for n, t in zip(planned.columns, planned.types, strict=True))

    def arrow(self, source: Source, query: str, title: str) -> pa.Table:
        """Run a query, and explain errors."""
        return self.work(source, lambda: self.relation(source, query).to_arrow_table(), title)

    def lines(self, source: Source, query: str, title: str) -> list[tuple[Any, ...]]:
        """Run a query, and return its result as tuples of Python values."""
        table = self.arrow(source, query, title)
        return list(zip(*(c.to_pylist() for c in table.columns), strict=True))

    def batches(self, source: Source, query: str) -> Iterator[pa.RecordBatch]:
        """Yield the result of a query in batches."""
        try:
            yield from pa.RecordBatchReader.from_stream(self.relation(source, query))
        except (pa.ArrowException, OSError) as error:  # a stream wraps errors of the database
            raise explained(error, source) from None

    def work(self, source: Source, work: Callable[[], T], title: str) -> T:
        """Watch work on a source, and explain errors."""
        try:
            return self.watch(work, title)
        except duckdb.Error as error:
            raise explained(error, source) from None

    def watch(self, work: Callable[[], T], title: str) -> T:
        """Work in a thread, so that progress can be reported and the work interrupted."""
        connection = self.connection
        return watched(
            work,
            title=title,
            share=lambda: max(connection.query_progress(), 0) / 100,
            interrupt=connection.interrupt,
            report=self.report,
        )


def release_memory() -> None:
    """Give the memory that allocators keep for later back to the system, after a pass over many rows."""
    pa.default_memory_pool().release_unused()
    with contextlib.suppress(OSError, AttributeError):  # which only the C library of GNU has
        ctypes.CDLL("libc.so.6").malloc_trim(0)


def _require_settings(threads: object, memory: object) -> None:
    if threads is not None and not (isinstance(threads, int) and threads >= 1):
        raise ValueError(f"not {threads!r} threads")
    if memory is not None and not str(memory).strip()[:1].isdigit():
        raise ValueError(f"not {memory!r} of memory")


def _close(connection: duckdb.DuckDBPyConnection, folder: ScratchFolder) -> None:
    with contextlib.suppress(duckdb.Error):  # which would otherwise keep the connection alive
        if connection.filesystem_is_registered(SCHEME):
            connection.unregister_filesystem(SCHEME)
    connection.close()
    folder.remove()
