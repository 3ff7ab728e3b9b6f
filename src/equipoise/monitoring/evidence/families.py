"""Many comparisons at a time: how they join, and which of them the evidence is strong enough for."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from equipoise.monitoring.evidence.samples import Floats

if TYPE_CHECKING:
    from numpy.typing import NDArray


def rejected(log_e: Floats, family: NDArray[np.int64], alpha: float) -> NDArray[np.bool_]:
    """Select comparisons by their present e-values with the e-BH procedure, a column a time.

    The k largest are selected if the k-th is at least family / (alpha·k), for the largest such k.
    The expected share of false ones among them is at most alpha under any dependence. If no limit
    is broken at all, the mean of the e-values is itself an e-process, so that with probability
    1 − alpha nothing is ever selected; `entries` says how those that join later must begin.

    >>> log_e = np.log([[100.0, 100.0], [45.0, 45.0], [0.5, 50.0]])
    >>> rejected(log_e, np.array([3, 3]), 0.05).T.tolist()
    [[True, True, False], [True, True, True]]
    """
    found = np.zeros(log_e.shape, np.bool_)
    # The k-th must be at least 1/alpha, so that columns below that have none.
    columns = np.flatnonzero(log_e.max(axis=0, initial=-np.inf) >= -np.log(alpha))
    if not len(columns):
        return found
    values = log_e[:, columns]
    falling = np.sort(values, axis=0)[::-1]
    numbers = np.arange(1, len(values) + 1)[:, None]
    enough = falling + np.log(numbers) >= np.log(family[columns] / alpha)
    count = np.max(np.where(enough, numbers, 0), axis=0)
    least = np.where(count > 0, falling[count - 1, np.arange(len(columns))], np.inf)
    found[:, columns] = values >= least
    return found


def means(values: Floats, there: NDArray[np.bool_], pair: NDArray[np.int64]) -> Floats:
    """The logarithm of the mean over the comparisons of each pair that are there; else −inf.

    ``pair`` has the number of the pair of each comparison, in order and without gaps.

    >>> values, there = np.log([[2.0, 2.0], [4.0, 4.0]]), np.array([[True, True], [False, True]])
    >>> np.exp(means(values, there, np.array([0, 0]))).round(9).tolist()
    [[2.0, 3.0]]
    """
    known = np.where(there, values, -np.inf)
    if not len(pair) or pair[-1] + 1 == len(pair):
        return known
    starts = np.flatnonzero(np.diff(pair, prepend=-1))
    sizes = np.add.reduceat(there.astype(np.int64), starts, axis=0)
    sums = np.logaddexp.reduceat(known, starts, axis=0)
    return np.asarray(sums - np.log(np.maximum(sizes, 1)))


class Joining(NamedTuple):
    """When comparisons join others, in some batches."""

    there: NDArray[np.bool_]
    """Whether each comparison has joined, after each batch."""
    met: NDArray[np.bool_]
    """The same before the first batch."""
    seen: NDArray[np.int64]
    """The number of the batch, from the first here, with the first row of the label."""
    pair: NDArray[np.int64]


def entries(log_e: Floats, last: Floats, joining: Joining) -> Floats:
    """The logarithm of the evidence that comparisons begin with when they join.

    The mean of all pairs must stay an e-process, and so must that of the comparisons of a pair. So
    what joins begins at the mean of those that are there, before the batch, and at 1 if it is above
    1. If all began at 1, each would have a chance of its own. ``last`` is the evidence before the
    first batch here.
    """
    there, met, seen, pair = joining
    found = np.zeros(len(pair))
    joined = np.argmax(there, axis=1)
    joins = there.any(axis=1) & ~met
    for column in np.unique(joined[joins]).tolist():
        new = joins & (joined == column)
        was = there[:, column - 1] if column else met
        before = log_e[:, column - 1] + found if column else last
        own = means(before, was, pair)
        begin = np.where(np.isfinite(own), own, _log_mean(own))
        found[new] = np.minimum(begin[pair[new]], 0.0)
        # That a label is there is a result of the batch, which the evidence after it knows.
        late = new & (seen == column)
        if late.any():
            after = means(log_e[:, column] + found, there[:, column] & ~late, pair)
            found[late] = min(_log_mean(after), 0.0)
    return found


def _log_mean(values: Floats) -> float:
    known = values[np.isfinite(values)]
    return float(np.logaddexp.reduce(known) - np.log(len(known))) if len(known) else 0.0
