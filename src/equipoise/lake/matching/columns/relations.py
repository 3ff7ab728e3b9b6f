"""Relations between the columns of a table, and what they say about the columns of two tables.

Of a dozen amounts with similar distributions, only their relations show which is which: the payment
that often equals last month's bill belongs to that bill. Relations are measured in the rows that
profiles keep, and in ways that do not depend on how values are named.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from equipoise.engines.profiling import ColumnProfile
from equipoise.lake.matching.columns.headers import ordinal
from equipoise.lake.matching.columns.likeness import (
    NUMERIC,
    SAMPLED,
    ColumnContents,
    parse_numbers,
)

_Matrix = NDArray[np.float64]
_Rows = NDArray[np.float64]
_Whole = NDArray[np.int64]

_FEWEST_ROWS = 8  # with fewer, relations are not measured
_MOST_ROWS = 256
_MOST_COMPARED = 96  # rows of distance correlations, whose cost grows with their square
_LARGEST_Z = 2.5  # keeps Fisher's z finite where a correlation is 1


@dataclass(frozen=True)
class _Kind:
    """A way in which two columns can be related, and how much the relation varies."""

    noise: float  # variance in n rows, times n
    drift: float  # standard deviation between two tables about the same thing
    spread: float  # standard deviation between two pairs of unrelated columns
    weight: float  # share of the evidence that counts, since relations of several pairs overlap


# Square roots of rates are compared as arc sines, and correlations as Fisher's z, since the variances
# of these do not depend on the rate or the correlation itself.
_KINDS = (
    _Kind(noise=1.0, drift=0.10, spread=0.60, weight=0.15),  # Fisher z of the rank correlation
    _Kind(noise=0.25, drift=0.08, spread=0.50, weight=0.35),  # arc sine of how often x < y
    _Kind(noise=0.25, drift=0.06, spread=0.25, weight=0.35),  # ... of how often x = y
    _Kind(noise=0.25, drift=0.06, spread=0.20, weight=0.35),  # ... without the mode of x
    _Kind(noise=0.50, drift=0.12, spread=0.15, weight=0.20),  # distance correlation, also of texts
    _Kind(noise=0.15, drift=0.02, spread=0.25, weight=0.20),  # how often x < y in any two rows
    _Kind(noise=0.00, drift=0.70, spread=2.00, weight=0.15),  # steps between numbers in headers
)
_IN_ROWS, _DEPENDENCE, _ORDER, _STEPS = range(4), 4, 5, 6
_DIRECTED = (1, 3, 5)


@dataclass(frozen=True, eq=False)
class Relations:
    """Relations of every two columns of a table, and the number of rows behind each kind.

    ``measured`` and ``known`` are kind of relation × column × column; ``known`` is 1.0 where the
    relation can be measured, else 0.0.
    """

    measured: NDArray[np.float64]
    known: NDArray[np.float64]
    rows: NDArray[np.float64]

    def put(self, kinds: Sequence[int], places: NDArray[np.int64], measured: _Matrix) -> None:
        """Store the relations of some columns."""
        at = np.ix_(np.array(kinds), places, places)
        self.measured[at], self.known[at] = measured, 1.0


def relations(contents: ColumnContents, *, alike: bool = False) -> Relations:
    """Measure the relations of every two columns of a table.

    If ``alike``, headers form a series only if they differ in nothing but their number.
    """
    columns = contents.columns
    n = len(columns)
    rows = min(min((len(c.sample) for c in columns), default=0), _MOST_ROWS)
    shape = (len(_KINDS), n, n)
    found = Relations(np.zeros(shape), np.zeros(shape), np.full(len(_KINDS), float(rows)))
    places, orders = contents.orders()
    if len(places):
        found.put([_ORDER], places, orders[None])
        found.rows[_ORDER] = min(contents.rows[places].min(), SAMPLED)
    found.measured[_STEPS], found.known[_STEPS] = _steps([c.name for c in columns], alike=alike)
    if rows >= _FEWEST_ROWS:
        _measure_in_rows(found, columns, rows)
    found.known[:, range(n), range(n)] = 0.0
    return found


def _measure_in_rows(found: Relations, columns: Sequence[ColumnProfile], rows: int) -> None:
    places = np.array([i for i, c in enumerate(columns) if c.numeric >= NUMERIC], int)
    texts = [columns[i].sample[:rows] for i in places]
    numbers = np.array([parse_numbers(line) for line in texts]).reshape(-1, rows)
    numbers[~np.isfinite(numbers)] = np.nan
    ranks = _ranks(numbers)
    if len(places):
        found.put(_IN_ROWS, places, _between_numbers(numbers, ranks))
    dependence = _distance_correlations(columns, places, ranks, rows)
    found.put([_DEPENDENCE], np.arange(len(columns)), dependence[None])


def _steps(names: Sequence[str], *, alike: bool) -> tuple[_Matrix, _Matrix]:
    """Steps between the headers of a series, such as 2 for bill_1 and bill_3."""
    found = [ordinal(name) for name in names]
    at = np.array([np.nan if o is None else o[1] for o in found])
    steps = np.abs(at[:, None] - at[None, :])
    known = np.isfinite(steps)
    if alike:
        stems = np.array(["" if o is None else o[0] for o in found])
        known &= stems[:, None] == stems[None, :]
    return np.where(known, steps, 0.0), known.astype(float)


def _ranks(numbers: _Rows) -> _Rows:
    """Ranks from -½ to ½; ties get their mean, and missing numbers get 0."""
    found = np.zeros_like(numbers)
    for line, ranks in zip(numbers, found, strict=True):
        there = ~np.isnan(line)
        rising = np.sort(line[there])
        ends = [np.searchsorted(rising, line[there], side) for side in ("left", "right")]
        ranks[there] = (ends[0] + ends[1] - len(rising)) / (2.0 * max(len(rising), 1))
    return found


def _between_numbers(numbers: _Rows, ranks: _Rows) -> NDArray[np.float64]:
    centred = ranks - ranks.mean(axis=1, keepdims=True)
    length = np.sqrt((centred**2).sum(axis=1))
    length[length == 0] = np.inf
    correlation = (centred @ centred.T) / np.outer(length, length)
    first, second = numbers[:, None, :], numbers[None, :, :]
    equal = first == second
    rare = equal & (first != _modes(numbers)[:, None, None])
    rates = np.stack([(first < second).mean(axis=2), equal.mean(axis=2), rare.mean(axis=2)])
    top = np.tanh(_LARGEST_Z)
    return np.concatenate(
        [np.arctanh(np.clip(correlation, -top, top))[None], np.arcsin(np.sqrt(rates))]
    )


def _modes(numbers: _Rows) -> _Rows:
    """The most frequent number of each column."""
    counted = [np.unique(line, return_counts=True) for line in numbers]
    return np.array([values[counts.argmax()] for values, counts in counted])


def _distance_correlations(
    columns: Sequence[ColumnProfile], places: NDArray[np.int64], ranks: _Rows, rows: int
) -> _Matrix:
    """Distance correlations, 0 for independent columns; unequal texts have distance 1."""
    rows = min(rows, _MOST_COMPARED)
    apart = np.empty((len(columns), rows, rows))
    of_number = {int(i): at for at, i in enumerate(places)}
    for i, column in enumerate(columns):
        if i in of_number:
            line = ranks[of_number[i], :rows]
            apart[i] = np.abs(line[:, None] - line[None, :])
        else:
            codes = _codes(column.sample[:rows])
            apart[i] = codes[:, None] != codes[None, :]
    flat = _centred(apart).reshape(len(columns), -1)
    length = np.sqrt((flat**2).sum(axis=1))
    length[length == 0] = np.inf
    return np.sqrt(np.maximum((flat @ flat.T) / np.outer(length, length), 0.0))


def _codes(texts: Sequence[str | None]) -> NDArray[np.int64]:
    numbered: dict[str | None, int] = {}
    plain = (t if t is None else t.strip().casefold() for t in texts)
    return np.array([numbered.setdefault(t, len(numbered)) for t in plain])


def _centred(apart: NDArray[np.float64]) -> NDArray[np.float64]:
    """Subtract row and column means in the unbiased way, so that chance alone gives 0 on average."""
    rows = apart.shape[1]
    lines = apart.sum(axis=2, keepdims=True) / (rows - 2)
    total = apart.sum(axis=(1, 2), keepdims=True) / ((rows - 1) * (rows - 2))
    centred = apart - lines - lines.transpose(0, 2, 1) + total
    centred[:, range(rows), range(rows)] = 0.0
    return np.asarray(centred)


@dataclass(frozen=True, eq=False)
class Comparison:
    """Comparison of the relations of two tables.

    A pair of columns is more likely if its relations to other pairs are the same in both tables.
    """

    ours: Relations
    theirs: Relations

    def support(self, pairs: _Matrix) -> _Matrix:
        """Return the log-odds that other pairs, with these probabilities, add to every pair."""
        ours, theirs = self._products
        return np.asarray((ours @ pairs @ theirs).sum(axis=0))

    @functools.cached_property
    def _products(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Agreement − penalty × (x − y)² expanded into matrix products, which are much faster."""
        ours, theirs = [], []
        for x, u, y, v, agreement, penalty in self._terms:
            ours += [(agreement - penalty * x**2) * u, -penalty * u, 2 * penalty * x * u]
            theirs += [v.T, (y**2 * v).T, (y * v).T]
        return np.array(ours), np.array(theirs)

    def between(self, rows: _Whole, columns: _Whole) -> tuple[_Matrix, _Matrix]:
        """Return the log-odds that every two of some pairs add to each other, as they are and swapped."""
        x, u, y, v, agreement, penalty = self._stacked
        every = np.arange(len(x))
        ours, theirs = np.ix_(every, rows, rows), np.ix_(every, columns, columns)
        x, u, y, v = x[ours], u[ours], y[theirs], v[theirs]
        ways = (y, v), (y.transpose(0, 2, 1), v.transpose(0, 2, 1))
        as_they_are, swapped = (
            (u * w * (agreement - penalty * (x - z) ** 2)).sum(axis=0) for z, w in ways
        )
        return as_they_are, swapped

    @functools.cached_property
    def _stacked(self) -> tuple[NDArray[np.float64], ...]:
        """The terms as arrays, so that all of them are computed at once."""
        x, u, y, v, *weights = (np.array(part) for part in zip(*self._terms, strict=True))
        agreement, penalty = (weight[:, None, None] for weight in weights)
        return x, u, y, v, agreement, penalty

    @functools.cached_property
    def _terms(self) -> list[tuple[_Matrix, _Matrix, _Matrix, _Matrix, float, float]]:
        """Relations of both tables, where they are known, the agreement and the penalty of each kind.

        Both are log-likelihood ratios of two normal distributions: the differences between the same
        columns, and those between other columns.
        """
        found = []
        for k, kind in enumerate(_KINDS):
            rows = 1 / max(self.ours.rows[k], 1) + 1 / max(self.theirs.rows[k], 1)
            same = kind.noise * rows + kind.drift**2
            other = same + kind.spread**2
            agreement, penalty = np.log(other / same) / 2, (1 / same - 1 / other) / 2
            parts = (self.ours.measured, self.ours.known, self.theirs.measured, self.theirs.known)
            x, u, y, v = (part[k] for part in parts)
            # Both directions, so that the support of two pairs for each other is symmetric.
            ways = [(x, u, y, v), (x.T, u.T, y.T, v.T)] if k in _DIRECTED else [(x, u, y, v)]
            weight = kind.weight / len(ways)
            found += [(*way, weight * float(agreement), weight * float(penalty)) for way in ways]
        return found
