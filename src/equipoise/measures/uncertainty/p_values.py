"""Whether a group differs from the rest by more than chance: p-values and q-values."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple, get_args

import numpy as np

from equipoise.errors import CountsError
from equipoise.measures.uncertainty.arrays import CHUNK, Floats, align, chunks
from equipoise.measures.uncertainty.special import erfc
from equipoise.options.measure import Adjustment
from equipoise.validate import between, one_of

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray


LEAST_EXPECTED = 5.0
"""The chi-squared test is used when all four expected counts reach this."""

TIE = 1e-12
"""Outcomes whose probabilities differ by a smaller share count as equally likely."""


def p_value(x: ArrayLike, m: ArrayLike, X: ArrayLike, N: ArrayLike) -> Floats:
    """Compute the two-sided p-value of "the group has the same rate as the rest".

    The (N-1)χ² test is used where all four expected counts are at least 5. Elsewhere it is
    Fisher's exact test with mid-p: the probability of all outcomes less likely than the observed
    one, plus half that of the equally likely ones. Counts must be whole numbers. The result is
    ``nan`` where there is nothing to compare: for an empty group, a label that no row or every row
    has, and a group that is the whole table.

    >>> p_value([3, 0], [4, 4], 10, 40).round(4).tolist()
    [0.022, 0.4058]
    >>> p_value(1179, 10771, 7841, 32561) < 1e-300
    np.True_
    """
    (x_, m_, X_, N_), shape = align(x, m, X, N)
    _check_whole(x_, m_, X_, N_)
    if _is_binary(x_, m_, X_, N_):
        one = p_value(x_[..., :1], m_, X_[..., :1], N_)  # the other label's is the same
        return np.repeat(one, 2, axis=-1).reshape(shape)
    p = np.empty(x_.shape)
    per_label = X_.shape[0] == N_.shape[0] == 1
    with np.errstate(divide="ignore", invalid="ignore"):
        for part, chunk in chunks((x_, m_, X_, N_), x_.shape):
            p[part] = _p_values(_Folded.of(*chunk), per_label=per_label)
    return p.reshape(shape)


def weighted_p_value(
    x: ArrayLike,
    m: ArrayLike,
    X: ArrayLike,
    N: ArrayLike,
    *,
    effective: tuple[ArrayLike, ArrayLike],
) -> Floats:
    """Compute an approximate p-value for sums of weights, by the same rates in effective sizes.

    Sizes and counts are rounded to whole rows, so equal weights give `p_value`. Where no whole
    row with the label is left, there is no evidence and p is 1. `effective` is as in `ub_interval`.
    """
    x, m, X, N = (np.asarray(array, dtype=np.float64) for array in (x, m, X, N))
    n1, n0 = (np.rint(size) for size in effective)
    with np.errstate(divide="ignore", invalid="ignore"):
        inside = np.rint(np.minimum(x / m, 1.0) * n1)
        outside = np.rint(np.clip((X - x) / (N - m), 0.0, 1.0) * n0)
    p = p_value(inside, n1, inside + outside, n1 + n0)
    comparable = (n1 > 0) & (n0 > 0) & (X > 0) & (X < N)
    return np.where(comparable, np.where(np.isnan(p), 1.0, p), np.nan)


def too_small(
    fewer: ArrayLike, m: ArrayLike, X: ArrayLike, N: ArrayLike, *, alpha: float = 0.05
) -> NDArray[np.bool_]:
    """Find the groups that are too small to prove anything in the direction they differ.

    A group with `fewer` rows with the label than its share is too small if even having none would
    not give a p-value of at most `alpha`; a group with more, if even having as many as possible
    would not. Groups that cannot be compared at all (see `p_value`) count as too small.
    """
    between("alpha", alpha, 0, 1)
    size, label, n = np.asarray(m), np.asarray(X), np.asarray(N)
    fewest, most = np.maximum(size + label - n, 0), np.minimum(size, label)
    return np.asarray(~(p_value(np.where(fewer, fewest, most), size, label, n) <= alpha))


class _Folded(NamedTuple):
    """The 2x2 table arranged so that a <= b <= N/2 and x counts the rows in both a and b.

    Swapping group and rest, label and other labels, or group and label leaves p unchanged.
    """

    x: Floats
    a: Floats
    b: Floats
    N: Floats

    @classmethod
    def of(cls, x: Floats, m: Floats, X: Floats, N: Floats) -> _Folded:
        m = np.broadcast_to(m, np.broadcast_shapes(x.shape, m.shape))
        rest, others = N - m, N - X
        x = np.where(m > rest, X - x, x)
        m = np.minimum(m, rest)
        x = np.where(others < X, m - x, x)
        X = np.minimum(X, others)
        return cls(x, np.minimum(m, X), np.maximum(m, X), N)

    @property
    def expected(self) -> Floats:
        """The smallest of the four expected counts."""
        return self.a * self.b / self.N

    def at(self, where: NDArray[Any]) -> _Folded:
        return _Folded(*(np.broadcast_to(part, self.a.shape)[where] for part in self))


def _p_values(table: _Folded, *, per_label: bool) -> Floats:
    if ((table.x < 0) | (table.x > table.a)).any():
        raise CountsError("a cell of group or rest has fewer than 0 rows; check x, m, X and N")
    few = table.expected < LEAST_EXPECTED
    p = np.full(few.shape, np.nan)
    p[~few] = _chi_squared_p(table.at(~few))
    few &= table.a > 0
    if few.any():
        p[few] = _distinct_mid_p(table, few) if per_label else _mid_p(table.at(few))
    return p


def _chi_squared_p(table: _Folded) -> Floats:
    x, a, b, N = table
    expected = table.expected
    root = np.abs(x - expected)
    root *= np.sqrt((N - 1) * N / (2 * expected * (N - a) * (N - b)))
    return erfc(root)


def _distinct_mid_p(table: _Folded, where: NDArray[np.bool_]) -> Floats:
    """Compute each distinct table once; this is possible because rows of one label share X and N."""
    label = np.arange(math.prod(where.shape[1:])).reshape(1, *where.shape[1:])
    key = np.broadcast_to(label, where.shape)[where]
    chosen = table.at(where)
    for digit in chosen.x, chosen.a + chosen.b:
        key *= int(digit.max()) + 1
        key += digit.astype(np.int64)
    _, first, inverse = np.unique(key, return_index=True, return_inverse=True)
    return _mid_p(chosen.at(first))[inverse]


def _mid_p(table: _Folded) -> Floats:
    """Sum the hypergeometric probabilities, in blocks of tables with similarly many terms.

    With an expected count below 5 the mode is at most 5. From 32 terms past both the mode and x
    on, the remaining terms are below 1e-15 of the sum; from 400 on, all are below 1e-300.
    """
    last = np.fmin(table.a, np.minimum(np.maximum(table.x, 5) + 32, 400)).astype(np.intp)
    order = np.argsort(last)
    p = np.empty(order.size)
    stop = order.size
    while stop:
        terms = int(last[order[stop - 1]]) + 1
        start = max(0, stop - max(1, 2 * CHUNK // terms))
        block = order[start:stop]
        p[block] = _mid_p_block(table.at(block), terms)
        stop = start
    return p


def _mid_p_block(table: _Folded, terms: int) -> Floats:
    x, a, b, N = table
    # Probabilities relative to that of 0, as products of ratios: differences of log-gammas of ten
    # million would lose half of all digits.
    weight = np.ones((terms, x.size))
    spare = N - a - b
    for j in range(terms - 1):
        np.multiply(a - j, b - j, out=weight[j + 1])
        weight[j + 1] /= (spare + (j + 1)) * (j + 1)
        weight[j + 1] *= weight[j]
    seen = weight[np.minimum(x, terms - 1).astype(np.intp), np.arange(x.size)]
    total = weight.sum(axis=0)
    p = np.einsum("ij,ij->j", weight, weight <= seen * (1 + TIE))
    p += np.einsum("ij,ij->j", weight, weight < seen * (1 - TIE))
    return np.asarray(p / (2 * total))


def adjust(p: ArrayLike, method: Adjustment = "bh") -> Floats:
    """Turn p-values into q-values, to control the false discovery rate.

    About 5 % of all findings with q <= 0.05 are false. ``"bh"`` (Benjamini and Hochberg) is
    approximate for a lattice, because its groups overlap; ``"by"`` (Benjamini and Yekutieli) is
    stricter and valid under any dependence. ``nan`` stays ``nan`` and does not count as a test.

    >>> adjust([0.01, float("nan"), 0.04, 0.03]).round(4).tolist()
    [0.03, nan, 0.04, 0.04]
    >>> adjust([0.01, float("nan"), 0.04, 0.03], "by").round(4).tolist()
    [0.055, nan, 0.0733, 0.0733]
    """
    one_of("method", method, get_args(Adjustment))
    q = np.array(p, dtype=np.float64)
    flat = q.reshape(-1)
    order = np.argsort(flat)[: flat.size - int(np.isnan(flat).sum())]
    ranks = np.arange(1, order.size + 1, dtype=np.float64)
    factor = order.size * (float(np.sum(1 / ranks)) if method == "by" else 1.0)
    scaled = flat[order]
    scaled *= factor
    scaled /= ranks
    scaled = np.minimum.accumulate(scaled[::-1])[::-1]
    flat[order] = np.minimum(scaled, 1.0)
    return q


def _is_binary(x: NDArray[Any], m: NDArray[Any], X: NDArray[Any], N: NDArray[Any]) -> bool:
    if (x.shape[-1], m.shape[-1], X.shape[-1], N.shape[-1]) != (2, 1, 2, 1):
        return False
    return all(
        bool((part[..., 0] + part[..., 1] == whole[..., 0]).all())
        for part, whole in ((X, N), (x, m))
    )


def _check_whole(*arrays: NDArray[Any]) -> None:
    for array in arrays:
        if array.dtype.kind == "f" and not (np.isnan(array) | (array == np.rint(array))).all():
            raise CountsError(
                "p-values need whole counts, and some are fractions; for weighted rows use "
                "weighted_p_value."
            )
