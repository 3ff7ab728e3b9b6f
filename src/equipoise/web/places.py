"""The files a user may name: bundled tables, files below the root, uploads and results."""

from __future__ import annotations

import functools
import hashlib
import html
import itertools
import json
import os
import re
import secrets
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from equipoise import datasets
from equipoise.engines.kinds import EXTENSIONS, extension
from equipoise.errors import InputError, SourceNotFound
from equipoise.monitoring.store.files import is_store
from equipoise.scratch import PREFIX, cache_folder, is_old
from equipoise.web.settings import too_large

UPLOADS, RESULTS, JOBS, EXAMPLE = "uploads", "results", "jobs", "example"
_LISTED, _DEEPEST = 1000, 5
"""Maximum number of files that are listed, and of folders above one."""
_FOLDERS = 200
_INSIDE = 10_000
"""Maximum number of files of a folder that is read as one table."""
_KEPT = 10
"""How many files of the maximum size a user may keep."""
_PIECE, _PARTIAL = 1_000_000, ".partial"
_SHOWN = 200
"""Letters of a name that are repeated in an error."""


@dataclass(frozen=True)
class Places:
    """Files of one user.

    A table is named by the name of a bundled table, ``uploads/NAME``, ``results/NAME``, or a path
    below the root; ``::TABLE`` after it names a table of a database or a sheet.
    """

    root: Path
    home: Path
    """Folder of this user's uploads and results."""

    @property
    def folders(self) -> tuple[str, ...]:
        """Folders that hold everything that may be read."""
        found = [self.root, self.home, self.home.parent / EXAMPLE, *_bundled()]
        return tuple(dict.fromkeys(str(f) for folder in found for f in (folder, folder.resolve())))

    def resolve(self, name: str) -> str:
        """Return what the library calls a table; refuse what is not there or not allowed."""
        path, separator, table = name.partition("::")
        if not separator and name in _names() and not self._beside(name):
            return name
        return str(self.file(path)) + separator + table

    def _beside(self, name: str) -> bool:
        # The library prefers a file to a bundled table of the same name.
        return (self.root / name).exists()

    def file(self, name: str) -> Path:
        """Return the path of a file or folder; refuse one that is not below the root."""
        parts = re.split(r"[/\\]", name)
        # A path from the root of the disk, a drive or an address would replace the base.
        odd = not name or "\0" in name or Path(name).is_absolute() or Path(name).drive
        if odd or any(part.startswith(".") for part in parts):
            raise SourceNotFound(_refusal(name))
        base = self._base(parts[0], name)
        path = base / name
        if not _exists(path) or not _is_below(path, base) or not self._is_own(path, base):
            raise SourceNotFound(_refusal(name))
        if path.is_dir():
            self._check_folder(path, base)
        return path

    def store(self, name: str) -> Path:
        """Return the path of a store of batches; refuse any other file."""
        path = self.file(name)
        if not is_store(path):
            raise InputError(
                f"{name} is not a store of equipoise monitor; name a file that equipoise monitor add has made."
            )
        return path

    def _base(self, first: str, name: str) -> Path:
        """The folder that a name is relative to."""
        if first in (UPLOADS, RESULTS) and _exists(self.home / name):
            return self.home
        if first == EXAMPLE and _exists(self.home.parent / name):
            return self.home.parent
        return self.root

    def _is_own(self, path: Path, base: Path) -> bool:
        """Whether a path below the root leads to no uploads and results, which may be another user's."""
        homes, real = self.home.parent.resolve(), path.resolve()
        return base != self.root or not (real.is_relative_to(homes) or homes.is_relative_to(real))

    def _is_open(self, path: Path) -> bool:
        return _is_below(path, self.root) and self._is_own(path, self.root)

    def _check_folder(self, folder: Path, base: Path) -> None:
        for number, path in enumerate(folder.rglob("*")):
            if number > _INSIDE:
                raise InputError(f"{folder.name} has too many files for the explorer.")
            if path.is_symlink() and not _is_below(path, base):
                raise SourceNotFound(f"{path.name} in {folder.name} is a link out of the folder.")

    def listed(self) -> list[str]:
        """Names of the files that can be opened, below the root first, then uploads and results."""
        found = list(_tables(self.root, self.root, self.home.parent.resolve()))
        for folder in (UPLOADS, RESULTS):
            there = _tables(self.home / folder, self.home, None)
            found += sorted(name for name in there if not _goes_with(name))
        return found

    def stores_listed(self) -> list[str]:
        """Names of the stores of batches below the root."""
        there = _files(self.root, self.root, self.home.parent.resolve())
        first = (path for path in itertools.islice(there, _INSIDE) if _may_be_store(path))
        found = itertools.islice(filter(is_store, first), _LISTED)
        return [path.relative_to(self.root).as_posix() for path in found]

    def folders_listed(self) -> list[str]:
        """Names of the folders below the root that may be lakes, with the example."""
        found: list[str] = []
        for here, folders, _ in os.walk(self.root):
            place = Path(here)
            depth = len(place.relative_to(self.root).parts)
            folders[:] = sorted(f for f in folders if not f.startswith(".")) if depth < 2 else []
            folders[:] = [f for f in folders if self._is_open(place / f)]
            found += [(place / f).relative_to(self.root).as_posix() for f in folders]
            if len(found) >= _FOLDERS:
                break
        example = [f"{EXAMPLE}/lake"] if (self.home.parent / EXAMPLE / "lake").is_dir() else []
        return [*found[:_FOLDERS], *example]

    def write(self, folder: str, name: str, content: BinaryIO, *, most: int) -> str:
        """Keep content under a name of its own, and return what it is called."""
        place = self.home / folder
        place.mkdir(parents=True, exist_ok=True)
        self._require_space(place, most)
        digest, size = hashlib.sha256(), 0
        partial = place / f".{secrets.token_hex(8)}{_PARTIAL}"
        try:
            with partial.open("xb") as file:
                while piece := content.read(_PIECE):
                    size += len(piece)
                    if size > most:
                        raise InputError(too_large(most))
                    digest.update(piece)
                    file.write(piece)
            if not size:
                raise InputError("the file is empty.")
            path = place / f"{digest.hexdigest()[:10]}-{safe_name(name)}"
            partial.replace(path)
        finally:
            partial.unlink(missing_ok=True)
        return f"{folder}/{path.name}"

    def _require_space(self, place: Path, most: int) -> None:
        for path in place.glob(f".*{_PARTIAL}"):  # of an explorer that was killed
            if is_old(path.stat()):
                path.unlink(missing_ok=True)
        kept = sum(path.stat().st_size for path in place.iterdir() if path.is_file())
        if kept > _KEPT * most:
            raise InputError(
                f"there are {kept / 1e6:,.0f} MB of files already; delete all uploads and results first."
            )

    def without_paths(self, text: str) -> str:
        """A text without the folders of this machine that names in it begin with."""
        found = _paths(self.root, self.home)
        return found.sub(lambda each: "" if each[0].endswith("/") else "the folder", text)

    def forget(self) -> int:
        """Delete all uploads, results and jobs; return how many files there were."""
        found = [p for folder in (UPLOADS, RESULTS, JOBS) for p in (self.home / folder).glob("*")]
        files = [path for path in found if path.is_file()]
        for path in files:
            path.unlink(missing_ok=True)
        return len(files)

    def result(self, name: str) -> Path:
        """Return the path of a result to write."""
        place = self.home / RESULTS
        place.mkdir(parents=True, exist_ok=True)
        return place / safe_name(name)


def safe_name(name: str) -> str:
    """Make a file name of any text: the last part, without characters that mean something.

    >>> safe_name("../../etc/pass wd.csv"), safe_name("..")
    ('pass_wd.csv', 'table')
    """
    last = re.split(r"[/\\]", name)[-1]
    return re.sub(r"[^A-Za-z0-9._-]+", "_", last).strip("._")[-80:] or "table"


@functools.cache
def _names() -> tuple[str, ...]:
    return datasets.names()


@functools.cache
def _bundled() -> tuple[Path, ...]:
    """Folders of bundled tables."""
    there = [name for name in _names() if datasets.is_available(name)]
    return tuple(dict.fromkeys(datasets.path(name).parent for name in there))


@functools.lru_cache(maxsize=200)
def _paths(root: Path, home: Path) -> re.Pattern[str]:
    """The folders of this machine that a text may name, with what separates them from a name."""
    folders = [home, home.parent, root, cache_folder(), *_bundled()]
    texts = {str(f) for folder in folders for f in (folder, folder.resolve())}
    # The longest first, as they are written in pages and in JSON, too.
    written = {w for t in texts for w in (t, html.escape(t), json.dumps(t)[1:-1])}
    known = [re.escape(w) for w in sorted(written, key=len, reverse=True) if len(w) > 1]
    scratch = rf"{re.escape(tempfile.gettempdir())}/{PREFIX}[a-z0-9_]{{8}}"
    return re.compile(rf"(?:{'|'.join([scratch, *known])})(?:/|(?![\w.-]))")


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except (OSError, ValueError):  # a name that is too long, or cannot be encoded
        return False


def _goes_with(name: str) -> bool:
    """Whether a file goes with a result, such as its ledger, and is no table to open."""
    return name.startswith(f"{RESULTS}/") and name.endswith((".ledger.parquet", ".json"))


def _is_below(path: Path, base: Path) -> bool:
    try:
        return path.resolve().is_relative_to(base.resolve())
    except (OSError, RuntimeError):  # a loop of links
        return False


def _refusal(name: str) -> str:
    shown = name if len(name) <= _SHOWN else f"{name[:_SHOWN]}…"
    return f"there is no table or file {shown!r} below the folder that the explorer was started in."


def _tables(folder: Path, base: Path, hidden: Path | None) -> Iterator[str]:
    """Files with a known extension that are no stores of batches."""
    known = (path for path in _files(folder, base, hidden) if extension(path) in EXTENSIONS)
    tables = (path for path in known if not (_may_be_store(path) and is_store(path)))
    for path in itertools.islice(tables, _LISTED):
        yield path.relative_to(base).as_posix()


def _may_be_store(path: Path) -> bool:
    """Whether a file has not the extension of a table of another kind."""
    kind = EXTENSIONS.get(extension(path))
    return kind in (None, "sqlite") or extension(path) == ".db"


def _files(folder: Path, base: Path, hidden: Path | None) -> Iterator[Path]:
    """Files by folder, sorted, without hidden ones and links out of the base."""
    for here, folders, files in os.walk(folder):
        place = Path(here)
        depth = len(place.relative_to(folder).parts)
        folders[:] = sorted(f for f in folders if not f.startswith(".")) if depth < _DEEPEST else []
        folders[:] = [f for f in folders if hidden is None or (place / f).resolve() != hidden]
        for name in sorted(files):
            if not name.startswith(".") and _is_below(place / name, base):
                yield place / name
