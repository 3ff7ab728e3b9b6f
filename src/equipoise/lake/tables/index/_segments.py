"""The files of an index: a base, and what has changed since it was written.

A segment is a DuckDB file that is never written to again once it has its name. The base holds all
tables of a lake; a delta holds those that were new or had changed when the index was brought up to
date, and the numbers of those that were gone. A small lake has a base alone, written anew each time.
In a large one a delta is added instead, and deltas are merged now and then: all of them with each
other, or with the base, once they hold a good part of it.

====================== =======================================================================
``X``                  the base
``X.STAMP-3-3``        the third delta to the base of this stamp
``X.STAMP-1-8``        the first eight deltas, merged
``X.new``, ``X.part``  what a run is writing
``X.lock``             locked by the run that writes
====================== =======================================================================

A reader attaches the base and the deltas that follow each other without a gap; what a killed run
left has no such name. Files get their names last, by renaming.

Terms are stored twice: with their columns, to compare these; and as ``postings``, sorted by term, of
which a search reads the few blocks that hold the terms it asks for. How many columns have a term is
stored as well; in a delta it is the change, which is below zero where tables are gone.
"""

from __future__ import annotations

import contextlib
import os
import re
import secrets
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb

from equipoise.lake.tables._terms import NUMERIC
from equipoise.lake.tables.index._records import COLUMNS, FORMAT, TABLES

_SMALL = 1_000
"""Number of tables up to which the base is written anew each time."""

_SHARE = 4
"""Deltas are merged with the base once it has less than so many times as many tables as they have."""

_AT_ONCE = 50_000_000
"""Number of terms that are sorted at once, which bounds the memory that a run needs."""

_LOOKED_UP = 100_000
"""Number of columns up to which those of some tables are looked up; by default DuckDB reads all sooner."""

_HEADERS = 3 * 4096
"""Number of bytes of a DuckDB file that come before its first block."""

_MOST_DELTAS = 8
_TRIES = 5

_KINDS = ("tables", "columns", "postings", "numbers")


class Outdated(duckdb.Error):
    """The index was written in another format."""


@dataclass(frozen=True)
class Segment:
    """A file of an index, and the first and the last of the deltas in it; 0 is the base."""

    path: Path
    first: int
    last: int


@dataclass(frozen=True)
class OpenIndex:
    """A connection to all segments of an index, with a view of each kind of record."""

    connection: duckdb.DuckDBPyConnection
    segments: tuple[Segment, ...]
    stamp: str

    def close(self) -> None:
        """Close the files."""
        self.connection.close()


def connect(path: Path, **settings: Any) -> duckdb.DuckDBPyConnection:
    """Open a connection of its own, which keeps nothing in memory that it need not."""
    # DuckDB shares one database among all connections to a path, and would go on reading an old
    # file after a new one has been moved there; so files are attached to a database in memory.
    own: dict[str, Any] = {
        "temp_directory": f"{path}.tmp",
        "index_scan_max_count": _LOOKED_UP,
        "dynamic_or_filter_threshold": 0,  # else it decompresses lists row by row, which is slower
        "autoinstall_known_extensions": False,
        "autoload_known_extensions": False,
    }
    return duckdb.connect(":memory:", config={**own, **settings})


def open_index(path: Path) -> OpenIndex:
    """Attach the segments of an index; another run may replace them meanwhile."""
    for tries_left in range(_TRIES, 0, -1):
        before = _identity(path)
        connection = connect(path)
        try:
            opened = _attached(connection, path)
            if _identity(path) == before or tries_left == 1:
                return opened
        except duckdb.Error:
            connection.close()
            if _identity(path) == before or tries_left == 1:
                raise
        else:
            connection.close()
    raise AssertionError


def _identity(path: Path) -> tuple[int, int] | None:
    with contextlib.suppress(OSError):
        about = path.stat()
        return about.st_ino, about.st_mtime_ns
    return None


def written(path: Path) -> tuple[Any, ...]:
    """What tells whether another run has changed an index."""
    return (_identity(path), *sorted(beside.name for beside in _beside(path)))


def _attached(connection: duckdb.DuckDBPyConnection, path: Path) -> OpenIndex:
    attach(connection, path, "s0")
    try:
        ((number, stamp),) = connection.execute("SELECT format, stamp FROM s0.about").fetchall()
    except (duckdb.Error, ValueError):
        raise Outdated("it has another format") from None
    if number != FORMAT:
        raise Outdated("it has another format")
    segments = [Segment(path, 0, 0), *_deltas(path, stamp)]
    for i, segment in enumerate(segments[1:], 1):
        attach(connection, segment.path, f"s{i}")
    _require_whole(connection, segments)
    make_views(connection, len(segments))
    return OpenIndex(connection, tuple(segments), stamp)


def _require_whole(connection: duckdb.DuckDBPyConnection, segments: Sequence[Segment]) -> None:
    """Refuse a file that was cut off, which would otherwise be noticed only where it is read."""
    sizes = connection.execute(
        "SELECT database_name, total_blocks * block_size FROM pragma_database_size()"
    ).fetchall()
    blocks = dict(sizes)
    for i, segment in enumerate(segments):
        if segment.path.stat().st_size < _HEADERS + blocks[f"s{i}"]:
            raise duckdb.IOException(f"{segment.path.name} is not whole")


def attach(connection: duckdb.DuckDBPyConnection, path: Path, name: str) -> None:
    """Attach a file to read it."""
    file = str(path).replace("'", "''")
    connection.execute(f"ATTACH '{file}' AS {name} (READ_ONLY)")


def make_views(connection: duckdb.DuckDBPyConnection, segments: int) -> None:
    """Make views of what is in all segments, without what later ones replace."""
    if segments == 1:
        connection.execute("USE s0")
        return
    for kind in _KINDS:
        connection.execute(f"CREATE VIEW {kind} AS {alive(kind, range(segments), segments)}")
    # Not added up: a search adds up those of its own terms, and would otherwise read all.
    both = " UNION ALL ".join(f"FROM s{i}.frequencies" for i in range(segments))
    connection.execute(f"CREATE VIEW frequencies AS {both}")
    rows = " UNION ALL ".join(f"FROM s{i}.about" for i in range(segments))
    connection.execute(
        "CREATE VIEW about AS SELECT sum(tables)::BIGINT AS tables, sum(columns)::BIGINT AS columns, "
        f"arg_max(state, last) AS state FROM ({rows})"
    )


def alive(kind: str, chosen: Sequence[int], segments: int, further: str = "") -> str:
    """Select the records of some segments that no later segment replaces."""
    parts = []
    for i in chosen:
        later = [f"SELECT id FROM s{j}.gone" for j in range(i + 1, segments)]
        later += [f"SELECT id FROM {further}"] if further else []
        gone = f" ANTI JOIN ({' UNION ALL '.join(later)}) USING (id)" if later else ""
        parts.append(f"FROM s{i}.{kind}{gone}")
    return " UNION ALL BY NAME ".join(parts)


# ------------------------------------------------------------------------------- writing


@dataclass(frozen=True)
class Fresh:
    """What is added to an index: records, and the files whose tables they replace.

    The records are in a DuckDB file or, by kind, in Parquet files.
    """

    records: Path | Mapping[str, str]
    replaced: Sequence[str] = ()
    state: str = ""

    def attach(self, connection: duckdb.DuckDBPyConnection) -> None:
        """Make the records known as ``fresh.tables`` and ``fresh.columns``."""
        if isinstance(self.records, Path):
            attach(connection, self.records, "fresh")
            return
        connection.execute("CREATE SCHEMA fresh")
        for kind, files in self.records.items():
            quoted = files.replace("'", "''")
            connection.execute(f"CREATE VIEW fresh.{kind} AS FROM read_parquet('{quoted}')")


def memory_for(tables: int) -> str:
    """Memory for so many tables: beyond it DuckDB sorts on disk, but some of each it must keep."""
    return f"{256 + tables // 500}MB"


def publish(path: Path, fresh: Fresh, *, from_scratch: bool) -> None:
    """Write what is fresh as a delta, or merge it with deltas or the base, and move it into place.

    From scratch it becomes the base, whatever there was before.
    """
    remove_outdated(path)  # or what a killed run left could become part of the index
    with contextlib.closing(connect(path)) as connection:
        opened = None if from_scratch else _attached(connection, path)
        connection.execute("USE memory")
        fresh.attach(connection)
        _limit_memory(connection, opened)
        _find_gone(connection, opened, fresh.replaced)
        there = () if opened is None else opened.segments
        merged = _merged(connection, there)
        _write(connection, path, there, merged, fresh, "" if opened is None else opened.stamp)
    with part_file(path).open("rb+") as file:
        os.fsync(file.fileno())
    part_file(path).replace(_target(path, there, merged, opened))
    remove_outdated(path)


def _limit_memory(connection: duckdb.DuckDBPyConnection, opened: OpenIndex | None) -> None:
    tables = [
        "fresh.tables",
        *(f"s{i}.tables" for i in range(len(opened.segments if opened else ()))),
    ]
    number = sum(connection.execute(f"SELECT count(*) FROM {t}").fetchall()[0][0] for t in tables)
    connection.execute(f"SET memory_limit = '{memory_for(number)}'")


def _find_gone(
    connection: duckdb.DuckDBPyConnection, opened: OpenIndex | None, replaced: Sequence[str]
) -> None:
    connection.execute("CREATE TABLE gone (id BIGINT)")
    if opened is not None and replaced:
        connection.register("replaced", {"file": _texts(replaced)})
        old = alive("tables", range(len(opened.segments)), len(opened.segments))
        connection.execute(
            f"INSERT INTO gone SELECT id FROM ({old}) SEMI JOIN replaced USING (file)"
        )
        connection.unregister("replaced")


def _texts(texts: Sequence[str]) -> Any:
    import numpy as np

    return np.array(texts, object)


def _merged(connection: duckdb.DuckDBPyConnection, there: Sequence[Segment]) -> range:
    """Choose the segments that are merged with what is fresh."""
    if not there:
        return range(0)
    number = "SELECT count(*) FROM "
    ((base,),) = connection.execute(f"{number}s0.tables").fetchall()
    kinds = ["fresh.tables", "gone", *(f"s{i}.tables" for i in range(1, len(there)))]
    kinds += [f"s{i}.gone" for i in range(1, len(there))]
    changed = sum(connection.execute(number + kind).fetchall()[0][0] for kind in kinds)
    if base <= _SMALL or _SHARE * changed > base:
        return range(len(there))
    return range(1, len(there)) if len(there) > _MOST_DELTAS else range(len(there), len(there))


def _target(path: Path, there: Sequence[Segment], merged: range, opened: OpenIndex | None) -> Path:
    if opened is None or 0 in merged:
        return path
    first, last = _span(there, merged)
    return path.with_name(f"{path.name}.{opened.stamp}-{first}-{last}")


def _span(there: Sequence[Segment], merged: range) -> tuple[int, int]:
    """Number a new delta, and the deltas that it takes the place of."""
    last = there[-1].last + 1
    return (there[merged[0]].first if merged else last), last


def _write(
    connection: duckdb.DuckDBPyConnection,
    path: Path,
    there: Sequence[Segment],
    merged: range,
    fresh: Fresh,
    stamp: str,
) -> None:
    is_base = not there or 0 in merged
    first, last = (0, 0) if is_base else _span(there, merged)
    file = str(part_file(path)).replace("'", "''")
    part_file(path).unlink(missing_ok=True)
    connection.execute(f"ATTACH '{file}' AS made")
    kept = {kind: _kept(kind, merged, len(there)) for kind in _KINDS}
    # Unsorted: numbers are hashes, so that order would help nobody, and long rows take much memory.
    # To keep the order they come in, DuckDB would write them twice, and leave the first copy as a hole.
    connection.execute("SET preserve_insertion_order = false")
    for kind, fields in (("tables", TABLES), ("columns", COLUMNS)):
        connection.execute(f"CREATE TABLE made.{kind} {fields}")
        rows = f"{kept[kind]}FROM fresh.{kind}"
        connection.execute(f"INSERT INTO made.{kind} BY NAME FROM ({rows})")
    connection.execute("SET preserve_insertion_order = true")
    for kind in ("tables", "columns"):  # or a search would have to look through all of them
        connection.execute(f"CREATE INDEX {kind}_by_id ON made.{kind} (id)")
    _write_postings(connection, kept["postings"])
    connection.execute(
        f"CREATE TABLE made.numbers AS FROM ({kept['numbers']}SELECT id, place, opaque, "
        "quantiles[(len(quantiles) + 1) // 2] AS median, quantiles FROM fresh.columns "
        f'WHERE "numeric" >= {NUMERIC} AND quantiles IS NOT NULL) ORDER BY opaque, median, id, place'
    )
    _write_numbers(connection, there, merged, is_base=is_base)
    gone = "".join(f"SELECT id FROM s{i}.gone UNION " for i in merged if i)
    gone = "SELECT id FROM gone WHERE false" if is_base else f"{gone}SELECT id FROM gone"
    connection.execute(f"CREATE TABLE made.gone AS FROM ({gone}) ORDER BY id")
    named = secrets.token_hex(4) if is_base else stamp
    counts = "".join(f"SELECT tables, columns FROM s{i}.about UNION ALL " for i in merged)
    lost = _lost("columns", there)
    connection.execute(
        "CREATE TABLE made.about AS SELECT ?::INTEGER AS format, ?::VARCHAR AS stamp, ?::INTEGER AS first, "
        "?::INTEGER AS last, sum(tables)::BIGINT AS tables, sum(columns)::BIGINT AS columns, "
        f"?::VARCHAR AS state FROM ({counts}SELECT (SELECT count(*) FROM fresh.tables) - "
        "(SELECT count(*) FROM gone) AS tables, (SELECT count(*) FROM fresh.columns) - "
        f"(SELECT count(*) FROM ({lost})) AS columns)",
        [FORMAT, named, first, last, fresh.state],
    )
    connection.execute("DETACH made")  # which writes all of it


def _write_postings(connection: duckdb.DuckDBPyConnection, kept: str) -> None:
    """Sort the tables of each term by term, one range of terms after the other."""
    ((terms,),) = connection.execute("SELECT sum(terms) FROM made.tables").fetchall()
    ranges = 1 + int(terms or 0) // _AT_ONCE
    rows = (
        f"{kept}SELECT term, id, count(*)::UINTEGER AS n FROM (SELECT unnest(terms) AS term, id FROM "
        "fresh.columns) GROUP BY ALL"
    )
    connection.execute(
        "CREATE TABLE made.postings (term UBIGINT, id BIGINT, n UINTEGER); "
        "CREATE TABLE made.frequencies (term UBIGINT, n BIGINT)"
    )
    for i in range(ranges):
        low, high = i * 2**64 // ranges, (i + 1) * 2**64 // ranges - 1
        connection.execute(
            f"INSERT INTO made.postings BY NAME FROM ({rows}) WHERE term BETWEEN {low}::UBIGINT AND "
            f"{high}::UBIGINT ORDER BY term, id"
        )


def _kept(kind: str, merged: range, segments: int) -> str:
    rows = alive(kind, merged, segments, "memory.gone")
    return f"{rows} UNION ALL BY NAME " if rows else ""


def _lost(kind: str, there: Sequence[Segment]) -> str:
    """Select the records of tables that are gone now."""
    if not there:
        return "SELECT 0::BIGINT AS id, []::UBIGINT[] AS terms WHERE false"
    return f"FROM ({alive(kind, range(len(there)), len(there))}) SEMI JOIN memory.gone USING (id)"


def _write_numbers(
    connection: duckdb.DuckDBPyConnection,
    there: Sequence[Segment],
    merged: range,
    *,
    is_base: bool,
) -> None:
    """Store how many columns have each term, or how many more than before."""
    parts = [f"SELECT term, n FROM s{i}.frequencies" for i in merged]
    parts.append("SELECT unnest(terms) AS term, 1 AS n FROM fresh.columns")
    parts.append(f"SELECT unnest(terms) AS term, -1 AS n FROM ({_lost('columns', there)})")
    least = "> 0" if is_base else "<> 0"
    connection.execute(
        "INSERT INTO made.frequencies SELECT term, sum(n)::BIGINT AS n FROM "
        f"({' UNION ALL '.join(parts)}) GROUP BY term HAVING sum(n) {least} ORDER BY term"
    )


# --------------------------------------------------------------------------------- files


def part_file(path: Path) -> Path:
    """Where a segment is written before it gets its name."""
    return path.with_name(f"{path.name}.part")


def _beside(path: Path) -> Iterator[Path]:
    """The deltas beside a base, of whatever stamp."""
    name = re.compile(rf"{re.escape(path.name)}\.[0-9a-f]{{8}}-\d+-\d+")
    with contextlib.suppress(OSError), os.scandir(path.parent) as entries:
        yield from (Path(e.path) for e in entries if name.fullmatch(e.name))


def _deltas(path: Path, stamp: str) -> list[Segment]:
    """The deltas of a base that follow each other; of those that overlap, the longest."""
    there = []
    for beside in _beside(path):
        own, first, last = beside.name.rpartition(".")[2].split("-")
        if own == stamp:
            there.append(Segment(beside, int(first), int(last)))
    found: list[Segment] = []
    for segment in sorted(there, key=lambda s: (s.first, -s.last)):
        if segment.first == (found[-1].last if found else 0) + 1:
            found.append(segment)
    return found


def remove_outdated(path: Path) -> None:
    """Remove deltas that are part of other segments; an unreadable base has none."""
    keep: set[Path] = set()
    if path.exists():
        with contextlib.suppress(duckdb.Error), contextlib.closing(open_index(path)) as opened:
            keep = {segment.path for segment in opened.segments}
    for beside in list(_beside(path)):
        if beside not in keep:
            with contextlib.suppress(OSError):  # which someone may still have open
                beside.unlink()


def reason_of(error: Exception) -> str:
    """Return the first line of an error."""
    return str(error).strip().splitlines()[0].rstrip(".")
