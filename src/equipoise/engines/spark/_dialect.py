"""The SQL of Spark."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import ClassVar

from equipoise.counts.reading import Condition
from equipoise.engines import casts
from equipoise.engines.column_types import Family
from equipoise.engines.translation import translated

_BLANKS = " \t\n\r\f\v"
_TYPES = {
    "VARCHAR": "STRING",
    "INTEGER": "INT",
    "UTINYINT": "SMALLINT",
    "USMALLINT": "INT",
    "UINTEGER": "BIGINT",
    "UBIGINT": "DECIMAL(20,0)",
    "HUGEINT": "DECIMAL(38,0)",
    "DECIMAL": "STRING",  # of any scale, as in PostgreSQL
    "TIMESTAMP WITH TIME ZONE": "TIMESTAMP",
    "TIMESTAMP": "TIMESTAMP_NTZ",
    "TIMESTAMP_S": "TIMESTAMP_NTZ",
    "TIMESTAMP_MS": "TIMESTAMP_NTZ",
    "TIMESTAMP_NS": "TIMESTAMP_NTZ",
    "TIME": "STRING",
}
"""Types of columns that Spark calls otherwise."""


class SparkDialect(casts.CastingDialect):
    """What Spark writes differently, whatever the time zone of its session is."""

    name: ClassVar[str] = "spark"
    text_type: ClassVar[str] = "STRING"

    def identifier(self, name: str) -> str:
        """Quote a column or table name."""
        return "`" + name.replace("`", "``") + "`"

    def literal(self, text: str) -> str:
        r"""Quote a text value; one with a sign that a setting of Spark may change is written in bytes.

        >>> print(SparkDialect().literal("Female"), SparkDialect().literal("O'Brien"))
        'Female' CAST(X'4f27427269656e' AS STRING)
        """
        if re.fullmatch(r"[\w ,.:;/+=<>()*#%!?@&|~^{}\[\]-]*", text, re.ASCII):
            return f"'{text}'"
        return f"CAST(X'{text.encode().hex()}' AS STRING)"

    def type_name(self, column_type: str) -> str:
        """Return the name of a type of a column."""
        kind = column_type.upper()
        return "STRING" if kind.startswith("ENUM") else _TYPES.get(kind, kind)

    def plain_text(self, value: str, column_type: str, kind: Family) -> str:  # noqa: ARG002
        """Write a value that is neither text nor a floating-point number."""
        if kind == "instant":
            seconds = (
                f"CAST(CAST(unix_micros({value}) AS DECIMAL(20,0)) / 1000000 AS DECIMAL(18,6))"
            )
            start = "TIMESTAMP_NTZ'1970-01-01 00:00:00'"
            return f"{_moment_text(f'({start} + make_dt_interval(0, 0, 0, {seconds}))')} || '+00'"
        if kind in ("date", "timestamp"):
            return _moment_text(value)
        return f"CAST({value} AS STRING)"

    def bits(self, double: str) -> str:
        """Write the bits of a double as 16 hexadecimal digits."""
        whole = f"reflect('java.lang.Double', 'doubleToRawLongBits', {double})"
        digits = f"lpad(lower(hex(CAST({whole} AS BIGINT))), 16, '0')"
        return f"CASE WHEN ({double}) IS NOT NULL THEN {digits} END"

    def stripped(self, text: str) -> str:
        """Read a text without surrounding blanks, line ends and tabs."""
        return self.stripped_of(text, _BLANKS)

    def stripped_of(self, text: str, characters: str) -> str:
        """Read a text without some surrounding characters."""
        return f"btrim({text}, {self.literal(characters)})"

    def finite(self, text: str) -> str:
        """Read a text that is a number as a double."""
        return f"try_cast({text} AS DOUBLE)"

    def matches(self, text: str, pattern: str) -> str:
        """Whether a whole text matches a pattern."""
        whole = rf"\A(?:{pattern})\z"
        return f"regexp_like({text}, {self.literal(whole)})"

    def captures(self, text: str, pattern: str, groups: int) -> str:
        """Read what the groups of a pattern capture, as a list."""
        places = self.literal("\n".join(f"${i}" for i in range(1, groups + 1)))
        whole = self.literal(rf"\A(?:{pattern})\z")
        line = self.literal("\n")
        return f"split(regexp_replace({text}, {whole}, {places}), {line})"

    def item(self, items: str, place: int) -> str:
        """Read one item of a list, counted from 1; null if it is empty."""
        return f"nullif(element_at({items}, {place}), '')"

    def without(self, text: str, pattern: str) -> str:
        """Read a text without all that matches a pattern."""
        return f"regexp_replace({text}, {self.literal(pattern)}, '')"

    def quotient(self, a: str, b: str) -> str:
        """Divide whole numbers that are not negative."""
        return f"{a} div {b}"

    def same(self, a: str, b: str) -> str:
        """Whether two values are equal, or both null."""
        return f"{a} <=> {b}"

    def md5_bits(self, md5: str) -> str:
        """Read the first 15 digits of an MD5 as an exact number."""
        return f"CAST(conv(substr({md5}, 1, 15), 16, 10) AS DECIMAL(20,0))"

    # ------------------------------------------------------------ values of texts

    def without_zeros(self, text: str) -> str:
        """Write a whole number without a decimal point and the zeros after it."""
        pattern = self.literal(r"\A([+-]?[0-9]+)[.]0*\z")
        return f"regexp_replace({text}, {pattern}, {self.literal('$1')})"

    def like(self, text: str, pattern: str) -> str:
        """Whether a text is like a pattern; a backslash in it is one."""
        doubled = pattern.replace("\\", "\\\\")
        return f"({text} LIKE {self.literal(doubled)})"

    def attempted(self, condition: Condition, types: Mapping[str, str]) -> str:
        """Evaluate a condition of a user; what cannot be converted is null."""
        return translated(self, condition, types).write()

    def part(self, text: str, pattern: str, group: int) -> str:
        """Read a group of a pattern that a whole text matches."""
        whole = rf"\A(?:{pattern})\z"
        return f"nullif(regexp_extract({text}, {self.literal(whole)}, {group}), '')"

    def rounded(self, text: str, places: int) -> str:
        """Read a text that is a number as an exact number of some decimal places."""
        return f"try_cast({text} AS DECIMAL(38,{places}))"

    def narrowed(self, double: str, column_type: str) -> str:
        """Write a double as a floating-point number of a type."""
        return f"CAST({double} AS {self.type_name(column_type)})"

    def day(self, year: str, month: str, day: str) -> str:
        """Make a date that exists."""
        return f"make_date({year}, {month}, {day})"

    def moment(self, day: str, hour: str, minute: str, second: str) -> str:
        """Make a timestamp of a date and a time of day."""
        clock = f"make_dt_interval(0, {hour}, {minute}, CAST({second} AS DECIMAL(18,6)))"
        return f"(CAST({day} AS TIMESTAMP_NTZ) + {clock})"

    def instant(self, moment: str, offset: str) -> str:
        """Make an instant of a timestamp of a zone, whatever the zone of the session is."""
        start = "TIMESTAMP_NTZ'1970-01-01 00:00:00'"
        since = f"timestampdiff(MICROSECOND, {start}, {moment})"
        return f"timestamp_micros({since} - CAST({offset} AS BIGINT) * 1000000)"


def _moment_text(moment: str) -> str:
    """Write a date or a timestamp as others do: years before our era by their number."""
    text = f"CAST({moment} AS STRING)"
    year = f"lpad(CAST(1 - year({moment}) AS STRING), 4, '0')"
    day, clock = (
        f"regexp_extract({text}, {DIALECT.literal('^-?[0-9]+(-[0-9]+-[0-9]+)(.*)$')}, {i})"
        for i in (1, 2)
    )
    bare = f"ltrim('+', {text})"
    return (
        f"CASE WHEN year({moment}) < 1 THEN {year} || {day} || ' (BC)' || {clock} ELSE {bare} END"
    )


DIALECT = SparkDialect()
