"""A store in a file of SQLite, in write-ahead mode, so that many may read while one writes."""

from __future__ import annotations

import contextlib
import os
import sqlite3
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from equipoise.errors import InputError, SourceNotFound
from equipoise.monitoring.store import schema

WAIT = 30.0
"""Number of seconds to wait for another program that writes."""


class SqliteDatabase:
    """A file of SQLite that holds a store."""

    def __init__(self, path: str | os.PathLike[str], *, create: bool, write: bool) -> None:
        self.path = Path(path)
        self.name = os.fspath(path)
        self._write = write
        self._require_file(create=create)
        self._connection = self._connected(write=write)
        try:
            with self._explained():
                self._prepare(create=create)
        except BaseException:
            self.close()
            raise

    # ------------------------------------------------------------------ opening

    def _require_file(self, *, create: bool) -> None:
        if self.path.is_dir():
            raise InputError(f"{self.name} is a folder; a store is a file, such as bias.sqlite.")
        if self.path.exists():
            return
        if not create:
            raise SourceNotFound(
                f"there is no store {self.name}; equipoise monitor add makes one with the first batch."
            )
        if not self.path.absolute().parent.is_dir():
            raise InputError(f"the folder {self.path.parent} does not exist; create it first.")

    def _connected(self, *, write: bool) -> sqlite3.Connection:
        where = f"file:{quote(os.fspath(self.path.absolute()))}"
        with self._explained():
            if write:
                return self._connect(f"{where}?mode=rwc")
            connection = self._connect(f"{where}?mode=ro")
            try:
                connection.execute("PRAGMA schema_version").fetchone()
            except sqlite3.DatabaseError as error:
                connection.close()
                log = Path(f"{self.path}-wal")
                refused = "unable to open" in str(error) or "readonly" in str(error)
                if not refused or (log.exists() and log.stat().st_size):
                    raise
                # Nobody writes, and the folder does not let a reader keep its own files there.
                return self._connect(f"{where}?mode=ro&immutable=1")
        return connection

    def _connect(self, uri: str) -> sqlite3.Connection:
        return sqlite3.connect(
            uri, uri=True, timeout=WAIT, isolation_level=None, check_same_thread=False
        )

    def _prepare(self, *, create: bool) -> None:
        """Check that the file is a store; make or migrate it if it is to be written."""
        mark, version = self._marks()
        if mark != schema.APPLICATION:
            tables = self.run("SELECT count(*) FROM sqlite_master")[0][0]
            if tables or mark:
                raise InputError(
                    f"{self.name} is a SQLite database, but no store of equipoise monitor; name another file."
                )
            if not create:
                raise InputError(f"{self.name} is empty, and no store; name another file.")
        if version > schema.present():
            raise InputError(
                f"{self.name} was written by a newer version of Equipoise (its format is {version}, this "
                f"version reads up to {schema.present()}); update Equipoise. Nothing was changed."
            )
        if self._write:
            # The log is written to the disk with each batch: what is acknowledged survives a crash.
            self._connection.execute("PRAGMA synchronous = FULL")
        if version == schema.present():
            return
        if not self._write:
            self.close()
            self._connection = self._connected(write=True)
        self._migrate()

    def _marks(self) -> tuple[int, int]:
        (mark,), (version,) = (
            self.run(f"PRAGMA {name}")[0] for name in ("application_id", "user_version")
        )
        return mark, version

    def _migrate(self) -> None:
        self._connection.execute("PRAGMA journal_mode = WAL")
        with self.writing():
            _, version = self._marks()  # another program may have been faster
            for statement in schema.statements("sqlite", version):
                self.run(statement)
            self.run(f"PRAGMA application_id = {schema.APPLICATION}")
            self.run(f"PRAGMA user_version = {schema.present()}")

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    # ------------------------------------------------------------------ working

    @contextlib.contextmanager
    def reading(self) -> Iterator[None]:
        """See one state of the store until the block ends."""
        with self._transaction("BEGIN"):
            yield

    @contextlib.contextmanager
    def writing(self) -> Iterator[None]:
        """Change the store, as the only one who does; all of it at the end of the block, or nothing."""
        with self._transaction("BEGIN IMMEDIATE"):
            yield

    @contextlib.contextmanager
    def _transaction(self, begin: str) -> Iterator[None]:
        with self._explained():
            self._connection.execute(begin)
            try:
                yield
                self._connection.execute("COMMIT")
            except BaseException:
                # A full disk has rolled back by itself.
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                raise

    def run(self, statement: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Run a statement; parameters are question marks."""
        return self._connection.execute(statement, values).fetchall()

    def run_many(self, statement: str, lines: Sequence[Sequence[Any]]) -> None:
        """Run a statement for each line of values."""
        self._connection.executemany(statement, lines)

    # ------------------------------------------------------------------- errors

    @contextlib.contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.DatabaseError as error:
            raise self._error(error) from None

    def _error(self, error: sqlite3.DatabaseError) -> InputError:
        said = str(error)
        if "locked" in said or "busy" in said:
            return InputError(
                f"{self.name} is in use by another program, which did not finish within {WAIT:.0f} seconds; "
                "nothing was changed. Try again."
            )
        if "full" in said or "disk I/O" in said:
            return InputError(
                f"{self.name} could not be written, since the disk is full or failed ({said}); nothing was "
                "changed, and all batches before are kept. Free some disk space and try again."
            )
        if "readonly" in said or "read-only" in said:
            return InputError(f"{self.name} cannot be written to ({said}); nothing was changed.")
        if "unable to open" in said:
            return InputError(
                f"{self.name} cannot be opened; check the rights to it and its folder."
            )
        if "not a database" in said:
            return InputError(f"{self.name} is no store of equipoise monitor; name another file.")
        return InputError(f"{self.name} is damaged or cannot be used ({said}).")
