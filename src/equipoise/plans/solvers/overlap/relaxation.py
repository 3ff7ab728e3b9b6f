"""The cheapest real-valued rows: a linear model to which limits are added as they are broken."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise.plans.cells import UNLIMITED
from equipoise.plans.highs import EXACT, LinearModel

if TYPE_CHECKING:
    from collections.abc import Sequence

    from equipoise.plans.cells import Real
    from equipoise.plans.problem import Problem
    from equipoise.plans.solvers.box import Box
    from equipoise.plans.solvers.overlap.groups import Cuts, Groups

BROKEN = 1e-6
"""A limit that is broken by less, in rows, is not added: HiGHS is not more exact."""

ROUNDS = 200
"""Maximum number of times that limits are added."""


@dataclass(frozen=True, eq=False)
class Prices:
    """What a row more or less would save: the dual values of limits, of at least 0."""

    groups: Real  # group × (upper limit of each label, lower limit of each)
    table: Real  # the same for the label frequencies of the table
    shared: Real  # limits that groups share, in the order of the problem


@dataclass(frozen=True, eq=False)
class RelaxedChanges:
    """Real-valued rows, or None, and a lower bound of the cost; infinite if there are none."""

    bound: float
    rows: Real | None = None
    prices: Prices | None = None

    @property
    def frequencies(self) -> Real:
        """The label frequencies of the rows."""
        assert self.rows is not None  # noqa: S101 - asked for only with rows
        return np.asarray(self.rows.sum(axis=0) / max(float(self.rows.sum()), 1e-9))


class ChangeModel:
    """The changes of all cells as columns, and the rows of each label as further columns.

    Limits on groups are added to the model when a solution breaks them. For other label frequencies
    they are put in again with new coefficients: those that were needed once are needed again.
    """

    def __init__(self, problem: Problem, groups: Groups) -> None:
        cells = problem.cells
        self.problem, self.groups, self.k = problem, groups, cells.labels
        self.have = cells.have.ravel()
        n = self.n = self.have.size
        gone = (self.have - cells.least.ravel()).clip(0)
        self.deletable = np.flatnonzero(gone > 0)
        self.lines = np.flatnonzero(problem.judged)  # finest groups that are judged
        d = len(self.deletable)
        self.change = _differences(n, self.deletable)
        self.deleted = np.full(n, -1)
        self.deleted[self.deletable] = n + np.arange(d)
        self.totals = n + d + np.arange(self.k)
        most = cells.most.ravel()
        added = np.where(most >= UNLIMITED, np.inf, most - self.have)
        self.price = np.concatenate([cells.add.ravel(), cells.drop.ravel()[self.deletable]])
        self.low = np.concatenate([(cells.least.ravel() - self.have).clip(0), np.zeros(d + self.k)])
        self.high = np.concatenate([added, gone[self.deletable], np.full(self.k, np.inf)])
        price = np.concatenate([self.price, np.zeros(self.k)])
        self.model = LinearModel(price, low=self.low, high=self.high)
        self.inside = 0.0  # a margin to the limits, in rows
        self.short = np.zeros(len(cells), np.bool_)  # groups whose least size was needed
        self.known: list[set[tuple[int, int]]] = []  # limits in the model, for each kind of cut
        self.blocks: list[tuple[int, Any, Any]] = []  # the same, as they were added
        self.deadline = math.inf
        self._count_labels()
        self._share_limits()
        self.fixed = self.model.height

    # ------------------------------------------------------------------- what never changes

    def _count_labels(self) -> None:
        """The rows of each label in the table, as columns of their own."""
        cell = np.arange(self.n)
        low = np.zeros(self.k)
        self.cell_rows(cell % self.k, cell, 1.0, low, low, on_totals=-np.eye(self.k))

    def _share_limits(self) -> None:
        problem = self.problem
        for limit in problem.coupling:
            cells, factor = limit.coefficients
            row, low, high = (
                np.zeros(len(cells), int),
                np.array([limit.low]),
                np.array([limit.high]),
            )
            if limit.of_additions:
                self.model.add_rows(row, cells, factor, low=low, high=high)
            else:
                self.cell_rows(row, cells, factor, low, high)

    def cell_rows(
        self, i: Any, cell: Any, value: Any, low: Any, high: Any, on_totals: Any = None
    ) -> None:
        """Add constraints on the final rows of cells, and on the label totals."""
        value = np.broadcast_to(np.asarray(value, float), i.shape)
        # The columns are changes, so present rows move to the bounds.
        offset = np.bincount(i, value * self.have[cell], minlength=len(low))
        drop = self.deleted[cell]
        may = drop >= 0
        rows, columns, values = [i, i[may]], [cell, drop[may]], [value, -value[may]]
        if on_totals is not None:
            at, y = np.nonzero(on_totals)
            rows, columns = [*rows, at], [*columns, self.totals[y]]
            values = [*values, on_totals[at, y]]
        self.model.add_rows(
            np.concatenate(rows),
            np.concatenate(columns),
            np.concatenate(values),
            low=low - offset,
            high=high - offset,
        )

    # --------------------------------------------------------------- what depends on frequencies

    def solve(
        self,
        cuts: Sequence[Cuts],
        box: Box | None,
        *,
        least: Real | None = None,
        cutoff: float = math.inf,
    ) -> RelaxedChanges:
        """Bound the cost of all plans that keep the cuts, with label frequencies in a box.

        ``least`` is what each judged finest group costs at least, in whole rows. The search ends
        early when the bound is not below ``cutoff``.
        """
        least = np.zeros(len(self.lines)) if least is None else least
        if not np.isfinite(least).all():
            return RelaxedChanges(math.inf)
        self._restart(cuts, box, least)
        bound = self.problem.cells.lowest_cost  # below zero if changes are paid for
        for _ in range(ROUNDS):
            answer = self.model.solve(time_limit=self.deadline - time.monotonic())
            if answer.status == "infeasible":
                return RelaxedChanges(math.inf)
            if answer.columns is None or answer.duals is None:
                return RelaxedChanges(bound)  # no answer, and no more than the bound so far
            # What HiGHS may be off by, at the prices of the constraints.
            off = np.abs(answer.duals).sum() + np.abs(answer.columns[: self.totals[0]]).sum()
            bound = max(bound, answer.cost - EXACT * (1.0 + float(off)))
            rows = self.rows_of(answer.columns)
            held = len(self.blocks)
            if not self._add_broken(cuts, rows) or bound >= cutoff:
                prices = self._prices(cuts, np.abs(answer.duals), held, balanced=box is not None)
                return RelaxedChanges(bound, rows, prices)
        return RelaxedChanges(bound)

    def rows_of(self, columns: Real) -> Real:
        """The rows of cells after the changes that columns stand for."""
        changed = self.change @ columns[: self.totals[0]]
        return np.asarray((self.have + changed).reshape(-1, self.k))

    def _restart(self, cuts: Sequence[Cuts], box: Box | None, least: Real) -> None:
        """Put the limits that were needed before in again, in their order, for other frequencies."""
        basis = self.model.basis()
        self.model.drop_rows(self.fixed)
        if box is not None:
            self._balance(box)
        if len(self.lines):
            self._pay(least)
        if len(self.known) != len(cuts):
            self.known, self.blocks = [set() for _ in cuts], []
            self.short[:] = False
        for number, c, y in self.blocks:
            if number < 0:
                self._hold_sizes(c)
            else:
                self._put(cuts[number], c, y)
        self.model.resume(basis)

    def seed(self, known: Sequence[set[tuple[int, int]]]) -> None:
        """Begin with limits that another model needed."""
        self.known, self.blocks = [set(each) for each in known], []
        for number, each in enumerate(self.known):
            if each:
                c, y = np.array(sorted(each)).T
                self.blocks.append((number, c, y))

    def _balance(self, box: Box) -> None:
        k = self.k
        i, j = np.divmod(np.arange(k * k), k)
        for share, sign in ((box.high, 1.0), (box.low, -1.0)):
            value = sign * (np.eye(k) - share[:, None])
            free = np.full(k, -np.inf)
            self.model.add_rows(i, self.totals[j], value.ravel(), low=free, high=np.zeros(k))

    def _pay(self, least: Real) -> None:
        """Let judged finest groups cost at least as much as in whole rows."""
        k = self.k
        cell = (self.lines[:, None] * k + np.arange(k)).ravel()
        row, drop = np.repeat(np.arange(len(self.lines)), k), self.deleted[cell]
        may = drop >= 0
        column = np.concatenate([cell, drop[may]])
        free = np.full(len(self.lines), np.inf)
        rows = np.concatenate([row, row[may]])
        self.model.add_rows(
            rows, column, self.price[column], low=least - 1e-9 * np.abs(least), high=free
        )

    def _add_broken(self, cuts: Sequence[Cuts], rows: Real) -> bool:
        """Add the limits that rows break; False if there are none."""
        sums, totals = self.groups.inside @ rows, rows.sum(axis=0)
        found = False
        excess = [each.excess(sums, totals) for each in cuts]
        broken = [over > BROKEN for over in excess]
        if self.k == 2:
            broken = _strictest(cuts, excess, broken)
        for number, each in enumerate(cuts):
            new = [
                p
                for p in zip(*np.nonzero(broken[number]), strict=True)
                if p not in self.known[number]
            ]
            if new:
                found = True
                self.known[number].update(new)
                c, y = np.array(new).T
                self.blocks.append((number, c, y))
                self._put(each, c, y)
        lines = np.flatnonzero(
            (rows.sum(axis=1) < self.problem.cells.group_least - BROKEN) & ~self.short
        )
        self.short[lines] = True
        if len(lines):
            self.blocks.append((-1, lines, lines))
            self._hold_sizes(lines)
        return found or len(lines) > 0

    def _prices(self, cuts: Sequence[Cuts], duals: Real, held: int, *, balanced: bool) -> Prices:
        """Read the prices of limits from the rows of the model, in the order they were added."""
        k, place = self.k, self.fixed
        table = np.zeros(2 * k)
        if balanced:
            table, place = duals[place : place + 2 * k], place + 2 * k
        place += len(self.lines)
        groups = np.zeros((len(self.groups), 2 * k))
        for number, c, y in self.blocks[:held]:
            if number >= 0:
                side = y if cuts[number].sign > 0 else k + y
                groups[c, side] += duals[place : place + len(c)]
            place += len(c)
        return Prices(groups, table, duals[k : self.fixed])

    def _put(self, cuts: Cuts, c: Any, y: Any) -> None:
        """Add the cuts of some groups and labels."""
        member = self.groups.inside[c].tocoo()
        row, line = member.coords
        k = self.k
        cell = (line[:, None] * k + np.arange(k)).ravel()
        value = cuts.on_group(c, y)[row].ravel()
        low, high = np.full(len(c), -np.inf), np.full(len(c), -self.inside)
        self.cell_rows(np.repeat(row, k), cell, value, low, high, cuts.on_totals(c, y))

    def _hold_sizes(self, lines: Any) -> None:
        k = self.k
        cell = (lines[:, None] * k + np.arange(k)).ravel()
        least = self.problem.cells.group_least[lines].astype(float)
        self.cell_rows(
            np.repeat(np.arange(len(lines)), k), cell, 1.0, least, np.full(len(lines), np.inf)
        )


def _strictest(cuts: Sequence[Cuts], excess: list[Real], broken: list[Any]) -> list[Any]:
    """Of two labels, more of one is less of the other: keep the strictest cut in each direction."""
    turned = [
        over if each.sign > 0 else over[:, ::-1] for each, over in zip(cuts, excess, strict=True)
    ]
    most = np.max(turned, axis=0)
    return [
        b & (over >= (most if each.sign > 0 else most[:, ::-1]))
        for each, over, b in zip(cuts, excess, broken, strict=True)
    ]


def _differences(n: int, deletable: Any) -> Any:
    """The matrix that turns additions and deletions into changes of cells."""
    from scipy import sparse

    d = len(deletable)
    value = np.concatenate([np.ones(n), -np.ones(d)])
    place = np.concatenate([np.arange(n), deletable])
    return sparse.csr_array((value, (place, np.arange(n + d))), shape=(n, n + d))
