"""The options of an evaluation: which models, versions, samples and tests."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from equipoise.options.declaration import check, option

EqualRows: TypeAlias = Literal["auto", "together", "apart"]
Impute: TypeAlias = Literal["none", "median", "mean", "most_frequent"]

_GROUP = "Models"


@dataclass(frozen=True, kw_only=True)
class RunningOptions:
    """How much of an evaluation is run, and on how many cores."""

    models: tuple[str, ...] = option(
        ("gbdt", "logistic"),
        help="Models to train: random_forest, gbdt, extra_trees, adaboost, mlp, logistic, or all. By "
        "default gbdt and logistic.",
        group=_GROUP,
        common=True,
        form="names",
        accepts="str | Sequence[str] | Mapping[str, Any]",
    )
    versions: tuple[str, ...] | None = option(
        None,
        help="Versions of the table to train on in addition to u: p, n, reweighed, deleted, "
        "duplicated. By default all.",
        group=_GROUP,
        form="names",
        accepts="Sequence[str] | None",
    )
    sample: tuple[float, ...] | None = option(
        None,
        help="Size of the initial sample in percent of the table. By default 20.",
        group=_GROUP,
        metavar="PERCENT",
        form="numbers",
        accepts="float | Sequence[float] | None",
    )
    # None, because the default depends on `quick`.
    repeats: int | None = option(
        None,
        help="Number of repeats. By default 20, or 3 with `quick`.",
        group=_GROUP,
        common=True,
        at_least=1,
    )
    quick: bool = option(
        False,
        help="Run a quick evaluation with 3 repeats and at most 10,000 rows.",
        group=_GROUP,
        common=True,
    )
    jobs: int | None = option(
        None,
        help="Number of models to train at once. By default one per core.",
        group="Running",
        at_least=1,
        at_most=1024,
    )
    runs: str | None = option(
        None,
        help="File that keeps finished work, so that an interrupted evaluation can continue.",
        group="Output",
        metavar="FILE",
        form="path",
        accepts="str | PathLike[str] | None",
    )


@dataclass(frozen=True, kw_only=True)
class FeatureOptions:
    """How the columns of a table become features."""

    drop: tuple[str, ...] = option(
        (), help="Columns that are not used as features.", group=_GROUP, form="names"
    )
    categorical: tuple[str, ...] = option(
        (), help="Numeric columns whose values are categories.", group=_GROUP, form="names"
    )
    na: tuple[str, ...] = ()  # no option: set to that of the counted columns
    impute: Impute = option(
        "none",
        help="Imputation of missing numbers by a statistic of the training rows.",
        group=_GROUP,
    )

    def __post_init__(self) -> None:
        check(self)


@dataclass(frozen=True, kw_only=True)
class EvaluationOptions:
    """How models are trained and tested."""

    also: tuple[str, ...] = option(
        (),
        help="Additional attributes to report results by. They are not repaired.",
        group="Which groups",
        form="names",
    )
    without_sensitive: bool = option(
        False, help="Hide the sensitive attributes from the models.", group=_GROUP
    )
    seed: int = option(0, help="Seed of the random choices.", group=_GROUP, at_least=0)
    test: float = option(
        20.0,
        help="Size of the held-out test set in percent of the table.",
        group=_GROUP,
        metavar="PERCENT",
        above=0,
        below=100,
    )
    own_test: float = option(
        20.0,
        help="Share of each version in percent that is kept for its own test.",
        group=_GROUP,
        above=0,
        below=100,
        flags=None,
    )
    tolerance: float = option(
        0.0, help="Largest |UB| that a repair may leave to any group.", group=_GROUP, at_least=0
    )
    min_group: int = option(
        1,
        help="Minimum number of rows of a group in the initial sample for it to be repaired.",
        group="Which groups",
        at_least=1,
    )
    positive: str | None = option(
        None,
        help="Label value that precision and recall refer to. By default they are means over all "
        "labels if there are more than two.",
        group=_GROUP,
        metavar="VALUE",
        accepts="Any",  # label values may be numbers or truth values
    )
    keep_together: str | None = option(
        None,
        help="Column of units, such as persons with several rows, that are never split between "
        "training and test.",
        group=_GROUP,
        metavar="COLUMN",
    )
    equal_rows: EqualRows = option(
        "auto",
        help="Equal rows of one table: keep them in one part of a split (together), treat them as "
        "separate rows (apart), or decide by whether chance explains them.",
        group=_GROUP,
    )
    same_size: bool = option(
        True,
        help="Whether the larger of two tables is sampled down to the size of the smaller.",
        flag_help="Train on all rows of each of two tables, even if one is larger.",
        group=_GROUP,
        flags=("--own-size",),
    )
    max_rows: int | None = option(
        None,
        help="Maximum number of rows. A larger table is sampled down to it. By default all rows are used, "
        "and 250,000 of a table of a database.",
        group=_GROUP,
        at_least=10,
    )
    confidence: float = option(
        0.95, help="Confidence level of the intervals.", group="Uncertainty", above=0, below=1
    )

    def __post_init__(self) -> None:
        check(self)
