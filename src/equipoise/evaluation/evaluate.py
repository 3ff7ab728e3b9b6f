"""From tables to an evaluation: read the rows, do the work, say what came out."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from equipoise.engines.base import Engine
from equipoise.engines.sources import Source
from equipoise.errors import InputError
from equipoise.evaluation.evaluation import Evaluation
from equipoise.evaluation.request import EvaluationRequest
from equipoise.evaluation.study.summary import positive_of, summarize_study
from equipoise.evaluation.training.empty_cells import require_repairable
from equipoise.evaluation.training.material import prepare
from equipoise.evaluation.training.models import choose_models
from equipoise.evaluation.training.run import run
from equipoise.progress import Reporter, silent

if TYPE_CHECKING:
    import pyarrow as pa

    from equipoise.counts import CountRequest


@dataclass(frozen=True, kw_only=True)
class StudyRequest:
    """One table, or two, and what to do with them.

    Attributes
    ----------
    source, after
        The table; and if two are compared, the second.
    request
        What is asked for.
    models
        Names of models, or a mapping of names to estimators.
    title, paper
        What pages call the table; and which study of the paper it is, if it is one.
    """

    source: Source
    request: EvaluationRequest
    after: Source | None = None
    models: str | Sequence[str] | Mapping[str, Any] = ("gbdt", "logistic")
    title: str | None = None
    paper: str | None = None


def evaluate(
    wanted: Sequence[StudyRequest],
    engine: Engine,
    *,
    jobs: int | None = None,
    runs: str | os.PathLike[str] | None = None,
    is_paper: bool = False,
    progress: Reporter = silent,
) -> Evaluation:
    """Train and test models on versions of tables.

    Parameters
    ----------
    wanted
        The tables, and what to do with each.
    engine
        Reads the rows.
    jobs
        How many cores to use; all if not given.
    runs
        The file of finished work, to go on with.
    is_paper
        Whether these are the data and models of the paper.
    progress
        Is told how far the work is.
    """
    studies = []
    for place, each in enumerate(wanted):
        models = choose_models(each.models)  # before any rows are read, since names may be wrong
        counting = each.request.counting
        material = prepare(
            read_rows(each.source, counting, engine),
            each.request,
            name=each.source.name,
            after=None if each.after is None else read_rows(each.after, counting, engine),
        )
        title = each.title
        if each.after is not None:
            title = f"{each.source.name} and {each.after.name}"
        # Before any model is trained, since these may be wrong.
        positive_of(material, each.request)
        require_repairable(material, each.request)
        records = run(
            material,
            each.request,
            models,
            jobs=jobs,
            path=runs,
            progress=_part(progress, place, len(wanted)),
        )
        told = summarize_study(
            material, each.request, models, records, title=title, paper=each.paper
        )
        studies.append({**told, "reading": each.source.reading.to_dict()})
    return Evaluation(studies=tuple(studies), is_paper=is_paper)


def _part(progress: Reporter, place: int, parts: int) -> Reporter:
    def report(title: str, share: float) -> None:
        progress(title, (place + share) / parts)

    return report


def read_rows(source: Source, counting: CountRequest, engine: Engine) -> pa.Table:
    """Read all rows of a table, with all columns."""
    if counting.count is not None or counting.weight is not None:
        given = counting.count or counting.weight
        raise InputError(
            f"models are trained on rows, one each; give the rows themselves, without {given!r}."
        )
    counts = engine.counts(source, counting)
    return engine.rows(source, counting, counts - counts, rest=True)
