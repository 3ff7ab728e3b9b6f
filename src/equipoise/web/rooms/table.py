"""The room of the table: its columns, and which of them are sensitive attributes and label."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from equipoise.web.rooms.room import Ask, Room, plain_twin, table_query
from equipoise.web.twins import Twin

if TYPE_CHECKING:
    from equipoise.engines.profiling import ColumnProfile
    from equipoise.engines.sources import Source

_WHOLE = 250_000
"""Tables with more cells than this many rows of ten columns are described by their first rows."""
_FIRST = 50_000
_BARS = 20
_SHOWN = 60
"""Maximum number of values of a column that are listed."""
_FEW = 60
"""Maximum number of values of a column that is suggested."""

_SENSITIVE = (
    *("sex", "gender", "race", "ethnic", "religion", "nationality", "disab", "orientation"),
    *("marital", "age", "caste", "skin", "birth", "native", "pregnan", "veteran", "minority"),
)
_LABELS = (
    *("label", "target", "outcome", "class", "income", "hired", "approved", "granted", "admit"),
    *("risk", "default", "recid", "decision", "result", "selected", "credit", "y", "status"),
)


def compute(ask: Ask) -> dict[str, Any]:
    """Describe the columns of a table, and suggest which of them to name."""
    from equipoise import datasets
    from equipoise.datasets.lookup import locate

    reading = {
        k: ask.table[k] for k in ("encoding", "delimiter", "header", "lenient") if k in ask.table
    }
    source = locate(ask.path, **reading)
    ask.progress("reading the table", 0.1)
    columns = [(c.name, c.type) for c in ask.engine.schema(source)]
    rows = _number_of_rows(ask, source)
    whole = rows * len(columns) <= 10 * _WHOLE
    part = source if whole else replace(source, sql=f"SELECT * FROM input LIMIT {_FIRST}")
    ask.progress("describing the columns", 0.4)
    profile = ask.engine.profile(part)
    card = datasets.card(ask.path) if ask.path in datasets.names() else None
    missing = set(ask.table.get("na", ()))
    described = [_column(c, profile.rows, missing) for c in profile.columns]
    for each, (_, kind) in zip(described, columns, strict=True):
        texts = kind.lower() in ("varchar", "text", "string")
        each["type"] = "number, as text" if texts and each["numeric"] else kind.lower()
    sensitive, label = _suggested(described, card)
    return {
        "data": ask.data,
        "rows": rows,
        "counted": _counted_rows(profile.columns, ask.table.get("count")) if whole else None,
        "described": profile.rows,
        "whole": whole,
        "columns": described,
        "suggested": {"sensitive": sensitive, "label": label},
        "card": None if card is None else _card(card),
        "count": None if card is None else card.count,
    }


def _counted_rows(columns: Sequence[ColumnProfile], name: str | None) -> int | None:
    """The rows that the lines of a table of counts stand for, if they can be told."""
    for column in columns:
        if column.name == name and column.values is not None:
            found = [(_number(text), lines) for text, lines in column.values.items()]
            return int(sum(n * lines for n, lines in found if n == n))
    return None


def _number_of_rows(ask: Ask, source: Source) -> int:
    counted = replace(source, sql="SELECT count(*) AS n FROM input")
    return int(ask.engine.read(counted)["n"][0].as_py())


def _column(column: ColumnProfile, rows: int, missing: set[str]) -> dict[str, Any]:
    values = dict(sorted((column.values or {}).items(), key=lambda pair: -pair[1]))
    absent = column.nulls + sum(n for text, n in values.items() if text in missing)
    numeric = column.numeric > 0.99 and column.quantiles is not None
    return {
        "name": column.name,
        "type": column.type,
        "distinct": column.distinct,
        "distinct_exact": column.values is not None,
        "missing": absent,
        "missing_share": absent / rows if rows else 0.0,
        "numeric": numeric,
        "range": [column.quantiles[0], column.quantiles[-1]]
        if numeric and column.quantiles
        else None,
        "values": [[text, n] for text, n in list(values.items())[:_SHOWN]],
        "values_left_out": max(len(values) - _SHOWN, 0),
        "histogram": _histogram(column, numeric=numeric),
    }


def _histogram(column: ColumnProfile, *, numeric: bool) -> list[dict[str, Any]]:
    """Bars of the values: bins of equal width of numbers, or the most frequent values."""
    import numpy as np

    values = column.values or {}
    if numeric and column.quantiles is not None and (len(values) > _BARS or not values):
        low, high = column.quantiles[0], column.quantiles[-1]
        edges = np.linspace(low, high, _BARS + 1)
        if values:
            numbers = np.array([_number(text) for text in values], float)
            shares = np.array(list(values.values()), float)
            bars, _ = np.histogram(
                numbers[np.isfinite(numbers)], edges, weights=shares[np.isfinite(numbers)]
            )
        else:  # of the quantiles, each of which stands for an equal share
            steps = np.interp(edges, column.quantiles, np.linspace(0, 1, len(column.quantiles)))
            bars = np.diff(steps)
        return [
            {"low": float(a), "high": float(b), "n": float(n)}
            for a, b, n in zip(edges[:-1], edges[1:], bars, strict=True)
        ]
    most = sorted(values.items(), key=lambda pair: -pair[1])[:_BARS]
    return [{"value": text, "n": n} for text, n in most]


def _number(text: str) -> float:
    from equipoise.counts.columns import as_number

    found = as_number(text)
    return float("nan") if found is None else float(found)


def _suggested(columns: list[dict[str, Any]], card: Any) -> tuple[list[str], list[str]]:
    """Columns that may be sensitive attributes and labels, by their names and values."""
    if card is not None:
        return list(card.sensitive), [card.label]
    few = [c for c in columns if 2 <= c["distinct"] <= _FEW]
    sensitive = [
        c["name"] for c in columns if _is_named(c["name"], _SENSITIVE) and c["distinct"] > 1
    ]
    sensitive.sort(key=lambda name: _place(name, _SENSITIVE))
    labels = [
        c["name"] for c in few if _is_named(c["name"], _LABELS) and c["name"] not in sensitive
    ]
    others = [
        c["name"] for c in few if c["distinct"] == 2 and c["name"] not in (*sensitive, *labels)
    ]
    return sensitive, labels or others[-2:]


def _is_named(name: str, words: tuple[str, ...]) -> bool:
    return _place(name, words) < len(words)


def _place(name: str, words: tuple[str, ...]) -> int:
    """The first of some words that a name contains, or their number."""
    parts = [part for part in re.split(r"[^a-z]+", name.lower()) if part]
    found = (i for i, w in enumerate(words) if any(_is_word(part, w) for part in parts))
    return next(found, len(words))


def _is_word(part: str, word: str) -> bool:
    return part.startswith(word) if len(word) > 3 else part == word


def _card(card: Any) -> dict[str, Any]:
    return {
        "title": card.title,
        "description": card.description,
        "source": card.source,
        "licence": card.licence,
        "known_harms": list(card.known_harms),
        "columns": dict(card.columns),
    }


def present(ask: Ask, _: dict[str, Any]) -> dict[str, Any]:
    """What is chosen."""
    chosen = {"sensitive": ask.table.get("sensitive_features", []), "label": ask.table.get("label")}
    return {"chosen": chosen}


def twin(ask: Ask, _: dict[str, Any]) -> list[Twin]:
    """Measuring the columns that are chosen."""
    if not ask.table.get("sensitive_features") or not ask.table.get("label"):
        return []
    return [plain_twin(ask, "measure", "measure", ())]


ROOM = Room(
    name="table",
    title="Table",
    about="Choose a table, its sensitive attributes and its label.",
    query=table_query("TableQuery"),
    options=(),
    compute=compute,
    counts=False,
    present=present,
    twin=twin,
)
