"""Label frequencies at zero bias: the distribution that all groups can reach at the lowest cost.

With additions only and no caps, the cost is convex in the logarithms of the frequencies, and
minimising it with a smoothed maximum of rising sharpness finds the optimum. Otherwise two labels
are scanned, and more are searched from several starts, which is a heuristic.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from equipoise.plans.cells import UNLIMITED
from equipoise.plans.solvers.closed_form import best_sizes

if TYPE_CHECKING:
    from collections.abc import Callable

    from equipoise.plans.cells import Cells, Real
    from equipoise.plans.problem import Problem
    from equipoise.plans.solvers.box import Box


@dataclass(frozen=True, eq=False)
class LabelChoice:
    """Label frequencies, the real-valued cost of zero bias at them, and whether it is proved lowest."""

    rates: Real
    cost: float
    proved: bool


SEARCHED = 2_000_000
"""Limit of work of a search, in cells; at least some hundred distributions are tried."""

PROGRAMS = 120
"""Distributions that are tried where each takes a linear program."""


def zero_cost(cells: Cells, ratios: Real, rates: Real) -> float:
    """The real-valued cost of zero bias at given label frequencies."""
    targets = ratios * rates
    sizes = best_sizes(cells, targets)
    if not sizes.feasible.all():
        return math.inf
    change = sizes.size[:, None] * targets - cells.have
    return float((np.where(change > 0, cells.add, -cells.drop) * change).sum())


def cheapest_labels(problem: Problem, base: Real, box: Box) -> LabelChoice:
    """Choose the label frequencies at which zero bias is cheapest."""
    cells, ratios = problem.cells.take(problem.judged), problem.ratios[problem.judged]
    trials = max(SEARCHED // cells.have.size, 300)

    def cost(rates: Real) -> float:
        return zero_cost(cells, ratios, rates)

    if _convex(problem):
        start = box.clip(_smoothed_minimum(cells))
        rates, value = _search(cost, start, box, 1e-4, min(trials, 1000))
        return LabelChoice(rates, value, proved=True)
    if len(base) == 2:
        grid = np.linspace(box.low[0], box.high[0], min(801, max(101, trials)))
        costs = [cost(np.array([f, 1 - f])) for f in grid]
        best = float(grid[int(np.argmin(costs))])
        start = np.array([best, 1 - best])
        rates, value = _search(cost, start, box, (box.high[0] - box.low[0]) / 800, trials)
        return LabelChoice(rates, value, proved=False)
    starts = [box.clip(s) for s in _starts(cells, base)]
    found = [_search(cost, s, box, 0.05, trials // len(starts)) for s in starts]
    rates, value = min(found, key=lambda f: f[1])
    return LabelChoice(rates, value, proved=False)


def searched_labels(
    cost: Callable[[Real], float], starts: list[Real], box: Box, effort: float
) -> LabelChoice:
    """Search for cheap label frequencies where each trial is a program of its own."""
    each = max(int(PROGRAMS * effort) // len(starts), 6)
    found = [_search(cost, start, box, 0.05, each) for start in starts]
    rates, value = min(found, key=lambda f: f[1])
    return LabelChoice(rates, value, proved=False)


def _convex(problem: Problem) -> bool:
    cells = problem.cells
    untouched = bool((cells.least >= cells.have).all())
    unbounded = bool((cells.most[cells.most > cells.have] >= UNLIMITED).all())
    covered = bool(
        (cells.least == cells.have).all() and (cells.group_least <= cells.have.sum(1)).all()
    )
    return untouched and unbounded and covered and bool((problem.ratios == 1).all())


def _starts(cells: Cells, base: Real) -> list[Real]:
    """The present frequencies, those of the average group, and those of the largest groups."""
    size = cells.have.sum(axis=1)
    shares = cells.have[size > 0] / size[size > 0, None]
    largest = np.argsort(-size[size > 0])[:3]
    starts = [base, shares.mean(axis=0), np.median(shares, axis=0), *shares[largest]]
    return [s.clip(1e-6) / s.clip(1e-6).sum() for s in starts]


def _smoothed_minimum(cells: Cells) -> Real:
    """Minimise the cost with a smoothed maximum that becomes sharper and sharper.

    In u = log f a group's size is max_y c_y·exp(−u_y), and its cost Σ_y α_y·exp(u_y) times
    that. This is convex, and does not change if a constant is added to u.
    """
    from scipy.optimize import minimize

    present = cells.have.sum(axis=1) > 0
    have, add = cells.have[present].astype(float), cells.add[present]
    with np.errstate(divide="ignore"):
        logs = np.log(have)

    def smooth(u: Real, sharp: float) -> tuple[float, Real]:
        ratio = sharp * (logs - u)
        top = ratio.max(axis=1, keepdims=True)
        weight = np.exp(ratio - top)
        total = weight.sum(axis=1, keepdims=True)
        size = np.exp((top + np.log(total)) / sharp)[:, 0]
        shares = np.exp(u - u.max())
        price = add @ shares
        value = float((size * price).sum())
        slope = (size[:, None] * add).sum(axis=0) * shares
        slope -= ((size * price)[:, None] * weight / total).sum(axis=0)
        scale = math.exp(float(u.max()))
        return math.log(value * scale), slope * scale / (value * scale)

    u = np.log(np.maximum(have.sum(axis=0), 0.5))
    u -= u.mean()
    exactly = {"maxiter": 80, "ftol": 1e-15, "gtol": 1e-12}
    for sharp in (4.0, 16.0, 64.0, 256.0, 1024.0, 4096.0, 16384.0):
        u = minimize(  # type: ignore[call-overload]
            smooth, u, (sharp,), jac=True, method="L-BFGS-B", options=exactly
        ).x
    rates = np.exp(u - u.max())
    return np.asarray(rates / rates.sum())


def _search(
    cost: Callable[[Real], float], start: Real, box: Box, step: float, trials: int
) -> tuple[Real, float]:
    """Move shares between labels while that is cheaper, in smaller and smaller steps."""
    rates, value = start, cost(start)
    while step > 1e-7 and trials > 0:
        moved = False
        for trial in box.near(rates, step):
            trials -= 1
            trial_cost = cost(trial)
            if trial_cost < value * (1 - 1e-12):
                rates, value, moved = trial, trial_cost, True
        step = step if moved else step / 4
    return rates, value
