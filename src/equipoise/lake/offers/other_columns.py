"""Treatment of columns that are not counted, where a table uses another notation."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace

from equipoise.engines import sql
from equipoise.engines.base import Engine
from equipoise.engines.profiling import ColumnProfile
from equipoise.engines.sources import Source
from equipoise.lake.matching.columns.alignment import Alignment
from equipoise.lake.matching.conversions import (
    Action,
    BaseColumn,
    Decision,
    Treatment,
    decide,
    patterns_of,
    read_base_column,
    tally_of,
)
from equipoise.lake.matching.notations import PatternTally, tallies_from, tally_query
from equipoise.lake.offers.copies import TableCopies
from equipoise.lake.offers.survey import Candidate, Survey
from equipoise.options.search import OtherColumns, SearchRequest
from equipoise.progress import Reporter


def settle_columns(
    survey: Survey, base: Source, copies: TableCopies, looking: SearchRequest, progress: Reporter
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
    everything = replace(base, where=None)
    tallies = _tallies(lambda: everything, others, copies.engine)
    held = {name: read_base_column(column, tallies[name]) for name, column in others.items()}
    settled = []
    for i, candidate in enumerate(survey.usable):
        progress(f"reading columns of {candidate.name}", i / len(survey.usable))
        settled.append(_settled(candidate, held, copies, looking.other_columns))
    return tuple(settled)


def _tallies(
    opened: Callable[[], Source], columns: Mapping[str, ColumnProfile], engine: Engine
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
        source = opened()
        query = tally_query(open_, source.sql)
        (row,) = engine.fetch(replace(source, sql=query), [0]).to_pylist()
        by_column = tallies_from(row, open_)
        found |= {n: by_column[c.name] for n, c in columns.items() if c.name in by_column}
    return found


def _settled(
    candidate: Candidate, held: Mapping[str, BaseColumn], copies: TableCopies, policy: OtherColumns
) -> Candidate:
    alignment = candidate.alignment
    by_name = {column.name: column for column in candidate.profile.columns}
    columns = {
        name: _as_told(by_name[alignment.columns[name].source], alignment.spellings.get(name))
        for name in held
        if name in alignment.columns
    }
    tallies = _tallies(lambda: copies.of(candidate), columns, copies.engine)
    decisions = {n: decide(held[n], column, tallies[n]) for n, column in columns.items()}
    actions = {
        name: _action(held[name], decision, policy)
        for name, decision in decisions.items()
        if not decision.as_it_is
    }
    # If no text stands for a missing value, the query need not look for one.
    with_absent = {
        name
        for name, column in columns.items()
        if tallies[name].rows < candidate.profile.rows - column.nulls or name in alignment.spellings
    }
    as_they_are = [n for n in with_absent - actions.keys() if policy != "keep"]
    absent = {n for n in as_they_are if held[n].is_measured and not held[n].has_absent}
    absent |= {n for n in with_absent if actions.get(n) == "converted" and decisions[n].conversion}
    treated = tuple(
        Treatment(n, columns[n].name, action, decisions[n].doubt or decisions[n].how)
        for n, action in actions.items()
    )
    settled = replace(alignment, absent=frozenset(absent), treated=treated)
    return replace(candidate, alignment=_with_treatments(settled, decisions))


def _with_treatments(alignment: Alignment, decisions: Mapping[str, Decision]) -> Alignment:
    """Apply the treatments; a column that is left missing is no longer matched."""
    converted, kept, gone = (
        {t.name: decisions[t.name] for t in alignment.treated if t.action == action}
        for action in ("converted", "kept", "left missing")
    )
    spellings = {n: told for n, told in alignment.spellings.items() if n not in gone}
    for name, decision in converted.items():
        # What a person said in a mapping file has the last word.
        spellings[name] = {**(decision.spellings or {}), **spellings.get(name, {})}
    return replace(
        alignment,
        columns={n: m for n, m in alignment.columns.items() if n not in gone},
        spellings={n: told for n, told in spellings.items() if told},
        conversions={n: d.conversion for n, d in converted.items() if d.conversion is not None},
        kept=kept,
        unseen={n: (alignment.columns[n].source, decision) for n, decision in gone.items()},
    )


def _action(base: BaseColumn, decision: Decision, policy: OtherColumns) -> Action:
    # Only a text column can hold values in another notation.
    if policy == "keep" and sql.is_text(base.column.type):
        return "kept"
    return "left missing" if policy == "blank" or decision.doubt else "converted"


def _as_told(column: ColumnProfile, told: Mapping[str, str] | None) -> ColumnProfile:
    """Apply the spellings of a mapping file, or of case and blanks, to the values of a column."""
    if not told or column.values is None:
        return column
    values: Counter[str] = Counter()
    for value, rows in column.values.items():
        values[told.get(value, value)] += rows
    return replace(column, values=values)
