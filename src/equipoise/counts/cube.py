"""The cube: how many rows each cell of a table has. Everything else is a function of it."""

from __future__ import annotations

import functools
import hashlib
import json
import math
import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from equipoise.counts.columns import (
    LARGEST,
    Coded,
    bin_codes,
    checked_counts,
    counts_in,
    encode_arrow,
    encode_list,
    nested_values,
    numbers_in,
    quantile_edges,
    take,
    weights_in,
)
from equipoise.counts.reading import Reading
from equipoise.counts.request import CountRequest, request_from_dict
from equipoise.counts.skipped import NOTHING, Skipped
from equipoise.errors import ColumnNotFound, CountsError, InputError, PatternError, did_you_mean
from equipoise.lattice import Group, format_value
from equipoise.plain import Grid
from equipoise.results import SHOWN, Result
from equipoise.values import MISSING, Value, as_value

if TYPE_CHECKING:
    import os

    import pyarrow as pa
    from numpy.typing import NDArray

Role: TypeAlias = Literal["sensitive", "label", "prediction"]

SCHEMA = "equipoise.counts/1"

SUSPECTS = frozenset(
    {"?", "na", "n/a", "nan", "null", "none", "<na>", "nil", "-", ".", "missing", r"\n"}
)
"""Texts, in lower case, that often stand for a missing value."""


@dataclass(frozen=True)
class Axis:
    """One dimension of the cube: a column, its role, and the values it takes, in order."""

    name: str
    values: tuple[Value, ...]
    role: Role = "sensitive"

    def __len__(self) -> int:
        return len(self.values)

    @functools.cached_property
    def codes(self) -> Mapping[Value, int]:
        """The number of each value."""
        return {value: code for code, value in enumerate(self.values)}

    def code(self, value: Value) -> int:
        """Give the number of a value, or say which values there are."""
        try:
            return self.codes[value]
        except KeyError:
            shown = [format_value(v) for v in self.values]
            raise PatternError(
                f"{self.name!r} has no value {format_value(value)}; it has: "
                f"{', '.join(shown[:20])}{', …' if len(shown) > 20 else ''}."
                f"{did_you_mean(str(value), shown)}"
            ) from None


@dataclass(frozen=True, eq=False, kw_only=True)
class Counts(Result):
    """How many rows each cell has: a sparse cube with named axes.

    Made by an engine (:func:`equipoise.count`), from a mapping or from a frame. Cells
    without rows are not stored. Counts of one shape can be added and subtracted.

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
        One line a cell, one column an axis: the number of the value.
    rows
        How many rows each cell has.
    weights
        With row weights: for each cell their sum and the sum of their squares.
    missing_values
        For each column in how many rows it had no value.
    dropped
        How many rows were left out for a missing value.
    bins
        The edges of the binned attributes.
    request, reading
        What was asked for, and how the table was read.
    skipped
        Lines of the file that are no rows and were left out, as ``lenient`` allows.
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
        """How many rows there are."""
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
        """How many rows a group has, or a cell, if the pattern names the label too."""
        return int(self.rows[self._inside(group)].sum())

    def finest(self) -> tuple[NDArray[np.int32], tuple[NDArray[Any], ...]]:
        """Pivot the cells: the finest groups, and for each its rows (and weights) per label."""
        width, k = len(self.sensitive), len(self.label)
        groups, line = _distinct_lines(self.codes[:, :width], [len(a) for a in self.sensitive])
        stored = [self.rows, *([] if self.weights is None else self.weights.T)]
        columns = []
        for values in stored:
            pivot = np.zeros((len(groups), k), values.dtype)
            pivot[line, self.codes[:, width]] = values
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
                if value is not MISSING and value.strip().casefold() in SUSPECTS:
                    n = int(self.rows[self.codes[:, position] == code].sum())
                    found.setdefault(axis.name, {})[value] = n
        return found

    @functools.cached_property
    def fingerprint(self) -> str:
        """SHA-256 of the cells by their values: the same for the same counts, however made.

        Weights count to nine digits, since their sums depend on the order of the rows.
        """
        lines = sorted(
            json.dumps([[None if v is MISSING else v for v in cell], n, *(f"{w:.9g}" for w in ws)])
            for cell, (n, *ws) in self._cells().items()
        )
        names = json.dumps([[a.name, a.role] for a in self.axes])
        return hashlib.sha256("\n".join([names, *lines]).encode()).hexdigest()

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Counts):
            return NotImplemented
        if [(a.name, a.role) for a in self.axes] != [(a.name, a.role) for a in other.axes]:
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

    def _cells(self) -> dict[tuple[Value, ...], tuple[float, ...]]:
        """The values of each cell, with its rows and, if there are weights, their sums."""
        values = [a.values for a in self.axes]
        cells = (tuple(values[i][c] for i, c in enumerate(line)) for line in self.codes.tolist())
        stored = [self.rows, *([] if self.weights is None else self.weights.T)]
        return dict(zip(cells, zip(*(s.tolist() for s in stored), strict=True), strict=True))

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

    def _combine(self, other: Counts, operation: Callable[[Any, Any], Any]) -> Counts:
        if [(a.name, a.role) for a in self.axes] != [(a.name, a.role) for a in other.axes]:
            raise CountsError(
                f"counts over {', '.join(a.name for a in self.axes)} and over "
                f"{', '.join(a.name for a in other.axes)} do not combine; count the same columns."
            )
        if (self.weights is None) != (other.weights is None) or dict(self.bins) != dict(other.bins):
            raise CountsError(
                "counts with other bins, or with and without weights, do not combine."
            )
        axes = tuple(
            replace(a, values=_missing_at_end((*a.values, *b.values)))
            for a, b in zip(self.axes, other.axes, strict=True)
        )
        codes = np.concatenate([self._recode(axes), other._recode(axes)])
        sign = operation(0, 1)
        rows = np.concatenate([self.rows, sign * other.rows])
        weights = None
        if self.weights is not None and other.weights is not None:
            weights = np.concatenate([self.weights, sign * other.weights])
        missing = {
            a.name: operation(
                self.missing_values.get(a.name, 0), other.missing_values.get(a.name, 0)
            )
            for a in axes
        }
        dropped = operation(self.dropped, other.dropped)
        # Rows of two conditions together are those of neither.
        reading = self.reading if self.reading == other.reading else Reading()
        both = replace(self, missing_values=missing, dropped=dropped, reading=reading)
        return _merge(both, axes, codes, rows, weights)

    def _recode(self, axes: Sequence[Axis]) -> NDArray[np.int32]:
        maps = [
            np.array([new.codes[v] for v in old.values], np.int32)
            for old, new in zip(self.axes, axes, strict=True)
        ]
        columns = [m[self.codes[:, i]] for i, m in enumerate(maps)]
        return np.stack(columns, axis=1)

    def with_axes(self, other: Counts) -> Counts:
        """The same counts on the axes of other counts, which must have every value."""
        return _merge(self, other.axes, self._recode(other.axes), self.rows, self.weights)

    def select(self, group: Group | str) -> Counts:
        """Keep only the rows of a group.

        >>> c = Counts.from_mapping({("m", "y"): 3, ("w", "y"): 2}, sensitive=["s"], label="l")
        >>> c.select("s=w").n
        2
        """
        inside = self._inside(group)
        weights = None if self.weights is None else self.weights[inside]
        return replace(self, codes=self.codes[inside], rows=self.rows[inside], weights=weights)

    def marginal(self, *names: str) -> Counts:
        """Sum over every sensitive attribute but those named."""
        kept = {self.axis(name).name for name in names} | {self.label.name}
        chosen = [i for i, a in enumerate(self.axes) if a.name in kept]
        axes = tuple(self.axes[i] for i in chosen)
        return _merge(self, axes, self.codes[:, chosen], self.rows, self.weights)

    def rename(self, name: str, values: Mapping[Value, Value]) -> Counts:
        """Give values of one attribute other names; values of one new name are merged.

        >>> c = Counts.from_mapping({("m", "y"): 3, ("M", "y"): 2}, sensitive=["s"], label="l")
        >>> c.rename("s", {"M": "m"}).of("s=m")
        5
        """
        axis = self.axis(name)
        for value in values:
            axis.code(value)
        renamed = [values.get(v, v) for v in axis.values]
        new = replace(axis, values=_missing_at_end(renamed))
        position = self.axes.index(axis)
        codes = self.codes.copy()
        codes[:, position] = take([new.codes[v] for v in renamed], self.codes[:, position])
        axes = tuple(new if a is axis else a for a in self.axes)
        return _merge(self, axes, codes, self.rows, self.weights)

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
                raise CountsError(f"the cell {key!r} must give one value for each of: {names}.")
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
        """Make counts from columns of values of any kind and how many rows each line has."""
        coded = {name: encode_list([as_value(v) for v in c]) for name, c in columns.items()}
        return cls.from_codes(coded, np.asarray(checked_counts(rows)), None, request)

    @classmethod
    def from_arrow(cls, table: pa.Table, request: CountRequest) -> Counts:
        """Make counts from an Arrow table of rows, or of cells with a count column."""
        import pyarrow as pa

        for name in (*request.columns, *filter(None, (request.count, request.weight))):
            kind = table.schema.field(name).type
            if pa.types.is_nested(kind) or pa.types.is_interval(kind):
                raise nested_values(name, "the frame", str(kind))
        coded, edges = {}, {}
        for name in request.columns:
            if name in request.bins:
                numbers = numbers_in(name, table[name], request.na)
                spec = request.bins[name]
                edges[name] = quantile_edges(name, numbers, spec) if isinstance(spec, int) else spec
                coded[name] = bin_codes(numbers, edges[name])
            else:
                coded[name] = encode_arrow(table[name], None)
        rows = np.ones(len(table), np.int64)
        if request.count is not None:
            rows = counts_in(request.count, table[request.count])
        weights = None
        if request.weight is not None:
            values = weights_in(request.weight, table[request.weight])
            weights = np.stack([values, values**2], axis=1)
        return cls.from_codes(*_tally(coded, rows, weights), request.with_edges(edges))

    @classmethod
    def from_encoded(
        cls,
        columns: Mapping[str, pa.ChunkedArray],
        rows: NDArray[np.int64],
        weights: NDArray[np.float64] | None,
        request: CountRequest,
    ) -> Counts:
        """Make counts from cells an engine found; binned columns hold bin numbers."""
        edges = {n: b for n, b in request.bins.items() if isinstance(b, tuple)}
        coded = {n: encode_arrow(c, edges.get(n)) for n, c in columns.items()}
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
        kept = np.ones(len(rows), np.bool_)
        axes, codes, missing_values = [], [], {}
        for name in request.columns:
            values, code = coded[name]
            axis, code = _missing_last(name, values, code, request)
            absent = _absent(axis, code)
            missing_values[name] = int(rows[absent].sum())
            if missing_values[name] and request.policy(name) == "raise":
                raise InputError(
                    f"column {name!r} lacks a value in {missing_values[name]:,} rows, and missing "
                    "values are to be refused; use --missing group or drop (--missing-label for "
                    "the label)."
                )
            if request.policy(name) == "drop":
                kept &= ~absent
            axes.append(axis)
            codes.append(code)
        edges = {n: b for n, b in request.bins.items() if isinstance(b, tuple)}
        counts = cls(
            axes=tuple(axes),
            codes=np.stack(codes, axis=1)[kept],
            rows=rows[kept],
            weights=None if weights is None else weights[kept],
            missing_values=missing_values,
            dropped=int(rows[~kept].sum()),
            bins=edges,
            request=request,
        )
        return _without_unused(
            _merge(counts, counts.axes, counts.codes, counts.rows, counts.weights)
        )

    # ------------------------------------------------------------- round trips

    def to_dict(self) -> dict[str, Any]:
        """Plain data, for JSON; :meth:`from_dict` reads it back."""
        return {
            "schema": SCHEMA,
            "axes": [
                {
                    "name": a.name,
                    "role": a.role,
                    "values": [None if v is MISSING else v for v in a.values],
                }
                for a in self.axes
            ],
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

    def to_json(self) -> str:
        """One JSON document; :meth:`from_json` reads it back."""
        return json.dumps(self.to_dict(), ensure_ascii=False)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Counts:
        """Read what :meth:`to_dict` wrote."""
        schema = dict(data).get("schema") if hasattr(data, "keys") else None
        if schema != SCHEMA:
            raise CountsError(
                f"this is not counts of the schema {SCHEMA} but {schema!r}; count the table again."
            )
        try:
            return cls._from_dict(data)
        except CountsError:
            raise
        except (LookupError, TypeError, ValueError) as error:
            raise CountsError(f"these counts are damaged ({error!r}); count again.") from None

    @classmethod
    def _from_dict(cls, data: Mapping[str, Any]) -> Counts:
        axes = tuple(
            Axis(a["name"], tuple(MISSING if v is None else v for v in a["values"]), a["role"])
            for a in data["axes"]
        )
        weights = data["weights"]
        counts = cls(
            axes=axes,
            codes=np.array(data["codes"], np.int32).reshape(-1, len(axes)),
            rows=checked_counts(data["rows"]),
            weights=None if weights is None else np.array(weights, np.float64).reshape(-1, 2),
            missing_values=dict(data["missing_values"]),
            dropped=data["dropped"],
            bins={n: tuple(b) for n, b in data["bins"].items()},
            request=request_from_dict(data["request"]),
            reading=Reading.from_dict(data.get("reading")),
            skipped=Skipped.from_dict(data.get("skipped")),
        )
        if (counts.codes < 0).any() or (counts.codes >= [len(a) for a in axes]).any():
            raise IndexError("a cell names a value that is not there")
        return _merge(counts, counts.axes, counts.codes, counts.rows, counts.weights)

    @classmethod
    def from_json(cls, text: str) -> Counts:
        """Read what :meth:`to_json` wrote."""
        try:
            data = json.loads(text)
        except json.JSONDecodeError as error:
            raise CountsError(f"this is not JSON, so not counts: {error}.") from None
        return cls.from_dict(data)

    def to_arrow(self) -> pa.Table:
        """A line a cell: its values, its rows ``n`` and, with weights, their sums.

        Where an attribute is called ``n``, the rows are called ``n_``.
        """
        import pyarrow as pa

        columns: dict[str, Any] = {}
        for position, axis in enumerate(self.axes):
            values = pa.array([None if v is MISSING else v for v in axis.values], pa.string())
            columns[axis.name] = values.take(pa.array(self.codes[:, position]))
        numbers_beside: list[NDArray[Any]] = [self.rows]
        if self.weights is not None:
            numbers_beside += [self.weights[:, 0], self.weights[:, 1]]
        for name, column in zip(_NUMBERS, numbers_beside, strict=False):
            columns[_unused(name, columns)] = pa.array(column)
        without_cells = {k: v for k, v in self.to_dict().items() if k not in ("rows", "weights")}
        metadata = {"equipoise": json.dumps(without_cells, ensure_ascii=False)}
        return pa.table(columns).replace_schema_metadata(metadata)

    @property
    def heading(self) -> str:
        """What was counted, in one line."""
        names = ", ".join(axis.name for axis in self.sensitive)
        return f"{self.n:,} rows counted by {names}, with the label {self.label.name}"

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

        from equipoise.atomic import atomic_path

        with atomic_path(path) as temporary:
            pq.write_table(self.to_arrow(), temporary)

    @classmethod
    def from_parquet(cls, path: str | os.PathLike[str]) -> Counts:
        """Read what :meth:`to_parquet` wrote."""
        import pyarrow.parquet as pq

        table = pq.read_table(path)
        metadata = (table.schema.metadata or {}).get(b"equipoise")
        if metadata is None:
            raise CountsError(f"{path} was not written by Counts.to_parquet; count it instead.")
        data = json.loads(metadata)
        rows, *weights = table.columns[len(data["axes"]) :]
        data["rows"] = rows.to_pylist()
        data["weights"] = (
            list(zip(*(w.to_pylist() for w in weights), strict=True)) if weights else None
        )
        return cls.from_dict(data)


_NUMBERS = ("n", "weight", "weight_squared")


def _unused(name: str, taken: Iterable[str]) -> str:
    while name in taken:
        name += "_"
    return name


def _named(key: Any, names: Sequence[str]) -> dict[str, Any]:
    values = (key,) if not isinstance(key, tuple) else key
    return dict(zip(names, values, strict=False)) if len(values) == len(names) else {}


def _distinct_lines(
    codes: NDArray[np.int32], sizes: Sequence[int]
) -> tuple[NDArray[np.int32], NDArray[np.intp]]:
    """Give the distinct lines in rising order, and for each line the place of its like."""
    if not len(codes):
        return codes, np.zeros(0, np.intp)
    space = math.prod(max(d, 1) for d in sizes)
    if space <= 4 * len(codes):  # so dense that counting beats sorting
        key = _key(codes, sizes)
        present = np.bincount(key, minlength=space) > 0
        lines = np.unravel_index(np.flatnonzero(present), [max(d, 1) for d in sizes])
        return np.stack(lines, axis=1).astype(np.int32), (np.cumsum(present) - 1)[key]
    order = np.lexsort(codes.T[::-1]) if space >= 2**62 else np.argsort(_key(codes, sizes))
    ordered = codes[order]
    fresh = np.concatenate([[True], (ordered[1:] != ordered[:-1]).any(axis=1)])
    place = np.empty(len(codes), np.intp)
    place[order] = np.cumsum(fresh) - 1
    return ordered[fresh], place


def _key(codes: NDArray[np.int32], sizes: Sequence[int]) -> NDArray[np.int64]:
    key = np.zeros(len(codes), np.int64)
    for position, size in enumerate(sizes):
        key = key * max(size, 1) + codes[:, position]
    return key


def _require_countable(rows: NDArray[np.int64]) -> None:
    if np.abs(rows).sum(dtype=np.float64) >= LARGEST:
        raise CountsError("these are more rows than can be counted, 9,223,372,036,854,775,807.")


def _merge(
    counts: Counts,
    axes: tuple[Axis, ...],
    codes: NDArray[np.int32],
    rows: NDArray[np.int64],
    weights: NDArray[np.float64] | None,
) -> Counts:
    """Add up equal cells, and leave out those without rows."""
    _require_countable(rows)
    lines, place = _distinct_lines(codes, [len(a) for a in axes])
    summed = np.zeros(len(lines), np.int64)
    np.add.at(summed, place, rows)
    if (summed < 0).any():
        cell = lines[summed < 0][0]
        named = Group({a.name: a.values[c] for a, c in zip(axes, cell.tolist(), strict=True)})
        raise CountsError(f"more rows are taken from the cell {named} than it has.")
    kept = summed > 0
    if weights is not None:
        totals = np.zeros((len(lines), 2))
        np.add.at(totals, place, weights)
        weights = totals[kept]
    return replace(counts, axes=axes, codes=lines[kept], rows=summed[kept], weights=weights)


def _tally(
    coded: Mapping[str, Coded], rows: NDArray[np.int64], weights: NDArray[np.float64] | None
) -> tuple[dict[str, Coded], NDArray[np.int64], NDArray[np.float64] | None]:
    """Add up the lines of equal codes first, where that is quick: the rest is then about few."""
    _require_countable(rows)
    sizes = [len(values) for values, _ in coded.values()]
    space = math.prod(sizes)
    if weights is not None or not 0 < space <= 4 * len(rows):
        return dict(coded), rows, weights
    key = np.zeros(len(rows), np.int64)
    for size, (_, codes) in zip(sizes, coded.values(), strict=True):
        key *= size
        key += codes
    summed = np.zeros(space, np.int64)
    np.add.at(summed, key, rows)
    present = np.flatnonzero(summed)
    columns = (c.astype(np.int32) for c in np.unravel_index(present, sizes))
    names = zip(coded.items(), columns, strict=True)
    return {name: (values, c) for (name, (values, _)), c in names}, summed[present], None


def _missing_last(
    name: str, values: tuple[Value, ...], code: NDArray[np.int32], request: CountRequest
) -> tuple[Axis, NDArray[np.int32]]:
    na = () if name in request.bins else request.na  # bins have left them out already
    seen: list[Value] = [MISSING if v in na else v for v in values]
    role: Role = "label" if name == request.label else "sensitive"
    axis = Axis(name, _missing_at_end(seen), role)
    return axis, take([axis.codes[v] for v in seen], code)


def _missing_at_end(values: Iterable[Value]) -> tuple[Value, ...]:
    return tuple(sorted(dict.fromkeys(values), key=lambda value: value is MISSING))


def _absent(axis: Axis, code: NDArray[np.int32]) -> NDArray[np.bool_]:
    if MISSING not in axis.codes:
        return np.zeros(len(code), np.bool_)
    return np.asarray(code == axis.codes[MISSING])


def _without_unused(counts: Counts) -> Counts:
    """Leave out values that no row has any more, but keep every bin."""
    axes = []
    for position, axis in enumerate(counts.axes):
        used = set(np.unique(counts.codes[:, position]).tolist())
        kept = tuple(
            v
            for c, v in enumerate(axis.values)
            if c in used or (axis.name in counts.bins and v is not MISSING)
        )
        axes.append(replace(axis, values=kept))
    if all(len(a) == len(b) for a, b in zip(axes, counts.axes, strict=True)):
        return counts
    codes = np.stack(
        [
            take([new.codes.get(v, -1) for v in old.values], counts.codes[:, i])
            for i, (old, new) in enumerate(zip(counts.axes, axes, strict=True))
        ],
        axis=1,
    )
    return replace(counts, axes=tuple(axes), codes=codes)
