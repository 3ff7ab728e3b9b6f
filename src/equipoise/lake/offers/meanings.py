"""Hashes of values by their meaning as SQL: the same as those of :mod:`equipoise.lake.offers.fingerprints`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from equipoise.engines.column_types import family
from equipoise.engines.dialect import Dialect
from equipoise.lake.offers.fingerprints import (
    COMMA,
    DATE,
    DIGITS,
    GROUPED,
    LARGE,
    NUMBER,
    TRUTHS,
    hash_text,
    loosely,
)

_PARTS = 9
"""Number of groups of the pattern of dates."""

_DIGITS = tuple("0123456789")
_STARTS = (*_DIGITS, *"+-.")
_AS_WRITTEN = "[0-9]{4}-[0-9]{2}-[0-9]{2}"
"""Dates that are already written as they are compared."""


@dataclass(frozen=True)
class HashedColumn:
    """A column whose values are hashed; the hashes of its most frequent values may be known."""

    name: str
    type: str
    is_loose: bool = False
    known: Mapping[str, str] | None = None

    @property
    def key(self) -> str:
        """Name of its hashes among those of rows."""
        return loosely(self.name) if self.is_loose else self.name

    @property
    def is_text(self) -> bool:
        """Whether its values are hashed as texts that may be anything."""
        plain = ("whole", "float", "boolean", "date")
        return self.is_loose or family(self.type) not in plain


def digested(
    d: Dialect, columns: Sequence[HashedColumn], beside: Mapping[str, str], mark: str
) -> str:
    """Select ``digest``, the hash of each row of ``input`` over some columns, and others by name.

    It is that of :meth:`~equipoise.lake.offers.fingerprints.RowHashes.digests`.
    """
    order = sorted(range(len(columns)), key=lambda i: columns[i].key)
    text = " || ".join(f"h{i}" for i in order)
    return (
        f"SELECT {_short(d, text)} AS digest{''.join(f', {name}' for name in beside)} "
        f"FROM ({hashed(d, columns, beside, mark)}) AS hashed{d.fence}"
    )


def hashed(
    d: Dialect, columns: Sequence[HashedColumn], beside: Mapping[str, str], mark: str
) -> str:
    """Select the hashes ``h0``, ``h1``, … of columns of ``input``, and other expressions by name.

    Hashes of values that are known are looked up, which is much faster than computing them. ``mark``
    is a suffix that no column of the table has.
    """
    # Nested, so that no expression is written, bound and computed more than once.
    read, joins = [f"{value} AS {name}" for name, value in beside.items()], []
    bare, lower, dates, hashes = ["*"], ["*"], ["*"], list(beside)
    for i, column in enumerate(columns):
        source = f"input.{d.identifier(column.name)}"
        value, computed = _read(d, source, column), _hash(d, f"v{i}", f"d{i}", column)
        if column.known:
            joins.append(_lookup(d, source, column, f"l{i}", mark))
            found = f"l{i}.hash{mark}"
            read.append(f"{found} AS f{i}")
            value = f"CASE WHEN {found} IS NULL THEN {value} END"
            computed = f"CASE WHEN f{i} IS NOT NULL THEN f{i} ELSE {computed} END"
        read.append(f"{value} AS {'r' if column.is_text else 'v'}{i}")
        if column.is_text:
            bare.append(f"{d.without_blanks(f'r{i}')} AS b{i}")
            lower.append(f"{d.in_lower_case(f'b{i}')} AS v{i}")
            dates.append(f"{_date_parts(d, f'v{i}', column)} AS d{i}")
        hashes.append(f"{computed} AS h{i}")
    query = f"SELECT {', '.join(read)} FROM input {' '.join(joins)}{d.fence}"
    for step, listed in enumerate((bare, lower, dates, hashes)):
        if listed != ["*"]:
            query = f"SELECT {', '.join(listed)} FROM ({query}) AS step{step}{d.fence}"
    return query


def _lookup(d: Dialect, source: str, column: HashedColumn, name: str, mark: str) -> str:
    """Join the known hashes of a column."""
    is_whole = family(column.type) == "whole"
    lines = ", ".join(
        f"({str(int(text)) if is_whole else d.literal(text)}, '{found}')"
        for text, found in (column.known or {}).items()
    )
    key = source if is_whole else d.text(source, column.type)
    table = f"(SELECT * FROM (VALUES {lines}) AS listed(key{mark}, hash{mark}))"
    return f"LEFT JOIN {table} AS {name} ON {name}.key{mark} = {key}"


def _read(d: Dialect, source: str, column: HashedColumn) -> str:
    """Read a value as its hash needs it: as text, unless the type says what it means."""
    kind = family(column.type)
    if column.is_text:
        return d.text(source, column.type)
    if kind == "date":
        return f"lower({d.text(source, column.type)})"
    return d.float(source) if kind == "float" else source


def _date_parts(d: Dialect, text: str, column: HashedColumn) -> str:
    """Read the parts of a date; null for other texts, and for dates that are hashed as written."""
    is_date = f"left({text}, 1) IN ({d.texts(_DIGITS)}) AND {d.matches(text, DATE)}"
    if not column.is_loose:
        is_date += f" AND NOT {d.matches(text, _AS_WRITTEN)}"
    return f"CASE WHEN {is_date} THEN {d.captures(text, DATE, _PARTS)} END"


def _hash(d: Dialect, value: str, date: str, column: HashedColumn) -> str:
    """Hash what :func:`_read` and :func:`_date_parts` read."""
    missing, kind = f"'{hash_text('')}'", family(column.type)
    if column.is_loose:
        loose = _short(d, _loose(d, value, date))
        return f"CASE WHEN {value} IS NULL THEN {missing} ELSE {loose} END"
    if kind == "boolean":
        yes, no = hash_text("yes"), hash_text("no")
        return f"CASE WHEN {value} THEN '{yes}' WHEN NOT {value} THEN '{no}' ELSE {missing} END"
    if kind == "float":
        return f"coalesce({d.bits(value)}, {missing})"
    if kind == "date":
        return f"coalesce({_short(d, value)}, {missing})"
    if kind == "whole":
        bits = d.bits(f"CAST({value} AS {d.double_type})")
        return (
            f"CASE WHEN {value} IS NULL THEN {missing} "
            f"WHEN {value} > -{LARGE} AND {value} < {LARGE} THEN {bits} "
            f"ELSE {_short(d, d.as_text(value))} END"
        )
    return _hash_of_text(d, value, date)


def _hash_of_text(d: Dialect, text: str, date: str) -> str:
    """Hash a text that may be a number, a date, yes or no; most texts are none of these."""
    comma, grouped = d.matches(text, COMMA), d.matches(text, GROUPED)
    point = f"replace(replace({text}, '.', ''), ',', '.')"
    bare = f"replace({text}, ',', '')"
    truths = " ".join(
        f"WHEN {text} = '{said}' THEN '{hash_text(meant)}'" for said, meant in TRUTHS.items()
    )
    return (
        f"CASE WHEN {text} IS NULL THEN '{hash_text('')}' {truths} "
        f"WHEN left({text}, 1) NOT IN ({d.texts(_STARTS)}) THEN {_short(d, text)} "
        f"WHEN {date} IS NOT NULL THEN {_short(d, f'coalesce({_day(d, date)}, {text})')} "
        f"WHEN {d.matches(text, NUMBER)} THEN {_bits(d, text)} "
        f"WHEN {comma} THEN CASE WHEN {grouped} THEN {_short(d, text)} ELSE {_bits(d, point)} END "
        f"WHEN {grouped} THEN {_bits(d, bare)} "
        f"ELSE {_short(d, text)} END"
    )


def _bits(d: Dialect, text: str) -> str:
    """Hash the text of a number; there is one zero."""
    return d.bits(f"{d.finite(text)} + {d.double(0.0)}")


def _short(d: Dialect, text: str) -> str:
    return f"substr({d.md5(text)}, 1, {DIGITS})"


def _day(d: Dialect, date: str) -> str:
    """Write a date with the year first; null if it is ambiguous, or if it is no date."""
    first, mark, second, other_mark, third = (d.item(date, i) for i in range(1, 6))
    a, b, c = (f"lpad({part}, 2, '0')" for part in (first, second, third))
    return (
        f"CASE WHEN {mark} <> {other_mark} THEN NULL "
        f"WHEN length({first}) = 4 AND length({third}) <= 2 THEN {first} || '-' || {b} || '-' || {c} "
        f"WHEN length({third}) <> 4 OR length({first}) > 2 THEN NULL "
        f"WHEN {a} <= '12' AND {b} <= '12' AND {a} <> {b} THEN NULL "
        f"ELSE {third} || '-' || least({a}, {b}) || '-' || greatest({a}, {b}) END || {_time(d, date)}"
    )


def _time(d: Dialect, date: str) -> str:
    """Write the time after a date; midnight counts as no time."""
    hour, minute, seconds, half = (d.item(date, i) for i in range(6, 10))
    later = f"CASE WHEN {half} = 'p' THEN 12 ELSE 0 END"
    of_24 = d.as_text(f"(CAST({hour} AS INTEGER) % 12 + {later})")
    hours = f"CASE WHEN {half} IS NULL THEN coalesce({hour}, '0') ELSE {of_24} END"
    parts = [f"lpad({hours}, 2, '0')", f"coalesce({minute}, '00')", f"coalesce({seconds}, '00')"]
    whole = " || ':' || ".join(parts)
    return f"coalesce(' ' || nullif({whole}, '00:00:00'), '')"


def _loose(d: Dialect, text: str, date: str) -> str:
    """Write a date in any order of its parts, and a number by its digits."""
    a, b, c = (f"lpad(right({d.item(date, i)}, 2), 2, '0')" for i in (1, 3, 5))
    middle = f"greatest(least({a}, {b}), least(greatest({a}, {b}), {c}))"
    parts = f"least({a}, {b}, {c}) || '-' || {middle} || '-' || greatest({a}, {b}, {c})"
    digits = d.without(text, "[^0-9]")
    return (
        f"CASE WHEN {d.item(date, 2)} = {d.item(date, 4)} THEN {parts} || {_time(d, date)} "
        f"WHEN {digits} <> '' THEN {d.stripped_of(digits, '0')} ELSE {text} END"
    )
