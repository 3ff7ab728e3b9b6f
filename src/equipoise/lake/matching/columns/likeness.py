"""How similar the values of columns are, for all columns of two tables at once.

All evidence has one unit, the logarithm of the odds that two columns are the same, so that values,
headers and relations can be added up.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from equipoise.counts.columns import as_number
from equipoise.engines.profiling import ColumnProfile, value_hash

_Matrix = NDArray[np.float64]
_Which = NDArray[np.bool_]

NUMERIC = 0.9
"""Columns with a smaller share of numbers are compared as texts."""

FEW = 50
"""Columns of at most this many values may be written in codes."""

SAMPLED = 1024
"""Number of rows that the sample of a column is assumed to have if its values were not counted."""

_UNLIKE = -6.0  # evidence for columns that cannot be the same: numbers and texts, disjoint numbers
_DRIFT = 0.05  # typical distance of the distributions of one column in two tables
_TAIL = 3.0  # degrees of freedom of the distances, see `_of_numbers`
_MISSED = (
    -1.6
)  # evidence per value that the other column, all of whose values are known, does not have
_WEIGHED_VALUES = 8  # maximum number of them that count, since they are not independent
_OVERLAP = 12.0
_SHORT = 3  # letters of a code
_OTHER_WORDS = (1.5, 5.0)  # against other words, in columns likely to be recoded and in others
_NOTHING = frozenset({"", "?", "-", ".", "na", "n/a", "nan", "null", "none", "unknown", "missing"})
_SOME = FEW + len(_NOTHING)


@dataclass(frozen=True, eq=False)
class ColumnContents:
    """The values of the columns of a table, prepared for comparison.

    Columns named in ``recoded`` are likely to be written in other words elsewhere.
    """

    columns: tuple[ColumnProfile, ...]
    recoded: Collection[str] = ()

    @functools.cached_property
    def numeric(self) -> _Which:
        """Which columns hold numbers."""
        return np.array([c.numeric >= NUMERIC for c in self.columns], bool)

    @functools.cached_property
    def empty(self) -> _Which:
        """Which columns have no known value."""
        return np.array([c.distinct == 0 for c in self.columns], bool)

    @functools.cached_property
    def rows(self) -> _Matrix:
        """Number of rows with known values, by column."""
        known = (SAMPLED if c.values is None else sum(c.values.values()) for c in self.columns)
        return np.asarray(np.maximum(np.fromiter(known, float, len(self.columns)), 1.0))

    @functools.cached_property
    def shares(self) -> list[dict[str, float]]:
        """Shares of rows by value, for columns of texts and those of very few values."""
        return [
            _shares(c.values) if not numeric or len(c.values or ()) <= _SOME else {}
            for c, numeric in zip(self.columns, self.numeric, strict=True)
        ]

    @functools.cached_property
    def few(self) -> NDArray[np.int64]:
        """Number of values of columns that have very few; 0 for the others."""
        numbers = [len(shares) for shares in self._said]
        return np.array([n if n <= FEW else 0 for n in numbers], int)

    @functools.cached_property
    def _said(self) -> list[dict[str, float]]:
        """Shares of very few values, without texts that mean a missing value."""
        return [
            {value: n for value, n in shares.items() if value not in _NOTHING}
            if len(shares) <= _SOME
            else {}
            for shares in self.shares
        ]

    @functools.cached_property
    def spread(self) -> _Matrix:
        """Shares of columns of very few values, in ascending order and aligned at the end."""
        found = np.zeros((len(self.columns), FEW))
        for i in np.flatnonzero(self.few).tolist():
            found[i, FEW - self.few[i] :] = np.sort(list(self._said[i].values()))
        return found

    @functools.cached_property
    def complete(self) -> _Matrix:
        """How complete the known values of each column are: the fewer occur only once, the more."""
        single = [sum(n == 1 for n in (c.values or {}).values()) for c in self.columns]
        return np.asarray(np.maximum(1 - 2 * np.array(single, float) / self.rows, 0.0))

    @functools.cached_property
    def coded(self) -> _Which:
        """Which columns hold numbers or short codes, which can stand for anything."""
        short = [all(len(v) <= _SHORT for v in shares) for shares in self._said]
        return np.array(short, bool) | self.numeric

    @functools.cached_property
    def distributions(self) -> dict[int, _Distribution]:
        """Distributions of the columns of numbers, by place."""
        found = {i: _distribution(self.columns[i]) for i in np.flatnonzero(self.numeric).tolist()}
        return {i: known for i, known in found.items() if known is not None}

    @functools.cached_property
    def grid(self) -> tuple[_Matrix, NDArray[np.int64], _Matrix]:
        """Points at which to compare distributions, their columns, and the own distributions there."""
        points = {i: np.unique(d.points()) for i, d in self.distributions.items()}
        if not points:
            return np.empty(0), np.empty(0, int), np.empty((2, 0))
        owners = np.concatenate([np.full(len(p), i) for i, p in points.items()])
        own = np.concatenate([self.distributions[i].at(p) for i, p in points.items()], axis=1)
        return np.concatenate(list(points.values())), owners, own

    @functools.cached_property
    def _hashed(self) -> dict[int, frozenset[int]]:
        return {}

    def hashes(self, i: int) -> frozenset[int]:
        """Hashes of the values of a column: all, or the smallest."""
        if i not in self._hashed:
            column = self.columns[i]
            known = column.sketch if column.values is None else map(value_hash, column.values)
            self._hashed[i] = frozenset(known)
        return self._hashed[i]

    def orders(self) -> tuple[NDArray[np.int64], _Matrix]:
        """Columns of numbers, and how often a number of one exceeds one of another, in any rows."""
        known = list(self.distributions.values())
        places = np.array(list(self.distributions), int)
        if not known:
            return places, np.zeros((0, 0))
        at = np.concatenate([d.levels() for d in known])
        shares = [d.at(at).mean(axis=0).reshape(len(known), -1).mean(axis=1) for d in known]
        return places, np.array(shares)


@dataclass(frozen=True, eq=False)
class Likeness:
    """Similarities of the columns of two tables; matrices have a row per column of the first.

    Numbers are compared by their distribution, texts by the share of rows whose value the other
    column has. Two columns of few values that share none may be the same in other words; then the
    shares of their values say a little.
    """

    ours: ColumnContents
    theirs: ColumnContents

    @functools.cached_property
    def gaps(self) -> _Matrix:
        """Kolmogorov-Smirnov distance of every two columns; NaN unless both hold numbers."""
        points, owners, own = self.ours.grid
        found = np.full((len(self.ours.columns), len(self.theirs.columns)), np.nan)
        places, starts = np.unique(owners, return_index=True)
        if len(places):
            for j, distribution in self.theirs.distributions.items():
                apart = np.abs(distribution.at(points) - own).max(axis=0)
                found[places, j] = np.maximum.reduceat(apart, starts)
        return found

    @functools.cached_property
    def overlaps(self) -> _Matrix:
        """For every two columns of texts, the share of rows whose value the other has."""
        found = np.zeros((len(self.ours.columns), len(self.theirs.columns)))
        for i, j in np.argwhere(self._neither).tolist():
            found[i, j] = self._overlap(i, j)
        return found

    @functools.cached_property
    def similarity(self) -> _Matrix:
        """Similarity of the values, from 0 to 1."""
        numbers = np.where(np.isnan(self.gaps), 0.3, 1 - self.gaps)
        found = np.where(self._both, numbers, 0.5 * self._shape * self._same_number)
        return np.where(self._neither, np.maximum(self.overlaps, found), found)

    @functools.cached_property
    def evidence(self) -> _Matrix:
        """Log-odds that two columns are the same, by their values."""
        texts = _OVERLAP * np.minimum(self.overlaps, 0.95) - 5
        found = np.where(self._both, self._of_numbers, np.where(self._neither, texts, _UNLIKE))
        unknown = self.ours.empty[:, None] | self.theirs.empty[None, :]
        found = np.where(unknown & ~self._both, 0.0, found)
        found = np.where(self._same_number > 0, np.maximum(found, self._of_codes), found)
        return np.maximum(found, _UNLIKE)

    @functools.cached_property
    def _both(self) -> _Which:
        return np.logical_and.outer(self.ours.numeric, self.theirs.numeric)

    @functools.cached_property
    def _neither(self) -> _Which:
        return np.logical_and.outer(~self.ours.numeric, ~self.theirs.numeric)

    @functools.cached_property
    def _of_numbers(self) -> _Matrix:
        noise = 0.5 * (1 / self.ours.rows[:, None] + 1 / self.theirs.rows[None, :])
        deviation = np.sqrt(_DRIFT**2 + noise)
        # A Student t distribution: other populations make a few columns differ much, and under a
        # normal distribution one such difference would outweigh all other evidence.
        far = self.gaps**2 / (2 * _TAIL * deviation**2)
        found = np.log(0.8 / deviation) - _TAIL * np.log1p(far)
        found = np.where(np.isnan(found), 0.0, np.maximum(found, _UNLIKE))
        for i, j in np.argwhere(self._both & (found > _UNLIKE)).tolist():
            ours, others = self.ours.columns[i].values, self.theirs.columns[j].values
            if ours and others:
                missed = len(others.keys() - ours.keys() - _NOTHING) / len(others)
                weight = self.ours.complete[i] * min(len(others), _WEIGHED_VALUES)
                found[i, j] += _MISSED * missed * weight
        return found

    @functools.cached_property
    def _of_codes(self) -> _Matrix:
        """Few values in other words: their number and their shares say a little."""
        spread = 0.5 - 3.0 * (1 / np.maximum(self._same_number, 0.01) - 1) - 3.0 * (1 - self._shape)
        likely = np.array([c.name in self.ours.recoded for c in self.ours.columns], bool)
        words = np.where(likely, *_OTHER_WORDS)[:, None]
        return np.asarray(spread - np.where(self.theirs.coded[None, :], 0.0, words))

    @functools.cached_property
    def _shape(self) -> _Matrix:
        """Similarity of the shares of few values, from 0 to 1; 0 for columns of more values."""
        apart = np.abs(self.ours.spread[:, None, :] - self.theirs.spread[None, :, :]).sum(axis=2)
        return np.asarray(np.maximum(1 - apart / 2, 0.0) * (self._same_number > 0))

    @functools.cached_property
    def _same_number(self) -> _Matrix:
        """The smaller number of values over the larger."""
        least = np.minimum.outer(self.ours.few, self.theirs.few)
        return np.asarray(least / np.maximum(np.maximum.outer(self.ours.few, self.theirs.few), 1))

    def _overlap(self, i: int, j: int) -> float:
        """The share of rows whose value the other column has, both ways."""
        if self.ours.columns[i].values is None or self.theirs.columns[j].values is None:
            return _sketched_overlap(self.ours.hashes(i), self.theirs.hashes(j))
        ours, others = self.ours.shares[i], self.theirs.shares[j]
        # In the order of the values, since sums of a set would differ in their last digits.
        common = [value for value in ours if value in others]
        if not common:
            return 0.0
        return math.sqrt(sum(ours[v] for v in common) * sum(others[v] for v in common))


def _shares(values: Mapping[str, int] | None) -> dict[str, float]:
    if not values:
        return {}
    total = max(sum(values.values()), 1)
    shares: dict[str, float] = {}
    for value, n in values.items():
        plain = value.strip().casefold()
        shares[plain] = shares.get(plain, 0.0) + n / total
    return shares


def _sketched_overlap(ours: frozenset[int], theirs: frozenset[int]) -> float:
    """The share of values in common, estimated from the smallest hashes."""
    if not ours or not theirs:
        return 0.0
    up_to = min(max(ours), max(theirs))
    x, y = {h for h in ours if h <= up_to}, {h for h in theirs if h <= up_to}
    return len(x & y) / min(len(x), len(y)) if x and y else 0.0


@dataclass(frozen=True, eq=False)
class _Distribution:
    """A cumulative distribution: exact, or by the quantiles of a profile."""

    numbers: _Matrix
    up_to: _Matrix  # share of rows up to each number
    exact: bool

    def points(self) -> _Matrix:
        if not self.exact or len(self.numbers) <= 21:
            return self.numbers
        return self._quantiles(np.linspace(0.02, 1, 40))

    def levels(self) -> _Matrix:
        """Forty numbers that represent all: the middle of each fortieth of the rows."""
        wanted = (np.arange(40) + 0.5) / 40
        return (
            self._quantiles(wanted) if self.exact else np.interp(wanted, self.up_to, self.numbers)
        )

    def _quantiles(self, levels: _Matrix) -> _Matrix:
        places = np.searchsorted(self.up_to, levels, side="left")
        return self.numbers[np.minimum(places, len(self.numbers) - 1)]

    def at(self, points: _Matrix) -> _Matrix:
        """The shares up to each point, and strictly below it."""
        up_to = np.searchsorted(self.numbers, points, side="right")
        places = np.stack([up_to, np.searchsorted(self.numbers, points, side="left")])
        if self.exact:
            return np.asarray(np.concatenate([[0.0], self.up_to])[places])
        last = len(self.numbers) - 1
        k = np.clip(places, 1, last)
        low, high = self.numbers[k - 1], self.numbers[k]
        width = np.where(high > low, high - low, 1.0)
        part = np.clip((points - low) / width, 0.0, 1.0)
        inside = (k - 1 + part) / last
        return np.where(places == 0, 0.0, np.where(places > last, 1.0, inside))


def _distribution(column: ColumnProfile) -> _Distribution | None:
    if column.values is not None:
        numbers = parse_numbers(list(column.values))
        rows = np.array(list(column.values.values()), float)
        there = np.isfinite(numbers)
        if not there.any():
            return None
        order = np.argsort(numbers[there])
        up_to = np.cumsum(rows[there][order])
        return _Distribution(numbers[there][order], up_to / up_to[-1], exact=True)
    if column.quantiles is None:
        return None
    levels = np.linspace(0, 1, len(column.quantiles))
    return _Distribution(np.array(column.quantiles), levels, exact=False)


def parse_numbers(texts: Sequence[str | None]) -> _Matrix:
    """Read texts as numbers; NaN where a text is none."""
    try:
        return np.array(texts, float)  # much faster, but fails if a single text is no number
    except (TypeError, ValueError):
        return np.array([as_number(text) for text in texts], float)
