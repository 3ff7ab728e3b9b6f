"""Types of Spark as those of all engines, and rows in types that it has."""

from __future__ import annotations

import re
from collections.abc import Mapping

import pyarrow as pa

from equipoise.engines.column_types import collated_type
from equipoise.engines.database import as_type
from equipoise.errors import InputError

_TYPES: Mapping[str, str] = {
    "tinyint": "TINYINT",
    "smallint": "SMALLINT",
    "int": "INTEGER",
    "bigint": "BIGINT",
    "float": "FLOAT",
    "double": "DOUBLE",
    "boolean": "BOOLEAN",
    "string": "VARCHAR",
    "date": "DATE",
    "timestamp": "TIMESTAMP WITH TIME ZONE",
    "timestamp_ntz": "TIMESTAMP",
}


def common_type(kind: str) -> str:
    """Return a type of Spark by the name that all engines use; others keep their own.

    >>> common_type("decimal(10,2)"), common_type("varchar(20)"), common_type("array<int>")
    ('DECIMAL(10,2)', 'VARCHAR', 'array<int>')
    >>> common_type("string collate UTF8_LCASE")
    'collated text (utf8_lcase)'
    """
    if collated := re.fullmatch(r"string collate (\w+)", kind):
        return collated_type(collated[1])
    if kind.startswith("decimal("):
        return kind.upper()
    if re.fullmatch(r"(var)?char\(\d+\)", kind):
        return "VARCHAR"
    return _TYPES.get(kind, kind)


def plain_columns(rows: pa.Table, name: str) -> pa.Table:
    """Return rows in types that Spark has."""
    for i, field in enumerate(rows.schema):
        kind = field.type.value_type if pa.types.is_dictionary(field.type) else field.type
        target = _arrow_type(kind)
        if target is None:
            raise InputError(
                f"column {field.name!r} of {name} has the type {kind}, which has no counterpart in Spark; "
                "convert it to text first."
            )
        if target != field.type:
            rows = rows.set_column(i, field.name, as_type(rows, i, target, name))
    return rows


def _arrow_type(kind: pa.DataType) -> pa.DataType | None:
    unsigned = {
        pa.uint8(): pa.int16(),
        pa.uint16(): pa.int32(),
        pa.uint32(): pa.int64(),
        pa.uint64(): pa.decimal128(20, 0),
        pa.float16(): pa.float32(),
        pa.null(): pa.string(),
        pa.large_string(): pa.string(),
        pa.string_view(): pa.string(),
        pa.date64(): pa.date32(),
    }
    if kind in unsigned:
        return unsigned[kind]
    if pa.types.is_timestamp(kind):
        return pa.timestamp("us", None if kind.tz is None else "UTC")
    same = (
        pa.types.is_integer,
        pa.types.is_floating,
        pa.types.is_boolean,
        pa.types.is_string,
        pa.types.is_decimal128,
        pa.types.is_date,
    )
    return kind if any(test(kind) for test in same) else None


def in_utc(rows: pa.Table) -> pa.Table:
    """Give instants the zone UTC, whatever zone the session shows them in."""
    for i, field in enumerate(rows.schema):
        if pa.types.is_timestamp(field.type) and field.type.tz not in (None, "UTC"):
            rows = rows.set_column(i, field.name, rows.column(i).cast(pa.timestamp("us", "UTC")))
    return rows
