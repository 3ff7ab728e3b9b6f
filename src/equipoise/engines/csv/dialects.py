"""Dialects of CSV files: delimiter, columns and line breaks."""

from __future__ import annotations

import codecs
import csv
import io
import itertools
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePath

from equipoise.engines.column_names import numbered, refuse_duplicates
from equipoise.engines.csv.encodings import marked_encoding, not_encoded, open_bytes
from equipoise.engines.kinds import extension
from equipoise.engines.stored import FilePath
from equipoise.errors import InputError

_DELIMITERS = (",", ";", "|", "\t")
_LONGEST_LINE = 1 << 24
_FIRST_RECORDS = 20


@dataclass(frozen=True)
class CsvDialect:
    """How one CSV file is written."""

    delimiter: str
    columns: tuple[str, ...]
    """Names that differ in more than case, as databases require: not IOD and iod, but iod_2."""
    line_end: str
    """Empty if there is only one line."""
    empty_lines: int
    """Number of empty lines above the header."""
    encoding: str = "utf-8"
    header: bool = True
    renamed: tuple[tuple[str, str], ...] = ()
    """Old and new names of columns that are called differently here than in the file."""


def csv_dialect(
    path: FilePath,
    *,
    encoding: str = "utf-8",
    delimiter: str | None = None,
    header: bool = True,
    lenient: bool = False,
) -> CsvDialect:
    """Read the header of a CSV file, and find the delimiter if it is not given.

    Columns that differ only in case are numbered. Columns of the same name are refused, or
    numbered too if reading is lenient. The delimiter is the one that splits the first lines into
    the same, largest number of fields. Databases guess from all lines, and read a table with one
    broken line as a table of one column.
    """
    encoding = marked_encoding(path, encoding)
    head = _head(path, encoding)
    if not head.strip():
        raise InputError(f"{path} is empty; a table needs a header and rows.")
    if delimiter is None:
        delimiter = (
            "\t" if extension(PurePath(path.name)) in (".tsv", ".tab") else _best_delimiter(head)
        )
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
    return CsvDialect(
        delimiter=delimiter,
        columns=names,
        line_end=line_end[0] if line_end else "",
        empty_lines=len(above.splitlines()),
        encoding=encoding,
        header=header,
        renamed=renamed,
    )


def require_same_columns(dialects: Mapping[FilePath, CsvDialect]) -> None:
    """Refuse a file that has other columns than the first."""
    (first, as_first), *others = dialects.items()
    for path, dialect in others:
        if set(dialect.columns) != set(as_first.columns):
            raise InputError(
                f"{path} has different columns from {first}; all files of a table must have the same columns."
            )


def _head(path: FilePath, encoding: str) -> str:
    with open_bytes(path) as file:
        raw = file.read(1 << 16)
        if b"\n" not in raw and b"\r" not in raw:  # a header of very many columns
            raw += file.read(_LONGEST_LINE)
            if len(raw) > _LONGEST_LINE and b"\n" not in raw and b"\r" not in raw:
                raise InputError(
                    f"{path} has no line break in its first {len(raw):,} bytes; it is not a table."
                )
    if b"\0" in raw and not encoding.startswith(("utf-16", "utf-32")):
        raise InputError(
            f"{path} is not text; it has the extension of a CSV file but binary content. If it is UTF-16 "
            "without a byte-order mark, set `encoding='utf-16-le'` (or utf-16-be)."
        )
    # An incremental decoder accepts a character that is cut in two at the end of the block.
    decoder = codecs.getincrementaldecoder("utf-8-sig" if encoding == "utf-8" else encoding)()
    try:
        return decoder.decode(raw)
    except UnicodeError:
        raise not_encoded(path, encoding) from None


def _best_delimiter(head: str) -> str:
    def score(delimiter: str) -> tuple[int, int]:
        widths = [len(r) for r in _records(head, delimiter)]
        width = widths[0]
        # A long block may end inside a record, so the last line is not compared.
        same = sum(w == width for w in widths[1:-1])
        return (width if width > 1 else 0, same)

    return max(_DELIMITERS, key=score)


def _records(head: str, delimiter: str) -> list[list[str]]:
    try:
        lines = io.StringIO(head, newline="")
        records = (r for r in csv.reader(lines, delimiter=delimiter) if r)
        return list(itertools.islice(records, _FIRST_RECORDS)) or [[]]
    except csv.Error as error:
        raise InputError(f"the header cannot be read as CSV: {error}.") from None
