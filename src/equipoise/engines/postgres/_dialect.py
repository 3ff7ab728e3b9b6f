"""The SQL of PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from equipoise.engines.column_types import Family
from equipoise.engines.dialect import Dialect

_BLANKS = r"E' \t\n\r\f\v'"
_LARGEST = "1.7976931348623157e308"
_SMALLEST = "2.5e-324"  # half of the smallest double; smaller numbers are rounded to 0

_TYPES = {
    "VARCHAR": "text",
    "TINYINT": "smallint",
    "UTINYINT": "smallint",
    "USMALLINT": "integer",
    "UINTEGER": "bigint",
    "UBIGINT": "numeric(20,0)",
    "HUGEINT": "numeric(38,0)",
    "FLOAT": "real",
    "DOUBLE": "double precision",
    "DECIMAL": "numeric",
    "TIMESTAMP_S": "timestamp",
    "TIMESTAMP_MS": "timestamp",
    "TIMESTAMP_NS": "timestamp",
}
"""Types of columns that PostgreSQL calls otherwise."""


class PostgresDialect(Dialect):
    """What PostgreSQL writes differently. Its sessions use the time zone UTC and ISO dates."""

    name: ClassVar[str] = "postgres"
    text_type: ClassVar[str] = "text"
    double_type: ClassVar[str] = "double precision"
    whole_type: ClassVar[str] = "bigint"
    fence: ClassVar[str] = " OFFSET 0"

    def type_name(self, column_type: str) -> str:
        """Return the name of a type of a column.

        >>> PostgresDialect().type_name("DOUBLE"), PostgresDialect().type_name("DECIMAL(10,2)")
        ('double precision', 'numeric(10,2)')
        """
        kind = column_type.upper()
        if kind.startswith("ENUM"):
            return "text"
        return _TYPES.get(kind, kind.replace("DECIMAL(", "numeric("))

    def plain_text(self, value: str, column_type: str, kind: Family) -> str:  # noqa: ARG002
        """Write a value that is neither text nor a floating-point number."""
        text = f"CAST({value} AS text)"
        if kind in ("date", "timestamp", "instant"):  # years before our era, as others write them
            return f"regexp_replace({text}, ' BC$', ' (BC)')"
        return text

    def is_nan(self, value: str) -> str:
        """Whether a floating-point number is not-a-number."""
        return f"{value} = 'NaN'"

    def bits(self, double: str) -> str:
        """Write the bits of a double as 16 hexadecimal digits."""
        return f"encode(float8send({double}), 'hex')"

    def stripped(self, text: str) -> str:
        """Read a text without surrounding blanks, line ends and tabs."""
        return f"btrim({text}, {_BLANKS})"

    def finite(self, text: str) -> str:
        """Read a text that is a number as a double; a cast would refuse what is out of range."""
        exact = f"abs(CAST({text} AS numeric))"
        return (
            f"CASE WHEN {exact} > {_LARGEST} THEN CASE WHEN left({text}, 1) = '-' "
            f"THEN {self.double(float('-inf'))} ELSE {self.double(float('inf'))} END "
            f"WHEN {exact} < {_SMALLEST} THEN {self.double(0.0)} "
            f"ELSE CAST({text} AS double precision) END"
        )

    def matches(self, text: str, pattern: str) -> str:
        """Whether a whole text matches a pattern; (?s) is the default here."""
        return f"{text} ~ {self.literal(f'^(?:{_posix(pattern)})$')}"

    def captures(self, text: str, pattern: str, groups: int) -> str:  # noqa: ARG002
        """Read what the groups of a pattern capture, as a list."""
        return f"regexp_match({text}, {self.literal(f'^(?:{_posix(pattern)})$')})"

    def in_lower_case(self, text: str) -> str:
        """Write letters in lower case, whatever the locale is."""
        return super().in_lower_case(f'({text} COLLATE "C")')

    def words(self, words: Iterable[str]) -> str:
        """Write a table with a column of many words."""
        return f"(SELECT unnest('{{{','.join(words)}}}'::text[]) AS word)"

    def quotient(self, a: str, b: str) -> str:
        """Divide whole numbers that are not negative."""
        return f"{a} / {b}"

    def same(self, a: str, b: str) -> str:
        """Whether two values are equal, or both null; a join by this can use hashes."""
        return f"coalesce('=' || {a}, '-') = coalesce('=' || {b}, '-')"

    def by_bytes(self, text: str) -> str:
        """Write a text so that it is ordered by its bytes."""
        return f'{text} COLLATE "C"'

    def stripped_of(self, text: str, characters: str) -> str:
        """Read a text without some surrounding characters."""
        return f"btrim({text}, {self.literal(characters)})"


def _posix(pattern: str) -> str:
    """Write a pattern for PostgreSQL, which knows options such as (?i) only for the whole of it."""
    return pattern


DIALECT = PostgresDialect()
