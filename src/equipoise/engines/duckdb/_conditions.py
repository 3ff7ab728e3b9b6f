"""Conditions on the rows of a table: what they may contain, and the types they compare columns as.

A condition is given for one table and applied to others: the tables of a lake, the repaired
table. So it may depend on nothing but the row, and the types that columns are compared as are
decided once, by the table it was given for.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import duckdb

from equipoise.counts import Condition
from equipoise.engines.base import Column
from equipoise.engines.column_types import is_text
from equipoise.engines.duckdb._dialect import DIALECT
from equipoise.engines.duckdb._errors import (
    MEANINGLESS,
    explained,
    how_compared,
    not_a_condition,
    not_evaluated,
    reason,
)
from equipoise.engines.duckdb._session import Session
from equipoise.engines.sources import Source
from equipoise.engines.sql import WHOLE, compared, trimmed
from equipoise.errors import InputError, did_you_mean
from equipoise.values import MISSING_MARKS

_OTHERS = {
    "SUBQUERY": "a subquery",
    "WINDOW": "a window function",
    "PARAMETER": "a parameter without a value",
    "STAR": "a star, for all columns",
    "POSITIONAL_REFERENCE": "the number of a column",
    "LAMBDA": "a lambda",
}
"""Expressions that a condition may not have: they depend on more than named columns of one row."""

_KINDS: Mapping[str, str] = {
    "BIGINT": r"[+-]?(0|[1-9][0-9]{0,17})",
    "HUGEINT": r"[+-]?(0|[1-9][0-9]{0,37})",
    "DOUBLE": r"[+-]?((0|[1-9][0-9]*)([.][0-9]*)?|[.][0-9]+)([eE][+-]?[0-9]{1,3})?",
    "DATE": r"[0-9]{4}-[0-9]{2}-[0-9]{2}",
    "TIMESTAMP": r"[0-9]{4}-[0-9]{2}-[0-9]{2}[ T][0-9]{2}:[0-9]{2}(:[0-9]{2}([.][0-9]{1,6})?)?",
    "BOOLEAN": r"(?i:true|false)",
}
"""Types of texts, the narrowest first. Texts with a leading zero are codes, not numbers."""

_STEADY_MACROS = re.compile(
    r"nullif|split_part|if|date_add|days_in_month|fdiv|fmod|(list|array)_\w+"
)
"""Macros of DuckDB, for which it does not report whether they are deterministic."""


def restrict(session: Session, source: Source, table: str) -> str:
    """Return the SQL text of the rows of a table that satisfy the source's condition."""
    where, columns = source.where, session.columns(replace(source, where=None), table)
    if where is None or where.types is None:
        where = settle(session, source, table, columns)
    else:  # a plan's file may have been edited, and names columns of another table
        _columns_named(session, where.text, columns, source)
    return _restricted(table, columns, where)


def settle(session: Session, source: Source, table: str, columns: tuple[Column, ...]) -> Condition:
    """Decide the types that a condition compares columns as; refuse one that no row satisfies."""
    text = "" if source.where is None else source.where.text.strip()
    if not text:
        raise not_a_condition(text, "it is empty")
    named = _columns_named(session, text, columns, source)
    natural = _natural_types(session, source, table, [c for c in named if is_text(c.type)])
    first: duckdb.Error | None = None
    typings = _typings(named, natural)
    for types in typings:
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
    usual = Condition(text, typings[0])
    raise not_evaluated(usual, source.name, "" if first is None else reason(first))


# ----------------------------------------------------------------------------- parsing


def _columns_named(
    session: Session, text: str, columns: tuple[Column, ...], source: Source
) -> list[Column]:
    """Find the columns that a condition names; refuse what is not a condition on single rows."""
    # On separate lines, since a condition may end in a comment.
    query = f"SELECT * FROM input WHERE (\n{text}\n)"
    ((tree,),) = session.connection.execute("SELECT json_serialize_sql(?)", [query]).fetchall()
    parts = _expressions(text, json.loads(tree))
    named = [p["column_names"] for p in parts if p["class"] == "COLUMN_REF"]
    names = [n[1] if len(n) > 1 and n[0].casefold() == "input" else n[0] for n in named]
    have = {column.name.casefold() for column in columns}
    # A function without brackets, such as current_date, is parsed as a column.
    called = [p["function_name"] for p in parts if p["class"] == "FUNCTION"]
    called += [n for n in names if n.casefold() not in have]
    known = session.connection.execute(
        "SELECT DISTINCT function_name, function_type, stability FROM duckdb_functions() "
        "WHERE list_contains(?, function_name) ORDER BY ALL",
        [[name.lower() for name in called]],
    ).fetchall()
    _require_steady(text, known)
    return _resolve(text, names, columns, source.name)


def _expressions(text: str, parsed: dict[str, Any]) -> list[dict[str, Any]]:
    """List the expressions of a parsed condition, if it is one."""
    if parsed["error"]:
        raise not_a_condition(text, str(parsed["error_message"]))
    node = parsed["statements"][0]["node"]
    alone = len(parsed["statements"]) == 1 and node.get("where_clause") is not None
    beside = ("modifiers", "group_expressions", "having", "qualify", "sample")
    if not alone or any(node.get(part) for part in beside):
        raise not_a_condition(text, "it contains more than a condition")
    parts = list(_parts(node["where_clause"]))
    for part in parts:
        if part["class"] in _OTHERS:
            raise not_a_condition(text, f"it contains {_OTHERS[part['class']]}")
    return parts


def _parts(node: Any) -> Iterator[dict[str, Any]]:
    if isinstance(node, dict):
        if "class" in node:
            yield node
        for child in node.values():
            yield from _parts(child)
    elif isinstance(node, list):
        for child in node:
            yield from _parts(child)


def _require_steady(text: str, named: Sequence[tuple[str, str, str]]) -> None:
    """Refuse aggregates, and functions that may return a different value each time."""
    for name, kind, stability in named:
        if kind == "aggregate":
            raise not_a_condition(
                text, f"{name}() aggregates many rows, but a condition applies to one row"
            )
        if kind == "macro" and _STEADY_MACROS.fullmatch(name):
            continue
        if stability != "CONSISTENT":
            raise not_a_condition(text, f"the value of {name} may change; write the value itself")


def _resolve(
    text: str, names: Sequence[str], columns: Sequence[Column], table: str
) -> list[Column]:
    """Find columns regardless of case; if one does not exist, name those that do."""
    known = {column.name.casefold(): column for column in columns}
    for name in names:
        if name.casefold() not in known:
            have = [column.name for column in columns]
            near = did_you_mean(name, have)
            raise InputError(
                f"{table} has no column {name!r}, which the condition {text!r} names; it has: "
                f"{', '.join(have)}.{near} Text is written in single quotes, as in 'CA'."
            )
        _require_told_apart(text, name, known[name.casefold()].name, columns, table)
    return list(dict.fromkeys(known[name.casefold()] for name in names))


def _require_told_apart(
    text: str, name: str, found: str, columns: Sequence[Column], table: str
) -> None:
    """Refuse a name that may mean one of two columns which differ only in case."""
    numbered = re.compile(rf"{re.escape(name)}_[0-9]+")
    other = next((c.name for c in columns if numbered.fullmatch(c.name)), None)
    if name != found and other is not None:
        raise InputError(
            f"the condition {text!r} names {name!r}, which may be {found!r} or {other!r} of {table}: "
            "columns that differ only in case are numbered here; name one of these two."
        )


# ------------------------------------------------------------------------------- types


def _natural_types(
    session: Session, source: Source, table: str, columns: Sequence[Column]
) -> dict[str, str]:
    """Find the narrowest type of each column of texts that all its values have."""
    if not columns:
        return {}
    absent = ", ".join(DIALECT.literal(text) for text in ("", *sorted(MISSING_MARKS)))
    answers = []
    for kind, pattern in _KINDS.items():
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
        for own in [[(kind, next(answered)) for kind in _KINDS]]
    }


def _typings(columns: Sequence[Column], natural: Mapping[str, str]) -> list[dict[str, str]]:
    """List the types to try: the natural ones; one column as text; all as text.

    A column of numbers may be compared as text, as in ``phone LIKE '55%'``.
    """
    usual = {c.name: natural.get(c.name, c.type) for c in columns}
    typed = [name for name, kind in natural.items() if kind != "VARCHAR"]
    fewer = [usual | dict.fromkeys(some, "VARCHAR") for some in itertools.combinations(typed, 1)]
    every = [usual | dict.fromkeys(typed, "VARCHAR")] if len(typed) > 1 else []
    return [usual, *fewer, *every]


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
