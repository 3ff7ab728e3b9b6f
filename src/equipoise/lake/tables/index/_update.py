"""A run that brings an index up to date."""

from __future__ import annotations

import contextlib
import itertools
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import duckdb

from equipoise.engines.base import Engine
from equipoise.errors import InputError
from equipoise.lake.tables import catalog
from equipoise.lake.tables.catalog import CatalogEntry
from equipoise.lake.tables.index import _records
from equipoise.lake.tables.index._lookup import (
    Asked,
    Looked,
    Workers,
    look_here,
    look_there,
    new_profiles,
)
from equipoise.lake.tables.index._reader import Index
from equipoise.lake.tables.index._records import records_of
from equipoise.lake.tables.index._segments import (
    Fresh,
    open_index,
    publish,
    reason_of,
    written,
)
from equipoise.lake.tables.index._stamps import Stamps, digest_of, quick_stamps
from equipoise.lake.tables.index._working_copy import (
    gathering,
    locked,
    remove_leftovers,
    working_file,
)
from equipoise.lake.tables.profiles import Profiled
from equipoise.plain import Grid
from equipoise.progress import Reporter, cancellable, silent
from equipoise.results import FlatTable, Result

_BATCH = 100  # files per transaction: what a killed run loses at most
_ROUND = 2_000  # the same on a cluster, which has to be kept busy


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
    engine: Engine | Callable[[], Engine],
    workers: Callable[[], Workers] | None = None,
    progress: Reporter = silent,
    waiting: Callable[[], None] = lambda: None,
) -> Refreshed:
    """Update an index: profile new and changed files, forget those that are gone.

    An ``engine`` that takes long to load may be given as a function, which is called only if there
    is something to profile. With ``workers``, they look at the files, and this process writes what they
    found into the index. ``waiting`` is called once if another run holds the lock.
    """
    current = open_current(path, places, progress)
    if current is not None:
        current[0].close()
        return Refreshed(0, 0, 0, current[1])
    before = written(path)
    found = _files(path, places)
    if not _is_stale(path, found):
        return Refreshed(0, 0, 0, len(found))
    used = engine() if callable(engine) else engine
    run = _Update(path, places, used, progress, None if workers is None else workers())
    with locked(path, waiting):
        if written(path) != before:  # the other run may have seen newer files
            found = _files(path, places)
            if not _is_stale(path, found):
                return Refreshed(0, 0, 0, len(found))
        try:
            return run.update(found, from_scratch=not _is_current(path))
        except (duckdb.Error, OSError):
            remove_leftovers(path)  # something broken, or no room
        try:
            return run.update(found, from_scratch=True)
        except (duckdb.Error, OSError) as error:
            remove_leftovers(path)
            raise InputError(
                f"the index {path} cannot be written ({reason_of(error)}); free some disk space, or "
                "set `index` to a file elsewhere."
            ) from None


@cancellable
def load(
    path: Path, tables: str, columns: str, *, waiting: Callable[[], None] = lambda: None
) -> None:
    """Make an index of profiles that were computed elsewhere.

    ``tables`` and ``columns`` are Parquet files, or globs of them, with the records that
    :func:`records_of` writes. An index that is there is replaced. The next refresh looks which tables
    have changed since they were profiled.
    """
    with locked(path, waiting):
        remove_leftovers(path)
        try:
            publish(path, Fresh({"tables": tables, "columns": columns}), from_scratch=True)
        except (duckdb.Error, OSError) as error:
            raise InputError(
                f"{tables} and {columns} cannot be loaded into the index {path} ({reason_of(error)})."
            ) from None
        finally:
            remove_leftovers(path)


def _files(path: Path, places: Sequence[str]) -> dict[str, CatalogEntry]:
    """Find the files of a lake, without its own index, which may be among them."""
    found = catalog.files(places)
    for name, entry in list(found.items()):
        file = next(iter(entry.source.paths), Path())
        if file.name == path.name and os.path.realpath(file) == os.path.realpath(path):
            del found[name]
    return found


def open_current(
    path: Path, places: Sequence[str], progress: Reporter = silent
) -> tuple[Index, int] | None:
    """Open an index if all files are as it knows them, and return their number with it.

    If that is not certain, there is None.
    """
    progress("looking for tables", 0)
    if not path.exists() or working_file(path).exists():
        return None
    stamps = quick_stamps(places, path)
    if stamps is None:
        return None
    with contextlib.suppress(duckdb.Error), contextlib.ExitStack() as stack:
        opened = stack.enter_context(contextlib.closing(open_index(path)))
        ((state,),) = opened.connection.execute("SELECT state FROM about").fetchall()
        if state == digest_of(stamps):
            stack.pop_all()
            return Index(path, places, opened), len(stamps)
    return None


def _is_current(path: Path) -> bool:
    with contextlib.suppress(duckdb.Error), contextlib.closing(open_index(path)):
        return True
    return False


def _is_stale(path: Path, found: Mapping[str, CatalogEntry]) -> bool:
    if not path.exists() or working_file(path).exists():
        return True
    try:
        with contextlib.closing(open_index(path)) as opened:
            return _records.known_files(opened.connection) != _stamps(found)
    except duckdb.Error:
        return True


def _stamps(found: Mapping[str, CatalogEntry]) -> Stamps:
    return {name: (entry.size, entry.changed) for name, entry in found.items()}


@dataclass(frozen=True)
class _Update:
    path: Path
    places: Sequence[str]
    engine: Engine
    progress: Reporter
    workers: Workers | None = None

    def update(self, found: Mapping[str, CatalogEntry], *, from_scratch: bool) -> Refreshed:
        """Gather what is new, and add it to the index."""
        with contextlib.ExitStack() as stack:
            old = None
            if not from_scratch:
                old = stack.enter_context(contextlib.closing(open_index(self.path)))
            before = {} if old is None else _records.known_files(old.connection)
            stamp, last = ("", -1) if old is None else (old.stamp, old.segments[-1].last)
            with (
                _telling_what_is_kept(),
                gathering(self.path, stamp, last, len(found)) as fresh,
            ):
                done = self._gather(found, before, fresh, None if old is None else old.connection)
                gathered = _records.known_files(fresh)
        replaced = [name for name in before if name not in found or name in gathered]
        stamps = {**{name: before[name] for name in found if name in before}, **gathered}
        state = digest_of(stamps)
        publish(
            self.path, Fresh(working_file(self.path), replaced, state), from_scratch=from_scratch
        )
        remove_leftovers(self.path)
        return done

    def _gather(
        self,
        found: Mapping[str, CatalogEntry],
        before: Stamps,
        fresh: duckdb.DuckDBPyConnection,
        old: duckdb.DuckDBPyConnection | None,
    ) -> Refreshed:
        gathered, stamps = _records.known_files(fresh), _stamps(found)
        known = {**before, **gathered}
        gone = [name for name in known if name not in found]
        stale = [name for name in found if known.get(name) != stamps[name]]
        _records.forget(fresh, [name for name in gathered if name not in found])
        touched = 0
        batch = _BATCH if self.workers is None else _ROUND
        for start in range(0, len(stale), batch):
            names = stale[start : start + batch]
            of = {n: fresh if n in gathered else old for n in names if n in known}
            snapshots = _snapshots_by_file(of)
            asked = [Asked(found[n], frozenset(snapshots.get(n, ()))) for n in names]
            looked = self._look(asked, start, len(stale))
            again = [
                profiled
                for name, snapshot in looked.same.items()
                for profiled in self._known_profiles(of[name], found[name], snapshot)
            ]
            touched += len(looked.same)
            records = [*looked.records, records_of(again)] if again else looked.records
            _records.store(fresh, names, records)
        self.progress("writing the index", 1)
        changed = sum(name in known for name in stale)
        same = len(found) - len(stale) + touched
        return Refreshed(len(stale) - changed, changed - touched, len(gone), same)

    def _look(self, asked: Sequence[Asked], before: int, of: int) -> Looked:
        if self.workers is not None:
            return look_there(asked, self.workers, self.engine, self.progress, before / of)
        done = itertools.count(before)
        return look_here(
            asked, self.engine, lambda n: self.progress(f"looking at {n}", next(done) / of)
        )

    def _known_profiles(
        self, connection: duckdb.DuckDBPyConnection | None, entry: CatalogEntry, snapshot: str
    ) -> list[Profiled]:
        """Return what is known of a file whose date has changed but not its content."""
        if connection is None:
            return new_profiles(entry, self.engine, snapshot)
        old = _records.read_tables(connection, self.places, entry.name)
        if any(t.skipped.lines for t in old):  # the words of skipped lines are in no profile
            return new_profiles(entry, self.engine, snapshot)
        chosen = _records.among([t.id for t in old if t.profiled])
        profiles = _records.read_profiles(connection, chosen)
        return [
            Profiled(
                entry=replace(entry, name=t.name, source=t.source),
                source=t.source,
                snapshot=snapshot,
                profile=profiles.get(t.id),
                about=profiles.get(t.id),
                problem=t.problem,
            )
            for t in old
        ]


@contextlib.contextmanager
def _telling_what_is_kept() -> Iterator[None]:
    """Say of an update that is interrupted that the next one continues with what it has."""
    try:
        yield
    except KeyboardInterrupt:
        kept = "the tables that were profiled are kept for the next run"
        raise KeyboardInterrupt(f"nothing was written, but {kept}") from None


def _snapshots_by_file(
    of: Mapping[str, duckdb.DuckDBPyConnection | None],
) -> dict[str, set[str]]:
    """Return the snapshots of the tables of some files, each as the given connection knows them."""
    found: dict[str, set[str]] = {}
    for connection in {id(c): c for c in of.values() if c is not None}.values():
        found |= _records.snapshots_by_file(connection, [n for n in of if of[n] is connection])
    return found
