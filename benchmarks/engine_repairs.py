"""Whole repairs where the rows are: time, and memory of the client, with a base that it could not hold.

All tables are made up under a fixed seed, in temporary folders.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import psutil
from bars import Bar, Section, markdown_table
from databases import spark
from timing import in_fresh_process, peak_memory_mb

ROWS, TABLES, ROWS_OF_TABLE = 10_000_000, 50, 20_000
MEMORY = "150MB"
"""What DuckDB may use, which counts towards the memory of the client."""

MOST_MEMORY = 500
WHERE = {"duckdb": "DuckDB", "spark": "Spark"}


def section() -> Section:
    """Repair a large base, and judge the memory that this takes."""
    with tempfile.TemporaryDirectory() as scratch:
        case = {"folder": scratch, "rows": ROWS, "tables": TABLES}
        _told(f"making a base of {ROWS:,} rows and a lake of {TABLES} tables")
        in_fresh_process(Path(__file__), {"what": "make", **case})
        repaired = {}
        for what, name in WHERE.items():
            _told(f"repairing it with {name}")
            repaired[name] = in_fresh_process(Path(__file__), {"what": what, **case})
    return _section(repaired)


def _told(what: str) -> None:
    print(f"engine_repairs: {what} ...", file=sys.stderr, flush=True)


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
    for i in range(int(asked["tables"])):
        some = f"SELECT *, {rich.format(0.5)} FROM (SELECT {_COLUMNS} FROM range({ROWS_OF_TABLE}))"
        # A tenth of the rows are in the base already.
        copied = f"SELECT * FROM '{folder}/base.parquet' LIMIT {ROWS_OF_TABLE // 10} OFFSET {i * ROWS_OF_TABLE}"
        target = f"{folder}/lake/table_{i}.parquet"
        connection.execute(f"COPY ({some} UNION ALL ({copied})) TO '{target}'")
    return {}


# --- repairs ------------------------------------------------------------------------------------


def with_duckdb(asked: dict[str, Any]) -> dict[str, Any]:
    """Repair the base, which is a file, with the files of the lake."""
    import equipoise as eq
    from equipoise.engines.routing import Routing

    folder, clock = Path(asked["folder"]), Clock()
    tables = sorted((folder / "lake").glob("*.parquet"))
    lake = eq.Lake(tables, engine=Routing(memory=MEMORY), progress=clock)
    base, output = folder / "base.parquet", folder / "repaired.parquet"
    return _repaired(base, lake, output, clock)


def in_spark(asked: dict[str, Any]) -> dict[str, Any]:
    """Repair the base, which is a table of Spark, with the tables of a schema, into a new table."""
    folder = Path(asked["folder"])
    with tempfile.TemporaryDirectory() as scratch, spark(Path(scratch)) as session:
        for schema in ("warehouse", "archive"):
            session.sql(f"CREATE DATABASE {schema}")
        files = sorted((folder / "lake").glob("*.parquet"))
        for name, file in [("warehouse.people", folder / "base.parquet")] + [
            (f"archive.{file.stem}", file) for file in files
        ]:
            session.sql(f"CREATE TABLE {name} USING parquet LOCATION '{file}'")
        return _repaired(
            "spark:warehouse.people", "spark:archive", "spark:warehouse.repaired", Clock()
        )


class Clock:
    """A reporter of progress that adds up the time of each step."""

    def __init__(self) -> None:
        self.steps: dict[str, float] = {}
        self._step, self._since = "planning", time.perf_counter()

    def __call__(self, title: str, share: float) -> None:  # noqa: ARG002
        now = time.perf_counter()
        self.steps[self._step] = self.steps.get(self._step, 0.0) + now - self._since
        self._step, self._since = (
            " ".join(title.split()[: 2 if "the" in title.split()[:2] else 1]),
            now,
        )


def _repaired(base: Any, lake: Any, output: Any, clock: Clock) -> dict[str, Any]:
    import equipoise as eq

    start = time.perf_counter()
    done = eq.repair(
        base, lake, output, sensitive_features=["sex", "race"], label="income", progress=clock
    )
    seconds = time.perf_counter() - start
    clock("", 1.0)
    verified = done.verification is not None and done.verification.ok
    return {
        "seconds": seconds,
        "memory": peak_memory_mb(),
        "driver": _driver_mb(),
        "added": done.acquired.added,
        "duplicates": done.acquired.duplicates,
        "good": done.acquired.as_planned and verified,
        "steps": {name: round(seconds, 2) for name, seconds in clock.steps.items()},
    }


def _driver_mb() -> float:
    """Peak memory of the Java process that plans the queries of Spark; 0 without one."""
    children = psutil.Process().children()
    java = [child.pid for child in children if "java" in child.name()]
    lines = Path(f"/proc/{java[0]}/status").read_text().splitlines() if java else []
    return next((int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM")), 0.0)


WORKERS: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
    "make": make,
    "duckdb": with_duckdb,
    "spark": in_spark,
}


# --- results ------------------------------------------------------------------------------------


def _section(repaired: dict[str, dict[str, Any]]) -> Section:
    rows = [line for name, found in repaired.items() for line in _lines(name, found)]
    first = next(iter(repaired.values()))
    how = (
        f"A base of {ROWS:,} rows and 9 columns, and a lake of {TABLES} tables of {ROWS_OF_TABLE * 11 // 10:,} rows, "
        f"some of which are in the base. They are Parquet files for DuckDB, which may use {MEMORY}, and tables "
        "of Spark, which makes a new table and has two workers with one core each. A repair plans, finds, "
        f"takes, writes and verifies; it adds {first['added']:,} rows. Memory is the peak of the Python process; that of the Java "
        "process which plans the queries of Spark is told beside it."
    )
    bars = [
        *(
            Bar(f"{name}, client memory of a repair", found["memory"], MOST_MEMORY, unit=" MB")
            for name, found in repaired.items()
        ),
        Bar(
            "repairs not as planned",
            float(sum(not f["good"] for f in repaired.values())),
            0,
            unit="",
        ),
    ]
    table = markdown_table(["", "seconds", "peak MB", "Java, MB"], rows)
    return Section("Repairs by engines", [how, table], bars)


def _lines(name: str, found: dict[str, Any]) -> Sequence[Sequence[str]]:
    driver = f"{found['driver']:,.0f}" if found["driver"] else ""
    whole = [f"repair with {name}", f"{found['seconds']:.0f}", f"{found['memory']:,.0f}", driver]
    steps = [
        [f"— {step}", f"{seconds:.0f}", "", ""]
        for step, seconds in found["steps"].items()
        if seconds >= found["seconds"] / 50
    ]
    return [whole, *steps]


if __name__ == "__main__":
    asked = json.loads(sys.argv[1])
    print(json.dumps(WORKERS[asked["what"]](asked)))
