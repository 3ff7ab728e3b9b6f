"""Carry plans out with real rows, and check what was done."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from equipoise.api.measurement import count
from equipoise.api.plans import planning_options
from equipoise.errors import InputError
from equipoise.options.keywords import RepairKeywords
from equipoise.plans.request import PlanRequest
from equipoise.progress import Reporter, silent

if TYPE_CHECKING:
    from equipoise.engines.base import Engine
    from equipoise.lake.lake import Lake
    from equipoise.lake.loop import Repaired
    from equipoise.lake.repair.apply import Applied, MissingColumns
    from equipoise.lake.verify.verification import Verification
    from equipoise.plans.plan import Plan


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
        How CSV files are read, if otherwise than when the plan was made; they are written as
        UTF-8, with commas.
    threads, memory, engine, progress
        As in :func:`count`.

    A condition or query by which the plan was made holds for both tables: rows outside it are
    neither in the output nor added.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from equipoise import plan
    >>> people = {"sex": list("wwwwwmmmm"), "hired": list("nnnnynnyy")}
    >>> more = {"sex": list("wmwmw"), "hired": list("ynynn")}
    >>> repair = plan(people, sensitive_features=["sex"], label="hired")
    >>> output = pathlib.Path(tempfile.mkdtemp()) / "repaired.csv"
    >>> result = apply(repair, to=people, pool=more, output=output)
    >>> result.added, result.as_planned, round(result.max_abs_ub_after, 3)
    (3, True, 0.0)
    """
    from equipoise.datasets.lookup import locate, locate_pool
    from equipoise.lake.repair.apply import apply_plan

    stages = _Stages(progress)
    written = Path(plan).resolve() if isinstance(plan, (str, os.PathLike)) else None
    for place in (output, sidecar):
        if place is not None and Path(place).resolve() == written:
            raise InputError(f"{place} is the plan, and would be replaced; name another file.")
    if engine is None:
        from equipoise.engines.duckdb import shared_engine

        engine = shared_engine(threads, memory, stages.within)
    made = _read_plan(plan) if isinstance(plan, (str, os.PathLike)) else plan
    reading, given = made.counts.reading, {"encoding": encoding, "delimiter": delimiter}
    return apply_plan(
        made,
        locate(to, **reading.but(**given).options),
        None if pool is None else locate_pool(pool, reading, **given),
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
        from equipoise.lake.repair.apply import STEPS

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
    **keywords: Unpack[RepairKeywords],
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
    **keywords
        Everything :func:`count` and :func:`plan` take; how to look for rows
        (:class:`~equipoise.options.search.SearchRequest`), and within what to take them
        (:class:`~equipoise.options.search.AcquisitionLimits`).

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
    options: dict[str, Any] = dict(keywords)
    from equipoise.datasets.lookup import locate
    from equipoise.lake import loop
    from equipoise.lake.lake import as_lake, take_options
    from equipoise.lake.matching.restriction import refuse_sql

    if options.get("count") is not None:
        raise InputError(
            f"a repair adds rows, but {options['count']!r} holds counts; give the rows themselves, "
            "without `count`."
        )
    if options.pop("available_from", None) is not None:
        raise InputError(
            "a repair takes its rows from the lake; leave out `available_from`, and name that "
            "table as part of the lake."
        )
    refuse_sql(options.get("sql"))
    looking, limits = take_options(options)
    planning = planning_options(options, costs)
    counts = count(
        data, sensitive_features=sensitive_features, label=label, progress=progress, **options
    )
    return loop.repair(
        counts,
        locate(data, **counts.reading.options),
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
    encoding: str | None = None,
    delimiter: str | None = None,
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
    encoding, delimiter
        How the base is read if it is a CSV file; as when the plan was made, unless given.
    engine, progress
        As in :func:`count`.

    The base is read as when the plan was made: only rows of its condition, in its encoding.
    """
    from equipoise.datasets.lookup import locate
    from equipoise.lake.verify import checks as checker
    from equipoise.lake.verify.files import read_plan

    if engine is None:
        from equipoise.engines.duckdb import shared_engine

        engine = shared_engine(None, None, progress)
    reading = read_plan(Path(plan)).counts.reading.but(encoding=encoding, delimiter=delimiter)
    return checker.verify(
        locate(repaired),
        locate(base, **reading.options),
        plan,
        ledger,
        engine=engine,
        hash_key=hash_key,
        progress=progress,
    )
