"""Columns of a condition, converted to the types that they are compared as."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from equipoise.counts.reading import Condition, is_plain_type
from equipoise.engines.base import Column
from equipoise.engines.column_types import is_float
from equipoise.engines.sql import mark_of

if TYPE_CHECKING:
    from equipoise.engines.dialect import Dialect

WHOLE = ("BIGINT", "HUGEINT")
"""Integers are not compared as floats: long identifiers that differ would become equal."""


def compared(
    d: Dialect, table: str, columns: Sequence[Column], condition: Condition
) -> tuple[str, tuple[str, ...]]:
    """Convert the columns of a condition to the types that they are compared as.

    Returns the converted table, and the expressions that select the original columns from it.
    """
    mark = mark_of(columns)
    types = {name.casefold(): kind for name, kind in (condition.types or {}).items()}
    inner, own = [], []
    for i, column in enumerate(columns):
        name = d.identifier(column.name)
        kind = types.get(column.name.casefold(), column.type)
        is_same = kind == column.type or not is_plain_type(kind)
        if is_same and not (is_float(kind) and column.name.casefold() in types):
            inner.append(name)
            own.append(name)
        else:
            inner += [f"{_as_type(d, column, kind)} AS {name}", f"{name} AS kept{i}{mark}"]
            own.append(f"kept{i}{mark} AS {name}")
    return f"(SELECT {', '.join(inner)} FROM {table} AS input) AS input", tuple(own)


def _as_type(d: Dialect, column: Column, kind: str) -> str:
    """Convert a column to another type; values that cannot be converted become missing."""
    value = d.identifier(column.name)
    if kind == "VARCHAR":
        return d.text(value, column.type)
    if is_float(kind) and kind == column.type:  # not-a-number would be greater than any number
        return f"CASE WHEN NOT {d.is_nan(value)} THEN {value} END"
    return d.converted(trimmed(d, column), kind)


def trimmed(d: Dialect, column: Column) -> str:
    """Read a column as text without surrounding blanks."""
    return f"trim({d.text(d.identifier(column.name), column.type)})"
