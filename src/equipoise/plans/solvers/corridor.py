"""Plans whose own label frequencies lie in a corridor: real-valued bounds, and whole rows."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from equipoise.plans.solvers.model import Balance, Corridor, Coupled, RowModel

if TYPE_CHECKING:
    from equipoise.plans.cells import Real
    from equipoise.plans.problem import Problem


@dataclass(frozen=True, eq=False)
class Relaxed:
    """The cheapest real-valued rows, and their error relative to their own label frequencies.

    ``cost`` is infinite if there are none, and 0 if the solver gives no answer.
    """

    cost: float
    rows: Real | None = None
    off: Real | None = None


def relaxed_in(problem: Problem, corridor: Corridor, *, time_limit: float) -> Relaxed:
    """Bound the cost of every plan whose own label frequencies lie in a corridor."""
    model = _following(problem, corridor)
    if model.impossible:
        return Relaxed(math.inf)
    result = model.run({"time_limit": max(time_limit, 0.05)}, whole=False)
    if result.x is None or result.status != 0:
        return Relaxed(math.inf if result.status == 2 else 0.0)
    n, k = problem.have.size, model.k
    rows = problem.have + (result.x[:n] - result.x[n : 2 * n]).reshape(-1, k)
    share = rows.sum(axis=0) / max(rows.sum(), 1e-9)
    products = result.x[2 * n : 3 * n].reshape(-1, k)
    off = np.abs(products - share * rows.sum(axis=1, keepdims=True)).max(axis=0)
    return Relaxed(float(result.fun), rows, off)


def whole_in(
    problem: Problem, corridor: Corridor, *, cheaper: float, time_limit: float, gap: float
) -> Coupled:
    """The same in whole rows, below a cost: a bound, and rows that are valid or nearly so."""
    model = _following(problem, corridor)
    n = model.n
    price = np.concatenate([problem.cells.add.ravel(), problem.cells.drop.ravel()])
    columns = np.arange(2 * n)
    model.rows(np.zeros(2 * n, int), columns, price, np.array([-np.inf]), np.array([cheaper]))
    return model.solve(time_limit=time_limit, gap=gap, nodes=None)


def _following(problem: Problem, corridor: Corridor) -> RowModel:
    model = RowModel(problem, corridor.low, problem.request.tolerance)
    model.follow(problem, corridor)
    model.hold_limits(problem)
    balance = Balance(corridor.low, corridor.high, np.zeros(model.k, np.int64))
    model.balance(balance, 0.0)
    return model
