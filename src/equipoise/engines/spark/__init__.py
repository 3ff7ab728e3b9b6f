"""Apache Spark: tables of a catalog and DataFrames are counted and chosen from where they are."""

from __future__ import annotations

from equipoise.engines.spark._engine import SparkEngine

__all__ = ["SparkEngine"]
