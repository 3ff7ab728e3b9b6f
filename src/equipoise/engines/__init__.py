"""Engines, which count and fetch rows. Each declares what it can read and write."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from equipoise.engines.base import Engine


EXTRAS = ("postgres", "spark")
"""Engines whose drivers are extras of the same name."""


def declarations() -> list[tuple[str, str, str, str]]:
    """List what each engine declares: its name, a heading, what, and how."""
    known = engines()
    found = []
    for name, engine in known.items():
        found += [(name, "reads", what, how) for what, how in engine.reads.items()]
        if engine.writes:
            found.append((name, "writes", ", ".join(engine.writes), "written atomically"))
        found += [(name, "", what, how) for what, how in engine.ways.items()]
    found += [
        (name, "", "is not installed", f"pip install 'equipoise[{name}]'")
        for name in EXTRAS
        if name not in known
    ]
    return found


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
