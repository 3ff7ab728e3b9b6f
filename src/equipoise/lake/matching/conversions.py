"""Conversions of columns that are not counted to the notation of the base, where that is certain.

The base decides what a column holds: numbers, dates, yes and no, or words. If a table writes these
differently, the column is converted, provided that its notation is certain. Otherwise there is a
doubt.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from equipoise.engines.column_types import is_float, is_text, is_whole
from equipoise.engines.dialect import Dialect
from equipoise.engines.profiling import ColumnProfile
from equipoise.errors import InputError
from equipoise.lake.matching.notations import (
    NOTATIONS,
    DateFormat,
    Dates,
    Numbers,
    PatternTally,
    date_formats,
    is_absent,
    patterns_for,
    read_dates,
    read_numbers,
    tally_values,
    without_absent,
)
from equipoise.lake.matching.values.concepts import is_code
from equipoise.lake.matching.values.vocabulary import match_values, name_some

_NAMES = 0.9  # distinct numbers per row from which on they may be identifiers
_ODD = 0.01  # a column with a larger share of other values is not a column of numbers
_CLOSED = 50  # a column with more distinct values does not hold a closed list of words

_EXAMPLES = {"plain": "1234.5", "comma": "1234,5", "grouped": "1,234.5"}


@dataclass(frozen=True)
class Conversion:
    """A conversion of numbers or dates from the notation of a table to that of the base."""

    kind: str  # "number" or "date"
    read: str
    write: str

    @property
    def how(self) -> str:
        """What is done, in words."""
        if self.kind == "number":
            return f"numbers such as {_EXAMPLES[self.read]} are {_EXAMPLES[self.write]} in the base"
        hour = 14 if "%M" in self.write else 0  # times of day are dropped only if all are midnight
        read, written = _example(self.read, hour), _example(self.write, hour)
        return f"dates such as {read} are {written} in the base"

    def sql(self, d: Dialect, text: str) -> str:
        """SQL for the converted text; null if the text is not in this notation."""
        if self.kind == "number":
            pattern = NOTATIONS[self.read]
            written = _number_sql(text, self.read, self.write)
        else:
            pattern = date_formats()[self.read].pattern
            written = d.redated(text, self.read, self.write)
        return f"CASE WHEN {d.matches(text, pattern)} THEN {written} END"

    def to_dict(self) -> dict[str, str]:
        """Plain data, as ledgers hold it."""
        return asdict(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Conversion:
        """Read a conversion from a ledger, and refuse one that is not known."""
        found = cls(str(data["kind"]), str(data["read"]), str(data["write"]))
        known = (
            found.read in NOTATIONS and found.write in NOTATIONS
            if found.kind == "number"
            else found.kind == "date"
            and found.read in date_formats()
            and any(found.write in form.written for form in date_formats().values())
        )
        if not known:
            raise InputError(f"the conversion {dict(data)!r} is not known.")
        return found


def _example(form: str, hour: int) -> str:
    import datetime

    moment = datetime.datetime(2021, 3, 25, hour)  # noqa: DTZ001 - an example of a text
    parts = {"%-m": "3", "%-d": "25", "%-H": str(hour), "%-I": str(hour % 12 or 12), "%g": "000"}
    for part, text in parts.items():
        form = form.replace(part, text)
    return moment.strftime(form)


def _number_sql(text: str, read: str, write: str) -> str:
    plain = {
        "plain": text,
        "comma": f"replace(replace({text}, '.', ''), ',', '.')",
        "grouped": f"replace({text}, ',', '')",
    }[read]
    return f"replace({plain}, '.', ',')" if write == "comma" else plain


def renamed(d: Dialect, text: str, values: Mapping[str, str]) -> str:
    """SQL for the value that a text is mapped to; null if it is not mapped."""
    if not values:
        return f"CAST(NULL AS {d.text_type})"
    whens = " ".join(f"WHEN {d.literal(s)} THEN {d.literal(b)}" for s, b in values.items())
    return f"CASE {text} {whens} END"


def respelled(d: Dialect, text: str, spellings: Mapping[str, str] | None) -> str:
    """SQL for a text in its new spelling, or as it is if it has none."""
    return text if not spellings else f"coalesce({renamed(d, text, spellings)}, {text})"


@dataclass(frozen=True)
class MeantView:
    """A view of what values of a table mean in the base, as a ledger records it.

    ``columns`` holds, by column of the base, the column of the table and its type; ``absent`` are
    columns with texts for missing values. ``types`` are those of columns of the base that are not text.
    """

    columns: Mapping[str, tuple[str, str]]
    conversions: Mapping[str, Conversion]
    absent: Collection[str]
    spellings: Mapping[str, Mapping[str, str]]
    types: Mapping[str, str] = field(default_factory=dict)

    def query(self, d: Dialect, carried: Sequence[str] = ()) -> str:
        """Write the query; see :class:`~equipoise.engines.sources.View`."""
        texts, meant = [], []
        for i, (name, (column, kind)) in enumerate(self.columns.items()):
            text = respelled(d, d.text(d.identifier(column), kind), self.spellings.get(name))
            text = f"nullif(trim({text}), '')"
            texts.append(f"{without_absent(d, text) if name in self.absent else text} AS t{i}")
            how = self.conversions.get(name)
            said = f"t{i}" if how is None else how.sql(d, f"t{i}")
            typed = as_type(d, said, self.types[name]) if name in self.types else said
            meant.append(f"{typed} AS {d.identifier(name)}")
        beside = [d.identifier(name) for name in carried]
        texts, meant = [*texts, *beside], [*meant, *beside]
        return f"SELECT {', '.join(meant)}\nFROM (SELECT {', '.join(texts)}\nFROM input) AS texts"


def as_type(d: Dialect, text: str, column_type: str) -> str:
    """SQL for a text as a value of a type of the base that is not text; null if that is impossible."""
    return d.whole(text, column_type) if is_whole(column_type) else d.tried(text, column_type)


# -------------------------------------------------------------------- what the base holds


@dataclass(frozen=True)
class BaseColumn:
    """A column of the base, with the notation of its numbers or dates if it holds such."""

    column: ColumnProfile
    numbers: Numbers | None = None
    dates: Dates | None = None

    @property
    def is_measured(self) -> bool:
        """Whether the column holds numbers or dates, so that texts such as ``NA`` are missing values."""
        return self.numbers is not None or self.dates is not None

    @property
    def has_absent(self) -> bool:
        """Whether the base itself has texts that mean a missing value."""
        return any(map(is_absent, known_texts(self.column)))


def known_texts(column: ColumnProfile) -> Collection[str]:
    """Return the values of a column: all, or those in the sample of rows."""
    return column.values or {text for text in column.sample if text is not None}


def patterns_of(column: ColumnProfile) -> tuple[str, ...]:
    """Choose the patterns that may match a column, by its profile."""
    if column.values is not None:
        return patterns_for(column.values)
    return patterns_for(text for text in column.sample if text is not None)


def tally_of(column: ColumnProfile) -> PatternTally | None:
    """Match a column against patterns; None if its profile does not have all values."""
    patterns = patterns_of(column)
    if not patterns:
        return PatternTally()
    return None if column.values is None else tally_values(column.values, patterns)


def read_base_column(column: ColumnProfile, tally: PatternTally) -> BaseColumn:
    """Recognise what a column of the base holds."""
    if _is_numeric(column.type):
        whole = is_whole(column.type)
        return BaseColumn(column, numbers=Numbers("plain", 0.0, whole))
    if _is_date(column.type):
        iso = "%Y-%m-%d" if column.type.upper() == "DATE" else "%Y-%m-%d %H:%M:%S"
        form = date_formats()[iso]
        return BaseColumn(column, dates=Dates(form, tally.fits(form.midnight), iso))
    if not is_text(column.type):
        return BaseColumn(column)
    numbers, dates = read_numbers(tally), read_dates(tally)
    if numbers is not None and numbers.odd <= _ODD:
        is_named = numbers.whole and may_be_names(column)
        return BaseColumn(column, numbers=None if is_named else numbers)
    return BaseColumn(column, dates=None if dates is None or dates.odd else dates)


def _is_numeric(kind: str) -> bool:
    return is_whole(kind) or is_float(kind) or kind.upper().startswith(("DECIMAL", "HUGEINT"))


def _is_date(kind: str) -> bool:
    return kind.upper() in ("DATE", "TIMESTAMP", "TIMESTAMP_NS", "TIMESTAMP_MS", "TIMESTAMP_S")


def may_be_names(column: ColumnProfile) -> bool:
    """Whether nearly all rows have different values, so that numbers may be identifiers."""
    rows = sum(column.values.values()) if column.values else len(column.sample)
    return len(known_texts(column)) >= _NAMES * rows


# ----------------------------------------------------------------------------- what to do


@dataclass(frozen=True)
class Decision:
    """How the values of a column become those of the base, or why that is not certain."""

    conversion: Conversion | None = None
    spellings: Mapping[str, str] | None = None
    doubt: str = ""
    # Values such as 03/04/2021 can be read in several ways. Rows are then duplicates of rows of the
    # base if they are by one of the readings.
    has_readings: bool = False

    @property
    def as_it_is(self) -> bool:
        """Whether values are written as in the base."""
        return self.conversion is None and not self.spellings and not self.doubt

    @property
    def how(self) -> str:
        """What is done, in words."""
        if self.conversion is not None:
            return self.conversion.how
        told = [f"{source} is {base}" for source, base in (self.spellings or {}).items()]
        return f"{name_some(told, 4)} in the base"


Action = Literal["converted", "left missing", "kept"]


@dataclass(frozen=True)
class Treatment:
    """What was done with a column of a table that is not written as in the base, and how or why."""

    name: str  # in the base
    column: str  # in the table
    action: Action
    how: str


def decide(base: BaseColumn, column: ColumnProfile, tally: PatternTally) -> Decision:
    """Decide how the values of a column of a table become those of a column of the base."""
    spelled = _truths(base.column, column)
    if spelled is not None:
        return Decision(spellings=spelled)
    if not column.distinct:
        return Decision()
    if _is_truth(base.column) and not _holds_truths(base.column, column):
        return Decision(doubt="the base has only yes and no, and it has other values")
    if base.numbers is not None:
        return _of_numbers(base.numbers, read_numbers(tally), column)
    if base.dates is not None:
        return _of_dates(base.dates, base.column, column, tally)
    return _of_words(base.column, column)


def _of_numbers(base: Numbers, found: Numbers | None, column: ColumnProfile) -> Decision:
    if base.notation is None:
        return Decision(doubt=f"in the base, {base.doubt}", has_readings=True)
    if _is_numeric(column.type):
        found = Numbers("plain", 0.0)
    if found is None:
        return _doubt_unless_empty(column, "it does not hold numbers, as the base does")
    if found.notation is None:
        return Decision(doubt=found.doubt, has_readings=True)
    if base.whole and found.may_be_thousands:
        doubt = "1.234 may be more than a thousand, or a little more than one"
        return Decision(doubt=doubt, has_readings=True)
    if found.notation == base.notation:
        return Decision()
    return Decision(Conversion("number", found.notation, base.notation))


def _doubt_unless_empty(column: ColumnProfile, doubt: str) -> Decision:
    """Doubt a column, unless all of its values mean a missing value."""
    is_empty = column.values is not None and all(map(is_absent, column.values))
    return Decision(doubt="" if is_empty else doubt)


def _of_dates(
    ours: Dates, base: ColumnProfile, column: ColumnProfile, tally: PatternTally
) -> Decision:
    if _is_date(base.type) and base.type == column.type:
        return Decision()
    found = read_dates(tally)
    if found is None:
        return _doubt_unless_empty(column, "not all of its values are dates in one format")
    if found.form is None:
        return Decision(doubt=found.doubt, has_readings=True)
    if ours.form is None:
        return Decision(doubt=f"in the base, {ours.doubt}", has_readings=True)
    if found.odd:
        if ours.form.name != found.form.name or ours.written is None:
            return Decision(doubt="not all of its values are dates in one format")
        # The conversion gives null for the other values, so that rows with them are left out.
        return Decision(Conversion("date", found.form.name, ours.written))
    if ours.form.name == found.form.name and ours.written in (None, found.written):
        return Decision()
    doubt = _differing(ours.form, found.form, ours, found)
    if doubt or ours.written is None:
        doubt = doubt or "its dates cannot be written as the base writes them"
        is_short = ours.form.is_short or found.form.is_short
        return Decision(doubt=doubt, has_readings=is_short)
    return Decision(Conversion("date", found.form.name, ours.written))


def _differing(base: DateFormat, source: DateFormat, ours: Dates, found: Dates) -> str:
    """Say what one side leaves out: the century, or the time of day."""
    if base.is_short or source.is_short:
        whose = "its" if source.is_short else "the base's"
        return f"{whose} years have two digits"
    if source.time and not base.time and not found.midnight:
        return "it has times of day, which the base does not have"
    if base.time and not source.time and not ours.midnight:
        return "it has no times of day, which the base has"
    if base.time and "%S" in source.time and "%S" not in base.time and not found.midnight:
        return "it has seconds, which the base does not have"
    return ""


# -------------------------------------------------------------------------------- words

_PAIRS = (("yes", "no"), ("y", "n"), ("true", "false"), ("t", "f"), ("1", "0"))
# Values that are clear even if the other of the pair does not occur; t, f, 1 and 0 are not.
_SPEAKING = {"yes", "no", "y", "n", "true", "false"}


def _truth_of(values: Mapping[str, int] | None) -> dict[str, bool] | None:
    """Read values as yes and no, if they are one of the known pairs and nothing else."""
    said = {value: value.strip().lower() for value in values or () if not is_absent(value)}
    for yes, no in _PAIRS:
        if said and set(said.values()) <= {yes, no}:
            return {value: text == yes for value, text in said.items()}
    return None


def _is_truth(base: ColumnProfile) -> bool:
    """Whether a column of the base holds yes and no; 0 and 1 may be numbers."""
    truths = _truth_of(base.values)
    return truths is not None and len(set(truths.values())) > 1 and base.numeric < _NAMES


def _holds_truths(base: ColumnProfile, column: ColumnProfile) -> bool:
    known = base.values or {}
    return column.values is not None and all(v in known or is_absent(v) for v in column.values)


def _truths(base: ColumnProfile, column: ColumnProfile) -> dict[str, str] | None:
    """Map yes and no in one spelling to another; None if the columns hold other values."""
    is_truth = base.type.upper() == "BOOLEAN"
    ours = {"true": True, "false": False} if is_truth else _truth_of(base.values)
    theirs = _truth_of(column.values)
    if ours is None or theirs is None or sorted(ours.values()) != [False, True]:
        return None
    lone = {value.strip().lower() for value in theirs}
    if len(set(theirs.values())) < 2 and not lone <= _SPEAKING:
        return None
    spelled = {truth: value for value, truth in ours.items()}
    told = {value: spelled[truth] for value, truth in theirs.items()}
    return {value: text for value, text in told.items() if value != text} or None


def _of_words(base: ColumnProfile, column: ColumnProfile) -> Decision:
    """Map words known to mean the same; codes are doubted where the base has words."""
    if not base.values or not column.values or len(base.values) > _CLOSED:
        return Decision()
    found = match_values(base.values, column.values, propose=False)
    if found.certain and found.step in ("normalised", "synonyms"):
        told = {s: b for s, b in found.values.items() if s != b}
        return Decision(spellings=told or None)
    ours, theirs = ([v for v in c.values or () if not is_absent(v)] for c in (base, column))
    known = {value.strip().casefold() for value in ours}
    if not ours or not theirs or any(value.strip().casefold() in known for value in theirs):
        return Decision()
    codes = all(map(is_code, ours)), all(map(is_code, theirs))
    if codes[0] != codes[1]:
        whose = ("words", "codes") if codes[1] else ("codes", "words")
        return Decision(doubt=f"the base has {whose[0]}, and it has {whose[1]}")
    return Decision()
