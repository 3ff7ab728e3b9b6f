"""Cells as arrays: the rules for missing values, and sums over equal cells."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from equipoise.counts.axes import Axis, Role, missing_last
from equipoise.counts.columns import LARGEST, Coded, take
from equipoise.errors import CountsError, InputError
from equipoise.lattice import Group
from equipoise.options.count import CountRequest
from equipoise.values import MISSING, Value

if TYPE_CHECKING:
    from numpy.typing import NDArray


class Lines(NamedTuple):
    """One line a cell: a code for each axis, its rows and, with weights, their two sums."""

    codes: NDArray[np.int32]
    rows: NDArray[np.int64]
    weights: NDArray[np.float64] | None


def merge_lines(axes: Sequence[Axis], lines: Lines) -> Lines:
    """Add up equal cells, and leave out those without rows."""
    codes, rows, weights = lines
    _require_countable(rows)
    distinct, place = distinct_lines(codes, [len(a) for a in axes])
    summed = np.zeros(len(distinct), np.int64)
    np.add.at(summed, place, rows)
    if (summed < 0).any():
        cell = distinct[summed < 0][0]
        named = Group({a.name: a.values[c] for a, c in zip(axes, cell.tolist(), strict=True)})
        raise CountsError(f"more rows are taken from the cell {named} than it has.")
    kept = summed > 0
    if weights is not None:
        totals = np.zeros((len(distinct), 2))
        np.add.at(totals, place, weights)
        weights = totals[kept]
    return Lines(distinct[kept], summed[kept], weights)


def distinct_lines(
    codes: NDArray[np.int32], sizes: Sequence[int]
) -> tuple[NDArray[np.int32], NDArray[np.intp]]:
    """Return the distinct lines in rising order, and for each given line its place among them."""
    if not len(codes):
        return codes, np.zeros(0, np.intp)
    space = math.prod(max(d, 1) for d in sizes)
    if space <= 4 * len(codes):  # so dense that counting is faster than sorting
        key = _keys(len(codes), codes.T, sizes)
        present = np.bincount(key, minlength=space) > 0
        lines = np.unravel_index(np.flatnonzero(present), [max(d, 1) for d in sizes])
        return np.stack(lines, axis=1).astype(np.int32), (np.cumsum(present) - 1)[key]
    # Beyond 62 bits a key would overflow, so the columns are sorted one after another.
    order = (
        np.lexsort(codes.T[::-1])
        if space >= 2**62
        else np.argsort(_keys(len(codes), codes.T, sizes))
    )
    ordered = codes[order]
    fresh = np.concatenate([[True], (ordered[1:] != ordered[:-1]).any(axis=1)])
    place = np.empty(len(codes), np.intp)
    place[order] = np.cumsum(fresh) - 1
    return ordered[fresh], place


def _keys(
    lines: int, columns: Iterable[NDArray[np.int32]], sizes: Sequence[int]
) -> NDArray[np.int64]:
    """Number lines by their codes, one column after another."""
    keys = np.zeros(lines, np.int64)
    for size, codes in zip(sizes, columns, strict=True):
        keys *= max(size, 1)
        keys += codes
    return keys


def _require_countable(rows: NDArray[np.int64]) -> None:
    # As floating-point numbers, since the sum itself may exceed 64 bits.
    if np.abs(rows).sum(dtype=np.float64) >= LARGEST:
        raise CountsError(
            "these are more rows than can be counted; the maximum is 9,223,372,036,854,775,807."
        )


def tally(
    coded: Mapping[str, Coded], rows: NDArray[np.int64], weights: NDArray[np.float64] | None
) -> tuple[dict[str, Coded], NDArray[np.int64], NDArray[np.float64] | None]:
    """Add up lines of equal codes first where that is fast, so that few lines are left to treat."""
    _require_countable(rows)
    sizes = [len(values) for values, _ in coded.values()]
    space = math.prod(sizes)
    if weights is not None or not 0 < space <= 4 * len(rows):
        return dict(coded), rows, weights
    summed = np.zeros(space, np.int64)
    columns = (codes for _, codes in coded.values())
    np.add.at(summed, _keys(len(rows), columns, sizes), rows)
    present = np.flatnonzero(summed)
    kept = (c.astype(np.int32) for c in np.unravel_index(present, sizes))
    names = zip(coded.items(), kept, strict=True)
    return {name: (values, c) for (name, (values, _)), c in names}, summed[present], None


def apply_policies(
    coded: Mapping[str, Coded], rows: NDArray[np.int64], request: CountRequest
) -> tuple[tuple[Axis, ...], NDArray[np.int32], NDArray[np.bool_], dict[str, int]]:
    """Treat missing values as a request says.

    Returns the axes, the codes on them, which lines are kept, and by column how many rows have
    no value.
    """
    kept = np.ones(len(rows), np.bool_)
    axes, codes, missing_values = [], [], {}
    for name in request.columns:
        axis, code = _axis(name, *coded[name], request)
        absent = np.asarray(code == axis.codes.get(MISSING, -1))
        missing_values[name] = int(rows[absent].sum())
        if missing_values[name] and request.policy(name) == "raise":
            parameter = "missing_label" if name == request.label else "missing"
            raise InputError(
                f"column {name!r} has no value in {missing_values[name]:,} rows, and missing "
                f"values are not allowed; set `{parameter}='group'` or `{parameter}='drop'`."
            )
        if request.policy(name) == "drop":
            kept &= ~absent
        axes.append(axis)
        codes.append(code)
    return tuple(axes), np.stack(codes, axis=1), kept, missing_values


def _axis(
    name: str, values: tuple[Value, ...], code: NDArray[np.int32], request: CountRequest
) -> tuple[Axis, NDArray[np.int32]]:
    na = () if name in request.bins else request.na  # bins have left them out already
    seen: list[Value] = [MISSING if v in na else v for v in values]
    role: Role = "label" if name == request.label else "sensitive"
    axis = Axis(name, missing_last(seen), role)
    return axis, take([axis.codes[v] for v in seen], code)


def drop_unused(
    axes: Sequence[Axis], codes: NDArray[np.int32], binned: Collection[str]
) -> tuple[tuple[Axis, ...], NDArray[np.int32]]:
    """Leave out values that no cell has any more, but keep every bin."""
    smaller = []
    for position, axis in enumerate(axes):
        # Not np.unique, which loads numpy.ma.
        used = np.bincount(codes[:, position], minlength=len(axis.values)) > 0
        is_binned = axis.name in binned
        kept = tuple(
            v for c, v in enumerate(axis.values) if used[c] or (is_binned and v is not MISSING)
        )
        smaller.append(replace(axis, values=kept))
    return tuple(smaller), recode(codes, axes, smaller)


def recode(codes: NDArray[np.int32], old: Sequence[Axis], new: Sequence[Axis]) -> NDArray[np.int32]:
    """Number the values of cells as other axes do, which must have every value that is used."""
    columns = [
        take([after.codes.get(value, -1) for value in before.values], codes[:, i])
        for i, (before, after) in enumerate(zip(old, new, strict=True))
    ]
    recoded = np.stack(columns, axis=1)
    if (recoded < 0).any():
        raise KeyError("the other axes do not have a value of a cell")
    return recoded
