"""The SQL of PostgreSQL."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import ClassVar

from equipoise.counts.reading import Condition
from equipoise.engines import casts
from equipoise.engines.column_types import Family
from equipoise.engines.translation import translated

_BLANKS = r"E' \t\n\r\f\v'"
_LARGEST = "1.7976931348623157e308"
_SMALLEST = "2.5e-324"  # half of the smallest double; smaller numbers are rounded to 0
_LARGEST_REAL = "3.4028235677973366e38"  # half-way to the next power of two
_SMALLEST_REAL = "7.006492321624085e-46"

BEFORE, AS_BEFORE = "^([^ ]+)( .*)? BC$", r"\1 (BC)\2"
"""Texts of moments before our era, and what makes them those that other engines write."""

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


class PostgresDialect(casts.CastingDialect):
    """What PostgreSQL writes differently. Its sessions use the time zone UTC and ISO dates."""

    name: ClassVar[str] = "postgres"
    text_type: ClassVar[str] = "text"
    double_type: ClassVar[str] = "double precision"
    whole_type: ClassVar[str] = "bigint"
    fence: ClassVar[str] = " OFFSET 0"
    small_type: ClassVar[str] = "integer"

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
            return f"regexp_replace({text}, '{BEFORE}', '{AS_BEFORE}')"
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

    def md5_bits(self, md5: str) -> str:
        """Read the first 15 digits of an MD5 as an exact number."""
        return f"CAST(CAST('x' || substr({md5}, 1, 15) AS bit(60)) AS bigint)"

    # ------------------------------------------------------------ values of texts

    def without_zeros(self, text: str) -> str:
        """Write a whole number without a decimal point and the zeros after it."""
        return rf"regexp_replace({text}, '^([+-]?[0-9]+)[.]0*$', '\1')"

    def like(self, text: str, pattern: str) -> str:
        """Whether a text is like a pattern; a backslash in it is one."""
        return f"({text} LIKE {self.literal(pattern)} ESCAPE '')"

    def cased(self, name: str, text: str) -> str:
        """Write a text in lower or upper case; null if the language of the database cannot do that."""
        tried, expected = ("ÄI", "äi") if name == "lower" else ("äi", "ÄI")
        knows = f"{name}({self.literal(tried)}) = {self.literal(expected)}"
        is_plain = f"octet_length({text}) = length({text})"
        own = f'{name}({text} COLLATE "C")'
        return f"CASE WHEN {knows} THEN {name}({text}) WHEN {is_plain} THEN {own} END"

    def attempted(self, condition: Condition, types: Mapping[str, str]) -> str:
        """Evaluate a condition of a user; what cannot be converted is null."""
        return translated(self, condition, types).write()

    def part(self, text: str, pattern: str, group: int) -> str:
        """Read a group of a pattern that a whole text matches."""
        return f"(regexp_match({text}, {self.literal(f'^(?:{pattern})$')}))[{group}]"

    def rounded(self, text: str, places: int) -> str:
        """Read a text that is a number as an exact number of some decimal places."""
        return f"round(CAST({text} AS numeric), {places})"

    def narrowed(self, double: str, column_type: str) -> str:
        """Write a double as a floating-point number of a type; a cast refuses what is out of range."""
        if self.type_name(column_type) != "real":
            return double
        return (
            f"CASE WHEN abs({double}) >= {_LARGEST_REAL} THEN CASE WHEN {double} < 0 THEN "
            f"CAST('-Infinity' AS real) ELSE CAST('Infinity' AS real) END "
            f"WHEN abs({double}) <= {_SMALLEST_REAL} THEN CAST(0 AS real) ELSE CAST({double} AS real) END"
        )

    def day(self, year: str, month: str, day: str) -> str:
        """Make a date that exists; here the year before 1 is -1."""
        return f"make_date(CASE WHEN {year} > 0 THEN {year} ELSE {year} - 1 END, {month}, {day})"

    def moment(self, day: str, hour: str, minute: str, second: str) -> str:
        """Make a timestamp of a date and a time of day."""
        return (
            f"(CAST({day} AS timestamp) + make_interval(hours => {hour}, mins => {minute}, "
            f"secs => CAST({second} AS double precision)))"
        )

    def instant(self, moment: str, offset: str) -> str:
        """Make an instant of a timestamp of a zone."""
        return f"(({moment} - make_interval(secs => {offset})) AT TIME ZONE 'UTC')"


def _posix(pattern: str) -> str:
    """Write a pattern for PostgreSQL, which knows the option i only for the whole of one.

    >>> print(_posix("[0-9]+ (?i:am|pm)"))
    [0-9]+ (?:[aA][mM]|[pP][mM])
    """
    return re.sub(r"\(\?i:([A-Za-z|]*)\)", lambda found: f"(?:{_either_case(found[1])})", pattern)


def _either_case(words: str) -> str:
    return "".join(f"[{c.lower()}{c.upper()}]" if c.isalpha() else c for c in words)


DIALECT = PostgresDialect()
