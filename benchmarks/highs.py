"""The plan of a tolerance as a model for HiGHS, written without a line of ours.

Variables are the rows added to and deleted from every cell, whole and not negative. Each
label's rows lie between two shares of its group's, and no group loses all its rows.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from scipy.optimize import Bounds, LinearConstraint, milp
from timing import seconds_of


@dataclass(frozen=True)
class Answer:
    """What HiGHS said about one model, and how long it took, building it not included."""

    seconds: float
    proved: bool
    cost: float
    bound: float


def solved(have: Any, rates: Any, tolerance: float, time_limit: float) -> Answer:
    """The cheapest repair of some groups, all in one model; a line a group, a column a label."""
    model = _model(np.asarray(have, float), np.asarray(rates, float), tolerance)
    options = {"time_limit": time_limit, "mip_rel_gap": 0.0}
    results = []
    seconds = seconds_of(lambda: results.append(milp(**model, options=options)))
    result = results[0]
    cost = math.inf if result.fun is None else float(result.fun)
    bound = -math.inf if result.mip_dual_bound is None else float(result.mip_dual_bound)
    return Answer(seconds, result.status == 0, cost, bound)


def _model(have: Any, rates: Any, tolerance: float) -> dict[str, Any]:
    groups, labels = have.shape
    cells = groups * labels
    each_group = sparse.eye_array(groups)
    size = sparse.kron(each_group, np.ones((1, labels)))  # of each group
    own_size = sparse.kron(each_group, np.ones((labels, labels)))  # of each cell's group

    def beyond(share: Any) -> Any:
        return sparse.eye_array(cells) - sparse.diags_array(np.tile(share, groups)) @ own_size

    after = sparse.vstack(
        [beyond(rates * (1 + tolerance)), beyond(rates * (1 - tolerance)), size], format="csr"
    )
    low = np.repeat([-np.inf, 0.0, 1.0], [cells, cells, groups])
    high = np.repeat([0.0, np.inf, np.inf], [cells, cells, groups])
    before = after @ have.ravel()
    rows = sparse.hstack([after, -after], format="csc")
    most = np.concatenate([np.full(cells, np.inf), have.ravel()])
    return {
        "c": np.ones(2 * cells),
        "integrality": np.ones(2 * cells),
        "bounds": Bounds(np.zeros(2 * cells), most),
        "constraints": LinearConstraint(rows, low - before, high - before),
    }
