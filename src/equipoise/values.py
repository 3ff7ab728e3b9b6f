"""Attribute values: text, or one of two objects that no text can be mistaken for."""

from __future__ import annotations

import datetime
import decimal
import enum
import math
from typing import Any as AnyType
from typing import Final, Literal, TypeAlias


class _Special(enum.Enum):
    ANY = "*"
    MISSING = "<missing>"

    def __repr__(self) -> str:
        return self.name

    def __str__(self) -> str:
        return self.value


ANY: Final = _Special.ANY
"""Stands for every value of an attribute."""

MISSING: Final = _Special.MISSING
"""The value of an attribute in a row that has none."""

MISSING_MARKS: Final = frozenset(
    {"?", "na", "n/a", "nan", "null", "none", "<na>", "nil", "-", ".", "missing", r"\n"}
)
"""Texts, in lower case, that often stand for a missing value."""

Value: TypeAlias = str | Literal[_Special.MISSING]
"""What a cell of data holds: text, or MISSING."""

Selector: TypeAlias = str | _Special
"""What a group says of an attribute: a value, or ANY."""


def as_value(raw: AnyType) -> Value:
    """Convert any scalar to text, the same on every engine.

    Numbers, dates and booleans become their shortest exact text, as
    ``CAST(x AS VARCHAR)`` gives it in DuckDB; times of a time zone are given in UTC,
    and there is one zero. ``None``, not-a-number and pandas' ``NaT`` and ``NA`` are MISSING.

    >>> as_value("Female"), as_value(1), as_value(True), as_value(2.5), as_value(None)
    ('Female', '1', 'true', '2.5', MISSING)
    """
    if isinstance(raw, str):
        return str(raw)
    if raw is None or raw is MISSING or _is_unequal_to_itself(raw):
        return MISSING
    if isinstance(raw, decimal.Decimal):
        return f"{raw:f}"
    if hasattr(raw, "dtype") and hasattr(raw, "item"):  # a numpy scalar
        raw = raw.item()
    if isinstance(raw, bool):
        return "true" if raw else "false"
    if isinstance(raw, float):
        return repr(raw + 0.0)  # −0.0 is 0.0
    if isinstance(raw, bytes):
        return "".join(map(_byte_text, raw))
    if isinstance(raw, datetime.datetime):
        return _moment_text(raw)
    if isinstance(raw, datetime.time):
        return _without_zeros(raw.isoformat())
    if isinstance(raw, datetime.timedelta):
        return _span_text(raw)
    return str(raw)


def _is_unequal_to_itself(raw: AnyType) -> bool:
    try:
        return bool(raw != raw)
    except TypeError:  # pandas' NA is neither equal nor unequal
        return True


def _byte_text(byte: int) -> str:
    plain = 32 <= byte < 127 and chr(byte) not in "\\'\""
    return chr(byte) if plain else f"\\x{byte:02X}"


def _moment_text(moment: datetime.datetime) -> str:
    if moment.tzinfo is None:
        return _without_zeros(moment.isoformat(sep=" "))
    in_utc = moment.astimezone(datetime.UTC).replace(tzinfo=None)
    return f"{_without_zeros(in_utc.isoformat(sep=' '))}+00"


def _span_text(span: datetime.timedelta) -> str:
    seconds, millionths = divmod(abs(span) // datetime.timedelta(microseconds=1), 1_000_000)
    clock = f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}.{millionths:06}"
    return ("-" if span < datetime.timedelta(0) else "") + clock.rstrip("0").rstrip(".")


def _without_zeros(time: str) -> str:
    return time.rstrip("0") if "." in time else time


def plain(value: AnyType) -> AnyType:
    """Make a value fit for JSON: ``None`` for a missing value or an undefined number.

    >>> plain(MISSING), plain(float("nan")), plain("Female"), plain(0.2)
    (None, None, 'Female', 0.2)
    """
    if value is MISSING or (isinstance(value, float) and not math.isfinite(value)):
        return None
    return value
