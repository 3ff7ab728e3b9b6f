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

from equipoise.plans.clock import end_after
from equipoise.plans.judgement import within_tolerance
from equipoise.plans.rounds import solve
from equipoise.plans.solution import ANY_PLAN, Solution, label_balance
from equipoise.plans.solvers.box import allowed_box
from equipoise.plans.solvers.fewest import fewest_groups
from equipoise.plans.solvers.incumbent import holds_everything
from equipoise.plans.solvers.polish import frequencies_allowed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

    from equipoise.options.plan import Objective
    from equipoise.plans.cells import Whole
    from equipoise.plans.problem import Problem

MOST_CELLS = 400
"""Up to this size, the fewest groups are found by a model that proves it."""

TRIALS = 60
"""Maximum number of plans that the search for fewer groups or rows tries."""

TOGETHER = 6
"""Maximum number of sets of groups that are tried to stay as they are."""

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

    def sentences(self, cost: float) -> Iterator[str]:
        """What is best about the plan, and how sure that is."""
        what = {
            "rows": "has {} rows",
            "additions": "adds {} rows",
            "groups": "changes {} of the finest groups",
        }[self.objective]
        says = what.format(f"{self.value:,}")
        if self.proved:
            yield f"The plan {says}; no plan for this request has fewer."
        else:
            yield (
                f"The plan {says}, the fewest that were found; it is proved that at least "
                f"{self.bound:,} are needed."
            )
        bound = self.solution.bound
        if bound >= cost - 1e-6 * max(cost, 1.0):
            yield f"No plan with as few costs less than {cost:,.6g}."
        elif bound > 0:
            yield f"It costs {cost:,.6g}; no plan with as few costs less than {bound:,.6g}."


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
    end = end_after(problem.request.time_limit)
    if objective == "groups":
        return _fewest_changes(problem, known, end)
    if not problem.request.tolerance:
        return _at_zero(problem)
    if objective == "additions" or problem.request.allow == "add":
        return _fewest_additions(problem, known, end)
    return _smallest_table(problem, known, end)


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
    # A plan of the same weighted sum has the fewest additions if it deletes everything.
    gone = float((cells.drop * cells.have).sum())
    least = (found.bound - gone) / (weight + float(cells.add.max()))
    bound = max(math.ceil(least - 1e-6), 0)
    if problem.request.objective == "rows":
        bound += int(problem.have.sum()) + problem.aside
    return _optimum(problem, replace(found, bound=0.0), bound)


def _optimum(problem: Problem, found: Solution, bound: int) -> Optimum:
    """A plan with its own value of the objective."""
    value = None if found.rows is None else _value(problem, found.rows)
    least = bound if value is None else min(bound, value)
    return Optimum(found, problem.request.objective, value, least)


def _value(problem: Problem, rows: Whole) -> int:
    """The value of the objective of a plan."""
    objective = problem.request.objective
    if objective == "rows":
        return int(rows.sum()) + problem.aside
    if objective == "additions":
        return int((rows - problem.have).clip(0).sum())
    return int((rows != problem.have).any(axis=1).sum())


def _hurried(problem: Problem, end: float, part: float = 1.0) -> Problem:
    """The problem with a part of the time that is left as its limit."""
    left = max((end - time.monotonic()) * part, 0.1)
    return replace(problem, request=problem.request.but(time_limit=left))


def _cheapest(problem: Problem, limited: Problem, known: list[Whole]) -> Solution:
    """The cheapest plan of a limited problem; one of the known ones if it is cheaper."""
    found = solve(limited, candidates=known)
    if problem.ruled is not None:
        return found  # the rounds of a policy have looked at the known plans
    box = allowed_box(limited, limited.base)
    fits = [x for x in known if holds_everything(limited, x, box)]
    cost = problem.cells.total_cost
    for rows in fits:
        if found.rows is None or cost(rows) < cost(found.rows):
            found = replace(found, rows=rows)
    return found


def _fewest_additions(problem: Problem, known: list[Whole], end: float) -> Optimum:
    """First with additions as the only cost, then with their number as a limit."""
    objective = problem.request.objective
    first = solve(_hurried(_priced(problem, 1.0, 0.0), end, 0.5), candidates=known)
    if first.rows is None:
        return Optimum(first, objective)
    additions = int((first.rows - problem.have).clip(0).sum())
    limited = problem.again(available=(*problem.request.available, ("*", additions)))
    found = _cheapest(problem, _hurried(limited, end), [*known, first.rows])
    late = first.timed_out or found.timed_out
    start = int(problem.have.sum()) + problem.aside if objective == "rows" else 0
    bound = start + max(math.ceil(first.bound - 1e-6), 0)
    return _optimum(problem, replace(found, timed_out=late), bound)


def _smallest_table(problem: Problem, known: list[Whole], end: float) -> Optimum:
    """Bisect the largest number of rows for which there is a plan."""
    start = solve(_hurried(problem, end, 0.3), candidates=known)
    if start.rows is None:
        return Optimum(start, "rows")
    best, trials = start.rows, 0
    low, high = _fewest_possible(problem), int(best.sum()) + problem.aside
    proved, stop = low, end - 0.3 * (end - time.monotonic())
    while low < high and trials < TRIALS and time.monotonic() < stop:
        middle = (low + high) // 2
        found = _any_plan(_hurried(problem.again(max_rows=middle), stop, 0.3))
        if found.rows is None:
            low = middle + 1
            proved = low if found.bound == math.inf else proved
        else:
            best, high = found.rows, int(found.rows.sum()) + problem.aside
        trials += 1
    found = _cheapest(problem, _hurried(problem.again(max_rows=high), end), [best])
    late = found.timed_out or time.monotonic() >= stop
    return _optimum(problem, replace(found, timed_out=late), proved)


def _fewest_possible(problem: Problem) -> int:
    """Rows that the bounds of cells and groups require."""
    least = np.maximum(problem.cells.least.sum(axis=1), problem.cells.group_least)
    asked = [int(least.sum()) + problem.aside, problem.request.min_rows or 0]
    return max(asked)


# --- fewest changed groups ------------------------------------------------------------------------


def _fewest_changes(problem: Problem, known: list[Whole], end: float) -> Optimum:
    """Change only groups that must change; if that does not suffice, search for others."""
    must = _must_change(problem)
    rows = _any_plan(_hurried(_frozen(problem, ~must), end, 0.3)).rows
    if rows is not None:
        return _settled(problem, rows, int(must.sum()), end)
    if problem.reference == "original" and problem.have.size <= MOST_CELLS:
        balance = label_balance(problem, problem.base)
        for inside in (0.0, 1e-5):
            limited = _hurried(problem, end, 0.5)
            found = fewest_groups(limited, problem.base, balance, inside=inside)
            rows = found.rows
            if rows is None:
                break
            if problem.holds(rows) and within_tolerance(problem, rows, problem.base):
                return _settled(problem, rows, found.bound, end, late=found.timed_out)
    return _leave_out(problem, known, must, end)


def _settled(
    problem: Problem, rows: Whole, bound: int, end: float, *, late: bool = False
) -> Optimum:
    """The cheapest plan that changes no other groups than some rows do."""
    limited = _hurried(_frozen(problem, (rows == problem.have).all(axis=1)), end)
    best = _cheapest(problem, limited, [rows])
    return _optimum(problem, replace(best, timed_out=late or best.timed_out), bound)


def _must_change(problem: Problem) -> NDArray[np.bool_]:
    """The groups that cannot stay as they are, whatever happens to the others."""
    cells, have = problem.cells, problem.have
    must = (have.sum(axis=1) < cells.group_least) | (have < cells.least).any(axis=1)
    must |= (have > cells.most).any(axis=1)
    if problem.reference == "original":  # against new frequencies, it depends on the others
        for line in np.flatnonzero(problem.judged & ~must):
            alone = np.arange(len(must)) == line
            one = replace(problem, judged=alone, coarse=())
            must[line] = not within_tolerance(one, have, problem.base)
    return np.asarray(must)


def _frozen(problem: Problem, lines: Any) -> Problem:
    """The problem in which some groups stay as they are."""
    cells, stay = problem.cells, lines[:, None]
    least = np.where(stay, cells.have, cells.least)
    return replace(
        problem, cells=replace(cells, least=least, most=np.where(stay, cells.have, cells.most))
    )


def _leave_out(
    problem: Problem, known: list[Whole], must: NDArray[np.bool_], end: float
) -> Optimum:
    """Let as many groups as possible stay as they are, those with the cheapest changes first."""
    start = solve(_hurried(problem, end, 0.3), candidates=known)
    if start.rows is None:
        return Optimum(start, "groups")
    best, trials, stop = start.rows, 0, end - 0.3 * (end - time.monotonic())
    fixed = (best == problem.have).all(axis=1)
    least, sets = _stay_together(problem, ~must)
    for stay in sets:  # the largest sets first
        if stay.sum() <= fixed.sum():
            break
        found = _any_plan(_hurried(_frozen(problem, stay), stop, 0.1)).rows
        if found is not None:
            best, fixed = found, (found == problem.have).all(axis=1)
    cheap = np.argsort(problem.cells.cost(best), kind="stable")
    queue = [cheap[~fixed[cheap] & ~must[cheap]]]
    while queue and trials < TRIALS and time.monotonic() < stop:
        lines = queue.pop(0)
        lines = lines[~fixed[lines]]
        if not len(lines):
            continue
        trial = fixed.copy()
        trial[lines] = True
        trials += 1
        found = _any_plan(_hurried(_frozen(problem, trial), stop, 0.3)).rows
        if found is not None:
            best, fixed = found, (found == problem.have).all(axis=1) | trial
        elif len(lines) > 1:
            half = (len(lines) + 1) // 2
            queue = [lines[:half], lines[half:], *queue]
    valid = problem.holds(problem.have) and within_tolerance(problem, problem.have, problem.base)
    bound = max(int(must.sum()), least, 0 if valid else 1)
    return _settled(problem, best, bound, end, late=time.monotonic() >= stop)


def _stay_together(problem: Problem, may: NDArray[np.bool_]) -> tuple[int, list[NDArray[np.bool_]]]:
    """The fewest groups that change by what label frequencies allow, and the largest sets that stay.

    A group that stays as it is allows a range of each label's frequency, and the ranges of all that
    stay have a frequency in common. ``may`` are the groups that can stay at all.
    """
    if problem.reference == "original":
        return 0, []
    box = allowed_box(problem, problem.base)
    low, high = frequencies_allowed(problem.have, problem.edges)
    fewest, sets = 0, []
    for y in range(low.shape[1]):
        # Most ranges meet where one of them begins.
        at = np.unique(np.clip(np.append(low[may, y], box.low[y]), box.low[y], box.high[y]))
        inside = (low[:, y] <= at[:, None] + 1e-12) & (high[:, y] >= at[:, None] - 1e-12) & may
        many = inside.sum(axis=1)
        fewest = max(fewest, len(may) - int(many.max()))
        sets += [inside[i] for i in np.argsort(-many, kind="stable")[:TOGETHER]]
    return fewest, sorted(sets, key=lambda stay: -int(stay.sum()))[:TOGETHER]


def _any_plan(problem: Problem) -> Solution:
    """Any plan, or the proof that there is none."""
    if problem.reference == "original":  # one model, which a wide gap ends at its first plan
        problem = replace(problem, request=problem.request.but(gap=ANY_PLAN))
    return solve(problem, enough=math.inf)
