"""What a run gathers for an index, the lock on it, and the files that a killed run leaves."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import duckdb

from equipoise.errors import InputError
from equipoise.lake.tables.index._records import COLUMNS, FORMAT, TABLES
from equipoise.lake.tables.index._segments import memory_for, part_file
from equipoise.scratch import is_old, take_lock


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


def working_file(path: Path) -> Path:
    """Where a run gathers what is new, and commits it every few tables."""
    return path.with_name(f"{path.name}.new")


@contextlib.contextmanager
def gathering(
    path: Path, stamp: str, last: int, tables: int
) -> Iterator[duckdb.DuckDBPyConnection]:
    """Open the file in which a run gathers what is new; one that was left is gone on with.

    ``stamp`` and ``last`` are the base and the last delta of the index that it will be added to: what
    was gathered for another state of the index is dropped. ``tables`` is how many may be new.
    """
    connection = _resume(path, stamp, last) or _begin(path, stamp, last)
    try:
        connection.execute(f"SET memory_limit = '{memory_for(tables)}'")
        yield connection
        connection.execute("CHECKPOINT")  # close() would hide an error such as a full disk
    finally:
        connection.close()


def _connect(path: Path) -> duckdb.DuckDBPyConnection:
    return duckdb.connect(str(working_file(path)))


def _resume(path: Path, stamp: str, last: int) -> duckdb.DuckDBPyConnection | None:
    """Open what an interrupted run left, if it is usable."""
    if not working_file(path).exists():
        return None
    with contextlib.suppress(duckdb.Error):
        connection = _connect(path)
        try:
            about = connection.execute("SELECT format, stamp, last FROM about").fetchall()
            if about == [(FORMAT, stamp, last)]:
                return connection
        except duckdb.Error:
            pass
        connection.close()
    return None


def _begin(path: Path, stamp: str, last: int) -> duckdb.DuckDBPyConnection:
    remove_leftovers(path)
    connection = _connect(path)
    connection.execute(
        "BEGIN; CREATE TABLE about (format INTEGER, stamp VARCHAR, last INTEGER); "
        f"CREATE TABLE tables {TABLES}; CREATE TABLE columns {COLUMNS}; "
        f"INSERT INTO about VALUES ({FORMAT}, '{stamp}', {last}); COMMIT"
    )
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
    return (working, working.with_name(f"{working.name}.wal"), part_file(path))
