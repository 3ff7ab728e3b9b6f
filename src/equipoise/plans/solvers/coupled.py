"""Groups that depend on each other: one model for all, solved by HiGHS through SciPy.

It is needed if the tolerance applies to some groups only, if groups share a limit on rows, and if
the label frequencies of the repaired table must be those of a centre.
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
    """Find the cheapest whole rows that satisfy every constraint of a problem.

    Bands are put around ``centre``, or around all frequencies from ``centre`` to ``most``. The label
    frequencies of the repaired table must lie in ``balance``. After ``nodes`` branches the best plan
    found is taken. ``inside`` is a margin to the bands in rows, because HiGHS satisfies constraints
    only up to its own tolerance. The other parameters override those of the request.
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
    """The lowest cost of real-valued rows; infinite if there are none."""
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
