"""A lake as a user feels it: commands from the shell, the memory of indexing, a whole repair.

Times of searches are those by the clock less that of a Python that does nothing, medians of a few
alternating runs. All tables are made up under fixed seeds, in temporary folders.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import million_profiles
import planlake
from bars import Bar, Section, markdown_table
from lake_scale import make_lake

FEW, MANY = 1_000, 20_000
INDEXED = (5_000, MANY)  # files, between which the growth of memory is measured
REPAIRED = 1_000
ROUNDS = 7
MILLION = int(os.environ.get("MILLION_TABLES", "1000000"))

MOST_FEW, MOST_MANY, MOST_REPAIR, MOST_GROWTH = 0.6, 1.5, 20.0, 0.5
MOST_SEARCH, MOST_CHANGE = 3.0, 5.0
PROGRAM = (sys.executable, "-m", "equipoise")
_BYTECODE = tempfile.TemporaryDirectory()
"""Compiled modules, which an installed program has, whatever the settings of this process."""


def section() -> Section:
    """Make lakes, and use them from the shell."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        indexed = {number: _indexed(folder, number) for number in (FEW, *INDEXED)}
        searched = {number: _searched(folder, number) for number in (FEW, MANY)}
        repaired = _repaired(folder)
    rows = [
        *([f"search {n:,} tables", *_seconds(searched[n]), ""] for n in searched),
        *([f"index {n:,} files", *_seconds(m), f"{m['memory']:,.0f}"] for n, m in indexed.items()),
        [
            f"repair over {REPAIRED:,} tables",
            *_seconds(repaired),
            f"{repaired['memory']:,.0f}",
        ],
    ]
    how = (
        "Commands as they are typed, with the look for changed files; modules are compiled, as in an "
        "installed program. Searches are medians of "
        f"{ROUNDS} runs, over the time of a Python that does nothing. The lake that is repaired from "
        "is PlanLake's with Adult, with renamed and opaque headers, other words and codes. Memory is "
        "the peak of the process; a second one helps to align tables."
    )
    few, many = (indexed[number]["memory"] for number in INDEXED)
    growth = (many / few - 1) / (INDEXED[1] / INDEXED[0] - 1)
    bars = [
        Bar(f"search {FEW:,} tables", searched[FEW]["seconds"], MOST_FEW, unit=" s"),
        Bar(f"search {MANY:,} tables", searched[MANY]["seconds"], MOST_MANY, unit=" s"),
        Bar("growth of memory by growth of files", growth, MOST_GROWTH, unit=""),
        Bar(f"repair over {REPAIRED:,} tables", repaired["seconds"], MOST_REPAIR, unit=" s"),
    ]
    header = ["", "seconds", "of the processor", "peak MB"]
    return Section("A lake as a user feels it", [how, markdown_table(header, rows)], bars)


def _seconds(run: dict[str, float]) -> list[str]:
    return [f"{run[name]:.2f}" if run[name] < 10 else f"{run[name]:.0f}" for name in run][:2]


def _indexed(folder: Path, number: int) -> dict[str, float]:
    lake = folder / f"lake{number}"
    make_lake(lake, number)
    return _run(("lake", "index", str(lake), "--quiet"))


def _searched(folder: Path, number: int) -> dict[str, float]:
    """Seconds of a search by the clock and of the processor, over those of Python itself."""
    lake, query = folder / f"lake{number}", folder / "query.csv"
    query.write_bytes((lake / "00" / "table00000.csv").read_bytes())
    command = (*PROGRAM, "lake", "search", str(query), str(lake))
    found, bare = [], []
    for _ in range(ROUNDS):
        found.append(_measured(command))
        bare.append(_measured((sys.executable, "-c", "pass")))
    return {
        name: statistics.median(run[name] for run in found)
        - statistics.median(run[name] for run in bare)
        for name in ("seconds", "cpu")
    }


def _repaired(folder: Path) -> dict[str, float]:
    place = folder / "planlake"
    planlake.generate(place, seed=7, dataset="adult", tables=REPAIRED)
    _run(("lake", "index", str(place / "lake"), "--quiet"))
    columns = ("--sensitive", "sex,race", "--label", "income")
    output = ("-o", str(place / "out.parquet"), "--quiet")
    return _run(("repair", str(place / "base.csv"), str(place / "lake"), *columns, *output))


def _run(command: Sequence[str]) -> dict[str, float]:
    print(f"lake_felt: {' '.join(command[:2])} ...", file=sys.stderr, flush=True)
    return _measured((*PROGRAM, *command))


def _measured(command: Sequence[str]) -> dict[str, float]:
    """Run a command; its seconds by the clock and of the processor, and its peak memory in MB."""
    variables = {**os.environ, "PYTHONPYCACHEPREFIX": _BYTECODE.name}
    variables.pop("PYTHONDONTWRITEBYTECODE", None)
    start = time.perf_counter()
    with tempfile.TemporaryFile() as said:
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=said, env=variables)
        _, status, used = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - start
        process.returncode = os.waitstatus_to_exitcode(status)
        said.seek(0)
        if process.returncode not in (0, 1):
            raise RuntimeError(f"{' '.join(command)} failed: {said.read().decode()}")
    cpu = used.ru_utime + used.ru_stime
    return {"seconds": seconds, "cpu": cpu, "memory": used.ru_maxrss / 1024}


def million_section() -> Section:
    """Load, search and update an index of a million made-up profiles."""
    print(f"lake_felt: {MILLION:,} profiles ...", file=sys.stderr, flush=True)
    found: dict[str, Any] = million_profiles.measure(MILLION)
    load, update, search = found["load"], found["update"], found["search"]
    changed = f"{million_profiles.CHANGED} tables changed, median of 3"
    rows = [
        ["load", f"{load['seconds']:.0f}", "", f"{load['memory']:,.0f}"],
        ["search", *_spread(search)],
        [changed, f"{update['seconds']:.2f}", "", f"{update['memory']:,.0f}"],
        ["search with three deltas", *_spread(found["again"])],
    ]
    right = search["right"] / (10 * million_profiles.QUERIES)
    how = (
        f"{MILLION:,} profiles of {million_profiles.WIDTH} columns about {million_profiles.TOPICS:,} "
        "topics, made up and loaded from Parquet as those of a cluster would be; the index has "
        f"{load['size'] / 1e9:.1f} GB on disk, {update['size'] / 1e9:.1f} GB after the changes. Of the tables found, {right:.0%} have the topic that was asked "
        "for. A change is measured without the profiling of the changed tables and the look for them."
    )
    header = ["", "seconds, median", "95 of 100 within", "peak MB"]
    bars = [
        Bar("search, 95 of 100 within", search["seconds"][95], MOST_SEARCH, unit=" s"),
        Bar("a hundred tables changed", update["seconds"], MOST_CHANGE, unit=" s"),
    ]
    return Section("An index of a million tables", [how, markdown_table(header, rows)], bars)


def _spread(run: dict[str, Any]) -> list[str]:
    seconds = run["seconds"]
    return [f"{statistics.median(seconds):.2f}", f"{seconds[95]:.2f}", f"{run['memory']:,.0f}"]
