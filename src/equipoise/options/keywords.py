"""Types of the keywords that public functions pass on, so that editors and mypy know them.

Written by ``tools/build_keywords.py`` from the declared options; do not edit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike
from typing import Any, TypedDict

from equipoise.options.count import MissingPolicy
from equipoise.options.evaluation import EqualRows
from equipoise.options.measure import Adjustment, Sampling
from equipoise.options.plan import Allow, Reference, Rounding, ToleranceOn
from equipoise.options.search import Dedupe, OtherColumns
from equipoise.progress import Reporter


class CountKeywords(TypedDict, total=False):
    """Keywords of the kind: count."""

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
    threads: int | None
    memory: str | None
    engine: Any


class TableKeywords(TypedDict, total=False):
    """Keywords of the kind: table."""

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
    threads: int | None
    memory: str | None
    engine: Any
    y: Any
    progress: Reporter


class MeasureKeywords(TypedDict, total=False):
    """Keywords of the kind: measure."""

    sensitive_features: Any
    label: str | None
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
    threads: int | None
    memory: str | None
    engine: Any
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
    y: Any
    progress: Reporter


class DiffKeywords(TypedDict, total=False):
    """Keywords of the kind: diff."""

    label: str
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
    threads: int | None
    memory: str | None
    engine: Any
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
    progress: Reporter


class PlanKeywords(TypedDict, total=False):
    """Keywords of the kind: plan."""

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
    threads: int | None
    memory: str | None
    engine: Any
    tolerance_on: ToleranceOn
    reference: Reference | None
    rounding: Rounding
    labels: Any
    label_drift: float | None
    target: Any
    cost_add: Mapping[str, float] | Sequence[tuple[str, float]]
    cost_delete: Mapping[str, float] | Sequence[tuple[str, float]]
    priority: str | Sequence[str]
    at_least: Mapping[str, int] | Sequence[tuple[str, int]]
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
    y: Any


class FrontierKeywords(TypedDict, total=False):
    """Keywords of the kind: frontier."""

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
    threads: int | None
    memory: str | None
    engine: Any
    tolerance: float
    tolerance_on: ToleranceOn
    allow: Allow
    rounding: Rounding
    labels: Any
    label_drift: float | None
    target: Any
    cost_add: Mapping[str, float] | Sequence[tuple[str, float]]
    cost_delete: Mapping[str, float] | Sequence[tuple[str, float]]
    priority: str | Sequence[str]
    available: Mapping[str, int] | Sequence[tuple[str, int]]
    at_least: Mapping[str, int] | Sequence[tuple[str, int]]
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
    y: Any


class RepairKeywords(TypedDict, total=False):
    """Keywords of the kind: repair."""

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
    threads: int | None
    memory: str | None
    engine: Any
    tolerance_on: ToleranceOn
    reference: Reference | None
    allow: Allow
    rounding: Rounding
    labels: Any
    label_drift: float | None
    target: Any
    cost_add: Mapping[str, float] | Sequence[tuple[str, float]]
    cost_delete: Mapping[str, float] | Sequence[tuple[str, float]]
    budget: float | None
    priority: str | Sequence[str]
    available: Mapping[str, int] | Sequence[tuple[str, int]]
    at_least: Mapping[str, int] | Sequence[tuple[str, int]]
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
    max_share_per_source: float | None
    max_tables: int | None
    max_shift: float | None
    require_columns: bool
    partial: bool
    force: bool
    available_from: Any


class SearchKeywords(TypedDict, total=False):
    """Keywords of the kind: search."""

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


class AcquireKeywords(TypedDict, total=False):
    """Keywords of the kind: acquire."""

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
    budget: float | None
    max_share_per_source: float | None
    max_tables: int | None
    max_shift: float | None
    require_columns: bool
    partial: bool
    force: bool
    time_limit: float


class EvaluateKeywords(TypedDict, total=False):
    """Keywords of the kind: evaluate."""

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
    threads: int | None
    memory: str | None
    engine: Any
    without_sensitive: bool
    seed: int
    test: float
    own_test: float
    tolerance: float
    min_group: int
    positive: Any
    keep_together: str | None
    equal_rows: EqualRows
    same_size: bool
    max_rows: int | None
    confidence: float


class PaperKeywords(TypedDict, total=False):
    """Keywords of the kind: paper."""

    threads: int | None
    memory: str | None
    engine: Any
    also: str | Sequence[str]
    without_sensitive: bool
    seed: int
    test: float
    own_test: float
    tolerance: float
    min_group: int
    positive: Any
    keep_together: str | None
    equal_rows: EqualRows
    same_size: bool
    max_rows: int | None
    confidence: float
    versions: Sequence[str]
