"""A mixed integer model of all groups together, built row by row and solved by HiGHS."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from equipoise.plans.cells import UNLIMITED, Band, Cells
from equipoise.plans.highs import solve_milp

if TYPE_CHECKING:
    from equipoise.plans.cells import Real, Whole
    from equipoise.plans.problem import Judged, Problem

_Entries: TypeAlias = tuple[Any, Any, Any]
"""Entries of a matrix: row, column, value."""


@dataclass(frozen=True, eq=False)
class Coupled:
    """The rows of each cell, or None, with a lower bound of the cost; infinite if infeasible."""

    rows: Whole | None
    bound: float
    timed_out: bool = False


@dataclass(frozen=True, eq=False)
class Balance:
    """The range of the table's label frequencies; ``fixed`` rows are outside the model."""

    low: Real
    high: Real
    fixed: Whole


@dataclass(frozen=True, eq=False)
class Corridor:
    """The searched range of label frequencies, and of each group's share of the table."""

    low: Real
    high: Real
    least: Real
    most: Real


class RowModel:
    """A mixed integer model under construction: additions, deletions, and auxiliary variables."""

    def __init__(self, problem: Problem, centre: Real, tolerance: float) -> None:
        cells = problem.cells
        self.cells, self.n, self.k = cells, cells.have.size, cells.labels
        far = _far(problem, centre, tolerance)
        have = cells.have.ravel()
        most = cells.most.ravel()
        self.add_high = np.where(most >= UNLIMITED, far, (most - have).clip(0)).astype(float)
        self.add_low = (cells.least.ravel() - have).clip(0).astype(float)
        self.drop_high = (have - cells.least.ravel()).clip(0).astype(float)
        self.extra_low: list[Real] = []
        self.extra_high: list[Real] = []
        self.columns = 2 * self.n
        self.parts: list[tuple[Any, Any, Any, Any, Any]] = []
        self.impossible = bool((self.add_low > self.add_high).any())

    def variables(self, low: Real, high: Real) -> Any:
        """Add real-valued auxiliary variables, and return their indices."""
        start = self.columns
        self.extra_low.append(low)
        self.extra_high.append(high)
        self.columns += len(low)
        return np.arange(start, self.columns)

    def rows(self, i: Any, j: Any, value: Any, low: Any, high: Any) -> None:
        """Add constraints by their entries (row, column, value) and bounds."""
        self.parts.append((np.asarray(i), np.asarray(j), np.asarray(value, float), low, high))

    def cell_rows(self, i: Any, cell: Any, value: Any, low: Any, high: Any) -> None:
        """Add constraints on the final rows of cells; present rows move to the bounds."""
        i, cell = np.asarray(i), np.asarray(cell)
        value = np.broadcast_to(np.asarray(value, float), i.shape)
        offset = np.bincount(i, value * self.cells.have.ravel()[cell], minlength=len(low))
        both = np.concatenate([i, i]), np.concatenate([cell, cell + self.n])
        self.rows(*both, np.concatenate([value, -value]), low - offset, high - offset)

    def hold_finest(self, lines: Any, band: Band, inside: float) -> None:
        """Keep the label rates of groups inside a band."""
        k = self.k
        g = len(lines)
        cell = lines[:, None, None] * k + np.arange(k)[None, None, :]  # group, row's label, column
        row = np.broadcast_to(
            np.arange(g)[:, None, None] * k + np.arange(k)[None, :, None], (g, k, k)
        )
        cell = np.broadcast_to(cell, (g, k, k))
        own = np.eye(k)[None]
        for share, sign in ((band.high, 1), (band.low, -1)):
            value = sign * (own - share[:, :, None])
            unbounded = np.full(g * k, -np.inf)
            self.cell_rows(
                row.ravel(), cell.ravel(), value.ravel(), unbounded, np.full(g * k, -inside)
            )

    def hold_coarse(self, membership: Any, band: Band, inside: float) -> None:
        """Keep coarser groups inside a band, with their sums as auxiliary variables."""
        k, c = self.k, membership.shape[0]
        sums = self.variables(np.zeros(c * k), np.full(c * k, np.inf))
        entry = membership.tocoo()
        row = (entry.coords[0][:, None] * k + np.arange(k)).ravel()
        cell = (entry.coords[1][:, None] * k + np.arange(k)).ravel()
        have = np.bincount(row, self.cells.have.ravel()[cell], minlength=c * k)
        i = np.concatenate([row, row, np.arange(c * k)])
        j = np.concatenate([cell, cell + self.n, sums])
        value = np.concatenate([np.ones(len(row)), -np.ones(len(row)), -np.ones(c * k)])
        self.rows(i, j, value, -have, -have)
        of_group = sums.reshape(c, k)
        row = np.broadcast_to(
            np.arange(c)[:, None, None] * k + np.arange(k)[None, :, None], (c, k, k)
        )
        column = np.broadcast_to(of_group[:, None, :], (c, k, k))
        for share, sign in ((band.high, 1), (band.low, -1)):
            value = sign * (np.eye(k)[None] - share[:, :, None])
            self.rows(
                row.ravel(),
                column.ravel(),
                value.ravel(),
                np.full(c * k, -np.inf),
                np.full(c * k, -inside),
            )

    def round_to(self, lines: Any, targets: Real) -> None:
        """Keep groups less than a row away from a multiple of their targets."""
        size = self.variables(np.zeros(len(lines)), np.full(len(lines), np.inf))
        k, g = self.k, len(lines)
        cell = (lines[:, None] * k + np.arange(k)).ravel()
        self._near(np.arange(g * k), cell, np.repeat(size, k), targets.ravel(), g * k)

    def round_group(self, judged: Judged, targets: Real) -> None:
        """The same for the sums of a coarser group."""
        size = self.variables(np.zeros(1), np.full(1, np.inf))
        k, g = self.k, len(judged.lines)
        cell = (judged.lines[:, None] * k + np.arange(k)).ravel()
        self._near(np.tile(np.arange(k), g), cell, np.repeat(size, k), targets, k)

    def _near(self, row: Any, cell: Any, size: Any, targets: Real, n: int) -> None:
        have = np.bincount(row, self.cells.have.ravel()[cell], minlength=n)
        i = np.concatenate([row, row, np.arange(n)])
        j = np.concatenate([cell, cell + self.n, size])
        value = np.concatenate([np.ones(len(row)), -np.ones(len(row)), -targets])
        room = 1 - 1e-5
        self.rows(i, j, value, -room - have, room - have)

    def hold_limits(self, problem: Problem) -> None:
        """Limit the sizes of groups, and the cells that share a limit."""
        self._hold_sizes(problem.cells)
        for limit in problem.coupling:
            low, high = -np.inf, float(limit.rows)
            if limit.kind != "available":
                offset = problem.have.ravel()[limit.cells].sum()
                offset += problem.aside if limit.kind in ("min_rows", "max_rows") else 0
                low, high = (
                    (-np.inf, high - offset)
                    if limit.kind == "max_rows"
                    else (
                        high - offset,
                        np.inf,
                    )
                )
            self._hold_rows(limit.cells, low, high, additions_only=limit.kind == "available")

    def _hold_sizes(self, cells: Cells) -> None:
        """Limit the sizes of groups."""
        chosen = np.flatnonzero((cells.group_least > 0) | (cells.group_most < UNLIMITED))
        if not len(chosen):
            return
        k = self.k
        row = np.repeat(np.arange(len(chosen)), k)
        cell = (chosen[:, None] * k + np.arange(k)).ravel()
        most = cells.group_most[chosen]
        high = np.where(most >= UNLIMITED, np.inf, most.astype(float))
        self.cell_rows(row, cell, 1.0, cells.group_least[chosen].astype(float), high)

    def _hold_rows(self, cells: Any, low: float, high: float, *, additions_only: bool) -> None:
        """Limit the changes of cells, or the additions to them."""
        columns, value = cells, np.ones(len(cells))
        if not additions_only:
            columns = np.concatenate([cells, cells + self.n])
            value = np.concatenate([value, -value])
        self.rows(np.zeros(len(columns), int), columns, value, np.array([low]), np.array([high]))

    def balance(self, balance: Balance, inside: float) -> None:
        """Limit the label frequencies of the table."""
        k = self.k
        cell = np.tile(np.arange(self.n), k)
        row = np.repeat(np.arange(k), self.n)
        own = (cell % k == row).astype(float)
        total = float(balance.fixed.sum())
        for share, sign in ((balance.high, 1), (balance.low, -1)):
            fixed = sign * (balance.fixed - share * total)
            low = np.full(k, -np.inf)
            self.cell_rows(row, cell, sign * (own - share[row]), low, -inside - fixed)

    def mixed_rows(self, cells: _Entries, helpers: _Entries, low: Real, high: Real) -> None:
        """Add constraints on the final rows of cells and on auxiliary variables."""
        i, cell, value = cells
        value = np.broadcast_to(np.asarray(value, float), np.shape(i))
        offset = np.bincount(i, value * self.cells.have.ravel()[cell], minlength=len(low))
        self.rows(
            np.concatenate([i, i, helpers[0]]),
            np.concatenate([cell, cell + self.n, helpers[1]]),
            np.concatenate([value, -value, np.broadcast_to(helpers[2], np.shape(helpers[0]))]),
            low - offset,
            high - offset,
        )

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
        product = self.variables(np.zeros(n), np.full(n, np.inf))
        size = self.variables(np.zeros(g), np.full(g, np.inf))
        total = self.variables(np.zeros(k), np.full(k, np.inf))
        everything = self.variables(np.zeros(1), np.full(1, np.inf))
        for of, helper, many in ((group, size, g), (label, total, k), (0 * cell, everything, 1)):
            own = (np.arange(many), helper, -1.0)
            self.mixed_rows((of, cell, 1.0), own, np.zeros(many), np.zeros(many))
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
            (corridor.low, corridor.least, 1),
            (corridor.high, corridor.most, 1),
            (corridor.high, corridor.least, -1),
            (corridor.low, corridor.most, -1),
        ):
            one = np.ones(self.n)
            parts = (one, -f[label], -s[group], s[group] * f[label])
            self.rows(
                np.tile(np.arange(self.n), 4),
                np.concatenate(where),
                sign * np.concatenate(parts),
                np.zeros(self.n),
                free,
            )

    def _hold_products(self, problem: Problem, product: Any, size: Any) -> None:
        """Keep the rows of judged groups within the tolerance of their products."""
        k, request = self.k, problem.request
        finest = [
            (np.array([line]), problem.ratios[line]) for line in np.flatnonzero(problem.judged)
        ]
        for lines, ratios in [*finest, *((j.lines, j.k) for j in problem.coarse)]:
            cell = (lines[:, None] * k + np.arange(k)).ravel()
            row = np.tile(np.arange(k), len(lines))
            for sign in (1, -1):  # rows ≤ (1 + τ)·K·W or K·W + τ·M, and the same from below
                ub = request.tolerance_on == "ub"
                wide = ratios[row] * (1 + sign * request.tolerance * ub)
                i, j, value = row, product[cell], -sign * wide
                if not ub:
                    i = np.concatenate([row, np.repeat(np.arange(k), len(lines))])
                    j = np.concatenate([j, np.tile(size[lines], k)])
                    more = np.full(k * len(lines), -request.tolerance)
                    value = np.concatenate([value, more])
                self.mixed_rows(
                    (row, cell, float(sign)), (i, j, value), np.full(k, -np.inf), np.zeros(k)
                )

    def solve(self, *, time_limit: float, gap: float, nodes: int | None) -> Coupled:
        """Solve the model with HiGHS."""
        if self.impossible:
            return Coupled(None, math.inf)
        options: dict[str, Any] = {"time_limit": max(time_limit, 0.05), "mip_rel_gap": gap}
        if nodes is not None:
            options["node_limit"] = nodes
        return self._read(self.run(options, whole=True))

    def relaxed(self) -> float:
        """The lowest cost of real-valued rows."""
        if self.impossible:
            return math.inf
        result = self.run({}, whole=False)
        if result.x is not None:
            return float(result.fun)
        return math.inf if result.status == 2 else 0.0  # without an answer there is no bound

    def run(self, options: dict[str, Any], *, whole: bool) -> Any:
        """Solve the model in whole or in real numbers."""
        from scipy import sparse
        from scipy.optimize import Bounds, LinearConstraint

        low = np.concatenate([self.add_low, np.zeros(self.n), *self.extra_low])
        high = np.concatenate([self.add_high, self.drop_high, *self.extra_high])
        costs = np.zeros(self.columns)
        costs[: self.n], costs[self.n : 2 * self.n] = (
            self.cells.add.ravel(),
            self.cells.drop.ravel(),
        )
        integrality = np.zeros(self.columns, np.int64)
        integrality[: 2 * self.n] = whole
        row_low, row_high, i, start = [], [], [], 0
        for part in self.parts:
            i.append(part[0] + start)
            start += len(part[3])
            row_low.append(np.asarray(part[3], float))
            row_high.append(np.asarray(part[4], float))
        constraints = []
        if start:
            j = np.concatenate([p[1] for p in self.parts])
            value = np.concatenate([p[2] for p in self.parts])
            matrix = sparse.csr_array((value, (np.concatenate(i), j)), shape=(start, self.columns))
            constraints = [
                LinearConstraint(matrix, np.concatenate(row_low), np.concatenate(row_high))
            ]
        return solve_milp(
            costs,
            integrality=integrality,
            bounds=Bounds(low, high),
            constraints=constraints,
            options=options,
        )

    def _read(self, result: Any) -> Coupled:
        if result.status == 2:
            return Coupled(None, math.inf)
        bound = getattr(result, "mip_dual_bound", None)
        bound = -math.inf if bound is None or not math.isfinite(bound) else max(bound - 1e-6, 0.0)
        if result.x is None:
            return Coupled(None, bound, timed_out=True)
        change = np.rint(result.x[: 2 * self.n]).astype(np.int64)
        rows = self.cells.have + (change[: self.n] - change[self.n :]).reshape(
            self.cells.have.shape
        )
        return Coupled(rows, bound, timed_out=result.status == 1)


def _far(problem: Problem, centre: Real, tolerance: float) -> float:
    """More rows than a plan adds to a cell."""
    rates = (problem.ratios * centre)[problem.ratios * centre > 0]
    far = 100.0 * (problem.have.sum() + problem.cells.least.sum() + len(problem.cells))
    far += sum(4.0 * limit.rows for limit in problem.coupling if limit.rows < UNLIMITED / 1e3)
    far += 100 / (max(tolerance, 1e-3) * float(rates.min())) if len(rates) else 0.0
    return float(far)
