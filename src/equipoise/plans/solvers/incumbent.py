"""The best plan of a search, and what ended the search."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, TypeAlias

from equipoise.plans.judgement import within_tolerance

if TYPE_CHECKING:
    from equipoise.plans.cells import Whole
    from equipoise.plans.problem import Problem
    from equipoise.plans.solvers.box import Box

CLOSED = 1e-7
"""A relative gap that counts as closed, because floats are not more exact."""

Stopped: TypeAlias = Literal["gap", "work", "time"]
"""What ended a search: the gap, or its limit of work or time."""


@dataclass(eq=False)
class Incumbent:
    """The best plan so far, and the lower bound of the cost of any plan.

    A search is done when the two are within the relative ``gap``. If only ``enough`` matters, it is
    done when a plan costs at most that, or when every plan is proved to cost more. It is also done
    when every plan is proved to cost more than ``most``. No plan costs less than ``lowest``.
    """

    gap: float = 0.0
    enough: float | None = None
    most: float = math.inf
    lowest: float = 0.0
    rows: Whole | None = None
    cost: float = math.inf
    bound: float = field(init=False)
    timed_out: bool = False

    def __post_init__(self) -> None:
        self.bound = self.lowest

    @property
    def settled(self) -> bool:
        """Whether it is decided what the search is only asked for: if some cost is enough."""
        if self.cost <= self.lowest or self.bound > self.most:
            return True
        if self.enough is None:
            return False
        # An infinite cost stands for no plan, also where any plan is enough.
        found = self.rows is not None and self.cost <= self.enough
        return found or self.bound > self.enough or self.bound == math.inf

    @property
    def sufficient(self) -> float:
        """The cost at which a plan is good enough to end the search."""
        within_gap = (
            self.bound / (1 - math.copysign(self.gap, self.bound)) if self.gap < 1 else math.inf
        )
        return within_gap if self.enough is None else max(within_gap, self.enough)

    @property
    def done(self) -> bool:
        """Whether a search need not go on."""
        return self.settled or self.near(self.gap)

    def near(self, gap: float) -> bool:
        """Whether the gap is at most a share of the cost, or the search is only asked for less."""
        if self.enough is not None and self.settled:
            return True
        far = max(gap, CLOSED) * abs(self.cost)
        return self.rows is not None and self.cost - self.bound <= far

    @property
    def near_cost(self) -> float:
        """The lower bound that is near enough to the best cost."""
        return self.cost - self.gap * abs(self.cost) if self.rows is not None else math.inf

    @property
    def stopped(self) -> Stopped | None:
        """What ended the search."""
        if self.rows is None:
            return None
        return "gap" if self.near(self.gap) else "time" if self.timed_out else "work"

    def offer(self, problem: Problem, rows: Whole | None, box: Box) -> None:
        """Keep rows if they satisfy every constraint and cost less."""
        if rows is None:
            return
        cost = problem.cells.total_cost(rows)
        if cost < self.cost - 1e-9 and holds_everything(problem, rows, box):
            self.rows, self.cost = rows, cost


def holds_everything(problem: Problem, rows: Whole, box: Box) -> bool:
    """Whether groups are within the tolerance of the rows' own frequencies, and these in the box."""
    if not rows.sum() or not problem.holds(rows):
        return False
    frequencies = rows.sum(axis=0) / rows.sum()
    # Less than a row, in tables of any size.
    slack = min(1e-12, 1e-2 / float(rows.sum()))
    if ((frequencies < box.low - slack) | (frequencies > box.high + slack)).any():
        return False
    return within_tolerance(problem, rows, problem.base)
