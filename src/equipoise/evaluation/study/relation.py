"""How the bias of a group in the training data relates to the errors of models for that group."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise.evaluation.study.records import Fits, StudyRecords
from equipoise.evaluation.study.scores import mean_of_known, misses
from equipoise.measures.uniform_bias import ub_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

# The groups and labels of one table depend on each other, so a correlation of fewer is not reported.
_LEAST_POINTS = 8


def relate_bias_and_error(records: StudyRecords) -> dict[str, Any]:
    """Relate UB of each group and label to its misses, at the largest size of the sample."""
    size, reference = records.largest_size, records.request.reference
    points = [
        point
        for version in records.request.chosen
        if version in (reference, "p", "n", "after")
        for point in _points(records, size, version)
    ]
    found = {"size": size, "reference": reference, "points": points}
    return found | _correlations(points, reference)


def _points(records: StudyRecords, size: float, version: str) -> list[dict[str, Any]]:
    fits, tried = records.of_version(size, version)
    made = [r for r in tried if not r["failed"]]
    if not fits or not made:
        return []
    excess = mean_of_known(np.stack([_excess_misses(f) for f in fits]), axis=0)  # over models
    ub = np.stack([_group_ub(records, records.cells(r["train"])) for r in made])
    rows = fits[0].within("untouched").sum(axis=-1).mean(axis=0)
    return [
        {
            "version": version,
            "group": records.groups.names[place],
            "label": name,
            "ub": records.mean(ub[:, place, label]),
            "error": records.mean(excess[:, place, label]),
            "rows": round(float(rows[place, label]), 1),
        }
        for place in np.flatnonzero(records.groups.is_judged).tolist()
        for label, name in enumerate(records.material.labels)
    ]


def _excess_misses(fits: Fits) -> NDArray[Any]:
    """Compute the misses of a group's rows of a label, beyond those of all rows of the label."""
    return misses(fits.within("untouched")) - misses(fits.whole("untouched"))[:, None]


def _group_ub(records: StudyRecords, cells: NDArray[np.int64]) -> NDArray[Any]:
    """Compute UB of the reported groups and labels, without rows that have a missing value."""
    known = np.where(records.material.is_known, cells, 0)
    k = len(records.material.labels)
    table = records.groups.cell_sums(known, k)
    n_y, n_g = np.bincount(records.groups.cell_label, known, k), table.sum(axis=1, keepdims=True)
    ub = np.asarray(ub_of(n=known.sum(), n_y=n_y, n_g=n_g, n_gy=table))
    ub[~records.groups.is_judged] = np.nan
    return ub


def _correlations(points: Sequence[Mapping[str, Any]], reference: str) -> dict[str, Any]:
    """Correlate UB with excess misses in the reference, and their changes in other versions."""
    places: dict[str, dict[tuple[str, str], tuple[float, float]]] = {}
    for point in points:
        pair = (point["ub"][0], point["error"][0])
        if None not in pair:
            places.setdefault(point["version"], {})[point["group"], point["label"]] = pair
    first = places.get(reference, {})
    moves = {
        version: _rank_correlation(
            [(there[p][0] - first[p][0], there[p][1] - first[p][1]) for p in there if p in first]
        )
        for version, there in places.items()
        if version != reference
    }
    return {"correlation": _rank_correlation([*first.values()]), "moves": moves}


def _rank_correlation(pairs: Sequence[tuple[float, float]]) -> dict[str, Any]:
    from scipy.stats import spearmanr

    x, y = ([pair[i] for pair in pairs] for i in (0, 1))
    varied = len(pairs) >= _LEAST_POINTS and len({*x}) > 1 and len({*y}) > 1
    rho = round(float(spearmanr(x, y).statistic), 3) if varied else None
    return {"points": len(pairs), "rho": rho}
