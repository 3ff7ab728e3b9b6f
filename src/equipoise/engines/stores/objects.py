"""Files in object stores: one file, the files below a folder, or those of a glob."""

from __future__ import annotations

import glob
import posixpath
from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import Any

from equipoise.engines.addresses import without_password
from equipoise.engines.kinds import CONTAINERS, EXTENSIONS, Kind, extension
from equipoise.engines.sources import Source
from equipoise.engines.stored import (
    Status,
    StoredFile,
    explained,
    filesystem,
    stamp,
    status_of,
)
from equipoise.engines.stores.marks import Mark
from equipoise.errors import InputError, SourceNotFound


def locate(address: str, options: dict[str, Any]) -> Source:
    """Find the files of an address, which are one table."""
    name = without_password(address)
    files = [file for file, _ in listed(address)]
    kinds = {kind_of_file(file) for file in files}
    if len(kinds) > 1:
        raise InputError(
            f"{name} holds files of several kinds ({', '.join(sorted(kinds))}); the files of a table "
            "must be of one kind; choose them with a glob such as 's3://bucket/folder/*.csv'."
        )
    return Source(name=name, kind=kinds.pop(), address=address, stored=tuple(files), **options)


def tables_at(address: str) -> list[Source]:
    """Find the files of an address, each of which is a table."""
    return [
        Source(name=str(f), kind=kind_of_file(f), address=f.address, stored=(f,))
        for f, _ in listed(address)
    ]


def address_in(place: str, name: str) -> str | None:
    """Return the address of a file of a place by its name; only that of a web server has secrets."""
    if without_password(place) == name:
        return place
    return None if place.startswith(("http:", "https:")) else name


def reopened(name: str, kind: Any, address: str, snapshot: str) -> Source:  # noqa: ARG001
    """Return a file of a known name, without opening it."""
    return Source(name=name, kind=kind, address=address, stored=(StoredFile(address),))


def mark(source: Source) -> Mark:
    """Name the state of a file by what the store calls it, if it does."""
    status = source.stored[0].listed or source.stored[0].stat()
    snapshot = f"etag:{status.st_ino}/{status.st_size}" if status.st_ino else None
    return Mark(snapshot, status.st_size, stamp(snapshot) if snapshot else status.st_mtime_ns)


def listed(address: str) -> list[tuple[StoredFile, Status]]:
    """List the files of an address in the order of their names, with what the store says of them."""
    with explained(address):
        found = sorted(_found(address), key=lambda item: item[0].address)
    if not found:
        raise SourceNotFound(
            f"{without_password(address)} holds no table; files with the extensions "
            f"{', '.join(e for e, k in EXTENSIONS.items() if k not in CONTAINERS)} (or .gz) are read."
        )
    return found


def kind_of_file(file: StoredFile) -> Kind:
    """Recognize the kind of a file by its extension; refuse databases, which need a local file."""
    ending = extension(PurePosixPath(file.name))
    kind = EXTENSIONS.get(ending)
    if kind is None:
        raise InputError(
            f"{file} has an unknown extension; in a store, CSV, Parquet and JSON files are read."
        )
    if kind in CONTAINERS:
        raise InputError(
            f"{file} is a database or a workbook, which is read only from a file of this machine; copy "
            "it here first."
        )
    return kind


def _found(address: str) -> Iterator[tuple[StoredFile, Status]]:
    fs, path = filesystem(address)
    fs.invalidate_cache()
    if address.startswith(("http:", "https:")):  # a server has no folders, and ? begins parameters
        status = status_of(fs.info(path))
        yield StoredFile(address, status), status
        return
    if glob.has_magic(path) and not fs.exists(path):
        matches = [
            info
            for name, info in fs.glob(path, detail=True).items()
            if not name.rpartition("/")[2].startswith(".")
        ]
    elif address.endswith("/") or fs.isdir(path):
        inside = fs.find(path, detail=True)
        matches = [info for name, info in inside.items() if _is_data(name, path)]
    else:
        matches = [fs.info(path)]
    for info in matches:
        if info.get("type") == "file" and info.get("size", 0) is not None:
            status = status_of(info)
            yield StoredFile(fs.unstrip_protocol(info["name"]), status), status


def _is_data(name: str, folder: str) -> bool:
    """Whether a file below a folder is one of a table: not hidden, and of a known kind."""
    parts = posixpath.relpath(name, folder).split("/")
    hidden = any(part.startswith((".", "_")) for part in parts)
    kind = EXTENSIONS.get(extension(PurePosixPath(parts[-1])))
    return not hidden and kind is not None and kind not in CONTAINERS
