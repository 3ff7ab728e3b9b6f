"""The shares of the table that groups can have in plans that cost no more than the best one.

The groups by themselves cost something at least. What is left up to the cost of the best plan is
all that a single group may cost more than its least, which bounds its size.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from equipoise.plans.cells import Band
from equipoise.plans.solvers.separable import solve_relaxed

if TYPE_CHECKING:
    from equipoise.plans.cells import Real
    from equipoise.plans.solvers.relaxation import Kinds

CHARGED = 0.5
"""Share of the price of a row that is charged for, or paid for, every row that a group has."""


def range_shares(kinds: Kinds, band: Band, costs: Real, most_cost: float) -> tuple[Real, Real]:
    """The least and the greatest share of each group in plans that cost at most ``most_cost``.

    The groups' rows lie in the ``band``, and no group costs less than its part of ``costs``.
    """
    cells, times, n = kinds.cells, kinds.times, len(kinds)
    paid, charged = CHARGED * float(cells.add.min()), CHARGED * float(cells.drop.min())
    spare = most_cost - float(costs @ times)
    if not math.isfinite(spare) or min(paid, charged) <= 0:
        return np.zeros(n), np.ones(n)
    # The cost of any rows is at least `more` + paid·rows, and at least `less` − charged·rows.
    twice, price = cells.take(np.tile(np.arange(n), 2)), np.repeat([paid, -charged], n)[:, None]
    priced = replace(twice, add=twice.add - price, drop=twice.drop + price)
    bands = Band(np.tile(band.low, (2, 1)), np.tile(band.high, (2, 1)))
    have = cells.have.sum(axis=1)
    more, less = solve_relaxed(priced, bands).reshape(2, n)
    more, less = more - paid * have, less + charged * have
    own, others = costs + spare, most_cost - costs
    floor = cells.least.sum(axis=1)
    most, least = (own - more) / paid, np.maximum((less - own) / charged, floor)
    rest_most = (others - (more @ times - more)) / paid
    rest_least = np.maximum((less @ times - less - others) / charged, floor @ times - floor)
    return (
        (least / np.maximum(least + rest_most, 1e-9)).clip(0, 1),
        (most / np.maximum(most + rest_least, 1e-9)).clip(0, 1),
    )
