"""Many comparisons at a time: which of them the evidence is strong enough for."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from equipoise.monitoring.evidence.samples import Floats

if TYPE_CHECKING:
    from numpy.typing import NDArray


def rejected(log_e: Floats, family: NDArray[np.int64], alpha: float) -> NDArray[np.bool_]:
    """Select comparisons by their present e-values with the e-BH procedure, a column a time.

    The k largest are selected if the k-th is at least family / (alpha·k), for the largest such k.
    The expected share of false ones among them is at most alpha under any dependence. If no limit
    is broken at all, the mean of the e-values is itself an e-process, so that with probability
    1 − alpha nothing is ever selected; those that join later must not begin above this mean.

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
