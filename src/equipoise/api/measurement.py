"""Count a table, measure it, check it, compare it with another, and weight its rows."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from equipoise.api.keywords import takes
from equipoise.api.tables import asked_table, columns_beside
from equipoise.counts import Counts
from equipoise.engines.kinds import DATABASES
from equipoise.errors import InputError
from equipoise.options import take
from equipoise.options.count import CountRequest, ReadOptions, RunOptions
from equipoise.options.measure import MeasureOptions
from equipoise.progress import Reporter, silent

# Checks, changes and weights are loaded where they are used: measuring needs none of them.
if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray

    from equipoise.engines.base import Engine
    from equipoise.engines.sources import Source
    from equipoise.measures.change import BiasChange
    from equipoise.measures.findings import Evidence
    from equipoise.measures.policy import Check, Policy
    from equipoise.measures.request import MeasureRequest
    from equipoise.measures.table import BiasTable
    from equipoise.options.keywords import CountKeywords, MeasureKeywords
    from equipoise.plans.reweighing import Reweighing

COUNTING = (CountRequest, ReadOptions, RunOptions)
"""Requests whose options every function takes that counts a table."""


@takes(*COUNTING)
def count(
    data: Any = None,
    *,
    sensitive_features: Any = None,
    label: str | None = None,
    y: Any = None,
    progress: Reporter = silent,
    **options: Unpack[CountKeywords],
) -> Counts:
    """Count the rows of every cell of a table, in the one scan that all measures are based on.

    Parameters
    ----------
    data
        Path (CSV, TSV, Parquet, JSON lines, gzipped or not; a folder; a glob;
        ``file.duckdb::table``, ``file.sqlite::table``, ``book.xlsx::sheet``), address such as
        ``delta:PATH`` or ``s3://bucket/file``, ``"-"`` for standard input, name of a bundled data set, pandas, polars or Arrow table, mapping of columns,
        DuckDB relation, or Counts, which are returned unchanged.
    sensitive_features
        Names of the sensitive columns. With ``y``, the columns themselves: a frame, a mapping, an
        array or a sequence of arrays.
    label
        Name of the label column.
    y
        Labels, instead of ``data`` and ``label``.
    progress
        Progress callback.
    **options
        What is counted and how the table is read; see Other Parameters.

    Notes
    -----
    In a condition ``where``, a column of texts is compared as numbers, dates or times if all its
    values can be read as such. With ``sql``, it applies to the result of the query. Lines that
    ``lenient`` skips are counted in ``Counts.skipped``; by default they are an error.

    Examples
    --------
    >>> count("adult", sensitive_features=["sex"], label="income")
    <Counts of 32,561 rows in 4 cells: sex (2) × income (2)>
    >>> count(y=["yes", "no", "yes"], sensitive_features={"sex": ["m", "w", "w"]}).n
    3
    """
    given: dict[str, Any] = dict(options)
    if isinstance(data, Counts):
        if given.get("where") is not None or given.get("sql") is not None:
            raise InputError("these rows are already counted; give `where` and `sql` to count().")
        return data
    if y is not None:
        data, sensitive_features, label = columns_beside(data, y, sensitive_features, label)
    elif data is None:
        raise InputError("name the data and its columns, or give the labels themselves as `y`.")
    if given.get("count") is None and isinstance(data, str):
        given["count"] = _count_column(data)
    source, request, engine = asked_table(data, sensitive_features, label, given, progress)
    return replace(engine.counts(source, request), reading=source.reading)


@takes(MeasureOptions, *COUNTING)
def measure(
    data: Any = None,
    *,
    sensitive_features: Any = None,
    label: str | None = None,
    y: Any = None,
    progress: Reporter = silent,
    **options: Unpack[MeasureKeywords],
) -> BiasTable:
    """Measure the Uniform Bias of every group and label of a table, with its uncertainty.

    Parameters
    ----------
    data, sensitive_features, label, y, progress
        Table and its columns, as in :func:`count`. Counts need no columns.
    **options
        Which groups are measured and how the table is counted; see Other Parameters.

    Examples
    --------
    >>> table = measure("compas", sensitive_features=["sex", "race"], label="risk", count="n")
    >>> round(table["sex=w, race=c", "H"].ub, 4)
    0.3844
    """
    from equipoise.measures.table import bias_table

    request, counting = _take_measure(options)
    columns = {"sensitive_features": sensitive_features, "label": label, "y": y}
    return bias_table(count(data, **columns, progress=progress, **counting), request)


def _take_measure(options: Mapping[str, Any]) -> tuple[MeasureRequest, dict[str, Any]]:
    """Make a request of the options for measuring; return it with the options for counting."""
    from equipoise.measures.request import MeasureRequest

    request, counting = take(MeasureRequest, options)
    return replace(request, memory=_lattice_memory(counting.get("memory"))), counting


@takes(MeasureOptions, *COUNTING)
def check(
    data: Any = None,
    *,
    policy: Policy | Mapping[str, Any] | str | os.PathLike[str] | None = None,
    max_abs_ub: float | None = None,
    four_fifths: bool = False,
    evidence: Evidence | None = None,
    sensitive_features: Any = None,
    label: str | None = None,
    y: Any = None,
    progress: Reporter = silent,
    **options: Unpack[MeasureKeywords],
) -> Check:
    """Check a table against limits.

    Parameters
    ----------
    data, sensitive_features, label, y, progress
        Table and its columns, as in :func:`measure`. A BiasTable needs no columns.
    policy
        Limits: a Policy, plain data as in ``equipoise.toml``, or the path of such a file.
    max_abs_ub
        Largest |UB| allowed for any group and label. Rules of the policy override it.
    four_fifths
        Whether to require that every group's rate of the ``favourable`` label is at least 0.8
        times that of the best-off group of the same attributes.
    evidence
        Whether to judge the ``"estimate"`` (the default) or the whole ``"interval"``.
    **options
        Options of :func:`measure`.

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
    from equipoise.measures.policy import Policy
    from equipoise.measures.table import BiasTable

    chosen = Policy.of(policy, max_abs_ub=max_abs_ub, four_fifths=four_fifths, evidence=evidence)
    if isinstance(data, BiasTable):
        return chosen.check(data)
    columns: dict[str, Any] = {"sensitive_features": sensitive_features, "label": label, "y": y}
    return chosen.check(measure(data, **columns, progress=progress, **options))


@takes(MeasureOptions, *COUNTING)
def diff(
    before: Any,
    after: Any,
    *,
    sensitive_features: Any = None,
    label: str | None = None,
    suppress_below: int | None = None,
    progress: Reporter = silent,
    **options: Unpack[MeasureKeywords],
) -> BiasChange:
    """Compare the biases of two tables, with the uncertainty of the change.

    Parameters
    ----------
    before, after
        Tables as in :func:`measure`.
    sensitive_features, label, progress
        Columns of both tables, as in :func:`measure`.
    suppress_below
        Hide counts below this number, and what they could be derived from.
    **options
        Options of :func:`measure`, for both tables. The second table may be in UTF-8 and have
        another delimiter in spite of ``encoding`` and ``delimiter``, as repaired tables do.

    Examples
    --------
    >>> change = diff("adult", "adult", sensitive_features=["sex"], label="income")
    >>> {row.change for row in change}
    {0.0}
    """
    from equipoise.measures.change import bias_change

    request, counting = _take_measure(options)
    counting |= {"sensitive_features": sensitive_features, "label": label, "progress": progress}
    first = count(before, **counting)
    # As the first table compares it, so that a condition means the same in both.
    if counting.get("where") is not None:
        counting["where"] = first.reading.where
    written = [counting.get(name) for name in ("encoding", "delimiter")]
    if isinstance(after, (str, os.PathLike)) and any(written):
        from equipoise.datasets.lookup import locate_pool

        after = locate_pool(after, first.reading)
    second = count(after, **counting)
    return bias_change(first, second, replace(request, suppress_below=suppress_below))


@takes(*COUNTING)
def sample_weight(
    data: Any = None,
    *,
    sensitive_features: Any = None,
    label: str | None = None,
    y: Any = None,
    **options: Unpack[CountKeywords],
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
    **options
        Options of :func:`count`, except for ``count`` and ``weight``.

    Examples
    --------
    >>> sex, hired = ["m", "m", "m", "w", "w", "w"], ["yes", "yes", "no", "yes", "no", "no"]
    >>> sample_weight(y=hired, sensitive_features={"sex": sex}).tolist()
    [0.75, 0.75, 1.5, 1.5, 0.75, 0.75]
    """
    from equipoise.plans.reweighing import row_weights

    _refuse_counted(data, options)
    if y is not None:
        data, sensitive_features, label = columns_beside(data, y, sensitive_features, label)
    source, request, engine = asked_table(data, sensitive_features, label, options)
    if source.kind in DATABASES:
        raise InputError(
            f"the rows of {source.name} have no order in which weights could be given; write them beside the "
            "rows with `eq.write_weights`, or give a frame."
        )
    counts = engine.counts(source, request)
    return row_weights(_rows_of(source, counts, engine), counts)


@takes(*COUNTING)
def write_weights(
    data: Any,
    output: str | os.PathLike[str],
    *,
    sensitive_features: Any = None,
    label: str | None = None,
    column: str = "weight",
    progress: Reporter = silent,
    **options: Unpack[CountKeywords],
) -> Reweighing:
    """Write a table of a database with one more column: the weights of :func:`sample_weight`.

    The database looks the weights up by cell, so no row leaves it if the output is a table of it, too,
    and both are named by their addresses. The table is made as by :func:`apply`. In PostgreSQL an older
    table of weights is replaced; any other table, also a repaired one or a ledger, is refused.

    Parameters
    ----------
    data, sensitive_features, label, progress
        Table of PostgreSQL or Spark, and its columns, as in :func:`count`.
    output
        Address of the new table, or a file.
    column
        Name of the column of weights.
    **options
        Options of :func:`count`, except for ``count`` and ``weight``.

    Returns
    -------
    Reweighing
        The weight of each cell, and the cells that have no rows to weigh.
    """
    from equipoise.engines.base import Part
    from equipoise.engines.weighing import WEIGHTS, Weighted
    from equipoise.lake.repair.destinations import require_other_tables
    from equipoise.lake.repair.output import place_named
    from equipoise.plans.reweighing import Reweighing

    _refuse_counted(data, options)
    source, request, engine = asked_table(data, sensitive_features, label, options, progress)
    if source.kind not in DATABASES:
        raise InputError(
            f"{source.name} is not a table of PostgreSQL or Spark; `eq.sample_weight` gives its weights, in the "
            "order of its rows."
        )
    columns = engine.schema(source)
    if column.casefold() in {c.name.casefold() for c in columns}:
        raise InputError(
            f"{source.name} has a column {column!r} already; name another one with `column`."
        )
    target = place_named(output, engine)
    if not isinstance(target, Path):
        require_other_tables([target], [("the table itself", source)], engine)
        engine.require_free(target, only=WEIGHTS)
    counts = engine.counts(source, request)
    weighed = Reweighing.of(counts)
    known = request.with_edges(counts.bins)
    view = Weighted(columns, known, counts, weighed.weights.tolist(), column)
    part = Part(replace(source, view=view))
    if isinstance(target, Path):
        engine.write(target, [part])
        return weighed
    with engine.creating(target, [part], f"{WEIGHTS} {source.public_name}"):
        return weighed


def _refuse_counted(data: Any, counting: Mapping[str, Any]) -> None:
    # Weights are given in the order of the rows, which counts do not have.
    given = [name for name in ("count", "weight") if counting.get(name) is not None]
    counted = isinstance(data, Counts) or (isinstance(data, str) and _count_column(data))
    if given or counted:
        raise InputError(
            "weights are given to rows, one each; give the rows themselves, without "
            f"{' and '.join(given) or 'counts'}."
        )


def _rows_of(source: Source, counts: Counts, engine: Engine) -> pa.Table:
    """Read the counted columns of all rows, in their order."""
    is_whole = source.sql is None and source.where is None
    if source.kind == "frame" and is_whole:
        return source.data
    return engine.read(source, [axis.name for axis in counts.axes])


def _count_column(name: str) -> str | None:
    """The column that holds counts, if that is the name of a data set of counts."""
    from equipoise import datasets

    known = not Path(name).exists() and name in datasets.names()
    return datasets.card(name).count if known else None


def _lattice_memory(memory: str | None) -> int:
    """Number of bytes that a lattice may take: what is allowed, or half the machine's memory.

    >>> _lattice_memory("2GB")
    2000000000
    """
    if memory is not None:
        return memory_size(memory)
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2
    except (AttributeError, ValueError, OSError):
        return 4_000_000_000


def memory_size(memory: str) -> int:
    """Read a size of memory as a number of bytes.

    >>> memory_size("1.5 GB")
    1500000000
    """
    units = {"k": 1e3, "m": 1e6, "g": 1e9, "t": 1e12}
    text = str(memory).strip().lower().removesuffix("b").removesuffix("i")
    try:
        return int(float(text[:-1]) * units[text[-1]]) if text[-1:] in units else int(text)
    except (ValueError, OverflowError):
        raise InputError(f"`memory={memory!r}` is not a size such as 2GB.") from None
