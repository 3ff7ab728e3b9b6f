"""The tables of an index file: how profiles are written to them and read from them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from equipoise.counts.skipped import NOTHING, Skipped
from equipoise.engines.profiling import ColumnProfile, Profile
from equipoise.engines.sources import Source
from equipoise.lake.tables._terms import column_terms
from equipoise.lake.tables.profiles import Profiled

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa

FORMAT = 3
"""Version of the file format; an index of another version is built again."""

SCHEMA = """
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
        Number in the index.
    name
        Name in the lake.
    source
        How to open it.
    size, changed
        Size and date of its file when it was profiled.
    snapshot
        SHA-256 of its file.
    rows
        Number of rows.
    problem
        Why the table cannot be read, or why no rows can be taken from it.
    profiled
        Whether the index has a profile of its columns.
    skipped
        Lines of a CSV file that are not valid rows; the other lines can be used.
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


def known_files(connection: duckdb.DuckDBPyConnection) -> dict[str, tuple[int, int]]:
    rows = connection.execute("SELECT DISTINCT file, size, changed FROM tables").fetchall()
    return {file: (size, changed) for file, size, changed in rows}


def snapshots_by_file(connection: duckdb.DuckDBPyConnection) -> dict[str, set[str]]:
    rows = connection.execute("SELECT file, list(snapshot) FROM tables GROUP BY file").fetchall()
    return {file: set(hashes) for file, hashes in rows}


def read_tables(
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


def read_profiles(connection: duckdb.DuckDBPyConnection, ids: Sequence[int]) -> dict[int, Profile]:
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


def forget(connection: duckdb.DuckDBPyConnection, files: Sequence[str]) -> None:
    if files:
        listed = [list(files)]
        chosen = "(SELECT id FROM tables WHERE file IN (SELECT unnest(?)))"
        for table in ("terms", "columns", "tables"):
            connection.execute(f"DELETE FROM {table} WHERE id IN {chosen}", listed)


def store(
    connection: duckdb.DuckDBPyConnection, files: Sequence[str], looked_at: Sequence[Profiled]
) -> None:
    connection.begin()
    forget(connection, files)
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
