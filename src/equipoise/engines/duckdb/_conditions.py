"""Conditions on the rows of a table, evaluated by DuckDB; see :mod:`equipoise.engines.conditions`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import duckdb

from equipoise.counts import Condition
from equipoise.engines.base import Column
from equipoise.engines.column_types import is_text
from equipoise.engines.comparisons import WHOLE, compared, trimmed
from equipoise.engines.conditions import (
    KINDS,
    columns_named,
    how_compared,
    not_a_condition,
    not_evaluated,
    typings,
)
from equipoise.engines.duckdb._dialect import DIALECT
from equipoise.engines.duckdb._errors import MEANINGLESS, explained, reason
from equipoise.engines.duckdb._session import Session
from equipoise.engines.sources import Source
from equipoise.errors import InputError
from equipoise.values import MISSING_MARKS


def restrict(session: Session, source: Source, table: str) -> str:
    """Return the SQL text of the rows of a table that satisfy the source's condition."""
    where, columns = source.where, session.columns(replace(source, where=None), table)
    if where is None or where.types is None:
        where = settle(session, source, table, columns)
    else:  # a plan's file may have been edited, and names columns of another table
        columns_named(where.text, columns, source.name, session.connection)
    return _restricted(table, columns, where)


def settle(session: Session, source: Source, table: str, columns: tuple[Column, ...]) -> Condition:
    """Decide the types that a condition compares columns as; refuse one that no row satisfies."""
    text = "" if source.where is None else source.where.text.strip()
    if not text:
        raise not_a_condition(text, "it is empty")
    named = columns_named(text, columns, source.name, session.connection)
    natural = _natural_types(session, source, table, [c for c in named if is_text(c.type)])
    first: duckdb.Error | None = None
    possible = typings(named, natural)
    for types in possible:
        condition = Condition(text, types)
        try:
            kept = _count_satisfying(session, source, table, columns, condition)
        except duckdb.Error as error:
            if not isinstance(error, MEANINGLESS) or "CSV Error" in str(error):
                raise explained(error, source) from None
            first = first or error
            continue
        if not kept:
            raise InputError(
                f"no row of {source.name} satisfies the condition {condition.one_line}; "
                f"{how_compared(condition)}."
            )
        return condition
    usual = Condition(text, possible[0])
    raise not_evaluated(usual, source.name, "" if first is None else reason(first))


# ------------------------------------------------------------------------------- types


def _natural_types(
    session: Session, source: Source, table: str, columns: Sequence[Column]
) -> dict[str, str]:
    """Find the narrowest type of each column of texts that all its values have."""
    if not columns:
        return {}
    absent = ", ".join(DIALECT.literal(text) for text in ("", *sorted(MISSING_MARKS)))
    answers = []
    for kind, pattern in KINDS.items():
        reads = f"regexp_full_match(t, {DIALECT.literal(pattern)})"
        if kind not in ("BOOLEAN", *WHOLE):
            reads += f" AND TRY_CAST(t AS {kind}) IS NOT NULL"
        present = f"FILTER (WHERE lower(t) NOT IN ({absent}))"
        answers.append(f"coalesce(bool_and({reads}) {present}, false)")
    asked = []
    for i, column in enumerate(columns):
        said = ", ".join(f"{answer} AS a{i}_{j}" for j, answer in enumerate(answers))
        # Each value once: most columns have few values, and matching a pattern is slow.
        asked.append(
            f"(SELECT {said} FROM (SELECT DISTINCT {trimmed(DIALECT, column)} AS t FROM {table}))"
        )
    query = f"SELECT * FROM {' CROSS JOIN '.join(asked)}"
    (told,) = session.lines(source, query, "reading values")
    answered = iter(told)
    return {
        column.name: next((k for k, fits in own if fits), "VARCHAR")
        for column in columns
        for own in [[(kind, next(answered)) for kind in KINDS]]
    }


def _count_satisfying(
    session: Session,
    source: Source,
    table: str,
    columns: tuple[Column, ...],
    condition: Condition,
) -> int:
    inner, _ = compared(DIALECT, table, columns, condition)
    said = f"SELECT (\n{condition.text}\n) AS t FROM {inner}"
    (kind,) = session.relation(source, said).types
    if str(kind) not in ("BOOLEAN", '"NULL"'):
        raise not_a_condition(condition.text, f"its type is {kind}, not BOOLEAN")
    query = f"SELECT count(*) AS n FROM {_restricted(table, columns, condition)}"
    counted = session.watch(
        lambda: session.relation(source, query).to_arrow_table(), f"reading {source.name}"
    )
    return int(counted["n"][0].as_py())


def _restricted(table: str, columns: Sequence[Column], condition: Condition) -> str:
    """Select the rows that satisfy a condition, with the columns and types of the table."""
    inner, own = compared(DIALECT, table, columns, condition)
    return f"(SELECT {', '.join(own)} FROM {inner} WHERE (\n{condition.text}\n))"
