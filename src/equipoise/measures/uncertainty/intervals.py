"""Confidence intervals of Uniform Bias, of ratios of rates, and of changes between tables."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, get_args

import numpy as np

from equipoise.measures.uncertainty.arrays import Floats, align, chunks
from equipoise.measures.uncertainty.special import erfc, gamma_quantiles, normal_quantile
from equipoise.options.measure import Sampling
from equipoise.validate import between, one_of

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


class Interval(NamedTuple):
    """Lower and upper limits, elementwise."""

    low: Floats
    high: Floats


@dataclass(frozen=True)
class Change:
    """The change of UB between two tables, with its interval and an approximate p-value."""

    change: Floats
    low: Floats
    high: Floats
    p: Floats


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
    """Compute a confidence interval of UB, by MOVER from modified Wilson limits.

    With `sampling` ``"rows"``, rows were drawn at random, so that group sizes vary too; with
    ``"groups"`` only labels vary. For sums of weights, `effective` holds the effective sizes
    (sum of w)²/(sum of w²) of the group and of the rest, which broadcast like `m`.

    The interval contains the estimate; `high` is at most 1, and for ``"groups"`` `low` is at least
    1 - 1/P. It may reach below 1 - 1/max(f, P), the smallest UB possible in *this* table, because
    f, and for ``"rows"`` also P, are estimates. A group that is the whole table has UB 0 by
    construction, so its interval is [0, 0].

    R = 1/(P + (1-P)·p0/p1), so the MOVER limits of p1/p0 (Donner and Zou, 2012) map exactly to
    limits of UB. Where a count is within 3 of the boundary (2 if there are at most 50 rows), the
    Poisson limit of Brown, Cai and DasGupta (2001) replaces the Wilson limit if it is wider.
    ``"rows"`` adds, by square-and-add, how far R moves when P goes to its own Wilson limits while
    p0/p1 stays at the limit in question. For large N this is the variance
    ((p1-p0)/f)²·P(1-P)/N of log R; for small N it has better coverage (see
    ``benchmarks/coverage.py``).

    Women and incomes over 50K in Adult, UB = 0.545:

    >>> low, high = ub_interval(1179, 10771, 7841, 32561)
    >>> print(low.round(3), high.round(3))
    0.523 0.567
    """
    between("confidence", confidence, 0, 1)
    one_of("sampling", sampling, get_args(Sampling))
    arrays, shape = align(x, m, X, N, *(effective or ()))
    low, high = np.empty((2, *arrays[0].shape))
    limits = _WilsonLimits.at(1 - confidence, whole=effective is None)
    with np.errstate(divide="ignore", invalid="ignore"):
        for part, (x_, m_, X_, N_, *sizes) in chunks(arrays, low.shape):
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
    """Compute a confidence interval of p1/p0, for two groups that share no row, by MOVER.

    The sizes `n1` and `n0` are numbers of rows, or effective sizes if `whole` is false.
    """
    between("confidence", confidence, 0, 1)
    arrays = np.broadcast_arrays(*(np.asarray(a, dtype=np.float64) for a in (p1, n1, p0, n0)))
    inside, m1, outside, m0 = (np.array(a) for a in np.atleast_1d(*arrays))
    limits = _WilsonLimits.at(1 - confidence, whole=whole)
    # With P = 0, as of a group outside the table, R is p1/p0 itself.
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
        # sums of weights are rounded, which must not push a rate out of [0, 1]
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
        # lines: more than 50 rows, at most 50; columns: the count, the last for any larger one
        table = np.array([[0.0, *gamma_quantiles(alpha), np.inf]] * 2)
        table[1, 3] = np.inf
        return cls(normal_quantile(1 - alpha / 2), alpha, table if whole else None)

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
        """The lower limit of a rate near 0; infinite where the count is not small."""
        if self.poisson is None:
            from scipy.special import gammaincinv

            limit = np.full(count.shape, np.inf)
            near = count <= np.where(n > 50, 3.0, 2.0) + 1e-6  # sums of weights are rounded
            limit[near] = np.where(count[near] > 0, gammaincinv(count[near], self.alpha), 0.0)
            return np.asarray(limit / n)
        # p·n is a whole number up to rounding; nan (empty groups) becomes the last column
        column = np.fmin(count + 0.5, 4.0).astype(np.intp)
        column += 5 * (n <= 50)
        limit = self.poisson.ravel().take(column)
        limit /= n
        return limit


def _ratio_limits(
    rates: _Rates, inside: tuple[Floats, Floats], outside: tuple[Floats, Floats]
) -> tuple[Floats, Floats]:
    """Map the MOVER limits of p1/p0 to limits of R without dividing by p0, which may be 0."""
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
    """Compute p1·p0 + sqrt(c1·d1² + c0·d0²), the textbook root written without cancellation."""
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
    """Widen the limits of R, in place, by the variation of the group's size."""
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
    """Compute the interval of ub1 - ub0 for two independent tables, by MOVER square-and-add.

    `confidence` is the level of the given intervals, and so of the result. The p-value is
    approximate: it treats the change as normal, with the half width of the side towards 0.
    """
    between("confidence", confidence, 0, 1)
    z = normal_quantile(0.5 + confidence / 2)
    old, new = np.asarray(ub0, dtype=np.float64), np.asarray(ub1, dtype=np.float64)
    change = np.asarray(new - old)
    down = np.hypot(np.subtract(new, low1), np.subtract(high0, old))
    up = np.hypot(np.subtract(high1, new), np.subtract(old, low0))
    side = np.where(change > 0, down, up)
    with np.errstate(divide="ignore", invalid="ignore"):
        p = erfc(np.where(change == 0, 0.0, np.abs(change) * (z / math.sqrt(2)) / side))
    return Change(change, change - down, change + up, np.where(np.isnan(side), np.nan, p))
