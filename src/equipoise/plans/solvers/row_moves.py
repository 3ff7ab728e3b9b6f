"""Whole rows near real ones, by adding and deleting single rows.

Every move is weighed against the table's own label frequencies, which it changes. All moves are
compared at once: a move changes the frequencies by its label and direction only, so the violation
of all groups is known for each of these, and only the group itself changes otherwise.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator

    from equipoise.plans.cells import Real, Whole
    from equipoise.plans.problem import Problem
    from equipoise.plans.solvers.box import Box

_EDGE = 1e-9  # rows; floats are not more exact, and the judge in fractions decides


class _Moves(NamedTuple):
    """For each label, direction and group: the violation afterwards, and the price."""

    broken: Real
    price: Real


class RowMoves:
    """The search for whole rows, with the arrays it needs."""

    def __init__(self, problem: Problem, box: Box) -> None:
        self.problem, self.box, self.cells = problem, box, problem.cells
        self.edges = problem.edges
        k = problem.cells.labels
        self.step = np.concatenate([np.eye(k, dtype=np.int64), -np.eye(k, dtype=np.int64)])
        self.limits = [_Limit(problem, limit) for limit in problem.coupling]
        self.offset = 1e-6 + max(float(problem.cells.add.max()), float(problem.cells.drop.max()))
        self.frozen: Any = np.zeros(len(problem.cells), np.bool_)  # groups that stay as they are

    # -------------------------------------------------------------------------- weighing

    def _broken(self, rows: Any, size: Any, share: Any) -> Real:
        """Rows by which groups break their limits at label frequencies; leading axes are free."""
        e = self.edges
        low = (e.low * share + e.low_shift) * size
        high = (e.high * share + e.high_shift) * size
        most = np.maximum(low - rows, rows - high)
        most[most < _EDGE] = 0
        return np.asarray(most.sum(axis=-1))

    def _outside(self, total: Any) -> Real:
        """Rows by which label totals lie outside of the box."""
        everything = total.sum(axis=-1, keepdims=True)
        over = np.maximum(self.box.low * everything - total, total - self.box.high * everything)
        over[over < _EDGE] = 0
        return np.asarray(over.sum(axis=-1))

    def violation(self, rows: Whole) -> float:
        """Rows by which a table breaks limits in all."""
        total = rows.sum(axis=0)
        groups = self._broken(rows, rows.sum(axis=1, keepdims=True), total / max(total.sum(), 1))
        short = (self.cells.group_least - rows.sum(axis=1)).clip(0).sum()
        shared = sum(limit.broken(rows) for limit in self.limits)
        return float(groups.sum() + self._outside(total) + short + shared)

    def _moves(self, rows: Whole, weight: Real) -> _Moves:
        cells, step = self.cells, self.step
        size = rows.sum(axis=1)
        totals = rows.sum(axis=0) + step  # of each label and direction
        share = (totals / np.maximum(totals.sum(axis=1, keepdims=True), 1))[:, None, :]
        others = self._broken(rows, size[:, None], share) * weight
        sign = step.sum(axis=1)
        grown = size + sign[:, None]
        own = self._broken(rows + step[:, None, :], grown[:, :, None], share) * weight
        broken = others.sum(axis=1, keepdims=True) - others + own
        broken += self._outside(totals)[:, None]
        short = (cells.group_least - size).clip(0)
        broken += short.sum() - short + (cells.group_least - grown).clip(0)
        for limit in self.limits:
            broken += limit.after(rows)
        up = np.where(rows < cells.have, -cells.drop, cells.add)
        down = np.where(rows > cells.have, -cells.add, cells.drop)
        price = np.concatenate(
            [
                np.where(rows < cells.most, up, np.inf).T,
                np.where(rows > cells.least, down, np.inf).T,
            ]
        )
        price[:, self.frozen] = np.inf
        return _Moves(broken, price)

    # -------------------------------------------------------------------------- searching

    def repair(self, rows: Whole, tries: int) -> Whole | None:
        """Move single rows until nothing is violated, the cheapest that helps most first."""
        weight = np.ones(len(rows))
        rows = rows.copy()
        last: dict[
            tuple[int, int], int
        ] = {}  # when a move was made last, so that it is not undone at once
        for turn in range(tries):
            now = self.violation(rows)
            if now <= 0:
                return rows
            moves = self._moves(rows, weight)
            total, size = rows.sum(axis=0), rows.sum(axis=1, keepdims=True)
            each = self._broken(rows, size, total / max(total.sum(), 1))
            gain = now + (each * (weight - 1)).sum() - moves.broken
            helps = gain > 1e-9
            worth = (moves.price + self.offset) / np.where(helps, gain, 1.0)
            merit = np.where(helps & np.isfinite(moves.price), worth, np.inf)
            v, g = np.unravel_index(int(merit.argmin()), merit.shape)
            if not np.isfinite(merit[v, g]):  # what stays violated counts more from now on
                weight += each > 0
                merit = moves.broken + np.where(np.isfinite(moves.price), 0.0, np.inf)
                for move, when in last.items():
                    if turn - when < 6:
                        merit[move] = np.inf
                v, g = np.unravel_index(int(merit.argmin()), merit.shape)
                if not np.isfinite(merit[v, g]):
                    return None
            rows[g] += self.step[v]
            last[(int(v) + len(self.step) // 2) % len(self.step), int(g)] = turn
        return rows if self.violation(rows) <= 0 else None

    def trim(self, rows: Whole, tries: int) -> Whole:
        """Undo changes that are not needed, one row at a time, the dearest first."""
        ones = np.ones(len(rows))
        for _ in range(tries):
            moves = self._moves(rows, ones)
            merit = np.where(moves.broken <= 0, moves.price, np.inf)
            v, g = np.unravel_index(int(merit.argmin()), merit.shape)
            if not merit[v, g] < -1e-12:
                break
            rows = rows.copy()
            rows[g] += self.step[v]
        return rows

    def exchange(self, rows: Whole, tries: int, depth: int = 12) -> Whole:
        """Undo a change and repair what that breaks, as long as the whole becomes cheaper."""
        cost = self.cells.total_cost(rows)
        seen: set[tuple[int, int]] = set()
        for _ in range(tries):
            moves = self._moves(rows, np.ones(len(rows)))
            merit = np.where(moves.price < 0, moves.broken, np.inf)
            for v, g in seen:
                merit[v, g] = np.inf
            v, g = (int(i) for i in np.unravel_index(int(merit.argmin()), merit.shape))
            if not np.isfinite(merit[v, g]):
                break
            changed = rows.copy()
            changed[g] += self.step[v]
            other = self.repair(changed, depth)
            if other is not None:
                other = self.trim(other, 50)
                if self.cells.total_cost(other) < cost - 1e-9:
                    rows, cost = other, self.cells.total_cost(other)
                    seen.clear()
                    continue
            seen.add((v, g))
        return rows

    def near(self, real: Real, tries: int, *, once: bool = False) -> Iterator[Whole]:
        """Whole rows near real ones that violate nothing, if some are found."""
        cells = self.cells
        inward = np.where(real > cells.have, np.floor(real + 1e-6), np.ceil(real - 1e-6))
        for start in (np.rint(real), inward)[: 1 if once else 2]:
            rows = np.clip(start, cells.least, cells.most).astype(np.int64)
            found = self.repair(rows, tries)
            if found is not None:
                yield self.trim(found, tries)


class _Limit:
    """A limit that groups share, and how far rows break it."""

    def __init__(self, problem: Problem, limit: Any) -> None:
        self.problem, self.limit = problem, limit
        cells, factor = limit.coefficients
        each = np.zeros(problem.have.size)
        each[cells] = factor
        self.factor: Real = each.reshape(problem.have.shape).T

    def broken(self, rows: Whole) -> float:
        return max(-float(self.problem.slack(self.limit, rows)), 0.0)

    def after(self, rows: Whole) -> Real:
        """The same after each move."""
        limit, have = self.limit, self.problem.have
        up, down = self.factor.copy(), -self.factor
        if limit.of_additions:
            up = up * (rows >= have).T
            down = down * (rows > have).T
        value = float(limit.value(rows, have)) + np.concatenate([up, down])
        return np.asarray(np.maximum(limit.low - value, value - limit.high).clip(0))
