"""Rank the tables of a lake by the number of needed rows they offer per unit of cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise.counts import Reading
from equipoise.engines.sources import Source
from equipoise.errors import InputError
from equipoise.lake.matching.columns.target import Wanted, wanted
from equipoise.lake.matching.questions import explain_columns, explain_values
from equipoise.lake.offers import ranking
from equipoise.lake.offers.need import Need, Planned, need_of
from equipoise.lake.offers.prospect import explore, rows_left_out, say_unchecked, unchecked
from equipoise.lake.offers.scanner import Offer, Scanner, Union, warn_of_chance
from equipoise.lake.offers.shortfall import Lack, explain_shortfall
from equipoise.lake.offers.survey import Candidate, Survey, say_alignment, say_nearest, survey
from equipoise.lake.tables.contents import Contents
from equipoise.options.search import SearchRequest
from equipoise.plain import Grid, counted, rows_text
from equipoise.progress import Reporter, cancellable, silent
from equipoise.results import FlatTable, Result
from equipoise.values import plain

if TYPE_CHECKING:
    from equipoise.lake.cover.worth import Whole

_OPEN_SHOWN = 3
_SHOWN = 10


@dataclass(frozen=True)
class Ranked:
    """A table, its offer, and its score: needed rows per unit of cost, times the confidence."""

    offer: Offer
    score: float


@dataclass(frozen=True, eq=False, kw_only=True)
class Found(Result):
    """Offers of a lake for a plan.

    Attributes
    ----------
    need
        Cells that get rows, and the number of rows of each.
    offers
        Best tables, the highest score first.
    lacks
        Cells for which all tables together have too few rows, and the reasons.
    scanned
        Number of tables that were scanned; the others cannot be among the best.
    survey
        Tables of the lake that may be used.
    nearest
        Most similar columns, if no table can be used.
    compared
        Whether duplicates of rows of the base were left out.
    duplicates, by_chance
        Number of duplicates in the scanned tables, and how many of as many new rows would be left
        out by chance.
    reading
        Options that the base was read with; the same condition applies to the tables.
    outside
        Number of rows of the scanned tables that do not satisfy the condition.
    """

    need: Need
    offers: tuple[Ranked, ...]
    lacks: tuple[tuple[str, Lack], ...]
    scanned: int
    survey: Survey
    nearest: str | None
    compared: bool
    duplicates: int = 0
    by_chance: float = 0.0
    reading: Reading = field(default_factory=Reading)
    outside: int = 0

    @property
    def exit_code(self) -> int:
        """0, or 1 if the lake has too few rows."""
        return 1 if self.lacks else 0

    @property
    def sentences(self) -> tuple[str, ...]:
        """Summary in sentences."""
        total, cells = int(self.need.rows.sum()), len(self.need.rows)
        usable = len(self.survey.usable)
        are = "is" if total == 1 else "are"
        needed = f"{rows_text(total)} of {counted(cells, 'cell')} {are} needed"
        can = f"{usable:,} of {self.survey.looked_at:,} tables can be used"
        said = [f"{needed}; {can}, and {self.scanned:,} were scanned.", *self._condition()]
        if self.nearest:
            said.append(f"No table has all needed columns: {self.nearest}.")
        said += [lack.sentence(name) for name, lack in self.lacks[:_SHOWN]]
        if len(self.lacks) > _SHOWN:
            said.append(f"Rows of {len(self.lacks) - _SHOWN:,} more cells are missing.")
        if not self.lacks and total:
            said.append("Together they have all needed rows.")
        if warning := warn_of_chance(self.duplicates, self.by_chance):
            said.append(warning)
        if self.survey.open:
            said.append(
                f"{len(self.survey.open):,} more could be used if you confirm what they mean: "
                "equipoise lake mapping."
            )
            said += [
                f"  {c.name}: {'; '.join(f'{n}: {why}' for n, why in c.alignment.doubts.items())}"
                for c in self.survey.open[:_OPEN_SHOWN]
            ]
        if self.survey.passed_over:
            said.append(
                f"{self.survey.passed_over:,} were not compared closely: they share no word with some "
                "column that the plan counts."
            )
        if self.survey.unreadable:
            said.append(
                f"{self.survey.unreadable:,} cannot be used as they are written: equipoise lake "
                "index lists them."
            )
        tables = [ranked.offer.candidate.table for ranked in self.offers]
        said += [f"Of {t.name} {t.skipped}." for t in tables if t.skipped][:_SHOWN]
        if not self.compared:
            said.append("Without the base, duplicates of its rows are counted too.")
        return tuple(said)

    def _condition(self) -> list[str]:
        """Describe the condition, and the tables in which it cannot be checked."""
        where = self.reading.where
        if where is None:
            return []
        do = "does" if self.outside == 1 else "do"
        others = f"{rows_text(self.outside)} of the scanned tables {do} not satisfy this."
        said = f"Only rows where {where.one_line} are offered; {others}"
        return [said, *say_unchecked(unchecked(self.survey.barred, where))]

    def grid(self) -> Grid:
        """Table for people, the best offer first."""
        numbers = ("needed rows", "duplicates", "cost", "confidence", "score")
        rows = []
        for table, needed, duplicates, cost, row_cost, confidence, score, how in self._table()[1]:
            costs = f"{cost:,.6g}" + (f" + {row_cost:,.6g}/row" if row_cost else "")
            shares = (f"{confidence:.2f}", f"{score:,.4g}")
            rows.append((table, f"{needed:,}", f"{duplicates:,}", costs, *shares, how))
        return Grid(("table", *numbers, "matched by"), tuple(rows), frozenset(range(1, 6)))

    def _table(self) -> FlatTable:
        names = (
            *("table", "needed_rows", "duplicates", "table_cost", "row_cost", "confidence"),
            *("score", "matched_by"),
        )
        rows = [
            (
                ranked.offer.name,
                int(np.minimum(ranked.offer.rows, self.need.rows).sum()),
                int(ranked.offer.duplicates.sum()),
                ranked.offer.candidate.conditions.table_cost,
                ranked.offer.candidate.conditions.row_cost,
                ranked.offer.candidate.confidence,
                ranked.score,
                say_alignment(ranked.offer.candidate, self.survey.want.required),
            )
            for ranked in self.offers
        ]
        return names, rows

    def to_dict(self) -> dict[str, Any]:
        """Plain data, as ``--json`` prints it."""
        cells = [self.need.named(i) for i in range(len(self.need.rows))]
        return {
            "schema": "equipoise.find/1",
            "need": [
                {"cell": {k: plain(v) for k, v in cell.items()}, "rows": int(n)}
                for cell, n in zip(cells, self.need.rows, strict=True)
            ],
            "offers": [self._offer(ranked) for ranked in self.offers],
            "shortfall": [lack.to_dict(name) for name, lack in self.lacks],
            "open": [
                {
                    "table": c.name,
                    "doubts": dict(c.alignment.doubts),
                    "rows": c.profile.rows,
                    "confidence": c.confidence,
                }
                for c in self.survey.open
            ],
            "not_used": [
                {"table": c.name, "why": c.barred}
                for c in (*self.survey.barred, *self.survey.refused)
            ],
            "tables": self.survey.looked_at,
            "usable": len(self.survey.usable),
            "scanned": self.scanned,
            "unreadable": self.survey.unreadable,
            "passed_over": self.survey.passed_over,
            "compared_with_base": self.compared,
            "duplicates": self.duplicates,
            "by_chance": self.by_chance,
            "reading": self.reading.to_dict(),
            "outside": self.outside,
            "sentences": list(self.sentences),
        }

    def _offer(self, ranked: Ranked) -> dict[str, Any]:
        """An offer with its rows by cell, and why its columns and values were matched."""
        offer, want = ranked.offer, self.survey.want
        candidate, conditions = offer.candidate, offer.candidate.conditions
        needed = np.minimum(offer.rows, self.need.rows)
        cells = [self.need.named(i) for i in range(len(self.need.rows))]
        told = zip(
            *(cells, self.need.rows, offer.offered, needed, offer.duplicates),
            strict=True,
        )
        return {
            **_offer_dict(ranked, [*map(str, cells)], want),
            "needed_rows": int(needed.sum()),
            "cost": conditions.table_cost + conditions.row_cost * int(needed.sum()),
            "consent": conditions.consent,
            "table_rows": candidate.profile.rows,
            "by_chance": offer.by_chance,
            "cells": [
                {
                    "cell": {name: plain(value) for name, value in cell.items()},
                    "need": int(need),
                    "offered": int(rows),
                    "needed_rows": int(some),
                    "duplicates": int(duplicates),
                }
                for cell, need, rows, some, duplicates in told
            ],
            "matched_by": say_alignment(candidate, want.required),
            "confirmed": candidate.alignment.confirmed,
            "uncertain": {
                name: {"column": match.source, "why": match.doubt}
                for name, match in candidate.alignment.proposed.items()
            },
        }


def _offer_dict(ranked: Ranked, cells: Sequence[str], want: Wanted) -> dict[str, Any]:
    offer = ranked.offer
    candidate, conditions = offer.candidate, offer.candidate.conditions
    rows = zip(cells, offer.offered.tolist(), strict=True)
    evidence = explain_columns(want, candidate.profile, candidate.alignment)
    explained = explain_values(want, candidate.profile, candidate.alignment)
    return {
        "table": offer.name,
        "score": ranked.score,
        "confidence": candidate.confidence,
        "table_cost": conditions.table_cost,
        "row_cost": conditions.row_cost,
        "licence": conditions.licence,
        "rows": {cell: n for cell, n in rows if n},
        "duplicates": int(offer.duplicates.sum()),
        "failed": offer.failed,
        "failures": dict(offer.failures),
        "unmapped": offer.unmapped,
        "outside": offer.outside,
        "skipped": candidate.table.skipped.to_dict(),
        "columns": {
            name: {
                "column": match.source,
                "score": match.score,
                "why": match.why,
                "evidence": evidence.get(name),
            }
            for name, match in candidate.alignment.columns.items()
        },
        "values": {
            name: {
                "step": v.step,
                "why": v.why,
                "map": dict(v.values),
                "values": explained[name][0],
                "more_values": explained[name][1],
            }
            for name, v in candidate.alignment.values.items()
        },
    }


@cancellable
def find(
    plan: Planned,
    lake: Contents,
    *,
    base: Source | None = None,
    looking: SearchRequest | None = None,
    top: int = 10,
    progress: Reporter = silent,
) -> Found:
    """Rank the tables of a lake by the number of needed rows they offer per unit of cost.

    Tables are scanned in the order of an upper bound from their profiles. Tables that cannot be
    among the best are not opened, unless rows are still missing. Without a base, only the needed
    columns are matched, and duplicates of its rows are not left out.
    """
    looking = looking or SearchRequest()
    need = need_of(plan.add, plan.counts.request_for_rows())
    reading = plan.counts.reading
    if base is None and reading.where is not None:
        raise InputError(
            f"the plan covers only rows where {reading.where.one_line}, which can be checked in "
            "other tables only with the table it was made for; pass that as `base`."
        )
    if base is None:
        over = survey(lake, wanted(plan.counts), looking, progress)
        scanner = Scanner(lake.engine, over.want, need, None, looking.seed)
    else:
        prospect = explore(plan.counts, base, lake, looking, progress=progress)
        over, scanner = prospect.survey, prospect.scanner(need)
    best, scanned = _ranked(over.usable, scanner, top, progress)
    lacks, scanned = explain_lacks(over, scanner, scanned, progress)
    of_use = over.usable or over.barred or over.open
    nearest = None if of_use else say_nearest(lake, over.want)
    return Found(
        need=need,
        offers=best,
        lacks=lacks,
        scanned=len(scanned),
        survey=over,
        nearest=nearest,
        compared=base is not None,
        duplicates=sum(int(o.duplicates.sum()) for o in scanned.values()),
        by_chance=sum(o.by_chance for o in scanned.values()),
        reading=reading,
        outside=sum(o.outside for o in scanned.values()),
    )


def _ranked(
    candidates: Sequence[Candidate], scanner: Scanner, top: int, progress: Reporter
) -> tuple[tuple[Ranked, ...], dict[str, Offer]]:
    """Return the best tables, and the offers of all tables that had to be scanned to find them."""
    scanned: dict[str, Offer] = {}

    def score(candidate: Candidate, rows: Whole) -> float:
        return ranking.score(
            rows,
            scanner.need.rows,
            confidence=candidate.confidence,
            table_cost=candidate.conditions.table_cost,
            row_cost=candidate.conditions.row_cost,
        )

    def exact(i: int) -> float:
        candidate = candidates[i]
        progress(f"scanning {candidate.name}", len(scanned) / len(candidates))
        offer = scanned[candidate.name] = scanner.scan(candidate)
        return score(candidate, offer.rows)

    best = ranking.top([score(c, scanner.bound(c)) for c in candidates], exact, top)
    offers = (Ranked(scanned[candidates[i].name], found) for i, found in best if found > 0)
    return tuple(offers), scanned


def explain_lacks(
    over: Survey, scanner: Scanner, scanned: Mapping[str, Offer], progress: Reporter
) -> tuple[tuple[tuple[str, Lack], ...], dict[str, Offer]]:
    """Scan more tables until all rows are found or none is left; explain what is missing."""
    need, scanned = scanner.need.rows, dict(scanned)
    if scanned and (np.max([o.rows for o in scanned.values()], axis=0) >= need).all():
        return (), scanned  # for every cell a single table has enough rows
    found, union = 0 * need, Union(scanner)
    _compare_all(over.usable, scanner, progress)
    # Tables that are scanned already come first, since they may have all that is needed.
    for candidate in sorted(over.usable, key=lambda c: c.name not in scanned):
        if (found >= need).all():
            break
        if not (scanner.bound(candidate) * (found < need)).any():
            continue
        progress(f"scanning {candidate.name}", len(scanned) / len(over.usable))
        offer = scanned.get(candidate.name) or scanner.scan(candidate)
        scanned[candidate.name] = offer
        found = found + union.add(candidate)
    offered = sum((o.rows + o.duplicates for o in scanned.values()), 0 * need)
    lost = {"duplicates": offered - found}
    if (found < need).any():
        lost |= rows_left_out(over, scanner, list(scanned.values()), progress)
    lacks = explain_shortfall(need, np.minimum(found, need), lost)
    return tuple((str(scanner.need.named(k.cell)), k) for k in lacks), scanned


def _compare_all(usable: Sequence[Candidate], scanner: Scanner, progress: Reporter) -> None:
    """Compare at once the tables that must all be scanned, since even together they lack rows."""
    bounds = [scanner.bound(candidate) for candidate in usable]
    short = sum(bounds, 0 * scanner.need.rows) < scanner.need.rows
    some = [c for c, bound in zip(usable, bounds, strict=True) if (bound * short).any()]
    scanner.expect(some, progress)
    scanner.compare_all(some)
