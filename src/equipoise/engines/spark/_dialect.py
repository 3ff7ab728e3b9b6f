"""The SQL of Spark."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import ClassVar

from equipoise.engines.column_types import Family
from equipoise.engines.dialect import Dialect

_BLANKS = " \t\n\r\f\v"
_TYPES = {
    "VARCHAR": "STRING",
    "INTEGER": "INT",
    "UTINYINT": "SMALLINT",
    "USMALLINT": "INT",
    "UINTEGER": "BIGINT",
    "UBIGINT": "DECIMAL(20,0)",
    "HUGEINT": "DECIMAL(38,0)",
    "TIMESTAMP WITH TIME ZONE": "TIMESTAMP",
    "TIMESTAMP": "TIMESTAMP_NTZ",
    "TIMESTAMP_S": "TIMESTAMP_NTZ",
    "TIMESTAMP_MS": "TIMESTAMP_NTZ",
    "TIMESTAMP_NS": "TIMESTAMP_NTZ",
    "TIME": "STRING",
}
"""Types of columns that Spark calls otherwise."""


class SparkDialect(Dialect):
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

    def words(self, words: Iterable[str]) -> str:
        """Write a table with a column of many words."""
        return f"(SELECT explode(split('{','.join(words)}', ',')) AS word)"

    def quotient(self, a: str, b: str) -> str:
        """Divide whole numbers that are not negative."""
        return f"{a} div {b}"

    def same(self, a: str, b: str) -> str:
        """Whether two values are equal, or both null."""
        return f"{a} <=> {b}"


def _moment_text(moment: str) -> str:
    """Write a date or a timestamp as others do: years before our era by their number."""
    text = f"CAST({moment} AS STRING)"
    year = f"lpad(CAST(1 - year({moment}) AS STRING), 4, '0')"
    rest = f"regexp_extract({text}, '^-[0-9]+(-.*)$', 1)"
    bare = f"ltrim('+', {text})"
    return f"CASE WHEN year({moment}) < 1 THEN {year} || {rest} || ' (BC)' ELSE {bare} END"


DIALECT = SparkDialect()
