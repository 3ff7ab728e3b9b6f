"""The table of counts that everything is a function of."""

from __future__ import annotations

from equipoise.counts.cube import Axis, Counts, Role
from equipoise.counts.request import (
    MISSING_POLICIES,
    BinSpec,
    CountRequest,
    MissingPolicy,
    bin_names,
)

__all__ = [
    "MISSING_POLICIES",
    "Axis",
    "BinSpec",
    "CountRequest",
    "Counts",
    "MissingPolicy",
    "Role",
    "bin_names",
]
