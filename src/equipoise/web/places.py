"""The files a user may name: bundled tables, files below the root, uploads and results."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from equipoise import datasets
from equipoise.engines.kinds import EXTENSIONS, extension
from equipoise.errors import InputError, SourceNotFound

UPLOADS, RESULTS, EXAMPLE = "uploads", "results", "example"
_LISTED, _DEEPEST = 1000, 5
"""Maximum number of files that are listed, and of folders above one."""
_FOLDERS = 200
_INSIDE = 10_000
"""Maximum number of files of a folder that is read as one table."""


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
        bundled = [datasets.path(name).parent for name in datasets.names() if _there(name)]
        found = [self.root, self.home, self.home.parent / EXAMPLE, *bundled]
        return tuple(dict.fromkeys(str(folder.resolve()) for folder in found))

    def resolve(self, name: str) -> str:
        """Return what the library calls a table; refuse what is not there or not allowed."""
        path, separator, table = name.partition("::")
        if not separator and name in datasets.names() and not (self.root / name).exists():
            return name
        return str(self.file(path)) + separator + table

    def file(self, name: str) -> Path:
        """Return the path of a file or folder; refuse one that is not below the root."""
        parts = re.split(r"[/\\]", name)
        base = self.root
        if parts[0] in (UPLOADS, RESULTS) and (self.home / name).exists():
            base = self.home
        elif parts[0] == EXAMPLE and (self.home.parent / name).exists():
            base = self.home.parent
        if not name or "\0" in name or ".." in parts or any(p.startswith(".") for p in parts if p):
            raise SourceNotFound(_refusal(name))
        # A path from the root of the disk, a drive or an address replaces the base.
        path = base / name
        if Path(name).is_absolute() or not path.exists() or not _is_below(path, base):
            raise SourceNotFound(_refusal(name))
        if path.is_dir():
            self._check_folder(path, base)
        return path

    def _check_folder(self, folder: Path, base: Path) -> None:
        for number, path in enumerate(folder.rglob("*")):
            if number > _INSIDE:
                raise InputError(f"{folder.name} has too many files for the explorer.")
            if path.is_symlink() and not _is_below(path, base):
                raise SourceNotFound(f"{path.name} in {folder.name} is a link out of the folder.")

    def listed(self) -> list[str]:
        """Names of the files that can be opened, below the root first, then uploads and results."""
        found = list(_tables(self.root, self.root))
        for folder in (UPLOADS, RESULTS):
            found += sorted(_tables(self.home / folder, self.home))
        return found

    def folders_listed(self) -> list[str]:
        """Names of the folders below the root that may be lakes, with the example."""
        found: list[str] = []
        for here, folders, _ in os.walk(self.root):
            place = Path(here)
            depth = len(place.relative_to(self.root).parts)
            folders[:] = sorted(f for f in folders if not f.startswith(".")) if depth < 2 else []
            found += [(place / f).relative_to(self.root).as_posix() for f in folders]
            if len(found) >= _FOLDERS:
                break
        example = [f"{EXAMPLE}/lake"] if (self.home.parent / EXAMPLE / "lake").is_dir() else []
        return [*found[:_FOLDERS], *example]

    def write(self, folder: str, name: str, content: bytes) -> str:
        """Keep content under a name of its own, and return what it is called."""
        place = self.home / folder
        place.mkdir(parents=True, exist_ok=True)
        digest = hashlib.sha256(content).hexdigest()[:10]
        path = place / f"{digest}-{safe_name(name)}"
        if not path.exists():
            partial = path.with_name(f".{path.name}.{os.getpid()}")
            partial.write_bytes(content)
            partial.replace(path)
        return f"{folder}/{path.name}"

    def without_paths(self, text: str) -> str:
        """A text without the folders of this machine that names in it begin with."""
        for folder in (self.home, self.home.parent, self.root):
            for place in {str(folder), str(folder.resolve())}:
                text = text.replace(f"{place}{os.sep}", "")
        return text

    def forget(self) -> int:
        """Delete all uploads and results; return how many files there were."""
        found = [p for folder in (UPLOADS, RESULTS) for p in (self.home / folder).glob("*")]
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


def _there(name: str) -> bool:
    return datasets.is_available(name)


def _is_below(path: Path, base: Path) -> bool:
    try:
        return path.resolve().is_relative_to(base.resolve())
    except (OSError, RuntimeError):  # a loop of links
        return False


def _refusal(name: str) -> str:
    return f"there is no table {name!r} below the folder that the explorer was started in."


def _tables(folder: Path, base: Path) -> Iterator[str]:
    """Files with a known extension, sorted, without hidden ones and links out of the base."""
    found = 0
    for here, folders, files in os.walk(folder):
        place = Path(here)
        depth = len(place.relative_to(folder).parts)
        folders[:] = sorted(f for f in folders if not f.startswith(".")) if depth < _DEEPEST else []
        for name in sorted(files):
            path = place / name
            known = extension(path) in EXTENSIONS and not name.startswith(".")
            if known and _is_below(path, base):
                yield path.relative_to(base).as_posix()
                found += 1
                if found >= _LISTED:
                    return
