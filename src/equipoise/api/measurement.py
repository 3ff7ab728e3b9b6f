"""Count, measure, hold against limits, compare, weigh."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from equipoise.api.columns import require_named
from equipoise.counts import BinSpec, Condition, CountRequest, Counts, MissingPolicy
from equipoise.counts.features import feature_columns
from equipoise.errors import InputError
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
    """Count the rows of every cell of a table: the one scan everything else stands on.

    Parameters
    ----------
    data
        A path (CSV, TSV, Parquet, JSON lines, gzipped or not; a folder; a glob;
        ``file.duckdb::table``, ``file.sqlite::table``, ``book.xlsx::sheet``), ``"-"`` for standard
        input, the name of a bundled data set, a pandas, polars or Arrow
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
    where
        A condition over the columns, in SQL: only rows that satisfy it are seen, as in
        ``"age >= 18 AND state = 'CA'"``. In texts, such as all of a CSV file, numbers, dates and
        times are compared as such where every value that is present reads so.
    sql
        A query over the data, in which it is called ``input``; a condition is about its result.
    encoding, delimiter
        How CSV files are read.
    header
        False if the first line of a CSV file or of a sheet is a row: columns are then called
        ``column_1``, ``column_2``, ….
    lenient
        True to skip lines of CSV files that are no rows, such as those with too many fields. They
        are counted (``Counts.skipped``); without it they are an error.
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
    **keywords
        Everything else :func:`count` takes.

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
    """Hold a table against agreed limits.

    Parameters
    ----------
    data
        A table, as in :func:`measure`, or a BiasTable.
    policy
        The limits: a Policy, plain data as in ``equipoise.toml``, or the path of such a file.
    max_abs_ub
        A limit on |UB| for every group and label; the policy's rules come after it.
    four_fifths
        Whether to hold every group's rate of the label that is named as ``favourable`` to 0.8
        times that of the best-off group of the same attributes.
    evidence
        ``"estimate"`` (default) or ``"interval"``.
    **keywords
        Everything else :func:`measure` takes.

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
        The columns, as in :func:`measure`.
    **keywords
        Everything else :func:`measure` takes, for both tables. The second one is read as UTF-8
        if it is that, and by its own delimiter if it does not have the given one: a repaired
        table is written so, whatever the first one is.

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
    """Weigh rows so that the weighted UB of every group and label is 0, without new rows.

    One weight per row, in the order of the rows: n_s·n_y/(n·n_sy) for a row of the finest group
    s with the label y, which is 1/(1 − UB). A row that was left out for a missing value gets the
    weight 0, so that what learns from the weights leaves it out, too.

    This is not enough where a cell has no rows at all, since nothing can be weighed there;
    where few rows get large weights, since results then hang on those few; and for tools that
    take no weights. :class:`equipoise.plans.reweighing.Reweighing` says which it is.

    Parameters
    ----------
    data, sensitive_features, label, y
        The table and its columns, or the columns themselves, as in :func:`count`. Of a file the
        weights come in the order of its lines.
    **keywords
        Everything else :func:`count` takes, but for ``count`` and ``weight``.

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
            raise InputError(f"`memory={memory!r}` is not a size such as 2GB.") from None
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2
    except (AttributeError, ValueError, OSError):
        return 4_000_000_000


def column_names(sensitive_features: Any) -> tuple[str, ...]:
    """Give the names of sensitive columns, or say how to name them.

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
