"""Given rows in memory, counted by cell."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise.counts import CountRequest, Counts
from equipoise.engines.sources import locate
from equipoise.errors import InputError
from equipoise.frames import feature_columns, pick_columns, row_count
from equipoise.plain import rows_text

if TYPE_CHECKING:
    import pyarrow as pa


EVERYBODY = "all"
"""Name of the single group of rows without sensitive features."""


@dataclass(frozen=True, eq=False)
class CountedRows:
    """Rows in memory, counted by their sensitive features and their label."""

    table: pa.Table  # sensitive features and label
    counts: Counts
    sensitive: tuple[str, ...]  # names; empty if all rows are one group
    X: Any = None  # features, of a type that equipoise.frames handles

    @property
    def n(self) -> int:
        """Number of rows."""
        return len(self.table)


def sensitive_columns(
    features: Any, rows: int, *, X: Any = None, names: Any = None
) -> dict[str, Any]:
    """Return sensitive features as named columns, from a separate argument or from ``X``.

    Examples
    --------
    >>> sensitive_columns(["m", "w"], 2)
    {'feature_0': ['m', 'w']}
    >>> sensitive_columns(None, 2, X=[["m", 1], ["w", 2]], names=[0])
    {'x0': ['m', 'w']}
    """
    if features is None and names is None:
        return {}
    if features is not None and names is not None:
        raise InputError("use either `sensitive_features` or `sensitive_columns`, not both.")
    columns = pick_columns(X, names) if features is None else given_columns(features)
    if not columns:
        raise InputError("the sensitive features have no column; provide at least one.")
    for name, column in columns.items():
        if row_count(column) != rows:
            raise InputError(
                f"the sensitive feature {name!r} has {rows_text(row_count(column))} and the data "
                f"has {rows:,}; provide a value for each row."
            )
    return columns


def given_columns(features: Any) -> dict[str, Any]:
    """Read sensitive features, and refuse the name of a column."""
    if isinstance(features, str):
        raise InputError(
            "`sensitive_features` are the columns themselves; to name columns of X use "
            f"`sensitive_columns=[{features!r}]`."
        )
    return feature_columns(features)


def count_rows(
    labels: Any,
    columns: Mapping[str, Any],
    *,
    X: Any = None,
    label: Any = None,
    weight: Any = None,
) -> CountedRows:
    """Count rows by their sensitive features and labels; without features they are one group.

    Examples
    --------
    >>> count_rows([1, 0, 1], {"sex": ["m", "w", "w"]}).counts.of("sex=w, label=1")
    1
    """
    sensitive = tuple(columns)
    columns = columns or {"group": np.full(row_count(labels), EVERYBODY)}
    label = _unused(label if isinstance(label, str) and label else "label", columns)
    table, weight_name = locate({**columns, label: labels}).data, None
    if weight is not None:
        weight_name = _unused("weight", table.column_names)
        table = table.append_column(weight_name, [np.asarray(weight, np.float64)])
    request = CountRequest(sensitive=tuple(columns), label=label, weight=weight_name)
    return CountedRows(table, Counts.from_arrow(table, request), sensitive, X)


def _unused(name: str, taken: Iterable[str]) -> str:
    while name.casefold() in {other.casefold() for other in taken}:
        name += "_"
    return name
