"""The tables of an index file: how profiles are written to them and read from them."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from equipoise.counts.skipped import NOTHING, Skipped
from equipoise.engines.profiling import ColumnProfile, Profile
from equipoise.engines.sources import Source
from equipoise.lake.tables import catalog
from equipoise.lake.tables._terms import column_terms
from equipoise.lake.tables.headers import is_opaque
from equipoise.lake.tables.profiles import Profiled

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa

FORMAT = 4
"""Version of the file format; an index of another version is built again."""

_FEW = 20
"""Number of tables whose profiles are read sooner without loading Arrow than with it."""

TABLES = """(
    id BIGINT, name VARCHAR, file VARCHAR, inner_name VARCHAR, kind VARCHAR, encoding VARCHAR,
    size BIGINT, changed BIGINT, snapshot VARCHAR, rows BIGINT, problem VARCHAR, profiled BOOLEAN,
    lenient BOOLEAN, skipped BIGINT, first_skipped VARCHAR[], terms BIGINT
)"""

COLUMNS = """(
    id BIGINT, place INTEGER, name VARCHAR, type VARCHAR, nulls BIGINT, "distinct" BIGINT,
    "values" VARCHAR[], counts BIGINT[], sketch UBIGINT[], "numeric" DOUBLE, quantiles DOUBLE[],
    sample VARCHAR[], opaque BOOLEAN, terms UBIGINT[], weights FLOAT[]
)"""


@dataclass(frozen=True, kw_only=True)
class Table:
    """A table of the lake as the index knows it.

    Attributes
    ----------
    id, name
        Number in the index, which is a hash of the name, and name in the lake.
    source
        How to open it.
    size, changed, snapshot
        Size, date and SHA-256 of its file when it was profiled; of another table its bytes, a number
        that changes with it, and the name of its state.
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


def snapshots_by_file(
    connection: duckdb.DuckDBPyConnection, files: Sequence[str]
) -> dict[str, set[str]]:
    rows = connection.execute(
        "SELECT file, list(snapshot) FROM tables WHERE file IN (SELECT unnest(?)) GROUP BY file",
        [list(files)],
    ).fetchall()
    return {file: set(hashes) for file, hashes in rows}


Chosen: TypeAlias = tuple[str, list[Any]]
"""A condition on the numbers of tables, and its parameters."""

_SHARE = 1 / 2_000
"""Share of all tables up to which it is faster to look them up one by one."""


def among(ids: Sequence[int], tables: float = math.inf) -> Chosen:
    """Return the condition that a number is one of some of so many tables, and its parameters.

    A few of very many are written out: only then does DuckDB look them up in an index, for which it
    decompresses a part of each column every time, instead of reading the columns once.

    >>> among([3, 5], 1_000_000)
    ('id IN (3, 5)', [])
    >>> among([3, 5], 1_000)
    ('id IN (SELECT unnest(?::BIGINT[]))', [[3, 5]])
    """
    if 0 < len(ids) <= _SHARE * tables:
        return f"id IN ({', '.join(str(int(number)) for number in ids)})", []
    return "id IN (SELECT unnest(?::BIGINT[]))", [list(ids)]


# Columns of the index that are fields of a table as they are.
_OWN = ("id", "name", "size", "changed", "snapshot", "rows", "problem", "profiled")


def read_tables(
    connection: duckdb.DuckDBPyConnection,
    places: Sequence[str],
    file: str | None = None,
    *,
    chosen: Chosen | None = None,
    remarked: bool = False,
) -> list[Table]:
    where, given = "true", list[Any]()
    if remarked:
        where = "problem IS NOT NULL OR skipped > 0"
    if file is not None:
        where, given = "file = ?", [file]
    if chosen is not None:
        where, given = chosen
    rows = connection.execute(
        "SELECT file, kind, inner_name, encoding, lenient, skipped, first_skipped, "
        f"{', '.join(_OWN)} FROM tables WHERE {where} ORDER BY name",
        given,
    ).fetchall()
    found, root = [], catalog.root(places)
    for path, kind, inner, encoding, lenient, lines, first, *values in rows:
        own = dict(zip(_OWN, values, strict=True))
        source = catalog.source_at(
            path,
            kind,
            own["snapshot"],
            places,
            root,
            name=own["name"],
            table=inner,
            encoding=encoding,
            lenient=lenient,
        )
        found.append(Table(source=source, skipped=Skipped(lines, tuple(first)), **own))
    return found


def read_profiles(connection: duckdb.DuckDBPyConnection, chosen: Chosen) -> dict[int, Profile]:
    where, given = chosen
    found = connection.sql(
        'SELECT id, name, type, nulls, "distinct", "values", counts, sketch, "numeric", quantiles, '
        f"sample FROM columns WHERE {where} ORDER BY id, place",
        params=given,
    )
    known = connection.execute(
        f"SELECT id, rows, skipped, first_skipped FROM tables WHERE {where}", given
    ).fetchall()
    rows = {number: (n, Skipped(lines, tuple(first))) for number, n, lines, first in known}
    columns: dict[int, list[ColumnProfile]] = {number: [] for number in rows}
    lines: Iterable[tuple[Any, ...]]
    if len(rows) <= _FEW:
        lines = found.fetchall()
    else:  # Through Arrow, which takes time to load, but makes lists of Python objects faster.
        lines = zip(*(c.to_pylist() for c in found.to_arrow_table().columns), strict=True)
    for number, name, kind, nulls, distinct, keys, counts, sketch, numeric, cuts, sample in lines:
        column = ColumnProfile(
            name=name,
            type=kind,
            nulls=nulls,
            distinct=distinct,
            values=None if keys is None else dict(zip(keys, counts, strict=True)),
            sketch=tuple(sketch),
            numeric=numeric,
            quantiles=None if cuts is None else tuple(cuts),
            sample=tuple(sample),
        )
        columns[number].append(column)
    return {
        number: Profile(n, tuple(columns[number]), skipped) for number, (n, skipped) in rows.items()
    }


def forget(connection: duckdb.DuckDBPyConnection, files: Sequence[str]) -> None:
    if files:
        listed = [list(files)]
        chosen = "(SELECT id FROM tables WHERE file IN (SELECT unnest(?)))"
        for table in ("columns", "tables"):
            connection.execute(f"DELETE FROM {table} WHERE id IN {chosen}", listed)


def store(
    connection: duckdb.DuckDBPyConnection,
    files: Sequence[str],
    records: Sequence[tuple[pa.Table, pa.Table]],
) -> None:
    connection.begin()
    forget(connection, files)
    for tables, columns in records:
        insert(connection, "tables", tables)
        insert(connection, "columns", columns)
    connection.commit()


def insert(connection: duckdb.DuckDBPyConnection, table: str, rows: pa.Table) -> None:
    connection.register("fresh", rows)
    connection.execute(f"INSERT INTO {table} BY NAME FROM fresh")
    connection.unregister("fresh")


def table_id(name: str) -> int:
    """Return the number of a table: a hash of its name, the same wherever it is computed.

    A sequence would need one place that counts; of a million names, two have the same hash with a
    probability of one in ten million.

    >>> table_id("staff.csv") == table_id("staff.csv"), table_id("a.csv") < 2**63
    (True, True)
    """
    digest = hashlib.md5(name.encode(errors="replace"), usedforsecurity=False).digest()
    return int.from_bytes(digest[:8], "big") >> 1


def records_of(looked_at: Sequence[Profiled]) -> tuple[pa.Table, pa.Table]:
    """Write profiles as rows of the tables and of the columns of an index.

    These are what :func:`~equipoise.lake.tables.index.load` reads: wherever profiles are computed,
    they become the same index.
    """
    terms = [
        [column_terms(c) for c in seen.about.columns] if seen.about else [] for seen in looked_at
    ]
    return _table_rows(looked_at, terms), _column_rows(looked_at, terms)


def _table_rows(
    looked_at: Sequence[Profiled], terms: Sequence[Sequence[Mapping[int, float]]]
) -> pa.Table:
    import pyarrow as pa

    rows = [
        {
            "id": table_id(seen.entry.name),
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
            "terms": sum(map(len, own)),
        }
        for seen, own in zip(looked_at, terms, strict=True)
    ]
    types = {"inner_name": pa.string(), "problem": pa.string()}
    types["first_skipped"] = pa.list_(pa.string())
    return pa.table(
        {name: pa.array([row[name] for row in rows], types.get(name)) for name in rows[0]}
    )


def _column_rows(
    looked_at: Sequence[Profiled], terms: Sequence[Sequence[Mapping[int, float]]]
) -> pa.Table:
    import pyarrow as pa

    placed = [
        (table_id(seen.entry.name), place, column, own[place])
        for seen, own in zip(looked_at, terms, strict=True)
        if seen.profile
        for place, column in enumerate(seen.profile.columns)
    ]
    columns = [column for _, _, column, _ in placed]
    values = [None if c.values is None else list(c.values) for c in columns]
    counts = [None if c.values is None else list(c.values.values()) for c in columns]
    texts, wholes = pa.list_(pa.string()), pa.list_(pa.int64())
    weights = [list(own.values()) for *_, own in placed]
    return pa.table(
        {
            "id": pa.array([number for number, *_ in placed], pa.int64()),
            "place": pa.array([place for _, place, *_ in placed], pa.int32()),
            "name": pa.array([c.name for c in columns], pa.string()),
            "type": pa.array([c.type for c in columns], pa.string()),
            "nulls": pa.array([c.nulls for c in columns], pa.int64()),
            "distinct": pa.array([c.distinct for c in columns], pa.int64()),
            "values": pa.array(values, texts),
            "counts": pa.array(counts, wholes),
            "sketch": pa.array([list(c.sketch) for c in columns], pa.list_(pa.uint64())),
            "numeric": pa.array([c.numeric for c in columns], pa.float64()),
            "quantiles": pa.array([c.quantiles for c in columns], pa.list_(pa.float64())),
            "sample": pa.array([list(c.sample) for c in columns], texts),
            "opaque": pa.array([is_opaque(c.name) for c in columns], pa.bool_()),
            "terms": pa.array([list(own) for *_, own in placed], pa.list_(pa.uint64())),
            "weights": pa.array(weights, pa.list_(pa.float32())),
        }
    )
