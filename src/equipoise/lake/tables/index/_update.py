"""A run that brings an index up to date."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import duckdb

from equipoise.engines.base import Engine
from equipoise.engines.stores.states import snapshot_of
from equipoise.errors import EquipoiseError, InputError
from equipoise.lake.tables import catalog
from equipoise.lake.tables.catalog import CatalogEntry
from equipoise.lake.tables.index import _records
from equipoise.lake.tables.index._working_copy import (
    is_current,
    locked,
    open_index,
    reason_of,
    remove_leftovers,
    working_copy,
    working_file,
)
from equipoise.lake.tables.profiles import Profiled, profile_table
from equipoise.plain import Grid
from equipoise.progress import Reporter, cancellable, silent
from equipoise.results import FlatTable, Result

_BATCH = 100  # files per transaction: what a killed run loses at most


@dataclass(frozen=True)
class Refreshed(Result):
    """Result of updating an index: how many files were new, changed, gone and the same."""

    new: int
    changed: int
    gone: int
    same: int

    @property
    def sentences(self) -> tuple[str, ...]:
        """How many tables the index holds, and what changed."""
        changes = f"{self.new:,} new, {self.changed:,} changed, {self.same:,} unchanged"
        return (f"Tables in the index: {changes}; {self.gone:,} were removed.",)

    def to_dict(self) -> dict[str, Any]:
        """Plain data: what ``--json`` prints."""
        return {name: getattr(self, name) for name in ("new", "changed", "gone", "same")}

    def _table(self) -> FlatTable:
        return ("tables", "number"), list(self.to_dict().items())

    def grid(self) -> Grid:
        """The numbers as a table."""
        rows = tuple((name, f"{number:,}") for name, number in self.to_dict().items())
        return Grid(("tables", "number"), rows, frozenset({1}))


@cancellable
def refresh(
    path: Path,
    places: Sequence[str],
    *,
    engine: Engine,
    progress: Reporter = silent,
    waiting: Callable[[], None] = lambda: None,
) -> Refreshed:
    """Update an index: profile new and changed files, forget those that are gone.

    ``waiting`` is called once if another run holds the lock.
    """

    def update(*, from_scratch: bool) -> Refreshed:
        with working_copy(path, from_scratch=from_scratch) as connection:
            return _Update(connection, places, engine, progress).run(found)

    progress("looking for tables", 0)
    before = _written_at(path)
    found = _files(path, places)
    if not _is_stale(path, found):
        return Refreshed(0, 0, 0, len(found))
    with locked(path, waiting):
        if _written_at(path) != before:  # the other run may have seen newer files
            found = _files(path, places)
        try:
            return update(from_scratch=False)
        except (duckdb.Error, OSError):
            remove_leftovers(path)  # a broken copy, or no room for one
        try:
            return update(from_scratch=True)
        except (duckdb.Error, OSError) as error:
            remove_leftovers(path)
            raise InputError(
                f"the index {path} cannot be written ({reason_of(error)}); free some disk space, or "
                "set `index` to a file elsewhere."
            ) from None


def _written_at(path: Path) -> int | None:
    return path.stat().st_mtime_ns if path.exists() else None


def _files(path: Path, places: Sequence[str]) -> dict[str, CatalogEntry]:
    """Find the files of a lake, without its own index, which may be among them."""
    found = catalog.files(places)
    for name, entry in list(found.items()):
        file = next(iter(entry.source.paths), Path())
        if file.name == path.name and os.path.realpath(file) == os.path.realpath(path):
            del found[name]
    return found


def _is_stale(path: Path, found: Mapping[str, CatalogEntry]) -> bool:
    if not path.exists() or working_file(path).exists():
        return True
    try:
        with contextlib.closing(open_index(path)) as connection:
            known = _records.known_files(connection) if is_current(connection) else None
            return known != _stamps(found)
    except duckdb.Error:
        return True


def _stamps(found: Mapping[str, CatalogEntry]) -> dict[str, tuple[int, int]]:
    return {name: (entry.size, entry.changed) for name, entry in found.items()}


@dataclass(frozen=True)
class _Update:
    connection: duckdb.DuckDBPyConnection
    places: Sequence[str]
    engine: Engine
    progress: Reporter

    def run(self, found: Mapping[str, CatalogEntry]) -> Refreshed:
        known, stamps = _records.known_files(self.connection), _stamps(found)
        gone = [name for name in known if name not in found]
        stale = [name for name in found if known.get(name) != stamps[name]]
        _records.forget(self.connection, gone)
        snapshots, touched = _records.snapshots_by_file(self.connection), 0
        for start in range(0, len(stale), _BATCH):
            names = stale[start : start + _BATCH]
            profiled: list[Profiled] = []
            for i, name in enumerate(names, start):
                self.progress(f"looking at {name}", i / len(stale))
                snapshot = _snapshot(found[name])
                is_same = snapshot is not None and snapshots.get(name) == {snapshot}
                touched += is_same
                profile = self._known_profiles if is_same else self._new_profiles
                profiled += profile(found[name], snapshot)
            _records.store(self.connection, names, profiled)
        self.progress("writing the index", 1)
        changed = sum(name in known for name in stale)
        same = len(found) - len(stale) + touched
        return Refreshed(len(stale) - changed, changed - touched, len(gone), same)

    def _new_profiles(self, entry: CatalogEntry, snapshot: str | None) -> list[Profiled]:
        tables = catalog.tables(entry, self.engine)
        return [profile_table(table, self.engine, snapshot) for table in tables]

    def _known_profiles(self, entry: CatalogEntry, snapshot: str | None) -> list[Profiled]:
        """Return what is known of a file whose date has changed but not its content."""
        old = _records.read_tables(self.connection, self.places, entry.name)
        if any(t.skipped.lines for t in old):  # the words of skipped lines are in no profile
            return self._new_profiles(entry, snapshot)
        profiles = _records.read_profiles(self.connection, [t.id for t in old if t.profiled])
        return [
            Profiled(
                entry=replace(entry, name=t.name, source=t.source),
                source=t.source,
                snapshot=snapshot or "",
                profile=profiles.get(t.id),
                about=profiles.get(t.id),
                problem=t.problem,
            )
            for t in old
        ]


def _snapshot(entry: CatalogEntry) -> str | None:
    if entry.problem is None:
        with contextlib.suppress(OSError, EquipoiseError):
            return snapshot_of(entry.source)
    return None
