"""Sources: tables that a user names, and how an engine reads them."""

from __future__ import annotations

import codecs
import contextlib
import glob
import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from equipoise.counts.reading import Condition, Reading
from equipoise.engines.addresses import local_path, locator, scheme_of, without_password
from equipoise.engines.column_names import refuse_duplicates
from equipoise.engines.csv.dialects import CsvDialect, csv_dialect
from equipoise.engines.kinds import (
    CONTAINERS,
    EXTENSIONS,
    Kind,
    extension,
    kind_of,
    kind_of_container,
)
from equipoise.engines.readers import stdin
from equipoise.engines.stored import FilePath, StoredFile
from equipoise.errors import ColumnNotFound, InputError, SourceNotFound, did_you_mean
from equipoise.values import MISSING, as_value

if TYPE_CHECKING:
    import pyarrow as pa

    from equipoise.engines.dialect import Dialect


class View(Protocol):
    """A table made of another one, which its query calls ``input``; a dialect writes the query.

    Its rows are those of the table, in their places.
    """

    def query(self, d: Dialect, carried: Sequence[str] = ()) -> str:
        """Write the query; the columns ``carried`` of the table come after its own, as they are."""


WORD = "word"
"""Column of a table of words, such as hashes, that a view asks for; they have no commas and quotes."""

READING = tuple(f.name for f in fields(Reading))
"""Options of :func:`locate` that a user may give."""


@dataclass(frozen=True, kw_only=True)
class Source:
    """A table: files, a table of a database, or a frame in memory.

    ``table`` names a table of a database, or a sheet; ``query`` is one of the database that gives the
    table; ``data`` is the Arrow table or the relation itself. A query ``sql`` calls the table ``input``,
    and so does a ``view`` its result; the rows that the view asks for are the table ``asked``. ``key`` are
    the columns that rows are known by. Only rows that satisfy ``where`` are seen. If a source is ``lenient``, lines of CSV files that are not rows are skipped and counted.

    Data that is not a file of this machine has an ``address``, which may hold a password: it is used
    to connect, and never shown; ``name`` is the address without it. ``stored`` are files in a store.
    ``version`` names one state of a table that keeps several.
    """

    name: str
    kind: Kind
    paths: tuple[Path, ...] = ()
    table: str | None = None
    query: str | None = None
    data: Any = field(default=None, repr=False, compare=False)
    sql: str | None = None
    view: View | None = None
    asked: pa.Table | None = field(default=None, repr=False, compare=False)
    key: tuple[str, ...] = ()
    where: Condition | None = None
    encoding: str = "utf-8"
    delimiter: str | None = None
    header: bool = True
    lenient: bool = False
    address: str | None = field(default=None, repr=False)
    stored: tuple[StoredFile, ...] = ()
    version: str | None = None

    def __post_init__(self) -> None:
        if self.address is not None:
            object.__setattr__(self, "name", without_password(self.name))

    @property
    def files(self) -> tuple[FilePath, ...]:
        """Its files, of this machine or in a store."""
        return self.stored or self.paths

    @property
    def public_name(self) -> str:
        """The given name, but without the folders of this machine."""
        scheme, place = "", self.name
        if self.address is not None and ":" in self.name.partition("/")[0]:
            scheme, _, place = self.name.partition(":")
            scheme += ":"
        is_local = Path(place).is_absolute() and not place.startswith("//")
        return scheme + Path(place).name if is_local else self.name

    @property
    def reading(self) -> Reading:
        """The options it is read with, without defaults, to be recorded."""
        return Reading(
            where=self.where,
            sql=self.sql,
            encoding=None if self.encoding == "utf-8" else self.encoding,
            delimiter=self.delimiter,
            header=None if self.header else False,
            lenient=self.lenient or None,
        )


def locate(
    data: Any,
    *,
    where: str | Condition | None = None,
    sql: str | None = None,
    encoding: str | None = None,
    delimiter: str | None = None,
    header: bool | None = None,
    lenient: bool | None = None,
    columns: Collection[str] = (),
    known: Collection[str] = (),
) -> Source:
    """Find the data a user names: a path, folder, glob, address, ``file.duckdb::table``, ``-`` or a frame.

    Of a frame only ``columns`` are converted, if it has them all. ``known`` are names that a user
    may have meant by a path that does not exist.

    >>> import pyarrow as pa
    >>> locate(pa.table({"a": [1]})).kind
    'frame'
    """
    if delimiter is not None and (len(delimiter) != 1 or delimiter in '"\r\n'):
        raise InputError(
            f"a delimiter is one character other than a quote or a line break, not {delimiter!r}."
        )
    options: dict[str, Any] = {
        "sql": sql,
        "where": Condition(where) if isinstance(where, str) else where,
        "encoding": _codec(encoding or "utf-8"),
        "delimiter": delimiter,
        "header": header is None or header,
        "lenient": bool(lenient),
    }
    if isinstance(data, Source):
        return data
    if isinstance(data, (str, os.PathLike)):
        source = _from_path(os.fspath(data), options, known)
    else:
        source = _from_frame(data, options, () if sql or where else columns)
    if not source.header and source.kind not in ("csv", "excel"):
        raise InputError(
            f"{source.name} has column names; `header=False` is only for CSV and Excel files."
        )
    return source


def _codec(encoding: str) -> str:
    try:
        codec = codecs.lookup(encoding)
        "".encode(codec.name)  # refuses codecs that are not of text, such as zip
    except (LookupError, UnicodeError):
        raise InputError(
            f"the encoding {encoding!r} is not known; use a name such as utf-8, latin-1, cp1252 "
            "or utf-16."
        ) from None
    return "utf-8" if codec.name in ("ascii", "utf-8-sig") else codec.name


def _from_frame(data: Any, options: dict[str, Any], columns: Collection[str]) -> Source:
    if isinstance(data, tuple) and len(data) == 2 and isinstance(data[1], str):
        return _from_connection(*data, options)
    module = type(data).__module__.partition(".")[0]
    if module == "pyspark" and hasattr(data, "sparkSession"):
        return Source(name="the DataFrame", kind="spark", data=data, **options)
    if module == "ibis" and hasattr(data, "get_backend"):
        return _from_ibis(data, options)
    if module in ("duckdb", "_duckdb") and hasattr(data, "query"):
        return Source(name="the relation", kind="relation", data=data, **options)
    # A lone series has no columns; a reader of batches has a schema.
    is_frame = any(hasattr(data, name) for name in ("columns", "schema"))
    streams = module == "pandas" or hasattr(data, "__arrow_c_stream__")
    if isinstance(data, Mapping) or (is_frame and streams):
        table = _arrow_table(data, module, columns)
        return Source(name="the frame", kind="frame", data=table, **options)
    raise InputError(
        f"data of the type {type(data).__name__} cannot be measured; give a path, a pandas, polars or Arrow "
        "table, a DuckDB relation, a Spark DataFrame, an ibis table, a psycopg connection with the name of a table, "
        "or Counts."
    )


def _from_ibis(table: Any, options: dict[str, Any]) -> Source:
    """Take a table of ibis as its connection and its query; ibis itself is not loaded."""
    name = "the ibis table"
    with _by_ibis(name):
        backend = table.get_backend()
    if backend.name not in ("duckdb", "postgres", "pyspark"):
        raise InputError(
            f"{name} is on the backend {backend.name!r}; those on duckdb, postgres and pyspark can be measured "
            "where they are. Give its rows, as in `table.to_pyarrow()`."
        )
    if table.op().find(_is_brought):
        # ibis registers these when it executes an expression itself, and has no public way to do only that.
        raise InputError(
            f"{name} uses rows in memory or a Python function, which its database does not have; "
            "give its rows, as in `table.to_pyarrow()`."
        )
    with _by_ibis(name):
        query = str(backend.compile(table))
        if backend.name == "duckdb":
            return Source(name=name, kind="relation", data=backend.con.sql(query), **options)
        if backend.name == "pyspark":
            frame = backend._session.sql(query)  # noqa: SLF001 (there is no other way to its session)
            return Source(name=name, kind="spark", data=frame, **options)
        return Source(name=name, kind="postgres", data=backend.con, query=query, **options)


def _is_brought(node: Any) -> bool:
    """Whether a part of an expression of ibis is not in the database: a memtable, or a function of Python."""
    how = getattr(node, "__input_type__", None)
    is_function = how is not None and how.name != "BUILTIN"
    return is_function or any(kind.__name__ == "InMemoryTable" for kind in type(node).__mro__)


@contextlib.contextmanager
def _by_ibis(name: str) -> Iterator[None]:
    """Say in one sentence why ibis, or the driver that it calls, did not do what it was asked."""
    try:
        yield
    except Exception as error:
        why = (str(error) or type(error).__name__).splitlines()[0].rstrip(".")
        raise InputError(f"{name} cannot be read as a query: {why}.") from error


def _from_connection(connection: Any, table: str, options: dict[str, Any]) -> Source:
    if type(connection).__module__.partition(".")[0] == "psycopg":
        return Source(name=table, kind="postgres", data=connection, table=table, **options)
    raise InputError(
        f"a pair of {type(connection).__name__} and a name cannot be measured; give a connection of psycopg "
        "and the name of a table."
    )


def _arrow_table(data: Any, module: str, columns: Collection[str]) -> pa.Table:
    """Convert a frame to Arrow, which shares its memory where Arrow has the same layout."""
    import pyarrow as pa

    try:
        if isinstance(data, Mapping) or module == "pandas":
            names = [str(name) for name in data]
            refuse_duplicates(names, "the frame")
            wanted = columns if set(columns) <= set(names) else ()
            chosen = [
                (name, _arrow_array(column))
                for name, (_, column) in zip(names, data.items(), strict=True)
                if not wanted or name in wanted
            ]
            table = pa.table(dict(chosen))
        else:
            table = pa.table(data)
    except (pa.ArrowException, ValueError, TypeError) as error:
        raise InputError(f"the frame cannot be read: {str(error).splitlines()[0]}.") from None
    refuse_duplicates(table.column_names, "the frame")
    if not table.column_names:
        raise InputError("the frame has no columns; there is nothing to measure.")
    for i, column in enumerate(table.columns):
        if pa.types.is_float16(column.type):  # DuckDB has no half floats
            table = table.set_column(i, table.column_names[i], column.cast(pa.float32()))
    return table


def _arrow_array(column: Any) -> pa.Array | pa.ChunkedArray:
    """Convert a column of Python, numpy or pandas; values that Arrow cannot hold become text."""
    import pyarrow as pa

    with contextlib.suppress(pa.ArrowException, OverflowError):
        array = pa.array(column, from_pandas=True)
        kind = array.type.value_type if pa.types.is_dictionary(array.type) else array.type
        if not isinstance(kind, pa.BaseExtensionType):  # such as the intervals of pandas.cut
            return array
    texts = (as_value(value) for value in column)
    return pa.array([None if text is MISSING else text for text in texts], pa.string())


def _from_path(text: str, options: dict[str, Any], known: Collection[str]) -> Source:
    if not text:
        raise SourceNotFound("the name of the data is empty; give a file, a folder or a glob.")
    if text == "-":
        path, kind = stdin.copy_input()
        return Source(name=stdin.NAME, kind=kind, paths=(path,), **options)
    scheme = scheme_of(text)
    if scheme == "file":
        text = local_path(text)
    elif scheme is not None:
        found_there: Source = locator(scheme)(text, options)
        return found_there
    path = Path(text)
    file, separator, table = text.partition("::")
    if separator and not path.exists():
        kind = kind_of_container(_existing(file))
        return Source(name=text, kind=kind, paths=(Path(file),), table=table or None, **options)
    if (path / "_delta_log").is_dir():  # whose folder has files of older versions, too
        delta: Source = locator("delta")(f"delta:{text}", options)
        return replace(delta, name=text)
    if path.is_dir():
        return _many(text, sorted(p for p in path.rglob("*") if _is_data(p, path)), options)
    if glob.has_magic(text) and not path.exists():
        found = sorted(map(Path, glob.glob(text, recursive=True)))  # noqa: PTH207 (which takes no absolute ones)
        return _many(text, [p for p in found if p.is_file()], options)
    return Source(name=text, kind=kind_of(_existing(text, known)), paths=(path,), **options)


def _is_data(path: Path, folder: Path) -> bool:
    parts = path.relative_to(folder).parts
    hidden = any(part.startswith((".", "_")) for part in parts)
    return path.is_file() and not hidden and extension(path) in EXTENSIONS


def _many(text: str, paths: list[Path], options: dict[str, Any]) -> Source:
    if not paths:
        raise SourceNotFound(
            f"{text} holds no table; files with the extensions {', '.join(EXTENSIONS)} (or .gz) are read."
        )
    kinds = {kind_of(p) for p in paths}
    if len(paths) > 1 and kinds <= CONTAINERS:
        raise InputError(
            f"{text} holds several databases or workbooks; name one table of one of them, as in "
            f"{paths[0]}::TABLE."
        )
    if len(kinds) > 1:
        raise InputError(
            f"{text} holds files of several kinds ({', '.join(sorted(kinds))}); the files of a "
            "table must be of one kind; choose them with a glob such as 'folder/*.csv'."
        )
    return Source(name=text, kind=kinds.pop(), paths=tuple(paths), **options)


def _existing(text: str, known: Collection[str] = ()) -> Path:
    path = Path(text)
    if not path.exists():
        beside: list[str] = []
        with contextlib.suppress(OSError):
            beside = sorted(p.name for p in path.parent.iterdir())
        near = did_you_mean(path.name, [*known, *beside])
        raise SourceNotFound(
            f"{text} does not exist; give a file, a folder, a glob, a database table as "
            f"file.duckdb::table, - for standard input, or the name of a bundled data set (equipoise data list).{near}"
        )
    if not os.access(path, os.R_OK):
        raise SourceNotFound(f"{text} cannot be read; check its permissions.")
    return path


def dialect_of(source: Source, path: FilePath) -> CsvDialect:
    """Return the dialect of one CSV file of a source."""
    return csv_dialect(
        path,
        encoding=source.encoding,
        delimiter=source.delimiter,
        header=source.header,
        lenient=source.lenient,
    )


def chosen_table(source: Source, tables: Collection[str], word: str = "table") -> str:
    """Return the table of a file that the user names, or its only one."""
    file = source.paths[0]
    if not tables:
        raise InputError(f"{file} has no {word}s with data; there is nothing to measure.")
    if source.table is None:
        if len(tables) == 1:
            return next(iter(tables))
        raise InputError(
            f"{file} has several {word}s; name one as {file}::{word.upper()}; it has: "
            f"{', '.join(tables)}."
        )
    for name in (source.table, source.table.removeprefix("main.")):
        if name in tables:
            return name
    raise InputError(
        f"{file} has no {word} {source.table!r}; it has: {', '.join(tables)}."
        f"{did_you_mean(source.table, tables)}"
    )


@contextlib.contextmanager
def called(source: Source) -> Iterator[None]:
    """Replace the file that standard input was copied to by its name in error messages."""
    try:
        yield
    except InputError as error:
        if source.name == stdin.NAME:
            error.args = (str(error).replace(str(source.paths[0]), stdin.NAME),)
        raise


def explain_renamed(error: ColumnNotFound, source: Source) -> ColumnNotFound:
    """Explain that a column was renamed, if that is why it was not found."""
    if source.kind != "csv" or source.sql is not None:
        return error
    for path in source.files:
        for old, new in dialect_of(source, path).renamed:
            if old == error.column:
                error.args = (
                    (
                        f"column {old!r} of {source.name} is called {new!r} here, because another column "
                        "has the same name except for case; use that name."
                    ),
                )
    return error
