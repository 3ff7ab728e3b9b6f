"""Conditions on the rows of a table: what they may contain, and the types they compare columns as.

A condition is given for one table and applied to others: the tables of a lake, the repaired
table. So it may depend on nothing but the row, and the types that columns are compared as are
decided once, by the table it was given for. DuckDB parses the conditions of all engines.
"""

from __future__ import annotations

import itertools
import json
import re
import threading
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from equipoise.counts.reading import Condition
from equipoise.errors import InputError, did_you_mean
from equipoise.plain import in_words

if TYPE_CHECKING:
    import duckdb

    from equipoise.engines.base import Column

_OTHERS = {
    "SUBQUERY": "a subquery",
    "WINDOW": "a window function",
    "PARAMETER": "a parameter without a value",
    "STAR": "a star, for all columns",
    "POSITIONAL_REFERENCE": "the number of a column",
    "LAMBDA": "a lambda",
}
"""Expressions that a condition may not have: they depend on more than named columns of one row."""

KINDS: Mapping[str, str] = {
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


class Meaningless(Exception):
    """A condition that makes no sense for columns of these types."""


def evaluate(expression: str, *values: str) -> str:
    """Evaluate an expression without columns, as DuckDB does."""
    import duckdb

    try:
        ((found,),) = parser().execute(f"SELECT {expression}", list(values)).fetchall()
    except duckdb.Error as error:
        raise Meaningless(str(error).splitlines()[0].rstrip(".")) from None
    return str(found)


_of_thread = threading.local()


def parser() -> duckdb.DuckDBPyConnection:
    """Return a connection for engines that are not DuckDB; it has no tables, and reads no files."""
    import duckdb

    found: duckdb.DuckDBPyConnection | None = getattr(_of_thread, "connection", None)
    if found is None:  # which only one thread at a time may use
        found = duckdb.connect(
            ":memory:", config={"enable_external_access": "false", "threads": "1"}
        )
        found.execute("SET TimeZone = 'UTC'")
        _of_thread.connection = found
    return found


def parse(text: str, connection: duckdb.DuckDBPyConnection) -> dict[str, Any]:
    """Parse a condition; refuse what is not one on single rows."""
    # On separate lines, since a condition may end in a comment.
    query = f"SELECT * FROM input WHERE (\n{text}\n)"
    ((tree,),) = connection.execute("SELECT json_serialize_sql(?)", [query]).fetchall()
    return _condition(text, json.loads(tree))


def columns_named(
    text: str, columns: Sequence[Column], table: str, connection: duckdb.DuckDBPyConnection
) -> list[Column]:
    """Find the columns that a condition names; refuse what is not a condition on single rows."""
    parts = list(_parts(parse(text, connection)))
    named = [p["column_names"] for p in parts if p["class"] == "COLUMN_REF"]
    names = [n[1] if len(n) > 1 and n[0].casefold() == "input" else n[0] for n in named]
    have = {column.name.casefold() for column in columns}
    # A function without brackets, such as current_date, is parsed as a column.
    called = [p["function_name"] for p in parts if p["class"] == "FUNCTION"]
    called += [n for n in names if n.casefold() not in have]
    known = connection.execute(
        "SELECT DISTINCT function_name, function_type, stability FROM duckdb_functions() "
        "WHERE list_contains(?, function_name) ORDER BY ALL",
        [[name.lower() for name in called]],
    ).fetchall()
    _require_steady(text, known)
    return _resolve(text, names, columns, table)


def _condition(text: str, parsed: dict[str, Any]) -> dict[str, Any]:
    """Return the expression of a parsed condition, if it is one."""
    if parsed["error"]:
        raise not_a_condition(text, str(parsed["error_message"]))
    node = parsed["statements"][0]["node"]
    alone = len(parsed["statements"]) == 1 and node.get("where_clause") is not None
    beside = ("modifiers", "group_expressions", "having", "qualify", "sample")
    if not alone or any(node.get(part) for part in beside):
        raise not_a_condition(text, "it contains more than a condition")
    where: dict[str, Any] = node["where_clause"]
    for part in _parts(where):
        if part["class"] in _OTHERS:
            raise not_a_condition(text, f"it contains {_OTHERS[part['class']]}")
    return where


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


def typings(columns: Sequence[Column], natural: Mapping[str, str]) -> list[dict[str, str]]:
    """List the types to try: the natural ones; one column as text; all as text.

    A column of numbers may be compared as text, as in ``phone LIKE '55%'``.
    """
    usual = {c.name: natural.get(c.name, c.type) for c in columns}
    typed = [name for name, kind in natural.items() if kind != "VARCHAR"]
    fewer = [usual | dict.fromkeys(some, "VARCHAR") for some in itertools.combinations(typed, 1)]
    every = [usual | dict.fromkeys(typed, "VARCHAR")] if len(typed) > 1 else []
    return [usual, *fewer, *every]


# ------------------------------------------------------------------------------ errors


def not_a_condition(text: str, why: str) -> InputError:
    """Make the error for a text that is not a condition, with an example of one."""
    first = (text.split() or [""])[0].casefold()
    more = " Give a whole query as `sql`." if first in ("select", "with", "from") else ""
    return InputError(
        f"`where={text!r}` is not a condition on rows: {why.rstrip('. ')}. Write one over the "
        f"columns, without WHERE and without a semicolon, as in `where='age >= 18 AND hours < 40'`.{more}"
    )


def not_evaluated(condition: Condition, table: str, why: str) -> InputError:
    """Make the error for a condition that cannot be evaluated on a table."""
    reason = why.partition("Error: ")[2] or why
    return InputError(
        f"the condition {condition.one_line} cannot be evaluated on {table}: {reason}; "
        f"{how_compared(condition)}. Compare a column with values like its own, or convert it, as "
        "in TRY_CAST(code AS INTEGER) > 12."
    )


def how_compared(condition: Condition) -> str:
    """Name the types that a condition compares columns as."""
    told = condition.compared
    return f"it compares {in_words(told)}" if told else "correct it"
