"""Mixed-integer model of the choice for HiGHS, and bounds from its relaxation."""

from __future__ import annotations

import functools
import math
import time
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise.lake.cover.supply import CLOSE, CoverLimits, Supply
from equipoise.plans.highs import LinearModel

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from equipoise.lake.cover.worth import Real, Whole


@dataclass(frozen=True)
class Clock:
    """Time limit of HiGHS, from now on."""

    seconds: float
    start: float = field(default_factory=time.monotonic)

    @property
    def left(self) -> float:
        """Number of seconds left."""
        return max(0.0, self.seconds - (time.monotonic() - self.start))

    def part(self, share: float) -> Clock:
        """Return a clock with a share of the time left."""
        return Clock(self.left * share)


@dataclass(frozen=True, eq=False)
class CoverAnswer:
    """Result of HiGHS: rows, if any, and a bound on the objective."""

    bound: float
    take: Whole | None = None
    timed_out: bool = False


@dataclass(frozen=True, eq=False)
class CoverRelaxation:
    """Dual costs of a row of each cell, if fractions of tables could be opened.

    By weak duality any such costs give a valid bound, whatever the tolerances of the solver.
    """

    supply: Supply
    row_costs: Real

    @classmethod
    def of(cls, supply: Supply) -> CoverRelaxation:
        """Solve the model without integrality."""
        model = build(supply, CoverLimits(), cover=True)
        answer = model.in_reals(model.cost)
        if answer.x is None:
            return cls(supply, np.zeros(len(supply.need)))
        dual = -answer.ineqlin.marginals[: len(supply.need)] / supply.need
        every = supply.per_row[0] if supply.same_row_cost else 0.0
        return cls(supply, np.maximum(dual + every, 0.0))

    @functools.cached_property
    def bound(self) -> float:
        """Lower bound on the cost of a cover, rounded up to whole tables if all cost the same."""
        supply, fixed = self.supply, self.supply.fixed
        if not supply.same_row_cost or (fixed != fixed[0]).any() or not fixed[0]:
            return self._sum
        of_rows = supply.per_row[0] * supply.need.sum()
        # The sum may exceed a whole number of tables by rounding alone, hence the small deduction.
        return float(of_rows + math.ceil((self._sum - of_rows) / fixed[0] - 1e-6) * fixed[0])

    @functools.cached_property
    def _sum(self) -> float:
        return float(self.supply.need @ self.row_costs + np.minimum(0.0, self._reduced).sum())

    @functools.cached_property
    def _reduced(self) -> Real:
        """Reduced cost of each table: its cost minus the value of its rows at the dual costs."""
        saved = np.minimum(0.0, self.supply.per_row[:, None] - self.row_costs)
        return np.asarray(self.supply.fixed + (self.supply.rows * saved).sum(axis=1))

    def prices(self) -> list[Real]:
        """Return prices for greedy choices, none of them zero, which would leave a cell out."""
        dual = self.row_costs
        first = np.maximum(dual, dual.max() * 1e-6) if dual.any() else np.ones(len(dual))
        return [first, 1.0 / self.supply.need]

    def cheaper(self, cost: float, clock: Clock, limits: CoverLimits) -> CoverAnswer:
        """Search with HiGHS for a cover within limits that costs less than a known one."""
        slack = cost * (1 + CLOSE) - self._sum
        kept = np.flatnonzero(self._reduced <= slack)
        forced = np.flatnonzero(-self._reduced[kept] > slack)
        model = build(self.supply.of(kept), limits, cover=True)
        model.low[model.first_table + forced] = 1.0
        answer = model.cheapest(cost, clock)
        # Tables were fixed by their reduced costs: other selections are no cheaper than the known one.
        answer = replace(answer, bound=min(answer.bound, cost))
        if answer.take is None:
            return answer
        take = np.zeros_like(self.supply.rows)
        take[kept] = answer.take
        return replace(answer, take=take)


@dataclass(frozen=True, eq=False, kw_only=True)
class CoverModel:
    """LinearModel ``matrix @ columns <= right`` with bounds low and high, and some integer columns.

    The first columns are rows of a cell, in units. Then come the tables, 1 if open, and, if the
    share of a table is limited, the maximum number of rows from one table.
    """

    supply: Supply
    cell: Whole
    unit: Real
    cost: Real
    matrix: Any
    right: Real
    low: Real
    high: Real
    whole: NDArray[np.bool_]
    shared: bool = False

    @property
    def first_table(self) -> int:
        """Index of the first column that is a table."""
        return len(self.cell)

    @property
    def _rows(self) -> Real:
        """Number of rows in a unit of each column; none in tables."""
        return np.concatenate([self.unit, np.zeros(len(self.cost) - len(self.unit))])

    def largest(self, clock: Clock) -> CoverAnswer:
        """Maximize the number of rows."""
        answer = self._solve(-self._rows, clock)
        return replace(answer, bound=-answer.bound)

    def cheapest(self, known: float, clock: Clock) -> CoverAnswer:
        """Minimize the cost, given the cost of a known solution."""
        # HiGHS also stops at an absolute gap, which must be small compared with the cost.
        scale = 1e3 / known if known > 0 else 1.0
        answer = self._solve(self.cost * scale, clock)
        return replace(answer, bound=answer.bound / scale)

    def at_least(self, rows: float) -> CoverModel:
        """Return the model of at least this number of rows."""
        top = self._rows.max()
        return self.held(-self._rows[None] / top, -rows / top * (1 - CLOSE))

    def held(self, lines: Any, right: ArrayLike) -> CoverModel:
        """Return the model with more constraints."""
        from scipy import sparse

        matrix = sparse.vstack([self.matrix, sparse.csr_array(lines)], format="csr")
        return replace(self, matrix=matrix, right=np.append(self.right, right))

    def _solve(self, objective: Real, clock: Clock) -> CoverAnswer:
        seconds = clock.left
        if seconds <= 0:
            return CoverAnswer(bound=self._relaxed(objective), timed_out=True)
        model, entry = LinearModel(objective, low=self.low, high=self.high), self.matrix.tocoo()
        free = np.full(len(self.right), -np.inf)
        i, j = entry.coords
        model.add_rows(i, j, entry.data, low=free, high=self.right)
        model.whole(np.flatnonzero(self.whole))
        found = model.solve(time_limit=seconds)
        bound, timed_out = found.bound, found.status == "limit"
        if not math.isfinite(bound):
            bound = self._relaxed(objective)
        columns = found.columns
        take = None if columns is None else self._read(self._whole_rows(columns))
        return CoverAnswer(bound, take, timed_out=timed_out)

    def _relaxed(self, objective: Real) -> float:
        """Bound the objective by the relaxation, if HiGHS had no time for the integer model."""
        found = self.in_reals(objective)
        return -math.inf if found.x is None else float(found.fun)

    def in_reals(self, objective: Real) -> Any:
        """Minimize an objective without integrality; the simplex method ends at a vertex."""
        from scipy.optimize import linprog

        solve: Any = linprog  # its stubs do not know sparse matrices
        bounds = np.column_stack([self.low, self.high])
        return solve(objective, self.matrix, self.right, bounds=bounds, method="highs-ds")

    def _whole_rows(self, columns: Real) -> Real:
        """Fix the tables and solve for the rows: vertices of this transport problem are integer."""
        if not self.shared or self.whole.all():
            return columns
        tables, low, high = slice(self.first_table, -1), self.low.copy(), self.high.copy()
        low[tables] = high[tables] = np.rint(columns[tables])
        found = replace(self, low=low, high=high).in_reals(self.cost)
        return columns if found.x is None else np.asarray(found.x)

    def _read(self, columns: Real) -> Whole:
        supply, first = self.supply, self.first_table
        rows = columns[:first] * self.unit
        if self.shared:
            take = np.zeros_like(supply.rows)
            take[np.nonzero(supply.rows)] = np.rint(rows)
            return take
        tables = np.flatnonzero(columns[first:] > 0.5)
        found = np.rint(np.bincount(self.cell, rows, len(supply.need))).astype(np.int64)
        return supply.fill(tables, np.minimum(found, supply.need))


def build(supply: Supply, limits: CoverLimits, *, cover: bool = False) -> CoverModel:
    """Build the model of a choice within limits; with ``cover`` the whole need must be met."""
    shared = limits.share < math.inf
    if supply.same_row_cost and not shared:
        model = _by_cell(supply, cover=cover)
    else:
        model = _by_pair(supply, cover=cover and not shared)
    if limits.tables < math.inf:
        is_table = np.arange(len(model.cost)) >= model.first_table
        model = model.held(is_table[None].astype(np.float64), limits.tables)
    if limits.budget < math.inf:
        scale = limits.budget or 1.0
        model = model.held(model.cost[None] / scale, limits.budget / scale)
    if not shared:
        return model
    model = _shared(model, limits)
    if cover:
        # If the whole need is met, the share is a fixed number of rows, and integer rows follow.
        model.low[-1], model.whole[: model.first_table] = model.high[-1], False
        g = len(supply.need)
        model = model.held(-model.matrix[:g], -np.ones(g))
    return model


def _by_cell(supply: Supply, *, cover: bool) -> CoverModel:
    """Build the model with one column for the rows of a cell from all tables."""
    from scipy import sparse

    (n, g), need = supply.rows.shape, supply.need.astype(np.float64)
    offered = sparse.csr_array(-(supply.rows / need).T)
    return CoverModel(
        supply=supply,
        cell=np.arange(g),
        unit=np.ones(g),
        cost=np.concatenate([np.full(g, supply.per_row[0]), supply.fixed]),
        matrix=sparse.hstack([sparse.diags_array(1 / need), offered], format="csr"),
        right=np.zeros(g),
        low=np.concatenate([need if cover else np.zeros(g), np.zeros(n)]),
        high=np.concatenate([need, np.ones(n)]),
        whole=np.ones(g + n, dtype=bool),
    )


def _by_pair(supply: Supply, *, cover: bool) -> CoverModel:
    """Build the model with one column for the rows of a cell from a table.

    In a cover the unit is all rows that the table has; integer rows follow from the tables.
    """
    from scipy import sparse

    n, g = supply.rows.shape
    table, cell = np.nonzero(supply.rows)
    p, each = len(table), np.arange(len(table))
    has = supply.rows[table, cell].astype(np.float64)
    unit, sign = (has, -1.0) if cover else (np.ones(p), 1.0)
    of_cell = sparse.csr_array((sign * unit / supply.need[cell], (cell, each)), shape=(g, p + n))
    entries = np.concatenate([unit / has, -np.ones(p)])
    places = np.concatenate([each, each]), np.concatenate([each, p + table])
    if_open = sparse.csr_array((entries, places), shape=(p, p + n))
    return CoverModel(
        supply=supply,
        cell=cell,
        unit=unit,
        cost=np.concatenate([supply.per_row[table] * unit, supply.fixed]),
        matrix=sparse.vstack([of_cell, if_open], format="csr"),
        right=np.concatenate([np.full(g, sign), np.zeros(p)]),
        low=np.zeros(p + n),
        high=np.concatenate([has / unit, np.ones(n)]),
        whole=np.concatenate([np.full(p, not cover), np.ones(n, dtype=bool)]),
    )


def _shared(model: CoverModel, limits: CoverLimits) -> CoverModel:
    """Limit the rows of each table, in an additional column, to a share of all rows."""
    from scipy import sparse

    (table, _), n, p = np.nonzero(model.supply.rows), len(model.supply.rows), model.first_table
    most = float(limits.most(int(model.supply.need.sum())))
    of_table = sparse.csr_array((np.ones(p), (table, np.arange(p))), shape=(n, p))
    of_all = np.full((1, p), -limits.share * (1 + CLOSE))
    wider = replace(
        model,
        cost=np.append(model.cost, 0.0),
        matrix=sparse.hstack([model.matrix, sparse.csr_array((len(model.right), 1))]),
        low=np.append(model.low, 0.0),
        high=np.append(model.high, most),
        whole=np.append(model.whole, True),
        shared=True,
    )
    # The second line is redundant for integer tables, but tightens the relaxation.
    lines: Any = [
        [of_table, sparse.csr_array((n, n)), -np.ones((n, 1))],
        [of_table, -most * sparse.eye_array(n), None],
        [of_all, None, np.ones((1, 1))],
    ]
    return wider.held(sparse.block_array(lines), np.zeros(2 * n + 1))
