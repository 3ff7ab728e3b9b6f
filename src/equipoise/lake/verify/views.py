"""Queries over the rows of a table that is verified, which stay where they are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from equipoise.engines import sql
from equipoise.engines.base import Column, Identity
from equipoise.engines.column_types import family, is_float
from equipoise.engines.dialect import Dialect
from equipoise.engines.sources import WORD

PLAIN = r"[+-]?([0-9]+[.]?[0-9]*|[.][0-9]+)([eE][+-]?[0-9]+)?"
WHOLE = r"[+-]?[0-9]+"
WITH_COMMA = r"[+-]?[0-9][0-9.]*(,[0-9]+)?"
WITH_GROUPS = r"[+-]?[0-9][0-9,]*([.][0-9]+)?"
"""Numbers as people and programs write them."""

DATE = (
    r"([0-9]{4}|[0-9]{1,2}|[a-zA-Z]{3,9})[-/. ]([0-9]{1,2}|[a-zA-Z]{3,9}),?[-/. ]"
    r"([0-9]{4}|[0-9]{1,2})([ tT][0-9]{1,2}:[0-9][0-9](:[0-9][0-9]([.][0-9]+)?)?( ?[aApP][mM])?)?"
)
"""What may be a date: its two separators may differ, since not every database can compare them."""

_CLOCK = r"[0-9]{2}:[0-9:.]+"
_DAY = r"-[0-9]{2}-[0-9]{2}"
_SHIFTED = rf"( {_CLOCK}([+-][0-9:]+)?)?"
_USUAL = rf"[0-9]{{4}}{_DAY}{_SHIFTED}|([01][0-9]|2[0-3]):[0-9:.]+"
_MOMENT = rf"-?infinity|[0-9]{{4,7}}{_DAY}( [(]BC[)])?{_SHIFTED}|{_CLOCK}"
"""Moments of a database, and those that every type of dates and times can hold."""

_TIME = r"[ tT][0-9]{1,2}:[0-9][0-9].*$"
_NUMBER = r"[+-]?[0-9]+([.][0-9]*)?([eE][+-]?[0-9]{1,3})?"
_WITH_POINT = r"[+-]?[0-9]+[.][0-9]*"
_LEADING, _TRAILING = "^[+-]?0*", "[.]?0*$"
_EXACT = 2**53

UNSCALED = "DECIMAL"
"""The type of numbers of any length, which only PostgreSQL has; elsewhere they are texts."""


# ------------------------------------------------------------------------------ meanings


def meaning(d: Dialect, column: Column, other_type: str) -> str:
    """Write a value so that values of two types that say the same are written alike.

    A CSV file has no null, and may write 39 as 39.0. A text is read as a number only if it is
    compared with a column of numbers, in the precision of that.
    """
    value, families = d.identifier(column.name), {family(column.type), family(other_type)}
    if "float" in families:
        number = _as_double(d, value, column.type)
        if any(kind.upper() in ("FLOAT", "REAL") for kind in (column.type, other_type)):
            number = f"CAST({d.narrowed(number, 'FLOAT')} AS {d.double_type})"
        number = d.bits(f"({number}) + {d.double(0.0)}")
    elif families & {"whole", "decimal"}:
        number = _as_digits(d, value, column.type)
    else:
        return f"nullif({d.text(value, column.type)}, '')"
    # Marked, so that no text can pass for a number.
    if is_float(column.type):
        return f"'=' || {number}"
    text = d.text(value, column.type)
    absent = d.texts(("", "nan") if "float" in families else ("",))
    return (
        f"CASE WHEN {text} IN ({absent}) THEN NULL "
        f"ELSE coalesce('=' || {number}, '~' || {text}) END"
    )


def _as_double(d: Dialect, value: str, column_type: str) -> str:
    kind = family(column_type)
    if kind == "float":
        return d.float(value)
    if kind in ("whole", "decimal"):
        return f"CAST({value} AS {d.double_type})"
    text = d.text(value, column_type)
    infinite = " ".join(
        f"WHEN {text} = '{sign}inf' THEN {d.double(float(f'{sign}inf'))}" for sign in ("", "-")
    )
    return f"CASE WHEN {d.matches(text, _NUMBER)} THEN {d.finite(text)} {infinite} END"


def _as_digits(d: Dialect, value: str, column_type: str) -> str:
    """Write an exact number by its digits; a double would make long ones equal that differ."""
    kind, text = family(column_type), d.text(value, column_type)
    if kind == "whole":
        return text
    if kind == "decimal" and column_type != UNSCALED:
        return _without_zeros(d, text)
    if kind not in ("text", "decimal"):
        return f"CAST(NULL AS {d.text_type})"
    number = d.finite(text)
    is_whole = f"{number} = floor({number}) AND abs({number}) < {d.double(float(_EXACT))}"
    return (
        f"CASE WHEN {d.matches(text, WHOLE)} THEN {_digits(d, text, _LEADING)} "
        f"WHEN {d.matches(text, _WITH_POINT)} THEN {_digits(d, text, f'{_LEADING}|{_TRAILING}')} "
        f"WHEN {d.matches(text, _NUMBER)} THEN CASE WHEN {is_whole} "
        f"THEN {d.as_text(f'CAST({number} AS {d.whole_type})')} END END"
    )


def _digits(d: Dialect, text: str, needless: str) -> str:
    """Write a number of any length, without a cast, which would round it, as a decimal is written."""
    bare = d.without(text, needless)
    return (
        f"CASE WHEN {bare} = '' THEN '0' ELSE CASE WHEN {text} LIKE '-%' THEN '-' ELSE '' END || "
        f"CASE WHEN {bare} LIKE '.%' THEN '0' ELSE '' END || {bare} END"
    )


def _without_zeros(d: Dialect, text: str) -> str:
    return f"CASE WHEN {text} LIKE '%.%' THEN {d.without(text, '[.]?0+$')} ELSE {text} END"


@dataclass(frozen=True)
class RowComparison:
    """How the rows of a table are written so that rows of another one can equal them."""

    columns: tuple[Column, ...]
    meant: Mapping[str, str] = field(default_factory=dict)
    """Columns that are compared by meaning, with their types in the other table."""

    def md5(self, d: Dialect) -> str:
        """Write the md5 of a row."""
        texts = [
            meaning(d, column, self.meant[column.name])
            if column.name in self.meant
            else d.exact(d.identifier(column.name), column.type)
            for column in self.columns
        ]
        return d.md5(d.joined(texts))


# ---------------------------------------------------------------------------------- rows


@dataclass(frozen=True)
class ComparedRows:
    """A view of the md5 by which each row is compared with rows of another table."""

    comparison: RowComparison

    def query(self, d: Dialect, carried: Sequence[str] = ()) -> str:
        """Write the query; see :class:`~equipoise.engines.sources.View`."""
        others = "".join(f", {d.identifier(name)}" for name in carried)
        return f"SELECT {self.comparison.md5(d)} AS compared{others} FROM input"


@dataclass(frozen=True)
class SummedRows:
    """A view of the number of rows, and of a sum of their salted hashes, by the digits they begin with."""

    comparison: RowComparison
    salt: str
    digits: int

    def query(self, d: Dialect, carried: Sequence[str] = ()) -> str:  # noqa: ARG002
        """Write the query; see :class:`~equipoise.engines.sources.View`."""
        hashed = f"SELECT {self.comparison.md5(d)} AS h FROM input{d.fence}"
        salted = d.md5_bits(d.md5(f"{d.literal(self.salt)} || h"))
        return (
            f"SELECT substr(h, 1, {self.digits}) AS part, count(*) AS n, "
            f"{d.as_text(f'sum({salted})')} AS total FROM ({hashed}) AS hashed GROUP BY 1"
        )


@dataclass(frozen=True)
class ListedRows:
    """A view of the rows whose hash begins with the digits asked for: it, and what they are known by.

    Rows of files are known by their number, which is counted here, others by a key or their md5.
    """

    table: tuple[Column, ...]
    comparison: RowComparison
    digits: int
    known: Identity

    def query(self, d: Dialect, carried: Sequence[str] = ()) -> str:  # noqa: ARG002
        """Write the query; see :class:`~equipoise.engines.sources.View`."""
        md5 = d.md5(sql.canonical_row(d, self.table))
        place = md5
        if self.known.numbered:
            place = "row_number() OVER () - 1"
        elif self.known.key:
            place = sql.key_text(d, self.table, self.known)
        hashed = (
            f"SELECT {place} AS place, {md5} AS md5, {self.comparison.md5(d)} AS h "
            f"FROM input{d.fence}"
        )
        start = f"substr(h, 1, {self.digits})"
        return (
            f"SELECT place, md5, h FROM (SELECT hashed.*, {start} AS part FROM ({hashed}) AS hashed) "
            f"AS told JOIN asked ON asked.{WORD} = part"
        )


# -------------------------------------------------------------------------------- values


@dataclass(frozen=True)
class TextKinds:
    """A view of one row: how many values a column has, and how many of them read as something.

    Only what is ``asked`` is matched, since that takes long: for each name a pattern that all may match.
    """

    column: Column
    asked: Mapping[str, str]

    def query(self, d: Dialect, carried: Sequence[str] = ()) -> str:  # noqa: ARG002
        """Write the query; see :class:`~equipoise.engines.sources.View`."""
        rows = f"coalesce(sum(CASE WHEN {d.matches('v', PLAIN)} THEN n ELSE 0 END), 0)"
        others = "".join(
            f", count(*) FILTER (WHERE NOT {d.matches('v', pattern)}) AS {name}"
            for name, pattern in self.asked.items()
        )
        # If some value matches none of them, it does not matter how many different ones there are.
        values = _values(d, self.column, each_once=bool(self.asked))
        return (
            f"SELECT count(*) AS texts, CAST(coalesce(sum(n), 0) AS {d.whole_type}) AS total, "
            f"CAST({rows} AS {d.whole_type}) AS plain{others} FROM ({values}) AS known"
        )


@dataclass(frozen=True)
class TextDays:
    """A view of the different dates of a column without their times of day, and whether they had one."""

    column: Column

    def query(self, d: Dialect, carried: Sequence[str] = ()) -> str:  # noqa: ARG002
        """Write the query; see :class:`~equipoise.engines.sources.View`."""
        day = d.without("v", _TIME)
        return (
            f"SELECT DISTINCT {day} AS day, {day} <> v AS timed "
            f"FROM ({_values(d, self.column)}) AS known"
        )


@dataclass(frozen=True)
class TextMoments:
    """A view of one row: how many texts are moments that a file may be unable to hold, and how many are none."""

    column: Column

    def query(self, d: Dialect, carried: Sequence[str] = ()) -> str:  # noqa: ARG002
        """Write the query; see :class:`~equipoise.engines.sources.View`."""
        usual, moment = (f"NOT {d.matches('v', pattern)}" for pattern in (_USUAL, _MOMENT))
        return (
            f"SELECT count(*) FILTER (WHERE {usual}) AS unusual, count(*) FILTER (WHERE {moment}) AS others "
            f"FROM ({_values(d, self.column)}) AS known"
        )


@dataclass(frozen=True)
class KnownTexts:
    """A view of those of some texts that are values of a column."""

    column: Column
    texts: Sequence[str]

    def query(self, d: Dialect, carried: Sequence[str] = ()) -> str:  # noqa: ARG002
        """Write the query; see :class:`~equipoise.engines.sources.View`."""
        text = d.text(d.identifier(self.column.name), self.column.type)
        texts = d.texts(self.texts) or "NULL"  # a database may be unable to have any of them
        return f"SELECT DISTINCT {text} AS v FROM input WHERE {text} IN ({texts})"


def _values(d: Dialect, column: Column, *, each_once: bool = True) -> str:
    """Select the values of a column as texts without blanks around them, and how many rows have each."""
    text = d.without_blanks(d.text(d.identifier(column.name), column.type))
    n, by = ("count(*)", " GROUP BY 1") if each_once else ("1", d.fence)
    values = f"SELECT {text} AS v, {n} AS n FROM input{by}"
    return f"SELECT v, n FROM ({values}) AS counted WHERE v IS NOT NULL AND v NOT IN ('', 'nan')"
