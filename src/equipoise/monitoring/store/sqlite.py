"""A store in a file of SQLite, in write-ahead mode, so that many may read while one writes."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import stat
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from equipoise.errors import InputError, SourceNotFound
from equipoise.monitoring.store import schema
from equipoise.monitoring.store.files import identity_of, mode_of

WAIT = 30.0
"""Number of seconds to wait for another program that writes."""
_BREATH = 0.1
"""Number of seconds that SQLite waits by itself, in which Ctrl-C is not heard."""
_WRITE = "BEGIN IMMEDIATE"


class SqliteDatabase:
    """A file of SQLite that holds a store."""

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        create: bool,
        write: bool,
        read_only: bool = False,
    ) -> None:
        self.path = Path(path).absolute()  # the folder that it is relative to may change
        self.name = os.fspath(path)
        self._write, self._read_only = write, read_only
        self._require_file(create=create)
        before = identity_of(self.path)
        self._connection = self._connected(write=write)
        self._identity = before or identity_of(self.path)
        try:
            with self._explained():
                self._prepare(create=create)
        except BaseException:
            self.close()
            raise

    # ------------------------------------------------------------------ opening

    def _require_file(self, *, create: bool) -> None:
        mode = mode_of(self.path)
        if mode is not None and stat.S_ISDIR(mode):
            raise InputError(f"{self.name} is a folder; a store is a file, such as bias.sqlite.")
        if mode and not stat.S_ISREG(mode):  # opening a pipe would wait for ever
            raise InputError(
                f"{self.name} is a pipe or a device; a store is a file, such as bias.sqlite."
            )
        if mode is not None:
            return
        if not create:
            raise SourceNotFound(
                f"there is no store {self.name}; equipoise monitor add creates one with the first batch."
            )
        if not self.path.parent.is_dir():
            raise InputError(
                f"the folder {Path(self.name).parent} does not exist; create it first."
            )

    def _connected(self, *, write: bool) -> sqlite3.Connection:
        with self._explained():
            if write:
                return self._connect("rwc")
            # Unlike a reader, the last one who may write removes the files that SQLite keeps beside the store.
            may = not self._read_only and os.access(self.path, os.W_OK)
            for mode in ("rw", "ro") if may else ("ro",):
                connection = self._connect(mode)
                try:
                    connection.execute("PRAGMA query_only = ON")
                    _patiently(connection, "PRAGMA schema_version")
                except sqlite3.DatabaseError as error:
                    connection.close()
                    if not _has_no_room(error):
                        raise
                    refused = error
                else:
                    return connection
            log = Path(f"{self.path}-wal")
            if log.exists() and log.stat().st_size:
                raise refused
            # Nobody writes, and the folder has no place for the files that a reader keeps there.
            return self._connect("ro&immutable=1")

    def _connect(self, mode: str) -> sqlite3.Connection:
        return sqlite3.connect(
            f"file:{quote(os.fspath(self.path))}?mode={mode}",
            uri=True,
            timeout=_BREATH,
            isolation_level=None,
            check_same_thread=False,
        )

    def _prepare(self, *, create: bool) -> None:
        """Check that the file is a store; make or migrate it if it is to be written."""
        with self.reading():  # another program may be making the store
            mark, version = self._marks()
            tables = self.run("SELECT count(*) FROM sqlite_master")[0][0]
        self._require_store(mark, version, tables=tables > 0, create=create)
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
        if self._read_only:
            raise InputError(schema.too_old(self.name))
        if not self._write:
            self.close()
            self._connection = self._connected(write=True)
        self._migrate()

    def _require_store(self, mark: int, version: int, *, tables: bool, create: bool) -> None:
        if mark == schema.APPLICATION and version > 0:
            return
        # Tables, mark and version are written at once: with some of them only, others made it.
        if tables or mark not in (0, schema.APPLICATION):
            raise InputError(
                f"{self.name} is a SQLite database, but not a store of equipoise monitor; use another file."
            )
        if not create:
            raise InputError(
                f"{self.name} is empty; equipoise monitor add creates a store in it with the first batch."
            )

    def _marks(self) -> tuple[int, int]:
        (mark,), (version,) = (
            self.run(f"PRAGMA {name}")[0] for name in ("application_id", "user_version")
        )
        return mark, version

    def _migrate(self) -> None:
        self.run("PRAGMA journal_mode = WAL")
        with self.writing():
            _, version = self._marks()  # another program may have been faster
            for statement in schema.statements("sqlite", version):
                self.run(statement)
            self.run(f"PRAGMA application_id = {schema.APPLICATION}")
            self.run(f"PRAGMA user_version = {schema.present()}")

    @property
    def is_replaced(self) -> bool:
        """Whether the file was removed, or another one is in its place."""
        return identity_of(self.path) != self._identity

    def _require_same(self) -> None:
        if self.is_replaced:
            raise InputError(
                f"{self.name} was removed or replaced while it was open; nothing was changed. Try again."
            )

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
        with self._transaction(_WRITE):
            yield

    @contextlib.contextmanager
    def _transaction(self, begin: str) -> Iterator[None]:
        at_end = False
        with self._explained():
            try:
                self.run(begin)  # Ctrl-C may come just after it
                yield
                if begin == _WRITE:
                    self._require_same()
                at_end = True
                self.run("COMMIT")
            except BaseException as error:
                # A full disk has rolled back by itself.
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                elif at_end and begin == _WRITE and isinstance(error, KeyboardInterrupt):
                    raise KeyboardInterrupt(f"{self.name} was already changed") from None
                raise

    def run(self, statement: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Run a statement; parameters are question marks."""
        return _patiently(self._connection, statement, values)

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
        except UnicodeDecodeError:  # of a message that repeats what is damaged
            raise self._error(sqlite3.DatabaseError("its tables cannot be read")) from None

    def _error(self, error: sqlite3.DatabaseError) -> InputError:
        said = str(error).partition(" with text ")[
            0
        ]  # which may be long, and none that can be read
        if _is_busy(error):
            return InputError(
                f"{self.name} is in use by another program, which did not finish within {WAIT:.0f} seconds; "
                "nothing was changed. Try again."
            )
        if "full" in said or "disk I/O" in said:
            return InputError(
                f"{self.name} could not be written, because the disk is full or failed ({said}). Nothing was "
                "changed, and all earlier batches are kept. Free some disk space and try again."
            )
        if "readonly" in said or "read-only" in said:
            return InputError(
                f"{self.name} cannot be written to ({said}); nothing was changed.{self._in_the_way()}"
            )
        if "unable to open" in said:
            return InputError(
                f"{self.name} cannot be opened; check the permissions of the file and its folder.{self._in_the_way()}"
            )
        if "not a database" in said:
            return InputError(f"{self.name} is not a store of equipoise monitor; use another file.")
        return InputError(
            f"{self.name} is damaged or cannot be used ({said}); restore it from a backup."
        )

    def _in_the_way(self) -> str:
        """Name the files of another user beside the store that this one may not write to."""
        shut = [
            file
            for file in (Path(f"{self.path.resolve()}{ending}") for ending in ("-wal", "-shm"))
            if identity_of(file) is not None and not os.access(file, os.W_OK)
        ]
        if not shut or not os.access(self.path, os.W_OK):
            return ""
        told = " and ".join(f"{file.name} of {_owner(file)}" for file in shut)
        return (
            f" You can write to the store, but not to {told}. SQLite keeps such files beside a store. Allow this "
            "user to write to them, and do not delete them, because they may contain batches."
        )


def _owner(file: Path) -> str:
    try:
        return f"the user {file.owner()}"
    except (OSError, KeyError, NotImplementedError):
        return "another user"


def _patiently(
    connection: sqlite3.Connection, statement: str, values: Sequence[Any] = ()
) -> list[tuple[Any, ...]]:
    """Run a statement, again and again while another program is in its way."""
    end = time.monotonic() + WAIT
    while True:
        try:
            return connection.execute(statement, values).fetchall()
        except sqlite3.OperationalError as error:
            if not _is_busy(error) or time.monotonic() > end:
                raise
        # SQLite itself does not wait where a store is made.
        time.sleep(_BREATH / 10)


def _has_no_room(error: sqlite3.DatabaseError) -> bool:
    """Whether SQLite could not make the files that it keeps beside a store."""
    return any(word in str(error) for word in ("unable to open", "readonly", "disk I/O", "full"))


def _is_busy(error: sqlite3.DatabaseError) -> bool:
    return "locked" in str(error) or "busy" in str(error)
