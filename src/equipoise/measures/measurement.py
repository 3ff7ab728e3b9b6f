"""The arrays of numbers behind a bias table."""

from __future__ import annotations

import functools
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from equipoise.errors import PatternError
from equipoise.lattice import Group, Lattice, roll_up
from equipoise.measures.measure import Floats, Margins, ratio
from equipoise.measures.registry import measure_named
from equipoise.measures.request import REFERENCES, MeasureRequest
from equipoise.measures.row import NOTE_CODES, NUMBERS, Row
from equipoise.measures.uncertainty.intervals import Interval, ub_interval
from equipoise.measures.uncertainty.p_values import adjust, p_value, too_small, weighted_p_value
from equipoise.measures.uniform_bias import uniform_bias
from equipoise.results import now

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

    from equipoise.counts import Counts

SURE = 0.05
"""A difference with q below this is called more than chance."""
_TOO_FEW = [NOTE_CODES.index(note) for note in (None, "too small to say", "rests on one row")]


@dataclass(frozen=True, eq=False)
class Measurement:
    """The numbers behind a table, as arrays with a line per group and a column per label."""

    counts: Counts
    options: MeasureRequest
    lattice: Lattice
    ub: Floats
    interval: Interval | None = None
    p_value: Floats | None = None
    q_value: Floats | None = None
    suppressed: NDArray[np.bool_] | None = None
    time: str = ""

    @classmethod
    def of(cls, counts: Counts, options: MeasureRequest) -> Measurement:
        """Roll up the counts over the lattice and measure every group."""
        if options.favourable is not None:
            counts.label.code(options.favourable)
        if options.reference not in REFERENCES:
            for name, value in Group.parse(options.reference).items():
                counts.axis(name).code(value)
        groups, columns = counts.finest()
        lattice = roll_up(
            groups,
            [len(a) for a in counts.sensitive],
            columns,
            min_count=options.min_count,
            max_order=options.max_order,
            memory=options.memory,
        )
        bare = cls(counts, options, lattice, np.zeros(0), time=now())
        measured = replace(bare, ub=uniform_bias(bare.margins))
        return measured.with_uncertainty() if options.uncertainty else measured

    def with_uncertainty(self) -> Measurement:
        """Add intervals, p-values and q-values."""
        m, sizes = self.margins, None if self.counts.weights is None else self.effective_sizes
        interval = ub_interval(
            m.n_gy,
            m.n_g,
            m.n_y,
            m.n,
            confidence=self.options.confidence,
            sampling=self.options.sampling,
            effective=sizes,
        )
        if sizes is None:
            p = p_value(m.n_gy, m.n_g, m.n_y, m.n)
        else:
            p = weighted_p_value(m.n_gy, m.n_g, m.n_y, m.n, effective=sizes)
        # UB of the only label, and of the group of all rows, is 0 whatever the sample.
        sure = (self.n_label == self.counts.n) | (self.n_group[:, None] == self.counts.n)
        for limit in interval:
            limit[sure & ~np.isnan(self.ub)] = 0.0
        q = adjust(p, self.options.adjust)
        return replace(self, interval=interval, p_value=p, q_value=q)

    # ------------------------------------------------------------------ columns

    @property
    def n_cell(self) -> NDArray[np.int64]:
        """Rows of each group with each label."""
        return self.lattice.columns[0]

    @functools.cached_property
    def n_group(self) -> NDArray[np.int64]:
        """Rows of each group."""
        return np.asarray(self.n_cell.sum(axis=1))

    @functools.cached_property
    def n_label(self) -> NDArray[np.int64]:
        """Rows with each label."""
        code = self.counts.codes[:, len(self.counts.sensitive)]
        return np.bincount(code, self.counts.rows, len(self.counts.label)).astype(np.int64)

    @functools.cached_property
    def margins(self) -> Margins:
        """The input of all measures: numbers of rows, or sums of weights."""
        if self.counts.weights is None:
            cells, total = self.lattice.columns[0], self.n_label.astype(float)
        else:
            code = self.counts.codes[:, len(self.counts.sensitive)]
            cells = self.lattice.columns[1]
            total = np.bincount(code, self.counts.weights[:, 0], len(self.counts.label))
        return Margins(
            n=float(total.sum()),
            n_y=total,
            n_g=cells.sum(axis=1, keepdims=True).astype(float),
            n_gy=cells.astype(float),
            reference=np.zeros(0),
        )

    def measure(self, name: str, reference: str | None = None, min_count: int = 1) -> Floats:
        """Compute a registered measure; `min_count` is the minimum size of a best-off group."""
        asked = self.options.reference if reference is None else reference
        margins = replace(self.margins, reference=self._reference_rates(asked, min_count))
        numbers = measure_named(name).function(margins)
        return numbers if self.suppressed is None else np.where(self.suppressed, np.nan, numbers)

    def _reference_rates(self, asked: str, min_count: int) -> Floats:
        m = self.margins
        if asked == "rest":
            # Sums of weights are rounded, so numbers of rows decide whether anything is left.
            left = np.where(self.n_cell == self.n_label, 0.0, m.n_y - m.n_gy)
            rest = np.where(self.n_group == self.counts.n, 0.0, m.n - m.n_g[:, 0])
            return ratio(left, rest[:, None])
        # A ratio to a suppressed group's rate would reveal that rate.
        rate = m.rate if self.suppressed is None else np.where(self.suppressed, np.nan, m.rate)
        if asked != "best":
            return np.broadcast_to(rate[self.line(Group.parse(asked))], m.n_gy.shape)
        best = self.best(min_count=min_count)
        found = np.take_along_axis(rate, np.maximum(best, 0), axis=0)
        return np.where(best < 0, np.nan, found)

    def best(self, *, min_count: int = 1) -> NDArray[np.int64]:
        """For each line and label, the line of the best-off group, or −1 if there is none.

        The best-off group has the highest rate of the label among all measured groups that fix
        the same attributes. Groups that are suppressed, have fewer than `min_count` rows or are
        too small to say anything are left out; if all are too small, they are compared after all.
        """
        rate, known = self.margins.rate, np.isfinite(self.ub)
        if self.suppressed is not None:
            known = known & ~self.suppressed
        known = known & (self.n_group >= min_count)[:, None]
        family = self._families()
        best = np.full(self.ub.shape, -1, np.int64)
        for label in range(self.ub.shape[1]):
            telling = known[:, label] & ~self.unsound[:, label]
            # The last group of a family wins, so sort by: known at all, large enough, rate.
            order = np.lexsort((-np.arange(len(family)), rate[:, label], telling, known[:, label]))
            chosen = np.full(int(family.max(initial=-1)) + 1, -1, np.int64)
            chosen[family[order]] = order
            chosen = np.where(known[chosen, label], chosen, -1)
            best[:, label] = chosen[family]
        return best

    def _families(self) -> NDArray[np.int64]:
        """For each group, the number of the set of attributes it fixes."""
        fixed = self.lattice.codes != np.array(self.lattice.sizes)
        return np.asarray(np.unique(fixed, axis=0, return_inverse=True)[1]).reshape(-1)

    @property
    def effective_sizes(self) -> tuple[Floats, Floats]:
        """For weighted rows, the effective sizes (Σw)²/Σw² of each group and of the rest."""
        w, w2 = (self.lattice.columns[i].sum(axis=1, keepdims=True) for i in (1, 2))
        total, squares = np.asarray(self.counts.weights).sum(axis=0)
        return ratio(w**2, w2), ratio((total - w) ** 2, np.maximum(squares - w2, 0))

    @functools.cached_property
    def too_small(self) -> NDArray[np.bool_]:
        """Where even the most extreme outcome in the same direction could be chance."""
        return too_small(self.ub > 0, *self._whole_sizes(), alpha=1 - self.options.confidence)

    @functools.cached_property
    def on_one_row(self) -> NDArray[np.bool_]:
        """Where a difference beyond the limit rests on one single row.

        Either the group has one row with the label, and that is more than its share, or all but
        one of its rows have the label, and that is less. A single row of a rare label puts a
        group of any size far above its share.
        """
        others = self.n_group[:, None] - self.n_cell
        single = ((self.ub < 0) & (self.n_cell == 1)) | ((self.ub > 0) & (others == 1))
        return np.asarray(single & (np.abs(self.ub) > self.options.limit))

    @functools.cached_property
    def unsound(self) -> NDArray[np.bool_]:
        """Where a group has too few rows for its difference to prove anything."""
        return self.too_small | self.on_one_row

    @functools.cached_property
    def evident(self) -> NDArray[np.bool_]:
        """Where there are enough rows to decide.

        Either UB differs from 0 by more than chance (q below 0.05), or its whole interval is
        inside the limit. Without uncertainty: where there is no note.
        """
        enough = self.notes == 0
        if self.q_value is None or self.interval is None:
            return np.asarray(enough)
        limit = self.options.limit
        inside = (self.interval.low >= -limit) & (self.interval.high <= limit)
        return np.asarray(enough & ((self.q_value < SURE) | inside))

    @functools.cached_property
    def inconclusive(self) -> NDArray[np.bool_]:
        """Where UB is defined but the group has too few rows to tell it from chance."""
        return np.asarray(~self.evident & np.isin(self.notes, _TOO_FEW))

    def _whole_sizes(self) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64] | int]:
        """Rows of groups, of labels and in total; effective numbers for weighted rows."""
        if self.counts.weights is None:
            return self.n_group[:, None], self.n_label, self.counts.n
        inside, outside = (np.rint(np.nan_to_num(s)).astype(np.int64) for s in self.effective_sizes)
        n = inside + outside
        labels = np.nan_to_num(self.margins.overall_rate) * n
        return inside, np.rint(labels).astype(np.int64), n

    @functools.cached_property
    def notes(self) -> NDArray[np.int8]:
        """The number of each row's note, or 0."""
        code = {note: number for number, note in enumerate(NOTE_CODES)}
        notes = np.where(self.on_one_row, code["rests on one row"], 0).astype(np.int8)
        notes[self.too_small] = code["too small to say"]
        notes[self.n_group == self.counts.n] = code["all rows"]
        notes[:, self.n_label == self.counts.n] = code["only label"]
        notes[np.isnan(self.ub)] = code["no weight"]
        notes[:, self.n_label == 0] = code["no such rows"]
        if self.suppressed is not None:
            notes[self.suppressed] = code["suppressed"]
        return notes

    @functools.cached_property
    def hidden(self) -> NDArray[np.bool_]:
        """Where a group is outside the limit while all its parents are shown to be inside."""
        limit = self.options.limit
        outside = np.abs(self.ub) > limit
        return self._unlike_parents(outside, lambda _, parent: ~(np.abs(parent) > limit))

    @functools.cached_property
    def worse(self) -> NDArray[np.bool_]:
        """Where the |UB| of an intersection is larger than that of each of its parents."""
        return self._unlike_parents(
            np.isfinite(self.ub), lambda own, parent: ~(np.abs(parent) >= np.abs(own))
        )

    def _unlike_parents(
        self, candidates: NDArray[np.bool_], differs: Callable[[Floats, Floats], NDArray[np.bool_]]
    ) -> NDArray[np.bool_]:
        """Which candidates of two or more attributes differ from all their parents, by their UB."""
        chosen = candidates.copy()
        chosen[self.lattice.orders < 2] = False
        line, label = np.nonzero(chosen)
        for axis, size in enumerate(self.lattice.sizes):
            codes = self.lattice.codes[line].copy()
            refined = codes[:, axis] != size
            codes[:, axis] = size
            parent = self.lattice.find(codes)
            unlike = differs(self.ub[line, label], self.ub[parent, label])
            if self.suppressed is not None:
                unlike &= ~self.suppressed[parent, label]
            kept = unlike | ~refined
            line, label = line[kept], label[kept]
        found = np.zeros(self.ub.shape, np.bool_)
        found[line, label] = True
        return found

    def parents(self, line: int) -> NDArray[np.int64]:
        """Lines of the groups that leave one attribute of a group open; that of all rows is none."""
        codes, sizes = self.lattice.codes[line], np.array(self.lattice.sizes, np.int32)
        fixed = np.flatnonzero(codes != sizes)
        if len(fixed) < 2:
            return np.zeros(0, np.int64)
        above = np.repeat(codes[None, :], len(fixed), axis=0)
        above[np.arange(len(fixed)), fixed] = sizes[fixed]
        return self.lattice.find(above)

    def children(self, line: int) -> NDArray[np.int64]:
        """Lines of the groups that fix one attribute more than a group."""
        codes = self.lattice.codes[line]
        fixed = codes != np.array(self.lattice.sizes)
        inside = (self.lattice.codes[:, fixed] == codes[fixed]).all(axis=1)
        return np.flatnonzero(inside & (self.lattice.orders == fixed.sum() + 1))

    # ----------------------------------------------------------- rows and groups

    def rows_at(self, line: NDArray[np.int64], label: NDArray[np.int64]) -> Iterator[Row]:
        """The rows of some lines of the lattice and label numbers."""
        columns = {k: v.tolist() for k, v in self.columns_at(line, label).items()}
        cells, sizes = self.n_cell[line, label].tolist(), self.n_group[line].tolist()
        notes, hidden = self.notes[line, label].tolist(), self.hidden[line, label].tolist()
        evident = self.evident[line, label].tolist()
        for i, (at, code) in enumerate(zip(line.tolist(), label.tolist(), strict=True)):
            note = NOTE_CODES[notes[i]]
            shown = note != "suppressed"
            yield Row(
                group=self.group(at),
                label=self.counts.label.values[code],
                n_group=sizes[i] if shown else None,
                n_cell=cells[i] if shown else None,
                **{k: columns[k][i] for k in NUMBERS},
                hidden=hidden[i] and shown,
                evident=evident[i],
                note=note,
                measures={k: columns[k][i] for k in self.options.measures},
            )

    def columns_at(self, line: NDArray[np.int64], label: NDArray[np.int64]) -> dict[str, Floats]:
        """All numbers of some rows; only those that are slow to compute are stored."""
        m = self.margins
        unknown = np.full(len(line), np.nan)
        size, cell = m.n_g[line, 0], m.n_gy[line, label]
        overall = m.overall_rate[label]
        columns = {
            "rate": ratio(cell, size),
            "overall_rate": overall,
            "ub": self.ub[line, label],
            "ub_low": unknown if self.interval is None else self.interval.low[line, label],
            "ub_high": unknown if self.interval is None else self.interval.high[line, label],
            "p_value": unknown if self.p_value is None else self.p_value[line, label],
            "q_value": unknown if self.q_value is None else self.q_value[line, label],
            "expected": size * overall,
            "missing_rows": size * overall - cell,
        }
        for name in self.options.measures:
            columns[name] = self.measure(name)[line, label]
        if self.suppressed is not None:
            hidden = self.suppressed[line, label]
            columns = {
                k: v if k == "overall_rate" else np.where(hidden, np.nan, v)
                for k, v in columns.items()
            }
        return columns

    def group(self, line: int) -> Group:
        """The group of a line."""
        return group_of(self.counts, self.lattice.codes[line])

    def inside(self, group: Group, hint: str) -> NDArray[np.bool_]:
        """Which lines are groups inside a group; `hint` says how to name a label instead."""
        return lines_inside(self.counts, self.lattice.codes, group, hint)

    def line(self, group: Group) -> int:
        """The line of a group."""
        codes = [
            axis.code(group[axis.name]) if axis.name in group else len(axis)
            for axis in self.counts.sensitive
        ]
        unknown = set(group) - {a.name for a in self.counts.sensitive}
        if unknown:
            self.counts.axis(next(iter(unknown)))
            raise PatternError(
                f"{group} names the label; a group is named by sensitive attributes only."
            )
        found = int(self.lattice.find(np.array([codes], np.int32))[0])
        if found < 0:
            raise PatternError(
                f"the group {group} has no rows in this table, or `min_count` or `max_order` leaves it "
                "out."
            )
        return found


def lines_inside(
    counts: Counts, codes: NDArray[np.int32], group: Group, hint: str
) -> NDArray[np.bool_]:
    """Which lines of codes are groups inside a group; `hint` says how to name a label instead."""
    inside = np.ones(len(codes), np.bool_)
    for name, value in group.items():
        axis = counts.axis(name)
        if axis.role != "sensitive":
            raise PatternError(f"{group} names the label; {hint}.")
        inside &= codes[:, counts.sensitive.index(axis)] == axis.code(value)
    return inside


def group_of(counts: Counts, codes: NDArray[np.int32]) -> Group:
    """The group that a line of codes stands for; a code past the last value means any value."""
    pairs = zip(counts.sensitive, codes.tolist(), strict=True)
    return Group({axis.name: axis.values[code] for axis, code in pairs if code < len(axis)})
