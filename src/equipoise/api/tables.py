"""The table and the columns that a user names, and the engine that reads them."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from equipoise.credentials import without_password
from equipoise.errors import EquipoiseError, InputError
from equipoise.options import take
from equipoise.options.count import CountRequest, ReadOptions, RunOptions
from equipoise.progress import Reporter, silent

if TYPE_CHECKING:
    from collections.abc import Mapping

    from equipoise.engines.base import Engine
    from equipoise.engines.profiling import ColumnProfile
    from equipoise.engines.sources import Source

# Columns of a table are suggested by its first rows, so that a large one is answered at once.
_ROWS = 10_000
# Sensitive attributes and labels usually have few values; columns with more are not suggested.
_FEW = 20
_LISTED = 40


def asked_table(
    data: Any,
    sensitive: Any,
    label: Any,
    options: Mapping[str, Any],
    progress: Reporter = silent,
    *,
    whole: bool = False,
) -> tuple[Source, CountRequest, Engine]:
    """Find the table that a user names; return it with how it is counted, and an engine for it.

    Only the columns that are counted are taken from a frame, unless the ``whole`` table is needed.
    """
    from equipoise.datasets.lookup import locate

    reading, left = take(ReadOptions, options)
    engine, left = take_engine(left, progress)
    require_named(data, sensitive, label, engine=engine, **vars(reading))
    columns = {"sensitive_features": column_names(sensitive), "label": label}
    request, _ = take(CountRequest, {**left, **columns})
    used = [*request.columns, *filter(None, (request.count, request.weight))]
    source = locate(data, **vars(reading), columns=() if whole else used)
    return engine.settled(source), request, engine


def take_engine(
    options: Mapping[str, Any], progress: Reporter = silent
) -> tuple[Engine, dict[str, Any]]:
    """Return the engine that some options ask for, DuckDB by default, with the options left over."""
    running, left = take(RunOptions, options)
    if running.engine is not None:
        return running.engine, left
    from equipoise.engines.routing import shared_engine

    return shared_engine(running.threads, running.memory, progress), left


def name_of(data: Any) -> str | None:
    """Return the name of a table that a user gives by name, without the password of an address.

    >>> name_of("postgresql://ann:secret@host/db?table=people")
    'postgresql://ann@host/db?table=people'
    """
    return without_password(os.fspath(data)) if isinstance(data, (str, os.PathLike)) else None


def column_names(sensitive_features: Any) -> tuple[str, ...]:
    """Return the names of sensitive columns as a tuple.

    >>> column_names("sex"), column_names(["sex", "race"])
    (('sex',), ('sex', 'race'))
    """
    if isinstance(sensitive_features, str):
        return (sensitive_features,)
    if not all(isinstance(s, str) for s in sensitive_features):
        raise InputError(
            "`sensitive_features` are names of columns, as in ['sex', 'race']; give columns "
            "themselves together with `y`."
        )
    return tuple(sensitive_features)


def columns_beside(
    data: Any, y: Any, features: Any, label: str | None
) -> tuple[dict[str, Any], tuple[str, ...], str]:
    """Make a table of labels and sensitive columns; return it with the names of its columns."""
    from equipoise.frames import feature_columns

    if data is not None:
        raise InputError("give either a table or `y`, not both.")
    if features is None:
        raise InputError(
            "`sensitive_features` is missing: with `y`, give the sensitive columns themselves, as in "
            "`sensitive_features={'sex': [...]}`."
        )
    columns = feature_columns(features)
    name = label or str(getattr(y, "name", None) or "label")
    lengths = {len(c) for c in (*columns.values(), y)}
    if len(lengths) > 1:
        raise InputError(
            f"`y` and `sensitive_features` must have the same length, not {sorted(lengths)}."
        )
    if name in columns:
        raise InputError(
            f"y and a sensitive feature are both called {name!r}; rename y with `label`."
        )
    return {**columns, name: y}, tuple(columns), name


def require_named(
    data: Any, sensitive: Any, label: Any, *, engine: Engine | None = None, **reading: Any
) -> None:
    """Refuse a table whose sensitive attributes or label are not named, and list its columns.

    >>> require_named({"sex": ["w", "m"], "hired": ["y", "n"]}, ["sex"], None)
    Traceback (most recent call last):
    equipoise.errors.InputError: `label` is missing: name the label column, as in `label='hired'`; ...
    """
    named = [sensitive] if isinstance(sensitive, str) else list(sensitive or ())
    if named and label:
        return
    from equipoise.datasets.lookup import locate

    source = locate(data, **reading)
    engine = engine or take_engine({})[0]
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
        first = engine.profile(replace(source, sql=f"SELECT * FROM {query} LIMIT {_ROWS}"))
    except EquipoiseError:
        return {}, 0  # the names of the columns are known all the same
    return {c.name: c.distinct for c in first.columns if _is_few(c, first.rows)}, first.rows


def _is_few(column: ColumnProfile, rows: int) -> bool:
    return column.values is not None and 1 < column.distinct <= _FEW and 2 * column.distinct <= rows


def _listed(names: list[str]) -> str:
    more = f" and {len(names) - _LISTED:,} more" if len(names) > _LISTED else ""
    return ", ".join(names[:_LISTED]) + more


def _suggested(few: dict[str, int], rows: int) -> str:
    if not few:
        return ""
    where = f" in the first {_ROWS:,} rows" if rows == _ROWS else ""
    named = _listed([f"{name} ({n})" for name, n in few.items()])
    return f" Columns with few values{where}: {named}."
