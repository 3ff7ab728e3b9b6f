"""What the tables of a lake are taken to mean for a plan, what is open, and answers to that."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from equipoise.counts import Counts
from equipoise.engines.profiling import Profile
from equipoise.engines.sources import Source
from equipoise.lake.matching.answers import write_answers
from equipoise.lake.matching.columns.alignment import Alignment
from equipoise.lake.matching.columns.target import Wanted, rows_by_value, wanted
from equipoise.lake.matching.mapping import Confirmed, read_mapping
from equipoise.lake.matching.questions import (
    MOST_VALUES,
    ColumnQuestion,
    TableMeaning,
    listed,
)
from equipoise.lake.matching.restriction import restriction, wanted_by
from equipoise.lake.offers.prospect import why_barred
from equipoise.lake.offers.survey import Candidate, Survey, begin_mapping, survey
from equipoise.lake.tables.contents import Contents
from equipoise.lake.tables.index import Table
from equipoise.options.search import SearchRequest
from equipoise.plain import Grid, counted, in_words
from equipoise.progress import Reporter, cancellable, silent
from equipoise.results import FlatTable, Result
from equipoise.values import MISSING

MOST_TABLES = 500
"""Maximum number of tables in plain data."""

_SHOWN = 5
_MOST_COLUMNS = 200
_LIKELY = 0.5  # score of a column that need not be named as lacking

TableStatus: TypeAlias = Literal["used", "open", "refused", "barred", "left out"]
"""Rows can be taken; a person must be asked; a person refused it; it may not be used; or some
column of the plan has no counterpart in it."""

_ORDER: tuple[TableStatus, ...] = ("open", "used", "refused", "barred", "left out")


@dataclass(frozen=True, kw_only=True)
class TableQuestions:
    """A table of a lake, and what it is taken to mean.

    Attributes
    ----------
    name, rows
        Name of the table in the lake, and number of its rows.
    status, confidence
        Whether rows can be taken, and how certain that is, from 0 to 1.
    barred
        Why the table may not be used, if that is so.
    """

    name: str
    rows: int
    status: TableStatus
    confidence: float
    barred: str | None = None
    make: Callable[[], TableMeaning] = field(repr=False, compare=False)

    @functools.cached_property
    def meaning(self) -> TableMeaning:
        """The evidence, made when it is asked for."""
        return self.make()

    @functools.cached_property
    def columns(self) -> tuple[ColumnQuestion, ...]:
        """The columns that the plan counts, then others that the table may have."""
        return self.meaning.columns()

    @property
    def open(self) -> int:
        """Number of open columns and values among those that the plan counts."""
        return sum(len(column.open) for column in self.columns if column.counted)

    @property
    def why(self) -> str:
        """Why the table has its status, in a sentence."""
        if self.status == "used":
            return "All columns that the plan counts are certain or confirmed."
        if self.status == "refused":
            return "The mapping says not to use it."
        if self.barred is not None:
            return f"No rows are taken from it: {self.barred}."
        if self.status == "open":
            return f"{'; '.join(self.meaning.doubts())}."
        likely = {c.column: c.candidates and c.candidates[0].score > _LIKELY for c in self.columns}
        lacking = [c.column for c in self.columns if c.counted and not likely[c.column]]
        if not lacking:
            return "Its columns do not fit those of the base well enough."
        return f"None of its columns is similar enough to {in_words(lacking)}."

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        names = [column.name for column in self.meaning.evidence.table.columns]
        return {
            "table": self.name,
            "rows": self.rows,
            "status": self.status,
            "why": self.why,
            "confidence": self.confidence,
            "open": self.open,
            "columns": [column.to_dict() for column in self.columns],
            "all_columns": names[:_MOST_COLUMNS],
            "more_columns": max(len(names) - _MOST_COLUMNS, 0),
        }


@dataclass(frozen=True, eq=False, kw_only=True)
class Questions(Result):
    """What the tables of a lake are taken to mean for a plan, and what only a person can say.

    Attributes
    ----------
    base
        Name of the table that the plan was made for.
    counted
        Number of rows of each value of the columns that the plan counts; the label is the last.
    edges
        Bin edges of those of them that are numbers.
    tables
        Tables of the lake: those with open questions first, then those that are used, refused,
        barred or left out.
    unreadable
        Number of tables that cannot be read.
    """

    base: str
    counted: Mapping[str, Mapping[str, int]]
    edges: Mapping[str, tuple[float, ...]]
    tables: tuple[TableQuestions, ...]
    unreadable: int
    _begun: Callable[[str], str] = field(repr=False)

    @property
    def open(self) -> tuple[TableQuestions, ...]:
        """Tables with open questions."""
        return tuple(table for table in self.tables if table.status == "open")

    def __getitem__(self, name: str) -> TableQuestions:
        """Return a table by name."""
        return {table.name: table for table in self.tables}[name]

    def answer(self, answers: Iterable[Mapping[str, Any]], *, file: str = "mapping.toml") -> str:
        """Write answers into the mapping file that the questions were asked with, or a new one.

        Parameters
        ----------
        answers
            Dictionaries as :meth:`equipoise.Lake.answer` describes them.
        file
            File name that the text of a new mapping file mentions.
        """
        tables = {table.name: functools.partial(getattr, table, "meaning") for table in self.tables}
        return write_answers(self._begun(file), tables, answers)

    @property
    def sentences(self) -> tuple[str, ...]:
        """Summary in sentences."""
        numbers = Counter(table.status for table in self.tables)
        parts = [f"{numbers[status]:,} {status}" for status in _ORDER if numbers[status]]
        said = [f"Of {counted(len(self.tables), 'table')}: {', '.join(parts) or 'none'}."]
        said += [f"{table.name}: {table.why}" for table in self.open[:_SHOWN]]
        if len(self.open) > _SHOWN:
            said.append(f"{len(self.open) - _SHOWN:,} more tables have open questions.")
        if self.unreadable:
            said.append(f"{counted(self.unreadable, 'table')} cannot be read.")
        return tuple(said)

    def grid(self) -> Grid:
        """Table for people, with a line for each table of the lake."""
        rows = tuple(
            (t.name, f"{t.rows:,}", t.status, f"{t.confidence:.2f}", _say_columns(t))
            for t in self.tables[:MOST_TABLES]
        )
        headers = ("table", "rows", "status", "confidence", "columns")
        return Grid(headers, rows, frozenset({1, 3}))

    def _table(self) -> FlatTable:
        names = ("table", "rows", "table_status", "column", "source", "status", "open", "why")
        rows = [
            (t.name, t.rows, t.status, c.column, c.source, c.status, len(c.open), c.why)
            for t in self.tables[:MOST_TABLES]
            for c in t.columns
        ]
        return names, rows

    def to_dict(self) -> dict[str, Any]:
        """Plain data, ready for JSON; at most 200 values of a column and 500 tables."""
        shown = self.tables[:MOST_TABLES]
        return {
            "schema": "equipoise.questions/1",
            "base": self.base,
            "columns": [self._column(name) for name in self.counted],
            "tables": [table.to_dict() for table in shown],
            "more_tables": len(self.tables) - len(shown),
            "open": sum(table.open for table in self.open),
            "unreadable": self.unreadable,
            "sentences": list(self.sentences),
        }

    def _column(self, name: str) -> dict[str, Any]:
        values, more = listed(self.counted[name], MOST_VALUES)
        edges = self.edges.get(name)
        return {
            "column": name,
            "is_label": name == list(self.counted)[-1],
            "values": values,
            "more_values": more,
            "edges": None if edges is None else list(edges),
        }


def _say_columns(table: TableQuestions) -> str:
    parts = []
    for column in (c for c in table.columns if c.counted):
        source = "?" if column.source is None else column.source
        open_values = sum(value.status == "open" for value in column.values)
        more = f", {counted(open_values, 'value')} open" if open_values else ""
        parts.append(f"{column.column} ← {source} ({column.status}{more})")
    return ", ".join(parts)


@cancellable
def ask_questions(
    counts: Counts,
    lake: Contents,
    base: Source | None,
    looking: SearchRequest,
    *,
    progress: Reporter = silent,
) -> Questions:
    """Survey a lake for a plan, and list what the tables are taken to mean."""
    want = wanted(counts) if base is None else wanted_by(counts, base, lake.engine)
    found = survey(lake, want, looking, progress)
    said = {} if looking.mapping is None else read_mapping(looking.mapping)
    asker = _Asker(lake, want, looking, said, base)
    tables = [*asker.surveyed(found), *asker.left_out(found)]
    axes = {axis.name: rows_by_value(counts, i) for i, axis in enumerate(counts.axes)}
    return Questions(
        base="the base" if base is None else base.public_name,
        counted={name: want.vocabularies.get(name, rows) for name, rows in axes.items()},
        edges=want.bins,
        tables=tuple(tables),
        unreadable=found.unreadable,
        _begun=lambda file: begin_mapping(found, counts, base, looking, file),
    )


@dataclass(frozen=True)
class _Asker:
    lake: Contents
    want: Wanted
    looking: SearchRequest
    said: Mapping[str, Confirmed]
    base: Source | None

    def surveyed(self, found: Survey) -> list[TableQuestions]:
        """Return the tables that may have rows, those with open questions first."""
        within = None if self.base is None else restriction(self.base, self.lake.engine)
        tables = [self._table(c, "open") for c in sorted(found.open, key=lambda c: -c.confidence)]
        tables += [self._table(c, "refused") for c in found.refused]
        for candidate in found.usable:
            why = None if self.base is None else why_barred(candidate, self.base, (), within)
            tables.append(self._table(candidate, "barred" if why else "used", why))
        for candidate in found.barred:
            said = self.said.get(candidate.name)
            is_refused = said is not None and not said.use
            status: TableStatus = "refused" if is_refused else "barred"
            tables.append(self._table(candidate, status, candidate.barred))
        return sorted(tables, key=lambda table: _ORDER.index(table.status))

    def left_out(self, found: Survey) -> list[TableQuestions]:
        """Return the tables in which some column of the plan has no counterpart."""
        known = {c.name for c in (*found.usable, *found.barred, *found.open, *found.refused)}
        others = (t for t in self.lake.tables if t.profiled and t.problem is None)
        return [
            TableQuestions(
                name=table.name,
                rows=table.rows,
                status="left out",
                confidence=0.0,
                make=functools.partial(self._unmatched, table),
            )
            for table in others
            if table.name not in known
        ]

    def _table(
        self, candidate: Candidate, status: TableStatus, barred: str | None = None
    ) -> TableQuestions:
        # What a mapping says is laid over what the evidence alone says.
        own = None if candidate.alignment.confirmed else candidate.alignment
        make = functools.partial(self._meaning, candidate.table, candidate.profile, own)
        return TableQuestions(
            name=candidate.name,
            rows=candidate.profile.rows,
            status=status,
            confidence=candidate.confidence,
            barred=barred,
            make=make,
        )

    def _unmatched(self, table: Table) -> TableMeaning:
        return self._meaning(table, self.lake.profiles([table])[table.id], None)

    def _meaning(self, table: Table, profile: Profile, own: Alignment | None) -> TableMeaning:
        return TableMeaning.of(
            table.name,
            self.want,
            profile,
            own,
            said=self.said.get(table.name),
            same_codes=self.looking.same_codes,
            codebook=self.looking.codebook,
            count=functools.partial(self._count, table),
        )

    def _count(self, table: Table, column: str) -> dict[str, int]:
        found = self.lake.engine.distinct(table.source, column, MOST_VALUES)
        return {str(value): rows for value, rows in found.items() if value is not MISSING}
