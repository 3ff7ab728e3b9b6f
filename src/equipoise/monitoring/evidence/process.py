"""The evidence of a stream so far: an e-process and a change detector for each comparison.

Both are products over batches. The e-process multiplies the factors of all batches, with bets from
all that came before. The change detector (Shiryaev–Roberts) adds 1 before each factor, with bets
that forget, and so finds a change that begins late.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from equipoise.monitoring.evidence.factors import bets, log_factors
from equipoise.monitoring.evidence.samples import (
    Floats,
    Samples,
    recent_sums_before,
    sums_before,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray


class State(NamedTuple):
    """What the next batch needs to know of all before it; one value for each comparison."""

    past: Samples
    recent: Samples
    log_e: Floats
    log_s: Floats
    """Logarithm of the statistic of the change detector."""
    drift: Floats
    """Sum of the logarithms of the factors of bets that forget."""
    lowest: Floats
    """The least that this sum has been."""
    since: NDArray[np.int64]
    """Number of batches before the present excursion above it began."""

    def of(self, lines: NDArray[np.intp]) -> State:
        """The state of some of the comparisons."""
        past, recent = (
            Samples(*(part[lines] for part in each)) for each in (self.past, self.recent)
        )
        return State(
            *(past, recent, self.log_e[lines], self.log_s[lines]),
            *(self.drift[lines], self.lowest[lines], self.since[lines]),
        )

    @classmethod
    def start(cls, comparisons: int, since: int = 0) -> State:
        """The state before the first batch; ``since`` is the number that it has."""
        zero = np.zeros(comparisons)
        return cls(
            Samples.none(comparisons),
            Samples.none(comparisons),
            zero,
            np.full(comparisons, -np.inf),
            zero,
            zero,
            np.full(comparisons, since, np.int64),
        )


class Track(NamedTuple):
    """The evidence after each batch: a line per comparison, a column per batch."""

    log_e: Floats
    log_s: Floats
    since: NDArray[np.int64]


def advance(
    state: State,
    now: Samples,
    low: Floats,
    high: Floats,
    first: int = 0,
    told: NDArray[np.bool_] | None = None,
) -> tuple[Track, State]:
    """Take batches into account; ``low`` and ``high`` bound p1/p0, ``first`` is their first number.

    Of the batches that are not ``told`` only the rows are remembered, for later bets; by default
    these are the batches in which a sample has no rows.

    >>> group, others = np.array([[5.0] * 4]), np.array([[50.0] * 4])
    >>> samples = Samples(group, 10 * group, others, 2 * others)
    >>> track, _ = advance(State.start(1), samples, np.array([[0.8]]), np.array([[1.25]]))
    >>> track.log_e.round(1).tolist(), track.since.tolist()
    ([[0.0, 8.8, 17.6, 26.5]], [[1, 1, 1, 1]])
    """
    told = now.used if told is None else told
    before, past = sums_before(now, state.past)
    factors = log_factors(now, bets(before, low, high), low, high, told)
    log_e = state.log_e[:, None] + np.cumsum(factors, axis=1)

    lately, recent = recent_sums_before(now, state.recent)
    factors = log_factors(now, bets(lately, low, high), low, high, told)
    drifts = np.cumsum(factors, axis=1)
    log_s = _detected(state.log_s, drifts, factors, told)
    since, lowest = _since(state, drifts, first)
    ended = State(
        past,
        recent,
        log_e[:, -1],
        log_s[:, -1],
        state.drift + drifts[:, -1],
        lowest,
        since[:, -1],
    )
    return Track(log_e, log_s, since), ended


def _detected(start: Floats, drifts: Floats, factors: Floats, told: NDArray[np.bool_]) -> Floats:
    """S ← (S + 1)·factor where a batch is told: S_t = exp(D_t)·(S_0 + Σ exp(−D_{k−1}))."""
    begun = np.where(told, factors - drifts, -np.inf)
    terms = np.concatenate([start[:, None], begun], axis=1)
    return np.asarray(drifts + np.logaddexp.accumulate(terms, axis=1)[:, 1:])


def _since(state: State, drifts: Floats, first: int) -> tuple[NDArray[np.int64], Floats]:
    """How many batches there were when the sum of factors was last at its least."""
    sums = state.drift[:, None] + drifts
    lowest = np.minimum.accumulate(np.concatenate([state.lowest[:, None], sums], axis=1), axis=1)
    at_least = sums <= lowest[:, 1:]
    numbers = first + 1 + np.arange(sums.shape[1])
    since = np.where(at_least, numbers, state.since[:, None])
    return np.maximum.accumulate(since, axis=1), lowest[:, -1]
