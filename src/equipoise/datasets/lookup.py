"""The table that a user names: a data set, a file, a database table or a frame."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from equipoise.counts.reading import Reading
from equipoise.datasets.cards import names
from equipoise.datasets.storage import path
from equipoise.engines import sources
from equipoise.engines.csv.dialects import csv_dialect
from equipoise.engines.csv.encodings import guess_encoding
from equipoise.engines.sources import Source


def locate(data: Any, **options: Any) -> Source:
    """Find the table that a user names: a data set, a path, a database table or a frame.

    >>> locate("adult").kind
    'parquet'
    """
    if isinstance(data, str) and data in names() and not Path(data).exists():
        return replace(sources.locate(path(data), **options), name=data)
    return sources.locate(data, **options, known=names())


def locate_pool(
    data: Any, reading: Reading, *, encoding: str | None = None, delimiter: str | None = None
) -> Source:
    """Find a table whose rows are added to another table.

    The condition and the query of the other table apply to it as well. By default its delimiter is
    detected if it is not that of the other table, and it is read in the other table's encoding only if
    it is not UTF-8.

    >>> from equipoise.counts import Condition
    >>> locate_pool("adult", Reading(where=Condition("age > 30"))).where.text
    'age > 30'
    """
    found = locate(data, **reading.but(encoding=encoding, delimiter=delimiter).options)
    if found.kind != "csv":
        return found
    if encoding is None and found.encoding != "utf-8":
        # Any text may be valid in another encoding, so all of it is checked for UTF-8.
        guessed = {guess_encoding(file, whole=True) for file in found.paths}
        found = replace(found, encoding="utf-8") if guessed == {"utf-8"} else found
    if delimiter is None and found.delimiter is not None and not _is_split(found):
        found = replace(found, delimiter=None)
    return found


def _is_split(source: Source) -> bool:
    """Whether a table has more than one column with the given delimiter."""
    dialects = (
        csv_dialect(file, encoding=source.encoding, delimiter=source.delimiter, lenient=True)
        for file in source.paths
    )
    return all(len(dialect.columns) > 1 for dialect in dialects)
