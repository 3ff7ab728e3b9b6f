"""Carry out plans with real rows, and verify the result."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from equipoise.api.benchmarks import with_benchmarks
from equipoise.api.keywords import takes
from equipoise.api.measurement import COUNTING, count
from equipoise.api.plans import take_plan
from equipoise.api.tables import take_engine
from equipoise.errors import InputError
from equipoise.options import keyword_fields, take
from equipoise.options.count import RunOptions
from equipoise.options.plan import PlanOptions
from equipoise.options.search import AcquisitionLimits, SearchRequest
from equipoise.progress import Reporter, silent

if TYPE_CHECKING:
    from equipoise.engines.base import Engine
    from equipoise.lake.lake import Lake
    from equipoise.lake.loop import Repaired
    from equipoise.lake.repair.apply import Applied, MissingColumns
    from equipoise.lake.verify.verification import Verification
    from equipoise.options.keywords import RepairKeywords, RunKeywords
    from equipoise.plans.plan import Plan


@takes(RunOptions)
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
    progress: Reporter = silent,
    **options: Unpack[RunKeywords],
) -> Applied:
    """Carry out a plan: write a table without the rows to delete, and with real rows added.

    The remaining rows keep their order and values, and the added rows follow them. The written
    file is counted again. A second file lists all rows that were added and removed.

    Parameters
    ----------
    plan
        Plan, or the path of one written as JSON.
    to
        Table to repair, as in :func:`count`. It must have the counts the plan was made for.
    output
        File to write, which may be the table itself; the extension sets the format. Or the address of
        a table of PostgreSQL, where an existing table of that name is replaced, or of Spark, where it is
        refused.
    pool
        Table whose rows are added. It needs the columns of the first; others are ignored.
    seed
        Seed of the choice among the rows of a cell. The same seed gives the same rows on any
        machine.
    force
        Whether to apply the plan to a table with other counts, as far as its cells allow.
    partial
        Whether to take what there is if the pool has too few rows.
    missing_columns
        Whether to ``"refuse"`` a pool that does not have all columns, or to leave their values
        missing (``"null"``). The counted columns are required in any case.
    sidecar
        List of changes to write. By default the name of the output with ``.changes.csv``.
    encoding, delimiter
        Encoding and delimiter of CSV files. By default those of the plan. CSV files are written
        as UTF-8, with commas.
    progress, **options
        Progress callback, and ``threads``, ``memory`` and ``engine`` as in :func:`count`.

    A condition or query of the plan applies to both tables: other rows are neither in the output
    nor added.

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
    from equipoise.lake.lake import read_plan
    from equipoise.lake.repair.apply import apply_plan
    from equipoise.lake.repair.output import require_name

    stages = _Stages(progress)
    require_name(output)
    # The output may replace the table itself, but must not replace the plan.
    _refuse_overwriting(plan, output, sidecar)
    made = read_plan(plan)
    reading, given = made.counts.reading, {"encoding": encoding, "delimiter": delimiter}
    return apply_plan(
        made,
        locate(to, **reading.but(**given).options),
        None if pool is None else locate_pool(pool, reading, **given),
        output,
        engine=take_engine(options, stages.within)[0],
        seed=seed,
        force=force,
        partial=partial,
        missing_columns=missing_columns,
        sidecar=sidecar,
        progress=stages.step,
    )


def _refuse_overwriting(
    plan: Plan | str | os.PathLike[str], *outputs: str | os.PathLike[str] | None
) -> None:
    written = Path(plan).resolve() if isinstance(plan, (str, os.PathLike)) else None
    for place in outputs:
        if place is not None and Path(place).resolve() == written:
            raise InputError(f"{place} is the plan, and would be replaced; name another file.")


class _Stages:
    """Combines the progress of an engine within a step with the progress over all steps."""

    def __init__(self, progress: Reporter) -> None:
        self.progress, self.begun = progress, 0.0

    def step(self, title: str, share: float) -> None:
        self.begun = share
        self.progress(title, share)

    def within(self, title: str, share: float) -> None:
        from equipoise.lake.repair.apply import STEPS

        self.progress(title, self.begun + share / STEPS)


@takes(PlanOptions, SearchRequest, AcquisitionLimits, *COUNTING)
def repair(
    data: Any,
    lake: Lake | str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    output: str | os.PathLike[str] | None = None,
    *,
    sensitive_features: Any = None,
    label: str | None = None,
    plan: Plan | str | os.PathLike[str] | None = None,
    ledger: str | os.PathLike[str] | None = None,
    plan_file: str | os.PathLike[str] | None = None,
    hash_key: bytes | None = None,
    costs: Mapping[str, float] | None = None,
    available_from: Any = None,
    progress: Reporter = silent,
    **options: Unpack[RepairKeywords],
) -> Repaired:
    """Plan the repair of a table, find real rows for it in a lake, add them, and verify the result.

    If the lake has too few rows for the cheapest plan, a new plan is made with the rows it has.
    If no plan reaches the tolerance, the closest one is carried out.

    Parameters
    ----------
    data, sensitive_features, label, progress
        Table and its columns, as in :func:`count`.
    lake
        :class:`~equipoise.lake.lake.Lake`, or its folder, glob or a list of these.
    output
        Repaired table to write: a file, or a table of a database such as
        ``postgresql://user@host/db?table=repaired``, whose base does not leave the database if it is
        there as well. An existing table of that name is replaced in PostgreSQL, unless it is the base
        or a table of the lake, and refused in Spark. By default nothing is written.
    plan
        Plan to carry out instead of making one, or the path of one written as JSON; what the lake
        does not have is left out and reported. The columns and limits are those of the plan.
    ledger, plan_file
        List of changes and plan to write. By default they are next to the output; of a table of a
        database the ledger is the table ``…_ledger``, and the plan ``TABLE.plan.json`` in the working
        folder.
    hash_key
        Secret key for the ledger's hashes, so that rows cannot be guessed from them.
    costs
        As in :func:`plan`.
    available_from
        Not supported here: name that table as part of the lake.
    **options
        Options of :func:`plan`, how the lake is searched, and limits on the rows taken; see Other
        Parameters. The ``budget`` limits the cost of the rows, and ``time_limit`` both the plan and
        the choice of rows.

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
    from equipoise.datasets.lookup import locate
    from equipoise.lake import loop
    from equipoise.lake.lake import as_lake, take_search
    from equipoise.lake.matching.restriction import refuse_sql
    from equipoise.lake.repair.destinations import named_places
    from equipoise.lake.repair.output import require_name

    if options.get("count") is not None:
        raise InputError(
            f"a repair adds rows, but {options['count']!r} holds counts; give the rows themselves, "
            "without `count`."
        )
    if available_from is not None:
        raise InputError(
            "a repair takes its rows from the lake; leave out `available_from`, and name that "
            "table as part of the lake."
        )
    refuse_sql(options.get("sql"))
    if output is not None:
        require_name(output)
    opened = as_lake(lake, progress=progress)
    if plan is not None:
        _refuse_overwriting(plan, output, ledger, plan_file)
    if output is not None:  # what cannot be written is refused before any work
        named_places(output, ledger, opened.engine)
    looking, given = take_search(options)
    limits, left = take(AcquisitionLimits, given)
    columns: dict[str, Any] = {"sensitive_features": sensitive_features, "label": label}
    made = None
    if plan is not None:
        made = _given_plan(plan, {**left, **columns, "costs": costs})
        counts, request = made.counts, made.request
    else:
        # Both the plan and the choice of rows have a time limit, and users give one for both.
        left |= {k: given[k] for k in ("time_limit",) if k in given}
        request, counting = take_plan(left, costs)
        counts = count(data, **columns, progress=progress, **counting)
        request = with_benchmarks(request, counts, counting)
    return loop.repair(
        counts,
        locate(data, **counts.reading.options),
        opened,
        request,
        output,
        plan=made,
        ledger=ledger,
        plan_file=plan_file,
        looking=looking,
        limits=limits,
        hash_key=hash_key,
        progress=progress,
    )


def _given_plan(plan: Plan | str | os.PathLike[str], others: Mapping[str, Any]) -> Plan:
    """Read the plan to carry out; refuse options that a plan already has."""
    from equipoise.lake.lake import read_plan
    from equipoise.lake.matching.restriction import refuse_sql

    running = keyword_fields(RunOptions)
    for name, value in others.items():
        if value is not None and name not in running:
            raise InputError(
                f"`{name}` is settled by the plan that is given; leave it out, or plan again without "
                "`plan`."
            )
    made = read_plan(plan)
    refuse_sql(made.counts.reading.options.get("sql"))
    return made


def verify(
    repaired: Any,
    *,
    base: Any,
    plan: str | os.PathLike[str],
    ledger: Any,
    hash_key: bytes | None = None,
    encoding: str | None = None,
    delimiter: str | None = None,
    engine: Engine | None = None,
    progress: Reporter = silent,
) -> Verification:
    """Verify a repair: count both tables again, and compare them with the plan and the ledger.

    Parameters
    ----------
    repaired, base
        Repaired table, and the table it was made from.
    plan
        File of the plan.
    ledger
        File or address of the list of changes.
    hash_key
        Secret key, if the ledger's hashes are keyed.
    encoding, delimiter
        Encoding and delimiter of the base, if it is a CSV file. By default those of the plan.
    engine, progress
        As in :func:`count`.

    The base is read as it was when the plan was made, with the same condition. Rows are counted, hashed
    and compared where they are: of a table in a database only the rows that the ledger lists are
    fetched. Both tables must stay as they are meanwhile.
    """
    from equipoise.datasets.lookup import locate
    from equipoise.lake.verify import checks as checker
    from equipoise.lake.verify.files import read_plan

    reading = read_plan(Path(plan)).counts.reading.but(encoding=encoding, delimiter=delimiter)
    return checker.verify(
        locate(repaired),
        locate(base, **reading.options),
        plan,
        ledger,
        engine=engine or take_engine({}, progress)[0],
        hash_key=hash_key,
        progress=progress,
    )
