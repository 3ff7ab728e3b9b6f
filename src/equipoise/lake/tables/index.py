"""What is known of a lake's tables, in one DuckDB file that is always whole.

The index that readers open is never written to. Whoever brings it up to date works on a copy
beside it, commits every few tables, and moves the copy into place at the end: a run that is
killed leaves the old index and the copy, with which the next run goes on. A lock keeps two
runs apart; the second waits, and then finds nothing left to do.
"""

from __future__ import annotations

import contextlib
import functools
import os
import shutil
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb

from equipoise.counts.skipped import NOTHING, Skipped
from equipoise.engines.base import Engine
from equipoise.engines.profiling import ColumnProfile, Profile
from equipoise.engines.sources import Source
from equipoise.errors import InputError
from equipoise.lake.tables import catalog
from equipoise.lake.tables.catalog import Entry
from equipoise.lake.tables.profiles import Profiled, file_hash, profile_table
from equipoise.lake.tables.terms import column_terms
from equipoise.locks import take_lock
from equipoise.plain import Grid
from equipoise.progress import Reporter, silent
from equipoise.results import FlatTable, Result
from equipoise.scratch import is_old

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray

FORMAT = 3
"""Of the file; one of another format is made anew."""

_BATCH = 100
_SCHEMA = """
CREATE TABLE about (format INTEGER);
CREATE SEQUENCE numbers;
CREATE TABLE tables (
    id INTEGER, name VARCHAR, file VARCHAR, inner_name VARCHAR, kind VARCHAR, encoding VARCHAR,
    size BIGINT, changed BIGINT, snapshot VARCHAR, rows BIGINT, problem VARCHAR, profiled BOOLEAN,
    lenient BOOLEAN, skipped BIGINT, first_skipped VARCHAR[]
);
CREATE TABLE columns (
    id INTEGER, place INTEGER, name VARCHAR, type VARCHAR, nulls BIGINT, "distinct" BIGINT,
    "values" VARCHAR[], counts BIGINT[], sketch UBIGINT[], "numeric" DOUBLE, quantiles DOUBLE[],
    sample VARCHAR[]
);
CREATE TABLE terms (id INTEGER, place INTEGER, term UBIGINT, weight FLOAT);
"""


@dataclass(frozen=True, kw_only=True)
class Table:
    """A table of the lake as the index knows it.

    Attributes
    ----------
    id
        Its number in the index.
    name
        How the lake calls it.
    source
        How to open it.
    size, changed
        Of its file when it was looked at.
    snapshot
        The SHA-256 of its file.
    rows
        How many it has.
    problem
        Why it cannot be read, or why no rows can be taken from it.
    profiled
        Whether it is known what it is about.
    skipped
        Lines of a CSV file that are no rows of it; the others can be used.
    """

    id: int
    name: str
    source: Source
    size: int
    changed: int
    snapshot: str
    rows: int
    problem: str | None
    profiled: bool
    skipped: Skipped = NOTHING


@dataclass(frozen=True)
class Refreshed(Result):
    """What bringing an index up to date did: how many tables were new, changed, gone, the same."""

    new: int
    changed: int
    gone: int
    same: int

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return dict(vars(self))

    def _table(self) -> FlatTable:
        return ("tables", "number"), list(vars(self).items())

    def grid(self) -> Grid:
        """The numbers as a table for people."""
        rows = tuple((name, f"{number:,}") for name, number in vars(self).items())
        return Grid(("tables", "number"), rows, frozenset({1}))


class Index:
    """Reads an index; see :func:`refresh` for how it is written."""

    def __init__(self, path: Path, places: Sequence[str]) -> None:
        self._path, self._root = path, catalog.root(places)
        with self._explained():
            self._connection = _opened(path)

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    def tables(self) -> list[Table]:
        """All tables, in the order of their names, those that cannot be read among them."""
        with self._explained():
            return _tables(self._connection, self._root)

    def profiles(self, ids: Iterable[int]) -> dict[int, Profile]:
        """What is known of some tables."""
        with self._explained():
            return _profiles(self._connection, list(ids))

    def chosen(self, ids: Iterable[int]) -> dict[int, Table]:
        """Some tables, by their numbers."""
        with self._explained():
            found = _tables(self._connection, self._root, ids=list(ids))
        return {table.id: table for table in found}

    @functools.cached_property
    def frequencies(self) -> tuple[int, NDArray[np.uint64], NDArray[np.int64]]:
        """How many columns there are; all terms, rising, and how many columns have each."""
        ((columns,),) = self.query("SELECT count(*) FROM columns")
        rows = self.arrow("SELECT term, count(*) AS n FROM terms GROUP BY term ORDER BY term")
        return columns, rows["term"].to_numpy(), rows["n"].to_numpy()

    def arrow(self, text: str, parameters: Sequence[Any] = ()) -> pa.Table:
        """Ask the index itself, for many rows."""
        with self._explained():
            return self._connection.sql(text, params=list(parameters)).to_arrow_table()

    def query(self, text: str, parameters: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Ask the index itself."""
        with self._explained():
            return self._connection.execute(text, parameters).fetchall()

    @contextlib.contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except duckdb.Error as error:
            reason = _reason(error)
            raise InputError(
                f"{self._path} cannot be read as an index ({reason}); remove it, or name another "
                "with --index."
            ) from None


def _opened(path: Path) -> duckdb.DuckDBPyConnection:
    """Open an index to read, as it is now: another one that was opened at its path is kept apart."""
    settings: dict[str, Any] = {
        "temp_directory": f"{path}.tmp",
        "autoinstall_known_extensions": False,
        "autoload_known_extensions": False,
    }
    connection = duckdb.connect(":memory:", config=settings)
    try:
        file = str(path).replace("'", "''")
        connection.execute(f"ATTACH '{file}' AS lake (READ_ONLY); USE lake")
    except duckdb.Error:
        connection.close()
        raise
    return connection


def refresh(
    path: Path,
    places: Sequence[str],
    *,
    engine: Engine,
    progress: Reporter = silent,
    waiting: Callable[[], None] = lambda: None,
) -> Refreshed:
    """Bring an index up to date: look at new and changed tables, forget those that are gone.

    Parameters
    ----------
    path
        The index; made if it is not there.
    places
        The folders, files and globs the lake is.
    engine
        Reads the tables.
    progress
        Is told which table is looked at, and the share done.
    waiting
        Is called once if another run holds the lock.
    """
    progress("looking for tables", 0)
    before = _written_at(path)
    found = _found(path, places)
    if not _is_stale(path, found):
        return Refreshed(0, 0, 0, len(found))
    with _locked(path, waiting):
        if _written_at(path) != before:  # by another run, which may know of files that came since
            found = _found(path, places)
        try:
            return _updated(path, places, found, engine, progress)
        except (duckdb.Error, OSError):
            _removed(path)  # a copy that is broken, or for which there is no room
        try:
            return _updated(path, places, found, engine, progress, anew=True)
        except (duckdb.Error, OSError) as error:
            _removed(path)
            raise InputError(
                f"the index {path} cannot be written ({_reason(error)}); make room, or keep it "
                "elsewhere with --index."
            ) from None


def _written_at(path: Path) -> int | None:
    return path.stat().st_mtime_ns if path.exists() else None


def _found(path: Path, places: Sequence[str]) -> dict[str, Entry]:
    """Find the files of a lake; its own index, which may lie among them, is none."""
    found = catalog.files(places)
    for name, entry in list(found.items()):
        file = entry.source.paths[0]
        if file.name == path.name and os.path.realpath(file) == os.path.realpath(path):
            del found[name]
    return found


def _updated(
    path: Path,
    places: Sequence[str],
    found: Mapping[str, Entry],
    engine: Engine,
    progress: Reporter,
    *,
    anew: bool = False,
) -> Refreshed:
    with _working_copy(path, anew=anew) as connection:
        return _Update(connection, catalog.root(places), engine, progress).run(found)


def _is_stale(path: Path, found: Mapping[str, Entry]) -> bool:
    """Tell whether an index does not know the files as they are now."""
    if not path.exists() or _working(path).exists():
        return True
    try:
        with contextlib.closing(_opened(path)) as connection:
            return not _is_current(connection) or _known(connection) != _stamps(found)
    except duckdb.Error:
        return True


def _stamps(found: Mapping[str, Entry]) -> dict[str, tuple[int, int]]:
    return {name: (entry.size, entry.changed) for name, entry in found.items()}


def _is_current(connection: duckdb.DuckDBPyConnection) -> bool:
    try:
        return connection.execute("SELECT format FROM about").fetchall() == [(FORMAT,)]
    except duckdb.Error:
        return False


def _known(connection: duckdb.DuckDBPyConnection) -> dict[str, tuple[int, int]]:
    rows = connection.execute("SELECT DISTINCT file, size, changed FROM tables").fetchall()
    return {file: (size, changed) for file, size, changed in rows}


def _snapshots(connection: duckdb.DuckDBPyConnection) -> dict[str, set[str]]:
    rows = connection.execute("SELECT file, list(snapshot) FROM tables GROUP BY file").fetchall()
    return {file: set(hashes) for file, hashes in rows}


# ----------------------------------------------------------------------------- writing


def _working(path: Path) -> Path:
    return path.with_name(f"{path.name}.new")


def _partial(path: Path) -> Path:
    return path.with_name(f"{path.name}.part")


def _lock_file(path: Path) -> Path:
    return path.with_name(f"{path.name}.lock")


@contextlib.contextmanager
def _locked(path: Path, waiting: Callable[[], None]) -> Iterator[None]:
    """Hold the lock of an index; it is released when the process ends, however it ends."""
    try:
        descriptor = os.open(_lock_file(path), os.O_RDWR | os.O_CREAT, 0o666)
    except OSError as error:
        raise InputError(
            f"{path.parent} cannot be written to ({error.strerror}); keep the index elsewhere with "
            "--index FILE."
        ) from None
    try:
        told = False
        while True:
            try:
                take_lock(descriptor)
                break
            except (BlockingIOError, PermissionError):
                if not told:
                    waiting()
                    told = True
                time.sleep(0.1)
        yield
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def _working_copy(path: Path, *, anew: bool) -> Iterator[duckdb.DuckDBPyConnection]:
    """Give a copy of the index to write to; move it into place at the end."""
    working = _working(path)
    connection = _resumed(path) or _begun(path, anew=anew)
    try:
        yield connection
        connection.execute("CHECKPOINT")  # closing would hide that there is no room for it
    finally:
        connection.close()
    with working.open("rb+") as file:
        os.fsync(file.fileno())
    working.replace(path)


def _resumed(path: Path) -> duckdb.DuckDBPyConnection | None:
    """Open what a run that did not end has left, if it can be used."""
    if not _working(path).exists():
        return None
    with contextlib.suppress(duckdb.Error):
        connection = duckdb.connect(str(_working(path)))
        if _is_current(connection):
            return connection
        connection.close()
    return None


def _begun(path: Path, *, anew: bool) -> duckdb.DuckDBPyConnection:
    _removed(path)
    if path.exists() and not anew:
        shutil.copyfile(path, _partial(path))
        _partial(path).replace(_working(path))
        connection = _resumed(path)
        if connection is not None:
            return connection
        _removed(path)
    connection = duckdb.connect(str(_working(path)))
    connection.execute(f"BEGIN; {_SCHEMA} INSERT INTO about VALUES ({FORMAT}); COMMIT")
    return connection


def _removed(path: Path) -> None:
    """Remove what is beside an index but the lock."""
    for leftover in _beside(path):
        leftover.unlink(missing_ok=True)


def _beside(path: Path) -> tuple[Path, ...]:
    """Name the files that a run which did not end can leave beside an index."""
    working = _working(path)
    return (working, working.with_name(f"{working.name}.wal"), _partial(path))


def sweep(path: Path) -> None:
    """Remove what a killed run left beside an index more than a day ago, unless a run goes on.

    Bringing the index up to date needs no sweeping: it goes on with what was left.
    """
    left = [leftover for leftover in _beside(path) if leftover.exists()]
    if not left or not all(is_old(leftover.stat()) for leftover in left):
        return
    with contextlib.suppress(OSError):
        descriptor = os.open(_lock_file(path), os.O_RDWR | os.O_CREAT, 0o666)
        try:
            take_lock(descriptor)
            _removed(path)
        finally:
            os.close(descriptor)


@dataclass(frozen=True)
class _Update:
    """One run that brings an index up to date."""

    connection: duckdb.DuckDBPyConnection
    root: Path
    engine: Engine
    progress: Reporter

    def run(self, found: Mapping[str, Entry]) -> Refreshed:
        known, stamps = _known(self.connection), _stamps(found)
        gone = [name for name in known if name not in found]
        stale = [name for name in found if known.get(name) != stamps[name]]
        _forget(self.connection, gone)
        snapshots, touched = _snapshots(self.connection), 0
        for start in range(0, len(stale), _BATCH):
            names = stale[start : start + _BATCH]
            looked_at: list[Profiled] = []
            for i, name in enumerate(names, start):
                self.progress(f"looking at {name}", i / len(stale))
                snapshot = _snapshot(found[name])
                is_same = snapshot is not None and snapshots.get(name) == {snapshot}
                touched += is_same
                look = self._touched if is_same else self._look
                looked_at += look(found[name], snapshot)
            _store(self.connection, names, looked_at)
        self.progress("writing the index", 1)
        changed = sum(name in known for name in stale)
        same = len(found) - len(stale) + touched
        return Refreshed(len(stale) - changed, changed - touched, len(gone), same)

    def _look(self, entry: Entry, snapshot: str | None) -> list[Profiled]:
        tables = catalog.tables(entry, self.engine)
        return [profile_table(table, self.engine, snapshot) for table in tables]

    def _touched(self, entry: Entry, snapshot: str | None) -> list[Profiled]:
        """Give what is known of a file of which only the date has changed."""
        old = _tables(self.connection, self.root, entry.name)
        if any(t.skipped.lines for t in old):  # what those lines say stands in no profile
            return self._look(entry, snapshot)
        profiles = _profiles(self.connection, [t.id for t in old if t.profiled])
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


def _snapshot(entry: Entry) -> str | None:
    """Give the hash of a file that can be read."""
    if entry.problem is None:
        with contextlib.suppress(OSError):
            return file_hash(entry.source.paths[0])
    return None


def _forget(connection: duckdb.DuckDBPyConnection, files: Sequence[str]) -> None:
    if files:
        listed = [list(files)]
        chosen = "(SELECT id FROM tables WHERE file IN (SELECT unnest(?)))"
        for table in ("terms", "columns", "tables"):
            connection.execute(f"DELETE FROM {table} WHERE id IN {chosen}", listed)


def _store(
    connection: duckdb.DuckDBPyConnection, files: Sequence[str], looked_at: Sequence[Profiled]
) -> None:
    connection.begin()
    _forget(connection, files)
    if looked_at:
        numbers = connection.execute(
            "SELECT nextval('numbers') FROM range(?)", [len(looked_at)]
        ).fetchall()
        numbered = [(n, seen) for (n,), seen in zip(numbers, looked_at, strict=True)]
        _insert(connection, "tables", _table_rows(numbered))
        _insert(connection, "columns", _column_rows(numbered))
        _insert(connection, "terms", _term_rows(numbered))
    connection.commit()


def _insert(connection: duckdb.DuckDBPyConnection, table: str, rows: pa.Table) -> None:
    connection.register("fresh", rows)
    connection.execute(f"INSERT INTO {table} BY NAME FROM fresh")
    connection.unregister("fresh")


def _table_rows(numbered: Sequence[tuple[int, Profiled]]) -> pa.Table:
    import pyarrow as pa

    rows = [
        {
            "id": number,
            "name": seen.entry.name,
            "file": seen.entry.name.removesuffix(f"::{seen.source.table}"),
            "inner_name": seen.source.table,
            "kind": seen.source.kind,
            "encoding": seen.source.encoding,
            "size": seen.entry.size,
            "changed": seen.entry.changed,
            "snapshot": seen.snapshot,
            "rows": seen.profile.rows if seen.profile else 0,
            "problem": seen.problem,
            "profiled": seen.profile is not None,
            "lenient": seen.source.lenient,
            "skipped": seen.profile.skipped.lines if seen.profile else 0,
            "first_skipped": list(seen.profile.skipped.first) if seen.profile else [],
        }
        for number, seen in numbered
    ]
    types = {"inner_name": pa.string(), "problem": pa.string()}
    types["first_skipped"] = pa.list_(pa.string())
    return pa.table(
        {name: pa.array([row[name] for row in rows], types.get(name)) for name in rows[0]}
    )


def _column_rows(numbered: Sequence[tuple[int, Profiled]]) -> pa.Table:
    import pyarrow as pa

    columns = [
        (number, place, column)
        for number, seen in numbered
        if seen.profile
        for place, column in enumerate(seen.profile.columns)
    ]
    texts, wholes = pa.list_(pa.string()), pa.list_(pa.int64())
    return pa.table(
        {
            "id": pa.array([n for n, _, _ in columns], pa.int32()),
            "place": pa.array([p for _, p, _ in columns], pa.int32()),
            "name": pa.array([c.name for *_, c in columns], pa.string()),
            "type": pa.array([c.type for *_, c in columns], pa.string()),
            "nulls": pa.array([c.nulls for *_, c in columns], pa.int64()),
            "distinct": pa.array([c.distinct for *_, c in columns], pa.int64()),
            "values": pa.array([_keys(c.values) for *_, c in columns], texts),
            "counts": pa.array([_counts(c.values) for *_, c in columns], wholes),
            "sketch": pa.array([list(c.sketch) for *_, c in columns], pa.list_(pa.uint64())),
            "numeric": pa.array([c.numeric for *_, c in columns], pa.float64()),
            "quantiles": pa.array([c.quantiles for *_, c in columns], pa.list_(pa.float64())),
            "sample": pa.array([list(c.sample) for *_, c in columns], texts),
        }
    )


def _term_rows(numbered: Sequence[tuple[int, Profiled]]) -> pa.Table:
    import pyarrow as pa

    rows = [
        (number, place, term, weight)
        for number, seen in numbered
        if seen.about
        for place, column in enumerate(seen.about.columns)
        for term, weight in column_terms(column).items()
    ]
    types = {"id": pa.int32(), "place": pa.int32(), "term": pa.uint64(), "weight": pa.float32()}
    return pa.table(
        {
            name: pa.array([row[i] for row in rows], type_)
            for i, (name, type_) in enumerate(types.items())
        }
    )


def _keys(values: Mapping[str, int] | None) -> list[str] | None:
    return None if values is None else list(values)


def _counts(values: Mapping[str, int] | None) -> list[int] | None:
    return None if values is None else list(values.values())


# ----------------------------------------------------------------------------- reading


def _tables(
    connection: duckdb.DuckDBPyConnection,
    root: Path,
    file: str | None = None,
    ids: Sequence[int] | None = None,
) -> list[Table]:
    chosen = "WHERE file = ?" if file is not None else ""
    if ids is not None:
        chosen = "WHERE id IN (SELECT unnest(?))"
    rows = connection.execute(
        "SELECT id, name, file, inner_name, kind, encoding, size, changed, snapshot, rows, problem, "
        f"profiled, lenient, skipped, first_skipped FROM tables {chosen} ORDER BY name",
        [asked for asked in (file, ids) if asked is not None],
    ).fetchall()
    return [
        Table(
            id=number,
            name=name,
            source=Source(
                name=name,
                kind=kind,
                paths=(root / file_name,),
                table=inner,
                encoding=encoding,
                lenient=lenient,
            ),
            size=size,
            changed=changed,
            snapshot=snapshot,
            rows=n,
            problem=problem,
            profiled=profiled,
            skipped=Skipped(skipped, tuple(first)),
        )
        for (
            number, name, file_name, inner, kind, encoding, size, changed, snapshot, n, problem,
            profiled, lenient, skipped, first,
        ) in rows
    ]  # fmt: skip


def _profiles(connection: duckdb.DuckDBPyConnection, ids: Sequence[int]) -> dict[int, Profile]:
    found = connection.execute(
        'SELECT id, name, type, nulls, "distinct", "values", counts, sketch, "numeric", quantiles, '
        "sample FROM columns WHERE id IN (SELECT unnest(?)) ORDER BY id, place",
        [list(ids)],
    ).fetchall()
    known = connection.execute(
        "SELECT id, rows, skipped, first_skipped FROM tables WHERE id IN (SELECT unnest(?))",
        [list(ids)],
    ).fetchall()
    rows = {number: (n, Skipped(lines, tuple(first))) for number, n, lines, first in known}
    columns: dict[int, list[ColumnProfile]] = {number: [] for number in rows}
    for number, *about in found:
        columns[number].append(_column(*about))
    return {
        number: Profile(n, tuple(columns[number]), skipped) for number, (n, skipped) in rows.items()
    }


def _column(
    name: str,
    kind: str,
    nulls: int,
    distinct: int,
    values: list[str] | None,
    counts: list[int],
    sketch: list[int],
    numeric: float,
    quantiles: list[float] | None,
    sample: list[str | None],
) -> ColumnProfile:
    return ColumnProfile(
        name=name,
        type=kind,
        nulls=nulls,
        distinct=distinct,
        values=None if values is None else dict(zip(values, counts, strict=True)),
        sketch=tuple(sketch),
        numeric=numeric,
        quantiles=None if quantiles is None else tuple(quantiles),
        sample=tuple(sample),
    )


def _reason(error: Exception) -> str:
    return str(error).strip().splitlines()[0].rstrip(".")
