"""The copy of an index that a run writes to, the lock on it, and the files a killed run leaves."""

from __future__ import annotations

import contextlib
import os
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import duckdb

from equipoise.errors import InputError
from equipoise.lake.tables.index._records import FORMAT, SCHEMA
from equipoise.scratch import is_old, take_lock


def open_index(path: Path) -> duckdb.DuckDBPyConnection:
    # Attached to a connection of its own: DuckDB shares one database among all connections to a
    # path, and would go on reading the old index after a new one has been moved there.
    settings: dict[str, Any] = {
        "temp_directory": f"{path}.tmp",
        "autoinstall_known_extensions": False,
        "autoload_known_extensions": False,
    }
    connection = duckdb.connect(":memory:", config=settings)
    try:
        file = str(path).replace("'", "''")
        connection.execute(f"ATTACH '{file}' AS lake (READ_ONLY); USE lake")
    except duckdb.Error:
        connection.close()
        raise
    return connection


def is_current(connection: duckdb.DuckDBPyConnection) -> bool:
    try:
        return connection.execute("SELECT format FROM about").fetchall() == [(FORMAT,)]
    except duckdb.Error:
        return False


@contextlib.contextmanager
def locked(path: Path, waiting: Callable[[], None]) -> Iterator[None]:
    try:
        descriptor = _open_lock(path)
    except OSError as error:
        raise InputError(
            f"{path.parent} cannot be written to ({error.strerror}); set `index` to a file elsewhere."
        ) from None
    try:
        has_waited = False
        while True:
            try:
                take_lock(descriptor)
                break
            except (BlockingIOError, PermissionError):
                if not has_waited:
                    waiting()
                    has_waited = True
                time.sleep(0.1)
        yield
    finally:
        os.close(descriptor)


def _open_lock(path: Path) -> int:
    # Everyone who shares the lake may take the lock; the system releases it when the process ends.
    return os.open(path.with_name(f"{path.name}.lock"), os.O_RDWR | os.O_CREAT, 0o666)


@contextlib.contextmanager
def working_copy(path: Path, *, from_scratch: bool) -> Iterator[duckdb.DuckDBPyConnection]:
    """Open a copy of the index to write to, and move it into place at the end."""
    working = working_file(path)
    connection = _resume(path) or _begin(path, from_scratch=from_scratch)
    try:
        yield connection
        connection.execute("CHECKPOINT")  # close() would hide an error such as a full disk
    finally:
        connection.close()
    with working.open("rb+") as file:
        os.fsync(file.fileno())
    working.replace(path)


def _resume(path: Path) -> duckdb.DuckDBPyConnection | None:
    """Open the copy that an interrupted run left, if it is usable."""
    if not working_file(path).exists():
        return None
    with contextlib.suppress(duckdb.Error):
        connection = duckdb.connect(str(working_file(path)))
        if is_current(connection):
            return connection
        connection.close()
    return None


def _begin(path: Path, *, from_scratch: bool) -> duckdb.DuckDBPyConnection:
    remove_leftovers(path)
    if path.exists() and not from_scratch:
        # Copied under another name first: half a copy must not look like one to continue with.
        shutil.copyfile(path, _partial_file(path))
        _partial_file(path).replace(working_file(path))
        connection = _resume(path)
        if connection is not None:
            return connection
        remove_leftovers(path)
    connection = duckdb.connect(str(working_file(path)))
    connection.execute(f"BEGIN; {SCHEMA} INSERT INTO about VALUES ({FORMAT}); COMMIT")
    return connection


def sweep(path: Path) -> None:
    """Remove files that a killed run left next to an index more than a day ago.

    Nothing is removed while another run holds the lock. :func:`refresh` needs no sweeping, since it
    continues with these files.
    """
    left = [leftover for leftover in _leftovers(path) if leftover.exists()]
    if not left or not all(is_old(leftover.stat()) for leftover in left):
        return
    with contextlib.suppress(OSError):
        descriptor = _open_lock(path)
        try:
            take_lock(descriptor)
            remove_leftovers(path)
        finally:
            os.close(descriptor)


def remove_leftovers(path: Path) -> None:
    for leftover in _leftovers(path):
        leftover.unlink(missing_ok=True)


def _leftovers(path: Path) -> tuple[Path, ...]:
    working = working_file(path)
    return (working, working.with_name(f"{working.name}.wal"), _partial_file(path))


def working_file(path: Path) -> Path:
    return path.with_name(f"{path.name}.new")


def _partial_file(path: Path) -> Path:
    return path.with_name(f"{path.name}.part")


def reason_of(error: Exception) -> str:
    return str(error).strip().splitlines()[0].rstrip(".")
