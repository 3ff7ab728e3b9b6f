"""Types of PostgreSQL as those of all engines, and as those of Arrow."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

import pyarrow as pa

TEXTS = {25: "text", 1043: "varchar", 1042: "bpchar", 18: '"char"', 19: "name", 2950: "uuid"}
_PLAIN: Mapping[int, str] = {
    16: "BOOLEAN",
    21: "SMALLINT",
    23: "INTEGER",
    20: "BIGINT",
    700: "FLOAT",
    701: "DOUBLE",
    1082: "DATE",
    1083: "TIME",
    1114: "TIMESTAMP",
    1184: "TIMESTAMP WITH TIME ZONE",
}
_NUMERIC = 1700
_AS_THEY_ARE = (25, 1043)

_ARROW: Mapping[str, pa.DataType] = {
    "BOOLEAN": pa.bool_(),
    "SMALLINT": pa.int16(),
    "INTEGER": pa.int32(),
    "BIGINT": pa.int64(),
    "FLOAT": pa.float32(),
    "DOUBLE": pa.float64(),
    "DATE": pa.date32(),
    "TIME": pa.time64("us"),
    "TIMESTAMP": pa.timestamp("us"),
    "TIMESTAMP WITH TIME ZONE": pa.timestamp("us", "UTC"),
}
MOMENTS = frozenset({"DATE", "TIME", "TIMESTAMP", "TIMESTAMP WITH TIME ZONE"})
"""Types with values that Arrow may not have, such as infinity."""


class Described(NamedTuple):
    """A column of a query as the server describes it."""

    name: str
    oid: int
    modifier: int

    def common_type(self, others: Mapping[int, tuple[str, bool]]) -> str:
        """Return the type by the name that all engines use; ``others`` are types by name.

        A type of no such name keeps its own, in lower case: its values cannot be compared.
        """
        if self.oid in TEXTS or others.get(self.oid, ("", False))[1]:
            return "VARCHAR"
        if self.oid == _NUMERIC:
            if self.modifier < 0:
                return "DECIMAL"
            precision, scale = (self.modifier - 4) >> 16 & 0xFFFF, (self.modifier - 4) & 0x7FF
            return f"DECIMAL({precision},{scale})" if scale < 1024 else "DECIMAL"
        return _PLAIN.get(self.oid) or others[self.oid][0]

    @property
    def is_known(self) -> bool:
        """Whether the type is one of those that every server has."""
        return self.oid in TEXTS or self.oid in _PLAIN or self.oid == _NUMERIC

    def expression(self, column: str, common_type: str) -> str:
        """Write the column so that its values have the common type."""
        if common_type == "VARCHAR" and self.oid not in _AS_THEY_ARE:
            return f"CAST({column} AS text)"  # also without the blanks that pad char(n)
        if common_type == "DECIMAL":  # equal numbers may have zeros after the point, or not
            return f"trim_scale(nullif({column}, 'NaN'))"
        return f"nullif({column}, 'NaN')" if self.oid == _NUMERIC else column


def arrow_type(common_type: str) -> pa.DataType:
    """Return the Arrow type of a column; numbers of any scale come as text."""
    decimal = re.fullmatch(r"DECIMAL\((\d+),(\d+)\)", common_type)
    if decimal:
        precision, scale = map(int, decimal.groups())
        if precision <= 76 and scale <= precision:
            make = pa.decimal128 if precision <= 38 else pa.decimal256
            return make(precision, scale)
    return _ARROW.get(common_type, pa.string())


def type_of(kind: pa.DataType) -> str | None:
    """Return the type of PostgreSQL for values of Arrow; None if there is none."""
    if pa.types.is_dictionary(kind):
        return type_of(kind.value_type)
    if pa.types.is_decimal(kind):
        return f"numeric({kind.precision},{kind.scale})"
    if pa.types.is_timestamp(kind):
        return "timestamp" if kind.tz is None else "timestamptz"
    tests = {
        "boolean": pa.types.is_boolean,
        "numeric(20,0)": pa.types.is_uint64,
        "real": pa.types.is_float32,
        "double precision": pa.types.is_floating,
        "date": pa.types.is_date,
        "time": pa.types.is_time,
        "bigint": pa.types.is_integer,
    }
    for name, test in tests.items():
        if test(kind):
            return name
    texts = (
        pa.types.is_string,
        pa.types.is_large_string,
        pa.types.is_string_view,
        pa.types.is_null,
    )
    return "text" if any(test(kind) for test in texts) else None
