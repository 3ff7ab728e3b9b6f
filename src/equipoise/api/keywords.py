"""Keywords of the public functions: an error for a wrong one suggests the right one."""

from __future__ import annotations

import functools
import importlib
import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields, is_dataclass
from typing import Any, ParamSpec, TypeVar

from equipoise.errors import UnknownKeyword

P = ParamSpec("P")
R = TypeVar("R")

SAID_FOR: Mapping[str, tuple[str, ...]] = {
    "sensitive_features": (
        *("sensitive", "sensitive_feature", "sensitive_attribute", "sensitive_attributes"),
        *("sensitive_columns", "sensitive_column", "sensitive_attrs", "protected", "attributes"),
        *("protected_attribute", "protected_attributes", "protected_columns", "protected_features"),
        *("protected_groups", "groups", "group_by", "by"),
    ),
    "label": (
        *("target", "target_column", "outcome", "label_column", "labels", "label_col", "class_"),
        *("y_column", "y_name", "prediction"),
    ),
    "y": ("y_true", "y_pred", "targets"),
    "favourable": (
        *("favorable", "favourable_label", "favorable_label", "favourable_value", "positive"),
        *("favorable_value", "positive_label", "pos_label", "favorable_outcome"),
    ),
    "weight": ("weights", "sample_weight", "sample_weights", "weight_column"),
    "count": ("counts", "count_column", "frequency"),
    "bins": ("bin", "binning"),
    "na": ("na_values", "missing_values"),
    "data": ("df", "frame", "table", "dataset", "path", "source"),
    "min_count": ("min_rows", "min_size", "min_n", "minimum"),
    "sql": ("query",),
    "max_abs_ub": ("max_ub", "threshold", "max_bias"),
}
"""Names that other libraries use for a keyword."""


def answering(function: Callable[P, R], *onward: Callable[..., Any] | str) -> Callable[P, R]:
    """Give the function with a check of its keywords; the error for an unknown one suggests others.

    Parameters
    ----------
    function
        Function that may pass keywords on.
    onward
        What it passes them to: functions, or dataclasses as ``module:name``, which are imported
        only if a keyword is not known otherwise.

    Examples
    --------
    >>> def measure(*, sensitive_features=None, label=None): ...
    >>> answering(measure)(sensitive=["sex"])
    Traceback (most recent call last):
    equipoise.errors.UnknownKeyword: measure() has no keyword 'sensitive'; it is called sensitive_features.
    """
    own = frozenset(_named(function))

    @functools.wraps(function)
    def answered(*args: P.args, **keywords: P.kwargs) -> R:
        if not own.issuperset(keywords):
            _refuse_unknown(function.__name__, keywords, _known(function, onward))
        return function(*args, **keywords)

    answered.__module__ = "equipoise.api"
    answered.onward = onward  # type: ignore[attr-defined]
    return answered


def _refuse_unknown(function: str, keywords: Iterable[str], known: tuple[str, ...]) -> None:
    for name in keywords:
        if name not in known:
            meant = next((k for k, said in SAID_FOR.items() if name.lower() in said), None)
            raise UnknownKeyword(name, function, known, meant if meant in known else None)


def _known(
    function: Callable[..., Any], onward: Iterable[Callable[..., Any] | str]
) -> tuple[str, ...]:
    """All keywords of a function, and of those it passes keywords to."""
    known = _named(function)
    for other in onward:
        target = _loaded(other) if isinstance(other, str) else other
        if inspect.isclass(target) and is_dataclass(target):
            known += [field.name for field in fields(target)]
        else:
            known += _known(target, getattr(target, "onward", ()))
    return tuple(dict.fromkeys(known))


def _named(function: Callable[..., Any]) -> list[str]:
    parameters = inspect.signature(function).parameters.values()
    return [p.name for p in parameters if p.kind is not inspect.Parameter.VAR_KEYWORD]


def _loaded(place: str) -> Any:
    module, _, name = place.partition(":")
    return getattr(importlib.import_module(module), name)
