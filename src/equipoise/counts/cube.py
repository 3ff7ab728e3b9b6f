"""The cube: the number of rows of each cell of a table. Everything else is a function of it."""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise.atomic import atomic_path
from equipoise.counts import storage
from equipoise.counts.axes import Axis, missing_last
from equipoise.counts.cells import (
    Lines,
    apply_policies,
    distinct_lines,
    drop_unused,
    merge_lines,
    recode,
    tally,
)
from equipoise.counts.columns import (
    Coded,
    checked_counts,
    counts_in,
    encode_arrow,
    encode_list,
    encode_table,
    take,
    weights_in,
)
from equipoise.counts.reading import Reading
from equipoise.counts.skipped import NOTHING, Skipped
from equipoise.errors import ColumnNotFound, CountsError, PatternError, did_you_mean
from equipoise.lattice import Group
from equipoise.options.count import CountRequest
from equipoise.plain import Grid
from equipoise.results import SHOWN, Result
from equipoise.values import MISSING, MISSING_MARKS, Value, as_value

if TYPE_CHECKING:
    import os

    import pyarrow as pa
    from numpy.typing import NDArray


@dataclass(frozen=True, eq=False, kw_only=True)
class Counts(Result):
    """The number of rows of each cell: a sparse cube with named axes.

    Counts are made by an engine (:func:`equipoise.count`), from a mapping or from a frame. Cells
    without rows are not stored. Counts over the same columns can be added and subtracted.

    >>> counts = Counts.from_mapping(
    ...     {("m", "hired"): 160, ("m", "not"): 290, ("w", "hired"): 40, ("w", "not"): 110},
    ...     sensitive=["sex"],
    ...     label="outcome",
    ... )
    >>> counts.n, counts.of("sex=w"), counts.of("sex=w, outcome=hired")
    (600, 150, 40)
    >>> (counts + counts).n, (counts - counts).n
    (1200, 0)

    Attributes
    ----------
    axes
        The sensitive attributes, then the label.
    codes
        The codes of each cell's values: a line per cell, a column per axis.
    rows
        Number of rows of each cell.
    weights
        With row weights: for each cell their sum and the sum of their squares.
    missing_values
        For each column, the number of rows in which it has no value.
    dropped
        Number of rows that were left out because of a missing value.
    bins
        The edges of the binned attributes.
    request, reading
        What was requested, and how the table was read.
    skipped
        Lines of the file that are not rows and were skipped, as ``lenient`` allows.
    """

    axes: tuple[Axis, ...]
    codes: NDArray[np.int32]
    rows: NDArray[np.int64]
    weights: NDArray[np.float64] | None = None
    missing_values: Mapping[str, int] = field(default_factory=dict)
    dropped: int = 0
    bins: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    request: CountRequest | None = None
    reading: Reading = field(default_factory=Reading)
    skipped: Skipped = NOTHING

    def __post_init__(self) -> None:
        for array in (self.codes, self.rows, self.weights):
            if array is not None:
                array.setflags(write=False)

    # ------------------------------------------------------------------ reading

    @property
    def n(self) -> int:
        """Number of rows."""
        return int(self.rows.sum())

    @property
    def sensitive(self) -> tuple[Axis, ...]:
        """The sensitive attributes."""
        return tuple(a for a in self.axes if a.role == "sensitive")

    @property
    def label(self) -> Axis:
        """The label."""
        return next(a for a in self.axes if a.role == "label")

    def axis(self, name: str) -> Axis:
        """The axis of that name."""
        for axis in self.axes:
            if axis.name == name:
                return axis
        raise PatternError(
            f"there is no attribute {name!r}; there are: {', '.join(a.name for a in self.axes)}."
            f"{did_you_mean(name, [a.name for a in self.axes])}"
        )

    def of(self, group: Group | str) -> int:
        """Number of rows of a group, or of a cell if the pattern also names the label."""
        return int(self.rows[self._inside(group)].sum())

    def cells(self) -> dict[tuple[Value, ...], int]:
        """The number of rows of each cell, by its values."""
        return {cell: int(n) for cell, (n, *_) in self._cells().items()}

    def pattern(self, cell: Sequence[Value]) -> Group:
        """The values of a cell as a pattern."""
        return Group(dict(zip((a.name for a in self.axes), cell, strict=True)))

    def request_for_rows(self) -> CountRequest:
        """A request that counts single rows into the same cells, by the same bins."""
        made_by = self.request or CountRequest(
            sensitive=tuple(a.name for a in self.sensitive), label=self.label.name
        )
        return replace(made_by, count=None, weight=None).with_edges(self.bins)

    def finest(self) -> tuple[NDArray[np.int32], tuple[NDArray[Any], ...]]:
        """Pivot the cells: the finest groups, and for each its rows (and weights) per label."""
        groups, place = distinct_lines(self.codes[:, :-1], [len(a) for a in self.sensitive])
        columns = []
        for values in self._stored():
            pivot = np.zeros((len(groups), len(self.label)), values.dtype)
            pivot[place, self.codes[:, -1]] = values
            columns.append(pivot)
        return groups, tuple(columns)

    def dense(self) -> NDArray[np.int64]:
        """The whole cube as an array with a dimension per axis."""
        cube = np.zeros([len(a) for a in self.axes], np.int64)
        cube[tuple(self.codes.T)] = self.rows
        return cube

    def suspects(self) -> dict[str, dict[str, int]]:
        """Values that often stand for a missing one, with their rows, per column."""
        found: dict[str, dict[str, int]] = {}
        for position, axis in enumerate(self.axes):
            for code, value in enumerate(axis.values):
                if value is not MISSING and value.strip().casefold() in MISSING_MARKS:
                    n = int(self.rows[self.codes[:, position] == code].sum())
                    found.setdefault(axis.name, {})[value] = n
        return found

    @functools.cached_property
    def fingerprint(self) -> str:
        """SHA-256 of the cells by their values: the same for equal counts, however they were made.

        Weights count to nine digits, since their sums depend on the order of the rows.
        """
        return storage.fingerprint(self.axes, self._cells())

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Counts):
            return NotImplemented
        if not self._has_axes_of(other):
            return False
        mine, theirs = self._cells(), other._cells()
        return mine.keys() == theirs.keys() and all(
            n == m and len(ws) == len(vs) and all(map(math.isclose, ws, vs))
            for (n, *ws), (m, *vs) in ((mine[cell], theirs[cell]) for cell in mine)
        )

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        shape = " × ".join(f"{a.name} ({len(a)})" for a in self.axes)
        return f"<Counts of {self.n:,} rows in {len(self.rows):,} cells: {shape}>"

    __str__ = __repr__  # what is printed stays short; :meth:`text` says everything

    def _cells(self) -> dict[tuple[Value, ...], tuple[float, ...]]:
        """The values of each cell, with its rows and, if there are weights, their sums."""
        values = [a.values for a in self.axes]
        cells = (tuple(values[i][c] for i, c in enumerate(line)) for line in self.codes.tolist())
        numbers = zip(*(stored.tolist() for stored in self._stored()), strict=True)
        return dict(zip(cells, numbers, strict=True))

    def _stored(self) -> list[NDArray[Any]]:
        """The rows of all cells and, if there are weights, their two sums."""
        return [self.rows, *([] if self.weights is None else self.weights.T)]

    def _inside(self, group: Group | str) -> NDArray[np.bool_]:
        group = Group.parse(group) if isinstance(group, str) else group
        inside = np.ones(len(self.rows), np.bool_)
        for name, value in group.items():
            axis = self.axis(name)
            inside &= self.codes[:, self.axes.index(axis)] == axis.code(value)
        return inside

    # ---------------------------------------------------------------- computing

    def __add__(self, other: Counts) -> Counts:
        return self._combine(other, operator.add)

    def __sub__(self, other: Counts) -> Counts:
        return self._combine(other, operator.sub)

    def _has_axes_of(self, other: Counts) -> bool:
        return [(a.name, a.role) for a in self.axes] == [(a.name, a.role) for a in other.axes]

    def _combine(self, other: Counts, operation: Callable[[Any, Any], Any]) -> Counts:
        if not self._has_axes_of(other):
            raise CountsError(
                f"counts over {', '.join(a.name for a in self.axes)} and over "
                f"{', '.join(a.name for a in other.axes)} cannot be combined; count the same columns."
            )
        if (self.weights is None) != (other.weights is None) or dict(self.bins) != dict(other.bins):
            raise CountsError(
                "counts with different bins, or with and without weights, cannot be combined."
            )
        axes = tuple(
            replace(a, values=missing_last((*a.values, *b.values)))
            for a, b in zip(self.axes, other.axes, strict=True)
        )
        codes = np.concatenate([recode(c.codes, c.axes, axes) for c in (self, other)])
        sign = operation(0, 1)
        rows = np.concatenate([self.rows, sign * other.rows])
        weights = None
        if self.weights is not None and other.weights is not None:
            weights = np.concatenate([self.weights, sign * other.weights])
        mine, theirs = ([c.missing_values.get(a.name, 0) for a in axes] for c in (self, other))
        return replace(
            self._merge(axes, codes, rows, weights),
            missing_values=dict(
                zip([a.name for a in axes], map(operation, mine, theirs), strict=True)
            ),
            dropped=operation(self.dropped, other.dropped),
            # Together, rows of two conditions satisfy neither.
            reading=self.reading if self.reading == other.reading else Reading(),
        )

    def _merge(
        self,
        axes: tuple[Axis, ...],
        codes: NDArray[np.int32],
        rows: NDArray[np.int64],
        weights: NDArray[np.float64] | None,
    ) -> Counts:
        lines = merge_lines(axes, Lines(codes, rows, weights))
        return replace(self, axes=axes, **lines._asdict())

    def with_axes(self, other: Counts) -> Counts:
        """The same counts on the axes of other counts, which must have every value."""
        codes = recode(self.codes, self.axes, other.axes)
        return self._merge(other.axes, codes, self.rows, self.weights)

    def select(self, group: Group | str) -> Counts:
        """Keep only the rows of a group."""
        inside = self._inside(group)
        weights = None if self.weights is None else self.weights[inside]
        return replace(self, codes=self.codes[inside], rows=self.rows[inside], weights=weights)

    def marginal(self, *names: str) -> Counts:
        """Sum over every sensitive attribute but those named."""
        kept = {self.axis(name).name for name in names} | {self.label.name}
        chosen = [i for i, a in enumerate(self.axes) if a.name in kept]
        axes = tuple(self.axes[i] for i in chosen)
        return self._merge(axes, self.codes[:, chosen], self.rows, self.weights)

    def rename(self, name: str, values: Mapping[Value, Value]) -> Counts:
        """Rename values of an attribute; values that get the same name are merged."""
        axis = self.axis(name)
        for value in values:
            axis.code(value)
        renamed = [values.get(v, v) for v in axis.values]
        new = replace(axis, values=missing_last(renamed))
        position = self.axes.index(axis)
        codes = self.codes.copy()
        codes[:, position] = take([new.codes[v] for v in renamed], self.codes[:, position])
        axes = tuple(new if a is axis else a for a in self.axes)
        return self._merge(axes, codes, self.rows, self.weights)

    # ------------------------------------------------------------------- making

    @classmethod
    def from_mapping(
        cls, cells: Mapping[Any, int], *, sensitive: Sequence[str], label: str
    ) -> Counts:
        """Make counts from ``{(value, …, label value): rows}``, or from patterns as keys.

        >>> Counts.from_mapping({"sex=m, y=1": 3, "sex=w, y=1": 2}, sensitive=["sex"], label="y")
        <Counts of 5 rows in 2 cells: sex (2) × y (1)>
        """
        names = [*sensitive, label]
        columns: dict[str, list[Any]] = {name: [] for name in names}
        for key in cells:
            values = dict(Group.parse(key)) if isinstance(key, str) else _named(key, names)
            if set(values) != set(names):
                raise CountsError(f"the cell {key!r} must have one value for each of: {names}.")
            for name in names:
                columns[name].append(values[name])
        request = CountRequest(sensitive=tuple(sensitive), label=label)
        return cls.from_columns(columns, list(cells.values()), request)

    @classmethod
    def from_frame(
        cls,
        frame: Any,
        *,
        sensitive: Sequence[str],
        label: str,
        count: str | None = None,
        **options: Any,
    ) -> Counts:
        """Count a frame that is in memory (pandas, polars, Arrow), without an engine."""
        import pyarrow as pa

        table = frame if isinstance(frame, pa.Table) else pa.table(frame)
        request = CountRequest(sensitive=tuple(sensitive), label=label, count=count, **options)
        for name in (*request.columns, *filter(None, (count, request.weight))):
            if name not in table.column_names:
                raise ColumnNotFound(name, table="the frame", columns=table.column_names)
        return cls.from_arrow(table, request)

    @classmethod
    def from_columns(
        cls, columns: Mapping[str, Sequence[Any]], rows: Sequence[int], request: CountRequest
    ) -> Counts:
        """Make counts from columns of values of any type, and the number of rows of each line."""
        coded = {name: encode_list([as_value(v) for v in c]) for name, c in columns.items()}
        return cls.from_codes(coded, np.asarray(checked_counts(rows)), None, request)

    @classmethod
    def from_arrow(cls, table: pa.Table, request: CountRequest) -> Counts:
        """Make counts from an Arrow table of rows, or of cells with a count column."""
        coded, request = encode_table(table, request)
        rows = np.ones(len(table), np.int64)
        if request.count is not None:
            rows = counts_in(request.count, table[request.count])
        weights = None
        if request.weight is not None:
            values = weights_in(request.weight, table[request.weight])
            weights = np.stack([values, values**2], axis=1)
        return cls.from_codes(*tally(coded, rows, weights), request)

    @classmethod
    def from_encoded(
        cls,
        columns: Mapping[str, pa.ChunkedArray],
        rows: NDArray[np.int64],
        weights: NDArray[np.float64] | None,
        request: CountRequest,
    ) -> Counts:
        """Make counts from cells an engine found; binned columns hold bin numbers."""
        coded = {n: encode_arrow(c, _edges(request).get(n)) for n, c in columns.items()}
        return cls.from_codes(coded, rows, weights, request)

    @classmethod
    def from_codes(
        cls,
        coded: Mapping[str, Coded],
        rows: NDArray[np.int64],
        weights: NDArray[np.float64] | None,
        request: CountRequest,
    ) -> Counts:
        """Apply the request's missing-value rules to coded columns, and merge equal cells.

        Each column comes as its values and, for every line, the number of its value.
        """
        axes, codes, kept, missing_values = apply_policies(coded, rows, request)
        weights = None if weights is None else weights[kept]
        lines = merge_lines(axes, Lines(codes[kept], rows[kept], weights))
        edges = _edges(request)
        axes, codes = drop_unused(axes, lines.codes, edges)
        return cls(
            axes=axes,
            **lines._replace(codes=codes)._asdict(),
            missing_values=missing_values,
            dropped=int(rows[~kept].sum()),
            bins=edges,
            request=request,
        )

    # ------------------------------------------------------------- round trips

    def to_dict(self) -> dict[str, Any]:
        """Plain data, for JSON; :meth:`from_dict` reads it back."""
        return {
            "schema": storage.SCHEMA,
            "axes": storage.plain_axes(self.axes),
            "codes": self.codes.tolist(),
            "rows": self.rows.tolist(),
            "weights": None if self.weights is None else self.weights.tolist(),
            "missing_values": dict(self.missing_values),
            "dropped": self.dropped,
            "bins": {n: list(b) for n, b in self.bins.items()},
            "request": None if self.request is None else self.request.to_dict(),
            "reading": self.reading.to_dict(),
            **({"skipped": self.skipped.to_dict()} if self.skipped else {}),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Counts:
        """Read what :meth:`to_dict` wrote."""
        return cls(**storage.fields_from(data))

    @classmethod
    def from_json(cls, text: str) -> Counts:
        """Read what :meth:`to_json` wrote."""
        return cls.from_dict(storage.parse_json(text))

    def to_arrow(self) -> pa.Table:
        """A line a cell: its values, its rows ``n`` and, with weights, their sums.

        Where an attribute is called ``n``, the rows are called ``n_``.
        """
        lines = Lines(self.codes, self.rows, self.weights)
        return storage.cells_to_arrow(self.axes, lines, self.to_dict())

    @property
    def heading(self) -> str:
        """What was counted, in one line."""
        names = ", ".join(axis.name for axis in self.sensitive)
        return f"{self.n:,} rows counted by {names}, with the label {self.label.name}"

    @property
    def sentences(self) -> tuple[str, ...]:
        """Which rows were counted, if not all."""
        return self.reading.sentences

    def grid(self, top: int | None = None) -> Grid:
        """The cells, or the first of them, as a table for people."""
        table = self.to_arrow().slice(0, top)
        columns = [
            ["<missing>" if v is None else str(v) for v in column.to_pylist()] for column in table
        ]
        numbers = frozenset(range(len(self.axes), len(columns)))
        return Grid(tuple(table.column_names), tuple(zip(*columns, strict=True)), numbers)

    def _said(self) -> list[str]:
        more = len(self.rows) - SHOWN
        return [self.heading, *([f"The first {SHOWN} of {len(self.rows):,} cells:"] * (more > 0))]

    def _grids(self) -> list[Grid]:
        return [self.grid(SHOWN)]

    def to_parquet(self, path: str | os.PathLike[str]) -> None:
        """Write the cells as a Parquet file that other tools can read, too."""
        import pyarrow.parquet as pq

        with atomic_path(path) as temporary:
            pq.write_table(self.to_arrow(), temporary)

    @classmethod
    def from_parquet(cls, path: str | os.PathLike[str]) -> Counts:
        """Read what :meth:`to_parquet` wrote."""
        return cls.from_dict(storage.read_parquet(path))


def _edges(request: CountRequest) -> dict[str, tuple[float, ...]]:
    """The edges of bins that are settled; a number of quantile bins is not yet."""
    return {name: bins for name, bins in request.bins.items() if isinstance(bins, tuple)}


def _named(key: Any, names: Sequence[str]) -> dict[str, Any]:
    values = (key,) if not isinstance(key, tuple) else key
    return dict(zip(names, values, strict=False)) if len(values) == len(names) else {}
