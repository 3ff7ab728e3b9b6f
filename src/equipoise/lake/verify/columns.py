"""Whether added values have the types and spellings of the base's columns.

Only the base says what a column holds. If all of its values are numbers, dates in one format, or
yes and no in one spelling, an added value of another kind is reported, whichever program wrote it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from equipoise.counts.columns import encode_arrow
from equipoise.lake.verify.files import CheckedTable
from equipoise.lake.verify.verification import EXAMPLES, CheckOutcome, judge
from equipoise.plain import in_words
from equipoise.values import MISSING

if TYPE_CHECKING:
    import pyarrow as pa

_NEARLY_ALL, _OWN = 0.99, 0.9
"""A column with this share of numbers is one of numbers. If this share of rows has a whole number of
its own, the column may hold identifiers, of which others can look different."""

_FEW = 50
"""A column of at most this many values, each in two rows on average, is a closed list."""

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


class _Found(NamedTuple):
    """Values of one column that do not fit: their number of rows, and an example."""

    name: str
    kind: str
    rows: int
    example: str


def check_columns(
    old: CheckedTable, new: CheckedTable, added: Sequence[int], kept: Collection[int]
) -> CheckOutcome:
    """Check that added rows are written as the rows of the base are.

    Parameters
    ----------
    old, new
        The base and the repaired table.
    added
        Places of the added rows.
    kept
        Places of added rows whose values, by the ledger, were kept as their sources write them.
        What does not fit there was asked for: it is noted, and the check holds.
    """
    names = [name for name in old.rows.column_names if name in new.rows.column_names]
    wrong = [said for name in names if (said := _other_type(name, old, new))]
    noted: list[str] = []
    strange: list[str] = []
    for name in names:
        held = _counted(old.rows[name])
        kind, reads = _kind(held)
        asked, other = (
            _counted(_taken(new.rows[name], [i for i in added if (i in kept) is is_kept]))
            for is_kept in (True, False)
        )
        if reads is not None:
            wrong += [_say(f, old, new) for f in [_misfits(name, kind, held, other, reads)] if f]
            noted += [_say(f, old, new) for f in [_misfits(name, kind, held, asked, reads)] if f]
        elif _is_closed(held):
            fresh = sum(n for value, n in (asked + other).items() if value not in held)
            strange += [f"{name} ({fresh:,})"] if fresh else []
    right = f"Every added value reads as those of its column in {old.name} do."
    if strange:
        right += f" Columns of few values have new ones: {in_words(_shortened(strange))}."
    if wrong or not noted:
        return judge("columns", wrong, right)
    said = (
        f"{noted[0]}{f', and {len(noted) - 1:,} more' if len(noted) > 1 else ''}; the ledger says "
        "that values were kept as their sources write them."
    )
    said = said[0].upper() + said[1:]
    return CheckOutcome(
        "columns", holds=True, sentence=said, examples=tuple(noted[:EXAMPLES]), noted=True
    )


def _shortened(names: list[str]) -> list[str]:
    more = [f"{len(names) - _SHOWN:,} more"] if len(names) > _SHOWN else []
    return [*names[:_SHOWN], *more]


def _say(found: _Found, old: CheckedTable, new: CheckedTable) -> str:
    values = "1 added value" if found.rows == 1 else f"{found.rows:,} added values"
    do = "does" if found.rows == 1 else "do"
    return (
        f"the column {found.name!r} of {new.name} has {values} such as {found.example!r} that {do} "
        f"not read as {found.kind} of {old.name}"
    )


# ---------------------------------------------------------------------------------- types


def _other_type(name: str, old: CheckedTable, new: CheckedTable) -> str | None:
    """Say that a column has another type, unless one of the files stores no types."""
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


# --------------------------------------------------------------------------------- values


def _taken(column: pa.ChunkedArray, places: Sequence[int]) -> pa.ChunkedArray:
    import pyarrow as pa

    return column.take(pa.array(places, pa.int64()))


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


def _misfits(
    name: str,
    kind: str,
    held: Counter[str],
    added: Counter[str],
    reads: Callable[[str], bool],
) -> _Found | None:
    wrong = {v: n for v, n in added.items() if v not in held and not reads(v.strip())}
    if not wrong:
        return None
    return _Found(name, kind, sum(wrong.values()), min(wrong))


def _is_closed(held: Counter[str]) -> bool:
    return 0 < len(held) <= _FEW and held.total() >= 2 * len(held)


def _kind(held: Counter[str]) -> tuple[str, Callable[[str], bool] | None]:
    """Say what a column of the base holds, and give a test for values of this kind."""
    texts = {value.strip(): n for value, n in held.items()}
    if not texts:
        return "", None
    if any({text.lower() for text in texts} == pair for pair in _TRUTHS):
        return "the values", lambda value: value in texts
    if (dates := {_date_class(text) for text in texts}) and None not in dates:
        return _dates(list(texts))
    numbers = sum(n for text, n in texts.items() if _PLAIN.fullmatch(text))
    if numbers >= _NEARLY_ALL * held.total():
        own = len(texts) >= _OWN * held.total() and all(_WHOLE.fullmatch(t) for t in texts)
        return "the numbers", None if own else lambda v: _PLAIN.fullmatch(v) is not None
    for pattern in (_WITH_COMMA, _WITH_GROUPS):
        if all(pattern.fullmatch(text) for text in texts):
            return "the numbers", lambda v, p=pattern: p.fullmatch(v) is not None
    return "", None


def _date_class(text: str) -> tuple[str, ...] | None:
    """Give the shape of a date: its separators, its parts, and whether there is a time of day."""
    found = _DATE.fullmatch(text)
    if found is None or sum(p.isdigit() and len(p) == 4 for p in (found["a"], found["c"])) > 1:
        return None
    parts = tuple(
        "name" if p.isalpha() else "year" if len(p) == 4 else "number"
        for p in (found["a"], found["b"], found["c"])
    )
    return (found["mark"], *parts, "with time" if found["time"] else "")


def _dates(texts: list[str]) -> tuple[str, Callable[[str], bool] | None]:
    shapes = {_date_class(text) for text in texts}
    if len(shapes) > 1:
        return "", None
    (shape,) = shapes
    months = [i for i in (0, 1) if all(_part(text, i) <= 12 for text in texts)]

    def reads(value: str) -> bool:
        if _date_class(value) != shape:
            return False
        return not months or any(_part(value, i) <= 12 for i in months)

    return "the dates", reads


def _part(text: str, i: int) -> int:
    """Give one of the first two numbers of a date that may be its month; otherwise 0."""
    found = _DATE.fullmatch(text)
    parts = [] if found is None else [found["a"], found["b"]]
    if len(parts) < 2 or not all(p.isdigit() and len(p) < 4 for p in parts):
        return 0
    return int(parts[i])
