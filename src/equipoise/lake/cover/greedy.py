"""Greedy selection: the rows of most worth per cost first, then local improvements."""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

from equipoise.lake.cover.supply import CLOSE, CoverLimits, Supply
from equipoise.lake.cover.worth import best_prefix, prefix_ratios

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from equipoise.lake.cover.worth import Real, Whole

_SEARCH_BUDGET = 6000
"""Budget of the local search, counted in open tables per try: a number and not a time, so that the
choice is the same on every machine."""


def greedy_cover(supply: Supply, price: Real) -> Whole:
    """Cover the need greedily, then drop and exchange tables while that lowers the cost."""
    take = completed(supply, (), price)
    budget, i = _SEARCH_BUDGET, 0
    opened = _most_expensive_first(supply, take)
    while i < len(opened) and budget > 0:
        rest = [table for table in opened if table != opened[i]]
        other = completed(supply, rest, price, banned=opened[i])
        i, budget = i + 1, budget - len(opened)
        if supply.covered(other) and supply.cost(other) < supply.cost(take) * (1 - CLOSE):
            take, i = other, 0
            opened = _most_expensive_first(supply, take)
    return take


def completed(
    supply: Supply, tables: Iterable[int], price: Real, banned: int | None = None
) -> Whole:
    """Take all needed rows of some tables, and the rest from others except a banned one."""
    take = _Greedy(supply, price, banned=banned).run(supply.fill(tables))
    return _dropped(supply, take)


def greedy_within(supply: Supply, limits: CoverLimits, prices: Iterable[Real]) -> Whole:
    """Take as many rows as the limits allow: the best of greedy choices by different prices."""
    tries = [
        _greedy_shared(supply, limits, price, by_table=by_table)
        for price in prices
        for by_table in (False, True)
    ]
    return max(tries, key=lambda take: (take.sum(), -supply.cost(take)))


def _greedy_shared(supply: Supply, limits: CoverLimits, price: Real, *, by_table: bool) -> Whole:
    """Choose greedily with a cap on each table, lowered until the maximum share holds."""
    cap = limits.most(int(supply.need.sum()))
    # A lower cap lowers the total too, of which the share is taken. So the cap is lowered again,
    # and faster if it took many steps.
    for step in range(64):
        take = _Greedy(supply, price, limits, cap=cap, by_table=by_table).run()
        if limits.allow(supply, take):
            return take
        cap = limits.most(int(take.sum())) // (1 if step < 32 else 2)
    return np.zeros_like(supply.rows)


def _dropped(supply: Supply, take: Whole) -> Whole:
    """Take the rows from the open tables at the least cost, without superfluous tables."""
    opened, need = np.flatnonzero(take.any(axis=1)), take.sum(axis=0)
    few = supply.of(opened)
    kept = set(range(len(opened)))
    best = few.fill(kept, need)
    cost, spare = few.cost(best), few.rows.sum(axis=0) - need
    for table in _most_expensive_first(few, best):
        if (few.rows[table] > spare).any():  # the others do not have enough rows
            continue
        fewer = few.fill(kept - {table}, need)
        if few.cost(fewer) <= cost:
            best, cost, kept = fewer, few.cost(fewer), kept - {table}
            spare = spare - few.rows[table]
    result = np.zeros_like(take)
    result[opened] = best
    return result


def _most_expensive_first(supply: Supply, take: Whole) -> list[int]:
    opened = np.flatnonzero(take.any(axis=1))
    each = supply.fixed[opened] / take[opened].sum(axis=1)
    return [int(t) for t in opened[np.argsort(-each, kind="stable")]]


class _Greedy:
    """Takes the rows of most worth per cost while the limits allow it.

    The ratio of a table only falls while others are taken, so it is computed again only when the
    table reaches the top of the queue (lazy greedy).
    """

    def __init__(
        self,
        supply: Supply,
        price: Real,
        limits: CoverLimits | None = None,
        *,
        cap: float = math.inf,
        banned: int | None = None,
        by_table: bool = False,
    ) -> None:
        self.supply, self.price, self.cap, self.banned = supply, price, cap, banned
        self.limits = limits or CoverLimits()
        self.order = np.argsort(-price, kind="stable")
        n = len(supply.rows)
        self.fixed = np.ones(n) if by_table else supply.fixed
        self.per_row = np.zeros(n) if by_table else supply.per_row

    def run(self, given: Whole | None = None) -> Whole:
        """Return the rows taken, including those given."""
        supply = self.supply
        self.take = np.zeros_like(supply.rows) if given is None else given.copy()
        self.left = supply.need - self.take.sum(axis=0)
        self.money = self.limits.budget - supply.cost(self.take)
        self.opened: NDArray[np.bool_] = np.asarray(self.take.any(axis=1))
        queue = self._queue()
        while queue and self.left.any():
            _, table = heapq.heappop(queue)
            ratio, amounts = self._offer(table)
            if ratio <= 0:
                continue
            if not queue or (-ratio, table) <= queue[0]:
                self._accept(table, amounts)
                ratio, _ = self._offer(table)
            if ratio > 0:
                heapq.heappush(queue, (-ratio, table))
        return self.take

    def _queue(self) -> list[tuple[float, int]]:
        useful = np.minimum(self.left, self.supply.rows - self.take).astype(np.float64)
        fixed = np.where(self.opened, 0.0, self.fixed)[:, None]
        ratios = prefix_ratios(useful, self.price, self.order, fixed, self.per_row[:, None])
        best = ratios.max(axis=1)
        queue = [(-float(best[t]), int(t)) for t in np.flatnonzero(best) if t != self.banned]
        heapq.heapify(queue)
        return queue

    def _offer(self, table: int) -> tuple[float, Whole]:
        useful = np.minimum(self.left, self.supply.rows[table] - self.take[table])
        amounts = np.zeros_like(useful)
        most = self._most(table)
        if most <= 0:
            return 0.0, amounts
        if most < useful.sum():
            reach = np.minimum(np.cumsum(useful[self.order]), int(most))
            useful[self.order] = np.diff(reach, prepend=0)
        fixed = 0.0 if self.opened[table] else float(self.fixed[table])
        ratio, cells = best_prefix(
            useful.astype(np.float64), self.price, self.order, fixed, float(self.per_row[table])
        )
        amounts[cells] = useful[cells]
        return ratio, amounts

    def _most(self, table: int) -> float:
        """Maximum number of rows that the limits leave to a table."""
        is_open = self.opened[table]
        if not is_open and self.opened.sum() >= self.limits.tables:
            return 0
        room = self.cap - float(self.take[table].sum())
        if self.limits.budget == math.inf:
            return room
        money = self.money - (0.0 if is_open else self.supply.fixed[table])
        each = self.supply.per_row[table]
        if money < -CLOSE * self.limits.budget:
            return 0
        return min(room, math.floor(money / each + CLOSE)) if each else room

    def _accept(self, table: int, amounts: Whole) -> None:
        self.money -= 0.0 if self.opened[table] else self.supply.fixed[table]
        self.money -= self.supply.per_row[table] * amounts.sum()
        self.opened[table] = True
        self.take[table] += amounts
        self.left -= amounts
