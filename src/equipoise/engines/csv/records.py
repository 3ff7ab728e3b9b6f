r"""CSV files that a database cannot read as they are, read record by record and copied to Parquet.

This is needed for files with several kinds of line breaks, and for files with broken lines that
a user wants to skip. A broken line is skipped and counted, never padded, cut or shifted.
"""

from __future__ import annotations

import csv
import io
import itertools
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from equipoise.counts.skipped import NOTHING, SHOWN, Skipped
from equipoise.engines.csv.dialects import CsvDialect, csv_dialect
from equipoise.engines.csv.encodings import not_encoded, open_bytes
from equipoise.engines.stored import FilePath
from equipoise.errors import InputError, NotATable

NULL = r"\N"
"""How dumps of Postgres, MySQL and Hive write a missing value: bare, and alone in its field."""

_LONGEST_RECORD = 1 << 21
_MARK = "\ufdd0"  # a code point that is no character, so that no text has it
_VALUES = 200_000
"""Maximum number of values held in memory at once."""


def copy_records(
    path: FilePath, dialect: CsvDialect, target: Path, *, name: str, lenient: bool
) -> Skipped:
    """Copy the rows of a CSV file; broken lines are skipped if lenient, and otherwise refused."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    schema = pa.schema([(column, pa.string()) for column in dialect.columns])
    records = Records(path, dialect, name=name, lenient=lenient)
    size = max(1, _VALUES // len(dialect.columns))
    with pq.ParquetWriter(target, schema, compression="zstd") as writer:
        rows = iter(records)
        while batch := list(itertools.islice(rows, size)):
            arrays = [pa.array(column, pa.string()) for column in zip(*batch, strict=True)]
            writer.write_batch(pa.record_batch(arrays, schema=schema))
    records.require_table()
    return records.skipped


@dataclass
class Records:
    r"""The rows of a CSV file in their order, with None for missing values.

    Python's reader accepts any line break. What was skipped is known at the end.
    """

    path: FilePath
    dialect: CsvDialect
    name: str
    lenient: bool
    skipped: Skipped = NOTHING
    rows: int = 0
    _marked: bool = field(default=False, repr=False)

    def __iter__(self) -> Iterator[list[str | None]]:
        encoding = self.dialect.encoding
        with (
            open_bytes(self.path) as file,
            io.TextIOWrapper(
                file, encoding="utf-8-sig" if encoding == "utf-8" else encoding, newline=""
            ) as text,
        ):
            try:
                yield from self._rows(text)
            except UnicodeError:
                raise not_encoded(self.name, encoding) from None

    def require_table(self) -> None:
        """Refuse a file in which most lines are not rows."""
        if self.skipped.lines > self.rows:
            columns = len(self.dialect.columns)
            raise NotATable(
                f"{self.name} is not a table of {columns:,} columns: {self.skipped.lines:,} lines have "
                f"a different number of fields, and {self.rows:,} have this number; check its delimiter and "
                "its first line."
            )

    def _rows(self, text: io.TextIOWrapper) -> Iterator[list[str | None]]:
        width, begun = len(self.dialect.columns), not self.dialect.header
        reader = csv.reader(self._lines(text), delimiter=self.dialect.delimiter, strict=True)
        while True:
            start, self._marked = reader.line_num + 1, False
            try:
                record = next(reader)
            except StopIteration:
                return
            except csv.Error as error:
                if not begun:
                    raise InputError(
                        f"the header of {self.name} is not well-formed CSV: {error}; fix the file."
                    ) from None
                self._skip(start, reader.line_num, f"is not well-formed CSV: {error}")
                continue
            if not begun:
                begun = bool(record)
                continue
            # An empty line is a missing value in a table of one column, and nothing in others.
            fields = record if record or width > 1 else [""]
            if len(fields) == width:
                self.rows += 1
                yield [self._value(value) for value in fields]
            elif fields:
                what = f"has {len(fields)} fields where {width} are expected"
                self._skip(start, reader.line_num, what)

    def _lines(self, text: io.TextIOWrapper) -> Iterator[str]:
        """Yield the lines with bare nulls marked, since the reader drops the quotes of others."""
        sign = re.escape(self.dialect.delimiter)
        bare = re.compile(rf"(?:^|(?<={sign}))\\N(?={sign}|[\r\n]|$)")
        for line in _text_lines(text, self.name):
            if NULL in line:
                self._marked = True
                yield bare.sub(_MARK, line)
            else:
                yield line

    def _value(self, value: str) -> str | None:
        if not value or value == _MARK:
            return None
        # A mark inside a longer value was on a separate line in quotes, and is text.
        return value.replace(_MARK, NULL) if self._marked else value

    def _skip(self, start: int, end: int, what: str) -> None:
        if not self.lenient:
            raise InputError(f"line {start} of {self.name} {what}; {MEND}.")
        first = (f"line {start}",) if len(self.skipped.first) < SHOWN else ()
        self.skipped += Skipped(end - start + 1, first)


MEND = "fix the file, or skip such lines with `lenient=True`"
"""Advice about a broken line."""


def padded_records(path: FilePath, encoding: str) -> tuple[tuple[str, ...], Iterator[list[str]]]:
    """Read a file in which most lines have too many or too few fields, cut or padded.

    This shows what a table is about; no rows are taken from it.
    """
    dialect = csv_dialect(path, encoding=encoding, lenient=True)
    width = len(dialect.columns)

    def records() -> Iterator[list[str]]:
        with (
            open_bytes(path) as file,
            io.TextIOWrapper(file, encoding=dialect.encoding, errors="replace", newline="") as text,
        ):
            reader = csv.reader(_text_lines(text, path), delimiter=dialect.delimiter)
            next(record for record in reader if record)
            for record in reader:
                if record:
                    yield (record + [""] * width)[:width]

    return dialect.columns, records()


def _text_lines(text: io.TextIOWrapper, path: object) -> Iterator[str]:
    """Yield the lines of a text; refuse one that would fill the memory."""
    while line := text.readline(_LONGEST_RECORD):
        if len(line) == _LONGEST_RECORD and not line.endswith(("\n", "\r")):
            raise InputError(f"{path} has a line that is too long for a table.")
        yield line


def refuse_long_end(path: FilePath) -> None:
    """Refuse a file with a very long last line; DuckDB silently drops one beyond 32 MB."""
    with path.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(size - 2 * _LONGEST_RECORD, 0))
        end = file.read().rstrip(b"\r\n")
    if len(end) > _LONGEST_RECORD and b"\n" not in end and b"\r" not in end:
        raise InputError(f"{path} has a line that is too long for a table.")
