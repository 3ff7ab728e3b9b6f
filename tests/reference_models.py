"""A plain model of a plan at fixed label frequencies, solved by SciPy: what our searches are held against."""

from __future__ import annotations

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp

FAR = 1e6


def cheapest_by_scipy(problem, centre, *, whole: bool, balanced: bool = False) -> float:
    """The lowest cost with every judged group in its band around a centre, in whole or real rows."""
    cells, k = problem.cells, problem.cells.labels
    n = cells.have.size
    have = cells.have.ravel()
    upper = np.concatenate([np.minimum(cells.most.ravel() - have, FAR), have - cells.least.ravel()])
    lower = np.concatenate([(cells.least.ravel() - have).clip(0), np.zeros(n)])
    rows, low, high = [], [], []

    def hold(lines, share_low, share_high):
        for y in range(k):
            inside = np.zeros((len(cells), k))
            inside[lines] = 1
            own = np.zeros((len(cells), k))
            own[lines, y] = 1
            for factor, sign in (
                (own - share_high[y] * inside, 1),
                (own - share_low[y] * inside, -1),
            ):
                flat = sign * factor.ravel()
                rows.append(np.concatenate([flat, -flat]))
                low.append(-np.inf)
                high.append(-float(flat @ have))

    band, coarse = problem.band(centre), problem.coarse_band(centre)
    for line in np.flatnonzero(problem.judged):
        hold([line], band.low[line], band.high[line])
    for number, judged in enumerate(problem.coarse):
        hold(judged.lines, coarse.low[number], coarse.high[number])
    if balanced:
        hold(np.arange(len(cells)), centre, centre)
    for line, least in enumerate(cells.group_least):
        own = np.zeros((len(cells), k))
        own[line] = 1
        rows.append(np.concatenate([own.ravel(), -own.ravel()]))
        low.append(float(least - cells.have[line].sum()))
        high.append(np.inf)
    for limit in problem.coupling:
        cell, factor = limit.coefficients
        flat = np.zeros(n)
        flat[cell] = factor
        gone = np.zeros(n) if limit.of_additions else -flat
        now = 0.0 if limit.of_additions else float(flat @ have)
        rows.append(np.concatenate([flat, gone]))
        low.append(limit.low - now)
        high.append(limit.high - now)
    found = milp(
        np.concatenate([cells.add.ravel(), cells.drop.ravel()]),
        integrality=np.full(2 * n, int(whole)),
        bounds=Bounds(lower, np.maximum(upper, lower)),
        constraints=[LinearConstraint(np.array(rows), low, high)],
    )
    return np.inf if found.x is None else float(found.fun)
