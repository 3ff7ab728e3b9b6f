"""A pool of rows that can be added, counted by the sensitive features of the data."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise.counts import CountRequest, Counts
from equipoise.engines.sources import locate
from equipoise.errors import InputError
from equipoise.estimators._rows import EVERYBODY, CountedRows, given_columns
from equipoise.frames import (
    align_columns,
    column_at,
    column_names,
    flat,
    indexable,
    pick_columns,
    row_count,
)
from equipoise.plain import counted, in_words
from equipoise.values import MISSING

if TYPE_CHECKING:
    import pyarrow as pa

_NAMELESS = re.compile(r"(feature_|x)\d+")  # names that columns without one were given


def count_pool(parts: Sequence[Any], given: CountedRows, *, names: Any = None) -> CountedRows:
    """Count the rows of a pool by the sensitive features of the data, and align its features.

    ``names`` are the names or positions of the sensitive features, if they are columns of the data.

    Examples
    --------
    >>> from equipoise.estimators._rows import count_rows
    >>> given = count_rows([1, 0], {"sex": ["m", "w"]}, X=[[5], [6]])
    >>> count_pool(([[7], [8], [9]], [1, 1, 0], ["w", "m", "w"]), given).counts.of("sex=w")
    2
    """
    if len(parts) not in (2, 3):
        raise InputError(
            f"`pool` must be (X, y) or (X, y, sensitive_features), and has {counted(len(parts), 'part')}."
        )
    X, labels = indexable(parts[0]), flat(parts[1])
    columns = _pool_columns(X, parts[2:], given.sensitive, names)
    lengths = {row_count(part) for part in (X, labels, *columns.values())}
    if len(lengths) > 1:
        raise InputError(f"the parts of `pool` must have the same length, not {sorted(lengths)}.")
    *axes, label = given.table.column_names
    columns = columns or {axes[0]: np.full(row_count(X), EVERYBODY)}
    table = _with_number_types_of(locate({**columns, label: labels}).data, given.table)
    counts = Counts.from_arrow(table, CountRequest(sensitive=tuple(axes), label=label))
    _require_common_values(counts, given.counts)
    return CountedRows(table, counts, given.sensitive, align_columns(X, given.X))


def _require_common_values(pool: Counts, given: Counts) -> None:
    """Refuse a pool that spells the values of a feature or of the label differently."""
    for theirs, ours in zip(pool.axes, given.axes, strict=True):
        one, other = ({*axis.values} - {MISSING} for axis in (theirs, ours))
        if one and other and not one & other:
            shown = [", ".join(sorted(map(str, values))[:5]) for values in (one, other)]
            raise InputError(
                f"{ours.name!r} has no value in common: {shown[0]} in the pool, {shown[1]} in the data; "
                "write them the same way."
            )


def _pool_columns(
    X: Any, features: Sequence[Any], sensitive: Sequence[str], names: Any
) -> dict[str, Any]:
    """Return the sensitive features of a pool under the names that the data has."""
    if not sensitive:
        return {}
    if features:
        return _matched(given_columns(features[0]), sensitive)
    there = {str(name): i for i, name in enumerate(column_names(X))}
    if not there and names is not None:
        return dict(zip(sensitive, pick_columns(X, names).values(), strict=True))
    lacking = [repr(name) for name in sensitive if name not in there]
    if lacking:
        has = f"which has the columns {', '.join(there)}" if there else "which has no column names"
        raise InputError(
            f"the sensitive features {in_words(lacking)} are not found in the pool, {has}; provide "
            "them as a third part, `pool=(X, y, sensitive_features)`."
        )
    return {name: column_at(X, there[name]) for name in sensitive}


def _matched(theirs: dict[str, Any], names: Sequence[str]) -> dict[str, Any]:
    """Match features by name, or by position if one side has no names."""
    if set(theirs) == set(names):
        return {name: theirs[name] for name in names}
    by_position = any(all(map(_NAMELESS.fullmatch, side)) for side in (theirs, names))
    if len(theirs) == len(names) and by_position:
        return dict(zip(names, theirs.values(), strict=True))
    raise InputError(
        f"the sensitive features of the pool are {in_words(list(theirs))}, those of the data "
        f"{in_words(list(names))}; provide the same ones."
    )


def _with_number_types_of(theirs: pa.Table, ours: pa.Table) -> pa.Table:
    """Give numbers the types of the data: values become text, where 1, 1.0 and true differ."""
    import pyarrow.compute as pc
    from pyarrow import float64, scalar, types

    def is_number(kind: Any) -> bool:
        return any(test(kind) for test in (types.is_boolean, types.is_integer, types.is_floating))

    for i, field in enumerate(ours.schema):
        column = theirs[field.name]
        if column.type != field.type and is_number(column.type) and is_number(field.type):
            cast = column.cast(field.type, safe=False)
            same = pc.equal(cast.cast(float64(), safe=False), column.cast(float64(), safe=False))
            known = pc.if_else(same, cast, scalar(None, field.type))  # others belong to no cell
            theirs = theirs.set_column(i, field.name, known)
    return theirs
