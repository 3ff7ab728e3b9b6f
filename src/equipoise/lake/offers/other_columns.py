"""Treatment of columns that are not counted, where a table uses another notation."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from equipoise.engines import sql
from equipoise.engines.base import Engine
from equipoise.engines.profiling import ColumnProfile
from equipoise.engines.sources import Source
from equipoise.lake.matching.columns.alignment import Alignment
from equipoise.lake.matching.conversions import (
    Action,
    BaseColumn,
    Conversion,
    Decision,
    Treatment,
    decide,
    patterns_of,
    read_base_column,
    tally_of,
)
from equipoise.lake.matching.notations import PatternTally, tallies_from, tally_query
from equipoise.lake.offers.survey import Candidate, Survey
from equipoise.options.search import OtherColumns, SearchRequest
from equipoise.progress import Reporter


def settle_columns(
    survey: Survey, base: Source, engine: Engine, looking: SearchRequest, progress: Reporter
) -> tuple[Candidate, ...]:
    """Decide for every usable table how its other columns are converted to those of the base.

    All values of a column count, and not only those of the rows that are taken. If the profile
    does not have them all, the column is read.
    """
    want = survey.want
    others = {c.name: c for c in want.columns if c.name not in want.required}
    if not survey.usable or not others:
        return survey.usable
    # Rows outside the condition of the base count too, as they do in the profiles of its columns.
    tallies = _tallies(replace(base, where=None), others, engine)
    held = {name: read_base_column(column, tallies[name]) for name, column in others.items()}
    settled = []
    for i, candidate in enumerate(survey.usable):
        progress(f"reading columns of {candidate.name}", i / len(survey.usable))
        settled.append(_settled(candidate, held, engine, looking.other_columns))
    return tuple(settled)


def _tallies(
    source: Source,
    columns: Mapping[str, ColumnProfile],
    engine: Engine,
    before: Callable[[], None] = lambda: None,
) -> dict[str, PatternTally]:
    """Compare columns with patterns: by their profiles, or in one pass over the table."""
    found, open_ = {}, {}
    for name, column in columns.items():
        tally = tally_of(column)
        if tally is None:
            open_[column.name] = (column.type, patterns_of(column))
        else:
            found[name] = tally
    if open_:
        before()
        query = tally_query(open_, source.sql)
        (row,) = engine.fetch(replace(source, sql=query), [0]).to_pylist()
        by_column = tallies_from(row, open_)
        found |= {n: by_column[c.name] for n, c in columns.items() if c.name in by_column}
    return found


@dataclass
class _Settling:
    """Decisions so far."""

    policy: OtherColumns
    spellings: dict[str, Mapping[str, str]]
    conversions: dict[str, Conversion] = field(default_factory=dict)
    absent: set[str] = field(default_factory=set)
    kept: dict[str, Decision] = field(default_factory=dict)
    unseen: dict[str, tuple[str, Decision]] = field(default_factory=dict)
    treated: list[Treatment] = field(default_factory=list)

    def add(self, base: BaseColumn, column: str, decision: Decision, *, has_absent: bool) -> None:
        """Record a decision; a column that is left missing is no longer matched."""
        name = base.column.name
        if decision.as_it_is:
            if has_absent and base.is_measured and not base.has_absent and self.policy != "keep":
                self.absent.add(name)
            return
        action = self._action(base, decision)
        self.treated.append(Treatment(name, column, action, decision.doubt or decision.how))
        if action == "kept":
            self.kept[name] = decision
        elif action == "left missing":
            self.unseen[name] = (column, decision)
        elif action == "converted":
            if decision.conversion is not None:
                self.conversions[name] = decision.conversion
                if has_absent:
                    self.absent.add(name)
            # What a person said in a mapping file has the last word.
            self.spellings[name] = {**(decision.spellings or {}), **self.spellings.get(name, {})}

    def _action(self, base: BaseColumn, decision: Decision) -> Action:
        # Only a text column can hold values in another notation.
        if self.policy == "keep" and sql.is_text(base.column.type):
            return "kept"
        if self.policy == "blank" or decision.doubt:
            return "left missing"
        return "converted"


def _settled(
    candidate: Candidate, held: Mapping[str, BaseColumn], engine: Engine, policy: OtherColumns
) -> Candidate:
    alignment = candidate.alignment
    by_name = {column.name: column for column in candidate.profile.columns}
    columns = {
        name: by_name[alignment.columns[name].source] for name in held if name in alignment.columns
    }
    columns = {name: _as_told(column, alignment, name) for name, column in columns.items()}
    ready = candidate.require_unchanged
    tallies = _tallies(candidate.table.source, columns, engine, ready)
    settling = _Settling(policy, dict(alignment.spellings))
    for name, column in columns.items():
        decision = decide(held[name], column, tallies[name])
        # If no text stands for a missing value, the query need not look for one.
        filled = candidate.profile.rows - column.nulls
        has_absent = tallies[name].rows < filled or name in alignment.spellings
        settling.add(held[name], column.name, decision, has_absent=has_absent)
    gone = {t.name for t in settling.treated if t.action == "left missing"}
    settled = replace(
        alignment,
        columns={n: m for n, m in alignment.columns.items() if n not in gone},
        spellings={n: told for n, told in settling.spellings.items() if told and n not in gone},
        conversions=settling.conversions,
        absent=frozenset(settling.absent),
        kept=settling.kept,
        unseen=settling.unseen,
        treated=tuple(settling.treated),
    )
    return replace(candidate, alignment=settled)


def _as_told(column: ColumnProfile, alignment: Alignment, name: str) -> ColumnProfile:
    """Apply the spellings of a mapping file, or of case and blanks, to the values of a column."""
    told = alignment.spellings.get(name)
    if not told or column.values is None:
        return column
    values: dict[str, int] = {}
    for value, rows in column.values.items():
        values[told.get(value, value)] = values.get(told.get(value, value), 0) + rows
    return replace(column, values=values)
