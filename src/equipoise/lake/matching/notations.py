"""The notations of numbers and dates, recognised from all values of a column.

A single value is not enough: ``1,234`` may be more than a thousand or a little more than one, and
``03/04/2021`` may be in March or in April. A column is read in a notation only if exactly one
notation fits every value.
"""

from __future__ import annotations

import functools
import itertools
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from equipoise.engines.dialect import Dialect
from equipoise.lake.matching.values.concepts import MARKS, synonyms

# ------------------------------------------------------------------------------- patterns
# Every pattern means the same in Python and in DuckDB (RE2), and has to match a whole value.

_PLAIN = r"[+-]?([0-9]+([.][0-9]*)?|[.][0-9]+)([eE][+-]?[0-9]{1,3})?"
_COMMA = r"[+-]?([0-9]+|[1-9][0-9]{0,2}([.][0-9]{3})+)(,[0-9]+)?"
_GROUPED = r"[+-]?([0-9]+|[1-9][0-9]{0,2}(,[0-9]{3})+)([.][0-9]+)?"
_NUMBER = f"({_PLAIN}|{_COMMA}|{_GROUPED})"
_WHOLE = r"[+-]?[0-9]+"
_THOUSANDS = r"[+-]?([0-9]+|[1-9][0-9]{0,2}[.][0-9]{3})"  # the point may separate thousands

NOTATIONS = {"plain": _PLAIN, "comma": _COMMA, "grouped": _GROUPED}
"""``1234.5``; a decimal comma, as in ``1.234,5`` or ``12,5``; commas for thousands, as in
``1,234.5``."""

_NUMERIC = (_PLAIN, _COMMA, _GROUPED, _NUMBER, _WHOLE, _THOUSANDS)

_PARTS = {
    "%Y": "[0-9]{4}",
    "%y": "[0-9]{2}",
    "%m": "(0?[1-9]|1[0-2])",
    "%d": "(0?[1-9]|[12][0-9]|3[01])",
    "%H": "([01]?[0-9]|2[0-3])",
    "%I": "(0?[1-9]|1[0-2])",
    "%M": "[0-5][0-9]",
    "%S": "[0-5][0-9]",
    "%g": "[0-9]{3}",
    "%p": "(?i:am|pm)",
    "%b": "(?i:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)",
    "%B": "(?i:january|february|march|april|may|june|july|august|september|october|november|december)",
}
_AS_WRITTEN = {
    "%m": "(0[1-9]|1[0-2])",
    "%d": "(0[1-9]|[12][0-9]|3[01])",
    "%H": "([01][0-9]|2[0-3])",
    "%I": "(0[1-9]|1[0-2])",
    "%-m": "([1-9]|1[0-2])",
    "%-d": "([1-9]|[12][0-9]|3[01])",
    "%-H": "(1?[0-9]|2[0-3])",
    "%-I": "([1-9]|1[0-2])",
    "%p": "(AM|PM)",
    "%b": "(Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)",
    "%B": "(January|February|March|April|May|June|July|August|September|October|November|December)",
}
_NUMBERS_OF_DATES = ("%Y{0}%m{0}%d", "%d{0}%m{0}%Y", "%m{0}%d{0}%Y", "%d{0}%m{0}%y", "%m{0}%d{0}%y")
_DAYS = (
    *(shape.format(mark) for mark in "-/." for shape in _NUMBERS_OF_DATES),
    "%Y%m%d",
    *("%d %b %Y", "%d-%b-%Y", "%b %d, %Y", "%d %B %Y", "%B %d, %Y"),
)
_TIMES = (
    *("", " %H:%M", "T%H:%M", " %H:%M:%S", "T%H:%M:%S", " %H:%M:%S.%g", "T%H:%M:%S.%g"),
    *(" %I:%M %p", " %I:%M:%S %p"),
)


def _pattern(written: str, *, exactly: bool = False) -> str:
    if written == "%Y%m%d":  # years 1800 to 2199 only: most numbers of eight digits are no dates
        return "(1[89]|2[01])[0-9]{2}(0[1-9]|1[0-2])(0[1-9]|[12][0-9]|3[01])"
    parts = {**_PARTS, **_AS_WRITTEN} if exactly else _PARTS
    texts = re.split(r"(%-?[A-Za-z])", written)
    return "".join(parts[t] if t.startswith("%") else re.escape(t) for t in texts)


@dataclass(frozen=True)
class DateFormat:
    """A format of dates: of the day, of the time of day, and the patterns that recognise them."""

    day: str
    time: str
    pattern: str
    midnight: str

    @property
    def name(self) -> str:
        """The format as strptime takes it."""
        return self.day + self.time

    @property
    def order(self) -> tuple[str, ...]:
        """The order of day, month and year."""
        plain = self.day.replace("%B", "%m").replace("%b", "%m")
        return tuple(re.findall("%[A-Za-z]", plain))

    @property
    def has_year_first(self) -> bool:
        """Whether the year comes first; then month and day always follow in this order."""
        return self.order[0] == "%Y" and self.day != "%Y%m%d"

    @property
    def is_short(self) -> bool:
        """Whether the century is left out, so that dates cannot be converted."""
        return "%y" in self.day

    @functools.cached_property
    def written(self) -> dict[str, str]:
        """The variants with and without leading zeros, each with its pattern."""
        bare_day, bare_time = (re.sub("%([mdHI])", r"%-\1", t) for t in (self.day, self.time))
        if self.day == "%Y%m%d":
            bare_day = self.day
        ways = dict.fromkeys((self.name, bare_day + self.time, bare_day + bare_time))
        return {way: _pattern(way, exactly=True) for way in ways}


@functools.cache
def date_formats() -> dict[str, DateFormat]:
    """All known formats, by name."""
    return {
        day + time: DateFormat(day, time, _pattern(day + time), _midnight(time))
        for day, time in itertools.product(_DAYS, _TIMES)
    }


def _midnight(time: str) -> str:
    if not time:
        return ".*"
    hour, tail = ("12", " (?i:am)") if "%I" in time else ("0?0", "")
    seconds = "(:00([.]000)?)?" if "%S" in time else ""
    return f".*[ T]{hour}:00{seconds}{tail}"


@functools.cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.ASCII)


def _fits(pattern: str, text: str) -> bool:
    return _compiled(pattern).fullmatch(text) is not None


# ------------------------------------------------------------------------- missing values


@functools.cache
def missing_texts() -> frozenset[str]:
    """Texts that mean a missing value, in lower case."""
    return frozenset(text.lower() for text in synonyms()["missing"])


def is_absent(text: str) -> bool:
    """Whether a text among numbers or dates means a missing value.

    >>> [is_absent(text) for text in ("", "?", "N/A", "0", "-1")]
    [True, True, True, False, False]
    """
    plain = text.strip()
    return not plain.strip(MARKS) or plain.lower() in missing_texts()


def without_absent(d: Dialect, text: str) -> str:
    """SQL for a text of a column of numbers or dates, null where it means a missing value."""
    texts = d.texts(sorted(missing_texts()))
    nothing = f"{d.stripped_of(text, MARKS)} = ''"
    # A shortcut: texts for missing values never begin with a digit, and most other values do.
    return (
        f"CASE WHEN {d.by_bytes(text)} >= '0' AND {d.by_bytes(text)} < ':' THEN {text} "
        f"WHEN NOT ({nothing} OR lower(trim({text})) IN ({texts})) THEN {text} END"
    )


# ---------------------------------------------------------------------------------- tally


@dataclass(frozen=True)
class PatternTally:
    """The number of values of a column, and how many of them do not match each pattern."""

    rows: int = 0
    misfits: Mapping[str, int] = field(default_factory=dict)

    def fits(self, pattern: str) -> bool:
        """Whether every value matches a pattern; False if the pattern was not tried."""
        return bool(self.rows) and self.misfits.get(pattern, self.rows) == 0


def patterns_for(texts: Iterable[str]) -> tuple[str, ...]:
    """Choose the patterns that may match a column, by some of its values."""
    some = [text.strip() for text in texts if not is_absent(text)]
    if not some:
        return ()
    numbers = sum(_fits(_NUMBER, text) for text in some)
    chosen = list(_NUMERIC) if 2 * numbers >= len(some) else []
    for form in _fitting(some) or _mostly_fitting(some):
        chosen += [form.pattern, form.midnight, *form.written.values()]
    return tuple(dict.fromkeys(chosen))


def _fitting(texts: Iterable[str]) -> list[DateFormat]:
    """Return the date formats that match all of some values."""
    left = list(date_formats().values())
    for text in dict.fromkeys(texts):
        left = [form for form in left if _fits(form.pattern, text)]
        if not left:
            break
    return left


def _mostly_fitting(texts: list[str]) -> list[DateFormat]:
    """Return the unambiguous formats that match most of some values."""
    if 2 * sum(text[:4].isdigit() and len(text) > 7 for text in texts) < len(texts):
        return []  # rules most columns out quickly
    return [
        form
        for form in date_formats().values()
        if form.has_year_first and 2 * sum(_fits(form.pattern, t) for t in texts) >= len(texts)
    ]


def tally_values(values: Mapping[str, int], patterns: Iterable[str]) -> PatternTally:
    """Match the values of a column, each with its number of rows, against patterns."""
    some = [(text.strip(), n) for text, n in values.items() if not is_absent(text)]
    misfits = {p: sum(n for text, n in some if not _fits(p, text)) for p in patterns}
    return PatternTally(sum(n for _, n in some), misfits)


@dataclass(frozen=True)
class TallyView:
    """A view of one row: all values of some columns matched against patterns.

    ``columns`` holds type and patterns by name.
    """

    columns: Mapping[str, tuple[str, tuple[str, ...]]]

    def query(self, d: Dialect, carried: Sequence[str] = ()) -> str:  # noqa: ARG002 (of many rows)
        """Write the query; see :class:`~equipoise.engines.sources.View`."""
        texts, present, counts = [], [], []
        for i, (name, (kind, patterns)) in enumerate(self.columns.items()):
            texts.append(f"trim({d.text(d.identifier(name), kind)}) AS t{i}")
            present.append(f"{without_absent(d, f't{i}')} AS p{i}")
            counts.append(f"count(p{i}) AS n{i}")
            counts += [
                f"count(*) FILTER (WHERE NOT {d.matches(f'p{i}', pattern)}) AS m{i}_{j}"
                for j, pattern in enumerate(patterns)
            ]
        return (
            f"SELECT {', '.join(counts)}\nFROM (SELECT {', '.join(present)}\n"
            f"FROM (SELECT {', '.join(texts)}\nFROM input) AS texts) AS present"
        )


def tallies_from(
    row: Mapping[str, int], columns: Mapping[str, tuple[str, tuple[str, ...]]]
) -> dict[str, PatternTally]:
    """Read the row of a :class:`TallyView`."""
    return {
        name: PatternTally(row[f"n{i}"], {p: row[f"m{i}_{j}"] for j, p in enumerate(patterns)})
        for i, (name, (_, patterns)) in enumerate(columns.items())
    }


# --------------------------------------------------------------------------------- reading


@dataclass(frozen=True)
class Numbers:
    """A column read as numbers; without a notation if it is not certain, and ``doubt`` says why."""

    notation: str | None
    odd: float  # share of values that are no numbers in any notation
    whole: bool = False
    may_be_thousands: bool = False  # whether every point may separate thousands
    doubt: str = ""


def read_numbers(tally: PatternTally) -> Numbers | None:
    """Recognise the notation of numbers; None if most values of the column are no numbers."""
    odd = tally.misfits.get(_NUMBER, tally.rows)
    if not tally.rows or 2 * odd > tally.rows:
        return None
    share = odd / tally.rows
    if tally.misfits[_PLAIN] == odd:
        whole = tally.misfits[_WHOLE] == odd
        thousands = not whole and tally.misfits[_THOUSANDS] == odd
        return Numbers("plain", share, whole, thousands)
    fitting = [n for n in NOTATIONS if n != "plain" and tally.fits(NOTATIONS[n])]
    if len(fitting) == 1:
        return Numbers(fitting[0], share)
    doubt = (
        "1,234 may be more than a thousand, or a little more than one"
        if fitting
        else "its numbers are not all in one notation"
    )
    return Numbers(None, share, doubt=doubt)


@dataclass(frozen=True)
class Dates:
    """A column read as dates; without a format if it is not certain, and ``doubt`` says why."""

    form: DateFormat | None
    midnight: bool = False  # whether no value has a time of day other than midnight
    written: str | None = None  # with or without leading zeros; None if values differ in that
    doubt: str = ""
    odd: bool = False  # whether some values do not have this format


def read_dates(tally: PatternTally) -> Dates | None:
    """Recognise the format of dates; None if no format matches all values of the column."""
    fitting = [form for form in date_formats().values() if tally.fits(form.pattern)]
    if not fitting:
        return _read_mostly(tally)
    if len({form.order for form in fitting}) > 1:
        return Dates(None, doubt="day and month can be read both ways")
    form = fitting[0]
    ways = [way for way, pattern in form.written.items() if tally.fits(pattern)]
    numbers_only = "%b" not in form.day.lower()
    written = ways[0] if ways else form.name if numbers_only else None
    return Dates(form, tally.fits(form.midnight), written)


def _read_mostly(tally: PatternTally) -> Dates | None:
    """Recognise dates with the year first even if a few values are no dates."""
    for form in date_formats().values():
        if form.has_year_first and 2 * tally.misfits.get(form.pattern, tally.rows) < tally.rows:
            return Dates(form, odd=True)
    return None
