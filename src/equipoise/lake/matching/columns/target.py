"""What a plan wants of a table: the columns and values of its base."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from equipoise.counts import Counts
from equipoise.engines.profiling import ColumnProfile, Profile
from equipoise.lake.matching.columns.likeness import ColumnContents
from equipoise.lake.matching.columns.relations import Relations, relations
from equipoise.values import MISSING


@dataclass(frozen=True)
class Wanted:
    """The columns of the base, and by name the values or the bin edges of those that a plan counts.

    If the base is not at hand, only the columns that the plan counts are known.
    """

    columns: tuple[ColumnProfile, ...]
    vocabularies: Mapping[str, Mapping[str, int]]
    bins: Mapping[str, tuple[float, ...]] = field(default_factory=dict)

    @property
    def required(self) -> tuple[str, ...]:
        """Columns without which no row can be used: the sensitive attributes and the label."""
        return (*self.vocabularies, *self.bins)

    @functools.cached_property
    def counted(self) -> Wanted:
        """The required columns alone: without counterparts of these, no other matters."""
        columns = tuple(c for c in self.columns if c.name in self.required)
        return Wanted(columns, self.vocabularies, self.bins)

    @functools.cached_property
    def contents(self) -> ColumnContents:
        """Values of the columns, prepared for comparison."""
        return ColumnContents(self.columns, recoded=self.vocabularies)

    @functools.cached_property
    def relations(self) -> Relations:
        """Relations between the columns."""
        return relations(self.contents, alike=True)


def wanted(counts: Counts, base: Profile | None = None) -> Wanted:
    """Derive what tables must provide from the counts of a plan and, if at hand, its base."""
    vocabularies = {
        axis.name: rows_by_value(counts, i)
        for i, axis in enumerate(counts.axes)
        if axis.name not in counts.bins
    }
    bins = {name: tuple(edges) for name, edges in counts.bins.items()}
    if base is not None:
        return Wanted(base.columns, vocabularies, bins)
    known = (
        ColumnProfile(name, "VARCHAR", 0, len(rows), rows, (), 0.0, None, ())
        for name, rows in vocabularies.items()
    )
    binned = (ColumnProfile(name, "DOUBLE", 0, 0, None, (), 1.0, None, ()) for name in bins)
    return Wanted((*known, *binned), vocabularies, bins)


def rows_by_value(counts: Counts, i: int) -> dict[str, int]:
    """Count the rows of each value of an axis, without missing values."""
    values = counts.axes[i].values
    rows = np.bincount(counts.codes[:, i], weights=counts.rows, minlength=len(values))
    return {v: int(n) for v, n in zip(values, rows, strict=True) if v is not MISSING}
