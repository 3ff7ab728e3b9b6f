"""Sensitive features as they stand beside labels: columns of many kinds, each with a name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from equipoise.errors import InputError


def feature_columns(features: Any) -> dict[str, Any]:
    """Give sensitive features as columns with names, whatever they came as.

    Parameters
    ----------
    features
        A frame, a mapping of columns, an array of one or two dimensions, a series, or a list of
        any of them with one dimension. What has no name is called ``feature_0`` and so on.

    Examples
    --------
    >>> feature_columns({"sex": ["m", "w"]})
    {'sex': ['m', 'w']}
    >>> list(feature_columns([["m", "w"], ["b", "b"]]))
    ['feature_0', 'feature_1']
    """
    if isinstance(features, Mapping):
        return _named(features.items())
    if hasattr(features, "columns"):
        is_arrow = type(features).__module__.startswith("pyarrow")  # whose columns are no names
        names = list(features.column_names if is_arrow else features.columns)
        _refuse_equal([str(name) for name in names])
        return {str(name): features[name] for name in names}
    if getattr(features, "ndim", 1) == 2:
        return {f"feature_{i}": features[:, i] for i in range(features.shape[1])}
    if isinstance(features, (list, tuple)) and features and _is_column(features[0]):
        return _named((_name(each, i), each) for i, each in enumerate(features))
    return {_name(features, 0): features}


def _name(column: Any, position: int) -> str:
    return str(getattr(column, "name", None) or f"feature_{position}")


def _named(columns: Iterable[tuple[Any, Any]]) -> dict[str, Any]:
    listed = [(str(name), column) for name, column in columns]
    _refuse_equal([name for name, _ in listed])
    return dict(listed)


def _refuse_equal(names: list[str]) -> None:
    """Refuse columns of one name, of which all but one would be lost."""
    for name in names:
        if names.count(name) > 1:
            raise InputError(
                f"{names.count(name)} sensitive features are called {name!r}; give each a name of "
                "its own."
            )


def _is_column(item: Any) -> bool:
    return hasattr(item, "__len__") and not isinstance(item, (str, bytes))
