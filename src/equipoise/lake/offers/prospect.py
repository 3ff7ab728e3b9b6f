"""Prospect of a base: its rows, the tables of a lake that fit it, and scanners of them."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from equipoise.counts import Condition, Counts
from equipoise.engines.base import Engine
from equipoise.engines.sources import Source
from equipoise.engines.stores.states import is_same_place
from equipoise.lake.matching.restriction import Restriction, restriction, wanted_by
from equipoise.lake.offers.base_rows import BaseRows, rows_of
from equipoise.lake.offers.copies import TableCopies
from equipoise.lake.offers.duplicates import Known
from equipoise.lake.offers.matches import Matches
from equipoise.lake.offers.need import Need
from equipoise.lake.offers.other_columns import settle_columns
from equipoise.lake.offers.reads import Reads
from equipoise.lake.offers.scanner import Offer, Scanner
from equipoise.lake.offers.stored_rows import StoredRows
from equipoise.lake.offers.survey import Candidate, Survey, survey
from equipoise.lake.tables.contents import Contents
from equipoise.options.search import SearchRequest
from equipoise.plain import in_words
from equipoise.progress import Reporter, silent

if TYPE_CHECKING:
    from equipoise.lake.cover.worth import Whole

_SHOWN = 5


@dataclass(frozen=True, kw_only=True)
class Prospect:
    """A base, and the tables of a lake that fit it."""

    base: Source
    lake: Contents
    looking: SearchRequest
    survey: Survey
    known: Known
    rows: BaseRows
    """The rows of the base, which are read once if they are few."""

    within: Restriction | None = None
    copies: TableCopies

    @functools.cached_property
    def _reads(self) -> Reads:
        return Reads(self.engine, self.survey.want, self.looking.seed, self.within, self.copies)

    @property
    def engine(self) -> Engine:
        """Engine that reads the base and the lake."""
        return self.lake.engine

    def scanner(self, need: Need) -> Scanner:
        """Return a scanner for rows of the needed cells."""
        return Scanner(
            self.engine,
            self.survey.want,
            need,
            self.known,
            self.looking.seed,
            base=self.rows,
            within=self.within,
            reads=self._reads,
        )


def explore(
    counts: Counts,
    base: Source,
    lake: Contents,
    looking: SearchRequest,
    *,
    require_columns: bool = False,
    rows: BaseRows | None = None,
    progress: Reporter = silent,
) -> Prospect:
    """Read a base, and survey a lake for tables that fit it."""
    engine = lake.engine
    request = counts.request_for_rows()
    if rows is None:
        progress(f"reading {base.name}", 0)
        rows = rows_of(engine, base, counts.n + counts.dropped)
    cell = frozenset(request.columns) - request.bins.keys()
    # A wrong key is refused before the survey, which may take long.
    known = Known(rows.hashes(), looking.dedupe, tuple(looking.key), cell)
    want = wanted_by(counts, base, engine)
    rows = rows.informed(want.columns)
    found = survey(lake, want, looking, progress)
    copies = TableCopies(engine, is_tight=isinstance(rows, StoredRows))
    settled = settle_columns(found, base, copies, looking, progress)
    needed = [c.name for c in want.columns] if require_columns else list(looking.key)
    within = restriction(base, engine)
    checked = [replace(c, barred=why_barred(c, base, needed, within)) for c in settled]
    usable = [c for c in checked if c.barred is None]
    if looking.dedupe != "key":
        # A row with few columns equals many others, which are duplicates once it is taken.
        usable.sort(key=lambda c: -len(c.alignment.columns))
    barred = (*found.barred, *(c for c in checked if c.barred is not None))
    return Prospect(
        base=base,
        lake=lake,
        looking=looking,
        survey=replace(found, usable=tuple(usable), barred=barred),
        known=replace(known, base=rows.hashes(_ambiguous(settled)), matches=Matches()),
        rows=rows,
        within=within,
        copies=copies,
    )


def _ambiguous(candidates: Sequence[Candidate]) -> set[str]:
    """Return the columns whose values are ambiguous in some table."""
    return {
        name
        for candidate in candidates
        for name, decision in candidate.alignment.compared.items()
        if decision.has_readings
    }


def _is_comparable(name: str, candidate: Candidate) -> bool:
    """Whether a table has a column, and its values are certain."""
    alignment = candidate.alignment
    return name in alignment.columns and not (name in alignment.kept and alignment.kept[name].doubt)


def scan_all(candidates: Sequence[Candidate], scanner: Scanner, progress: Reporter) -> list[Offer]:
    """Scan every table that has the columns of the key and the condition and may have rows."""
    key = () if scanner.known is None else scanner.known.key
    some = [
        c
        for c in candidates
        if all(_is_comparable(name, c) for name in key) and not scanner.lacking(c)
        if scanner.bound(c).any()
    ]
    scanner.expect(some, progress)
    found = []
    for i, candidate in enumerate(some):
        progress(f"scanning {candidate.name}", i / len(some))
        offer = scanner.scan(candidate)
        if offer.tells_anything:
            found.append(offer)
    return found


def rows_left_out(
    over: Survey, scanner: Scanner, offers: Sequence[Offer], progress: Reporter
) -> dict[str, Whole]:
    """Count by reason the rows of each needed cell that are not offered; most are upper bounds."""
    none = 0 * scanner.need.rows
    # The cells of these rows are not known, so each of them might be of any cell.
    anywhere = {
        "at most outside the condition": sum(o.outside for o in offers),
        "at most with values that cannot become the base's types": sum(o.failed for o in offers),
        "at most with values that mean nothing in the base": sum(o.unmapped for o in offers),
    }
    barred = scan_all(over.barred, scanner, progress)
    no_condition = [scanner.bound(c) for c in over.barred if scanner.lacking(c)]
    return {
        **{reason: none + rows for reason, rows in anywhere.items()},
        "tables that may not be used": sum((o.offered for o in barred), none),
        "at most in tables that lack a column of the condition": sum(no_condition, none),
        "at most in tables whose meaning is open": sum(map(scanner.possible, over.open), none),
    }


def unchecked(barred: Sequence[Candidate], where: Condition | None) -> dict[str, str]:
    """Return the tables in which a condition cannot be checked, with the reason."""
    names = () if where is None else where.columns
    return {
        c.name: str(c.barred) for c in barred if any(n not in c.alignment.columns for n in names)
    }


def say_unchecked(tables: Mapping[str, str]) -> list[str]:
    """List the tables in which a condition cannot be checked.

    >>> say_unchecked({"a.csv": "it has no year"})
    ['The condition cannot be checked in a.csv (it has no year).']
    """
    if not tables:
        return []
    named = [f"{name} ({why})" for name, why in tables.items()]
    more = f" and {len(named) - _SHOWN:,} more" if len(named) > _SHOWN else ""
    return [f"The condition cannot be checked in {', '.join(named[:_SHOWN])}{more}."]


def why_barred(
    candidate: Candidate, base: Source, needed: Sequence[str], within: Restriction | None
) -> str | None:
    """Return why a table whose meaning is certain gives no rows to a base; None if it does."""
    if _is_base(candidate.table.source, base):
        return "it is the base itself"
    unknown = () if within is None else within.lacking(candidate.alignment)
    if unknown:
        names = in_words([repr(n) for n in unknown])
        return f"none of its columns is certain to be {names}, which the condition names"
    lacking = [name for name in needed if not _is_comparable(name, candidate)]
    treated = {t.name: t for t in candidate.alignment.treated if t.name in lacking}
    if treated:
        first = next(iter(treated.values()))
        return f"its {first.column} cannot be read as {first.name!r}: {first.how}"
    return f"it does not have {in_words([repr(n) for n in lacking[:_SHOWN]])}" if lacking else None


def _is_base(source: Source, base: Source) -> bool:
    """Whether a table is the base: the same file, and in a database the same table."""
    if base.address is not None or source.address is not None:
        return is_same_place(source, base)
    if base.table not in (None, source.table):
        return False
    ours = [path for path in base.paths if path.exists()]
    return any(a.samefile(b) for a in ours for b in source.paths if b.exists())
