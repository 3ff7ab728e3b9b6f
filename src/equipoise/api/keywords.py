"""Keywords of the public functions: an error for a wrong one suggests the right one."""

from __future__ import annotations

import dataclasses
import functools
import inspect
import textwrap
from collections.abc import Callable, Iterable, Mapping
from typing import Any, ParamSpec, TypeVar

from equipoise.errors import UnknownKeyword
from equipoise.options import describe_keywords, keyword_fields, keyword_type

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


def takes(
    *requests: type, but: Iterable[str] = (), **defaults: Any
) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Give a function the keywords of requests: it shows and describes them, and refuses others.

    Its own ``defaults`` replace those of the requests.

    >>> @takes()
    ... def measure(*, sensitive_features=None, label=None, **options): ...
    >>> measure(sensitive=["sex"])
    Traceback (most recent call last):
    equipoise.errors.UnknownKeyword: measure() has no keyword 'sensitive'; it is called sensitive_features.
    """

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        signature = inspect.signature(function)
        own = [p for p in signature.parameters.values() if p.kind is not p.VAR_KEYWORD]
        others = [
            p.replace(default=defaults.get(p.name, p.default))
            for request in requests
            for p in _parameters(request)
            if p.name not in but
        ]
        known: dict[str, inspect.Parameter] = {}
        for parameter in (*own, *others):
            known.setdefault(parameter.name, parameter)  # its own, before those of requests

        # Checked here, since Python would first report required arguments that are missing.
        @functools.wraps(function)
        def checked(*args: P.args, **keywords: P.kwargs) -> R:
            for name in keywords:
                if name not in known:
                    _refuse(name, function.__name__, tuple(known))
            return function(*args, **keywords)

        checked.__signature__ = signature.replace(parameters=list(known.values()))  # type: ignore[attr-defined]
        names = {p.name for p in own}.union(but)
        described = {k: v for r in requests for k, v in describe_keywords(r).items()}
        checked.__doc__ = _with_options(
            function.__doc__ or "", [text for k, text in described.items() if k not in names]
        )
        return checked

    return decorate


def _parameters(request: type) -> Iterable[inspect.Parameter]:
    for keyword, field in keyword_fields(request).items():
        # Default factories make empty values; the signature shows None instead.
        default = None if field.default is dataclasses.MISSING else field.default
        yield inspect.Parameter(
            keyword, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=keyword_type(field)
        )


def _with_options(docstring: str, described: list[str]) -> str:
    """Describe the options after the other parameters, before notes and examples."""
    section = "\n".join(["Other Parameters", "-" * 16, *described])
    text = textwrap.indent(section, "    ")
    heads = [docstring.find(f"\n    {head}\n    --") for head in ("Raises", "Notes", "Examples")]
    place = min((at for at in heads if at >= 0), default=len(docstring.rstrip()))
    return f"{docstring[:place].rstrip()}\n\n{text}\n{docstring[place:]}"


def _refuse(name: str, function: str, known: tuple[str, ...]) -> None:
    meant = next((k for k, said in SAID_FOR.items() if name.lower() in said), None)
    raise UnknownKeyword(name, function, known, meant if meant in known else None)
