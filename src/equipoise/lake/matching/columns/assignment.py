"""The assignment of columns to columns, where every pair makes others more or less likely."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from equipoise.lake.matching.columns.relations import Comparison

_Matrix = NDArray[np.float64]
_Whole = NDArray[np.int64]
_Which = NDArray[np.bool_]

PLAUSIBLE = -4.0
"""Pairs with less evidence of their own, as log-odds, are not considered."""

_DEPTH = 6  # moves in a chain
_PASSES = 4  # chains one after another; both bound the time of a search
_LEAST_GAIN = 1e-6
_TRIED = 0.05  # pairs less likely than this do not start in the assignment; moves may add them


def one_to_one(logs: _Matrix) -> _Matrix:
    """Turn the evidence for pairs into probabilities, each column being in at most one pair."""
    # Rows and columns are scaled in turn, as Sinkhorn does; the additional 1 is "no counterpart".
    odds = np.exp(np.clip(logs, -30, 30))
    rows, columns = np.ones(len(odds)), np.ones(odds.shape[1])
    for _ in range(10):
        rows = 1 / (1 + odds @ columns)
        columns = 1 / (1 + rows @ odds)
    return np.asarray(odds * rows[:, None] * columns[None, :])


def assigned(likely: _Matrix, least: float) -> list[tuple[int, int]]:
    """Match one to one with the largest sum of probabilities, without pairs below a minimum."""
    from scipy.optimize import linear_sum_assignment

    if not likely.size:
        return []
    strong = np.where(likely >= least, likely, 0.0)
    rows, columns = linear_sum_assignment(strong, maximize=True)
    pairs = zip(rows.tolist(), columns.tolist(), strict=True)
    return [(i, j) for i, j in pairs if strong[i, j] > 0]


@dataclass(frozen=True)
class _Move:
    """Pairs to remove, pairs to add, and the gain in log-odds."""

    gain: float
    apart: list[tuple[int, int]]
    pairs: list[tuple[int, int]]


_NO_MOVE = _Move(-np.inf, [], [])


@dataclass(frozen=True)
class _Search:
    """Searches for a better assignment by chains of moves, each the best of those left.

    This is the idea of Kernighan and Lin. Columns depend on each other: if a bill and its payment
    are both a month off, moving one alone makes things worse. So a chain may pass through worse
    assignments to reach a better one.
    """

    logs: _Matrix
    comparison: Comparison

    def after_chain(self, start: _Matrix) -> _Matrix | None:
        pairs, gain, best, found = start.copy(), 0.0, _LEAST_GAIN, None
        free = np.ones(len(start), bool), np.ones(start.shape[1], bool)
        for _ in range(_DEPTH):
            move = self._best_move(pairs, *free)
            if not np.isfinite(move.gain):
                break
            gain += move.gain
            for i, j in move.apart:
                pairs[i, j] = 0.0
            for i, j in move.pairs:
                pairs[i, j] = 1.0
                free[0][i] = free[1][j] = False
            if gain > best:
                best, found = gain, pairs.copy()
        return found

    def _best_move(self, pairs: _Matrix, rows: _Which, columns: _Which) -> _Move:
        worth = np.where(self.logs > PLAUSIBLE, self.logs + self.comparison.support(pairs), -np.inf)
        i, a = np.nonzero(pairs)
        single = rows & ~pairs.any(axis=1), columns & ~pairs.any(axis=0)
        moves = (
            self._swapped(i, a, worth, rows[i] & columns[a]),
            _moved(i, a, worth, rows[i], single[1]),
            _turned(_moved(a, i, worth.T, columns[a], single[0])),
            _added(worth, *single),
        )
        return max(moves, key=lambda move: move.gain)

    def _swapped(self, i: _Whole, a: _Whole, worth: _Matrix, free: _Which) -> _Move:
        if len(i) < 2:
            return _NO_MOVE
        together, swapped = self.comparison.between(i, a)
        crossed, now = worth[np.ix_(i, a)], worth[i, a]
        gain = crossed + crossed.T + swapped - now[:, None] - now[None, :] + together
        gain[~(free[:, None] & free[None, :])] = -np.inf
        np.fill_diagonal(gain, -np.inf)
        most, p, q = _largest(gain)
        apart, pairs = [(i[p], a[p]), (i[q], a[q])], [(i[p], a[q]), (i[q], a[p])]
        return _Move(most, apart, pairs)


def _moved(i: _Whole, a: _Whole, worth: _Matrix, free: _Which, others: _Which) -> _Move:
    """The best move of a pair to an unpaired column of the second table."""
    spare = np.flatnonzero(others)
    if not len(i) or not len(spare):
        return _NO_MOVE
    gain = np.where(free[:, None], worth[np.ix_(i, spare)] - worth[i, a][:, None], -np.inf)
    most, p, q = _largest(gain)
    return _Move(most, [(i[p], a[p])], [(i[p], spare[q])])


def _turned(move: _Move) -> _Move:
    """The same move with the tables exchanged."""
    apart, pairs = ([(b, a) for a, b in some] for some in (move.apart, move.pairs))
    return _Move(move.gain, apart, pairs)


def _added(worth: _Matrix, rows: _Which, columns: _Which) -> _Move:
    """The best new pair of unpaired columns."""
    i, j = np.flatnonzero(rows), np.flatnonzero(columns)
    gain = worth[np.ix_(i, j)]
    if not gain.size or gain.max() <= 0:
        return _NO_MOVE
    most, p, q = _largest(gain)
    return _Move(most, [], [(i[p], j[q])])


def _largest(gain: _Matrix) -> tuple[float, int, int]:
    p, q = divmod(int(gain.argmax()), gain.shape[1])
    return float(gain[p, q]), p, q


def improved(logs: _Matrix, comparison: Comparison, likely: _Matrix) -> _Matrix:
    """Search for pairs that support each other better than the most likely ones do."""
    pairs = np.zeros_like(likely)
    for i, j in assigned(np.where(logs > PLAUSIBLE, likely, 0.0), _TRIED):
        pairs[i, j] = 1.0
    search = _Search(logs, comparison)
    for _ in range(_PASSES):
        better = search.after_chain(pairs)
        if better is None:
            break
        pairs = better
    return pairs
