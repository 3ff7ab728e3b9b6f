"""The exact plan for zero bias: the size of each group, in real numbers.

It is the cheapest plan in real numbers that has no bias and keeps every limit. Where no limit
couples groups it has a closed form, otherwise it is a linear program. Ties go to the plan with the
fewest rows, and then to the one with fewer rows in later groups.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from equipoise.plans.clock import end_after
from equipoise.plans.judgement import exact_rows
from equipoise.plans.patterns import cell_numbers
from equipoise.plans.solvers.closed_form import Sizes, best_sizes
from equipoise.plans.solvers.program import Program, Undecided

if TYPE_CHECKING:
    from equipoise.plans.cells import Real, Whole
    from equipoise.plans.problem import Problem

TIE = 1e-9
"""Relative difference of costs that counts as none."""

IN_ORDER = 1e-5
"""What a row of the last group counts more than one of the first, among plans of the same cost."""


@dataclass(frozen=True, eq=False)
class Exact:
    """A plan for zero bias in real numbers."""

    rows: Real  # of each cell
    sizes: Real  # of the judged groups, the coarser ones last
    cost: float
    short: float = 0.0  # rows that the limits lack in total


def exact_plan(problem: Problem, base: Real, *, tied: bool = False) -> Exact | None:
    """The cheapest plan of zero bias in real numbers, or None if there is none.

    With ``tied``, any of the cheapest ones will do.
    """
    judged = problem.judged
    targets = (problem.ratios * base)[judged]
    sizes = best_sizes(problem.cells.take(judged), targets, _extra(problem))
    if not sizes.feasible.all():
        return None
    if stands_alone(problem):
        rows = problem.have.astype(float)
        rows[judged] = exact_rows(sizes.size, targets)
        return Exact(rows, sizes.size, problem.cells.total_cost(rows))
    return _programmed(problem, base, sizes, tied=tied)


def stands_alone(problem: Problem) -> bool:
    """Whether nothing couples groups, so that each has its size in closed form."""
    others = ~problem.judged
    still = problem.cells.take(others).contain(problem.have[others])
    return problem.separable and still and not is_balanced(problem) and not holds_drift(problem)


def is_balanced(problem: Problem) -> bool:
    """Whether groups that are not judged have to leave the table at the frequencies of the others."""
    kept = problem.request.labels != "free" or problem.reference == "new"
    return kept and not problem.judged.all() and not problem.special


def holds_drift(problem: Problem) -> bool:
    """Whether a limit on the move of label frequencies does not follow from the groups' rates."""
    whole_table = bool(problem.judged.all()) and not problem.special
    return problem.request.label_drift is not None and not whole_table


def _programmed(problem: Problem, base: Real, sizes: Sizes, *, tied: bool) -> Exact | None:
    for elastic in (False, True):
        if elastic and not problem.coupling:
            return None
        model = _Sizes(problem, base, sizes, elastic=elastic)
        found = model.solve(tied=tied)
        if found is not None:
            return found
    return None


class _Sizes:
    """The program of the exact plan: sizes of judged groups, and the rows of the other groups."""

    def __init__(self, problem: Problem, base: Real, sizes: Sizes, *, elastic: bool) -> None:
        cells, judged = problem.cells, problem.judged[:, None]
        self.problem, self.sizes = problem, sizes
        self.targets = (problem.ratios * base)[problem.judged]
        gain = np.where(judged, np.inf, cells.most - cells.have)
        lose = np.where(judged, np.inf, cells.have - cells.least)
        self.program = p = Program(problem, cells.have, gain, lose, whole=False)
        p.low[0] = np.where(judged, 0, cells.least - cells.have).clip(0).astype(float).ravel()
        p.low[1] = np.where(judged, 0, cells.have - cells.most).clip(0).astype(float).ravel()
        k, lines = cells.labels, np.flatnonzero(problem.judged)
        self.size = p.columns(len(lines), low=sizes.least, high=sizes.most)
        own = (np.arange(self.targets.size), np.repeat(self.size, k), -self.targets.ravel())
        none = np.zeros(self.targets.size)
        p.cell_rows(np.arange(self.targets.size), p.cells_of(lines), 1.0, none, none, own)
        p.hold_sizes(np.flatnonzero(~problem.judged))
        self.coarse = p.columns(len(problem.coarse))
        for column, j in zip(self.coarse, problem.coarse, strict=True):
            row = np.tile(np.arange(k), len(j.lines))
            own = (np.arange(k), np.full(k, column), -j.k * base)
            p.cell_rows(row, p.cells_of(j.lines), 1.0, np.zeros(k), np.zeros(k), own)
        if is_balanced(problem):
            p.hold_frequencies(base, base, 0.0)
        if holds_drift(problem):
            share = problem.request.label_drift or 0.0
            p.hold_frequencies(problem.base * (1 - share), problem.base * (1 + share), 0.0)
        self.short = p.columns(len(problem.coupling) * elastic)
        for number, limit in enumerate(problem.coupling):
            p.hold_limit(limit, short=self.short[number] if elastic else None)

    def solve(self, *, tied: bool) -> Exact | None:
        """Minimise what is short, then the cost, then the rows."""
        p, cells = self.program, self.problem.cells
        end = end_after(self.problem.request.time_limit)
        both = np.concatenate([p.gain, p.lose])
        lines = np.repeat(np.arange(len(cells)), cells.labels) / max(len(cells), 1)
        rows = np.concatenate([1 + IN_ORDER * lines, -1 - IN_ORDER * lines])
        prices = [p.price(both, np.concatenate([cells.add.ravel(), cells.drop.ravel()]))]
        if not tied:
            prices.append(p.price(both, rows))
        if len(self.short):
            prices.insert(0, p.price(self.short, 1.0))
        x = None
        for number, price in enumerate(prices):
            try:
                found = p.minimise(price, time_limit=end - time.monotonic())
            except Undecided:
                if number < len(prices) - 1 or tied:
                    raise
                break  # of plans of the same cost, any is taken
            if found.x is None:
                break
            x = found.x
            p.at_most(price, found.value + TIE * max(abs(found.value), 1.0))
        return None if x is None else self._read(x)

    def _read(self, x: Real) -> Exact:
        problem, judged = self.problem, self.problem.judged
        size = self._settled(x[self.size])
        rows = self.program.read(x)
        rows = np.where(np.abs(rows - np.rint(rows)) <= 1e-6, np.rint(rows), rows)
        rows[judged] = exact_rows(size, self.targets)
        sizes = np.concatenate([size, x[self.coarse]])
        short = float(x[self.short].sum())
        return Exact(rows, sizes, problem.cells.total_cost(rows), short if short > 1e-6 else 0.0)

    def _settled(self, size: Real) -> Real:
        """Sizes that are a bound, or leave a label as it is, but for the solver's tolerance."""
        have = self.problem.have[self.problem.judged]
        with np.errstate(divide="ignore", invalid="ignore"):
            corners = np.where(self.targets > 0, have / self.targets, np.inf)
        near = np.column_stack([corners, self.sizes.least, self.sizes.most])
        with np.errstate(invalid="ignore"):
            off = np.abs(near - size[:, None])
        nearest = off.argmin(axis=1)[:, None]
        found = np.take_along_axis(near, nearest, axis=1)[:, 0]
        close = np.take_along_axis(off, nearest, axis=1)[:, 0] <= 1e-6 * np.maximum(size, 1.0)
        return np.where(close, found, np.maximum(size, 0.0))


def _extra(problem: Problem) -> Whole | None:
    if not problem.request.extra:
        return None
    extra = np.zeros(len(problem.cells), np.int64)
    k = problem.have.shape[1]
    for pattern, rows in problem.request.extra:
        extra[np.unique(cell_numbers(problem.counts, problem.codes, pattern) // k)] = int(rows)
    return extra[problem.judged]
