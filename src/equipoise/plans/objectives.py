"""Objectives other than the least cost: the smallest table, the fewest additions, the fewest groups.

Each is reached in two steps: first the best value of the objective, then the cheapest plan that has
this value.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise.plans.judgement import within_tolerance
from equipoise.plans.rounds import solve
from equipoise.plans.solution import ANY_PLAN, Solution, label_balance
from equipoise.plans.solvers.fewest import fewest_groups

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from equipoise.options.plan import Objective
    from equipoise.plans.cells import Whole
    from equipoise.plans.problem import Problem

MOST_CELLS = 400
"""Up to this size, the fewest groups are found by a model that proves it."""

TRIALS = 60
"""Maximum number of plans that the search for fewer groups or rows tries."""

FIRST = 1e6
"""Weight of the objective at zero tolerance, where sizes do not depend on each other."""


@dataclass(frozen=True, eq=False)
class Optimum:
    """The cheapest plan of the best value of an objective, and a lower bound of that value."""

    solution: Solution
    objective: Objective
    value: int | None = None
    bound: int = 0

    @property
    def proved(self) -> bool:
        """Whether no plan has a smaller value."""
        return self.value is not None and self.bound >= self.value

    def to_dict(self) -> dict[str, Any]:
        """Plain data, for JSON."""
        return {"name": self.objective, "value": self.value, "bound": self.bound}

    @property
    def sentences(self) -> Iterator[str]:
        """What is best about the plan, and how sure that is."""
        what = {
            "rows": "has {} rows",
            "additions": "adds {} rows",
            "groups": "changes {} of the finest groups",
        }[self.objective]
        says = what.format(f"{self.value:,}")
        if self.proved:
            yield f"The plan {says}; no plan for this request has fewer, and none with as few costs less."
        else:
            yield (
                f"The plan {says}, the fewest that were found; it is proved that at least "
                f"{self.bound:,} are needed."
            )


def optimise(
    problem: Problem,
    known: list[Whole],
    *,
    effort: float = 1.0,
    progress: Callable[[float], None] = lambda _: None,
) -> Optimum:
    """Find the plan that is best by the objective of the request, and then the cheapest."""
    objective = problem.request.objective
    if objective == "cost":
        return Optimum(solve(problem, candidates=known, effort=effort, progress=progress), "cost")
    if objective == "groups":
        return _fewest_changes(problem, known)
    if not problem.request.tolerance:
        return _at_zero(problem)
    if objective == "additions" or problem.request.allow == "add":
        return _fewest_additions(problem, known)
    return _smallest_table(problem, known)


def _priced(problem: Problem, add: Any, drop: Any) -> Problem:
    shape = problem.have.shape
    cells = replace(
        problem.cells,
        add=np.broadcast_to(np.asarray(add, float), shape).copy(),
        drop=np.broadcast_to(np.asarray(drop, float), shape).copy(),
    )
    return replace(problem, cells=cells)


def _at_zero(problem: Problem) -> Optimum:
    """At zero tolerance one weighted sum decides: a price moves each group from one size to another."""
    cells = problem.cells
    weight = FIRST * max(float(cells.add.max()), float(cells.drop.max()), 1.0)
    found = solve(_priced(problem, weight + cells.add, cells.drop))
    if found.rows is None:
        return Optimum(found, problem.request.objective)
    value = _value(problem, found.rows)
    # Rounding saves at most the rows by which the bound of the weighted sum is below it.
    bound = max(math.floor(found.bound / weight), 0)
    if problem.request.objective == "rows":
        bound += int(problem.have.sum()) + problem.aside
    return Optimum(replace(found, bound=0.0), problem.request.objective, value, min(bound, value))


def _value(problem: Problem, rows: Whole) -> int:
    """The value of the objective of a plan."""
    objective = problem.request.objective
    if objective == "rows":
        return int(rows.sum()) + problem.aside
    if objective == "additions":
        return int((rows - problem.have).clip(0).sum())
    return int((rows != problem.have).any(axis=1).sum())


def _cheapest(problem: Problem, limited: Problem, known: list[Whole]) -> Solution:
    """The cheapest plan of a limited problem; one of the known ones if it is cheaper."""
    found = solve(limited, candidates=known)
    fits = [x for x in known if limited.holds(x) and within_tolerance(problem, x, problem.base)]
    for rows in fits:
        if found.rows is None or problem.cells.total_cost(rows) < problem.cells.total_cost(
            found.rows
        ):
            found = replace(found, rows=rows)
    return found


def _fewest_additions(problem: Problem, known: list[Whole]) -> Optimum:
    """First with additions as the only cost, then with their number as a limit."""
    objective = problem.request.objective
    first = solve(_priced(problem, 1.0, 0.0), candidates=known)
    if first.rows is None:
        return Optimum(first, objective)
    additions = int((first.rows - problem.have).clip(0).sum())
    limit = (*problem.request.available, ("*", additions))
    found = _cheapest(problem, problem.again(available=limit), [*known, first.rows])
    start = int(problem.have.sum()) + problem.aside if objective == "rows" else 0
    bound = start + max(math.ceil(first.bound - 1e-6), 0)
    value = start + additions
    best = first if found.rows is None else found
    return Optimum(best, objective, value, min(bound, value))


def _smallest_table(problem: Problem, known: list[Whole]) -> Optimum:
    """Bisect the largest number of rows for which there is a plan."""
    start = solve(problem, candidates=known)
    if start.rows is None:
        return Optimum(start, "rows")
    end = time.monotonic() + problem.request.time_limit / 2
    best = start.rows
    low, high = _fewest_possible(problem), int(best.sum()) + problem.aside
    proved, trials, late = low, 0, False
    while low < high and trials < TRIALS and not late:
        middle = (low + high) // 2
        limited = problem.again(max_rows=middle, gap=ANY_PLAN)
        found = solve(limited, enough=math.inf)
        if found.rows is None:
            low = middle + 1
            proved = low if found.bound == math.inf else proved
        else:
            best, high = found.rows, int(found.rows.sum()) + problem.aside
        trials, late = trials + 1, time.monotonic() > end
    limited = problem.again(max_rows=high)
    found = replace(_cheapest(problem, limited, [best]), timed_out=late)
    return Optimum(found, "rows", high, min(proved, high))


def _fewest_possible(problem: Problem) -> int:
    """Rows that the bounds of cells and groups require."""
    least = np.maximum(problem.cells.least.sum(axis=1), problem.cells.group_least)
    asked = [int(least.sum()) + problem.aside, problem.request.min_rows or 0]
    return max(asked)


# --- fewest changed groups ------------------------------------------------------------------------


def _fewest_changes(problem: Problem, known: list[Whole]) -> Optimum:
    held = problem.reference == "original"
    if held and problem.have.size <= MOST_CELLS:
        balance = label_balance(problem, problem.base)
        for inside in (0.0, 1e-5):
            found = fewest_groups(problem, problem.base, balance, inside=inside)
            rows = found.rows
            if rows is None:
                break
            if problem.holds(rows) and within_tolerance(problem, rows, problem.base):
                limited = _frozen(problem, (rows == problem.have).all(axis=1))
                best = _cheapest(problem, limited, [rows])
                value = _value(problem, rows)
                best = replace(best, timed_out=found.timed_out)
                return Optimum(best, "groups", value, min(found.bound, value))
    return _leave_out(problem, known)


def _frozen(problem: Problem, lines: Any) -> Problem:
    """The problem in which some groups stay as they are."""
    cells, stay = problem.cells, lines[:, None]
    least = np.where(stay, cells.have, cells.least)
    return replace(
        problem, cells=replace(cells, least=least, most=np.where(stay, cells.have, cells.most))
    )


def _leave_out(problem: Problem, known: list[Whole]) -> Optimum:
    """Let as many groups as possible stay as they are, those with the cheapest changes first."""
    start = solve(problem, candidates=known)
    if start.rows is None:
        return Optimum(start, "groups")
    best, trials = start.rows, 0
    fixed = (best == problem.have).all(axis=1)
    cheap = np.argsort(problem.cells.cost(best), kind="stable")
    queue = [np.array([line for line in cheap if not fixed[line]], int)]
    end = time.monotonic() + problem.request.time_limit / 2
    while queue and trials < TRIALS and time.monotonic() <= end:
        lines = queue.pop(0)
        lines = lines[~fixed[lines]]
        if not len(lines):
            continue
        trial = fixed.copy()
        trial[lines] = True
        trials += 1
        found = _any_plan(problem, trial)
        if found is not None:
            best, fixed = found, (found == problem.have).all(axis=1) | trial
        elif len(lines) > 1:
            half = (len(lines) + 1) // 2
            queue = [lines[:half], lines[half:], *queue]
    found_rows = _cheapest(problem, _frozen(problem, fixed), [best])
    value = _value(problem, best if found_rows.rows is None else found_rows.rows)
    valid = problem.holds(problem.have) and within_tolerance(problem, problem.have, problem.base)
    return Optimum(found_rows, "groups", value, min(0 if valid else 1, value))


def _any_plan(problem: Problem, stay: Any) -> Whole | None:
    limited = _frozen(problem, stay)
    short = (problem.have.sum(axis=1) < problem.cells.group_least) & stay
    out = (problem.have < problem.cells.least) | (problem.have > problem.cells.most)
    if short.any() or out[stay].any():
        return None
    quick = replace(limited, request=problem.request.but(gap=ANY_PLAN))
    return solve(quick, enough=math.inf).rows
