"""Confidence sequences for UB: the values that a stream has not refuted, at any time.

A value is refuted once the e-process of the null "p1/p0 is ρ in every batch" reaches 1/alpha. With
probability 1 − alpha the true ratio of rates is never refuted, if it is the same in all batches. It
is shown as the UB that it means for a group of the share that this one has in all batches together:
the shares of single batches vary, and the UB of a batch with them, where the ratio does not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from equipoise.monitoring.evidence.factors import bets, nearest, ratio_bounds
from equipoise.monitoring.evidence.samples import Floats, Samples, sums_before

if TYPE_CHECKING:
    from numpy.typing import NDArray

_POINTS = 61
"""Number of values of UB that are tried; between them the evidence is interpolated."""
_BEND = 4.0
"""How much denser they are near the estimate than at the ends."""
_MOST = 1 - 1e-9
"""Largest value of UB that is tried."""
_ENTRIES = 100_000
"""Maximum number of entries of an array; smaller ones stay in the caches of a processor."""
_NOTHING, _EVERYTHING = np.zeros((1, 1)), np.full((1, 1), np.inf)
"""Bounds that no bet is drawn to."""


class Sequence(NamedTuple):
    """Limits of UB after some batches; nan where every value is refuted, as UB was not constant."""

    low: Floats
    high: Floats


def confidence_sequence(
    samples: Samples, times: NDArray[np.int64], alpha: float = 0.05
) -> Sequence:
    """Compute the limits of UB of one comparison with all other rows, after the batches ``times``.

    ``samples`` has one line, and ``times`` rising numbers of batches, counted from 1.
    """
    grid = _values(samples)
    log_e = _evidence(samples, _ratios(samples, grid), times)
    threshold = -np.log(alpha)
    low, high = np.full(len(times), np.nan), np.full(len(times), np.nan)
    for place, column in enumerate(log_e.T):
        kept = np.flatnonzero(column < threshold)
        if len(kept):
            low[place] = _crossing(grid, column, kept[0], kept[0] - 1, threshold)
            high[place] = _crossing(grid, column, kept[-1], kept[-1] + 1, threshold)
    return Sequence(*(_at_share(limit, samples, times) for limit in (low, high)))


def _at_share(limit: Floats, samples: Samples, times: NDArray[np.int64]) -> Floats:
    """Limits of UB for the group's share of all batches until then, which later ones do not change."""
    k = _ratios(samples, limit)
    used = samples.used[0]
    sums = (np.cumsum(np.where(used, part[0], 0.0)) for part in (samples.m, samples.r))
    m, r = (np.concatenate([np.zeros(1), each])[times] for each in sums)
    share = m / np.maximum(m + r, 1.0)
    return np.asarray(1 - k / (1 - share + share * k))


def _crossing(grid: Floats, column: Floats, inside: int, outside: int, threshold: float) -> float:
    """Where the evidence reaches the threshold between two values."""
    if not 0 <= outside < len(grid) or not np.isfinite(column[outside]):
        return float(grid[inside])
    step = (threshold - column[inside]) / (column[outside] - column[inside])
    return float(grid[inside] + step * (grid[outside] - grid[inside]))


def _values(samples: Samples) -> Floats:
    """Values of UB, dense around the estimate; the least is that of a group with all the label."""
    x, m, z, r = (part[0][samples.used[0]].sum() for part in samples)
    n, label = max(m + r, 1.0), max(x + z, 1e-9)
    share = m / n
    # UB = 1 means no rows with the label at all, which one row refutes for good.
    estimate = min(1 - (x / max(m, 1e-9)) / (label / n), _MOST)
    least = min(1 - 1 / max(label / n, share, 1e-3), estimate - 0.5)
    steps = np.sinh(_BEND * np.linspace(0, 1, _POINTS // 2 + 1)) / np.sinh(_BEND)
    below = estimate - (estimate - least) * steps[::-1]
    above = estimate + (_MOST - estimate) * steps[1:]
    return np.concatenate([below, above])


def _ratios(samples: Samples, grid: Floats) -> Floats:
    """The ratio of rates that each value of UB means for a group of the share of this one."""
    m, r = (part[0][samples.used[0]].sum() for part in (samples.m, samples.r))
    share = np.full(len(grid), m / max(m + r, 1.0))
    _, k = ratio_bounds(share, 1 - grid, 1 - grid)
    return np.where(np.isfinite(k), k, 1e9)


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
