"""Groups that depend on each other: one model for all, solved by HiGHS through SciPy.

Needed where only some groups are held to the tolerance, where several share a limit on
rows, and where the repaired table's own label frequencies must come out at a centre.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from equipoise.plans.solvers.model import RowModel

if TYPE_CHECKING:
    from equipoise.plans.cells import Real
    from equipoise.plans.problem import Problem
    from equipoise.plans.solvers.model import Balance, Coupled


def solve_coupled(
    problem: Problem,
    centre: Real,
    *,
    tolerance: float | None = None,
    most: Real | None = None,
    balance: Balance | None = None,
    time_limit: float | None = None,
    gap: float | None = None,
    nodes: int | None = None,
    inside: float = 0.0,
) -> Coupled:
    """Find the cheapest whole rows that hold every constraint of a problem.

    Parameters
    ----------
    problem
        The problem; at zero tolerance its groups are held to their targets up to rounding.
    centre, most
        The label frequencies bands are put around; with ``most`` around all between.
    tolerance
        Instead of the request's.
    balance
        Where the repaired table's label frequencies must come out.
    time_limit, gap
        Instead of the request's.
    nodes
        After how many branches to take the best found.
    inside
        How many rows to keep inside the bands: the solver's own arithmetic is not exact.
    """
    model = _model(problem, centre, tolerance, most, balance, inside)
    request = problem.request
    return model.solve(
        time_limit=request.time_limit if time_limit is None else time_limit,
        gap=request.solver_gap if gap is None else gap,
        nodes=nodes,
    )


def relaxed_cost(
    problem: Problem,
    centre: Real,
    *,
    most: Real | None = None,
    balance: Balance | None = None,
) -> float:
    """The least cost in real numbers; infinite if even they cannot."""
    return _model(problem, centre, None, most, balance, 0.0).relaxed()


def _model(
    problem: Problem,
    centre: Real,
    tolerance: float | None,
    most: Real | None,
    balance: Balance | None,
    inside: float,
) -> RowModel:
    tolerance = problem.request.tolerance if tolerance is None else tolerance
    model = RowModel(problem, centre, tolerance)
    judged = np.flatnonzero(problem.judged)
    if tolerance or most is not None:
        band = problem.band(centre, tolerance, most).take(judged)
        model.hold_finest(judged, band, inside)
        if problem.coarse:
            coarse = problem.coarse_band(centre, tolerance, most)
            model.hold_coarse(problem.membership, coarse, inside)
    else:
        model.round_to(judged, (problem.ratios * centre)[judged])
        for j in problem.coarse:
            model.round_group(j, j.k * centre)
    model.hold_limits(problem)
    if balance is not None:
        model.balance(balance, inside)
    return model
