"""The files of stores as DuckDB sees them: under short names of their own, read by ranges.

DuckDB is told nothing else of an address, neither its secrets nor signs that it would take for those
of a glob.
"""

from __future__ import annotations

import functools
import glob
import hashlib
import io
import re
import shutil
import tempfile
from collections.abc import Iterable
from pathlib import Path, PurePosixPath
from typing import IO, TYPE_CHECKING, Any, cast

from equipoise.engines.stored import FilePath, Status, StoredFile, explained

if TYPE_CHECKING:
    from fsspec import AbstractFileSystem

SCHEME = "stored"
_NAME = re.compile(rf"{SCHEME}://(\w+)[.\w]*")


def path_in_sql(file: FilePath) -> str:
    """Return the path by which a query reads a file.

    >>> path_in_sql(StoredFile("s3://bucket/people.csv.gz"))
    'stored://9c0e59a7ba5b5cb1.csv.gz'
    """
    if isinstance(file, Path):
        return glob.escape(str(file))
    endings = [e for e in PurePosixPath(file.name).suffixes if re.fullmatch(r"\.\w+", e)]
    return f"{SCHEME}://{_digest(file)}{''.join(endings[-2:])}"


def with_names(message: str, files: Iterable[FilePath]) -> str:
    """Write the names of files into a message in which DuckDB calls them otherwise."""
    known = {_digest(file): str(file) for file in files if isinstance(file, StoredFile)}
    return _NAME.sub(lambda found: known.get(found[1], "a file of it"), message)


def _digest(file: StoredFile) -> str:
    return hashlib.sha256(file.address.encode()).hexdigest()[:16]


class Window:
    """The files that a connection may read, by their paths in queries.

    Files of web servers are copied to a folder first, since few servers send ranges.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._files: dict[str, StoredFile] = {}
        self._copies: dict[str, tuple[Status, Path]] = {}

    def add(self, file: StoredFile) -> None:
        """Let a file be read."""
        path = path_in_sql(file)
        self._files[path] = file
        if file.address.startswith(("http:", "https:")):
            status, _ = self._copies.get(path, (None, None))
            if status is None or status != file.known_status:
                self._copies[path] = (file.known_status, self._copy(file))

    def file(self, path: str) -> StoredFile:
        """Return the file at a path."""
        return self._files[_whole(path)]

    def open(self, path: str) -> IO[bytes]:
        """Open a file, or its copy."""
        _, copy = self._copies.get(_whole(path), (None, None))
        return self.file(path).open() if copy is None else cast("IO[bytes]", _Copy(copy))

    def size(self, path: str) -> int:
        """Return the bytes of a file, or of its copy: servers do not tell all sizes."""
        _, copy = self._copies.get(_whole(path), (None, None))
        return self.file(path).known_status.st_size if copy is None else copy.stat().st_size

    def _copy(self, file: StoredFile) -> Path:
        with (
            explained(file.address),
            file.open() as content,
            tempfile.NamedTemporaryFile(dir=self._folder, delete=False) as copy,
        ):
            shutil.copyfileobj(content, copy)
        return Path(copy.name)

    def filesystem(self) -> AbstractFileSystem:
        """Return the files as a store that DuckDB can be given."""
        return _filesystem_class()(self)


class _Copy(io.FileIO):
    """A file that is closed when DuckDB drops it, which it does without closing it."""

    def __del__(self) -> None:
        self.close()


def _whole(path: str) -> str:
    return path if "://" in path else f"{SCHEME}://{path}"


@functools.cache
def _filesystem_class() -> Any:
    from fsspec import AbstractFileSystem

    class WindowFileSystem(AbstractFileSystem):  # type: ignore[misc] # the library has no types
        protocol = SCHEME
        cachable = False

        def __init__(self, window: Window) -> None:
            super().__init__()
            self._window = window

        def info(self, path: str, **_: Any) -> dict[str, Any]:
            return {"name": path, "size": self._window.size(path), "type": "file"}

        def modified(self, path: str) -> Any:
            import datetime

            nanoseconds = self._window.file(path).known_status.st_mtime_ns
            try:
                return datetime.datetime.fromtimestamp(nanoseconds / 1e9, datetime.UTC)
            except (OverflowError, ValueError):  # a number that stands for a text
                return datetime.datetime.fromtimestamp(0, datetime.UTC)

        def _open(self, path: str, *_: Any, **__: Any) -> IO[bytes]:
            return self._window.open(path)

    return WindowFileSystem
