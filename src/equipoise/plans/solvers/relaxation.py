"""The linear relaxation of plans whose own label frequencies lie in a box.

The limits of a group are affine in the product of its size M and a label's own frequency F. A
variable W stands for that product. The products of a group add up to its size, those of a label
to its rows T, and each lies in McCormick's envelope for the ranges of F and of the group's share
of the table; with T and N as variables, that envelope is linear. Equal groups share variables.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from equipoise.plans.cells import UNLIMITED
from equipoise.plans.highs import LinearModel
from equipoise.plans.solvers.box import Box

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from equipoise.plans.cells import Cells, Edges, Real, Whole
    from equipoise.plans.highs import Answer
    from equipoise.plans.problem import Problem

AT_ONCE = 60
"""Number of cells up to which all rows of the envelope are in the model from the beginning."""

_SIGNS = np.array([1.0, 1.0, -1.0, -1.0])  # of W in the four rows of an envelope


@dataclass(frozen=True, eq=False)
class Kinds:
    """The distinct groups of a problem, how often each occurs, and the kind of every group."""

    cells: Cells
    edges: Edges
    times: Real
    back: NDArray[np.intp]

    @classmethod
    def all(cls, problem: Problem) -> Kinds:
        """Every group as a kind of its own."""
        n = len(problem.cells)
        return cls(problem.cells, problem.edges, np.ones(n), np.arange(n))

    @classmethod
    def of(cls, problem: Problem) -> Kinds:
        """Merge groups that are equal in all that matters, unless they share limits."""
        cells, edges, n = problem.cells, problem.edges, len(problem.cells)
        if problem.coupling:
            return cls.all(problem)
        parts = [*(vars(cells).values()), *(vars(edges).values())]
        told = np.concatenate([np.asarray(p, float).reshape(n, -1) for p in parts], axis=1)
        _, first, back, times = np.unique(
            told, axis=0, return_index=True, return_inverse=True, return_counts=True
        )
        order = np.argsort(first)  # in the order of the table, whatever the numbers are
        place = np.empty_like(order)
        place[order] = np.arange(len(order))
        chosen = first[order]
        return cls(
            cells.take(chosen),
            edges.take(chosen),
            times[order].astype(float),
            place[back.ravel()],
        )

    def __len__(self) -> int:
        return len(self.times)


class Relaxed(NamedTuple):
    """The cheapest real-valued rows of a box: a bound of the cost, and the error of the products."""

    bound: float  # infinite if there are none, and minus infinity without an answer
    rows: Real | None = None  # of every kind of group
    off: Real | None = None  # |W − F·M| for each label, summed over groups
    worst: float = 0.0  # the largest of these for one group
    sides: tuple[Real, Real] | None = None  # prices of moving from the low and high sides
    balance: Real | float = 0.0  # price of one more row of each label, for all groups together


class FrequencyRelaxation:
    """The model, kept and solved again for other boxes."""

    def __init__(self, problem: Problem, kinds: Kinds, *, whole: bool = False) -> None:
        self.problem, self.kinds, self.whole = problem, kinds, whole
        cells = kinds.cells
        g, k = cells.have.shape
        self.g, self.k, self.n = g, k, g * k
        self.group, self.label = np.divmod(np.arange(self.n), k)
        self.least, self.most = np.zeros(g), np.ones(g)  # shares of the table
        names = ("add", "drop", "product", "size", "total", "over", "under", "everything")
        widths = (self.n, self.n, self.n, g, k, k, k, 1)
        ends = np.cumsum((0, *widths))
        self.at = {name: np.arange(a, b) for name, a, b in zip(names, ends, ends[1:], strict=False)}
        self.model = self._columns(int(ends[-1]))
        self._sums()
        self._limits()
        self._shared_limits()
        self.frame = self._frame()
        self.least_costs = self._costs()
        self.fixed = self.model.height
        self.cell, self.side = np.zeros((2, 0), np.intp)  # rows of the envelope in the model
        self.box = Box(np.zeros(k), np.ones(k))
        self.solved = 0

    # ------------------------------------------------------------------------- building

    def _columns(self, width: int) -> LinearModel:
        cells, times = self.kinds.cells, self.kinds.times[:, None]
        have, most = cells.have.ravel(), cells.most.ravel().astype(float)
        cost, low, high = np.zeros(width), np.zeros(width), np.full(width, np.inf)
        cost[: 2 * self.n] = np.concatenate(
            [(cells.add * times).ravel(), (cells.drop * times).ravel()]
        )
        self.price = cost[: 2 * self.n]
        low[: self.n] = (cells.least.ravel() - have).clip(0)
        high[: self.n] = np.where(most >= UNLIMITED, np.inf, (most - have).clip(0))
        high[self.n : 2 * self.n] = (have - cells.least.ravel()).clip(0)
        low[self.at["size"]] = cells.group_least
        self.impossible = bool((low > high).any())
        high = np.maximum(high, low)
        self.low, self.high = low[: 2 * self.n].copy(), high[: 2 * self.n].copy()
        model = LinearModel(cost, low=low, high=high)
        if self.whole:
            model.whole(np.arange(2 * self.n))
        return model

    def _equal(self, i: Any, j: Any, value: Any, right: Real) -> None:
        self.model.add_rows(
            np.concatenate(i), np.concatenate(j), np.concatenate(value), low=right, high=right
        )

    def _sums(self) -> None:
        """Sizes, rows of labels, the whole table, and the products that add up to them."""
        at, n, g, k = self.at, self.n, self.g, self.k
        one = np.ones(n)
        have = self.kinds.cells.have
        times = self.kinds.times
        each = times[self.group]
        self._equal(  # M = Σ m
            (self.group, self.group, np.arange(g)),
            (at["add"], at["drop"], at["size"]),
            (one, -one, -np.ones(g)),
            -have.sum(axis=1).astype(float),
        )
        self._equal(  # M = Σ W
            (self.group, np.arange(g)), (at["product"], at["size"]), (one, -np.ones(g)), np.zeros(g)
        )
        self._equal(  # T = Σ W
            (self.label, np.arange(k)),
            (at["product"], at["total"]),
            (each, -np.ones(k)),
            np.zeros(k),
        )
        self._equal(  # T = Σ m
            (self.label, self.label, np.arange(k)),
            (at["add"], at["drop"], at["total"]),
            (each, -each, -np.ones(k)),
            -(have * times[:, None]).sum(axis=0),
        )
        self._equal(  # N = Σ T
            (np.zeros(k, int), [0]),
            (at["total"], at["everything"]),
            (np.ones(k), [-1.0]),
            np.zeros(1),
        )

    def _limits(self) -> None:
        """The rows of a cell lie between the limits that the product and the size set."""
        edges, at = self.kinds.edges, self.at
        have = self.kinds.cells.have.ravel().astype(float)
        for sign, slope, shift in (
            (1.0, edges.high.ravel(), edges.high_shift.ravel()),
            (-1.0, edges.low.ravel(), edges.low_shift.ravel()),
        ):
            # A share is at least 0 and at most 1 by itself.
            held = (slope > 0) | (shift > 0) if sign < 0 else (slope > 0) | (shift < 1)
            which = np.flatnonzero(held)
            row, one = np.arange(len(which)), np.ones(len(which))
            self.model.add_rows(
                np.concatenate([row] * 4),
                np.concatenate(
                    [
                        at["add"][which],
                        at["drop"][which],
                        at["product"][which],
                        at["size"][self.group[which]],
                    ]
                ),
                np.concatenate(
                    [sign * one, -sign * one, -sign * slope[which], -sign * shift[which]]
                ),
                low=np.full(len(which), -np.inf),
                high=-sign * have[which],
            )

    def _shared_limits(self) -> None:
        problem, at = self.problem, self.at
        have = problem.have.ravel()
        for limit in problem.coupling:
            cells, factor = limit.coefficients
            row = np.zeros(len(cells), int)
            if limit.of_additions:
                self.model.add_rows(
                    row, at["add"][cells], factor, low=[limit.low], high=[limit.high]
                )
                continue
            now = float(factor @ have[cells])
            self.model.add_rows(
                np.tile(row, 2),
                np.concatenate([at["add"][cells], at["drop"][cells]]),
                np.concatenate([factor, -factor]),
                low=[limit.low - now],
                high=[limit.high - now],
            )

    def _frame(self) -> int:
        """T − l·N and u·N − T, at least 0; returns the number of the first row."""
        at, k, first = self.at, self.k, self.model.height
        row, one = np.arange(k), np.ones(k)
        everything = np.repeat(at["everything"], k)
        for name, value in (("over", -one), ("under", one)):
            self._equal(
                (row, row, row),
                (at["total"], everything, at[name]),
                (one, -one, value),
                np.zeros(k),
            )
        return first

    def _costs(self) -> int:
        """The cost of each kind of group and of all; returns the number of the first row."""
        first, columns = self.model.height, np.arange(2 * self.n)
        row = np.concatenate([self.group, self.group])
        self.model.add_rows(
            np.concatenate([row, np.full(2 * self.n, self.g)]),
            np.concatenate([columns, columns]),
            np.concatenate([self.price, self.price]),
            low=np.full(self.g + 1, -np.inf),
            high=np.full(self.g + 1, np.inf),
        )
        return first

    # ------------------------------------------------------------------------- changing

    def cheaper(self, cost: float) -> None:
        """Admit plans up to a cost only."""
        self.model.bound_rows([self.least_costs + self.g], -np.inf, cost)

    def dearer(self, costs: Real) -> None:
        """Hold each kind of group to a least cost that is known of its whole rows."""
        low = np.where(costs > 0, costs * self.kinds.times * (1 - 1e-9), -np.inf)
        self.model.bound_rows(self.least_costs + np.arange(self.g), low, np.inf)

    def pin(self, rows: Whole | None, which: Any = ()) -> None:
        """Fix the rows of some kinds of groups, or release all."""
        columns = np.arange(2 * self.n)
        self.model.bound_columns(columns, self.low, self.high)
        if rows is None:
            return
        cell = (np.asarray(which, np.intp)[:, None] * self.k + np.arange(self.k)).ravel()
        change = (rows - self.kinds.cells.have).ravel()[cell]
        self.model.bound_columns(cell, change.clip(0), change.clip(0))
        self.model.bound_columns(self.n + cell, (-change).clip(0), (-change).clip(0))

    def share(self, least: Real, most: Real) -> None:
        """Set the ranges of the groups' shares of the table; the next move takes them up."""
        self.least = np.where(least < 1e-6, 0.0, least * (1 - 1e-9))
        self.most = np.minimum(np.maximum(most * (1 + 1e-9), 1e-5), 1.0)

    def move(self, box: Box) -> None:
        """Take another box."""
        at, k, row = self.at, self.k, np.arange(self.k)
        self.box = box
        everything = np.repeat(at["everything"], k)
        self.model.change(self.frame + row, everything, -box.low)
        self.model.change(self.frame + k + row, everything, -box.high)
        if not len(self.cell):
            # The plain range of each product comes first, the other two sides if they are broken.
            sides = [0, 1, 2, 3] if self.whole or self.n <= AT_ONCE else [0, 2]
            cell = np.tile(np.arange(self.n), len(sides))
            self._add_envelope(cell, np.repeat(sides, self.n))
        else:
            self._move_envelope()

    def _envelope(self, cell: Any, side: Any) -> tuple[Real, Real]:
        """The factors of size and of the surplus in rows of the envelope."""
        low, high = self.box.low[self.label[cell]], self.box.high[self.label[cell]]
        least, most = self.least[self.group[cell]], self.most[self.group[cell]]
        f = np.where((side == 0) | (side == 3), low, high)
        # W ≥ l·M + s⁻·over, W ≥ u·M − s⁺·under, W ≤ u·M − s⁻·under, W ≤ l·M + s⁺·over
        s = np.choose(side, [-least, most, least, -most])
        return -f * _SIGNS[side], s * _SIGNS[side]

    def _surplus(self, cell: Any, side: Any) -> Any:
        over = (side == 0) | (side == 3)
        return np.where(over, self.at["over"][self.label[cell]], self.at["under"][self.label[cell]])

    def _add_envelope(self, cell: Any, side: Any) -> None:
        row, at = np.arange(len(cell)), self.at
        size, surplus = self._envelope(cell, side)
        self.model.add_rows(
            np.tile(row, 3),
            np.concatenate(
                [at["product"][cell], at["size"][self.group[cell]], self._surplus(cell, side)]
            ),
            np.concatenate([_SIGNS[side], size, surplus]),
            low=np.zeros(len(cell)),
            high=np.full(len(cell), np.inf),
        )
        self.cell, self.side = np.append(self.cell, cell), np.append(self.side, side)

    def _move_envelope(self) -> None:
        row = self.fixed + np.arange(len(self.cell))
        size, surplus = self._envelope(self.cell, self.side)
        self.model.change(row, self.at["size"][self.group[self.cell]], size)
        self.model.change(row, self._surplus(self.cell, self.side), surplus)

    # -------------------------------------------------------------------------- solving

    def solve(self, *, rounds: int = 6, time_limit: float = math.inf) -> Relaxed:
        """Solve for the box, adding rows of the envelope that are violated."""
        if self.impossible:
            return Relaxed(math.inf)
        bound = -math.inf
        for _ in range(rounds):
            answer = self.model.solve(time_limit=time_limit, presolve=False)
            self.solved += 1
            if answer.columns is None:
                return Relaxed(math.inf if answer.status == "infeasible" else bound)
            bound = answer.cost
            if not self._violated(answer):
                break
        return self._read(answer, bound)

    def in_whole_rows(
        self, *, gap: float, nodes: int, time_limit: float
    ) -> tuple[float, Whole | None]:
        """Solve a model in whole rows: a bound, infinite if there are none, and rows."""
        if self.impossible:
            return math.inf, None
        # Presolve divides by the width of the box, which is tiny, and has lost the optimum by that.
        answer = self.model.solve(gap=gap, nodes=nodes, time_limit=time_limit, presolve=False)
        if answer.columns is None:
            return answer.bound, None
        change = np.rint(answer.columns[: 2 * self.n]).astype(np.int64)
        return answer.bound, self.kinds.cells.have + (change[: self.n] - change[self.n :]).reshape(
            self.g, self.k
        )

    def extremes(self, wanted: list[tuple[Any, Any]], *, seconds: float = math.inf) -> list[float]:
        """The least values of linear functions, each given by columns and factors.

        A value is minus infinity if it is not known, and infinite if no plan is left.
        """
        self.model.price(np.arange(2 * self.n), 0.0)
        found = []
        for columns, factors in wanted:
            self.model.price(columns, factors)
            answer = self.model.solve(time_limit=seconds, presolve=False, primal=True)
            self.solved += 1
            found.append(answer.bound)
            self.model.price(columns, 0.0)
            if answer.status == "infeasible":
                break
        self.model.price(np.arange(2 * self.n), self.price)
        return found

    def _violated(self, answer: Answer) -> bool:
        """Add the rows that the answer breaks; whether there were any."""
        if len(self.cell) == 4 * self.n:
            return False
        x = answer.columns if answer.columns is not None else np.zeros(self.model.width)
        known = np.zeros((4, self.n), np.bool_)
        known[self.side, self.cell] = True
        cell, side = np.tile(np.arange(self.n), 4), np.repeat(np.arange(4), self.n)
        size, surplus = self._envelope(cell, side)
        value = _SIGNS[side] * x[self.at["product"]][cell]
        value += size * x[self.at["size"]][self.group[cell]]
        value += surplus * x[self._surplus(cell, side)]
        broken = (value < -1e-4) & ~known[side, cell]
        if not broken.any():
            return False
        self._add_envelope(cell[broken], side[broken])
        return True

    def _read(self, answer: Answer, bound: float) -> Relaxed:
        x, duals, reduced = answer.columns, answer.duals, answer.reduced
        if x is None or duals is None or reduced is None:
            return Relaxed(bound)
        shape = (self.g, self.k)
        rows = self.kinds.cells.have + (x[: self.n] - x[self.n : 2 * self.n]).reshape(shape)
        times = self.kinds.times[:, None]
        total = (rows * times).sum(axis=0)
        share = total / max(total.sum(), 1e-9)
        off = np.abs(x[self.at["product"]].reshape(shape) - share * rows.sum(axis=1, keepdims=True))
        sides = (reduced[self.at["over"]], reduced[self.at["under"]])
        of_products, of_rows = duals[2 * self.g :][: 2 * self.k].reshape(2, -1)
        balance = -of_rows - (of_products * share).sum()
        return Relaxed(bound, rows, (off * times).sum(axis=0), float(off.max()), sides, balance)
