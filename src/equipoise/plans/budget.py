"""When money does not suffice: the least largest bias it buys, or the user's own order."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise.plans.problem import Problem, cell_numbers
from equipoise.plans.solve import Solution, base_rates, drift, off_by, reference_of, solve

if TYPE_CHECKING:
    from equipoise.plans.cells import Whole

REST = "everything else"


@dataclass(frozen=True)
class Step:
    """One entry of a priority list, and how far the budget served it.

    Attributes
    ----------
    pattern
        The cells it is about.
    needed, cost
        How many changes it takes, and what they cost.
    served
        How many of them the budget paid.
    left
        What was left of the budget after it.
    """

    pattern: str
    needed: int
    cost: float
    served: int
    left: float

    @property
    def missing(self) -> int:
        """How many changes were not paid for."""
        return self.needed - self.served

    def to_dict(self) -> dict[str, Any]:
        """Plain data, for JSON."""
        return {
            "pattern": self.pattern,
            "needed": self.needed,
            "cost": self.cost,
            "served": self.served,
            "missing": self.missing,
            "left": self.left,
        }


def serve(problem: Problem, ideal: Whole) -> tuple[Whole, tuple[Step, ...]]:
    """Spend the budget on an ideal plan in the order of the priorities.

    The first entry that the rest of the budget cannot pay is served in part, in proportion
    to what its cells need; what is not in the list comes last.
    """
    left = float(problem.request.budget or 0.0)
    rows = problem.have.ravel().copy()
    change = ideal.ravel() - rows
    open_ = change != 0
    steps = []
    for pattern in (*problem.request.priority, REST):
        if pattern == REST:
            chosen = np.flatnonzero(open_)
            if not len(chosen):
                break
        else:
            cells = cell_numbers(problem.counts, problem.codes, pattern)
            chosen = cells[open_[cells]]
        price = np.where(change > 0, problem.cells.add.ravel(), problem.cells.drop.ravel())[chosen]
        need = np.abs(change[chosen])
        take = need if float(need @ price) <= left + 1e-9 else _in_part(need, price, left)
        left = max(left - float(take @ price), 0.0)
        rows[chosen] += np.sign(change[chosen]) * take
        open_[chosen] = False
        steps.append(
            Step(pattern, int(need.sum()), float(need @ price), int(take.sum()), round(left, 9))
        )
    return rows.reshape(problem.have.shape), tuple(steps)


def _in_part(need: Whole, price: Any, left: float) -> Whole:
    """As many changes as the money pays, in proportion to the need; the rest buys the cheapest."""
    exact = need * (left / float(need @ price))
    take = np.floor(exact + 1e-12).astype(np.int64)
    left -= float(take @ price)
    for cell in np.argsort(take - exact, kind="stable"):
        if take[cell] < need[cell] and price[cell] <= left + 1e-9:
            take[cell] += 1
            left -= float(price[cell])
    for cell in np.argsort(price, kind="stable"):
        lacking = int(need[cell] - take[cell])
        paid = int((left + 1e-9) // price[cell]) if price[cell] > 0 else lacking
        take[cell] += min(lacking, paid)
        left -= min(lacking, paid) * float(price[cell])
    return np.asarray(take)


def least_tolerance(
    problem: Problem,
    budget: float = math.inf,
    *,
    progress: Callable[[float], None] = lambda _: None,
) -> tuple[float, Solution] | None:
    """Find the smallest tolerance that the limits and a budget allow, and its plan.

    By bisection; what a plan reaches is often less than it was asked for, and counts. None if
    no tolerance will do.
    """
    low, high = problem.request.tolerance, math.nan
    best: Solution | None = None
    end = time.monotonic() + problem.request.time_limit
    each = max(problem.request.time_limit / 10, 0.2)
    reference = _settled(replace(problem, request=problem.request.but(time_limit=each)))
    trial = max(2 * low, _present(problem))
    for _ in range(12):
        found = _affordable(reference, trial, budget, None)
        if found is not None:
            best = found
            break
        low, trial = trial, 4 * trial + 1e-3
    if best is None or best.rows is None:
        return None
    high = _reached(reference, best, trial)
    precise = reference.separable and reference.request.reference == "original"
    width = 1e-7 if precise else 2e-3
    start = max(high - low, 1e-12)
    while high - low > width * max(high, 1e-3) and time.monotonic() < end:
        middle = (low + high) / 2
        found = _affordable(reference, middle, budget, best.rows)
        if found is None:
            low = middle
        else:
            best, high = found, min(_reached(reference, found, middle), middle)
        progress(min(1.0, math.log(start / max(high - low, 1e-300)) / math.log(1 / width)))
    if best.rows is None:
        return None
    return high, best


def _settled(problem: Problem) -> Problem:
    """The problem with its reference named, as it would be at zero tolerance."""
    if problem.request.reference is not None:
        return problem
    request = problem.request.but(reference=reference_of(problem))
    return replace(problem, request=request)


def _present(problem: Problem) -> float:
    return max(off_by(problem, problem.have, base_rates(problem)), 1e-6)


def _affordable(
    problem: Problem, tolerance: float, budget: float, known: Whole | None
) -> Solution | None:
    trial = replace(problem, request=problem.request.but(tolerance=tolerance, extra=()))
    candidates = () if known is None else (known,)
    found = solve(trial, candidates=candidates, effort=0.05, first=math.isinf(budget))
    if found.rows is None or problem.cells.cost(found.rows).sum() > budget * (1 + 1e-12) + 1e-9:
        return None
    return found


def _reached(problem: Problem, found: Solution, tolerance: float) -> float:
    """What a plan leaves: of bias, and where labels are kept, of their drift, too."""
    assert found.rows is not None  # noqa: S101 - an affordable plan has rows
    trial = replace(problem, request=problem.request.but(tolerance=tolerance, extra=()))
    off = off_by(trial, found.rows, found.base)
    if problem.request.labels == "free" or reference_of(trial) == "original":
        return off
    return max(off, drift(found.rows, found.base, problem.request.tolerance_on))
