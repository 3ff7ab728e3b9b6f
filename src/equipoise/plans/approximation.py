"""Plans for too few rows: every group by itself, as near to its target as its own rows allow."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from equipoise.plans.cells import Band, Cells
from equipoise.plans.solvers.separable import solve_separable

if TYPE_CHECKING:
    from equipoise.plans.cells import Real, Whole

_STEPS = 16
"""Steps of the bisection for the tolerance that each group can reach."""


def nearest_rows(
    have: Whole, ideal: Whole, most: Whole, rates: Real, *, tolerance: float = 0.0
) -> Whole:
    """Find rows for every group: the ideal ones if there are enough, otherwise the nearest.

    ``most`` is the number of rows there can be of each cell, and ``rates`` the target shares of the
    labels. Nothing is deleted. Relative to fixed rates, groups do not depend on each other, so a
    group with too few rows does not hold back the others.

    >>> have, ideal = np.array([[40, 60], [10, 90]]), np.array([[40, 60], [60, 90]])
    >>> nearest_rows(have, ideal, np.array([[90, 90], [30, 200]]), np.array([0.4, 0.6])).tolist()
    [[40, 60], [30, 90]]
    """
    short = np.asarray((ideal > most).any(axis=1))
    rows = np.where(short[:, None], have, ideal)
    lines = np.flatnonzero(short)
    if not len(lines):
        return rows
    cells = Cells.of(have[lines], least=have[lines], most=most[lines])
    low = np.full(len(lines), max(tolerance, 0.005))  # coming closer costs more rows
    shares = have[lines] / np.maximum(have[lines].sum(axis=1, keepdims=True), 1)
    high = np.maximum(np.abs(shares / rates - 1).max(axis=1), low)
    best = have[lines].copy()
    trial = low
    for _ in range(_STEPS):
        found = solve_separable(cells, Band.around(rates, trial[:, None]))
        good = np.isfinite(found.costs)
        best[good], high[good] = found.rows[good], trial[good]
        low = np.where(good, low, trial)
        trial = np.where(high <= low, low, (low + high) / 2)
    rows[lines] = best
    return rows
