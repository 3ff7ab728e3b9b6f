"""A plan as it is carried out: what it was made for, and what must hold before rows move."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from equipoise.counts import Condition, CountRequest, Counts, Reading
from equipoise.engines.sources import Source
from equipoise.errors import CountsError, InputError
from equipoise.lattice import Group
from equipoise.measures.options import Options
from equipoise.measures.table import bias_table
from equipoise.plain import Grid
from equipoise.plans.problem import known_rows
from equipoise.results import FlatTable, column_names
from equipoise.values import Value, plain


class Planned(Protocol):
    """What is needed of a plan: the counts it was made for, and the rows to add and delete."""

    @property
    def counts(self) -> Counts:
        """The counts of the table it was made for."""

    @property
    def add(self) -> Counts:
        """How many rows of each cell to add."""

    @property
    def delete(self) -> Counts:
        """How many rows of each cell to delete."""


def request_of(counts: Counts) -> CountRequest:
    """Ask for the rows of the cells a plan was made for, by the same bins."""
    made_by = counts.request or CountRequest(
        sensitive=tuple(a.name for a in counts.sensitive), label=counts.label.name
    )
    return replace(made_by, count=None, weight=None).with_edges(counts.bins)


def bare(change: Counts, request: CountRequest) -> Counts:
    """Give the cells of a change alone, so that they combine with counts of the base."""
    edges = {n: b for n, b in request.bins.items() if isinstance(b, tuple)}
    return replace(change, bins=edges, weights=None, missing_values={}, dropped=0, request=request)


def cells_of(counts: Counts) -> dict[tuple[Value, ...], int]:
    """Give the rows of each cell, by its values."""
    values = [a.values for a in counts.axes]
    lines = zip(counts.codes.tolist(), counts.rows.tolist(), strict=True)
    return {tuple(v[c] for v, c in zip(values, codes, strict=True)): n for codes, n in lines}


def named(counts: Counts, cell: Sequence[Value]) -> Group:
    """Give a cell as a pattern."""
    return Group(dict(zip((a.name for a in counts.axes), cell, strict=True)))


def largest_ub(counts: Counts, plan: Planned) -> float:
    """The largest |UB|, of the rows the plan was about: those that lack a value stay aside."""
    asked = getattr(plan, "request", None)
    known, _ = known_rows(counts, plan_missing=asked is not None and asked.plan_missing)
    if not known.n:
        return float("nan")
    ub = np.abs(bias_table(known, Options(uncertainty=False)).measured.ub)
    return float(np.nanmax(ub)) if not np.isnan(ub).all() else float("nan")


def require_counts(base: Source, found: Counts, planned: Counts, *, force: bool) -> None:
    """Refuse a base that has other counts than the plan was made for, or of other rows."""
    ours, theirs = base.where, planned.reading.where
    if not force and (ours and ours.text) != (theirs and theirs.text):
        raise InputError(
            f"the plan was made for {_restricted(theirs)}, and is to be carried out on "
            f"{_restricted(ours)} of {base.name}; plan again for these."
        )
    expected = replace(planned, weights=None)
    if not force and found.fingerprint != expected.fingerprint:
        raise InputError(
            f"{base.name} has other counts than the plan was made for: "
            f"{difference(found, expected)}; plan again for this table, or apply the plan as far "
            "as the cells allow with --force."
        )


def _restricted(where: Condition | None) -> str:
    return "all rows" if where is None else f"the rows where {where.one_line}"


def difference(found: Counts, expected: Counts) -> str:
    """Say how counts differ: in rows, and in the first cell that does."""
    rows = f"{found.n:,} rows against {expected.n:,}"
    here, there = cells_of(found), cells_of(expected)
    for cell in {**there, **here}:
        a, b = here.get(cell, 0), there.get(cell, 0)
        if a != b:
            return f"{rows}, and {named(expected, cell)} has {a:,} against {b:,}"
    return rows


def cell_table(counted: Mapping[str, Counts]) -> FlatTable:
    """The rows of every cell in several tables: a column for each.

    Parameters
    ----------
    counted
        Counts over the same columns, by the name of the column they become.

    Examples
    --------
    >>> before = Counts.from_mapping({("w", "yes"): 3}, sensitive=["sex"], label="hired")
    >>> after = before + Counts.from_mapping({("w", "no"): 1}, sensitive=["sex"], label="hired")
    >>> cell_table({"before": before, "after": after})
    (['sex', 'hired', 'before', 'after'], [['w', 'yes', 3, 3], ['w', 'no', 0, 1]])
    """
    cells = {name: cells_of(counts) for name, counts in counted.items()}
    axes = next(iter(counted.values())).axes
    names = column_names(list(counted), [axis.name for axis in axes])
    every = dict.fromkeys(cell for found in cells.values() for cell in found)
    rows = [
        [*map(plain, cell), *(found.get(cell, 0) for found in cells.values())] for cell in every
    ]
    return [*names, *counted], rows


def cell_grid(names: Sequence[str], rows: Iterable[Sequence[Any]]) -> Grid:
    """A table of cells for people; see :func:`cell_table`."""
    lines = tuple(
        tuple("" if v is None else f"{v:,}" if isinstance(v, int) else str(v) for v in row)
        for row in rows
    )
    numbers = frozenset(range(len(names) - 3, len(names)))
    return Grid(tuple(names), lines, numbers)


def require_deletable(base: Source, before: Counts, delete: Counts) -> None:
    """Refuse a plan that deletes more rows of a cell than there are."""
    there = cells_of(before)
    for cell, n in cells_of(delete).items():
        if n > there.get(cell, 0):
            raise CountsError(
                f"the plan deletes {rows_text(n)} of {named(delete, cell)}, of which {base.name} has "
                f"{there.get(cell, 0):,}; plan again for this table."
            )


def rows_text(n: int) -> str:
    """Give a number of rows in words.

    >>> rows_text(1), rows_text(1200)
    ('1 row', '1,200 rows')
    """
    return f"{n:,} row{'' if n == 1 else 's'}"


def say_restricted(reading: Reading, base: str) -> list[str]:
    """Say which rows of a base are in a repaired table, if not all, and which may be added.

    >>> say_restricted(Reading(where=Condition("age > 30")), "people.csv")
    ['Only rows where age > 30 are in it: other rows of people.csv are left out, and none is added.']
    """
    if reading.where is None:
        return []
    others = f"other rows of {base} are left out, and none is added"
    return [f"Only rows where {reading.where.one_line} are in it: {others}."]


def ub_text(value: float) -> str:
    """Give a UB in words, which one that is not a number is not."""
    return "undefined" if value != value else f"{value:.3f}"


def public_name(source: Source) -> str:
    """Name a source as it was given, but without the folders of this machine."""
    path = Path(source.name)
    return path.name if path.is_absolute() else source.name
