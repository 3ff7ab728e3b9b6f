"""What comes nearest where rows lack: every group by itself, as near as its own rows allow."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from equipoise.plans.cells import Band, Cells
from equipoise.plans.solvers.separable import solve_separable

if TYPE_CHECKING:
    from equipoise.plans.cells import Real, Whole

_STEPS = 16


def nearest_rows(
    have: Whole, ideal: Whole, most: Whole, rates: Real, *, tolerance: float = 0.0
) -> Whole:
    """Give the rows of every group: the ideal ones if there are enough, else what comes nearest.

    Nothing is deleted. Against fixed rates groups do not depend on each other, so one that lacks
    rows does not hold back the others.

    Parameters
    ----------
    have, ideal, most
        The rows there are, those wanted, and how many there can be: a line a group, a column
        a label.
    rates
        The shares of the labels that every group should have.
    tolerance
        How near is near enough; half a percent at least, since nearness costs rows.

    Examples
    --------
    >>> have, ideal = np.array([[40, 60], [10, 90]]), np.array([[40, 60], [60, 90]])
    >>> nearest_rows(have, ideal, np.array([[90, 90], [30, 200]]), np.array([0.4, 0.6])).tolist()
    [[40, 60], [30, 90]]
    """
    lacks = np.asarray((ideal > most).any(axis=1))
    rows = np.where(lacks[:, None], have, ideal)
    lines = np.flatnonzero(lacks)
    if not len(lines):
        return rows
    cells = Cells.of(have[lines], least=have[lines], most=most[lines])
    low = np.full(len(lines), max(tolerance, 0.005))
    high = np.maximum(_off(have[lines], rates), low)
    best = have[lines].copy()
    trial = low
    for _ in range(_STEPS):
        found = solve_separable(cells, _band(rates, trial))
        good = np.isfinite(found.costs)
        best[good], high[good] = found.rows[good], trial[good]
        low = np.where(good, low, trial)
        trial = np.where(high <= low, low, (low + high) / 2)
    rows[lines] = best
    return rows


def _band(rates: Real, tolerances: Real) -> Band:
    wide = tolerances[:, None]
    return Band(np.maximum(rates * (1 - wide), 0.0), rates * (1 + wide))


def _off(rows: Whole, rates: Real) -> Real:
    shares = rows / np.maximum(rows.sum(axis=1, keepdims=True), 1)
    return np.asarray(np.abs(shares / rates - 1).max(axis=1))
