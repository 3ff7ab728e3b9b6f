"""Train and test models before and after a repair; compare methods of treating missing values."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Unpack

from equipoise.api.columns import require_named
from equipoise.api.measurement import column_names
from equipoise.counts import CountRequest, Reading
from equipoise.errors import InputError
from equipoise.options.keywords import CountKeywords, EvaluateKeywords, PaperKeywords
from equipoise.progress import Reporter, silent

if TYPE_CHECKING:
    import pyarrow as pa

    from equipoise.engines.base import Engine
    from equipoise.evaluation.evaluation import Evaluation
    from equipoise.evaluation.missing.comparison import MissingValues
    from equipoise.evaluation.missing.mechanisms import Mechanism
    from equipoise.evaluation.missing.simulation import MissingSimulation


def evaluate(
    data: Any,
    after: Any = None,
    *,
    sensitive_features: Any = None,
    label: str | None = None,
    models: str | Sequence[str] | Mapping[str, Any] | None = None,
    versions: Sequence[str] | None = None,
    sample: float | Sequence[float] | None = None,
    repeats: int | None = None,
    drop: Sequence[str] = (),
    categorical: Sequence[str] = (),
    impute: str = "none",
    also: Sequence[str] = (),
    quick: bool = False,
    jobs: int | None = None,
    runs: str | os.PathLike[str] | None = None,
    progress: Reporter = silent,
    **keywords: Unpack[EvaluateKeywords],
) -> Evaluation:
    """Train and test models on a table as it is and on repaired versions of it, repeatedly.

    Each repeat holds out a test set, draws an initial sample, and repairs it with real rows of
    the remaining table, with label frequencies kept (p) and free (n). Every version is sampled
    down to the size of the initial sample. Models are trained on a part of it, and tested on the
    other part and on the held-out test set.

    Parameters
    ----------
    data, sensitive_features, label
        Table and its columns, as in :func:`count`.
    after
        Second table, such as a repair of the first. The two are compared, and no versions are
        made. Its rows that are also in the test set of the first table are left out.
    models
        Names among ``random_forest``, ``gbdt``, ``extra_trees``, ``adaboost``, ``mlp`` and
        ``logistic``, ``"all"``, or a mapping of names to scikit-learn classifiers. By default
        ``gbdt`` and ``logistic``.
    versions
        Versions to train on: ``u`` (as it is; always included), ``p``, ``n``, ``reweighed``,
        ``deleted`` and ``duplicated``. By default all. The last three are run for two models.
    sample
        One or more sizes of the initial sample, in percent of the table. By default 20.
    repeats
        Number of repeats. By default 20, or 3 with ``quick``.
    drop, categorical
        Columns that are not used as features, and numeric columns whose values are categories.
    impute
        Imputation of missing numbers by a statistic of the training rows: ``"none"``,
        ``"median"``, ``"mean"`` or ``"most_frequent"``.
    also
        Additional attributes to report results by. They are not repaired.
    quick
        Whether to run a quick evaluation with few repeats and at most 10,000 rows.
    jobs
        Number of models to train at once. By default one per core.
    runs
        File that keeps finished work, so that an interrupted evaluation can continue.
    progress
        Progress callback.
    **keywords
        Other options of :class:`~equipoise.options.evaluation.EvaluationOptions`, such as ``seed``
        and ``tolerance``, and the reading options of :func:`count`.

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
    options: dict[str, Any] = dict(keywords)
    from equipoise.datasets.lookup import locate, locate_pool
    from equipoise.engines.sources import READING
    from equipoise.evaluation import evaluate as work
    from equipoise.evaluation.request import (
        AFTER,
        BEFORE,
        VERSIONS,
        EvaluationRequest,
    )
    from equipoise.options.evaluation import FeatureOptions

    if after is not None and (versions is not None or sample is not None):
        raise InputError(
            "two tables are compared as they are; leave out `versions` and `sample`, which apply to one table."
        )
    asked = {
        k: options.pop(k) for k in list(options) if k in EvaluationRequest.__dataclass_fields__
    }
    reading = {k: options.pop(k, None) for k in READING}
    engine = _engine(options, progress)
    require_named(data, sensitive_features, label, engine=engine, **reading)
    request = EvaluationRequest(
        counting=_counting(sensitive_features, label, options),
        reading=FeatureOptions(drop=tuple(drop), categorical=tuple(categorical), impute=impute),  # type: ignore[arg-type]
        also=tuple(also),
        versions=(BEFORE, AFTER) if after is not None else tuple(versions or VERSIONS),
        sizes=(0.0,) if after is not None else _percents(20.0 if sample is None else sample),
        **_quickly(asked, repeats, quick=quick),
    )
    source = engine.settled(locate(data, **reading))
    wanted = work.StudyRequest(
        source=source,
        after=None if after is None else locate_pool(after, source.reading),
        request=request,
        models=models,
    )
    return work.evaluate([wanted], engine, jobs=jobs, runs=runs, progress=progress)


def evaluate_paper(
    *,
    studies: Sequence[str] = ("adult", "credit", "compas"),
    compas: str | os.PathLike[str] | None = None,
    models: str | Sequence[str] | Mapping[str, Any] | None = "all",
    sample: float | Sequence[float] | None = None,
    repeats: int | None = None,
    quick: bool = False,
    jobs: int | None = None,
    runs: str | os.PathLike[str] | None = None,
    progress: Reporter = silent,
    **keywords: Unpack[PaperKeywords],
) -> Evaluation:
    """Run the paper's evaluation: Adult, Default and COMPAS with its ternary label, six models.

    Parameters
    ----------
    studies
        Data sets to use: ``adult``, ``credit``, ``compas``.
    compas
        Path of the raw COMPAS scores (compas-scores-raw.csv). By default the data set
        ``compas-two-years``, which ``equipoise data fetch`` downloads.
    models, sample, repeats, quick, jobs, runs, progress
        As in :func:`evaluate`. By default all six models, and the samples of the documentation.
    **keywords
        Other options, as in :func:`evaluate`.
    """
    options: dict[str, Any] = dict(keywords)
    from equipoise.datasets.lookup import locate
    from equipoise.evaluation import evaluate as work
    from equipoise.evaluation import paper

    engine = _engine(options, progress)
    if compas is not None:
        columns = [column.name for column in engine.schema(locate(compas))]
        paper.require_raw(columns, os.fspath(compas))
    if models == "all" and quick:
        models = None
    if quick and sample is None:
        sample = 20.0
    wanted = paper.paper_studies(
        studies,
        compas=compas,
        models=tuple(models.split(",")) if isinstance(models, str) else models,
        sizes=None if sample is None else _percents(sample),
        **_quickly(options, repeats, quick=quick),
    )
    return work.evaluate(wanted, engine, jobs=jobs, runs=runs, is_paper=True, progress=progress)


def _percents(sample: float | Sequence[float]) -> tuple[float, ...]:
    given = [sample] if isinstance(sample, (int, float)) else list(sample)
    return tuple(float(size) for size in given)


def _quickly(asked: Mapping[str, Any], repeats: int | None, *, quick: bool) -> dict[str, Any]:
    """Fill in defaults; a quick evaluation has few rows and repeats."""
    most = asked.get("max_rows") or (10_000 if quick else None)
    usual = 3 if quick else 20
    return {**asked, "max_rows": most, "repeats": usual if repeats is None else repeats}


def _counting(sensitive_features: Any, label: Any, options: dict[str, Any]) -> CountRequest:
    """Make a request of the options that are left, all of which are about counting."""
    na = options.get("na") or ()
    given = {**options, "na": (na,) if isinstance(na, str) else tuple(na)}
    return CountRequest(sensitive=column_names(sensitive_features), label=label, **given)


def _engine(options: dict[str, Any], progress: Reporter) -> Engine:
    """Take the engine out of the options, or start the default one."""
    given = {k: options.pop(k, None) for k in ("engine", "threads", "memory")}
    if given["engine"] is not None:
        engine: Engine = given["engine"]
        return engine
    from equipoise.engines.duckdb import shared_engine

    return shared_engine(given["threads"], given["memory"], progress)


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
    **keywords: Unpack[CountKeywords],
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
        ``missing_label`` decides: rows without a label are left out (``"drop"``), get a label of
        their own (``"group"``), or are an error (``"raise"``).
    progress
        Progress callback.
    **keywords
        Other options of :func:`count`, such as ``na`` and ``missing_label``.

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
    options: dict[str, Any] = dict(keywords)
    from equipoise.evaluation.missing import comparison

    table, counting, reading = _rows(data, sensitive_features, label, options, progress)
    found = comparison.compare_missing(
        table,
        counting,
        methods=methods,
        min_count=min_count,
        seed=seed,
        max_rows=max_rows,
        treat_label=treat_label,
        progress=progress,
    )
    return replace(found, reading=reading)


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
    **keywords: Unpack[CountKeywords],
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
    **keywords
        Other options of :func:`count`.
    """
    options: dict[str, Any] = dict(keywords)
    from equipoise.evaluation.missing import simulation

    table, counting, reading = _rows(data, sensitive_features, label, options, progress)
    found = simulation.simulate_missing(
        table,
        counting,
        column=column,
        share=share,
        mechanism=mechanism,
        repeats=repeats,
        methods=methods,
        min_count=min_count,
        seed=seed,
        max_rows=max_rows,
        progress=progress,
    )
    return replace(found, reading=reading)


def _rows(
    data: Any, sensitive_features: Any, label: Any, options: dict[str, Any], progress: Reporter
) -> tuple[pa.Table, CountRequest, Reading]:
    """Read all rows of a table; also give how they are counted and were read."""
    from equipoise.datasets.lookup import locate
    from equipoise.engines.sources import READING
    from equipoise.evaluation.evaluate import read_rows

    reading = {k: options.pop(k, None) for k in READING}
    engine = _engine(options, progress)
    require_named(data, sensitive_features, label, engine=engine, **reading)
    counting = _counting(sensitive_features, label, options)
    source = engine.settled(locate(data, **reading))
    return read_rows(source, counting, engine), counting, source.reading
