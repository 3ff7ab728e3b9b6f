"""PostgreSQL: tables are counted, chosen from and written where they are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from equipoise.engines.postgres._engine import PostgresEngine

__all__ = ["PostgresEngine"]


def __getattr__(name: str) -> Any:
    """Load the engine when it is first used: addresses are read without its driver."""
    if name != "PostgresEngine":
        raise AttributeError(name)
    from equipoise.engines.postgres._engine import PostgresEngine

    return PostgresEngine
