"""Tables of SQLite databases, read by Python's sqlite3 and copied to Parquet."""

from __future__ import annotations

import contextlib
import re
import sqlite3
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from equipoise.engines.column_names import numbered
from equipoise.errors import InputError

_BATCH = 20_000
_DAMAGED = re.compile(r"\*\*\*|[Tt]ree \d|[Pp]age \d|malformed")
"""Findings about damaged pages; others are about rows that violate constraints of the table."""
_PATIENCE = 2.0
"""Seconds to wait for another program that is writing."""
_AT_ONCE = 500
"""Maximum number of columns in one query; SQLite returns at most 2,000 values in a row."""
_EXACT = 1 << 53
"""Largest integer up to which all integers are floating-point numbers."""


def tables(path: Path, name: str, *, views: bool = True) -> tuple[str, ...]:
    """Names of the tables of a database, and of its views."""
    kinds = "('table', 'view')" if views else "('table')"
    with _connected(path, name) as connection:
        found = connection.execute(
            f"SELECT name FROM sqlite_master WHERE type IN {kinds} "
            r"AND name NOT LIKE 'sqlite\_%' ESCAPE '\' ORDER BY name"
        )
        return tuple(row[0] for row in found)


def copy_table(path: Path, table: str, target: Path, name: str) -> None:
    """Copy a table to a Parquet file in batches, in the order of its rows."""
    import pyarrow.parquet as pq

    with _connected(path, name) as connection:
        connection.execute("BEGIN")  # so that nothing changes between the two passes
        _require_whole(connection, table, path)
        columns = _columns(connection, table)
        if not columns:
            raise InputError(f"the table {table!r} of {path} has no columns.")
        kinds = _kinds(connection, table, columns)
        names = numbered(columns)  # a view may give two columns one name
        schema = pa.schema(list(zip(names, kinds, strict=True)))
        rows = _rows(connection, table, columns)
        with pq.ParquetWriter(target, schema, compression="zstd") as writer:
            while batch := rows.fetchmany(_BATCH):
                arrays = [
                    _array(values, kind)
                    for values, kind in zip(zip(*batch, strict=True), kinds, strict=True)
                ]
                writer.write_batch(pa.record_batch(arrays, schema=schema))


def _require_whole(connection: sqlite3.Connection, table: str, path: Path) -> None:
    """Refuse a table with damaged pages, of which SQLite reads many values as missing."""
    with contextlib.suppress(sqlite3.OperationalError):  # of a view, or of an old version
        for (said,) in connection.execute(f"PRAGMA quick_check({_quoted(table)})"):
            if _DAMAGED.search(str(said)):
                raise _damaged(path, str(said).splitlines()[-1])


def _damaged(path: Path, reason: object) -> InputError:
    return InputError(
        f"{path} cannot be read as an SQLite database: {reason}; it is damaged, or in another "
        "format."
    )


@contextlib.contextmanager
def _connected(path: Path, name: str) -> Iterator[sqlite3.Connection]:
    """Open a database read-only; explain why if that fails."""
    try:
        connection = sqlite3.connect(
            f"{path.absolute().as_uri()}?mode=ro", uri=True, timeout=_PATIENCE, isolation_level=None
        )
        with contextlib.closing(connection):
            connection.text_factory = lambda raw: raw.decode(errors="replace")
            yield connection
    except sqlite3.Error as error:
        if "locked" in str(error) or "busy" in str(error):
            raise InputError(
                f"{path} is being written to by another program (the database is locked); try "
                "again later."
            ) from None
        if isinstance(error, sqlite3.DatabaseError) and not isinstance(
            error, sqlite3.OperationalError
        ):
            raise _damaged(path, error) from None
        raise InputError(f"{name} cannot be read: {error}.") from None


def _columns(connection: sqlite3.Connection, table: str) -> list[str]:
    rows = connection.execute(f"SELECT * FROM {_quoted(table)} LIMIT 0")
    return [about[0] for about in rows.description]


def _kinds(connection: sqlite3.Connection, table: str, columns: Sequence[str]) -> list[pa.DataType]:
    """Find the type of each column from its values, since SQLite stores any type in any column."""
    told: list[Any] = []
    for start in range(0, len(columns), _AT_ONCE):
        asked = ", ".join(
            f"group_concat(DISTINCT typeof({c})), max(CASE typeof({c}) WHEN 'integer' "
            f"THEN {c} > {_EXACT} OR {c} < -{_EXACT} END)"
            for c in map(_quoted, columns[start : start + _AT_ONCE])
        )
        told += connection.execute(f"SELECT {asked} FROM {_quoted(table)}").fetchone()
    pairs = zip(told[::2], told[1::2], strict=True)
    return [
        _kind({*(types or "null").split(",")} - {"null"}, bool(large)) for types, large in pairs
    ]


def _kind(types: set[str], large: bool) -> pa.DataType:
    if types == {"integer"}:
        return pa.int64()
    if types == {"real"} or (types == {"integer", "real"} and not large):
        return pa.float64()
    return pa.binary() if types == {"blob"} else pa.string()


def _rows(connection: sqlite3.Connection, table: str, columns: Sequence[str]) -> sqlite3.Cursor:
    """Read a table in the order of its row numbers, or as it is stored if it has none."""
    taken = {name.lower() for name in columns}
    number = next((n for n in ("rowid", "_rowid_", "oid") if n not in taken), None)
    query = f"SELECT * FROM {_quoted(table)}"
    if number is not None:
        with contextlib.suppress(sqlite3.OperationalError):
            return connection.execute(f"{query} ORDER BY {number}")
    return connection.execute(query)


def _array(values: Sequence[Any], kind: pa.DataType) -> pa.Array:
    if pa.types.is_string(kind):
        return pa.array([_text(value) for value in values], kind)
    return pa.array(values, kind)


def _text(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    return value.hex() if isinstance(value, bytes) else repr(value)


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
