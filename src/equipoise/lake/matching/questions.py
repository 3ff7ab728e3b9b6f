"""What a table is taken to mean, column by column and value by value, and what is open about it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal, TypeAlias

from equipoise.engines.profiling import Profile
from equipoise.lake.matching.columns.alignment import Alignment, ColumnMatch, align
from equipoise.lake.matching.columns.candidates import ColumnCandidate, TableEvidence
from equipoise.lake.matching.columns.target import Wanted
from equipoise.lake.matching.mapping import Confirmed
from equipoise.lake.matching.mapping_lines import Mark
from equipoise.lake.matching.values.vocabulary import ValueMap, say_values

Status: TypeAlias = Literal["certain", "confirmed", "refused", "open", "missing"]
"""Settled by itself; by a person; not used because a person said so; not settled, and not used.

A value may also be a text for a missing value.
"""

MOST_VALUES = 200
"""Maximum number of values of a column in plain data."""

_LIKELY = 0.5
"""Score above which a column is named as a candidate of a table that lacks others."""

_NOT_YET = "the mapping names it, but does not use the table yet"
_NO_COLUMN = "no column of the table is known to be this one"


@dataclass(frozen=True, kw_only=True)
class ValueQuestion:
    """A value of a table: its rows, the value of the base it is taken to mean, and why.

    A ``guess`` is not used.
    """

    value: str
    rows: int
    means: str | None
    status: Status
    why: str
    guess: str | None = None


@dataclass(frozen=True, kw_only=True)
class ColumnQuestion:
    """A column of the base, the column of a table it is matched with, and why.

    Attributes
    ----------
    column, source
        Column of the base, and of the table; None if there is none.
    counted
        Whether the plan counts the column; others are only filled in added rows.
    status, why, doubt
        Whether the match is settled, the evidence for it, and why it is open.
    score
        How likely the match is, from 0 to 1.
    candidates
        Other columns of the table, the most likely first.
    values, values_why, more_values
        Values of the table, the most frequent first; what is known about all of them; and how many
        are not listed.
    missing_values
        Number of rows without a value.
    """

    column: str
    source: str | None
    counted: bool
    status: Status
    why: str
    doubt: str | None = None
    score: float = 0.0
    candidates: tuple[ColumnCandidate, ...] = ()
    values: tuple[ValueQuestion, ...] = ()
    values_why: str = ""
    more_values: int = 0
    missing_values: int = 0

    @property
    def open(self) -> tuple[str, ...]:
        """What is open: the column itself, and its values."""
        own = [self.column] if self.status == "open" else []
        return (*own, *(f"{self.column}={v.value}" for v in self.values if v.status == "open"))

    @property
    def is_settled(self) -> bool:
        """Whether rows can be counted by this column."""
        if self.status not in ("certain", "confirmed") or self.open:
            return False
        return not self.values or any(value.means is not None for value in self.values)

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        own = ("column", "source", "counted", "status", "why", "doubt", "score")
        listed = self.values[:MOST_VALUES]
        return {
            **{name: getattr(self, name) for name in own},
            "candidates": [asdict(candidate) for candidate in self.candidates],
            "values": [asdict(value) for value in listed],
            "values_why": self.values_why,
            "more_values": self.more_values + len(self.values) - len(listed),
            "missing_values": self.missing_values,
        }


@dataclass(frozen=True, kw_only=True)
class TableMeaning:
    """What is known about the meaning of a table: the evidence, a match, and a mapping file."""

    name: str
    evidence: TableEvidence
    own: Alignment | None
    """Match by evidence alone; None if some column has no counterpart."""
    said: Confirmed | None = None
    """What a mapping file says."""
    count: Callable[[str], Mapping[str, int]] = lambda _: {}
    """Counts the most frequent values of a column that has too many for its profile."""

    @classmethod
    def of(
        cls,
        name: str,
        want: Wanted,
        table: Profile,
        own: Alignment | None,
        *,
        said: Confirmed | None,
        same_codes: bool,
        codebook: Mapping[str, Mapping[str, str]],
        count: Callable[[str], Mapping[str, int]],
    ) -> TableMeaning:
        """Gather the evidence about a table; match its columns unless that has been done."""
        evidence = TableEvidence(want, table, same_codes, codebook)
        own = own or align(want, table, same_codes=same_codes, codebook=codebook)
        return cls(name=name, evidence=evidence, own=own, said=said, count=count)

    @property
    def want(self) -> Wanted:
        """What the plan wants of a table."""
        return self.evidence.want

    def own_match(self, name: str) -> ColumnMatch | None:
        """Return the column that the evidence alone suggests."""
        if self.own is None:
            return None
        return self.own.columns.get(name) or self.own.proposed.get(name)

    def own_values(self, name: str, source: str) -> ValueMap:
        """Return what the values of a column mean by the evidence alone."""
        match = self.own_match(name)
        if self.own is not None and match is not None and match.source == source:
            return self.own.values[name]
        return self.evidence.values(name, source)

    def own_doubt(self, name: str) -> str | None:
        """Return why the suggested column is not certain, apart from its values."""
        match = self.own_match(name)
        if self.own is None or match is None:
            return _NO_COLUMN
        if name not in self.want.required:
            return match.doubt
        doubt, values = self.own.doubts.get(name), self.own.values.get(name)
        if doubt is not None and values is not None and doubt == values.why:
            return self.evidence.doubt(name, match.source)
        return doubt

    def columns(self) -> tuple[ColumnQuestion, ...]:
        """Return the columns that the plan counts, then others that the table may have."""
        required = [self._required(name) for name in self.want.required]
        return (*required, *self._others())

    @property
    def open(self) -> frozenset[str]:
        """What is open about the columns that the plan counts."""
        return frozenset(what for name in self.want.required for what in self._required(name).open)

    @property
    def is_settled(self) -> bool:
        """Whether rows can be taken without asking a person."""
        return all(self._required(name).is_settled for name in self.want.required)

    def doubts(self) -> Iterator[str]:
        """Say what is open about the columns that the plan counts."""
        for name in self.want.required:
            column = self._required(name)
            if column.status in ("open", "refused"):
                yield f"{name}: {column.doubt or column.why}"
            elif not column.is_settled:
                yield f"{name}: {column.values_why}"

    # ------------------------------------------------------------------- columns

    def _choice(self, name: str) -> tuple[str | None, Status, str | None]:
        """Return the column of the table that is used, whether it is settled, and why it is not."""
        match, doubt, said = self.own_match(name), self.own_doubt(name), self.said
        own = None if match is None else match.source
        suggested = own, ("certain" if doubt is None else "open"), doubt
        if said is None:
            return suggested  # type: ignore[return-value]
        if name in said.without:
            return None, "refused", None
        source, mark = said.columns.get(name), self._mark("columns", name)
        if source is None:
            if said.use and name in self.want.required:
                return None, "open", "the mapping does not say which column it is"
            return suggested  # type: ignore[return-value]
        if mark == "confirmed" or source not in self._sources:
            return source, "confirmed", None
        if source == own and doubt is None:
            return source, "certain", None
        if said.use:
            return source, "confirmed", None
        return source, "open", doubt if source == own else _NOT_YET

    @property
    def _sources(self) -> list[str]:
        return [column.name for column in self.evidence.table.columns]

    def _mark(self, *line: str) -> Mark:
        return "" if self.said is None else self.said.marks.get(line, "")

    def _required(self, name: str) -> ColumnQuestion:
        source, status, doubt = self._choice(name)
        values, why, more = self._values(name, source)
        nulls = 0 if source is None else self.evidence.profile(source).nulls
        return ColumnQuestion(
            column=name,
            source=source,
            counted=True,
            status=status,
            why=self._why(name, source, status),
            doubt=doubt,
            score=self._score(name, source, status),
            candidates=self.evidence.candidates(name, but=source),
            values=values,
            values_why=why,
            more_values=more,
            missing_values=nulls,
        )

    def _others(self) -> Iterator[ColumnQuestion]:
        """Return the columns that the plan does not count, if the table may have them."""
        for name in (c.name for c in self.want.columns if c.name not in self.want.required):
            source, status, doubt = self._choice(name)
            if source is None and status != "refused":
                continue
            yield ColumnQuestion(
                column=name,
                source=source,
                counted=False,
                status=status,
                why=self._why(name, source, status),
                doubt=doubt,
                score=self._score(name, source, status),
            )

    def _why(self, name: str, source: str | None, status: Status) -> str:
        if status == "refused":
            return "The mapping says that the table does not have this column."
        if source is None:
            likely = [c for c in self.evidence.candidates(name, but=None) if c.score > _LIKELY]
            if likely:
                return f"Perhaps {likely[0].source!r}: {likely[0].why}"
            return "No column of the table is similar enough."
        return self.evidence.say(name, source)

    def _score(self, name: str, source: str | None, status: Status) -> float:
        if source is None:
            return 0.0
        match = self.own_match(name)
        if status == "confirmed":
            return 1.0
        is_own = match is not None and match.source == source
        return match.score if is_own and match else self.evidence.score(name, source)

    # -------------------------------------------------------------------- values

    def _values(self, name: str, source: str | None) -> tuple[tuple[ValueQuestion, ...], str, int]:
        """Return the values of a column, what is known about them all, and how many more there are."""
        if source is None or name not in self.want.vocabularies:
            return (), "", 0
        profile = self.evidence.profile(source)
        rows = self.count(source) if profile.values is None else profile.values
        found = self.own_values(name, source)
        reasons = say_values(self.want.vocabularies[name], rows, found)
        ordered = sorted(rows, key=lambda value: (-rows[value], value))
        values = tuple(
            self._value(name, source, value, rows[value], found, reasons[value])
            for value in ordered
        )
        return values, found.why, max(profile.distinct - len(values), 0)

    def _value(
        self, name: str, source: str, value: str, rows: int, found: ValueMap, why: str
    ) -> ValueQuestion:
        own, guess = found.values.get(value), found.proposals.get(value)
        status, means = _own_status(value, found), own
        told = self._told(name, source, value)
        if told is not None:
            status = self._told_status(name, value, told, own, found)
            means = told or None
            why = _say_told(status, why)
        elif self._is_unlisted(name, source):
            status, means = "open", None
            why = "The mapping does not mention it, so its rows are left out."
        elif status == "refused":
            why = "The codebook does not mention it, so its rows are left out."
        return ValueQuestion(
            value=value,
            rows=rows,
            means=means,
            status=status,
            why=why,
            guess=None if guess is None or status != "open" else guess.value,
        )

    def _told(self, name: str, source: str, value: str) -> str | None:
        """Return what the mapping file says about a value of the column that it names."""
        said = self.said
        if said is None or said.columns.get(name) != source:
            return None
        told = said.values.get(name, {}).get(value)
        is_open = told == "" and self._mark("values", name, value) == "open"
        return None if is_open else told

    def _is_unlisted(self, name: str, source: str) -> bool:
        """Whether a value that the mapping file does not mention is left out for that reason."""
        said = self.said
        is_used = said is not None and said.use and said.columns.get(name) == source
        return is_used and bool(said and said.values.get(name))

    def _told_status(
        self, name: str, value: str, told: str, own: str | None, found: ValueMap
    ) -> Status:
        mark = self._mark("values", name, value)
        if told:
            return "certain" if told == own and mark != "confirmed" else "confirmed"
        is_missing = mark == "missing" or (not mark and value in found.missing)
        return "missing" if is_missing else "refused"


def _own_status(value: str, found: ValueMap) -> Status:
    if value in found.values:
        return "certain"
    if value in found.missing:
        return "missing"
    return "refused" if found.step == "codebook" else "open"


def _say_told(status: Status, why: str) -> str:
    said = {
        "confirmed": "The mapping says so.",
        "refused": "The mapping leaves its rows out.",
        "missing": "It is read as a missing value.",
    }
    return said.get(status, why)


def listed(values: Mapping[str, int], most: int = MOST_VALUES) -> tuple[list[dict[str, Any]], int]:
    """List the most frequent values with their rows as plain data, and how many are left out."""
    ordered = sorted(values, key=lambda value: (-values[value], value))
    shown = [{"value": value, "rows": values[value]} for value in ordered[:most]]
    return shown, len(ordered) - len(shown)


def explain_columns(want: Wanted, table: Profile, alignment: Alignment) -> dict[str, str]:
    """Say in a sentence for each matched column of a table what speaks for it."""
    evidence = TableEvidence(want, table)
    known = {column.name for column in want.columns}
    matches = (match for name, match in alignment.columns.items() if name in known)
    return {match.base: evidence.say(match.base, match.source) for match in matches}


def explain_values(
    want: Wanted, table: Profile, alignment: Alignment
) -> dict[str, tuple[list[dict[str, Any]], int]]:
    """List the values of each counted column as plain data, and how many are left out of that."""
    rows = {column.name: column.values for column in table.columns}
    found = {}
    for name, values in alignment.values.items():
        there = rows[alignment.columns[name].source]
        known = dict.fromkeys(values.values, 0) if there is None else there
        why = say_values(want.vocabularies[name], known, values)
        ordered, more = listed(known)
        found[name] = (
            [
                {**line, "means": values.values.get(line["value"]), "why": why[line["value"]]}
                for line in ordered
            ],
            more,
        )
    return found
