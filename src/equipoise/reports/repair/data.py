"""The page of a repair, as plain data."""

from __future__ import annotations

import math
from shlex import quote
from typing import TYPE_CHECKING, Any

from equipoise.lattice import format_value
from equipoise.measures.display import whole
from equipoise.measures.table import bias_table
from equipoise.plain import Grid, counted
from equipoise.plans.problem import known_rows
from equipoise.reports.bias.data import summarize
from equipoise.reports.plan import data as plan_data
from equipoise.reports.repair.sources import (
    Cell,
    cell_key,
    list_rows,
    summarize_sources,
)

if TYPE_CHECKING:
    from equipoise.counts import Counts
    from equipoise.lake.loop import Repaired
    from equipoise.lake.repair.acquisition import Acquired
    from equipoise.lake.repair.shift.shift import Shift
    from equipoise.lake.verify.verification import Verification
    from equipoise.plans.plan import PlanCell

SCHEMA = "equipoise.repair-page/1"
_WORST = 8
PLACES = ("LAKE", "PLAN", "KEY")
"""Words in commands for places that are not known."""


def summarize_repair(
    done: Repaired,
    *,
    source: str | None = None,
    lake: str | None = None,
    plan_file: str | None = None,
    top: int = 50,
) -> dict[str, Any]:
    """The content of the page, ready for JSON; ``top`` limits the cells that are listed."""
    acquired, plan = done.acquired, done.plan
    listing = list_rows(acquired, [axis.name for axis in plan.counts.axes])
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
        "sources": summarize_sources(acquired, plan, listing),
        "lacks": _lacks(done),
        "shift": None if acquired.shift is None else _shift(acquired.shift),
        "after": {
            **after,
            "table": _proof(done),
            "biases": plan_data.biases(plan, (acquired.before, acquired.after)),
        },
        "verification": None if done.verification is None else _checks(done.verification),
        "commands": _commands(acquired, lake, plan_file),
        "facts": _facts(done, source),
    }


def _figures(done: Repaired) -> list[list[str]]:
    acquired, checks = done.acquired, done.verification
    goal = f"{_goal(done)} reached"
    if not done.plan.certificate.has_tolerance:
        goal = "carried out, and every limit of the plan holds"
    figures = [
        [whole(acquired.added), f"rows added, from {counted(len(acquired.shares), 'table')}"],
        [whole(acquired.removed), "rows removed"],
        [f"{acquired.cost:,.6g}", "cost of the rows"],
        [_small(acquired.max_abs_ub_before), "largest |UB| before"],
        [_small(acquired.max_abs_ub_after), "largest |UB| after"],
        ["yes" if done.reached else "NO", goal],
    ]
    if checks is not None:
        holds = sum(finding.holds for finding in checks.findings)
        figures.append([f"{holds} of {len(checks.findings)}", "checks hold"])
    return figures


def _goal(done: Repaired) -> str:
    return "policy" if done.plan.certificate.policy else f"tolerance {done.tolerance:g}"


# ---------------------------------------------------------------------- before and after


def _measured(done: Repaired, counts: Counts) -> dict[str, Any]:
    """The worst groups, and the first matrix of UB, of the rows that were planned for."""
    known, _ = known_rows(counts, plan_missing=done.plan.request.plan_missing)
    if not known.n:
        return {"worst": None, "matrix": None}
    summary = summarize(bias_table(known).worst(), top=_WORST)
    matrices = summary["charts"]["matrices"]
    return {"worst": summary["table"], "matrix": matrices[0] if matrices else None}


def _small(value: float) -> str:
    return "–" if math.isnan(value) else f"{value:.3g}"


def _proof(done: Repaired) -> dict[str, Any]:
    """The counts of the written file beside those of the plan."""
    acquired, proof = done.acquired, done.plan.certificate
    rows = [
        ("rows", whole(acquired.before.n), whole(acquired.planned.n), whole(acquired.after.n)),
        (
            "largest |UB| of all groups",
            _small(acquired.max_abs_ub_before),
            _small(proof.max_abs_ub_after),
            _small(acquired.max_abs_ub_after),
        ),
        ("cells that differ from the plan", "", "", whole(_differing(acquired))),
    ]
    if proof.reference == "original" or proof.kind != "|UB|":
        held = f"{proof.kind} against {proof.reference} frequencies"
        # The tolerance is on another number than the largest |UB|, so that one is shown as well.
        rows.insert(2, (held, _small(proof.off_before), _small(proof.off_after), ""))
    counted = "counted in the result" if acquired.output else "expected"
    return Grid(("what", "before", "planned", counted), tuple(rows), frozenset({1, 2, 3})).to_dict()


def _differing(acquired: Acquired) -> int:
    planned, after = acquired.planned.cells(), acquired.after.cells()
    return sum(planned.get(cell, 0) != after.get(cell, 0) for cell in {**planned, **after})


# ---------------------------------------------------------------------------------- plan


def _plans(done: Repaired, top: int) -> dict[str, Any]:
    plans = [("carried out", done.plan)]
    if done.ideal is not None and done.ideal is not done.plan:
        plans.insert(0, ("cheapest, whether or not such rows exist", done.ideal))
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
    goal = "tolerance reached" if done.plan.certificate.has_tolerance else "every limit holds"
    headers = ("plan", "rows to add", "rows to delete", "largest |UB| after", goal)
    return {
        "table": Grid(headers, rows, frozenset({1, 2, 3})).to_dict(),
        "cells": _cells(done, top),
        "left_out": max(0, len(_changed(done)) - top),
        "changes": plan_data.changes(done.plan) if done.plan.moves else None,
        "explanation": list(done.plan.explanation),
    }


def _changed(done: Repaired) -> dict[Cell, PlanCell]:
    """The cells that either plan changes, those with the most changes first."""
    plans = [done.plan] if done.ideal is None else [done.plan, done.ideal]
    found: dict[Cell, PlanCell] = {}
    # The plan that was carried out comes last, so that its own cells replace those of the other.
    for plan in reversed(plans):
        found |= {cell_key(cell, plan): cell for cell in plan.moves}
    return dict(sorted(found.items(), key=lambda item: -(item[1].add + item[1].delete)))


def _cells(done: Repaired, top: int) -> dict[str, Any]:
    plan, ideal = done.plan, done.ideal
    own = {cell_key(cell, plan): cell for cell in plan.moves}
    other = {} if ideal is None or ideal is plan else {cell_key(c, ideal): c for c in ideal.moves}
    rows = []
    for key, cell in list(_changed(done).items())[:top]:
        here, there = own.get(key), other.get(key)
        row = [str(cell.group), format_value(cell.label), whole(cell.before)]
        row += [_change(there)] if other else []
        rows.append((*row, _change(here), whole(here.after if here else cell.before)))
    cheapest = ("cheapest plan",) if other else ()
    headers = ("group", plan.counts.label.name, "before", *cheapest, "carried out", "after")
    return Grid(headers, tuple(rows), frozenset(range(2, len(headers)))).to_dict()


def _change(cell: PlanCell | None) -> str:
    if cell is None:
        return ""
    parts = [f"+{cell.add:,}"] * bool(cell.add) + [f"−{cell.delete:,}"] * bool(cell.delete)
    return " ".join(parts)


# ------------------------------------------------------------ missing rows, shift, checks


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
        said.append("Regardless of the lake, no plan reaches the tolerance.")
    elif done.ideal is not done.plan:
        said.append(
            "The lake does not have all rows of the cheapest plan, so a second plan uses the rows that "
            "it has; the table of cells shows where the two differ."
        )
    if acquired.open_tables:
        said.append(
            f"The meaning of {counted(acquired.open_tables, 'more table')} is not certain; no rows are "
            "taken from there until a person has confirmed it with: equipoise lake mapping."
        )
    counts = (
        (acquired.duplicates, "left out as duplicates of rows that are already there"),
        (acquired.failed, "left out because a value cannot be converted to the type of the base"),
        (acquired.unmapped, "left out because a value has no meaning in the base"),
    )
    said += [
        f"{counted(n, 'row')} {'was' if n == 1 else 'were'} {what}." for n, what in counts if n
    ]
    if acquired.by_chance >= 1:
        said.append(
            f"About {acquired.by_chance:,.0f} new rows would be taken for duplicates by chance, since "
            "they have the same values as another row."
        )
    headers = ("cell", "needed", "found", "missing", "why")
    return {
        "sentences": said,
        "table": Grid(headers, rows, frozenset({1, 2, 3})).to_dict() if rows else None,
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
    return {"sentences": list(shift.sentences), "table": grid.to_dict(marked=4, sides=sides)}


def _checks(found: Verification) -> dict[str, Any]:
    rows = []
    for finding in found.findings:
        examples = "".join(f" · {example}" for example in finding.examples[:3])
        word = "noted" if finding.noted else "holds" if finding.holds else "BROKEN"
        rows.append((finding.name, word, finding.sentence + examples))
    sides = ["" if f.holds and not f.noted else "fewer" for f in found.findings]
    grid = Grid(("check", "result", "finding"), tuple(rows))
    return {"sentence": found.sentences[0], "table": grid.to_dict(marked=1, sides=sides)}


# ------------------------------------------------------------------------------ commands


def _commands(acquired: Acquired, lake: str | None, plan_file: str | None) -> list[str]:
    """Commands that check the result again, from what was written."""
    from equipoise.lake.repair.destinations import plan_beside

    if acquired.output is None or acquired.ledger is None:
        return []
    output, ledger = acquired.output, acquired.ledger
    # A repair writes its plan beside its output by default.
    beside = plan_beside(output)
    plan = plan_file or (str(beside) if beside.exists() else "PLAN")
    key = " --hash-key-file KEY" * acquired.keyed
    where = lake or "LAKE"
    files = f"--base {quote(acquired.base)} --plan {quote(plan)} --ledger {quote(ledger)}"
    return [
        f"equipoise verify {quote(output)} {files}{key}",
        f"equipoise lake replay {quote(ledger)} {where} --repaired {quote(output)}{key}",
    ]


def _facts(done: Repaired, source: str | None) -> list[list[str]]:
    acquired = done.acquired
    files = (("base", source or acquired.base), ("repaired table", acquired.output))
    return [
        *([name, text] for name, text in (*files, ("ledger", acquired.ledger)) if text),
        *acquired.before.reading.facts,
        ["sensitive attributes", ", ".join(a.name for a in acquired.before.sensitive)],
        ["label", acquired.before.label.name],
        ["seed", str(acquired.seed)],
        ["fingerprint of the counts before", f"sha256:{acquired.before.fingerprint}"],
        ["fingerprint of the counts after", f"sha256:{acquired.after.fingerprint}"],
        ["made by", f"equipoise {done.version}"],
        ["time", done.time],
    ]
