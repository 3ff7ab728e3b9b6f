"""Confidence sequences for UB: the values that a stream has not refuted, at any time.

A value is refuted once the e-process of the null "p1/p0 is ρ in every batch" reaches 1/alpha. With
probability 1 − alpha the true ratio of rates is never refuted, if it is the same in all batches. It
is shown as the UB that it means for a group of the share that this one has in all batches together:
the shares of single batches vary, and the UB of a batch with them, where the ratio does not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from equipoise.monitoring.evidence.factors import bets, log_factors, ratio_bounds
from equipoise.monitoring.evidence.samples import Floats, Samples, sums_before

if TYPE_CHECKING:
    from numpy.typing import NDArray

_POINTS = 61
"""Number of values of UB that are tried; between them the evidence is interpolated."""
_BEND = 4.0
"""How much denser they are near the estimate than at the ends."""
_ENTRIES = 1_000_000
"""Maximum number of entries of an array."""


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
    return Sequence(low, high)


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
    estimate = 1 - (x / max(m, 1e-9)) / (label / n)
    least = min(1 - 1 / max(label / n, share, 1e-3), estimate - 0.5)
    steps = np.sinh(_BEND * np.linspace(0, 1, _POINTS // 2 + 1)) / np.sinh(_BEND)
    below = estimate - (estimate - least) * steps[::-1]
    # UB = 1 means no rows with the label at all, which one row refutes for good.
    above = estimate + (1 - 1e-9 - estimate) * steps[1:]
    return np.concatenate([below, above])


def _ratios(samples: Samples, grid: Floats) -> Floats:
    """The ratio of rates that each value of UB means for a group of the share of this one."""
    m, r = (part[0][samples.used[0]].sum() for part in (samples.m, samples.r))
    share = np.full(len(grid), m / max(m + r, 1.0))
    k, _ = ratio_bounds(share, 1 - grid, 1 - grid)
    return np.where(np.isfinite(k), k, 1e9)


def _evidence(samples: Samples, ratios: Floats, times: NDArray[np.int64]) -> Floats:
    """The logarithm of the e-process of each ratio of rates after some batches."""
    grid, k = ratios, ratios[:, None]
    past = Samples.none(1)
    found = np.zeros((len(grid), len(times)))
    reached = np.zeros(len(grid))
    done = 0
    for block in samples.blocks(max(_ENTRIES // len(grid), 1)):
        before, past = sums_before(block, past)
        size = block.x.shape[1]
        wide = Samples(*(np.broadcast_to(part, (len(grid), size)) for part in block))
        bet = bets(before, np.zeros((1, 1)), np.full((1, 1), np.inf))
        bet = tuple(np.broadcast_to(rate, wide.x.shape) for rate in bet)  # type: ignore[assignment]
        sums = reached[:, None] + np.cumsum(log_factors(wide, bet, k, k), axis=1)
        here = (times > done) & (times <= done + size)
        found[:, here] = sums[:, times[here] - done - 1]
        reached = sums[:, -1]
        done += size
    return found
