"""Make a plan and its certificate from counts and a request."""

from __future__ import annotations

import math
import time
from dataclasses import replace
from typing import TYPE_CHECKING

from equipoise.plans.budget import Spent, spend
from equipoise.plans.certificate import certify
from equipoise.plans.clock import end_after, ending_after, is_late
from equipoise.plans.infeasibility import Infeasible, explain_infeasible, explain_poor
from equipoise.plans.judgement import off_by
from equipoise.plans.objectives import Optimum, optimise
from equipoise.plans.plan import Plan, moves_as_counts, rows_after
from equipoise.plans.prices import prices_of
from equipoise.plans.problem import Problem, pose
from equipoise.plans.reach import any_plan, is_impossible, nearest_rows
from equipoise.plans.rounds import solve
from equipoise.plans.sentences import explain, explain_groups, why_not
from equipoise.plans.solution import Solution
from equipoise.plans.solvers.box import allowed_box
from equipoise.plans.solvers.labels import cheapest_labels, zero_cost
from equipoise.plans.solvers.zero import is_crowded
from equipoise.plans.tolerance import least_tolerance
from equipoise.progress import Reporter, silent

if TYPE_CHECKING:
    from collections.abc import Iterable

    from equipoise.counts import Counts
    from equipoise.plans.cells import Whole
    from equipoise.plans.request import PlanRequest

FINISHED, KEEPING = 2e-5, 4e-5
"""Seconds that a certificate takes for each cell, and keeping the label frequencies, about."""

KEPT, EFFORT = 5e-3, 0.19
"""Relative gap of the cost of keeping the label frequencies, which is told beside the plan, and the
share of the usual work that it takes."""


def make_plan(
    counts: Counts,
    request: PlanRequest,
    *,
    candidates: Iterable[Plan] = (),
    explain: bool = True,
    progress: Reporter = silent,
) -> Plan:
    """Plan the smallest repair of a table.

    ``candidates`` are known plans for the same table, such as those of a stricter request. If there
    is no plan, ``explain`` searches for single changes that would help, which takes a while. All of
    it ends about when the time limit of the request does.
    """
    end = end_after(request.time_limit)
    problem = pose(counts, request)
    _refuse_crowded(problem)
    with ending_after(end - time.monotonic() - _to_finish(problem, request.time_limit)):
        return _made(problem, candidates, explain=explain, progress=progress)


def _to_finish(problem: Problem, most: float) -> float:
    """Seconds that certificate and sentences will take, at most half of what there is.

    A little more, because searches look at the clock only now and then.
    """
    each = FINISHED * (3 if problem.ruled is not None else 1)
    return min(each * problem.have.size + 0.03 * most, most / 2)


def _made(
    problem: Problem, candidates: Iterable[Plan], *, explain: bool, progress: Reporter
) -> Plan:
    """Search for a plan, and finish it."""
    if is_impossible(problem):  # no plan without the limits need be made to tell which ones bind
        nothing = Solution(None, math.inf, "centre", problem.base)
        raise _infeasible(problem, nothing, explain=explain, progress=progress)
    kept = _with_labels_kept(problem)
    known = [rows_after(problem, plan) for plan in candidates] + ([] if kept is None else [kept])
    optimum = optimise(problem, known, progress=lambda share: progress("planning", share))
    solution = optimum.solution
    if solution.rows is None and math.isfinite(solution.bound) and not solution.timed_out:
        optimum = _more_surely(problem, optimum)
        solution = optimum.solution
    if solution.rows is None:
        raise _infeasible(problem, solution, explain=explain, progress=progress)
    spent = spend(problem, solution, progress=lambda share: progress("fitting the budget", share))
    if spent is None:
        raise explain_poor(problem)
    return _finished(problem, spent, kept, optimum)


def _refuse_crowded(problem: Problem) -> None:
    """Say at once that zero bias is out of reach where too many groups overlap."""
    asked, base = problem.request, problem.base
    if asked.tolerance or asked.exact or not is_crowded(problem):
        return
    if off_by(problem, problem.have, base) > 0:
        groups = int(problem.judged.sum()) + len(problem.coarse)
        raise Infeasible(
            f"At zero tolerance each of {groups:,} judged groups, many of which overlap, must be within "
            "a row of its exact numbers. Whole rows for so many at once need not exist, and are not "
            "searched for. Use a `tolerance` above zero, or judge fewer groups by a larger "
            "`min_group` or by `constrain`.",
            proved=False,
        )


def _more_surely(problem: Problem, optimum: Optimum) -> Optimum:
    """Where neither a plan nor a proof was found, decide first whether there is any plan."""
    found = any_plan(problem)
    rows = found.rows if found.rows is not None else nearest_rows(problem)
    if rows is not None:
        return optimise(problem, [rows])
    return replace(optimum, solution=replace(optimum.solution, bound=found.bound))


def _infeasible(
    problem: Problem, solution: Solution, *, explain: bool, progress: Reporter
) -> Infeasible:
    if solution.timed_out:
        return Infeasible(
            f"No plan was found in {problem.request.time_limit:g} seconds, which does not prove that "
            "there is none; allow more time with `time_limit`.",
            proved=False,
        )
    proved = solution.bound == math.inf
    if not explain:
        return Infeasible("No plan meets all limits of the request.", proved=proved)
    return explain_infeasible(
        problem,
        proved=proved,
        reason=why_not(problem, solution),
        progress=lambda share: progress("searching for changes that help", share),
    )


def nearest_plan(counts: Counts, request: PlanRequest, *, progress: Reporter = silent) -> Plan:
    """Make the requested plan or, if there is none, the one for the smallest tolerance possible.

    In the second case the certificate states that the requested tolerance is not reached.
    """
    with ending_after(request.time_limit):
        return _made_or_nearest(counts, request, progress)


def _made_or_nearest(counts: Counts, request: PlanRequest, progress: Reporter) -> Plan:
    try:
        return make_plan(counts, request, explain=False, progress=progress)
    except Infeasible:
        problem = pose(counts, request)
    found = least_tolerance(
        problem, progress=lambda share: progress("finding the nearest plan", share)
    )
    if found is None or found[1].rows is None:
        raise explain_infeasible(problem, proved=False)
    nearest = _cheapest_at(problem, *found)
    rows = nearest.rows
    assert rows is not None  # noqa: S101 - the plan that was found is a candidate
    needed = problem.cells.total_cost(rows)
    # The sizes before rounding belong to zero tolerance, which this plan was not made for.
    spent = Spent(solution=replace(nearest, sizes=None, held=None), rows=rows, needed=needed)
    return _finished(problem, spent, None)


def _cheapest_at(problem: Problem, tolerance: float, known: Solution) -> Solution:
    """The cheapest plan at a tolerance for which one is known."""
    assert known.rows is not None  # noqa: S101 - a known plan has rows
    at = problem.request.widened(tolerance * (1 + 1e-9), reference=problem.reference)
    found = solve(replace(problem, request=at), candidates=[known.rows])
    cost = problem.cells.total_cost
    if found.rows is None or cost(found.rows) >= cost(known.rows):
        return known
    return found


def _with_labels_kept(problem: Problem) -> Whole | None:
    """If labels are free, the plan that keeps them: a candidate, and the price of keeping them."""
    request = problem.request
    if request.labels != "free" or not request.tolerance or request.budget is not None:
        return None
    if not problem.separable or request.label_drift is not None:
        problem = problem.unlimited()  # as the plan is made first, in case that no limit binds
    if problem.coarse:
        return None
    if problem.reference == "original":
        return None  # fixed frequencies are the same, kept or free
    if KEEPING * problem.have.size > request.time_limit / 3:
        return None
    keeping = problem.again(labels="keep", gap=KEPT, time_limit=request.time_limit / 3)
    rows = solve(keeping, effort=EFFORT).rows
    return rows if rows is not None and rows.shape == problem.have.shape else None


def _finished(
    problem: Problem, spent: Spent, kept: Whole | None, optimum: Optimum | None = None
) -> Plan:
    solution, rows = spent.solution, spent.rows
    cost = problem.cells.total_cost(rows)
    certificate = certify(problem, solution, rows, cut_short=spent.cut_short)
    price = _price(problem, solution, cost, kept)
    prices = {} if is_late() else prices_of(problem)
    reasons = explain_groups(problem, solution, rows, certificate)
    return Plan(
        counts=problem.counts,
        request=problem.request,
        add=moves_as_counts(problem, (rows - problem.have).clip(0)),
        delete=moves_as_counts(problem, (problem.have - rows).clip(0)),
        cost=cost,
        bound=min(max(solution.bound, 0.0), cost) if spent.in_full else 0.0,
        method=solution.method,
        timed_out=solution.timed_out,
        stopped=solution.stopped if spent.in_full else None,
        certificate=certificate,
        explanation=explain(
            problem,
            spent,
            certificate,
            price,
            reasons,
            prices,
            optimum,
            _rounded_cost(problem, solution),
        ),
        reasons=reasons,
        steps=spent.steps,
        price=price,
        prices=prices,
        optimum=None if optimum is None or optimum.value is None else optimum.to_dict(),
    )


def _rounded_cost(problem: Problem, solution: Solution) -> float | None:
    """The cost of zero bias up to rounding, for a plan that leaves no bias at all."""
    if solution.parts is None or is_late():
        return None
    rows = solve(problem.again(exact=False, budget=None, priority=())).rows
    return None if rows is None else problem.cells.total_cost(rows)


def _price(
    problem: Problem, solution: Solution, cost: float, kept: Whole | None
) -> dict[str, float] | None:
    """The cost with the label frequencies kept and free, if both are known."""
    request = problem.request
    if not problem.separable or not problem.plain or not isinstance(request.labels, str):
        return None
    if request.budget is not None or request.label_drift is not None or request.extra:
        return None
    if not request.tolerance:
        box = allowed_box(problem.again(labels="free", extra=()), problem.rates)
        free = solution.chosen or cheapest_labels(problem, problem.rates, box)
        keep = zero_cost(problem.cells, problem.ratios, problem.rates)
        return {"keep": keep, "free": free.cost} if math.isfinite(keep + free.cost) else None
    if kept is None:
        return None
    return {"keep": problem.cells.total_cost(kept), "free": cost}
