"""Work on cases of `plan_cases` with the package that PYTHONPATH names; an answer a line, as JSON.

The cases come as JSON on standard input. Counting is not timed; one small plan before the first
case pays for imports, which are lazy.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import plan_tables

REPEATS = 5
QUICK = 1.0  # seconds: what takes longer is run once
GRID_ROWS = 2_380


def main() -> None:
    import equipoise

    print(json.dumps({"package": str(Path(equipoise.__file__).resolve().parent)}), flush=True)
    _warm()
    for line in sys.stdin:
        case = json.loads(line)
        try:
            answer = WORKERS[case["kind"]](case)
        except Exception as error:  # noqa: BLE001 - told as the answer; the others go on
            answer = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps({"id": case["id"], **answer}), flush=True)


def _warm() -> None:
    from equipoise.plans.planner import make_plan
    from equipoise.plans.request import PlanRequest

    for table in ("three small groups", "COMPAS"):
        make_plan(plan_tables.counted(table), PlanRequest(tolerance=0.3, allow="both"))


def _timed(call: Callable[[], Any]) -> tuple[Any, dict[str, list[float]]]:
    """What a call gives, and its seconds, by the wall and of the processor; quick ones repeated."""
    wall: list[float] = []
    processor: list[float] = []
    result = None
    while not wall or (wall[0] < QUICK and len(wall) < REPEATS):
        start, started = time.perf_counter(), time.process_time()
        result = call()
        wall.append(time.perf_counter() - start)
        processor.append(time.process_time() - started)
    return result, {"wall": wall, "cpu": processor}


def _request(case: dict[str, Any]) -> Any:
    from equipoise.plans.request import PlanRequest

    given = dict(case["request"])
    if "pool" in given:
        given["pool"] = plan_tables.counted(given["pool"])
    return PlanRequest(**given)


def _plan(case: dict[str, Any]) -> dict[str, Any]:
    from equipoise.plans.infeasibility import Infeasible
    from equipoise.plans.planner import make_plan

    counts, request = plan_tables.counted(case["table"]), _request(case)

    def planned() -> Any:
        try:
            return make_plan(counts, request, explain=False)
        except Infeasible as error:
            return error

    plan, seconds = _timed(planned)
    if isinstance(plan, Exception):
        return {"no_plan": str(plan), **seconds}
    told = {"cost": plan.cost, "bound": plan.bound, "reached": plan.certificate.reached}
    return {**told, "method": plan.method, "stopped": plan.stopped, **seconds}


def _infeasible(case: dict[str, Any]) -> dict[str, Any]:
    from equipoise.plans.infeasibility import Infeasible
    from equipoise.plans.planner import make_plan

    counts, request = plan_tables.counted(case["table"]), _request(case)

    def refused() -> Infeasible | None:
        try:
            make_plan(counts, request)
        except Infeasible as error:
            return error
        return None

    error, seconds = _timed(refused)
    if error is None:
        raise AssertionError(f"there is a plan: {case['name']}")
    needed = {r.option: r.needed for r in error.relaxations}
    return {"proved": error.proved, "needed": needed, "sentence": str(error), **seconds}


def _frontier(case: dict[str, Any]) -> dict[str, Any]:
    from equipoise.plans.frontier import make_frontier

    counts, request = plan_tables.counted(case["table"]), _request(case)
    front, seconds = _timed(lambda: make_frontier(counts, request, points=case["points"]))
    points = [[p.tolerance, p.cost, p.bound] for p in front.points]
    return {"points": points, **seconds}


def _grid_search(_: dict[str, Any]) -> dict[str, Any]:
    from imblearn.pipeline import make_pipeline
    from sklearn.compose import make_column_transformer
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import GridSearchCV
    from sklearn.preprocessing import OneHotEncoder

    from equipoise.estimators import UniformBiasSampler

    X, y, more, more_y = plan_tables.people(GRID_ROWS)
    coded = make_column_transformer((OneHotEncoder(), ["sex", "race"]), remainder="passthrough")
    sampler = UniformBiasSampler(
        pool=(more, more_y), sensitive_columns=["sex", "race"], random_state=0
    )
    model = make_pipeline(sampler, coded, LogisticRegression(max_iter=1000))
    grid = {
        "uniformbiassampler__tolerance": [0.05, 0.1],
        "uniformbiassampler__labels": ["keep", "free"],
    }
    search, seconds = _timed(lambda: GridSearchCV(model, grid, cv=3, refit=False).fit(X, y))
    return {"scores": search.cv_results_["mean_test_score"].tolist(), **seconds}


def _repair(_: dict[str, Any]) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        _run("demo", "--output", folder)
        made = Path(folder)
        files = [str(made / "people.parquet"), str(made / "lake")]
        asked = ["--sensitive", "sex,race", "--label", "income", "--tolerance", "0.1"]
        mapping = ["--mapping", str(made / "mapping.toml")]
        again = ["-o", str(made / "again.parquet"), "--quiet"]
        return _timed_run("repair", *files, *asked, *mapping, *again)


def _evaluate(_: dict[str, Any]) -> dict[str, Any]:
    line = "adult --sensitive sex,race --label income --tolerance 0.05 --max-rows 4000"
    # The other races have so few rows that a sample of them cannot be repaired.
    where = ["--where", "race IN ('White', 'Black')"]
    small = ["--repeats", "2", "--models", "logistic", "--quiet"]
    return _timed_run("evaluate", *line.split(), *where, *small)


def _timed_run(*arguments: str) -> dict[str, Any]:
    start, started = time.perf_counter(), _of_children()
    _run(*arguments)
    return {"wall": [time.perf_counter() - start], "cpu": [_of_children() - started]}


def _of_children() -> float:
    """Seconds of the processor that child processes took so far."""
    times = os.times()
    return times.children_user + times.children_system


def _run(*arguments: str) -> None:
    command = [sys.executable, "-m", "equipoise", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(arguments)}: {done.stderr}")


WORKERS: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
    "plan": _plan,
    "infeasible": _infeasible,
    "frontier": _frontier,
    "grid_search": _grid_search,
    "repair": _repair,
    "evaluate": _evaluate,
}

if __name__ == "__main__":
    main()
