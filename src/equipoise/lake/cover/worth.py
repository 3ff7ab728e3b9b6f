"""Worth of rows per unit of cost: the arithmetic that rankings and greedy choices share."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from equipoise.errors import InputError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    Real: TypeAlias = NDArray[np.float64]
    Whole: TypeAlias = NDArray[np.int64]

FREE = 1e-100
"""Smallest cost in a ratio: rows that cost nothing rank above all others, by their worth."""


def best_prefix(
    useful: Real, price: Real, order: Whole, table_cost: float, row_cost: float
) -> tuple[float, Whole]:
    """Return the best ratio of worth to cost, and the cells to take for it.

    >>> best_prefix(np.array([1.0, 9.0]), np.array([1.0, 2.0]), np.array([1, 0]), 1.0, 1.0)
    (1.8, array([1]))
    """
    ratios = prefix_ratios(useful, price, order, table_cost, row_cost)
    if not len(ratios):
        return 0.0, order
    best = int(np.argmax(ratios))
    return float(ratios[best]), order[: best + 1]


def prefix_ratios(useful: Real, price: Real, order: Whole, table_cost: Any, row_cost: Any) -> Real:
    """Return the ratio of worth to cost of every prefix of the cells; tables may be stacked.

    >>> prefix_ratios(np.array([[1.0, 9.0]]), np.array([1.0, 2.0]), np.array([1, 0]), 1.0, 1.0)
    array([[1.8       , 1.72727273]])
    """
    taken = useful[..., order]
    cost = table_cost + row_cost * np.cumsum(taken, axis=-1)
    ratios: Real = np.cumsum(taken * price[order], axis=-1) / np.maximum(cost, FREE)
    return ratios


def vector(name: str, values: ArrayLike, length: int | None = None) -> Real:
    """Convert to numbers of zero or more, one for each cell or table; a single one applies to all.

    >>> vector("price", 2, 3)
    array([2., 2., 2.])
    """
    found = np.asarray(values, dtype=np.float64)
    if length is not None and found.ndim == 0:
        found = np.full(length, found)
    if found.ndim != 1 or (length is not None and len(found) != length):
        wanted = "a list of numbers" if length is None else f"{length} numbers"
        raise InputError(f"{name} must be {wanted}; it has the shape {found.shape}.")
    wrong = found[~((found >= 0) & (found < math.inf))]  # NaN fails both comparisons
    if len(wrong):
        raise InputError(f"{name} must hold numbers of zero or more, not {wrong[0]}.")
    return found
