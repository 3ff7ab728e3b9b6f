"""The change of biases between two tables, with its uncertainty."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise.errors import CountsError
from equipoise.lattice import Group, format_value
from equipoise.measures.display import TOO_FEW, UNKNOWN, number, probability, whole
from equipoise.measures.measurement import SURE, Measurement, group_of
from equipoise.measures.request import MeasureRequest
from equipoise.measures.suppression import suppress
from equipoise.measures.table import BiasTable, bias_table
from equipoise.measures.uncertainty.intervals import ub_change_interval
from equipoise.measures.uncertainty.p_values import adjust
from equipoise.plain import Grid, csv_text
from equipoise.results import FlatTable, Result
from equipoise.values import Value, plain

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from equipoise.counts import Counts

SCHEMA = "equipoise.diff/1"
_ABOUT = ("sensitive", "label", "labels", "parameters", "reading", "version", "time")


@dataclass(frozen=True)
class ChangeRow:
    """One group and label, before and after."""

    group: Group
    label: Value
    n_before: int
    n_after: int
    ub_before: float
    ub_after: float
    change: float
    change_low: float
    change_high: float
    p_value: float
    q_value: float
    evident: bool
    note: str | None

    def to_dict(self) -> dict[str, Any]:
        """Plain data, with ``None`` for undefined values."""
        group = {k: plain(v) for k, v in self.group.items()}
        return {"group": group, **{k: plain(v) for k, v in vars(self).items() if k != "group"}}


_NUMBERS = [field.name for field in fields(ChangeRow) if field.type == "float"]


@dataclass(frozen=True, eq=False)
class BiasChange(Result):
    """The change of every UB from one table to another, largest first.

    Changes with too few rows to decide come last: those that chance alone may explain (q of 0.05
    or more) and whose interval is not entirely inside the limit.

    The interval assumes that the two tables are independent samples. If one contains the rows of
    the other, as after a repair, the change itself is exact and the interval is too wide. With
    ``suppress_below``, only groups that are shown in both tables are compared.

    >>> from equipoise import Counts
    >>> before = Counts.from_mapping(
    ...     {("m", "y"): 60, ("m", "n"): 40, ("w", "y"): 20, ("w", "n"): 80},
    ...     sensitive=["sex"],
    ...     label="l",
    ... )
    >>> after = before + Counts.from_mapping({("w", "y"): 100}, sensitive=["sex"], label="l")
    >>> row = next(iter(bias_change(before, after)))
    >>> str(row.group), row.label, round(row.ub_before, 3), round(row.ub_after, 3)
    ('sex=w', 'y', 0.5, 0.0)
    """

    before: BiasTable
    after: BiasTable
    rows: tuple[ChangeRow, ...]

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[ChangeRow]:
        return iter(self.rows)

    def top(self, n: int | None) -> BiasChange:
        """The first rows."""
        return self if n is None else replace(self, rows=self.rows[:n])

    def to_dict(self) -> dict[str, Any]:
        """Plain data, as written to JSON."""
        about = self.before.about()
        return {
            "schema": SCHEMA,
            **{k: about[k] for k in _ABOUT},
            "reading_after": self.after.counts.reading.to_dict(),
            "n_before": self.before.counts.n,
            "n_after": self.after.counts.n,
            "skipped_before": self.before.counts.skipped.to_dict(),
            "skipped_after": self.after.counts.skipped.to_dict(),
            "fingerprint_before": about["fingerprint"],
            "fingerprint_after": self.after.about()["fingerprint"],
            "rows": [row.to_dict() for row in self.rows],
        }

    def to_csv(self) -> str:
        """One line per row, in full precision."""
        return csv_text(*self._table())

    def _table(self) -> FlatTable:
        names = [f.name for f in fields(ChangeRow)]
        rows = ([str(r.group), *map(plain, list(vars(r).values())[1:])] for r in self.rows)
        return names, rows

    def grid(self) -> Grid:
        """The rows as a printable table."""
        confidence = f"{self.before.options.confidence:.0%} interval"
        label = self.before.counts.label.name
        headers = ("group", label, "rows before", "rows after", "UB before", "UB after", "change")
        rows = tuple(_cells(row) for row in self.rows)
        told = [row.evident for row in self.rows]
        line = (told.index(False), TOO_FEW) if False in told else None
        return Grid((*headers, confidence, "q", "note"), rows, frozenset(range(2, 9)), line)

    @property
    def heading(self) -> str:
        """What was compared, in one line."""
        sizes = f"{self.before.counts.n:,} rows before, {self.after.counts.n:,} after"
        first, second = (table.counts.reading.sentences for table in (self.before, self.after))
        if first != second:
            first = (*(f"Before: {s}" for s in first), *(f"After: {s}" for s in second))
        return f"Change of Uniform Bias: {sizes}{'. ' if first else ''}{' '.join(first)}"

    @property
    def sentences(self) -> tuple[str, ...]:
        """The outcome, as :attr:`sentence` says it."""
        return (self.sentence,)

    @property
    def sentence(self) -> str:
        """The outcome in a sentence."""
        known = [r for r in self.rows if not np.isnan(r.change)]
        if not known:
            return "No group is in both tables, so there is nothing to compare."
        sure = sum(r.q_value < SURE for r in known)
        if not any(r.change for r in known):
            return f"None of {len(known):,} group and label pairs changed."
        said = (
            f"{sure:,} of {len(known):,} group and label pairs changed by more than chance (q below "
            f"{SURE:g}, if the two tables are independent samples)"
        )
        told = [r for r in known if r.q_value < SURE and r.evident]
        if not told:
            return f"{said}."
        largest = max(told, key=lambda r: abs(r.change))
        return (
            f"{said}; the largest such change is {number(largest.change)}, of {largest.group} for "
            f"{self.before.counts.label.name}={format_value(largest.label)}."
        )

    def text(self, top: int | None = 20) -> str:
        """The first rows as a table, and the outcome in a sentence."""
        shown = self.top(top)
        more = f"\n… and {len(self) - len(shown):,} more rows" if len(self) > len(shown) else ""
        return f"{self.heading}\n\n{shown.grid().text()}{more}\n\n{self.sentence}"

    def __repr__(self) -> str:
        return self.text()


def bias_change(before: Counts, after: Counts, options: MeasureRequest | None = None) -> BiasChange:
    """Compare the biases of two tables over the same columns."""
    options = replace(options or MeasureRequest(), uncertainty=True)
    try:
        empty_after, empty_before = after - after, before - before
        first, second = before + empty_after, after + empty_before
        first = replace(first.with_axes(second), reading=before.reading)
        second = replace(second, reading=after.reading)
    except CountsError as error:
        raise CountsError(f"the two tables cannot be compared: {error}") from None
    tables = [bias_table(counts, options) for counts in (first, second)]
    if options.suppress_below is not None:
        tables = [suppress(table, options.suppress_below) for table in tables]
    return BiasChange(tables[0], tables[1], rows=_rows(tables[0], tables[1]))


def _rows(before: BiasTable, after: BiasTable) -> tuple[ChangeRow, ...]:
    one, two = before.measured, after.measured
    codes = np.unique(np.concatenate([one.lattice.codes, two.lattice.codes]), axis=0)
    if before.options.suppress_below is not None:
        codes = codes[_shown(one, codes) & _shown(two, codes)]
    (ub0, low0, high0, n0), (ub1, low1, high1, n1) = (_at(m, codes) for m in (one, two))
    change = ub_change_interval(
        ub0, low0, high0, ub1, low1, high1, confidence=before.options.confidence
    )
    q = adjust(change.p, before.options.adjust)
    line, label = np.indices(ub0.shape).reshape(2, -1)
    size = np.nan_to_num(np.abs(change.change), nan=-1.0)[line, label]
    limit = before.options.limit
    evident = (q < SURE) | ((change.low >= -limit) & (change.high <= limit))
    evident &= ~(_unsound(one, codes) | _unsound(two, codes))
    order = np.lexsort((-np.maximum(n0, n1)[line], -np.round(size, 12), ~evident[line, label]))
    numbers = np.stack([ub0, ub1, change.change, change.low, change.high, change.p, q], axis=-1)
    rows = []
    for i in order.tolist():
        g, y = int(line[i]), int(label[i])
        row = ChangeRow(
            group=group_of(before.counts, codes[g]),
            label=before.counts.label.values[y],
            n_before=int(n0[g]),
            n_after=int(n1[g]),
            **dict(zip(_NUMBERS, numbers[g, y].tolist(), strict=True)),
            evident=bool(evident[g, y]),
            note=_note(int(n0[g]), int(n1[g]), before.options.min_count),
        )
        rows.append(row)
    return tuple(rows)


def _at(measured: Measurement, codes: NDArray[np.int32]) -> tuple[Any, Any, Any, Any]:
    """UB with its interval, and the number of rows, of groups that may not be in a table."""
    counts, line = measured.counts, measured.lattice.find(codes)
    there = line >= 0
    ub, low, high = np.full((3, len(codes), len(counts.label)), np.nan)
    columns = (measured.ub, *(measured.interval or ()))
    for found, column in zip((ub, low, high), columns, strict=True):
        found[there] = column[line[there]]
    sizes = np.zeros(len(codes), np.int64)
    sizes[there] = measured.n_group[line[there]]
    if measured.options.min_count > 1:  # a group that was left out as too small may still have rows
        sizes[~there] = [counts.of(group_of(counts, code)) for code in codes[~there]]
    return ub, low, high, sizes


def _unsound(measured: Measurement, codes: NDArray[np.int32]) -> NDArray[np.bool_]:
    """Where a group is not in a table, or has too few rows there to prove anything."""
    line = measured.lattice.find(codes)
    found = np.ones((len(codes), len(measured.counts.label)), np.bool_)
    found[line >= 0] = measured.unsound[line[line >= 0]]
    return found


def _shown(measured: Measurement, codes: NDArray[np.int32]) -> NDArray[np.bool_]:
    """Where a group is in a table whose small counts are suppressed, and not hidden there."""
    line = measured.lattice.find(codes)
    hidden = np.atleast_1d(np.asarray(measured.suppressed).any(axis=1))
    return (line >= 0) & ~hidden[line]


def _note(before: int, after: int, least: int) -> str | None:
    if not before or not after:
        return "only before" if before else "only after"
    if min(before, after) < least:
        return "too few rows before" if before < least else "too few rows after"
    return None


def _cells(row: ChangeRow) -> tuple[str, ...]:
    limits = f"{number(row.change_low)} … {number(row.change_high)}"
    return (
        str(row.group),
        format_value(row.label),
        whole(row.n_before),
        whole(row.n_after),
        number(row.ub_before),
        number(row.ub_after),
        number(row.change),
        UNKNOWN if np.isnan(row.change_low) else limits,
        probability(row.q_value),
        row.note or "",
    )
