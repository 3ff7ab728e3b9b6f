"""How sure a Uniform Bias is: intervals, p-values and q-values, from counts alone.

Every function takes arrays that broadcast together. In a lattice of G groups and k labels

====== =========== =======================================
name   shape       meaning
====== =========== =======================================
``x``  (G, k)      n_gy, rows of the group with the label
``m``  (G, 1)      n_g, rows of the group
``X``  (k,)        n_y, rows with the label
``N``  scalar      n, all rows
====== =========== =======================================

Inside, ``p1 = x/m`` is the rate within the group, ``p0 = (X-x)/(N-m)`` the rate in the rest,
``f = X/N`` the overall rate, ``P = m/N`` the group's share and ``R = p1/f``, so that UB = 1 - R.
Where UB is undefined (empty group, absent label) every answer is ``nan``.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, TypeAlias, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from equipoise.errors import CountsError
from equipoise.validate import between, one_of

Floats: TypeAlias = NDArray[np.float64]
Sampling = Literal["rows", "groups"]
Adjustment = Literal["bh", "by"]

CHUNK = 1 << 15
"""Elements worked on at a time: the dozen temporaries then stay in the cache."""

LEAST_EXPECTED = 5.0
"""The chi-squared test is used when all four expected counts reach this."""

TIE = 1e-12
"""Outcomes whose probabilities differ relatively by less are held to be equally likely."""


class Interval(NamedTuple):
    """Lower and upper limits, element by element."""

    low: Floats
    high: Floats


@dataclass(frozen=True)
class Change:
    """The change of a UB between two tables, with its interval and an approximate p."""

    change: Floats
    low: Floats
    high: Floats
    p: Floats


# --- intervals -----------------------------------------------------------------------------


def ub_interval(
    x: ArrayLike,
    m: ArrayLike,
    X: ArrayLike,
    N: ArrayLike,
    *,
    confidence: float = 0.95,
    sampling: Sampling = "rows",
    effective: tuple[ArrayLike, ArrayLike] | None = None,
) -> Interval:
    """Give a confidence interval of UB, by MOVER from modified Wilson limits.

    Parameters
    ----------
    x, m, X, N
        Counts, or sums of weights together with `effective`.
    confidence
        Between 0 and 1.
    sampling
        What chance decided: ``"rows"``, the rows were drawn at random, so that the sizes of the
        groups vary too; ``"groups"``, the group sizes were fixed and only the labels vary.
    effective
        For weighted rows, the effective sizes (sum of w)²/(sum of w²) of the group and of the
        rest. They broadcast like `m`.

    Returns
    -------
    Interval
        ``(low, high)``. It contains the estimate; `high` is at most 1, and under ``"groups"``
        `low` is at least 1 - 1/P. It may reach below 1 - 1/max(f, P), the least UB that *this*
        table allows, since f, and under ``"rows"`` P, are estimates too. A group that is the
        whole table has UB 0 by construction: its interval is [0, 0].

    Notes
    -----
    R = 1/(P + (1-P)·p0/p1), so the MOVER limits of p1/p0 (Donner and Zou, 2012) map exactly to
    limits of UB. Wilson limits of counts within 3 of the boundary (2 if there are at most 50
    rows) have the Poisson replacement of Brown, Cai and DasGupta (2001) where it widens.
    ``"rows"`` adds by square-and-add how far R moves when P goes to its own Wilson limits while
    p0/p1 stays at the limit in question. For large N that is the variance
    ((p1-p0)/f)²·P(1-P)/N of log R; for small N it covers what the variance misses (see
    ``benchmarks/coverage.py``).

    Examples
    --------
    Women and incomes over 50K in Adult, UB = 0.545:

    >>> low, high = ub_interval(1179, 10771, 7841, 32561)
    >>> print(low.round(3), high.round(3))
    0.523 0.567
    """
    between("confidence", confidence, 0, 1)
    one_of("sampling", sampling, get_args(Sampling))
    arrays, shape = _aligned(x, m, X, N, *(effective or ()))
    low, high = np.empty((2, *arrays[0].shape))
    limits = _WilsonLimits.at(1 - confidence, whole=effective is None)
    with np.errstate(divide="ignore", invalid="ignore"):
        for part, (x_, m_, X_, N_, *sizes) in _chunks(arrays, low.shape):
            n1, n0 = sizes or (m_, N_ - m_)
            rates = _Rates.of(x_, m_, X_, N_)
            least, most = _ratio_limits(rates, limits.of(rates.p1, n1), limits.of(rates.p0, n0))
            if sampling == "rows":
                _widen(least, most, rates, n1, n0, limits)
            _store(low[part], high[part], least, most, rates, n0)
    return Interval(low.reshape(shape), high.reshape(shape))


def ratio_interval(
    p1: ArrayLike,
    n1: ArrayLike,
    p0: ArrayLike,
    n0: ArrayLike,
    *,
    confidence: float = 0.95,
    whole: bool = True,
) -> Interval:
    """Give a confidence interval of p1/p0, rates of two groups that share no row, by MOVER.

    Parameters
    ----------
    p1, p0
        The rates of the label in the two groups.
    n1, n0
        Their rows, or effective sizes.
    confidence
        Between 0 and 1.
    whole
        Whether the sizes are numbers of rows.

    Examples
    --------
    40 of 150 women were hired, and 160 of 450 men:

    >>> low, high = ratio_interval(40 / 150, 150, 160 / 450, 450)
    >>> print(low.round(3), high.round(3))
    0.556 0.995
    """
    between("confidence", confidence, 0, 1)
    arrays = np.broadcast_arrays(*(np.asarray(a, dtype=np.float64) for a in (p1, n1, p0, n0)))
    inside, m1, outside, m0 = (np.array(a) for a in np.atleast_1d(*arrays))
    limits = _WilsonLimits.at(1 - confidence, whole=whole)
    # As R of a group that is no part of the table: there R is p1/p0 itself.
    rates = _Rates(inside, outside, outside, np.zeros(inside.shape), inside)
    with np.errstate(divide="ignore", invalid="ignore"):
        low, high = _ratio_limits(rates, limits.of(inside, m1), limits.of(outside, m0))
    low = np.where(inside == 0, 0.0, low)
    return Interval(low.reshape(arrays[0].shape), high.reshape(arrays[0].shape))


class _Rates(NamedTuple):
    p1: Floats
    p0: Floats
    f: Floats
    P: Floats
    R: Floats

    @classmethod
    def of(cls, x: Floats, m: Floats, X: Floats, N: Floats) -> _Rates:
        p1 = x / m
        # weights add up only to rounding: a rate must not leave [0, 1] by that
        p0 = np.clip((X - x) / (N - m), 0.0, 1.0)
        f = X / N
        return cls(np.minimum(p1, 1.0), p0, f, m / N, p1 / f)


@dataclass(frozen=True)
class _WilsonLimits:
    z: float
    alpha: float
    poisson: Floats | None

    @classmethod
    def at(cls, alpha: float, *, whole: bool) -> _WilsonLimits:
        from scipy.special import gammaincinv, ndtri

        # rows: more than 50, at most 50; columns: the count, the last standing for any larger
        table = np.array([[0.0, *gammaincinv([1, 2, 3], alpha), np.inf]] * 2)
        table[1, 3] = np.inf
        return cls(float(ndtri(1 - alpha / 2)), alpha, table if whole else None)

    def of(self, p: Floats, n: Floats) -> tuple[Floats, Floats]:
        z2 = self.z * self.z
        weight = n / (n + z2)
        centre = p * weight + (z2 / 2) / (n + z2)
        half = p * (1 - p) / n
        half += z2 / (4 * n * n)
        np.sqrt(half, out=half)
        half *= self.z * weight
        low, high = centre - half, np.add(centre, half, out=centre)
        count = p * n
        np.minimum(low, self._poisson_limit(count, n), out=low)
        np.subtract(n, count, out=count)
        np.maximum(high, 1 - self._poisson_limit(count, n), out=high)
        return np.maximum(low, 0.0, out=low), np.minimum(high, 1.0, out=high)

    def _poisson_limit(self, count: Floats, n: Floats) -> Floats:
        """Give the lower limit of a rate near 0, infinity where the count is not small."""
        if self.poisson is None:
            from scipy.special import gammaincinv

            limit = np.full(count.shape, np.inf)
            near = count <= np.where(n > 50, 3.0, 2.0) + 1e-6  # weights add up to rounding
            limit[near] = np.where(count[near] > 0, gammaincinv(count[near], self.alpha), 0.0)
            return np.asarray(limit / n)
        # p·n misses a whole number by rounding only; nan (empty groups) becomes the last column
        column = np.fmin(count + 0.5, 4.0).astype(np.intp)
        column += 5 * (n <= 50)
        limit = self.poisson.ravel().take(column)
        limit /= n
        return limit


def _ratio_limits(
    rates: _Rates, inside: tuple[Floats, Floats], outside: tuple[Floats, Floats]
) -> tuple[Floats, Floats]:
    """Map the MOVER limits of p1/p0 to limits of R, without ever dividing by p0."""
    p1, p0, _, P, _ = rates
    (l1, u1), (l0, u0) = inside, outside

    def mapped(top: Floats, bottom: Floats) -> Floats:
        bottom *= 1 - P
        bottom += P * top
        return np.divide(top, bottom, out=top)

    a = l1 * (2 * p1 - l1)
    least = mapped(a, _mover_root(p1, p0, p1 - l1, u0 - p0, p0 * p0, a))
    b = l0 * (2 * p0 - l0)
    a = _mover_root(p1, p0, u1 - p1, p0 - l0, b, p1 * p1)
    np.copyto(a, 1.0, where=b == 0)  # p0 may be 0, p1/p0 infinite: then R is 1/P
    return least, mapped(a, b)


def _mover_root(p1: Floats, p0: Floats, d1: Floats, d0: Floats, c1: Floats, c0: Floats) -> Floats:
    """Give p1·p0 + sqrt(c1·d1² + c0·d0²), the textbook's root written without cancellation."""
    d1 *= d1
    d1 *= c1
    d0 *= d0
    d0 *= c0
    d1 += d0
    np.sqrt(d1, out=d1)
    d1 += p1 * p0
    return d1


def _widen(
    least: Floats, most: Floats, rates: _Rates, n1: Floats, n0: Floats, limits: _WilsonLimits
) -> None:
    """Add, in place, what the chance of the group's size contributes to the limits of R."""
    P = rates.P
    # the effective size of all rows together: (sum of w)² over the sum of w² of both parts
    size = 1 / (P * P / n1 + (1 - P) * (1 - P) / n0)
    down, up = ((limit - P) / (1 - P) for limit in limits.of(P, size))
    for limit, above, below in (most, down, up), (least, up, down):
        # with p0/p1 as at this limit, a share of P + d(1-P) gives R/(1 + d(R-1))
        margin = limit - 1
        margin *= np.where(margin > 0, above, below)
        margin /= 1 + margin
        margin *= limit
        np.subtract(limit, rates.R, out=limit)
        np.hypot(limit, margin, out=limit)
    np.subtract(rates.R, least, out=least)
    np.add(rates.R, most, out=most)


def _store(
    low: Floats, high: Floats, least: Floats, most: Floats, rates: _Rates, n0: Floats
) -> None:
    np.subtract(1, np.maximum(most, rates.R), out=low)
    np.subtract(1, np.clip(least, 0.0, rates.R), out=high)
    np.copyto(high, 1.0, where=rates.p1 == 0)
    for limit in low, high:
        np.copyto(limit, 0.0, where=n0 == 0)
        np.copyto(limit, np.nan, where=np.isnan(rates.R))


# --- tests of a group against the rest -------------------------------------------------------


def p_value(x: ArrayLike, m: ArrayLike, X: ArrayLike, N: ArrayLike) -> Floats:
    """Give the two-sided p of "the group has the rate of the rest".

    The (N-1)χ² test where all four expected counts are at least 5, else Fisher's exact test
    with mid-p: the probability of all outcomes less likely than the one seen, and half that of
    the equally likely ones. Counts must be whole numbers. ``nan`` where there is nothing to
    compare: an empty group, a label that no row or every row has, a group that is the whole table.

    Examples
    --------
    >>> p_value([3, 0], [4, 4], 10, 40).round(4).tolist()
    [0.022, 0.4058]
    >>> p_value(1179, 10771, 7841, 32561) < 1e-300
    np.True_
    """
    (x_, m_, X_, N_), shape = _aligned(x, m, X, N)
    _check_whole(x_, m_, X_, N_)
    if _is_binary(x_, m_, X_, N_):
        one = p_value(x_[..., :1], m_, X_[..., :1], N_)  # the other label's is the same
        return np.repeat(one, 2, axis=-1).reshape(shape)
    p = np.empty(x_.shape)
    per_label = X_.shape[0] == N_.shape[0] == 1
    with np.errstate(divide="ignore", invalid="ignore"):
        for part, chunk in _chunks((x_, m_, X_, N_), x_.shape):
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
    """Give an approximate p for sums of weights: that of the same rates in the effective sizes.

    Sizes and counts are rounded to whole rows, so that equal weights give `p_value`. Where no
    whole row with the label is left there is no evidence: p is 1. `effective` is that of
    `ub_interval`.

    Examples
    --------
    >>> print(weighted_p_value(6.0, 10.0, 20.0, 80.0, effective=(5.0, 35.0)).round(4))
    0.0496
    >>> print(p_value(3, 5, 10, 40).round(4))
    0.0496
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
    """Tell which groups are too small to say anything to the side they lean to.

    Where a group has `fewer` rows with the label than its share, not even having none could
    give a p of at most `alpha`; where it has more, not even having as many as possible could.
    Groups that cannot be compared at all (see `p_value`) count as too small.

    Examples
    --------
    Of 40 rows 10 have the label. Lacking it says something from ten rows on, having it from two:

    >>> too_small(True, [2, 9, 10], 10, 40).tolist()
    [True, True, False]
    >>> too_small(False, [1, 2], 10, 40).tolist()
    [True, False]
    """
    between("alpha", alpha, 0, 1)
    size, label, n = np.asarray(m), np.asarray(X), np.asarray(N)
    fewest, most = np.maximum(size + label - n, 0), np.minimum(size, label)
    return np.asarray(~(p_value(np.where(fewer, fewest, most), size, label, n) <= alpha))


class _Folded(NamedTuple):
    """The 2x2 table turned so that a <= b <= N/2 and x counts what a and b share.

    Swapping group and rest, label and other labels, or group and label changes no p.
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
    from scipy.special import erfc  # never with where=: that writes out of bounds up to SciPy 1.17

    x, a, b, N = table
    expected = table.expected
    root = np.abs(x - expected)
    root *= np.sqrt((N - 1) * N / (2 * expected * (N - a) * (N - b)))
    return np.asarray(erfc(root, out=root))


def _distinct_mid_p(table: _Folded, where: NDArray[np.bool_]) -> Floats:
    """Work out each distinct table once: rows of one label share X and N."""
    label = np.arange(math.prod(where.shape[1:])).reshape(1, *where.shape[1:])
    key = np.broadcast_to(label, where.shape)[where]
    chosen = table.at(where)
    for digit in chosen.x, chosen.a + chosen.b:
        key *= int(digit.max()) + 1
        key += digit.astype(np.int64)
    _, first, inverse = np.unique(key, return_index=True, return_inverse=True)
    return _mid_p(chosen.at(first))[inverse]


def _mid_p(table: _Folded) -> Floats:
    """Sum the hypergeometric probabilities, in blocks of about equally long supports.

    With an expected count below 5 the mode is at most 5, and 32 terms past both it and x the
    rest is below 1e-15 of what was summed; at 400 every probability is below 1e-300.
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
    # probabilities relative to that of 0: a product of ratios, with none of the cancellation
    # that differences of log-gammas of ten million bring
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
    """Turn p-values into q-values: call all with q <= 0.05, and about 5 % of the calls are false.

    Parameters
    ----------
    p
        p-values of any shape; ``nan`` stays ``nan`` and does not count as a test.
    method
        ``"bh"``, Benjamini and Hochberg, approximate for a lattice because its groups overlap;
        ``"by"``, Benjamini and Yekutieli, valid under any dependence, and stricter.

    Examples
    --------
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


# --- change between two tables -----------------------------------------------------------------


def ub_change_interval(
    ub0: ArrayLike,
    low0: ArrayLike,
    high0: ArrayLike,
    ub1: ArrayLike,
    low1: ArrayLike,
    high1: ArrayLike,
    *,
    confidence: float = 0.95,
) -> Change:
    """Compare the UBs of two independent tables: ub1 - ub0, by MOVER square-and-add.

    `confidence` is that of the given intervals, and so that of the answer. The p is
    approximate: it takes the change for normal, with the half width of the side towards 0.

    Examples
    --------
    >>> change = ub_change_interval(0.30, 0.25, 0.36, 0.20, 0.16, 0.23)
    >>> print(change.change.round(3), change.low.round(3), change.high.round(3))
    -0.1 -0.172 -0.042
    >>> print(change.p.round(4))
    0.0008
    """
    from scipy.special import erfc, ndtri

    between("confidence", confidence, 0, 1)
    z = float(ndtri(0.5 + confidence / 2))
    old, new = np.asarray(ub0, dtype=np.float64), np.asarray(ub1, dtype=np.float64)
    change = np.asarray(new - old)
    down = np.hypot(np.subtract(new, low1), np.subtract(high0, old))
    up = np.hypot(np.subtract(high1, new), np.subtract(old, low0))
    side = np.where(change > 0, down, up)
    with np.errstate(divide="ignore", invalid="ignore"):
        p = erfc(np.where(change == 0, 0.0, np.abs(change) * (z / math.sqrt(2)) / side))
    return Change(change, change - down, change + up, np.where(np.isnan(side), np.nan, p))


# --- shapes and checks ---------------------------------------------------------------------------


def _aligned(*given: ArrayLike) -> tuple[tuple[NDArray[Any], ...], tuple[int, ...]]:
    """Give all arrays one number of axes, the first one the full shape; and that shape."""
    arrays = [np.asarray(array) for array in given]
    shape = np.broadcast_shapes(*(array.shape for array in arrays))
    axes = max(1, len(shape))
    arrays = [array.reshape((1,) * (axes - array.ndim) + array.shape) for array in arrays]
    arrays[0] = np.broadcast_to(arrays[0], shape or (1,))
    return tuple(arrays), shape


def _chunks(
    arrays: tuple[NDArray[Any], ...], shape: tuple[int, ...]
) -> Iterator[tuple[slice, list[Floats]]]:
    rows = max(1, CHUNK // max(1, math.prod(shape[1:])))
    for start in range(0, shape[0], rows):
        part = slice(start, start + rows)
        chunk = [array if array.shape[0] == 1 else array[part] for array in arrays]
        yield part, [piece.astype(np.float64, copy=False) for piece in chunk]


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
                "p-values need whole counts, and some are fractions; "
                "for weighted rows give the counts of rows"
            )
