"""Which rows to take from which tables: all that are needed, at the least cost.

Opening a table costs once, a row costs each time. A greedy choice is mended by dropping and
exchanging tables, then HiGHS, through SciPy, looks for a better one and proves a bound.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np

from equipoise.errors import InputError
from equipoise.lake.cover.greedy import completed, greedy_cover, greedy_within
from equipoise.lake.cover.model import Answer, Clock, CoverRelaxation, build
from equipoise.lake.cover.supply import CLOSE, CoverLimits, Supply, whole_numbers
from equipoise.lake.cover.worth import prices, vector
from equipoise.validate import at_least

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from equipoise.lake.cover.worth import Real, Whole

Method: TypeAlias = Literal["greedy", "HiGHS"]


@dataclass(frozen=True, eq=False, kw_only=True)
class Selection:
    """Rows to take from tables, and how sure it is that nothing cheaper takes as much.

    Attributes
    ----------
    take
        How many rows of each cell (column) to take from each table (line).
    need
        How many rows of each cell were asked for.
    cost
        What opening the tables and taking the rows costs.
    bound
        No selection within the limits whose rows are worth as much costs less.
    worth, worth_bound
        The rows taken, each at its price, and what no selection within the limits exceeds.
    method
        What found it.
    timed_out
        Whether there might have been a better one, had there been more time.
    """

    take: Whole
    need: Whole
    cost: float
    bound: float
    worth: float
    worth_bound: float
    method: Method
    timed_out: bool = False

    @property
    def found(self) -> Whole:
        """How many rows of each cell are taken."""
        found: Whole = self.take.sum(axis=0)
        return found

    @property
    def missing(self) -> Whole:
        """How many rows of each cell are needed and not taken."""
        return self.need - self.found

    @property
    def opened(self) -> Whole:
        """The numbers of the tables that rows are taken from."""
        return np.flatnonzero(self.take.any(axis=1))

    @property
    def gap(self) -> float:
        """By what share of the bound the cost may exceed the least."""
        if self.cost <= self.bound:
            return 0.0
        return self.cost / self.bound - 1 if self.bound > 0 else math.inf


def select(
    rows: ArrayLike,
    need: ArrayLike,
    *,
    table_cost: ArrayLike = 1.0,
    row_cost: ArrayLike = 0.0,
    max_share: float | None = None,
    budget: float | None = None,
    price: ArrayLike | None = None,
    time_limit: float = 30.0,
    max_tables: int | None = None,
    gap: float = 0.0,
) -> Selection:
    """Choose tables, and rows of them, that give what is needed at the least cost.

    Without limits every cell gets all it needs, or all that the tables have. Where limits
    stand against that, the rows taken are worth the most they can be, and cost the least
    among those.

    Parameters
    ----------
    rows
        How many rows of each cell (column) each table (line) offers.
    need
        How many rows of each cell are needed.
    table_cost, row_cost
        What it costs to open a table and to take a row from it: a number, or one for each table.
    max_share
        No table may give more than this share of all rows taken.
    budget
        What all may cost.
    price
        What a row of each cell is worth, where not all can be had; 1 unless given.
    time_limit
        After how many seconds HiGHS stops; with 0 it only bounds the greedy choice.
    max_tables
        How many tables may be opened.
    gap
        HiGHS stops when it has proved that no more than this share could be saved.

    Returns
    -------
    Selection
        What to take; where two selections are as good, the same one each time.

    Examples
    --------
    Two tables that have half each are dearer than one that has nearly all, and one more:

    >>> chosen = select([[5, 0], [0, 5], [5, 4], [0, 1]], [5, 5], table_cost=[3, 3, 4, 1])
    >>> chosen.opened, chosen.cost, chosen.bound
    (array([2, 3]), 5.0, 5.0)
    """
    offered, needed = whole_numbers("rows", rows, 2), whole_numbers("need", need, 1)
    if offered.shape[1] != len(needed):
        raise InputError(
            f"rows are of {offered.shape[1]} cells and need of {len(needed)}; both must be of the "
            "same cells."
        )
    at_least("time_limit", time_limit, 0)
    at_least("gap", gap, 0)
    limits = CoverLimits.of(budget=budget, max_share=max_share, max_tables=max_tables)
    n = len(offered)
    supply, tables, cells = Supply(
        rows=offered,
        need=np.minimum(needed, offered.sum(axis=0)),
        fixed=vector("table_cost", table_cost, n),
        per_row=vector("row_cost", row_cost, n),
        price=_positive(prices(price, len(needed)), needed),
    ).trimmed()
    found = _choose(supply, limits, Clock(time_limit, gap))
    take = np.zeros_like(offered)
    take[np.ix_(tables, cells)] = found.take
    return replace(found, take=take, need=needed)


def _positive(price: Real, need: Whole) -> Real:
    worthless = np.flatnonzero((price == 0) & (need > 0))
    if len(worthless):
        raise InputError(
            f"cell {worthless[0]} has the price 0 and rows of it are needed; give it a price "
            "above 0, or ask for no rows of it."
        )
    return price


def _choose(supply: Supply, limits: CoverLimits, clock: Clock) -> Selection:
    if not supply.need.sum():
        return _selection(supply, np.zeros_like(supply.rows), "greedy", 0.0)
    relaxation = CoverRelaxation.of(supply)
    if limits == CoverLimits():
        return _cover(relaxation, clock)
    if relaxation.bound <= limits.budget * (1 + CLOSE):
        found = _cover(relaxation, clock.part(1 / 3))
        if limits.allow(supply, found.take):
            return found
    return _within(relaxation, limits, clock)


def _cover(relaxation: CoverRelaxation, clock: Clock) -> Selection:
    """All that is needed."""
    supply, bound, by = relaxation.supply, relaxation.bound, relaxation.prices()
    take = min((greedy_cover(supply, price) for price in by), key=supply.cost)
    cost = supply.cost(take)
    if cost <= bound * (1 + max(clock.gap, CLOSE)):
        return _selection(supply, take, "greedy", bound)
    answer = relaxation.cheaper(cost, clock, CoverLimits())
    other = answer.take
    if other is not None:
        # Should the solver's tolerance have left a row out, the greedy choice puts it in.
        other = completed(supply, np.flatnonzero(other.any(axis=1)), by[0])
    take, method = _better(supply, CoverLimits(), take, other, "greedy")
    bound = max(bound, answer.bound)
    return _selection(supply, take, method, bound, timed_out=answer.timed_out)


def _within(relaxation: CoverRelaxation, limits: CoverLimits, clock: Clock) -> Selection:
    """As much as limits let: first the most that can be had, then that at the least cost."""
    supply = relaxation.supply
    most = float(supply.price @ supply.need)
    best = greedy_within(supply, limits, [supply.price, relaxation.prices()[0]])
    first = Answer(most)
    if not supply.covered(best):
        first = build(supply, limits).worthiest(clock.part(0.5))
    best, method = _better(supply, limits, best, first.take, "greedy")
    second = _cheaper_within(relaxation, limits, clock, best)
    best, method = _better(supply, limits, best, second.take, method)
    return _selection(
        supply,
        best,
        method,
        second.bound,
        worth_bound=min(first.bound, most),
        timed_out=first.timed_out or second.timed_out,
    )


def _cheaper_within(
    relaxation: CoverRelaxation, limits: CoverLimits, clock: Clock, best: Whole
) -> Answer:
    supply, cost = relaxation.supply, relaxation.supply.cost(best)
    if not supply.covered(best):
        return build(supply, limits).worth_at_least(supply.worth(best)).cheapest(cost, clock)
    answer = relaxation.cheaper(cost, clock, limits)
    return replace(answer, bound=max(answer.bound, relaxation.bound))


def _better(
    supply: Supply, limits: CoverLimits, best: Whole, other: Whole | None, method: Method
) -> tuple[Whole, Method]:
    """The other selection if it is worth more, or as much for less."""
    if other is None or not limits.allow(supply, other):
        return best, method
    more = supply.worth(other) - supply.worth(best)
    slack = CLOSE * max(supply.worth(best), supply.worth(other))
    cheaper = supply.cost(other) < supply.cost(best)
    return (other, "HiGHS") if more > slack or (more >= -slack and cheaper) else (best, method)


def _selection(
    supply: Supply,
    take: Whole,
    method: Method,
    bound: float,
    *,
    worth_bound: float = 0.0,
    timed_out: bool = False,
) -> Selection:
    """Bounds that are as close as the solver's tolerance are the cost and the worth themselves."""
    cost, worth = supply.cost(take), supply.worth(take)
    return Selection(
        take=take,
        need=supply.need,
        cost=cost,
        bound=cost if bound >= cost * (1 - 1e-7) else max(bound, 0.0),
        worth=worth,
        worth_bound=worth if worth_bound <= worth * (1 + 1e-7) else worth_bound,
        method=method,
        timed_out=timed_out,
    )
