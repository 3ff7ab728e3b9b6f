"""Conditions on rows: what they may say, as what they compare columns, and their SQL text.

A condition is given for one table and applied to others: the tables of a lake, the repaired
table. So it may depend on nothing but the row, and the type as which it compares a column is
decided once, by the table it was given for.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from equipoise.counts.reading import Condition, is_plain_type
from equipoise.engines.base import Column
from equipoise.engines.sql import identifier, is_float, is_text, literal, value_text
from equipoise.errors import InputError, did_you_mean
from equipoise.plain import in_words
from equipoise.values import MISSING_MARKS

_EXAMPLE = "age >= 18 AND hours < 40"
_OTHERS = {
    "SUBQUERY": "a query inside it",
    "WINDOW": "a window over other rows",
    "PARAMETER": "a parameter without a value",
    "STAR": "a star, for all columns",
    "POSITIONAL_REFERENCE": "the number of a column",
    "LAMBDA": "a lambda",
}
"""Expressions a condition may not hold: they do not depend on the named columns of one row."""

_KINDS: Mapping[str, str] = {
    "BIGINT": r"[+-]?(0|[1-9][0-9]{0,17})",
    "HUGEINT": r"[+-]?(0|[1-9][0-9]{0,37})",
    "DOUBLE": r"[+-]?((0|[1-9][0-9]*)([.][0-9]*)?|[.][0-9]+)([eE][+-]?[0-9]{1,3})?",
    "DATE": r"[0-9]{4}-[0-9]{2}-[0-9]{2}",
    "TIMESTAMP": r"[0-9]{4}-[0-9]{2}-[0-9]{2}[ T][0-9]{2}:[0-9]{2}(:[0-9]{2}([.][0-9]{1,6})?)?",
    "BOOLEAN": r"(?i:true|false)",
}
"""The types texts may have, the narrowest first. A zero before other digits is part of a code."""

_WHOLE = ("BIGINT", "HUGEINT")
"""Long numbers are names of something: as floating-point numbers two of them would be the same."""

_STEADY_MACROS = re.compile(
    r"nullif|split_part|if|date_add|days_in_month|fdiv|fmod|(list|array)_\w+"
)
"""Functions that DuckDB writes by means of others, and of which it does not say how steady they are."""


@dataclass(frozen=True)
class Parsed:
    """What a condition names."""

    columns: tuple[str, ...]
    functions: tuple[str, ...]


def to_parse(text: str) -> str:
    """Give the query a condition stands in when it is parsed: on lines of its own."""
    return f"SELECT * FROM input WHERE (\n{text}\n)"


def parse(text: str, tree: str) -> Parsed:
    """Read what the parser made of a condition, or say why it is none.

    Parameters
    ----------
    text
        The condition.
    tree
        What ``json_serialize_sql`` gives for :func:`to_parse`.
    """
    read = json.loads(tree)
    if read["error"]:
        raise not_a_condition(text, str(read["error_message"]))
    node = read["statements"][0]["node"]
    alone = len(read["statements"]) == 1 and node.get("where_clause") is not None
    beside = ("modifiers", "group_expressions", "having", "qualify", "sample")
    if not alone or any(node.get(part) for part in beside):
        raise not_a_condition(text, "it says more than which rows")
    parts = list(_parts(node["where_clause"]))
    for part in parts:
        if part["class"] in _OTHERS:
            raise not_a_condition(text, f"it holds {_OTHERS[part['class']]}")
    named = [p["column_names"] for p in parts if p["class"] == "COLUMN_REF"]
    called = [p["function_name"] for p in parts if p["class"] == "FUNCTION"]
    columns = [n[1] if len(n) > 1 and n[0].casefold() == "input" else n[0] for n in named]
    return Parsed(_once(columns), _once(called))


def _once(names: Sequence[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(names))


def _parts(node: Any) -> Iterator[dict[str, Any]]:
    """Give every expression of a tree."""
    if isinstance(node, dict):
        if "class" in node:
            yield node
        for child in node.values():
            yield from _parts(child)
    elif isinstance(node, list):
        for child in node:
            yield from _parts(child)


def not_a_condition(text: str, why: str) -> InputError:
    """Say that something is no condition, and how one is written."""
    first = (text.split() or [""])[0].casefold()
    more = " Give a whole query as `sql`." if first in ("select", "with", "from") else ""
    return InputError(
        f"`where={text!r}` is not a condition on rows: {why.rstrip('. ')}. Write one over the "
        f"columns, without WHERE and without a semicolon, as in `where={_EXAMPLE!r}`.{more}"
    )


def not_evaluated(condition: Condition, table: str, why: str) -> InputError:
    """Say that a condition cannot be evaluated on a table, and what can be done."""
    reason = why.partition("Error: ")[2] or why
    return InputError(
        f"the condition {condition.one_line} cannot be evaluated on {table}: {reason}; "
        f"{how_compared(condition)}. Compare a column with values like its own, or convert it, as "
        "in TRY_CAST(code AS INTEGER) > 12."
    )


def require_steady(text: str, named: Sequence[tuple[str, str, str]]) -> None:
    """Refuse functions that say something else each time, or that are of many rows.

    ``named`` are the functions of a condition with their kind and how steady they are.
    """
    for name, kind, stability in named:
        if kind == "aggregate":
            raise not_a_condition(text, f"{name}() is of many rows, a condition of one")
        if kind == "macro" and _STEADY_MACROS.fullmatch(name):
            continue
        if stability != "CONSISTENT":
            raise not_a_condition(
                text, f"{name} says something else each time; write the value itself"
            )


def resolve(text: str, names: Sequence[str], columns: Sequence[Column], table: str) -> list[Column]:
    """Find the columns a condition names, or say which there are."""
    known = {column.name.casefold(): column for column in columns}
    for name in names:
        if name.casefold() not in known:
            have = [column.name for column in columns]
            near = did_you_mean(name, have)
            raise InputError(
                f"{table} has no column {name!r}, which the condition {text!r} names; it has: "
                f"{', '.join(have)}.{near} A text stands in single quotes, as in 'CA'."
            )
        _require_told_apart(text, name, known[name.casefold()].name, columns, table)
    return list(dict.fromkeys(known[name.casefold()] for name in names))


def _require_told_apart(
    text: str, name: str, found: str, columns: Sequence[Column], table: str
) -> None:
    """Refuse a name that may be meant for a column which was numbered, as its case did not tell."""
    numbered = re.compile(rf"{re.escape(name)}_[0-9]+")
    other = next((c.name for c in columns if numbered.fullmatch(c.name)), None)
    if name != found and other is not None:
        raise InputError(
            f"the condition {text!r} names {name!r}, which may be {found!r} or {other!r} of {table}: "
            "columns that differ only in case are numbered here; name one of these two."
        )


def tell_types(table: str, columns: Sequence[Column]) -> str:
    """Ask which types all texts of some columns have: a truth for each column and type."""
    absent = ", ".join(literal(text) for text in ("", *sorted(MISSING_MARKS)))
    present = f"lower(t) NOT IN ({absent})"
    asked = []
    for i, column in enumerate(columns):
        answers = []
        for kind, pattern in _KINDS.items():
            reads = f"regexp_full_match(t, {literal(pattern)})"
            if kind not in ("BOOLEAN", *_WHOLE):
                reads += f" AND TRY_CAST(t AS {kind}) IS NOT NULL"
            answers.append(f"coalesce(bool_and({reads}) FILTER (WHERE {present}), false)")
        said = ", ".join(f"{a} AS a{i}_{j}" for j, a in enumerate(answers))
        # Each value once: most columns have few values, and matching a pattern is slow.
        asked.append(f"(SELECT {said} FROM (SELECT DISTINCT {_trimmed(column)} AS t FROM {table}))")
    return f"SELECT * FROM {' CROSS JOIN '.join(asked)}"


def natural_types(columns: Sequence[Column], answers: Sequence[bool]) -> dict[str, str]:
    """Give each column of texts the narrowest type that all its values have."""
    kinds = list(_KINDS)
    told = [answers[i : i + len(kinds)] for i in range(0, len(answers), len(kinds))]
    return {
        column.name: next((k for k, holds in zip(kinds, own, strict=True) if holds), "VARCHAR")
        for column, own in zip(columns, told, strict=True)
    }


def typings(columns: Sequence[Column], natural: Mapping[str, str]) -> list[dict[str, str]]:
    """Give as what columns may be compared: as they are; one as text; all as text.

    A column of numbers may be asked about as text, as in ``phone LIKE '55%'``.
    """
    usual = {c.name: natural.get(c.name, c.type) for c in columns}
    typed = [name for name, kind in natural.items() if kind != "VARCHAR"]
    fewer = [usual | dict.fromkeys(some, "VARCHAR") for some in itertools.combinations(typed, 1)]
    every = [usual | dict.fromkeys(typed, "VARCHAR")] if len(typed) > 1 else []
    return [usual, *fewer, *every]


def restricted(table: str, columns: Sequence[Column], condition: Condition) -> str:
    """Give the rows of a table that satisfy a condition, with the table's own columns and types."""
    inner, own = compared(table, columns, condition)
    return f"(SELECT {', '.join(own)} FROM {inner} WHERE (\n{condition.text}\n))"


def truth(table: str, columns: Sequence[Column], condition: Condition) -> str:
    """Ask what a condition gives for each row, to learn of which type that is."""
    return f"SELECT (\n{condition.text}\n) AS t FROM {compared(table, columns, condition)[0]}"


def compared(
    table: str, columns: Sequence[Column], condition: Condition
) -> tuple[str, tuple[str, ...]]:
    """Give a table with the columns of a condition as it compares them, and how to get its own back.

    The second are expressions, one a column, to select from the first.
    """
    mark = "_" * (1 + max(len(c.name) for c in columns))
    types = {name.casefold(): kind for name, kind in (condition.types or {}).items()}
    inner, own = [], []
    for i, column in enumerate(columns):
        name = identifier(column.name)
        kind = types.get(column.name.casefold(), column.type)
        is_same = kind == column.type or not is_plain_type(kind)
        if is_same and not (is_float(kind) and column.name.casefold() in types):
            inner.append(name)
            own.append(name)
        else:
            inner += [f"{as_type(column, kind)} AS {name}", f"{name} AS kept{i}{mark}"]
            own.append(f"kept{i}{mark} AS {name}")
    return f"(SELECT {', '.join(inner)} FROM {table}) AS input", tuple(own)


def how_compared(condition: Condition) -> str:
    """Say as what the columns of a condition are compared."""
    told = condition.compared
    return f"it compares {in_words(told)}" if told else "correct it"


def as_type(column: Column, kind: str) -> str:
    """Read a column as another type; a value that does not read so is missing."""
    if kind == "VARCHAR":
        return value_text(column.name, column.type)
    if is_float(kind):  # not-a-number is missing, and would be greater than any number
        number = identifier(column.name)
        read = number if kind == column.type else f"TRY_CAST({_trimmed(column)} AS {kind})"
        return f"nullif({read}, CAST('nan' AS {kind}))"
    text = _trimmed(column)
    if kind in _WHOLE:  # a cast would round what is not whole
        return f"TRY_CAST(regexp_extract({text}, '^([+-]?[0-9]+)([.]0*)?$', 1) AS {kind})"
    return f"TRY_CAST({text} AS {kind})"


def _trimmed(column: Column) -> str:
    plain = is_text(column.type) and not column.type.upper().startswith("ENUM")
    text = identifier(column.name) if plain else value_text(column.name, column.type)
    return f"trim({text})"
