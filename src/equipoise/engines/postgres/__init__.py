"""PostgreSQL: tables are counted, chosen from and written where they are."""

from __future__ import annotations

from equipoise.engines.postgres._engine import PostgresEngine

__all__ = ["PostgresEngine"]
