"""The whole repair: plan, search, plan again with the rows there are, take them, verify."""

from __future__ import annotations

import contextlib
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
from equipoise.lake.offers.need import EVERY_ROW, Need, need_of
from equipoise.lake.offers.prospect import Prospect, explore
from equipoise.lake.offers.scanner import Scanner, Union, warn_of_chance
from equipoise.lake.offers.shortfall import Lack
from equipoise.lake.offers.survey import Candidate
from equipoise.lake.repair.acquire import acquire, output_places
from equipoise.lake.repair.acquisition import Acquired
from equipoise.lake.repair.base import cell_table
from equipoise.lake.repair.destinations import plan_beside, telling_what_is_written
from equipoise.lake.tables.contents import Contents
from equipoise.lake.verify.checks import verify
from equipoise.lake.verify.verification import Verification
from equipoise.options.search import AcquisitionLimits, SearchRequest
from equipoise.plain import Grid, rows_text
from equipoise.plans.infeasibility import Infeasible
from equipoise.plans.plan import Plan
from equipoise.plans.planner import make_plan, nearest_plan
from equipoise.progress import Reporter, cancellable, silent
from equipoise.results import Drawable, FlatTable
from equipoise.values import MISSING

if TYPE_CHECKING:
    from equipoise.plans.request import PlanRequest

_MOST_CELLS = 50_000
"""Maximum number of possible cells; with more, only the cells of the table are searched for."""

_SHOWN = 5


@dataclass(frozen=True, eq=False, kw_only=True)
class Repaired(Drawable):
    """Result of a whole repair.

    Attributes
    ----------
    ideal
        Plan made before the lake was searched; None if there is no such plan.
    plan
        Plan that was carried out.
    acquired
        Rows that were taken, and counts of the file that was written.
    verification
        Result of the independent verification; None after a dry run.
    tolerance
        Requested tolerance.
    lacks
        Cells of the first plan for which the lake has too few rows, and the reasons.
    chance
        Warning if many rows that were left out as duplicates may be other people.
    is_given
        Whether the plan was given, and not made for this repair.
    """

    ideal: Plan | None
    plan: Plan
    acquired: Acquired
    verification: Verification | None
    tolerance: float
    lacks: tuple[tuple[str, Lack], ...] = ()
    chance: str | None = None
    is_given: bool = False

    @property
    def reached(self) -> bool:
        """Whether the rows that were taken reach the requested tolerance."""
        return self.plan.reached and self.acquired.as_planned

    @property
    def exit_code(self) -> int:
        """0, or 1 if the tolerance was not reached or the verification failed."""
        verified = self.verification is None or self.verification.ok
        return 0 if self.reached and verified else 1

    @property
    def sentences(self) -> tuple[str, ...]:
        """Summary in sentences."""
        said = [self._planned()]
        said += [lack.sentence(name) for name, lack in self.lacks[:_SHOWN]]
        said += [self.chance] if self.chance else []
        if self.is_given:
            said += self.plan.certificate.sentences
        elif not self.plan.reached:
            said += [self._missed(), self._ended()]
        elif not self.acquired.as_planned:
            said.append("The limits do not allow all these rows to be taken.")
        said += self.acquired.sentences
        if self.verification is not None:
            said.append(self.verification.sentences[0])
        return tuple(said)

    def _missed(self) -> str:
        left = self.plan.certificate.off_after
        if self.plan.certificate.policy:
            return (
                "With the rows of the lake, the policy cannot be kept; in the nearest plan found, a "
                f"group is outside its limits by {left:.3g}."
            )
        return (
            f"With the rows of the lake, a tolerance of {self.tolerance:g} cannot be reached; "
            f"the smallest one found is {left:.3g}."
        )

    def _ended(self) -> str:
        """What ended the search for the nearest plan."""
        if self.plan.timed_out:
            return (
                f"The time limit of {self.plan.request.time_limit:g} seconds ended that search; with a "
                "longer `time_limit` a better plan may be found."
            )
        return (
            "That search ended by its own rules, not by time, so it gives the same plan each time."
        )

    def _planned(self) -> str:
        if self.is_given:
            all_taken = "all" if self.acquired.as_planned else "not all"
            return (
                f"The given plan adds {rows_text(self.plan.additions)} and deletes "
                f"{self.plan.deletions:,}; {all_taken} of these changes can be made with this lake."
            )
        if self.ideal is None:
            return "No plan reaches the tolerance, not even with unlimited rows."
        if not self.plan.additions and self.ideal is self.plan:
            return "The cheapest plan needs no rows of the lake."
        if self.ideal is self.plan:
            return f"The lake has all rows that the cheapest plan adds: {rows_text(self.plan.additions)}."
        return (
            f"The cheapest plan needs {rows_text(self.ideal.additions)}, but the lake does not have "
            f"them all; the plan with the rows it has adds {rows_text(self.plan.additions)} and "
            f"deletes {self.plan.deletions:,}."
        )

    def _table(self) -> FlatTable:
        before, after = self.acquired.before, self.acquired.after
        return cell_table({"before": before, "planned": self.acquired.planned, "after": after})

    def _grids(self) -> list[Grid]:
        return [self.acquired.grid(), self.plan.certificate.grid()]

    def text(self) -> str:
        """Summary in sentences, and the number of rows from each table."""
        shares = [self.acquired.grid().text()] if self.acquired.shares else []
        return "\n\n".join(["\n".join(self.sentences), *shares])

    def to_dict(self) -> dict[str, Any]:
        """Plain data, as ``--json`` prints it."""
        return {
            "schema": "equipoise.repair/1",
            "reached": self.reached,
            "tolerance": self.tolerance,
            "is_given": self.is_given,
            "ideal": None if self.ideal is None else self.ideal.to_dict(),
            "plan": self.plan.to_dict(),
            "lacks": [lack.to_dict(name) for name, lack in self.lacks],
            "chance": self.chance,
            "acquired": self.acquired.to_dict(),
            "verification": None if self.verification is None else self.verification.to_dict(),
            "sentences": list(self.sentences),
        }


@cancellable
def repair(
    counts: Counts,
    base: Source,
    lake: Contents,
    request: PlanRequest,
    output: str | os.PathLike[str] | None,
    *,
    plan: Plan | None = None,
    ledger: str | os.PathLike[str] | None = None,
    plan_file: str | os.PathLike[str] | None = None,
    looking: SearchRequest | None = None,
    limits: AcquisitionLimits | None = None,
    hash_key: bytes | None = None,
    progress: Reporter = silent,
) -> Repaired:
    """Plan the repair of a table, carry it out with rows of a lake, and verify it.

    If the lake has too few rows for the cheapest plan, a new plan is made with the rows it has.
    If no such plan reaches the tolerance, the closest one is carried out. A ``plan`` that is given is
    carried out as it is, as far as the lake has its rows. By default the ledger and the plan are
    written next to the output, the plan of a table of a database to the working folder; without an
    output nothing is written.
    """
    looking, limits = looking or SearchRequest(), limits or AcquisitionLimits()
    file = None if output is None else Path(plan_file or plan_beside(output))
    # Planning may take long, so places that cannot be written are refused before it.
    places = output_places(base, lake, output, ledger, looking, () if file is None else (file,))
    is_given, ideal = plan is not None, plan
    if not is_given:
        with contextlib.suppress(Infeasible):
            ideal = make_plan(counts, request, explain=False, progress=progress)
    prospect = explore(
        counts, base, lake, looking, require_columns=limits.require_columns, progress=progress
    )
    if plan is None:
        plan = _with_what_there_is(ideal, counts, request, prospect, progress)
    plan = replace(plan, source=base.name)
    acquired = acquire(
        plan,
        base,
        lake,
        output,
        ledger=ledger,
        looking=looking,
        # The lake has the rows of the plan, but limits may forbid some: reported, not an error.
        limits=replace(limits, partial=True),
        hash_key=hash_key,
        prospect=prospect,
        beside=None if file is None else {file: plan.to_json(indent=2) + "\n"},
        progress=progress,
    )
    is_ideal = ideal is not None and plan.add == ideal.add
    lacks, chance, verification = tuple[tuple[str, Lack], ...](), None, None
    with telling_what_is_written(places):
        if ideal is not None and not is_ideal:
            lacks, chance = _lacks(ideal, counts, prospect, progress)
        if places is not None and file is not None:
            progress("verifying the result", 0.95)
            out, listed = places.output.source, places.ledger.source
            verification = verify(out, base, file, listed, engine=lake.engine, hash_key=hash_key)
    return Repaired(
        ideal=plan if is_ideal else ideal,
        plan=plan,
        acquired=acquired,
        verification=verification,
        tolerance=request.tolerance,
        lacks=lacks,
        chance=chance,
        is_given=is_given,
    )


def _lacks(
    ideal: Plan, counts: Counts, prospect: Prospect, progress: Reporter
) -> tuple[tuple[tuple[str, Lack], ...], str | None]:
    """Explain which rows of the cheapest plan the lake does not have."""
    scanner = prospect.scanner(need_of(ideal.add, counts.request_for_rows()))
    lacks, scanned = explain_lacks(prospect.survey, scanner, {}, progress)
    duplicates = sum(int(offer.duplicates.sum()) for offer in scanned.values())
    return lacks, warn_of_chance(duplicates, sum(offer.by_chance for offer in scanned.values()))


def _with_what_there_is(
    ideal: Plan | None,
    counts: Counts,
    request: PlanRequest,
    prospect: Prospect,
    progress: Reporter,
) -> Plan:
    """Return the cheapest plan if the lake has its rows, or else the best one with its rows."""
    if ideal is not None:
        need = need_of(ideal.add, counts.request_for_rows())
        if not len(need.rows) or (available(need, prospect, progress) >= need.rows).all():
            return ideal
    within = replace(request, pool=all_available(counts, prospect, progress))
    return nearest_plan(counts, within, progress=progress)


def all_available(counts: Counts, prospect: Prospect, progress: Reporter = silent) -> Counts:
    """Count the distinct rows of every cell in all usable tables together."""
    everything = _every_cell(counts)
    return replace(everything.cells, rows=available(everything, prospect, progress))


def available(need: Need, prospect: Prospect, progress: Reporter) -> np.ndarray[Any, Any]:
    """Count the distinct rows of the needed cells in usable tables, until there are enough."""
    scanner = prospect.scanner(need)
    union = Union(scanner)
    usable = [c for c in prospect.survey.usable if scanner.bound(c).any()]
    first = _probably_enough(usable, scanner)
    for start, end in ((0, first), (first, len(usable))):
        scanner.expect(usable[start:end], progress)
        scanner.compare_all(usable[:end])
        for candidate in usable[start:end]:
            union.add(candidate)
        if (union.found >= need.rows).all():
            break
    return union.found


def _probably_enough(usable: Sequence[Candidate], scanner: Scanner) -> int:
    """Return how many tables may have twice the needed rows, since some of them are duplicates."""
    total = 0 * scanner.need.rows
    for i, candidate in enumerate(usable):
        if (total >= 2 * scanner.need.rows).all():
            return i
        total = total + scanner.bound(candidate)
    return len(usable)


def _every_cell(counts: Counts) -> Need:
    """Need all possible cells, or those of the table if there would be too many."""
    known = [[i for i, v in enumerate(a.values) if v is not MISSING] for a in counts.axes]
    if np.prod([float(len(k)) for k in known]) > _MOST_CELLS:
        cells: Sequence[Sequence[int]] = counts.codes.tolist()
    else:
        cells = list(itertools.product(*known))
    codes = np.array(cells, counts.codes.dtype).reshape(len(cells), len(counts.axes))
    everything = replace(counts, codes=codes, rows=np.full(len(codes), EVERY_ROW))
    return need_of(everything, counts.request_for_rows())
