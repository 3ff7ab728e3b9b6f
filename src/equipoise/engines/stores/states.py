"""States of tables: by what an index and a ledger know a table again, wherever it is.

The module of a scheme says what is at an address (``tables_at``), opens a table that is known
(``reopened``), and names its state (``mark``).
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib
import re
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from equipoise.engines.addresses import SCHEMES, scheme_of, without_password
from equipoise.engines.kinds import DATABASES
from equipoise.engines.sources import Source
from equipoise.engines.stored import FilePath
from equipoise.engines.stores.marks import Mark
from equipoise.errors import InputError, MissingDependency, SourceNotFound

VERSIONED = ("delta", "iceberg")
"""Kinds of tables that keep older states, which can be read again."""


class Stamp(NamedTuple):
    """What changes with a table, and is known without reading it."""

    size: int
    changed: int


def tables_at(address: str) -> list[Source]:
    """Find the tables at an address, which is a place of a lake."""
    module = _module(address)
    if not hasattr(module, "tables_at"):
        raise InputError(
            f"{without_password(address)} cannot be a place of a lake; name a folder, a file, a glob, a Delta "
            "or Iceberg table, or a folder of a store."
        )
    found: list[Source] = module.tables_at(address)
    return found


def reopened(name: str, kind: Any, snapshot: str, places: Iterable[str]) -> Source:
    """Return the table of a name that an index knows, in the state that it knows.

    The address is that of the place where the table was found, with its secrets, which an index
    does not have.
    """
    for place in places:
        if scheme_of(place) == scheme_of(name):
            address = _module(place).address_in(place, name)
            if address is not None:
                break
    else:
        address = name
    found: Source = _module(name).reopened(name, kind, address, snapshot)
    return found


def stamp_of(source: Source) -> Stamp:
    """Ask for the size and the date of a table, or what stands for them."""
    if source.address is None:
        status = source.paths[0].stat()
        return Stamp(status.st_size, status.st_mtime_ns)
    mark = mark_of(source)
    return Stamp(mark.size, mark.changed)


def mark_of(source: Source) -> Mark:
    """Ask the store of a table for its state."""
    place = source.name if source.kind in DATABASES else source.address or ""
    mark: Mark = _module(place).mark(source)
    return mark


def snapshot_of(source: Source) -> str:
    """Name the state of a table: its version, or the mark or the hash of its file."""
    if source.address is None:
        return file_hash(source.paths[0])
    if source.kind in DATABASES:
        found: str = _module(source.name).snapshot(source)
        return found
    return mark_of(source).snapshot or file_hash(source.files[0])


def snapshots_of(source: Source) -> list[str]:
    """Name the states of all files of a table."""
    if source.kind in VERSIONED or (source.kind in DATABASES and source.address is not None):
        return [snapshot_of(source)]
    return [snapshot_of(replace(source, paths=(f,))) for f in source.paths] + [
        snapshot_of(replace(source, stored=(f,))) for f in source.stored
    ]


def at_snapshot(source: Source, snapshot: str) -> Source:
    """Return a table in the state that a ledger names, if it keeps older ones and this is one of them."""
    if source.kind not in VERSIONED or not snapshot:
        return source
    if snapshot.rpartition("@")[0] != snapshot_of(source).rpartition("@")[0]:
        return source
    return replace(source, version=snapshot.rpartition("@")[2])


def is_same_place(one: Source, other: Source) -> bool:
    """Whether two sources with addresses are the same table, in whatever state."""
    if one.kind in DATABASES or other.kind in DATABASES:
        if one.kind != other.kind:
            return False
        if None in (one.table, other.table):  # queries and DataFrames have no name
            is_one = one.table is other.table and one.query == other.query
            return is_one and one.data is not None and one.data is other.data
        known = _module_of(one, other)
        return bool(known.found_at(one) == known.found_at(other))
    if one.kind in VERSIONED or other.kind in VERSIONED:
        return one.kind == other.kind and _whole(one) == _whole(other)
    return bool(set(one.stored) & set(other.stored))


def is_same_target(one: Source, other: Source) -> bool:
    """Whether two tables to be made would be one, however they are addressed."""
    if one.kind != other.kind:
        return False
    known = _module_of(one, other)
    return bool(known.made_at(one) == known.made_at(other))


def is_replaced(source: Source, target: Source) -> bool:
    """Whether a table of a database is the one that a new table would replace."""
    if source.kind != target.kind or _own_name(source) != _own_name(target):
        return False  # without a question to the server
    known = _module_of(target, source)
    with contextlib.suppress(SourceNotFound):  # a table that does not exist is no other one
        return bool(known.found_at(source) == known.made_at(target))
    return False


def sees_all(source: Source) -> bool:
    """Whether every row of a table that could be replaced is there for the user of its address."""
    return bool(_module_of(source).sees_all(source))


def may_read(source: Source, target: Source) -> bool:
    """Whether a source is a query, which may read any table of the database of a target."""
    if source.kind != target.kind or (source.query is None and source.sql is None):
        return False
    known = _module_of(target, source)
    return bool(known.database_of(source) == known.database_of(target))


def _own_name(source: Source) -> str:
    """Return the last part of the name of a table, without quotes; equal tables have equal ones."""
    return re.sub('[`"]', "", source.table or "").rpartition(".")[2].casefold()


def file_hash(file: FilePath) -> str:
    """Compute the SHA-256 of a file."""
    with file.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()  # type: ignore[arg-type]


def _whole(source: Source) -> str:
    place = without_password(source.address or "").partition(":")[2]
    return place if "://" in place else str(Path(place).resolve())


def _module_of(*sources: Source) -> Any:
    # A table of a connection that the user has open has no address.
    named = (source.name for source in sources if source.address is not None)
    return _module(next(named, f"{sources[0].kind}:"))


def _module(address: str) -> Any:
    # A path with the kind of a table that has no scheme is a Delta table in a folder.
    known = SCHEMES[scheme_of(address) or "delta"]
    try:
        return importlib.import_module(known.places or known.module)
    except ImportError as error:
        extra = "spark" if "spark" in known.module else "postgres"
        raise MissingDependency(
            error.name or extra, extra=extra, purpose=f"reading {without_password(address)}"
        ) from None
