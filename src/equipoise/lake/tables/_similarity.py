"""How similar the columns of two tables are: by their headers, their words and their numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from equipoise.engines.profiling import SKETCH, ColumnProfile, Profile, value_hash
from equipoise.lake.tables._terms import GRAM, NUMERIC, TOKEN, WORD, Terms, terms_of
from equipoise.lake.tables.headers import is_opaque

if TYPE_CHECKING:
    from numpy.typing import NDArray

HEADER_WEIGHT = 0.3
"""Weight of the header in the similarity of two columns; the rest is the weight of the content."""

NUMBERS_ALONE = 0.5
"""Upper limit of the similarity by numbers alone: many unrelated columns have similar numbers."""

DIGITS = 9
"""Digits to which scores are rounded: the last ones depend on the order of additions, and ties must
be ties on every machine."""


@dataclass(frozen=True)
class Rarity:
    """Weights of terms: the fewer of the lake's columns have a term, the more it weighs."""

    columns: int
    terms: NDArray[np.uint64]  # in ascending order; other terms count as in no column
    counts: NDArray[np.int64]

    def __call__(self, terms: NDArray[np.uint64]) -> NDArray[np.float64]:
        counts = np.zeros(len(terms))
        if len(self.terms):
            places = np.searchsorted(self.terms, terms).clip(max=len(self.terms) - 1)
            known = self.terms[places] == terms
            counts[known] = self.counts[places[known]]
        return np.log1p(max(self.columns, 1) / (1 + counts))


@dataclass(frozen=True)
class Parts:
    """Similarities of columns by kind of evidence; each matrix has a row per column of the query."""

    header: NDArray[np.float64]
    words: NDArray[np.float64]  # of header and values together
    numbers: NDArray[np.float64]  # NaN unless both columns hold numbers
    opaque: NDArray[np.bool_]  # whether one of the headers says nothing

    def similarity(self) -> NDArray[np.float64]:
        """Combine the parts, from 0 to 1; numbers count only where a header says nothing."""
        by_numbers = self.opaque & ~np.isnan(self.numbers)
        alone = np.where(by_numbers, NUMBERS_ALONE * np.nan_to_num(self.numbers), 0.0)
        content = np.maximum(self.words, alone)
        found = HEADER_WEIGHT * self.header + (1 - HEADER_WEIGHT) * content
        return found.clip(0, 1)


class SearchColumn(NamedTuple):
    """What a column is compared by in addition to its terms."""

    name: str
    numeric: float
    quantiles: Sequence[float] | None


@dataclass(frozen=True)
class SearchColumns:
    """Columns and their terms; the places of the terms refer to the list of columns."""

    columns: Sequence[SearchColumn]
    terms: Terms

    @classmethod
    def of(cls, profile: Profile) -> SearchColumns:
        columns = [SearchColumn(c.name, c.numeric, c.quantiles) for c in profile.columns]
        return cls(columns, terms_of(profile))


def compare(query: SearchColumns, other: SearchColumns, rarity: Rarity) -> Parts:
    """Compare every column of the query with every column of a table."""
    header = (_cosines(query, other, rarity, TOKEN) + _cosines(query, other, rarity, GRAM)) / 2
    ours, theirs = (
        np.array([is_opaque(column.name) for column in side.columns], bool)
        for side in (query, other)
    )
    return Parts(
        header=header,
        words=_cosines(query, other, rarity, WORD),
        numbers=_number_similarity(query.columns, other.columns),
        opaque=ours[:, None] | theirs[None, :],
    )


def _cosines(
    query: SearchColumns, other: SearchColumns, rarity: Rarity, kind: int
) -> NDArray[np.float64]:
    sides = [(side.terms.of_kind(kind), len(side.columns)) for side in (query, other)]
    ours, theirs = unit_vectors(sides, rarity)
    return ours.products(theirs)


@dataclass(frozen=True)
class SparseRows:
    """Rows with few numbers that are not zero: the row, the column and the value of each."""

    length: int
    rows: NDArray[np.int64]
    columns: NDArray[np.int64]
    values: NDArray[np.float64]

    def products(self, other: SparseRows) -> NDArray[np.float64]:
        """Multiply every row with every row of another.

        SciPy does this as well, but to load it takes longer than a whole search.
        """
        order = np.argsort(other.columns, kind="stable")
        rising = other.columns[order]
        first = np.searchsorted(rising, self.columns, "left")
        there = np.searchsorted(rising, self.columns, "right") - first
        mine = np.repeat(np.arange(len(self.columns)), there)
        theirs = order[np.repeat(first - np.cumsum(there) + there, there) + np.arange(len(mine))]
        both = self.rows[mine] * other.length + other.rows[theirs]
        values = self.values[mine] * other.values[theirs]
        sums: NDArray[np.float64] = np.bincount(
            both, values, minlength=self.length * other.length
        ).astype(float)
        return sums.reshape(self.length, other.length)


def unit_vectors(sides: Sequence[tuple[Terms, int]], rarity: Rarity) -> list[SparseRows]:
    """Return the terms of each side as sparse rows of length one over a common vocabulary."""
    known, codes = np.unique(
        np.concatenate([terms.terms for terms, _ in sides]), return_inverse=True
    )
    weights, found, start = rarity(known), [], 0
    for terms, rows in sides:
        code = codes[start : start + len(terms.terms)]
        start += len(code)
        values = terms.weights * weights[code]
        length = np.sqrt(np.bincount(terms.places, values**2, minlength=rows))
        found.append(SparseRows(rows, terms.places, code, values / length[terms.places]))
    return found


def _number_similarity(
    ours: Sequence[SearchColumn], theirs: Sequence[SearchColumn]
) -> NDArray[np.float64]:
    """The share of their numbers on which two columns agree, squared; see `agreement`."""
    found = np.full((len(ours), len(theirs)), np.nan)
    columns = [j for j, column in enumerate(theirs) if is_numeric(column)]
    if columns:
        spread = np.array([theirs[j].quantiles for j in columns])
        for i, column in enumerate(ours):
            if is_numeric(column):
                found[i, columns] = agreement(np.array(column.quantiles), spread)
    return found


def is_numeric(column: SearchColumn) -> bool:
    return column.quantiles is not None and column.numeric >= NUMERIC


def agreement(one: NDArray[np.float64], many: NDArray[np.float64]) -> NDArray[np.float64]:
    """Compare distributions of numbers: (1 − Kolmogorov-Smirnov distance)².

    The distance depends neither on the unit nor on outliers. Two columns of the same range but of
    different shape still reach about one half, which the square makes small.
    """
    steps = np.linspace(0, 1, len(one))
    below = np.searchsorted(one, many, side="right") / len(one)
    under = np.searchsorted(one, many, side="left") / len(one)
    # Where values are tied, any share between those below and those up to the value is right.
    gap = np.maximum(under - steps, steps - below).max(axis=1)
    agreement: NDArray[np.float64] = (1 - gap.clip(0, 1)) ** 2
    return agreement


def value_overlap(one: ColumnProfile, other: ColumnProfile) -> float:
    """Return the overlap of the values of two columns, as a share of the smaller set.

    Case and surrounding blanks are ignored. For columns of many values, of which only some hashes
    are stored, it is an estimate.
    """
    ours, theirs = _hashes(one), _hashes(other)
    if not len(ours) or not len(theirs):
        return 0.0
    # Sketches keep the smallest hashes, so both are complete up to the lower of their maxima.
    limit = min(_reach(one, ours), _reach(other, theirs))
    ours, theirs = ours[ours <= limit], theirs[theirs <= limit]
    fewer = min(len(ours), len(theirs))
    return len(np.intersect1d(ours, theirs, assume_unique=True)) / fewer if fewer else 0.0


def _hashes(column: ColumnProfile) -> NDArray[np.uint64]:
    if column.values is None:
        return np.array(column.sketch, np.uint64)
    return np.unique(np.fromiter(map(value_hash, column.values), np.uint64))


def _reach(column: ColumnProfile, hashes: NDArray[np.uint64]) -> int:
    partial = column.values is None and len(hashes) >= SKETCH
    return int(hashes[-1]) if partial else 2**64 - 1
