"""What is known of a lake's tables, in one DuckDB file that is always complete.

The index that readers open is never written to. A run that brings it up to date works on a copy
next to it, commits every few tables, and moves the copy into place at the end. A run that is killed
leaves the old index and the copy, and the next run continues with that copy. A lock keeps two runs
apart; the second waits, and then finds nothing left to do.
"""

from __future__ import annotations

from equipoise.lake.tables.index._reader import Index
from equipoise.lake.tables.index._records import Table
from equipoise.lake.tables.index._update import Refreshed, refresh
from equipoise.lake.tables.index._working_copy import sweep

__all__ = ["Index", "Refreshed", "Table", "refresh", "sweep"]
