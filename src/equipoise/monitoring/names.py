"""The names of streams and batches, and their tags: what they may be, and when two are the same."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from equipoise.errors import InputError
from equipoise.monitoring.moments import short

_LONGEST = 200
"""Maximum number of characters of a name."""


def stream_name(name: Any) -> str:
    """Check the name of a stream; return it in the composed form of Unicode.

    >>> stream_name(" loans")
    Traceback (most recent call last):
    equipoise.errors.InputError: the name of a stream must not begin or end with a space, as ' loans' does.
    """
    return unicodedata.normalize("NFC", _name(name, "the name of a stream"))


def batch_name(name: Any) -> str:
    """Check the id of a batch."""
    return _name(name, "the id of a batch")


def folded(name: str) -> str:
    """Write a name as it is compared with others: without case, and in the composed form of Unicode.

    >>> folded("Straße") == folded("STRASSE")
    True
    """
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", name).casefold())


def plain_reason(reason: Any) -> str:
    """Check the reason of a change, which the history shows."""
    if not isinstance(reason, str) or not _is_encodable(reason):
        raise InputError(f"`reason` must be a text, not {short(reason)}.")
    return reason


def require_encodable(texts: Iterable[object]) -> None:
    """Refuse a name or a value of counts that has half a character, which cannot be written."""
    for text in texts:
        if isinstance(text, str) and not _is_encodable(text):
            raise InputError(
                f"the text {short(text)} cannot be encoded as UTF-8, so it cannot be stored; correct it in the "
                "data. Nothing was added."
            )


def _is_encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _name(name: Any, what: str) -> str:
    if not isinstance(name, str):
        raise InputError(f"{what} must be a text, not {short(name)}.")
    if not name:
        raise InputError(f"{what} must not be empty.")
    if len(name) > _LONGEST:
        raise InputError(
            f"{what} must have at most {_LONGEST} characters, but {short(name)} has {len(name):,}."
        )
    if not name.isprintable():
        raise InputError(
            f"{what} must contain only printable characters, but {short(name)} contains others."
        )
    if name != name.strip():
        raise InputError(f"{what} must not begin or end with a space, as {short(name)} does.")
    return name


def read_tags(tags: Mapping[str, str] | Sequence[str] | None) -> dict[str, str]:
    """Read tags that are given as names and values, or as texts such as ``region=north``, without blanks around.

    >>> read_tags(["region=north"])
    {'region': 'north'}
    """
    given: Any = () if tags is None else tags
    if isinstance(given, Mapping):
        pairs = [(name, _tag_value(name, value)) for name, value in given.items()]
    elif isinstance(given, Sequence) and not isinstance(given, bytes):
        pairs = [_pair(text) for text in ([given] if isinstance(given, str) else given)]
    else:
        raise InputError(
            "`tags` must be a mapping such as {'region': 'north'}, or texts such as region=north, "
            f"not {short(tags)}."
        )
    found: dict[str, str] = {}
    for given_name, value in pairs:
        name = _tag_name(given_name)
        if found.setdefault(name, value) != value:
            raise InputError(f"the tag {name} is given twice, with different values.")
    return found


def _pair(text: Any) -> tuple[str, str]:
    name, equals, value = text.partition("=") if isinstance(text, str) else ("", "", "")
    if not equals or not name.strip():
        raise InputError(
            f"a tag must be written as name=value, such as region=north, not {short(text)}."
        )
    return name, _tag_value(name.strip(), value)


def _tag_name(name: Any) -> str:
    if not isinstance(name, str) or not name.strip() or not name.isprintable() or "=" in name:
        raise InputError(
            f"the name of a tag must be a printable text without =, not {short(name)}."
        )
    return name.strip()


def _tag_value(name: Any, value: Any) -> str:
    text = str(value).strip() if isinstance(value, (str, int, float)) else ""
    if not text or not str(value).isprintable():
        raise InputError(
            f"the value of the tag {short(name)} must be a printable text, not {short(value)}."
        )
    return text
