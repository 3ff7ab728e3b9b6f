"""The rows of an evaluation: counted once, and encoded by cell, group, label and unit."""

from __future__ import annotations

import functools
import hashlib
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from equipoise.counts import Counts
from equipoise.counts.rows import cells_of_rows
from equipoise.errors import ColumnNotFound, InputError
from equipoise.evaluation.request import EvaluationRequest
from equipoise.evaluation.training.features import Features, read_features
from equipoise.evaluation.training.splits import generator_for
from equipoise.evaluation.training.table_pair import stack_tables
from equipoise.evaluation.training.units import Copies, find_duplicates, find_units
from equipoise.lattice import Group
from equipoise.options.evaluation import FeatureOptions
from equipoise.plans.problem import known_rows
from equipoise.values import MISSING, as_value

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray

_SAMPLING = 101  # keeps this random choice independent of the others


@dataclass(frozen=True, eq=False, kw_only=True)
class Material:
    """One table, or two tables stacked; ``cells``, ``group``, ``label`` and ``unit`` are by row."""

    name: str
    counts: Counts
    cells: NDArray[np.int64]  # lines of the counts
    groups: tuple[Group, ...]  # the finest, by sensitive attributes and those of `also`
    group: NDArray[np.int64]
    label: NDArray[np.int64]
    labels: tuple[str, ...]
    positive: int | None  # label that precision and recall refer to; None for all
    unit: NDArray[np.int64]
    features: Features
    is_after: NDArray[np.bool_]  # rows of the second of two tables
    rows_given: int  # before sampling
    copies: Copies

    @property
    def n(self) -> int:
        """Number of rows used."""
        return len(self.cells)

    @property
    def fingerprint(self) -> str:
        """Hash of everything that models and plans see; part of the key of stored runs."""
        digest = hashlib.sha256()
        arrays = (self.cells, self.group, self.label, self.unit, self.features.values)
        for array in (*arrays, self.features.numeric, self.is_after):
            digest.update(np.ascontiguousarray(array).tobytes())
        digest.update(repr((self.labels, self.groups, self.features.names)).encode())
        return digest.hexdigest()

    @functools.cached_property
    def is_known(self) -> NDArray[np.bool_]:
        """Cells without a missing value, which are those a plan considers."""
        known = np.ones(len(self.counts.rows), np.bool_)
        for place, axis in enumerate(self.counts.axes):
            has_value = np.array([v is not MISSING for v in axis.values], np.bool_)
            known &= has_value[self.counts.codes[:, place]]
        return known

    def tally(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Count some of the rows by cell."""
        return np.bincount(self.cells[rows], minlength=len(self.counts.rows))

    def count(self, rows: NDArray[np.int64]) -> Counts:
        """Count some of the rows, leaving out those with a missing sensitive value."""
        return self.as_counts(self.tally(rows))

    def as_counts(self, cells: NDArray[np.int64]) -> Counts:
        """Turn a number of rows per cell into counts."""
        there = cells > 0
        codes, axes = self.counts.codes[there], self.counts.axes
        used = np.unique(codes[:, -1])
        label = replace(axes[-1], values=tuple(axes[-1].values[c] for c in used))
        codes = np.column_stack([codes[:, :-1], np.searchsorted(used, codes[:, -1])])
        some = replace(
            self.counts,
            axes=(*axes[:-1], label),  # a plan cannot keep the frequency of a label that no row has
            codes=codes.astype(np.int32),
            rows=cells[there],
            missing_values={},
            dropped=0,
        )
        return known_rows(some, plan_missing=False)[0]


def prepare(
    table: pa.Table, request: EvaluationRequest, *, name: str, after: pa.Table | None = None
) -> Material:
    """Encode the rows of a table, or of two tables with the same columns.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from equipoise.counts import CountRequest
    >>> people = pa.table({"sex": list("wwmm"), "hired": list("ynyn"), "age": [30, 40, 50, 60]})
    >>> request = EvaluationRequest(counting=CountRequest(sensitive=("sex",), label="hired"))
    >>> material = prepare(people, request, name="people")
    >>> material.n, material.labels, [str(g) for g in material.groups]
    (4, ('n', 'y'), ['sex=m', 'sex=w'])
    """
    is_after = np.zeros(len(table), np.bool_)
    if after is not None:
        is_after = np.concatenate([is_after, np.ones(len(after), np.bool_)])
        table = stack_tables(table, after, request)
    given = len(table)
    _require_columns(table, (*request.also, *filter(None, [request.keep_together])), name)
    table, is_after = _sampled(table, is_after, request)
    counts = Counts.from_arrow(table, request.counting)
    # The attributes of `also` never decide which rows are used, so their missing values are kept.
    also = (*request.counting.sensitive, *request.also)
    finer_request = replace(request.counting, sensitive=also, bins=counts.bins, missing="group")
    finer = Counts.from_arrow(table, finer_request)
    cells, lines = cells_of_rows(table, counts), cells_of_rows(table, finer)
    kept = (cells >= 0) & (lines >= 0)  # a row without a counted value may be in no cell
    table, cells, lines = table.filter(kept), cells[kept], lines[kept]
    label, labels = _labels(counts, cells, name)
    groups, group = _groups(finer, lines)
    features = read_features(table, label, _feature_options(request, table.column_names), name=name)
    copies = find_duplicates(request, features.values, label, group)
    return Material(
        name=name,
        counts=counts,
        cells=cells,
        groups=groups,
        group=group,
        label=label,
        labels=labels,
        positive=_positive(counts, labels, label[~is_after[kept]], request),
        unit=find_units(table, request, copies),
        features=features,
        is_after=is_after[kept],
        rows_given=given,
        copies=copies,
    )


def _require_columns(table: pa.Table, names: tuple[str, ...], name: str) -> None:
    for column in names:
        if column not in table.column_names:
            raise ColumnNotFound(column, table=name, columns=table.column_names)


def _sampled(
    table: pa.Table, is_after: NDArray[np.bool_], request: EvaluationRequest
) -> tuple[pa.Table, NDArray[np.bool_]]:
    if request.max_rows is None or len(table) <= request.max_rows:
        return table, is_after
    generator = generator_for(request.seed, _SAMPLING)
    places = np.sort(generator.choice(len(table), request.max_rows, replace=False))
    return table.take(places), is_after[places]


def _labels(
    counts: Counts, cells: NDArray[np.int64], name: str
) -> tuple[NDArray[np.int64], tuple[str, ...]]:
    codes = counts.codes[cells, len(counts.sensitive)].astype(np.int64)
    there = np.unique(codes)
    if len(there) < 2:
        only = counts.label.values[there[0]] if len(there) else "nothing"
        raise InputError(
            f"the label {counts.label.name!r} of {name} has one value only, {str(only)!r}; a model "
            "needs at least two."
        )
    labels = tuple(str(counts.label.values[c]) for c in there)
    return np.searchsorted(there, codes).astype(np.int64), labels


def _positive(
    counts: Counts, labels: tuple[str, ...], label: NDArray[np.int64], request: EvaluationRequest
) -> int | None:
    """Find the label that precision and recall refer to: the requested one, or the rarer of two."""
    if request.positive is not None:
        named = as_value(request.positive)
        counts.label.code(named)  # raises an error that lists the labels
        if named not in labels:
            raise InputError(
                f"no row that is used has the label {named!r}; choose another `positive`."
            )
        return labels.index(str(named))
    return int(np.bincount(label, minlength=2).argmin()) if len(labels) == 2 else None


def _groups(finer: Counts, lines: NDArray[np.int64]) -> tuple[tuple[Group, ...], NDArray[np.int64]]:
    width = len(finer.sensitive)
    codes, number = np.unique(finer.codes[:, :width], axis=0, return_inverse=True)
    axes = finer.sensitive
    groups = tuple(
        Group({a.name: a.values[c] for a, c in zip(axes, line, strict=True)})
        for line in codes.tolist()
    )
    return groups, number.ravel()[lines].astype(np.int64)


def _feature_options(request: EvaluationRequest, columns: list[str]) -> FeatureOptions:
    """Leave the label and the unit out of the features, and sensitive attributes if asked."""
    left_out = [request.counting.label, request.keep_together, *request.reading.drop]
    if request.without_sensitive:
        left_out += request.counting.sensitive
    drop = tuple(c for c in dict.fromkeys(left_out) if c in columns)
    return replace(request.reading, drop=drop, na=request.counting.na)
