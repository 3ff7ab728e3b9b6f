"""Plans: how long the smallest repair takes to find, against HiGHS and against the clock.

Counting is done before and not timed. Every case runs in a fresh process, after one call
that is not timed where it is repeated: imports, ours being lazy, are not what is measured.
"""

from __future__ import annotations

import json
import math
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import data
from bars import Bar, Section, markdown_table
from timing import Timing, in_fresh_process, milliseconds, peak_memory_mb, seconds_of

if TYPE_CHECKING:
    from equipoise.counts import Counts
    from equipoise.plans.plan import Plan

Answers: TypeAlias = list[dict[str, Any]]

SETS = ("A4", "A6")
TOLERANCES = (0.05, 0.01)
LARGE = 1_000_000  # rows, and finest groups
SLOW_REPEATS = 3  # of what takes seconds

# What HiGHS gets: seconds for the whole model and for each group's, and how many groups' models.
WHOLE_LIMIT = {"A4": 60.0, "A6": 120.0}
GROUP_LIMIT = {"A4": 2.0, "A6": 1.0}
MOST_GROUPS = {"A4": 338, "A6": 200}
LEAST_PROVED = 80.0  # per cent of the groups' models, or the comparison is void
LEAST_TIMES = 100

MOST_LARGE_TABLE, MOST_MILLION, MOST_MILLION_MB = 0.2, 60, 2000
MOST_NEW = {"A4": 2, "A6": 20}
COUPLED = {  # set and reference: the gap asked for, seconds and gap in per cent at most
    ("A4", "original"): (0.01, 0.3, 1.0),
    ("A6", "original"): (0.025, 5, 2.5),
    ("A4", "new"): (0.01, 10, 1.0),
    ("A6", "new"): (None, 10, math.inf),
}
FRONTIER_POINTS, MOST_FRONTIER = 50, 2
FREE_GROUPS, FREE_LABELS, FREE_LIMIT = (1_000, 10_000, 100_000), 20, 120

COMPAS_TOLERANCES = (0.2, 0.05, 0.01)
COMPAS: dict[str, tuple[dict[str, str], tuple[float, ...]]] = {  # request, most it may cost
    "original": ({"reference": "original"}, ()),
    "new, labels kept": ({"reference": "new", "labels": "keep"}, (816, 3804, 4898)),
    "new, labels free": ({"reference": "new", "labels": "free"}, (660, 3700, 4830)),
}


def section(repeats: int) -> Section:
    """Measure every case and judge it."""
    parts = (
        _separated(_over_sets("separated", repeats)),
        _large_table(_over_tolerances("large_table", repeats)),
        _million(_asked("million")),
        _new(_over_sets("new", SLOW_REPEATS)),
        _coupled(
            [
                _asked("coupled", attributes=name, reference=reference, repeats=SLOW_REPEATS)
                for name, reference in COUPLED
            ]
        ),
        _frontier(_asked("frontier", repeats=repeats)),
        _free([_asked("free", groups=n) for n in FREE_GROUPS]),
        _compas(_asked("compas")),
    )
    how = (
        "Additions and deletions, unit costs, the whole lattice held to the tolerance on UB, if "
        "not said otherwise. Counting is not timed."
    )
    paragraphs = [how, *(text for texts, _ in parts for text in texts)]
    return Section("Plans", paragraphs, [bar for _, bars in parts for bar in bars])


def _asked(what: str, **case: Any) -> dict[str, Any]:
    told = ", ".join(str(value) for name, value in case.items() if name != "repeats")
    print(f"plans: {what} {told} ...", file=sys.stderr, flush=True)
    answer = in_fresh_process(Path(__file__), {"what": what, **case})
    return {**case, **answer}


def _over_tolerances(what: str, repeats: int, **case: Any) -> Answers:
    return [_asked(what, **case, tolerance=t, repeats=repeats) for t in TOLERANCES]


def _over_sets(what: str, repeats: int) -> Answers:
    return [answer for name in SETS for answer in _over_tolerances(what, repeats, attributes=name)]


# --- in the worker ------------------------------------------------------------------------------


def _separated_worker(case: dict[str, Any]) -> dict[str, Any]:
    import highs
    import numpy as np

    name, tolerance = case["attributes"], case["tolerance"]
    problem, solution, seconds = _searched(_adult(name), tolerance, case["repeats"])
    costs = problem.cells.cost(solution.rows)
    groups = len(costs)
    drawn = np.random.default_rng(data.SEED).permutation(groups)[: MOST_GROUPS[name]]
    whole = highs.solved(problem.have, problem.rates, tolerance, WHOLE_LIMIT[name])
    single = [
        highs.solved(problem.have[[g]], problem.rates, tolerance, GROUP_LIMIT[name]) for g in drawn
    ]
    # Ours once more: what was timed before HiGHS and after it had the same neighbours.
    seconds += _searched(_adult(name), tolerance, case["repeats"])[2]
    proved = [(a.cost, costs[g]) for a, g in zip(single, drawn, strict=True) if a.proved]
    return {
        "seconds": seconds,
        "groups": groups,
        "cost": float(costs.sum()),
        "whole": vars(whole),
        "single_seconds": sum(a.seconds for a in single) * groups / len(drawn),
        "single_models": len(drawn),
        "single_proved": len(proved),
        "single_differ": int(sum(abs(theirs - ours) > 0.5 for theirs, ours in proved)),
    }


def _large_table_worker(case: dict[str, Any]) -> dict[str, Any]:
    counts = _adult("A6", data.resampled(LARGE))
    problem, solution, seconds = _searched(counts, case["tolerance"], case["repeats"])
    cost = float(problem.cells.cost(solution.rows).sum())
    return {"seconds": seconds, "groups": len(problem.have), "cost": cost}


def _million_worker(_: dict[str, Any]) -> dict[str, Any]:
    import numpy as np

    counts = _synthetic((100, 100, 100), 2, mean_rows=10_000)
    plan, seconds = _planned(counts, 0, tolerance=0.05, allow="both", reference="original")
    memory = peak_memory_mb()
    _, (have,) = counts.finest()
    distinct = len(np.unique(have, axis=0))
    return {"seconds": seconds, "memory_mb": memory, "distinct": distinct, **_told(plan)}


def _new_worker(case: dict[str, Any]) -> dict[str, Any]:
    request = {"tolerance": case["tolerance"], "allow": "both", "reference": "new"}
    plan, seconds = _planned(_adult(case["attributes"]), case["repeats"], **request)
    return {"seconds": seconds, **_told(plan)}


def _coupled_worker(case: dict[str, Any]) -> dict[str, Any]:
    counts = _adult(case["attributes"])
    least = math.ceil(counts.n / 100)
    gap, *_ = COUPLED[case["attributes"], case["reference"]]
    request = {"tolerance": 0.05, "allow": "both", "reference": case["reference"], "gap": gap}
    plan, seconds = _planned(counts, case["repeats"], min_group=least, **request)
    return {"seconds": seconds, "least": least, **_told(plan)}


def _frontier_worker(case: dict[str, Any]) -> dict[str, Any]:
    from equipoise.plans.frontier import make_frontier
    from equipoise.plans.request import PlanRequest

    counts, request = _adult("A4"), PlanRequest(allow="both", reference="original")

    def drawn() -> Any:
        return make_frontier(counts, request, points=FRONTIER_POINTS)

    points = drawn().points
    assert len(points) == FRONTIER_POINTS
    ends = [[p.tolerance, p.cost] for p in (points[0], points[-1])]
    return {"seconds": [seconds_of(drawn) for _ in range(case["repeats"])], "ends": ends}


def _free_worker(case: dict[str, Any]) -> dict[str, Any]:
    counts = _synthetic((100, case["groups"] // 100), FREE_LABELS, mean_rows=1_000)
    signal.alarm(FREE_LIMIT)
    try:
        plan, seconds = _planned(counts, 0, labels="free")
    except TimeoutError:
        return {"seconds": [math.inf]}
    finally:
        signal.alarm(0)
    return {"seconds": seconds, **_told(plan)}


def _compas_worker(_: dict[str, Any]) -> dict[str, Any]:
    import equipoise

    counts = equipoise.count("compas", sensitive_features=["sex", "race"], label="risk", count="n")
    lines: dict[str, Any] = {}
    for name, (request, _most) in COMPAS.items():
        plans = [
            _planned(counts, 0, tolerance=t, allow="both", **request) for t in COMPAS_TOLERANCES
        ]
        lines[name] = [{"seconds": seconds, **_told(plan)} for plan, seconds in plans]
    return {"lines": lines}


def _adult(attributes: str, path: Path = data.BUNDLED) -> Counts:
    import equipoise

    return equipoise.count(
        str(path),
        sensitive_features=data.ATTRIBUTES[attributes],
        label=data.LABEL,
        bins={"age": data.AGE_EDGES},
    )


def _synthetic(sizes: tuple[int, ...], labels: int, *, mean_rows: float) -> Counts:
    """A group for every combination of values: gamma sizes, Dirichlet rates, Poisson rows."""
    import numpy as np

    from equipoise.counts import Axis, Counts

    rng = np.random.default_rng(data.SEED)
    expected = rng.gamma(2.0, mean_rows / 2, math.prod(sizes))
    rates = rng.dirichlet(np.full(labels, 2.0), len(expected))
    have = rng.poisson(expected[:, None] * rates).astype(np.int64)
    have[have.sum(axis=1) == 0, 0] = 1
    lines, label = np.nonzero(have)
    codes = np.stack([*np.unravel_index(lines, sizes), label], axis=1).astype(np.int32)
    axes = [Axis(f"attribute {i}", tuple(map(str, range(n)))) for i, n in enumerate(sizes)]
    axes.append(Axis("label", tuple(map(str, range(labels))), "label"))
    return Counts(axes=tuple(axes), codes=codes, rows=have[lines, label])


def _searched(counts: Counts, tolerance: float, repeats: int) -> tuple[Any, Any, list[float]]:
    """The problem, its solution by the separated search, and the seconds of both together."""
    from equipoise.plans.problem import pose
    from equipoise.plans.request import PlanRequest
    from equipoise.plans.solution import solve

    request = PlanRequest(tolerance=tolerance, allow="both", reference="original")
    problem = pose(counts, request)
    solution = solve(problem)
    assert solution.method == "separated"
    return (
        problem,
        solution,
        [seconds_of(lambda: solve(pose(counts, request))) for _ in range(repeats)],
    )


def _planned(counts: Counts, repeats: int, **request: Any) -> tuple[Plan, list[float]]:
    """The plan with its certificate, and the seconds; without repeats, of the only call."""
    from equipoise.plans.planner import make_plan
    from equipoise.plans.request import PlanRequest

    asked = PlanRequest(**request)
    start = time.perf_counter()
    plan = make_plan(counts, asked)
    first = time.perf_counter() - start
    if not plan.certificate.reached:
        raise AssertionError(f"the plan does not reach its tolerance: {request}")
    return plan, [seconds_of(lambda: make_plan(counts, asked)) for _ in range(repeats)] or [first]


def _told(plan: Plan) -> dict[str, Any]:
    return {"cost": plan.cost, "bound": plan.bound, "method": plan.method}


def _too_late(*_: object) -> None:
    raise TimeoutError


WORKERS: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
    "separated": _separated_worker,
    "large_table": _large_table_worker,
    "million": _million_worker,
    "new": _new_worker,
    "coupled": _coupled_worker,
    "frontier": _frontier_worker,
    "free": _free_worker,
    "compas": _compas_worker,
}


# --- results ------------------------------------------------------------------------------------


Part: TypeAlias = tuple[list[str], list[Bar]]


def _separated(answers: Answers) -> Part:
    how = (
        "`reference original`: the separated search, planning from counts, against HiGHS on one "
        "model of all groups and on one for each group, building the models not included and "
        "`mip_rel_gap` 0. Milliseconds; × is against the median of ours, because HiGHS runs once. "
        f"HiGHS has {WHOLE_LIMIT['A4']:.0f} s (A6: {WHOLE_LIMIT['A6']:.0f} s) for the whole model; "
        "where it stops there, × is a lower limit (≥) and its bound and its best plan are given. "
        f"A group's model has {GROUP_LIMIT['A4']:.0f} s (A6: {GROUP_LIMIT['A6']:.0f} s, and the "
        f"time is that of {MOST_GROUPS['A6']} drawn groups, extrapolated to all)."
    )
    header = ["set", "groups", "tolerance", "ours", "least cost", "one model", "×", "its cost"]
    header += ["each group", "×", "proved", "other optimum"]
    table = markdown_table(header, [_separated_line(a) for a in answers])
    return [how, table], [bar for a in answers for bar in _separated_bars(a)]


def _separated_line(a: dict[str, Any]) -> list[str]:
    whole, ours = a["whole"], Timing.of(a["seconds"]).median
    found = f"{whole['cost']:,.0f}"
    return [
        a["attributes"],
        f"{a['groups']:,}",
        f"{a['tolerance']:g}",
        milliseconds(ours),
        f"{a['cost']:,.0f}",
        milliseconds(whole["seconds"]),
        f"{'' if whole['proved'] else '≥ '}{whole['seconds'] / ours:,.0f}",
        found if whole["proved"] else f"{whole['bound']:,.0f} to {found}",
        milliseconds(a["single_seconds"]),
        f"{a['single_seconds'] / ours:,.0f}",
        f"{a['single_proved']} of {a['single_models']}",
        str(a["single_differ"]),
    ]


def _separated_bars(a: dict[str, Any]) -> Iterator[Bar]:
    where = f"{a['attributes']}, tolerance {a['tolerance']:g}"
    whole, ours = a["whole"], Timing.of(a["seconds"]).median
    proved = 100 * a["single_proved"] / a["single_models"]
    yield Bar(f"{where}, per-group models proved by HiGHS", proved, LEAST_PROVED, "at least", " %")
    times = a["single_seconds"] / ours if proved >= LEAST_PROVED else math.nan  # void
    yield Bar(f"{where}, faster than HiGHS per group", times, LEAST_TIMES, "at least")
    stopped = "" if whole["proved"] else ", stopped unproved"
    name = f"{where}, faster than HiGHS on one model{stopped}"
    yield Bar(name, whole["seconds"] / ours, LEAST_TIMES, "at least")
    differ = a["single_differ"] + _contradicts(whole, a["cost"])
    yield Bar(f"{where}, optima that differ from HiGHS's", differ, 0, unit="")


def _contradicts(whole: dict[str, Any], cost: float) -> bool:
    """Whether the whole model has another optimum, or one outside what HiGHS left open."""
    least = whole["cost"] if whole["proved"] else whole["bound"]
    return not least - 0.5 <= cost <= whole["cost"] + 0.5


def _large_table(answers: Answers) -> Part:
    where = f"A6, {LARGE:,} rows"
    timings = [(a, Timing.of(a["seconds"])) for a in answers]
    rows = [
        [
            f"{a['tolerance']:g}",
            f"{a['groups']:,}",
            f"{a['cost']:,.0f}",
            milliseconds(t.best),
            milliseconds(t.median),
        ]
        for a, t in timings
    ]
    header = ["tolerance", "groups", "least cost", "best", "median"]
    bars = [
        Bar(f"{where}, tolerance {a['tolerance']:g}", t.best, MOST_LARGE_TABLE, unit=" s")
        for a, t in timings
    ]
    return [f"The separated search, {where}, milliseconds:", markdown_table(header, rows)], bars


def _million(a: dict[str, Any]) -> Part:
    (seconds,) = a["seconds"]
    text = (
        f"A synthetic table of {LARGE:,} finest groups and 2 labels ({a['distinct']:,} groups are "
        f"different), tolerance 0.05, `reference original`, the plan with its certificate: "
        f"{seconds:.1f} s, peak resident memory of the process {a['memory_mb']:,.0f} MB."
    )
    bars = [
        Bar(f"{LARGE:,} groups", seconds, MOST_MILLION, unit=" s"),
        Bar(f"{LARGE:,} groups, peak memory", a["memory_mb"], MOST_MILLION_MB, unit=" MB"),
    ]
    return [text], bars


def _new(answers: Answers) -> Part:
    how = (
        "`reference new`, labels kept, the plan with its certificate, seconds; no plan costs less "
        "than the bound:"
    )
    header = ["set", "tolerance", "best", "median", "cost", "bound", "gap"]
    rows, bars = [], []
    for a in answers:
        time_ = Timing.of(a["seconds"])
        name, tolerance = a["attributes"], f"{a['tolerance']:g}"
        rows.append([name, tolerance, f"{time_.best:.2f}", f"{time_.median:.2f}", *_sure(a)])
        where = f"{name}, tolerance {tolerance}, reference new"
        bars.append(Bar(where, time_.best, MOST_NEW[name], unit=" s"))
    return [how, markdown_table(header, rows)], bars


def _coupled(answers: Answers) -> Part:
    how = (
        f"Coupled: only groups of at least {answers[0]['least']} rows, 1 % of all, are constrained; "
        "tolerance 0.05, the plan with its certificate, seconds:"
    )
    header = ["set", "reference", "gap asked for", "best", "median", "cost", "bound", "gap"]
    lines, bars = [], []
    for a in answers:
        time_, case = Timing.of(a["seconds"]), (a["attributes"], a["reference"])
        asked, most, most_gap = COUPLED[case]
        told = "" if asked is None else f"{asked:g}"
        lines.append([*case, told, f"{time_.best:.2f}", f"{time_.median:.2f}", *_sure(a)])
        where = f"coupled, {case[0]}, `{case[1]}`"
        bars.append(Bar(where, time_.best, most, unit=" s"))
        if math.isfinite(most_gap):
            bars.append(Bar(f"{where}, gap", 100 * _gap(a), most_gap, unit=" %"))
    return [how, markdown_table(header, lines)], bars


def _frontier(a: dict[str, Any]) -> Part:
    time_ = Timing.of(a["seconds"])
    (tight, most), (wide, least) = a["ends"]
    text = (
        f"Frontier of A4 at {FRONTIER_POINTS} tolerances, from {tight:g} (cost {most:,.0f}) to "
        f"{wide:g} (cost {least:,.0f}), `reference original`: {time_.best:.2f} s (median "
        f"{time_.median:.2f})."
    )
    bar = Bar(f"frontier, A4, {FRONTIER_POINTS} tolerances", time_.best, MOST_FRONTIER, unit=" s")
    return [text], [bar]


def _free(answers: Answers) -> Part:
    how = (
        f"Zero bias with `labels free`, additions only, synthetic groups × {FREE_LABELS} labels, "
        "one run each, no bar:"
    )
    rows = [
        [f"{a['groups']:,}", f"{a['seconds'][0]:.1f}", f"{a['cost']:,.0f}"]
        if "cost" in a
        else [f"{a['groups']:,}", f"stopped after {FREE_LIMIT}", ""]
        for a in answers
    ]
    return [how, markdown_table(["groups", "seconds", "cost"], rows)], []


def _compas(answer: dict[str, Any]) -> Part:
    rows, bars = [], []
    for name, (_, most) in COMPAS.items():
        plans = answer["lines"][name]
        cells = [f"{p['cost']:,.0f} ({p['bound']:,.0f}; {p['seconds'][0]:.2f} s)" for p in plans]
        rows.append([name, *cells])
        bars += [
            Bar(f"COMPAS, {name}, tolerance {t:g}, cost", p["cost"], limit, unit="")
            for t, p, limit in zip(COMPAS_TOLERANCES[: len(most)], plans, most, strict=False)
        ]
    how = "COMPAS, sex × race, by tolerance: cost (bound; seconds of the only run)."
    header = ["reference", *(f"{t:g}" for t in COMPAS_TOLERANCES)]
    return [how, markdown_table(header, rows)], bars


def _gap(a: dict[str, Any]) -> float:
    return (a["cost"] - a["bound"]) / a["cost"] if a["cost"] else 0.0


def _sure(a: dict[str, Any]) -> Sequence[str]:
    return f"{a['cost']:,.0f}", f"{a['bound']:,.0f}", f"{_gap(a):.2%}"


if __name__ == "__main__":
    signal.signal(signal.SIGALRM, _too_late)
    asked = json.loads(sys.argv[1])
    print(json.dumps(WORKERS[asked["what"]](asked)))
