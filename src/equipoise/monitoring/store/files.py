"""Which files are stores, told by their first bytes."""

from __future__ import annotations

import contextlib
import os
import sqlite3
from pathlib import Path
from urllib.parse import quote

from equipoise.monitoring.store import schema

_SQLITE = b"SQLite format 3\0"
_MARK = slice(68, 72)
"""Where a SQLite file has the number of the application that made it."""


def is_store(path: Path) -> bool:
    """Whether a file is a store; nothing is changed."""
    try:
        if not path.is_file():  # reading a pipe would wait for ever
            return False
        with path.open("rb") as file:
            start = file.read(_MARK.stop)
    except (OSError, ValueError):
        return False
    if not start.startswith(_SQLITE):
        return False
    mark = int.from_bytes(start[_MARK], "big")
    # While a new store is written for the first time, its mark is in the log only.
    return mark == schema.APPLICATION or (mark == 0 and _has_log(path) and _is_marked(path))


def mode_of(path: str | os.PathLike[str]) -> int | None:
    """The mode of a file, or None if there is none; 0 without the right to know."""
    try:
        return Path(path).stat().st_mode
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return None
    except OSError:  # opening it tells more
        return 0


def identity_of(path: str | os.PathLike[str]) -> tuple[int, int] | None:
    """What tells a file from another of the same name; None if there is none."""
    try:
        found = Path(path).stat()
    except (OSError, ValueError):
        return None
    return found.st_dev, found.st_ino


def log_of(path: Path) -> Path:
    """The file that holds what was written last, and is not yet in the file of a store."""
    real = path.resolve()
    return real.with_name(f"{real.name}-wal")


def _has_log(path: Path) -> bool:
    with contextlib.suppress(OSError, RuntimeError):
        return log_of(path).stat().st_size > 0
    return False


def _is_marked(path: Path) -> bool:
    where = f"file:{quote(str(path.absolute()))}?mode=ro"
    try:
        with contextlib.closing(sqlite3.connect(where, uri=True, timeout=1)) as connection:
            found: int = connection.execute("PRAGMA application_id").fetchone()[0]
    except sqlite3.DatabaseError:
        return False
    return found == schema.APPLICATION
