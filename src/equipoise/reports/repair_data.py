"""What the page of a repair says and draws, as plain data."""

from __future__ import annotations

import json
import math
import shlex
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from equipoise.lake.repair.planned import cells_of
from equipoise.lattice import Group, format_value
from equipoise.measures.display import whole
from equipoise.measures.table import bias_table
from equipoise.plain import Grid
from equipoise.plans.problem import known_rows
from equipoise.reports import plan_data
from equipoise.reports.charts import MISSING_ROWS
from equipoise.reports.summarize import summarize
from equipoise.values import MISSING, Value, as_value

if TYPE_CHECKING:
    from equipoise.counts import Counts
    from equipoise.lake.loop import Repaired
    from equipoise.lake.repair.acquisition import Acquired, Share
    from equipoise.lake.repair.shift.shift import Shift
    from equipoise.lake.verify.checks import Verification
    from equipoise.plans.plan import Plan, PlanCell

SCHEMA = "equipoise.repair-page/1"
WORST = 8
TABLES = 7
"""So many tables are drawn in a colour of their own."""
WIDE = 30
"""How many times the least need the largest may be; beyond, shares are drawn and not rows."""
LISTED = 8
PLACES = ("LAKE", "PLAN", "KEY")
"""What commands call a place that is not known."""
OTHERS, FOUND = "other tables", "found in the lake"


@dataclass(frozen=True)
class Listing:
    """What a ledger says of the rows that were added.

    Attributes
    ----------
    rows
        By table, how many rows of each cell.
    values
        By table and column, which of its values became which of the base's.
    keyed
        Whether its hashes were made with a key.
    """

    rows: Mapping[str, Mapping[tuple[Value, ...], int]] = field(default_factory=dict)
    values: Mapping[str, Mapping[str, Mapping[str, str]]] = field(default_factory=dict)
    keyed: bool = False


def read_listing(ledger: str | None, columns: Sequence[str]) -> Listing:
    """Read from which table how many rows of each cell came; nothing after a dry run."""
    if ledger is None or not Path(ledger).exists():
        return Listing()
    from equipoise.engines.duckdb import shared_engine
    from equipoise.lake.repair.ledger import read_ledger

    rows: dict[str, Counter[tuple[Value, ...]]] = defaultdict(Counter)
    values: dict[str, Any] = {}
    keyed = False
    for line in read_ledger(ledger, shared_engine()).to_pylist():
        keyed = keyed or len(line["hash"] or "") > 32
        if line["action"] == "add":
            cell = json.loads(line["cell"])
            named = [MISSING if cell[n] is None else as_value(cell[n]) for n in columns]
            rows[line["source"]][tuple(named)] += 1
            values[line["source"]] = values.get(line["source"]) or json.loads(line["mapping"])
    return Listing(rows, {name: told["values"] for name, told in values.items()}, keyed)


def summarize_repair(
    done: Repaired,
    *,
    source: str | None = None,
    lake: str | None = None,
    plan_file: str | None = None,
    top: int = 50,
) -> dict[str, Any]:
    """Gather all that the page of a repair says.

    Parameters
    ----------
    done
        What :func:`equipoise.repair` gave.
    source, lake, plan_file
        What the reader calls the base, the lake, and the file of the plan.
    top
        How many cells are listed.

    Returns
    -------
    dict
        Plain data, ready for JSON.
    """
    acquired, plan = done.acquired, done.plan
    listing = read_listing(acquired.ledger, [axis.name for axis in plan.counts.axes])
    before, after = (_measured(done, c) for c in (acquired.before, acquired.after))
    return {
        "schema": SCHEMA,
        "title": f"Repair: {plan.counts.label.name} by "
        f"{', '.join(a.name for a in plan.counts.sensitive)}",
        "source": source or acquired.base,
        "figures": _figures(done),
        "sentences": list(done.sentences),
        "before": before,
        "plan": _plans(done, top),
        "sources": _sources(acquired, plan, listing),
        "lacks": _lacks(done),
        "shift": None if acquired.shift is None else _shift(acquired.shift),
        "after": {**after, "table": _proof(done), "biases": _biases(done)},
        "verification": None if done.verification is None else _checks(done.verification),
        "commands": _commands(acquired, listing, lake, plan_file),
        "facts": _facts(done, source),
    }


def _table(grid: Grid, **more: Any) -> dict[str, Any]:
    return {
        "headers": list(grid.headers),
        "rows": [list(row) for row in grid.rows],
        "numbers": sorted(grid.numbers),
        **more,
    }


def _figures(done: Repaired) -> list[list[str]]:
    acquired, checks = done.acquired, done.verification
    figures = [
        [whole(acquired.added), f"rows added, from {_things(len(acquired.shares), 'table')}"],
        [whole(acquired.removed), "rows removed"],
        [f"{acquired.cost:,.6g}", "cost of the rows"],
        [_small(acquired.max_abs_ub_before), "largest |UB| before"],
        [_small(acquired.max_abs_ub_after), "largest |UB| after"],
        ["yes" if done.reached else "NO", f"tolerance {done.tolerance:g} reached"],
    ]
    if checks is not None:
        holds = sum(finding.holds for finding in checks.findings)
        figures.append([f"{holds} of {len(checks.findings)}", "checks hold"])
    return figures


# ---------------------------------------------------------------------- before and after


def _measured(done: Repaired, counts: Counts) -> dict[str, Any]:
    """The worst groups, and the first matrix of UB."""
    known, _ = known_rows(counts, plan_missing=done.plan.request.plan_missing)
    if not known.n:
        return {"worst": None, "matrix": None}
    summary = summarize(bias_table(known).worst(), top=WORST)
    matrices = summary["charts"]["matrices"]
    return {"worst": summary["table"], "matrix": matrices[0] if matrices else None}


def _biases(done: Repaired) -> dict[str, Any]:
    acquired = done.acquired
    return plan_data.biases(done.plan, (acquired.before, acquired.after))


def _small(value: float) -> str:
    return "–" if math.isnan(value) else f"{value:.3g}"


def _proof(done: Repaired) -> dict[str, Any]:
    """What was counted in the written file, beside what was planned."""
    acquired, proof = done.acquired, done.plan.certificate
    rows = [
        ("rows", whole(acquired.before.n), whole(acquired.planned.n), whole(acquired.after.n)),
        (
            "largest |UB| of all groups",
            _small(acquired.max_abs_ub_before),
            _small(proof.max_abs_ub_after),
            _small(acquired.max_abs_ub_after),
        ),
        ("cells whose rows are not as planned", "", "", whole(_differing(acquired))),
    ]
    if proof.reference == "original" or proof.kind != "|UB|":
        held = f"{proof.kind} against {proof.reference} frequencies"
        rows.insert(2, (held, _small(proof.off_before), _small(proof.off_after), ""))
    counted = "counted in the file" if acquired.output else "would be"
    return _table(Grid(("what", "before", "planned", counted), tuple(rows), frozenset({1, 2, 3})))


def _differing(acquired: Acquired) -> int:
    planned, after = cells_of(acquired.planned), cells_of(acquired.after)
    return sum(planned.get(cell, 0) != after.get(cell, 0) for cell in {**planned, **after})


# ---------------------------------------------------------------------------------- plan


def _plans(done: Repaired, top: int) -> dict[str, Any]:
    plans = [("carried out", done.plan)]
    if done.ideal is not None and done.ideal is not done.plan:
        plans.insert(0, ("cheapest, whether or not there are such rows", done.ideal))
    rows = tuple(
        (
            name,
            whole(plan.additions),
            whole(plan.deletions),
            f"{plan.certificate.max_abs_ub_after:.4f}",
            "yes" if plan.reached else "NO",
        )
        for name, plan in plans
    )
    headers = ("plan", "rows to add", "rows to delete", "largest |UB| after", "tolerance reached")
    return {
        "table": _table(Grid(headers, rows, frozenset({1, 2, 3}))),
        "cells": _cells(done, top),
        "left_out": max(0, len(_changed(done)) - top),
        "changes": plan_data.changes(done.plan) if done.plan.moves else None,
        "explanation": list(done.plan.explanation),
    }


def _key(cell: PlanCell, plan: Plan) -> tuple[Value, ...]:
    return (*(cell.group[a.name] for a in plan.counts.sensitive), cell.label)


def _changed(done: Repaired) -> dict[tuple[Value, ...], PlanCell]:
    """The cells that either plan changes, those with the most changes first."""
    plans = [done.plan] if done.ideal is None else [done.plan, done.ideal]
    found: dict[tuple[Value, ...], PlanCell] = {}
    for plan in reversed(plans):
        found |= {_key(cell, plan): cell for cell in plan.moves}
    return dict(sorted(found.items(), key=lambda item: -(item[1].add + item[1].delete)))


def _cells(done: Repaired, top: int) -> dict[str, Any]:
    plan, ideal = done.plan, done.ideal
    own = {_key(cell, plan): cell for cell in plan.moves}
    other = {} if ideal is None or ideal is plan else {_key(c, ideal): c for c in ideal.moves}
    rows = []
    for key, cell in list(_changed(done).items())[:top]:
        here, there = own.get(key), other.get(key)
        row = [str(cell.group), format_value(cell.label), whole(cell.before)]
        row += [_change(there)] if other else []
        rows.append((*row, _change(here), whole(here.after if here else cell.before)))
    cheapest = ("cheapest plan",) if other else ()
    headers = ("group", plan.counts.label.name, "before", *cheapest, "carried out", "after")
    return _table(Grid(headers, tuple(rows), frozenset(range(2, len(headers)))))


def _change(cell: PlanCell | None) -> str:
    if cell is None:
        return ""
    parts = [f"+{cell.add:,}"] * bool(cell.add) + [f"−{cell.delete:,}"] * bool(cell.delete)
    return " ".join(parts)


# ------------------------------------------------------------------------------- sources


def _sources(acquired: Acquired, plan: Plan, listing: Listing) -> dict[str, Any]:
    headers = ("table", "rows", "cost", "licence", "confidence", "matched by", "columns it lacks")
    rows = tuple(
        (
            share.name,
            whole(share.rows),
            f"{share.cost:,.6g}",
            share.licence or "not stated",
            f"{share.confidence:.2f}",
            share.why,
            _listed(share.lacking) or "none",
        )
        for share in acquired.shares
    )
    return {
        "table": _table(Grid(headers, rows, frozenset({1, 2, 4}))),
        "chart": source_bars(acquired, plan, listing),
        "matches": [_matches(share, listing) for share in acquired.shares],
        "bound": f"No choice of tables that gives these rows costs less than {acquired.bound:,.6g}; "
        f"this one costs {acquired.cost:,.6g}.",
    }


def _listed(names: Sequence[str]) -> str:
    more = [f"and {len(names) - LISTED:,} more"] if len(names) > LISTED else []
    return ", ".join([*names[:LISTED], *more])


def _matches(share: Share, listing: Listing) -> dict[str, Any]:
    """How every column and value of a table became the base's."""
    renamed = [f"{name} ← {column}" for name, column in share.columns.items() if name != column]
    same = len(share.columns) - len(renamed)
    lines = ["; ".join([*renamed, f"{same:,} columns of the same name"])]
    for name, values in listing.values.get(share.name, {}).items():
        changed = [f"{old} → {new}" for old, new in values.items() if old != new]
        kept = len(values) - len(changed)
        as_they_are = [f"{kept:,} values as they are"] if kept else []
        lines.append(f"{name}: {', '.join([*changed, *as_they_are])}")
    lines += [
        f"{t.name} ← {t.column}: {t.values:,} value{'' if t.values == 1 else 's'} {t.action}; {t.how}"
        for t in share.treated
    ]
    return {"table": share.name, "snapshot": share.snapshot, "lines": lines}


def source_bars(acquired: Acquired, plan: Plan, listing: Listing) -> dict[str, Any]:
    """The needed rows of each cell, by the table they came from, and what is missing.

    >>> import equipoise as eq
    >>> from types import SimpleNamespace
    >>> counts = eq.Counts.from_mapping(
    ...     {("m", "y"): 60, ("m", "n"): 40, ("w", "y"): 20, ("w", "n"): 80},
    ...     sensitive=["sex"],
    ...     label="l",
    ... )
    >>> plan = eq.plan(counts)
    >>> [(cell.group, cell.label, cell.add) for cell in plan.moves]
    [(Group('sex=m'), 'n', 50), (Group('sex=w'), 'y', 33)]
    >>> listing = Listing({"a.csv": {("w", "y"): 30}, "b.csv": {("m", "n"): 50}})
    >>> shares = [SimpleNamespace(name=n, rows=r) for n, r in (("a.csv", 30), ("b.csv", 50))]
    >>> data = source_bars(SimpleNamespace(shares=shares), plan, listing)
    >>> data["names"]
    ['b.csv', 'a.csv', 'missing']
    >>> [[(p["table"], p["start"], p["end"]) for p in bar["parts"]] for bar in data["bars"]]
    [[('b.csv', 0.0, 50.0)], [('a.csv', 0.0, 30.0), ('missing', 30.0, 33.0)]]
    """
    cells = [cell for cell in plan.moves if cell.add][: plan_data.BARS]
    by_rows = sorted(acquired.shares, key=lambda share: -share.rows)
    own = [share.name for share in by_rows[: TABLES if len(by_rows) <= TABLES else TABLES - 1]]
    rows = listing.rows or _found(acquired, plan)
    needs = [cell.add for cell in cells]
    shares = bool(needs) and max(needs) > WIDE * min(needs)
    bars = [_bar(cell, _key(cell, plan), rows, own, cell.add if shares else 1) for cell in cells]
    used = {part["table"] for bar in bars for part in bar["parts"]}
    names = [n for n in (*own, OTHERS, FOUND, MISSING_ROWS) if n in used]
    return {
        "kind": "sources",
        "bars": bars,
        "names": names,
        "shares": shares,
        "left_out": sum(1 for cell in plan.moves if cell.add) - len(cells),
        "others": len(by_rows) - len(own),
    }


def _found(acquired: Acquired, plan: Plan) -> dict[str, dict[tuple[Value, ...], int]]:
    """The rows found of each cell, where nothing tells from which table."""
    if not acquired.shares:
        return {}
    names = [axis.name for axis in plan.counts.axes]
    found = {}
    for cell in plan.moves:
        key = _key(cell, plan)
        group = Group(dict(zip(names, key, strict=True)))
        found[key] = acquired.after.of(group) - cell.before + cell.delete
    return {FOUND: found}


def _bar(
    cell: PlanCell,
    key: tuple[Value, ...],
    rows: Mapping[str, Mapping[tuple[Value, ...], int]],
    own: Sequence[str],
    unit: int,
) -> dict[str, Any]:
    name = f"{cell.group} → {format_value(cell.label)}"
    shares: Counter[str] = Counter()
    for table, given in rows.items():
        shares[table if table in own or table == FOUND else OTHERS] += given.get(key, 0)
    missing = cell.add - sum(shares.values())
    order = [*own, OTHERS, FOUND]
    given_rows = [(table, shares[table]) for table in order if shares[table]]
    given_rows += [(MISSING_ROWS, missing)] if missing > 0 else []
    start, parts = 0, []
    for table, n in given_rows:
        about = f"{name}: {n:,} of {cell.add:,} rows {'are' if table == MISSING_ROWS else 'from'} {table}"
        kept = {"name": name, "table": table, "about": about}
        parts.append({**kept, "start": start / unit, "end": (start + n) / unit})
        start += n
    lack = f", {missing:,} missing" if missing > 0 else ""
    return {"name": name, "parts": parts, "text": f"{cell.add:,}{lack}"}


# ------------------------------------------------------------------- lacks, shift, checks


def _things(n: int, name: str) -> str:
    return f"{n:,} {name}{'s' * (n != 1)}"


def _lacks(done: Repaired) -> dict[str, Any]:
    acquired = done.acquired
    rows = tuple(
        (
            name,
            whole(lack.need),
            whole(lack.found),
            whole(lack.missing),
            "; ".join(f"{n:,}: {reason}" for reason, n in lack.reasons.items()),
        )
        for name, lack in acquired.lacks
    )
    said = []
    if not acquired.lacks:
        said.append("The lake has all rows of the plan that was carried out.")
    if done.ideal is None:
        said.append("Without the lake there is no plan that reaches the tolerance.")
    elif done.ideal is not done.plan:
        said.append(
            "The lake has not all rows of the cheapest plan, so another was made with what it has; the "
            "table of cells shows where the two differ."
        )
    if acquired.open_tables:
        said.append(
            f"What is meant is not certain in {_things(acquired.open_tables, 'more table')}; rows are "
            "taken from there once someone says what it means: equipoise lake mapping."
        )
    counts = (
        (acquired.duplicates, "left out as duplicates of rows that are there already"),
        (acquired.failed, "left out since a value cannot become the base's type"),
        (acquired.unmapped, "left out since a value means nothing in the base"),
    )
    said += [
        f"{_things(n, 'row')} {'was' if n == 1 else 'were'} {what}." for n, what in counts if n
    ]
    if acquired.by_chance >= 1:
        said.append(
            f"About {acquired.by_chance:,.0f} rows that are new would be taken for duplicates by "
            "chance, since they say the same as another row."
        )
    headers = ("cell", "needed", "found", "missing", "why")
    return {
        "sentences": said,
        "table": _table(Grid(headers, rows, frozenset({1, 2, 3}))) if rows else None,
    }


def _shift(shift: Shift) -> dict[str, Any]:
    words = [row[-1] for row in shift.grid().rows]
    rows = tuple(
        (
            column.column,
            "mean" if column.kind == "number" else f"rows with {column.value}" * bool(column.value),
            column.base_text,
            column.added_text,
            "" if column.distance is None else f"{column.distance:.3f}",
            "" if column.by_chance is None else f"{column.by_chance:.3f}",
            word,
        )
        for column, word in zip(shift.columns, words, strict=True)
    )
    headers = ("column", "what differs most", "base", "added", "distance", "by chance", "remark")
    sides = ["fewer" if column.notable else "" for column in shift.columns]
    grid = Grid(headers, rows, frozenset({2, 3, 4, 5}))
    return {"sentences": list(shift.sentences), "table": _table(grid, marked=4, sides=sides)}


def _checks(found: Verification) -> dict[str, Any]:
    rows = []
    for finding in found.findings:
        examples = "".join(f" · {example}" for example in finding.examples[:3])
        word = "noted" if finding.noted else "holds" if finding.holds else "BROKEN"
        rows.append((finding.name, word, finding.sentence + examples))
    sides = ["" if f.holds and not f.noted else "fewer" for f in found.findings]
    grid = Grid(("check", "result", "finding"), tuple(rows))
    return {"sentence": found.sentences[0], "table": _table(grid, marked=1, sides=sides)}


# ------------------------------------------------------------------------------ commands


def _commands(
    acquired: Acquired, listing: Listing, lake: str | None, plan_file: str | None
) -> list[str]:
    """How anyone can check the result again, from the files."""
    if acquired.output is None or acquired.ledger is None:
        return []
    output, ledger = acquired.output, acquired.ledger
    beside = f"{output}.plan.json"
    plan = plan_file or (beside if Path(beside).exists() else "PLAN")
    key = " --hash-key-file KEY" * listing.keyed
    where = lake or "LAKE"
    files = f"--base {_q(acquired.base)} --plan {_q(plan)} --ledger {_q(ledger)}"
    return [
        f"equipoise verify {_q(output)} {files}{key}",
        f"equipoise lake replay {_q(ledger)} {where} --repaired {_q(output)}{key}",
    ]


def _q(text: str) -> str:
    return shlex.quote(text)


def _facts(done: Repaired, source: str | None) -> list[list[str]]:
    from equipoise.version import __version__

    acquired = done.acquired
    files = (("base", source or acquired.base), ("repaired table", acquired.output))
    facts = [[name, text] for name, text in (*files, ("ledger", acquired.ledger)) if text]
    return [
        *facts,
        *acquired.before.reading.facts,
        ["sensitive attributes", ", ".join(a.name for a in acquired.before.sensitive)],
        ["label", acquired.before.label.name],
        ["seed", str(acquired.seed)],
        ["fingerprint of the counts before", f"sha256:{acquired.before.fingerprint}"],
        ["fingerprint of the counts after", f"sha256:{acquired.after.fingerprint}"],
        ["made by", f"equipoise {__version__}"],
        ["time", acquired.time],
    ]
