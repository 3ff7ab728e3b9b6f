"""The evidence for every pair of columns, taken by itself: headers, values and vocabularies."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from equipoise.engines.profiling import FEW_VALUES, Profile
from equipoise.lake.matching.columns.assignment import PLAUSIBLE
from equipoise.lake.matching.columns.headers import (
    SAME_MEANING,
    SAME_WORDS,
    header_similarity,
)
from equipoise.lake.matching.columns.likeness import ColumnContents, Likeness
from equipoise.lake.matching.columns.target import Wanted
from equipoise.lake.matching.columns.wording import Level, compare_headers
from equipoise.lake.matching.values.vocabulary import ValueMap, match_values
from equipoise.lake.tables.headers import is_opaque

_Matrix = NDArray[np.float64]


_MISSING_TEXTS = 3  # a table may have a few texts for missing values in addition to the base's

# Evidence is added up as logarithms of odds. A vocabulary that maps one to one as a whole rarely
# does so by chance. Headers count more than values, which many columns of one table share.
_CERTAIN_VALUES = 5.0
_HEADER_LOGS = ([0.0, 0.3, 0.6, 0.9, 1.0], [-2.0, -1.0, 2.0, 6.0, 8.0])


@dataclass(frozen=True)
class ValueMaps:
    """Maps from the values of a table to the vocabularies of required columns, made on demand."""

    want: Wanted
    table: Profile
    same_codes: bool
    codebook: Mapping[str, Mapping[str, str]]
    _certain: dict[tuple[str, int], bool] = field(default_factory=dict)

    def of(self, name: str, place: int) -> ValueMap:
        """Match the values of a column of the table with those of a required column."""
        column = self.table.columns[place]
        if column.values is None:
            why = f"{column.name} has more than {FEW_VALUES} values, too many for groups"
            return ValueMap({}, (), (), {}, None, certain=False, why=why)
        return match_values(
            self.want.vocabularies[name],
            column.values,
            same_codes=self.same_codes,
            codebook=self.codebook.get(name),
        )

    def is_certain(self, name: str, place: int) -> bool:
        """Whether all values are matched for certain."""
        key = name, place
        if key not in self._certain:
            self._certain[key] = self._match_for_certain(name, place)
        return self._certain[key]

    def _match_for_certain(self, name: str, place: int) -> bool:
        base, values = self.want.vocabularies.get(name), self.table.columns[place].values
        if not base or not values:
            return False
        # Rules most columns out without the cost of matching.
        if len(values) > len(base) + _MISSING_TEXTS and name not in self.codebook:
            return False
        book = tuple(self.codebook.get(name, {}).items())
        # Sorted, so that tables that have the same values in other shares are the same case.
        return _is_certain(tuple(base), tuple(sorted(values)), self.same_codes, book)


@functools.lru_cache(maxsize=20_000)
def _is_certain(
    base: tuple[str, ...],
    source: tuple[str, ...],
    same_codes: bool,
    codebook: tuple[tuple[str, str], ...],
) -> bool:
    found = match_values(
        dict.fromkeys(base, 1),
        dict.fromkeys(source, 1),
        same_codes=same_codes,
        codebook=dict(codebook),
        propose=False,
    )
    return found.certain


@dataclass(frozen=True, eq=False)
class Evidence:
    """Similarities of all pairs of columns, and the log-odds that a pair is one column.

    Each matrix has a row per column of the base and a column per column of the table.
    """

    likeness: Likeness
    headers: _Matrix
    logs: _Matrix


def gather_evidence(
    want: Wanted, table: Profile, maps: ValueMaps, contents: ColumnContents
) -> Evidence:
    """Compare every column of the base with every column of a table."""
    headers = np.array(
        [[_header_similarity(a.name, b.name) for b in table.columns] for a in want.columns]
    ).reshape(len(want.columns), len(table.columns))
    opaque = np.array([is_opaque(c.name) for c in table.columns], bool)
    likeness = Likeness(want.contents, contents)
    logs = likeness.evidence.copy()
    for i, base in enumerate(want.columns):
        if base.name in want.vocabularies:
            certain = [maps.is_certain(base.name, j) for j in range(len(table.columns))]
            logs[i, certain] = _CERTAIN_VALUES
    # Columns of one name may hold other values, say those of another year. Such values must not
    # outweigh the header, unless they are of another kind.
    logs = np.where(_same_kind(want, table) & (headers >= SAME_WORDS), np.maximum(logs, -4.0), logs)
    return Evidence(likeness, headers, logs + _header_evidence(headers, opaque))


@functools.lru_cache(maxsize=200_000)
def _header_similarity(a: str, b: str) -> float:
    alike = header_similarity(a, b)
    return max(alike, SAME_MEANING) if compare_headers(a, b).level <= Level.SYNONYMS else alike


def _same_kind(want: Wanted, table: Profile) -> NDArray[np.bool_]:
    """Whether both columns hold numbers, or neither does."""
    ours, theirs = ([c.numeric >= 0.5 for c in side.columns] for side in (want, table))
    return np.equal.outer(ours, theirs)


def _header_evidence(headers: _Matrix, opaque: NDArray[np.bool_]) -> _Matrix:
    # A header that says nothing, such as c7, is no evidence against a match either.
    return np.where((headers < 0.5) & opaque, 0.0, np.interp(headers, *_HEADER_LOGS))


def is_of_use(evidence: Evidence, want: Wanted) -> bool:
    """Whether every required column has a plausible counterpart."""
    if not evidence.logs.size:
        return False
    names = [c.name for c in want.columns]
    return all(evidence.logs[names.index(n)].max() > PLAUSIBLE for n in want.required)
