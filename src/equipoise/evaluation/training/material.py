"""The rows an evaluation works on: counted once, numbered by cell, group, label and unit."""

from __future__ import annotations

import functools
import hashlib
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise.counts import Counts
from equipoise.counts.columns import encode_arrow
from equipoise.counts.rows import cells_of_rows
from equipoise.errors import ColumnNotFound, InputError
from equipoise.evaluation.request import EvaluationRequest
from equipoise.evaluation.training.common_types import with_common_type
from equipoise.evaluation.training.copies import Copies, find_copies, same_rows
from equipoise.evaluation.training.features import Features, read_features
from equipoise.evaluation.training.splits import generator_for
from equipoise.lattice import Group
from equipoise.plans.problem import known_rows
from equipoise.values import MISSING

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray

_SAMPLING = 101  # keeps this random choice apart from the others


@dataclass(frozen=True, eq=False, kw_only=True)
class Material:
    """A table, or two below one another, as arrays with a line a row.

    Attributes
    ----------
    name
        What messages call the table.
    counts
        The rows of every cell of the sensitive attributes and the label.
    cells
        The cell of each row.
    groups
        The finest groups by the sensitive attributes and those results are given by, too.
    group, label, unit
        The group, the label's number and the unit of each row.
    labels
        The label values, as texts.
    features
        What models learn from.
    is_after
        Of two tables, which rows are of the second.
    rows_given
        How many rows the table had.
    copies
        Which rows are equal, and which of them are taken for copies.
    """

    name: str
    counts: Counts
    cells: NDArray[np.int64]
    groups: tuple[Group, ...]
    group: NDArray[np.int64]
    label: NDArray[np.int64]
    labels: tuple[str, ...]
    unit: NDArray[np.int64]
    features: Features
    is_after: NDArray[np.bool_]
    rows_given: int
    copies: Copies

    @property
    def n(self) -> int:
        """How many rows are used."""
        return len(self.cells)

    @property
    def fingerprint(self) -> str:
        """A hash of everything models and plans see."""
        digest = hashlib.sha256()
        arrays = (self.cells, self.group, self.label, self.unit, self.features.values)
        for array in (*arrays, self.features.numeric, self.is_after):
            digest.update(np.ascontiguousarray(array).tobytes())
        digest.update(repr((self.labels, self.groups, self.features.names)).encode())
        return digest.hexdigest()

    @functools.cached_property
    def is_known(self) -> NDArray[np.bool_]:
        """Which cells lack no value: those that a plan is about."""
        known = np.ones(len(self.counts.rows), np.bool_)
        for place, axis in enumerate(self.counts.axes):
            has_value = np.array([v is not MISSING for v in axis.values], np.bool_)
            known &= has_value[self.counts.codes[:, place]]
        return known

    def count(self, rows: NDArray[np.int64]) -> Counts:
        """Count some of the rows, those that lack a sensitive value aside."""
        return self.counted(np.bincount(self.cells[rows], minlength=len(self.counts.rows)))

    def counted(self, cells: NDArray[np.int64]) -> Counts:
        """Give a number of rows for each cell as counts."""
        there = cells > 0
        codes, axes = self.counts.codes[there], self.counts.axes
        used = np.unique(codes[:, -1])
        label = replace(axes[-1], values=tuple(axes[-1].values[c] for c in used))
        codes = np.column_stack([codes[:, :-1], np.searchsorted(used, codes[:, -1])])
        some = replace(
            self.counts,
            axes=(*axes[:-1], label),  # a label that no row has is none that a plan can keep
            codes=codes.astype(np.int32),
            rows=cells[there],
            missing_values={},
            dropped=0,
        )
        return known_rows(some, plan_missing=False)[0]


def prepare(
    table: pa.Table, request: EvaluationRequest, *, name: str, after: pa.Table | None = None
) -> Material:
    """Number the rows of a table, or of two with the same columns.

    >>> import pyarrow as pa
    >>> from equipoise.counts import CountRequest
    >>> people = pa.table({"sex": list("wwmm"), "hired": list("ynyn"), "age": [30, 40, 50, 60]})
    >>> request = EvaluationRequest(counting=CountRequest(sensitive=("sex",), label="hired"))
    >>> material = prepare(people, request, name="people")
    >>> material.n, material.labels, [str(g) for g in material.groups]
    (4, ('n', 'y'), ['sex=m', 'sex=w'])
    """
    is_after = np.zeros(len(table), np.bool_)
    _require_columns(table, request.reading.drop, name)
    if after is not None:
        is_after = np.concatenate([is_after, np.ones(len(after), np.bool_)])
        table = _joined(table, after, request)
    given = len(table)
    table, is_after = _sampled(table, is_after, request)
    counts = Counts.from_arrow(table, request.counting)
    cells = cells_of_rows(table, counts)
    by = replace(
        request.counting,
        sensitive=(*request.counting.sensitive, *request.also),
        bins=counts.bins,
        missing="group",  # what results are given by does not decide which rows are used
    )
    _require_columns(table, (*request.also, *filter(None, [request.keep_together])), name)
    finer = Counts.from_arrow(table, by)
    kept = (cells >= 0) & ((lines := cells_of_rows(table, finer)) >= 0)
    table, cells, lines = table.filter(_mask(kept)), cells[kept], lines[kept]
    label, labels = _labels(counts, cells, name)
    groups, group = _groups(finer, lines)
    features = read_features(table, label, _reading(request, table.column_names), name=name)
    copies = _copies(request, features.values, label, group)
    return Material(
        name=name,
        counts=counts,
        cells=cells,
        groups=groups,
        group=group,
        label=label,
        labels=labels,
        unit=_units(table, request, copies),
        features=features,
        is_after=is_after[kept],
        rows_given=given,
        copies=copies,
    )


def _joined(table: pa.Table, after: pa.Table, request: EvaluationRequest) -> pa.Table:
    """Put two tables below one another, with the columns they share in types they share."""
    import pyarrow as pa

    from equipoise.rows.texts import without_categories

    used = {*request.counting.columns, *request.also, request.keep_together}
    left_out = {*request.reading.drop} - used  # no features, but needed all the same
    shared = [c for c in table.column_names if c in after.column_names and c not in left_out]
    first, second = (without_categories(t.select(shared)) for t in (table, after))
    pairs = [with_common_type(first[c], second[c], request.counting.na) for c in shared]
    for name, (one, other) in zip(shared, pairs, strict=True):
        if name in request.counting.columns:
            _require_common_values(name, one, other, is_label=name == request.counting.label)
    columns = [pa.chunked_array([*a.chunks, *b.chunks], a.type) for a, b in pairs]
    return pa.table(columns, names=shared)


def _require_common_values(
    name: str, first: pa.ChunkedArray, second: pa.ChunkedArray, *, is_label: bool
) -> None:
    """Refuse tables that write the values of a counted column in different ways."""
    one, other = ({*encode_arrow(c, None)[0]} - {MISSING} for c in (first, second))
    if not one & other or (is_label and other - one):
        told = [", ".join(sorted(map(str, values))[:5]) for values in (one, other)]
        raise InputError(
            f"column {name!r} has other values in the second table ({told[1]}) than in the first "
            f"({told[0]}); write them alike, as with --sql."
        )


def _mask(kept: NDArray[np.bool_]) -> Any:
    import pyarrow as pa

    return pa.array(kept)


def _sampled(
    table: pa.Table, is_after: NDArray[np.bool_], request: EvaluationRequest
) -> tuple[pa.Table, NDArray[np.bool_]]:
    if request.max_rows is None or len(table) <= request.max_rows:
        return table, is_after
    places = generator_for(request.seed, _SAMPLING).choice(
        len(table), request.max_rows, replace=False
    )
    places.sort()
    return table.take(places), is_after[places]


def _require_columns(table: pa.Table, names: tuple[str, ...], name: str) -> None:
    for column in names:
        if column not in table.column_names:
            raise ColumnNotFound(column, table=name, columns=table.column_names)


def _labels(
    counts: Counts, cells: NDArray[np.int64], name: str
) -> tuple[NDArray[np.int64], tuple[str, ...]]:
    codes = counts.codes[cells, len(counts.sensitive)].astype(np.int64)
    there = np.unique(codes)
    if len(there) < 2:
        only = counts.label.values[there[0]] if len(there) else "nothing"
        raise InputError(
            f"the label {counts.label.name!r} of {name} has one value only, {str(only)!r}; a model "
            "needs two to tell apart."
        )
    labels = tuple(str(counts.label.values[c]) for c in there)
    return np.searchsorted(there, codes).astype(np.int64), labels


def _groups(finer: Counts, lines: NDArray[np.int64]) -> tuple[tuple[Group, ...], NDArray[np.int64]]:
    width = len(finer.sensitive)
    codes, number = np.unique(finer.codes[:, :width], axis=0, return_inverse=True)
    axes = finer.sensitive
    groups = tuple(
        Group({a.name: a.values[c] for a, c in zip(axes, line, strict=True)})
        for line in codes.tolist()
    )
    return groups, number.ravel()[lines].astype(np.int64)


def _reading(request: EvaluationRequest, columns: list[str]) -> Any:
    """Leave the label out of the features, and what else is no feature."""
    there = {*columns}
    left_out = [request.counting.label, *filter(None, [request.keep_together])]
    if request.without_sensitive:
        left_out += request.counting.sensitive
    return replace(
        request.reading,
        drop=tuple(c for c in dict.fromkeys([*left_out, *request.reading.drop]) if c in there),
        na=request.counting.na,
    )


def _copies(
    request: EvaluationRequest,
    values: NDArray[np.float64],
    label: NDArray[np.int64],
    group: NDArray[np.int64],
) -> Copies:
    """Find copies among rows by what models see of them; of two tables all equal rows are.

    A repair of a table has rows of it, so what is equal in both is the same row.
    """
    seen = np.column_stack([values, label, group])
    if request.is_of_two:
        return find_copies(seen, "together")
    if same_rows(seen).max() == same_rows(seen[:, :-1]).max():
        seen = seen[:, :-1]  # the group is told by other columns, and would hide what they tell
    return find_copies(seen, request.equal_rows)


def _units(table: pa.Table, request: EvaluationRequest, copies: Copies) -> NDArray[np.int64]:
    """Number the rows that must not be in two parts: copies, and those that stay together."""
    if request.keep_together is None:
        return copies.unit
    together = _units_in(table[request.keep_together], request.counting.na)
    return _joined_units(together, copies.unit) if copies.held else together


def _joined_units(first: NDArray[np.int64], second: NDArray[np.int64]) -> NDArray[np.int64]:
    """Make one unit of rows that share a unit of either kind, or do so by way of others."""
    from scipy.sparse import coo_matrix
    from scipy.sparse.csgraph import connected_components

    size = int(first.max()) + 1
    nodes = size + int(second.max()) + 1
    edges = coo_matrix((np.ones(len(first)), (first, size + second)), shape=(nodes, nodes))
    return np.asarray(connected_components(edges, directed=False)[1][first], np.int64)


def _units_in(column: pa.ChunkedArray, na: tuple[str, ...]) -> NDArray[np.int64]:
    """Make a unit of each value; a row without one is a unit of its own."""
    values, codes = encode_arrow(column, None)
    absent = np.array([v is MISSING or v in na for v in values])[codes]
    return np.where(absent, len(values) + np.arange(len(codes)), codes).astype(np.int64)
