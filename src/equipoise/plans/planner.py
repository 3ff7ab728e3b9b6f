"""Make a plan and its certificate from counts and a request."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

from equipoise.plans.budget import Spent, spend
from equipoise.plans.certificate import certify
from equipoise.plans.frequencies import reference_of
from equipoise.plans.infeasibility import Infeasible, explain_infeasible, explain_poor
from equipoise.plans.plan import Plan, moves_as_counts, rows_after
from equipoise.plans.problem import Problem, pose
from equipoise.plans.sentences import explain
from equipoise.plans.solution import Solution, solve
from equipoise.plans.solvers.box import allowed_box
from equipoise.plans.solvers.labels import cheapest_labels, zero_cost
from equipoise.plans.tolerance import least_tolerance
from equipoise.progress import Reporter, silent

if TYPE_CHECKING:
    from collections.abc import Iterable

    from equipoise.counts import Counts
    from equipoise.plans.cells import Whole
    from equipoise.plans.request import PlanRequest


def make_plan(
    counts: Counts,
    request: PlanRequest,
    *,
    candidates: Iterable[Plan] = (),
    explain: bool = True,
    progress: Reporter = silent,
) -> Plan:
    """Plan the smallest repair of a table.

    Parameters
    ----------
    counts, request
        The table, and the request.
    candidates
        Known plans for the same table to compare with, such as those of a tighter request.
    explain
        Whether to search for changes that would help if there is no plan, which takes a while.
    progress
        Progress callback.

    Raises
    ------
    Infeasible
        If there is no plan. The error lists the single changes of the request that would help.
    """
    problem = pose(counts, request)
    known = [rows_after(problem, plan) for plan in candidates]
    kept = _with_labels_kept(problem)
    known += [] if kept is None else [kept]
    solution = solve(problem, candidates=known, progress=lambda share: progress("planning", share))
    if solution.rows is None and solution.timed_out:
        raise Infeasible(
            f"No plan was found in {request.time_limit:g} seconds, which does not prove that there is "
            "none; allow more time by `time_limit`.",
            proved=False,
        )
    if solution.rows is None and not explain:
        raise Infeasible(
            "No plan meets all limits of the request.", proved=solution.bound == math.inf
        )
    if solution.rows is None:
        raise explain_infeasible(
            problem,
            proved=solution.bound == math.inf,
            progress=lambda share: progress("looking for what would help", share),
        )
    if request.budget is None:
        return _finished(problem, Spent.on_all(problem, solution), kept)
    spent = spend(problem, solution, progress=lambda share: progress("fitting the budget", share))
    if spent is None:
        raise explain_poor(problem, request.budget)
    return _finished(problem, spent, kept)


def nearest_plan(
    counts: Counts, request: PlanRequest, *, patience: float = 20.0, progress: Reporter = silent
) -> Plan:
    """Make the requested plan or, if there is none, search ``patience`` seconds for the nearest."""
    try:
        return make_plan(counts, request, explain=False, progress=progress)
    except Infeasible:
        patient = replace(request, time_limit=min(request.time_limit, patience))
        return best_within(counts, patient, progress=progress)


def best_within(counts: Counts, request: PlanRequest, *, progress: Reporter = silent) -> Plan:
    """Plan for the smallest tolerance that can be reached within the other limits.

    The certificate states that the requested tolerance is not reached.

    Raises
    ------
    Infeasible
        If no plan meets the other limits.
    """
    problem = pose(counts, request)
    found = least_tolerance(
        problem, progress=lambda share: progress("finding the nearest plan", share)
    )
    if found is None or found[1].rows is None:
        raise explain_infeasible(problem, proved=False)
    return _finished(problem, Spent.on_all(problem, replace(found[1], sizes=None)), None)


def _with_labels_kept(problem: Problem) -> Whole | None:
    """If labels are free, the plan that keeps them: a candidate, and the price of keeping them."""
    request = problem.request
    if request.labels != "free" or not request.tolerance or request.budget is not None:
        return None
    if not problem.separable or request.label_drift is not None:
        return None
    if reference_of(problem) == "original":
        return None  # fixed frequencies are the same, kept or free
    return solve(problem.again(labels="keep", gap=None, time_limit=request.time_limit / 3)).rows


def _finished(problem: Problem, spent: Spent, kept: Whole | None) -> Plan:
    solution, rows = spent.solution, spent.rows
    cost = float(problem.cells.cost(rows).sum())
    certificate = certify(problem, solution, rows, cut_short=spent.cut_short)
    price = _price(problem, solution, cost, kept)
    codes = problem.codes
    return Plan(
        counts=problem.counts,
        request=problem.request,
        add=moves_as_counts(problem.counts, codes, (rows - problem.have).clip(0)),
        delete=moves_as_counts(problem.counts, codes, (problem.have - rows).clip(0)),
        cost=cost,
        bound=min(max(solution.bound, 0.0), cost) if spent.in_full else 0.0,
        method=solution.method,
        timed_out=solution.timed_out,
        stopped=solution.stopped if spent.in_full else None,
        certificate=certificate,
        explanation=explain(problem, spent, certificate, price),
        steps=spent.steps,
        price=price,
    )


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
        if not problem.judged.any():
            return None
        box = allowed_box(problem.again(labels="free", extra=()), problem.rates)
        free = solution.chosen or cheapest_labels(problem, problem.rates, box)
        keep = zero_cost(problem, problem.rates)
        return {"keep": keep, "free": free.cost} if math.isfinite(keep + free.cost) else None
    if kept is None:
        return None
    return {"keep": float(problem.cells.cost(kept).sum()), "free": cost}
