"""The few functions people call."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from equipoise.counts import BinSpec, CountRequest, Counts, MissingPolicy
from equipoise.errors import InputError
from equipoise.measures.change import BiasChange, bias_change
from equipoise.measures.measured import Options
from equipoise.measures.policy import Check, Evidence, Policy
from equipoise.measures.table import BiasTable, bias_table
from equipoise.progress import Reporter, silent

if TYPE_CHECKING:
    from equipoise.engines.base import Engine
    from equipoise.engines.sources import Source
    from equipoise.measures.uncertainty import Adjustment, Sampling


def count(
    data: Any = None,
    *,
    sensitive_features: Any,
    label: str | None = None,
    y: Any = None,
    count: str | None = None,
    weight: str | None = None,
    bins: Mapping[str, BinSpec] | None = None,
    na: Sequence[str] = (),
    missing: MissingPolicy = "group",
    missing_label: MissingPolicy = "drop",
    sql: str | None = None,
    encoding: str | None = None,
    delimiter: str | None = None,
    threads: int | None = None,
    memory: str | None = None,
    engine: Engine | None = None,
    progress: Reporter = silent,
) -> Counts:
    """Count the rows of every cell of a table: the one scan everything else stands on.

    Parameters
    ----------
    data
        A path (CSV, TSV, Parquet, JSON lines, gzipped or not; a folder; a glob;
        ``file.duckdb::table``), the name of a bundled data set, a pandas, polars or Arrow
        table, a mapping of columns, a DuckDB relation, or Counts, which are returned.
    sensitive_features
        Names of the sensitive columns; with ``y``, the columns themselves: a frame, a
        mapping, an array or a sequence of arrays.
    label
        Name of the label column.
    y
        The labels themselves, instead of ``data`` and ``label``.
    count
        Name of a column that says how many rows a line stands for.
    weight
        Name of a column of row weights.
    bins
        For numeric attributes: rising edges, or how many quantile bins.
    na
        Texts that mean a missing value, beside empty fields and nulls.
    missing, missing_label
        ``"group"``, ``"drop"`` or ``"raise"``, for sensitive attributes and for the label.
    sql
        A query over the data, in which it is called ``input``.
    encoding, delimiter
        How CSV files are read.
    threads, memory
        How many cores, and how much memory (``"2GB"``), to use.
    engine
        The engine to count with, instead of DuckDB.
    progress
        Is told how far a long scan is.

    Examples
    --------
    >>> count("adult", sensitive_features=["sex"], label="income")
    <Counts of 32,561 rows in 4 cells: sex (2) × income (2)>
    >>> count(y=["yes", "no", "yes"], sensitive_features={"sex": ["m", "w", "w"]}).n
    3
    """
    if isinstance(data, Counts):
        return data
    if y is not None:
        data, names, label = _beside(data, y, sensitive_features, label)
    else:
        names = _names(sensitive_features)
    if data is None or label is None:
        raise InputError("name the data and its label column, or give the labels themselves as y=.")
    if count is None and isinstance(data, str):
        count = _count_column(data)
    request = CountRequest(
        sensitive=names,
        label=label,
        count=count,
        weight=weight,
        bins=dict(bins or {}),  # type: ignore[arg-type]
        na=(na,) if isinstance(na, str) else tuple(na),
        missing=missing,
        missing_label=missing_label,
    )
    columns = [*request.columns, *filter(None, (count, weight))]
    source = locate(data, sql=sql, encoding=encoding, delimiter=delimiter, columns=columns)
    if engine is None:
        from equipoise.engines.duckdb import shared_engine

        engine = shared_engine(threads, memory, progress)
    return engine.counts(source, request)


def measure(
    data: Any = None,
    *,
    sensitive_features: Any = None,
    label: str | None = None,
    min_count: int = 1,
    max_order: int | None = None,
    limit: float = 0.1,
    uncertainty: bool = True,
    confidence: float = 0.95,
    sampling: Sampling = "rows",
    adjust: Adjustment = "bh",
    favourable: Any = None,
    reference: str = "rest",
    measures: Sequence[str] = (),
    **counting: Any,
) -> BiasTable:
    """Measure Uniform Bias of every group and label of a table, with its uncertainty.

    Parameters
    ----------
    data, sensitive_features, label
        The table and its columns, as in :func:`count`; Counts need no columns.
    min_count, max_order
        Leave out groups with fewer rows, or that fix more attributes.
    limit
        The |UB| up to which a group counts as inside, for marking hidden groups.
    uncertainty
        Whether to compute intervals, p and q.
    confidence
        Of the intervals.
    sampling
        What chance decided: ``"rows"`` or ``"groups"`` (group sizes were fixed).
    adjust
        q by Benjamini–Hochberg (``"bh"``) or Benjamini–Yekutieli (``"by"``).
    favourable
        The label value that is good to have; shows the four-fifths rule beside UB.
    reference
        To whom ratios and differences compare: ``"rest"``, ``"best"`` or a pattern.
    measures
        Names of further measures to show.
    **counting
        Everything else :func:`count` takes.

    Examples
    --------
    >>> table = measure("compas", sensitive_features=["sex", "race"], label="risk", count="n")
    >>> round(table["sex=w, race=c", "H"].ub, 4)
    0.3844
    """
    options = Options(
        min_count=min_count,
        max_order=max_order,
        limit=limit,
        uncertainty=uncertainty,
        confidence=confidence,
        sampling=sampling,
        adjust=adjust,
        favourable=favourable,
        reference=str(reference),
        measures=(measures,) if isinstance(measures, str) else tuple(measures),
        memory=lattice_memory(counting.get("memory")),
    )
    counts = count(data, sensitive_features=sensitive_features, label=label, **counting)
    return bias_table(counts, options)


def check(
    data: Any = None,
    *,
    policy: Policy | Mapping[str, Any] | str | os.PathLike[str] | None = None,
    max_abs_ub: float | None = None,
    evidence: Evidence | None = None,
    **measuring: Any,
) -> Check:
    """Hold a table against agreed limits.

    Parameters
    ----------
    data
        A table, as in :func:`measure`, or a BiasTable.
    policy
        The limits: a Policy, plain data as in ``equipoise.toml``, or the path of such a file.
    max_abs_ub
        A limit on |UB| for every group and label; the policy's rules come after it.
    evidence
        ``"estimate"`` (default) or ``"interval"``.
    **measuring
        Everything else :func:`measure` takes.

    Examples
    --------
    >>> check("adult", sensitive_features=["sex"], label="income", max_abs_ub=0.6).status
    'inside'
    """
    chosen = Policy.of(policy, max_abs_ub=max_abs_ub, evidence=evidence)
    table = data if isinstance(data, BiasTable) else measure(data, **measuring)
    return chosen.check(table)


def diff(before: Any, after: Any, *, sensitive_features: Any = None, **options: Any) -> BiasChange:
    """Compare the biases of two tables, with the uncertainty of the change.

    Parameters
    ----------
    before, after
        Tables as in :func:`measure`.
    sensitive_features
        The columns, as in :func:`measure`.
    **options
        Everything else :func:`measure` takes, for both tables.

    Examples
    --------
    >>> change = diff("adult", "adult", sensitive_features=["sex"], label="income")
    >>> {row.change for row in change}
    {0.0}
    """
    measuring = {k: options.pop(k) for k in list(options) if k in _MEASURING}
    measuring["memory"] = lattice_memory(options.get("memory"))
    counts = [
        count(data, sensitive_features=sensitive_features, **options) for data in (before, after)
    ]
    return bias_change(counts[0], counts[1], Options(**measuring))


_MEASURING = frozenset(Options.__dataclass_fields__) - {"memory"}


def locate(data: Any, **options: Any) -> Source:
    """Find what a user names: a bundled data set, a path, a database table or a frame."""
    from equipoise import datasets
    from equipoise.engines import sources

    if isinstance(data, str) and data in datasets.names() and not Path(data).exists():
        return replace(sources.locate(datasets.path(data), **options), name=data)
    return sources.locate(data, **options, known=datasets.names())


def _count_column(name: str) -> str | None:
    """The column that holds counts, if that is the name of a data set of counts."""
    from equipoise import datasets

    known = not Path(name).exists() and name in datasets.names()
    return datasets.card(name).count if known else None


def report(
    table: BiasTable, path: str | os.PathLike[str], *, source: str | None = None, top: int = 50
) -> None:
    """Write a bias table as one HTML page with pictures, that needs nothing from outside.

    Parameters
    ----------
    table
        What :func:`measure` gave.
    path
        The file to write; it is whole or not there.
    source
        What the page calls the table it is about.
    top
        How many rows to show.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> page = pathlib.Path(tempfile.mkdtemp()) / "adult.html"
    >>> table = measure("adult", sensitive_features=["sex"], label="income")
    >>> report(table, page, source="adult")
    >>> "Uniform Bias" in page.read_text(encoding="utf-8")
    True
    """
    from equipoise.reports.html import write_report

    write_report(table.worst() if table.view is None else table, path, source=source, top=top)


def lattice_memory(memory: str | None) -> int:
    """How many bytes a lattice may take: what the user allows, or half the machine's memory.

    >>> lattice_memory("2GB")
    2000000000
    """
    if memory is not None:
        units = {"k": 1e3, "m": 1e6, "g": 1e9, "t": 1e12}
        text = str(memory).strip().lower().removesuffix("b").removesuffix("i")
        try:
            return int(float(text[:-1]) * units[text[-1]]) if text[-1:] in units else int(text)
        except (ValueError, OverflowError):
            raise InputError(f"memory={memory!r} is not a size such as 2GB.") from None
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2
    except (AttributeError, ValueError, OSError):
        return 4_000_000_000


def _names(sensitive_features: Any) -> tuple[str, ...]:
    if isinstance(sensitive_features, str):
        return (sensitive_features,)
    if sensitive_features is None:
        raise InputError("name the sensitive columns, as in sensitive_features=['sex', 'race'].")
    if not all(isinstance(s, str) for s in sensitive_features):
        raise InputError(
            "sensitive_features are names of columns, as in ['sex', 'race']; give columns "
            "themselves together with y=."
        )
    return tuple(sensitive_features)


def _beside(
    data: Any, y: Any, features: Any, label: str | None
) -> tuple[dict[str, Any], tuple[str, ...], str]:
    if data is not None:
        raise InputError("give either a table or y=, not both.")
    columns = _feature_columns(features)
    name = label or str(getattr(y, "name", None) or "label")
    lengths = {len(c) for c in (*columns.values(), y)}
    if len(lengths) > 1:
        raise InputError(f"y and sensitive_features must be of one length, not {sorted(lengths)}.")
    if name in columns:
        raise InputError(f"y is called {name!r} like a sensitive feature; name it with label=.")
    return {**columns, name: y}, tuple(columns), name


def _feature_columns(features: Any) -> dict[str, Any]:
    if isinstance(features, Mapping):
        return {str(k): v for k, v in features.items()}
    if hasattr(features, "columns"):
        return {str(name): features[name] for name in features.columns}
    if getattr(features, "ndim", 1) == 2:
        return {f"feature_{i}": features[:, i] for i in range(features.shape[1])}
    nested = isinstance(features, (list, tuple)) and features and _is_column(features[0])
    if nested:
        return {str(getattr(f, "name", None) or f"feature_{i}"): f for i, f in enumerate(features)}
    return {str(getattr(features, "name", None) or "feature_0"): features}


def _is_column(item: Any) -> bool:
    return hasattr(item, "__len__") and not isinstance(item, (str, bytes))
