"""Conditions on the rows of a table, settled and evaluated by DuckDB."""

from __future__ import annotations

from dataclasses import replace

import duckdb

from equipoise.counts import Condition
from equipoise.engines import conditions, sql
from equipoise.engines.base import Column
from equipoise.engines.duckdb._errors import MEANINGLESS, explained, reason
from equipoise.engines.duckdb._session import Session
from equipoise.engines.sources import Source
from equipoise.errors import InputError


def restrict(session: Session, source: Source, table: str) -> str:
    """Give the SQL text of the rows of a table that satisfy the source's condition."""
    where, columns = source.where, session.columns(replace(source, where=None), table)
    if where is None or where.types is None:
        where = settle(session, source, table, columns)
    else:  # a plan's file may have been edited, and names columns of another table
        _columns_named(session, where.text, columns, source)
    return conditions.restricted(table, columns, where)


def settle(session: Session, source: Source, table: str, columns: tuple[Column, ...]) -> Condition:
    """Decide as what a condition compares columns; refuse one that no row satisfies."""
    text = "" if source.where is None else source.where.text.strip()
    if not text:
        raise conditions.not_a_condition(text, "it is empty")
    named = _columns_named(session, text, columns, source)
    texts = [column for column in named if sql.is_text(column.type)]
    natural = {}
    if texts:
        (answers,) = session.lines(source, conditions.tell_types(table, texts), "reading values")
        natural = conditions.natural_types(texts, answers)
    first: duckdb.Error | None = None
    for types in conditions.typings(named, natural):
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
                f"{conditions.how_compared(condition)}."
            )
        return condition
    usual = Condition(text, conditions.typings(named, natural)[0])
    raise conditions.not_evaluated(usual, source.name, "" if first is None else reason(first))


def _columns_named(
    session: Session, text: str, columns: tuple[Column, ...], source: Source
) -> list[Column]:
    """Find the columns a condition names, if it is one."""
    tree = session.connection.execute(
        "SELECT json_serialize_sql(?)", [conditions.to_parse(text)]
    ).fetchall()
    parsed = conditions.parse(text, tree[0][0])
    have = {column.name.casefold() for column in columns}
    called = [*parsed.functions, *(n for n in parsed.columns if n.casefold() not in have)]
    known = session.connection.execute(
        "SELECT DISTINCT function_name, function_type, stability FROM duckdb_functions() "
        "WHERE list_contains(?, function_name) ORDER BY ALL",
        [[name.lower() for name in called]],
    ).fetchall()
    conditions.require_steady(text, known)
    return conditions.resolve(text, parsed.columns, columns, source.name)


def _count_satisfying(
    session: Session,
    source: Source,
    table: str,
    columns: tuple[Column, ...],
    condition: Condition,
) -> int:
    said = conditions.truth(table, columns, condition)
    (kind,) = session.relation(source, said).types
    if str(kind) not in ("BOOLEAN", '"NULL"'):
        raise conditions.not_a_condition(
            condition.text, f"it gives {kind}, not whether a row is meant"
        )
    query = f"SELECT count(*) AS n FROM {conditions.restricted(table, columns, condition)}"
    counted = session.watch(
        lambda: session.relation(source, query).to_arrow_table(), f"reading {source.name}"
    )
    return int(counted["n"][0].as_py())
