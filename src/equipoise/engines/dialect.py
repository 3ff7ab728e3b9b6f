"""Dialects: how each database writes what queries need.

Queries are written once, in :mod:`equipoise.engines.sql`. A dialect holds only what databases say
differently. Names and values from users are always quoted here.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, ClassVar

from equipoise.engines.column_types import Family, family, is_float, is_text
from equipoise.engines.letters import BLANKS, letters

if TYPE_CHECKING:
    from equipoise.counts.reading import Condition

NUMBER = r"[+-]?([0-9]+[.]?[0-9]*|[.][0-9]+)([eE][+-]?[0-9]{1,3})?"
"""Texts that are read as finite numbers, as a pattern that means the same in every database."""


_SIGNS = ("", "+", "-")


class Dialect:
    """The texts that one database understands; this class holds those that most share."""

    name: ClassVar[str]
    text_type: ClassVar[str] = "VARCHAR"
    double_type: ClassVar[str] = "DOUBLE"
    whole_type: ClassVar[str] = "BIGINT"
    fence: ClassVar[str] = ""
    """Ends a subquery whose expressions must not be moved into the query around it, and repeated."""

    # ------------------------------------------------------------------ quoting

    def identifier(self, name: str) -> str:
        """Quote a column or table name.

        >>> print(Dialect().identifier('a"; DROP TABLE x; --'))
        "a""; DROP TABLE x; --"
        """
        return '"' + name.replace('"', '""') + '"'

    def literal(self, text: str) -> str:
        """Quote a text value.

        >>> print(Dialect().literal("O'Brien"))
        'O''Brien'
        """
        return "'" + text.replace("'", "''") + "'"

    def texts(self, texts: Iterable[str]) -> str:
        """List texts, as after IN."""
        return ", ".join(map(self.literal, texts))

    def can_hold(self, text: str) -> bool:  # noqa: ARG002 (most can hold any)
        """Whether a value of the database can be this text."""
        return True

    def double(self, number: float) -> str:
        """Write a double; a bare 0.1 would be a decimal, which turns into another double."""
        return f"CAST('{number!r}' AS {self.double_type})"

    # ------------------------------------------------------------------- values

    def text(self, value: str, column_type: str) -> str:
        """Write a value as the text of :func:`equipoise.values.as_value`; not-a-number is null.

        Databases write floating-point numbers differently, so nothing may depend on their text but
        what a person reads.
        """
        kind = family(column_type)
        if kind == "text":
            return value
        if kind == "float":
            return f"CAST({self.float(value)} AS {self.text_type})"
        return self.plain_text(value, column_type, kind)

    def plain_text(self, value: str, column_type: str, kind: Family) -> str:
        """Write a value that is neither text nor a floating-point number."""
        raise NotImplementedError

    def exact(self, value: str, column_type: str) -> str:
        """Write a value as a text that is the same in every database, for the hashes of rows.

        Floating-point numbers are written as their 64 bits, since their shortest texts differ.
        """
        if is_float(column_type):
            return self.bits(self.float(value))
        return self.text(value, column_type)

    def float(self, value: str) -> str:
        """Read a floating-point column as doubles: null if it is not a number, and one zero."""
        wide = f"CAST({value} AS {self.double_type}) + {self.double(0.0)}"
        return f"CASE WHEN NOT {self.is_nan(value)} THEN {wide} END"

    def is_nan(self, value: str) -> str:
        """Whether a floating-point number is not-a-number."""
        return f"isnan({value})"

    def bits(self, double: str) -> str:
        """Write the bits of a double as 16 hexadecimal digits."""
        raise NotImplementedError

    def number(self, value: str, column_type: str) -> str:
        """Read a column as numbers; other text and not-a-number become null."""
        kind = family(column_type)
        if kind == "whole":
            return value
        if kind == "float":
            return self.float(value)
        if kind == "decimal":
            return f"CAST({value} AS {self.double_type})"
        if kind == "boolean":
            return f"CASE WHEN {value} THEN {self.double(1.0)} WHEN NOT {value} THEN {self.double(0.0)} END"
        return self.parsed(self.text(value, column_type))

    def parsed(self, text: str) -> str:
        """Read a text as a double; null if it is not a number."""
        bare = f"lower({self.stripped(text)})"
        infinite = [self.texts(f"{sign}{word}" for word in ("inf", "infinity")) for sign in _SIGNS]
        return (
            f"CASE WHEN {self.matches(bare, NUMBER)} THEN {self.finite(bare)} "
            f"WHEN {bare} IN ({infinite[0]}, {infinite[1]}) THEN {self.double(math.inf)} "
            f"WHEN {bare} IN ({infinite[2]}) THEN {self.double(-math.inf)} END"
        )

    def is_number(self, text: str) -> str:
        """Whether a text is that of a number, or of not-a-number."""
        return f"({self.parsed(text)} IS NOT NULL OR {self.is_unknown_number(text, 'VARCHAR')})"

    def finite(self, text: str) -> str:
        """Read a text that matches :data:`NUMBER` as a double."""
        raise NotImplementedError

    def is_unknown_number(self, value: str, column_type: str) -> str:
        """Whether a value is not-a-number, or its text."""
        if is_float(column_type):
            return f"coalesce({self.is_nan(value)}, false)"
        if not is_text(column_type):
            return "false"
        bare = f"lower({self.stripped(value)})"
        return f"coalesce({bare} IN ({self.texts(f'{sign}nan' for sign in _SIGNS)}), false)"

    def stripped(self, text: str) -> str:
        """Read a text without surrounding blanks, line ends and tabs."""
        raise NotImplementedError

    def converted(self, text: str, column_type: str) -> str:
        """Read a text as a value of a type; null if it is none."""
        raise NotImplementedError

    def tried(self, text: str, column_type: str) -> str:
        """Cast a text to a type; null if that is impossible."""
        raise NotImplementedError

    def whole(self, text: str, column_type: str) -> str:
        """Read a whole number by its digits, and only others, such as 1e3, as a double."""
        raise NotImplementedError

    def narrowed(self, double: str, column_type: str) -> str:
        """Write a double as a floating-point number of a type."""
        raise NotImplementedError

    def redated(self, text: str, read: str, write: str) -> str:
        """Write a date in another format; formats are those of strptime."""
        raise NotImplementedError

    def without_zeros(self, text: str) -> str:
        """Write a whole number without a decimal point and the zeros after it."""
        raise NotImplementedError

    def attempted(self, condition: Condition, types: Mapping[str, str]) -> str:
        """Evaluate a condition of a user over columns of some types; null if that is impossible."""
        raise NotImplementedError

    def stripped_of(self, text: str, characters: str) -> str:
        """Read a text without some surrounding characters."""
        return f"trim({text}, {self.literal(characters)})"

    def as_text(self, value: str) -> str:
        """Write a whole number as text."""
        return f"CAST({value} AS {self.text_type})"

    def is_infinite(self, double: str) -> str:
        """Whether a double is infinite."""
        return f"abs({double}) = {self.double(float('inf'))}"

    def matches(self, text: str, pattern: str) -> str:
        """Whether a whole text matches a pattern of those that mean the same everywhere."""
        raise NotImplementedError

    def captures(self, text: str, pattern: str, groups: int) -> str:
        """Read what the groups of a pattern capture of a text that matches it, as a list.

        No captured text has a line break.
        """
        raise NotImplementedError

    def item(self, items: str, place: int) -> str:
        """Read one item of a list, counted from 1; null if it is empty."""
        return f"nullif(({items})[{place}], '')"

    def without(self, text: str, pattern: str) -> str:
        """Read a text without all that matches a pattern."""
        return f"regexp_replace({text}, {self.literal(pattern)}, '', 'g')"

    def in_lower_case(self, text: str) -> str:
        """Write the letters of any script in lower case, the same in every database and in Arrow.

        Functions of databases depend on the version of Unicode and on the locale; only ASCII is safe.
        """
        capital, small = map(self.literal, letters())
        return (
            f"CASE WHEN {self.is_ascii(text)} THEN lower({text}) "
            f"ELSE translate({text}, {capital}, {small}) END"
        )

    def without_blanks(self, text: str) -> str:
        """Read a text without surrounding blanks of any script; most texts have none."""
        ends = [self.by_bytes(f"{end}({text}, 1)") for end in ("left", "right")]
        bare = " AND ".join(f"{end} BETWEEN '!' AND '~'" for end in ends)
        return f"CASE WHEN {bare} THEN {text} ELSE {self.stripped_of(text, BLANKS)} END"

    def is_ascii(self, text: str) -> str:
        """Whether a text has ASCII characters only."""
        return f"octet_length({text}) = length({text})"

    def joined(self, texts: Iterable[str]) -> str:
        """Write texts, of which some may be null, as one text that no others give."""
        parts = [f"coalesce({self.as_text(f'length({t})')} || ':' || {t}, '-')" for t in texts]
        return " || ',' || ".join(parts)

    def md5(self, text: str) -> str:
        """Write the MD5 of a text as 32 hexadecimal digits."""
        return f"md5({text})"

    def md5_bits(self, md5: str) -> str:
        """Read the first 15 digits of an MD5 as an exact number."""
        raise NotImplementedError

    # -------------------------------------------------------------- expressions

    def key(self, value: str, column_type: str) -> str:
        """Write a value as a key to group by: as it is stored if it compares so, else as text."""
        as_stored = family(column_type) in ("text", "whole", "float", "decimal", "boolean")
        return value if as_stored else self.text(value, column_type)

    def quotient(self, a: str, b: str) -> str:
        """Divide whole numbers that are not negative."""
        raise NotImplementedError

    def same(self, a: str, b: str) -> str:
        """Whether two values are equal, or both null."""
        return f"{a} IS NOT DISTINCT FROM {b}"

    def by_bytes(self, text: str) -> str:
        """Write a text so that it is ordered by its bytes."""
        return text


class PartsDialect(Dialect):
    """A dialect that reads texts by their parts; see :mod:`equipoise.engines.casts`."""

    small_type: ClassVar[str] = "INT"

    def type_name(self, column_type: str) -> str:
        """Return the database's name of a type of a column."""
        raise NotImplementedError

    def part(self, text: str, pattern: str, group: int) -> str:
        """Read a group of a pattern that a whole text matches; null if the text has none."""
        raise NotImplementedError

    def like(self, text: str, pattern: str) -> str:
        """Whether a text is like a pattern, in which only % and _ mean something else."""
        raise NotImplementedError

    def cased(self, name: str, text: str) -> str:
        """Write a text in lower or upper case, of all alphabets; null if that is impossible."""
        return f"{name}({text})"

    def rounded(self, text: str, places: int) -> str:
        """Read a text that matches :data:`NUMBER` as an exact number of some decimal places."""
        raise NotImplementedError

    def day(self, year: str, month: str, day: str) -> str:
        """Make a date that exists; the year before 1 is 0."""
        raise NotImplementedError

    def moment(self, day: str, hour: str, minute: str, second: str) -> str:
        """Make a timestamp of a date and a time of day."""
        raise NotImplementedError

    def instant(self, moment: str, offset: str) -> str:
        """Make an instant of a timestamp of a zone, some seconds ahead of UTC."""
        raise NotImplementedError
