"""Count a table, measure it, check it, compare it with another, and weight its rows."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from equipoise.api.columns import require_named
from equipoise.counts import BinSpec, Condition, CountRequest, Counts, MissingPolicy
from equipoise.errors import InputError
from equipoise.frames import feature_columns
from equipoise.measures.change import BiasChange, bias_change
from equipoise.measures.findings import Evidence
from equipoise.measures.policy import Check, Policy
from equipoise.measures.request import MeasureRequest
from equipoise.measures.table import BiasTable, bias_table
from equipoise.options.keywords import CountKeywords, DiffKeywords, MeasureKeywords, TableKeywords
from equipoise.progress import Reporter, silent

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray

    from equipoise.engines.base import Engine
    from equipoise.engines.sources import Source
    from equipoise.options.measure import Adjustment, Sampling


def count(
    data: Any = None,
    *,
    sensitive_features: Any = None,
    label: str | None = None,
    y: Any = None,
    count: str | None = None,
    weight: str | None = None,
    bins: Mapping[str, BinSpec] | None = None,
    na: Sequence[str] = (),
    missing: MissingPolicy = "group",
    missing_label: MissingPolicy = "drop",
    where: str | Condition | None = None,
    sql: str | None = None,
    encoding: str | None = None,
    delimiter: str | None = None,
    header: bool | None = None,
    lenient: bool | None = None,
    threads: int | None = None,
    memory: str | None = None,
    engine: Engine | None = None,
    progress: Reporter = silent,
) -> Counts:
    """Count the rows of every cell of a table, in the one scan that all measures are based on.

    Parameters
    ----------
    data
        Path (CSV, TSV, Parquet, JSON lines, gzipped or not; a folder; a glob;
        ``file.duckdb::table``, ``file.sqlite::table``, ``book.xlsx::sheet``), ``"-"`` for standard
        input, name of a bundled data set, pandas, polars or Arrow table, mapping of columns,
        DuckDB relation, or Counts, which are returned unchanged.
    sensitive_features
        Names of the sensitive columns. With ``y``, the columns themselves: a frame, a mapping, an
        array or a sequence of arrays.
    label
        Name of the label column.
    y
        Labels, instead of ``data`` and ``label``.
    count, weight
        Names of the columns that hold the number of rows a line stands for, or row weights.
    bins
        For numeric attributes, rising edges or a number of quantile bins.
    na
        Texts that mean a missing value, in addition to empty fields and nulls.
    missing, missing_label
        ``"group"``, ``"drop"`` or ``"raise"``, for sensitive attributes and for the label.
    where
        Condition on the columns, in SQL, such as ``"age >= 18 AND state = 'CA'"``. Only rows that
        satisfy it are used. A column of texts is compared as numbers, dates or times if all its
        values can be read as such.
    sql
        SELECT statement over the table, which it calls ``input``; ``where`` applies to its result.
    encoding, delimiter
        Encoding and delimiter of CSV files.
    header
        False if the first line of a CSV file or sheet is a row. The columns are then called
        ``column_1``, ``column_2``, and so on.
    lenient
        Whether to skip malformed lines of CSV files, such as those with too many fields, and to
        count them in ``Counts.skipped``. By default they are an error.
    threads, memory
        Number of cores and amount of memory (such as ``"2GB"``) to use.
    engine
        Engine that counts, instead of DuckDB.
    progress
        Progress callback.

    Examples
    --------
    >>> count("adult", sensitive_features=["sex"], label="income")
    <Counts of 32,561 rows in 4 cells: sex (2) × income (2)>
    >>> count(y=["yes", "no", "yes"], sensitive_features={"sex": ["m", "w", "w"]}).n
    3
    """
    if isinstance(data, Counts):
        if where is not None or sql is not None:
            raise InputError("these rows are already counted; give `where` and `sql` to count().")
        return data
    if y is not None:
        data, names, label = _beside(data, y, sensitive_features, label)
    elif data is None:
        raise InputError("name the data and its columns, or give the labels themselves as `y`.")
    else:
        reading: dict[str, Any] = {"sql": sql, "encoding": encoding, "delimiter": delimiter}
        require_named(data, sensitive_features, label, engine=engine, **reading)
        names = column_names(sensitive_features)
    if label is None:
        raise InputError("name the label column with `label`.")
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
    from equipoise.datasets.lookup import locate

    reading = {"where": where, "sql": sql, "encoding": encoding, "delimiter": delimiter}
    source = locate(data, **reading, header=header, lenient=lenient, columns=columns)
    if engine is None:
        from equipoise.engines.duckdb import shared_engine

        engine = shared_engine(threads, memory, progress)
    if source.where is not None:
        source = engine.settled(source)
    return replace(engine.counts(source, request), reading=source.reading)


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
    **keywords: Unpack[TableKeywords],
) -> BiasTable:
    """Measure the Uniform Bias of every group and label of a table, with its uncertainty.

    Parameters
    ----------
    data, sensitive_features, label
        Table and its columns, as in :func:`count`. Counts need no columns.
    min_count, max_order
        Minimum number of rows, and maximum number of attributes, of a group.
    limit
        Largest |UB| of a group that counts as inside, for marking hidden groups.
    uncertainty
        Whether to compute intervals, p-values and q-values.
    confidence
        Confidence level of the intervals.
    sampling
        What was sampled at random: ``"rows"``, or labels within ``"groups"`` of fixed sizes.
    adjust
        Adjustment of q-values by Benjamini–Hochberg (``"bh"``) or Benjamini–Yekutieli (``"by"``).
    favourable
        Favourable label value. Adds the four-fifths rule.
    reference
        Baseline that additional measures compare a group with: ``"rest"``, ``"best"`` or a pattern.
    measures
        Names of additional measures to show.
    **keywords
        Other options of :func:`count`.

    Examples
    --------
    >>> table = measure("compas", sensitive_features=["sex", "race"], label="risk", count="n")
    >>> round(table["sex=w, race=c", "H"].ub, 4)
    0.3844
    """
    counting: dict[str, Any] = dict(keywords)
    options = MeasureRequest(
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
    four_fifths: bool = False,
    evidence: Evidence | None = None,
    **keywords: Unpack[MeasureKeywords],
) -> Check:
    """Check a table against limits.

    Parameters
    ----------
    data
        Table, as in :func:`measure`, or a BiasTable.
    policy
        Limits: a Policy, plain data as in ``equipoise.toml``, or the path of such a file.
    max_abs_ub
        Largest |UB| allowed for any group and label. Rules of the policy override it.
    four_fifths
        Whether to require that every group's rate of the ``favourable`` label is at least 0.8
        times that of the best-off group of the same attributes.
    evidence
        Whether to judge the ``"estimate"`` (the default) or the whole ``"interval"``.
    **keywords
        Other options of :func:`measure`.

    Examples
    --------
    >>> check("adult", sensitive_features=["sex"], label="income", max_abs_ub=0.6).status
    'inside'
    >>> rule = check(
    ...     "adult",
    ...     sensitive_features=["sex"],
    ...     label="income",
    ...     four_fifths=True,
    ...     favourable=">50K",
    ... )
    >>> [(str(f.row.group), round(f.value, 3), str(f.against)) for f in rule.outside]
    [('sex=Female', 0.358, 'sex=Male')]
    """
    measuring: dict[str, Any] = dict(keywords)
    chosen = Policy.of(policy, max_abs_ub=max_abs_ub, four_fifths=four_fifths, evidence=evidence)
    table = data if isinstance(data, BiasTable) else measure(data, **measuring)
    return chosen.check(table)


def diff(
    before: Any, after: Any, *, sensitive_features: Any = None, **keywords: Unpack[DiffKeywords]
) -> BiasChange:
    """Compare the biases of two tables, with the uncertainty of the change.

    Parameters
    ----------
    before, after
        Tables as in :func:`measure`.
    sensitive_features
        Sensitive columns, as in :func:`measure`.
    **keywords
        Other options of :func:`measure`, for both tables. The second table may be in UTF-8 and
        have another delimiter in spite of ``encoding`` and ``delimiter``, as repaired tables do.

    Examples
    --------
    >>> change = diff("adult", "adult", sensitive_features=["sex"], label="income")
    >>> {row.change for row in change}
    {0.0}
    """
    options: dict[str, Any] = dict(keywords)
    measuring = {k: options.pop(k) for k in list(options) if k in _MEASURING}
    measuring["memory"] = lattice_memory(options.get("memory"))
    first = count(before, sensitive_features=sensitive_features, **options)
    if options.get("where") is not None:  # which means the same in both
        options["where"] = first.reading.where
    written = [options.get(name) for name in ("encoding", "delimiter")]
    if isinstance(after, (str, os.PathLike)) and any(written):
        from equipoise.datasets.lookup import locate_pool

        after = locate_pool(after, first.reading)
    second = count(after, sensitive_features=sensitive_features, **options)
    return bias_change(first, second, MeasureRequest(**measuring))


def sample_weight(
    data: Any = None,
    *,
    sensitive_features: Any = None,
    label: str | None = None,
    y: Any = None,
    **keywords: Unpack[CountKeywords],
) -> NDArray[np.float64]:
    """Weight rows so that the weighted UB of every group and label is 0, without new rows.

    There is one weight per row, in the order of the rows: n_s·n_y/(n·n_sy) for a row of the finest
    group s with the label y, which is 1/(1 − UB). A row that was left out because of a missing
    value has the weight 0.

    Weights do not suffice if a cell has no rows at all, if a few rows get large weights, on which
    results then depend, or for tools that do not support weights.
    :class:`equipoise.plans.reweighing.Reweighing` reports which of these applies.

    Parameters
    ----------
    data, sensitive_features, label, y
        Table and its columns, or the columns themselves, as in :func:`count`. The weights of a
        file are in the order of its lines.
    **keywords
        Other options of :func:`count`, except for ``count`` and ``weight``.

    Examples
    --------
    >>> sex, hired = ["m", "m", "m", "w", "w", "w"], ["yes", "yes", "no", "yes", "no", "no"]
    >>> sample_weight(y=hired, sensitive_features={"sex": sex}).tolist()
    [0.75, 0.75, 1.5, 1.5, 0.75, 0.75]
    """
    counting: dict[str, Any] = dict(keywords)
    from equipoise.plans.reweighing import row_weights

    _refuse_counted(data, counting)
    if y is not None:
        data, sensitive_features, label = _beside(data, y, sensitive_features, label)
    from equipoise.datasets.lookup import locate
    from equipoise.engines.sources import READING

    reading = {k: counting.pop(k, None) for k in READING}
    require_named(data, sensitive_features, label, engine=counting.get("engine"), **reading)
    names = column_names(sensitive_features)
    source = locate(data, **reading, columns=[*names, *filter(None, [label])])
    counts = count(source, sensitive_features=names, label=label, **counting)
    return row_weights(_rows_of(source, counts, counting), counts)


def _refuse_counted(data: Any, counting: Mapping[str, Any]) -> None:
    given = [name for name in ("count", "weight") if counting.get(name) is not None]
    counted = isinstance(data, Counts) or (isinstance(data, str) and _count_column(data))
    if given or counted:
        raise InputError(
            "weights are given to rows, one each; give the rows themselves, without "
            f"{' and '.join(given) or 'counts'}."
        )


def _rows_of(source: Source, counts: Counts, counting: Mapping[str, Any]) -> pa.Table:
    """Read the counted columns of all rows, in their order."""
    is_whole = source.sql is None and source.where is None
    if source.kind == "frame" and is_whole:
        return source.data
    engine = counting.get("engine")
    if engine is None:
        from equipoise.engines.duckdb import shared_engine

        engine = shared_engine(*(counting.get(k) for k in ("threads", "memory")))
    return engine.read(source, [axis.name for axis in counts.axes])


_MEASURING = frozenset(MeasureRequest.__dataclass_fields__) - {"memory"}


def _count_column(name: str) -> str | None:
    """The column that holds counts, if that is the name of a data set of counts."""
    from equipoise import datasets

    known = not Path(name).exists() and name in datasets.names()
    return datasets.card(name).count if known else None


def lattice_memory(memory: str | None) -> int:
    """Number of bytes that a lattice may take: as allowed, or half the machine's memory.

    >>> lattice_memory("2GB")
    2000000000
    """
    if memory is not None:
        units = {"k": 1e3, "m": 1e6, "g": 1e9, "t": 1e12}
        text = str(memory).strip().lower().removesuffix("b").removesuffix("i")
        try:
            return int(float(text[:-1]) * units[text[-1]]) if text[-1:] in units else int(text)
        except (ValueError, OverflowError):
            raise InputError(f"`memory={memory!r}` is not a size such as 2GB.") from None
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2
    except (AttributeError, ValueError, OSError):
        return 4_000_000_000


def column_names(sensitive_features: Any) -> tuple[str, ...]:
    """Give the names of sensitive columns as a tuple.

    >>> column_names("sex"), column_names(["sex", "race"])
    (('sex',), ('sex', 'race'))
    """
    if isinstance(sensitive_features, str):
        return (sensitive_features,)
    if not all(isinstance(s, str) for s in sensitive_features):
        raise InputError(
            "`sensitive_features` are names of columns, as in ['sex', 'race']; give columns "
            "themselves together with `y`."
        )
    return tuple(sensitive_features)


def _beside(
    data: Any, y: Any, features: Any, label: str | None
) -> tuple[dict[str, Any], tuple[str, ...], str]:
    if data is not None:
        raise InputError("give either a table or `y`, not both.")
    if features is None:
        raise InputError(
            "`sensitive_features` is missing: with `y`, give the sensitive columns themselves, as in "
            "`sensitive_features={'sex': [...]}`."
        )
    columns = feature_columns(features)
    name = label or str(getattr(y, "name", None) or "label")
    lengths = {len(c) for c in (*columns.values(), y)}
    if len(lengths) > 1:
        raise InputError(
            f"`y` and `sensitive_features` must be of one length, not {sorted(lengths)}."
        )
    if name in columns:
        raise InputError(f"y is called {name!r} like a sensitive feature; name it with `label`.")
    return {**columns, name: y}, tuple(columns), name
