"""The few functions people call."""

from __future__ import annotations

import inspect
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from equipoise.counts import BinSpec, CountRequest, Counts, MissingPolicy
from equipoise.errors import InputError, did_you_mean
from equipoise.measures.change import BiasChange, bias_change
from equipoise.measures.measured import Options
from equipoise.measures.policy import Check, Evidence, Policy
from equipoise.measures.table import BiasTable, bias_table
from equipoise.plans.request import PlanRequest
from equipoise.progress import Reporter, silent

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray

    from equipoise.engines.base import Engine
    from equipoise.engines.sources import Source
    from equipoise.lake.acquiring.apply import Applied, MissingColumns
    from equipoise.lake.checking.verify import Verification
    from equipoise.lake.choosing.survey import Looking
    from equipoise.lake.lake import Lake
    from equipoise.lake.repair import Repaired
    from equipoise.measures.uncertainty import Adjustment, Sampling
    from equipoise.plans.frontier import Frontier
    from equipoise.plans.maps.policy_map import PolicyMap
    from equipoise.plans.plan import Plan
    from equipoise.plans.request import Allow, Reference


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
    from equipoise.datasets.naming import locate

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


def apply(
    plan: Plan | str | os.PathLike[str],
    *,
    to: Any,
    output: str | os.PathLike[str],
    pool: Any = None,
    seed: int = 0,
    force: bool = False,
    partial: bool = False,
    missing_columns: MissingColumns = "refuse",
    sidecar: str | os.PathLike[str] | None = None,
    encoding: str | None = None,
    delimiter: str | None = None,
    threads: int | None = None,
    memory: str | None = None,
    engine: Engine | None = None,
    progress: Reporter = silent,
) -> Applied:
    """Carry out a plan: write a table without the rows to delete, and with real rows added.

    The rows that stay keep their order and their values; the added ones stand behind them. The
    written file is counted again, and a list of all rows added and removed stands beside it.

    Parameters
    ----------
    plan
        A Plan, or the path of one written as JSON.
    to
        The table to repair, as in :func:`count`; it must have the counts the plan was made for.
    output
        The file to write, by its ending; it may be the table's own.
    pool
        The table whose rows are added, with the columns of the first; others are ignored.
    seed
        Of the choice among the rows of a cell: the same rows for the same seed, on any machine.
    force
        Apply the plan to a table of other counts, as far as its cells allow.
    partial
        Take what there is, where the pool has too few rows.
    missing_columns
        ``"refuse"`` a pool that lacks columns, or leave the values missing (``"null"``); the
        counted columns must be there.
    sidecar
        The list of changes; the output's name with ``.changes.csv`` unless given.
    encoding, delimiter
        How CSV files are read; they are written as UTF-8, with commas.
    threads, memory, engine, progress
        As in :func:`count`.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> people = {"sex": list("wwwwwmmmm"), "hired": list("nnnnynnyy")}
    >>> more = {"sex": list("wmwmw"), "hired": list("ynynn")}
    >>> repair = plan(people, sensitive_features=["sex"], label="hired")
    >>> output = pathlib.Path(tempfile.mkdtemp()) / "repaired.csv"
    >>> result = apply(repair, to=people, pool=more, output=output)
    >>> result.added, result.as_planned, round(result.max_abs_ub_after, 3)
    (3, True, 0.0)
    """
    from equipoise.datasets.naming import locate
    from equipoise.lake.acquiring.apply import apply_plan

    stages = _Stages(progress)
    written = Path(plan).resolve() if isinstance(plan, (str, os.PathLike)) else None
    for place in (output, sidecar):
        if place is not None and Path(place).resolve() == written:
            raise InputError(f"{place} is the plan, and would be replaced; name another file.")
    if engine is None:
        from equipoise.engines.duckdb import shared_engine

        engine = shared_engine(threads, memory, stages.within)
    return apply_plan(
        _read_plan(plan) if isinstance(plan, (str, os.PathLike)) else plan,
        locate(to, encoding=encoding, delimiter=delimiter),
        None if pool is None else locate(pool, encoding=encoding, delimiter=delimiter),
        output,
        engine=engine,
        seed=seed,
        force=force,
        partial=partial,
        missing_columns=missing_columns,
        sidecar=sidecar,
        progress=stages.step,
    )


def _read_plan(path: str | os.PathLike[str]) -> Plan:
    from equipoise.plans import plan

    return plan.Plan.read(path)


class _Stages:
    """Joins what an engine reports of each step to the share of all that is done."""

    def __init__(self, progress: Reporter) -> None:
        self.progress, self.begun = progress, 0.0

    def step(self, title: str, share: float) -> None:
        self.begun = share
        self.progress(title, share)

    def within(self, title: str, share: float) -> None:
        from equipoise.lake.acquiring.apply import STEPS

        self.progress(title, self.begun + share / STEPS)


def repair(
    data: Any,
    lake: Lake | str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    output: str | os.PathLike[str] | None = None,
    *,
    sensitive_features: Any = None,
    label: str | None = None,
    tolerance: float = 0.0,
    ledger: str | os.PathLike[str] | None = None,
    plan_file: str | os.PathLike[str] | None = None,
    hash_key: bytes | None = None,
    costs: Mapping[str, float] | None = None,
    progress: Reporter = silent,
    **options: Any,
) -> Repaired:
    """Plan the repair of a table, find real rows for it in a lake, take them, and check it all.

    If the lake lacks rows of the cheapest plan, the plan is made again with what it has; if no
    plan reaches the tolerance then, the one that comes nearest is carried out.

    Parameters
    ----------
    data, sensitive_features, label
        The table and its columns, as in :func:`count`.
    lake
        A :class:`~equipoise.lake.lake.Lake`, or its folder, glob or list of these.
    output
        The repaired table; nothing is written without.
    tolerance
        The largest |UB| left to any group.
    ledger, plan_file
        The list of all changes and the plan; beside the output unless given.
    hash_key
        Makes the ledger's hashes such that rows cannot be guessed from them.
    costs, progress
        As in :func:`plan`.
    **options
        Everything :func:`count` and :func:`plan` take; how to look for rows
        (:class:`~equipoise.lake.choosing.survey.Looking`), and within what to take them
        (:class:`~equipoise.lake.choosing.filling.Limits`).

    Examples
    --------
    >>> import csv, pathlib, tempfile
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> def write(path, rows):
    ...     path.parent.mkdir(exist_ok=True)
    ...     with path.open("w", newline="") as file:
    ...         csv.writer(file).writerows(rows)
    >>> people = [(s, h, i) for i, (s, h) in enumerate(zip("wwwwwmmmm", "nnnnynnyy"))]
    >>> more = [(i, h, s) for i, (s, h) in enumerate(zip(["Woman", "Man"] * 9, "yyn" * 6), 100)]
    >>> names = {"w": "Female", "m": "Male"}
    >>> write(
    ...     folder / "people.csv",
    ...     [("sex", "hired", "id"), *((names[s], h, i) for s, h, i in people)],
    ... )
    >>> write(folder / "lake" / "hr.csv", [("id", "hired", "gender"), *more])
    >>> result = repair(
    ...     folder / "people.csv",
    ...     folder / "lake",
    ...     folder / "repaired.csv",
    ...     sensitive_features=["sex"],
    ...     label="hired",
    ... )
    >>> result.acquired.added, result.reached, result.verification.ok
    (3, True, True)
    """
    from equipoise.datasets.naming import locate
    from equipoise.lake import repair as loop
    from equipoise.lake.lake import as_lake, take_options

    if options.get("count") is not None:
        raise InputError(
            f"a repair adds rows, and {options['count']!r} counts them; give the rows themselves, "
            "without --count."
        )
    if options.pop("available_from", None) is not None:
        raise InputError(
            "a repair takes its rows from the lake; leave out --available-from, and name that "
            "table as a part of the lake."
        )
    looking, limits = take_options(options)
    planning = _planning(options, costs)
    counts = count(
        data, sensitive_features=sensitive_features, label=label, progress=progress, **options
    )
    reading = {k: options.get(k) for k in ("sql", "encoding", "delimiter")}
    return loop.repair(
        counts,
        locate(data, **reading),
        as_lake(lake, progress=progress),
        PlanRequest(tolerance=tolerance, **planning),
        output,
        ledger=ledger,
        plan_file=plan_file,
        looking=looking,
        limits=limits,
        hash_key=hash_key,
        progress=progress,
    )


def verify(
    repaired: Any,
    *,
    base: Any,
    plan: str | os.PathLike[str],
    ledger: str | os.PathLike[str],
    hash_key: bytes | None = None,
    engine: Engine | None = None,
    progress: Reporter = silent,
) -> Verification:
    """Check a repair by itself: count both tables again, and hold them against plan and ledger.

    Parameters
    ----------
    repaired, base
        The repaired table, and the one it was made from.
    plan, ledger
        The files of the plan and of the changes.
    hash_key
        The key, if the ledger's hashes are keyed.
    engine, progress
        As in :func:`count`.
    """
    from equipoise.datasets.naming import locate
    from equipoise.lake.checking import verify as checker

    if engine is None:
        from equipoise.engines.duckdb import shared_engine

        engine = shared_engine(None, None, progress)
    return checker.verify(
        locate(repaired),
        locate(base),
        plan,
        ledger,
        engine=engine,
        hash_key=hash_key,
        progress=progress,
    )


def sample_weight(
    data: Any = None,
    *,
    sensitive_features: Any,
    label: str | None = None,
    y: Any = None,
    **counting: Any,
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
    **counting
        Everything else :func:`count` takes, but for ``count`` and ``weight``.

    Examples
    --------
    >>> sex, hired = ["m", "m", "m", "w", "w", "w"], ["yes", "yes", "no", "yes", "no", "no"]
    >>> sample_weight(y=hired, sensitive_features={"sex": sex}).tolist()
    [0.75, 0.75, 1.5, 1.5, 0.75, 0.75]
    """
    from equipoise.plans.reweighing import row_weights

    _refuse_counted(data, counting)
    if y is not None:
        data, sensitive_features, label = _beside(data, y, sensitive_features, label)
    names = _names(sensitive_features)
    reading = {k: counting.pop(k, None) for k in ("sql", "encoding", "delimiter")}
    from equipoise.datasets.naming import locate

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
    if source.kind == "frame" and source.sql is None:
        return source.data
    engine = counting.get("engine")
    request = CountRequest(
        sensitive=tuple(a.name for a in counts.sensitive), label=counts.label.name
    )
    if engine is None:
        from equipoise.engines.duckdb import shared_engine
        from equipoise.engines.sql import identifier

        engine = shared_engine(*(counting.get(k) for k in ("threads", "memory")))
        if source.sql is None:
            columns = ", ".join(identifier(axis.name) for axis in counts.axes)
            source = replace(source, sql=f"SELECT {columns} FROM input")
    return engine.rows(source, request, counts - counts, rest=True)


_MEASURING = frozenset(Options.__dataclass_fields__) - {"memory"}


def policy_map(
    data: Any,
    *,
    x: str,
    y: str,
    sensitive_features: Any = None,
    label: str | None = None,
    group: str | None = None,
    label_value: Any = None,
    limits: Sequence[str] = (),
    cost_x: float = 1.0,
    cost_y: float = 1.0,
    tolerance: float = 0.0,
    x_max: float | None = None,
    y_max: float | None = None,
    **counting: Any,
) -> PolicyMap:
    """Map the Uniform Bias of one group and label over two moves that add or delete rows.

    Parameters
    ----------
    data, sensitive_features, label
        The table and its columns, as in :func:`count`; Counts need no columns.
    x, y
        The moves: ``add PATTERN`` or ``delete PATTERN``, of any cell or group.
    group, label_value
        Whose UB is mapped; what the pattern of ``y`` names, else that of ``x``, if not given.
    limits
        Linear limits in x, y, n (the rows after the moves) and cost, such as ``"x<=4500"``.
    cost_x, cost_y
        What a row of each move costs.
    tolerance
        The |UB| that is small enough.
    x_max, y_max
        How far the map is drawn.
    **counting
        Everything else :func:`count` takes, but ``y``, which is a move here.

    Examples
    --------
    >>> map_ = policy_map(
    ...     "adult",
    ...     sensitive_features=["sex"],
    ...     label="income",
    ...     x="add sex=Male, income=<=50K",
    ...     y="add sex=Female, income=>50K",
    ...     limits=["x<=4500", "y<=3000"],
    ... )
    >>> round(map_.zero_y(0)[0], 2), round(map_.zero_y(4500)[0], 2)
    (3045.08, 2076.65)
    """
    from equipoise.plans.maps import policy_map as maps

    counts = count(data, sensitive_features=sensitive_features, label=label, **counting)
    return maps.policy_map(
        counts,
        x=x,
        y=y,
        group=group,
        label_value=label_value,
        limits=limits,
        cost_x=cost_x,
        cost_y=cost_y,
        tolerance=tolerance,
        x_max=x_max,
        y_max=y_max,
    )


def plan(
    data: Any = None,
    *,
    sensitive_features: Any = None,
    label: str | None = None,
    tolerance: float = 0.0,
    allow: Allow = "add",
    costs: Mapping[str, float] | None = None,
    available: Mapping[str, int] | None = None,
    available_from: Any = None,
    lake: Lake | str | os.PathLike[str] | Sequence[str | os.PathLike[str]] | None = None,
    budget: float | None = None,
    candidates: Sequence[Plan] = (),
    progress: Reporter = silent,
    **options: Any,
) -> Plan:
    """Plan the smallest repair: how many rows to add to and delete from every cell.

    Parameters
    ----------
    data, sensitive_features, label
        The table and its columns, as in :func:`count`; Counts need no columns.
    tolerance
        The largest |UB| left to any group; 0 is zero bias, up to rounding.
    allow
        ``"add"``, ``"delete"`` or ``"both"``.
    costs
        What a row costs, by pattern: ``{"add sex=Female": 2, "delete *": 0.5}``; a pattern
        alone is the cost of adding. 1 if not given.
    available
        At most how many rows of a pattern can be added.
    available_from
        A table of rows that can be added; it is counted as the data is.
    lake
        A lake whose rows can be added: those of its tables whose meaning is certain, and that
        are not in the data already. How to look for them is said by further options, those of
        :class:`~equipoise.lake.choosing.survey.Looking`.
    budget
        How much may be spent. If it does not suffice the plan is the one with the least
        largest |UB| it buys, or follows ``priority``.
    candidates
        Plans for the same table that may do, as those of a tighter request.
    progress
        Is told how far long work is.
    **options
        Everything else a :class:`~equipoise.plans.request.PlanRequest` takes:
        ``tolerance_on``, ``reference``, ``rounding``, ``labels``, ``label_drift``, ``target``,
        ``cost_add``, ``cost_delete``, ``priority``, ``at_least``, ``min_rows``, ``max_rows``,
        ``deletable``, ``constrain``, ``min_group``, ``extra``, ``plan_missing``,
        ``may_vanish``, ``time_limit``, ``gap``; and everything :func:`count` takes.

    Raises
    ------
    Infeasible
        If no plan can do it; its ``relaxations`` say which single changes would help.

    Examples
    --------
    >>> repair = plan("adult", sensitive_features=["sex"], label="income")
    >>> repair.additions, repair.certificate.reached
    (7739, True)
    >>> print(repair.explanation[0])
    Add 7,739 rows: the table goes from 32,561 to 40,300 rows.
    """
    from equipoise.plans.planner import make_plan

    if lake is not None and available_from is not None:
        raise InputError(
            "rows come from one place: name a table with --available-from, or a --lake of tables."
        )
    looking = _looking(options) if lake is not None else None
    planning = _planning(options, costs)
    counts = count(
        data, sensitive_features=sensitive_features, label=label, progress=progress, **options
    )
    pool = None if available_from is None else _counted_alike(available_from, counts, options)
    if looking is not None:
        pool = _offered_by(lake, data, counts, looking, options, progress)
    request = PlanRequest(
        tolerance=tolerance,
        allow=allow,
        available=available or {},  # type: ignore[arg-type]
        pool=pool,
        budget=budget,
        **planning,
    )
    made = make_plan(counts, request, candidates=candidates, progress=progress)
    return replace(made, source=os.fspath(data) if isinstance(data, (str, os.PathLike)) else None)


def frontier(
    data: Any = None,
    *,
    sensitive_features: Any = None,
    label: str | None = None,
    tolerances: Sequence[float] | None = None,
    points: int = 50,
    budget: float | Sequence[float] = (),
    costs: Mapping[str, float] | None = None,
    available_from: Any = None,
    reference: Reference = "original",
    progress: Reporter = silent,
    **options: Any,
) -> Frontier:
    """Find the least cost at every tolerance asked: what less bias costs.

    Parameters
    ----------
    data, sensitive_features, label
        The table and its columns, as in :func:`count`; Counts need no columns.
    tolerances
        At which; if not given, ``points`` of them up to the present bias.
    points
        How many tolerances to look at.
    budget
        One or more budgets; for each the smallest tolerance it buys is found.
    costs, available_from
        As in :func:`plan`.
    reference
        ``"original"``, for which every cost is proved the least, or ``"new"``.
    progress
        Is told how far long work is.
    **options
        Everything else :func:`plan` takes.

    Examples
    --------
    >>> front = frontier(
    ...     "adult", sensitive_features=["sex"], label="income", tolerances=[0.05, 0.1]
    ... )
    >>> [round(point.cost) for point in front.points]
    [6225, 4837]
    """
    from equipoise.plans.frontier import make_frontier

    planning = _planning(options, costs)
    counts = count(
        data, sensitive_features=sensitive_features, label=label, progress=progress, **options
    )
    pool = None if available_from is None else _counted_alike(available_from, counts, options)
    request = PlanRequest(reference=reference, pool=pool, **planning)
    budgets = [budget] if isinstance(budget, (int, float)) else list(budget)
    return make_frontier(
        counts, request, tolerances=tolerances, points=points, budgets=budgets, progress=progress
    )


def _planning(options: dict[str, Any], costs: Mapping[str, float] | None) -> dict[str, Any]:
    """Take what is about the plan out of the options; the rest is about counting."""
    names = PlanRequest.__dataclass_fields__
    known = [*names, *inspect.signature(count).parameters]
    for name in options:
        if name not in known:
            raise TypeError(f"there is no option {name!r} of a plan.{did_you_mean(name, known)}")
    planning = {name: options.pop(name) for name in list(options) if name in names}
    for kind in ("add", "delete"):
        given = planning.get(f"cost_{kind}") or ()
        listed = list(given.items()) if isinstance(given, Mapping) else list(given)
        for move, cost in (costs or {}).items():
            word, _, pattern = str(move).strip().partition(" ")
            plain = word not in ("add", "delete")
            if word == kind or (plain and kind == "add"):
                listed.append((str(move) if plain else pattern, cost))
        planning[f"cost_{kind}"] = listed
    return planning


def _looking(options: dict[str, Any]) -> Looking:
    """Take how to look for rows out of the options."""
    from equipoise.lake.lake import take_options

    return take_options(options)[0]


def _offered_by(
    lake: Any,
    data: Any,
    counts: Counts,
    looking: Looking,
    options: Mapping[str, Any],
    progress: Reporter,
) -> Counts:
    """Count the rows of a lake that could be added to a table."""
    from equipoise.datasets.naming import locate
    from equipoise.lake.choosing.gather import gather
    from equipoise.lake.lake import as_lake
    from equipoise.lake.repair import all_available

    base = locate(data, **{k: options.get(k) for k in ("sql", "encoding", "delimiter")})
    found = gather(counts, base, as_lake(lake, progress=progress), looking, progress=progress)
    return all_available(counts, found, progress)


def _counted_alike(data: Any, counts: Counts, options: Mapping[str, Any]) -> Counts:
    """Count another table by the same columns and bins."""
    if isinstance(data, Counts):
        return data
    how = {k: v for k, v in options.items() if k in ("na", "missing", "missing_label", "engine")}
    how |= {k: options.get(k) for k in ("encoding", "delimiter", "threads", "memory")}
    names = [a.name for a in counts.sensitive]
    return count(
        data, sensitive_features=names, label=counts.label.name, bins=dict(counts.bins), **how
    )


def _count_column(name: str) -> str | None:
    """The column that holds counts, if that is the name of a data set of counts."""
    from equipoise import datasets

    known = not Path(name).exists() and name in datasets.names()
    return datasets.card(name).count if known else None


def report(
    table: BiasTable | Plan | Frontier | Repaired,
    path: str | os.PathLike[str],
    *,
    source: str | None = None,
    top: int = 50,
) -> None:
    """Write a result as one HTML page with pictures, that needs nothing from outside.

    Parameters
    ----------
    table
        What :func:`measure`, :func:`plan`, :func:`frontier` or :func:`repair` gave.
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
    from equipoise.lake.repair import Repaired
    from equipoise.plans.frontier import Frontier
    from equipoise.plans.plan import Plan
    from equipoise.reports.html import write_report
    from equipoise.reports.plan import write_frontier, write_plan
    from equipoise.reports.repair import write_repair

    if isinstance(table, Plan):
        write_plan(table, path, source=source or "", top=top)
        return
    if isinstance(table, Frontier):
        write_frontier(table, path, source=source or "")
        return
    if isinstance(table, Repaired):
        write_repair(table, path, source=source, top=top)
        return
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
