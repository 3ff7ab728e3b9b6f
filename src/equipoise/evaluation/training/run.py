"""All jobs of an evaluation, in parallel, each stored as soon as it is finished."""

from __future__ import annotations

import functools
import itertools
import os
import threading
import time
from collections.abc import Iterator, Sequence
from typing import Any

from equipoise.errors import EquipoiseError
from equipoise.evaluation.request import BASELINES, EvaluationRequest
from equipoise.evaluation.training.features import refuse_missing
from equipoise.evaluation.training.job import Job, run_job
from equipoise.evaluation.training.material import Material
from equipoise.evaluation.training.models import Model
from equipoise.evaluation.training.run_store import RunStore, key_of
from equipoise.progress import Reporter, silent

_Records = list[dict[str, Any]]

# To save time, baselines are trained for two models only: for these if they are requested.
_BASELINE_MODELS = ("gbdt", "logistic")

# Goes up when the same request gives other numbers, so that stored fits of both are never mixed.
_PROTOCOL = 2


class Interrupted(EquipoiseError):
    """Work that the user stopped; finished fits are kept if there is a file for them."""

    exit_code = 130


def run(
    material: Material,
    request: EvaluationRequest,
    models: Sequence[Model],
    *,
    jobs: int | None = None,
    path: str | os.PathLike[str] | None = None,
    progress: Reporter = silent,
) -> _Records:
    """Train and test everything that is not done yet, and return the records of all fits.

    Finished fits are stored in the file ``path``, which is created or continued.
    """
    refuse_missing(material.features, models)
    models_of = {v: _models_for(v, models) for v in request.chosen}
    store = RunStore(path, _key(material, request))
    wanted = list(_jobs_left(request, models_of, store))
    fits, done = sum(len(job.models) for job in wanted), 0
    title = f"training models on {material.name}"
    try:
        progress(title, 0.0)
        for job, records in _results(material, request, wanted, jobs or os.cpu_count() or 1):
            store.add(records)
            done += len(job.models)
            progress(title, done / max(1, fits))
    except KeyboardInterrupt:
        raise Interrupted(_interruption(done, fits, path)) from None
    return _asked_for(store, request, models_of)


def _key(material: Material, request: EvaluationRequest) -> str:
    import numpy as np
    import sklearn

    versions = {"numpy": np.__version__, "scikit-learn": sklearn.__version__}
    return key_of(_PROTOCOL, material.fingerprint, request.deciding(), versions)


def _models_for(version: str, models: Sequence[Model]) -> tuple[Model, ...]:
    if version not in BASELINES:
        return tuple(models)
    first = [m for m in models if m.name in _BASELINE_MODELS]
    few = [*first, *(m for m in models if m not in first)][: len(_BASELINE_MODELS)]
    return tuple(m for m in few if m.takes_weights or version != "reweighed")


def _jobs_left(
    request: EvaluationRequest, models_of: dict[str, tuple[Model, ...]], store: RunStore
) -> Iterator[Job]:
    """List what is still to be done, repeat by repeat, so that early results cover everything."""
    for repeat, size in itertools.product(range(request.repeats), request.sizes):
        for version, models in models_of.items():
            left = tuple(m for m in models if not store.has(repeat, size, version, m))
            if left:
                yield Job(repeat, size, version, left)


def _results(
    material: Material, request: EvaluationRequest, wanted: Sequence[Job], jobs: int
) -> Iterator[tuple[Job, _Records]]:
    if jobs == 1 or len(wanted) < 2:
        for job in wanted:
            yield job, run_job(material, request, job)
        return
    from joblib import Parallel, delayed

    pool = Parallel(n_jobs=jobs, return_as="generator_unordered", inner_max_num_threads=1)
    here = os.getpid()
    yield from pool(delayed(_in_worker)(here, material, request, job) for job in wanted)


def _in_worker(
    parent: int, material: Material, request: EvaluationRequest, job: Job
) -> tuple[Job, _Records]:
    _end_with(parent)
    return job, run_job(material, request, job)


@functools.cache  # once for each worker
def _end_with(parent: int) -> None:
    """End this process when its parent is gone; a killed parent cannot say so."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(1)
        os._exit(1)

    if os.getppid() == parent:
        threading.Thread(target=watch, daemon=True).start()


def _interruption(done: int, fits: int, path: str | os.PathLike[str] | None) -> str:
    if not done:
        return f"interrupted before the first of {fits:,} fits was finished."
    if path is None:
        return (
            f"interrupted after {done:,} of {fits:,} fits; none was kept, since no file was named "
            "for them with `runs` or `output`."
        )
    return (
        f"interrupted after {done:,} of {fits:,} fits; they are kept in {os.fspath(path)}, and the "
        "same command continues from there."
    )


def _asked_for(
    store: RunStore, request: EvaluationRequest, models_of: dict[str, tuple[Model, ...]]
) -> _Records:
    """Leave out stored records beyond the present request."""
    names = {version: {m.name for m in models} for version, models in models_of.items()}
    return [
        record
        for record in store.records()
        if record["repeat"] < request.repeats
        and record["size"] in request.sizes
        and record["version"] in names
        and (record["kind"] == "version" or record["model"] in names[record["version"]])
    ]
