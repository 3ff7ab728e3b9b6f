"""Selection of tables and rows that meets a need at the least cost.

A table has a fixed cost and a cost per row. A greedy choice is improved by dropping and exchanging
tables; then HiGHS, through SciPy, searches for a better one and proves a lower bound on the cost.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np

from equipoise.errors import InputError
from equipoise.lake.cover.greedy import completed, greedy_cover, greedy_within
from equipoise.lake.cover.model import Clock, CoverAnswer, CoverRelaxation, build
from equipoise.lake.cover.supply import CLOSE, CoverLimits, Supply, whole_numbers
from equipoise.lake.cover.worth import vector
from equipoise.validate import at_least

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from equipoise.lake.cover.worth import Whole

Method: TypeAlias = Literal["greedy", "HiGHS"]


@dataclass(frozen=True, eq=False, kw_only=True)
class Selection:
    """Rows of each cell (column) to take from each table (line), with bounds for any selection.

    No selection of as many rows costs less than ``bound``, and none within the limits has more than
    ``most`` rows. More time might have improved a selection that has ``timed_out``.
    """

    take: Whole
    cost: float
    bound: float
    most: float
    method: Method
    timed_out: bool = False

    @property
    def found(self) -> Whole:
        """Number of rows taken of each cell."""
        return np.asarray(self.take.sum(axis=0))

    @property
    def opened(self) -> Whole:
        """Numbers of the tables that rows are taken from."""
        return np.flatnonzero(self.take.any(axis=1))


def select(
    rows: ArrayLike,
    need: ArrayLike,
    *,
    table_cost: ArrayLike = 1.0,
    row_cost: ArrayLike = 0.0,
    max_share: float | None = None,
    budget: float | None = None,
    time_limit: float = 30.0,
    max_tables: int | None = None,
) -> Selection:
    """Choose tables, and rows of them, that meet a need at the least cost.

    Without limits every cell gets all it needs, or all that the tables have. If limits prevent
    that, the number of rows is maximized first, and then the cost is minimized.
    The table and row costs are one number, or one for each table. With a time limit of 0, HiGHS
    only bounds the cost of the greedy choice. The result is deterministic.

    Two tables with half of the rows each are more expensive than one with nearly all and another:

    >>> chosen = select([[5, 0], [0, 5], [5, 4], [0, 1]], [5, 5], table_cost=[3, 3, 4, 1])
    >>> chosen.opened, chosen.cost, chosen.bound
    (array([2, 3]), 5.0, 5.0)
    """
    offered, needed = whole_numbers("rows", rows, 2), whole_numbers("need", need, 1)
    if offered.shape[1] != len(needed):
        raise InputError(
            f"rows have {offered.shape[1]} cells but need has {len(needed)}; both must have the "
            "same cells."
        )
    at_least("time_limit", time_limit, 0)
    limits = CoverLimits.of(budget=budget, max_share=max_share, max_tables=max_tables)
    n = len(offered)
    supply, tables, cells = Supply(
        rows=offered,
        need=np.minimum(needed, offered.sum(axis=0)),
        fixed=vector("table_cost", table_cost, n),
        per_row=vector("row_cost", row_cost, n),
    ).trimmed()
    found = _choose(supply, limits, Clock(time_limit))
    take = np.zeros_like(offered)
    take[np.ix_(tables, cells)] = found.take
    return replace(found, take=take)


def _choose(supply: Supply, limits: CoverLimits, clock: Clock) -> Selection:
    if not supply.need.sum():
        return _selection(supply, np.zeros_like(supply.rows), "greedy", 0.0)
    relaxation = CoverRelaxation.of(supply)
    if limits == CoverLimits():
        return _cover(relaxation, clock)
    # The cheapest cover is the best choice if it happens to stay within the limits.
    if relaxation.bound <= limits.budget * (1 + CLOSE):
        found = _cover(relaxation, clock.part(1 / 3))
        if limits.allow(supply, found.take):
            return found
    return _within(relaxation, limits, clock)


def _cover(relaxation: CoverRelaxation, clock: Clock) -> Selection:
    """Meet the whole need."""
    supply, bound, by = relaxation.supply, relaxation.bound, relaxation.prices()
    take = min((greedy_cover(supply, price) for price in by), key=supply.cost)
    cost = supply.cost(take)
    if cost <= bound * (1 + CLOSE):
        return _selection(supply, take, "greedy", bound)
    answer = relaxation.cheaper(cost, clock, CoverLimits())
    other = answer.take
    if other is not None:
        # The tolerance of the solver may have left out a row, which the greedy choice adds.
        other = completed(supply, np.flatnonzero(other.any(axis=1)), by[0])
    take, method = _better(supply, CoverLimits(), take, other, "greedy")
    bound = max(bound, answer.bound)
    return _selection(supply, take, method, bound, timed_out=answer.timed_out)


def _within(relaxation: CoverRelaxation, limits: CoverLimits, clock: Clock) -> Selection:
    """Maximize the number of rows within limits, then minimize the cost of as many rows."""
    supply = relaxation.supply
    most = float(supply.need.sum())
    best = greedy_within(supply, limits, [np.ones(len(supply.need)), relaxation.prices()[0]])
    first = CoverAnswer(most)
    if not supply.covered(best):
        first = build(supply, limits).largest(clock.part(0.5))
    best, method = _better(supply, limits, best, first.take, "greedy")
    second = _cheaper_within(relaxation, limits, clock, best)
    best, method = _better(supply, limits, best, second.take, method)
    return _selection(
        supply,
        best,
        method,
        second.bound,
        most=min(first.bound, most),
        timed_out=first.timed_out or second.timed_out,
    )


def _cheaper_within(
    relaxation: CoverRelaxation, limits: CoverLimits, clock: Clock, best: Whole
) -> CoverAnswer:
    supply, cost = relaxation.supply, relaxation.supply.cost(best)
    if not supply.covered(best):
        return build(supply, limits).at_least(float(best.sum())).cheapest(cost, clock)
    answer = relaxation.cheaper(cost, clock, limits)
    return replace(answer, bound=max(answer.bound, relaxation.bound))


def _better(
    supply: Supply, limits: CoverLimits, best: Whole, other: Whole | None, method: Method
) -> tuple[Whole, Method]:
    """Return the other selection if it has more rows, or as many at a lower cost."""
    if other is None or not limits.allow(supply, other):
        return best, method
    more = other.sum() - best.sum()
    cheaper = supply.cost(other) < supply.cost(best)
    return (other, "HiGHS") if more > 0 or (more == 0 and cheaper) else (best, method)


def _selection(
    supply: Supply,
    take: Whole,
    method: Method,
    bound: float,
    *,
    most: float = 0.0,
    timed_out: bool = False,
) -> Selection:
    """Make a selection; bounds within the tolerance of the solver count as reached."""
    cost, rows = supply.cost(take), float(take.sum())
    return Selection(
        take=take,
        cost=cost,
        bound=cost if bound >= cost * (1 - 1e-7) else max(bound, 0.0),
        most=rows if most <= rows * (1 + 1e-7) else most,
        method=method,
        timed_out=timed_out,
    )
