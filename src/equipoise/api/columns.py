"""Columns that are not named: list the candidates. Nothing is chosen for the user."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from equipoise.errors import EquipoiseError, InputError

if TYPE_CHECKING:
    from equipoise.engines.base import Engine
    from equipoise.engines.profiling import ColumnProfile
    from equipoise.engines.sources import Source

ROWS = 10_000
"""Number of rows that are inspected to find columns with few values."""
FEW = 20
LISTED = 40


def require_named(
    data: Any,
    sensitive: Any,
    label: Any,
    *,
    engine: Engine | None = None,
    **reading: Any,
) -> None:
    """Refuse a table whose sensitive attributes or label are not named, and list its columns.

    Parameters
    ----------
    data
        Table.
    sensitive, label
        Columns that were named, if any.
    engine
        Engine that inspects it, instead of DuckDB.
    **reading
        Reading options: ``sql``, ``encoding``, ``delimiter``.

    Examples
    --------
    >>> require_named({"sex": ["w", "m"], "hired": ["y", "n"]}, ["sex"], None)
    Traceback (most recent call last):
    equipoise.errors.InputError: `label` is missing: name the label column, as in `label='hired'`; ...
    """
    named = [sensitive] if isinstance(sensitive, str) else list(sensitive or ())
    if named and label:
        return
    from equipoise.datasets.lookup import locate

    source = locate(data, **{k: v for k, v in reading.items() if v is not None})
    if engine is None:
        from equipoise.engines.duckdb import shared_engine

        engine = shared_engine(None, None)
    columns = [column.name for column in engine.schema(source)]
    taken = {*named, label}
    few, rows = _few_values(source, engine)
    few = {name: n for name, n in few.items() if name not in taken}
    raise InputError(
        f"{_what(bool(named), bool(label), few=list(few))}; "
        f"{source.name} has: {_listed(columns)}.{_suggested(few, rows)}"
    )


def _what(named: bool, labelled: bool, *, few: list[str]) -> str:
    attribute = (few or ["sex"])[0]
    outcome = (few or ["hired"])[-1] if named or len(few) > 1 else "hired"
    words = {
        "sensitive_features": ("the sensitive attributes", [attribute]),
        "label": ("the label column", outcome),
    }
    missing = [*([] if named else ["sensitive_features"]), *([] if labelled else ["label"])]
    parameters = " and ".join(f"`{name}`" for name in missing)
    names = " and ".join(words[name][0] for name in missing)
    example = " and ".join(f"`{name}={words[name][1]!r}`" for name in missing)
    verb = "is" if len(missing) == 1 else "are"
    return f"{parameters} {verb} missing: name {names}, as in {example}"


def _few_values(source: Source, engine: Engine) -> tuple[dict[str, int], int]:
    """Number of values of columns with few values among the first rows, and these rows."""
    query = "input" if source.sql is None else f"({source.sql.rstrip().rstrip(';')})"
    try:
        first = engine.profile(replace(source, sql=f"SELECT * FROM {query} LIMIT {ROWS}"))
    except EquipoiseError:
        return {}, 0  # the names of the columns are known all the same
    return {c.name: c.distinct for c in first.columns if _is_few(c, first.rows)}, first.rows


def _is_few(column: ColumnProfile, rows: int) -> bool:
    return column.values is not None and 1 < column.distinct <= FEW and 2 * column.distinct <= rows


def _listed(names: list[str]) -> str:
    more = f" and {len(names) - LISTED:,} more" if len(names) > LISTED else ""
    return ", ".join(names[:LISTED]) + more


def _suggested(few: dict[str, int], rows: int) -> str:
    if not few:
        return ""
    where = f" in the first {ROWS:,} rows" if rows == ROWS else ""
    named = _listed([f"{name} ({n})" for name, n in few.items()])
    return f" Columns with few values{where}: {named}."
