"""Work where the rows are: `measure` against a `GROUP BY` by hand, and rows chosen by key.

Adult is resampled to ten million rows, in a Parquet file, a table of PostgreSQL and a table of Spark.
Every database is used by a process of its own, in which all contestants take turns.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import data
from bars import Bar, Section, markdown_table
from databases import KEY, load_postgres, load_spark, postgres, spark
from revisions import source_at
from timing import in_fresh_process, interleaved

ROWS, CHOSEN = 10_000_000, 10_000
REPEATS, ROUNDS = 7, 10
REVISION = "51d3958"  # the last one with one engine, that of files
SETS = ("A2", "A4")

MOST_DATABASE, MOST_BEFORE, MOST_CHOICE = 1.15, 1.05, 5.0
BY_HAND, OURS, CHOICE = "GROUP BY by hand", "measure", "rows chosen by key"

Contestants = dict[str, Callable[[], object]]


def section() -> Section:
    """Measure every engine, and judge it."""
    data.warm(data.resampled(ROWS))
    here = Path(__file__)
    found: dict[str, dict[str, list[float]]] = {}
    for engine in ("PostgreSQL", "Spark"):
        _told(f"{ROWS:,} rows in {engine}")
        found[engine] = in_fresh_process(here, {"what": engine, "rows": ROWS})
    _told("DuckDB, and the code before")
    duckdb = _beside_before(here)
    bars = [*_bars(found), *_duckdb_bars(duckdb)]
    header = ["", "set", f"{BY_HAND}, s", f"{OURS}, s", "×"]
    table = markdown_table(header, [*_lines(found), *_duckdb_lines(duckdb)])
    how = (
        f"Adult resampled to {ROWS:,} rows. Medians of {REPEATS} interleaved repeats in one process; × is "
        f"the ratio of medians. {CHOSEN:,} rows are chosen by the key of the table. For DuckDB the code "
        f"before is revision {REVISION}; each of both runs in {ROUNDS} processes, first and second in turn. "
        "PostgreSQL 18 has its default settings, and Spark two workers with one core each."
    )
    return Section("Engines", [how, table], bars)


def _told(what: str) -> None:
    print(f"engines: {what} ...", file=sys.stderr, flush=True)


# --- contestants --------------------------------------------------------------------------------


def _in_postgres(asked: dict[str, Any]) -> dict[str, list[float]]:
    import psycopg

    with tempfile.TemporaryDirectory() as scratch, postgres(Path(scratch) / "server") as address:
        load_postgres(address, "people", [data.resampled(asked["rows"])], Path(scratch))
        with psycopg.connect(address, autocommit=True) as server:

            def by_hand(query: str) -> Any:
                return server.execute(query.encode()).fetchall()

            sign = "&" if "?" in address else "?"
            place = f"{address}{sign}table=people&id={KEY}"
            return interleaved(_contestants(by_hand, place, '"'), REPEATS)


def _in_spark(asked: dict[str, Any]) -> dict[str, list[float]]:
    with tempfile.TemporaryDirectory() as scratch, spark(Path(scratch)) as session:
        load_spark(session, "people", [data.resampled(asked["rows"])])

        def by_hand(query: str) -> Any:
            return session.sql(query).collect()

        contestants = _contestants(by_hand, f"spark:people?id={KEY}", "`")
        for contestant in contestants.values():
            contestant()  # once more: Java compiles what is called often
        return interleaved(contestants, REPEATS)


def _contestants(by_hand: Callable[[str], Any], place: str, quote: str) -> Contestants:
    import equipoise as eq
    from equipoise.engines.routing import shared_engine
    from equipoise.engines.sources import locate

    contestants: Contestants = {}
    for name in SETS:
        attributes = data.ATTRIBUTES[name]
        query = _group_by(attributes, quote)
        bins = {"age": data.AGE_EDGES} if "age" in attributes else None
        options: dict[str, Any] = {
            "label": data.LABEL,
            "bins": bins,
            "sensitive_features": attributes,
        }
        contestants[f"{BY_HAND} {name}"] = lambda query=query: by_hand(query)
        contestants[f"{OURS} {name}"] = lambda options=options: eq.measure(place, **options)
        cells = {tuple(row[:-1]): row[-1] for row in by_hand(query)}
        measured = eq.measure(place, **options).counts
        if sorted(cells.values()) != sorted(measured.rows.tolist()):
            raise AssertionError(f"{place}: measure() counted other rows than GROUP BY")
    source, engine = locate(place), shared_engine()
    request, take = _choice(source, engine)

    def choose() -> object:
        rows = engine.rows(source, request, take, located=True)
        if len(rows) != CHOSEN:
            raise AssertionError(f"{len(rows)} rows were chosen")
        return rows

    contestants[CHOICE] = choose
    return contestants


def _choice(source: Any, engine: Any) -> tuple[Any, Any]:
    """Ask for rows of every cell of sex, race and income, some of which have few."""
    from dataclasses import replace

    import numpy as np

    from equipoise.counts import CountRequest

    request = CountRequest(sensitive=("sex", "race"), label=data.LABEL)
    counts = engine.counts(source, request)
    each = np.minimum(counts.rows, CHOSEN // len(counts.rows))
    each[np.argmax(counts.rows)] += CHOSEN - each.sum()
    return request, replace(counts, rows=each)


def _group_by(attributes: list[str], quote: str) -> str:
    steps = " ".join(
        f"WHEN {quote}age{quote} < {edge} THEN {i}" for i, edge in enumerate(data.AGE_EDGES)
    )
    decade = f"CASE {steps} ELSE {len(data.AGE_EDGES)} END"
    keys = [decade if n == "age" else f"{quote}{n}{quote}" for n in [*attributes, data.LABEL]]
    numbers = ", ".join(str(i + 1) for i in range(len(keys)))
    return f"SELECT {', '.join(keys)}, count(*) FROM people GROUP BY {numbers}"


def _beside_before(here: Path) -> dict[str, list[float]]:
    """Measure the file with this code and the code before, in turn; only this if it is not here."""
    case = json.dumps({"what": "DuckDB", "rows": ROWS})
    seconds: dict[str, list[float]] = {}
    with ExitStack() as stack:
        before = source_at(REVISION, stack)
        sources = {"now": None} | ({} if before is None else {"before": before})
        for i in range(ROUNDS):
            order = list(sources.items())
            for when, path in order if i % 2 else reversed(order):
                environment = dict(os.environ) | ({} if path is None else {"PYTHONPATH": str(path)})
                command = [sys.executable, str(here), case]
                done = subprocess.run(
                    command, env=environment, check=True, stdout=subprocess.PIPE, text=True
                )
                for name, some in json.loads(done.stdout.splitlines()[-1]).items():
                    seconds.setdefault(f"{name} {when}", []).extend(some)
    return seconds


def _in_duckdb(asked: dict[str, Any]) -> dict[str, list[float]]:
    import equipoise as eq

    path = str(data.resampled(asked["rows"]))
    contestants: Contestants = {}
    for name in SETS:
        attributes = data.ATTRIBUTES[name]
        bins = {"age": data.AGE_EDGES} if "age" in attributes else None
        options: dict[str, Any] = {
            "label": data.LABEL,
            "bins": bins,
            "sensitive_features": attributes,
        }
        contestants[name] = lambda options=options: eq.measure(path, **options)
        contestants[name]()
    return interleaved(contestants, REPEATS)


WORKERS: Mapping[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
    "PostgreSQL": _in_postgres,
    "Spark": _in_spark,
    "DuckDB": _in_duckdb,
}


# --- results ------------------------------------------------------------------------------------


def _ratio(seconds: Mapping[str, list[float]], name: str, against: str) -> float:
    if against not in seconds:
        return float("nan")
    return statistics.median(seconds[name]) / statistics.median(seconds[against])


def _bars(found: Mapping[str, Mapping[str, list[float]]]) -> Iterator[Bar]:
    for engine, seconds in found.items():
        for name in SETS:
            ratio = _ratio(seconds, f"{OURS} {name}", f"{BY_HAND} {name}")
            yield Bar(f"{engine}, {OURS} {name}", ratio, MOST_DATABASE)
        yield Bar(f"{engine}, {CHOICE}", _ratio(seconds, CHOICE, f"{BY_HAND} A2"), MOST_CHOICE)


def _duckdb_bars(seconds: Mapping[str, list[float]]) -> Iterator[Bar]:
    for name in SETS:
        ratio = _ratio(seconds, f"{name} now", f"{name} before")
        yield Bar(f"DuckDB, {OURS} {name}, beside the code before", ratio, MOST_BEFORE)


def _lines(found: Mapping[str, Mapping[str, list[float]]]) -> Iterator[list[str]]:
    for engine, seconds in found.items():
        for name in SETS:
            yield _line(f"{engine}, {OURS}", name, seconds, f"{OURS} {name}", f"{BY_HAND} {name}")
        yield _line(f"{engine}, {CHOICE}", "A2", seconds, CHOICE, f"{BY_HAND} A2")


def _duckdb_lines(seconds: Mapping[str, list[float]]) -> Iterator[list[str]]:
    for name in SETS:
        if f"{name} before" in seconds:
            yield _line(
                "DuckDB, against the code before", name, seconds, f"{name} now", f"{name} before"
            )


def _line(
    title: str, name: str, seconds: Mapping[str, list[float]], ours: str, other: str
) -> list[str]:
    times = [f"{statistics.median(seconds[which]):.2f}" for which in (other, ours)]
    return [title, name, *times, f"{_ratio(seconds, ours, other):.2f}"]


if __name__ == "__main__":
    asked = json.loads(sys.argv[1])
    print(json.dumps(WORKERS[asked["what"]](asked)))
