"""The default engine: DuckDB reads, counts and writes, in parallel and beyond memory."""

from __future__ import annotations

from equipoise.engines.duckdb._engine import DuckDBEngine, shared_engine

__all__ = ["DuckDBEngine", "shared_engine"]
