"""Pairs of a few columns, one to one, with the largest sum of similarities."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

FEW_COLUMNS = 24
"""Number of columns of the narrower table up to which this is faster than to load SciPy."""


def best_pairs(
    similarity: NDArray[np.float64],
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Pair as many rows and columns of a matrix as it has of the fewer; rows are in their order.

    >>> best_pairs(np.array([[0.9, 0.8], [0.7, 0.1]]))
    (array([0, 1]), array([1, 0]))
    """
    if similarity.shape[0] > similarity.shape[1]:
        columns, rows = best_pairs(similarity.T)
        order = np.argsort(rows)
        return rows[order], columns[order]
    best = similarity.argmax(axis=1)
    rows = np.arange(len(best))
    # Most often no two rows prefer the same column, and nothing is to be weighed.
    if len(set(best.tolist())) == len(best):
        return rows, best
    return rows, _by_shortest_paths((-similarity).tolist())


def _by_shortest_paths(cost: list[list[float]]) -> NDArray[np.int64]:
    """Add row after row, each by the cheapest chain of changes (Kuhn and Munkres), with plain numbers.

    The matrices are so small that a call of numpy would take longer than its work.
    """
    many = len(cost[0])
    row_price, column_price = [0.0] * len(cost), [0.0] * (many + 1)
    owner = [-1] * (many + 1)  # the last column stands for the row that is added
    for i in range(len(cost)):
        owner[many], column = i, many
        least, before = [float("inf")] * many, [many] * many
        seen: list[int] = []
        is_seen = [False] * (many + 1)
        while owner[column] != -1:
            is_seen[column] = True
            seen.append(column)
            row = owner[column]
            line, price = cost[row], row_price[row]
            step, following = float("inf"), -1
            for j in range(many):
                if not is_seen[j]:
                    reduced = line[j] - price - column_price[j]
                    if reduced < least[j]:
                        least[j], before[j] = reduced, column
                    if least[j] < step:
                        step, following = least[j], j
            for j in seen:
                row_price[owner[j]] += step
                column_price[j] -= step
            least = [value if is_seen[j] else value - step for j, value in enumerate(least)]
            column = following
        while column != many:
            owner[column] = owner[before[column]]
            column = before[column]
    found = np.empty(len(cost), np.int64)
    for j in range(many):
        if owner[j] != -1:
            found[owner[j]] = j
    return found
