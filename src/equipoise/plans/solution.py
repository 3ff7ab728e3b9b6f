"""Solve a problem by the method that fits it."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np

from equipoise.plans.judgement import drift, off_by, within_tolerance
from equipoise.plans.patterns import cell_numbers
from equipoise.plans.solvers.box import Box, allowed_box
from equipoise.plans.solvers.closed_form import best_sizes, whole_rows
from equipoise.plans.solvers.coupled import solve_coupled
from equipoise.plans.solvers.labels import LabelChoice, cheapest_labels
from equipoise.plans.solvers.own_frequencies import solve_new
from equipoise.plans.solvers.separable import solve_separable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from equipoise.options.plan import Rounding
    from equipoise.plans.cells import Cells, Real, Whole
    from equipoise.plans.problem import Problem
    from equipoise.plans.solvers.incumbent import Stopped

ANY_PLAN = 1e6
"""A gap at which a solver takes the first plan it finds."""

Method: TypeAlias = Literal["closed form", "separated", "solver", "centre"]


@dataclass(frozen=True, eq=False)
class Solution:
    """The rows of each cell after the repair, with a lower bound of the cost of any plan."""

    rows: Whole | None  # None if no plan was found
    bound: float  # infinite if there is proved to be no plan
    method: Method
    base: Real  # the label frequencies the plan was made for
    timed_out: bool = False
    stopped: Stopped | None = None
    sizes: Real | None = None  # of each group before rounding, at zero tolerance
    chosen: LabelChoice | None = None  # if labels were free at zero tolerance
    tolerance: float = 0.0  # the one the plan was made for, which a budget may have raised


def solve(
    problem: Problem,
    *,
    candidates: Iterable[Whole] = (),
    effort: float = 1.0,
    enough: float | None = None,
    most: float = math.inf,
    progress: Callable[[float], None] = lambda _: None,
) -> Solution:
    """Find the cheapest plan by the method that fits the problem.

    With ``enough`` a search only decides whether a plan costs at most that; infinite: whether
    there is one. A search also ends when every plan is proved to cost more than ``most``.
    """
    found = _solve(problem, candidates, effort, progress, enough, most)
    if found.rows is None and found.bound < math.inf and not found.timed_out and enough is None:
        any_plan = replace(problem, request=problem.request.but(gap=ANY_PLAN))
        other = _solve(any_plan, candidates, effort, progress, math.inf)
        found = replace(found, rows=other.rows, timed_out=other.timed_out)
    return replace(found, tolerance=problem.request.tolerance)


def _solve(
    problem: Problem,
    candidates: Iterable[Whole],
    effort: float,
    progress: Callable[[float], None],
    enough: float | None,
    most: float = math.inf,
) -> Solution:
    base = problem.base
    if (problem.cells.least > problem.cells.most).any():
        return Solution(None, math.inf, "separated", base)
    if not problem.request.tolerance:
        return _zero(problem, base)
    if problem.reference == "new":
        found = solve_new(
            problem,
            base,
            candidates=candidates,
            effort=effort,
            enough=enough,
            most=most,
            progress=progress,
        )
        return Solution(found.rows, found.bound, "centre", base, found.timed_out, found.stopped)
    if problem.separable and not problem.may_drift:
        return _separated(problem, base, progress)
    return _coupled(problem, base)


def _separated(problem: Problem, base: Real, progress: Callable[[float], None]) -> Solution:
    # Floats cannot resolve the edge of a band: only if the generous reading fails, use the strict one.
    for strict in (False, True):
        found = solve_separable(problem.cells, problem.band(base), strict=strict, progress=progress)
        if not found.feasible:
            return Solution(None, math.inf, "separated", base)
        if within_tolerance(problem, found.rows, base):
            break
    return Solution(found.rows, found.cost, "separated", base)


def _coupled(problem: Problem, base: Real, chosen: LabelChoice | None = None) -> Solution:
    balance = _balance(problem, base)
    bound = -math.inf
    # HiGHS satisfies constraints up to its own tolerance; the second attempt keeps a margin to them.
    for inside in (0.0, 1e-5):
        found = solve_coupled(problem, base, balance=balance, inside=inside)
        rows = found.rows
        # With a margin the model is narrower than the problem, so its bound does not count.
        bound = bound if inside else found.bound
        if rows is None or not problem.request.tolerance or within_tolerance(problem, rows, base):
            break
        rows = None
    rows = _cheaper(problem, base, rows)
    return Solution(rows, bound, "solver", base, found.timed_out, chosen=chosen)


def _cheaper(problem: Problem, base: Real, rows: Whole | None) -> Whole | None:
    """The plan that repairs every group on its own, if it is valid and costs less.

    A solver that ran out of time may return a worse plan than that.
    """
    request = problem.request
    if not problem.coarse or problem.special or not request.tolerance:
        return rows
    strict = problem.again(min_group=1, constrain="all")
    if len(strict.cells) != len(problem.cells) or request.label_drift is not None:
        return rows
    other = solve_separable(strict.cells, strict.band(base)).rows
    cost = math.inf if rows is None else problem.cells.total_cost(rows)
    fits = problem.holds(other) and within_tolerance(problem, other, base)
    kept = request.labels == "free" or drift(other, base, request.tolerance_on) <= request.tolerance
    return other if fits and kept and problem.cells.total_cost(other) < cost - 1e-9 else rows


def _balance(problem: Problem, base: Real) -> Box | None:
    """The range for the resulting label frequencies, unless the other constraints imply it."""
    request = problem.request
    if not problem.may_drift or (problem.special and request.label_drift is None):
        return None
    if not request.tolerance and request.labels != "free":
        # Rounding moves the table by up to a row per group.
        room = max(len(problem.cells), 1) / max(float(problem.have.sum()), 1.0)
        return Box(np.maximum(base - room, 0), base + room)
    return allowed_box(problem, base)


def _zero(problem: Problem, base: Real) -> Solution:
    """Solve for zero bias in closed form, or by a solver if groups are coupled."""
    chosen = None
    if problem.request.labels == "free" and problem.judged.any():
        chosen = cheapest_labels(problem, base, allowed_box(problem, base))
        if not math.isfinite(chosen.cost):
            return Solution(None, math.inf, "closed form", base)
        base = chosen.rates
    loose = problem.request.labels != "free" and not problem.judged.all()
    held = problem.special and problem.request.label_drift is not None
    if not problem.separable or loose or held:
        return _coupled(problem, base, chosen)
    cells = problem.cells.take(problem.judged)
    targets = problem.ratios[problem.judged] * base
    sizes = best_sizes(cells, targets, _extra(problem))
    if not sizes.feasible.all():
        return Solution(None, math.inf, "closed form", base)
    rows = _rounded(problem, cells, targets, sizes.size, base)
    size = problem.have.sum(axis=1).astype(float)
    size[problem.judged] = sizes.size
    if (rows > problem.cells.most).any() or (rows < problem.cells.least).any():
        return Solution(None, math.inf, "closed form", base)
    bound = 0.0
    if chosen is None or chosen.proved:
        bound = _whole_bound(cells, targets, sizes.size)
    return Solution(rows, bound, "closed form", base, sizes=size, chosen=chosen)


def _whole_bound(cells: Cells, targets: Real, size: Real) -> float:
    """Lower bound of the cost in whole rows: rounding saves at most a row per cell, and its share."""
    change = size[:, None] * targets - cells.have
    exact = (np.where(change > 0, cells.add, -cells.drop) * change).sum()
    saved = np.maximum(cells.add, cells.drop) * (1 + targets.shape[1] * targets)
    return max(float(exact - saved.sum()), 0.0)


def _rounded(problem: Problem, cells: Cells, targets: Real, size: Real, base: Real) -> Whole:
    """Round to whole rows; the optimal rounding also depends on the resulting label frequencies."""
    wanted = problem.request.rounding
    ways: tuple[Rounding, ...] = ("optimal", "nearest") if wanted == "optimal" else (wanted,)
    tried = []
    for way in ways:
        rows = problem.have.copy()
        rows[problem.judged] = whole_rows(cells, targets, size, way)
        tried.append(rows)
    return min(tried, key=lambda rows: (off_by(problem, rows, base), int(rows.sum())))


def _extra(problem: Problem) -> Whole | None:
    if not problem.request.extra:
        return None
    extra = np.zeros(len(problem.cells), np.int64)
    k = problem.have.shape[1]
    for pattern, rows in problem.request.extra:
        extra[np.unique(cell_numbers(problem.counts, problem.codes, pattern) // k)] = int(rows)
    return extra[problem.judged]
