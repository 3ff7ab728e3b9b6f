"""Profiles of tables of PostgreSQL, by queries that return few rows."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import pyarrow as pa

from equipoise.counts.columns import values_in
from equipoise.engines.base import Column
from equipoise.engines.choices import below
from equipoise.engines.column_types import family, is_float
from equipoise.engines.postgres._dialect import DIALECT, PostgresDialect
from equipoise.engines.profiling import FEW_VALUES, SKETCH, Gathered, Profile, summarize
from equipoise.engines.sql import canonical_row

if TYPE_CHECKING:
    from numpy.typing import NDArray

_Run: TypeAlias = Callable[[str], pa.Table]
_SAMPLED = 1024


def profile_table(d: PostgresDialect, table: str, columns: Sequence[Column], run: _Run) -> Profile:
    """Profile a table by a query for its size, one for a sample, and one or two for each column."""
    rows = int(run(f"SELECT count(*) AS n FROM {table} AS input")["n"][0].as_py())
    sample = _sample(d, table, columns, rows, run)
    gathered = [_gathered(d, table, c, rows, sample[i], run) for i, c in enumerate(columns)]
    return summarize([(c.name, c.type) for c in columns], rows, gathered, sample)


def _sample(
    d: PostgresDialect, table: str, columns: Sequence[Column], rows: int, run: _Run
) -> list[list[str | None]]:
    """Choose rows by the md5 of their text, the same ones whatever their order is."""
    plain = [c for c in columns if family(c.type) != "other"]
    if not plain or not rows:
        return [[None] * min(rows, _SAMPLED) for _ in columns]
    hashed = f'{d.md5(canonical_row(d, plain))} COLLATE "C"'
    names = ", ".join(f"{_shown(c)} AS v{i}" for i, c in enumerate(columns))
    few = DIALECT.literal(below(_SAMPLED, rows))
    query = (
        f"SELECT {names} FROM (SELECT *, {hashed} AS hashed FROM {table} AS input) AS hashed "
        f"WHERE hashed < {few} ORDER BY hashed LIMIT {_SAMPLED}"
    )
    return [_texts(column) for column in run(query).columns]


def _gathered(
    d: PostgresDialect,
    table: str,
    column: Column,
    rows: int,
    sample: Sequence[str | None],
    run: _Run,
) -> Gathered:
    """Count the values of a column, or sketch them if there are too many."""
    shown = _shown(column)
    if len({text for text in sample if text is not None}) <= FEW_VALUES:
        query = (
            f"SELECT {shown} AS v, count(*) AS n FROM {table} AS input GROUP BY 1 "
            f"ORDER BY n DESC LIMIT {FEW_VALUES + 2}"
        )
        found = run(query)
        texts = _texts(found["v"])
        if sum(text is not None for text in texts) <= FEW_VALUES:
            gathered = Gathered()
            gathered.add(texts, found["n"].to_pylist())
            return gathered
    nulls = run(f"SELECT count(*) - count({shown}) AS n FROM {table} AS input")["n"][0].as_py()
    return Gathered(nulls=int(nulls), values=None, hashes=_sketch(d, table, column, rows, run))


def _sketch(
    d: PostgresDialect, table: str, column: Column, rows: int, run: _Run
) -> NDArray[np.uint64]:
    """Return the smallest hashes of the values of a column, found among more and more of them."""
    text = DIALECT.text(DIALECT.identifier(column.name), column.type)
    if is_float(column.type):  # 1 is written 1.0
        text = f"regexp_replace({text}, '^(-?[0-9]+)$', '\\1.0')"
    plain = f"lower({DIALECT.stripped(text)})"
    hashed = f'left({d.md5(plain)}, 16) COLLATE "C"'
    share = 8 * SKETCH
    while True:
        limit = below(share, rows)
        query = (
            f"SELECT DISTINCT {hashed} AS h FROM {table} AS input WHERE {text} IS NOT NULL "
            f"AND {hashed} < {DIALECT.literal(limit)} ORDER BY 1 LIMIT {SKETCH}"
        )
        found = run(query)["h"].to_pylist()
        if len(found) == SKETCH or not re.match("[0-9a-f]", limit):
            return np.array([int(digits, 16) for digits in found], np.uint64)
        share *= 16


def _shown(column: Column) -> str:
    """Select a value as it is, or as text if Arrow may not have it."""
    name = DIALECT.identifier(column.name)
    kind = family(column.type)
    if kind == "float":
        return DIALECT.float(name)
    if kind in ("text", "whole", "boolean"):
        return name
    return f"CAST({name} AS text)" if kind == "other" else DIALECT.text(name, column.type)


def _texts(column: pa.ChunkedArray) -> list[str | None]:
    return [value if isinstance(value, str) else None for value in values_in(column)]
