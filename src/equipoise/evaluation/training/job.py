"""One job: make a version, train models on it, test them, and count the outcomes."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise.errors import InputError
from equipoise.evaluation.request import VERSIONS, EvaluationRequest
from equipoise.evaluation.training.material import Material
from equipoise.evaluation.training.models import Model
from equipoise.evaluation.training.run_store import key_of
from equipoise.evaluation.training.versions import Split, make_version, part_for_test, split
from equipoise.plans.infeasibility import Infeasible
from equipoise.plans.reweighing import cell_weights

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Rows = NDArray[np.int64]

_LARGEST_SEED = 2**31  # scikit-learn takes seeds below this


@dataclass(frozen=True)
class Job:
    """A repeat, a size of the sample, a version of it, and the models to train on it."""

    repeat: int
    size: float
    version: str
    models: tuple[Model, ...]


def run_job(material: Material, request: EvaluationRequest, job: Job) -> list[dict[str, Any]]:
    """Run a job, and return plain records: one for the version, and one for each fit."""
    where = {"repeat": job.repeat, "size": job.size, "version": job.version}
    parts = split(material, request, job.repeat, job.size)
    _require_rows(parts, request, job)
    try:
        version = make_version(material, request, job.version, parts)
    except Infeasible as impossible:
        return [{"kind": "version", **where, "failed": str(impossible)}]
    train, own = part_for_test(material, request, version, parts)
    _require_labels(material, train, own, job)
    record = {
        "kind": "version",
        **where,
        "failed": None,
        "need": version.need,
        "found": version.found,
        "lacks": [list(lack) for lack in version.lacks],
        "cells": _sparse(version.cells),
        "train": _sparse(material.tally(train)),
        "test": len(parts.test),
        "own": len(own),
    }
    weights = _weights(material, train) if job.version == "reweighed" else None
    # Every version of a repeat gets the same seed, so that their differences are due to the rows.
    seed = int(np.random.SeedSequence((request.seed, job.repeat)).generate_state(1)[0])
    from threadpoolctl import threadpool_limits

    # Jobs run in parallel; and with one thread, sums are added up in one order on every machine.
    with threadpool_limits(1):
        tests = {"own": own, "untouched": parts.test}
        fits = _train_and_test(material, job, train, tests, weights, seed % _LARGEST_SEED)
    return [record, *({"kind": "fit", **where, **fit} for fit in fits)]


def _train_and_test(
    material: Material,
    job: Job,
    train: Rows,
    tests: Mapping[str, Rows],
    weights: NDArray[np.float64] | None,
    seed: int,
) -> list[dict[str, Any]]:
    transformer, values = material.features.transformer(), material.features.values
    with warnings.catch_warnings():
        # Categories that no training row has are expected, and encoded as rare ones; so are
        # columns without any value in a part.
        warnings.simplefilter("ignore")
        seen = transformer.fit_transform(values[train])
        shown = {name: transformer.transform(values[rows]) for name, rows in tests.items()}
    given = {} if weights is None else {"sample_weight": weights}
    fits = []
    for model in job.models:
        estimator = model.make(seed)
        settled = _fit(estimator, model, job, seen, material.label[train], given)
        outcomes = {
            name: _outcomes(material, rows, estimator.predict(shown[name]))
            for name, rows in tests.items()
        }
        settings = key_of(model.settings)
        fits.append({"model": model.name, "settings": settings, "settled": settled, **outcomes})
    return fits


def _fit(
    estimator: Any, model: Model, job: Job, seen: Any, labels: Rows, given: Mapping[str, Any]
) -> bool:
    """Train a model, and tell whether it converged."""
    from sklearn.exceptions import ConvergenceWarning

    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        try:
            estimator.fit(seen, labels, **given)
        except ValueError as error:
            what = VERSIONS.get(job.version, f"the table {job.version}")
            raise InputError(
                f"{model.name} cannot be trained on version {job.version} ({what}) of repeat "
                f"{job.repeat + 1}: {' '.join(str(error).split())}; use a larger sample, or another "
                "model."
            ) from error
    return not any(issubclass(w.category, ConvergenceWarning) for w in said)


def _require_rows(parts: Split, request: EvaluationRequest, job: Job) -> None:
    found = {"test set": parts.test, "sample": parts.sample, "pool": parts.pool}
    for name, rows in found.items():
        if not len(rows) and not (name == "pool" and request.is_of_two):
            raise InputError(
                f"the {name} has no rows in repeat {job.repeat + 1}: a test set of {request.test:g} %"
                + ("" if request.is_of_two else f", a sample of {job.size:g} %")
                + " and rows that stay together leave none; choose other shares, or a larger table."
            )


def _require_labels(material: Material, train: Rows, own: Rows, job: Job) -> None:
    if not len(own) or not len(train):
        raise InputError(
            f"version {job.version} has too few rows in repeat {job.repeat + 1} to train on some and "
            "test on others; use a larger sample."
        )
    there = np.unique(material.label[train])
    if len(there) < 2:
        size = f" and a sample of {job.size:g} %" if job.size else ""
        raise InputError(
            f"after the split the training part has one label only ({material.labels[there[0]]}), in "
            f"repeat {job.repeat + 1} with version {job.version}{size}; use a larger sample."
        )


def _weights(material: Material, train: Rows) -> NDArray[np.float64]:
    """Weight the training rows; those with a missing sensitive value keep the weight 1."""
    counts = material.count(train)
    # By value: a label that no training row has is not in these counts, so codes may differ.
    weights = dict(zip(counts.cells(), cell_weights(counts), strict=True))
    by_cell = [weights.get(cell, 1.0) for cell in material.counts.cells()]
    return np.array(by_cell)[material.cells[train]]


def _outcomes(material: Material, rows: Rows, predicted: Any) -> list[list[int]]:
    """Count tested rows by group, label and prediction; cells without rows are left out."""
    shape = (len(material.groups), len(material.labels), len(material.labels))
    place = np.ravel_multi_index(
        (material.group[rows], material.label[rows], np.asarray(predicted, np.int64)), shape
    )
    counts = np.bincount(place)
    there = np.flatnonzero(counts)
    return [[*map(int, np.unravel_index(p, shape)), int(counts[p])] for p in there]


def _sparse(cells: Rows) -> list[list[int]]:
    return [[c, int(cells[c])] for c in np.flatnonzero(cells).tolist()]
