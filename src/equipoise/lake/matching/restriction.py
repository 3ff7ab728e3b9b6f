"""The condition of a base, applied to tables of a lake."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from equipoise.counts import Condition, Counts
from equipoise.engines.base import Column, Engine
from equipoise.engines.comparisons import compared
from equipoise.engines.dialect import Dialect
from equipoise.engines.profiling import FEW_VALUES
from equipoise.engines.sources import Source, View
from equipoise.errors import InputError
from equipoise.lake.matching.columns.alignment import Alignment
from equipoise.lake.matching.columns.target import Wanted, wanted
from equipoise.lake.matching.mapped_table import failed_column, said_columns
from equipoise.values import MISSING

_TEXTS = re.compile(r"'((?:[^']|'')*)'")

OUTSIDE = "outside the condition"
"""Text in the column of failures for a row that does not satisfy the condition."""


@dataclass(frozen=True)
class Restriction:
    """A condition that rows of a lake must satisfy, as the rows of the base do."""

    condition: Condition  # with the column types of the base
    # For columns that are compared as text, the values that the base has or the condition names, if
    # they are few. Another value could be one of these under another name: its rows are not taken.
    known: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def lacking(self, alignment: Alignment) -> tuple[str, ...]:
        """Columns of the condition that a table does not have."""
        return tuple(n for n in self.condition.columns if n not in alignment.columns)


def restriction(base: Source, engine: Engine) -> Restriction | None:
    """Return what rows must satisfy to be added to a base; None if it has no condition."""
    if base.where is None:
        return None
    condition = engine.settled(base).where or base.where
    everything = replace(base, where=None)
    known, said = {}, [text.replace("''", "'") for text in _TEXTS.findall(condition.text)]
    for name, kind in (condition.types or {}).items():
        if kind == "VARCHAR":
            values = engine.distinct(everything, name, FEW_VALUES + 1)
            if len(values) <= FEW_VALUES:
                known[name] = tuple(sorted({v for v in values if v is not MISSING} | set(said)))
    return Restriction(condition, known)


def wanted_by(counts: Counts, base: Source, engine: Engine) -> Wanted:
    """Derive what tables must provide from all rows of a base, including those outside its condition.

    Tables of a lake have rows of both kinds. A column that is constant inside the condition could not
    be recognised, and a value that occurs only outside would be unknown.
    """
    profile = engine.profile(replace(base, where=None))
    want = wanted(counts, profile)
    if base.where is None:
        return want
    na = () if counts.request is None else counts.request.na
    values = {column.name: column.values or {} for column in profile.columns}
    vocabularies = {
        name: {**known, **{v: 0 for v in values[name] if v not in known and v not in na}}
        for name, known in want.vocabularies.items()
    }
    return replace(want, vocabularies=vocabularies)


def inside(mapped: Source, want: Wanted, alignment: Alignment, limit: Restriction) -> Source:
    """Remove rows that do not satisfy a condition from the cells of a mapped table."""
    if mapped.view is None:
        raise ValueError("only a mapped table has a condition of another table.")
    return replace(mapped, view=InsideView(mapped.view, want, alignment, limit))


@dataclass(frozen=True)
class InsideView:
    """A view of a mapped table that has only rows which satisfy a condition in its cells.

    The others keep their places, but their required values are missing, as for rows that cannot be
    converted; :data:`OUTSIDE` is in the column of failures.
    """

    mapped: View
    want: Wanted
    alignment: Alignment
    limit: Restriction

    def query(self, d: Dialect, carried: Sequence[str] = ()) -> str:
        """Write the query; see :class:`~equipoise.engines.sources.View`."""
        want, condition = self.want, self.limit.condition
        columns = [
            Column(c.name, "VARCHAR" if c.name in want.vocabularies else c.type)
            for c in want.columns
            if c.name in self.alignment.columns
        ]
        failed = d.identifier(failed_column(want))
        is_inside = "inside" + "_" * (1 + max(len(c.name) for c in columns))
        said = [Column(name, "VARCHAR") for name in said_columns(want, self.alignment).values()]
        beside = [Column(name, "VARCHAR") for name in carried]
        held = [*columns, *said, Column(failed_column(want), "VARCHAR"), *beside]
        mapped = self.mapped.query(d, carried) if carried else self.mapped.query(d)
        table, own = compared(d, f"(\n{mapped}\n)", held, condition)
        # A value may fail to convert here although none does in the base; such a row is outside.
        types = {column.name: column.type for column in held}
        true = [f"coalesce({d.attempted(condition, types)}, false)"]
        for name, values in self.limit.known.items():
            listed = d.texts(values) or "''"
            true.append(f"coalesce({d.identifier(name)} IN ({listed}), true)")
        final = [
            f"CASE WHEN {is_inside} THEN {d.identifier(c.name)} END AS {d.identifier(c.name)}"
            if c.name in want.required
            else d.identifier(c.name)
            for c in (*columns, *said)
        ]
        told = (
            f"CASE WHEN {failed} IS NOT NULL THEN {failed} "
            f"WHEN NOT {is_inside} THEN {d.literal(OUTSIDE)} END"
        )
        return (
            f"SELECT {', '.join([*final, f'{told} AS {failed}', *map(d.identifier, carried)])} FROM ("
            f"SELECT {', '.join(own)}, {' AND '.join(true)} AS {is_inside} FROM {table}) AS told"
        )


def refuse_sql(query: str | None) -> None:
    """Refuse a query over the base where rows of other tables are needed."""
    if query is not None:
        raise InputError(
            "`sql` cannot be applied to the tables of a lake; choose rows with `where`, which applies "
            "to them as well, or write the result of the query to a file and plan the repair of "
            "that file."
        )
