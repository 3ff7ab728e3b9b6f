"""Engines, which count and fetch rows. Each declares what it can read and write."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from equipoise.engines.base import Engine


def engines() -> dict[str, type[Engine]]:
    """Return the engines by name, imported only now because loading a database takes time.

    >>> {name: engine.writes for name, engine in engines().items()}["memory"]
    ('.csv', '.parquet', '.jsonl')
    """
    from equipoise.engines.duckdb import DuckDBEngine
    from equipoise.engines.memory import MemoryEngine

    known: tuple[type[Engine], ...] = (DuckDBEngine, MemoryEngine)
    return {engine.name: engine for engine in known}
