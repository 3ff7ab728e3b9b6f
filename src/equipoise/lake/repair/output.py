"""Write a repaired table atomically, with the columns and types of the base."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from equipoise.atomic import atomic_path, folder_beside, require_folder
from equipoise.counts.columns import values_in
from equipoise.engines.addresses import scheme_of
from equipoise.engines.base import MADE, Engine, Part, require_writable
from equipoise.engines.dialect import Dialect
from equipoise.engines.sources import Source, locate
from equipoise.errors import InputError
from equipoise.rows.texts import as_texts, is_text, without_categories
from equipoise.validate import a_name
from equipoise.values import Value


def columns_like(base: Source, engine: Engine) -> pa.Table:
    """Return the columns of a table in their types, without rows."""
    none = engine.fetch(base, [])
    return without_categories(none.select(none.column_names[:-2]))


def put_together(like: pa.Table, parts: Iterable[tuple[str, pa.Table]], base: str) -> pa.Table:
    """Put rows of named sources together, in the columns and types of the base."""
    below = [_in_types_of(like, rows, source, base) for source, rows in parts]
    return pa.concat_tables([like, *below], promote_options="default")


def lacking_rows(like: pa.Table, parts: Iterable[tuple[str, pa.Table]]) -> dict[str, list[range]]:
    """Tell which rows that were put together come from sources without a column of the base."""
    lacking: dict[str, list[range]] = {}
    start = 0
    for _, rows in parts:
        here = range(start, start + len(rows))
        for name in like.column_names:
            if name not in rows.column_names and here:
                lacking.setdefault(name, []).append(here)
        start = here.stop
    return lacking


def _in_types_of(stay: pa.Table, rows: pa.Table, source: str, base: str) -> pa.Table:
    columns = []
    for column in stay.schema:
        if column.name not in rows.column_names:
            columns.append(pa.nulls(len(rows), column.type))
            continue
        try:
            columns.append(cast(rows[column.name], column.type))
        except pa.ArrowException:
            strange = _strange(rows[column.name], column.type)
            raise InputError(
                f"column {column.name!r} of {source} holds {strange!r}, which cannot be converted "
                f"to {column.type} as in {base}; fix the source, or remove such rows from it."
            ) from None
    return pa.table(columns, names=stay.column_names)


def cast(column: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray | pa.Array:
    """Convert values to another type; texts are those that counts use for the values."""
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


_NATURAL = {
    "BIGINT": pa.int64(),
    "DOUBLE": pa.float64(),
    "DATE": pa.date32(),
    "BOOLEAN": pa.bool_(),
}


@dataclass(frozen=True)
class NaturalTypesView:
    """A view of one row: for each column of texts and each type, whether all texts can have it.

    A text can have a type if, written as text again, it is the text it was; therefore "007" and
    "1e3" stay as they are.
    """

    columns: Sequence[str]

    def query(self, d: Dialect, carried: Sequence[str] = ()) -> str:  # noqa: ARG002 (of many rows)
        """Write the query; see :class:`~equipoise.engines.sources.View`."""
        asked = []
        for i, name in enumerate(self.columns):
            text = d.identifier(name)
            for kind in _NATURAL:
                again = d.text(d.tried(text, kind), kind)
                kept = f"bool_and({text} IS NULL OR coalesce({again} = {text}, false))"
                asked.append(f"{kept} AND count({text}) > 0 AS t{i}_{kind}")
        return f"SELECT {', '.join(asked)} FROM input"


def typed_for(
    output: Path, base: Source, added: pa.Table, engine: Engine, *, added_decide: bool
) -> tuple[dict[str, str], pa.Table]:
    """Infer types if the base is a CSV file, which has none, and the output is Parquet.

    Returns the types of columns that get another one, and the added rows in these types. Added rows
    never change the type of a column, except from integer to float if one has a fraction; a value of
    an added row that does not have the type becomes missing. If ``added_decide``, a column with such a
    value stays text instead.
    """
    is_untyped = base.kind == "csv" and base.sql is None and output.suffix.lower() == ".parquet"
    texts = [field.name for field in added.schema if is_text(field.type)]
    if not is_untyped or not texts:
        return {}, added
    (told,) = engine.read(replace(base, view=NaturalTypesView(texts))).to_pylist()
    types = {}
    for i, name in enumerate(texts):
        fits = [kind for kind in _NATURAL if told[f"t{i}_{kind}"]]
        different = pa.chunked_array([added[name].unique().drop_null()])
        if added_decide:
            fits = [kind for kind in fits if _is_kept(different, _NATURAL[kind])]
        if fits:
            column = cast_where_possible(added[name], _NATURAL[fits[0]])
            types[name] = next(kind for kind, arrow in _NATURAL.items() if arrow == column.type)
            added = added.set_column(added.column_names.index(name), name, column)
    return types, added


def cast_where_possible(column: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray:
    """Convert a column, integers to float if necessary; values that do not fit become missing."""
    wider = [kind, pa.float64()] if pa.types.is_integer(kind) else [kind]
    for one in wider:
        with contextlib.suppress(pa.ArrowException):
            return column.cast(one)
    different = column.unique().drop_null()
    for one in wider:
        fitting = [text for text in different.to_pylist() if _can_be(text, one)]
        if one is wider[-1] or all(_can_be(t, kind) for t in fitting):
            break
    chosen = pc.is_in(column, pa.array(fitting, column.type))
    return pc.if_else(chosen, column, pa.scalar(None, column.type)).cast(one)


def _can_be(text: str, kind: pa.DataType) -> bool:
    try:
        pa.array([text]).cast(kind)
    except pa.ArrowException:
        return False
    return True


def _is_kept(texts: pa.ChunkedArray, kind: pa.DataType) -> bool:
    """Whether texts survive a conversion to a type and back."""
    try:
        return bool(as_texts(texts.cast(kind)).equals(as_texts(texts)))
    except pa.ArrowException:
        return False


def _strange(column: pa.ChunkedArray, kind: pa.DataType) -> Value:
    """Find the first value that cannot be converted, by bisection."""
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
    """Refuse output files that coincide, that are read, or whose folder does not exist.

    >>> require_apart([Path("out.csv"), Path("./out.csv")], [])
    Traceback (most recent call last):
    equipoise.errors.InputError: two files cannot both be written to out.csv; rename one of them.
    """
    known: dict[str, Path] = {}
    for place in places:
        if known.setdefault(os.path.realpath(place), place) is not place:
            raise InputError(f"two files cannot both be written to {place}; rename one of them.")
        require_folder(place)
        for name, path in read:
            if place.exists() and path.exists() and place.samefile(path):
                raise InputError(
                    f"{place} is {name}, which must not change; write to another file."
                )


TABLES = ("postgresql", "postgres", "spark")
"""Schemes of addresses of tables that can be written."""


CHANGES = f"{MADE}: a list of changes"
"""How the comment on a table of changes begins."""


def require_name(output: object) -> None:
    """Refuse an output that has no name, such as a connection with a table of it."""
    a_name(
        "output",
        output,
        "a file, or the address of a table such as postgresql://user@host/database?table=people",
    )


def place_named(output: str | os.PathLike[str], engine: Engine) -> Path | Source:
    """Return the file or the table of a database that a name means; refuse others.

    >>> place_named("spark:warehouse.people", None).table
    'warehouse.people'
    """
    require_name(output)
    text = os.fspath(output)
    if scheme_of(text) in TABLES:
        return locate(text)
    require_writable(output, engine.writes)
    return Path(output)


@contextlib.contextmanager
def published_table(
    parts: Sequence[Part], output: Source, listing: Source, engine: Engine, comment: str = ""
) -> Iterator[tuple[Source, Callable[[pa.Table], None]]]:
    """Make a table of a database, and the list of its changes beside it.

    Yields the table, and a function that takes the list of changes, which becomes a table, too. In
    PostgreSQL both are there together or not at all.
    """
    with contextlib.ExitStack() as stack:
        written = stack.enter_context(engine.creating(output, parts, comment)).source

        def list_changes(changes: pa.Table) -> None:
            # Somebody may have made a table of that name since it was looked for.
            engine.require_free(listing, only=CHANGES)
            stack.enter_context(engine.creating(listing, [Part(locate(changes))], f"{CHANGES}."))

        yield replace(written, name=output.name), list_changes


@contextlib.contextmanager
def written_file(
    parts: Sequence[Part], types: Mapping[str, str], output: Path, engine: Engine
) -> Iterator[Source]:
    """Write a table to a temporary place, and move it into place at the end.

    Yields the written table. A failure before it is moved leaves no trace.
    """
    with atomic_path(output) as whole, folder_beside(whole) as folder:
        written = folder / output.name
        engine.write(written, parts, types)
        yield replace(as_written(written), name=str(output))
        written.replace(whole)


def repaired_comment(base: Source) -> str:
    """Write the comment on a repaired table of a database, which is then no source of other repairs."""
    return f"{MADE}: {base.public_name}, with rows removed and rows of other tables added."


def as_written(path: Path) -> Source:
    """Locate a file that an engine wrote, with its delimiter instead of a guess."""
    return locate(path, delimiter="\t" if path.name.endswith(".tsv") else ",")
