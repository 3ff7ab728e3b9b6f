"""Checks of values. All errors have one form: what a parameter must be, and what was given."""

from __future__ import annotations

import math
import numbers
import os
from collections.abc import Sequence
from typing import Any

from equipoise.errors import InputError, did_you_mean


def one_of(name: str, value: object, legal: Sequence[str]) -> None:
    """Refuse a value that is not in the list."""
    if value not in legal:
        raise InputError(
            f"{_written(name)} must be one of {', '.join(map(repr, legal))}, not {value!r}."
            f"{did_you_mean(str(value), legal)}"
        )


def a_name(name: str, value: object, what: str) -> None:
    """Refuse what is neither a path nor an address, such as a connection.

    >>> a_name("output", (1, "people"), "a file, or an address such as spark:people")
    Traceback (most recent call last):
    equipoise.errors.InputError: `output` must be a file, or an address such as spark:people, not of the type tuple.
    """
    if not isinstance(value, (str, os.PathLike)):
        raise InputError(
            f"{_written(name)} must be {what}, not of the type {type(value).__name__}."
        )


def a_number(
    name: str,
    value: Any,
    *,
    whole: bool = False,
    at_least: float | None = None,
    above: float | None = None,
    at_most: float | None = None,
    below: float | None = None,
) -> None:
    """Refuse what is not a number within bounds; nan and truth values are not numbers.

    >>> a_number("k", 0, whole=True, at_least=1)
    Traceback (most recent call last):
    equipoise.errors.InputError: `k` must be a whole number of at least 1, not 0.
    """
    is_number = isinstance(value, (int, float, numbers.Real)) and not isinstance(value, bool)
    if (
        is_number
        and value == value
        and (not whole or float(value).is_integer())
        and (at_least is None or value >= at_least)
        and (above is None or value > above)
        and (at_most is None or value <= at_most)
        and (below is None or value < below)
    ):
        return
    wanted = number_text(whole=whole, at_least=at_least, above=above, at_most=at_most, below=below)
    raise InputError(
        f"{_written(name)} must be {wanted}, not {value if is_number else repr(value)}."
    )


def number_text(*, whole: bool, **bounds: float | None) -> str:
    """Describe a number within bounds, as errors and tables do.

    >>> number_text(whole=False, above=0, below=1)
    'a number above 0 and below 1'
    """
    words = {"at_least": "of at least", "above": "above", "at_most": "of at most", "below": "below"}
    given = {words[name]: bound for name, bound in bounds.items() if bound is not None}
    # An infinite bound only excludes infinity.
    finite = "finite " if math.inf in given.values() else ""
    limits = [f"{word} {_bound(v)}" for word, v in given.items() if math.isfinite(v)]
    return " ".join([f"a {finite}{'whole ' if whole else ''}number", " and ".join(limits)]).rstrip()


def at_least(name: str, value: float, least: float, *, whole: bool = False) -> None:
    """Refuse what is not a number of at least the given bound."""
    a_number(name, value, whole=whole, at_least=least)


def between(name: str, value: float, low: float, high: float) -> None:
    """Refuse what is not a number strictly between two bounds."""
    a_number(name, value, above=low, below=high)


def _bound(value: float) -> str:
    return f"{value:,.0f}" if float(value).is_integer() else f"{value:g}"


def _written(name: str) -> str:
    """Write a parameter as errors name it, in backquotes; other words stay as they are."""
    return f"`{name}`" if name.isidentifier() else name
