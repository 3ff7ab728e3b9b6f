"""What is known of a lake's tables, in DuckDB files that are always complete.

The files that readers open are never written to. A run that brings an index up to date gathers what is
new in a file of its own, and commits it every few tables. At the end it moves a new base into place
or, if the lake is large, adds a delta to the base (``_segments.py``). A run that is killed leaves the
index as it was and what it has gathered, and the next run goes on with that. A lock keeps two runs
apart; the second waits, and then finds nothing left to do.
"""

from __future__ import annotations

from equipoise.lake.tables.index._lookup import Workers
from equipoise.lake.tables.index._reader import Index
from equipoise.lake.tables.index._records import Table, records_of, table_id
from equipoise.lake.tables.index._update import Refreshed, load, open_current, refresh
from equipoise.lake.tables.index._working_copy import sweep

__all__ = [
    "Index",
    "Refreshed",
    "Table",
    "Workers",
    "load",
    "open_current",
    "records_of",
    "refresh",
    "sweep",
    "table_id",
]
