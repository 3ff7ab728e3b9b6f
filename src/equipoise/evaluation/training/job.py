"""One piece of the work: a version made, models trained on it and tested, the outcomes counted."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise.errors import InputError
from equipoise.evaluation.request import VERSIONS, EvaluationRequest
from equipoise.evaluation.training.material import Material
from equipoise.evaluation.training.models import Model
from equipoise.evaluation.training.run_store import key_of
from equipoise.evaluation.training.versions import (
    Split,
    Version,
    make_version,
    part_for_test,
    split,
)
from equipoise.plans.infeasibility import Infeasible
from equipoise.plans.reweighing import cell_weights

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Rows = NDArray[np.int64]

_LARGEST_SEED = 2**31


@dataclass(frozen=True)
class Job:
    """A repeat, a size of the sample, a version of it, and the models to train on it."""

    repeat: int
    size: float
    version: str
    models: tuple[Model, ...]


def do(material: Material, request: EvaluationRequest, job: Job) -> list[dict[str, Any]]:
    """Do a job, and give what came of it as plain records: the version, and a fit each model."""
    where = {"repeat": job.repeat, "size": job.size, "version": job.version}
    parts = split(material, request, job.repeat, job.size)
    _require_rows(parts, request, job)
    try:
        version = make_version(material, request, job.version, parts, job.repeat, job.size)
    except Infeasible as impossible:
        return [{"kind": "version", **where, "failed": str(impossible)}]
    train, own = part_for_test(material, request, version, job.repeat, job.size)
    _require_labels(material, train, own, job)
    records: list[dict[str, Any]] = [
        {
            "kind": "version",
            **where,
            "failed": None,
            "need": version.need,
            "found": version.found,
            "lacks": [list(lack) for lack in version.lacks],
            "cells": _sparse(version.cells),
            "train": _sparse(np.bincount(material.cells[train], minlength=len(version.cells))),
            "test": len(parts.test),
            "own": len(own),
        }
    ]
    tests = {"own": own, "untouched": parts.test}
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1):  # jobs run side by side; and sums come in one order everywhere
        fits = _fits(material, request, version, train, tests, job)
    return records + [
        {"kind": "fit", **where, "model": m.name, "settings": key_of(m.settings), **fit}
        for m, fit in fits
    ]


def _fits(
    material: Material,
    request: EvaluationRequest,
    version: Version,
    train: Rows,
    tests: dict[str, Rows],
    job: Job,
) -> list[tuple[Model, dict[str, Any]]]:
    transformer = material.features.transformer()
    values = material.features.values
    with warnings.catch_warnings():
        # A name that no training row has is told as a rare one; a part may lack a value's column.
        warnings.simplefilter("ignore")
        seen = transformer.fit_transform(values[train])
        shown = {name: transformer.transform(values[rows]) for name, rows in tests.items()}
    weights = _weights(material, train) if version.is_weighed else None
    seed = _seed(request.seed, job.repeat)
    fits = []
    for model in job.models:
        if weights is not None and not model.takes_weights:
            continue
        estimator, settled = _trained(model, seed, seen, material.label[train], weights, job)
        outcomes = {
            name: _outcomes(material, rows, estimator.predict(shown[name]))
            for name, rows in tests.items()
        }
        fits.append((model, {"settled": settled, **outcomes}))
    return fits


def _trained(
    model: Model, seed: int, seen: Any, label: Rows, weights: Any, job: Job
) -> tuple[Any, bool]:
    """Train a model, and tell whether it came to an end by itself."""
    from sklearn.exceptions import ConvergenceWarning

    estimator = model.make(seed)
    given = {} if weights is None else {"sample_weight": weights}
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        try:
            estimator.fit(seen, label, **given)
        except ValueError as error:
            what = VERSIONS.get(job.version, f"the table {job.version}")
            raise InputError(
                f"{model.name} cannot be trained on version {job.version} ({what}) of repeat "
                f"{job.repeat + 1}: {' '.join(str(error).split())}; take a larger sample, or "
                "another model."
            ) from error
    return estimator, not any(issubclass(w.category, ConvergenceWarning) for w in said)


def _require_rows(parts: Split, request: EvaluationRequest, job: Job) -> None:
    found = {"test": parts.test, "sample": parts.sample, "pool": parts.pool}
    for name, rows in found.items():
        if not len(rows) and not (name == "pool" and request.is_of_two):
            raise InputError(
                f"the {name} has no rows in repeat {job.repeat + 1}: a test of {request.test:g} %"
                + ("" if request.is_of_two else f", a sample of {job.size:g} %")
                + " and rows that stay together leave none; choose other shares, or a larger table."
            )


def _require_labels(material: Material, train: Rows, own: Rows, job: Job) -> None:
    if not len(own) or not len(train):
        raise InputError(
            f"version {job.version} has too few rows in repeat {job.repeat + 1} to train on some and "
            "test on others; take a larger sample."
        )
    there = np.unique(material.label[train])
    if len(there) < 2:
        held = material.labels[there[0]] if len(there) else "none"
        size = f" and a sample of {job.size:g} %" if job.size else ""
        raise InputError(
            f"after the split the training part has one label only ({held}), in repeat "
            f"{job.repeat + 1} with version {job.version}{size}; take a larger sample."
        )


def _weights(material: Material, train: Rows) -> NDArray[np.float64]:
    """Weigh the training rows; those that lack a sensitive value keep the weight 1."""
    counts = material.count(train)
    lines = {tuple(codes): line for line, codes in enumerate(counts.codes.tolist())}
    table = np.ones(len(material.counts.rows))
    weights = cell_weights(counts)
    for cell, codes in enumerate(material.counts.codes.tolist()):
        if tuple(codes) in lines:
            table[cell] = weights[lines[tuple(codes)]]
    return table[material.cells[train]]


def _outcomes(material: Material, rows: Rows, predicted: Any) -> list[list[int]]:
    """Count tested rows by group, label and prediction; cells without rows are left out."""
    shape = (len(material.groups), len(material.labels), len(material.labels))
    place = np.ravel_multi_index(
        (material.group[rows], material.label[rows], np.asarray(predicted, np.int64)), shape
    )
    counts = np.bincount(place)
    there = np.flatnonzero(counts)
    return [[*map(int, np.unravel_index(p, shape)), int(counts[p])] for p in there]


def _sparse(cells: Sequence[int] | Rows) -> list[list[int]]:
    return [[c, int(cells[c])] for c in np.flatnonzero(cells).tolist()]


def _seed(*numbers: int) -> int:
    return int(np.random.SeedSequence(numbers).generate_state(1)[0]) % _LARGEST_SEED
