"""Frontiers: the lowest cost of a repair as a step function of its tolerance."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise.counts import Reading
from equipoise.errors import InputError
from equipoise.plain import Grid, csv_text
from equipoise.plans.clock import end_after
from equipoise.plans.judgement import off_by
from equipoise.plans.problem import Problem, pose
from equipoise.plans.rounds import solve
from equipoise.plans.solvers.separable import solve_bands
from equipoise.plans.ties import settle_ties
from equipoise.plans.tolerance import least_tolerance
from equipoise.progress import Reporter, silent
from equipoise.results import Drawable, FlatTable
from equipoise.validate import at_least
from equipoise.values import plain

if TYPE_CHECKING:
    from collections.abc import Sequence

    from equipoise.counts import Counts
    from equipoise.plans.cells import Whole
    from equipoise.plans.request import PlanRequest

SCHEMA = "equipoise.frontier/1"
TOGETHER = 200_000
"""Number of groups searched at once, to limit memory."""

GAP, EFFORT = 5e-3, 0.19
"""Relative gap at which the search at one tolerance ends by default, and its share of the work."""


@dataclass(frozen=True)
class Point:
    """The lowest cost at one tolerance.

    The cost is the same for all tolerances from ``reached``, the bias that the plan leaves, to
    ``tolerance``.
    """

    tolerance: float
    reached: float
    cost: float  # infinite if there is no plan
    bound: float  # lower bound of the cost of any plan
    additions: int
    deletions: int

    def to_dict(self) -> dict[str, Any]:
        """Plain data, for JSON; None where there is no plan."""
        return {name: plain(value) for name, value in vars(self).items()}


@dataclass(frozen=True)
class Bought:
    """The smallest tolerance a budget pays for and the cost of its plan; None if there is no plan."""

    budget: float
    tolerance: float | None
    cost: float | None


@dataclass(frozen=True, eq=False)
class Frontier(Drawable):
    """The lowest cost of a repair at each tolerance, from the smallest to the largest.

    >>> import equipoise as eq
    >>> front = eq.frontier(
    ...     "compas",
    ...     sensitive_features=["sex", "race"],
    ...     label="risk",
    ...     count="n",
    ...     allow="both",
    ...     tolerances=[0.01, 0.05, 0.2],
    ... )
    >>> [point.cost for point in front.points]
    [4885.0, 3769.0, 776.0]
    """

    request: PlanRequest
    reference: str
    fingerprint: str
    now: float
    points: tuple[Point, ...]
    budgets: tuple[Bought, ...] = ()
    reading: Reading = field(default_factory=Reading)

    @property
    def exact(self) -> bool:
        """Whether every cost is proved to be the lowest."""
        return all(
            math.isinf(p.cost) or p.bound >= p.cost - 1e-6 * max(p.cost, 1) for p in self.points
        )

    @property
    def sentences(self) -> tuple[str, ...]:
        """What to read first."""
        kind = "|UB|" if self.request.tolerance_on == "ub" else "difference of rates"
        first = (
            f"The largest {kind} of a judged group is {self.now:.4g} now; plans are measured relative "
            f"to the {self.reference} label frequencies."
        )
        sure = (
            "Every cost is proved to be the lowest at its tolerance."
            if self.exact
            else "The costs are the lowest found; no plan costs less than the bound."
        )
        bought = tuple(
            f"A budget of {b.budget:,g} pays for a tolerance of {b.tolerance:.4g}."
            if b.tolerance is not None
            else f"A budget of {b.budget:,g} does not pay for any plan within the limits."
            for b in self.budgets
        )
        return (first, sure, *bought, *self.reading.sentences)

    def grid(self) -> Grid:
        """One line per tolerance."""
        rows = tuple(
            (f"{p.tolerance:.4g}", "no plan", "", "", "", "")
            if not math.isfinite(p.cost)
            else (
                f"{p.tolerance:.4g}",
                f"{p.cost:,.6g}",
                f"{p.bound:,.6g}",
                f"{p.additions:,}",
                f"{p.deletions:,}",
                f"{p.reached:.4g}",
            )
            for p in self.points
        )
        headers = ("tolerance", "least cost", "bound", "add", "delete", "reached")
        return Grid(headers, rows, frozenset(range(6)))

    def to_dict(self) -> dict[str, Any]:
        """Plain data, for JSON."""
        return {
            "schema": SCHEMA,
            "version": self.version,
            "fingerprint": self.fingerprint,
            "reading": self.reading.to_dict(),
            "reference": self.reference,
            "tolerance_on": self.request.tolerance_on,
            "now": self.now,
            "exact": self.exact,
            "points": [p.to_dict() for p in self.points],
            "budgets": [vars(b) for b in self.budgets],
            "explanation": list(self.sentences),
            "request": self.request.to_dict(),
        }

    def to_csv(self) -> str:
        """One line per tolerance, in full precision."""
        return csv_text(*self._table())

    def _table(self) -> FlatTable:
        names = ("tolerance", "cost", "bound", "additions", "deletions", "reached")
        return names, [[p.to_dict()[n] for n in names] for p in self.points]

    def __repr__(self) -> str:
        return f"<Frontier of {len(self.points)} tolerances; now {self.now:.4g}>"

    __str__ = __repr__  # printing stays short; :meth:`text` has everything


def make_frontier(
    counts: Counts,
    request: PlanRequest,
    *,
    tolerances: Sequence[float] | None = None,
    points: int = 50,
    budgets: Sequence[float] = (),
    progress: Reporter = silent,
) -> Frontier:
    """Find the lowest cost at several tolerances; that of the request itself is ignored.

    By default there are ``points`` tolerances, from near zero to the present bias. For each budget
    the smallest tolerance is found that it pays for.
    """
    posed = pose(counts, request)
    now = off_by(posed, posed.have, posed.base)
    asked = _asked(now, tolerances, points)
    # With targets, the reference above zero tolerance can be another than at zero.
    problem = posed.again(tolerance=asked[-1])
    now = off_by(problem, problem.have, problem.base)
    if problem.separable and not problem.may_drift and problem.reference == "original":
        found = _together(problem, asked, progress)
    else:
        found = _one_by_one(problem, asked, progress)
    return Frontier(
        request=request,
        reference=problem.reference,
        fingerprint=counts.fingerprint,
        now=now,
        points=tuple(found),
        budgets=tuple(_bought(posed, budget) for budget in budgets),
        reading=counts.reading,
    )


def _asked(now: float, tolerances: Sequence[float] | None, points: int) -> list[float]:
    if tolerances is not None:
        asked = sorted({float(t) for t in tolerances})
        for t in asked:
            at_least("tolerance", t, 0)
            if t == 0 or math.isinf(t):
                raise InputError(
                    f"`tolerances` of a frontier must be above 0 and finite, not {t:g}; for zero bias, make a plan."
                )
        if not asked:
            raise InputError("a frontier needs at least one tolerance.")
        return asked
    at_least("points", points, 2, whole=True)
    top = float(f"{max(now, 1e-3):.3g}")
    # A little beyond the present bias, so that the frontier ends at a cost of 0.
    return [float(f"{t:.4g}") for t in np.geomspace(top / 100, top * 1.02, int(points))]


def _together(problem: Problem, asked: list[float], progress: Reporter) -> list[Point]:
    """Solve all tolerances at once: groups are independent, so their searches can be stacked."""
    each = max(1, TOGETHER // len(problem.cells))
    points: list[Point] = []
    for start in range(0, len(asked), each):
        some = asked[start : start + each]
        bands = [problem.band(problem.base, t) for t in some]
        for t, cost, rows in zip(some, *solve_bands(problem.cells, bands), strict=True):
            points.append(_settled(problem.again(tolerance=t), rows, float(cost)))
        progress("tolerances", min(1.0, (start + each) / len(asked)))
    return points


def _settled(problem: Problem, rows: Whole, cost: float) -> Point:
    """The same plan of those with the lowest cost as the one that is planned at this tolerance."""
    tolerance = problem.request.tolerance
    if not math.isfinite(cost):
        return _point(problem, tolerance, None, cost)
    rows = settle_ties(problem, rows, None)  # label frequencies follow from the groups
    return _point(problem, tolerance, rows, cost)


def _one_by_one(problem: Problem, asked: list[float], progress: Reporter) -> list[Point]:
    """Solve from the smallest tolerance on, since each plan is a candidate for the next tolerance."""
    points: list[Point] = []
    known: list[Whole] = []
    gap = GAP if problem.request.gap is None else problem.request.gap
    end = end_after(problem.request.time_limit)
    for number, t in enumerate(asked):
        left = max(end - time.monotonic(), 0.01)
        trial = problem.again(tolerance=t, gap=gap, time_limit=left)
        found = solve(trial, candidates=known, effort=EFFORT)
        cost = math.inf if found.rows is None else problem.cells.total_cost(found.rows)
        known = known if found.rows is None else [found.rows]
        points.append(_point(trial, t, found.rows, cost, found.bound))
        progress("tolerances", (number + 1) / len(asked))
    return points


def _point(
    problem: Problem, tolerance: float, rows: Whole | None, cost: float, bound: float = math.inf
) -> Point:
    if rows is None:
        return Point(tolerance, math.nan, math.inf, math.inf, 0, 0)
    change = rows - problem.have
    reached = off_by(problem, rows, problem.base)
    added, gone = int(change.clip(0).sum()), int((-change).clip(0).sum())
    return Point(tolerance, reached, cost, max(min(bound, cost), 0.0), added, gone)


def _bought(problem: Problem, budget: float) -> Bought:
    at_least("budget", budget, 0)
    found = least_tolerance(problem, budget)
    if found is None or found[1].rows is None:
        return Bought(budget, None, None)
    return Bought(budget, found[0], problem.cells.total_cost(found[1].rows))
