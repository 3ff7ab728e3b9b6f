"""What a measurement costs as tables grow: the formulas of docs/scale.md beside what is measured.

Adult is resampled to three sizes for every engine. Times of the two smaller ones give the two numbers
of the model, which then has to predict the third. Bytes, shuffled records and the size of the lattice
are predicted from the cells alone. With SCALE_SHARE=0.1 all sizes are a tenth, for a quick look.
"""

from __future__ import annotations

import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import data
from bars import Bar, Section, markdown_table, write_into
from databases import load_postgres, load_spark, postgres, spark
from timing import in_fresh_process

SHARE = float(os.environ.get("SCALE_SHARE", "1"))
SIZES: dict[str, tuple[int, ...]] = {
    "DuckDB": (1_000_000, 10_000_000, 100_000_000),
    "PostgreSQL": (1_000_000, 3_000_000, 10_000_000),
    "Spark": (1_000_000, 3_000_000, 10_000_000),
}
SETS = ("A2", "A4", "A6")
REPEATS = 5
CORES = 2  # of Spark, one for each of its workers
PARTITION = 128e6  # bytes of a file that a task of Spark reads by default

PAGE = data.HERE.parent / "docs" / "scale.md"

MOST_BYTES, MOST_TIME = 1.5, 1.5
LARGE, MANY_WORKERS = 10_000_000_000, 100


def section(*, write: bool = False) -> Section:
    """Measure every engine, predict, and put both into the page."""
    found: dict[str, list[dict[str, Any]]] = {}
    here = Path(__file__)
    for engine, sizes in SIZES.items():
        rows = [round(size * SHARE) for size in sizes]
        print(f"scale: {engine}, {max(rows):,} rows ...", file=sys.stderr, flush=True)
        for size in rows:
            data.resampled(size)
        found[engine] = in_fresh_process(here, {"what": engine, "rows": rows})
    print("scale: the lattice ...", file=sys.stderr, flush=True)
    lattice = [in_fresh_process(here, {"what": "lattice", "set": name}) for name in (*SETS, "A8")]
    body = [*_paragraphs(found, lattice)]
    if write:
        write_into(PAGE, body)
    body = [part.replace("### ", "**").strip() for part in body]
    body = [f"{part}**" if part.startswith("**") else part for part in body]
    return Section("Scale", ["See docs/scale.md for the model.", *body], list(_bars(found)))


# --- in the workers -----------------------------------------------------------------------------


def _request(name: str) -> Any:
    from equipoise.counts import CountRequest

    attributes = data.ATTRIBUTES[name]
    bins = {"age": tuple(data.AGE_EDGES)} if "age" in attributes else {}
    return CountRequest(sensitive=tuple(attributes), label=data.LABEL, bins=bins)


def _in_duckdb(rows: Sequence[int]) -> list[dict[str, Any]]:
    from equipoise.engines.routing import shared_engine

    places = {number: str(data.resampled(number)) for number in rows}
    for number in rows:
        data.warm(data.resampled(number))
    return _measured(shared_engine().local, places)


def _in_postgres(rows: Sequence[int]) -> list[dict[str, Any]]:
    from equipoise.engines.routing import make_engine

    with tempfile.TemporaryDirectory() as scratch, postgres(Path(scratch) / "server") as address:
        sign = "&" if "?" in address else "?"
        places = {}
        for number in rows:
            load_postgres(address, f"people{number}", [data.resampled(number)], Path(scratch))
            places[number] = f"{address}{sign}table=people{number}"
        return _measured(make_engine("postgres"), places)


def _in_spark(rows: Sequence[int]) -> list[dict[str, Any]]:
    from equipoise.engines.routing import make_engine

    with tempfile.TemporaryDirectory() as scratch, spark(Path(scratch)) as session:
        for number in rows:
            load_spark(session, f"people{number}", [data.resampled(number)])
        places = {number: f"spark:people{number}" for number in rows}
        engine = make_engine("spark")
        found = _measured(engine, places)
        return [
            line | _shuffled(session, engine, places[line["rows"]], line["set"]) for line in found
        ]


def _measured(engine: Any, places: Mapping[int, str]) -> list[dict[str, Any]]:
    """Count the cells of every set: the best seconds, and the bytes of what came back."""
    fetched = _noting_bytes(engine)
    found = []
    for name in SETS:
        seconds: dict[int, list[float]] = {number: [] for number in places}
        counted: dict[int, Any] = {}
        # Sizes take turns, so that a slow spell and Java's compiling hit all alike.
        for _ in range(1 + REPEATS):
            for number, place in places.items():
                fetched.clear()
                start = time.perf_counter()
                counts = _count(engine, place, name)
                seconds[number].append(time.perf_counter() - start)
                counted[number] = counts, sum(fetched)
        for number, (counts, size) in counted.items():
            found.append(
                {
                    "set": name,
                    "rows": number,
                    "seconds": min(seconds[number]),
                    "bytes": size,
                    "cells": len(counts.rows),
                    "file": data.resampled(number).stat().st_size,
                    "predicted bytes": len(counts.rows) * _bytes_of_cell(counts),
                }
            )
    return found


def _count(engine: Any, place: str, name: str) -> Any:
    from equipoise.engines.sources import locate

    return engine.counts(locate(place), _request(name))


def _noting_bytes(owner: Any) -> list[int]:
    """Note the size of every result that an engine fetches from here on."""
    fetched: list[int] = []
    fetch = owner._arrow  # noqa: SLF001 (through which all results come)

    def noted(*args: Any, **options: Any) -> Any:
        table = fetch(*args, **options)
        fetched.append(table.nbytes)
        return table

    owner._arrow = noted  # noqa: SLF001
    return fetched


def _bytes_of_cell(counts: Any) -> float:
    """Bytes of a cell in Arrow: the mean length and an offset for each text, 8 for each number."""
    total = 8.0
    for axis in counts.axes:
        values = [value for value in axis.values if isinstance(value, str)]
        is_binned = axis.name in counts.bins
        total += 8 if is_binned else 4 + statistics.mean(len(v.encode()) for v in values)
    return total


def _shuffled(session: Any, engine: Any, place: str, name: str) -> dict[str, int]:
    """Count once, and read off what the stages wrote for others."""
    before = _stages(session)
    _count(engine, place, name)
    fresh = [stage for number, stage in _stages(session).items() if number not in before]
    writing = [stage for stage in fresh if stage.shuffleWriteRecords()]
    return {
        "partitions": max((stage.numTasks() for stage in writing), default=0),
        "records": sum(stage.shuffleWriteRecords() for stage in writing),
        "shuffled": sum(stage.shuffleWriteBytes() for stage in writing),
    }


def _stages(session: Any) -> dict[int, Any]:
    """The stages that Spark has run, which Python can only ask Java for."""
    context = session.sparkContext
    gateway = context._gateway  # noqa: SLF001
    shares = gateway.new_array(gateway.jvm.double, 0)
    states = gateway.jvm.java.util.ArrayList()
    store = context._jsc.sc().statusStore()  # noqa: SLF001
    listed = store.stageList(None, False, False, shares, states)
    return {listed.apply(i).stageId(): listed.apply(i) for i in range(listed.size())}


def _lattice(asked: Mapping[str, Any]) -> dict[str, Any]:
    """Roll up and measure the cells of a set: groups by labels, and the memory that this took."""
    import tracemalloc

    import equipoise as eq
    from equipoise.engines.routing import shared_engine

    counts = _count(shared_engine(), str(data.BUNDLED), asked["set"])
    eq.measure(counts)  # which imports what it needs
    tracemalloc.start()
    start = time.perf_counter()
    table = eq.measure(counts)
    seconds = time.perf_counter() - start
    peak = tracemalloc.get_traced_memory()[1]
    most = 1
    for axis in counts.axes[:-1]:
        most *= len(axis.values) + 1
    cells, attributes = len(counts.rows), len(counts.axes) - 1
    return {
        "set": asked["set"],
        "cells": cells,
        "lines": len(table),
        "most": min((most - 1) * 2, cells * 2**attributes),
        "bytes": peak,
        "seconds": seconds,
    }


WORKERS = {"DuckDB": _in_duckdb, "PostgreSQL": _in_postgres, "Spark": _in_spark}


# --- predictions --------------------------------------------------------------------------------


def _of_set(lines: Sequence[Mapping[str, Any]], name: str) -> list[Mapping[str, Any]]:
    return [line for line in lines if line["set"] == name]


def _line_of(lines: Sequence[Mapping[str, Any]]) -> tuple[float, float]:
    """Seconds of a count without rows, and seconds of a row, from the two smaller sizes."""
    one, two = lines[0], lines[1]
    slope = max((two["seconds"] - one["seconds"]) / (two["rows"] - one["rows"]), 0.0)
    return max(one["seconds"] - slope * one["rows"], 0.0), slope


def _bars(found: Mapping[str, Sequence[Mapping[str, Any]]]) -> Iterator[Bar]:
    for engine, lines in found.items():
        off = [_ratio(line["bytes"], line["predicted bytes"]) for line in lines]
        yield Bar(f"{engine}, bytes off the formula", max(off), MOST_BYTES)
        for name in SETS:
            some = _of_set(lines, name)
            start, slope = _line_of(some)
            off_by = _ratio(some[2]["seconds"], start + slope * some[2]["rows"])
            yield Bar(f"{engine}, {some[2]['rows']:,} rows, {name}, time", off_by, MOST_TIME)
    records = [
        line["records"] / min(line["cells"] * line["partitions"], line["rows"])
        for line in found["Spark"]
    ]
    yield Bar("Spark, shuffled records by cells × partitions", max(records), 1.0)


def _ratio(one: float, other: float) -> float:
    return max(one, other) / max(min(one, other), 1e-9)


# --- the page -----------------------------------------------------------------------------------


def _paragraphs(
    found: Mapping[str, Sequence[Mapping[str, Any]]], lattice: Sequence[Mapping[str, Any]]
) -> Iterator[str]:
    if SHARE != 1:
        yield f"*Tables have {SHARE:.0%} of their usual sizes here: a quick look, on a machine with other work.*"
    yield "### Time"
    header = ["engine", "attributes", "rows", "measured, s", "predicted, s"]
    yield markdown_table(header, list(_times(found)))
    yield "### Bytes to the client"
    header = ["attributes", "cells", "predicted, bytes", *found]
    yield markdown_table(header, list(_bytes(found)))
    yield "### Shuffle"
    header = ["attributes", "rows", "cells", "partitions", "at most", "records", "bytes"]
    yield markdown_table(header, list(_shuffles(found["Spark"])))
    yield "### Memory of the lattice"
    header = ["attributes", "cells", "groups × labels", "at most", "peak, bytes", "bytes for each"]
    yield markdown_table(header, list(_lattices(lattice)))
    yield f"### {LARGE:,} rows on {MANY_WORKERS} workers"
    header = ["attributes", "scan, s", "partitions", "shuffle", "to the client"]
    yield markdown_table(header, list(_large(found["Spark"])))


def _times(found: Mapping[str, Sequence[Mapping[str, Any]]]) -> Iterator[list[str]]:
    for engine, lines in found.items():
        for name in SETS:
            some = _of_set(lines, name)
            start, slope = _line_of(some)
            for i, line in enumerate(some):
                predicted = f"{start + slope * line['rows']:.2f}" if i == len(some) - 1 else ""
                yield [engine, name, f"{line['rows']:,}", f"{line['seconds']:.3f}", predicted]


def _bytes(found: Mapping[str, Sequence[Mapping[str, Any]]]) -> Iterator[list[str]]:
    for name in SETS:
        last = {engine: _of_set(lines, name)[-1] for engine, lines in found.items()}
        first = next(iter(last.values()))
        fetched = [f"{line['bytes']:,}" for line in last.values()]
        yield [name, f"{first['cells']:,}", f"{first['predicted bytes']:,.0f}", *fetched]


def _shuffles(lines: Sequence[Mapping[str, Any]]) -> Iterator[list[str]]:
    for line in sorted(lines, key=lambda x: (x["set"], x["rows"])):
        numbers = [line[key] for key in ("rows", "cells", "partitions")]
        most = min(line["cells"] * line["partitions"], line["rows"])
        listed = [*numbers, most, line["records"], line["shuffled"]]
        yield [line["set"], *(f"{number:,}" for number in listed)]


def _lattices(lattice: Sequence[Mapping[str, Any]]) -> Iterator[list[str]]:
    for line in lattice:
        numbers = [f"{line[key]:,}" for key in ("cells", "lines", "most", "bytes")]
        yield [line["set"], *numbers, f"{line['bytes'] / line['lines']:,.0f}"]


def _large(lines: Sequence[Mapping[str, Any]]) -> Iterator[list[str]]:
    for name in SETS:
        some = _of_set(lines, name)
        last = some[-1]
        slope = (some[-1]["seconds"] - some[0]["seconds"]) / (some[-1]["rows"] - some[0]["rows"])
        seconds = some[0]["seconds"] + LARGE * max(slope, 0.0) * CORES / MANY_WORKERS
        partitions = LARGE * last["file"] / last["rows"] / PARTITION
        partitions = max(partitions, MANY_WORKERS)
        size = last["shuffled"] / max(last["records"], 1)
        shuffled = last["cells"] * partitions * size
        yield [
            name,
            f"{seconds:,.0f}",
            f"{partitions:,.0f}",
            f"{shuffled / 1e6:,.1f} MB",
            f"{last['predicted bytes'] / 1e6:,.3f} MB",
        ]


if __name__ == "__main__":
    asked = json.loads(sys.argv[1])
    what = asked["what"]
    print(json.dumps(_lattice(asked) if what == "lattice" else WORKERS[what](asked["rows"])))
