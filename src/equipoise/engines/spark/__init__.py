"""Apache Spark: tables of a catalog and DataFrames are counted and chosen from where they are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from equipoise.engines.spark._engine import SparkEngine

__all__ = ["SparkEngine"]


def __getattr__(name: str) -> Any:
    """Load the engine when it is first used: addresses are read without its driver."""
    if name != "SparkEngine":
        raise AttributeError(name)
    from equipoise.engines.spark._engine import SparkEngine

    return SparkEngine
