"""What a plan wants of a table: the columns and values of its base."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from equipoise.counts import Counts
from equipoise.engines.profiling import ColumnProfile, Profile
from equipoise.lake.matching.columns.likeness import ColumnContents
from equipoise.lake.matching.columns.relations import Relations, relations
from equipoise.values import MISSING

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True)
class Wanted:
    """The columns and values that a table must provide.

    Attributes
    ----------
    columns
        Columns of the base. If the base is not at hand, those that the plan counts.
    vocabularies
        Number of rows of each value, by sensitive attribute and label.
    bins
        Bin edges of the attributes that are binned numbers.
    """

    columns: tuple[ColumnProfile, ...]
    vocabularies: Mapping[str, Mapping[str, int]]
    bins: Mapping[str, tuple[float, ...]] = field(default_factory=dict)

    @property
    def required(self) -> tuple[str, ...]:
        """Columns without which no row can be used: the sensitive attributes and the label."""
        return (*self.vocabularies, *self.bins)

    @functools.cached_property
    def contents(self) -> ColumnContents:
        """Values of the columns, prepared for comparison."""
        return ColumnContents.of(self.columns, recoded=self.vocabularies)

    @functools.cached_property
    def relations(self) -> Relations:
        """Relations between the columns."""
        return relations(self.contents, alike=True)


def wanted(counts: Counts, base: Profile | None = None) -> Wanted:
    """Derive what tables must provide from the counts of a plan and, if at hand, its base."""
    vocabularies = {
        axis.name: {v: int(n) for v, n in zip(axis.values, rows, strict=True) if v is not MISSING}
        for axis, rows in zip(counts.axes, _margins(counts), strict=True)
        if axis.name not in counts.bins
    }
    bins = {name: tuple(edges) for name, edges in counts.bins.items()}
    if base is not None:
        return Wanted(base.columns, vocabularies, bins)
    known = [_known_by_counts(name, rows) for name, rows in vocabularies.items()]
    return Wanted((*known, *(_unknown(name) for name in bins)), vocabularies, bins)


def _margins(counts: Counts) -> list[NDArray[np.int64]]:
    return [
        np.bincount(counts.codes[:, i], weights=counts.rows, minlength=len(axis.values)).astype(
            np.int64
        )
        for i, axis in enumerate(counts.axes)
    ]


def _known_by_counts(name: str, values: Mapping[str, int]) -> ColumnProfile:
    return ColumnProfile(name, "VARCHAR", 0, len(values), values, (), 0.0, None, ())


def _unknown(name: str) -> ColumnProfile:
    return ColumnProfile(name, "DOUBLE", 0, 0, None, (), 1.0, None, ())
