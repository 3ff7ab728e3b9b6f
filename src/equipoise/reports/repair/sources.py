"""Where the rows of a repair came from, as plain data."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

from equipoise.lattice import Group, format_value
from equipoise.measures.display import whole
from equipoise.plain import Grid, counted
from equipoise.reports.plan import data as plan_data
from equipoise.reports.repair.charts import MISSING_ROWS
from equipoise.values import Value

if TYPE_CHECKING:
    from equipoise.lake.repair.acquisition import Acquired, Share
    from equipoise.plans.plan import Plan, PlanCell


TABLES = 7
"""Maximum number of tables with their own colour."""
WIDE = 30
"""If the largest need is more than this many times the least, shares are drawn, not rows."""
LISTED = 8
OTHERS, FOUND = "other tables", "found in the lake"


Cell: TypeAlias = tuple[Value, ...]
"""The values of a cell, in the order of the columns."""


@dataclass(frozen=True)
class Listing:
    """The added rows of a repair that was written."""

    rows: Mapping[str, Mapping[Cell, int]] = field(default_factory=dict)
    """By table, the number of rows of each cell."""
    values: Mapping[str, Mapping[str, Mapping[str, str]]] = field(default_factory=dict)
    """By table and column, the value of the base that each of its values became."""


def list_rows(acquired: Acquired, columns: Sequence[str]) -> Listing:
    """Return the number of rows of each cell by table; a dry run has none."""
    if acquired.ledger is None:
        return Listing()
    rows = {
        share.name: {tuple(cell[name] for name in columns): n for cell, n in share.cells}
        for share in acquired.shares
    }
    return Listing(rows, {share.name: share.values for share in acquired.shares})


def summarize_sources(acquired: Acquired, plan: Plan, listing: Listing) -> dict[str, Any]:
    """The tables that rows came from, how each was read, and the rows of each cell by table."""
    headers = ("table", "rows", "cost", "licence", "confidence", "matched by", "columns not in it")
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
        "table": Grid(headers, rows, frozenset({1, 2, 4})).to_dict(),
        "chart": source_bars(acquired, plan, listing),
        "matches": [_matches(share, listing) for share in acquired.shares],
        "bound": f"No choice of tables with these rows costs less than {acquired.bound:,.6g}; this "
        f"one costs {acquired.cost:,.6g}.",
    }


def _listed(names: Sequence[str]) -> str:
    more = [f"and {len(names) - LISTED:,} more"] if len(names) > LISTED else []
    return ", ".join([*names[:LISTED], *more])


def _matches(share: Share, listing: Listing) -> dict[str, Any]:
    """How the columns and values of a table were mapped to those of the base."""
    renamed = [f"{name} ← {column}" for name, column in share.columns.items() if name != column]
    same = len(share.columns) - len(renamed)
    lines = ["; ".join([*renamed, f"{same:,} columns of the same name"])]
    for name, values in listing.values.get(share.name, {}).items():
        changed = [f"{old} → {new}" for old, new in values.items() if old != new]
        kept = len(values) - len(changed)
        as_they_are = [f"{kept:,} unchanged values"] if kept else []
        lines.append(f"{name}: {', '.join([*changed, *as_they_are])}")
    lines += [
        f"{t.name} ← {t.column}: {counted(t.values, 'value')} {t.action}; {t.how}"
        for t in share.treated
    ]
    return {"table": share.name, "lines": [*lines, f"snapshot {share.snapshot}"]}


def source_bars(acquired: Acquired, plan: Plan, listing: Listing) -> dict[str, Any]:
    """The rows that each cell needed, by the table they came from, and those missing.

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
    # If there are too many tables, the last colour is for all others together.
    own = [share.name for share in by_rows[: TABLES if len(by_rows) <= TABLES else TABLES - 1]]
    rows = listing.rows or _found(acquired, plan)
    needs = [cell.add for cell in cells]
    shares = bool(needs) and max(needs) > WIDE * min(needs)
    bars = [
        _bar(cell, cell_key(cell, plan), rows, own, cell.add if shares else 1) for cell in cells
    ]
    used = {part["table"] for bar in bars for part in bar["parts"]}
    names = [n for n in (*own, OTHERS, FOUND, MISSING_ROWS) if n in used]
    return {
        "bars": bars,
        "names": names,
        "shares": shares,
        "left_out": sum(1 for cell in plan.moves if cell.add) - len(cells),
        "others": len(by_rows) - len(own),
    }


def _found(acquired: Acquired, plan: Plan) -> dict[str, dict[Cell, int]]:
    """The rows found for each cell, if there is no ledger to tell their tables."""
    if not acquired.shares:
        return {}
    names = [axis.name for axis in plan.counts.axes]
    found = {}
    for cell in plan.moves:
        key = cell_key(cell, plan)
        group = Group(dict(zip(names, key, strict=True)))
        found[key] = acquired.after.of(group) - cell.before + cell.delete
    return {FOUND: found}


def _bar(
    cell: PlanCell,
    key: Cell,
    rows: Mapping[str, Mapping[Cell, int]],
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


def cell_key(cell: PlanCell, plan: Plan) -> Cell:
    """The values of a cell of a plan."""
    return (*(cell.group[a.name] for a in plan.counts.sensitive), cell.label)
