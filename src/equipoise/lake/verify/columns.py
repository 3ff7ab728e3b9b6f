"""Whether added values have the types and spellings of the base's columns.

Only the base says what a column holds. If all of its values are numbers, dates in one format, or
yes and no in one spelling, an added value of another kind is reported, whichever program wrote it.
"""

from __future__ import annotations

import functools
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TypeAlias

from equipoise.engines.base import Column
from equipoise.engines.column_types import family, is_float
from equipoise.engines.kinds import DATABASES
from equipoise.lake.verify.claims import Claims, present
from equipoise.lake.verify.tables import CheckedTable
from equipoise.lake.verify.verification import CheckOutcome, judge
from equipoise.lake.verify.views import (
    DATE,
    PLAIN,
    UNSCALED,
    WHOLE,
    WITH_COMMA,
    WITH_GROUPS,
    KnownTexts,
    TextDays,
    TextKinds,
    TextMoments,
)
from equipoise.plain import counted, in_words

_NEARLY_ALL, _OWN = 0.99, 0.9
"""A column with this share of numbers is one of numbers. If this share of rows has a whole number of
its own, the column may hold identifiers, of which others can look different."""

_FEW = 50
"""Maximum number of values of a closed list; each must be in two rows on average."""

_SHOWN = 5

_MANY = 1000
"""Maximum number of values that are fetched of a column of the base."""

_PATTERNS = {
    "not_whole": WHOLE,
    "not_comma": WITH_COMMA,
    "not_groups": WITH_GROUPS,
    "not_date": DATE,
}

_CLASSES = {
    "whole": "whole numbers",
    "float": "numbers",
    "decimal": "decimal numbers",
    "boolean": "truths",
    "date": "dates",
    "time": "dates",
    "timestamp": "dates",
    "instant": "dates",
    "text": "text",
}

_DATE = re.compile(
    r"(?P<a>\d{4}|\d{1,2}|[a-z]{3,9})(?P<mark>[-/. ])(?P<b>\d{1,2}|[a-z]{3,9}),?(?P=mark)"
    r"(?P<c>\d{4}|\d{1,2})(?P<time>[ t]\d{1,2}:\d\d(:\d\d(\.\d+)?)?( ?[ap]m)?)?",
    re.ASCII | re.IGNORECASE,
)
_INFINITE = frozenset({"inf", "-inf"})
"""Floating-point numbers that are no numbers in texts of other tables."""

_TRUTHS = ({"yes", "no"}, {"y", "n"}, {"true", "false"}, {"t", "f"})


_Reads: TypeAlias = Callable[[str], bool]
"""Test whether a text reads as the values of a column do."""


def check_columns(old: CheckedTable, new: CheckedTable, came: Claims) -> CheckOutcome:
    """Check that the values of added rows are written as those of the base are.

    Some rows hold values that, by the ledger, a user asked to keep as their sources write them.
    Those that do not fit are noted, and the check holds.
    """
    ours, theirs = ({c.name: c for c in table.columns} for table in (old, new))
    names = [name for name in ours if name in theirs]
    wrong = [said for name in names if (said := _other_type(ours[name], theirs[name], old, new))]
    noted: list[str] = []
    strange: list[str] = []
    for name in names:
        asked, other = (
            came.values.get(is_kept, {}).get(name, Counter()) for is_kept in (True, False)
        )
        if not (asked or other) or _must_fit(ours[name], theirs[name]):
            continue
        held = HeldValues(old, ours[name])
        kind, reads = held.kind
        if reads is not None:
            column = f"the column {name!r} of {new.name}"
            for sentences, values in ((wrong, other), (noted, asked)):
                infinite = _INFINITE if is_float(ours[name].type) else frozenset()
                misfits = {
                    v: n for v, n in values.items() if not reads(v.strip()) and v not in infinite
                }
                misfits = {v: misfits[v] for v in misfits.keys() - held.known(misfits)}
                if misfits:
                    sentences.append(_misfit(column, misfits, f"{kind} of {old.name}"))
        elif held.is_closed_list:
            # A new value of a closed list may be right, so it is mentioned but breaks nothing.
            fresh = sum(n for value, n in (asked + other).items() if value not in held.values)
            strange += [f"{name} ({fresh:,})"] if fresh else []
    right = f"Every added value is written like the values of its column in {old.name}."
    if strange:
        more = [f"{len(strange) - _SHOWN:,} more"] if len(strange) > _SHOWN else []
        right += f" Columns of few values have new ones: {in_words([*strange[:_SHOWN], *more])}."
    if wrong or not noted:
        return judge("columns", wrong, right)
    outcome = judge("columns", noted, right)
    why = "the ledger says that values were kept as their sources write them"
    sentence = f"{outcome.sentence.removesuffix('.')}; {why}."
    return replace(outcome, holds=True, sentence=sentence, noted=True)


def _must_fit(ours: Column, theirs: Column) -> bool:
    """Whether a column of the same type as in the base cannot hold values of another kind."""
    kind = family(ours.type)
    return kind == family(theirs.type) and kind not in ("text", "boolean")


class HeldValues:
    """The values of a column of the base; if they are many, only what they read as is known."""

    def __init__(self, table: CheckedTable, column: Column) -> None:
        self._table, self._column = table, column
        few = table.engine.distinct(table.source, column.name, _MANY + 1)
        self._is_whole = len(few) <= _MANY
        self.values = present(few)

    @property
    def is_closed_list(self) -> bool:
        """Whether the column has few values, each in two rows on average."""
        n = len(self.values)
        return self._is_whole and 0 < n <= _FEW and self.values.total() >= 2 * n

    def known(self, values: Mapping[str, int]) -> set[str]:
        """Return those of some values that the column has."""
        if self._is_whole or not values:
            return values.keys() & self.values.keys()
        # The most frequent are enough for a report.
        some = sorted(values, key=lambda value: (-values[value], value))[:_MANY]
        found = self._table.read(KnownTexts(self._column, some))
        return set(found["v"].to_pylist())

    @functools.cached_property
    def kind(self) -> tuple[str, _Reads | None]:
        """What the column holds, and a test for values of this kind."""
        if self._is_whole:
            return _kind(self.values)
        # What the most frequent values do not read as, not all do.
        some = vars(Readings.of({value.strip(): n for value, n in self.values.items()}))
        asked = {name: pattern for name, pattern in _PATTERNS.items() if not some[name]}
        found = some | self._table.read(TextKinds(self._column, asked)).to_pylist()[0]
        if not found["not_date"]:
            days = self._table.read(TextDays(self._column)).to_pylist()
            texts = [f"{line['day']} 00:00" if line["timed"] else line["day"] for line in days]
            return _kind_of_dates(texts) or ("", None)
        return _kind_of_numbers(Readings(**found))


def _misfit(column: str, misfits: Mapping[str, int], kind: str) -> str:
    rows, example = sum(misfits.values()), min(misfits)
    do = "does" if rows == 1 else "do"
    values = counted(rows, "added value")
    return f"{column} has {values} such as {example!r} that {do} not read as {kind}"


def _other_type(ours: Column, theirs: Column, old: CheckedTable, new: CheckedTable) -> str | None:
    """Report that a column has another type, unless one of the tables cannot store that type."""
    mine, yours = (_CLASSES.get(family(c.type), c.type) for c in (ours, theirs))
    if mine == yours or ("text" in (mine, yours) and not (old.has_types and new.has_types)):
        return None
    if "text" in (mine, yours) and UNSCALED in (ours.type, theirs.type):
        return None
    if (mine, yours) == ("dates", "text") and _must_be_text(theirs, new):
        return None
    if yours == "text" and family(ours.type) == "other" and _is_from_database(old, new):
        return None
    return f"the column {ours.name!r} is {mine} in {old.name} and {yours} in {new.name}"


def _is_from_database(old: CheckedTable, new: CheckedTable) -> bool:
    """Whether rows of a database are in a file, which holds values of types of its own as texts."""
    return old.source.kind in DATABASES and new.source.kind not in DATABASES


def _must_be_text(column: Column, table: CheckedTable) -> bool:
    """Whether texts are all moments, and some of a kind that not every file can hold, as before our era."""
    (found,) = table.read(TextMoments(column)).to_pylist()
    return bool(found["unusual"]) and not found["others"]


@dataclass(frozen=True)
class Readings:
    """How many different texts a column has in how many rows, and how many do not read as something."""

    texts: int
    total: int
    plain: int
    not_whole: int
    not_comma: int
    not_groups: int
    not_date: int

    @classmethod
    def of(cls, texts: Mapping[str, int]) -> Readings:
        """Read texts as :class:`~equipoise.lake.verify.views.TextKinds` does."""
        plain = sum(n for text, n in texts.items() if re.fullmatch(PLAIN, text))
        others = {
            name: sum(re.fullmatch(pattern, text) is None for text in texts)
            for name, pattern in _PATTERNS.items()
        }
        return cls(len(texts), sum(texts.values()), plain, **others)


def _kind(held: Counter[str]) -> tuple[str, _Reads | None]:
    """Return what a column of the base holds, and a test for values of this kind."""
    texts = {value.strip(): n for value, n in held.items()}
    if not texts:
        return "", None
    if any({text.lower() for text in texts} == pair for pair in _TRUTHS):
        return "the values", lambda value: value in texts
    return _kind_of_dates(texts) or _kind_of_numbers(Readings.of(texts))


def _kind_of_dates(texts: Collection[str]) -> tuple[str, _Reads | None] | None:
    """Return a test for dates; None if not all texts are dates."""
    shapes = {_date_shape(text) for text in texts}
    if None in shapes:
        return None
    # Without a single shape, it is unknown which one an added date must have.
    return ("the dates", _date_test(texts, *shapes)) if len(shapes) == 1 else ("", None)


def _kind_of_numbers(read: Readings) -> tuple[str, _Reads | None]:
    if read.plain >= _NEARLY_ALL * read.total:
        own = read.texts >= _OWN * read.total and not read.not_whole
        return "the numbers", None if own else lambda v: re.fullmatch(PLAIN, v) is not None
    for others, pattern in ((read.not_comma, WITH_COMMA), (read.not_groups, WITH_GROUPS)):
        if not others:
            return "the numbers", lambda v, p=pattern: re.fullmatch(p, v) is not None
    return "", None


def _date_shape(text: str) -> tuple[str, ...] | None:
    """Return the shape of a date: its separators, its parts, and whether it has a time of day."""
    found = _DATE.fullmatch(text)
    if found is None or sum(p.isdigit() and len(p) == 4 for p in (found["a"], found["c"])) > 1:
        return None
    parts = tuple(
        "name" if p.isalpha() else "year" if len(p) == 4 else "number"
        for p in (found["a"], found["b"], found["c"])
    )
    return (found["mark"], *parts, "with time" if found["time"] else "")


def _date_test(texts: Iterable[str], shape: tuple[str, ...] | None) -> _Reads:
    """Test for dates of a shape with the month in a place where these dates may have it."""
    months = [i for i in (0, 1) if all(_part(text, i) <= 12 for text in texts)]

    def reads(value: str) -> bool:
        if _date_shape(value) != shape:
            return False
        return not months or any(_part(value, i) <= 12 for i in months)

    return reads


def _part(text: str, i: int) -> int:
    """Return one of the first two numbers of a date that may be its month; otherwise 0."""
    found = _DATE.fullmatch(text)
    parts = [] if found is None else [found["a"], found["b"]]
    if len(parts) < 2 or not all(p.isdigit() and len(p) < 4 for p in parts):
        return 0
    return int(parts[i])
