"""Groups that depend on each other: one model for all, solved by HiGHS through SciPy.

It is needed if the tolerance applies to some groups only, if groups share a limit on rows, and if
the label frequencies of the repaired table must be those of a centre.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from equipoise.plans.solvers.model import RowModel

if TYPE_CHECKING:
    from equipoise.plans.cells import Real, Whole
    from equipoise.plans.problem import Problem
    from equipoise.plans.solvers.box import Box
    from equipoise.plans.solvers.model import Coupled


def solve_coupled(
    problem: Problem,
    centre: Real,
    *,
    most: Real | None = None,
    balance: Box | None = None,
    fixed: Whole | None = None,
    time_limit: float | None = None,
    gap: float | None = None,
    nodes: int | None = None,
    inside: float = 0.0,
) -> Coupled:
    """Find the cheapest whole rows that satisfy every constraint of a problem.

    Bands are put around ``centre``, or around all frequencies from ``centre`` to ``most``. The label
    frequencies of the repaired table, including ``fixed`` rows outside the problem, must lie in
    ``balance``. After ``nodes`` branches the best plan found is taken. ``inside`` is a margin to the
    bands in rows, because HiGHS satisfies constraints only up to its own tolerance. The time limit
    and the gap are those of the request unless given.
    """
    model = _model(problem, centre, most, balance, fixed, inside)
    request = problem.request
    return model.solve(
        time_limit=request.time_limit if time_limit is None else time_limit,
        gap=request.solver_gap if gap is None else gap,
        nodes=nodes,
    )


def relaxed_cost(problem: Problem, box: Box) -> float:
    """The lowest cost of real-valued rows with label frequencies in a box; infinite if there are none."""
    return _model(problem, box.low, box.high, box, None, 0.0).relaxed()


def _model(
    problem: Problem,
    centre: Real,
    most: Real | None,
    balance: Box | None,
    fixed: Whole | None,
    inside: float,
) -> RowModel:
    model = RowModel(problem, centre)
    judged = np.flatnonzero(problem.judged)
    if problem.request.tolerance or most is not None:
        model.hold_finest(judged, problem.band(centre, most=most).take(judged), inside)
        if problem.coarse:
            model.hold_coarse(problem.membership, problem.coarse_band(centre, most), inside)
    else:
        model.round_to(judged, (problem.ratios * centre)[judged])
        for j in problem.coarse:
            model.round_group(j, j.k * centre)
    model.hold_limits(problem)
    if balance is not None:
        model.balance(balance, inside, fixed)
    return model
