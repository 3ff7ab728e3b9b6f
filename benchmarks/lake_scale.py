"""A lake of many tables: time and memory to index it, to index it again, to search it; finding
duplicates among millions of rows; and what is left when runs are killed at any moment.

All tables are made up under fixed seeds, in temporary folders.
"""

from __future__ import annotations

import contextlib
import csv
import glob
import json
import os
import random
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import data
from bars import Bar, Section, markdown_table
from timing import in_fresh_process, peak_memory_mb, seconds_of

TABLES, TOPICS, WIDTH = 10_000, 60, 8
CHANGED, ROUNDS = 100, 3  # so many of the tables, so many times
QUERIES = 100
ROWS = 1_000_000  # on either side, when duplicates are looked for
KILLS = {"index": 18, "acquire": 16, "repair": 16}

MOST_MEMORY, MOST_AGAIN, MOST_SEARCH, MOST_DEDUPE = 1000, 0.05, 1.0, 25.0

SYLLABLES = ("ba", "co", "di", "fu", "ge", "ho", "ka", "li", "mo", "nu", "pe", "ra", "si", "to")


def section() -> Section:
    """Make a lake, work with it, and judge how long that takes."""
    with tempfile.TemporaryDirectory() as scratch:
        lake, index = Path(scratch) / "lake", Path(scratch) / "index.duckdb"
        _told(f"making {TABLES:,} tables")
        make_lake(lake, TABLES)
        case = {"lake": str(lake), "index": str(index)}
        first = _asked("index", **case)
        again = _indexed_again(lake, case)
        searched = _asked("search", **case)
    dedupe = _asked("dedupe")
    _told(f"killing {sum(KILLS.values())} runs")
    with tempfile.TemporaryDirectory() as scratch:
        killed = kill_runs(Path(scratch), KILLS, data.SEED)
    return _section(first, again, searched, dedupe, killed)


def _indexed_again(lake: Path, case: dict[str, Any]) -> dict[str, Any]:
    """Change some tables and index the lake again, a few times; the middle one by its time."""
    runs = []
    for round_ in range(ROUNDS):
        change(lake, CHANGED, seed=round_)
        runs.append(_asked("index", **case))
    return sorted(runs, key=lambda run: run["seconds"])[ROUNDS // 2]


def _asked(what: str, **case: Any) -> dict[str, Any]:
    _told(what)
    answer: dict[str, Any] = in_fresh_process(Path(__file__), {"what": what, **case})
    return answer


def _told(what: str) -> None:
    print(f"lake_scale: {what} ...", file=sys.stderr, flush=True)


# --- tables -------------------------------------------------------------------------------------


def make_lake(folder: Path, tables: int) -> None:
    """Write small tables about some topics; tables of one topic share columns and values."""
    topics = [_topic(number) for number in range(TOPICS)]
    for i in range(tables):
        path = folder / f"{i % 100:02d}" / f"table{i:05d}.csv"
        path.parent.mkdir(parents=True, exist_ok=True)
        _write(path, *table(topics, seed=i))


def change(folder: Path, tables: int, seed: int) -> None:
    """Write some tables anew, with other rows."""
    topics = [_topic(number) for number in range(TOPICS)]
    files = sorted(folder.rglob("*.csv"))
    for i, path in enumerate(random.Random(seed).sample(files, tables)):
        _write(path, *table(topics, seed=TABLES * (1 + seed) + i))


def _topic(number: int) -> dict[str, list[str] | None]:
    """Columns with their values, or none where they hold numbers."""
    draw = random.Random(f"topic {number}")
    shared = random.Random("every topic")  # years, places and the like are in all of them
    columns: dict[str, list[str] | None] = {}
    for i in range(3 * WIDTH):
        some = shared if i % 6 == 0 else draw
        name = f"{_word(some, 3)}_{_word(some, 2)}"
        values = [_word(some, 3) for _ in range(some.choice([2, 5, 12, 60]))]
        columns[name] = values if some.random() < 0.6 else None
    return columns


def _word(draw: random.Random, syllables: int) -> str:
    return "".join(draw.choices(SYLLABLES, k=syllables))


def table(
    topics: Sequence[dict[str, list[str] | None]], seed: int
) -> tuple[list[str], list[list[str]]]:
    """Some columns of a topic, and some rows."""
    draw = random.Random(f"table {seed}")
    topic = draw.choice(topics)
    names = draw.sample(list(topic), WIDTH)
    columns = [
        [f"{draw.gauss(50, 10):.2f}" for _ in range(100)] if known is None else known
        for known in (topic[name] for name in names)
    ]
    rows = [[draw.choice(column) for column in columns] for _ in range(draw.randint(30, 100))]
    return names, rows


def _write(path: Path, header: Sequence[object], rows: Sequence[Sequence[object]]) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(header)
        writer.writerows(rows)


# --- in the worker ------------------------------------------------------------------------------


def _index_worker(case: dict[str, Any]) -> dict[str, Any]:
    from equipoise.engines.routing import shared_engine
    from equipoise.lake.tables import catalog
    from equipoise.lake.tables.index import refresh

    walk = min(seconds_of(lambda: catalog.files([case["lake"]])) for _ in range(3))
    shares: list[float] = []
    path, engine = Path(case["index"]), shared_engine()
    with tempfile.TemporaryDirectory() as other:  # so that libraries are loaded before
        make_lake(Path(other), 1)
        refresh(Path(other) / "index.duckdb", [other], engine=engine)
    start = time.perf_counter()
    done = refresh(path, [case["lake"]], engine=engine, progress=lambda _, s: shares.append(s))
    return {
        "walk": walk,
        "seconds": time.perf_counter() - start,
        "memory": peak_memory_mb(),
        "done": vars(done),
        "told": len(shares) if shares == sorted(shares) else 0,
        "size": path.stat().st_size,
    }


def _search_worker(case: dict[str, Any]) -> dict[str, Any]:
    from equipoise.engines.profiling import Profiler
    from equipoise.lake.tables.index import Index
    from equipoise.lake.tables.search import search

    topics = [_topic(number) for number in range(TOPICS)]
    seconds, hits = [], []
    start = time.perf_counter()
    with contextlib.closing(Index(Path(case["index"]), [case["lake"]])) as index:
        opened = time.perf_counter() - start
        for i in range(QUERIES):
            names, rows = table(topics, seed=10 * TABLES + i)
            profiler = Profiler(names, ["VARCHAR"] * len(names))
            profiler.add_texts(list(zip(*rows, strict=True)))
            query = profiler.profile()
            start = time.perf_counter()
            hits.append(len(search(index, query, top=10)))
            seconds.append(time.perf_counter() - start)
    return {"opened": opened, "seconds": seconds, "hits": hits, "memory": peak_memory_mb()}


def _dedupe_worker(_: dict[str, Any]) -> dict[str, Any]:
    from equipoise.lake.offers.duplicates import Known
    from equipoise.lake.offers.fingerprints import RowHashes

    base, source = _people(0), _people(ROWS // 2)  # half the rows of the source are the base's
    start = time.perf_counter()
    known = Known(RowHashes.of(base))
    new = known.is_new(RowHashes.of(source))
    seconds = time.perf_counter() - start
    return {"seconds": seconds, "new": int(new.sum()), "memory": peak_memory_mb()}


def _people(first: int) -> Any:
    """Rows like those of Adult, with a number of their own and amounts of money as text."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    adult = pq.read_table(data.BUNDLED)
    numbers = np.arange(first, first + ROWS)
    rows = adult.take(pa.array(numbers * 7919 % len(adult)))
    amounts = (numbers * 104_729 % 9_999_991) / 100
    columns = {name: rows[name] for name in rows.column_names}
    texts = pa.array([f"{amount:.2f}" for amount in amounts.tolist()])
    return pa.table({"id": numbers, **columns, "balance": texts})


WORKERS: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
    "index": _index_worker,
    "search": _search_worker,
    "dedupe": _dedupe_worker,
}


# --- killing ------------------------------------------------------------------------------------

OUTPUTS = ("out.csv", "out.csv.ledger.parquet", "out.csv.plan.json")
COMMANDS = {
    "index": ("lake", "index", "lake"),
    "acquire": ("acquire", "plan.json", "lake", "--base", "people.csv", "-o", "out.csv"),
    "repair": (
        *("repair", "people.csv", "lake", "--sensitive", "sex", "--label", "hired"),
        *("--tolerance", "0.02", "--allow", "both", "-o", "out.csv"),
    ),
}


@dataclass
class Killed:
    """What killing runs of one command has shown."""

    command: str
    seconds: float
    killed: int = 0
    ended: int = 0  # before they could be killed
    left: int = 0
    faults: list[str] = field(default_factory=list)


def kill_runs(folder: Path, kills: dict[str, int], seed: int, tables: int = 130) -> list[Killed]:
    """Kill runs of each command, spread over the time they take, and look at what is left."""
    draw = random.Random(seed)
    make_case(folder / "start", tables)
    return [kill_some(folder, name, n, draw) for name, n in kills.items()]


def make_case(folder: Path, tables: int) -> None:
    """Make a table to repair, a lake that has rows for it, and a plan."""
    draw = random.Random(0)
    make_lake(folder / "lake", tables)
    (folder.parent / "tmp").mkdir(exist_ok=True)
    _write(folder / "people.csv", *_staff(draw, 400, 0.2))
    for i in range(4):
        _write(folder / "lake" / f"staff{i}.csv", *_staff(draw, 300, 0.5))
    planning = ["plan", "people.csv", "--sensitive", "sex", "--label", "hired"]
    planning += ["--tolerance", "0.05", "-o", "plan.json", "--quiet"]
    command = [*PROGRAM, *planning]
    subprocess.run(command, cwd=folder, env=_environment(folder), check=True, capture_output=True)
    if "PYTHONPYCACHEPREFIX" in _environment(folder):
        with _fresh(folder.parent) as place:
            _run(place, "repair")  # which compiles what all later runs import


def _staff(draw: random.Random, rows: int, share: float) -> tuple[list[str], list[list[object]]]:
    people: list[list[object]] = []
    for _ in range(rows):
        sex = draw.choice(["Female", "Male"])
        hired = draw.random() < (share if sex == "Female" else 0.5)
        age, number = draw.randint(18, 70), draw.randrange(10**9)
        people.append([number, sex, "yes" if hired else "no", age])
    return ["id", "sex", "hired", "age"], people


PROGRAM = (sys.executable, "-m", "equipoise")


def kill_some(folder: Path, name: str, kills: int, draw: random.Random) -> Killed:
    """Kill runs at moments spread over the time that one takes which nobody disturbs."""
    with _fresh(folder) as place:
        seconds = seconds_of(lambda: _run(place, name))
        wanted = _state(place)
    told = Killed(name, seconds)
    for i in range(kills):
        after = (i + draw.random()) / kills * seconds
        while not _kill_one(folder, told, after, wanted, is_first=i % 2 == 0):
            after *= 0.7  # it ended before, since the machine was less busy
    return told


def _kill_one(
    folder: Path, told: Killed, after: float, wanted: dict[str, Any], *, is_first: bool
) -> bool:
    """Kill a run, if it has not ended; look at what is left, and run it again to its end."""
    with _fresh(folder) as place:
        before = _shown(place)
        old = {} if is_first else _old_outputs(place)
        killed = _is_killed(place, told.command, after)
        told.faults += _faults(place, wanted, old, before)
        told.left += len(_left(place))
        _run(place, told.command)
        again = _state(place)
    told.faults += [f"{n} differs after another run" for n in wanted if again.get(n) != wanted[n]]
    told.killed += killed
    told.ended += not killed
    return killed


@contextlib.contextmanager
def _fresh(folder: Path) -> Iterator[Path]:
    place = folder / "place"
    shutil.copytree(folder / "start", place)
    (folder / "tmp").mkdir(exist_ok=True)
    try:
        yield place
    finally:
        shutil.rmtree(place)
        shutil.rmtree(folder / "tmp")


def _environment(place: Path) -> dict[str, str]:
    """Keep what runs leave in one place; let modules be compiled once, or kills hit but imports."""
    found = {**os.environ, "TMPDIR": str(place.parent / "tmp")}
    if found.pop("PYTHONDONTWRITEBYTECODE", None):
        found["PYTHONPYCACHEPREFIX"] = str(place.parent / "compiled")
    return found


def _run(place: Path, name: str) -> None:
    command = [*PROGRAM, *COMMANDS[name]]
    done = subprocess.run(
        command, cwd=place, env=_environment(place), capture_output=True, text=True, check=False
    )
    if done.returncode not in (0, 1) or "Traceback" in done.stderr:
        raise RuntimeError(f"{name} failed:\n{done.stderr}")


def _is_killed(place: Path, name: str, after: float) -> bool:
    """Kill a run after some time; tell whether it had not ended."""
    command = [*PROGRAM, *COMMANDS[name]]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    with subprocess.Popen(command, cwd=place, env=_environment(place), **quiet) as process:
        try:
            process.wait(after)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
            return True
    return False


def _old_outputs(place: Path) -> dict[str, bytes]:
    """Put files under the final names, which a run that is killed must leave as they are."""
    old = {name: f"an older {name}\n".encode() for name in OUTPUTS}
    for name, content in old.items():
        (place / name).write_bytes(content)
    return old


def _faults(
    place: Path, wanted: dict[str, Any], old: dict[str, bytes], before: set[str]
) -> list[str]:
    """Tell what a killed run has spoilt: an output that is not whole, an index, what globs see."""
    found = []
    for name in OUTPUTS:
        path = place / name
        whole = not path.exists() or path.read_bytes() == old.get(name)
        if not whole and _content(path) != wanted.get(name):
            found.append(f"{name} is not whole")
    index = place / INDEX
    if index.exists() and _index_content(index, place) != wanted["index"]:
        found.append("the index is not whole")
    strange = _shown(place) - before - set(OUTPUTS)
    return [*found, *(f"{name} can be seen" for name in sorted(strange))]


INDEX = "lake/.equipoise-index.duckdb"


def _state(place: Path) -> dict[str, Any]:
    found: dict[str, Any] = {
        name: _content(place / name)
        for name in OUTPUTS
        if (place / name).exists() and not (place / name).read_bytes().startswith(b"an older ")
    }
    return {**found, "index": _index_content(place / INDEX, place)}


def _content(path: Path) -> Any:
    import pyarrow.parquet as pq

    try:
        if path.suffix == ".parquet":
            return pq.read_table(path).to_pylist()
        if path.suffix == ".json":
            return {**json.loads(path.read_bytes()), "created": None}
    except (OSError, ValueError) as error:
        return f"broken: {error}"
    return path.read_bytes()


def _index_content(path: Path, place: Path) -> Any:
    from equipoise.errors import InputError
    from equipoise.lake.tables.index import Index

    try:
        with contextlib.closing(Index(path, [str(place / "lake")])) as index:
            tables = index.tables()
            profiles = index.profiles(t.id for t in tables)
            terms = index.query(
                "SELECT tables.name, place, unnest(columns.terms), unnest(weights) FROM columns "
                "JOIN tables USING (id) ORDER BY ALL"
            )
            return [(t.name, t.snapshot, t.rows, t.problem, profiles[t.id]) for t in tables], terms
    except InputError as error:
        return str(error)


def _shown(place: Path) -> set[str]:
    """What a glob or a lake sees."""
    from equipoise.lake.tables import catalog

    seen = glob.glob("**", root_dir=place, recursive=True)  # noqa: PTH207 (as a user's shell does)
    listed = (str(Path("lake") / name) for name in catalog.files([str(place / "lake")]))
    return {*(name for name in seen if (place / name).is_file()), *listed}


def _left(place: Path) -> list[Path]:
    """Hidden files, and folders for spilling, that a killed run left; those of the index apart."""
    beside = [p for p in place.iterdir() if p.name.startswith(".")]
    return [*beside, *(place.parent / "tmp").iterdir()]


# --- results ------------------------------------------------------------------------------------


def _section(
    first: dict[str, Any],
    again: dict[str, Any],
    searched: dict[str, Any],
    dedupe: dict[str, Any],
    killed: Sequence[Killed],
) -> Section:
    seconds = sorted(searched["seconds"])
    p95 = seconds[int(0.95 * len(seconds))]
    rows = [
        ["look for the files, best of 3", f"{first['walk']:.2f}", ""],
        ["index", f"{first['seconds']:.1f}", f"{first['memory']:,.0f}"],
        [
            f"index after {CHANGED} changed, median of {ROUNDS}",
            f"{again['seconds']:.2f}",
            f"{again['memory']:,.0f}",
        ],
        ["open the index", f"{searched['opened']:.2f}", ""],
        ["search, median", f"{statistics.median(seconds):.2f}", f"{searched['memory']:,.0f}"],
        ["search, 95 of 100 within", f"{p95:.2f}", ""],
        [f"{ROWS:,} rows new to {ROWS:,}?", f"{dedupe['seconds']:.1f}", f"{dedupe['memory']:,.0f}"],
    ]
    how = (
        f"{TABLES:,} tables of {WIDTH} columns and 30–100 rows about {TOPICS} topics; the index has "
        f"{first['size'] / 1e6:,.0f} MB, and {1e3 * first['seconds'] / TABLES:.1f} ms were needed a "
        f"table. A lake of one table is indexed before each, to load the libraries. Progress was "
        f"told {first['told']:,} times. Of the second million rows half are in "
        f"the first; {dedupe['new']:,} were found to be new."
    )
    kills = [[k.command, f"{k.seconds:.1f}", k.killed, k.left, len(k.faults)] for k in killed]
    runs = (
        "Runs killed (`kill -9`) at moments spread over the time of one that nobody disturbed, "
        "each followed by another that went on to the end. Faults are an output or an index that "
        "is not whole, a file that a glob sees, a result that differs from the undisturbed one."
    )
    faults = [fault for k in killed for fault in k.faults]
    header = ["", "seconds", "peak MB"]
    header_of_kills = ["command", "seconds undisturbed", "killed", "hidden files left", "faults"]
    paragraphs = [how, markdown_table(header, rows), runs, markdown_table(header_of_kills, kills)]
    if faults:
        paragraphs.append("Faults: " + "; ".join(sorted(set(faults))) + ".")
    return Section("A lake of many tables", paragraphs, _bars(first, again, p95, dedupe, killed))


def _bars(
    first: dict[str, Any],
    again: dict[str, Any],
    p95: float,
    dedupe: dict[str, Any],
    killed: Sequence[Killed],
) -> list[Bar]:
    share = (again["seconds"] - again["walk"]) / first["seconds"]
    right = first["done"]["new"] == TABLES and again["done"]["changed"] == CHANGED
    return [
        Bar("tables seen as new and as changed that were not", float(not right), 0, unit=""),
        Bar("progress told, times", first["told"], TABLES, "at least", unit=""),
        Bar("peak memory of indexing", first["memory"], MOST_MEMORY, unit=" MB"),
        Bar("indexing again, beside the walk, of the first time", share, MOST_AGAIN, unit=""),
        Bar("search, 95 of 100 within", p95, MOST_SEARCH, unit=" s"),
        Bar("a million rows among a million", dedupe["seconds"], MOST_DEDUPE, unit=" s"),
        Bar("rows wrongly new or known", abs(dedupe["new"] - ROWS // 2), 0, unit=""),
        Bar("faults after kills", sum(len(k.faults) for k in killed), 0, unit=""),
    ]


if __name__ == "__main__":
    asked = json.loads(sys.argv[1])
    print(json.dumps(WORKERS[asked["what"]](asked)))
