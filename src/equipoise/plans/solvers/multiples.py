"""No bias at all: every group a whole multiple of one small table of labels.

Groups have exactly the same shares if the rows of each are a multiple of the same whole numbers p,
one for each label without a common divisor. With label frequencies that are kept or given, p
follows from them. With free ones, p is searched for among small numbers, which proves nothing.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise.errors import InputError
from equipoise.plans.clock import seconds_left
from equipoise.plans.solvers.box import allowed_box
from equipoise.plans.solvers.closed_form import best_sizes
from equipoise.plans.solvers.labels import LabelChoice, cheapest_labels
from equipoise.plans.solvers.program import Program, Undecided

if TYPE_CHECKING:
    from collections.abc import Iterator

    from equipoise.plans.cells import Real, Whole
    from equipoise.plans.problem import Problem

LARGEST = 10**9
"""Largest sum of p; a share with more digits than that cannot be kept exactly."""

ALL_UP_TO, NEAR_UP_TO = 2_000, 400
"""With free labels: how many of the smallest p are tried, and up to which sum those near the cheapest
label frequencies are."""

PROGRAMS = 10
"""With free labels and limits: for how many of these p the program is solved."""


@dataclass(frozen=True, eq=False)
class Multiples:
    """A plan without any bias, or None, with a lower bound of the cost and the numbers p."""

    rows: Whole | None
    bound: float
    parts: Whole
    chosen: LabelChoice | None = None  # if labels were free
    alone: bool = True

    @property
    def base(self) -> Real:
        """The label frequencies."""
        return np.asarray(self.parts / self.parts.sum())


def solve_exactly(problem: Problem) -> Multiples:
    """Find the cheapest plan in whole rows that leaves no bias at all."""
    alone = problem.separable and bool(problem.judged.all())
    if problem.request.labels != "free":
        parts = _kept(problem)
        rows, proved = (_closed if alone else _programmed)(problem, parts)
        bound = math.inf if rows is None and proved else 0.0
        if rows is not None and proved:  # a solver is exact up to its own tolerance
            bound = problem.cells.total_cost(rows) * (1 if alone else 1 - 1e-9)
        return Multiples(rows, bound, parts, alone=alone)
    return _with_free_labels(problem, alone=alone)


def _kept(problem: Problem) -> Whole:
    """The numbers p for label frequencies that are kept or given."""
    if problem.request.labels == "keep":
        return _reduced(problem.have.sum(axis=0))
    given = {problem.counts.label.code(v): Fraction(repr(s)) for v, s in problem.request.labels}
    shares = [given.get(y, Fraction(0)) for y in range(problem.cells.labels)]
    common = math.lcm(*(s.denominator for s in shares))
    whole = [int(s * common) for s in shares]
    if sum(whole) // math.gcd(*whole) > LARGEST:
        raise InputError(
            "`exact` needs shares of `labels` that are whole parts of a table; give shares with "
            "fewer digits, or leave `exact` out."
        )
    return _reduced(np.array(whole))


def _reduced(parts: Any) -> Whole:
    return np.asarray(parts, np.int64) // math.gcd(*map(int, parts))


def _closed(problem: Problem, parts: Whole) -> tuple[Whole | None, bool]:
    """The cheapest multiple of each group on its own: one of those next to its exact size."""
    cells, total = problem.cells, int(parts.sum())
    given = parts > 0
    if (cells.least[:, ~given] > 0).any():
        return None, True
    least = (-(-cells.least[:, given] // parts[given])).max(axis=1)  # rounded up
    least = np.maximum(least, -(-cells.group_least // total))
    most = (cells.most[:, given] // parts[given]).min(axis=1)
    if (least > most).any():
        return None, True
    size = best_sizes(cells, np.broadcast_to(parts / total, cells.have.shape)).size / total
    tried = [np.clip(np.floor(size).astype(np.int64) + up, least, most) for up in (0, 1)]
    rows = [times[:, None] * parts for times in tried]
    cheaper = cells.cost(rows[1]) < cells.cost(rows[0]) - 1e-9
    return np.where(cheaper[:, None], rows[1], rows[0]), True


def _programmed(problem: Problem, parts: Whole) -> tuple[Whole | None, bool]:
    """The cheapest multiples under limits that groups share."""
    cells, judged = problem.cells, problem.judged
    k, lines = cells.labels, np.flatnonzero(judged)
    gain = (cells.most - cells.have).clip(0)
    p = Program(problem, cells.have, gain, (cells.have - cells.least).clip(0), whole=True)
    p.low[0] = (cells.least - cells.have).clip(0).astype(float).ravel()
    p.low[1] = (cells.have - cells.most).clip(0).astype(float).ravel()
    everything = [np.arange(len(cells))] * (not judged.all())
    groups = [np.array([line]) for line in lines] + [j.lines for j in problem.coarse] + everything
    times = p.columns(len(groups), whole=True)
    for column, members in zip(times, groups, strict=True):
        row = np.tile(np.arange(k), len(members))
        own = (np.arange(k), np.full(k, column), -parts.astype(float))
        p.cell_rows(row, p.cells_of(members), 1.0, np.zeros(k), np.zeros(k), own)
    p.hold_sizes(np.arange(len(cells)))
    for limit in problem.coupling:
        p.hold_limit(limit)
    both = np.concatenate([p.gain, p.lose])
    price = p.price(both, np.concatenate([cells.add.ravel(), cells.drop.ravel()]))
    # Of two plans of the same cost, the one with fewer rows.
    price[both] += np.repeat([1e-9, -1e-9], len(p.gain))
    try:
        found = p.minimise(price, time_limit=seconds_left(problem.request.time_limit))
    except Undecided:
        return None, False
    if found.x is None:
        return None, True
    rows = np.rint(p.read(found.x)).astype(np.int64)
    return (rows, found.proved) if _is_exact(problem, rows, parts, groups) else (None, False)


def _is_exact(problem: Problem, rows: Whole, parts: Whole, groups: list[Any]) -> bool:
    sums = np.array([rows[members].sum(axis=0) for members in groups])
    even = sums * int(parts.sum()) == sums.sum(axis=1, keepdims=True) * parts
    return bool(even.all()) and problem.holds(rows)


def _with_free_labels(problem: Problem, *, alone: bool) -> Multiples:
    """The cheapest plan of all p that are tried."""
    kept = _reduced(problem.have.sum(axis=0))
    tried = {tuple(p.tolist()): p for p in (kept, *_candidates(problem))}
    box = allowed_box(problem, problem.base)
    inside = [p for p in tried.values() if _lies_in(p / p.sum(), box)]
    plans = [(p, _closed(problem, p)[0]) for p in inside]
    costs = [math.inf if r is None else problem.cells.total_cost(r) for _, r in plans]
    order = sorted(range(len(plans)), key=lambda i: (costs[i], int(plans[i][0].sum())))
    if not alone:
        plans = [(p, _programmed(problem, p)[0]) for p, _ in (plans[i] for i in order[:PROGRAMS])]
        costs = [math.inf if r is None else problem.cells.total_cost(r) for _, r in plans]
        order = sorted(range(len(plans)), key=lambda i: (costs[i], int(plans[i][0].sum())))
    parts, rows = plans[order[0]] if order else (kept, None)
    cost = math.inf if rows is None else problem.cells.total_cost(rows)
    chosen = LabelChoice(np.asarray(parts / parts.sum()), cost, proved=False)
    return Multiples(rows, 0.0, parts, chosen, alone)


def _lies_in(rates: Real, box: Any) -> bool:
    return bool(((rates >= box.low - 1e-12) & (rates <= box.high + 1e-12)).all())


def _candidates(problem: Problem) -> Iterator[Whole]:
    """Small p, those near the cheapest label frequencies, and the shares that groups have now."""
    used = problem.rates > 0
    k = int(used.sum())

    def spread(parts: Any) -> Whole:
        full = np.zeros(len(used), np.int64)
        full[used] = parts
        return full // math.gcd(*map(int, full))

    counted = itertools.count()
    for total in itertools.count(k):
        if next(counted) > ALL_UP_TO or math.comb(total - 1, k - 1) > ALL_UP_TO:
            break
        for cuts in itertools.combinations(range(1, total), k - 1):
            parts = np.diff([0, *cuts, total])
            if math.gcd(*map(int, parts)) == 1 and next(counted) <= ALL_UP_TO:
                yield spread(parts)
    for row in problem.have[:, used]:
        if (row > 0).all():
            yield spread(row)
    best = problem.base
    if problem.judged.any():
        best = cheapest_labels(problem, problem.base, allowed_box(problem, problem.base)).rates
    for rates, total in itertools.product((best[used], problem.rates[used]), range(k, NEAR_UP_TO)):
        parts = np.maximum(np.floor(rates * total + 0.5).astype(np.int64), 1)
        yield spread(parts)
