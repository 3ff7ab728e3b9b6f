"""Texts read as values, by the same rules as DuckDB's ``TRY_CAST``, in databases with other casts.

PostgreSQL takes ``yesterday`` for a date and refuses a query over one text that is none; Spark reads
``2021`` as a day. Here a pattern decides what a text is, and a value is made of its parts. A few
spellings that DuckDB knows are not read: ``0x1F``, ``1_000``, names of time zones other than UTC,
exponents of more than three digits, and years before -4711 or after 294245.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from equipoise.engines.column_types import family
from equipoise.engines.dialect import NUMBER, PartsDialect

if TYPE_CHECKING:
    from collections.abc import Mapping

_SIZES: Mapping[str, int] = {"TINYINT": 8, "SMALLINT": 16, "INTEGER": 32, "BIGINT": 64}

_DIGITS = "[+-]?[0-9]+([.]0*)?"
_LONGEST = 200  # digits of a number; a database refuses very long ones
_DAY = " *(-?[0-9]{1,6})[-/ ]([0-9]{1,2})[-/ ]([0-9]{1,2})( [(]BC[)])?"
_CLOCK = "([0-9]{1,2}):([0-9]{1,2})(:([0-9]{1,2})([.]([0-9]*))?)?"
_ZONE = "(Z| UTC|([+-])([0-9]{2})(:?([0-9]{2})(:([0-9]{2}))?)?)?"
_MOMENT = f"{_DAY}((T| +){_CLOCK}{_ZONE})? *"
_ISO_DAY = "[0-9]{4}-[0-9]{2}-[0-9]{2}"
_ISO = f"{_ISO_DAY}[ T][0-9]{{2}}:[0-9]{{2}}:[0-9]{{2}}"
_TIME = f" *{_CLOCK}{_ZONE} *"
# One separator in the whole of a day.
_PLAIN_DAY = " *-?[0-9]+(-[0-9]+-|/[0-9]+/| [0-9]+ )[0-9]+.*"
_YEARS = (-4711, 294_245)

_TRUE = ("true", "t", "1", "yes", "y")
_FALSE = ("false", "f", "0", "no", "n")

MONTHS = (
    *("January", "February", "March", "April", "May", "June", "July", "August"),
    *("September", "October", "November", "December"),
)


def tried(d: PartsDialect, text: str, column_type: str) -> str:
    """Read a text as a value of a type; null if it is none."""
    kind, name = family(column_type), d.type_name(column_type)
    if kind == "text":
        return text
    if kind == "boolean":
        bare = f"lower({text})"
        return f"CASE WHEN {bare} IN ({d.texts(_TRUE)}) THEN true WHEN {bare} IN ({d.texts(_FALSE)}) THEN false END"
    if kind == "float":
        nan = f"WHEN {d.is_unknown_number(text, 'VARCHAR')} THEN CAST('NaN' AS {name})"
        return f"CASE {nan} ELSE {d.narrowed(d.parsed(text), column_type)} END"
    if kind in ("whole", "decimal"):
        return _exact(d, text, column_type)
    if kind == "time":
        return _time(d, text, name)
    if kind in ("date", "timestamp", "instant"):
        return _moment(d, text, column_type)
    raise NotImplementedError(f"a text cannot be read as {column_type}")


def converted(d: PartsDialect, text: str, column_type: str) -> str:
    """Read a text as what a condition compares it as: not-a-number is missing, and nothing is rounded."""
    if family(column_type) == "float":
        return d.narrowed(d.parsed(text), column_type)
    if column_type in ("BIGINT", "HUGEINT"):
        return _digits(d, text, column_type)
    return tried(d, text, column_type)


def whole(d: PartsDialect, text: str, column_type: str) -> str:
    """Read a whole number by its digits, and only others, such as 1e3, as a double."""
    number = d.parsed(text)
    low, high = limits(column_type)
    fits = f"{number} >= {max(low, -(2**53) + 1)} AND {number} <= {min(high, 2**53 - 1)}"
    # In steps, since a database may refuse to round what no integer can hold.
    is_whole = f"CASE WHEN {fits} THEN {number} = floor({number}) END"
    # Through an integer, since PostgreSQL gives a decimal only 15 digits of a double.
    integer = f"CAST({number} AS {d.whole_type})"
    as_double = f"CASE WHEN {is_whole} THEN CAST({integer} AS {d.type_name(column_type)}) END"
    return f"coalesce({_digits(d, text, column_type)}, {as_double})"


def limits(column_type: str) -> tuple[int, int]:
    """Return the smallest and the largest number of a type of whole numbers.

    >>> limits("TINYINT"), limits("UTINYINT")
    ((-128, 127), (0, 255))
    """
    if column_type == "HUGEINT":
        return -(10**38) + 1, 10**38 - 1
    if column_type.startswith("U"):
        return 0, 2 ** _SIZES.get(column_type[1:], 64) - 1
    bits = _SIZES.get(column_type, 64)
    return -(2 ** (bits - 1)), 2 ** (bits - 1) - 1


def _digits(d: PartsDialect, text: str, column_type: str) -> str:
    """Read a text of digits, with zeros after the point if it has one."""
    number = d.rounded(f"split_part({text}, '.', 1)", 0)
    is_short = f"length({text}) <= {_LONGEST}"
    return _guarded(d.matches(text, _DIGITS), is_short, _within(d, number, column_type))


def _exact(d: PartsDialect, text: str, column_type: str) -> str:
    """Read a whole number or a decimal, rounded to its places."""
    places = re.fullmatch(r"DECIMAL\((\d+), ?(\d+)\)", column_type)
    bare = d.stripped(text)
    if column_type == "DECIMAL":  # of any scale
        value = f"CAST({bare} AS {d.type_name(column_type)})"
    elif places is None:
        value = _within(d, d.rounded(bare, 0), column_type)
    else:
        width, scale = int(places[1]), int(places[2])
        number = d.rounded(bare, scale)
        value = _guarded(
            f"abs({number}) < {10 ** (width - scale)}",
            f"CAST({number} AS {d.type_name(column_type)})",
        )
    return _guarded(d.matches(bare, NUMBER), value)


def _within(d: PartsDialect, number: str, column_type: str) -> str:
    low, high = limits(column_type)
    return _guarded(
        f"{number} BETWEEN {low} AND {high}", f"CAST({number} AS {d.type_name(column_type)})"
    )


def _guarded(*conditions_and_value: str) -> str:
    """Evaluate a value only if all conditions before it hold, which AND does not promise."""
    *conditions, value = conditions_and_value
    for condition in reversed(conditions):
        value = f"CASE WHEN {condition} THEN {value} END"
    return value


# ------------------------------------------------------------------------------ moments


def _moment(d: PartsDialect, text: str, column_type: str) -> str:
    """Read a date or a moment; those as in 2021-03-25 10:00:00 are read much faster than others."""
    year, month, day, hour, minute, second = (
        _number(d, f"substr({text}, {at}, {size})")
        for at, size in ((1, 4), (6, 2), (9, 2), (12, 2), (15, 2), (18, 2))
    )
    date, kind = d.day(year, month, day), family(column_type)
    plain, timed = date, date
    if kind != "date":
        plain = d.moment(date, "0", "0", d.rounded("'0'", 6))
        timed = d.moment(date, hour, minute, d.rounded(f"substr({text}, 18, 2)", 6))
    if kind == "instant":
        plain, timed = (d.instant(moment, "0") for moment in (plain, timed))
    exists, is_clock = is_day(year, month, day), _is_clock(d, hour, minute, second, "''")
    return (
        f"CASE WHEN {d.matches(text, _ISO_DAY)} THEN {_guarded(exists, plain)} "
        f"WHEN {d.matches(text, _ISO)} THEN {_guarded(exists, is_clock, timed)} "
        f"ELSE {_other_moment(d, text, column_type)} END"
    )


def _other_moment(d: PartsDialect, text: str, column_type: str) -> str:
    def part(i: int) -> str:
        return d.part(text, _MOMENT, i)

    year = _number(d, part(1))
    year = f"(CASE WHEN {part(4)} IS NULL THEN {year} ELSE 1 - {year} END)"
    month, day = _number(d, part(2)), _number(d, part(3))
    date = d.day(year, month, day)
    hour, minute, second = (f"coalesce({_number(d, part(i))}, 0)" for i in (7, 8, 10))
    fraction = f"coalesce({part(12)}, '')"
    kind = family(column_type)
    if kind == "date":
        value = date
    else:
        value = d.moment(date, hour, minute, _seconds(d, part(10), part(12)))
    if kind == "instant":
        hours, minutes, seconds = (f"coalesce({_number(d, part(i))}, 0)" for i in (15, 17, 19))
        offset = f"({hours} * 3600 + {minutes} * 60 + {seconds})"
        value = d.instant(value, f"(CASE WHEN {part(14)} = '-' THEN -{offset} ELSE {offset} END)")
    return _guarded(
        d.matches(text, _MOMENT),
        d.matches(text, _PLAIN_DAY),
        is_day(year, month, day),
        f"{year} BETWEEN {_YEARS[0]} AND {_YEARS[1]} AND {_is_clock(d, hour, minute, second, fraction)}",
        value,
    )


def _time(d: PartsDialect, text: str, name: str) -> str:
    hour, minute, second = (f"coalesce({_number(d, d.part(text, _TIME, i))}, 0)" for i in (1, 2, 4))
    fraction = d.part(text, _TIME, 6)
    clock = f"{_padded(hour, d)} || ':' || {_padded(minute, d)} || ':' || {_padded(second, d)}"
    bare = f"regexp_replace(substr({fraction}, 1, 6), '0+$', '')"
    value = f"CAST({clock} || coalesce('.' || nullif({bare}, ''), '') AS {name})"
    is_clock = _is_clock(d, hour, minute, second, f"coalesce({fraction}, '')")
    return _guarded(d.matches(text, _TIME), is_clock, value)


def _is_clock(d: PartsDialect, hour: str, minute: str, second: str, fraction: str) -> str:
    end = f"{hour} = 24 AND {minute} = 0 AND {second} = 0 AND {d.matches(fraction, '0*')}"
    return f"(({hour} < 24 AND {minute} < 60 AND {second} < 60) OR ({end}))"


def _seconds(d: PartsDialect, second: str, fraction: str) -> str:
    """Write seconds with at most six digits after the point; more are cut off."""
    text = f"coalesce({second}, '0') || '.' || substr(coalesce({fraction}, '') || '000000', 1, 6)"
    return d.rounded(text, 6)


def is_day(year: str, month: str, day: str) -> str:
    """Whether a day of a month exists in a year."""
    leap = f"({year} % 4 = 0 AND ({year} % 100 <> 0 OR {year} % 400 = 0))"
    last = (
        f"CASE WHEN {month} = 2 THEN CASE WHEN {leap} THEN 29 ELSE 28 END "
        f"WHEN {month} IN (4, 6, 9, 11) THEN 30 ELSE 31 END"
    )
    return f"{month} BETWEEN 1 AND 12 AND {day} BETWEEN 1 AND {last}"


def _number(d: PartsDialect, text: str) -> str:
    return f"CAST({text} AS {d.small_type})"


def _padded(number: str, d: PartsDialect, digits: int = 2) -> str:
    return f"lpad({d.as_text(number)}, {digits}, '0')"


# ----------------------------------------------------------------------- formats of dates

_READ = {
    "%Y": "([0-9]{4})",
    "%y": "([0-9]{2})",
    "%g": "([0-9]{3})",
    "%b": "([A-Za-z]{3})",
    "%B": "([A-Za-z]+)",
    "%p": "([A-Za-z]{2})",
}
_FIELD = re.compile(r"(%-?[A-Za-z])")


def redated(d: PartsDialect, text: str, read: str, write: str) -> str:
    """Write a date in another format, both of strptime; null for a day that does not exist.

    The text is known to match the pattern of the format.
    """
    found = _fields(d, text, read)
    zero = "'0'"
    year = found.get("%Y") or _century(d, found["%y"])
    month = found.get("%m") or _month_number(found.get("%b") or found["%B"], d)
    day = found["%d"]
    hour = found.get("%H", zero)
    if "%I" in found:
        noon = f"CASE WHEN lower({found['%p']}) = 'pm' THEN 12 ELSE 0 END"
        hour = d.as_text(f"({_number(d, found['%I'])} % 12 + {noon})")
    number = {
        "%Y": year,
        "%m": month,
        "%d": day,
        "%H": hour,
        "%M": found.get("%M", zero),
        "%S": found.get("%S", zero),
        "%g": found.get("%g", zero),
    }
    parts = [
        _written(d, part, number) if part.startswith("%") else d.literal(part)
        for part in _FIELD.split(write)
        if part
    ]
    exists = is_day(*(_number(d, number[name]) for name in ("%Y", "%m", "%d")))
    return _guarded(exists, " || ".join(parts))


def _fields(d: PartsDialect, text: str, read: str) -> dict[str, str]:
    """Return the text of each field of a format, as SQL."""
    number = "([0-9]{2})" if read == "%Y%m%d" else "([0-9]{1,2})"
    pieces = [piece for piece in _FIELD.split(read) if piece]
    pattern = "".join(
        _READ.get(p, number) if p.startswith("%") else p.replace(".", "[.]") for p in pieces
    )
    names = [p for p in pieces if p.startswith("%")]
    return {name: d.part(text, pattern, i + 1) for i, name in enumerate(names)}


def _century(d: PartsDialect, year: str) -> str:
    """Write a year of two digits with its century, as strptime does: 1969 to 2068."""
    return d.as_text(
        f"({_number(d, year)} + CASE WHEN {_number(d, year)} < 69 THEN 2000 ELSE 1900 END)"
    )


def _month_number(name: str, d: PartsDialect) -> str:
    short = f"lower(substr({name}, 1, 3))"
    whens = " ".join(
        f"WHEN {d.literal(month[:3].lower())} THEN '{i + 1}'" for i, month in enumerate(MONTHS)
    )
    return f"CASE {short} {whens} END"


def _written(d: PartsDialect, field: str, of: Mapping[str, str]) -> str:
    """Write one field of a format."""
    bare, is_short = field.replace("-", ""), "-" in field
    if bare in ("%b", "%B"):
        names = [month[:3] if bare == "%b" else month for month in MONTHS]
        whens = " ".join(f"WHEN {i + 1} THEN '{name}'" for i, name in enumerate(names))
        return f"CASE {_number(d, of['%m'])} {whens} END"
    if bare == "%p":
        return f"CASE WHEN {_number(d, of['%H'])} < 12 THEN 'AM' ELSE 'PM' END"
    value = _number(d, of["%Y" if bare == "%y" else "%H" if bare == "%I" else bare])
    if bare == "%I":
        value = f"(({value} + 11) % 12 + 1)"
    if bare == "%y":
        value = f"({value} % 100)"
    width = {"%Y": 4, "%g": 3}.get(bare, 2)
    return d.as_text(value) if is_short else _padded(value, d, width)


class CastingDialect(PartsDialect):
    """A dialect whose casts are those of this module."""

    def converted(self, text: str, column_type: str) -> str:
        """Read a text as a value of a type; null if it is none."""
        return converted(self, text, column_type)

    def tried(self, text: str, column_type: str) -> str:
        """Cast a text to a type; null if that is impossible."""
        return tried(self, text, column_type)

    def whole(self, text: str, column_type: str) -> str:
        """Read a whole number by its digits, and only others, such as 1e3, as a double."""
        return whole(self, text, column_type)

    def redated(self, text: str, read: str, write: str) -> str:
        """Write a date in another format; formats are those of strptime."""
        return redated(self, text, read, write)
