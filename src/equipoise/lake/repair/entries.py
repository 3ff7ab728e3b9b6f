"""Entries of a ledger: which rows were removed, which were added, and where these came from."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from equipoise.engines.column_types import family
from equipoise.lake.offers.prospect import Prospect
from equipoise.lake.offers.survey import Candidate
from equipoise.lake.repair.base import LocatedRow, PlannedChange
from equipoise.lake.repair.choice import Choice
from equipoise.lake.repair.destinations import Destination, WrittenTable
from equipoise.lake.repair.ledger import keyed, keyed_place
from equipoise.lattice import Group
from equipoise.progress import Reporter
from equipoise.values import plain
from equipoise.version import __version__


def removed_entries(
    change: PlannedChange, removed: Sequence[LocatedRow], key: bytes | None
) -> list[dict[str, Any]]:
    """List the removed rows in the order of the base, or of what they are known by."""
    lines = [
        {
            "action": "remove",
            "source": change.base.public_name,
            "place": keyed_place(place, md5, key),
            "source_hash": keyed(md5, key),
            "hash": keyed(md5, key),
            "cell": _cell_text(change.delete.pattern(cell)),
        }
        for place, md5, cell in removed
    ]
    # By places as they are written: the order of hashes would tell something of them.
    return sorted(lines, key=lambda line: line["place"])


def _cell_text(cell: Group) -> str:
    return json.dumps({name: plain(value) for name, value in cell.items()}, ensure_ascii=False)


def added_entries(
    prospect: Prospect, taken: Choice, written: WrittenTable, key: bytes | None, progress: Reporter
) -> list[dict[str, Any]]:
    """List the added rows, each with the hash of what was written."""
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
            "mapping": _mapping(candidate, prospect, written),
            # Each row bears an equal part of what it costs to open the table.
            "cost": conditions.table_cost / len(places) + conditions.row_cost,
            "licence": conditions.licence,
            "consent": conditions.consent,
        }
        for cell, place in zip(part.drawn.cells.tolist(), places, strict=True):
            own = {
                "row": written.rows[len(lines)],
                "place": keyed_place(place, original[place], key),
                "source_hash": keyed(original[place], key),
                "hash": keyed(written.md5s[len(lines)], key),
                "cell": cells[cell],
            }
            lines.append(same | own)
    return lines


def _mapping(candidate: Candidate, prospect: Prospect, written: WrittenTable) -> str:
    alignment = candidate.alignment
    # What the database gave to the rows is not of the source.
    columns = {n: m.source for n, m in alignment.columns.items() if n not in written.own}
    missing = [t for t in alignment.treated if t.action == "left missing"]
    kinds = {c.name: c.type for c in prospect.survey.want.columns}
    typed = {n: kind for n, kind in kinds.items() if family(kind) not in ("text", "other")}
    mapping = {
        "columns": columns,
        "types": {n: typed[n] for n in columns if n in typed and n not in alignment.values},
        "values": {name: dict(values.values) for name, values in alignment.values.items()},
        "spellings": {name: dict(told) for name, told in alignment.spellings.items()},
        "conversions": {name: how.to_dict() for name, how in alignment.conversions.items()},
        "absent": sorted(alignment.absent),
        "left_missing": {t.name: t.column for t in missing},
        "other_columns": prospect.looking.other_columns,
        "lost": sorted(written.lost),
        "numbered": list(written.numbered),
        "generated": list(written.generated),
        "completed": sorted(written.completed),
    }
    return json.dumps(mapping, ensure_ascii=False, sort_keys=True)


def about_repair(
    change: PlannedChange, prospect: Prospect, output: Destination, key: bytes | None
) -> dict[str, Any]:
    """Describe the repair that a ledger is of."""
    return {
        "base": change.base.public_name,
        "output": output.public_name,
        "counts": change.plan.counts.fingerprint,
        "seed": prospect.looking.seed,
        "duplicates": prospect.looking.dedupe,
        "other_columns": prospect.looking.other_columns,
        "key": list(prospect.looking.key),
        "keyed": key is not None,
        "reading": change.base.reading.to_dict(),
        "version": __version__,
    }
