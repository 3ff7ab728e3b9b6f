"""Write a repaired table: rows put together in the base's columns and types, whole or not at all."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from equipoise.atomic import atomic_path, folder_beside
from equipoise.counts.columns import values_in
from equipoise.engines.base import Engine
from equipoise.engines.sources import Source, locate
from equipoise.errors import InputError
from equipoise.rows.texts import as_texts, is_text
from equipoise.values import Value

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True)
class Part:
    """Rows of one source, in columns of the base."""

    source: str
    rows: pa.Table


def put_together(stay: pa.Table, parts: Sequence[Part], base: str) -> pa.Table:
    """Put rows of sources below those of the base, in its columns and types."""
    import pyarrow as pa

    below = [_in_types_of(stay, part, base) for part in parts]
    return pa.concat_tables([stay, *below], promote_options="default") if below else stay


def _in_types_of(stay: pa.Table, part: Part, base: str) -> pa.Table:
    import pyarrow as pa

    columns = []
    for column in stay.schema:
        if column.name not in part.rows.column_names:
            columns.append(pa.nulls(len(part.rows), column.type))
            continue
        try:
            columns.append(cast(part.rows[column.name], column.type))
        except pa.ArrowException:
            strange = _strange(part.rows[column.name], column.type)
            raise InputError(
                f"column {column.name!r} of {part.source} holds {strange!r}, which cannot become "
                f"{column.type} as in {base}; mend the source, or leave such rows out of it."
            ) from None
    return pa.table(columns, names=stay.column_names)


def cast(column: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray | pa.Array:
    """Turn values into another type, text by the text that counts know them by.

    >>> import pyarrow as pa
    >>> cast(pa.chunked_array([["39", None]]), pa.int64()).to_pylist()
    [39, None]
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    if column.type == kind or pa.types.is_null(kind):
        return column
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if pa.types.is_floating(column.type) and not pa.types.is_floating(kind):
        column = pc.if_else(pc.is_nan(column), None, column)  # not-a-number is a missing value
    if is_text(kind):
        return as_texts(column).cast(kind)
    if pa.types.is_boolean(kind) and not is_text(column.type):
        column = as_texts(column)  # or every number but 0 would be true
    return column.cast(kind)


def typed_for(output: Path, base: Source, rows: pa.Table, stay: int) -> pa.Table:
    """Give rows as a file is to hold them: of a CSV file as base a Parquet file gets types."""
    is_untyped = base.kind == "csv" and base.sql is None and output.suffix.lower() == ".parquet"
    return with_types(rows, stay) if is_untyped else rows


def with_types(rows: pa.Table, stay: int | None = None) -> pa.Table:
    """Give columns of text the type that their values have, where none is lost by it.

    A CSV file has no types. A column becomes one of whole numbers, numbers, days or truths if
    every value, written as text again, is the text it was: `007` and `1e3` stay as they are.
    The first rows decide, if it is said how many stay of a base: rows that were added never
    change the type of a column. Whole numbers become numbers if one that was added has a
    fraction; a value that is none of the type is missing.

    >>> import pyarrow as pa
    >>> table = pa.table({"age": ["39", None], "code": ["007", "8"], "since": ["2024-02-29"] * 2})
    >>> [str(kind) for kind in with_types(table).schema.types]
    ['int64', 'string', 'date32[day]']
    """
    first = len(rows) if stay is None else stay
    typed = [_typed(column, first) for column in rows.columns]
    return rows if not typed else type(rows).from_arrays(typed, names=rows.column_names)


def _typed(column: pa.ChunkedArray, stay: int) -> pa.ChunkedArray:
    import pyarrow as pa

    decides = column.slice(0, stay)
    if not is_text(column.type) or decides.null_count == len(decides):
        return column
    different = pa.chunked_array([decides.unique().drop_null()])
    for kind in (pa.int64(), pa.float64(), pa.date32(), pa.bool_()):
        if all(_is_kept(some, kind) for some in (different.slice(0, 1), different)):
            return cast_where_possible(column, kind)
    return column


def cast_where_possible(column: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray:
    """Give a column a type; a wider one for whole numbers if it needs be, else values are lost."""
    import pyarrow as pa

    wider = [kind, pa.float64()] if pa.types.is_integer(kind) else [kind]
    for one in wider:
        with contextlib.suppress(pa.ArrowException):
            return column.cast(one)
    different = column.unique().drop_null()
    for one in wider:
        fitting = [text for text in different.to_pylist() if _can_be(text, one)]
        if one is wider[-1] or all(_can_be(t, kind) for t in fitting):
            break
    chosen = pa.compute.is_in(column, pa.array(fitting, column.type))
    return pa.compute.if_else(chosen, column, pa.scalar(None, column.type)).cast(one)


def _can_be(text: str, kind: pa.DataType) -> bool:
    import pyarrow as pa

    try:
        pa.array([text]).cast(kind)
    except pa.ArrowException:
        return False
    return True


def _is_kept(texts: pa.ChunkedArray, kind: pa.DataType) -> bool:
    """Tell whether texts come back from a type as they were."""
    import pyarrow as pa

    try:
        return bool(as_texts(texts.cast(kind)).equals(as_texts(texts)))
    except pa.ArrowException:
        return False


def _strange(column: pa.ChunkedArray, kind: pa.DataType) -> Value:
    """Find the first value that cannot be cast, by halving."""
    import pyarrow as pa

    while len(column) > 1:
        half = len(column) // 2
        try:
            cast(column.slice(0, half), kind)
            column = column.slice(half)
        except pa.ArrowException:
            column = column.slice(0, half)
    return values_in(column)[0]


# ----------------------------------------------------------------------------- writing


def require_apart(places: Sequence[Path], read: Sequence[tuple[str, Path]]) -> None:
    """Refuse to write two things to one file, over a file that is read, or into no folder.

    >>> require_apart([Path("out.csv"), Path("./out.csv")], [])
    Traceback (most recent call last):
    equipoise.errors.InputError: out.csv cannot be two files at once; name another for one of them.
    """
    known: dict[str, Path] = {}
    for place in places:
        if known.setdefault(os.path.realpath(place), place) is not place:
            raise InputError(f"{place} cannot be two files at once; name another for one of them.")
        if not place.absolute().parent.is_dir():
            raise InputError(f"the folder {place.parent} does not exist; make it first.")
        for name, path in read:
            if place.exists() and path.exists() and place.samefile(path):
                raise InputError(f"{place} is {name}, which stays as it is; write to another file.")


@contextlib.contextmanager
def published(
    rows: pa.Table,
    output: Path,
    listing: Path,
    engine: Engine,
    beside: Mapping[Path, str] | None = None,
) -> Iterator[tuple[Source, Path]]:
    """Write a table aside; give it, and a place for the list of its changes; then move both.

    Texts that belong to it are moved beside it. After any failure before the end, nothing is
    there that was not there before.
    """
    with contextlib.ExitStack() as stack:
        for path, text in (beside or {}).items():
            stack.enter_context(atomic_path(path)).write_text(text, encoding="utf-8")
        listed = stack.enter_context(atomic_path(listing))
        whole = stack.enter_context(atomic_path(output))
        written = stack.enter_context(folder_beside(whole)) / output.name
        engine.write(rows, written)
        yield replace(as_written(written), name=str(output)), listed
        written.replace(whole)


def as_written(path: Path) -> Source:
    """Give a file that an engine wrote, with the delimiter it wrote, which need not be guessed."""
    return locate(path, delimiter="\t" if path.name.endswith(".tsv") else ",")
