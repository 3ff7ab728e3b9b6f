"""Copies of tables that DuckDB cannot read, as Parquet files in a temporary folder."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass
from pathlib import Path

from equipoise.counts.skipped import NOTHING, Skipped
from equipoise.engines.stored import FilePath

KEPT = 8


@dataclass(frozen=True)
class Copy:
    """A Parquet file, and the lines that could not be copied to it."""

    path: Path
    skipped: Skipped = NOTHING


class Spool:
    """Makes copies of files, and keeps the last few, since a table is often read several times.

    A copy is made again if its file has changed. None is removed while a table is open.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._copies: dict[Hashable, Copy] = {}
        self._numbers = itertools.count()
        self._holders = 0

    def copy(
        self, path: FilePath, about: Hashable, write: Callable[[Path], Skipped | None]
    ) -> Copy:
        """Return the copy of a file; ``about`` holds everything that affects how it is read."""
        status = path.stat()
        key = (path, about, status.st_size, status.st_mtime_ns, status.st_ino)
        found = self._copies.pop(key, None)
        if found is None:
            target = self._folder / f"copy-{next(self._numbers)}.parquet"
            try:
                found = Copy(target, write(target) or Skipped())
            except BaseException:
                target.unlink(missing_ok=True)
                raise
        self._copies[key] = found  # at the end: the last to be removed
        return found

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """Keep all copies meanwhile."""
        self._holders += 1
        try:
            yield
        finally:
            self._holders -= 1
            while not self._holders and len(self._copies) > KEPT:
                self._copies.pop(next(iter(self._copies))).path.unlink(missing_ok=True)
