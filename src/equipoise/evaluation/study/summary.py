"""A study: everything the records of one table say, as plain data.

Pages, documentation and JSON are made of the same numbers. A mean over repeats is stored as
[mean, low, high].
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise.evaluation.intervals import Difference, Mean
from equipoise.evaluation.request import TESTS, EvaluationRequest
from equipoise.evaluation.study.records import Fits, StudyRecords
from equipoise.evaluation.study.relation import relate_bias_and_error
from equipoise.evaluation.study.scores import MEASURES, prediction_ub, selection_rates
from equipoise.evaluation.study.versions import describe_versions
from equipoise.evaluation.training.models import Model
from equipoise.measures.uncertainty.p_values import adjust

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from equipoise.evaluation.training.material import Material

_CLEAR = 0.05  # a difference is called clear if its q is at most this
MARGIN = 0.01
"""Largest loss of a score that counts as small."""


def summarize_study(
    material: Material,
    request: EvaluationRequest,
    models: Sequence[Model],
    records: Sequence[Mapping[str, Any]],
    *,
    title: str | None = None,
    paper: str | None = None,
) -> dict[str, Any]:
    """Summarize the records of one table as plain data."""
    found = StudyRecords(material, request, models, records)
    return {
        "name": material.name,
        "title": title or material.name,
        "paper": paper,
        **_about_table(found),
        **_about_request(found),
        "tables": describe_versions(found),
        "scores": _scores(found),
        "differences": (differences := _differences(found)),
        "losses": losses_of(differences),
        "by_group": _by_group(found),
        "test_ub": _test_ub(found),
        "relation": relate_bias_and_error(found),
    }


def _about_table(records: StudyRecords) -> dict[str, Any]:
    material, request = records.material, records.request
    features, copies, positive = material.features, material.copies, records.positive
    by_chance = copies.by_chance
    return {
        "rows": material.n,
        "rows_after": int(material.is_after.sum()),
        "rows_given": material.rows_given,
        "equal_rows": {
            "asked": request.equal_rows,
            "equal": copies.equal,
            "kept_together": copies.held,
            "pairs": copies.pairs,
            "pairs_by_chance": (
                None if by_chance is None or np.isinf(by_chance) else round(by_chance, 1)
            ),
        },
        "label": request.counting.label,
        "labels": list(material.labels),
        "positive": None if positive is None else material.labels[positive],
        "sensitive": list(request.counting.sensitive),
        "also": list(request.also),
        "groups": records.groups.plain(),
        "features": list(features.names),
        "names": [features.names[i] for i in np.flatnonzero(~features.numeric)],
        "constant": list(features.constant),
        "telling": list(features.telling),
        "impute": features.impute,
        "lacking": features.lacking,
    }


def _about_request(records: StudyRecords) -> dict[str, Any]:
    request = records.request
    return {
        "sizes": [] if request.is_of_two else list(request.sizes),
        "versions": list(request.chosen),
        "reference": request.reference,
        "models": records.titles,
        "repeats": request.repeats,
        "seed": request.seed,
        "test": request.test,
        "own_test": request.own_test,
        "tolerance": request.tolerance,
        "confidence": request.confidence,
        "fits": records.n_fits,
        "unsettled": records.unsettled,
    }


def _scores(records: StudyRecords) -> list[dict[str, Any]]:
    """Return the means of every measure on both tests."""
    return [
        {"size": size, "version": version, "model": model, "test": test}
        | {name: records.mean(v) for name, v in records.scores(fits, test).items()}
        for (size, version, model), fits in records.fits.items()
        for test in TESTS
    ]


def _differences(records: StudyRecords) -> list[dict[str, Any]]:
    """Compare every version with the reference, repeat by repeat."""
    found: list[tuple[dict[str, Any], Difference]] = []
    for (size, version, model), both in records.pairs():
        for test in TESTS:
            first, second = (records.scores(fits, test) for fits in both)
            place = {"size": size, "version": version, "model": model, "test": test}
            for measure, values in first.items():
                gap = Difference.of(values, second[measure], records.request.confidence)
                found.append(({**place, "measure": measure}, gap))
    # All differences of a study are adjusted together, since all of them are looked at.
    q = adjust([gap.p for _, gap in found]) if found else np.zeros(0)
    return [_plain(place, gap, float(each)) for (place, gap), each in zip(found, q, strict=True)]


def _plain(place: Mapping[str, Any], gap: Difference, q: float) -> dict[str, Any]:
    mean, low, high = Mean(*gap[:3]).plain()
    return {
        **place,
        "mean": mean,
        "low": low,
        "high": high,
        "p": None if gap.p != gap.p else float(f"{gap.p:.3g}"),
        "q": None if q != q else float(f"{q:.3g}"),
        "clear": bool(q <= _CLEAR),
    }


def losses_of(differences: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Count, by version, test and measure, the comparisons that rule out a loss above the margin.

    A comparison is one model at one size of the sample. That no loss is clear may only mean that
    there are too few repeats. If the whole interval of the difference is above minus the margin, a
    larger loss is ruled out.

    Examples
    --------
    >>> row = {"version": "p", "test": "own", "measure": "recall", "mean": 0.0, "clear": False}
    >>> losses_of([{**row, "low": -0.004, "high": 0.004}, {**row, "low": -0.03, "high": 0.03}])
    [{'version': 'p', 'test': 'own', 'measure': 'recall', 'margin': 0.01, 'of': 2, 'ruled_out': 1, 'clear': 0}]
    """
    places: dict[tuple[str, str, str], list[Mapping[str, Any]]] = {}
    for row in differences:
        if row["measure"] in MEASURES and row["low"] is not None:
            places.setdefault((row["version"], row["test"], row["measure"]), []).append(row)
    return [
        {
            **dict(zip(("version", "test", "measure"), place, strict=True)),
            "margin": MARGIN,
            "of": len(rows),
            "ruled_out": sum(row["low"] > -MARGIN for row in rows),
            "clear": sum(row["clear"] and row["mean"] < 0 for row in rows),
        }
        for place, rows in places.items()
    ]


def _by_group(records: StudyRecords) -> list[dict[str, Any]]:
    """Return scores of every reported group on the held-out test set, at the largest size."""
    paired = dict(records.pairs())
    found = []
    for (size, version, model), fits in records.fits.items():
        if size != records.largest_size:
            continue
        both = paired.get((size, version, model))
        values, moved = _group_scores(records, fits), _change(records, both) if both else {}
        for i, group in enumerate(records.groups.names):
            row = {"size": size, "version": version, "model": model, "group": group}
            row |= {name: records.mean(v[:, i]) for name, v in values.items()}
            row["change"] = {name: records.mean(v[:, i]) for name, v in moved.items()}
            found.append(row)
    return found


def _change(records: StudyRecords, both: tuple[Fits, Fits]) -> dict[str, NDArray[Any]]:
    first, second = (_group_scores(records, fits) for fits in both)
    return {name: first[name] - second[name] for name in first}


def _group_scores(records: StudyRecords, fits: Fits) -> dict[str, NDArray[Any]]:
    """Compute repeats × groups by measure; selection rate and UB for every shown label."""
    within, whole = fits.within("untouched"), fits.whole("untouched")
    found = {name: measure(within, records.positive) for name, measure in MEASURES.items()}
    rates, ub = selection_rates(within), prediction_ub(within, whole[:, None])
    for label in _shown_labels(records):
        name = records.material.labels[label]
        found[f"selection rate {name}"] = rates[..., label]
        found[f"UB {name}"] = ub[..., label]
    return found


def _shown_labels(records: StudyRecords) -> Sequence[int]:
    if records.positive is not None:
        return [records.positive]
    return range(len(records.material.labels))


def _test_ub(records: StudyRecords) -> list[dict[str, Any]]:
    """Return UB of the labels in the held-out test set itself, for the reported groups."""
    fits, _ = records.of_version(records.largest_size, records.request.reference)
    if not fits:
        return []
    # Predictions that equal the labels have the UB of the labels.
    rows = fits[0].outcomes["untouched"].sum(axis=-1)
    true = rows[..., None] * np.eye(len(records.material.labels), dtype=np.int64)
    ub = prediction_ub(true[:, :-1], true[:, -1:])
    return [
        {
            "group": group,
            "label": records.material.labels[label],
            "ub": records.mean(ub[:, place, label]),
        }
        for place, group in enumerate(records.groups.names)
        for label in _shown_labels(records)
    ]
