"""From what a user names to a table: a bundled data set by its name, or anything else there is."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from equipoise.datasets.cards import names
from equipoise.datasets.storage import path
from equipoise.engines import sources
from equipoise.engines.sources import Source


def locate(data: Any, **options: Any) -> Source:
    """Find what a user names: a bundled data set, a path, a database table or a frame.

    >>> locate("adult").kind
    'parquet'
    """
    if isinstance(data, str) and data in names() and not Path(data).exists():
        return replace(sources.locate(path(data), **options), name=data)
    return sources.locate(data, **options, known=names())
