"""The table of counts that everything is a function of."""

from __future__ import annotations

from equipoise.counts.axes import Axis, Role
from equipoise.counts.cube import Counts
from equipoise.counts.reading import Condition, Reading
from equipoise.options.count import BinSpec, CountRequest, MissingPolicy, bin_names

__all__ = [
    "Axis",
    "BinSpec",
    "Condition",
    "CountRequest",
    "Counts",
    "MissingPolicy",
    "Reading",
    "Role",
    "bin_names",
]
