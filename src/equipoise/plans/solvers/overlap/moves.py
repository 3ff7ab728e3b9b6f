"""Whole rows near a real-valued plan, by moves of single rows.

A move adds a row, deletes one, or exchanges one for a row of another label of the same group. What
breaks a limit has a price, and the move that lowers cost and price most is made. Where no move
does, the price of every broken limit rises; once nothing is broken, all prices fall, so that the
search goes on to cheaper rows. All moves of all groups are evaluated at once.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise.plans.solvers.overlap.groups import folded

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from equipoise.plans.cells import Band, Cells, Real, Whole
    from equipoise.plans.limits import Limit
    from equipoise.plans.problem import Problem
    from equipoise.plans.solvers.overlap.groups import Groups
    from equipoise.plans.solvers.overlap.relaxation import Prices, RelaxedChanges

BROKEN = 1e-9
"""A limit broken by less, in rows, may hold; the judge decides."""

RESTING = 10
"""Number of steps during which a move is not taken back."""

RISING, FALLING = 1.3, 0.9
"""Factors for the prices of broken limits, and for all prices once nothing is broken."""

FIRST, PATIENCE = 20_000, 400
"""Number of moves until whole rows must be found, and after the last that were cheaper."""

MORE = 5
"""How much more patience a search has that must reach a gap."""

DEARER = 1.3
"""The price of a broken limit to begin with, relative to what breaking it by a row would save."""

HIGHEST = 1e12
"""The highest price of a broken limit."""

EXCHANGED = 6
"""Maximum number of labels with which rows are exchanged in one move."""


@dataclass(frozen=True, eq=False)
class RowLimits:
    """What rows must keep: shares of groups in bands, and the table's shares in the last band."""

    problem: Problem
    inside: Any  # sparse, groups (the whole table last) × lines
    normals: Real  # group × limit × label: the sums of a group times these must not be above 0

    @classmethod
    def of(cls, problem: Problem, groups: Groups, band: Band, table: Band | None) -> RowLimits:
        """Make a frame of bands at fixed label frequencies; ``table`` has one line."""
        from scipy import sparse

        inside, low, high = groups.inside, band.low, band.high
        if table is not None:
            everything = sparse.csr_array(np.ones((1, inside.shape[1])))
            inside = sparse.vstack([inside, everything]).tocsr()
            low, high = np.concatenate([low, table.low]), np.concatenate([high, table.high])
        return cls(problem, inside, _normals(type(band)(low, high)))


def _normals(band: Band) -> Real:
    k = band.low.shape[1]
    if k == 2:
        band = folded(band)
    eye = np.eye(k)
    normals = np.concatenate([eye - band.high[:, :, None], band.low[:, :, None] - eye], axis=1)
    return np.asarray(normals[:, [0, 2]] if k == 2 else normals)


def settle(
    problem: Problem, groups: Groups, band: Band, start: RelaxedChanges
) -> tuple[RelaxedChanges, NDArray[np.intp]]:
    """Take the cheapest whole rows of judged finest groups that rounding puts out of their band.

    For few rows, those within a small tolerance are far from any real-valued ones, and no single
    moves lead there. Returns the lines that were settled as well.
    """
    lines = np.flatnonzero(problem.judged)
    if start.rows is None or not len(lines):
        return start, lines[:0]
    rounded = np.rint(start.rows[lines])
    size = rounded.sum(axis=1, keepdims=True)
    own = band.take(np.arange(len(lines)))
    out = ((rounded > own.high * size + BROKEN) | (rounded < own.low * size - BROKEN)).any(axis=1)
    alone = groups.alone(problem, band)
    out &= np.isfinite(alone.costs)
    rows = start.rows.copy()
    rows[lines[out]] = alone.rows[out]
    return replace(start, rows=rows), lines[out]


def moves_of(k: int) -> NDArray[np.int64]:
    """All moves of a group: rows of each label more or less."""
    eye = np.eye(k, dtype=np.int64)
    moves = [*eye, *-eye]
    if k <= EXCHANGED:
        moves += [a - b for a in eye for b in eye if (a != b).any()]
    return np.array(moves)


class Walk:
    """A walk from move to move, which keeps the cheapest rows that pass a test."""

    def __init__(
        self,
        frame: RowLimits,
        start: RelaxedChanges,
        *,
        accepts: Callable[[Whole], bool],
        deadline: float = math.inf,
        settled: Any = (),
    ) -> None:
        problem = frame.problem
        self.frame, self.problem, self.cells = frame, problem, problem.cells
        self.accepts, self.deadline = accepts, deadline
        self.moves = moves_of(self.cells.labels)
        self.back = [int((self.moves == -m).all(axis=1).argmax()) for m in self.moves]
        rows = self.cells.have if start.rows is None else np.rint(start.rows)
        self.rows = np.clip(rows, self.cells.least, self.cells.most).astype(np.int64)
        self.fill()
        self.lines = frame.inside.T.tocsr()  # line × groups
        self.sums = np.asarray(frame.inside @ self.rows.astype(float))
        self.steps = frame.normals @ self.moves.T  # group × limit × move
        self.prices, shared = self.first_prices(start.prices)
        self.shared = [
            _Shared(problem, limit, self.moves, price)
            for limit, price in zip(problem.coupling, shared.tolist(), strict=True)
        ]
        self.more, self.less = self.moves.clip(0), (-self.moves).clip(0)
        self.change_costs = np.array([self.costs_of(line) for line in range(len(self.cells))])
        self.rests = np.zeros(self.change_costs.shape, np.int64)
        self.settled = np.zeros((len(self.cells), 1), np.bool_)  # lines that stay as they are
        self.settled[list(settled)] = True
        self.best: Whole | None = None
        self.cost, self.done, self.late = math.inf, 0, False

    def first_prices(self, known: Prices | None) -> tuple[Real, Real]:
        """Above the prices of the linear model, so that breaking a limit does not pay."""
        usual, shape = typical_price(self.cells), self.frame.normals.shape[:2]
        none = np.full(len(self.problem.coupling), usual)
        if known is None:
            return np.full(shape, usual), none
        prices = known.groups
        if len(prices) < shape[0]:
            prices = np.concatenate([prices, known.table[None]])
        if self.cells.labels == 2:  # more of one label is less of the other
            prices = prices[:, :2] + prices[:, [3, 2]]
        return np.maximum(DEARER * prices, usual), np.maximum(DEARER * known.shared, none)

    def fill(self) -> None:
        """Give every group its least number of rows, label by label."""
        for y in np.argsort(-self.rows.sum(axis=0), kind="stable"):
            short = (self.cells.group_least - self.rows.sum(axis=1)).clip(0)
            self.rows[:, y] += np.minimum(short, self.cells.most[:, y] - self.rows[:, y])

    def run(self, *, first: int, patience: int, enough: float) -> Whole | None:
        """Walk until the cost is low enough.

        Without rows that pass it ends after ``first`` steps, with them ``patience`` steps after the
        last that were cheaper.
        """
        last = self.done + first
        while self.done < last and (self.best is None or self.cost > enough):
            self.late = time.monotonic() > self.deadline
            if self.late:
                break
            if self.step():
                last = self.done + patience
        return self.best

    def step(self) -> bool:
        """Make the best move; whether the rows before it were the cheapest that pass."""
        excess = np.einsum("glk,gk->gl", self.frame.normals, self.sums)
        broken = excess > BROKEN
        over = [limit.excess(self.rows) for limit in self.shared]
        better = False
        if not broken.any() and not any(o > 0 for o in over):
            better = self.keep()
            self.scale(FALLING)
        gain = self.gains(excess, over)
        line, move = divmod(int(gain.argmin()), len(self.moves))
        if gain[line, move] >= -1e-9:
            self.prices[broken] = np.minimum(RISING * self.prices[broken], HIGHEST)
            for limit, o in zip(self.shared, over, strict=True):
                limit.price *= RISING if o > 0 else 1.0
        self.done += 1
        if np.isfinite(gain[line, move]):
            self.make(line, move)
        return better

    def keep(self) -> bool:
        """Keep the rows if they pass and are the cheapest; whether they are."""
        cost = self.cells.total_cost(self.rows)
        if cost < self.cost - 1e-9 and self.accepts(self.rows):
            self.best, self.cost = self.rows.copy(), cost
            return True
        return False

    def scale(self, factor: float) -> None:
        """Change all prices by a factor."""
        self.prices *= factor
        for limit in self.shared:
            limit.price *= factor

    def gains(self, excess: Real, over: list[float]) -> Real:
        """What each move of each line adds to the cost and to the price of what is broken."""
        after = excess[:, :, None] + self.steps
        np.maximum(after, 0.0, out=after)
        after -= np.maximum(excess, 0.0)[:, :, None]
        priced = np.einsum("glm,gl->gm", after, self.prices)
        gain = self.lines @ priced + self.change_costs
        for limit, o in zip(self.shared, over, strict=True):
            gain += limit.priced(self.rows, o)
        gain = np.round(gain, 9)  # sums in another order must not choose another move
        gain[self.refused()] = np.inf
        return np.asarray(gain)

    def refused(self) -> Any:
        """Moves out of the bounds of cells and groups, and those taken back too soon."""
        cells, moves = self.cells, self.moves
        full, bare = self.rows >= cells.most, self.rows <= cells.least
        size = self.rows.sum(axis=1, keepdims=True)
        least = (size + moves.sum(axis=1)) < np.minimum(size, cells.group_least[:, None])
        out = (full @ (moves > 0).T) | (bare @ (moves < 0).T)
        return out | least | (self.rests > self.done) | self.settled

    def make(self, line: int, move: int) -> None:
        """Make a move, which is not taken back for a while."""
        self.rows[line] += self.moves[move]
        groups = self.lines.indices[self.lines.indptr[line] : self.lines.indptr[line + 1]]
        self.sums[groups] += self.moves[move]
        self.rests[line, self.back[move]] = self.done + RESTING
        self.change_costs[line] = self.costs_of(line)

    def costs_of(self, line: int) -> Real:
        """What each move of a line costs now."""
        cells, change = self.cells, self.rows[line] - self.cells.have[line]
        up = np.where(change >= 0, cells.add[line], -cells.drop[line])
        down = np.where(change <= 0, cells.drop[line], -cells.add[line])
        return np.asarray(self.more @ up + self.less @ down)


class _Shared:
    """A limit that groups share, as a part of the price of moves."""

    def __init__(self, problem: Problem, limit: Limit, moves: Any, price: float) -> None:
        self.problem, self.limit, self.moves, self.price = problem, limit, moves, price
        cells, factor = limit.coefficients
        each = np.zeros(problem.have.size)
        each[cells] = factor
        self.factor = each.reshape(problem.have.shape)

    def excess(self, rows: Whole) -> float:
        return -float(self.problem.slack(self.limit, rows))

    def priced(self, rows: Whole, over: float) -> Real:
        limit, have = self.limit, self.problem.have
        effect = self.factor @ self.moves.T
        if limit.of_additions:
            more, less = self.factor * (rows >= have), self.factor * (rows > have)
            effect = more @ self.moves.clip(0).T + less @ self.moves.clip(None, 0).T
        value = float(limit.value(rows, have)) + effect
        broken = np.maximum(limit.low - value, value - limit.high)
        return np.asarray(self.price * (np.maximum(broken, 0) - max(over, 0)))


def walk_from(
    problem: Problem,
    groups: Groups,
    band: Band,
    start: RelaxedChanges,
    *,
    table: Band | None,
    accepts: Callable[[Whole], bool],
    deadline: float,
    effort: float,
    enough: float,
) -> Walk:
    """Make whole rows of real-valued ones, with the groups in a band and the labels in another.

    Lines that are settled first are left alone, unless that finds nothing.
    """
    frame = RowLimits.of(problem, groups, band, table)
    start, settled = settle(problem, groups, band, start)
    first = first_moves(problem.have.size, effort)
    for held in (settled, settled[:0]) if len(settled) else (settled,):
        walk = Walk(frame, start, accepts=accepts, deadline=deadline, settled=held)
        walk.run(first=first, patience=patience_with(effort), enough=enough)
        if walk.best is not None or walk.late:
            break
    return walk


def first_moves(cells: int, effort: float) -> int:
    """Number of moves until whole rows must be found."""
    return max(int(min(effort, 1.0) * min(FIRST, 20 * cells)), 200)


def patience_with(effort: float) -> int:
    """Number of moves after the last cheaper rows."""
    return int(np.clip(PATIENCE * effort, 20, MORE * PATIENCE))


def typical_price(cells: Cells) -> float:
    """The price of a row to begin with: the usual cost of one."""
    costs = np.concatenate(
        [cells.add[cells.most > cells.have], cells.drop[cells.least < cells.have]]
    )
    costs = costs[costs > 0]
    return float(np.median(costs)) if costs.size else 1.0
