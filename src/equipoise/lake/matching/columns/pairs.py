"""The pairs of columns that fit together best, given the evidence for each and their relations."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from equipoise.lake.matching.columns.assignment import PLAUSIBLE, assigned, improved, one_to_one
from equipoise.lake.matching.columns.evidence import Evidence
from equipoise.lake.matching.columns.relations import Comparison, relations
from equipoise.lake.matching.columns.target import Wanted

_Matrix = NDArray[np.float64]

_LEAST = 0.3  # pairs less likely than this are not matched

# Log-odds that a column has a counterpart at all: the more columns of a table have one, the
# more likely the others do, too.
_COVERED, _SHIFT = 4.0, 2.0

# Relations with other pairs are phased in over the first six of eight rounds: at the beginning the
# probabilities of these pairs are rough themselves.
_ROUNDS, _EAGER = 8, 6

_SETTLED = 0.97  # if every pair is this certain to be one or not, relations would change nothing
_MOSTLY = 0.5  # share of columns with a counterpart before one is guessed for a required column


def likely_pairs(evidence: Evidence, want: Wanted) -> tuple[list[tuple[int, int]], _Matrix]:
    """Return the pairs that fit together best, and the probability of every pair, given these."""
    likely = one_to_one(evidence.logs + _SHIFT)
    if ((likely > _SETTLED) | (likely < 1 - _SETTLED)).all():
        return assigned(likely, _LEAST), likely
    comparison = Comparison(want.relations, relations(evidence.likeness.theirs))
    likely = one_to_one(evidence.logs)
    for round_ in range(_ROUNDS):
        eager = min(1.0, (round_ + 1) / _EAGER)
        # Damped, since full steps may oscillate between two solutions.
        likely = (likely + _supported(evidence.logs, comparison, likely, eager)) / 2
    better = improved(evidence.logs, comparison, likely)
    likely = _supported(evidence.logs, comparison, better)
    return assigned(np.where(better > 0, likely, 0.0), _LEAST), likely


def guessed_pairs(
    pairs: Sequence[tuple[int, int]], likely: _Matrix, evidence: Evidence, want: Wanted
) -> list[tuple[int, int]]:
    """Pair required columns that have no counterpart, if the table is clearly about the same."""
    lacking = np.array([column.name in want.required for column in want.columns], bool)
    free = np.ones(likely.shape[1], bool)
    for i, j in pairs:
        lacking[i] = free[j] = False
    if not lacking.any() or len(pairs) < _MOSTLY * (min(likely.shape) - lacking.sum()):
        return []
    plausible = lacking[:, None] & free & (evidence.logs > PLAUSIBLE)
    # However unlikely: it is only proposed.
    return assigned(np.where(plausible, likely + 1e-9, 0.0), 1e-9)


def left_over_pairs(
    pairs: Sequence[tuple[int, int]], shared: Sequence[tuple[int, int]]
) -> list[tuple[int, int]]:
    """Return columns of the same header that are in no pair; their values may have nothing in common."""
    ours, theirs = {i for i, _ in pairs}, {j for _, j in pairs}
    return [(i, j) for i, j in shared if i not in ours and j not in theirs]


def _supported(
    logs: _Matrix, comparison: Comparison, likely: _Matrix, eager: float = 1.0
) -> _Matrix:
    """Return the probability of every pair, given those of the others."""
    support = comparison.support(likely)
    best = np.where(logs > PLAUSIBLE, support, -np.inf)
    best = np.maximum(best.max(axis=1, keepdims=True), best.max(axis=0, keepdims=True))
    # Support counts only against a pair, relative to the best plausible rival of either column, since
    # its absolute size depends on the number of columns.
    lag = np.where(np.isfinite(best), np.minimum(support - best, 0.0), 0.0)
    covered = likely.sum() / min(likely.shape)
    prior = _SHIFT + _COVERED * (2 * covered - 1)
    return one_to_one(logs + prior + eager * lag)
