"""A mapping of cells to numbers of rows, as ``sampling_strategy`` takes it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from equipoise.counts import Axis, Counts
from equipoise.errors import InputError
from equipoise.frames import is_whole
from equipoise.values import MISSING, Value, as_value


def read_strategy(strategy: Any, counts: Counts, allow: str | None) -> dict[tuple[Value, ...], int]:
    """Read how many rows each named cell must gain, or lose if negative."""
    if not isinstance(strategy, Mapping):
        raise InputError(
            "`sampling_strategy` must be or return a mapping {(group, label): rows}, not "
            f"{strategy!r}."
        )
    have, moves = counts.cells(), dict[tuple[Value, ...], int]()
    groups, _ = counts.finest()
    for key, rows in strategy.items():
        if len(groups) == 1 and not _is_pair(key):  # with one group, the label alone will do
            codes = zip(counts.sensitive, groups[0].tolist(), strict=True)
            key = tuple(axis.values[code] for axis, code in codes), key  # noqa: PLW2901
        cell = _cell(key, counts)
        if cell in moves:
            raise InputError(
                f"`sampling_strategy` names {counts.pattern(cell)} twice; name it once."
            )
        moves[cell] = _move(rows, have.get(cell, 0), str(counts.pattern(cell)), allow)
    if not counts.n + sum(moves.values()):
        raise InputError("`sampling_strategy` leaves no row at all; keep some rows of a cell.")
    return moves


def _move(rows: Any, there: int, cell: str, allow: str | None) -> int:
    asked = f"`sampling_strategy` asks for {rows} rows of {cell}, which has {there:,}; "
    if not is_whole(rows) or rows < 0:
        raise InputError(f"{asked}ask for a whole number of at least 0.")
    if allow == "add" and rows < there:
        raise InputError(f"{asked}ask for no fewer, or allow deletions with `allow='both'`.")
    if allow == "delete" and rows > there:
        raise InputError(f"{asked}ask for no more, or allow additions with `allow='both'`.")
    return int(rows) - there


def _is_pair(key: Any) -> bool:
    return isinstance(key, tuple) and len(key) == 2


def _cell(key: Any, counts: Counts) -> tuple[Value, ...]:
    group, label = key if _is_pair(key) else ((), key)
    group = group if isinstance(group, tuple) else (group,)
    if len(group) != len(counts.sensitive):
        names = ", ".join(axis.name for axis in counts.sensitive)
        shape = f"({names})" if len(counts.sensitive) > 1 else names
        raise InputError(
            f"{key!r} is not a key of `sampling_strategy` for this data; a key is "
            f"({shape}, {counts.label.name})."
        )
    values = zip(counts.axes, (*group, label), strict=True)
    return tuple(_known(axis, raw) for axis, raw in values)


def _known(axis: Axis, raw: Any) -> Value:
    value = spelled(axis, raw)
    if value is MISSING:
        raise InputError(
            f"`sampling_strategy` names rows with a missing value of {axis.name!r}, which stay as "
            "they are."
        )
    axis.code(value)  # raises an error that lists the values
    return value


def spelled(axis: Axis, raw: Any) -> Value:
    """Write a value as an axis has it: people write 1, 1.0 and true for the same value.

    Examples
    --------
    >>> spelled(Axis("y", ("0.0", "1.0")), 1), spelled(Axis("y", ("true", "false")), 1)
    ('1.0', 'true')
    """
    spellings = [as_value(raw)]
    number = raw.item() if isinstance(raw, np.generic) else raw
    if isinstance(number, (int, float)) and number in (0, 1):
        spellings.append(as_value(bool(number)))
    if isinstance(number, int) or (isinstance(number, float) and number.is_integer()):
        spellings += [as_value(int(number)), as_value(float(number))]
    return next((text for text in spellings if text in axis.codes), spellings[0])
