"""A mapping of cells to rows, as ``sampling_strategy`` takes it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise.counts import Axis, Counts
from equipoise.errors import InputError
from equipoise.frames import is_whole
from equipoise.values import MISSING, Value, as_value

if TYPE_CHECKING:
    from numpy.typing import NDArray


def read_strategy(strategy: Any, counts: Counts, allow: str | None) -> dict[tuple[Value, ...], int]:
    """How many rows each cell that is named must gain, or lose."""
    if not isinstance(strategy, Mapping):
        raise InputError(
            f"sampling_strategy must come to a mapping {{(group, label): rows}}, not {strategy!r}."
        )
    have, moves = counts.cells(), dict[tuple[Value, ...], int]()
    groups, _ = counts.finest()
    for key, rows in strategy.items():
        plain = len(groups) == 1 and not _is_pair(key)
        cell = _cell((_values(groups[0], counts), key) if plain else key, counts)
        if cell in moves:
            raise InputError(f"sampling_strategy names {counts.pattern(cell)} twice; name it once.")
        moves[cell] = _move(rows, have.get(cell, 0), str(counts.pattern(cell)), allow)
    if not counts.n + sum(moves.values()):
        raise InputError("sampling_strategy leaves no row at all; ask for some of a cell.")
    return moves


def _move(rows: Any, there: int, cell: str, allow: str | None) -> int:
    asked = f"sampling_strategy asks for {rows} rows of {cell}, of which there are {there:,}; "
    if not is_whole(rows) or rows < 0:
        raise InputError(f"{asked}ask for a whole number of at least 0.")
    if allow == "add" and rows < there:
        raise InputError(f"{asked}ask for no fewer, or let rows be left out with allow='both'.")
    if allow == "delete" and rows > there:
        raise InputError(f"{asked}ask for no more, or let rows be added with allow='both'.")
    return int(rows) - there


def _values(group: NDArray[np.int32], counts: Counts) -> tuple[Value, ...]:
    axes = zip(counts.sensitive, group.tolist(), strict=True)
    return tuple(axis.values[code] for axis, code in axes)


def _is_pair(key: Any) -> bool:
    return isinstance(key, tuple) and len(key) == 2


def _cell(key: Any, counts: Counts) -> tuple[Value, ...]:
    """Find the cell that a key of a mapping means."""
    group, label = key if _is_pair(key) else ((), key)
    group = group if isinstance(group, tuple) else (group,)
    if len(group) != len(counts.sensitive):
        names = ", ".join(axis.name for axis in counts.sensitive)
        shape = f"({names})" if len(counts.sensitive) > 1 else names
        raise InputError(
            f"{key!r} is no key of a sampling_strategy for this data; a key is "
            f"({shape}, {counts.label.name})."
        )
    values = zip(counts.axes, (*group, label), strict=True)
    return tuple(_known(axis, raw) for axis, raw in values)


def _known(axis: Axis, raw: Any) -> Value:
    value = spelled(axis, raw)
    if value is MISSING:
        raise InputError(
            f"sampling_strategy names rows without a value of {axis.name!r}, which stay as they are."
        )
    axis.code(value)  # says which values there are
    return value


def spelled(axis: Axis, raw: Any) -> Value:
    """Give the text of a value as an axis has it: 1, 1.0 and true are one to a person.

    Parameters
    ----------
    axis
        The values there are.
    raw
        The value as it was given.

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
