"""Take the rows that a plan needs from the tables of a lake, and record where they come from."""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise.counts import CountRequest, Counts
from equipoise.counts.columns import values_in
from equipoise.counts.rows import cells_of_rows
from equipoise.engines.base import Engine, count_frame, require_writable
from equipoise.engines.sources import Source
from equipoise.errors import PoolTooSmall, ShiftTooLarge
from equipoise.lake.matching.notations import is_absent
from equipoise.lake.offers.fingerprints import RowHashes
from equipoise.lake.offers.need import Need, Planned, need_of
from equipoise.lake.offers.prospect import Prospect, explore, unchecked
from equipoise.lake.offers.shortfall import Lack
from equipoise.lake.offers.survey import Candidate, say_alignment
from equipoise.lake.repair.acquisition import Acquired, Share, TreatedColumn
from equipoise.lake.repair.base import (
    bare,
    largest_known_ub,
    require_counts,
    require_deletable,
)
from equipoise.lake.repair.choice import (
    Choice,
    choose_rows,
    find_lacks,
    found_counts,
    say_too_few,
)
from equipoise.lake.repair.fill import TableRows
from equipoise.lake.repair.ledger import keyed, ledger_table, write_ledger
from equipoise.lake.repair.output import (
    Part,
    published,
    put_together,
    require_apart,
    typed_for,
)
from equipoise.lake.repair.shift.measure import measure_shift
from equipoise.lake.repair.shift.shift import Shift
from equipoise.lake.tables.contents import Contents
from equipoise.options.search import AcquisitionLimits, OtherColumns, SearchRequest
from equipoise.progress import Reporter, silent
from equipoise.rows.texts import without_categories
from equipoise.values import MISSING, Value, plain

if TYPE_CHECKING:
    import pyarrow as pa


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
    request = plan.counts.request_for_rows()
    add, delete = bare(plan.add, request), bare(plan.delete, request)
    if prospect is None:
        progress(f"reading {base.name}", 0)
    table = lake.engine.read(base) if prospect is None else prospect.rows
    before = replace(count_frame(table, request, base.name), reading=base.reading)
    require_counts(base, before, plan.counts, force=limits.force)
    require_deletable(base, before, delete)
    if prospect is None:
        needs_all = limits.require_columns
        prospect = explore(
            plan.counts,
            base,
            lake,
            looking,
            require_columns=needs_all,
            rows=table,
            progress=progress,
        )
    need = need_of(add, request)
    taken, lacks = _take(prospect, need, limits, progress)
    stay = _staying(prospect, request, delete)
    parts = [Part(c.candidate.name, c.drawn.rows) for c in taken.chosen]
    rows = put_together(stay, parts, base.name)
    shift = _shift(base, rows, len(stay), need, limits.max_shift)
    after, lost = before + found_counts(add, need, taken) - delete, dict[str, int]()
    if places is not None:
        progress(f"writing {places[0]}", 0.8)
        removed = _removed(lake.engine, base, request, delete, looking.seed, hash_key)
        typed = typed_for(places[0], base, rows, len(stay))
        lost = _lost(rows, typed)
        with published(typed, *places, lake.engine, beside) as (written, listed):
            progress(f"counting {places[0]}", 0.9)
            after = lake.engine.counts(written, request)
            lines = _lines(prospect, taken, need, len(stay), written, hash_key, lost)
            about = _about(plan, prospect, places[0], keyed_=hash_key is not None)
            extension = require_writable(places[1], lake.engine.writes)
            write_ledger(ledger_table([*removed, *lines], about), listed, lake.engine, extension)
    done = _acquired(plan, prospect, taken, before, after, add, delete, lacks, shift, places)
    return replace(done, known_again=_known_again(rows, len(stay), request), lost=lost)


def _take(
    prospect: Prospect, need: Need, limits: AcquisitionLimits, progress: Reporter
) -> tuple[Choice, tuple[tuple[str, Lack], ...]]:
    """Choose rows, and refuse too few of them unless partial repairs are allowed."""
    taken = choose_rows(prospect, need, limits, progress)
    for part in taken.chosen:
        part.candidate.require_unchanged(surely=True)
    lacks = find_lacks(prospect, need, taken, limits, progress)
    if lacks and not limits.partial:
        raise PoolTooSmall(say_too_few(prospect, taken, lacks))
    return taken, lacks


def _staying(prospect: Prospect, request: CountRequest, delete: Counts) -> pa.Table:
    """Return the rows of the base that stay, without reading them again if all of them do."""
    if not delete.n:
        return without_categories(prospect.rows)
    seed, engine = prospect.looking.seed, prospect.engine
    return without_categories(engine.rows(prospect.base, request, delete, seed, rest=True))


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
    listing = Path(f"{os.fspath(output)}.ledger.parquet" if ledger is None else ledger)
    for place in (output, listing):
        require_writable(place, lake.engine.writes)
    require_apart([Path(output), listing, *beside], _files_read(base, lake, looking))
    lake.require_outside([Path(output), listing])
    return Path(output), listing


def _files_read(base: Source, lake: Contents, looking: SearchRequest) -> list[tuple[str, Path]]:
    named = [("the mapping file", looking.mapping), ("the file of conditions", looking.sources)]
    read = [("the base", path) for path in base.paths]
    read += [(name, Path(path)) for name, path in named if path is not None]
    return read + lake.files()


# ------------------------------------------------------------------------------- shift


def _shift(
    table: Source, rows: pa.Table, stay: int, need: Need, limit: float | None
) -> Shift | None:
    """Compare the added rows with those of the base in the same cells; refuse a large shift."""
    if len(rows) == stay:
        return None
    cells = need.numbers(rows)
    base, added = rows.slice(0, stay), rows.slice(stay)
    others = [n for n in rows.column_names if n not in need.request.columns]
    shift = measure_shift(base, added, (cells[:stay], cells[stay:]), columns=others, limit=limit)
    if shift.exceeded:
        raise ShiftTooLarge(
            f"the added rows differ from {table.name} by more than {limit:g}: "
            f"{' '.join(shift.sentences)}"
        )
    return shift


def _lost(rows: pa.Table, typed: pa.Table) -> dict[str, int]:
    """Count by column the values of added rows that do not have the type of the base."""
    lost = {n: typed[n].null_count - rows[n].null_count for n in rows.column_names}
    return {name: n for name, n in lost.items() if n}


def _known_again(rows: pa.Table, stay: int, request: CountRequest) -> dict[str, int]:
    """Count the added rows that may be a person of the base, by columns that identify its rows."""
    found = {}
    for name in rows.column_names if len(rows) > stay > 1 else ():
        if name in request.columns:
            continue
        hashes = RowHashes.of(rows, [name]).columns[name]
        base, added = hashes[:stay], hashes[stay:]
        same = int(np.isin(added, base).sum()) if len(np.unique(base)) == stay else 0
        if same:
            found[name] = same
    return found


# ------------------------------------------------------------------------------ ledger


def _removed(
    engine: Engine,
    base: Source,
    request: CountRequest,
    delete: Counts,
    seed: int,
    key: bytes | None,
) -> list[dict[str, Any]]:
    if not delete.n:
        return []
    found = engine.rows(base, request, delete, seed, located=True)
    texts = [_cell_text(delete, cell) for cell in delete.cells()]
    cells = [texts[i] for i in cells_of_rows(found, delete)]
    place, md5 = (column.to_pylist() for column in found.columns[-2:])
    lines = [
        {
            "action": "remove",
            "source": base.public_name,
            "place": p,
            "source_hash": keyed(m, key),
            "hash": keyed(m, key),
            "cell": cell,
        }
        for p, m, cell in zip(place, md5, cells, strict=True)
    ]
    return sorted(lines, key=lambda line: line["place"])


def _cell_text(counts: Counts, cell: Sequence[Value]) -> str:
    named = {name: plain(value) for name, value in counts.pattern(cell).items()}
    return json.dumps(named, ensure_ascii=False)


def _lines(
    prospect: Prospect,
    taken: Choice,
    need: Need,
    stay: int,
    written: Source,
    key: bytes | None,
    lost: Collection[str],
) -> list[dict[str, Any]]:
    """List the added rows, each with the hash of what was written."""
    if not taken.rows:
        return []
    engine = prospect.engine
    rows = engine.fetch(written, range(stay, stay + taken.rows))
    hashes = rows.column(rows.num_columns - 1).to_pylist()
    lines: list[dict[str, Any]] = []
    for part in taken.chosen:
        candidate = part.candidate
        sent = engine.fetch(candidate.table.source, part.drawn.places.tolist())
        # The rows were read before their hashes, so only now a change in between would show.
        candidate.require_unchanged(surely=True)
        place, md5 = (column.to_pylist() for column in sent.columns[-2:])
        original = dict(zip(place, md5, strict=True))
        told = {**_mapping(candidate, prospect.looking.other_columns), "lost": sorted(lost)}
        mapping = json.dumps(told, ensure_ascii=False, sort_keys=True)
        opening = candidate.conditions.table_cost / len(part.drawn.places)
        for cell, at in zip(part.drawn.cells.tolist(), part.drawn.places.tolist(), strict=True):
            group = {name: plain(value) for name, value in need.named(cell).items()}
            lines.append(
                {
                    "action": "add",
                    "row": stay + len(lines),
                    "source": candidate.name,
                    "snapshot": candidate.table.snapshot,
                    "place": at,
                    "source_hash": keyed(original[at], key),
                    "hash": keyed(hashes[len(lines)], key),
                    "cell": json.dumps(group, ensure_ascii=False),
                    "mapping": mapping,
                    "cost": opening + candidate.conditions.row_cost,
                    "licence": candidate.conditions.licence,
                    "consent": candidate.conditions.consent,
                }
            )
    return lines


def _mapping(candidate: Candidate, other_columns: OtherColumns) -> dict[str, Any]:
    alignment = candidate.alignment
    missing = [t for t in alignment.treated if t.action == "left missing"]
    return {
        "columns": {name: match.source for name, match in alignment.columns.items()},
        "values": {name: dict(values.values) for name, values in alignment.values.items()},
        "spellings": {name: dict(told) for name, told in alignment.spellings.items()},
        "conversions": {name: how.to_dict() for name, how in alignment.conversions.items()},
        "absent": sorted(alignment.absent),
        "left_missing": {t.name: t.column for t in missing},
        "other_columns": other_columns,
    }


def _about(plan: Planned, prospect: Prospect, output: Path, *, keyed_: bool) -> dict[str, Any]:
    from equipoise.version import __version__

    return {
        "base": prospect.base.public_name,
        "output": output.name,
        "counts": plan.counts.fingerprint,
        "seed": prospect.looking.seed,
        "duplicates": prospect.looking.dedupe,
        "other_columns": prospect.looking.other_columns,
        "key": list(prospect.looking.key),
        "keyed": keyed_,
        "reading": prospect.base.reading.to_dict(),
        "version": __version__,
    }


# ------------------------------------------------------------------------------ result


def _acquired(
    plan: Planned,
    prospect: Prospect,
    taken: Choice,
    before: Counts,
    after: Counts,
    add: Counts,
    delete: Counts,
    lacks: tuple[tuple[str, Lack], ...],
    shift: Shift | None,
    places: tuple[Path, Path] | None,
) -> Acquired:
    chance = sum(o.by_chance for o in taken.offers)
    return Acquired(
        output=None if places is None else str(places[0]),
        ledger=None if places is None else str(places[1]),
        base=prospect.base.name,
        shares=tuple(
            sorted(
                (_share(part, prospect) for part in taken.chosen),
                key=lambda share: (-share.rows, share.name),
            )
        ),
        removed=delete.n,
        lacks=lacks,
        cost=taken.selection.cost,
        bound=taken.selection.bound,
        before=before,
        after=after,
        planned=before + add - delete,
        max_abs_ub_before=largest_known_ub(before, plan),
        max_abs_ub_after=largest_known_ub(after, plan),
        shift=shift,
        duplicates=int(taken.across.sum() + sum(o.duplicates.sum() for o in taken.offers)),
        by_chance=float(chance),
        failures={o.name: o.failures for o in taken.offers if o.failures},
        unmapped=sum(o.unmapped for o in taken.offers),
        outside=sum(o.outside for o in taken.offers),
        unchecked=unchecked(prospect.survey.barred, before.reading.where),
        open_tables=len(prospect.survey.open),
        seed=prospect.looking.seed,
    )


def _treated(part: TableRows, engine: Engine) -> tuple[TreatedColumn, ...]:
    """Count the values of added rows that were converted, kept or left missing."""
    candidate, rows = part.candidate, part.drawn.rows
    treated = candidate.alignment.treated
    counted = {}
    if any(t.action == "left missing" for t in treated):
        rows_there = engine.fetch(candidate.table.source, part.drawn.places.tolist())
        for t in treated:
            values = values_in(rows_there[t.column])
            texts = (v.strip() for v in values if v is not MISSING)
            counted[t.name] = sum(not is_absent(text) for text in texts)
    for t in treated:
        if t.name in rows.column_names:
            counted[t.name] = len(rows) - rows[t.name].null_count
    return tuple(TreatedColumn(**vars(t), values=counted[t.name]) for t in treated)


def _share(part: TableRows, prospect: Prospect) -> Share:
    candidate = part.candidate
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
        treated=_treated(part, prospect.engine),
        uncertain={n: m.source for n, m in candidate.alignment.proposed.items()},
    )
