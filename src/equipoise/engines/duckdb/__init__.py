"""The default engine: DuckDB reads, counts and writes, in parallel and beyond memory."""

from __future__ import annotations

from equipoise.engines.duckdb._engine import DuckDBEngine

__all__ = ["DuckDBEngine"]
