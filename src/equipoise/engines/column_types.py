"""Types of columns, by one set of names for all engines: those of DuckDB.

An engine translates the types of its database to these names when it opens a table. So a type means
the same wherever it is read: in profiles, conditions and mappings, and in tables of another engine.
"""

from __future__ import annotations

import functools
import re
from typing import Literal, TypeAlias

Family: TypeAlias = Literal[
    "text", "whole", "float", "decimal", "boolean", "date", "time", "timestamp", "instant", "other"
]
"""What values of a type are. An instant is a moment of a time zone, a timestamp one of none."""

_FAMILIES: tuple[tuple[Family, str], ...] = (
    ("text", r"(VARCHAR|ENUM|STRING|TEXT|CHAR).*"),
    ("whole", r"U?(TINYINT|SMALLINT|INTEGER|BIGINT)"),
    ("float", r"FLOAT|DOUBLE|REAL"),
    ("decimal", r"DECIMAL.*|U?HUGEINT"),
    ("boolean", r"BOOLEAN"),
    ("date", r"DATE"),
    ("time", r"TIME|TIME_NS"),
    ("instant", r"TIMESTAMP WITH TIME ZONE"),
    ("timestamp", r"TIMESTAMP.*"),
)


@functools.lru_cache(maxsize=1024)
def family(column_type: str) -> Family:
    """Tell what values of a type are.

    >>> family("DECIMAL(10,2)"), family("TIMESTAMP WITH TIME ZONE"), family("INTEGER[]")
    ('decimal', 'instant', 'other')
    """
    kind = column_type.upper()
    if kind.endswith("]"):  # a list
        return "other"
    return next((name for name, pattern in _FAMILIES if re.fullmatch(pattern, kind)), "other")


def is_text(column_type: str) -> bool:
    """Whether values of a type are text."""
    return family(column_type) == "text"


def is_whole(column_type: str) -> bool:
    """Whether values of a type are integers of at most 64 bits."""
    return family(column_type) == "whole"


def is_float(column_type: str) -> bool:
    """Whether values of a type are floating-point numbers, which may be not-a-number."""
    return family(column_type) == "float"


def is_shared(column_type: str) -> bool:
    """Whether a type has a name that all engines know; a type of one database keeps its own.

    >>> is_shared("VARCHAR"), is_shared("jsonb")
    (True, False)
    """
    return not column_type.islower()


def collated_type(collation: str) -> str:
    """Name the type of texts that a collation compares, which may take different ones for equal.

    >>> collated_type("UTF8_LCASE"), family("collated text (utf8_lcase)")
    ('collated text (utf8_lcase)', 'other')
    """
    return f"collated text ({collation.lower()})"


def unencoded_type(encoding: str) -> str:
    """Name the type of texts in an encoding that does not tell which characters their bytes mean.

    >>> unencoded_type("SQL_ASCII"), family("unencoded text (sql_ascii)")
    ('unencoded text (sql_ascii)', 'other')
    """
    return f"unencoded text ({encoding.lower()})"


def is_unencoded(column_type: str) -> bool:
    """Whether values of a type are texts that can be counted, but not compared with those of other tables."""
    return column_type.startswith("unencoded")
