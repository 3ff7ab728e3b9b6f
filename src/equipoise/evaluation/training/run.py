"""All the work of an evaluation: side by side on the cores there are, kept as it is done."""

from __future__ import annotations

import functools
import os
import threading
import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from equipoise.errors import EquipoiseError
from equipoise.evaluation.request import BASELINES, EvaluationRequest
from equipoise.evaluation.training.features import refuse_missing
from equipoise.evaluation.training.job import Job, do
from equipoise.evaluation.training.models import Model
from equipoise.evaluation.training.run_store import RunStore, key_of
from equipoise.progress import Reporter, silent

if TYPE_CHECKING:
    from equipoise.evaluation.training.material import Material


BASELINE_MODELS = 2
"""For so many models the baselines are run, too."""

PROTOCOL = 2
"""Goes up when the same request comes to other numbers, so that finished work is not mixed."""


class Interrupted(EquipoiseError):
    """Work that was stopped by the user; what was finished is kept if there is a file for it."""

    exit_code = 130


def run(
    material: Material,
    request: EvaluationRequest,
    models: Sequence[Model],
    *,
    jobs: int | None = None,
    path: str | os.PathLike[str] | None = None,
    progress: Reporter = silent,
) -> list[dict[str, Any]]:
    """Train and test all that is asked for and not done yet; give the records of all.

    Parameters
    ----------
    material, request, models
        The rows, what is asked for, and the models it names.
    jobs
        How many cores to use; all if not given.
    path
        The file of finished work; it is made, or gone on with.
    progress
        Is told how far the work is.

    Raises
    ------
    Interrupted
        On Ctrl-C.
    """
    refuse_missing(material.features, models)
    runs = RunStore(path, _key(material, request))
    wanted = list(_jobs(request, models, runs))
    fits = sum(len(job.models) for job in wanted)
    done = 0
    title = f"training models on {material.name}"
    try:
        progress(title, 0.0)
        for job, records in _results(material, request, wanted, jobs or os.cpu_count() or 1):
            runs.add(records)
            done += len(job.models)
            progress(title, done / max(1, fits))
    except KeyboardInterrupt:
        raise Interrupted(_said(done, fits, path)) from None
    return _asked_for(runs, request, models)


def _key(material: Material, request: EvaluationRequest) -> str:
    import numpy as np
    import sklearn

    versions = {"numpy": np.__version__, "scikit-learn": sklearn.__version__}
    return key_of(PROTOCOL, material.fingerprint, request.deciding(), versions)


def _jobs(request: EvaluationRequest, models: Sequence[Model], runs: RunStore) -> Iterator[Job]:
    """List what is still to be done, repeat by repeat."""
    for repeat in range(request.repeats):
        for size in request.sizes:
            for version in request.chosen:
                left = tuple(
                    model
                    for model in _models_for(version, request, models)
                    if not runs.has(repeat, size, version, model)
                )
                if left:
                    yield Job(repeat, size, version, left)


def _models_for(
    version: str, request: EvaluationRequest, models: Sequence[Model]
) -> tuple[Model, ...]:
    if version not in BASELINES:
        return tuple(models)
    first = [m for m in models if m.name in request.baseline_models]
    few = [*first, *(m for m in models if m not in first)][:BASELINE_MODELS]
    return tuple(m for m in few if m.takes_weights or version != "reweighed")


def _results(
    material: Material, request: EvaluationRequest, wanted: Sequence[Job], jobs: int
) -> Iterator[tuple[Job, list[dict[str, Any]]]]:
    if jobs == 1 or len(wanted) < 2:
        for job in wanted:
            yield job, do(material, request, job)
        return
    from joblib import Parallel, delayed

    pool = Parallel(n_jobs=jobs, return_as="generator_unordered", inner_max_num_threads=1)
    here = os.getpid()
    yield from pool(delayed(_in_worker)(here, material, request, job) for job in wanted)


def _in_worker(
    parent: int, material: Material, request: EvaluationRequest, job: Job
) -> tuple[Job, list[dict[str, Any]]]:
    _end_with(parent)
    return job, do(material, request, job)


@functools.cache  # once for each worker
def _end_with(parent: int) -> None:
    """End this process when the one it works for is gone; a killed one cannot say so."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(1)
        os._exit(1)

    if os.getppid() == parent:
        threading.Thread(target=watch, daemon=True).start()


def _said(done: int, fits: int, path: str | os.PathLike[str] | None) -> str:
    if not done:
        return f"interrupted before the first of {fits:,} fits was finished."
    if path is None:
        return (
            f"interrupted after {done:,} of {fits:,} fits; nothing was kept, since no file was "
            "named for it (--runs, or -o)."
        )
    return (
        f"interrupted after {done:,} of {fits:,} fits; they are kept in {os.fspath(path)}, and the "
        "same command goes on from there."
    )


def _asked_for(
    runs: RunStore, request: EvaluationRequest, models: Sequence[Model]
) -> list[dict[str, Any]]:
    """Leave out what the file has beyond what was asked for now."""
    names = {v: {m.name for m in _models_for(v, request, models)} for v in request.chosen}
    return [
        record
        for record in runs.records()
        if record["repeat"] < request.repeats
        and record["size"] in request.sizes
        and record["version"] in names
        and (record["kind"] == "version" or record["model"] in names[record["version"]])
    ]
