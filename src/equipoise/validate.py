"""Legal values as data, and one shape of sentence when a value is not legal."""

from __future__ import annotations

import numbers
from collections.abc import Sequence

from equipoise.errors import InputError, did_you_mean


def one_of(name: str, value: object, legal: Sequence[str]) -> None:
    """Refuse a value that is not in the list.

    >>> one_of("missing", "drop", ("group", "drop"))
    """
    if value not in legal:
        raise InputError(
            f"{_said(name)} must be one of {', '.join(map(repr, legal))}, not {value!r}."
            f"{did_you_mean(str(value), legal)}"
        )


def at_least(name: str, value: float, least: float, *, whole: bool = False) -> None:
    """Refuse what is not a number, or below the least, or not whole where it must be.

    >>> at_least("min_count", 30, 1, whole=True)
    """
    a_number(name, value)
    if whole and not float(value).is_integer():
        raise InputError(f"{_said(name)} must be a whole number, not {value}.")
    if not value >= least:
        raise InputError(f"{_said(name)} must be at least {least}, not {value}.")


def between(name: str, value: float, low: float, high: float) -> None:
    """Refuse a number that is not strictly between two bounds.

    >>> between("confidence", 0.95, 0, 1)
    """
    a_number(name, value)
    if not low < value < high:
        raise InputError(f"{_said(name)} must be between {low} and {high}, not {value}.")


def a_number(name: str, value: object) -> None:
    """Refuse what is not a number; nan and truth values are none.

    >>> a_number("k", 0.9)
    """
    is_number = isinstance(value, (int, float, numbers.Real)) and not isinstance(value, bool)
    if not is_number or value != value:
        raise InputError(f"{_said(name)} must be a number, not {value!r}.")


def _said(name: str) -> str:
    """Write a parameter as errors name it, in backquotes; other words stay as they are."""
    return f"`{name}`" if name.isidentifier() else name
