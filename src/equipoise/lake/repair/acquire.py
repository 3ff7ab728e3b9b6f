"""Take the rows that a plan needs from the tables of a lake, and record where they come from."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise.counts import Counts
from equipoise.counts.columns import values_in
from equipoise.engines.base import Part, require_writable
from equipoise.engines.sources import Source, locate
from equipoise.errors import PoolTooSmall, ShiftTooLarge
from equipoise.lake.matching.mapping import is_mapping_text
from equipoise.lake.matching.notations import is_absent
from equipoise.lake.offers.base_rows import BaseRows, rows_of
from equipoise.lake.offers.copies import TableCopies
from equipoise.lake.offers.need import Need, Planned, need_of
from equipoise.lake.offers.prospect import Prospect, explore, unchecked
from equipoise.lake.offers.survey import Candidate, say_alignment
from equipoise.lake.repair.acquisition import Acquired, Share, TreatedColumn
from equipoise.lake.repair.base import (
    LocatedRow,
    PlannedChange,
    choose_removed,
    has_order,
)
from equipoise.lake.repair.choice import Choice, choose_rows, find_lacks, say_too_few
from equipoise.lake.repair.fill import TableRows
from equipoise.lake.repair.ledger import keyed, ledger_table, write_ledger
from equipoise.lake.repair.output import published, put_together, require_apart, typed_for
from equipoise.lake.repair.shift.measure import measure_shift
from equipoise.lake.repair.shift.shift import Shift
from equipoise.lake.tables.contents import Contents
from equipoise.lattice import Group
from equipoise.options.search import AcquisitionLimits, OtherColumns, SearchRequest
from equipoise.progress import Reporter, cancellable, silent
from equipoise.values import MISSING, plain
from equipoise.version import __version__

if TYPE_CHECKING:
    import pyarrow as pa


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
    and types of the base. The file is written to a temporary place and counted there; only then
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
    if prospect is None:
        progress(f"reading {base.name}", 0)
    expected = plan.counts.n + plan.counts.dropped
    rows = rows_of(lake.engine, base, expected) if prospect is None else prospect.rows
    request = plan.counts.request_for_rows()
    # A base that the plan was not made for is refused before the lake is searched.
    change = PlannedChange.of(plan, base, rows.counts(request), force=limits.force)
    prospect = prospect or explore(
        plan.counts,
        base,
        lake,
        looking,
        require_columns=limits.require_columns,
        rows=rows,
        progress=progress,
    )
    taken = choose_rows(prospect, need_of(change.add, request), limits, progress)
    for part in taken.chosen:
        part.candidate.require_unchanged(surely=True)
    lacks = find_lacks(prospect, taken, limits, progress)
    if lacks and not limits.partial:
        raise PoolTooSmall(say_too_few(prospect, taken, lacks))
    if change.delete.n and not has_order(base):
        change = replace(change, base=prospect.rows.in_order())
    removed = choose_removed(prospect.engine, change, looking.seed)
    stay = prospect.rows.without(removed)
    parts = [(part.candidate.name, part.drawn.rows) for part in taken.chosen]
    added = put_together(stay.like, parts, base.name)
    progress("comparing added rows with those of the base", 0.7)
    shift = _shift(stay, added, taken.need, limits.max_shift)
    if places is None:
        after, lost = change.before + taken.counts - change.delete, dict[str, int]()
    else:
        after, lost = _write(
            change, prospect, taken, stay.n, added, removed, places, beside, hash_key, progress
        )
    shares = (_share(part, prospect, taken.need) for part in taken.chosen)
    return Acquired(
        output=None if places is None else str(places[0]),
        ledger=None if places is None else str(places[1]),
        shares=tuple(sorted(shares, key=lambda share: (-share.rows, share.name))),
        lacks=lacks,
        cost=taken.selection.cost,
        bound=taken.selection.bound,
        shift=shift,
        duplicates=int(taken.across.sum()) + taken.duplicates,
        by_chance=float(taken.by_chance),
        failures={o.name: o.failures for o in taken.offers if o.failures},
        unmapped=sum(o.unmapped for o in taken.offers),
        outside=sum(o.outside for o in taken.offers),
        unchecked=unchecked(prospect.survey.barred, base.where),
        open_tables=len(prospect.survey.open),
        passed_over=prospect.survey.passed_over,
        seed=looking.seed,
        known_again=stay.known_again(added, request.columns),
        lost=lost,
        **change.measured(after),
    )


def _write(
    change: PlannedChange,
    prospect: Prospect,
    taken: Choice,
    stay: int,
    added: pa.Table,
    removed: Sequence[LocatedRow],
    places: tuple[Path, Path],
    beside: Mapping[Path, str] | None,
    key: bytes | None,
    progress: Reporter,
) -> tuple[Counts, dict[str, int]]:
    """Write the table and the ledger; return the counts of the file, and the values lost in it.

    Values of added rows that do not have the type of the base are lost, counted by column.
    """
    engine, (output, ledger) = prospect.engine, places
    progress(f"writing {output}", 0.8)
    types, typed = typed_for(output, change.base, added, engine, added_decide=False)
    nulls = {name: typed[name].null_count - added[name].null_count for name in added.column_names}
    lost = {name: n for name, n in nulls.items() if n}
    parts = [Part(change.base, [place for place, *_ in removed]), Part(locate(typed))]
    with published(parts, types, output, ledger, engine, beside) as (written, listed):
        progress(f"counting {output}", 0.9)
        after = engine.counts(written, change.request)
        came = _added(prospect, taken, stay, written, key, sorted(lost), progress)
        lines = [*_removed(change, removed, key), *came]
        lines = ledger_table(lines, _about(change, prospect, output, key))
        write_ledger(lines, listed, engine, require_writable(ledger, engine.writes))
    return after, lost


def output_places(
    base: Source,
    lake: Contents,
    output: str | os.PathLike[str] | None,
    ledger: str | os.PathLike[str] | None,
    looking: SearchRequest,
    beside: Iterable[Path] = (),
) -> tuple[Path, Path] | None:
    """Return the files of the table and the ledger; refuse files that are read, or in the lake."""
    if output is None:
        return None
    places = Path(output), Path(ledger or f"{os.fspath(output)}.ledger.parquet")
    for place in places:
        require_writable(place, lake.engine.writes)
    mapping = None if is_mapping_text(looking.mapping or "") else looking.mapping
    named = [("the mapping file", mapping), ("the file of conditions", looking.sources)]
    read = [("the base", path) for path in base.paths]
    read += [(name, Path(path)) for name, path in named if path is not None]
    require_apart([*places, *beside], read + lake.files())
    lake.require_outside(list(places))
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


# ------------------------------------------------------------------------------ ledger


def _removed(
    change: PlannedChange, removed: Sequence[LocatedRow], key: bytes | None
) -> list[dict[str, Any]]:
    """List the removed rows in the order of the base."""
    return [
        {
            "action": "remove",
            "source": change.base.public_name,
            "place": place,
            "source_hash": keyed(md5, key),
            "hash": keyed(md5, key),
            "cell": _cell_text(change.delete.pattern(cell)),
        }
        for place, md5, cell in sorted(removed, key=lambda line: line[0])
    ]


def _cell_text(cell: Group) -> str:
    return json.dumps({name: plain(value) for name, value in cell.items()}, ensure_ascii=False)


def _added(
    prospect: Prospect,
    taken: Choice,
    stay: int,
    written: Source,
    key: bytes | None,
    lost: list[str],
    progress: Reporter,
) -> list[dict[str, Any]]:
    """List the added rows, each with the hash of what was written."""
    if not taken.rows:
        return []
    engine = prospect.engine
    hashes = engine.fetch(written, range(stay, stay + taken.rows)).columns[-1].to_pylist()
    cells = [_cell_text(taken.need.named(i)) for i in range(len(taken.need.rows))]
    lines: list[dict[str, Any]] = []
    for part in taken.chosen:
        candidate, places = part.candidate, part.drawn.places.tolist()
        progress(f"writing the ledger: rows of {candidate.name}", 0.9)
        sent = prospect.copies.fetch(candidate, places)
        # Of a table that is not copied, the rows were read before their hashes, so only now a change
        # in between would show.
        candidate.require_unchanged(surely=True)
        original = dict(zip(*(column.to_pylist() for column in sent.columns[-2:]), strict=True))
        conditions = candidate.conditions
        same = {
            "action": "add",
            "source": candidate.name,
            "snapshot": candidate.table.snapshot,
            "mapping": _mapping(candidate, prospect.looking.other_columns, lost),
            # Each row bears an equal part of what it costs to open the table.
            "cost": conditions.table_cost / len(places) + conditions.row_cost,
            "licence": conditions.licence,
            "consent": conditions.consent,
        }
        for cell, place in zip(part.drawn.cells.tolist(), places, strict=True):
            own = {
                "row": stay + len(lines),
                "place": place,
                "source_hash": keyed(original[place], key),
                "hash": keyed(hashes[len(lines)], key),
                "cell": cells[cell],
            }
            lines.append(same | own)
    return lines


def _mapping(candidate: Candidate, other_columns: OtherColumns, lost: list[str]) -> str:
    alignment = candidate.alignment
    missing = [t for t in alignment.treated if t.action == "left missing"]
    mapping = {
        "columns": {name: match.source for name, match in alignment.columns.items()},
        "values": {name: dict(values.values) for name, values in alignment.values.items()},
        "spellings": {name: dict(told) for name, told in alignment.spellings.items()},
        "conversions": {name: how.to_dict() for name, how in alignment.conversions.items()},
        "absent": sorted(alignment.absent),
        "left_missing": {t.name: t.column for t in missing},
        "other_columns": other_columns,
        "lost": lost,
    }
    return json.dumps(mapping, ensure_ascii=False, sort_keys=True)


def _about(
    change: PlannedChange, prospect: Prospect, output: Path, key: bytes | None
) -> dict[str, Any]:
    return {
        "base": change.base.public_name,
        "output": output.name,
        "counts": change.plan.counts.fingerprint,
        "seed": prospect.looking.seed,
        "duplicates": prospect.looking.dedupe,
        "other_columns": prospect.looking.other_columns,
        "key": list(prospect.looking.key),
        "keyed": key is not None,
        "reading": change.base.reading.to_dict(),
        "version": __version__,
    }


# ------------------------------------------------------------------------------ result


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
