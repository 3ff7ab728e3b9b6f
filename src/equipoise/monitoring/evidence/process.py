"""The evidence of a stream so far: an e-process and a change detector for each comparison.

Both are made of products of factors. A third of the e-process is the product over all batches, with
bets from all that came before: the best for a bias that has always been there. The other thirds are
weighted sums of products that begin with every batch, with bets that forget slowly or quickly, so
that a quiet past does not hide a bias that begins late. The weights 1/(k(k + 1)) of the k-th batch
add up to 1, and what has not begun yet counts with its weight: a mean of e-processes, which is one.
The change detector (Shiryaev–Roberts) is the mean of two such sums with weights of 1, which is no
e-process: its mean grows by 1 with every batch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from equipoise.monitoring.evidence.factors import bets, log_factors
from equipoise.monitoring.evidence.samples import (
    QUICK,
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
    latest: Samples
    told: Floats
    """Number of batches that factors were taken of."""
    log_long: Floats
    """Logarithm of the product over all batches."""
    log_begun: Floats
    """Logarithm of the weighted sum of the products that begin later, with bets of recent batches."""
    log_quick: Floats
    """The same with bets that forget quickly."""
    log_entry: Floats
    """Logarithm of what all evidence is multiplied by: a comparison may not begin at 1."""
    log_s: Floats
    """Logarithm of the part of the change detector with bets of recent batches."""
    log_s_quick: Floats
    """The same with bets that forget quickly."""
    drift: Floats
    """Sum of the logarithms of the factors of bets that forget."""
    lowest: Floats
    """The least that this sum has been."""
    since: NDArray[np.int64]
    """Number of batches before the present excursion above it began."""

    @classmethod
    def start(cls, comparisons: int, since: int = 0) -> State:
        """The state before the first batch; ``since`` is the number that it has."""
        zero, never = np.zeros(comparisons), np.full(comparisons, -np.inf)
        nothing = Samples.none(comparisons)
        return cls(
            *(nothing, nothing, nothing, zero, zero, never, never, zero, never, never, zero, zero),
            np.full(comparisons, since, np.int64),
        )

    @property
    def log_e(self) -> Floats:
        """Logarithm of the e-process."""
        return self.log_entry + _mixed(self.log_long, self.log_begun, self.log_quick, self.told)

    @property
    def log_change(self) -> Floats:
        """Logarithm of the statistic of the change detector."""
        return _mean(self.log_s, self.log_s_quick)

    def of(self, lines: NDArray[np.intp]) -> State:
        """The state of some of the comparisons."""
        parts: list[Any] = [Samples(*(part[lines] for part in each)) for each in self[:3]]
        return State(*parts, *(part[lines] for part in self[3:]))


class Track(NamedTuple):
    """The evidence after each batch: a line per comparison, a column per batch."""

    log_e: Floats
    log_s: Floats
    """Logarithm of the statistic of the change detector."""
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
    >>> (track.log_e.round(1) + 0.0).tolist(), track.since.tolist()
    ([[0.0, 8.6, 17.4, 26.2]], [[1, 1, 1, 1]])
    """
    told = now.used if told is None else told
    number = state.told[:, None] + np.cumsum(told, axis=1)
    log_weights = -np.log(np.maximum(number, 1) * (number + 1))

    def factors_of(before: Samples) -> Floats:
        return log_factors(now, bets(before, low, high), low, high, told)

    before, past = sums_before(now, state.past)
    log_long = state.log_long[:, None] + np.cumsum(factors_of(before), axis=1)
    before, latest = recent_sums_before(now, state.latest, QUICK)
    factors = factors_of(before)
    log_quick = _sum_of_begun(state.log_quick, factors, told, log_weights)
    log_s_quick = _sum_of_begun(state.log_s_quick, factors, told, np.zeros(1))
    before, recent = recent_sums_before(now, state.recent)
    factors = factors_of(before)
    log_begun = _sum_of_begun(state.log_begun, factors, told, log_weights)
    log_s = _sum_of_begun(state.log_s, factors, told, np.zeros(1))

    log_e = state.log_entry[:, None] + _mixed(log_long, log_begun, log_quick, number)
    drifts = state.drift[:, None] + np.cumsum(factors, axis=1)
    since, lowest = _since(state, drifts, first)
    ended = State(
        *(past, recent, latest, number[:, -1]),
        *(log_long[:, -1], log_begun[:, -1], log_quick[:, -1], state.log_entry),
        *(log_s[:, -1], log_s_quick[:, -1], drifts[:, -1], lowest),
        since[:, -1],
    )
    return Track(log_e, _mean(log_s, log_s_quick), since), ended


def _sum_of_begun(
    start: Floats, factors: Floats, told: NDArray[np.bool_], log_weights: Floats
) -> Floats:
    """S ← (S + w)·factor where a batch is told: S_t = exp(D_t)·(S_0 + Σ w_k·exp(−D_{k−1}))."""
    drifts = np.cumsum(factors, axis=1)
    begun = np.where(told, log_weights + factors - drifts, -np.inf)
    terms = np.concatenate([start[:, None], begun], axis=1)
    return np.asarray(drifts + np.logaddexp.accumulate(terms, axis=1)[:, 1:])


def _mixed(log_long: Floats, log_begun: Floats, log_quick: Floats, told: Floats) -> Floats:
    """The mean of the three parts; in two of them some products have not begun yet, and are 1."""
    later = -np.log((told + 1) / 2)
    begun = np.logaddexp(np.logaddexp(log_begun, log_quick), later)
    return np.asarray(np.logaddexp(log_long, begun) - np.log(3))


def _mean(one: Floats, other: Floats) -> Floats:
    return np.asarray(np.logaddexp(one, other) - np.log(2))


def _since(state: State, drifts: Floats, first: int) -> tuple[NDArray[np.int64], Floats]:
    """How many batches there were when the sum of factors was last at its least."""
    lowest = np.minimum.accumulate(np.concatenate([state.lowest[:, None], drifts], axis=1), axis=1)
    at_least = drifts <= lowest[:, 1:]
    numbers = first + 1 + np.arange(drifts.shape[1])
    since = np.where(at_least, numbers, state.since[:, None])
    return np.maximum.accumulate(since, axis=1), lowest[:, -1]
