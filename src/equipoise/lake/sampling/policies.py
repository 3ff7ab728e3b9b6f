"""Policies that choose the next source: by known mixes, by estimates of them, or at random."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from equipoise.lake.sampling.purchases import Policy
from equipoise.lake.sampling.run import FIRST, Run
from equipoise.lake.sampling.sources import Floats, Whole

POLICIES: tuple[Policy, ...] = ("auto", "known", "unknown", "random")

Draws: TypeAlias = list[tuple[int, int]]
"""Numbers of sources, and how many rows to draw from each next."""

# Seeds of simulated lakes below 1,000 were used to tune these numbers (benchmarks/tailoring.py).
_SHARE = 0.5  # of the planned draws, after which the linear program is solved again
_GROWTH = 1 / 3  # of the draws so far: the most a source gets before its mix is estimated again
_LEAST_PRIOR = 0.35  # pseudo-rows of a cell, so that cells not seen yet stay worth a try
_STRENGTHS = np.exp2(np.arange(6.0))  # numbers of pseudo-draws of the prior to choose from
_LEAST_RATE = 1e-6  # of a cell that a source may still have, though no row of it was seen


def _by_known(run: Run) -> Draws:
    return _shares_of(run, _drawn_least(run, _rates_left(run)), np.inf)


def _by_unknown(run: Run) -> Draws:
    able = run.most() > 0
    first = int(np.clip(run.left.sum() // len(able), 1, FIRST))
    new = able & ~run.told & (run.drawn < first)
    if new.any():
        return [(int(s), first) for s in np.flatnonzero(new)]
    rates = np.where(run.told[:, None], _rates_left(run), _believed(run))
    wanted = _drawn_least(run, rates)
    trusted = np.where(run.told, np.inf, np.maximum(first, run.drawn * _GROWTH))
    return _shares_of(run, wanted, trusted)


def _by_chance(run: Run) -> Draws:
    able = np.flatnonzero(run.most())
    draws = max(1, int(run.left.sum()) // 4)
    often = run.rng.multinomial(draws, np.full(len(able), 1 / len(able)))
    return [(int(s), int(n)) for s, n in zip(able, often, strict=True) if n]


CHOICES: dict[Policy, Callable[[Run], Draws]] = {
    "known": _by_known,
    "unknown": _by_unknown,
    "random": _by_chance,
}


def _rates_left(run: Run) -> Floats:
    """Return the mixes of the rows not drawn yet; NaN where they are unknown."""
    finite = np.isfinite(run.sizes)
    rates = run.mixes.copy()
    sizes, drawn = run.sizes[finite, None], run.drawn[finite, None]
    there = np.maximum(run.mixes[finite] * sizes - run.seen[finite], 0)
    rates[finite] = there / np.maximum(sizes - drawn, 1)
    return rates


def _believed(run: Run) -> Floats:
    """Draw rates from their posterior distributions (Thompson sampling), at least their means."""
    known = run.drawn > 0
    if not known.any():
        return np.zeros(run.seen.shape)
    drawn = np.maximum(run.drawn, 1)[:, None]
    ones, others, run.strengths = _in_common(run.seen[known], drawn[known], run.strengths)
    ones, others = ones + run.seen, others + run.drawn[:, None] - run.seen
    believed: Floats = np.maximum(run.rng.beta(ones, others), ones / (ones + others))
    return believed


def _in_common(seen: Whole, drawn: Whole, strengths: Floats) -> tuple[Floats, Floats, Floats]:
    """Fit a Beta prior to the rates of each cell over the sources, by maximum likelihood.

    The mean weighs sources by their information about it, so that one source with a hundred times as
    many draws does not determine what is expected of all others.
    """
    from scipy.special import betaln

    weights = drawn / (drawn + strengths)
    mean = np.clip((weights * seen / drawn).sum(axis=0) / weights.sum(axis=0), 1e-4, 0.99)
    ones, others = np.multiply.outer(_STRENGTHS, np.stack([mean, 1 - mean])).swapaxes(0, 1)
    ones, others = ones[:, None, :], others[:, None, :]
    likely = betaln(ones + seen, others + drawn - seen) - betaln(ones, others)
    strengths = _STRENGTHS[likely.sum(axis=1).argmax(axis=0)]
    return np.maximum(strengths * mean, _LEAST_PRIOR), strengths * (1 - mean), strengths


def _drawn_least(run: Run, rates: Floats) -> Floats:
    """Return the cheapest numbers of draws from each source, given the rates."""
    useful = run.useful()
    lines, columns = np.flatnonzero(useful.any(axis=1)), np.flatnonzero(useful.any(axis=0))
    some = np.where(useful, np.maximum(rates, _LEAST_RATE), 0)[np.ix_(lines, columns)]
    draws = np.zeros(len(run.sources))
    left, most = run.left[columns].astype(float), (run.sizes - run.drawn)[lines]
    budget = None if run.limits.budget is None else run.limits.budget - run.cost
    draws[lines] = least_cost(run.costs[lines], some, left, most, budget)
    return draws


def least_cost(
    costs: Floats, rates: Floats, left: Floats, most: Floats, budget: float | None = None
) -> Floats:
    """Minimize costs·draws subject to draws·rates ≥ left; missing rows have a high penalty."""
    from scipy.optimize import linprog

    if not left.any():
        return np.zeros(len(costs))
    prices = np.divide(costs[:, None], rates, where=rates > 0, out=np.zeros_like(rates))
    # A missing row costs more than any that can be bought, so rows are missing only if they must.
    slack = len(left)
    above, limits = -np.hstack([rates.T, np.eye(slack)]), -left
    if budget is not None:
        above = np.vstack([above, np.append(costs, np.zeros(slack))])
        limits = np.append(limits, max(budget, 0.0))
    found = linprog(
        np.append(costs, np.full(slack, 2 * prices.max() + 1)),
        A_ub=above,
        b_ub=limits,
        bounds=[(0.0, float(n)) for n in most] + [(0.0, None)] * slack,
        method="highs",
    )
    if found.x is None:
        raise ArithmeticError(f"the linear program was not solved: {found.message}")
    return np.asarray(found.x[: len(costs)], float)


def _shares_of(run: Run, wanted: Floats, trusted: Floats | float) -> Draws:
    """Return a part of the planned draws, the most expensive first; at least one draw."""
    now = np.floor(np.minimum(wanted * _SHARE, trusted)).astype(np.int64)
    able = run.most() > 0
    order = np.argsort(-wanted * run.costs, kind="stable")
    some = [(int(s), int(now[s])) for s in order if now[s] and able[s]]
    return some or [(int(next(s for s in order if able[s])), 1)]
