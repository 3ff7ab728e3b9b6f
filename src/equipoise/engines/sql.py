"""SQL text; names and values from users are always quoted here."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from equipoise.counts.reading import Condition, is_plain_type
from equipoise.engines.base import Column, location_names

if TYPE_CHECKING:
    from equipoise.counts import CountRequest


def identifier(name: str) -> str:
    """Quote a column or table name.

    >>> print(identifier('a"; DROP TABLE x; --'))
    "a""; DROP TABLE x; --"
    """
    return '"' + name.replace('"', '""') + '"'


def literal(text: str) -> str:
    """Quote a text value.

    >>> print(literal("O'Brien"))
    'O''Brien'
    """
    return "'" + text.replace("'", "''") + "'"


def is_text(column_type: str) -> bool:
    """Whether values of a type are text."""
    return column_type.upper().startswith(("VARCHAR", "ENUM", "STRING", "TEXT", "CHAR"))


def is_whole(column_type: str) -> bool:
    """Whether values of a type are integers of at most 64 bits."""
    return column_type.upper().removeprefix("U") in ("TINYINT", "SMALLINT", "INTEGER", "BIGINT")


def is_float(column_type: str) -> bool:
    """Whether values of a type are floating-point numbers, which may be not-a-number."""
    return column_type.upper() in ("FLOAT", "DOUBLE", "REAL")


def number(name: str, column_type: str) -> str:
    """Read a column as numbers; other text and not-a-number become null."""
    if is_whole(column_type):
        return identifier(name)
    cast = f"TRY_CAST({identifier(name)} AS DOUBLE)"
    return f"CASE WHEN NOT isnan({cast}) THEN {cast} END"


def without_na(name: str, column_type: str, na: Iterable[str]) -> str:
    """Read a column with null for the texts that mean a missing value."""
    texts = ", ".join(literal(t) for t in na)
    if not texts:
        return identifier(name)
    text = identifier(name) if is_text(column_type) else f"CAST({identifier(name)} AS VARCHAR)"
    return f"CASE WHEN {text} NOT IN ({texts}) THEN {identifier(name)} END"


def bin_number(name: str, column_type: str, edges: Sequence[float], na: Sequence[str]) -> str:
    """Number the bin of a value; −1 for a value that is not a number."""
    value = number(name, column_type)
    if is_whole(column_type) and not na and _evenly_whole(edges):
        first, step, last = int(edges[0]), int(edges[1] - edges[0]), int(edges[-1])
        # Three times faster than a CASE over the edges, which the general form needs. The
        # cast comes last, when the value is known to fit.
        return (
            f"CASE WHEN {value} < {first} THEN 0 WHEN {value} >= {last} THEN {len(edges)} "
            f"ELSE (CAST({value} AS BIGINT) - {first}) // {step} + 1 END"
        )
    # A bare 0.1 would be a decimal, which turns into another double than Python's 0.1.
    whens = " ".join(
        f"WHEN {value} < CAST('{edge!r}' AS DOUBLE) THEN {i}" for i, edge in enumerate(edges)
    )
    absent = f"WHEN {without_na(name, column_type, na)} IS NULL THEN NULL"
    not_nan = f"NOT coalesce(isnan(TRY_CAST({identifier(name)} AS DOUBLE)), false)"
    not_a_number = f"WHEN {value} IS NULL THEN CASE WHEN {not_nan} THEN -1 END"
    return f"CASE {absent} {not_a_number} {whens} ELSE {len(edges)} END"


def _evenly_whole(edges: Sequence[float]) -> bool:
    steps = {b - a for a, b in itertools.pairwise(edges)}
    return len(steps) == 1 and all(float(e).is_integer() and abs(e) < 2**53 for e in edges)


def count_cells(table: str, columns: Sequence[Column], request: CountRequest) -> str:
    """Count the rows of every cell: the one scan of a measurement.

    The keys are ``c0``, ``c1``, …: text, numbers and booleans as they are stored, so that the
    database hashes plain columns, and all others as text. Texts that mean a missing value are
    replaced afterwards, in the few cells.
    """
    types = {c.name: c.type for c in columns}
    keys = [_key(name, types[name], request) for name in request.columns]
    selected = [f"{key} AS c{i}" for i, key in enumerate(keys)]
    if request.count is None:
        selected.append("count(*) AS n")
    else:
        value = number(request.count, types[request.count])
        good = f"coalesce({value} >= 0 AND {value} = floor({value}) AND {value} < 9.2e18, false)"
        selected += [
            f"CAST(sum(CASE WHEN {good} THEN {value} ELSE 0 END) AS BIGINT) AS n",
            f"min(CAST({identifier(request.count)} AS VARCHAR)) FILTER (WHERE NOT {good}) AS bad",
            f"count(*) FILTER (WHERE {value} IS NULL) AS unknown",
        ]
    if request.weight is not None:
        value = f"CAST({number(request.weight, types[request.weight])} AS DOUBLE)"
        selected += [
            f"sum({value}) AS w",
            f"sum({value} * {value}) AS w2",
            f"count(*) FILTER (WHERE coalesce({value} < 0 OR isinf({value}), true)) AS bad_weights",
        ]
    return f"SELECT {', '.join(selected)} FROM {table} GROUP BY ALL"


def _key(name: str, column_type: str, request: CountRequest) -> str:
    edges = request.bins.get(name)
    if isinstance(edges, tuple):
        return bin_number(name, column_type, edges, request.na)
    kind = column_type.upper()
    ordered = is_whole(kind) or is_float(kind) or kind.startswith(("DECIMAL", "BOOLEAN", "HUGEINT"))
    return identifier(name) if ordered or is_text(kind) else value_text(name, kind)


def numbers_in_order(table: str, column: Column, na: Sequence[str]) -> str:
    """Select the distinct numbers of a column in ascending order, with their frequencies.

    Read as a stream this takes little memory: grouping and sorting can spill to disk, but a
    running sum over all numbers cannot.
    """
    present = f"{without_na(column.name, column.type, na)} IS NOT NULL"
    numbers = f"SELECT {number(column.name, column.type)} AS x FROM {table} WHERE {present}"
    return f"SELECT x, count(*) AS n FROM ({numbers}) WHERE x IS NOT NULL GROUP BY x ORDER BY x"


def cell_text(name: str, column_type: str, request: CountRequest) -> str:
    """Write a value as the text that counts use for it, or null if it is missing."""
    edges = request.bins.get(name)
    if isinstance(edges, tuple):
        from equipoise.counts import bin_names

        whens = " ".join(f"WHEN {i} THEN {literal(t)}" for i, t in enumerate(bin_names(edges)))
        return f"CASE {bin_number(name, column_type, edges, request.na)} {whens} END"
    text = value_text(name, column_type)
    texts = ", ".join(literal(t) for t in request.na)
    return f"CASE WHEN {text} NOT IN ({texts}) THEN {text} END" if texts else text


def value_text(name: str, column_type: str) -> str:
    """Write a value as the text of :func:`equipoise.values.as_value`; not-a-number is null."""
    value = identifier(name)
    if is_float(column_type):
        # Adding 0 makes −0.0 the 0.0 it equals; databases differ in how they print narrow floats.
        wide = f"CAST({value} AS DOUBLE) + 0.0::DOUBLE"
        return f"CASE WHEN NOT isnan({value}) THEN CAST({wide} AS VARCHAR) END"
    if column_type.upper() == "TIMESTAMP WITH TIME ZONE":  # whatever the session's time zone is
        return f"CAST({value} AT TIME ZONE 'UTC' AS VARCHAR) || '+00'"
    text = f"CAST({value} AS VARCHAR)"
    if re.fullmatch(r"DECIMAL\((\d+), ?\1\)", column_type.upper()):  # DuckDB prints these as .5
        return rf"regexp_replace({text}, '^(-?)\.', '\10.')"
    return text


def canonical_row(columns: Sequence[Column]) -> str:
    """Write a row as one text; the length before each value makes it unambiguous."""
    texts = [value_text(c.name, c.type) for c in columns]
    parts = [f"coalesce(length({t}) || ':' || {t}, '-')" for t in texts]
    return " || ',' || ".join(parts)


def choose_rows(
    table: str,
    columns: Sequence[Column],
    request: CountRequest,
    wanted: str,
    seed: int,
    *,
    located: bool = False,
) -> str:
    """Choose rows by cell in the order of md5(seed, row, occurrence).

    ``wanted`` is a table with the texts of each cell as ``k0``, ``k1``, …, and its rows as ``want``.
    """
    types = {c.name: c.type for c in columns}
    names = ", ".join(identifier(c.name) for c in columns)
    mark = _mark(columns)
    key, hashed, place = f"text{mark}", f"md5{mark}", f"place{mark}"
    in_order = ""
    if located:  # equal rows are numbered in their order, or their places would be random
        table, in_order = numbered(table, columns), f" ORDER BY line{mark}"
        names += f", {_location(columns, key)}"
    cells = [f"cell{i}{mark}" for i in range(len(request.columns))]
    texts = ", ".join(
        f"{cell_text(name, types[name], request)} AS {cell}"
        for name, cell in zip(request.columns, cells, strict=True)
    )
    matches = " AND ".join(f"w.k{i} IS NOT DISTINCT FROM t.{cell}" for i, cell in enumerate(cells))
    return (
        f"WITH texts AS (SELECT *, {canonical_row(columns)} AS {key}, {texts} FROM {table}), "
        f"picked AS (SELECT t.*, w.cell AS cell{mark}, w.want AS want{mark} "
        f"FROM texts AS t JOIN {wanted} AS w ON {matches}), "
        f"hashed AS (SELECT *, md5({literal(f'{seed}/')} || "
        f"row_number() OVER (PARTITION BY {key}{in_order}) || '/' || {key}) AS {hashed} FROM picked), "
        f"placed AS (SELECT *, row_number() OVER (PARTITION BY cell{mark} ORDER BY {hashed}) "
        f"AS {place} FROM hashed) SELECT {names} FROM placed "
        f"WHERE {place} <= want{mark} ORDER BY cell{mark}, {hashed}"
    )


def rows_at(
    table: str, columns: Sequence[Column], chosen: str, *, others: bool, located: bool
) -> str:
    """Select the rows at the places of the table ``chosen``, or all others, in their order."""
    exists = "NOT EXISTS" if others else "EXISTS"
    line = f"line{_mark(columns)}"
    names = ", ".join(identifier(c.name) for c in columns)
    if located:
        names += f", {_location(columns, canonical_row(columns))}"
    return (
        f"SELECT {names} FROM {numbered(table, columns)} AS t WHERE {exists} "
        f"(SELECT 1 FROM {chosen} AS c WHERE c.place = t.{line}) ORDER BY t.{line}"
    )


def numbered(table: str, columns: Sequence[Column]) -> str:
    """Number the rows of a table as they are read, for which an engine must keep their order."""
    return f"(SELECT *, row_number() OVER () - 1 AS line{_mark(columns)} FROM {table})"


def _location(columns: Sequence[Column], text: str) -> str:
    place, md5 = location_names(c.name for c in columns)
    return f"line{_mark(columns)} AS {place}, md5({text}) AS {md5}"


def _mark(columns: Sequence[Column]) -> str:
    """Return a suffix that is longer than any column name, so that names with it are unused."""
    return "_" * (1 + max(len(c.name) for c in columns))


# ------------------------------------------------------------------------- conditions


WHOLE = ("BIGINT", "HUGEINT")
"""Integers are not compared as floats: long identifiers that differ would become equal."""


def compared(
    table: str, columns: Sequence[Column], condition: Condition
) -> tuple[str, tuple[str, ...]]:
    """Convert the columns of a condition to the types that they are compared as.

    Returns the converted table, and the expressions that select the original columns from it.
    """
    mark = _mark(columns)
    types = {name.casefold(): kind for name, kind in (condition.types or {}).items()}
    inner, own = [], []
    for i, column in enumerate(columns):
        name = identifier(column.name)
        kind = types.get(column.name.casefold(), column.type)
        is_same = kind == column.type or not is_plain_type(kind)
        if is_same and not (is_float(kind) and column.name.casefold() in types):
            inner.append(name)
            own.append(name)
        else:
            inner += [f"{_as_type(column, kind)} AS {name}", f"{name} AS kept{i}{mark}"]
            own.append(f"kept{i}{mark} AS {name}")
    return f"(SELECT {', '.join(inner)} FROM {table}) AS input", tuple(own)


def _as_type(column: Column, kind: str) -> str:
    """Convert a column to another type; values that cannot be converted become missing."""
    if kind == "VARCHAR":
        return value_text(column.name, column.type)
    if is_float(kind):  # not-a-number is missing, and would be greater than any number
        number = identifier(column.name)
        read = number if kind == column.type else f"TRY_CAST({trimmed(column)} AS {kind})"
        return f"nullif({read}, CAST('nan' AS {kind}))"
    text = trimmed(column)
    if kind in WHOLE:  # a cast would round what is not whole
        return f"TRY_CAST(regexp_extract({text}, '^([+-]?[0-9]+)([.]0*)?$', 1) AS {kind})"
    return f"TRY_CAST({text} AS {kind})"


def trimmed(column: Column) -> str:
    """Read a column as text without surrounding blanks."""
    plain = is_text(column.type) and not column.type.upper().startswith("ENUM")
    text = identifier(column.name) if plain else value_text(column.name, column.type)
    return f"trim({text})"
