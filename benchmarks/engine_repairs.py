"""Work where the rows are: time, and memory of the client, with tables that it could not hold.

All tables are made up under a fixed seed, in temporary folders.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bars import Bar, Section, markdown_table
from timing import in_fresh_process, peak_memory_mb

ROWS, TABLES, ROWS_OF_TABLE = 10_000_000, 6, 20_000
MEMORY = "200MB"
"""What DuckDB may use, which counts towards the memory of the client."""

MOST_MEMORY = 500


def section() -> Section:
    """Repair a large base, and judge the memory that this takes."""
    with tempfile.TemporaryDirectory() as scratch:
        _told(f"making a base of {ROWS:,} rows")
        case = {"folder": scratch, "rows": ROWS}
        in_fresh_process(Path(__file__), {"what": "make", **case})
        _told("repairing it")
        repaired = in_fresh_process(Path(__file__), {"what": "repair", **case})
    return _section(repaired)


def _told(what: str) -> None:
    print(f"engines: {what} ...", file=sys.stderr, flush=True)


# --- tables -------------------------------------------------------------------------------------

_COLUMNS = """
    CASE WHEN random() < 0.45 THEN 'Female' ELSE 'Male' END AS sex,
    (['White', 'Black', 'Asian', 'Other'])[1 + CAST(floor(random() * 4) AS INT)] AS race,
    CAST(17 + floor(random() * 60) AS INT) AS age,
    CAST(1 + floor(random() * 80) AS INT) AS hours,
    'City ' || CAST(floor(random() * 4000) AS INT) AS city,
    'occupation ' || CAST(floor(random() * 14) AS INT) AS occupation,
    round(random() * 100000, 2) AS gain,
    DATE '1980-01-01' + CAST(floor(random() * 12000) AS INT) AS joined
"""


def make(asked: dict[str, Any]) -> dict[str, Any]:
    """Write a base in which few women have a high income, and tables with such women."""
    import duckdb

    folder, rows = Path(asked["folder"]), int(asked["rows"])
    (folder / "lake").mkdir()
    connection = duckdb.connect()
    connection.execute("SET threads = 1; SELECT setseed(0.5)")
    rich = "CASE WHEN random() < {} THEN '>50K' ELSE '<=50K' END AS income"
    uneven = rich.format("CASE WHEN sex = 'Male' THEN 0.3 ELSE 0.2995 END")
    base = f"SELECT *, {uneven} FROM (SELECT {_COLUMNS} FROM range({rows}))"
    connection.execute(f"COPY ({base}) TO '{folder}/base.parquet'")
    for i in range(TABLES):
        some = f"SELECT *, {rich.format(0.5)} FROM (SELECT {_COLUMNS} FROM range({ROWS_OF_TABLE}))"
        # A tenth of the rows are in the base already.
        copied = (
            f"SELECT * FROM '{folder}/base.parquet' LIMIT {ROWS_OF_TABLE // 10} OFFSET {i * 50_000}"
        )
        target = f"{folder}/lake/table_{i}.parquet"
        connection.execute(f"COPY ({some} UNION ALL ({copied})) TO '{target}'")
    return {}


def repair(asked: dict[str, Any]) -> dict[str, Any]:
    """Plan a repair of the base, and carry it out."""
    import equipoise as eq
    from equipoise.counts import CountRequest
    from equipoise.engines.routing import Routing
    from equipoise.engines.sources import locate

    folder = Path(asked["folder"])
    base, output = folder / "base.parquet", folder / "repaired.parquet"
    steps: dict[str, float] = {}
    told: list[tuple[str, float]] = []

    def progress(title: str, share: float) -> None:  # noqa: ARG001
        told.append((title, time.perf_counter()))

    start = time.perf_counter()
    lake = eq.Lake(folder / "lake", engine=Routing(memory=MEMORY), progress=progress)
    request = CountRequest(sensitive=("sex", "race"), label="income")
    plan = eq.plan(lake.engine.counts(locate(base), request))
    steps["plan"] = time.perf_counter() - start
    acquired = lake.acquire(plan, output, base=base)
    end = time.perf_counter()
    for (title, at), (_, until) in zip(told, [*told[1:], ("", end)], strict=True):
        name = title.split("table_")[0].split("/")[0].strip()
        steps[name] = steps.get(name, 0.0) + until - at
    return {
        "seconds": end - start,
        "memory": peak_memory_mb(),
        "added": acquired.added,
        "duplicates": acquired.duplicates,
        "as_planned": acquired.as_planned,
        "steps": {name: round(seconds, 2) for name, seconds in steps.items()},
    }


WORKERS: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {"make": make, "repair": repair}


# --- results ------------------------------------------------------------------------------------


def _section(repaired: dict[str, Any]) -> Section:
    rows = [["repair with DuckDB", f"{repaired['seconds']:.0f}", f"{repaired['memory']:,.0f}"]]
    rows += [
        [name, f"{seconds:.0f}", ""] for name, seconds in repaired["steps"].items() if seconds >= 1
    ]
    how = (
        f"A base of {ROWS:,} rows and 9 columns in a Parquet file, and a lake of {TABLES} tables of "
        f"{ROWS_OF_TABLE:,} rows. DuckDB may use {MEMORY}. The repair adds {repaired['added']:,} rows "
        f"and leaves out {repaired['duplicates']:,} as duplicates."
    )
    bars = [
        Bar("client memory of a repair", repaired["memory"], MOST_MEMORY, unit=" MB"),
        Bar("repairs not as planned", float(not repaired["as_planned"]), 0, unit=""),
    ]
    return Section("Engines", [how, markdown_table(["", "seconds", "peak MB"], rows)], bars)


if __name__ == "__main__":
    asked = json.loads(sys.argv[1])
    print(json.dumps(WORKERS[asked["what"]](asked)))
