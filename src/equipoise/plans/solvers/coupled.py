"""Groups that depend on each other: one mixed integer model for all, solved by HiGHS.

It is needed if the tolerance applies to some groups only, if groups share a limit on rows, and if
the label frequencies of the repaired table must be those of a centre.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from equipoise.plans.cells import UNLIMITED
from equipoise.plans.highs import Answer, LinearModel

if TYPE_CHECKING:
    from collections.abc import Callable

    from equipoise.plans.cells import Band, Real, Whole
    from equipoise.plans.judged import Judged
    from equipoise.plans.problem import Problem
    from equipoise.plans.solvers.box import Box

_Entries: TypeAlias = tuple[Any, Any, Any]
"""Entries of a matrix: row, column, value."""

_NONE: _Entries = (np.zeros(0, np.intp), np.zeros(0, np.intp), 0.0)


@dataclass(frozen=True, eq=False)
class Coupled:
    """The rows of each cell, or None, with a lower bound of the cost; infinite if infeasible."""

    rows: Whole | None
    bound: float
    timed_out: bool = False


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


@dataclass(frozen=True, eq=False)
class Corridor:
    """The searched box of label frequencies, and the range of each group's share of the table."""

    box: Box
    least: Real
    most: Real


class RowModel:
    """A mixed integer model under construction: additions, deletions, and auxiliary variables."""

    def __init__(self, problem: Problem, centre: Real) -> None:
        cells = problem.cells
        self.cells, self.n, self.k = cells, cells.have.size, cells.labels
        # One variable per cell for additions and one for deletions, because their costs differ.
        far = far_away(problem, centre)
        have = cells.have.ravel()
        most = cells.most.ravel()
        # A finite bound that no plan reaches stands for none.
        self.add_high = np.where(most >= UNLIMITED, far, (most - have).clip(0)).astype(float)
        self.add_low = (cells.least.ravel() - have).clip(0).astype(float)
        self.drop_high = (have - cells.least.ravel()).clip(0).astype(float)
        self.price = np.concatenate([cells.add.ravel(), cells.drop.ravel()])
        self.columns, self.height = 2 * self.n, 0
        self.parts: list[tuple[Any, ...]] = []  # row, column, value; lower and upper bound of rows
        self.impossible = bool((self.add_low > self.add_high).any())

    def variables(self, n: int) -> Any:
        """Add real-valued auxiliary variables of at least 0, and return their indices."""
        self.columns += n
        return np.arange(self.columns - n, self.columns)

    def rows(self, i: Any, j: Any, value: Any, low: Any, high: Any) -> None:
        """Add constraints by their entries (row, column, value) and bounds."""
        self.parts.append((i + self.height, j, np.asarray(value, float), low, high))
        self.height += len(low)

    def cell_rows(
        self, i: Any, cell: Any, value: Any, low: Any, high: Any, extra: _Entries = _NONE
    ) -> None:
        """Add constraints on the final rows of cells, and on auxiliary variables as ``extra``."""
        value = np.broadcast_to(np.asarray(value, float), i.shape)
        # The variables are changes, so present rows move to the bounds.
        offset = np.bincount(i, value * self.cells.have.ravel()[cell], minlength=len(low))
        row, column, factor = extra
        self.rows(
            np.concatenate([i, i, row]),
            np.concatenate([cell, cell + self.n, column]),
            np.concatenate([value, -value, np.broadcast_to(factor, row.shape)]),
            low - offset,
            high - offset,
        )

    def hold_finest(self, lines: Any, band: Band, inside: float) -> None:
        """Keep the label rates of groups inside a band."""
        self._hold_band(self._cells_of(lines), band, inside, self.cell_rows)

    def hold_coarse(self, membership: Any, band: Band, inside: float) -> None:
        """Keep coarser groups inside a band, with their sums as auxiliary variables."""
        k, c = self.k, membership.shape[0]
        sums = self.variables(c * k)
        entry = membership.tocoo()
        row = (entry.coords[0][:, None] * k + np.arange(k)).ravel()
        cell = self._cells_of(entry.coords[1]).ravel()
        zero, own = np.zeros(c * k), (np.arange(c * k), sums, -1.0)
        self.cell_rows(row, cell, 1.0, zero, zero, own)
        self._hold_band(sums.reshape(c, k), band, inside, self.rows)

    def _cells_of(self, lines: Any) -> Any:
        return lines[:, None] * self.k + np.arange(self.k)

    def _hold_band(self, columns: Any, band: Band, inside: float, add: Callable[..., None]) -> None:
        """Keep the label rates of groups inside a band; ``columns`` has a line per group."""
        g, k = columns.shape
        row = np.repeat(np.arange(g * k), k)  # each label of each group is compared with all labels
        column = np.repeat(columns, k, axis=0).ravel()
        for share, sign in ((band.high, 1), (band.low, -1)):
            value = sign * (np.eye(k)[None] - share[:, :, None])
            add(row, column, value.ravel(), np.full(g * k, -np.inf), np.full(g * k, -inside))

    def round_to(self, lines: Any, targets: Real) -> None:
        """Keep groups less than a row away from a multiple of their targets."""
        row = np.arange(targets.size)
        size = np.repeat(self.variables(len(lines)), self.k)
        self._hold_near(row, self._cells_of(lines).ravel(), size, targets.ravel())

    def round_group(self, judged: Judged, targets: Real) -> None:
        """The same for the sums of a coarser group."""
        row = np.tile(np.arange(self.k), len(judged.lines))
        size = np.repeat(self.variables(1), self.k)
        self._hold_near(row, self._cells_of(judged.lines).ravel(), size, targets)

    def _hold_near(self, row: Any, cell: Any, size: Any, targets: Real) -> None:
        n = len(targets)
        room = np.full(n, 1 - 1e-5)  # HiGHS may exceed a bound by a little, and a row is too much
        self.cell_rows(row, cell, 1.0, -room, room, (np.arange(n), size, -targets))

    def hold_limits(self, problem: Problem) -> None:
        """Limit the sizes of groups, and the rows of cells that share a limit."""
        least = self.cells.group_least
        chosen = np.flatnonzero(least > 0)
        if len(chosen):
            row, cell = np.repeat(np.arange(len(chosen)), self.k), self._cells_of(chosen).ravel()
            self.cell_rows(
                row, cell, 1.0, least[chosen].astype(float), np.full(len(chosen), np.inf)
            )
        for limit in problem.coupling:
            cell, factor = limit.coefficients
            row, low, high = np.zeros(len(cell), int), np.array([limit.low]), np.array([limit.high])
            if limit.of_additions:
                self.rows(row, cell, factor, low, high)
            else:
                self.cell_rows(row, cell, factor, low, high)

    def balance(self, box: Box, inside: float, fixed: Whole | None = None) -> None:
        """Keep the label frequencies of the table in a box; ``fixed`` rows are outside the model."""
        k = self.k
        cell = np.tile(np.arange(self.n), k)
        row = np.repeat(np.arange(k), self.n)
        own = (cell % k == row).astype(float)
        fixed = np.zeros(k, np.int64) if fixed is None else fixed
        for share, sign in ((box.high, 1), (box.low, -1)):
            others = sign * (fixed - share * float(fixed.sum()))
            low = np.full(k, -np.inf)
            self.cell_rows(row, cell, sign * (own - share[row]), low, -inside - others)

    def follow(self, problem: Problem, corridor: Corridor) -> None:
        """Relate groups to the table's own label frequencies, by a linear relaxation.

        An auxiliary variable per cell stands for the product of its group's size and its label's
        own frequency. These products add up to the sizes and to the rows of the labels, and lie in
        McCormick's envelope for the bounds on frequencies and shares.
        """
        n, k = self.n, self.k
        g = n // k
        cell = np.arange(n)
        group, label = cell // k, cell % k
        product, size = self.variables(n), self.variables(g)
        total, everything = self.variables(k), self.variables(1)
        for of, helper, many in ((group, size, g), (label, total, k), (0 * cell, everything, 1)):
            own = (np.arange(many), helper, -1.0)
            self.cell_rows(of, cell, 1.0, np.zeros(many), np.zeros(many), own)
        for of, helper, many in ((group, size, g), (label, total, k)):
            i = np.concatenate([of, np.arange(many)])
            j = np.concatenate([product, helper])
            value = np.concatenate([np.ones(n), -np.ones(many)])
            self.rows(i, j, value, np.zeros(many), np.zeros(many))
        where = (product, size[group], total[label], np.repeat(everything, n))
        self._envelope(where, corridor, group, label)
        self._hold_products(problem, product, size)

    def _envelope(self, where: Any, corridor: Corridor, group: Any, label: Any) -> None:
        """W ≥ f·M + s·(T − f·N) at both lower and both upper ends, and ≤ at the mixed ones."""
        free = np.full(self.n, np.inf)
        for f, s, sign in (
            (corridor.box.low, corridor.least, 1),
            (corridor.box.high, corridor.most, 1),
            (corridor.box.high, corridor.least, -1),
            (corridor.box.low, corridor.most, -1),
        ):
            parts = (np.ones(self.n), -f[label], -s[group], s[group] * f[label])
            self.rows(
                np.tile(np.arange(self.n), 4),
                np.concatenate(where),
                sign * np.concatenate(parts),
                np.zeros(self.n),
                free,
            )

    def _hold_products(self, problem: Problem, product: Any, size: Any) -> None:
        """Keep the rows of judged groups within the limits that their products set."""
        k, edges, coarse = self.k, problem.edges, problem.coarse_edges
        held = [(np.array([line]), edges.take(line)) for line in np.flatnonzero(problem.judged)]
        held += [(j.lines, coarse.take(number)) for number, j in enumerate(problem.coarse)]
        for lines, edge in held:
            cell = (lines[:, None] * k + np.arange(k)).ravel()
            row = np.tile(np.arange(k), len(lines))
            each = np.repeat(np.arange(k), len(lines))
            i, j = (
                np.concatenate([row, each]),
                np.concatenate([product[cell], np.tile(size[lines], k)]),
            )
            for sign, slope, shift in (
                (1, edge.high, edge.high_shift),
                (-1, edge.low, edge.low_shift),
            ):
                value = -sign * np.concatenate([slope[row], shift[each]])
                low, high = np.full(k, -np.inf), np.zeros(k)
                self.cell_rows(row, cell, float(sign), low, high, (i, j, value))

    def solve(self, *, time_limit: float, gap: float, nodes: int | None) -> Coupled:
        """Solve the model with HiGHS."""
        if self.impossible:
            return Coupled(None, math.inf)
        return self._read(self.run(whole=True, time_limit=time_limit, gap=gap, nodes=nodes))

    def relaxed(self) -> float:
        """The lowest cost of real-valued rows."""
        if self.impossible:
            return math.inf
        result = self.run(whole=False)
        if result.columns is not None:
            return result.cost
        return math.inf if result.status == "infeasible" else 0.0  # without an answer no bound

    def run(
        self,
        *,
        whole: bool,
        time_limit: float = math.inf,
        gap: float = 0.0,
        nodes: int | None = None,
    ) -> Answer:
        """Solve the model in whole or in real numbers."""
        rest = self.columns - 2 * self.n
        model = LinearModel(
            np.concatenate([self.price, np.zeros(rest)]),
            low=np.concatenate([self.add_low, np.zeros(self.n + rest)]),
            high=np.concatenate([self.add_high, self.drop_high, np.full(rest, np.inf)]),
        )
        if self.height:
            i, j, value, low, high = (
                np.concatenate(part) for part in zip(*self.parts, strict=True)
            )
            model.add_rows(i, j, value, low=low, high=high)
        if whole:
            model.whole(np.arange(2 * self.n))
        return model.solve(time_limit=max(time_limit, 0.05), gap=gap, nodes=nodes)

    def _read(self, result: Answer) -> Coupled:
        if result.status == "infeasible":
            return Coupled(None, math.inf)
        bound = max(result.bound - 1e-6, 0.0) if math.isfinite(result.bound) else -math.inf
        if result.columns is None:
            return Coupled(None, bound, timed_out=True)
        change = np.rint(result.columns[: 2 * self.n]).astype(np.int64)
        rows = self.cells.have + (change[: self.n] - change[self.n :]).reshape(
            self.cells.have.shape
        )
        return Coupled(rows, bound, timed_out=result.status == "limit")


def far_away(problem: Problem, centre: Real) -> float:
    """More rows than a plan adds to a cell."""
    rates = (problem.ratios * centre)[problem.ratios * centre > 0]
    far = 100.0 * (problem.have.sum() + problem.cells.least.sum() + len(problem.cells))
    far += sum(limit.reach(int(problem.have.sum())) for limit in problem.coupling)
    far += 100 / (max(problem.request.tolerance, 1e-3) * float(rates.min())) if len(rates) else 0.0
    return float(far)
