"""The SQL of DuckDB."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import ClassVar

from equipoise.counts.reading import Condition
from equipoise.engines.column_types import Family, is_float, is_whole
from equipoise.engines.dialect import NUMBER, Dialect
from equipoise.engines.letters import is_settled, letters


class DuckDBDialect(Dialect):
    """What DuckDB writes differently."""

    name: ClassVar[str] = "duckdb"

    def text(self, value: str, column_type: str) -> str:
        """Write a value as text; one of an enumeration is not text yet."""
        if column_type.upper().startswith("ENUM"):
            return f"CAST({value} AS VARCHAR)"
        return super().text(value, column_type)

    def plain_text(self, value: str, column_type: str, kind: Family) -> str:
        """Write a value that is neither text nor a floating-point number."""
        if kind == "instant":  # whatever the session's time zone is
            return f"CAST({value} AT TIME ZONE 'UTC' AS VARCHAR) || '+00'"
        text = f"CAST({value} AS VARCHAR)"
        if re.fullmatch(r"DECIMAL\((\d+), ?\1\)", column_type.upper()):  # printed as .5
            return rf"regexp_replace({text}, '^(-?)\.', '\10.')"
        return text

    def bits(self, double: str) -> str:
        """Write the bits of a double as 16 hexadecimal digits."""
        return f"lower(hex(CAST(CAST({double} AS BIT) AS BLOB)))"

    def number(self, value: str, column_type: str) -> str:
        """Read a column as numbers; a boolean is 0 or 1."""
        if is_whole(column_type):
            return value
        return self.parsed(value)

    def parsed(self, text: str) -> str:
        """Read a text as a double; null if it is not a number."""
        cast = f"TRY_CAST({text} AS DOUBLE)"
        return f"CASE WHEN NOT isnan({cast}) THEN {cast} END"

    def is_number(self, text: str) -> str:
        """Whether a text is that of a number, or of not-a-number."""
        return f"TRY_CAST({text} AS DOUBLE) IS NOT NULL"

    def is_unknown_number(self, value: str, column_type: str) -> str:  # noqa: ARG002
        """Whether a value is not-a-number, or its text."""
        return f"coalesce(isnan(TRY_CAST({value} AS DOUBLE)), false)"

    def converted(self, text: str, column_type: str) -> str:
        """Read a text as a value of a type; null if it is none."""
        if is_float(column_type):  # not-a-number is missing, and would be greater than any number
            return f"nullif(TRY_CAST({text} AS {column_type}), CAST('nan' AS {column_type}))"
        if column_type in ("BIGINT", "HUGEINT"):  # a cast would round what is not whole
            text = f"regexp_extract({text}, '^([+-]?[0-9]+)([.]0*)?$', 1)"
        return f"TRY_CAST({text} AS {column_type})"

    def tried(self, text: str, column_type: str) -> str:
        """Cast a text to a type; null if that is impossible."""
        if (
            column_type.upper() == "DECIMAL"
        ):  # of any scale, as in PostgreSQL; DuckDB would round it
            bare = f"trim({text})"
            return f"CASE WHEN {self.matches(bare, NUMBER)} THEN {bare} END"
        return f"TRY_CAST({text} AS {column_type})"

    def whole(self, text: str, column_type: str) -> str:
        """Read a whole number by its digits, and only others, such as 1e3, as a double."""
        digits = f"regexp_extract({text}, '^([+-]?[0-9]+)([.]0*)?$', 1)"
        number = f"TRY_CAST({text} AS DOUBLE)"
        exact = f"{number} = floor({number}) AND abs({number}) < {2**53}"
        return (
            f"coalesce(TRY_CAST({digits} AS {column_type}), "
            f"CASE WHEN {exact} THEN TRY_CAST({number} AS {column_type}) END)"
        )

    def narrowed(self, double: str, column_type: str) -> str:
        """Write a double as a floating-point number of a type; a cast refuses what is out of range."""
        if column_type.upper() not in ("FLOAT", "REAL"):
            return double
        infinite = f"CASE WHEN {double} < 0 THEN '-inf' WHEN {double} > 0 THEN 'inf' END"
        return f"coalesce(TRY_CAST({double} AS FLOAT), CAST({infinite} AS FLOAT))"

    def redated(self, text: str, read: str, write: str) -> str:
        """Write a date in another format."""
        parsed = f"try_strptime({text}, {self.literal(read)})"
        return f"strftime({parsed}, {self.literal(write)})"

    def without_zeros(self, text: str) -> str:
        """Write a whole number without a decimal point and the zeros after it."""
        # As text, since a leading zero may be part of a code.
        return rf"regexp_replace({text}, '^([+-]?[0-9]+)[.]0*$', '\1')"

    def md5_bits(self, md5: str) -> str:
        """Read the first 15 digits of an MD5 as an exact number."""
        return f"CAST('0x' || substr({md5}, 1, 15) AS BIGINT)"

    def attempted(self, condition: Condition, types: Mapping[str, str]) -> str:  # noqa: ARG002
        """Evaluate a condition of a user; null if that is impossible."""
        return f"TRY((\n{condition.text}\n))"

    def matches(self, text: str, pattern: str) -> str:
        """Whether a whole text matches a pattern."""
        return f"regexp_full_match({text}, {self.literal(pattern)})"

    def captures(self, text: str, pattern: str, groups: int) -> str:
        """Read what the groups of a pattern capture, as a list."""
        places = "\n".join(f"\\{i}" for i in range(1, groups + 1))
        whole = self.literal(f"^(?:{pattern})$")
        return f"string_split(regexp_replace({text}, {whole}, {self.literal(places)}), '\n')"

    def finite(self, text: str) -> str:
        """Read a text that is a number as a double."""
        return f"TRY_CAST({text} AS DOUBLE)"

    def in_lower_case(self, text: str) -> str:
        """Write letters in lower case; ``translate`` takes very long, and is needed for few letters."""
        capital, small = letters()
        rare = "".join(letter for letter in capital if not is_settled(letter))
        translated = f"translate({text}, {self.literal(capital)}, {self.literal(small)})"
        has_rare = f"regexp_matches({text}, {self.literal(f'[{rare}]')})"
        return (
            f"CASE WHEN {self.is_ascii(text)} THEN lower({text}) "
            f"WHEN {has_rare} THEN {translated} ELSE lower({text}) END"
        )

    def is_ascii(self, text: str) -> str:
        """Whether a text has ASCII characters only."""
        return f"strlen({text}) = length({text})"

    def quotient(self, a: str, b: str) -> str:
        """Divide whole numbers that are not negative."""
        return f"{a} // {b}"


DIALECT = DuckDBDialect()
