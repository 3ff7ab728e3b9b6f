"""Ranking of tables by needed rows per unit of cost, without scanning all of them."""

from __future__ import annotations

import bisect
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from equipoise.errors import InputError
from equipoise.lake.cover.worth import best_prefix, vector
from equipoise.validate import at_least

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from equipoise.lake.cover.worth import Whole

_ROUNDING = 1e-9
"""Relative excess of a score over its bound that rounding may cause."""


def score(
    rows: ArrayLike,
    need: ArrayLike,
    *,
    price: ArrayLike | None = None,
    confidence: float = 1.0,
    table_cost: float = 1.0,
    row_cost: float = 0.0,
) -> float:
    """Compute the largest worth per unit of cost that one table offers.

    With t the rows of each cell that are needed and offered, it is the largest of
    Σ price·x / (table_cost + row_cost·Σ x) over all choices 0 ≤ x ≤ t of rows to take, times the
    confidence. The best choice takes all rows of a higher price before any of a lower one, so it
    is a prefix of the cells by price. More rows only widen the choice, so the score never falls
    when a table offers more, and counts that are too high give an upper bound. A table without
    costs ranks above all others (see ``FREE``).
    """
    needed = vector("need", need)
    offered = vector("rows", rows, len(needed))
    worth = vector("price", 1.0 if price is None else price, len(needed))
    if not 0 < confidence <= 1:
        raise InputError(f"confidence must be above 0 and at most 1, not {confidence}.")
    at_least("table_cost", table_cost, 0)
    at_least("row_cost", row_cost, 0)
    order = np.argsort(-worth, kind="stable")
    best, _ = best_prefix(np.minimum(needed, offered), worth, order, table_cost, row_cost)
    return confidence * best


def frechet(marginals: Sequence[ArrayLike], cells: ArrayLike) -> Whole:
    """Bound the rows of each cell by the counts of single columns (the Fréchet bound).

    A cell has no more rows than any of its values has. In ``cells``, -1 stands for a value that
    the table does not have.
    """
    codes = np.asarray(cells, dtype=np.int64)
    if not marginals or codes.ndim != 2 or codes.shape[1] != len(marginals):
        raise InputError(
            f"cells must have a value for each of the {len(marginals)} columns counted, at least "
            f"one; they have the shape {codes.shape}."
        )
    bound = np.full(len(codes), np.iinfo(np.int64).max)
    for i, marginal in enumerate(marginals):
        counts = np.append(np.asarray(marginal, dtype=np.int64), 0)  # where -1 points
        if ((codes[:, i] < -1) | (codes[:, i] >= len(counts) - 1)).any():
            raise InputError(
                f"cells name a value of column {i} that is not counted; it has the values 0 to "
                f"{len(counts) - 2}, and -1 stands for one that is absent."
            )
        np.minimum(bound, counts[codes[:, i]], out=bound)
    return bound


def top(bounds: ArrayLike, exact: Callable[[int], float], k: int) -> list[tuple[int, float]]:
    """Return the numbers and scores of the best k tables, best first.

    Tables are scanned in the order of upper bounds on their scores, until no other table can
    precede the k-th best. A table whose bound is zero is not scanned. The result is the same as
    after a scan of all tables.

    >>> top([9.0, 2.0, 7.0, 3.0], [5.0, 2.0, 6.0, 1.0].__getitem__, k=2)
    [(2, 6.0), (0, 5.0)]
    """
    limits = vector("bounds", bounds)
    at_least("k", k, 1, whole=True)
    best: list[tuple[float, int]] = []
    for i in map(int, np.argsort(-limits, kind="stable")):
        # Of equal scores the table with the lower number precedes, hence pairs are compared.
        if len(best) >= k and (-limits[i], i) > best[k - 1]:
            break
        bisect.insort(best, (-_within(exact, i, float(limits[i])), i))
    return [(i, 0.0 - score) for score, i in best[:k]]


def _within(exact: Callable[[int], float], i: int, bound: float) -> float:
    found = exact(i) if bound > 0 else 0.0
    if not 0 <= found <= bound * (1 + _ROUNDING):
        raise InputError(
            f"table {i} scores {found}, outside 0 to its bound {bound}; bounds must hold for the "
            "best to be found without scanning all."
        )
    # Score and bound may be rounded differently; capping keeps the order independent of that.
    return min(found, bound)
