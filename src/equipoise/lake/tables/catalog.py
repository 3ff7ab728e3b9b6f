"""The tables of a lake: files in folders and stores, tables of databases and lakehouses, sheets."""

from __future__ import annotations

import glob
import itertools
import os
import re
import stat
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from equipoise.engines.addresses import local_path, scheme_of
from equipoise.engines.base import Engine
from equipoise.engines.csv.encodings import guess_encoding
from equipoise.engines.kinds import CONTAINERS, EXTENSIONS, Kind, kind_of
from equipoise.engines.sources import Source
from equipoise.engines.stores import states
from equipoise.errors import EquipoiseError, InputError, MissingDependency, NoTables, SourceNotFound
from equipoise.validate import a_name

_KIND_OF_ERROR = re.compile(r": (?:[A-Z]\w+ )+Error: ")
# Suffixes of write-ahead logs, which hold changes that are not in the database yet.
_LOGS = {"duckdb": ".wal", "sqlite": "-wal"}
DELTA_LOG = "_delta_log"
_PLACES = (
    "folders, files, globs, or addresses such as postgresql://user@host/database?schema=archive"
)
_IN_USE = (
    -1
)  # date of a file that cannot be opened now; no file has it, so the next run tries again


@dataclass(frozen=True, kw_only=True)
class CatalogEntry:
    """A file, a table in a database or a sheet in a workbook, before it is read."""

    name: str  # the path below the lake's folder, and ::table in a database or a workbook
    source: Source
    size: int  # in bytes
    changed: int  # in nanoseconds
    problem: str | None = None


def as_places(places: object) -> tuple[str, ...]:
    """Normalise the places of a lake to a tuple of folders, files, globs and addresses."""
    if isinstance(places, (str, os.PathLike)):
        return (_local(os.fspath(places)),)
    if isinstance(places, Iterable):
        listed = tuple(places)
        for place in listed:
            a_name("places", place, _PLACES)
        if listed:
            return tuple(_local(os.fspath(place)) for place in listed)
    raise InputError(
        "no places were given; a lake is a folder, a file, a glob, an address, or a list of these."
    )


def _local(place: str) -> str:
    return local_path(place) if scheme_of(place) == "file" else place


def files(places: Sequence[str]) -> dict[str, CatalogEntry]:
    """Find the files of a lake by name, without opening them.

    Names are relative to the lake's folder, see :func:`root`. Symbolic links are followed only to
    files inside the folder, and never to other folders, which have to be named themselves.
    """
    found: dict[str, CatalogEntry] = {}
    folder = root(places)
    empty: list[NoTables] = []
    below = "" if folder == Path() else str(folder).rstrip(os.sep) + os.sep
    for place in places:
        if scheme_of(place) is not None:
            try:
                entries = [_remote_entry(source) for source in states.tables_at(place)]
            except NoTables as error:  # as a folder without tables, unless all places have none
                empty.append(error)
                continue
        else:
            named = ((_name(path, folder, below), path, why) for path, why in _paths(place))
            entries = [_entry(name, path, why) for name, path, why in named]
        for entry in entries:
            _require_one(found.setdefault(entry.name, entry), entry)
    if empty and not found:
        raise empty[0]
    return dict(sorted(found.items()))


def _require_one(known: CatalogEntry, entry: CatalogEntry) -> None:
    """Refuse two tables of one name, as two places that differ only in their passwords have."""
    if known.source.address != entry.source.address:
        raise InputError(
            f"two tables of the lake are called {entry.name}, in two places that are shown alike; leave "
            "out one of them."
        )


def source_at(
    file: str, kind: Kind, snapshot: str, places: Sequence[str], folder: Path, **options: Any
) -> Source:
    """Return a table that an index knows, in the state that it knows; ``folder`` is the root."""
    if scheme_of(file) is not None:
        return replace(states.reopened(file, kind, snapshot, places), **options)
    path = folder / file
    if kind == "delta":
        version = snapshot.rpartition("@")[2] or None
        return Source(kind=kind, address=f"delta:{path}", version=version, **options)
    return Source(kind=kind, paths=(path,), **options)


def root(places: Sequence[str]) -> Path:
    """The folder that names are relative to: the lake's own, or the common parent of its places.

    >>> root(["archive/2023/*.csv", "archive/2024/a.csv"])
    PosixPath('archive')
    """
    folders = [_folder(place) for place in places if scheme_of(place) is None]
    if not folders:
        return Path()
    try:
        return Path(os.path.commonpath(folders)) if len(folders) > 1 else Path(folders[0])
    except ValueError:  # some are absolute, some not
        return Path(os.path.commonpath([os.path.abspath(folder) for folder in folders]))  # noqa: PTH100


def _folder(place: str) -> str:
    """The folder of a place: itself, that of a file, or the fixed part of a glob."""
    # os.path.isdir returns False where Path.is_dir raises, such as for names that are too long.
    if os.path.isdir(place) and not _is_delta(place):  # noqa: PTH112
        return os.path.normpath(place)
    parts = Path(place).parent.parts
    plain = itertools.takewhile(lambda part: not glob.has_magic(part), parts)
    return str(Path(*plain))


def tables(entry: CatalogEntry, engine: Engine) -> list[CatalogEntry]:
    """List the tables of a file: the file itself, the tables of a database or the sheets of a workbook."""
    if entry.source.kind not in CONTAINERS:
        return [entry]
    try:
        names = engine.tables(entry.source)
    except MissingDependency as error:  # which may be installed by the next time
        return [replace(entry, problem=public(str(error), entry.source), changed=_IN_USE)]
    except EquipoiseError as error:
        return [_unopened(entry, str(error))]
    log = Path(f"{entry.source.paths[0]}{_LOGS.get(entry.source.kind, '.wal')}")
    if log.exists() and log.stat().st_size:
        sentence = f"{entry.name} has changes that are still in its log; close it first."
        return [replace(entry, problem=sentence, changed=_IN_USE)]
    if not names:
        word = "sheets with data" if entry.source.kind == "excel" else "tables"
        return [replace(entry, problem=f"{entry.name} has no {word}.")]
    return [
        replace(entry, name=called, source=replace(entry.source, name=called, table=name))
        for name in names
        for called in [f"{entry.name}::{name}"]
    ]


def opened(entry: CatalogEntry) -> Source:
    """Return the source, with the encoding of a text file guessed from its content."""
    if entry.source.kind != "csv":
        return entry.source
    return replace(entry.source, encoding=guess_encoding(entry.source.files[0]))


def public(problem: str, source: Source) -> str:
    """Replace the paths of this machine in a message by the table's name in the lake.

    >>> source = Source(name="a.db", kind="duckdb", paths=(Path("/data/a.db"),))
    >>> public("/data/a.db cannot be read: IO Error: it is broken.", source)
    'a.db cannot be read: it is broken.'
    """
    file = source.name.removesuffix(f"::{source.table}")
    for path in source.paths:
        for written in (path.resolve(), path.absolute(), path):  # the longest first
            problem = problem.replace(str(written), file)
    return _KIND_OF_ERROR.sub(": ", problem)


def _unopened(entry: CatalogEntry, problem: str) -> CatalogEntry:
    """Say why a database cannot be opened; one in use is tried again by the next run."""
    if "Could not set lock" in problem or "database is locked" in problem:
        sentence = f"{entry.name} is being written to by another program; try again later."
        return replace(entry, problem=sentence, changed=_IN_USE)
    return replace(entry, problem=public(problem, entry.source))


def _name(path: Path, folder: Path, below: str) -> str:
    """Name a file so that the name can be written as UTF-8, whatever bytes it has on disk."""
    name = str(path)
    if name.startswith(below):  # nearly always, and much faster than resolving paths
        name = name[len(below) :]
    else:
        whole = Path(os.path.normpath(path.absolute()))
        name = str(whole.relative_to(os.path.normpath(folder.absolute())))
    name = name.replace(os.sep, "/")
    return name if name.isascii() else os.fsencode(name).decode(errors="backslashreplace")


def _entry(name: str, path: Path, problem: str | None) -> CatalogEntry:
    """Read the size and the date of a file.

    A file that cannot be read gets neither, so that it is read as soon as it can be. The date is that
    of the content or of the directory entry, whichever is later: tools can set the former back.
    """
    size = changed = 0
    if problem is None and _is_delta(path):
        return _remote_entry(Source(name=name, kind="delta", address=f"delta:{path}"))
    if problem is None:
        try:
            status = path.stat()
        except OSError as error:
            problem = f"{name} cannot be read: {error.strerror}."
        else:
            problem = _refused(name, path, status)
            if problem is None:
                size, changed = status.st_size, max(status.st_mtime_ns, status.st_ctime_ns)
    kind = kind_of(path) if problem is None else "csv"  # a linked folder has no kind
    source = Source(name=name, kind=kind, paths=(path,))
    return CatalogEntry(name=name, source=source, size=size, changed=changed, problem=problem)


def _remote_entry(source: Source) -> CatalogEntry:
    """Ask for the state of a table that is not a file of this machine."""
    try:
        mark = states.mark_of(source)
        if source.kind in states.VERSIONED and mark.snapshot is not None:
            source = states.at_snapshot(source, mark.snapshot)
    except MissingDependency as error:  # which may be installed by the next time
        return CatalogEntry(
            name=source.name, source=source, size=0, changed=_IN_USE, problem=str(error)
        )
    except EquipoiseError as error:
        return CatalogEntry(name=source.name, source=source, size=0, changed=0, problem=str(error))
    return CatalogEntry(
        name=source.name, source=source, size=mark.size, changed=mark.changed, problem=None
    )


def _is_delta(folder: str | Path) -> bool:
    return os.path.isdir(os.path.join(folder, DELTA_LOG))  # noqa: PTH112, PTH118 (of many folders)


def _refused(name: str, path: Path, status: os.stat_result) -> str | None:
    if not stat.S_ISREG(status.st_mode):
        return f"{name} is not a regular file; pipes and devices are not read."
    if not _is_utf8(path):
        return f"{name} has a name that is not UTF-8; rename it."
    if not os.access(path, os.R_OK):
        return f"{name} cannot be read; check its permissions."
    return None


def _is_utf8(path: Path) -> bool:
    # Bytes that are not UTF-8 are surrogates in a path, which cannot be encoded again.
    try:
        str(path).encode()
    except UnicodeEncodeError:
        return False
    return True


def _paths(place: str) -> Iterator[tuple[Path, str | None]]:
    path = Path(place)
    try:
        is_folder, is_there = path.is_dir(), path.exists()
    except (OSError, ValueError) as error:  # such as a name that is too long
        raise SourceNotFound(f"{place} cannot be read: {_strerror(error)}.") from None
    if is_folder and _is_delta(path):
        yield path, None
    elif is_folder:
        yield from _below(path)
    elif is_there:
        kind_of(path)
        yield path, None
    elif glob.has_magic(place):
        matches = sorted(map(Path, glob.glob(place, recursive=True)))  # noqa: PTH207 (which takes no absolute ones)
        if not matches:
            raise SourceNotFound(f"no file matches {place}; a lake is a folder, a file or a glob.")
        for match in matches:
            if match.is_dir() and _is_delta(match):
                yield match, None
            elif match.is_dir():
                yield from _below(match)
            elif _is_table(match.name):
                yield match, None
    else:
        raise SourceNotFound(
            f"{place} does not exist; a lake is a folder, a file, a glob or an address."
        )


def _strerror(error: Exception) -> str:
    return getattr(error, "strerror", None) or str(error)


def _below(folder: Path) -> Iterator[tuple[Path, str | None]]:
    top = os.path.realpath(folder)
    closed: list[OSError] = []
    for directory, folders, names in os.walk(folder, onerror=closed.append):
        here = Path(directory)
        if DELTA_LOG in folders:  # its files are of older versions, too
            folders.clear()
            yield here, None
            continue
        links = [f for f in folders if (here / f).is_symlink()]
        yield from _leading_out([here / name for name in links], top)
        folders[:] = sorted(f for f in folders if f not in links and not f.startswith((".", "_")))
        for path in (here / name for name in sorted(names) if _is_table(name)):
            outside = path.is_symlink() and not _is_inside(os.path.realpath(path), top)
            yield path, f"{path.name} is a link that leads out of the lake." if outside else None
    for error in closed:
        if Path(error.filename) == folder:
            raise SourceNotFound(f"{folder} cannot be read: {error.strerror}.")
        yield Path(error.filename), f"{Path(error.filename).name} cannot be read: {error.strerror}."


def _leading_out(links: Iterable[Path], top: str) -> Iterator[tuple[Path, str]]:
    for link in links:
        if not link.name.startswith((".", "_")) and not _is_inside(os.path.realpath(link), top):
            problem = f"{link.name} is a link to a folder outside the lake; name that folder."
            yield link, problem


def _is_inside(path: str, root: str) -> bool:
    return path == root or path.startswith(root.rstrip(os.sep) + os.sep)


def _is_table(name: str) -> bool:
    ending = os.path.splitext(name.lower().removesuffix(".gz"))[1]  # noqa: PTH122 (of many names)
    return ending in EXTENSIONS and not name.startswith((".", "_"))
