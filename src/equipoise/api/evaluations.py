"""Train and test models before and after a repair; compare ways to treat missing values."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Unpack

from equipoise.api.columns import require_named
from equipoise.api.measurement import column_names
from equipoise.counts import CountRequest, Reading
from equipoise.errors import InputError, did_you_mean
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
    """Train models on a table as it is and on repaired versions of it, and test both, many times.

    Each repeat sets rows aside for the test, draws an initial sample, and repairs it with real
    rows of what is left: with label frequencies kept (p) and free (n). Every version is drawn
    back to the size of the sample, models are trained on a part of it, and tested on the rest
    and on the rows set aside, which are as the table is.

    Parameters
    ----------
    data, sensitive_features, label
        The table and its columns, as in :func:`count`.
    after
        A second table, such as a repair of the first: the two are compared, and no versions
        are made. Rows of it that are also in the first one's test are left out.
    models
        Names among ``random_forest``, ``gbdt``, ``extra_trees``, ``adaboost``, ``mlp`` and
        ``logistic``, ``"all"``, or a mapping of names to scikit-learn classifiers. By default
        ``gbdt`` and ``logistic``.
    versions
        What to train on: ``u`` (as it is; always), ``p``, ``n``, ``reweighed``, ``deleted`` and
        ``duplicated``; all if not given. The last three are run for two models.
    sample
        The size of the initial sample in percent of the table; one or more. 20 if not given.
    repeats
        How often all is done anew; 20 if not given, 3 if quick.
    drop, categorical
        Columns that are no features, and columns of numbers that are names.
    impute
        What stands for a missing number: ``"none"``, ``"median"``, ``"mean"`` or
        ``"most_frequent"`` of the rows trained on.
    also
        Further attributes to give results by; they are not repaired.
    quick
        A first look: few repeats, and at most 10,000 rows.
    jobs
        How many cores to use; all if not given.
    runs
        A file that keeps finished work, so that an interrupted evaluation goes on.
    progress
        Is told how far the work is.
    **keywords
        Everything else an :class:`~equipoise.evaluation.request.EvaluationRequest` takes:
        ``seed``, ``test``, ``own_test``, ``tolerance``, ``min_group``, ``positive``,
        ``without_sensitive``, ``keep_together``, ``equal_rows``, ``same_size``, ``max_rows``,
        ``confidence``; and
        what :func:`count` takes about reading.

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
        Which of its data sets: ``adult``, ``credit``, ``compas``.
    compas
        The raw file of COMPAS scores (compas-scores-raw.csv), if there is one; the rows of two
        years otherwise, which ``equipoise data fetch compas-two-years`` gets.
    models, sample, repeats, quick, jobs, runs, progress
        As in :func:`evaluate`; all six models, and the samples of the documentation.
    **keywords
        Everything else a request takes, as in :func:`evaluate`.
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
    """Fill in what was not asked for; a quick look has few rows and repeats."""
    most = asked.get("max_rows") or (10_000 if quick else None)
    usual = 3 if quick else 20
    return {**asked, "max_rows": most, "repeats": usual if repeats is None else repeats}


def _counting(sensitive_features: Any, label: Any, options: dict[str, Any]) -> CountRequest:
    """Take how to count out of the options, of which none must be left."""
    names = ("count", "weight", "bins", "na", "missing", "missing_label")
    given = {k: options.pop(k) for k in names if k in options}
    if options:
        name = next(iter(options))
        raise TypeError(f"there is no option {name!r} of an evaluation.{did_you_mean(name, names)}")
    if isinstance(given.get("na"), str):
        given["na"] = (given["na"],)
    given["na"] = tuple(given.get("na") or ())
    return CountRequest(sensitive=column_names(sensitive_features), label=label, **given)


def _engine(options: dict[str, Any], progress: Reporter) -> Engine:
    """Take the engine out of the options, or start the usual one."""
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
    """Compare ways to treat the missing values of a table, on how they move Uniform Bias.

    Parameters
    ----------
    data, sensitive_features, label
        The table and its columns, as in :func:`count`.
    methods
        Names among ``group``, ``drop``, ``most_frequent``, ``knn``, ``iterative``,
        ``iterative_drawn`` and ``iterative_blind``, or ``"all"``.
    min_count
        Groups with fewer rows under some method are not compared.
    seed, max_rows
        What random choices start from; a larger table is sampled down to ``max_rows``.
    treat_label
        Let the methods treat missing labels as they do missing sensitive values. Otherwise
        ``missing_label`` decides: ``"drop"`` leaves rows without a label out before anything is
        compared, ``"group"`` takes them for rows with a label of their own, ``"raise"`` refuses them.
    progress
        Is told how far the work is.
    **keywords
        What :func:`count` takes about reading, such as ``na`` and ``missing_label``.

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
        methods=_listed(methods),
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
    """Take values away from a table, and hold each way to treat missing values against the truth.

    Parameters
    ----------
    data, sensitive_features, label
        The table and its columns, as in :func:`count`.
    column
        The column that loses values; the first sensitive one if not given.
    share
        How many of its values are taken away.
    mechanism
        ``"random"``; ``"by_label"``, rows of one label lose it more often; or ``"by_value"``, rows
        of one of its values do.
    repeats
        How often values are taken away anew.
    methods, min_count, seed, max_rows, progress
        As in :func:`compare_missing`.
    **keywords
        What :func:`count` takes about reading. Rows without a label are set aside with
        ``missing_label="drop"``, have one of their own with ``"group"``, and are refused with
        ``"raise"``.
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
        methods=_listed(methods),
        min_count=min_count,
        seed=seed,
        max_rows=max_rows,
        progress=progress,
    )
    return replace(found, reading=reading)


def _listed(methods: str | Sequence[str]) -> str | tuple[str, ...]:
    if isinstance(methods, str):
        names = tuple(name.strip() for name in methods.split(","))
        return methods if names == ("all",) else names
    return tuple(methods)


def _rows(
    data: Any, sensitive_features: Any, label: Any, options: dict[str, Any], progress: Reporter
) -> tuple[pa.Table, CountRequest, Reading]:
    """Read all rows of a table, and say how they are counted and were read."""
    from equipoise.datasets.lookup import locate
    from equipoise.engines.sources import READING
    from equipoise.evaluation.evaluate import read_rows

    reading = {k: options.pop(k, None) for k in READING}
    engine = _engine(options, progress)
    require_named(data, sensitive_features, label, engine=engine, **reading)
    counting = _counting(sensitive_features, label, options)
    source = engine.settled(locate(data, **reading))
    return read_rows(source, counting, engine), counting, source.reading
