"""The whole loop: plan, look for the rows, plan again with what there is, take them, check."""

from __future__ import annotations

import itertools
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise.counts import Counts
from equipoise.engines.sources import Source
from equipoise.lake.offers.find import explain_lacks
from equipoise.lake.offers.need import Need, need_of
from equipoise.lake.offers.prospect import Prospect, explore
from equipoise.lake.offers.scanner import Union, warn_of_chance
from equipoise.lake.offers.shortfall import Lack
from equipoise.lake.repair.acquire import acquire, files_read
from equipoise.lake.repair.acquisition import Acquired
from equipoise.lake.repair.base import cell_table
from equipoise.lake.repair.output import as_written, require_apart
from equipoise.lake.tables.contents import Contents
from equipoise.lake.verify.checks import verify
from equipoise.lake.verify.verification import Verification
from equipoise.options.search import AcquisitionLimits, SearchRequest
from equipoise.plain import Grid, rows_text
from equipoise.plans.infeasibility import Infeasible
from equipoise.plans.plan import Plan
from equipoise.plans.planner import make_plan, nearest_plan
from equipoise.progress import Reporter, silent
from equipoise.results import Drawable, FlatTable
from equipoise.values import MISSING

if TYPE_CHECKING:
    from equipoise.plans.request import PlanRequest

_MOST_CELLS = 50_000
"""If there can be more cells, only those the table has are asked for."""

_SHOWN = 5


@dataclass(frozen=True, eq=False, kw_only=True)
class Repaired(Drawable):
    """What the whole loop did.

    Attributes
    ----------
    ideal
        The plan made before looking into the lake; none if there is none.
    plan
        The plan that was carried out.
    acquired
        What was taken, and the file counted again.
    verification
        What the independent check found; none after a dry run.
    tolerance
        What was asked for.
    lacks
        What the lake lacks for the first plan, by cell, and why.
    chance
        A warning, if many rows were left out as duplicates that may be others who look alike.
    """

    ideal: Plan | None
    plan: Plan
    acquired: Acquired
    verification: Verification | None
    tolerance: float
    lacks: tuple[tuple[str, Lack], ...] = ()
    chance: str | None = None

    @property
    def reached(self) -> bool:
        """Whether the tolerance that was asked for is reached, by the rows that were taken."""
        return self.plan.reached and self.acquired.as_planned

    @property
    def exit_code(self) -> int:
        """0, or 1 if the tolerance was not reached, or the check refutes something."""
        verified = self.verification is None or self.verification.ok
        return 0 if self.reached and verified else 1

    @property
    def sentences(self) -> tuple[str, ...]:
        """What was done, in sentences."""
        said = [self._planned()]
        said += [lack.sentence(name) for name, lack in self.lacks[:_SHOWN]]
        said += [self.chance] if self.chance else []
        if not self.plan.reached:
            reached = self.plan.certificate.off_after
            said.append(
                f"With the rows the lake has, a tolerance of {self.tolerance:g} cannot be reached; "
                f"this is the least that was found: {reached:.3g}."
            )
        elif not self.acquired.as_planned:
            said.append("The limits do not let all these rows be taken.")
        said += self.acquired.sentences
        if self.verification is not None:
            said.append(self.verification.sentences[0])
        return tuple(said)

    def _planned(self) -> str:
        if self.ideal is None:
            return "Without the lake there is no plan."
        if not self.plan.additions and self.ideal is self.plan:
            return "The cheapest plan needs no rows of the lake."
        if self.ideal is self.plan:
            return f"The lake has what the cheapest plan adds: {rows_text(self.plan.additions)}."
        return (
            f"The cheapest plan needs {rows_text(self.ideal.additions)}, not all of which the lake "
            f"has; the plan with what it has adds {rows_text(self.plan.additions)} and deletes "
            f"{self.plan.deletions:,}."
        )

    def _table(self) -> FlatTable:
        before, after = self.acquired.before, self.acquired.after
        return cell_table({"before": before, "planned": self.acquired.planned, "after": after})

    def _grids(self) -> list[Grid]:
        return [self.acquired.grid(), self.plan.certificate.grid()]

    def text(self) -> str:
        """The sentences, and what came from which table."""
        said = "\n".join(self.sentences)
        shares = self.acquired.grid().text() if self.acquired.shares else ""
        return f"{said}\n\n{shares}" if shares else said

    def to_dict(self) -> dict[str, Any]:
        """Plain data: what ``--json`` prints."""
        return {
            "schema": "equipoise.repair/1",
            "reached": self.reached,
            "tolerance": self.tolerance,
            "ideal": None if self.ideal is None else self.ideal.to_dict(),
            "plan": self.plan.to_dict(),
            "lacks": [{**vars(lack), "cell": name} for name, lack in self.lacks],
            "acquired": self.acquired.to_dict(),
            "verification": None if self.verification is None else self.verification.to_dict(),
            "sentences": list(self.sentences),
        }


def repair(
    counts: Counts,
    base: Source,
    lake: Contents,
    request: PlanRequest,
    output: str | os.PathLike[str] | None,
    *,
    ledger: str | os.PathLike[str] | None = None,
    plan_file: str | os.PathLike[str] | None = None,
    looking: SearchRequest | None = None,
    limits: AcquisitionLimits | None = None,
    hash_key: bytes | None = None,
    progress: Reporter = silent,
) -> Repaired:
    """Plan the repair of a table, and carry it out with rows of a lake as far as it has them.

    If the lake lacks rows of the cheapest plan, the plan is made again with what the lake has;
    if no plan reaches the tolerance then, the one that comes nearest is carried out.

    Parameters
    ----------
    counts, base
        The counts of the table, and the table.
    lake
        Where the rows may come from.
    request
        What is asked for.
    output, ledger, plan_file
        The repaired table, the list of changes and the plan; the last two beside the first
        unless given. Without an output nothing is written.
    looking, limits, hash_key, progress
        As :func:`~equipoise.lake.repair.acquire.acquire` takes them.
    """
    looking, limits = looking or SearchRequest(), limits or AcquisitionLimits()
    file = None if output is None else Path(plan_file or f"{os.fspath(output)}.plan.json")
    if output is not None and file is not None:
        listing = Path(ledger or f"{os.fspath(output)}.ledger.parquet")
        require_apart([Path(output), listing, file], files_read(base, lake, looking))
        lake.require_outside([Path(output), listing])
    ideal = _ideal(counts, request, progress)
    prospect = explore(
        counts, base, lake, looking, require_columns=limits.require_columns, progress=progress
    )
    plan = _with_what_there_is(ideal, counts, request, prospect, progress)
    plan = replace(plan, source=base.name)
    acquired = acquire(
        plan,
        base,
        lake,
        output,
        ledger=ledger,
        looking=looking,
        limits=replace(limits, partial=True),
        hash_key=hash_key,
        prospect=prospect,
        beside=None if file is None else {file: plan.to_json(indent=2) + "\n"},
        progress=progress,
    )
    verification = None
    if output is not None and acquired.ledger is not None and file is not None:
        progress("checking the result", 0.95)
        verification = verify(
            as_written(Path(output)),
            base,
            file,
            acquired.ledger,
            engine=lake.engine,
            hash_key=hash_key,
        )
    is_ideal = ideal is not None and plan.add == ideal.add
    lacks, chance = ((), None) if is_ideal else _lacks(ideal, counts, prospect, progress)
    return Repaired(
        ideal=plan if is_ideal else ideal,
        plan=plan,
        acquired=acquired,
        verification=verification,
        tolerance=request.tolerance,
        lacks=lacks,
        chance=chance,
    )


def _lacks(
    ideal: Plan | None, counts: Counts, prospect: Prospect, progress: Reporter
) -> tuple[tuple[tuple[str, Lack], ...], str | None]:
    """Say why the lake has not the rows of the cheapest plan."""
    if ideal is None:
        return (), None
    scanner = prospect.scanner(need_of(ideal.add, counts.request_for_rows()))
    lacks, scanned = explain_lacks(prospect.survey, scanner, {}, progress)
    duplicates = sum(int(offer.duplicates.sum()) for offer in scanned.values())
    return lacks, warn_of_chance(duplicates, sum(offer.by_chance for offer in scanned.values()))


def _ideal(counts: Counts, request: PlanRequest, progress: Reporter) -> Plan | None:
    try:
        return make_plan(counts, request, explain=False, progress=progress)
    except Infeasible:
        return None


def _with_what_there_is(
    ideal: Plan | None,
    counts: Counts,
    request: PlanRequest,
    prospect: Prospect,
    progress: Reporter,
) -> Plan:
    """Give the cheapest plan if the lake has its rows, else the best with what it has."""
    if ideal is not None:
        need = need_of(ideal.add, counts.request_for_rows())
        if not len(need.rows) or (available(need, prospect, progress) >= need.rows).all():
            return ideal
    within = replace(request, pool=all_available(counts, prospect, progress))
    return nearest_plan(counts, within, progress=progress)


def all_available(counts: Counts, prospect: Prospect, progress: Reporter = silent) -> Counts:
    """Count the rows of every cell that all usable tables have together, each row once."""
    everything = _every_cell(counts)
    return replace(everything.cells, rows=available(everything, prospect, progress))


def available(need: Need, prospect: Prospect, progress: Reporter) -> np.ndarray[Any, Any]:
    """How many rows of some cells all usable tables have together, each row once."""
    scanner = prospect.scanner(need)
    total, union = np.zeros(len(need.rows), np.int64), Union(scanner)
    usable = [c for c in prospect.survey.usable if scanner.bound(c).any()]
    for i, candidate in enumerate(usable):
        progress(f"looking into {candidate.name}", i / len(usable))
        total += union.add(candidate)
    return total


def _every_cell(counts: Counts) -> Need:
    """Ask for all cells: those the table has, and if they are not too many all there can be."""
    known = [[i for i, v in enumerate(a.values) if v is not MISSING] for a in counts.axes]
    if np.prod([float(len(k)) for k in known]) > _MOST_CELLS:
        cells: Sequence[Sequence[int]] = counts.codes.tolist()
    else:
        cells = list(itertools.product(*known))
    codes = np.array(cells, counts.codes.dtype).reshape(len(cells), len(counts.axes))
    everything = replace(counts, codes=codes, rows=np.ones(len(codes), np.int64))
    return need_of(everything, counts.request_for_rows())
