"""Types of the keywords that public functions take, for editors and mypy.

Written by ``tools/build_keywords.py`` from the declared options; do not edit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike
from typing import Any, TypedDict

from equipoise.options.count import MissingPolicy
from equipoise.options.evaluation import EqualRows, Impute
from equipoise.options.measure import Adjustment, Sampling
from equipoise.options.monitor import AlertOn
from equipoise.options.plan import Allow, Objective, Reference, Rounding, ToleranceOn
from equipoise.options.search import Dedupe, OtherColumns


class RunKeywords(TypedDict, total=False):
    """What a run may use."""

    threads: int | None
    memory: str | None
    engine: Any


class CountKeywords(RunKeywords, total=False):
    """How a table is read and counted."""

    count: str | None
    weight: str | None
    bins: Mapping[str, Sequence[float] | int] | None
    na: str | Sequence[str]
    missing: MissingPolicy
    missing_label: MissingPolicy
    where: Any
    sql: str | None
    encoding: str | None
    delimiter: str | None
    header: bool | None
    lenient: bool | None


class MeasureKeywords(CountKeywords, total=False):
    """How a table is counted and measured."""

    min_count: int
    max_order: int | None
    limit: float
    uncertainty: bool
    confidence: float
    sampling: Sampling
    adjust: Adjustment
    favourable: Any
    reference: Any
    measures: str | Sequence[str]


class FrontierKeywords(CountKeywords, total=False):
    """How a table is counted, and the options of the plans of a frontier."""

    tolerance: float
    tolerance_on: ToleranceOn
    allow: Allow
    rounding: Rounding
    exact: bool
    labels: Any
    label_drift: float | None
    target: Any
    target_rates: Any
    target_shares: Any
    target_count: str | None
    cost_add: Mapping[str, float] | Sequence[tuple[str, float]]
    cost_delete: Mapping[str, float] | Sequence[tuple[str, float]]
    priority: str | Sequence[str]
    available: Mapping[str, int] | Sequence[tuple[str, int]]
    at_least: Mapping[str, int] | Sequence[tuple[str, int]]
    at_least_each: Mapping[str, int] | Sequence[tuple[str, int]]
    group_shares: Mapping[str, float] | Sequence[tuple[str, float]]
    share_tolerance: float
    min_rows: int | None
    max_rows: int | None
    deletable: str | Sequence[str]
    constrain: str | Sequence[str]
    min_group: int
    extra: Mapping[str, int] | Sequence[tuple[str, int]]
    plan_missing: bool
    may_vanish: bool
    time_limit: float
    gap: float | None


class ScenarioKeywords(CountKeywords, total=False):
    """How a table is counted, and what a plan made by hand is measured by."""

    tolerance: float
    tolerance_on: ToleranceOn
    reference: Reference | None
    allow: Allow
    labels: Any
    label_drift: float | None
    target: Any
    target_rates: Any
    target_shares: Any
    target_count: str | None
    policy: Any
    cost_add: Mapping[str, float] | Sequence[tuple[str, float]]
    cost_delete: Mapping[str, float] | Sequence[tuple[str, float]]
    available: Mapping[str, int] | Sequence[tuple[str, int]]
    at_least: Mapping[str, int] | Sequence[tuple[str, int]]
    at_least_each: Mapping[str, int] | Sequence[tuple[str, int]]
    group_shares: Mapping[str, float] | Sequence[tuple[str, float]]
    share_tolerance: float
    min_rows: int | None
    max_rows: int | None
    deletable: str | Sequence[str]
    constrain: str | Sequence[str]
    min_group: int
    plan_missing: bool
    may_vanish: bool


class SearchKeywords(TypedDict, total=False):
    """How rows are searched for."""

    mapping: str | PathLike[str] | None
    codebook: Mapping[str, Mapping[str, str]] | str | PathLike[str] | None
    same_codes: bool
    sources: str | PathLike[str] | None
    deny: str | Sequence[str]
    min_confidence: float
    dedupe: Dedupe
    key: str | Sequence[str]
    seed: int
    other_columns: OtherColumns
    second_opinion: bool


class PlanKeywords(FrontierKeywords, SearchKeywords, total=False):
    """How a table is counted, the options of a plan, and how a lake is searched."""

    reference: Reference | None
    objective: Objective
    policy: Any
    budget: float | None


class WatchKeywords(TypedDict, total=False):
    """The limits of a stream, and the level of its alerts."""

    max_abs_ub: float | None
    four_fifths: bool
    favourable: Any
    alpha: float
    alert_on: AlertOn
    min_count: int
    max_order: int | None
    tags: Mapping[str, str] | Sequence[str]


class AuditKeywords(CountKeywords, SearchKeywords, total=False):
    """How a table is counted, what a form shows, and how a lake is searched."""

    sex: str | None
    race: str | None
    selected: str | None
    selected_value: Any
    score: str | None
    unknown: str | Sequence[str]
    exclude_below: float
    limit: float
    significance: float
    confidence: float
    tolerance: float
    min_group: int
    suppress_below: int | None


class LimitKeywords(TypedDict, total=False):
    """The limits within which rows are taken."""

    max_share_per_source: float | None
    max_tables: int | None
    max_shift: float | None
    require_columns: bool
    partial: bool
    force: bool


class AcquireKeywords(SearchKeywords, LimitKeywords, total=False):
    """How rows are searched for, and the limits within which they are taken."""

    budget: float | None
    time_limit: float


class RepairKeywords(PlanKeywords, LimitKeywords, total=False):
    """The options of a plan, and the limits within which rows are taken."""


class StudyKeywords(TypedDict, total=False):
    """How models are trained and tested."""

    models: str | Sequence[str] | Mapping[str, Any]
    versions: Sequence[str] | None
    sample: float | Sequence[float] | None
    repeats: int | None
    quick: bool
    jobs: int | None
    runs: str | PathLike[str] | None
    without_sensitive: bool
    seed: int
    test: float
    own_test: float
    tolerance: float
    min_group: int
    positive: Any
    equal_rows: EqualRows
    same_size: bool
    max_rows: int | None
    confidence: float


class PaperKeywords(RunKeywords, StudyKeywords, total=False):
    """How the paper's evaluation is run."""


class EvaluateKeywords(CountKeywords, StudyKeywords, total=False):
    """How a table is counted, and how models are trained and tested on it."""

    drop: str | Sequence[str]
    categorical: str | Sequence[str]
    impute: Impute
    also: str | Sequence[str]
    keep_together: str | None
