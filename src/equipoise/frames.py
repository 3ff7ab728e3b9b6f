"""Tables in memory, of any type: take rows, stack them, name and select columns.

A table is a NumPy array, a SciPy sparse matrix, a frame or series of pandas, polars or Arrow, or a
list. Results have the type of the input.
"""

from __future__ import annotations

import numbers
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise.errors import ColumnNotFound, InputError
from equipoise.plain import in_words
from equipoise.values import MISSING, as_value

if TYPE_CHECKING:
    from numpy.typing import NDArray

_LIBRARIES = ("pandas", "polars", "pyarrow")


def indexable(X: Any) -> Any:
    """Return data of a supported type unchanged, and anything else as an array."""
    known = _library(X) or _is_sparse(X) or isinstance(X, (np.ndarray, list, tuple))
    return X if known else np.asarray(X)


def row_count(X: Any) -> int:
    """Return the number of rows of a table, or of values of a column."""
    shape = getattr(X, "shape", None)
    if shape:
        return int(shape[0])
    if shape is not None or not hasattr(X, "__len__"):
        raise InputError(f"{X!r} is a single value and has no rows; give one for each row.")
    return len(X)


def flat(y: Any) -> Any:
    """Return labels as one column; of several columns, the position of the largest value."""
    if np.ndim(y) != 2:
        return y
    wide = np.asarray(y)
    return wide.ravel() if wide.shape[1] == 1 else wide.argmax(axis=1)


# ------------------------------------------------------------------------------------- columns


def column_names(X: Any) -> list[Any]:
    """Return the names of the columns of a frame; anything else has none."""
    if not _library(X):
        return []
    return list(X.column_names if _library(X) == "pyarrow" else X.columns)


def column_at(X: Any, position: int) -> Any:
    """Return one column of a table, by its position."""
    if isinstance(X, (list, tuple)):
        return [row[position] for row in X]
    if _is_sparse(X):
        return X.tocsc()[:, [position]].toarray().ravel()
    library = _library(X)
    if library == "pandas":
        return X.iloc[:, position]
    if library == "polars":
        return X.to_series(position)
    return X.column(position) if library == "pyarrow" else X[:, position]


def pick_columns(X: Any, wanted: Any) -> dict[str, Any]:
    """Select columns by name, or by position where no column has that name.

    Columns without a name are called ``x0``, ``x1`` and so on.
    """
    wanted = [wanted] if isinstance(wanted, (str, numbers.Integral)) else list(wanted)
    names = column_names(X)
    width = len(names) or _width(X)
    found = {}
    for each in wanted:
        if each in names:
            position = names.index(each)
        elif is_whole(each) and -width <= each < width:
            position = int(each) % width
        elif names:
            raise ColumnNotFound(str(each), table="X", columns=map(str, names))
        else:
            raise InputError(
                f"there is no column {each!r}, because X has no column names; use positions from 0 "
                f"to {width - 1}."
            )
        found[str(names[position]) if names else f"x{position}"] = column_at(X, position)
    return found


def align_columns(theirs: Any, X: Any) -> Any:
    """Select the columns of a pool that the data has, in the order of the data."""
    library = _library(X)
    if library != _library(theirs):
        raise InputError(
            f"X is {_kind(X)}, but the X of the pool is {_kind(theirs)}; use the same type for both."
        )
    if not library:
        widths = [_width(each) for each in (X, theirs) if row_count(each)]
        if len(set(widths)) > 1:
            raise InputError(
                f"X has {widths[0]:,} columns, but the X of the pool has {widths[1]:,}."
            )
        return theirs
    names, there = column_names(X), column_names(theirs)
    if names == there:
        return theirs
    lacking = [repr(name) for name in names if name not in there]
    if lacking:
        raise InputError(
            f"the pool does not have {in_words(lacking)} of X; it has: {', '.join(map(str, there))}."
        )
    if len(set(names)) < len(names) or len(set(there)) < len(there):
        raise InputError("columns with the same name cannot be matched with the pool; rename them.")
    return theirs[names] if library == "pandas" else theirs.select(names)


def feature_columns(features: Any) -> dict[str, Any]:
    """Return sensitive features as named columns, whatever type they were given as.

    They may be a frame, a mapping of columns, an array of one or two dimensions, a series, or a
    list of these with one dimension. Columns without a name are called ``feature_0`` and so on.

    >>> feature_columns({"sex": ["m", "w"]})
    {'sex': ['m', 'w']}
    >>> list(feature_columns([["m", "w"], ["b", "b"]]))
    ['feature_0', 'feature_1']
    """
    if isinstance(features, Mapping):
        names, columns = list(features), iter(features.values())
    elif hasattr(features, "columns"):  # in Arrow tables these are the data, not the names
        names = column_names(features) or list(features.columns)
        # Lazily, since Arrow cannot return one of several columns with the same name.
        columns = (features[name] for name in names)
    elif getattr(features, "ndim", 1) == 2:
        names = [f"feature_{i}" for i in range(features.shape[1])]
        columns = (features[:, i] for i in range(features.shape[1]))
    else:
        several = isinstance(features, (list, tuple)) and features and _is_column(features[0])
        given = features if several else [features]
        names = [getattr(c, "name", None) or f"feature_{i}" for i, c in enumerate(given)]
        columns = iter(given)
    names = list(map(str, names))
    for name in names:
        if names.count(name) > 1:
            raise InputError(
                f"{names.count(name)} sensitive features are called {name!r}; rename all but one."
            )
    return dict(zip(names, columns, strict=True))


def _is_column(item: Any) -> bool:
    return hasattr(item, "__len__") and not isinstance(item, (str, bytes))


def is_whole(raw: Any) -> bool:
    """Return whether a value is a whole number; true and false are not.

    >>> is_whole(np.int8(3)), is_whole(3.0), is_whole(True)
    (True, False, False)
    """
    return isinstance(raw, numbers.Integral) and not isinstance(raw, bool)


# ---------------------------------------------------------------------------------------- rows


def take_rows(X: Any, rows: NDArray[np.int64]) -> Any:
    """Take rows of a table, or values of a column, by position."""
    X = indexable(X)
    if isinstance(X, (list, tuple)):
        return [X[row] for row in rows.tolist()]
    if _is_sparse(X):
        return X.tocsr()[rows].asformat(X.format)
    return X.take(rows) if _library(X) in ("pandas", "pyarrow") else X[rows]


def with_index_of(y: Any, X: Any) -> Any:
    """Give pandas labels the index of the features, or a new one; return others unchanged."""
    if not hasattr(y, "iloc"):
        return y
    return y.set_axis(X.index) if hasattr(X, "iloc") else y.reset_index(drop=True)


def stack_rows(given: Any, added: Any) -> Any:
    """Append rows of a pool to the given rows, with the types of the given rows."""
    library = _library(given)
    if library:
        return _STACKS[library](given, added)
    if _is_sparse(given):
        return _stacked_sparse(given, added)
    added = added.toarray() if _is_sparse(added) else added
    if isinstance(given, np.ndarray):
        return _stacked_arrays(given, added)
    return [*given, *(added.tolist() if isinstance(added, np.ndarray) else added)]


def _stacked_sparse(given: Any, added: Any) -> Any:
    from scipy import sparse

    added = type(given.tocsr())(added)
    added = added.astype(_fitting(added.data, added.data.astype, given.dtype, "X").dtype)
    return sparse.vstack([given.tocsr(), added], format=given.format)


def _stacked_arrays(given: NDArray[Any], added: Any) -> NDArray[Any]:
    added = np.asarray(added, dtype=object if given.dtype == object else None)
    if given.dtype.kind == added.dtype.kind and given.dtype.kind in "SU":
        return np.concatenate([given, added])  # the longer strings decide the width
    values = added.ravel()
    fitting = _fitting(values, values.astype, given.dtype, "X")
    return np.concatenate([given, fitting.reshape(added.shape)])


def _stacked_pandas(given: Any, added: Any) -> Any:
    import pandas as pd

    given, added = given.copy(deep=False), added.copy(deep=False)
    for i, (name, dtype) in enumerate(zip(given.columns, given.dtypes, strict=True)):
        column = added.iloc[:, i]
        if column.dtype == dtype:
            continue
        kind = dtype
        if isinstance(dtype, pd.CategoricalDtype) and not dtype.ordered:
            new = [v for v in column.dropna().unique() if v not in dtype.categories]
            kind = pd.CategoricalDtype([*dtype.categories, *new])
            given.isetitem(i, given.iloc[:, i].astype(kind))
        added.isetitem(i, _fitting(column, column.astype, kind, name))
    return pd.concat([given, added])


def _stacked_polars(given: Any, added: Any) -> Any:
    import polars as pl

    fitting = [_fitting(added[n], added[n].cast, kind, n) for n, kind in given.schema.items()]
    return pl.concat([given, added.with_columns(fitting)])


def _stacked_arrow(given: Any, added: Any) -> Any:
    import pyarrow as pa

    fitting = [_fitting(added[f.name], added[f.name].cast, f.type, f.name) for f in given.schema]
    return pa.concat_tables([given, pa.table(fitting, schema=given.schema)])


_STACKS = {"pandas": _stacked_pandas, "polars": _stacked_polars, "pyarrow": _stacked_arrow}


def _fitting(column: Any, cast: Callable[[Any], Any], kind: Any, name: Any) -> Any:
    """Convert a column of the pool to its type in the data, if that changes no value."""
    own = column.type if _library(column) == "pyarrow" else column.dtype
    if own == kind:
        return column
    try:
        with np.errstate(all="ignore"):  # values that overflow are found below, as changed values
            converted = cast(kind)
    except Exception:  # noqa: BLE001 (each library raises different errors for the same thing)
        converted = None
    if converted is None or not all(map(_same, _values(column), _values(converted))):
        raise InputError(
            f"{name!r} has the type {kind} in the data and {own} in the pool, and some values of the "
            "pool cannot be converted; use the same type for both."
        )
    return converted


def _values(column: Any) -> list[Any]:
    return list(column.to_pylist() if _library(column) == "pyarrow" else column)


def _same(before: Any, after: Any) -> bool:
    missing = [as_value(value) is MISSING for value in (before, after)]
    if any(missing):
        return all(missing)
    if isinstance(before, (float, np.floating)) and isinstance(after, (float, np.floating)):
        return bool(np.isfinite(before) == np.isfinite(after))  # rounding is allowed
    return bool(before == after)


# --------------------------------------------------------------------------------------- kinds


def _library(X: Any) -> str:
    """The frame library that the type of the data comes from, or ``""``."""
    roots = (kind.__module__.partition(".")[0] for kind in type(X).__mro__)
    return next((root for root in roots if root in _LIBRARIES), "")


def _is_sparse(X: Any) -> bool:
    from scipy import sparse

    return bool(sparse.issparse(X))


def _kind(X: Any) -> str:
    return f"a frame of {_library(X)}" if _library(X) else f"a {type(X).__name__}"


def _width(X: Any) -> int:
    shape = np.shape(X)
    if len(shape) != 2:
        raise InputError(f"{_kind(X)} of {len(shape)}D has no columns; use a 2D table.")
    return int(shape[1])
