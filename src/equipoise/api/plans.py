"""Plan a repair or draw one by hand, compare plans, compute a frontier, and map two moves."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack, get_args

from equipoise.api.benchmarks import with_benchmarks
from equipoise.api.keywords import takes
from equipoise.api.measurement import COUNTING, count
from equipoise.api.tables import name_of
from equipoise.counts import Counts
from equipoise.errors import InputError
from equipoise.options import keyword_fields, take
from equipoise.options.plan import MEASURED, PlanOptions, SweepKind
from equipoise.options.search import SearchRequest
from equipoise.plans.request import PlanRequest
from equipoise.progress import Reporter, silent
from equipoise.validate import one_of

if TYPE_CHECKING:
    from equipoise.lake.lake import Lake
    from equipoise.options.keywords import (
        CountKeywords,
        FrontierKeywords,
        PlanKeywords,
        ScenarioKeywords,
    )
    from equipoise.options.plan import Reference
    from equipoise.plans.comparison import PlanComparison
    from equipoise.plans.frontier import Frontier
    from equipoise.plans.maps.policy_map import PolicyMap
    from equipoise.plans.plan import Plan
    from equipoise.plans.sweeps import Sweep


@takes(PlanOptions, SearchRequest, *COUNTING)
def plan(
    data: Any = None,
    *,
    sensitive_features: Any = None,
    label: str | None = None,
    y: Any = None,
    costs: Mapping[str, float] | None = None,
    available_from: Any = None,
    lake: Lake | str | os.PathLike[str] | Sequence[str | os.PathLike[str]] | None = None,
    candidates: Sequence[Plan] = (),
    progress: Reporter = silent,
    **options: Unpack[PlanKeywords],
) -> Plan:
    """Plan the smallest repair: how many rows to add to and delete from every cell.

    Parameters
    ----------
    data, sensitive_features, label, y, progress
        Table and its columns, as in :func:`count`. Counts need no columns.
    costs
        Cost of a row by pattern, such as ``{"add sex=Female": 2, "delete *": 0.5}``. A pattern
        alone is the cost of adding. By default 1.
    available_from
        Table of the only rows that can be added. It is counted like the data.
    lake
        Lake whose tables have the only rows that can be added. Rows of the data itself, and
        tables whose meaning is uncertain, are not used.
    candidates
        Plans for the same table that may serve as solutions, such as those of a stricter request.
    **options
        What is allowed, costs and limits, how a lake is searched, and how the table is counted;
        see Other Parameters.

    Raises
    ------
    Infeasible
        If no plan is possible; its ``relaxations`` list single changes that would help.

    Examples
    --------
    >>> repair = plan("adult", sensitive_features=["sex"], label="income")
    >>> repair.additions, repair.certificate.reached
    (7739, True)
    >>> print(repair.explanation[0])
    Add 7,739 rows: the table goes from 32,561 to 40,300 rows.
    """
    given: dict[str, Any] = dict(options)
    from equipoise.plans.planner import make_plan

    if lake is not None and available_from is not None:
        raise InputError(
            "rows come from one place: give either `available_from` or `lake`, not both."
        )
    looking = None
    if lake is not None:
        from equipoise.lake.lake import take_search
        from equipoise.lake.matching.restriction import refuse_sql

        refuse_sql(given.get("sql"))
        looking, given = take_search(given)
    else:
        _refuse_search(given)
    request, counting = take_plan(given, costs)
    columns: dict[str, Any] = {"sensitive_features": sensitive_features, "label": label, "y": y}
    counts = count(data, **columns, progress=progress, **counting)
    pool = None if available_from is None else _counted_alike(available_from, counts, counting)
    if looking is not None:
        pool = _offered_by(lake, data, counts, looking, progress)
    request = with_benchmarks(request.but(pool=pool), counts, counting)
    made = make_plan(counts, request, candidates=candidates, progress=progress)
    return replace(made, source=_name_of(data))


def _name_of(data: Any) -> str | None:
    """The name of a table, by which it can be read again."""
    # Standard input is no longer available when the plan is used.
    name = name_of(data)
    return None if name == "-" else name


_SEARCHING = tuple(key for key in keyword_fields(PlanOptions) if key not in MEASURED)
"""Options that only steer the search for a plan."""


@takes(PlanOptions, *COUNTING, but=_SEARCHING)
def scenario(
    data: Any = None,
    *,
    add: Mapping[str, int] | Sequence[tuple[str, int]] = (),
    delete: Mapping[str, int] | Sequence[tuple[str, int]] = (),
    sensitive_features: Any = None,
    label: str | None = None,
    y: Any = None,
    costs: Mapping[str, float] | None = None,
    available_from: Any = None,
    progress: Reporter = silent,
    **options: Unpack[ScenarioKeywords],
) -> Plan:
    """Make a plan by hand: add and delete the given rows, and measure what that does.

    The plan is not optimised. It has the certificate that every plan has, and can be carried out
    like any other.

    Parameters
    ----------
    data, sensitive_features, label, y, progress
        Table and its columns, as in :func:`count`. Counts need no columns.
    add, delete
        Rows to add and to delete by pattern, such as ``{"sex=Female, income=>50K": 3000}``. The rows
        of a pattern of several cells are split in proportion to their present rows, or equally if
        none has any; whole rows go to the cells with the largest remainders.
    costs, available_from
        As in :func:`plan`.
    **options
        Options of :func:`plan` that the result is measured by; see Other Parameters. Without
        ``tolerance``, the plan reaches its goal if every limit holds. By default, ``allow`` is
        ``"both"`` and ``labels`` is ``"free"``.

    Examples
    --------
    >>> drawn = scenario(
    ...     "adult",
    ...     sensitive_features=["sex"],
    ...     label="income",
    ...     add={"sex=Female, income=>50K": 3000},
    ...     delete={"sex=Male, income=<=50K": 500},
    ...     tolerance=0.1,
    ... )
    >>> drawn.additions, drawn.deletions, drawn.reached
    (3000, 500, True)
    >>> round(drawn.certificate.max_abs_ub_before, 3), round(drawn.certificate.max_abs_ub_after, 3)
    (0.545, 0.019)
    """
    from equipoise.plans.scenario import make_scenario

    given = _with_costs(options, costs)
    known = keyword_fields(PlanRequest)
    named = {known[key].name: value for key, value in given.items() if key in known}
    counting = {key: value for key, value in given.items() if key not in known}
    columns: dict[str, Any] = {"sensitive_features": sensitive_features, "label": label, "y": y}
    counts = count(data, **columns, progress=progress, **counting)
    if available_from is not None:
        named["pool"] = _counted_alike(available_from, counts, counting)
    targets = {name: named.pop(name, None) for name in ("target_rates", "target_shares")}
    asked = PlanRequest(**targets, target_count=named.pop("target_count", None))
    read = with_benchmarks(asked, counts, counting)
    named |= {name: getattr(read, name) for name in targets}
    made = make_scenario(counts, add, delete, named)
    return replace(made, source=_name_of(data))


def compare(
    plans: Mapping[str, Plan | str | os.PathLike[str]] | Sequence[Plan | str | os.PathLike[str]],
    *,
    names: Sequence[str] | None = None,
) -> PlanComparison:
    """Put plans for the same table side by side: rows, cost, label drift, and UB of every group.

    Parameters
    ----------
    plans
        Plans, or paths of plans written as JSON; or a mapping from names to these.
    names
        A name for each plan. By default the names of the files, or ``plan 1``, ``plan 2`` and so on.

    Examples
    --------
    >>> from equipoise import count
    >>> counts = count("adult", sensitive_features=["sex"], label="income")
    >>> best = plan(counts, tolerance=0.1, reference="original")
    >>> drawn = scenario(counts, add={"sex=Female, income=>50K": 3000})
    >>> both = compare([best, drawn], names=["cheapest", "drawn"])
    >>> [round(p.certificate.max_abs_ub_after, 3) for p in both.plans]
    [0.13, 0.005]
    >>> print(both.sentences[1])
    The lowest cost is that of “drawn”: 3,000.
    """
    from equipoise.plans.comparison import compare_plans
    from equipoise.plans.plan import Plan

    listed = list(plans.values()) if isinstance(plans, Mapping) else list(plans)
    if names is None:
        names = list(plans) if isinstance(plans, Mapping) else _names_of(listed)
    if len(names) != len(listed):
        raise InputError(
            f"`names` has {len(names)} names for {len(listed)} plans; give one for each."
        )
    read = [each if isinstance(each, Plan) else Plan.read(each) for each in listed]
    return compare_plans(list(zip(map(str, names), read, strict=True)))


def _names_of(plans: Sequence[Any]) -> list[str]:
    """The names of files without their extension, or with their folders if these are not unique."""
    named = [
        Path(each) if isinstance(each, (str, os.PathLike)) else Path(f"plan {place}")
        for place, each in enumerate(plans, start=1)
    ]
    short = [path.stem for path in named]
    return short if len(set(short)) == len(short) else [str(path) for path in named]


# A policy has its own limits, which a frontier cannot vary.
@takes(PlanOptions, *COUNTING, but=("policy",))
def frontier(
    data: Any = None,
    *,
    sensitive_features: Any = None,
    label: str | None = None,
    y: Any = None,
    sweep: SweepKind = "tolerance",
    values: Sequence[float] | None = None,
    tolerances: Sequence[float] | None = None,
    points: int | None = None,
    budget: float | Sequence[float] = (),
    costs: Mapping[str, float] | None = None,
    available_from: Any = None,
    reference: Reference = "original",
    progress: Reporter = silent,
    **options: Unpack[FrontierKeywords],
) -> Frontier | Sweep:
    """Find the lowest cost of a repair at each tolerance, or at each value of another option.

    Parameters
    ----------
    data, sensitive_features, label, y, progress
        Table and its columns, as in :func:`count`. Counts need no columns.
    sweep
        What varies: the ``"tolerance"``; the ``"coverage"``, the minimum number of rows of every
        group of the attributes that ``at_least_each`` names, or of all; the ``"budget"``; the
        ``"cost-ratio"`` of deletions to additions; or the ``"label-drift"``, for which label
        frequencies are free.
    values
        Values to plan for. By default some that show the range.
    tolerances
        The same as ``values`` of the tolerance. By default ``points`` of them, up to the present
        bias.
    points
        Number of tolerances, budgets or values of the coverage; by default 50 tolerances, or 10 of
        the others.
    budget
        One or more budgets, for each of which the smallest tolerance is found.
    costs, available_from
        As in :func:`plan`.
    reference
        Label frequencies that groups are compared with: ``"original"``, for which every cost is
        proved to be the lowest, or ``"new"``.
    **options
        Options of :func:`plan`.

    Examples
    --------
    >>> front = frontier(
    ...     "adult", sensitive_features=["sex"], label="income", tolerances=[0.05, 0.1]
    ... )
    >>> [round(point.cost) for point in front.points]
    [6225, 4837]
    >>> sweep = frontier(
    ...     "adult",
    ...     sensitive_features=["sex"],
    ...     label="income",
    ...     allow="both",
    ...     tolerance=0.05,
    ...     sweep="label-drift",
    ...     values=[0, 0.1],
    ... )
    >>> [round(point.cost) for point in sweep.points]
    [3334, 3210]
    """
    from equipoise.plans.frontier import make_frontier
    from equipoise.plans.sweeps import make_sweep

    request, counting = take_plan({**options, "reference": reference}, costs)
    columns: dict[str, Any] = {"sensitive_features": sensitive_features, "label": label, "y": y}
    counts = count(data, **columns, progress=progress, **counting)
    if available_from is not None:
        request = request.but(pool=_counted_alike(available_from, counts, counting))
    request = with_benchmarks(request, counts, counting)
    if request.objective != "cost":
        raise InputError("a frontier is about the cost; leave out `objective`.")
    budgets = [budget] if isinstance(budget, (int, float)) else list(budget)
    if values is not None and tolerances is not None:
        raise InputError("give either `values` or `tolerances`, not both.")
    if sweep == "tolerance":
        given = values if tolerances is None else tolerances
        many = 50 if points is None else points
        return make_frontier(
            counts, request, tolerances=given, points=many, budgets=budgets, progress=progress
        )
    one_of("sweep", sweep, get_args(SweepKind))
    if budgets or tolerances is not None:
        raise InputError(
            f"a sweep of the {sweep} has one `tolerance` and takes its numbers as `values`, not as "
            "`tolerances` or `budget`."
        )
    many = 10 if points is None else points
    return make_sweep(counts, request, sweep, values=values, points=many, progress=progress)


@takes(*COUNTING)
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
    at: Sequence[int] | None = None,
    progress: Reporter = silent,
    **options: Unpack[CountKeywords],
) -> PolicyMap:
    """Map the Uniform Bias of one group and label over two moves that add or delete rows.

    Parameters
    ----------
    data, sensitive_features, label, progress
        Table and its columns, as in :func:`count`. Counts need no columns.
    x, y
        Moves: ``add PATTERN`` or ``delete PATTERN``, of any cell or group.
    group, label_value
        Group and label value whose UB is mapped. By default those that ``y`` names, or ``x``.
    limits
        Linear limits on x, y, n (the number of rows after the moves) and cost, such as
        ``"x<=4500"``.
    cost_x, cost_y
        Cost of a row of each move.
    tolerance
        Largest |UB| that is accepted.
    x_max, y_max
        Largest x and y that are drawn.
    at
        Rows of x and of y at a point of the map. The result shows what the moves do to all groups
        there, and its method ``scenario()`` makes the plan of that point. By default the best point.
    **options
        Options of :func:`count`.

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

    columns: dict[str, Any] = {"sensitive_features": sensitive_features, "label": label}
    counts = count(data, **columns, progress=progress, **options)
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
        at=at,
    )


def take_plan(
    options: Mapping[str, Any], costs: Mapping[str, float] | None
) -> tuple[PlanRequest, dict[str, Any]]:
    """Make a request of the options of a plan; return it with the options for counting."""
    given = _with_costs(options, costs)
    return take(PlanRequest, {**given, "available": given.get("available") or ()})


def _with_costs(options: Mapping[str, Any], costs: Mapping[str, float] | None) -> dict[str, Any]:
    """Put costs by move among the options, each with its kind."""
    given = dict(options)
    for kind in ("add", "delete"):
        listed = given.get(f"cost_{kind}") or ()
        listed = list(listed.items()) if isinstance(listed, Mapping) else list(listed)
        for move, cost in (costs or {}).items():
            word, _, pattern = str(move).strip().partition(" ")
            plain = word not in ("add", "delete")
            if word == kind or (plain and kind == "add"):
                listed.append((str(move) if plain else pattern, cost))
        given[f"cost_{kind}"] = listed
    return given


def _refuse_search(options: Mapping[str, Any]) -> None:
    for name in keyword_fields(SearchRequest):
        if name in options:
            raise InputError(f"`{name}` sets how a lake is searched; name the lake with `lake`.")


def _offered_by(
    lake: Any, data: Any, counts: Counts, looking: SearchRequest, progress: Reporter
) -> Counts:
    """Count the rows of a lake that could be added to a table."""
    from equipoise.datasets.lookup import locate
    from equipoise.lake.lake import as_lake
    from equipoise.lake.loop import all_available
    from equipoise.lake.offers.prospect import explore

    base = locate(data, **counts.reading.options)
    found = explore(counts, base, as_lake(lake, progress=progress), looking, progress=progress)
    return all_available(counts, found, progress)


def _counted_alike(data: Any, counts: Counts, options: Mapping[str, Any]) -> Counts:
    """Count another table with the same columns, bins and condition."""
    if isinstance(data, Counts):
        return data
    from equipoise.datasets.lookup import locate_pool

    # With the edges of the table itself: quantiles of the pool would be other groups.
    pool = locate_pool(data, counts.reading)
    how = {k: v for k, v in options.items() if k in ("na", "missing", "missing_label", "engine")}
    how |= {k: options.get(k) for k in ("threads", "memory")}
    names = [a.name for a in counts.sensitive]
    return count(
        pool, sensitive_features=names, label=counts.label.name, bins=dict(counts.bins), **how
    )
