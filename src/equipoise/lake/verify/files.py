"""What a repair is verified from beside its tables: its plan and its ledger."""

from __future__ import annotations

import json
import math
import operator
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from equipoise.counts import CountRequest, Counts
from equipoise.engines.base import Engine
from equipoise.engines.kinds import DATABASES
from equipoise.engines.sources import Source, locate
from equipoise.errors import ColumnNotFound, InputError, SourceNotFound
from equipoise.plain import in_words
from equipoise.values import Value, as_value

if TYPE_CHECKING:
    import pyarrow as pa

Cell: TypeAlias = tuple[Value, ...]
"""A value for every sensitive attribute, and the label."""

PLAN_SCHEMA = "equipoise.plan/1"

LEDGER_COLUMNS = ("action", "row", "source", "snapshot", "place", "source_hash", "hash", "cell")
"""Columns of a ledger that are checked; it also has others."""

_ABOUT = "about"
"""Action of the line in which a table of a database says what Parquet files keep as metadata."""

_KEYED_LENGTH = 64  # digits of an HMAC with SHA-256; an MD5 has 32


def has_places(source: Source) -> bool:
    """Whether rows of a source have numbers; those of a database are known by a key or their hash."""
    return source.kind not in DATABASES


class CellMove(NamedTuple):
    """Numbers of rows that a plan states for a cell."""

    before: int
    add: int
    delete: int
    after: int


@dataclass(frozen=True)
class PlanFile:
    """A plan as its file states it; ``planned`` is computed from ``counted`` and the moves."""

    name: str
    data: Mapping[str, Any]
    counts: Counts
    request: CountRequest
    moves: Mapping[Cell, CellMove]
    repeated: tuple[Cell, ...]
    counted: Mapping[Cell, int]
    planned: Mapping[Cell, int]

    def named(self, cell: Cell) -> str:
        """Write a cell as a pattern."""
        return str(self.counts.pattern(cell))


def read_plan(path: Path) -> PlanFile:
    """Read a plan."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise SourceNotFound(
            f"there is no file {path}; `plan` must be the plan that the repair was made from."
        ) from None
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(f"the plan {path} cannot be read: {error}.") from None
    schema = data.get("schema") if isinstance(data, dict) else None
    if schema != PLAN_SCHEMA:
        raise InputError(f"{path} is not a plan of the schema {PLAN_SCHEMA} but {schema!r}.")
    try:
        # A report must not disclose the folders of this machine.
        return _plan_from(path.name if path.is_absolute() else str(path), data)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        raise InputError(
            f"the plan {path} is damaged ({error!r}); use the file as it was written."
        ) from None


def _plan_from(name: str, data: Mapping[str, Any]) -> PlanFile:
    counts = Counts.from_dict(data["counts"])
    columns = tuple(axis.name for axis in counts.axes)
    request = counts.request or CountRequest(sensitive=columns[:-1], label=columns[-1])
    if request.columns != columns:
        raise InputError(
            f"its counts are of {in_words(columns)}, but its request names other columns."
        )
    # The checks use these values without testing them again, so values of other types are refused.
    for total in ("additions", "deletions", "n_before", "n_after"):
        operator.index(data[total])
    for number in ("max_abs_ub_before", "max_abs_ub_after", "tolerance"):
        math.fsum([data["certificate"][number]])
    dict(data["request"])
    cells = [_cell({**c["group"], columns[-1]: c["label"]}, columns) for c in data["cells"]]
    lines = [
        CellMove(*(operator.index(c[field]) for field in CellMove._fields)) for c in data["cells"]
    ]
    repeated = tuple(cell for cell, times in Counter(cells).items() if times > 1)
    moves = dict(zip(cells, lines, strict=True))
    counted = counts.cells()
    planned = Counter(counted)
    planned.update({cell: move.add - move.delete for cell, move in moves.items()})
    # Where the plan refused missing values, count them: they are reported, and raise no error.
    refused = [n for n in ("missing", "missing_label") if getattr(request, n) == "raise"]
    policies: dict[str, Any] = dict.fromkeys(refused, "group")
    request = replace(request, count=None, weight=None, **policies).with_edges(counts.bins)
    return PlanFile(name, data, counts, request, moves, repeated, counted, planned)


def _cell(values: Mapping[str, Any], columns: Sequence[str]) -> Cell:
    return tuple(as_value(values[name]) for name in columns)


class LedgerEntry(NamedTuple):
    """An entry of a ledger; ``at`` is the row in the repaired table or, if removed, in the base."""

    ledger: str
    number: int
    action: str
    at: int | str
    source: str | None
    snapshot: str | None
    place: int | str
    """The number of the row in its source; in a database its key, or its hash and occurrence."""

    source_hash: str | None
    hash: str | None
    cell: Cell | None
    keeps_values: bool
    """Whether the user asked to keep values as the source writes them."""

    def __str__(self) -> str:
        return f"entry {self.number:,} of {self.ledger}"


class Ledger(NamedTuple):
    """The entries of a ledger, and what it says of the repair."""

    name: str
    entries: list[LedgerEntry]
    about: Mapping[str, Any]


def read_ledger(
    ledger: str | os.PathLike[str] | Source,
    columns: Sequence[str],
    engine: Engine,
    *,
    keyed: bool,
    numbered: tuple[bool, bool] = (True, True),
) -> Ledger:
    """Read a ledger; ``numbered`` says whether rows of the base and of the repaired table have numbers."""
    source = locate(ledger)
    name = source.public_name
    if source.kind not in ("csv", "json", "parquet", *DATABASES):
        raise InputError(
            f"{source.name} is not a ledger, which is a Parquet, CSV or JSON Lines file or a table of a "
            "database."
        )
    if source.kind == "json" and not any(p.stat().st_size for p in source.paths):
        return Ledger(
            name, [], {}
        )  # an empty JSON Lines file has no entries, and no columns either
    table = _lines(source, engine)
    mappings = [None] * len(table)
    if "mapping" in table.column_names:
        mappings = table["mapping"].to_pylist()
    columns_told = (table[name].to_pylist() for name in LEDGER_COLUMNS)
    told = list(zip(*columns_told, mappings, strict=True))
    lines = [line for line in told if line[0] != _ABOUT]
    notes = [line[-1] for line in told if line[0] == _ABOUT]
    entries = [_entry(name, i, line, columns, numbered) for i, line in enumerate(lines)]
    lengths = {len(str(entry.hash)) for entry in entries}
    if not keyed and lengths == {_KEYED_LENGTH}:
        raise InputError(f"the hashes in {name} were made with a key; give it as `hash_key`.")
    if keyed and lengths and _KEYED_LENGTH not in lengths:
        raise InputError(f"the hashes in {name} were made without a key; leave out `hash_key`.")
    return Ledger(name, entries, _note(notes[0] if notes else _file_note(source)))


def _lines(source: Source, engine: Engine) -> pa.Table:
    """Read the lines of a ledger; those of a database have no order, and are given one."""
    names = [column.name for column in engine.schema(source)]
    for name in LEDGER_COLUMNS:
        if name not in names:
            raise ColumnNotFound(name, table=f"the ledger {source.name}", columns=names)
    table = engine.read(source)
    if has_places(source):
        return table
    order = ("action", "source", "place", "hash")
    return table.sort_by([(n, "descending" if n == "action" else "ascending") for n in order])


def _file_note(source: Source) -> Any:
    if source.kind != "parquet" or len(source.paths) != 1:
        return None
    import pyarrow.parquet as pq

    return (pq.read_schema(source.paths[0]).metadata or {}).get(b"equipoise")


def _note(text: Any) -> Mapping[str, Any]:
    try:
        told = json.loads(text)
    except (TypeError, ValueError, RecursionError):
        return {}
    return told if isinstance(told, dict) else {}


def _keeps(mapping: Any) -> bool:
    try:
        told = mapping if isinstance(mapping, dict) else json.loads(mapping)
        return bool(told["other_columns"] == "keep")
    except (TypeError, ValueError, LookupError, RecursionError):
        return False


def _entry(
    name: str,
    number: int,
    line: Sequence[Any],
    columns: Sequence[str],
    numbered: tuple[bool, bool],
) -> LedgerEntry:
    action, row, source, snapshot, place, source_hash, hash_, cell, mapping = line
    if action not in ("add", "remove"):
        raise InputError(
            f'entry {number:,} of {name} has the action {action!r}, which must be "add" or "remove".'
        )
    at: int | str
    origin: int | str
    try:
        if action == "add":
            # In a database it is known by its hash.
            at, origin = _place(row) if numbered[1] else "", _origin(place)
        else:
            at = origin = _place(place) if numbered[0] else _key(place)
    except (TypeError, ValueError):
        raise InputError(
            f"entry {number:,} of {name} has the row {row!r} and the place {place!r}; both must be "
            "whole numbers, counted from 0."
        ) from None
    said = (source, snapshot, origin, source_hash, hash_)
    stated, keeps = _stated(cell, columns), _keeps(mapping)
    return LedgerEntry(name, number, action, at, *said, stated, keeps)


def _key(given: Any) -> str:
    """Read what a row of a database is known by, which may be a number."""
    return "" if given is None else str(given)


def _place(given: Any) -> int:
    """Read the number of a row; −1 if there is none."""
    if isinstance(given, float) and not given.is_integer():
        raise ValueError
    return -1 if given is None else int(given)


def _origin(given: Any) -> int | str:
    """Read the place of a row in its source, which in a database is a text."""
    if isinstance(given, str) and given != str(_number(given)):
        if not given.strip():
            raise ValueError
        return given
    return _place(given)


def _number(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdecimal() else None


def _stated(cell: Any, columns: Sequence[str]) -> Cell | None:
    """Read the cell that an entry states; None if it cannot be read or has other columns."""
    try:
        values = cell if isinstance(cell, dict) else json.loads(cell)
        return _cell(values, columns) if values.keys() == set(columns) else None
    except (TypeError, ValueError, AttributeError, RecursionError):
        return None
