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
from equipoise.errors import InputError, SourceNotFound, did_you_mean
from equipoise.values import MISSING, as_value

if TYPE_CHECKING:
    import pyarrow as pa

Kind: TypeAlias = Literal["csv", "parquet", "json", "duckdb", "frame", "relation"]

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
    ".db": "duckdb",
}
DELIMITERS = (",", ";", "|", "\t")

READING = tuple(f.name for f in fields(Reading))
"""What a user may say about how a table is read: options of :func:`locate`."""

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
        Its name inside a database file.
    data
        The Arrow table or the relation itself.
    sql
        A query to run over it, in which it is called ``input``.
    where
        A condition that its rows, or those of the query, satisfy; others are not seen.
    encoding, delimiter
        How CSV files are read; a delimiter that is not given is found.
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

    @property
    def reading(self) -> Reading:
        """How it is read, to be recorded."""
        encoding = None if self.encoding == "utf-8" else self.encoding
        return Reading(where=self.where, sql=self.sql, encoding=encoding, delimiter=self.delimiter)


def locate(
    data: Any,
    *,
    where: str | Condition | None = None,
    sql: str | None = None,
    encoding: str | None = None,
    delimiter: str | None = None,
    columns: Collection[str] = (),
    known: Collection[str] = (),
) -> Source:
    """Find out what a user means: a path, folder, glob, ``file.duckdb::table`` or a frame.

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
    }
    if isinstance(data, Source):
        return data
    if isinstance(data, (str, os.PathLike)):
        return _from_path(os.fspath(data), options, known)
    return _from_frame(data, options, () if sql or where else columns)


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
    path = Path(text)
    file, separator, table = text.partition("::")
    if separator and not path.exists():
        return Source(
            name=text, kind="duckdb", paths=(_existing(file),), table=table or None, **options
        )
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
    if len(kinds) > 1 or (kinds == {"duckdb"} and len(paths) > 1):
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
            f"file.duckdb::table, or the name of a bundled data set (equipoise data list).{near}"
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
    """Tell what a file is by its ending.

    >>> kind_of(Path("people.csv.gz"))
    'csv'
    """
    try:
        return ENDINGS[_ending(path)]
    except KeyError:
        raise InputError(
            f"{path} has an ending that says nothing of its format; "
            f"{', '.join(ENDINGS)} (and .gz) are read."
        ) from None


@dataclass(frozen=True)
class Dialect:
    """How one CSV file is written: its delimiter, its columns, and its lines.

    Attributes
    ----------
    line_end
        What ends its lines; nothing, if there is but one line.
    empty_lines
        How many empty lines stand above the header.
    """

    delimiter: str
    columns: tuple[str, ...]
    line_end: str
    empty_lines: int


def csv_dialect(
    path: Path, *, encoding: str, delimiter: str | None, lenient: bool = False
) -> Dialect:
    """Read the header of a CSV file, and find the delimiter if it is not given.

    Columns of one name are refused, or numbered if it shall be lenient.

    The delimiter is the one that splits the first lines into the same, largest number
    of fields. Guessing from all lines, as databases do, reads a table with one broken
    line as a table of one column.
    """
    head = _head(path, encoding)
    if not head.strip():
        raise InputError(f"{path} is empty; a table needs a header and rows.")
    if delimiter is None:
        delimiter = "\t" if _ending(path) in (".tsv", ".tab") else _best_delimiter(head)
    header = [name.strip() for name in _records(head, delimiter)[0]]
    # Many tools write row numbers in a first column without a name.
    names = tuple(name or f"unnamed_{i}" for i, name in enumerate(header, start=1))
    if lenient:
        names = _numbered(names)
    refuse_duplicates(names, str(path))
    above = head[: len(head) - len(head.lstrip("\r\n"))]
    line_end = re.search(r"\r\n|\r|\n", re.sub(r'"[^"]*"', "", head))
    return Dialect(delimiter, names, line_end[0] if line_end else "", len(above.splitlines()))


def _numbered(names: Sequence[str]) -> tuple[str, ...]:
    """Tell columns of one name apart: the second x is x_2."""
    taken: set[str] = set()
    told = []
    for name in names:
        apart = (name, *(f"{name}_{i}" for i in range(2, len(names) + 2)))
        told.append(next(n for n in apart if n.casefold() not in taken))
        taken.add(told[-1].casefold())
    return tuple(told)


def lenient_records(path: Path, encoding: str) -> tuple[tuple[str, ...], Iterator[list[str]]]:
    """Read a CSV file whose lines have too many or too few fields: filled up, or cut.

    Enough to know what a table is about; no rows are taken from it.
    """
    dialect = csv_dialect(path, encoding=encoding, delimiter=None, lenient=True)
    width = len(dialect.columns)

    def records() -> Iterator[list[str]]:
        with (
            opened(path) as file,
            io.TextIOWrapper(file, encoding=encoding, errors="replace", newline="") as text,
        ):
            reader = csv.reader(_lines(text, path), delimiter=dialect.delimiter)
            next(record for record in reader if record)
            for record in reader:
                if record:
                    yield (record + [""] * width)[:width]

    return dialect.columns, records()


def _lines(text: io.TextIOWrapper, path: Path) -> Iterator[str]:
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
        raise InputError(f"{path} is not text; it has an ending of a CSV file but binary content.")
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
        if raw.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
            return "utf-16"
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


def refuse_duplicates(names: Sequence[str], table: str) -> None:
    """Refuse columns of one name, or that differ only in case."""
    seen: dict[str, str] = {}
    for name in names:
        other = seen.get(name.casefold())
        if other == name:
            raise InputError(f"{table} has more than one column named {name!r}; rename one.")
        if other is not None:
            raise InputError(
                f"{table} has columns {other!r} and {name!r}, which differ only in case; rename one."
            )
        seen[name.casefold()] = name
