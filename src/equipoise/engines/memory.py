"""The plain engine: every verb in a few lines of Python, a reference for the fast ones."""

from __future__ import annotations

import bisect
import collections
import contextlib
import hashlib
import itertools
import json
import math
import re
import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

import pyarrow as pa

from equipoise.atomic import atomic_path
from equipoise.counts import CountRequest, Counts, bin_names
from equipoise.counts.columns import as_number, encode_arrow, not_numbers, numbers_in, values_in
from equipoise.counts.skipped import NOTHING, Skipped
from equipoise.engines.base import (
    Column,
    MadeTable,
    Middle,
    Part,
    cannot_create,
    columns_of,
    count_frame,
    location_names,
    require_choice,
    require_names,
    require_plain,
    require_writable,
)
from equipoise.engines.csv.dialects import require_same_columns
from equipoise.engines.csv.records import NULL, Records
from equipoise.engines.profiling import Profile, Profiler
from equipoise.engines.sources import Source, dialect_of
from equipoise.errors import Unsupported
from equipoise.values import MISSING, Value, as_value

if TYPE_CHECKING:
    import os
    from pathlib import Path


class MemoryEngine:
    """The verbs over tables held in memory, for tests and small tables."""

    name: ClassVar[str] = "memory"
    reads: ClassVar[Mapping[str, str]] = {
        "CSV, TSV": "plain or gzip, every value as text",
        "folder, glob": "CSV files with the same columns",
        "frame": "pandas, polars, Arrow",
    }
    writes: ClassVar[tuple[str, ...]] = (".csv", ".parquet", ".jsonl")
    ways: ClassVar[Mapping[str, str]] = {"rows are known by": "their number in the file"}

    def close(self) -> None:
        """Nothing is open."""

    def tables(self, source: Source) -> tuple[str, ...]:
        """Names of the tables at a source: its files."""
        return tuple(str(p) for p in source.files) or (source.name,)

    def schema(self, source: Source) -> tuple[Column, ...]:
        """The columns of a table."""
        return columns_of(self.read(source))

    def settled(self, source: Source) -> Source:
        """The same source; one with a condition is refused."""
        _refuse_sql(source)
        return source

    def profile(self, source: Source) -> Profile:
        """Profile the columns of a table."""
        table, skipped = _opened(source)
        profiler = Profiler(table.column_names, [str(kind) for kind in table.schema.types])
        texts = ([None if v is MISSING else v for v in _values(c)] for c in table.columns)
        profiler.add([pa.array(column, pa.string()) for column in texts])
        return replace(profiler.profile(), skipped=skipped)

    def counts(self, source: Source, request: CountRequest) -> Counts:
        """Count the rows of each cell."""
        table, skipped = _opened(source)
        return replace(count_frame(table, request, source.name), skipped=skipped)

    def distinct(self, source: Source, column: str, limit: int = 1000) -> dict[Value, int]:
        """Count the rows of each value of a column, most frequent first."""
        found = self.read(source, [column]).column(0)
        _require_plain(found)
        values, codes = encode_arrow(found, None)  # in their own order
        rows = collections.Counter(codes.tolist())
        ordered = sorted(rows, key=lambda code: (-rows[code], values[code] is MISSING, code))
        return {values[code]: rows[code] for code in ordered[:limit]}

    def middle(self, source: Source, column: str, na: Sequence[str] = ()) -> Middle:
        """Find the middle of the numbers of a column."""
        table, _ = _opened(source)
        require_plain(columns_of(table), column, source.name)
        numbers = numbers_in(column, table[column], na, not_numbers)
        rising = sorted(number for number in numbers.tolist() if not math.isnan(number))
        if not rising:
            raise not_numbers(column, None)
        low, high = (rising[place - 1] + 0.0 for place in Middle.places(len(rising)))
        return Middle(low, high, len(rising))

    def read(self, source: Source, columns: Sequence[str] | None = None) -> pa.Table:
        """Read all rows of a table, or of some of its columns, in their order."""
        table, _ = _opened(source)
        return table.select(require_names(table.column_names, columns, source.name))

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
        """Choose rows by cell; see :class:`~equipoise.engines.base.Engine`."""
        table = self.read(source)
        request = require_choice(columns_of(table), request, take, source.name)
        texts = list(_canonical_rows(table))
        places = _chosen(table, texts, request, take, seed)
        if rest:
            places = sorted(set(range(len(table))) - set(places))
        found = table.take(pa.array(places, pa.int64()))
        return _located(found, places, [texts[place] for place in places]) if located else found

    def fetch(self, source: Source, places: Sequence[int]) -> pa.Table:
        """Fetch the rows at some places; see :class:`~equipoise.engines.base.Engine`."""
        table = self.read(source)
        there = sorted({place for place in places if 0 <= place < len(table)})
        found = table.take(pa.array(there, pa.int64()))
        return _located(found, there, _canonical_rows(found))

    def require_key(self, source: Source) -> None:
        """Do nothing, since rows in memory are known by their numbers."""

    def require_free(self, target: Source, *, only: str = "") -> None:  # noqa: ARG002
        """Refuse to make a table of a database."""
        raise cannot_create(self.name, target)

    def creating(
        self,
        target: Source,
        parts: Sequence[Part],  # noqa: ARG002
        comment: str = "",  # noqa: ARG002
    ) -> contextlib.AbstractContextManager[MadeTable]:
        """Refuse to make a table of a database."""
        raise cannot_create(self.name, target)

    def write(
        self,
        target: str | os.PathLike[str],
        parts: Sequence[Part],
        types: Mapping[str, str] | None = None,
    ) -> None:
        """Write the rows of some parts to a file, atomically."""
        ending = require_writable(target, self.writes)
        if types:
            raise Unsupported("the memory engine does not convert types; use the duckdb engine.")
        write = {".csv": _write_csv, ".parquet": _write_parquet, ".jsonl": _write_jsonl}[ending]
        tables = []
        for part in parts:
            table, gone = self.read(part.source), set(part.without)
            stay = [line for line in range(len(table)) if line not in gone]
            tables.append(table.take(pa.array(stay, pa.int64())) if gone else table)
        with atomic_path(target) as temporary:
            write(pa.concat_tables(tables), temporary)


# ---------------------------------------------------------------------------- reading


def _opened(source: Source) -> tuple[pa.Table, Skipped]:
    """Read a table; return it with the lines that were left out of it."""
    _refuse_sql(source)
    if source.kind == "frame":
        return _without_views(source.data), NOTHING
    if source.kind == "csv":
        return _read_csv(source)
    raise Unsupported(
        f"the memory engine cannot read {source.kind} ({source.name}), only "
        f"{', '.join(MemoryEngine.reads)}; use the duckdb engine."
    )


def _refuse_sql(source: Source) -> None:
    if source.sql is not None or source.view is not None or source.where is not None:
        raise Unsupported("the memory engine cannot run SQL; use the duckdb engine.")


def _without_views(table: pa.Table) -> pa.Table:
    """Convert string views to strings, since Arrow cannot take rows of views."""
    for i, field in enumerate(table.schema):
        kind = field.type.value_type if pa.types.is_dictionary(field.type) else field.type
        if pa.types.is_string_view(kind):
            plain = pa.array(table.column(i).to_pylist(), pa.string())
            table = table.set_column(i, field.name, plain)
    return table


def _read_csv(source: Source) -> tuple[pa.Table, Skipped]:
    dialects = {path: dialect_of(source, path) for path in source.files}
    require_same_columns(dialects)
    parts, skipped = [], NOTHING
    for path, dialect in dialects.items():
        name = source.name if len(dialects) == 1 else str(path)
        records = Records(path, dialect, name=name, lenient=source.lenient)
        rows = list(records)
        records.require_table()
        skipped += records.skipped
        columns = [[row[i] for row in rows] for i in range(len(dialect.columns))]
        arrays = [pa.array(column, pa.string()) for column in columns]
        parts.append(pa.table(arrays, names=list(dialect.columns)))
    names = parts[0].column_names
    return pa.concat_tables([part.select(names) for part in parts]), skipped


def _raw_values(column: pa.ChunkedArray) -> list[Any]:
    _require_plain(column)
    return list(column.to_pylist())


def _values(column: pa.ChunkedArray) -> list[Value]:
    _require_plain(column)
    return values_in(column)


def _require_plain(column: pa.ChunkedArray) -> None:
    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    if pa.types.is_nested(kind) or pa.types.is_interval(kind):
        raise Unsupported(f"the memory engine cannot write {kind} as text; use the duckdb engine.")


# --------------------------------------------------------------------------- choosing


def _chosen(
    table: pa.Table, texts: Sequence[str], request: CountRequest, take: Counts, seed: int
) -> list[int]:
    """Return the places of the chosen rows, which are given as texts, too."""
    cells = zip(*(_cell_values(table[n], n, request) for n in request.columns), strict=True)
    seen: collections.Counter[str] = collections.Counter()
    offered: dict[tuple[Value, ...], list[tuple[str, int]]] = collections.defaultdict(list)
    for line, (cell, row) in enumerate(zip(cells, texts, strict=True)):
        seen[row] += 1  # equal rows are numbered, so that their hashes differ
        offered[cell].append((_md5(f"{seed}/{seen[row]}/{row}"), line))
    wanted = take.cells().items()
    return [line for cell, want in wanted for _, line in sorted(offered.get(cell, ()))[:want]]


def _located(rows: pa.Table, places: Sequence[int], texts: Iterable[str]) -> pa.Table:
    """Append the place of each row, and the md5 of its text, to its columns."""
    place, md5 = location_names(rows.column_names)
    digests = [*map(_md5, texts)]
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
    """Write each row as one text; the length before each value makes it unambiguous."""
    for row in zip(*(_exact_values(column) for column in table.columns), strict=True):
        yield ",".join("-" if value is MISSING else f"{len(value)}:{value}" for value in row)


def _exact_values(column: pa.ChunkedArray) -> list[Value]:
    """Write values as texts, and floating-point numbers as their bits."""
    if not pa.types.is_floating(column.type):
        return _values(column)
    numbers = (as_value(number) for number in column.to_pylist())
    return [n if n is MISSING else struct.pack(">d", float(n)).hex() for n in numbers]


# ---------------------------------------------------------------------------- writing


def _write_csv(rows: pa.Table, path: Path) -> None:
    lines = itertools.chain([rows.column_names], zip(*map(_values, rows.columns), strict=True))
    with path.open("w", encoding="utf-8", newline="") as file:
        file.writelines(",".join(map(_csv_field, line)) + "\n" for line in lines)


def _csv_field(value: Value) -> str:
    # csv.writer would not quote a lone carriage return, nor a text that is read as missing.
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
    import pyarrow.parquet as pq

    try:
        pq.write_table(rows, path)
    except pa.ArrowNotImplementedError as error:
        raise Unsupported(f"Arrow cannot write this as Parquet: {error}.") from None
