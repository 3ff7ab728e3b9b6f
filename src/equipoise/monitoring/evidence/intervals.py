"""Confidence sequences for UB: the values that a stream has not refuted, at any time.

A value is refuted once the e-process of the null "p1/p0 is ρ in every batch" reaches 1/alpha. With
probability 1 − alpha the true ratio of rates is never refuted, if it is the same in all batches. It
is shown as the UB that it means for a group of the share that this one has in all batches together:
the shares of single batches vary, and the UB of a batch with them, where the ratio does not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from equipoise.monitoring.evidence.factors import bets, nearest
from equipoise.monitoring.evidence.samples import Floats, Samples, sums_before

if TYPE_CHECKING:
    from numpy.typing import NDArray

_AROUND = np.array([-5.2, -3.2, -1.6, 0.0, 1.6, 3.2, 5.2])
"""Distances from an estimate at which ratios are tried, in standard errors of its logarithm."""
_EARLIER = 0.7 ** np.arange(1, 10)
"""Of which parts of what all batches tell there are estimates, too; UB may not be constant."""
_FARTHER = 32
"""Number of ratios that are tried on either side of the last estimate beside these."""
_MOST = np.log(1e9)
"""Largest logarithm of a ratio that is tried."""
_ENTRIES = 100_000
"""Maximum number of entries of an array; smaller ones stay in the caches of a processor."""
_NOTHING, _EVERYTHING = np.zeros((1, 1)), np.full((1, 1), np.inf)
"""Bounds that no bet is drawn to."""


class Sequence(NamedTuple):
    """Limits of UB after some batches.

    They are nan where every value is refuted, as UB was not constant, and where there are no rows.
    """

    low: Floats
    high: Floats


def confidence_sequence(
    samples: Samples, times: NDArray[np.int64], alpha: float = 0.05
) -> Sequence:
    """Compute the limits of UB of one comparison with all other rows, after the batches ``times``.

    ``samples`` has one line, and ``times`` rising numbers of batches, counted from 1.
    """
    sums, found = _sums(samples, times), np.full((2, len(times)), np.nan)
    at_last = _near_last(sums)
    grid = np.unique(np.concatenate([at_last, _near_earlier(sums)]))
    log_e = _evidence(samples, np.exp(grid), times)
    threshold = -np.log(alpha)
    # The last limits are the same whatever times there are before.
    of_last = np.isin(grid, at_last)
    for place in np.flatnonzero(sums.rows.m > 0).tolist():
        tried = of_last | (place < len(times) - 1)
        found[:, place] = _crossings(grid[tried], log_e[tried, place], threshold)
    # The share is that of all batches until then, which later ones do not change.
    k, share = np.exp(found), sums.rows.share
    return Sequence(*(1 - k / (1 - share + share * k)))


class _Sums(NamedTuple):
    """Sums over the batches with rows of both samples, after some of them."""

    rows: Samples
    log_ratio: Floats
    """Logarithm of the ratio of rates that they have in common (Mantel–Haenszel)."""

    @property
    def error(self) -> Floats:
        """Standard error of this logarithm."""
        x, m, z, r = self.rows
        variance = 1 / (x + 0.5) - 1 / (m + 1) + 1 / (z + 0.5) - 1 / (r + 1)
        return np.asarray(np.sqrt(np.maximum(variance, 1e-30)))


def _sums(samples: Samples, times: NDArray[np.int64]) -> _Sums:
    x, m, z, r = (np.where(samples.used, part, 0.0) for part in samples)
    n = np.maximum(m + r, 1.0)
    parts = np.concatenate([x, m, z, r, x * r / n, z * m / n])
    sums = np.concatenate([np.zeros((6, 1)), np.cumsum(parts, axis=1)], axis=1)[:, times]
    rows, (above, below) = Samples(*sums[:4]), sums[4:]
    # Half a row with the label on either side keeps the logarithm finite.
    share = np.clip(rows.share, 1e-9, 1 - 1e-9)
    return _Sums(rows, np.log((above + 0.5 * (1 - share)) / (below + 0.5 * share)))


def _near_last(sums: _Sums) -> Floats:
    """Logarithms of the ratios that are tried: all there are, dense around the last estimate."""
    centre, error = sums.log_ratio[-1], sums.error[-1]
    # Without rows with the label the evidence is far from a parabola.
    far = np.geomspace(min(error, 0.1), 2 * _MOST, _FARTHER)
    found = [centre + _AROUND * error, centre - far, centre + far, [-_MOST, _MOST]]
    return np.unique(np.clip(np.concatenate(found), -_MOST, _MOST))


def _near_earlier(sums: _Sums) -> Floats:
    """Logarithms of ratios around estimates of fewer rows."""
    known = np.maximum.accumulate(sums.error**-2)
    chosen = np.unique(np.searchsorted(known[:-1], known[-1] * _EARLIER))
    chosen = chosen[chosen < len(known) - 1]
    found = sums.log_ratio[chosen] + _AROUND[:, None] * sums.error[chosen]
    return np.asarray(np.clip(found.ravel(), -_MOST, _MOST))


def _crossings(grid: Floats, log_e: Floats, threshold: float) -> tuple[float, float]:
    """The largest and the least ratio that is not refuted, as logarithms; nan if all are."""
    kept = np.flatnonzero(log_e < threshold)
    if not len(kept):
        return np.nan, np.nan
    first, last = int(kept[0]), int(kept[-1])
    most = _crossing(grid, log_e, last, last + 1, threshold)
    return most, _crossing(grid, log_e, first, first - 1, threshold)


def _crossing(grid: Floats, column: Floats, inside: int, outside: int, threshold: float) -> float:
    """Where the evidence reaches the threshold between two values."""
    if not 0 <= outside < len(grid) or not np.isfinite(column[outside]):
        return float(grid[inside])
    # Evidence is nearly a parabola, so that its root is nearly straight.
    least = column.min()
    near, far, at = np.sqrt([column[inside] - least, column[outside] - least, threshold - least])
    return float(grid[inside] + (at - near) / (far - near) * (grid[outside] - grid[inside]))


def _evidence(samples: Samples, ratios: Floats, times: NDArray[np.int64]) -> Floats:
    """The logarithm of the e-process of each ratio of rates after some batches."""
    past = Samples.none(1)
    found = np.zeros((len(ratios), len(times)))
    reached = np.zeros(len(ratios))
    done = 0
    for block in samples.blocks(max(_ENTRIES // len(ratios), 1)):
        before, past = sums_before(block, past)
        size = block.x.shape[1]
        factors = _point_factors(block, bets(before, _NOTHING, _EVERYTHING), ratios[:, None])
        sums = reached[:, None] + np.cumsum(factors, axis=1)
        here = (times > done) & (times <= done + size)
        found[:, here] = sums[:, times[here] - done - 1]
        reached = sums[:, -1]
        done += size
    return found


def _point_factors(now: Samples, bet: tuple[Floats, Floats], k: Floats) -> Floats:
    """Compute what `log_factors` does with both bounds at each ratio k, a line each.

    The bets are the same for all ratios, and so is half of the logarithms.
    """
    told = now.used & (bet[0] > 0) & (bet[0] < 1) & (bet[1] > 0) & (bet[1] < 1)
    x, m, z, r = (np.where(told, part, 0.0) for part in now)
    # Where a batch tells nothing its rows are 0; one of each keeps the logarithms finite.
    t1, t0 = (np.where(told, rate, 0.5) for rate in bet)
    own = x * np.log(t1) + (m - x) * np.log1p(-t1) + z * np.log(t0) + (r - z) * np.log1p(-t0)
    a, b = nearest(t1, t0, k, np.where(told, m, 1.0), np.where(told, r, 1.0))
    null = (x + z) * np.log(b) + x * np.log(k)
    null += (m - x) * np.log1p(-a)
    null += (r - z) * np.log1p(-b)
    return np.asarray(own - null)
