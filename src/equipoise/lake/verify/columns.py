"""Whether added values have the types and spellings of the base's columns.

Only the base says what a column holds. If all of its values are numbers, dates in one format, or
yes and no in one spelling, an added value of another kind is reported, whichever program wrote it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, TypeAlias

from equipoise.counts.columns import encode_arrow
from equipoise.lake.verify.files import CheckedTable
from equipoise.lake.verify.verification import CheckOutcome, judge
from equipoise.plain import counted, in_words
from equipoise.values import MISSING

if TYPE_CHECKING:
    import pyarrow as pa

_NEARLY_ALL, _OWN = 0.99, 0.9
"""A column with this share of numbers is one of numbers. If this share of rows has a whole number of
its own, the column may hold identifiers, of which others can look different."""

_FEW = 50
"""Maximum number of values of a closed list; each must be in two rows on average."""

_SHOWN = 5

_PLAIN = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?", re.ASCII | re.IGNORECASE)
_WHOLE = re.compile(r"[+-]?\d+", re.ASCII)
_WITH_COMMA = re.compile(r"[+-]?\d[\d.]*(,\d+)?", re.ASCII)
_WITH_GROUPS = re.compile(r"[+-]?\d[\d,]*(\.\d+)?", re.ASCII)
_DATE = re.compile(
    r"(?P<a>\d{4}|\d{1,2}|[a-z]{3,9})(?P<mark>[-/. ])(?P<b>\d{1,2}|[a-z]{3,9}),?(?P=mark)"
    r"(?P<c>\d{4}|\d{1,2})(?P<time>[ t]\d{1,2}:\d\d(:\d\d(\.\d+)?)?( ?[ap]m)?)?",
    re.ASCII | re.IGNORECASE,
)
_TRUTHS = ({"yes", "no"}, {"y", "n"}, {"true", "false"}, {"t", "f"})


_Reads: TypeAlias = Callable[[str], bool]
"""Test whether a text reads as the values of a column do."""


def check_columns(
    old: CheckedTable, new: CheckedTable, added: Sequence[int], kept: Collection[int]
) -> CheckOutcome:
    """Check that the values of added rows are written as those of the base are.

    Rows ``kept`` hold values that, by the ledger, a user asked to keep as their sources write them.
    Those that do not fit are noted, and the check holds.
    """
    import pyarrow as pa

    names = [name for name in old.rows.column_names if name in new.rows.column_names]
    wrong = [said for name in names if (said := _other_type(name, old, new))]
    noted: list[str] = []
    strange: list[str] = []
    asked_for, others = (
        pa.array([i for i in added if (i in kept) is is_kept], pa.int64())
        for is_kept in (True, False)
    )
    for name in names:
        held = _counted(old.rows[name])
        kind, reads = _kind(held)
        asked, other = (_counted(new.rows[name].take(some)) for some in (asked_for, others))
        if reads is not None:
            column = f"the column {name!r} of {new.name}"
            for sentences, values in ((wrong, other), (noted, asked)):
                new_ones = {v: n for v, n in values.items() if v not in held}
                misfits = {v: n for v, n in new_ones.items() if not reads(v.strip())}
                if misfits:
                    sentences.append(_misfit(column, misfits, f"{kind} of {old.name}"))
        elif 0 < len(held) <= _FEW and held.total() >= 2 * len(held):
            # A new value of a closed list may be right, so it is mentioned but breaks nothing.
            fresh = sum(n for value, n in (asked + other).items() if value not in held)
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


def _misfit(column: str, misfits: Mapping[str, int], kind: str) -> str:
    rows, example = sum(misfits.values()), min(misfits)
    do = "does" if rows == 1 else "do"
    values = counted(rows, "added value")
    return f"{column} has {values} such as {example!r} that {do} not read as {kind}"


def _other_type(name: str, old: CheckedTable, new: CheckedTable) -> str | None:
    """Report that a column has another type, unless one of the files stores no types."""
    ours, theirs = (_class(table.rows[name].type) for table in (old, new))
    if ours == theirs or ("text" in (ours, theirs) and not (old.has_types and new.has_types)):
        return None
    return f"the column {name!r} is {ours} in {old.name} and {theirs} in {new.name}"


def _class(kind: pa.DataType) -> str:
    from pyarrow import types

    if types.is_dictionary(kind):
        kind = kind.value_type
    tests: Mapping[str, Callable[[pa.DataType], bool]] = {
        "whole numbers": types.is_integer,
        "numbers": types.is_floating,
        "decimal numbers": types.is_decimal,
        "truths": types.is_boolean,
        "dates": types.is_temporal,
        "text": lambda k: types.is_string(k) or types.is_large_string(k) or types.is_string_view(k),
    }
    return next((name for name, test in tests.items() if test(kind)), str(kind))


def _counted(column: pa.ChunkedArray) -> Counter[str]:
    """Count the rows of each value as text, without missing values, lists and structures."""
    import numpy as np
    from pyarrow import types

    if types.is_nested(column.type) or types.is_null(column.type):
        return Counter()
    values, codes = encode_arrow(column, None)
    rows = np.bincount(codes, minlength=len(values)).tolist()
    some = zip(values, rows, strict=True)
    return Counter(
        {v: n for v, n in some if v is not MISSING and n and str(v).strip() not in ("", "nan")}
    )


def _kind(held: Counter[str]) -> tuple[str, _Reads | None]:
    """Return what a column of the base holds, and a test for values of this kind."""
    texts = {value.strip(): n for value, n in held.items()}
    if not texts:
        return "", None
    if any({text.lower() for text in texts} == pair for pair in _TRUTHS):
        return "the values", lambda value: value in texts
    shapes = {_date_shape(text) for text in texts}
    if None not in shapes:
        # Without a single shape, it is unknown which one an added date must have.
        return ("the dates", _date_test(texts, *shapes)) if len(shapes) == 1 else ("", None)
    numbers = sum(n for text, n in texts.items() if _PLAIN.fullmatch(text))
    if numbers >= _NEARLY_ALL * held.total():
        own = len(texts) >= _OWN * held.total() and all(_WHOLE.fullmatch(t) for t in texts)
        return "the numbers", None if own else lambda v: _PLAIN.fullmatch(v) is not None
    for pattern in (_WITH_COMMA, _WITH_GROUPS):
        if all(pattern.fullmatch(text) for text in texts):
            return "the numbers", lambda v, p=pattern: p.fullmatch(v) is not None
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
