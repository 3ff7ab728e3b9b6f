"""From what a user names to a table that an engine can open."""

from __future__ import annotations

import csv
import glob
import gzip
import io
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeAlias

from equipoise.errors import InputError, SourceNotFound

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
ENCODINGS = ("utf-8", "utf-16", "latin-1")
DELIMITERS = (",", ";", "|", "\t")


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
        The frame or relation itself.
    sql
        A query to run over it, in which it is called ``input``.
    encoding, delimiter
        How CSV files are read; a delimiter that is not given is found.
    """

    name: str
    kind: Kind
    paths: tuple[Path, ...] = ()
    table: str | None = None
    data: Any = field(default=None, repr=False, compare=False)
    sql: str | None = None
    encoding: str = "utf-8"
    delimiter: str | None = None


def locate(
    data: Any,
    *,
    sql: str | None = None,
    encoding: str | None = None,
    delimiter: str | None = None,
) -> Source:
    """Find out what a user means: a path, folder, glob, ``file.duckdb::table`` or a frame.

    >>> import pyarrow as pa
    >>> locate(pa.table({"a": [1]})).kind
    'frame'
    """
    encoding = (encoding or "utf-8").lower().replace("_", "-")
    if encoding not in ENCODINGS:
        raise InputError(
            f"encoding {encoding!r} cannot be read; use one of {', '.join(ENCODINGS)}, or convert "
            "the file to UTF-8 first."
        )
    if delimiter is not None and len(delimiter) != 1:
        raise InputError(f"a delimiter is one character, not {delimiter!r}.")
    options: dict[str, Any] = {"sql": sql, "encoding": encoding, "delimiter": delimiter}
    if isinstance(data, Source):
        return data
    if isinstance(data, (str, os.PathLike)):
        return _from_path(os.fspath(data), options)
    return _from_frame(data, options)


def _from_frame(data: Any, options: dict[str, Any]) -> Source:
    module = type(data).__module__.partition(".")[0]
    if module in ("duckdb", "_duckdb") and hasattr(data, "query"):
        return Source(name="the relation", kind="relation", data=data, **options)
    if isinstance(data, Mapping) or hasattr(data, "__arrow_c_stream__") or module == "pandas":
        names = [str(c) for c in (data if isinstance(data, Mapping) else _columns(data))]
        _refuse_duplicates(names, "the frame")
        return Source(name="the frame", kind="frame", data=data, **options)
    raise InputError(
        f"a {type(data).__name__} cannot be measured; give a path, a pandas, polars or Arrow "
        "table, a DuckDB relation, or Counts."
    )


def _columns(data: Any) -> list[str]:
    if hasattr(data, "column_names"):
        return list(data.column_names)
    return list(data.columns) if hasattr(data, "columns") else []


def _from_path(text: str, options: dict[str, Any]) -> Source:
    file, separator, table = text.partition("::")
    if separator:
        return Source(
            name=text, kind="duckdb", paths=(_existing(file),), table=table or None, **options
        )
    path = Path(text)
    if path.is_dir():
        return _many(text, sorted(p for p in path.rglob("*") if _is_data(p, path)), options)
    if glob.has_magic(text) and not path.exists():
        found = sorted(Path(p) for p in glob.glob(text, recursive=True))
        return _many(text, [p for p in found if p.is_file()], options)
    return Source(name=text, kind=kind_of(_existing(text)), paths=(path,), **options)


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


def _existing(text: str) -> Path:
    path = Path(text)
    if not path.exists():
        near = _nearest(path)
        raise SourceNotFound(
            f"{text} does not exist; give a file, a folder, a glob, a database table as "
            f"file.duckdb::table, or the name of a bundled data set (equipoise data list).{near}"
        )
    if not os.access(path, os.R_OK):
        raise SourceNotFound(f"{text} cannot be read; check its permissions.")
    return path


def _nearest(path: Path) -> str:
    from equipoise.errors import did_you_mean

    folder = path.parent
    try:
        return did_you_mean(path.name, sorted(os.listdir(folder))) if folder.is_dir() else ""
    except OSError:
        return ""


def _ending(path: Path) -> str:
    name = path.name.lower()
    for packed in (".gz", ".zst"):
        name = name.removesuffix(packed)
    return Path(name).suffix


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
    """How one CSV file is written: its delimiter and its columns."""

    delimiter: str
    columns: tuple[str, ...]


def csv_dialect(path: Path, *, encoding: str, delimiter: str | None) -> Dialect:
    """Read the header of a CSV file, and find the delimiter if it is not given.

    The delimiter is the one that splits the first lines into the same, largest number
    of fields. Guessing from all lines, as databases do, reads a table with one broken
    line as a table of one column.
    """
    head = _head(path, encoding)
    if not head.strip():
        raise InputError(f"{path} is empty; a table needs a header and rows.")
    if "\0" in head:
        raise InputError(f"{path} is not text; it has an ending of a CSV file but binary content.")
    if delimiter is None:
        delimiter = "\t" if _ending(path) in (".tsv", ".tab") else _best_delimiter(head)
    names = tuple(name.strip() for name in _records(head, delimiter)[0])
    _refuse_duplicates(names, str(path))
    if any(not name for name in names):
        raise InputError(
            f"the header of {path} has a column without a name; give every column one."
        )
    return Dialect(delimiter, names)


def _head(path: Path, encoding: str) -> str:
    opener = gzip.open if path.name.lower().endswith(".gz") else open
    try:
        with opener(path, "rb") as file:
            raw = file.read(1 << 16)
    except (OSError, EOFError) as error:
        raise SourceNotFound(f"{path} cannot be read: {error}.") from None
    text = raw.decode("utf-8-sig" if encoding == "utf-8" else encoding, errors="replace")
    # A character cut in two at the end of the block is not a fault of the file.
    if "�" in text[:-1] and encoding == "utf-8":
        raise not_utf8(path)
    return text


def not_utf8(path: object) -> InputError:
    """Say that a file is not UTF-8, and what to do."""
    return InputError(
        f"{path} is not UTF-8 text; if it is in another encoding, say so, as in "
        "--encoding latin-1 (or utf-16)."
    )


def _best_delimiter(head: str) -> str:
    def score(delimiter: str) -> tuple[int, int]:
        widths = [len(r) for r in _records(head, delimiter)[:20] if r]
        width = widths[0] if widths else 0
        # A long block may end inside a record, so the last line proves nothing.
        same = sum(w == width for w in widths[1:-1])
        return (width if width > 1 else 0, same)

    return max(DELIMITERS, key=score)


def _records(head: str, delimiter: str) -> list[list[str]]:
    try:
        return [r for r in csv.reader(io.StringIO(head), delimiter=delimiter) if r] or [[]]
    except csv.Error as error:
        raise InputError(f"the header cannot be read as CSV: {error}.") from None


def _refuse_duplicates(names: tuple[str, ...] | list[str], table: str) -> None:
    seen: dict[str, str] = {}
    for name in names:
        other = seen.setdefault(name.casefold(), name)
        if other is not name and (other == name or names.count(name) == 1):
            differ = "" if other == name else " (they differ only in case)"
            raise InputError(
                f"{table} has two columns named {other!r} and {name!r}{differ}; rename one."
                if differ
                else f"{table} has more than one column named {name!r}; rename one."
            )
