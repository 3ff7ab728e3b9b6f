"""From tables to an evaluation: read the rows, train and test models, and summarize."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from equipoise.engines.base import Engine
from equipoise.engines.sources import Source
from equipoise.evaluation.evaluation import Evaluation
from equipoise.evaluation.reading import ReadRows, in_proportion, read_rows
from equipoise.evaluation.request import EvaluationRequest
from equipoise.evaluation.study.summary import summarize_study
from equipoise.evaluation.training.empty_cells import require_repairable
from equipoise.evaluation.training.material import prepare
from equipoise.evaluation.training.models import choose_models
from equipoise.evaluation.training.run import run
from equipoise.progress import Reporter, silent


@dataclass(frozen=True, kw_only=True)
class StudyRequest:
    """One table, or two to compare, and what to do with them."""

    source: Source
    request: EvaluationRequest
    after: Source | None = None
    models: str | Sequence[str] | Mapping[str, Any] | None = None
    title: str | None = None  # on pages
    paper: str | None = None  # name of the study, if it is one of the paper


def evaluate(
    wanted: Sequence[StudyRequest],
    engine: Engine,
    *,
    jobs: int | None = None,
    runs: str | os.PathLike[str] | None = None,
    is_paper: bool = False,
    progress: Reporter = silent,
) -> Evaluation:
    """Train and test models on versions of tables, one study per table or pair of tables."""
    studies = []
    for place, each in enumerate(wanted):

        def report(title: str, share: float, place: int = place) -> None:
            progress(title, (place + share) / len(wanted))

        studies.append(_study(each, engine, jobs, runs, report))
    return Evaluation(studies=tuple(studies), is_paper=is_paper)


def _study(
    wanted: StudyRequest,
    engine: Engine,
    jobs: int | None,
    runs: str | os.PathLike[str] | None,
    progress: Reporter,
) -> dict[str, Any]:
    # Everything that may be wrong is checked before rows are read, or before models are trained.
    models = choose_models(wanted.models)
    request, source, after = wanted.request, wanted.source, wanted.after
    read = [_read(source, request, engine)]
    if after is not None:
        names = {c.name for c in engine.schema(after)}
        drop = [name for name in request.reading.drop if name in names]
        read.append(_read(after, request, engine, drop))
    rows, *others = in_proportion(read, request.seed)
    material = prepare(rows, request, name=source.name, after=others[0] if others else None)
    material = replace(material, rows_given=sum(table.given for table in read))
    require_repairable(material, request)
    records = run(material, request, models, jobs=jobs, path=runs, progress=progress)
    title = wanted.title if after is None else f"{source.name} and {after.name}"
    study = summarize_study(material, request, models, records, title=title, paper=wanted.paper)
    return {**study, "reading": source.reading.to_dict()}


def _read(
    source: Source,
    request: EvaluationRequest,
    engine: Engine,
    drop: Sequence[str] | None = None,
) -> ReadRows:
    return read_rows(
        source,
        request.counting,
        engine,
        drop=request.reading.drop if drop is None else drop,
        needed=(*request.also, *filter(None, [request.keep_together])),
        max_rows=request.max_rows,
        seed=request.seed,
    )
