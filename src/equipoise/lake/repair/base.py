"""The table to repair: whether a plan was made for it, and how its counts change."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from equipoise.counts import Condition, CountRequest, Counts, Reading
from equipoise.engines.sources import Source
from equipoise.errors import CountsError, InputError
from equipoise.lake.offers.need import Planned
from equipoise.measures.table import largest_ub
from equipoise.plain import Grid, rows_text
from equipoise.plans.problem import known_rows
from equipoise.results import FlatTable, column_names
from equipoise.values import plain


def bare(change: Counts, request: CountRequest) -> Counts:
    """Strip a change to its cells, so that it combines with counts of the base."""
    edges = {n: b for n, b in request.bins.items() if isinstance(b, tuple)}
    return replace(change, bins=edges, weights=None, missing_values={}, dropped=0, request=request)


def largest_known_ub(counts: Counts, plan: Planned) -> float:
    """The largest |UB| among the rows a plan is about: usually those without a missing value."""
    asked = getattr(plan, "request", None)
    known, _ = known_rows(counts, plan_missing=asked is not None and asked.plan_missing)
    return largest_ub(known)


def require_counts(base: Source, found: Counts, planned: Counts, *, force: bool) -> None:
    """Refuse a base whose counts or condition differ from those the plan was made for."""
    ours, theirs = base.where, planned.reading.where
    if not force and (ours and ours.text) != (theirs and theirs.text):
        raise InputError(
            f"the plan was made for {_restricted(theirs)}, but would be applied to "
            f"{_restricted(ours)} of {base.name}; make a new plan for these."
        )
    expected = replace(planned, weights=None)
    if not force and found.fingerprint != expected.fingerprint:
        raise InputError(
            f"the counts of {base.name} differ from those the plan was made for: "
            f"{difference(found, expected)}. Make a new plan for this table, or set `force` to "
            "apply the plan as far as the cells allow."
        )


def _restricted(where: Condition | None) -> str:
    return "all rows" if where is None else f"the rows where {where.one_line}"


def require_deletable(base: Source, before: Counts, delete: Counts) -> None:
    """Refuse a plan that deletes more rows of a cell than there are."""
    there = before.cells()
    for cell, n in delete.cells().items():
        if n > there.get(cell, 0):
            raise CountsError(
                f"the plan deletes {rows_text(n)} of {delete.pattern(cell)}, but {base.name} has "
                f"only {there.get(cell, 0):,}; make a new plan for this table."
            )


def difference(found: Counts, expected: Counts) -> str:
    """Describe how counts differ: the number of rows, and the first cell that differs."""
    rows = f"{found.n:,} rows instead of {expected.n:,}"
    here, there = found.cells(), expected.cells()
    for cell in {**there, **here}:
        a, b = here.get(cell, 0), there.get(cell, 0)
        if a != b:
            return f"{rows}, and {expected.pattern(cell)} has {a:,} instead of {b:,}"
    return rows


def say_restricted(reading: Reading, base: str) -> list[str]:
    """Describe the condition that restricts a repaired table, if there is one.

    >>> say_restricted(Reading(where=Condition("age > 30")), "people.csv")
    ['Only rows where age > 30 are in the result; the other rows of people.csv are left out.']
    """
    if reading.where is None:
        return []
    others = f"the other rows of {base} are left out"
    return [f"Only rows where {reading.where.one_line} are in the result; {others}."]


def counts_dict(
    before: Counts, after: Counts, max_abs_ub_before: float, max_abs_ub_after: float
) -> dict[str, Any]:
    """Plain data about the counts before and after a repair."""
    return {
        "n_before": before.n,
        "n_after": after.n,
        "max_abs_ub_before": plain(max_abs_ub_before),
        "max_abs_ub_after": plain(max_abs_ub_after),
        "fingerprint_before": before.fingerprint,
        "fingerprint_after": after.fingerprint,
    }


def cell_table(counted: Mapping[str, Counts]) -> FlatTable:
    """Put several counts over the same columns side by side, with a column for each.

    >>> before = Counts.from_mapping({("w", "yes"): 3}, sensitive=["sex"], label="hired")
    >>> after = before + Counts.from_mapping({("w", "no"): 1}, sensitive=["sex"], label="hired")
    >>> cell_table({"before": before, "after": after})
    (['sex', 'hired', 'before', 'after'], [['w', 'yes', 3, 3], ['w', 'no', 0, 1]])
    """
    cells = {name: counts.cells() for name, counts in counted.items()}
    axes = next(iter(counted.values())).axes
    names = column_names(list(counted), [axis.name for axis in axes])
    every = dict.fromkeys(cell for found in cells.values() for cell in found)
    rows = [
        [*map(plain, cell), *(found.get(cell, 0) for found in cells.values())] for cell in every
    ]
    return [*names, *counted], rows


def cell_grid(names: Sequence[str], rows: Iterable[Sequence[Any]]) -> Grid:
    """Format a table of cells for people; see :func:`cell_table`."""
    lines = tuple(
        tuple("" if v is None else f"{v:,}" if isinstance(v, int) else str(v) for v in row)
        for row in rows
    )
    numbers = frozenset(range(len(names) - 3, len(names)))
    return Grid(tuple(names), lines, numbers)
