r"""How much a batch speaks against a null: the likelihood of a bet, against that of the null.

The null is an interval for the ratio p1/p0 of the rates of the label in a group and in the rows it
is compared with, in each batch for itself. A bet is made of past batches alone. The factor of a
batch is its likelihood under the bet over that under the point of the null that is nearest to the
bet. Under the null its expectation is at most 1, whatever the sizes and the overall rate are, and
whatever they were before.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from equipoise.monitoring.evidence.samples import Floats, Samples

if TYPE_CHECKING:
    from numpy.typing import NDArray

_NO_BOUND = 1e300
"""Stands for infinity, which times a rate of 0 would be no number."""
_LEAST = 1e-15
_PRIOR = 2.0
"""Number of rows that the overall rate counts as in a bet on a group."""


def ratio_bounds(share: Floats, least: Floats, most: Floats) -> tuple[Floats, Floats]:
    """The bounds of p1/p0 that bounds of 1 − UB, least and most, mean for groups of a share.

    1 − UB = f_gy/f_y = R means p1/p0 = R(1 − P) / (1 − R·P). No group can have R above 1/P, so that
    a larger upper bound excludes nothing. A lower one would exclude all rates there are; such a
    batch cannot meet the limit, whatever it says, and so says nothing: it excludes nothing as well.

    >>> low, high = ratio_bounds(np.array([0.2]), np.array([0.9]), np.array([1.1]))
    >>> low.round(4).tolist(), high.round(4).tolist()
    ([0.878], [1.1282])
    """
    return _ratio(share, least, 0.0), _ratio(share, most, np.inf)


def _ratio(share: Floats, relative: Floats, beyond: float) -> Floats:
    relative = np.minimum(relative, _NO_BOUND)
    # Groups that are the whole batch: 0/0 and 1/0 are bounds that exclude nothing.
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        found = relative * (1 - share) / (1 - relative * share)
    return np.where(relative * share >= 1, beyond, found)


def bets(past: Samples, low: Floats, high: Floats) -> tuple[Floats, Floats]:
    """The rates to bet on, from sums over past batches: of the group, and of the others.

    The fewer rows there were, the nearer they are to the overall rate, and to the null.
    """
    rows = past.m + past.r
    overall = np.where(rows > 0, (past.x + past.z) / np.maximum(rows, 1e-9), 0.0)
    # Without any rows of a group, the bet is the point of the null nearest to equal rates.
    centre = overall * np.clip(1.0, low, np.maximum(high, low))
    group = (past.x + _PRIOR * np.minimum(centre, 0.5 * (1 + overall))) / (past.m + _PRIOR)
    return group, (past.z + _PRIOR * overall) / (past.r + _PRIOR)


def log_factors(
    now: Samples,
    bet: tuple[Floats, Floats],
    low: Floats,
    high: Floats,
    told: NDArray[np.bool_] | None = None,
) -> Floats:
    """The logarithm of the factor of each batch; 0 where the bet is in the null.

    ``told`` are the batches that are asked, by default all in which both samples have rows.

    >>> one = lambda value: np.array([[float(value)]])
    >>> now = Samples(one(5), one(50), one(50), one(100))
    >>> bet = one(0.2), one(0.5)
    >>> log_factors(now, bet, one(0.9), one(1.1)).round(3).tolist()
    [[9.397]]
    >>> log_factors(now, bet, one(0.3), one(1.1)).tolist()
    [[0.0]]
    """
    theta1, theta0 = bet
    high = np.minimum(high, _NO_BOUND)
    outside = (theta1 < low * theta0) | (theta1 > high * theta0)
    # A rate of 0 or 1 is a bet only if no past row says otherwise, and then says nothing.
    sound = (theta0 > 0) & (theta0 < 1) & (theta1 > 0) & (theta1 < 1)
    places = np.nonzero(outside & sound & (now.used if told is None else told))
    found = np.zeros(now.x.shape)
    if not len(places[0]):
        return found
    t1, t0, x, m, z, r = (part[places] for part in (theta1, theta0, *now))
    k = np.where(t1 < (low * np.ones_like(theta1))[places] * t0, *_at(low, high, theta1, places))
    found[places] = _log_factor(t1, t0, k, x, m, z, r)
    return found


def _at(
    low: Floats, high: Floats, like: Floats, places: tuple[np.ndarray, ...]
) -> tuple[Floats, Floats]:
    return (
        np.broadcast_to(low, like.shape)[places],
        np.broadcast_to(high, like.shape)[places],
    )


def _log_factor(
    t1: Floats, t0: Floats, k: Floats, x: Floats, m: Floats, z: Floats, r: Floats
) -> Floats:
    a, b = nearest(t1, t0, k, m, r)
    return (
        x * np.log(t1 / a)
        + (m - x) * np.log((1 - t1) / (1 - a))
        + z * np.log(t0 / b)
        + (r - z) * np.log((1 - t0) / (1 - b))
    )


def nearest(t1: Floats, t0: Floats, k: Floats, m: Floats, r: Floats) -> tuple[Floats, Floats]:
    """The rates a = k·b that the rates t1 and t0 of m and r rows are least unlike.

    They make the expected logarithm of the likelihood largest, which is a quadratic equation in b.
    """
    s, fails1, fails0 = m * t1 + r * t0, k * m * (1 - t1), r * (1 - t0)
    linear = s * (1 + k) + fails1 + fails0
    # As a sum of squares the discriminant keeps its digits where all rates are near 1.
    root = np.sqrt((s * (k - 1) + fails1 - fails0) ** 2 + 4 * fails1 * fails0)
    b = 2 * s / (linear + root)
    # Very large ratios bring a so near to 1 that rounding would reach it.
    return np.clip(k * b, _LEAST, 1 - _LEAST), np.clip(b, _LEAST, 1 - _LEAST)
