"""Choose tables of a lake and rows of them, and explain what is missing."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from equipoise.counts import Counts
from equipoise.lake.cover import supply
from equipoise.lake.cover.model import Clock
from equipoise.lake.cover.selection import Selection
from equipoise.lake.offers.duplicates import Known
from equipoise.lake.offers.need import Need
from equipoise.lake.offers.prospect import Prospect, rows_left_out, scan_all
from equipoise.lake.offers.scanner import Offer, Scanner, Union, warn_of_chance
from equipoise.lake.offers.shortfall import Lack, explain_shortfall
from equipoise.lake.offers.survey import say_nearest
from equipoise.lake.repair.fill import Filler, TableRows, numbers_within, select_from
from equipoise.options.search import AcquisitionLimits
from equipoise.progress import Reporter

if TYPE_CHECKING:
    from numpy.typing import NDArray

_SHOWN = 5
_ROUNDS = 8
"""Maximum number of selections; the last counts each shared row in one table only."""


@dataclass(frozen=True)
class Choice:
    """All rows taken for a need, and the offers they were chosen from."""

    need: Need
    chosen: list[TableRows]
    selection: Selection
    offers: list[Offer]
    across: NDArray[np.int64]
    """Rows of each cell that several tables offer, counted beyond the first."""

    @property
    def rows(self) -> int:
        """Number of rows taken."""
        return sum(len(part.drawn.places) for part in self.chosen)

    @property
    def found(self) -> NDArray[np.int64]:
        """Number of rows taken of each needed cell."""
        cells = [part.drawn.cells for part in self.chosen]
        none = np.zeros(0, np.int64)
        return np.bincount(np.concatenate([none, *cells]), minlength=len(self.need.rows))

    @property
    def counts(self) -> Counts:
        """The rows taken as counts."""
        return replace(self.need.cells, rows=self.found)

    @property
    def duplicates(self) -> int:
        """Number of rows left out as duplicates of the base or within a table."""
        return sum(int(offer.duplicates.sum()) for offer in self.offers)

    @property
    def by_chance(self) -> float:
        """Number of as many new rows that would be left out by chance."""
        return sum(offer.by_chance for offer in self.offers)


def choose_rows(
    prospect: Prospect, need: Need, limits: AcquisitionLimits, progress: Reporter
) -> Choice:
    """Choose tables and rows; a row in two tables counts once."""
    within = supply.CoverLimits.of(
        budget=limits.budget,
        max_share=limits.max_share_per_source,
        max_tables=limits.max_tables,
    )
    scanner = prospect.scanner(need)
    while True:
        offers = scan_all(prospect.survey.usable, scanner, progress)
        scanner.compare_all([offer.candidate for offer in offers])
        before = len(scanner.deepened)
        chooser = _Chooser(prospect.known, scanner, offers, limits, progress)
        taken = chooser.take_freely()
        if len(scanner.deepened) > before:  # more rows are looked at, so offers are others
            continue
        if taken is None or not within.allow_cost(taken.selection.cost, taken.selection.take):
            taken = chooser.take_within()
        if len(scanner.deepened) == before:
            return taken


@dataclass(frozen=True)
class _Chooser:
    known: Known
    scanner: Scanner
    offers: list[Offer]
    limits: AcquisitionLimits
    progress: Reporter

    def _by_table(self, rows: Iterable[NDArray[np.int64]]) -> NDArray[np.int64]:
        shape = len(self.offers), len(self.scanner.need.rows)
        return np.array(list(rows), np.int64).reshape(shape)

    def _once(self) -> NDArray[np.int64]:
        """Count each row once, in the first table that offers it."""
        union, once = Union(self.scanner), []
        for offer in self.offers:
            self.progress(f"comparing rows of {offer.name}", 0.5)
            once.append(union.add(offer.candidate))
        return self._by_table(once)

    def take_freely(self) -> Choice | None:
        """Take all needed rows without limits, or all there are; None if that was not found.

        Tables are first chosen as if they shared no rows, which bounds the cost from below. If
        they do share rows, the missing ones are taken from the other tables, and the tables are
        chosen again by a model that knows the shared rows.
        """
        free = replace(self.limits, budget=None, max_share_per_source=None, max_tables=None)
        rows, once = self._by_table(o.rows for o in self.offers), self._once().sum(axis=0)
        need = np.minimum(self.scanner.need.rows, once)
        self.progress("choosing tables", 0.5)
        clock = Clock(free.time_limit)
        # Half of the time is left for tables that share rows.
        first = select_from(self.offers, rows, need, free, clock.part(0.5).left)
        filler = Filler(self.known, self.scanner, self.offers, need, free, clock)
        best, bound = filler.completed(first.opened.tolist()), first.bound
        if best.cost > bound * (1 + supply.CLOSE):
            # Rows that nobody looked at might make a cheaper choice.
            more = [self.scanner.deepen(offer.candidate) for offer in self.offers]
            if any(more):
                return None
            self.progress("choosing among tables that share rows", 0.5)
            other, higher = filler.sharing()
            other = filler.without_spare(best) if other is None else other
            best, bound = min(best, other, key=lambda fill: fill.rank), max(bound, higher)
        if best.lacking.any():
            return None
        if any((offer.at_most > offer.rows).any() for offer in self.offers):
            bound = self._bound(need, clock)
        selection = replace(first, take=best.take, cost=best.cost, bound=min(bound, best.cost))
        return self._choice(filler.chosen(best), selection, rows.sum(axis=0) - once)

    def take_within(self) -> Choice:
        """Take what the limits allow; shared rows are left to the first table that has them."""
        rows = self._by_table(o.rows for o in self.offers)
        across = 0 * self.scanner.need.rows
        for left in range(_ROUNDS, 0, -1):
            self.progress("choosing tables", 0.5)
            selection = select_from(self.offers, rows, self.scanner.need.rows, self.limits)
            chosen, there = self._draw(selection)
            short = np.minimum(selection.take, there) < selection.take
            if not short.any() or left == 1 or self._deepen(short):
                break
            if left == 2:
                # Selections did not settle, so count each row once over all tables. This may be
                # stricter than necessary, but then every selected row exists.
                there = self._once()
                short = there < rows
            across = across + np.where(short, rows - there, 0).sum(axis=0)
            rows = np.where(short, there, rows)
        if across.any():
            # The last selection knew only the rows left to each table, so its bound is too high.
            bound = self._bound(selection.found, Clock(self.limits.time_limit))
            selection = replace(selection, bound=min(bound, selection.cost))
        return self._choice(chosen, selection, across)

    def _deepen(self, short: NDArray[np.bool_]) -> bool:
        """Look at more rows of tables that have too few which no other table gave."""
        deepened = [
            self.scanner.deepen(self.offers[i].candidate, short[i])
            for i in np.flatnonzero(short.any(axis=1)).tolist()
        ]
        return any(deepened)

    def _bound(self, found: NDArray[np.int64], clock: Clock) -> float:
        """Bound the cost of as many rows of each cell, whichever of equal rows are taken."""
        rows = self._by_table(o.at_most for o in self.offers)
        return select_from(self.offers, rows, found, AcquisitionLimits(), clock.left).bound

    def _draw(self, selection: Selection) -> tuple[list[TableRows], NDArray[np.int64]]:
        """Fetch the rows of a selection, and count the rows of each table that no other gave."""
        known = replace(self.known, _taken=[])
        there = self._by_table(o.rows for o in self.offers)
        chosen = []
        for i in np.flatnonzero(selection.take.any(axis=1)).tolist():
            offer = self.offers[i]
            self.progress(f"choosing rows of {offer.name}", 0.5)
            drawn = self.scanner.draw(offer.candidate)
            fresh = drawn.take(known.is_new(drawn.hashes))
            there[i] = np.bincount(fresh.cells, minlength=there.shape[1])
            taken = fresh.take(numbers_within(fresh.cells) < selection.take[i][fresh.cells])
            known.add(taken.hashes)
            if len(taken.places):
                chosen.append(TableRows(offer.candidate, taken))
        return chosen, there

    def _choice(
        self, chosen: list[TableRows], selection: Selection, across: NDArray[np.int64]
    ) -> Choice:
        return Choice(self.scanner.need, chosen, selection, self.offers, across)


# --------------------------------------------------------------------------- shortfall


def find_lacks(
    prospect: Prospect, taken: Choice, limits: AcquisitionLimits, progress: Reporter
) -> tuple[tuple[str, Lack], ...]:
    """Explain for which cells too few rows were found."""
    need, found = taken.need, taken.found
    if (found >= need.rows).all():
        return ()
    offered = sum((o.rows for o in taken.offers), np.zeros(len(found), np.int64))
    # Rows that are offered, and that only a limit keeps from being taken.
    within = np.maximum(np.minimum(offered - taken.across, need.rows) - found, 0)
    lost = {
        _limit_name(limits): within,
        "duplicates": taken.across + sum((o.duplicates for o in taken.offers), 0 * found),
    }
    lost |= rows_left_out(prospect.survey, prospect.scanner(need), taken.offers, progress)
    lacks = explain_shortfall(need.rows, found, lost)
    return tuple((str(need.named(lack.cell)), lack) for lack in lacks)


def _limit_name(limits: AcquisitionLimits) -> str:
    names = {
        "over the budget": limits.budget,
        "beyond the share of one table": limits.max_share_per_source,
        "beyond the number of tables": limits.max_tables,
    }
    given = [name for name, limit in names.items() if limit is not None]
    return given[0] if len(given) == 1 else "beyond the limits"


def say_too_few(prospect: Prospect, taken: Choice, lacks: Sequence[tuple[str, Lack]]) -> str:
    """Describe what is missing, and what a user can do about it."""
    survey = prospect.survey
    chance = warn_of_chance(taken.duplicates, taken.by_chance)
    shown = [lack.sentence(name).rstrip(".") for name, lack in lacks[:_SHOWN]]
    more = [f"so on for {len(lacks) - _SHOWN:,} more cells"] if len(lacks) > _SHOWN else []
    hints = ["set `partial` to take what there is", "plan again with equipoise repair"]
    if survey.open:
        mean = "table means" if len(survey.open) == 1 else "tables mean"
        hints.append(f"confirm what {len(survey.open):,} more {mean} with equipoise lake mapping")
    nearest = ""
    if not (survey.usable or survey.barred or survey.open):
        nearest = f" ({say_nearest(prospect.lake, survey.want)})"
    return (
        f"the lake has too few rows for the plan{nearest}: {'; '.join([*shown, *more])}. "
        f"{f'{chance} ' if chance else ''}You may {', or '.join(hints)}."
    )
