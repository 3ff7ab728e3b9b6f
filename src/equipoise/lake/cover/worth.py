"""Worth of rows per unit of cost, and validation of prices and costs."""

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
"""Smallest cost in a ratio: what costs nothing ranks above everything else, by its worth."""


def best_prefix(
    useful: Real, price: Real, order: Whole, table_cost: float, row_cost: float
) -> tuple[float, Whole]:
    """Return the best ratio of worth to cost, and the cells to take for it.

    >>> best_prefix(np.array([1.0, 9.0]), np.array([1.0, 2.0]), np.array([1, 0]), 1.0, 1.0)
    (1.8, array([1]))
    """
    ratios = prefix_ratios(useful, price, order, table_cost, row_cost)
    best = int(np.argmax(ratios)) if len(ratios) else 0
    return (float(ratios[best]), order[: best + 1]) if len(ratios) else (0.0, order)


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
    """Convert to numbers of zero or more for each cell or table; one number applies to all.

    >>> vector("price", 2, 3)
    array([2., 2., 2.])
    """
    found = np.asarray(values, dtype=np.float64)
    if length is not None and found.ndim == 0:
        found = np.full(length, found)
    if found.ndim != 1 or (length is not None and len(found) != length):
        wanted = "a list of numbers" if length is None else f"{length} numbers"
        raise InputError(f"{name} must be {wanted}; it has the shape {found.shape}.")
    if not ((found >= 0) & (found < math.inf)).all():
        wrong = found[~((found >= 0) & (found < math.inf))][0]
        raise InputError(f"{name} must hold numbers of zero or more, not {wrong}.")
    return found


def prices(price: ArrayLike | None, length: int) -> Real:
    """Return the price of each cell, 1 by default.

    >>> prices(None, 2)
    array([1., 1.])
    """
    return vector("price", 1.0 if price is None else price, length)
