"""Choose tables of a lake and rows of them, and explain what is missing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from equipoise.counts import Counts
from equipoise.lake.cover import supply
from equipoise.lake.cover.model import Clock
from equipoise.lake.cover.selection import Selection
from equipoise.lake.offers.need import Need
from equipoise.lake.offers.prospect import Prospect, rows_left_out, scan_all
from equipoise.lake.offers.scanner import (
    Offer,
    Scanner,
    Union,
    warn_of_chance,
)
from equipoise.lake.offers.shortfall import Lack, explain_shortfall
from equipoise.lake.offers.survey import say_nearest
from equipoise.lake.repair.fill import Filler, TableRows, numbers_within, select_from
from equipoise.options.search import AcquisitionLimits
from equipoise.progress import Reporter

if TYPE_CHECKING:
    from numpy.typing import NDArray

_SHOWN = 5
_ROUNDS = 8
"""Number of selections until tables that share rows are counted without them."""


@dataclass(frozen=True)
class Choice:
    """All rows taken, and the offers they were chosen from."""

    chosen: list[TableRows]
    selection: Selection
    offers: list[Offer]
    across: NDArray[np.int64]

    @property
    def rows(self) -> int:
        """Number of rows taken."""
        return sum(len(part.drawn.places) for part in self.chosen)


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
    offers = scan_all(prospect.survey.usable, scanner, progress)
    rows = np.array([o.rows for o in offers], np.int64).reshape(len(offers), len(need.rows))
    free = replace(limits, budget=None, max_share_per_source=None, max_tables=None)
    taken = _take_freely(prospect, scanner, offers, rows, free, progress)
    if taken is not None and within.allow_cost(taken.selection.cost, taken.selection.take):
        return taken
    return _take_within(prospect, scanner, offers, rows, limits, progress)


def _take_freely(
    prospect: Prospect,
    scanner: Scanner,
    offers: list[Offer],
    rows: NDArray[np.int64],
    limits: AcquisitionLimits,
    progress: Reporter,
) -> Choice | None:
    """Take all needed rows, or all there are; return None if no such choice was found.

    Tables are first chosen as if they shared no rows, which bounds the cost from below. If they
    do share rows, the missing ones are taken from the other tables, and the tables are chosen
    again by a model that knows the shared rows.
    """
    across = 0 * scanner.need.rows
    if len(offers):
        union = Union(scanner)
        once = sum((union.add(o.candidate, o.rows + o.duplicates) for o in offers), across)
        across = rows.sum(axis=0) - once
    need = np.minimum(scanner.need.rows, rows.sum(axis=0) - across)
    progress("choosing tables", 0.5)
    clock = Clock(limits.time_limit)
    first = select_from(offers, rows, need, limits, clock.part(0.5).left)
    filler = Filler(prospect.known, scanner, offers, need, limits, clock)
    best, bound = filler.completed(first.opened.tolist()), first.bound
    if best.cost > bound * (1 + supply.CLOSE):
        progress("choosing among tables that share rows", 0.5)
        other, higher = filler.sharing()
        other = filler.without_spare(best) if other is None else other
        best, bound = min(best, other, key=lambda fill: fill.rank), max(bound, higher)
    if best.lacking.any():
        return None
    if any((offer.at_most > offer.rows).any() for offer in offers):
        bound = _bound(offers, need, clock)
    selection = replace(first, take=best.take, cost=best.cost, bound=min(bound, best.cost))
    return Choice(filler.chosen(best), selection, offers, across)


def _bound(offers: Sequence[Offer], found: NDArray[np.int64], clock: Clock) -> float:
    """Lower bound on the cost of as many rows of each cell, whichever of equal rows are taken."""
    rows = np.array([o.at_most for o in offers], np.int64).reshape(len(offers), len(found))
    return select_from(offers, rows, found, AcquisitionLimits(), clock.left).bound


def _take_within(
    prospect: Prospect,
    scanner: Scanner,
    offers: list[Offer],
    rows: NDArray[np.int64],
    limits: AcquisitionLimits,
    progress: Reporter,
) -> Choice:
    """Take what the limits allow; shared rows are left to the first table that has them."""
    across = np.zeros(len(scanner.need.rows), np.int64)
    for left in range(_ROUNDS, 0, -1):
        progress("choosing tables", 0.5)
        selection = select_from(offers, rows, scanner.need.rows, limits)
        chosen, there = _draw_all(prospect, scanner, offers, selection)
        short = np.minimum(selection.take, there) < selection.take
        if not short.any() or left == 1:
            break
        if left == 2:
            # Selections did not settle, so count each row once over all tables. This may be stricter
            # than necessary, but then every selected row exists.
            union = Union(scanner)
            there = np.array([union.add(o.candidate, o.rows + o.duplicates) for o in offers])
            short = there < rows
        across = across + np.where(short, rows - there, 0).sum(axis=0)
        rows = np.where(short, there, rows)
    if across.any():
        # The last selection knew only the rows left to each table, so its bound is too high.
        bound = _bound(offers, selection.found, Clock(limits.time_limit))
        selection = replace(selection, bound=min(bound, selection.cost))
    return Choice(chosen, selection, offers, across)


def _draw_all(
    prospect: Prospect,
    scanner: Scanner,
    offers: Sequence[Offer],
    selection: Selection,
) -> tuple[list[TableRows], NDArray[np.int64]]:
    """Fetch the rows of a selection, and count the rows of each table that no other gave."""
    known = replace(prospect.known, _taken=[])
    there = np.array([o.rows for o in offers], np.int64).reshape(selection.take.shape)
    chosen = []
    for i in np.flatnonzero(selection.take.any(axis=1)).tolist():
        candidate = offers[i].candidate
        drawn = scanner.draw(candidate, offers[i].rows + offers[i].duplicates)
        fresh = drawn.take(known.is_new(drawn.hashes))
        there[i] = np.bincount(fresh.cells, minlength=len(scanner.need.rows))
        first = numbers_within(fresh.cells) < selection.take[i][fresh.cells]
        taken = fresh.take(first)
        known.add(taken.hashes)
        if len(taken.places):
            chosen.append(TableRows(candidate, taken))
    return chosen, there


def found_counts(add: Counts, need: Need, taken: Choice) -> Counts:
    """Return the rows taken as counts."""
    found = _found_rows(need, taken)
    by_cell = {tuple(c): n for c, n in zip(need.cells.codes.tolist(), found.tolist(), strict=True)}
    rows = [by_cell.get(tuple(c), 0) for c in add.codes.tolist()]
    return replace(add, rows=np.array(rows, np.int64))


def _found_rows(need: Need, taken: Choice) -> NDArray[np.int64]:
    total = np.zeros(len(need.rows), np.int64)
    for part in taken.chosen:
        total += np.bincount(part.drawn.cells, minlength=len(total))
    return total


# --------------------------------------------------------------------------- shortfall


def find_lacks(
    prospect: Prospect, need: Need, taken: Choice, limits: AcquisitionLimits, progress: Reporter
) -> tuple[tuple[str, Lack], ...]:
    """Explain for which cells too few rows were found."""
    found = _found_rows(need, taken)
    if (found >= need.rows).all():
        return ()
    offered = sum((o.rows for o in taken.offers), np.zeros(len(found), np.int64))
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
    duplicates = sum(int(o.duplicates.sum()) for o in taken.offers)
    chance = warn_of_chance(duplicates, sum(o.by_chance for o in taken.offers))
    shown = [lack.sentence(name).rstrip(".") for name, lack in lacks[:_SHOWN]]
    more = [f"so on for {len(lacks) - _SHOWN:,} more cells"] if len(lacks) > _SHOWN else []
    hints = ["set `partial` to take what there is", "plan again with equipoise repair"]
    if prospect.survey.open:
        hints.append(
            f"confirm what {len(prospect.survey.open):,} more "
            f"{'table means' if len(prospect.survey.open) == 1 else 'tables mean'} with equipoise "
            "lake mapping"
        )
    nearest = ""
    if not (prospect.survey.usable or prospect.survey.barred or prospect.survey.open):
        nearest = f" ({say_nearest(prospect.lake, prospect.survey.want)})"
    return (
        f"the lake has too few rows for the plan{nearest}: {'; '.join([*shown, *more])}. "
        f"{f'{chance} ' if chance else ''}You may {', or '.join(hints)}."
    )
