"""Attribute values: text, or one of two objects that no text can be mistaken for."""

from __future__ import annotations

import datetime
import decimal
import enum
import math
import numbers
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

Value: TypeAlias = str | Literal[_Special.MISSING]
"""What a cell of data holds: text, or MISSING."""

Selector: TypeAlias = str | _Special
"""What a group says of an attribute: a value, or ANY."""


def as_value(raw: AnyType) -> Value:
    """Turn any scalar into the text by which every engine knows it.

    Numbers, dates and booleans become their shortest exact text, the same as
    ``CAST(x AS VARCHAR)`` gives in DuckDB; ``None`` and not-a-number are MISSING.

    >>> as_value("Female"), as_value(1), as_value(True), as_value(2.5), as_value(None)
    ('Female', '1', 'true', '2.5', MISSING)
    """
    if isinstance(raw, str):
        return str(raw)
    if raw is None or raw is MISSING or raw != raw:
        return MISSING
    if isinstance(raw, (bool, numbers.Number)) and not isinstance(raw, decimal.Decimal):
        return _number_text(raw)
    if isinstance(raw, bytes):
        return raw.decode("utf-8", "backslashreplace")
    if isinstance(raw, datetime.datetime):
        text = raw.isoformat(sep=" ")
        return text.rstrip("0") if "." in text and raw.tzinfo is None else text
    return str(raw)


def _number_text(raw: AnyType) -> str:
    item = raw.item() if hasattr(raw, "item") else raw  # numpy scalars
    if isinstance(item, bool):
        return "true" if item else "false"
    if isinstance(item, float) and math.isinf(item):
        return "inf" if item > 0 else "-inf"
    return repr(item) if isinstance(item, float) else str(item)
