"""The whole lattice against DuckDB's plain `GROUP BY`: time, and memory.

Every case runs in a fresh process. One call that checks the answer comes first, so that
imports, ours being lazy, are not timed; everything after them is. DuckDB gets one open
connection for all its repeats; ours does as a user's call does.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import data
from bars import Bar, Section, markdown_table
from timing import Timing, in_fresh_process, interleaved, milliseconds, peak_memory_mb

PROMISED_AT = 10_000_000
MOST_TIMES = {"A2": 1.3, "A4": 1.3, "A6": 1.3, "A8": 1.6}
MOST_TIMES_UNCERTAIN = {"A2": 1.5, "A4": 1.5, "A6": 3.0}
MOST_MEMORY_MB = 600
MOST_GROWTH = 1.15  # what buffers and the allocator vary by from run to run

GROUP_BY, DECADES = "DuckDB GROUP BY", "DuckDB, age // 10"
BARE, ARROW, UNCERTAIN = "UB", "UB, to Arrow", "UB, interval, p, q"


@dataclass(frozen=True)
class Case:
    """One number of rows, one set of attributes, and what was measured there."""

    rows: int
    attributes: str
    table_rows: int
    timings: dict[str, Timing]
    memory_mb: dict[str, float]

    def times(self, name: str, against: str = GROUP_BY) -> float:
        return self.timings[name].best / self.timings[against].best

    def median_times(self, name: str) -> float:
        return self.timings[name].median / self.timings[GROUP_BY].median


def section(rows: Sequence[int], repeats: int) -> Section:
    """Measure every case and judge it."""
    cases = []
    for n in rows:
        data.warm(data.resampled(n))
        for name in data.ATTRIBUTES:
            print(f"lattice: {name}, {n:,} rows ...", file=sys.stderr, flush=True)
            cases.append(_measured(n, name, repeats))
    how = (
        f"Adult resampled to Parquet. Best of {repeats} interleaved repeats in one fresh process "
        "for each case, milliseconds; × is against `GROUP BY` on the same attributes and the same "
        "decades (`CASE`), in brackets the ratio of medians. A table row is a group and a label."
    )
    notes = [
        how,
        _time_table(cases),
        "Peak resident memory of a fresh process that does one thing once, MB, imports included.",
        _memory_table(cases),
    ]
    return Section("Whole lattice against one `GROUP BY`", notes, list(_bars(cases)))


def _measured(rows: int, attributes: str, repeats: int) -> Case:
    case = {"rows": rows, "attributes": attributes}
    here = Path(__file__)
    timed = in_fresh_process(here, {**case, "repeats": repeats})
    memory = {
        name: in_fresh_process(here, {**case, "memory_of": name})["memory_mb"]
        for name in (GROUP_BY, BARE, UNCERTAIN)
    }
    timings = {name: Timing.of(seconds) for name, seconds in timed["seconds"].items()}
    return Case(rows, attributes, timed["table_rows"], timings, memory)


# --- in the worker ------------------------------------------------------------------------------


def _by_duckdb(path: Path, attributes: Sequence[str]) -> dict[str, Callable[[], Any]]:
    import duckdb  # here and below: before any clock starts, and only where it is measured

    connection = duckdb.connect()

    def grouped(decade: str) -> Any:
        return connection.sql(group_by(path, attributes, decade)).to_arrow_table()

    return {
        GROUP_BY: lambda: grouped(decade_by_edges()),
        DECADES: lambda: grouped('"age" // 10'),
    }


def _by_equipoise(path: Path, attributes: Sequence[str]) -> dict[str, Callable[[], Any]]:
    import equipoise

    def measured(*, uncertainty: bool) -> Any:
        return equipoise.measure(
            str(path),
            sensitive_features=attributes,
            label=data.LABEL,
            bins={"age": data.AGE_EDGES} if "age" in attributes else None,
            uncertainty=uncertainty,
        )

    return {
        BARE: lambda: measured(uncertainty=False),
        # Spells out every group and all derived columns: what a user pays who wants them all.
        ARROW: lambda: measured(uncertainty=False).to_arrow(),
        UNCERTAIN: lambda: measured(uncertainty=True),
    }


def decade_by_edges() -> str:
    """The bins as SQL, from the same edges we are given."""
    steps = " ".join(f'WHEN "age" < {edge} THEN {i}' for i, edge in enumerate(data.AGE_EDGES))
    return f"CASE {steps} ELSE {len(data.AGE_EDGES)} END"


def group_by(path: Path, attributes: Sequence[str], decade: str) -> str:
    keys = [decade if name == "age" else f'"{name}"' for name in [*attributes, data.LABEL]]
    listed = ", ".join(f"{key} AS k{i}" for i, key in enumerate(keys))
    return f"SELECT {listed}, count(*) AS n FROM '{path}' GROUP BY ALL"


def expected_table_rows(path: Path, attributes: Sequence[str]) -> int:
    """Groups present over all subsets of the attributes, times labels; counted by DuckDB."""
    import duckdb

    cells = group_by(path, attributes, decade_by_edges())
    keys = ", ".join(f"k{i}" for i in range(len(attributes)))
    groups = f"SELECT count(*) FROM (SELECT 1 FROM ({cells}) GROUP BY CUBE ({keys}))"
    labels = f"SELECT count(DISTINCT \"{data.LABEL}\") FROM '{path}'"
    all_groups, all_labels = duckdb.execute(f"SELECT ({groups}), ({labels})").fetchall()[0]
    return int((all_groups - 1) * all_labels)  # the all-ANY group is no group


def _worker(case: dict[str, Any]) -> dict[str, Any]:
    path, attributes = data.resampled(case["rows"]), data.ATTRIBUTES[case["attributes"]]
    if "memory_of" in case:
        return {"memory_mb": _memory(path, attributes, case["memory_of"])}
    contestants = {**_by_duckdb(path, attributes), **_by_equipoise(path, attributes)}
    found, expected = len(contestants[BARE]()), expected_table_rows(path, attributes)
    if found != expected:
        raise AssertionError(f"the lattice has {expected} rows, measure() gave {found}")
    return {"table_rows": found, "seconds": interleaved(contestants, case["repeats"])}


def _memory(path: Path, attributes: Sequence[str], name: str) -> float:
    contestants = _by_duckdb if name == GROUP_BY else _by_equipoise
    contestants(path, attributes)[name]()
    return peak_memory_mb()


# --- results ------------------------------------------------------------------------------------


def _time_table(cases: Sequence[Case]) -> str:
    header = ["rows", "set", "table rows", GROUP_BY, DECADES]
    header += [h for name in (BARE, ARROW, UNCERTAIN) for h in (name, "×")]
    return markdown_table(header, [_time_line(case) for case in cases])


def _time_line(case: Case) -> list[str]:
    def best(name: str) -> str:
        return milliseconds(case.timings[name].best)

    def ratio(name: str) -> str:
        return f"{case.times(name):.2f} ({case.median_times(name):.2f})"

    return [
        f"{case.rows:,}",
        case.attributes,
        f"{case.table_rows:,}",
        best(GROUP_BY),
        best(DECADES),
        *(cell for name in (BARE, ARROW, UNCERTAIN) for cell in (best(name), ratio(name))),
    ]


def _memory_table(cases: Sequence[Case]) -> str:
    rows = [
        [f"{case.rows:,}", case.attributes, *(f"{mb:.0f}" for mb in case.memory_mb.values())]
        for case in cases
    ]
    return markdown_table(["rows", "set", GROUP_BY, BARE, UNCERTAIN], rows)


def _bars(cases: Sequence[Case]) -> Iterator[Bar]:
    for case in cases:
        if case.rows == PROMISED_AT:
            yield from _time_bars(case)
    for case in cases:
        name = f"peak memory, {case.attributes}, {case.rows:,} rows"
        yield Bar(name, case.memory_mb[BARE], MOST_MEMORY_MB, unit=" MB")
    yield from _growth_bars(cases)


def _time_bars(case: Case) -> Iterator[Bar]:
    where = f"{case.attributes}, {case.rows:,} rows"
    yield Bar(f"UB, {where}, against GROUP BY", case.times(BARE), MOST_TIMES[case.attributes])
    if case.attributes in MOST_TIMES_UNCERTAIN:
        limit = MOST_TIMES_UNCERTAIN[case.attributes]
        yield Bar(f"with uncertainty, {where}, against GROUP BY", case.times(UNCERTAIN), limit)


def _growth_bars(cases: Sequence[Case]) -> Iterator[Bar]:
    for name in data.ATTRIBUTES:
        alike = sorted((c for c in cases if c.attributes == name), key=lambda c: c.rows)
        if len(alike) > 1:
            few, many = alike[0], alike[-1]
            growth = many.memory_mb[BARE] / few.memory_mb[BARE]
            yield Bar(
                f"memory, {name}, {many.rows:,} against {few.rows:,} rows", growth, MOST_GROWTH
            )


if __name__ == "__main__":
    print(json.dumps(_worker(json.loads(sys.argv[1]))))
