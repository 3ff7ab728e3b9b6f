"""Small lakes for tests, and what they hold by plain counting."""

from __future__ import annotations

import csv
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from equipoise.counts import CountRequest, Counts
from equipoise.engines.routing import shared_engine
from equipoise.engines.sources import locate
from equipoise.lake.lake import Lake
from equipoise.lake.offers.find import find
from equipoise.lake.repair.acquire import acquire
from equipoise.options.search import AcquisitionLimits, SearchRequest

REQUEST = CountRequest(sensitive=("sex",), label="hired")


@dataclass(frozen=True)
class Plan:
    """What is needed of a plan, and no more."""

    counts: Counts
    add: Counts
    delete: Counts


def planned(
    base: Any,
    add: Mapping[tuple[str, ...], int],
    delete: Mapping[tuple[str, ...], int] | None = None,
    request: CountRequest = REQUEST,
) -> Plan:
    """Plan to add and delete rows of some cells, whatever that is good for."""
    counts = shared_engine().counts(locate(base), request)
    names = {"sensitive": request.sensitive, "label": request.label}
    moves = (Counts.from_mapping(dict(cells), **names) for cells in (add, delete or {}))
    return Plan(counts, *moves)


def write(
    path: str | Path,
    header: Sequence[str],
    rows: Iterable[Sequence[object]],
    *,
    delimiter: str = ",",
    encoding: str = "utf-8",
) -> Path:
    """Write a CSV file; None is an empty field."""
    file = Path(path)
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("w", encoding=encoding, newline="") as opened:
        writer = csv.writer(opened, delimiter=delimiter, lineterminator="\n")
        writer.writerow(header)
        writer.writerows(rows)
    return file


def read(path: str | Path, delimiter: str = ",") -> list[dict[str, str]]:
    """Read a CSV file."""
    with Path(path).open(encoding="utf-8", newline="") as opened:
        return list(csv.DictReader(opened, delimiter=delimiter))


def ledger(path: str | Path = "out.csv.ledger.parquet") -> list[dict[str, Any]]:
    """Read the lines of a Parquet ledger."""
    return pq.read_table(path).to_pylist()


HEADER = ("id", "sex", "hired", "age")
PEOPLE = [
    (1, "Female", "no", 31),
    (2, "Female", "no", 45),
    (3, "Female", "yes", 52),
    (4, "Male", "yes", 28),
    (5, "Male", "no", 39),
    (6, "Male", "yes", 61),
    (7, None, "no", 33),
]


def more(start: int, n: int, *, sex: str = "Female", hired: str = "yes") -> list[tuple[Any, ...]]:
    """Give new rows of one cell."""
    return [(i, sex, hired, 20 + i % 50) for i in range(start, start + n)]


OTHERS = [(9001, "Male", "no", 50), (9002, "Male", "no", 51)]
"""Rows that say what the other values are; a table of one value tells too little."""


def share(path: str | Path, rows: Iterable[Sequence[object]], **how: Any) -> Path:
    """Write a table of a lake with the columns of the base."""
    return write(path, HEADER, [*rows, *OTHERS], **how)


def found(
    plan: Any, places: Any = "lake", base: Any = "people.csv", top: int = 10, **how: Any
) -> Any:
    """Look for the rows of a plan."""
    located = None if base is None else locate(base)
    lake = places if isinstance(places, Lake) else Lake(places)
    return find(plan, lake, base=located, looking=SearchRequest(**how), top=top)


def acquired(
    plan: Any,
    places: Any = "lake",
    base: Any = "people.csv",
    output: Any = "out.csv",
    **options: Any,
) -> Any:
    """Carry out a plan."""
    own = {name: options.pop(name) for name in ("ledger", "hash_key") if name in options}
    limits = {
        n: options.pop(n) for n in list(options) if n in AcquisitionLimits.__dataclass_fields__
    }
    lake = places if isinstance(places, Lake) else Lake(places)
    return acquire(
        plan,
        locate(base),
        lake,
        output,
        looking=SearchRequest(**options),
        limits=AcquisitionLimits(**limits),
        **own,
    )


def _toml(text: str) -> str:
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def mapping_file(path: str | Path, tables: Iterable[Mapping[str, Any]]) -> str:
    """Write a mapping file from what each table says."""
    lines = []
    for table in tables:
        lines += ["[[tables]]", f"name = {_toml(table['name'])}"]
        lines += [f"use = {str(table.get('use', True)).lower()}", "[tables.columns]"]
        lines += [f"{_toml(k)} = {_toml(v)}" for k, v in table["columns"].items()]
        for name, values in table.get("values", {}).items():
            lines.append(f"[tables.values.{_toml(name)}]")
            lines += [f"{_toml(k)} = {_toml(v)}" for k, v in values.items()]
    Path(path).write_text("\n".join(lines) + "\n", "utf-8")
    return str(path)


# ------------------------------------------------------------------- by plain counting


Row = tuple[Any, ...]
"""The cell of a row, its key, and everything else it says."""


@dataclass
class Plain:
    """Tells which rows are new, row by row, from what the policies say in words."""

    base: Sequence[Row]
    policy: str

    def __post_init__(self) -> None:
        self.there = Counter(map(self._what_counts, self.base))

    def _what_counts(self, row: Row) -> Any:
        return row[1] if self.policy == "key" else row

    def new(self, rows: Sequence[Row], cells: Sequence[Any], *, keep: bool) -> Counter[Any]:
        """Count the new rows of each cell; note them as there, if asked."""
        seen: Counter[Any] = Counter()
        fresh: Counter[Any] = Counter()
        taken = []
        for cell in cells:
            for row in (r for r in rows if r[0] == cell):
                what = self._what_counts(row)
                seen[what] += 1
                many = seen[what] > self.there[what]
                once = seen[what] == 1 and not self.there[what]
                if many if self.policy == "multiset" else once:
                    fresh[cell] += 1
                    taken.append(what)
        if keep:
            self.there.update(taken)
        return fresh
