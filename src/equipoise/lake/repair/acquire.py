"""Take the rows that a plan needs from the tables of a lake, and record where they come from."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from equipoise.atomic import atomic_path
from equipoise.counts import Counts
from equipoise.counts.columns import values_in
from equipoise.engines.base import Part, has_changed
from equipoise.engines.database import require_comparable
from equipoise.engines.sources import Source
from equipoise.errors import PoolTooSmall, ShiftTooLarge
from equipoise.lake.matching.mapping import is_mapping_text
from equipoise.lake.matching.notations import is_absent
from equipoise.lake.offers.base_rows import BaseRows, rows_of
from equipoise.lake.offers.copies import TableCopies
from equipoise.lake.offers.need import Need, Planned, need_of
from equipoise.lake.offers.prospect import Prospect, explore, unchecked
from equipoise.lake.offers.shortfall import Lack
from equipoise.lake.offers.survey import say_alignment
from equipoise.lake.repair.acquisition import Acquired, Share, TreatedColumn
from equipoise.lake.repair.base import (
    LocatedRow,
    PlannedChange,
    choose_removed,
    has_order,
)
from equipoise.lake.repair.choice import Choice, choose_rows, find_lacks, say_too_few
from equipoise.lake.repair.destinations import (
    Destinations,
    WrittenTable,
    named_places,
    require_other_tables,
    telling_what_is_written,
)
from equipoise.lake.repair.entries import about_repair, added_entries, removed_entries
from equipoise.lake.repair.fill import TableRows
from equipoise.lake.repair.ledger import ledger_table
from equipoise.lake.repair.output import lacking_rows, put_together, require_apart
from equipoise.lake.repair.shift.measure import measure_shift
from equipoise.lake.repair.shift.shift import Shift
from equipoise.lake.tables.contents import Contents
from equipoise.options.search import AcquisitionLimits, SearchRequest
from equipoise.progress import Reporter, cancellable, silent
from equipoise.values import MISSING

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True)
class _Taken:
    """A plan, and the rows that are removed and added for it."""

    change: PlannedChange
    prospect: Prospect
    choice: Choice
    lacks: tuple[tuple[str, Lack], ...]
    removed: Sequence[LocatedRow]
    stay: BaseRows
    added: pa.Table
    lacking: Mapping[str, Sequence[range]]
    shift: Shift | None


@cancellable
def acquire(
    plan: Planned,
    base: Source,
    lake: Contents,
    output: str | os.PathLike[str] | None,
    *,
    ledger: str | os.PathLike[str] | None = None,
    looking: SearchRequest | None = None,
    limits: AcquisitionLimits | None = None,
    hash_key: bytes | None = None,
    prospect: Prospect | None = None,
    beside: Mapping[Path, str] | None = None,
    progress: Reporter = silent,
) -> Acquired:
    """Carry out a plan on a base table with rows of a lake.

    The rows that stay keep their order and values. The added rows follow them, with the columns
    and types of the base. The table is written to a temporary place and counted there; only then
    it and the ledger are moved into place, together with the texts of ``beside``. The base is
    never changed. ``prospect`` saves a second search of the same lake for the same base.

    Raises
    ------
    PoolTooSmall
        If the lake has too few rows, and ``limits.partial`` is not set.
    ShiftTooLarge
        If the distribution of the added rows differs by more than the limit.
    """
    looking, limits = looking or SearchRequest(), limits or AcquisitionLimits()
    places = output_places(base, lake, output, ledger, looking, beside or ())
    taken = _take(plan, base, lake, looking, limits, prospect, progress)
    change = taken.change
    if places is None:
        after = change.before + taken.choice.counts - change.delete
        return _result(taken, None, after)
    after, written = _write(taken, places, beside or {}, hash_key, progress)
    with telling_what_is_written(places):
        made = _result(taken, places, after)
    filled = tuple(dict.fromkeys([*written.numbered, *written.generated, *written.completed]))
    return replace(
        made,
        lost=written.lost,
        numbered=written.numbered,
        filled=filled,
        shift=made.shift and made.shift.without(filled, "the database filled it in by itself"),
        keyed=hash_key is not None,
    )


def _take(
    plan: Planned,
    base: Source,
    lake: Contents,
    looking: SearchRequest,
    limits: AcquisitionLimits,
    prospect: Prospect | None,
    progress: Reporter,
) -> _Taken:
    """Choose the rows that are added and removed; refuse what the limits do not allow."""
    if prospect is None:
        progress(f"reading {base.name}", 0)
    expected = plan.counts.n + plan.counts.dropped
    rows = rows_of(lake.engine, base, expected) if prospect is None else prospect.rows
    request = plan.counts.request_for_rows()
    # A base that the plan was not made for is refused before the lake is searched.
    change = PlannedChange.of(plan, base, rows.counts(request), force=limits.force)
    needed = limits.require_columns
    prospect = prospect or explore(
        plan.counts, base, lake, looking, require_columns=needed, rows=rows, progress=progress
    )
    choice = choose_rows(prospect, need_of(change.add, request), limits, progress)
    for part in choice.chosen:
        part.candidate.require_unchanged(surely=True)
    lacks = find_lacks(prospect, choice, limits, progress)
    if lacks and not limits.partial:
        raise PoolTooSmall(say_too_few(prospect, choice, lacks))
    if change.delete.n and not has_order(base):
        change = replace(change, base=prospect.rows.in_order())
    removed = choose_removed(prospect.engine, change, looking.seed)
    stay = prospect.rows.without(removed)
    parts = [(part.candidate.name, part.drawn.rows) for part in choice.chosen]
    added = put_together(stay.like, parts, base.name)
    progress("comparing added rows with those of the base", 0.7)
    shift = _shift(stay, added, choice.need, limits.max_shift)
    lacking = lacking_rows(stay.like, parts)
    return _Taken(change, prospect, choice, lacks, removed, stay, added, lacking, shift)


def _write(
    taken: _Taken,
    places: Destinations,
    beside: Mapping[Path, str],
    key: bytes | None,
    progress: Reporter,
) -> tuple[Counts, WrittenTable]:
    """Write the table and the ledger; return the counts of the table, and what became of the rows."""
    change, prospect, engine = taken.change, taken.prospect, taken.prospect.engine
    progress(f"writing {places.output.name}", 0.8)
    base = Part(change.base, [place for place, *_ in taken.removed])
    with contextlib.ExitStack() as stack:
        for path, text in beside.items():
            stack.enter_context(atomic_path(path)).write_text(text, encoding="utf-8")
        list_entries = places.ledger.listing(stack, engine)
        written = stack.enter_context(
            places.output.writing(base, taken.stay.n, taken.added, engine, taken.lacking)
        )
        progress(f"counting {places.output.name}", 0.9)
        after = engine.counts(written.source, change.request)
        # Rows are listed by numbers that begin after those that stay.
        if after.n + after.dropped != taken.stay.n + len(taken.added):
            raise has_changed(change.base, "its rows were counted")
        came = added_entries(prospect, taken.choice, written, key, progress)
        lines = [*removed_entries(change, taken.removed, key), *came]
        list_entries(ledger_table(lines, about_repair(change, prospect, places.output, key)))
    return after, written


def output_places(
    base: Source,
    lake: Contents,
    output: str | os.PathLike[str] | None,
    ledger: str | os.PathLike[str] | None,
    looking: SearchRequest,
    beside: Iterable[Path] = (),
) -> Destinations | None:
    """Return where the table and the ledger go; refuse what is read, or is in the lake, and a bad key."""
    lake.engine.require_key(base)
    places = None if output is None else named_places(output, ledger, lake.engine)
    # Spark writes nested values in another way than files do, so that its rows would not be verified.
    if base.kind == "spark" or (places is not None and places.tables):
        require_comparable(lake.engine.schema(base), base.name)
    if places is None:
        return None
    mapping = None if is_mapping_text(looking.mapping or "") else looking.mapping
    named = [("the mapping file", mapping), ("the file of conditions", looking.sources)]
    read = [("the base", path) for path in base.paths]
    read += [(name, Path(path)) for name, path in named if path is not None]
    require_apart([*places.files, *beside], read + lake.files())
    lake.require_outside(places.files)
    stored = [("the base", base), *((f"{t.name} of the lake", t.source) for t in lake.tables)]
    require_other_tables(places.tables, stored, lake.engine)
    return places


# ------------------------------------------------------------------------------- shift


def _shift(base: BaseRows, added: pa.Table, need: Need, limit: float | None) -> Shift | None:
    """Compare the added rows with those of the base in the same cells; refuse a large shift."""
    if not len(added):
        return None
    rows, of, outside = base.sample(need)
    cells = need.numbers(rows), need.numbers(added)
    others = [n for n in rows.column_names if n not in need.request.columns]
    shift = measure_shift(rows, added, cells, columns=others, limit=limit)
    # All rows of other cells count as one cell, even if they are not fetched.
    others_too = shift.cells_without_added + bool(outside)
    shift = replace(shift, cells_without_added=others_too)
    if of is not None:
        shift = replace(shift, sampled=len(rows), sampled_of=of)
    if shift.exceeded:
        raise ShiftTooLarge(
            f"the added rows differ from {base.source.name} by more than {limit:g}: "
            f"{' '.join(shift.sentences)}"
        )
    return shift


# ------------------------------------------------------------------------------ result


def _result(taken: _Taken, places: Destinations | None, after: Counts) -> Acquired:
    change, prospect, choice = taken.change, taken.prospect, taken.choice
    shares = (_share(part, prospect, choice.need) for part in choice.chosen)
    return Acquired(
        output=None if places is None else places.output.name,
        ledger=None if places is None else places.ledger.name,
        shares=tuple(sorted(shares, key=lambda share: (-share.rows, share.name))),
        lacks=taken.lacks,
        cost=choice.selection.cost,
        bound=choice.selection.bound,
        shift=taken.shift,
        duplicates=int(choice.across.sum()) + choice.duplicates,
        by_chance=float(choice.by_chance),
        failures={o.name: o.failures for o in choice.offers if o.failures},
        unmapped=sum(o.unmapped for o in choice.offers),
        outside=sum(o.outside for o in choice.offers),
        unchecked=unchecked(prospect.survey.barred, prospect.rows.source.where),
        open_tables=len(prospect.survey.open),
        passed_over=prospect.survey.passed_over,
        seed=prospect.looking.seed,
        known_again=taken.stay.known_again(taken.added, change.request.columns),
        **change.measured(after),
    )


def _treated(part: TableRows, copies: TableCopies) -> tuple[TreatedColumn, ...]:
    """Count the values of added rows that were converted, kept or left missing."""
    candidate, rows = part.candidate, part.drawn.rows
    treated = candidate.alignment.treated
    counted = {}
    if any(t.action == "left missing" for t in treated):
        rows_there = copies.fetch(candidate, part.drawn.places.tolist())
        for t in treated:
            values = values_in(rows_there[t.column])
            texts = (v.strip() for v in values if v is not MISSING)
            counted[t.name] = sum(not is_absent(text) for text in texts)
    for t in treated:
        if t.name in rows.column_names:
            counted[t.name] = len(rows) - rows[t.name].null_count
    return tuple(TreatedColumn(**vars(t), values=counted[t.name]) for t in treated)


def _share(part: TableRows, prospect: Prospect, need: Need) -> Share:
    candidate = part.candidate
    by_cell = np.bincount(part.drawn.cells, minlength=len(need.rows)).tolist()
    conditions, rows = candidate.conditions, len(part.drawn.places)
    columns = {name: match.source for name, match in candidate.alignment.columns.items()}
    return Share(
        name=candidate.name,
        snapshot=candidate.table.snapshot,
        rows=rows,
        cost=conditions.table_cost + conditions.row_cost * rows,
        confidence=candidate.confidence,
        licence=conditions.licence,
        columns=columns,
        lacking=tuple(c.name for c in prospect.survey.want.columns if c.name not in columns),
        why=say_alignment(candidate, prospect.survey.want.required),
        treated=_treated(part, prospect.copies),
        uncertain={n: m.source for n, m in candidate.alignment.proposed.items()},
        cells=tuple((need.named(i), n) for i, n in enumerate(by_cell) if n),
        values={name: v.values for name, v in candidate.alignment.values.items()},
        consent=conditions.consent,
    )
