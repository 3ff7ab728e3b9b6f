"""How the files of a lake are looked at for its index: by this process, or by the workers of a cluster.

Workers look at whole files with the same code as this process. A large Parquet file is looked at in
parts: each worker gathers the profile of some rows, and merged these are the profile of the whole.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeVar

from equipoise.engines.base import Engine
from equipoise.engines.dialect import Dialect
from equipoise.engines.profiling import Profiler
from equipoise.engines.stores.states import snapshot_of
from equipoise.errors import EquipoiseError, InputError
from equipoise.lake.tables import catalog
from equipoise.lake.tables.catalog import CatalogEntry
from equipoise.lake.tables.index._records import records_of
from equipoise.lake.tables.profiles import Profiled, merged_profile, profile_table
from equipoise.progress import Reporter

if TYPE_CHECKING:
    import pyarrow as pa

P = TypeVar("P")
R = TypeVar("R")

_TOGETHER = 8  # files that a worker looks at in one task: fewer would take longer to hand out
_LARGE = 256 << 20  # bytes of a Parquet file from which on it is looked at in parts
_ROWS = 2_000_000  # of a part
_MEMORY = "1GB"  # of DuckDB on a worker, of which a machine may have many

_BY_CLIENT = ("postgres", "spark", "iceberg")
"""Kinds of tables that this process asks for: their databases do the work, or it has the catalogue."""


class Workers(Protocol):
    """Those who do pieces of work elsewhere."""

    def spread(self, work: Callable[[P], R], pieces: Sequence[P], title: str) -> list[R]:
        """Do work for each of some pieces; return the results in their order."""


@dataclass(frozen=True)
class Asked:
    """A file to look at, and the snapshots by which the index knows what is in it."""

    entry: CatalogEntry
    known: frozenset[str]


@dataclass
class Looked:
    """What was seen: records for the index, and the snapshots of files that are as they were."""

    records: list[tuple[pa.Table, pa.Table]] = field(default_factory=list)
    same: dict[str, str] = field(default_factory=dict)
    missing: list[str] = field(default_factory=list)
    """Files that are not there for a worker."""

    def add(self, other: Looked) -> None:
        """Add what someone else saw."""
        self.records += other.records
        self.same |= other.same
        self.missing += other.missing


def look_here(asked: Sequence[Asked], engine: Engine, tell: Callable[[str], None]) -> Looked:
    """Look at some files in this process; ``tell`` is called with the name of each."""
    found = Looked()
    profiled: list[Profiled] = []
    for each in asked:
        tell(each.entry.name)
        snapshot = _snapshot(each.entry)
        if snapshot is not None and each.known == {snapshot}:
            found.same[each.entry.name] = snapshot
        else:
            profiled += new_profiles(each.entry, engine, snapshot)
    if profiled:
        found.records.append(records_of(profiled))
    return found


def new_profiles(entry: CatalogEntry, engine: Engine, snapshot: str | None) -> list[Profiled]:
    """Profile the tables of a file."""
    return [profile_table(table, engine, snapshot) for table in catalog.tables(entry, engine)]


def _snapshot(entry: CatalogEntry) -> str | None:
    if entry.problem is None:
        with contextlib.suppress(OSError, EquipoiseError):
            return snapshot_of(entry.source)
    return None


# -------------------------------------------------------------------------- on a cluster


@dataclass(frozen=True)
class _Rows:
    """Some rows of a table, in their order."""

    first: int
    number: int

    def query(self, d: Dialect, carried: Sequence[str] = ()) -> str:  # noqa: ARG002
        """Write the query of the rows."""
        return f"SELECT * FROM input LIMIT {self.number} OFFSET {self.first}"


@dataclass(frozen=True)
class _Part:
    """A part of a large file."""

    asked: Asked
    rows: _Rows


@dataclass(frozen=True)
class _SeenPart:
    name: str
    snapshot: str | None  # of the whole file, which the worker of its first rows computes
    gathered: Profiler | None  # none if the rows cannot be read, or are known


def look_there(
    asked: Sequence[Asked], workers: Workers, engine: Engine, progress: Reporter, share: float
) -> Looked:
    """Look at some files on a cluster, and here at those that only this process can open."""
    here = [each for each in asked if not _is_for_workers(each.entry)]
    found = look_here(here, engine, lambda name: progress(f"looking at {name}", share))
    there = [_absolute(each) for each in asked if _is_for_workers(each.entry)]
    large = {each.entry.name: each for each in there if each.entry.size >= _LARGE}
    parts = [part for each in large.values() for part in _parts(each)]
    whole = [each for each in there if each.entry.name not in {p.asked.entry.name for p in parts}]
    pieces: list[Sequence[Asked] | _Part] = [
        *parts,
        *(whole[i : i + _TOGETHER] for i in range(0, len(whole), _TOGETHER)),
    ]
    if not pieces:
        return found
    title = f"profiling {len(there):,} files on a cluster"
    progress(title, share)
    results = workers.spread(_look_on_worker, pieces, title)
    for result in results:
        if isinstance(result, Looked):
            found.add(result)
    seen = [result for result in results if isinstance(result, _SeenPart)]
    again = [each for each in large.values() if not _merge(each, seen, found)]
    again += _missing_here(found, asked)
    found.add(look_here(again, engine, lambda name: progress(f"looking at {name}", share)))
    return found


def _is_for_workers(entry: CatalogEntry) -> bool:
    address = entry.source.address
    in_memory = any(file.address.startswith("memory:") for file in entry.source.stored)
    is_delta_elsewhere = entry.source.kind == "delta" and "://" in (address or "")
    return (
        entry.problem is None
        and entry.source.kind not in _BY_CLIENT
        and not in_memory
        and not is_delta_elsewhere
    )


def _absolute(asked: Asked) -> Asked:
    """Name the files of a source so that a worker, which is in another folder, finds them."""
    source = asked.entry.source
    changed = replace(source, paths=tuple(path.absolute() for path in source.paths))
    if source.kind == "delta" and source.address is not None:
        folder = Path(source.address.removeprefix("delta:")).absolute()
        changed = replace(changed, address=f"delta:{folder}")
    return replace(asked, entry=replace(asked.entry, source=changed))


def _parts(asked: Asked) -> Iterator[_Part]:
    """Divide a large Parquet file; one that cannot be divided is looked at as a whole."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    source = asked.entry.source
    if source.kind != "parquet" or len(source.files) != 1:
        return
    try:
        with source.files[0].open("rb") as file:
            rows = pq.read_metadata(file).num_rows
    except (EquipoiseError, OSError, pa.ArrowException):
        return
    for first in range(0, rows, _ROWS):
        yield _Part(asked, _Rows(first, min(_ROWS, rows - first)))


def _look_on_worker(piece: Sequence[Asked] | _Part) -> Looked | _SeenPart:
    """Do a piece of work on a worker."""
    from equipoise.engines.routing import shared_engine

    engine = shared_engine(threads=1, memory=_MEMORY)
    if isinstance(piece, _Part):
        return _look_at_part(piece, engine.local)
    gone = [each for each in piece if not all(p.exists() for p in each.entry.source.paths)]
    found = look_here([each for each in piece if each not in gone], engine, lambda _: None)
    found.missing = [each.entry.name for each in gone]
    return found


def _look_at_part(part: _Part, engine: Engine) -> _SeenPart:
    import pyarrow as pa

    entry, snapshot = part.asked.entry, None
    if part.rows.first == 0:
        snapshot = _snapshot(entry)
    gathered = None
    with contextlib.suppress(EquipoiseError, OSError, pa.ArrowException):
        rows = replace(entry.source, view=part.rows)
        gathered = engine.profiler(rows, start=part.rows.first)  # type: ignore[attr-defined] # of DuckDB
    return _SeenPart(entry.name, snapshot, gathered)


def _merge(asked: Asked, seen: Sequence[_SeenPart], found: Looked) -> bool:
    """Add the profile of a large file, of which all parts were seen; return whether that was so."""
    parts = [part for part in seen if part.name == asked.entry.name]
    if not parts:
        return True  # looked at as a whole
    snapshot = parts[0].snapshot
    if snapshot is not None and asked.known == {snapshot}:
        found.same[asked.entry.name] = snapshot
        return True
    gathered = [part.gathered for part in parts if part.gathered is not None]
    if snapshot is None or len(gathered) < len(parts):
        return False
    found.records.append(records_of([merged_profile(asked.entry, snapshot, gathered)]))
    return True


def _missing_here(found: Looked, asked: Sequence[Asked]) -> list[Asked]:
    """Return the files that have gone; refuse to go on if they are there, only not for workers."""
    gone = [each for each in asked if each.entry.name in set(found.missing)]
    for each in gone:
        for path in each.entry.source.paths:
            if path.exists():
                raise InputError(
                    f"{each.entry.name} is there for this process, but not for the workers of Spark; put the "
                    "lake where all of them find it under the same path, or index it without them."
                )
    return gone
