"""Compare added rows with the base rows of their cells, column by column."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa

from equipoise.errors import ColumnNotFound, InputError
from equipoise.lake.repair.shift.chance import (
    Flags,
    Real,
    Sides,
    Whole,
    by_chance,
    chance_of_many,
    distance_of,
)
from equipoise.lake.repair.shift.columns import ComparedColumn
from equipoise.lake.repair.shift.shift import UNSEEN, ColumnShift, Kind, Shift
from equipoise.lattice import format_value

_MOST_CELLS = 1000
"""Maximum number of cells searched for the worst one, those with the most added rows."""


def measure_shift(
    base: pa.Table,
    added: pa.Table,
    cells: tuple[Sequence[int] | Whole, Sequence[int] | Whole],
    *,
    columns: Sequence[str],
    limit: float | None = None,
    min_rows: int = 10,
) -> Shift:
    """Compare added rows with the base rows of the same cells on other columns.

    Base rows are weighted so that they have the cell mix of the added rows; the remaining
    difference is not explained by the cells. ``cells`` holds the cell of every row of ``base``
    and of ``added``. A column that ``added`` does not have counts as missing in all its rows.
    Cells with fewer than ``min_rows`` base rows are left out, and counted.
    """
    _require(base, added, cells, columns, limit, min_rows)
    shift, names, where = _common_cells(np.asarray(cells[0]), np.asarray(cells[1]), min_rows)
    shift = replace(shift, limit=limit)
    old, new = (np.flatnonzero(number >= 0) for number in where)
    if not len(new):
        reason = f"no added row is in a cell with at least {min_rows:,} base rows"
        skipped = (ColumnShift(column=c, kind="skipped", reason=reason) for c in columns)
        return replace(shift, columns=tuple(skipped))
    rows = _Rows(where[0][old], where[1][new], min_rows=min_rows, names=names)
    found = [
        _compare(name, _taken(base, name, old), _taken(added, name, new), rows) for name in columns
    ]
    order: dict[Kind, int] = {"number": 0, "category": 0, "missing": 1, "skipped": 2}
    found.sort(key=lambda c: (order[c.kind], -(c.distance or 0.0)))
    return replace(shift, columns=tuple(found))


def _require(
    base: pa.Table,
    added: pa.Table,
    cells: tuple[Any, Any],
    columns: Sequence[str],
    limit: float | None,
    min_rows: int,
) -> None:
    for table, numbers, name in ((base, cells[0], "base"), (added, cells[1], "added")):
        if len(table) != len(numbers):
            raise InputError(
                f"the {name} table has {len(table):,} rows, but {len(numbers):,} cells are given; "
                "give one for each row."
            )
        if len(numbers) and np.asarray(numbers).dtype.kind not in "iu":
            raise InputError(f"the cells of the {name} table must be whole numbers, one a row.")
    for column in columns:
        if column not in base.column_names:
            raise ColumnNotFound(column, table="the base table", columns=base.column_names)
    if limit is not None and not 0 <= limit <= 1:
        raise InputError(f"a limit on a distance is from 0 to 1, not {limit!r}.")
    if min_rows < 1:
        raise InputError(f"`min_rows` must be at least 1, not {min_rows!r}.")


def _common_cells(
    base: Whole, added: Whole, min_rows: int
) -> tuple[Shift, Whole, tuple[Whole, Whole]]:
    """Count what is compared; return the cells, and the index of that of each row, -1 for none."""
    both, number = np.unique(np.concatenate([base, added]).astype(np.int64), return_inverse=True)
    ours, theirs = number.reshape(-1)[: len(base)], number.reshape(-1)[len(base) :]
    n, m = np.bincount(ours, minlength=len(both)), np.bincount(theirs, minlength=len(both))
    kept = (n >= min_rows) & (m > 0)
    few = (n < min_rows) & (m > 0)
    new = np.where(kept, np.cumsum(kept) - 1, -1)
    told = Shift(
        columns=(),
        rows_compared=int(m[kept].sum()),
        rows_left_out=int(m[few].sum()),
        cells_compared=int(kept.sum()),
        cells_left_out=int(few.sum()),
        cells_without_added=int(((n > 0) & (m == 0)).sum()),
        min_rows=min_rows,
    )
    return told, both[kept], (new[ours], new[theirs])


def _taken(table: pa.Table, name: str, places: Whole) -> pa.ChunkedArray:
    if name not in table.column_names:
        return pa.chunked_array([pa.nulls(len(places))])
    column = table[name]
    return column if len(places) == len(column) else column.take(pa.array(places))


@dataclass(frozen=True, eq=False)
class _Rows:
    """Cells of the compared rows, numbered from 0."""

    base: Whole
    added: Whole
    min_rows: int
    names: Whole
    shuffled: dict[bytes, Whole] = field(default_factory=dict)


def _compare(name: str, base: pa.ChunkedArray, added: pa.ChunkedArray, rows: _Rows) -> ColumnShift:
    column = ComparedColumn.read(base, added)
    if not isinstance(column, ComparedColumn):
        return ColumnShift(column=name, kind="skipped", reason=column)
    present = tuple(codes >= 0 for codes in column.codes)
    if not present[0].any():
        return ColumnShift(column=name, kind="skipped", reason="it has no values in the base")
    missing = _missing_shares(present, rows)
    told = {"column": name, "base_missing": missing[0], "added_missing": missing[1]}
    if not present[1].any():
        return ColumnShift(kind="missing", notable=True, **told)  # type: ignore[arg-type]
    sides = _sides(column, present, rows)
    if sides is None:
        reason = "no cell has values of it on both sides"
        return ColumnShift(column=name, kind="skipped", reason=reason)
    shares = sides.shares()
    ordered = column.kind == "number"
    distance = distance_of(*shares, ordered=ordered)
    chance = by_chance(sides, shares, rows.shuffled, ordered=ordered)
    unseen = 0.0 if ordered else _unseen(column)
    far = distance > chance or missing[2] or unseen >= UNSEEN
    words = _of_numbers(column, shares) if ordered else _of_categories(column, shares)
    return ColumnShift(
        kind=column.kind,
        distance=distance,
        by_chance=chance,
        notable=bool(far),
        unseen=unseen,
        **told,  # type: ignore[arg-type]
        **words,
        **_worst(sides, rows, ordered=ordered),
    )


def _unseen(column: ComparedColumn) -> float:
    """Share of added rows whose value no base row has: another spelling, or another kind."""
    base, added = (codes[codes >= 0] for codes in column.codes)
    return float((~np.isin(added, base)).mean()) if len(added) else 0.0


def _missing_shares(present: Sequence[Flags], rows: _Rows) -> tuple[float, float, bool]:
    """Return the shares of missing values, and whether they differ by more than chance."""
    absent = [(~p).astype(np.int64) for p in present]
    sides = Sides(absent[0], absent[1], rows.base, rows.added, 2)
    base, added = (round(float(share[1]), 12) for share in sides.shares())
    # 2.58 is the 99 % quantile of |z|; one row more or less is never notable.
    middle = (base + added) / 2
    chance = 2.58 * math.sqrt(middle * (1 - middle) * sides.noise) + 1 / len(rows.added)
    return base, added, abs(base - added) > chance


def _sides(column: ComparedColumn, present: Sequence[Flags], rows: _Rows) -> Sides | None:
    """Return the rows with a value, in cells that have values in both samples."""
    cells = [rows.base[present[0]], rows.added[present[1]]]
    codes = [c[p] for c, p in zip(column.codes, present, strict=True)]
    size = 1 + max(int(c.max()) for c in cells)
    both = np.logical_and(*(np.bincount(c, minlength=size) > 0 for c in cells))
    inside = [both[c] for c in cells]
    if not inside[1].any():
        return None
    return Sides(
        codes[0][inside[0]],
        codes[1][inside[1]],
        cells[0][inside[0]],
        cells[1][inside[1]],
        len(column.values),
    )


def _of_numbers(column: ComparedColumn, shares: tuple[Real, Real]) -> dict[str, Any]:
    # Scaled, squares of large numbers do not overflow.
    scale = float(np.abs(column.values).max()) or 1.0
    values = column.values / scale
    means = [round(float(values @ s), 12) + 0.0 for s in shares]
    moments = (float((values - m) ** 2 @ s) for m, s in zip(means, shares, strict=True))
    spread = math.sqrt(sum(moments) / 2)
    return {
        "base_text": _number(means[0] * scale),
        "added_text": _number(means[1] * scale),
        "mean_difference": (means[1] - means[0]) / spread if spread > 1e-9 else None,
    }


def _of_categories(column: ComparedColumn, shares: tuple[Real, Real]) -> dict[str, Any]:
    # Of values with the same difference, report the one that more of the added rows have.
    most = int(np.lexsort((shares[1], np.abs(shares[1] - shares[0]).round(12)))[-1])
    return {
        "base_text": f"{shares[0][most]:.0%}",
        "added_text": f"{shares[1][most]:.0%}",
        "value": format_value(column.values[most]),
    }


def _worst(sides: Sides, rows: _Rows, *, ordered: bool) -> dict[str, Any]:
    """Find the cell that exceeds chance most, among those with enough added rows."""
    slices = [
        _by_cell(s, c, len(rows.names))
        for s, c in ((sides.base, sides.base_cells), (sides.added, sides.added_cells))
    ]
    sizes = np.array([len(codes) for codes in slices[1]])
    many = np.argsort(-sizes, kind="stable")[:_MOST_CELLS]
    found = []
    for cell in many[sizes[many] >= rows.min_rows].tolist():
        base, added = slices[0][cell], slices[1][cell]
        if len(base) < rows.min_rows:
            continue
        distance, chance = _in_one_cell(base, added, sides.values, ordered=ordered)
        found.append((distance - chance, distance, cell))
    if not found:
        return {}
    _, distance, cell = max(found)
    return {"worst_cell": int(rows.names[cell]), "worst_distance": distance}


def _by_cell(codes: Whole, cells: Whole, n: int) -> list[Whole]:
    order = np.argsort(cells, kind="stable")
    return np.split(codes[order], np.cumsum(np.bincount(cells, minlength=n))[:-1])


def _in_one_cell(base: Whole, added: Whole, values: int, *, ordered: bool) -> tuple[float, float]:
    if values > len(base) + len(added):  # a table of counts would be larger than the data
        both, number = np.unique(np.concatenate([base, added]), return_inverse=True)
        base, added, values = number[: len(base)], number[len(base) :], len(both)
    shares = [np.bincount(x, minlength=values) / len(x) for x in (base, added)]
    noise = 1 / len(base) + 1 / len(added)
    distance = distance_of(shares[0], shares[1], ordered=ordered)
    return distance, chance_of_many(shares[0], shares[1], noise, ordered=ordered)


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"
