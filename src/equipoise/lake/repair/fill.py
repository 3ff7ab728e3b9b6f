"""Meet a need with rows of tables that may share rows, at the least cost."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from equipoise.lake.cover.model import Clock
from equipoise.lake.cover.selection import Selection, select
from equipoise.lake.cover.shared_rows import Shared, cheapest_tables
from equipoise.lake.offers.duplicates import Known, alike_rows
from equipoise.lake.offers.fingerprints import RowHashes
from equipoise.lake.offers.reads import Drawn
from equipoise.lake.offers.scanner import Offer, Scanner
from equipoise.lake.offers.survey import Candidate
from equipoise.options.search import AcquisitionLimits
from equipoise.progress import pulse

if TYPE_CHECKING:
    from numpy.typing import NDArray

_ROUNDS = 8
"""Number of times that missing rows are chosen from the remaining tables."""

_TRIES = 12
"""Number of tables that are tentatively left out; each try fills the need again."""

_MOST_ROWS = 300_000
"""Maximum number of rows in all tables that are compared for duplicates."""


@dataclass(frozen=True)
class TableRows:
    """The rows taken from one table."""

    candidate: Candidate
    drawn: Drawn


def select_from(
    offers: Sequence[Offer],
    rows: NDArray[np.int64],
    need: NDArray[np.int64],
    limits: AcquisitionLimits,
    seconds: float | None = None,
) -> Selection:
    """Choose tables at the least cost, as if they shared no rows."""
    table_cost, row_cost = _costs(offers)
    return select(
        rows,
        need,
        table_cost=table_cost,
        row_cost=row_cost,
        max_share=limits.max_share_per_source,
        max_tables=limits.max_tables,
        budget=limits.budget,
        time_limit=limits.time_limit if seconds is None else seconds,
    )


@dataclass(frozen=True, eq=False)
class _Picked:
    """Rows picked from one table: positions among those drawn, cells, and hashes."""

    rows: NDArray[np.int64]
    cells: NDArray[np.int64]
    hashes: RowHashes

    def joined(self, other: _Picked | None) -> _Picked:
        """Merge two picks, in the order in which their rows were drawn."""
        if other is None:
            return self
        rows = np.concatenate([self.rows, other.rows])
        order = np.argsort(rows)
        cells = np.concatenate([self.cells, other.cells])
        hashes = RowHashes.joined([self.hashes, other.hashes])
        return _Picked(rows[order], cells[order], hashes.take(order))


@dataclass(frozen=True, eq=False)
class Fill:
    """Rows taken from tables, their number by cell, their cost, and the rows still missing."""

    picked: Mapping[int, _Picked]
    take: NDArray[np.int64]
    cost: float
    lacking: NDArray[np.int64]

    @property
    def rank(self) -> tuple[int, float]:
        """Sort key; smaller is better."""
        return int(self.lacking.sum()), self.cost


@dataclass(frozen=True, eq=False)
class Filler:
    """Meets a need with rows of tables, each row once.

    Tables with more columns must come first in ``offers``: a row with few columns equals many
    others, which are duplicates once it is taken.
    """

    known: Known
    scanner: Scanner
    offers: Sequence[Offer]
    need: NDArray[np.int64]
    limits: AcquisitionLimits
    clock: Clock

    def completed(self, tables: Sequence[int]) -> Fill:
        """Take rows from some tables, and the missing ones from the others."""
        order = list(tables)
        fill = self._filled(order)
        for _ in range(_ROUNDS):
            if not fill.lacking.any():
                return fill
            fresh, seconds = self._fresh_rows(fill, order), self.clock.part(0.25).left
            more = select_from(self.offers, fresh, fill.lacking, self.limits, seconds).opened
            if not len(more):
                break
            order += more.tolist()
            fill = self._filled(order)
        rest = [i for i in range(len(self.offers)) if i not in set(order)]
        return min(fill, self._filled(order, rest), key=lambda fill: fill.rank)

    def without_spare(self, fill: Fill) -> Fill:
        """Drop tables that the tables chosen later make superfluous."""
        costs, sizes = _costs(self.offers)[0], fill.take.sum(axis=1)
        most_expensive = sorted(fill.picked, key=lambda i: -costs[i] / sizes[i])
        for i in most_expensive[:_TRIES]:
            fewer = self._filled([j for j in fill.picked if j != i])
            fill = min(fill, fewer, key=lambda fill: fill.rank)
        return fill

    def sharing(self) -> tuple[Fill | None, float]:
        """Choose tables by the rows they share; return rows and a lower bound on the cost.

        Without rows to share, or if it would take too long, there is no choice and no bound.
        """
        total = sum(int(offer.rows.sum() + offer.duplicates.sum()) for offer in self.offers)
        if total > _MOST_ROWS or not self.clock.left:
            return None, 0.0
        picks = [self._new_rows(i) for i in range(len(self.offers))]
        alike = alike_rows(self.known, [pick.hashes for pick in picks])
        if alike is None or not len(alike):
            return None, 0.0
        table = np.repeat(np.arange(len(picks)), [len(pick.rows) for pick in picks])
        row = np.concatenate([pick.rows for pick in picks])
        cell = np.concatenate([pick.cells for pick in picks])
        shared = Shared(table=table, cell=cell, alike=alike)
        seconds = self.clock.left
        choice = cheapest_tables(shared, self.need, *_costs(self.offers), time_limit=seconds)
        if not choice.tables:
            return None, choice.bound
        given = {i: row[choice.rows[table[choice.rows] == i]] for i in choice.tables}
        fill = self._filled_in_order(self._cheap_first(choice.tables), given)
        return self.completed(choice.tables) if fill.lacking.any() else fill, choice.bound

    def chosen(self, fill: Fill) -> list[TableRows]:
        """Return the rows themselves."""
        picked = sorted(fill.picked.items())
        return [TableRows(self.offers[i].candidate, self._drawn(i).take(p.rows)) for i, p in picked]

    def _filled(self, tables: Sequence[int], rest: Sequence[int] = ()) -> Fill:
        """Take cheap rows first; retry cells with missing rows from the tables with most columns."""
        fill = self._filled_in_order([*self._cheap_first(tables), *rest], {})
        if not fill.lacking.any():
            return fill
        stay = {i: p.rows[fill.lacking[p.cells] == 0] for i, p in fill.picked.items()}
        other = self._filled_in_order(sorted([*tables, *rest]), stay)
        return min(fill, other, key=lambda fill: fill.rank)

    def _cheap_first(self, tables: Iterable[int]) -> list[int]:
        return sorted(tables, key=lambda i: self.offers[i].candidate.conditions.row_cost)

    def _filled_in_order(
        self, order: Sequence[int], given: Mapping[int, NDArray[np.int64]]
    ) -> Fill:
        """Take the given rows first, then the rest from tables in the given order."""
        known = replace(self.known, _taken=[])
        picked: dict[int, _Picked] = {}
        take = np.zeros((len(self.offers), len(self.need)), np.int64)
        for i, among in (*given.items(), *((i, None) for i in order)):
            left = self.need - take.sum(axis=0)
            if not (np.minimum(left, self.offers[i].rows) > 0).any():
                continue
            drawn = self._drawn(i)
            fresh = np.flatnonzero(known.is_new(drawn.hashes))
            fresh = fresh if among is None else np.intersect1d(fresh, among)
            if i in picked:
                fresh = np.setdiff1d(fresh, picked[i].rows)
            cells = drawn.cells[fresh]
            rows = fresh[numbers_within(cells) < left[cells]]
            if len(rows):
                pick = _Picked(rows, drawn.cells[rows], drawn.hashes.take(rows))
                known.add(pick.hashes)
                take[i] += np.bincount(pick.cells, minlength=len(left))
                picked[i] = pick.joined(picked.get(i))
        table_cost, row_cost = _costs(self.offers)
        cost = float(table_cost[take.any(axis=1)].sum() + row_cost @ take.sum(axis=1))
        return Fill(picked, take, cost, self.need - take.sum(axis=0))

    def _fresh_rows(self, fill: Fill, leave: Sequence[int]) -> NDArray[np.int64]:
        """Count the new rows of other tables in the cells with missing rows."""
        known = replace(self.known, _taken=[pick.hashes for pick in fill.picked.values()])
        fresh = np.zeros_like(fill.take)
        for i in set(range(len(self.offers))) - set(leave):
            if (np.minimum(self.offers[i].rows, fill.lacking) > 0).any():
                drawn = self._drawn(i)
                cells = drawn.cells[known.is_new(drawn.hashes)]
                fresh[i] = np.bincount(cells, minlength=len(self.need)) * (fill.lacking > 0)
        return fresh

    def _new_rows(self, i: int) -> _Picked:
        """Pick the rows of needed cells that the base does not have."""
        drawn = self._drawn(i)
        known = replace(self.known, _taken=[])
        rows = np.flatnonzero(known.is_new(drawn.hashes) & (self.need[drawn.cells] > 0))
        return _Picked(rows, drawn.cells[rows], drawn.hashes.take(rows))

    def _drawn(self, i: int) -> Drawn:
        pulse()
        return self.scanner.draw(self.offers[i].candidate)


def _costs(offers: Sequence[Offer]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the cost of opening each table, and of a row from it."""
    conditions = [offer.candidate.conditions for offer in offers]
    table_cost = np.array([c.table_cost for c in conditions], np.float64)
    return table_cost, np.array([c.row_cost for c in conditions], np.float64)


def numbers_within(cells: NDArray[np.int64]) -> NDArray[np.int64]:
    """Number the rows of each cell from 0; the rows of a cell must be adjacent."""
    starts = np.searchsorted(cells, cells, side="left")
    return np.arange(len(cells)) - starts
