"""Closing the gap between the cost of the best plan and the lower bound.

Boxes of label frequencies are split, the one with the lowest bound first. In a box, a linear
relaxation replaces the product of a group's size and a label's own frequency; the balance of the
labels and the possible shares of the groups make it tight. If its error is less than a row, a model
in whole rows is solved.
"""

from __future__ import annotations

import heapq
import itertools
import math
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from equipoise.plans.solvers.box import Box
from equipoise.plans.solvers.coupled import Corridor, Coupled, RowModel
from equipoise.plans.solvers.separable import granularity

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from equipoise.plans.cells import Real
    from equipoise.plans.problem import Problem
    from equipoise.plans.solvers.incumbent import Incumbent

CONSTRUCTED = 12
"""Number of frequencies around which plans are constructed; later, models in whole rows suffice."""

WHOLE = 1.0
"""Maximum error of a product, in rows, at which a model in whole rows is solved."""

NARROW = 1e-9
"""A box that is not split any further."""

SECONDS = 10.0
"""Time limit of one model in whole rows, in seconds."""


@dataclass
class GapSearch:
    """A search that raises the bound and finds cheaper plans until they meet within ``gap``.

    ``found`` is the best plan so far and is updated. ``deadline`` is a time of the monotonic clock,
    and ``construct`` makes plans around label frequencies and offers them.
    """

    problem: Problem
    found: Incumbent
    box: Box
    gap: float
    deadline: float
    construct: Callable[[Real], None]
    looked: int = 0
    floor: float = math.inf

    def __post_init__(self) -> None:
        cells = self.problem.cells
        self.step = granularity(np.concatenate([cells.add, cells.drop], axis=1))
        self.number = itertools.count()
        self.heap = [(self.found.bound, next(self.number), self.box)]

    def run(self) -> None:
        """Split the box with the lowest bound until that bound is close enough to the cost."""
        found = self.found
        while self.heap and not found.near(self.gap):
            if time.monotonic() > self.deadline:
                found.timed_out = True
                break
            bound, _, box = heapq.heappop(self.heap)
            if bound >= self.floor:
                break
            self.look(bound, box)
            lowest = self.heap[0][0] if self.heap else found.cost
            found.bound = max(found.bound, min(lowest, self.floor, found.cost))
        found.timed_out &= not found.near(self.gap)

    def look(self, bound: float, box: Box) -> None:
        """Raise the bound of a box, and add its parts with it."""
        corridor = self.corridor(box)
        relaxed = _relaxed_in(self.problem, corridor, time_limit=self.left)
        lower = max(bound, self.rounded(relaxed.cost))
        if lower >= self.found.cost - 1e-9:
            return
        if relaxed.rows is None or relaxed.off is None:  # without an answer there is no bound
            self.split(lower, box, box.middle, box.high - box.low)
            return
        centre = box.clip(relaxed.rows.sum(axis=0) / max(relaxed.rows.sum(), 1e-9))
        self.looked += 1
        if self.looked <= CONSTRUCTED:
            self.construct(centre)
        if relaxed.off.max() < WHOLE:
            lower = max(lower, self.in_whole_rows(corridor))
        self.split(lower, box, centre, relaxed.off)

    def in_whole_rows(self, corridor: Corridor) -> float:
        """Bound a box in whole rows; the model searches only for plans that are cheaper enough."""
        cost = self.found.cost
        enough = max(self.step or 0.0, self.gap * cost * (1 - 1e-9))
        found = _whole_in(
            self.problem,
            corridor,
            cheaper=cost - enough,
            time_limit=min(self.left, SECONDS),
            gap=max(self.gap / 4, 0.9 * (self.step or 0.0) / cost),
        )
        self.found.offer(self.problem, found.rows, self.box)
        if found.bound == math.inf:
            return cost if enough == self.step else cost - enough
        return self.rounded(found.bound)

    def split(self, lower: float, box: Box, centre: Real, off: Real) -> None:
        """Add the parts of a box; a box too narrow to split limits the bound that can be proved."""
        if lower >= self.found.cost - 1e-9:
            return
        if (box.high - box.low).max() <= NARROW:
            self.floor = min(self.floor, lower)
            return
        for part in _parts(box, centre, off):
            heapq.heappush(self.heap, (lower, next(self.number), part))

    @property
    def left(self) -> float:
        """Seconds until the deadline."""
        return max(self.deadline - time.monotonic(), 0.1)

    def rounded(self, cost: float) -> float:
        """Round a bound up to the next possible cost, if costs are multiples of a step."""
        if not math.isfinite(cost):
            return cost if cost > 0 else 0.0
        if self.step:
            return math.ceil(cost / self.step - 1e-5) * self.step
        return cost * (1 - 1e-9) - 1e-7

    def corridor(self, box: Box) -> Corridor:
        """The box, with the shares of the table that groups can have below the best cost."""
        cells, cost = self.problem.cells, self.found.cost
        n, sizes = float(cells.have.sum()), cells.have.sum(axis=1).astype(float)
        added = _at_most(cost, cells.add[cells.most > cells.have])
        gone = _at_most(cost, cells.drop[cells.least < cells.have])
        least, most = np.zeros(len(sizes)), np.ones(len(sizes))
        if math.isfinite(added) and gone < n:
            ends = [(0.0, 0.0), (added, 0.0), (0.0, gone)]
            least = np.min([(sizes - d).clip(0) / (n + a - d) for a, d in ends], axis=0)
            most = np.max([(sizes + a) / (n + a - d) for a, d in ends], axis=0).clip(0, 1)
            some = np.where(self.problem.have.sum(axis=0) > 0, 1 / (n + added + 1), 0.0)
            box = Box(np.maximum(box.low, np.minimum(some, box.high)), box.high)
        return Corridor(box, least, most)


def _at_most(cost: float, prices: Real) -> float:
    """Number of rows that a cost pays for at the lowest price."""
    if not prices.size:
        return 0.0
    return cost / float(prices.min()) if prices.min() > 0 else math.inf


def _parts(box: Box, centre: Real, off: Real) -> Iterator[Box]:
    """Split the box at the label where the error of the relaxation is largest."""
    width = box.high - box.low
    y = int(np.where(width > NARROW, off, -1.0).argmax())
    if off[y] <= 0:
        y = int(width.argmax())
    inner = width[y] / 10  # a cut near the edge would leave one part as wide as before
    return box.split(y, float(np.clip(centre[y], box.low[y] + inner, box.high[y] - inner)))


class _Relaxed(NamedTuple):
    """The cheapest real-valued rows, and their error relative to their own label frequencies."""

    cost: float  # infinite if there are none, and 0 if the solver gives no answer
    rows: Real | None = None
    off: Real | None = None


def _relaxed_in(problem: Problem, corridor: Corridor, *, time_limit: float) -> _Relaxed:
    """Bound the cost of every plan whose own label frequencies lie in a corridor."""
    model = _following(problem, corridor)
    if model.impossible:
        return _Relaxed(math.inf)
    result = model.run(whole=False, time_limit=time_limit)
    if result.columns is None:
        return _Relaxed(math.inf if result.status == "infeasible" else 0.0)
    n, k = problem.have.size, model.k
    rows = problem.have + (result.columns[:n] - result.columns[n : 2 * n]).reshape(-1, k)
    share = rows.sum(axis=0) / max(rows.sum(), 1e-9)
    products = result.columns[2 * n : 3 * n].reshape(-1, k)
    off = np.abs(products - share * rows.sum(axis=1, keepdims=True)).max(axis=0)
    return _Relaxed(result.cost, rows, off)


def _whole_in(
    problem: Problem, corridor: Corridor, *, cheaper: float, time_limit: float, gap: float
) -> Coupled:
    """The same in whole rows, below a cost: a bound, and rows that are valid or nearly so."""
    model = _following(problem, corridor)
    row, columns = np.zeros(2 * model.n, int), np.arange(2 * model.n)
    model.rows(row, columns, model.price, np.array([-np.inf]), np.array([cheaper]))
    return model.solve(time_limit=time_limit, gap=gap, nodes=None)


def _following(problem: Problem, corridor: Corridor) -> RowModel:
    model = RowModel(problem, corridor.box.low)
    model.follow(problem, corridor)
    model.hold_limits(problem)
    model.balance(corridor.box, 0.0)
    return model
