"""Whether two groups that share no row differ in their rates by more than chance."""

from __future__ import annotations

import math

import numpy as np

from equipoise.measures.uncertainty.arrays import Floats
from equipoise.measures.uncertainty.special import erfc

TIE = 1e-9
"""Outcomes whose probabilities differ by a smaller share count as equally likely."""
_FAR = 40
"""Outcomes this many standard deviations from the mode, and as many rows more, add nothing."""


def pooled_z(x1: int, n1: int, x0: int, n0: int) -> float:
    """Compute by how many standard deviations two rates differ, at their pooled rate.

    Negative if the first rate is the lower one; ``nan`` where there is nothing to compare: for an
    empty group, and where none or all of both groups have the label.

    >>> round(pooled_z(40, 150, 160, 450), 2)
    -2.0
    """
    if not n1 or not n0 or not 0 < x1 + x0 < n1 + n0:
        return math.nan
    pooled = (x1 + x0) / (n1 + n0)
    return (x1 / n1 - x0 / n0) / math.sqrt(pooled * (1 - pooled) * (1 / n1 + 1 / n0))


def normal_p(z: float) -> float:
    """Compute the two-sided p-value of a standard normal number.

    >>> round(normal_p(-1.96), 3)
    0.05
    """
    return math.nan if math.isnan(z) else float(erfc(np.array([abs(z) / math.sqrt(2)]))[0])


def fisher_p(x1: int, n1: int, x0: int, n0: int) -> float:
    """Compute the two-sided p-value of Fisher's exact test for two rates.

    It is the probability of all outcomes that are at most as likely as the observed one, given the
    sizes of the groups and the rows of both with the label. The result is ``nan`` where there is
    nothing to compare; see `pooled_z`.

    >>> round(fisher_p(1, 10, 6, 10), 4)
    0.0573
    """
    if not n1 or not n0 or not 0 < x1 + x0 < n1 + n0:
        return math.nan
    outcomes, weight = _outcomes(x1, n1, x1 + x0, n1 + n0)
    seen = weight[np.searchsorted(outcomes, x1)]
    return min(float(weight[weight <= seen * (1 + TIE)].sum() / weight.sum()), 1.0)


def _outcomes(x: int, drawn: int, marked: int, total: int) -> tuple[Floats, Floats]:
    """The numbers of marked rows among those drawn, and their probabilities relative to the mode.

    Outcomes so far from the mode that they add nothing are left out, unless they were observed.
    """
    mode = (drawn + 1) * (marked + 1) // (total + 2)
    share = marked / total
    spread = math.sqrt(drawn * share * (1 - share) * (total - drawn) / max(total - 1, 1))
    reach = math.ceil(_FAR * spread) + _FAR
    least, most = max(0, drawn + marked - total), min(drawn, marked)
    first = max(least, min(mode - reach, x - _FAR))
    last = min(most, max(mode + reach, x + _FAR))
    outcomes = np.arange(first, last + 1, dtype=np.float64)
    # The ratio of the probability of each outcome to that of the one before, as sums of logarithms
    # from the mode on, so that neither large nor small numbers lose digits.
    before = outcomes[:-1]
    with np.errstate(divide="ignore"):
        step = np.log((drawn - before) * (marked - before)) - np.log(
            (before + 1) * (total - drawn - marked + before + 1)
        )
    place = int(mode - first)
    up = np.cumsum(step[place:])
    down = -np.cumsum(step[:place][::-1])[::-1]
    return outcomes, np.exp(np.concatenate([down, [0.0], up]))
