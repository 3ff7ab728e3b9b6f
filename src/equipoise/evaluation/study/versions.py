"""The versions themselves in a study: rows requested and found, and their measured UB."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise.evaluation.study.records import StudyRecords
from equipoise.measures.request import MeasureRequest
from equipoise.measures.table import bias_table
from equipoise.plans.reweighing import cell_weights

if TYPE_CHECKING:
    from numpy.typing import NDArray

_SHOWN_CELLS = 5  # cells with too few rows that are listed


def describe_versions(records: StudyRecords) -> list[dict[str, Any]]:
    """Describe every version at every size of the sample, over all repeats."""
    return [
        {"size": size, "version": version, **_described(records, made)}
        for size in records.request.sizes
        for version in records.request.chosen
        if (made := records.of_version(size, version)[1])
    ]


def _described(records: StudyRecords, tried: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    made = [r for r in tried if not r["failed"]]
    failed = [r["failed"] for r in tried if r["failed"]]
    found: dict[str, Any] = {"repeats": len(made), "failed": failed[:1], "failures": len(failed)}
    if not made:
        return found
    mean = records.mean
    whole = [records.cells(r["cells"]) for r in made]
    train = [records.cells(r["train"]) for r in made]
    weighed = made[0]["version"] == "reweighed"
    short = [r for r in made if r["lacks"]]
    return {
        **found,
        "rows": mean([cells.sum() for cells in whole]),
        "train_rows": mean([cells.sum() for cells in train]),
        "test_rows": mean([r["test"] for r in made]),
        "need": mean([r["need"] for r in made]),
        "found": mean([r["found"] for r in made]),
        "short": len(short),
        "lacks": _worst_lacks(short),
        "ub": mean([_largest_ub(records, cells, weighed=weighed) for cells in whole]),
        "train_ub": mean([_largest_ub(records, cells, weighed=weighed) for cells in train]),
        "label_shift": mean([_label_shift(records, cells) for cells in train]),
    }


def _largest_ub(records: StudyRecords, cells: NDArray[np.int64], *, weighed: bool) -> float:
    counts = records.material.as_counts(cells)
    if not counts.n:
        return float("nan")
    if weighed:
        # Weighted counts keep the sums of the weights and of their squares.
        each = cell_weights(counts)
        sums = np.stack([counts.rows * each, counts.rows * each**2], axis=1)
        counts = replace(counts, weights=sums)
    options = MeasureRequest(uncertainty=False, min_count=records.request.min_group)
    ub = np.abs(bias_table(counts, options).measured.ub)
    return float(np.nanmax(ub)) if ub.size and not np.isnan(ub).all() else float("nan")


def _label_shift(records: StudyRecords, cells: NDArray[np.int64]) -> float:
    """Compute the largest difference of a label frequency from that of the (first) table."""
    material = records.material
    base = material.tally(np.flatnonzero(~material.is_after))
    codes = material.counts.codes[:, len(material.counts.sensitive)]
    first, second = (np.bincount(codes, c) / c.sum() for c in (base, cells))
    return float(np.abs(first - second).max())


def _worst_lacks(records: Sequence[Mapping[str, Any]]) -> list[list[Any]]:
    """List the cells that most often lacked rows: how often, and the mean rows needed and found."""
    cells: dict[str, list[tuple[int, int]]] = {}
    for record in records:
        for cell, need, found in record["lacks"]:
            cells.setdefault(cell, []).append((need, found))
    worst = sorted(cells.items(), key=lambda item: (-len(item[1]), item[0]))[:_SHOWN_CELLS]
    return [
        [cell, len(pairs), *(round(float(x), 1) for x in np.mean(pairs, axis=0))]
        for cell, pairs in worst
    ]
