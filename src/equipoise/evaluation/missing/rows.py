"""Rows with missing values: counted columns as codes, and other columns as numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from equipoise.counts import Axis, CountRequest, Counts, MissingPolicy
from equipoise.counts.columns import Coded, as_number, bin_codes, encode_arrow, numbers_in, take
from equipoise.errors import ColumnNotFound, InputError
from equipoise.evaluation.training.features import is_date_or_time, ticks_of
from equipoise.lattice import format_value
from equipoise.plain import in_words
from equipoise.values import MISSING, Value

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray

Codes: TypeAlias = "NDArray[np.int32]"
Floats: TypeAlias = "NDArray[np.float64]"

ABSENT = -1
"""Code of a missing value."""
LEAST_ROWS = 20
"""Minimum number of complete rows, so that imputers have something to learn from."""
_KEPT = 20  # most frequent values of a text column that keep their own code; others share one
_RARE = 10  # values with fewer rows share a code as well


@dataclass(frozen=True, eq=False)
class Rows:
    """A table as imputers take it: counted columns as codes, and the other columns."""

    request: CountRequest  # with bins as edges
    # Without the missing value; but if rows without a label have a separate label, MISSING is
    # the last value of the label.
    values: tuple[tuple[Value, ...], ...]
    codes: Codes  # rows × counted columns, the label last
    others: Others

    @property
    def absent(self) -> NDArray[np.bool_]:
        """Whether each value is missing."""
        return np.asarray(self.codes == ABSENT)

    def take(self, lines: NDArray[np.intp]) -> Rows:
        """Keep some of the rows."""
        others = replace(self.others, matrix=self.others.matrix[lines])
        return replace(self, codes=self.codes[lines], others=others)

    def counts(self, codes: Codes, policy: MissingPolicy) -> Counts:
        """Count rows by codes, on the same axes for every method, with MISSING last."""
        columns = zip(self.request.columns, self.values, codes.T, strict=True)
        coded: dict[str, Coded] = {}
        for name, values, column in columns:
            numbers = np.where(column == ABSENT, len(values), column).astype(np.int32)
            coded[name] = (_with_missing(values), numbers)
        is_label = MISSING in self.values[-1]
        of_label: MissingPolicy = "group" if is_label else policy
        request = replace(self.request, missing=policy, missing_label=of_label, na=())
        found = Counts.from_codes(coded, np.ones(len(codes), np.int64), None, request)
        axes = tuple(
            Axis(a.name, _with_missing(values), a.role)
            for a, values in zip(found.axes, self.values, strict=True)
        )
        nothing = np.zeros((0, len(axes)), np.int32)
        return found.with_axes(Counts(axes=axes, codes=nothing, rows=np.zeros(0, np.int64)))


def _with_missing(values: tuple[Value, ...]) -> tuple[Value, ...]:
    return values if MISSING in values else (*values, MISSING)


def with_label_policy(rows: Rows) -> tuple[Rows, int]:
    """Treat rows without a label as the request says, and count them.

    They are left out, refused, or get a separate label; to imputation methods their label is
    not a missing value.

    Examples
    --------
    >>> import pyarrow as pa
    >>> people = pa.table({"sex": ["m", "w", "w"], "y": ["1", "0", None]})
    >>> request = CountRequest(sensitive=("sex",), label="y", missing_label="group")
    >>> rows, without = with_label_policy(read_rows(people, request))
    >>> rows.values[-1], rows.codes.tolist(), without
    (('0', '1', MISSING), [[0, 1], [1, 0], [1, 2]], 1)
    """
    lacks = rows.codes[:, -1] == ABSENT
    without = int(lacks.sum())
    if not without:
        return rows, 0
    if without == len(rows.codes):
        raise InputError(_no_value(rows.request.label, without))
    if rows.request.missing_label == "raise":
        raise InputError(
            f"column {rows.request.label!r} has no value in {without:,} rows, and missing labels are "
            "refused; set `missing_label='drop'` or `missing_label='group'`."
        )
    if rows.request.missing_label == "drop":
        return rows.take(np.flatnonzero(~lacks)), without
    codes = rows.codes.copy()
    codes[lacks, -1] = len(rows.values[-1])
    values = (*rows.values[:-1], (*rows.values[-1], MISSING))
    return replace(rows, codes=codes, values=values), without


def read_rows(table: pa.Table, request: CountRequest) -> Rows:
    """Encode the counted columns of a table, and read the other columns.

    Examples
    --------
    >>> import pyarrow as pa
    >>> people = pa.table({"sex": ["m", "?", "w"], "y": ["1", "0", None], "age": [20, 30, 40]})
    >>> rows = read_rows(people, CountRequest(sensitive=("sex",), label="y", na=("?",)))
    >>> rows.values, rows.codes.tolist(), rows.others.names
    ((('m', 'w'), ('0', '1')), [[0, 1], [-1, 0], [1, -1]], ('age',))
    """
    for name in request.columns:
        if name not in table.column_names:
            raise ColumnNotFound(name, table="the table", columns=table.column_names)
    # Counting rejects columns that cannot be counted, and finds the edges of quantile bins.
    edges = Counts.from_arrow(table, replace(request, missing="group", missing_label="group")).bins
    coded = [_coded(name, table[name], request.na, edges.get(name)) for name in request.columns]
    return Rows(
        request.with_edges(edges),
        tuple(values for values, _ in coded),
        np.stack([codes for _, codes in coded], axis=1),
        _read_others(table, request),
    )


def _coded(
    name: str, column: pa.ChunkedArray, na: Sequence[str], edges: tuple[float, ...] | None
) -> tuple[tuple[str, ...], Codes]:
    if edges is not None:
        values, codes = bin_codes(numbers_in(name, column, na), edges)
        na = ()
    else:
        values, codes = encode_arrow(column, None)
    known = tuple(v for v in values if v is not MISSING and v not in na)
    number = {v: c for c, v in enumerate(known)}
    return known, take([number.get(str(v), ABSENT) for v in values], codes)


# ----------------------------------------------------------------------- other columns


@dataclass(frozen=True, eq=False)
class Others:
    """The columns that are not counted: numbers scaled, texts as codes."""

    matrix: Floats
    names: tuple[str, ...]
    sizes: tuple[int, ...]  # number of values of a text column, and 0 for numbers
    left_out: tuple[str, ...]  # of no help: a single value, too many texts, or nested values

    def spread(self) -> Floats:
        """Encode texts one-hot, so that any two values are equally far apart."""
        parts = [
            column[:, None] if not size else one_hot(column.astype(np.int32), size)
            for column, size in zip(self.matrix.T, self.sizes, strict=True)
        ]
        return np.hstack([np.zeros((len(self.matrix), 0)), *parts])


def _read_others(table: pa.Table, request: CountRequest) -> Others:
    # Models refuse a column that they cannot use (training/features.py), so that nobody trains
    # without it unknowingly. Here such a column is only of no help, so it is left out,
    # missing numbers become the median, and rare texts share a code.
    read = {
        name: _other(name, table[name], request.na)
        for name in table.column_names
        if name not in request.columns
    }
    used = {name: found for name, found in read.items() if found is not None}
    return Others(
        np.column_stack([np.zeros((len(table), 0)), *(column for column, _ in used.values())]),
        tuple(used),
        tuple(size for _, size in used.values()),
        tuple(name for name in read if name not in used),
    )


def _other(name: str, column: pa.ChunkedArray, na: Sequence[str]) -> tuple[Floats, int] | None:
    import pyarrow as pa

    kind = column.type
    if pa.types.is_nested(kind) or pa.types.is_interval(kind) or pa.types.is_null(kind):
        return None
    if is_date_or_time(kind):
        return _scaled(numbers_in(name, ticks_of(column), ()))
    if pa.types.is_integer(kind) or pa.types.is_floating(kind):
        return _scaled(numbers_in(name, column, na))
    values, codes = encode_arrow(column, None)
    numbers = [as_number(v, na) for v in values]
    if len(values) > _KEPT and not any(n is None for n in numbers):
        return _scaled(np.array(numbers, np.float64)[codes])
    return _lumped(values, codes, na)


def _scaled(numbers: Floats) -> tuple[Floats, int] | None:
    known = numbers[np.isfinite(numbers)]
    if not len(known) or not (known != known[0]).any():
        return None
    filled = np.where(np.isfinite(numbers), numbers, np.median(known))
    filled /= np.abs(filled).max()  # so that squares do not overflow
    spread = filled.std()
    return ((filled - filled.mean()) / spread, 0) if spread > 0 else None


def _lumped(values: Sequence[Value], codes: Codes, na: Sequence[str]) -> tuple[Floats, int] | None:
    """Encode frequent values; all rare values share a code, and so do missing ones."""
    rows = np.bincount(codes, minlength=len(values))
    known = np.array([v is not MISSING and v not in na for v in values])
    order = np.argsort(np.where(known, -rows, 1), kind="stable")[:_KEPT]
    frequent = [i for i in order.tolist() if known[i] and rows[i] >= min(_RARE, len(codes) // 10)]
    if 2 * rows[frequent].sum() < rows[known].sum() or not known.any():
        return None
    number = {place: i for i, place in enumerate(frequent)}
    rare = len(frequent)
    table = [number.get(i, rare if known[i] else rare + 1) for i in range(len(values))]
    _, lumped = np.unique(take(table, codes), return_inverse=True)
    size = int(lumped.max()) + 1
    return (lumped.astype(np.float64), size) if size > 1 else None


def one_hot(codes: Codes, size: int) -> Floats:
    """Encode codes one-hot; a missing one is nan in all columns.

    Examples
    --------
    >>> one_hot(np.array([1, 0, -1], np.int32), 2).tolist()
    [[0.0, 1.0], [1.0, 0.0], [nan, nan]]
    """
    spread: Floats = (codes[:, None] == np.arange(size)).astype(np.float64)
    spread[codes == ABSENT] = np.nan
    return spread


# ---------------------------------------------------------------------------- refusing


def require_values(rows: Rows) -> None:
    """Refuse columns without anything to compare, and tables too small to learn from."""
    for name, values, codes in zip(rows.request.columns, rows.values, rows.codes.T, strict=True):
        known = np.unique(codes[codes >= 0])
        if not len(known):
            raise InputError(_no_value(name, len(codes)))
        if len(known) == 1:
            only = format_value(values[known[0]])
            raise InputError(
                f"column {name!r} has only one value, {only}, in addition to missing ones, so it "
                "distinguishes no groups; leave it out."
            )
    whole_rows = int((~rows.absent.any(axis=1)).sum())
    if whole_rows < LEAST_ROWS:
        raise InputError(
            f"{whole_rows:,} of {len(rows.codes):,} rows have a value of each of "
            f"{in_words(list(rows.request.columns))}; at least {LEAST_ROWS} are needed."
        )


def _no_value(name: str, rows: int) -> str:
    return f"column {name!r} has no value in any of {rows:,} rows; leave it out."


def drawn(lines: NDArray[np.intp], max_rows: int | None, seed: int) -> NDArray[np.intp]:
    """Draw at most ``max_rows`` lines at random, and keep their order."""
    if max_rows is None or len(lines) <= max_rows:
        return lines
    chosen = np.random.default_rng([seed, 3]).choice(lines, int(max_rows), replace=False)
    return np.sort(chosen)
