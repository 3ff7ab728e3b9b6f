"""The plain engine: every verb in a few lines of Python, to judge the fast ones by."""

from __future__ import annotations

import bisect
import collections
import hashlib
import itertools
import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

from equipoise.atomic import atomic_path
from equipoise.counts import CountRequest, Counts, bin_names
from equipoise.counts.columns import as_number, values_in
from equipoise.counts.skipped import Skipped
from equipoise.engines.base import (
    Column,
    count_frame,
    location_names,
    require_choice,
    require_columns,
    require_names,
    require_writable,
)
from equipoise.engines.csv.dialects import Dialect, require_same_columns
from equipoise.engines.csv.records import NULL, Records
from equipoise.engines.profiling import Profile, Profiler
from equipoise.engines.sources import Source, dialect_of
from equipoise.errors import ColumnNotFound, Unsupported
from equipoise.values import MISSING, Value, as_value

if TYPE_CHECKING:
    import os
    from pathlib import Path

    import pyarrow as pa


class MemoryEngine:
    """Ten verbs over tables held in memory, for tests and small tables.

    >>> from equipoise.engines.sources import locate
    >>> people = locate({"sex": ["m", "w", "w"], "hired": ["yes", "no", "yes"]})
    >>> MemoryEngine().counts(people, CountRequest(sensitive=("sex",), label="hired"))
    <Counts of 3 rows in 3 cells: sex (2) × hired (2)>
    """

    name: ClassVar[str] = "memory"
    reads: ClassVar[Mapping[str, str]] = {
        "CSV, TSV": "plain or gzip, every value as text",
        "folder, glob": "CSV files with the same columns",
        "frame": "pandas, polars, Arrow",
    }
    writes: ClassVar[tuple[str, ...]] = (".csv", ".parquet", ".jsonl")

    def tables(self, source: Source) -> tuple[str, ...]:
        """Names of the tables at a source: its files."""
        return tuple(str(p) for p in source.paths) or (source.name,)

    def schema(self, source: Source) -> tuple[Column, ...]:
        """The columns of a table."""
        return tuple(Column(field.name, str(field.type)) for field in _table(source).schema)

    def settled(self, source: Source) -> Source:
        """The same source; one with a condition is refused."""
        if source.where is not None:
            raise Unsupported("the memory engine runs no SQL; use the duckdb engine.")
        return source

    def profile(self, source: Source) -> Profile:
        """Profile the columns of a table, in one pass."""
        import pyarrow as pa

        table = _table(source)
        profiler = Profiler(table.column_names, [str(kind) for kind in table.schema.types])
        texts = ([None if v is MISSING else v for v in _values(c)] for c in table.columns)
        profiler.add([pa.array(column, pa.string()) for column in texts])
        return replace(profiler.profile(), skipped=_skipped(source))

    def counts(self, source: Source, request: CountRequest) -> Counts:
        """How many rows each cell has."""
        counts = count_frame(_table(source), request, source.name)
        return replace(counts, skipped=_skipped(source))

    def distinct(self, source: Source, column: str, limit: int = 1000) -> dict[Value, int]:
        """The values of a column with their rows, most frequent first."""
        table = _table(source)
        if column not in table.column_names:
            raise ColumnNotFound(column, table=source.name, columns=table.column_names)
        found = collections.Counter(_values(table[column]))
        ordered = sorted(
            found.items(), key=lambda item: (-item[1], item[0] is MISSING, str(item[0]))
        )
        return dict(ordered[:limit])

    def read(self, source: Source, columns: Sequence[str] | None = None) -> pa.Table:
        """Read a whole table, or some of its columns, in the table's own order."""
        return _table(source).select(require_names(self.schema(source), columns, source.name))

    def rows(
        self,
        source: Source,
        request: CountRequest,
        take: Counts,
        seed: int = 0,
        *,
        rest: bool = False,
        located: bool = False,
    ) -> pa.Table:
        """Choose real rows by cell, each at most once; see :class:`~equipoise.engines.base.Engine`."""
        import pyarrow as pa

        request = require_choice(request, take)
        require_columns(self.schema(source), request, source.name)
        table = _table(source)
        places = _chosen(table, request, take, seed)
        if rest:
            places = sorted(set(range(len(table))) - set(places))
        found = table.take(pa.array(places, pa.int64()))
        return _located(found, places) if located else found

    def fetch(self, source: Source, places: Sequence[int]) -> pa.Table:
        """Fetch the rows at some places; see :class:`~equipoise.engines.base.Engine`."""
        import pyarrow as pa

        table = _table(source)
        there = sorted({place for place in places if 0 <= place < len(table)})
        return _located(table.take(pa.array(there, pa.int64())), there)

    def write(self, rows: pa.Table, path: str | os.PathLike[str]) -> None:
        """Write rows to a file, atomically."""
        ending = require_writable(path, self.writes)
        write = {".csv": _write_csv, ".parquet": _write_parquet, ".jsonl": _write_jsonl}[ending]
        with atomic_path(path) as temporary:
            write(rows, temporary)


# ---------------------------------------------------------------------------- reading


def _table(source: Source) -> pa.Table:
    if source.sql is not None or source.where is not None:
        raise Unsupported("the memory engine runs no SQL; use the duckdb engine.")
    if source.kind == "frame":
        return _without_views(source.data)
    if source.kind == "csv":
        return _csv_table(source)
    raise Unsupported(
        f"the memory engine reads no {source.kind} ({source.name}) but "
        f"{', '.join(MemoryEngine.reads)}; use the duckdb engine."
    )


def _without_views(table: pa.Table) -> pa.Table:
    """Give text as it was always stored; of the new way Arrow itself cannot take rows."""
    import pyarrow as pa

    for i, field in enumerate(table.schema):
        kind = field.type.value_type if pa.types.is_dictionary(field.type) else field.type
        if pa.types.is_string_view(kind):
            plain = pa.array(table.column(i).to_pylist(), pa.string())
            table = table.set_column(i, field.name, plain)
    return table


def _csv_table(source: Source) -> pa.Table:
    import pyarrow as pa

    dialects = {path: dialect_of(source, path) for path in source.paths}
    require_same_columns(dialects)
    parts = []
    for path, dialect in dialects.items():
        reader = _records(source, path, dialect)
        records = list(reader)
        reader.require_table()
        columns = [[record[i] for record in records] for i in range(len(dialect.columns))]
        arrays = [pa.array(column, pa.string()) for column in columns]
        parts.append(pa.table(arrays, names=list(dialect.columns)))
    return pa.concat_tables([part.select(parts[0].column_names) for part in parts])


def _records(source: Source, path: Path, dialect: Dialect) -> Records:
    name = source.name if len(source.paths) == 1 else str(path)
    return Records(path, dialect, name=name, lenient=source.lenient)


def _skipped(source: Source) -> Skipped:
    """What is left out of a table, found by reading it once more."""
    found = Skipped()
    if source.kind == "csv" and source.lenient:
        for path in source.paths:
            records = _records(source, path, dialect_of(source, path))
            collections.deque(records, maxlen=0)
            records.require_table()
            found += records.skipped
    return found


def _raw_values(column: pa.ChunkedArray) -> list[Any]:
    _require_plain(column)
    return list(column.to_pylist())


def _values(column: pa.ChunkedArray) -> list[Value]:
    _require_plain(column)
    return values_in(column)


def _require_plain(column: pa.ChunkedArray) -> None:
    import pyarrow as pa

    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    if pa.types.is_nested(kind) or pa.types.is_interval(kind):
        raise Unsupported(f"the memory engine cannot write {kind} as text; use the duckdb engine.")


# --------------------------------------------------------------------------- choosing


def _chosen(table: pa.Table, request: CountRequest, take: Counts, seed: int) -> list[int]:
    """Give the places of the rows that are chosen."""
    cells = zip(*(_cell_values(table[n], n, request) for n in request.columns), strict=True)
    seen: collections.Counter[str] = collections.Counter()
    offered: dict[tuple[Value, ...], list[tuple[str, int]]] = collections.defaultdict(list)
    for line, (cell, row) in enumerate(zip(cells, _canonical_rows(table), strict=True)):
        seen[row] += 1
        offered[cell].append((_md5(f"{seed}/{seen[row]}/{row}"), line))
    return [
        line for cell, want in _wanted(take) for _, line in sorted(offered.get(cell, ()))[:want]
    ]


def _located(rows: pa.Table, places: Sequence[int]) -> pa.Table:
    """Put the place and the md5 of each row behind its columns."""
    import pyarrow as pa

    place, md5 = location_names(rows.column_names)
    digests = [_md5(row) for row in _canonical_rows(rows)]
    rows = rows.append_column(place, pa.array(places, pa.int64()))
    return rows.append_column(md5, pa.array(digests, pa.string()))


def _md5(text: str) -> str:
    return hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()


def _cell_values(column: pa.ChunkedArray, name: str, request: CountRequest) -> list[Value]:
    edges = request.bins.get(name)
    if isinstance(edges, tuple):
        return [_bin_of(as_number(raw, request.na), edges) for raw in _raw_values(column)]
    return [MISSING if value in request.na else value for value in _values(column)]


def _bin_of(number: float | None, edges: tuple[float, ...]) -> Value:
    if number is None or math.isnan(number):
        return MISSING
    return bin_names(edges)[bisect.bisect_right(edges, number)]


def _canonical_rows(table: pa.Table) -> Iterator[str]:
    """Give each row as one text, unambiguously: each value behind its length."""
    for row in zip(*(_values(column) for column in table.columns), strict=True):
        yield ",".join("-" if value is MISSING else f"{len(value)}:{value}" for value in row)


def _wanted(take: Counts) -> Iterator[tuple[tuple[Value, ...], int]]:
    for codes, want in zip(take.codes.tolist(), take.rows.tolist(), strict=True):
        yield tuple(axis.values[code] for axis, code in zip(take.axes, codes, strict=True)), want


# ---------------------------------------------------------------------------- writing


def _write_csv(rows: pa.Table, path: Path) -> None:
    lines = itertools.chain([rows.column_names], zip(*map(_values, rows.columns), strict=True))
    with path.open("w", encoding="utf-8", newline="") as file:
        file.writelines(",".join(map(_csv_field, line)) + "\n" for line in lines)


def _csv_field(value: Value) -> str:
    """Quote what must be; csv.writer leaves a lone carriage return bare."""
    text = "" if value is MISSING else value
    must = text == NULL or re.search('[",\r\n]', text)
    return '"' + text.replace('"', '""') + '"' if must else text


def _write_jsonl(rows: pa.Table, path: Path) -> None:
    columns = [[_json_value(raw) for raw in _raw_values(column)] for column in rows.columns]
    with path.open("w", encoding="utf-8") as file:
        for row in zip(*columns, strict=True):
            line = dict(zip(rows.column_names, row, strict=True))
            file.write(json.dumps(line, ensure_ascii=False) + "\n")


def _json_value(raw: Any) -> bool | int | float | str | None:
    value = as_value(raw)
    if value is MISSING:
        return None
    plain = isinstance(raw, (bool, int)) or (isinstance(raw, float) and math.isfinite(raw))
    return raw if plain else value


def _write_parquet(rows: pa.Table, path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        pq.write_table(rows, path)
    except pa.ArrowNotImplementedError as error:
        raise Unsupported(f"Arrow cannot write this as Parquet: {error}.") from None
