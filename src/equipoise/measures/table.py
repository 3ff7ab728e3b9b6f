"""The bias table: every group of the lattice, every label, with its Uniform Bias."""

from __future__ import annotations

import datetime
import functools
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from equipoise.counts import Counts
from equipoise.errors import InputError, PatternError
from equipoise.lattice import Group, Lattice, roll_up
from equipoise.measures import uncertainty as unc
from equipoise.measures.registry import Floats, Margins, measure_named, ratio
from equipoise.measures.uniform_bias import uniform_bias
from equipoise.plain import sentences
from equipoise.validate import at_least, between, one_of
from equipoise.values import MISSING, Value, as_value

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    import pyarrow as pa
    from numpy.typing import NDArray

SCHEMA = "equipoise.measure/1"
SORTS = ("worst", "ub", "group", "n", "p")
SAMPLINGS = ("rows", "groups")
ADJUSTMENTS = ("bh", "by")
SHOWN_ANYWAY = frozenset({"uniform_bias", "selection_rate", "expected_rows", "missing_rows"})
"""Measures that are columns of every table."""
REFERENCES = ("rest", "best")
"""To whom a group may be compared, beside another group by its pattern."""
Note: TypeAlias = Literal[
    "too small to say", "all rows", "only label", "no weight", "no such rows", "suppressed"
]
NOTES: dict[Note, str] = {
    "too small to say": "no outcome in a group of this size could differ from the rest by more "
    "than chance",
    "all rows": "every row is in this group, so nothing can differ",
    "only label": "every row has this label, so nothing can differ",
    "no weight": "UB is undefined: the rows of this group, or with this label, weigh nothing",
    "no such rows": "UB is undefined: no row has this label",
    "suppressed": "hidden, since the numbers are small or small ones could be derived from them",
}
_NOTE_CODES: tuple[Note | None, ...] = (None, *NOTES)


@dataclass(frozen=True, kw_only=True)
class Options:
    """How a table is measured.

    Parameters
    ----------
    min_count, max_order
        Leave out groups with fewer rows, or that fix more attributes.
    limit
        The |UB| up to which a group counts as inside, for hidden groups.
    uncertainty
        Whether to compute intervals, p and q.
    confidence
        Of the intervals.
    sampling
        What chance decided: ``"rows"`` (rows were drawn at random, so group sizes vary
        too) or ``"groups"`` (group sizes were fixed).
    adjust
        q by Benjamini–Hochberg (``"bh"``), approximate under the lattice's dependence, or
        by Benjamini–Yekutieli (``"by"``), valid under any.
    favourable
        The label value that is good to have; shows the four-fifths rule beside UB.
    reference
        To whom ratios and differences compare a group: ``"rest"``, ``"best"`` (the
        best-off group of the same attributes) or a group's pattern.
    measures
        Names of further measures to show.
    memory
        Bytes the lattice may take.
    """

    min_count: int = 1
    max_order: int | None = None
    limit: float = 0.1
    uncertainty: bool = True
    confidence: float = 0.95
    sampling: unc.Sampling = "rows"
    adjust: unc.Adjustment = "bh"
    favourable: str | None = None
    reference: str = "rest"
    measures: tuple[str, ...] = ()
    memory: int | None = None

    def __post_init__(self) -> None:
        at_least("min_count", self.min_count, 1)
        at_least("limit", self.limit, 0)
        between("confidence", self.confidence, 0, 1)
        one_of("sampling", self.sampling, SAMPLINGS)
        one_of("adjust", self.adjust, ADJUSTMENTS)
        if self.max_order is not None:
            at_least("max_order", self.max_order, 1)
        names = dict.fromkeys(measure_named(name).name for name in self.measures)
        object.__setattr__(self, "measures", tuple(n for n in names if n not in SHOWN_ANYWAY))
        if self.favourable is not None:
            object.__setattr__(self, "favourable", str(as_value(self.favourable)))
        if self.reference not in REFERENCES and not Group.parse(self.reference):
            raise InputError(
                "the reference is rest, best or a group, as sex=Male; all rows are what UB "
                "compares with."
            )

    def to_dict(self) -> dict[str, Any]:
        """Plain data, for JSON."""
        shown = {k: plain(v) for k, v in vars(self).items() if k != "memory"}
        return {**shown, "measures": list(self.measures)}


def bias_table(counts: Counts, options: Options | None = None) -> BiasTable:
    """Measure counts over the whole lattice.

    >>> hiring = Counts.from_mapping(
    ...     {("m", "hired"): 160, ("m", "not"): 290, ("w", "hired"): 40, ("w", "not"): 110},
    ...     sensitive=["sex"],
    ...     label="outcome",
    ... )
    >>> round(bias_table(hiring)["sex=w", "hired"].ub, 3)
    0.2
    """
    if not counts.n:
        raise InputError("there are no rows to measure.")
    return BiasTable(Measured.of(counts, options or Options()))


@dataclass(frozen=True, eq=False)
class Measured:
    """The numbers behind a table: arrays of a line per group and a column per label."""

    counts: Counts
    options: Options
    lattice: Lattice
    ub: Floats
    interval: unc.Interval | None = None
    p_value: Floats | None = None
    q_value: Floats | None = None
    suppressed: NDArray[np.bool_] | None = None
    time: str = field(default="")

    @classmethod
    def of(cls, counts: Counts, options: Options) -> Measured:
        """Roll up and measure."""
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
        time = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
        bare = cls(counts, options, lattice, np.zeros(0), time=time)
        measured = replace(bare, ub=uniform_bias(bare.margins))
        return measured.with_uncertainty() if options.uncertainty else measured

    def with_uncertainty(self) -> Measured:
        """The same with intervals, p and q."""
        m = self.margins
        if self.counts.weights is None:
            interval = unc.ub_interval(
                self.n_cell,
                self.n_group[:, None],
                self.n_label,
                self.counts.n,
                confidence=self.options.confidence,
                sampling=self.options.sampling,
            )
            p = unc.p_value(self.n_cell, self.n_group[:, None], self.n_label, self.counts.n)
        else:
            sizes = self.effective_sizes
            interval = unc.ub_interval(
                m.n_gy,
                m.n_g,
                m.n_y,
                m.n,
                confidence=self.options.confidence,
                sampling=self.options.sampling,
                effective=sizes,
            )
            p = unc.weighted_p_value(m.n_gy, m.n_g, m.n_y, m.n, effective=sizes)
        # With one label, and of all rows together, UB is 0 whatever the sample.
        sure = (self.n_label == self.counts.n) | (self.n_group[:, None] == self.counts.n)
        for limit in interval:
            limit[sure & ~np.isnan(self.ub)] = 0.0
        q = unc.adjust(p, self.options.adjust)
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
        """What measures look at: rows, or their weights."""
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

    @functools.cached_property
    def compared(self) -> Margins:
        """The margins with the rates of the reference that was asked for."""
        m = self.margins
        return replace(m, reference=self._reference_rates(m))

    def _reference_rates(self, m: Margins) -> Floats:
        asked = self.options.reference
        if asked == "rest":
            # Weights add up only to rounding; that nothing is left the rows tell.
            left = np.where(self.n_cell == self.n_label, 0.0, m.n_y - m.n_gy)
            rest = np.where(self.n_group == self.counts.n, 0.0, m.n - m.n_g[:, 0])
            return ratio(left, rest[:, None])
        # From a ratio to a hidden group's rate one could compute that rate.
        rate = m.rate if self.suppressed is None else np.where(self.suppressed, np.nan, m.rate)
        if asked != "best":
            return np.broadcast_to(rate[self.line(Group.parse(asked))], m.n_gy.shape)
        fixed = self.lattice.codes != np.array(self.lattice.sizes)
        families, family = np.unique(fixed, axis=0, return_inverse=True)
        best = np.full((len(families), m.n_gy.shape[1]), np.nan)
        np.fmax.at(best, family, rate)
        return np.asarray(best[family])

    @property
    def effective_sizes(self) -> tuple[Floats, Floats]:
        """For weighted rows, (Σw)²/Σw² of each group and of the rest."""
        w, w2 = (self.lattice.columns[i].sum(axis=1, keepdims=True) for i in (1, 2))
        total, squares = np.asarray(self.counts.weights).sum(axis=0)
        return ratio(w**2, w2), ratio((total - w) ** 2, np.maximum(squares - w2, 0))

    @functools.cached_property
    def too_small(self) -> NDArray[np.bool_]:
        """Where no outcome could differ from the rest by more than chance."""
        return unc.too_small(
            self.n_group[:, None],
            self.n_label,
            self.counts.n,
            alpha=1 - self.options.confidence,
        )

    @functools.cached_property
    def notes(self) -> NDArray[np.int8]:
        """The number of each row's note, or 0."""
        code = {note: number for number, note in enumerate(_NOTE_CODES)}
        notes = np.where(self.too_small, code["too small to say"], 0).astype(np.int8)
        notes[self.n_group == self.counts.n] = code["all rows"]
        notes[:, self.n_label == self.counts.n] = code["only label"]
        notes[np.isnan(self.ub)] = code["no weight"]
        notes[:, self.n_label == 0] = code["no such rows"]
        if self.suppressed is not None:
            notes[self.suppressed] = code["suppressed"]
        return notes

    @functools.cached_property
    def hidden(self) -> NDArray[np.bool_]:
        """Where a group is outside the limit and all its parents are seen to be inside."""
        outside = np.abs(self.ub) > self.options.limit
        outside[self.lattice.orders < 2] = False
        line, label = np.nonzero(outside)
        for axis, size in enumerate(self.lattice.sizes):
            codes = self.lattice.codes[line].copy()
            refined = codes[:, axis] != size
            codes[:, axis] = size
            parent = self.lattice.find(codes)
            inside = ~(np.abs(self.ub[parent, label]) > self.options.limit)
            if self.suppressed is not None:
                inside &= ~self.suppressed[parent, label]
            kept = inside | ~refined
            line, label = line[kept], label[kept]
        hidden = np.zeros(self.ub.shape, np.bool_)
        hidden[line, label] = True
        return hidden

    # ------------------------------------------------------------------- groups

    def group(self, line: int) -> Group:
        """The group of a line."""
        codes = self.lattice.codes[line].tolist()
        return Group(
            {
                axis.name: axis.values[code]
                for axis, code in zip(self.counts.sensitive, codes, strict=True)
                if code < len(axis)
            }
        )

    def line(self, group: Group) -> int:
        """The line of a group."""
        codes = [
            axis.code(group[axis.name]) if axis.name in group else len(axis)
            for axis in self.counts.sensitive
        ]
        unknown = set(group) - {a.name for a in self.counts.sensitive}
        if unknown:
            self.counts.axis(next(iter(unknown)))
            raise PatternError(f"{group} names the label; a group names sensitive attributes only.")
        found = int(self.lattice.find(np.array([codes], np.int32))[0]) if len(self.lattice) else -1
        if found < 0:
            raise PatternError(
                f"the group {group} has no rows in this table, or it is left out by min_count or "
                "max_order."
            )
        return found


@dataclass(frozen=True)
class Row:
    """One group and label of a bias table."""

    group: Group
    label: Value
    n_group: int | None
    n_cell: int | None
    rate: float
    overall_rate: float
    ub: float
    ub_low: float
    ub_high: float
    p_value: float
    q_value: float
    expected: float
    missing_rows: float
    hidden: bool
    note: Note | None
    measures: Mapping[str, float] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """Plain data, with ``None`` for what is missing or undefined."""
        own = {k: v for k, v in vars(self).items() if k not in ("group", "measures")}
        numbers = {k: plain(v) for k, v in {**own, **self.measures}.items()}
        return {"group": {k: plain(v) for k, v in self.group.items()}, **numbers}


def plain(value: Any) -> Any:
    """Make a value fit for JSON: ``None`` for a missing value or an undefined number."""
    if value is MISSING or (isinstance(value, float) and not math.isfinite(value)):
        return None
    return value


@dataclass(frozen=True, eq=False)
class BiasTable:
    """Uniform Bias of every group and label, in the order of the lattice or as sorted.

    Read a row by its pattern and label, loop over rows, or take all as a frame.

    >>> hiring = Counts.from_mapping(
    ...     {("m", "hired"): 160, ("m", "not"): 290, ("w", "hired"): 40, ("w", "not"): 110},
    ...     sensitive=["sex"],
    ...     label="outcome",
    ... )
    >>> table = bias_table(hiring)
    >>> [(str(row.group), row.label, round(row.ub, 3)) for row in table.worst(2)]
    [('sex=w', 'hired', 0.2), ('sex=w', 'not', -0.1)]
    """

    measured: Measured
    view: NDArray[np.int64] | None = None

    # ------------------------------------------------------------------ reading

    @property
    def counts(self) -> Counts:
        """The counts that were measured."""
        return self.measured.counts

    @property
    def options(self) -> Options:
        """How they were measured."""
        return self.measured.options

    @property
    def places(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The line and the label number of every row shown."""
        shape = self.measured.ub.shape
        flat = np.arange(shape[0] * shape[1]) if self.view is None else self.view
        return flat // max(shape[1], 1), flat % max(shape[1], 1)

    def __len__(self) -> int:
        return self.measured.ub.size if self.view is None else len(self.view)

    def __iter__(self) -> Iterator[Row]:
        return self.rows_at(*self.places)

    def __getitem__(self, key: tuple[Group | str | Mapping[str, Value], Any]) -> Row:
        group, label = key
        named = Group.parse(group) if isinstance(group, str) else Group(group)
        line, code = self.measured.line(named), self.counts.label.code(as_value(label))
        return next(self.rows_at(np.array([line]), np.array([code])))

    def rows_at(self, line: NDArray[np.int64], label: NDArray[np.int64]) -> Iterator[Row]:
        """The rows of some lines of the lattice and label numbers."""
        m = self.measured
        columns = {k: v.tolist() for k, v in self._columns(line, label).items()}
        cells, sizes = m.n_cell[line, label].tolist(), m.n_group[line].tolist()
        notes, hidden = m.notes[line, label].tolist(), m.hidden[line, label].tolist()
        for i, (at, code) in enumerate(zip(line.tolist(), label.tolist(), strict=True)):
            note = _NOTE_CODES[notes[i]]
            shown = note != "suppressed"
            yield Row(
                group=m.group(at),
                label=self.counts.label.values[code],
                n_group=sizes[i] if shown else None,
                n_cell=cells[i] if shown else None,
                **{k: columns[k][i] for k in _NUMBERS},
                hidden=hidden[i] and shown,
                note=note,
                measures={k: columns[k][i] for k in self.options.measures},
            )

    def _columns(self, line: NDArray[np.int64], label: NDArray[np.int64]) -> dict[str, Floats]:
        """All numbers of some rows; the table itself stores only what is slow to compute."""
        m = self.measured
        unknown = np.full(len(line), np.nan)
        size, cell = m.margins.n_g[line, 0], m.margins.n_gy[line, label]
        overall = m.margins.overall_rate[label]
        columns = {
            "rate": ratio(cell, size),
            "overall_rate": overall,
            "ub": m.ub[line, label],
            "ub_low": unknown if m.interval is None else m.interval.low[line, label],
            "ub_high": unknown if m.interval is None else m.interval.high[line, label],
            "p_value": unknown if m.p_value is None else m.p_value[line, label],
            "q_value": unknown if m.q_value is None else m.q_value[line, label],
            "expected": size * overall,
            "missing_rows": size * overall - cell,
        }
        for name in self.options.measures:
            columns[name] = self.measure(name)[line, label]
        if m.suppressed is not None:
            hidden = m.suppressed[line, label]
            columns = {
                k: v if k == "overall_rate" else np.where(hidden, np.nan, v)
                for k, v in columns.items()
            }
        return columns

    def measure(self, name: str) -> Floats:
        """Compute a registered measure for all groups (lines) and labels (columns).

        >>> c = Counts.from_mapping(
        ...     {("m", "y"): 3, ("m", "n"): 1, ("w", "y"): 1, ("w", "n"): 3},
        ...     sensitive=["sex"],
        ...     label="l",
        ... )
        >>> bias_table(c).measure("impact-ratio").round(3).tolist()
        [[3.0, 0.333], [0.333, 3.0]]
        """
        m = self.measured
        numbers = measure_named(name).function(m.compared)
        return numbers if m.suppressed is None else np.where(m.suppressed, np.nan, numbers)

    # ----------------------------------------------------------------- choosing

    def worst(self, n: int | None = None) -> BiasTable:
        """The rows of the largest |UB|; those too small to say anything come last."""
        return self.sort("worst").top(n)

    def top(self, n: int | None) -> BiasTable:
        """The first rows."""
        return self if n is None else replace(self, view=self._flat()[:n])

    def sort(self, by: str = "worst") -> BiasTable:
        """Sort: worst first, by ub, by group, by rows (most first) or by p."""
        one_of("sort", by, SORTS)
        line, label = self.places
        m = self.measured
        ub = m.ub[line, label]
        if by == "group":
            return replace(self, view=np.sort(self._flat()))
        if by == "n":
            order = np.argsort(-m.n_group[line], kind="stable")
        elif by == "p":
            p = ub if m.p_value is None else m.p_value[line, label]
            order = np.argsort(p, kind="stable")
        elif by == "ub":
            order = np.argsort(-ub, kind="stable")
        else:
            last = (m.notes[line, label] > 0).astype(np.int8)
            order = np.lexsort((-m.n_group[line], -np.abs(np.round(ub, 12)), last))
        if m.suppressed is not None:  # their order would tell of their numbers
            hidden = m.suppressed[line, label]
            by_group = np.argsort(self._flat())
            order = np.concatenate([order[~hidden[order]], by_group[hidden[by_group]]])
        return replace(self, view=self._flat()[order])

    def filter(
        self,
        *,
        label_value: Sequence[Any] | Any | None = None,
        group: Group | str | None = None,
        hidden: bool = False,
    ) -> BiasTable:
        """Keep the rows of some label values, of groups inside a pattern, or hidden ones."""
        line, label = self.places
        kept = np.ones(len(line), np.bool_)
        if label_value is not None:
            single = isinstance(label_value, str) or not isinstance(label_value, Sequence)
            wanted = [label_value] if single else label_value
            kept &= np.isin(label, [self.counts.label.code(as_value(v)) for v in wanted])
        if group is not None:
            named = Group.parse(group) if isinstance(group, str) else group
            for name, value in named.items():
                axis = self.counts.axis(name)
                if axis.role != "sensitive":
                    raise PatternError(f"{named} names the label; use label_value for it.")
                position = self.counts.sensitive.index(axis)
                kept &= self.measured.lattice.codes[line, position] == axis.code(value)
        if hidden:
            kept &= self.measured.hidden[line, label]
        return replace(self, view=self._flat()[kept])

    def _flat(self) -> NDArray[np.int64]:
        return np.arange(len(self)) if self.view is None else self.view

    # ------------------------------------------------------------------- giving

    def to_arrow(self) -> pa.Table:
        """Give a line a row: its pattern, attributes, label and every number.

        An attribute is null where the group takes any value, ``<missing>`` where the value
        is missing; the pattern tells these from values of such names.
        """
        import pyarrow as pa

        line, label = self.places
        m = self.measured
        codes = m.lattice.codes[line]
        columns: dict[str, Any] = {"group": self._patterns(codes)}
        for position, axis in enumerate(self.counts.sensitive):
            columns[axis.name] = _dictionary((*map(str, axis.values), None), codes[:, position])
        columns[self.counts.label.name] = _dictionary([*map(str, self.counts.label.values)], label)
        columns["order"] = pa.array(m.lattice.orders[line])
        suppressed = None if m.suppressed is None else m.suppressed[line, label]
        for name, rows in (("n_group", m.n_group[line]), ("n_cell", m.n_cell[line, label])):
            # Arrow keeps what is under a mask, so what is hidden is overwritten too.
            shown = rows if suppressed is None else np.where(suppressed, 0, rows)
            columns[name] = pa.array(shown, mask=suppressed)
        for name, numbers in self._columns(line, label).items():
            columns[name] = pa.array(numbers)
        columns["hidden"] = pa.array(m.hidden[line, label])
        columns["note"] = _dictionary(_NOTE_CODES, m.notes[line, label])
        taken = (*_NUMBERS, *_OTHERS, *self.options.measures)
        clashes = [a.name for a in self.counts.axes if a.name in taken]
        if clashes:
            raise InputError(
                f"the column {clashes[0]!r} of the data has the name of a column of the result; "
                "rename it."
            )
        return pa.table(columns)

    def _patterns(self, codes: NDArray[np.int32]) -> pa.Array:
        import pyarrow.compute as pc

        parts = []
        for position, axis in enumerate(self.counts.sensitive):
            texts = [str(Group({axis.name: value})) for value in axis.values]
            parts.append(_dictionary((*texts, None), codes[:, position]).dictionary_decode())
        return pc.binary_join_element_wise(*parts, ", ", null_handling="skip")

    def to_pandas(self) -> pd.DataFrame:
        """The table as a pandas frame; text columns are categorical."""
        from equipoise.errors import MissingDependency

        try:
            import pandas as pd
        except ImportError:
            raise MissingDependency("pandas", extra="frames", purpose="to_pandas()") from None
        frame = self.to_arrow().to_pandas()
        return pd.DataFrame(frame, copy=False)

    def to_polars(self) -> pl.DataFrame:
        """The table as a polars frame."""
        from equipoise.errors import MissingDependency

        try:
            import polars as pl
        except ImportError:
            raise MissingDependency("polars", extra="frames", purpose="to_polars()") from None
        return pl.DataFrame(self.to_arrow())

    def to_dict(self) -> dict[str, Any]:
        """Plain data: what ``--json`` prints."""
        from equipoise.version import version

        counts = self.counts
        return {
            "schema": SCHEMA,
            "n": counts.n,
            "sensitive": [a.name for a in counts.sensitive],
            "label": counts.label.name,
            "labels": [plain(v) for v in counts.label.values],
            "missing_values": dict(counts.missing_values),
            "dropped": counts.dropped,
            "bins": {n: list(b) for n, b in counts.bins.items()},
            "parameters": {
                **({} if counts.request is None else counts.request.to_dict()),
                **self.options.to_dict(),
            },
            # Whoever tries small counts can find those that a hash was made of.
            "fingerprint": counts.fingerprint if self.measured.suppressed is None else None,
            "version": version(),
            "time": self.measured.time,
            "rows": [row.to_dict() for row in self],
        }

    def to_json(self, *, indent: int | None = None) -> str:
        """One JSON document of :meth:`to_dict`."""
        return json.dumps(self.to_dict(), ensure_ascii=False, indent=indent, allow_nan=False)

    def __repr__(self) -> str:
        from equipoise.measures.display import grid

        shown = self.worst(20) if self.view is None else self.top(60)
        more = f"\n… and {len(self) - len(shown):,} more rows" if len(self) > len(shown) else ""
        return f"{self.heading}\n\n{grid(shown).text()}{more}"

    def _repr_html_(self) -> str:
        import html

        from equipoise.measures.display import grid

        shown = self.worst(20) if self.view is None else self.top(60)
        more = f" ({len(shown):,} of {len(self):,} rows)" if len(self) > len(shown) else ""
        return f"<p>{html.escape(self.heading + more)}</p>{grid(shown).html()}"

    @property
    def heading(self) -> str:
        """What was measured, in one line."""
        counts = self.counts
        names = sentences([a.name for a in counts.sensitive])
        labels = "1 label" if len(counts.label) == 1 else f"{len(counts.label)} labels"
        return (
            f"Uniform Bias of {counts.label.name} by {names}: {counts.n:,} rows, "
            f"{len(self.measured.lattice):,} groups, {labels}"
        )


_NUMBERS = (
    "rate",
    "overall_rate",
    "ub",
    "ub_low",
    "ub_high",
    "p_value",
    "q_value",
    "expected",
    "missing_rows",
)
_OTHERS = ("group", "order", "n_group", "n_cell", "hidden", "note")


def _dictionary(texts: Sequence[str | None], codes: NDArray[Any]) -> pa.DictionaryArray:
    """Code texts for Arrow; where the text is ``None`` the entry is null."""
    import pyarrow as pa

    present = list(dict.fromkeys(t for t in texts if t is not None))
    table = np.array([-1 if t is None else present.index(t) for t in texts], np.int32)
    indices = table[codes] if len(table) else np.asarray(codes, np.int32)
    return pa.DictionaryArray.from_arrays(
        pa.array(indices, mask=indices < 0), pa.array(present, pa.string())
    )
