"""From what a user names to a table: a bundled data set by its name, or anything else there is."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from equipoise.counts.reading import Reading
from equipoise.datasets.cards import names
from equipoise.datasets.storage import path
from equipoise.engines import sources
from equipoise.engines.sources import DELIMITERS, Source, guess_encoding


def locate(data: Any, **options: Any) -> Source:
    """Find what a user names: a bundled data set, a path, a database table or a frame.

    >>> locate("adult").kind
    'parquet'
    """
    if isinstance(data, str) and data in names() and not Path(data).exists():
        return replace(sources.locate(path(data), **options), name=data)
    return sources.locate(data, **options, known=names())


def locate_pool(
    data: Any, reading: Reading, *, encoding: str | None = None, delimiter: str | None = None
) -> Source:
    """Find a table whose rows are added to another, which was read in some way.

    Its rows are held to the same condition and query. It may be written otherwise: unless told,
    its delimiter is found, and it is read in the other table's encoding only if it is not UTF-8.

    >>> from equipoise.counts import Condition
    >>> locate_pool("adult", Reading(where=Condition("age > 30"))).where.text
    'age > 30'
    """
    unusual = reading.delimiter if reading.delimiter not in DELIMITERS else None
    found = locate(
        data,
        where=reading.where,
        sql=reading.sql,
        encoding=encoding or reading.encoding,
        delimiter=delimiter or unusual,
        header=reading.header,
        lenient=reading.lenient,
    )
    other = encoding is None and found.kind == "csv" and found.encoding != "utf-8"
    if other and all(guess_encoding(file, whole=True) == "utf-8" for file in found.paths):
        return replace(found, encoding="utf-8")
    return found
