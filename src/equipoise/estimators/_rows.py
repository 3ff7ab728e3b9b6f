"""Rows as they are given, and a pool like them, counted by cell."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise.counts import CountRequest, Counts
from equipoise.counts.features import feature_columns
from equipoise.engines.sources import locate
from equipoise.errors import InputError
from equipoise.frames import (
    align_columns,
    column_at,
    column_names,
    flat,
    indexable,
    pick_columns,
    row_count,
)
from equipoise.plain import rows_text, sentences
from equipoise.values import MISSING

if TYPE_CHECKING:
    import pyarrow as pa


_EVERYBODY = "all"
_NAMELESS = re.compile(r"(feature_|x)\d+")


@dataclass(frozen=True, eq=False)
class CountedRows:
    """Rows in memory, counted by their sensitive features and their label.

    Attributes
    ----------
    table
        The sensitive features and the label.
    counts
        The rows of each cell.
    sensitive
        The names of the sensitive features; none where all rows are one group.
    X
        The other features, of a kind that :mod:`equipoise.frames` knows.
    """

    table: pa.Table
    counts: Counts
    sensitive: tuple[str, ...]
    X: Any = None

    @property
    def n(self) -> int:
        """How many rows there are."""
        return len(self.table)


def sensitive_columns(
    features: Any, rows: int, *, X: Any = None, names: Any = None
) -> dict[str, Any]:
    """Give sensitive features as columns with names, from beside the features or among them.

    Parameters
    ----------
    features
        The columns themselves, as :func:`~equipoise.counts.features.feature_columns` takes them.
    rows
        How many rows there are.
    X, names
        Or the features, and the names or positions of the sensitive ones.

    Returns
    -------
    columns
        None of them if neither is given.

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
        raise InputError("give either sensitive_features or sensitive_columns, not both.")
    columns = pick_columns(X, names) if features is None else _given_columns(features)
    if not columns:
        raise InputError("there is no column among the sensitive features; give at least one.")
    for name, column in columns.items():
        if row_count(column) != rows:
            raise InputError(
                f"the sensitive feature {name!r} has {rows_text(row_count(column))} and the data "
                f"has {rows:,}; give a value for each row."
            )
    return columns


def _given_columns(features: Any) -> dict[str, Any]:
    if isinstance(features, str):
        raise InputError(
            "sensitive_features are the columns themselves; to name columns of X use "
            f"sensitive_columns=[{features!r}]."
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
    """Count rows by their sensitive features and labels.

    Parameters
    ----------
    labels
        The label of each row.
    columns
        The sensitive features; without any all rows are of one group.
    X
        The other features, if rows are to be taken.
    label
        What the label is called, if it has a name.
    weight
        A weight per row.

    Examples
    --------
    >>> count_rows([1, 0, 1], {"sex": ["m", "w", "w"]}).counts.of("sex=w, label=1")
    1
    """
    sensitive = tuple(columns)
    columns = columns or {"group": np.full(row_count(labels), _EVERYBODY)}
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


def count_pool(parts: Sequence[Any], given: CountedRows, *, names: Any = None) -> CountedRows:
    """Count the rows of a pool by the sensitive features of the data, and align its features.

    Parameters
    ----------
    parts
        ``(X, y)``, or ``(X, y, sensitive_features)`` where ``X`` has no columns of their names.
    given
        The data.
    names
        The names or positions of the sensitive features, if they were picked from the data.

    Raises
    ------
    InputError
        If the pool cannot be used with the data.

    Examples
    --------
    >>> given = count_rows([1, 0], {"sex": ["m", "w"]}, X=[[5], [6]])
    >>> count_pool(([[7], [8], [9]], [1, 1, 0], ["w", "m", "w"]), given).counts.of("sex=w")
    2
    """
    if len(parts) not in (2, 3):
        raise InputError(
            f"a pool is (X, y) or (X, y, sensitive_features), and this one has {len(parts)} parts."
        )
    X, labels = indexable(parts[0]), flat(parts[1])
    columns = _pool_columns(X, parts[2:], given.sensitive, names)
    lengths = {row_count(part) for part in (X, labels, *columns.values())}
    if len(lengths) > 1:
        raise InputError(f"the parts of a pool must be of one length, not {sorted(lengths)}.")
    *axes, label = given.table.column_names
    columns = columns or {axes[0]: np.full(row_count(X), _EVERYBODY)}
    table = _numbers_alike(locate({**columns, label: labels}).data, given.table)
    counts = Counts.from_arrow(table, CountRequest(sensitive=tuple(axes), label=label))
    _require_common_values(counts, given.counts)
    return CountedRows(table, counts, given.sensitive, align_columns(X, given.X))


def _require_common_values(pool: Counts, given: Counts) -> None:
    """Refuse a pool that writes the values of a feature or the label in another way."""
    for theirs, ours in zip(pool.axes, given.axes, strict=True):
        one, other = ({*axis.values} - {MISSING} for axis in (theirs, ours))
        if one and other and not one & other:
            told = [", ".join(sorted(map(str, values))[:5]) for values in (one, other)]
            raise InputError(
                f"{ours.name!r} has no value in common: {told[0]} in the pool, {told[1]} in the data; "
                "write them alike."
            )


def _pool_columns(
    X: Any, features: Sequence[Any], sensitive: Sequence[str], names: Any
) -> dict[str, Any]:
    """The sensitive features of a pool, by the names of those given."""
    if not sensitive:
        return {}
    if features:
        return _matched(_given_columns(features[0]), sensitive)
    there = {str(name): i for i, name in enumerate(column_names(X))}
    if not there and names is not None:
        return dict(zip(sensitive, pick_columns(X, names).values(), strict=True))
    lacking = [repr(name) for name in sensitive if name not in there]
    if lacking:
        has = f"its columns are {', '.join(there)}" if there else "it has no names of columns"
        raise InputError(
            f"the sensitive features {sentences(lacking)} are not found in the pool, {has}; give "
            "them as a third part, pool=(X, y, sensitive_features)."
        )
    return {name: column_at(X, there[name]) for name in sensitive}


def _matched(theirs: dict[str, Any], names: Sequence[str]) -> dict[str, Any]:
    """Features by name, or by position where one side has none."""
    if set(theirs) == set(names):
        return {name: theirs[name] for name in names}
    by_position = any(all(map(_NAMELESS.fullmatch, side)) for side in (theirs, names))
    if len(theirs) == len(names) and by_position:
        return dict(zip(names, theirs.values(), strict=True))
    raise InputError(
        f"the sensitive features of the pool are {sentences(list(theirs))}, those of the data "
        f"{sentences(list(names))}; give the same ones."
    )


def _numbers_alike(theirs: pa.Table, ours: pa.Table) -> pa.Table:
    """Numbers of the type they have in the data: values are text, and 1 is not 1.0 nor true."""
    import pyarrow.compute as pc
    from pyarrow import float64, scalar, types

    def is_number(kind: Any) -> bool:
        return any(test(kind) for test in (types.is_boolean, types.is_integer, types.is_floating))

    for i, field in enumerate(ours.schema):
        column = theirs[field.name]
        if column.type != field.type and is_number(column.type) and is_number(field.type):
            cast = column.cast(field.type, safe=False)
            same = pc.equal(cast.cast(float64(), safe=False), column.cast(float64(), safe=False))
            known = pc.if_else(same, cast, scalar(None, field.type))  # others are of no cell
            theirs = theirs.set_column(i, field.name, known)
    return theirs
