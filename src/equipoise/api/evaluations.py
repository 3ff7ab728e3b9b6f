"""Train and test models before and after a repair; compare methods of treating missing values."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Unpack

from equipoise.api.keywords import takes
from equipoise.api.measurement import COUNTING
from equipoise.api.tables import asked_table, take_engine
from equipoise.errors import InputError
from equipoise.options import take
from equipoise.options.count import RunOptions
from equipoise.options.evaluation import EvaluationOptions, FeatureOptions, RunningOptions
from equipoise.progress import Reporter, silent

if TYPE_CHECKING:
    from equipoise.evaluation.evaluation import Evaluation
    from equipoise.evaluation.missing.comparison import MissingValues
    from equipoise.evaluation.missing.mechanisms import Mechanism
    from equipoise.evaluation.missing.simulation import MissingSimulation
    from equipoise.options.keywords import CountKeywords, EvaluateKeywords, PaperKeywords


@takes(RunningOptions, FeatureOptions, EvaluationOptions, *COUNTING)
def evaluate(
    data: Any,
    after: Any = None,
    *,
    sensitive_features: Any = None,
    label: str | None = None,
    progress: Reporter = silent,
    **options: Unpack[EvaluateKeywords],
) -> Evaluation:
    """Train and test models on a table as it is and on repaired versions of it, repeatedly.

    Each repeat holds out a test set, draws an initial sample, and repairs it with real rows of
    the remaining table, with label frequencies kept (p) and free (n). Every version is sampled
    down to the size of the initial sample. Models are trained on a part of it, and tested on the
    other part and on the held-out test set.

    Parameters
    ----------
    data, sensitive_features, label, progress
        Table and its columns, as in :func:`count`.
    after
        Second table, such as a repair of the first. The two are compared, and no versions are
        made. Its rows that are also in the test set of the first table are left out.
    **options
        What is run, the features, how models are trained and tested, and how the table is
        counted; see Other Parameters. ``models`` may also be a mapping of names to scikit-learn
        classifiers.

    Examples
    --------
    >>> result = evaluate(
    ...     "adult",
    ...     sensitive_features=["sex"],
    ...     label="income",
    ...     models="logistic",
    ...     versions=["u", "p"],
    ...     repeats=2,
    ...     max_rows=2000,
    ...     jobs=1,
    ... )
    >>> before, after = (t["ub"][0] for t in result.studies[0]["tables"])
    >>> before > 0.4, after < 0.1
    (True, True)
    """
    from equipoise.datasets.lookup import locate_pool
    from equipoise.evaluation import evaluate as work
    from equipoise.evaluation.request import AFTER, BEFORE, VERSIONS, EvaluationRequest

    is_of_two = after is not None
    running, given = take(RunningOptions, options)
    if is_of_two and (running.versions is not None or running.sample is not None):
        raise InputError(
            "two tables are compared as they are; leave out `versions` and `sample`, which apply to one table."
        )
    features, given = take(FeatureOptions, given)
    asked, given = take(EvaluationOptions, given)
    source, counting, engine = asked_table(
        data, sensitive_features, label, given, progress, whole=True
    )
    request = EvaluationRequest(
        counting=counting,
        reading=features,
        versions=(BEFORE, AFTER) if is_of_two else tuple(running.versions or VERSIONS),
        sizes=(0.0,) if is_of_two else _percents(running.sample) or (20.0,),
        **_quickly(asked, running),
    )
    # Not running.models: None lets the evaluation choose, and a mapping must stay one.
    wanted = work.StudyRequest(
        source=source,
        after=locate_pool(after, source.reading) if is_of_two else None,
        request=request,
        models=options.get("models"),
    )
    return work.evaluate([wanted], engine, jobs=running.jobs, runs=running.runs, progress=progress)


@takes(RunningOptions, EvaluationOptions, RunOptions, but=("also", "keep_together"), models="all")
def evaluate_paper(
    *,
    studies: Sequence[str] = ("adult", "credit", "compas"),
    compas: str | os.PathLike[str] | None = None,
    progress: Reporter = silent,
    **options: Unpack[PaperKeywords],
) -> Evaluation:
    """Run the paper's evaluation: Adult, Default and COMPAS with its ternary label, six models.

    Parameters
    ----------
    studies
        Data sets to use: ``adult``, ``credit``, ``compas``.
    compas
        Path of the raw COMPAS scores (compas-scores-raw.csv). By default the data set
        ``compas-two-years``, which ``equipoise data fetch`` downloads.
    progress
        Progress callback.
    **options
        Options of :func:`evaluate`, except for those that name columns or describe how a table is
        counted. By default all six models, or two with ``quick``, and the samples of the
        documentation.
    """
    from equipoise.datasets.lookup import locate
    from equipoise.evaluation import evaluate as work
    from equipoise.evaluation import paper

    running, given = take(RunningOptions, options)
    engine, given = take_engine(given, progress)
    asked, _ = take(EvaluationOptions, given)
    if compas is not None:
        columns = [column.name for column in engine.schema(locate(compas))]
        paper.require_raw(columns, os.fspath(compas))
    models: Any = options.get("models", "all")
    if models == "all" and running.quick:
        models = None
    versions = {} if running.versions is None else {"versions": running.versions}
    wanted = paper.paper_studies(
        studies,
        compas=compas,
        models=tuple(models.split(",")) if isinstance(models, str) else models,
        sizes=_percents(running.sample) or ((20.0,) if running.quick else None),
        **versions,
        **{k: v for k, v in _quickly(asked, running).items() if k not in ("also", "keep_together")},
    )
    return work.evaluate(
        wanted, engine, jobs=running.jobs, runs=running.runs, is_paper=True, progress=progress
    )


def _percents(sample: Any) -> tuple[float, ...]:
    if sample is None:
        return ()
    return tuple(map(float, [sample] if isinstance(sample, (int, float)) else sample))


def _quickly(asked: EvaluationOptions, running: RunningOptions) -> dict[str, Any]:
    """Fill in defaults; a quick evaluation has few rows and repeats."""
    usual = 3 if running.quick else 20
    return {
        **vars(asked),
        "max_rows": asked.max_rows or (10_000 if running.quick else None),
        "repeats": usual if running.repeats is None else running.repeats,
    }


@takes(*COUNTING)
def compare_missing(
    data: Any,
    *,
    sensitive_features: Any = None,
    label: str | None = None,
    methods: str | Sequence[str] = "all",
    min_count: int = 30,
    seed: int = 0,
    max_rows: int | None = None,
    treat_label: bool = False,
    progress: Reporter = silent,
    **options: Unpack[CountKeywords],
) -> MissingValues:
    """Compare how methods of treating missing values change the Uniform Bias of a table.

    Parameters
    ----------
    data, sensitive_features, label
        Table and its columns, as in :func:`count`.
    methods
        Names among ``group``, ``drop``, ``most_frequent``, ``knn``, ``iterative``,
        ``iterative_drawn`` and ``iterative_blind``, or ``"all"``.
    min_count
        Minimum number of rows of a group under every method.
    seed, max_rows
        Seed of the random choices, and maximum number of rows. A larger table is sampled down.
    treat_label
        Whether the methods treat missing labels like missing sensitive values. By default
        ``missing_label`` decides: rows without a label are left out (``"drop"``), get a
        separate label (``"group"``), or are an error (``"raise"``).
    progress
        Progress callback.
    **options
        Options of :func:`count`, such as ``na`` and ``missing_label``.

    Examples
    --------
    >>> people = {
    ...     "sex": ["w", "m", None, "w", "m"] * 40,
    ...     "age": list(range(200)),
    ...     "hired": ["yes", "no", "yes", "no", "yes"] * 40,
    ... }
    >>> compared = compare_missing(
    ...     people, sensitive_features=["sex"], label="hired", methods="group,drop"
    ... )
    >>> compared.incomplete
    40
    """
    from equipoise.evaluation.missing import comparison
    from equipoise.evaluation.reading import read_rows

    source, counting, engine = asked_table(
        data, sensitive_features, label, options, progress, whole=True
    )
    # Rows without a label that are left out, are so before rows are drawn.
    is_left_out = not treat_label and counting.missing_label == "drop"
    present = [counting.label] if is_left_out else []
    read = read_rows(source, counting, engine, max_rows=max_rows, seed=seed, present=present)
    found = comparison.compare_missing(
        read.rows,
        counting,
        methods=methods,
        min_count=min_count,
        seed=seed,
        max_rows=max_rows,
        treat_label=treat_label,
        without_label=read.without_label,
        progress=progress,
    )
    return replace(found, reading=source.reading, table_rows=read.given)


@takes(*COUNTING)
def simulate_missing(
    data: Any,
    *,
    sensitive_features: Any = None,
    label: str | None = None,
    column: str | None = None,
    share: float = 0.2,
    mechanism: Mechanism = "random",
    repeats: int = 5,
    methods: str | Sequence[str] = "all",
    min_count: int = 30,
    seed: int = 0,
    max_rows: int | None = 10_000,
    progress: Reporter = silent,
    **options: Unpack[CountKeywords],
) -> MissingSimulation:
    """Remove values from a table, and compare methods of treating missing values with the truth.

    Parameters
    ----------
    data, sensitive_features, label
        Table and its columns, as in :func:`count`.
    column
        Column that values are removed from. By default the first sensitive attribute.
    share
        Share of its values to remove.
    mechanism
        Whether values are removed at ``"random"``, or more often from rows of one label
        (``"by_label"``) or of one value of the column (``"by_value"``).
    repeats
        Number of repeats.
    methods, min_count, seed, max_rows, progress
        As in :func:`compare_missing`.
    **options
        Options of :func:`count`.
    """
    from equipoise.evaluation.missing import simulation
    from equipoise.evaluation.reading import read_rows

    source, counting, engine = asked_table(
        data, sensitive_features, label, options, progress, whole=True
    )
    present = counting.sensitive if counting.missing_label == "group" else counting.columns
    read = read_rows(source, counting, engine, max_rows=max_rows, seed=seed, present=present)
    found = simulation.simulate_missing(
        read.rows,
        counting,
        column=column,
        share=share,
        mechanism=mechanism,
        repeats=repeats,
        methods=methods,
        min_count=min_count,
        seed=seed,
        max_rows=max_rows,
        without_label=read.without_label,
        incomplete=read.incomplete,
        progress=progress,
    )
    return replace(found, reading=source.reading, table_rows=read.given)
