"""How the values of options are written as text: in flags, in addresses of pages and in forms."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from equipoise.errors import InputError
from equipoise.options.declaration import Option


def read_texts(option: Option, texts: Sequence[str]) -> Any:
    """Read the value of an option from its texts, one for each time it was given.

    >>> from equipoise.options import options_of
    >>> from equipoise.options.plan import PlanOptions
    >>> known = {each.name: each for each in options_of(PlanOptions)}
    >>> read_texts(known["cost_add"], ["sex=Female, income=>50K 2.5"])
    [('sex=Female, income=>50K', 2.5)]
    """
    if option.form == "bins":
        return parse_bins(texts)
    if option.form == "pattern numbers":
        return [_pattern_number(option, text) for text in texts]
    if option.form == "numbers":
        return [_number(option, text) for text in texts]
    return list(texts)


def write_texts(option: Option, value: Any) -> list[str]:
    """Write the value of an option as texts, the inverse of :func:`read_texts`.

    >>> from equipoise.options import options_of
    >>> from equipoise.options.count import CountRequest
    >>> known = {each.name: each for each in options_of(CountRequest)}
    >>> write_texts(known["bins"], {"age": (25.0, 45.5), "income": 4})
    ['age=25,45.5', 'income=quantiles:4']
    """
    if value is None:
        return []
    if option.form == "bins":
        return [f"{name}={bin_text(spec)}" for name, spec in value.items()]
    if option.form == "pattern numbers":
        pairs = value.items() if isinstance(value, Mapping) else value
        return [f"{pattern} {number_text(number)}" for pattern, number in pairs]
    if option.is_repeatable:
        listed = [value] if isinstance(value, (str, int, float)) else value
        return [each if isinstance(each, str) else number_text(each) for each in listed]
    if isinstance(value, bool):
        return ["true" if value else "false"]
    return [value if isinstance(value, str) else number_text(value)]


def number_text(number: float) -> str:
    """Write a number as short as possible, so that it is read as the same number.

    >>> number_text(3000.0), number_text(0.1), number_text(5)
    ('3000', '0.1', '5')
    """
    short = f"{number:.15g}"
    return short if float(short) == number else repr(float(number))


def bin_text(spec: Any) -> str:
    """Write the bins of one column.

    >>> bin_text((25, 45.5)), bin_text(4)
    ('25,45.5', 'quantiles:4')
    """
    if isinstance(spec, (list, tuple)):
        return ",".join(map(number_text, spec))
    return f"quantiles:{spec}"


def parse_bins(texts: Iterable[str]) -> dict[str, Any]:
    """Read ``age=25,45,65`` or ``age=quantiles:4``.

    >>> parse_bins(["age=25,45,65", "income=quantiles:4"])
    {'age': (25.0, 45.0, 65.0), 'income': 4}
    """
    bins: dict[str, Any] = {}
    for text in texts:
        name, separator, spec = text.rpartition("=")
        kind, colon, n = spec.partition(":")
        quantiles = bool(colon) and kind.strip() in ("quantiles", "quantile", "q")
        try:
            bins[name] = int(n) if quantiles else tuple(float(e) for e in spec.split(","))
        except ValueError:
            separator = ""
        if not separator:
            raise InputError(
                f"`bins` {text!r} cannot be read; write NAME=EDGES, as in age=25,45,65, or "
                "NAME=quantiles:4."
            )
    return bins


def _pattern_number(option: Option, text: str) -> tuple[str, float]:
    pattern, _, number = text.strip().rpartition(" ")
    if not pattern.strip():
        raise InputError(
            f"`{option.keyword}` takes a pattern and a number, as in 'sex=Female 2', not {text!r}."
        )
    return pattern.strip(), _number(option, number)


def _number(option: Option, text: str) -> float:
    try:
        return float(text.replace(",", "").replace("_", ""))
    except ValueError:
        raise InputError(f"`{option.keyword}` takes a number, not {text!r}.") from None
