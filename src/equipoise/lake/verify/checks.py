"""Checks of a finished repair from four things alone: the base, the plan, the ledger and the result.

Nothing here uses code that plans or takes rows: a repair is trusted because these agree, not
because of the program that wrote them. Only counting and the hashing of rows are shared.
"""

from __future__ import annotations

import itertools
import os
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from equipoise.engines.base import Engine
from equipoise.engines.sources import Source, locate
from equipoise.errors import InputError
from equipoise.lake.verify import files
from equipoise.lake.verify.claims import Claims, claims_of
from equipoise.lake.verify.columns import check_columns
from equipoise.lake.verify.files import Cell, LedgerEntry, PlanFile
from equipoise.lake.verify.rows import Explained, Pair, Unmatched
from equipoise.lake.verify.tables import CheckedTable, open_tables, rows_outside
from equipoise.lake.verify.verification import CheckOutcome, Verification, judge
from equipoise.plain import rows_text
from equipoise.progress import Reporter, silent
from equipoise.values import MISSING, Value


def verify(
    repaired: Source,
    base: Source,
    plan: str | os.PathLike[str],
    ledger: str | os.PathLike[str] | Source,
    *,
    engine: Engine,
    hash_key: bytes | None = None,
    progress: Reporter = silent,
) -> Verification:
    """Check a repaired table against its base, its plan and its ledger.

    Rows are counted, hashed and compared where they are. Only those that the ledger lists are
    fetched, and of others at most the hashes, to name those that differ.
    """
    progress(f"reading {plan}", 0.0)
    asked = files.read_plan(Path(plan))
    listed = locate(ledger)
    progress(f"reading {listed.name}", 0.1)
    told = files.read_ledger(
        listed,
        asked.request.columns,
        engine,
        keyed=hash_key is not None,
        numbered=(files.has_places(base), files.has_places(repaired)),
    )
    _require_same_repair(told, asked)
    progress(f"counting {base.name} and {repaired.name}", 0.2)
    old, new = open_tables(base, repaired, asked, engine, hash_key)
    progress("comparing rows", 0.4)
    pair = Pair(old, new)
    _require_places(told, old)
    gone, came = _claims(pair, told.entries, asked)
    progress("comparing rows", 0.7)
    lost, strange = pair.unmatched(
        gone.explained, came.explained, {place for _, place, _ in came.untrue}
    )
    outside = rows_outside(new, pair.rows[1], asked)
    progress("comparing values", 0.8)
    return Verification(
        (
            judge("plan", _contradictions(asked), f"{asked.name} is consistent."),
            judge(
                "base",
                _differences(old, asked.counted, asked),
                f"{old.name} has the {asked.counts.n:,} rows of {asked.name}, cell by cell.",
            ),
            _nothing_is_lost(old, new, asked, gone, lost),
            _nothing_is_foreign(old, new, came, strange, outside),
            _cells_are_as_planned(old, new, asked, gone, came),
            _certificate_is_true(new, asked),
            _rows_have_sources(came),
            check_columns(old, new, came),
        ),
        asked.counts.reading,
    )


def _require_same_repair(ledger: files.Ledger, plan: PlanFile) -> None:
    """Refuse a ledger that says that it is of a repair by another plan."""
    counts = ledger.about.get("counts")
    if counts is not None and counts != plan.data.get("fingerprint"):
        of = ledger.about.get("output") or ledger.about.get("base")
        raise InputError(
            f"{ledger.name} is the ledger of another repair ({of}), which was made by another plan than "
            f"{plan.name}; give the ledger that was written with the repaired table."
        )


def _require_places(ledger: files.Ledger, base: CheckedTable) -> None:
    """Refuse keys of rows of a base whose key is not named."""
    if base.numbered or base.source.key:
        return
    for entry in ledger.entries:
        if entry.action == "remove" and "#" not in str(entry.at):
            said = ledger.about.get("base") or entry.source
            raise InputError(
                f"{entry} knows rows of the base by a key ({entry.at}); name its column in the address of the "
                f"base, as in {said or 'postgresql://…?table=people&id=nr'}."
            )


def _claims(pair: Pair, entries: Sequence[LedgerEntry], plan: PlanFile) -> tuple[Claims, Claims]:
    """Compare all entries with the tables; only entries that are true explain a difference."""
    old, new = pair.tables
    gone = claims_of(old, pair.rows[0], [e for e in entries if e.action == "remove"], plan)
    added = [e for e in entries if e.action == "add"]
    md5s = None
    if new.key is not None and not new.numbered and added:
        # An added row is new in the table, unless it equals one that was removed.
        nothing = Explained(), Explained()
        more = [row.md5 for _, rows in pair.differences(*nothing) for row in rows]
        md5s = {*more, *gone.md5s}
    return gone, claims_of(new, pair.rows[1], added, plan, md5s)


def _row(place: int | str) -> str:
    """Name a row by its number, or by what it is known by in a database."""
    return f"row {place:,}" if isinstance(place, int) else f"row {place}"


def _contradictions(plan: PlanFile) -> Iterator[str]:
    but = f"{plan.name} contradicts itself:"
    for cell in plan.repeated:
        yield f"{but} the cell {plan.named(cell)} is listed twice"
    for cell in plan.counted.keys() - plan.moves.keys():
        yield f"{but} {plan.named(cell)} is in its counts, but not among its cells"
    for cell, (before, add, delete, after) in plan.moves.items():
        counted = plan.counted.get(cell, 0)
        if before != counted or after != before + add - delete:
            sum_ = f"{before:,} + {add:,} − {delete:,} = {after:,} rows, counted {counted:,}"
            yield f"{but} {plan.named(cell)} has {sum_}"
        if add < 0 or not 0 <= delete <= before:
            yield f"{but} {plan.named(cell)} adds {add:,} and deletes {delete:,} of {before:,} rows"
    add, delete = (sum(getattr(m, n) for m in plan.moves.values()) for n in ("add", "delete"))
    n, stated = plan.counts.n, plan.data["certificate"]
    true = {"additions": add, "deletions": delete, "n_before": n, "n_after": n + add - delete}
    for name, rows in true.items():
        for said in (plan.data[name], stated.get(name, rows)):
            if said != rows:
                yield f"{but} {name} is {said!r}, its cells lead to {rows}"
    asked = plan.data["request"].get("tolerance", 0.0)
    if stated["tolerance"] != asked:
        yield f"{but} its certificate's tolerance is {stated['tolerance']!r}, its request's {asked!r}"
    if plan.data.get("fingerprint") != plan.counts.fingerprint:
        yield f"{but} its counts have another fingerprint than it states"


def _differences(table: CheckedTable, wanted: Mapping[Cell, int], plan: PlanFile) -> Iterator[str]:
    """List the cells with other numbers of rows than wanted, the largest deficits first."""
    if table.cells is None:
        yield table.why_not
        return
    off = Counter(table.cells)
    off.subtract(wanted)
    for cell in sorted((c for c in off if off[c]), key=off.__getitem__):
        much = f"short by {-off[cell]:,}" if off[cell] < 0 else f"{off[cell]:,} too many"
        rows = f"{table.cells.get(cell, 0):,} rows of {wanted.get(cell, 0):,}"
        yield f"{plan.named(cell)} has {rows} in {table.name} ({much})"


def _nothing_is_lost(
    old: CheckedTable, new: CheckedTable, plan: PlanFile, gone: Claims, lost: Unmatched
) -> CheckOutcome:
    wrong, apart = [], {c.name for c in old.columns} ^ {c.name for c in new.columns}
    if apart:
        names = ", ".join(map(repr, sorted(apart)))
        wrong.append(
            f"{new.name} has different columns from {old.name}: only one of them has {names}"
        )
    tail = f"of {old.name} is neither in {new.name} nor listed as removed"
    wrong += [f"{_row(place)} {tail}" for place in lost.named]
    wrong += [f"{e} removes {_row(at)} of {old.name}, {why}" for e, at, why in gone.untrue]
    for cell, n in Counter(claim.cell for claim in gone.true if claim.cell is not None).items():
        planned = plan.moves[cell].delete if cell in plan.moves else 0
        if n > planned:
            wrong.append(f"{plan.named(cell)} has {n:,} rows removed, {planned:,} planned")
    but = f" except the {len(gone.true):,} listed as removed" if gone.true else ""
    right = f"Every row of {old.name} is in {new.name}{but}."
    return judge("kept", wrong, right, more=lost.rows - len(lost.named))


def _nothing_is_foreign(
    old: CheckedTable, new: CheckedTable, came: Claims, strange: Unmatched, outside: int
) -> CheckOutcome:
    said = [f"{e} states {_row(at)} of {new.name}, {why}" for e, at, why in came.untrue]
    if said and not came.true:
        said[0] += "; as no hash fits, the ledger may be of another table or key"
    tail = f"of {new.name} is neither in {old.name} nor listed"
    rows = [f"{_row(place)} {tail}" for place in strange.named]
    if strange.rows and not rows:
        rows = [f"{rows_text(strange.rows)} {tail}"]
    if outside:
        do = "does" if outside == 1 else "do"
        said.append(
            f"{rows_text(outside)} of {new.name} {do} not satisfy the condition of the plan"
        )
    right = f"Every other row of {new.name} is one of the {len(came.true):,} listed as added."
    more = strange.rows - len(strange.named) if strange.named else 0
    return judge("added", [*rows, *said], right, more=more)


def _cells_are_as_planned(
    old: CheckedTable, new: CheckedTable, plan: PlanFile, gone: Claims, came: Claims
) -> CheckOutcome:
    wrong = list(_differences(new, plan.planned, plan))
    for table, claims in ((old, gone), (new, came)):
        for entry, at, cell in claims.true:
            # There is none if the table cannot be counted, which `_differences` reports.
            if cell is not None and entry.cell != cell:
                told = f"the cell {plan.named(entry.cell)}" if entry.cell else "no cell"
                true = f"{_row(at)} of {table.name} is of {plan.named(cell)}"
                wrong.append(f"{entry} states {told}, but {true}")
    return judge("cells", wrong, f"Every cell of {new.name} has the planned number of rows.")


def _certificate_is_true(new: CheckedTable, plan: PlanFile) -> CheckOutcome:
    if new.cells is None:
        return judge("certificate", [new.why_not], "")
    stated, asked = plan.data["certificate"], plan.data["request"]
    with_missing = bool(asked.get("plan_missing", False))
    promised, _ = _largest_ub(plan.planned, with_missing=with_missing)
    found, where = _largest_ub(new.cells, with_missing=with_missing)
    told, tolerance = float(stated["max_abs_ub_after"]), float(stated["tolerance"])
    at = f" ({plan.named(where)})" if where else ""
    measured = f"the largest |UB| of {new.name} is {found:.4g}{at}"
    wrong = []
    for name, true in (
        ("before", _largest_ub(plan.counted, with_missing=with_missing)[0]),
        ("after", promised),
    ):
        said = float(stated[f"max_abs_ub_{name}"])
        if not abs(true - said) <= 1e-9:  # written so that NaN fails as well
            leads = f"its cells lead to {true:.6g}"
            wrong.append(f"{plan.name} states a largest |UB| of {said:.6g} {name} it, but {leads}")
    if _limits_ub(stated, asked) and found > tolerance + 1e-9:
        wrong.append(f"{measured}, beyond the tolerance of {tolerance:g}")
    elif found > promised + 1e-9:
        wrong.append(f"{measured}, where the plan leads to {promised:.4g}")
    right = f"{measured}; the plan states {told:.4g}, its tolerance is {tolerance:g}."
    return judge("certificate", wrong, right[0].upper() + right[1:])


def _limits_ub(stated: Mapping[str, Any], asked: Mapping[str, Any]) -> bool:
    """Whether the tolerance limits the |UB| of all groups, by the repaired table's frequencies."""
    plain = {"reached": True, "tolerance_on": "ub", "reference": "new", "targets": False}
    of_all = asked.get("constrain", "all") == "all" and asked.get("min_group", 1) == 1
    return of_all and stated["tolerance"] > 0 and plain.items() <= {**plain, **stated}.items()


def _largest_ub(cells: Mapping[Cell, int], *, with_missing: bool) -> tuple[float, Cell | None]:
    """Return the largest |UB(g, y)| = |1 − (n_gy/n_g)/(n_y/n)|, and its cell.

    The finest groups are enough: the UB of any other group is an average of theirs.
    """
    known = {c: n for c, n in cells.items() if n > 0 and (with_missing or MISSING not in c)}
    labels, groups = Counter[Value](), defaultdict[Cell, Counter[Value]](Counter)
    for cell, rows in known.items():
        labels[cell[-1]] += rows
        groups[cell[:-1]][cell[-1]] += rows
    largest, where = 0.0, None
    for (group, n_gy), (y, n_y) in itertools.product(groups.items(), labels.items()):
        # Not computed by the code that measured the plan: an error there must not confirm itself.
        expected = n_gy.total() * n_y
        ub = abs(expected - n_gy[y] * labels.total()) / expected
        if ub > largest:
            largest, where = ub, (*group, y)
    return largest, where


def _rows_have_sources(came: Claims) -> CheckOutcome:
    wrong, taken = [], dict[tuple[str | None, int | str], LedgerEntry]()
    entries = [claim.entry for claim in came.true] + [entry for entry, *_ in came.untrue]
    for entry in sorted(entries, key=lambda entry: entry.number):
        first = taken.setdefault((entry.source, entry.place), entry)
        if not (entry.source and entry.snapshot and entry.source_hash and entry.place != -1):
            wrong.append(f"{entry} does not say which row of which source it is")
        elif first is not entry:
            number = entry.place if isinstance(entry.place, str) else f"{entry.place:,}"
            row = f"row {number} of {entry.source}"
            wrong.append(f"{entry} takes {row}, which entry {first.number:,} takes as well")
    right = f"No row of a source is taken twice among the {len(entries):,} added."
    return judge("sources", wrong, right)
