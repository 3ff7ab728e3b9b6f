"""The charts of UB as plain data: matrices, and a ranking with intervals."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise.lattice import Group, format_value
from equipoise.measures.display import interval, number, whole
from equipoise.measures.measurement import Measurement
from equipoise.measures.pairs import Pairs
from equipoise.measures.table import BiasTable
from equipoise.values import ANY

if TYPE_CHECKING:
    from numpy.typing import NDArray


# More than this cannot be taken in at a glance; captions say how much is left out.
_MATRICES = 3
_VALUES = 30
_LABELS = 6
_RANKED = 30


def matrices(table: BiasTable) -> list[dict[str, Any]]:
    """Matrices of UB for the first pairs of attributes.

    The rows are the values of the attribute that has more of them. If no group fixes two
    attributes, there is a matrix for each attribute, and its columns are the labels.

    >>> from equipoise.counts import Counts
    >>> from equipoise.measures.table import bias_table
    >>> counts = Counts.from_mapping(
    ...     {("m", "hired"): 160, ("m", "not"): 290, ("w", "hired"): 40, ("w", "not"): 110},
    ...     sensitive=["sex"],
    ...     label="outcome",
    ... )
    >>> [cell["text"] for cell in matrices(bias_table(counts))[0]["cells"]]
    ['−0.067', '+0.033', '+0.200', '−0.100']
    """
    tally = table.pairs
    axes = range(len(table.counts.sensitive))
    paired = len(tally.orders) and tally.orders.max() > 1
    sets: list[Sequence[int]] = (
        list(itertools.combinations(axes, 2)) if paired else [[i] for i in axes]
    )
    made = [_matrix(tally, chosen) for chosen in sets[:_MATRICES]]
    return [each for each in made if each["cells"]]


def matrix(table: BiasTable, attributes: Sequence[int]) -> dict[str, Any]:
    """The matrix of UB for one or two attributes, given by their numbers."""
    return _matrix(table.pairs, attributes)


def ranking(table: BiasTable) -> dict[str, Any]:
    """The groups with the largest |UB| and enough rows to tell, with their intervals, worst first."""
    tally = table.pairs
    mask, label = tally.evident, table.counts.label.name
    # Two labels mirror each other, so one is enough.
    one = table.options.favourable is not None or len(table.counts.label) == 2
    leading = tally.leading_labels(mask)
    if one and leading:
        mask = mask & (tally.label == leading[0])
        label = str(Group({label: table.counts.label.values[leading[0]]}))
    sure = bool(mask.sum() > _RANKED and (mask & tally.sure).any())
    mask = mask & tally.sure if sure else mask
    bars = [_bar(tally, place, labelled=not one) for place in tally.worst(mask, _RANKED)]
    return {
        "title": f"UB for {label}{_with_interval(table)}",
        "limit": table.options.limit,
        "bars": bars,
        "total": int(mask.sum()),
        "sure": sure,
    }


def _with_interval(table: BiasTable) -> str:
    if table.measured.interval is None:
        return ""
    return f", with its {table.options.confidence:.0%} interval"


def _bar(tally: Pairs, place: int, *, labelled: bool) -> dict[str, Any]:
    row = tally.row(place)
    name = str(row.group)
    return {
        "name": f"{name} → {format_value(row.label)}" if labelled else name,
        "ub": row.ub,
        "low": row.ub_low if math.isfinite(row.ub_low) else row.ub,
        "high": row.ub_high if math.isfinite(row.ub_high) else row.ub,
        "text": number(row.ub),
        "interval": interval(row),
        "rows": f"{whole(row.n_cell)} of {whole(row.n_group)}",
        "side": side(row.ub, tally.measured.options.limit),
    }


def side(ub: float, limit: float) -> str:
    """The side of the limit on which a UB is: ``fewer``, ``more`` or ``inside``.

    >>> side(0.2, 0.1), side(-0.2, 0.1), side(0.1, 0.1)
    ('fewer', 'more', 'inside')
    """
    return "inside" if not abs(ub) > limit else "fewer" if ub > 0 else "more"


# ---------------------------------------------------------------------------- matrices


def _matrix(tally: Pairs, chosen: Sequence[int]) -> dict[str, Any]:
    table = tally.measured
    axes = sorted(chosen, key=lambda i: -len(table.counts.sensitive[i]))
    kept = [_most_rows(table, i) for i in axes]
    labels = _labels(tally)
    cells = _cells(tally, axes, kept, labels)
    # Groups with too few rows are grey, so they need no colour of the scale.
    known = [abs(c["ub"]) for c in cells if c["ub"] is not None and not c["unsure"]]
    # Strong colours only beyond twice the limit, so that small differences look small.
    bound = max(2 * table.options.limit, min(1.0, max(known, default=0.0)), 0.05)
    names = [table.counts.sensitive[i].name for i in axes]
    single = len(axes) == 1
    values = [
        [_value(table, i, code) for code in codes] for i, codes in zip(axes, kept, strict=True)
    ]
    labelled = [format_value(table.counts.label.values[c]) for c in labels]
    return {
        "row_name": names[0],
        "column_name": table.counts.label.name if single else names[1],
        "label_name": table.counts.label.name,
        "rows": values[0] if single else ["*", *values[0]],
        "columns": labelled if single else ["*", *values[1]],
        "labels": [] if single else labelled,
        "cells": cells,
        "bound": bound,
        "clamped": max(known, default=0.0) > bound,
        "limit": table.options.limit,
        "left_out": {
            axis.name: len(axis) - len(codes)
            for axis, codes in zip((table.counts.sensitive[i] for i in axes), kept, strict=True)
            if len(axis) > len(codes)
        },
        "labels_left_out": len(set(tally.label.tolist())) - len(labels),
    }


def _most_rows(table: Measurement, axis: int) -> list[int]:
    """The values of an attribute with the most rows, in their own order."""
    size = len(table.counts.sensitive[axis])
    rows = np.bincount(table.counts.codes[:, axis], table.counts.rows, size)
    return sorted(np.argsort(-rows, kind="stable")[:_VALUES].tolist())


def _labels(tally: Pairs) -> list[int]:
    """The labels to show: the favourable one and those with the largest |UB|."""
    favourable, axis = tally.measured.options.favourable, tally.measured.counts.label
    first = [] if favourable is None else [axis.code(favourable)]
    by_bias = tally.label[tally.worst(tally.evident)].tolist()
    found = dict.fromkeys([*first, *by_bias, *tally.label.tolist()])
    return sorted(list(found)[:_LABELS])


def _cells(
    tally: Pairs, axes: Sequence[int], kept: Sequence[Sequence[int]], labels: Sequence[int]
) -> list[dict[str, Any]]:
    codes = tally.measured.lattice.codes[tally.line]
    sizes = np.array(tally.measured.lattice.sizes)
    fixed = codes != sizes
    wanted = ~np.delete(fixed, axes, axis=1).any(axis=1) & np.isin(tally.label, labels)
    for axis, values in zip(axes, kept, strict=True):
        wanted &= np.isin(codes[:, axis], [*values, sizes[axis]])
    places = np.flatnonzero(wanted)
    return [_cell(tally, axes, codes[place], int(place)) for place in places]


def _cell(
    tally: Pairs, axes: Sequence[int], codes: NDArray[np.int32], place: int
) -> dict[str, Any]:
    table = tally.measured
    keys = [_value(table, i, int(codes[i])) for i in axes]
    value = format_value(tally.label_value(place))
    ub = float(tally.ub[place])
    return {
        "row": keys[0],
        "column": keys[1] if len(keys) == 2 else value,
        "label": value,
        "ub": ub if ub == ub else None,
        "text": number(ub),
        "unsure": not bool(tally.evident[place]),
        "about": f"{tally.group(place)}: {', '.join(_about(tally, place))}",
    }


def _about(tally: Pairs, place: int) -> list[str]:
    m, note = tally.measured, tally.note(place)
    line, label = int(tally.line[place]), int(tally.label[place])
    about = [str(Group({tally.measured.counts.label.name: tally.label_value(place)}))]
    if np.isfinite(tally.ub[place]):
        about.append(f"UB {number(float(tally.ub[place]))}")
        if m.interval is not None:
            low, high = m.interval.low[line, label], m.interval.high[line, label]
            about.append(f"interval {number(float(low))} … {number(float(high))}")
    if note != "suppressed":
        about.append(f"{whole(int(m.n_cell[line, label]))} of {whole(int(m.n_group[line]))} rows")
    return [*about, *([note] if note else [])]


def _value(table: Measurement, axis: int, code: int) -> str:
    values = table.counts.sensitive[axis].values
    return format_value(values[code] if code < len(values) else ANY)
