"""From what a user names to a table that an engine can open."""

from __future__ import annotations

import codecs
import contextlib
import csv
import glob
import gzip
import io
import itertools
import os
import re
import tempfile
import zlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Literal, TypeAlias, cast

from equipoise.counts.reading import Condition, Reading
from equipoise.engines.readers.sqlite import is_sqlite
from equipoise.errors import ColumnNotFound, InputError, SourceNotFound, did_you_mean
from equipoise.values import MISSING, as_value

if TYPE_CHECKING:
    import pyarrow as pa

Kind: TypeAlias = Literal[
    "csv", "parquet", "json", "duckdb", "sqlite", "excel", "frame", "relation"
]
CONTAINERS: frozenset[Kind] = frozenset({"duckdb", "sqlite", "excel"})
"""Files that hold several tables, each with a name: ``file::table``."""

ENDINGS: Mapping[str, Kind] = {
    ".csv": "csv",
    ".tsv": "csv",
    ".tab": "csv",
    ".txt": "csv",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".jsonl": "json",
    ".ndjson": "json",
    ".json": "json",
    ".duckdb": "duckdb",
    ".db": "duckdb",  # or of SQLite, as its first bytes say
    ".sqlite": "sqlite",
    ".sqlite3": "sqlite",
    ".xlsx": "excel",
    ".xlsm": "excel",
}
DELIMITERS = (",", ";", "|", "\t")

READING = tuple(f.name for f in fields(Reading))
"""What a user may say about how a table is read: options of :func:`locate`."""

_RENAMED = (
    "column {old!r} of {table} is called {new!r} here, as another column has the same name but for "
    "its case; name it so."
)
_LONGEST_LINE = 1 << 24
_LONGEST_RECORD = 1 << 21
_FIRST_RECORDS = 20
_NOT_CP1252 = re.compile(rb"[\x81\x8d\x8f\x90\x9d]")
_BLOCK = 1 << 20


@dataclass(frozen=True, kw_only=True)
class Source:
    """A table somewhere: files, a table in a database, or a frame in memory.

    Attributes
    ----------
    name
        How messages call it.
    kind
        What it is.
    paths
        Its files.
    table
        Its name inside a database file, or that of a sheet.
    data
        The Arrow table or the relation itself.
    sql
        A query to run over it, in which it is called ``input``.
    where
        A condition that its rows, or those of the query, satisfy; others are not seen.
    encoding, delimiter
        How CSV files are read; a delimiter that is not given is found.
    header
        Whether the first line of CSV files and sheets names the columns.
    lenient
        Whether lines of CSV files that are no rows are skipped and counted.
    """

    name: str
    kind: Kind
    paths: tuple[Path, ...] = ()
    table: str | None = None
    data: Any = field(default=None, repr=False, compare=False)
    sql: str | None = None
    where: Condition | None = None
    encoding: str = "utf-8"
    delimiter: str | None = None
    header: bool = True
    lenient: bool = False

    @property
    def reading(self) -> Reading:
        """How it is read, to be recorded."""
        encoding = None if self.encoding == "utf-8" else self.encoding
        return Reading(
            where=self.where,
            sql=self.sql,
            encoding=encoding,
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
    """Find out what a user means: a path, folder, glob, ``file.duckdb::table``, ``-`` or a frame.

    With ``columns`` only these are taken from a frame, if it has them all. ``known`` are names
    that a user may have meant by a path that is not there.

    >>> import pyarrow as pa
    >>> locate(pa.table({"a": [1]})).kind
    'frame'
    """
    if delimiter is not None and (len(delimiter) != 1 or delimiter in '"\r\n'):
        raise InputError(
            f"a delimiter is one character, and no quote or line break, not {delimiter!r}."
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
            f"{source.name} has names for its columns; --no-header (header=False) is for CSV and "
            "Excel files."
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
    module = type(data).__module__.partition(".")[0]
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
        "table, a DuckDB relation, or Counts."
    )


def _arrow_table(data: Any, module: str, columns: Collection[str]) -> pa.Table:
    """Give a frame as Arrow, which shares its memory wherever Arrow can hold the values."""
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
            table = pa.table([array for _, array in chosen], names=[name for name, _ in chosen])
        else:
            table = pa.table(data)
    except (pa.ArrowException, ValueError, TypeError) as error:
        raise InputError(f"the frame cannot be read: {str(error).splitlines()[0]}.") from None
    refuse_duplicates(table.column_names, "the frame")
    if not table.column_names:
        raise InputError("the frame has no columns; there is nothing to measure.")
    for i, column in enumerate(table.columns):
        if pa.types.is_float16(column.type):  # databases know no half floats
            table = table.set_column(i, table.column_names[i], column.cast(pa.float32()))
    return table


def _arrow_array(column: Any) -> pa.Array | pa.ChunkedArray:
    """Give a column of Python, numpy or pandas; values that Arrow cannot hold become text."""
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
        from equipoise.engines.readers import stdin

        path, kind = stdin.spooled()
        return Source(name=stdin.NAME, kind=kind, paths=(path,), **options)
    path = Path(text)
    file, separator, table = text.partition("::")
    if separator and not path.exists():
        kind = _kind_of_container(_existing(file))
        return Source(name=text, kind=kind, paths=(Path(file),), table=table or None, **options)
    if path.is_dir():
        return _many(text, sorted(p for p in path.rglob("*") if _is_data(p, path)), options)
    if glob.has_magic(text) and not path.exists():
        found = sorted(map(Path, glob.glob(text, recursive=True)))  # noqa: PTH207 (which takes no absolute ones)
        return _many(text, [p for p in found if p.is_file()], options)
    return Source(name=text, kind=kind_of(_existing(text, known)), paths=(path,), **options)


def _is_data(path: Path, folder: Path) -> bool:
    parts = path.relative_to(folder).parts
    hidden = any(part.startswith((".", "_")) for part in parts)
    return path.is_file() and not hidden and _ending(path) in ENDINGS


def _many(text: str, paths: list[Path], options: dict[str, Any]) -> Source:
    if not paths:
        raise SourceNotFound(
            f"{text} holds no table; files ending in {', '.join(ENDINGS)} (or .gz) are read."
        )
    kinds = {kind_of(p) for p in paths}
    if len(paths) > 1 and kinds <= CONTAINERS:
        raise InputError(
            f"{text} holds several databases or workbooks; name one table of one of them, as in "
            f"{paths[0]}::TABLE."
        )
    if len(kinds) > 1:
        raise InputError(
            f"{text} holds files of several kinds ({', '.join(sorted(kinds))}); one table is "
            "files of one kind, so name them with a glob such as 'folder/*.csv'."
        )
    return Source(name=text, kind=kinds.pop(), paths=tuple(paths), **options)


def _existing(text: str, known: Collection[str] = ()) -> Path:
    path = Path(text)
    if not path.exists():
        near = did_you_mean(path.name, [*known, *_beside(path)])
        raise SourceNotFound(
            f"{text} does not exist; give a file, a folder, a glob, a database table as "
            f"file.duckdb::table, - for standard input, or the name of a bundled data set (equipoise data list).{near}"
        )
    if not os.access(path, os.R_OK):
        raise SourceNotFound(f"{text} cannot be read; check its permissions.")
    return path


def _beside(path: Path) -> list[str]:
    try:
        return sorted(p.name for p in path.parent.iterdir())
    except OSError:
        return []


def _ending(path: Path) -> str:
    return Path(path.name.lower().removesuffix(".gz")).suffix


def kind_of(path: Path) -> Kind:
    """Tell what a file is by its ending; a database that ends in .db, by its first bytes.

    >>> kind_of(Path("people.csv.gz"))
    'csv'
    """
    ending = _ending(path)
    if ending == ".db" and is_sqlite(path):
        return "sqlite"
    try:
        return ENDINGS[ending]
    except KeyError:
        raise InputError(
            f"{path} has an ending that says nothing of its format; "
            f"{', '.join(ENDINGS)} (and .gz) are read."
        ) from None


def _kind_of_container(path: Path) -> Kind:
    """Tell what holds a table with a name; whatever it is called, it may be a database."""
    if is_sqlite(path):
        return "sqlite"
    kind = ENDINGS.get(_ending(path), "duckdb")
    return kind if kind in CONTAINERS else "duckdb"


@dataclass(frozen=True)
class Dialect:
    """How one CSV file is written: its delimiter, its columns, and its lines.

    Attributes
    ----------
    columns
        The names of its columns, told apart whatever their case: of ``IOD`` and ``iod`` the
        second is ``iod_2``, as databases take the two for one.
    line_end
        What ends its lines; nothing, if there is but one line.
    empty_lines
        How many empty lines stand above the header.
    encoding
        Of its text: as asked, or as its byte-order mark says.
    header
        Whether its first line names the columns.
    renamed
        Columns that have another name here than in the file: what it was, and what it is.
    """

    delimiter: str
    columns: tuple[str, ...]
    line_end: str
    empty_lines: int
    encoding: str = "utf-8"
    header: bool = True
    renamed: tuple[tuple[str, str], ...] = ()


def csv_dialect(
    path: Path,
    *,
    encoding: str = "utf-8",
    delimiter: str | None = None,
    header: bool = True,
    lenient: bool = False,
) -> Dialect:
    """Read the header of a CSV file, and find the delimiter if it is not given.

    Columns that differ only in case are numbered; columns of one name are refused, or numbered
    too if it shall be lenient.

    The delimiter is the one that splits the first lines into the same, largest number
    of fields. Guessing from all lines, as databases do, reads a table with one broken
    line as a table of one column.
    """
    encoding = marked_encoding(path, encoding)
    head = _head(path, encoding)
    if not head.strip():
        raise InputError(f"{path} is empty; a table needs a header and rows.")
    if delimiter is None:
        delimiter = "\t" if _ending(path) in (".tsv", ".tab") else _best_delimiter(head)
    first = _records(head, delimiter)[0]
    renamed: tuple[tuple[str, str], ...] = ()
    if header:
        # Many tools write row numbers in a first column without a name.
        given = [name.strip() or f"unnamed_{i}" for i, name in enumerate(first, start=1)]
        if not lenient:
            refuse_duplicates(given, str(path), any_case=False)
        names = numbered(given)
        renamed = tuple((old, new) for old, new in zip(given, names, strict=True) if old != new)
    else:
        names = tuple(f"column_{i}" for i in range(1, len(first) + 1))
    above = head[: len(head) - len(head.lstrip("\r\n"))]
    line_end = re.search(r"\r\n|\r|\n", re.sub(r'"[^"]*"', "", head))
    return Dialect(
        delimiter=delimiter,
        columns=names,
        line_end=line_end[0] if line_end else "",
        empty_lines=len(above.splitlines()),
        encoding=encoding,
        header=header,
        renamed=renamed,
    )


def numbered(names: Sequence[str]) -> tuple[str, ...]:
    """Tell columns of one name apart, whatever its case.

    >>> numbered(["x", "IOD", "x", "iod"])
    ('x', 'IOD', 'x_2', 'iod_2')
    """
    given = {name.casefold() for name in names}
    taken: set[str] = set()
    told = []
    for name in names:
        apart = itertools.chain([name], (f"{name}_{i}" for i in itertools.count(2)))
        free = (
            n
            for n in apart
            if n.casefold() not in taken and (n == name or n.casefold() not in given)
        )
        told.append(next(free))
        taken.add(told[-1].casefold())
    return tuple(told)


def dialect_of(source: Source, path: Path) -> Dialect:
    """The dialect of one file of a source, read as the source says."""
    return csv_dialect(
        path,
        encoding=source.encoding,
        delimiter=source.delimiter,
        header=source.header,
        lenient=source.lenient,
    )


def require_same_columns(dialects: Mapping[Path, Dialect]) -> None:
    """Refuse files of which one has other columns than the first."""
    (first, as_first), *others = dialects.items()
    for path, dialect in others:
        if set(dialect.columns) != set(as_first.columns):
            raise InputError(
                f"{path} has other columns than {first}; one table is files with the same columns."
            )


def chosen_table(source: Source, tables: Collection[str], word: str = "table") -> str:
    """Choose the table a user names of those a file has, or the only one."""
    file = source.paths[0]
    if not tables:
        raise InputError(
            f"{file} has no {word}s with anything in them; there is nothing to measure."
        )
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
    """Call standard input so in messages, not by the file it was copied to."""
    from equipoise.engines.readers.stdin import NAME

    try:
        yield
    except InputError as error:
        if source.name == NAME:
            error.args = (str(error).replace(str(source.paths[0]), NAME),)
        raise


def explain_renamed(error: ColumnNotFound, source: Source) -> ColumnNotFound:
    """Say how a column is called that has another name here than in its file."""
    if source.kind != "csv" or source.sql is not None:
        return error
    for path in source.paths:
        for old, new in dialect_of(source, path).renamed:
            if old == error.column:
                error.args = (_RENAMED.format(old=old, new=new, table=source.name),)
    return error


def text_lines(text: io.TextIOWrapper, path: object) -> Iterator[str]:
    """Give the lines of a text; one without end would fill the memory."""
    while line := text.readline(_LONGEST_RECORD):
        if len(line) == _LONGEST_RECORD and not line.endswith(("\n", "\r")):
            raise InputError(f"{path} has a line that is too long for a table.")
        yield line


def refuse_long_end(path: Path) -> None:
    """Refuse a file whose last line is too long; beyond 32 MB DuckDB leaves it out and says nothing."""
    with path.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(size - 2 * _LONGEST_RECORD, 0))
        end = file.read().rstrip(b"\r\n")
    if len(end) > _LONGEST_RECORD and b"\n" not in end and b"\r" not in end:
        raise InputError(f"{path} has a line that is too long for a table.")


def _head(path: Path, encoding: str) -> str:
    with opened(path) as file:
        raw = file.read(1 << 16)
        if b"\n" not in raw and b"\r" not in raw:  # a header of very many columns
            raw += file.read(_LONGEST_LINE)
            if len(raw) > _LONGEST_LINE and b"\n" not in raw and b"\r" not in raw:
                raise InputError(
                    f"{path} has no line break in its first {len(raw):,} bytes; it is no table."
                )
    if b"\0" in raw and not encoding.startswith(("utf-16", "utf-32")):
        raise InputError(
            f"{path} is not text; it has an ending of a CSV file but binary content. If it is UTF-16 "
            "without a byte-order mark, say so with --encoding utf-16-le (or utf-16-be)."
        )
    # A character cut in two at the end of the block is not a fault of the file.
    decoder = codecs.getincrementaldecoder("utf-8-sig" if encoding == "utf-8" else encoding)()
    try:
        return decoder.decode(raw)
    except UnicodeError:
        raise not_encoded(path, encoding) from None


@contextlib.contextmanager
def opened(path: Path) -> Iterator[IO[bytes]]:
    """Open a file, packed or not, or say why it cannot be read."""
    try:
        with cast(
            "IO[bytes]",
            gzip.open(path) if path.name.lower().endswith(".gz") else path.open("rb"),
        ) as file:
            yield file
    except (OSError, EOFError, zlib.error) as error:
        reason = getattr(error, "strerror", None) or error
        raise SourceNotFound(f"{path} cannot be read: {reason}.") from None


def marked_encoding(path: Path, encoding: str) -> str:
    """Give the encoding that a byte-order mark tells, unless one without such marks is asked for."""
    if not encoding.startswith(("utf-8", "utf-16", "utf-32")):
        return encoding
    with opened(path) as file:
        return _by_mark(file.read(4)) or encoding


def _by_mark(raw: bytes) -> str | None:
    # The mark of UTF-32 begins like that of UTF-16.
    if raw.startswith((codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)):
        return "utf-32"
    return "utf-16" if raw.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) else None


def guess_encoding(path: Path, *, whole: bool = False) -> str:
    r"""Tell in which encoding a text is written, by its first megabyte or by all of it.

    A byte-order mark decides; else text that is not UTF-8 is taken for the Windows code page,
    in which nearly every byte is a character, or for UTF-16 if every other byte is zero.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "a.csv"
    >>> _ = path.write_bytes("nom\nRené\n".encode("latin-1"))
    >>> guess_encoding(path)
    'cp1252'
    """
    with opened(path) as file:
        raw = file.read(_BLOCK)
        marked = _by_mark(raw)
        if marked is not None:
            return marked
        if b"\0" in raw:
            zeros = [raw[i::2].count(0) * 2 / len(raw) for i in (0, 1)]
            return "utf-16-be" if zeros[0] > 0.4 else "utf-16-le" if zeros[1] > 0.4 else "utf-8"
        decoder, is_utf8, strange = codecs.getincrementaldecoder("utf-8")(), True, False
        while raw:
            try:
                decoder.decode(raw)
            except UnicodeError:
                is_utf8 = False
                decoder.reset()
            strange = strange or bool(_NOT_CP1252.search(raw))
            raw = file.read(_BLOCK) if whole else b""
    return "utf-8" if is_utf8 else "latin-1" if strange else "cp1252"


def as_utf8(path: Path, encoding: str, folder: str) -> Path:
    """Copy a text file in another encoding as UTF-8; databases know few encodings, and badly."""
    decoder = codecs.getincrementaldecoder(encoding)()
    with opened(path) as file, tempfile.NamedTemporaryFile(dir=folder, delete=False) as copy:
        try:
            while block := file.read(_BLOCK):
                copy.write(decoder.decode(block).encode())
            copy.write(decoder.decode(b"", final=True).encode())
        except UnicodeError:
            raise not_encoded(path, encoding) from None
    return Path(copy.name)


def not_encoded(path: object, encoding: str) -> InputError:
    """Say that a file is not in an encoding, and what to do."""
    return InputError(
        f"{path} is not {encoding.upper()} text; if it is in another encoding, say so, as in "
        "--encoding cp1252 (or latin-1, utf-16)."
    )


def _best_delimiter(head: str) -> str:
    def score(delimiter: str) -> tuple[int, int]:
        widths = [len(r) for r in _records(head, delimiter)]
        width = widths[0]
        # A long block may end inside a record, so the last line proves nothing.
        same = sum(w == width for w in widths[1:-1])
        return (width if width > 1 else 0, same)

    return max(DELIMITERS, key=score)


def _records(head: str, delimiter: str) -> list[list[str]]:
    try:
        lines = io.StringIO(head, newline="")
        records = (r for r in csv.reader(lines, delimiter=delimiter) if r)
        return list(itertools.islice(records, _FIRST_RECORDS)) or [[]]
    except csv.Error as error:
        raise InputError(f"the header cannot be read as CSV: {error}.") from None


def refuse_duplicates(names: Sequence[str], table: str, *, any_case: bool = True) -> None:
    """Refuse columns of one name; or, in any case, that differ only in it."""
    seen: dict[str, str] = {}
    for name in names:
        key = name.casefold() if any_case else name
        other = seen.get(key)
        if other == name:
            offer = "" if any_case else ", or number them with --lenient (lenient=True)"
            raise InputError(f"{table} has more than one column named {name!r}; rename one{offer}.")
        if other is not None:
            raise InputError(
                f"{table} has columns {other!r} and {name!r}, which differ only in case; rename one."
            )
        seen[key] = name
