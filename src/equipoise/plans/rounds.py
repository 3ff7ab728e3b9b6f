"""Solve a problem, and with a policy repeat that until the repaired table keeps its rules.

A rule applies to groups of a minimum size, which a plan may lift a group to. Such a group must then
be inside its limits, or stay below the minimum size: both are tried. The rule on the best-off group
is solved for ranges of its rate, the most promising first.
"""

from __future__ import annotations

import heapq
import itertools
import math
import time
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise.errors import InputError
from equipoise.plans import solution
from equipoise.plans.clock import end_after, is_late
from equipoise.plans.judgement import check_rules
from equipoise.plans.limits import limit_rows
from equipoise.plans.solution import Solution
from equipoise.plans.solvers.box import allowed_box

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from numpy.typing import NDArray

    from equipoise.plans.cells import Whole
    from equipoise.plans.problem import Problem

ROUNDS = 12
"""Maximum number of times that further groups are held to a rule, or below its minimum size."""

RANGES = 12
"""Maximum number of ranges of the best-off group's rate that are split."""

SURELY = 5e-3
"""Probability of the most extreme outcome below which a group tells; a check asks for 5 %."""

EFFORT = 0.3
"""Share of the usual effort for the bound of the other rules."""


def solve(
    problem: Problem,
    *,
    candidates: Iterable[Whole] = (),
    effort: float = 1.0,
    enough: float | None = None,
    most: float = math.inf,
    at_once: bool = False,
    progress: Callable[[float], None] = lambda _: None,
) -> Solution:
    """Find the cheapest plan; with a policy, one after which a check of the table passes.

    With ``enough`` a search only decides whether a plan costs at most that. A search also ends when
    every plan is proved to cost more than ``most``. With ``at_once`` all limits are held from the
    start.
    """
    how: dict[str, Any] = {"candidates": tuple(candidates), "effort": effort, "enough": enough}
    how |= {"most": most, "at_once": at_once}
    if problem.ruled is None:
        return solution.solve(problem, **how, progress=progress)
    if problem.ruled.best is None:
        return _settled(problem, {**how, "progress": progress})
    return _Ratios(problem, how, progress).run()


# ------------------------------------------------------------------------------- minimum sizes


def _settled(problem: Problem, how: dict[str, Any]) -> Solution:
    """Solve, and again with the groups that the plan lifted over a minimum size, until all hold."""
    found = solution.solve(problem, **how)
    # Every plan that passes the check is also a plan for the first problem.
    bound = found.bound
    lifted = _broken(problem, found)
    if not lifted.any():
        return found
    best = _repeated(problem, how, lifted, _judging)
    if _cost(problem, best) * (1 - problem.request.solver_gap) > bound and not is_late():
        other = _repeated(problem, how, lifted, _holding_below)
        best = min(best, other, key=lambda each: _cost(problem, each))
    if best.rows is None:
        return replace(found, rows=None, bound=bound)
    return replace(best, bound=min(bound, _cost(problem, best)))


def _repeated(
    problem: Problem,
    how: dict[str, Any],
    lifted: NDArray[np.bool_],
    way: Callable[[Problem, NDArray[np.bool_]], Problem],
) -> Solution:
    """Solve again until the plan lifts no further group out of its limits."""
    lifted = lifted.copy()
    for _ in range(ROUNDS):
        found = solution.solve(way(problem, lifted), **how)
        broken = _broken(problem, found)
        if not broken.any():
            return found
        if not (broken & ~lifted).any() or is_late():
            break
        lifted |= broken
    return replace(found, rows=None)


def _broken(problem: Problem, found: Solution) -> NDArray[np.bool_]:
    """The groups that a plan leaves outside their limits."""
    assert problem.ruled is not None  # noqa: S101 - only problems with a policy come here
    broken = np.zeros(len(problem.ruled.lattice), np.bool_)
    if found.rows is not None:
        broken[problem.ruled.broken(found.rows, problem.request.slack)] = True
    return broken


def _judging(problem: Problem, lifted: NDArray[np.bool_]) -> Problem:
    assert problem.ruled is not None  # noqa: S101 - only problems with a policy come here
    return problem.demanding(problem.ruled, lifted)


def _holding_below(problem: Problem, lifted: NDArray[np.bool_]) -> Problem:
    """Keep groups below the smallest size to which a rule applies."""
    ruled = problem.ruled
    assert ruled is not None  # noqa: S101 - only problems with a policy come here
    k, held = problem.cells.labels, []
    judged = lifted.copy()
    for line in np.flatnonzero(lifted).tolist():
        sizes = [
            int(least[line][layer.limited[line]].min(initial=np.iinfo(np.int64).max))
            for layer, least in zip(ruled.layers, ruled.least, strict=True)
        ]
        if ruled.sizes[line] >= min(sizes):
            continue  # it was judged before, and is again, to the last digit
        judged[line] = False
        cells = (ruled.parts(line)[:, None] * k + np.arange(k)).ravel()
        held.append(limit_rows("max_rows", "a small group", min(sizes) - 1, cells))
    other = problem.demanding(ruled, judged)
    return replace(other, coupling=(*problem.coupling, *held))


def _cost(problem: Problem, found: Solution) -> float:
    return math.inf if found.rows is None else problem.cells.total_cost(found.rows)


# ------------------------------------------------------------------------------ best-off groups


@dataclass(eq=False)
class _Ratios:
    """The search over the best-off group's rate, as a multiple b of the overall rate.

    With b in a range, every group has at most the upper end, and at least the ratio times the lower
    end. That excludes no plan with such a b, so its bound is valid. At a single b it is what the
    rule needs.
    """

    problem: Problem
    how: dict[str, Any]
    progress: Callable[[float], None]
    best: Solution | None = None
    last: Solution | None = None
    end: float = field(init=False)

    def __post_init__(self) -> None:
        self.end = end_after(self.problem.request.time_limit)

    def run(self) -> Solution:
        ruled, number = self.problem.ruled, itertools.count()
        assert ruled is not None  # noqa: S101 - asked only if there is such a rule
        nothing = Solution(self.problem.have, 0.0, "centre", self.problem.base)
        if self.passes(self.problem.have) and self.fits(self.problem.have):
            return replace(nothing, tolerance=self.problem.request.tolerance)
        heap = [
            (self.solve(*ends, whole=True), next(number), *ends) for ends in self.first_ranges()
        ]
        heapq.heapify(heap)
        for step in range(RANGES):
            if heap[0][0] >= self.enough or self.late:
                break
            _, _, low, high = heapq.heappop(heap)
            middle = (low + high) / 2
            known = self.best
            for ends in ((low, middle), (middle, high)):
                bound = self.solve(*ends, whole=True)
                if bound < math.inf:
                    heapq.heappush(heap, (bound, next(number), *ends))
            if self.best is known:  # plans for ranges often keep the rule, too; here none did
                self.solve(middle, middle, whole=False)
            self.progress((step + 1) / RANGES)
            if not heap:
                break
        return self.finished(heap[0][0] if heap else math.inf)

    def first_ranges(self) -> list[tuple[float, float]]:
        """Where b can be: if all groups are held to the rule, one below the overall rate limits it."""
        ruled, box = self.problem.ruled, allowed_box(self.problem, self.problem.base)
        assert ruled is not None  # noqa: S101 - asked only if there is such a rule
        assert ruled.best is not None  # noqa: S101 - asked only if there is such a rule
        most = 1 / ruled.ratio
        highest = 1 / max(float(box.low[ruled.best.any(axis=0)].min()), 1e-6)
        if ruled.compares_all or highest <= most:
            return [(1.0, most)]
        now = min(max(ruled.best_rate(self.problem.have), most), highest)
        return [(1.0, most), (most, now), (now, highest)]

    def finished(self, bound: float) -> Solution:
        best = self.best
        cost = math.inf if best is None else _cost(self.problem, best)
        inside = None
        if not self.is_general(cost):
            inside, bound = min(bound, cost), min(bound, self.bound_of_others())
        if best is None:
            assert self.last is not None  # noqa: S101 - the first range was solved
            return replace(self.last, rows=None, bound=bound, timed_out=self.late)
        near = cost - bound <= self.problem.request.solver_gap * cost
        stopped = "gap" if near else "time" if self.late else "work"
        return replace(best, bound=min(bound, cost), stopped=stopped, inside=inside)  # type: ignore[arg-type]

    def is_general(self, cost: float) -> bool:
        """Whether the ranges exclude no plan below a cost that keeps the rule.

        A check compares with groups only that are large enough to tell; below the cost, all must be.
        """
        problem, ruled = self.problem, self.problem.ruled
        assert ruled is not None  # noqa: S101 - asked only if there is such a rule
        assert ruled.best is not None  # noqa: S101 - asked only if there is such a rule
        if not ruled.compares_all:
            return False
        added, deleted = problem.cells.most_changes(cost)
        least = np.maximum(ruled.sums(problem.cells.least), ruled.sums(problem.have) - deleted)
        size = np.maximum(least.sum(axis=1), ruled.sizes - deleted)[:, None]
        totals, box = problem.have.sum(axis=0), allowed_box(problem, problem.base)
        n = float(totals.sum())
        rarest = np.maximum(box.low, (totals - deleted).clip(0) / (n + added))
        commonest = np.minimum(box.high, (totals + added) / max(n - deleted, 1.0))
        chance = np.maximum((1 - rarest) ** size, commonest**size)  # of the most extreme outcome
        tells = (chance < SURELY) & (least >= 2) & (least.sum(axis=1)[:, None] - least >= 2)
        return bool((tells & (size >= ruled.least[-1]))[ruled.best].all())

    def bound_of_others(self) -> float:
        """A lower bound of the cost of all plans that keep the other rules."""
        problem = self.problem
        assert problem.ruled is not None  # noqa: S101 - asked only if there is such a rule
        nobody = np.zeros(len(problem.ruled.lattice), np.bool_)
        try:
            others = problem.demanding(problem.ruled.without_best(), nobody)
        except InputError:  # there are no other rules
            return problem.cells.lowest_cost
        left = max(self.end - time.monotonic(), 0.1)
        others = replace(others, request=problem.request.but(time_limit=left))
        return solution.solve(others, effort=EFFORT).bound

    @property
    def late(self) -> bool:
        return time.monotonic() > self.end

    @property
    def enough(self) -> float:
        """The bound at which no more needs to be searched."""
        if self.best is None:
            return math.inf
        cost = _cost(self.problem, self.best)
        asked = self.how["enough"]
        if asked is not None and cost <= asked:
            return -math.inf
        return cost - max(self.problem.request.solver_gap * cost, 1e-9)

    def solve(self, low: float, high: float, *, whole: bool) -> float:
        """Solve for a range, keep the plan if it passes the check, and return the bound."""
        problem = self.problem
        assert problem.ruled is not None  # noqa: S101 - asked only if there is such a rule
        nobody = np.zeros(len(problem.ruled.lattice), np.bool_)
        trial = problem.demanding(problem.ruled.between(low, high), nobody)
        left = max(self.end - time.monotonic(), 0.1)
        trial = replace(trial, request=problem.request.but(time_limit=left))
        how = dict(self.how)
        if self.best is not None:
            how["candidates"] = (*how["candidates"], self.best.rows)
        found = self.last = _settled(trial, how)
        kept = found.rows is not None and (low == high or self.passes(found.rows))
        if kept and (self.best is None or _cost(problem, found) < _cost(problem, self.best)):
            self.best = found
        return found.bound if whole or found.rows is None else -math.inf

    def fits(self, rows: Whole) -> bool:
        """Whether rows keep the limits on rows and on label frequencies."""
        box = allowed_box(self.problem, self.problem.base)
        rates = rows.sum(axis=0) / rows.sum()
        inside = ((rates >= box.low - 1e-12) & (rates <= box.high + 1e-12)).all()
        return bool(inside) and self.problem.holds(rows)

    def passes(self, rows: Whole) -> bool:
        """Whether a plan for a range keeps the rule itself."""
        assert self.problem.ruled is not None  # noqa: S101 - asked only if there is such a rule
        slack = self.problem.request.slack
        if not slack:
            return check_rules(self.problem, rows).status == "inside"
        most = self.problem.ruled.best_rate(rows)
        exact = self.problem.ruled.between(most, most)
        return not len(exact.broken(rows, slack))
