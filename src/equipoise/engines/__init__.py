"""Engines, which count and fetch rows. Each declares what it can read and write."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from equipoise.engines.base import Engine


def engines() -> dict[str, type[Engine]]:
    """Return the engines by name whose drivers are installed; loading them takes time.

    >>> {name: engine.writes for name, engine in engines().items()}["memory"]
    ('.csv', '.parquet', '.jsonl')
    """
    from equipoise.engines.duckdb import DuckDBEngine
    from equipoise.engines.memory import MemoryEngine

    known: list[type[Engine]] = [DuckDBEngine, MemoryEngine]
    with contextlib.suppress(ImportError):
        from equipoise.engines.postgres import PostgresEngine

        known.append(PostgresEngine)
    with contextlib.suppress(ImportError):
        from equipoise.engines.spark import SparkEngine

        known.append(SparkEngine)
    return {engine.name: engine for engine in known}
