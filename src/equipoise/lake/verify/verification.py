"""What the check of a repair reads: plan, ledger and tables; and what it gives: findings."""

from __future__ import annotations

import hmac
import json
import math
import operator
import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from equipoise.counts import CountRequest, Counts, Reading
from equipoise.engines.base import Engine
from equipoise.engines.sources import Source, locate
from equipoise.errors import ColumnNotFound, InputError, SourceNotFound
from equipoise.lattice import Group
from equipoise.plain import Grid
from equipoise.plain import sentences as in_words
from equipoise.results import FlatTable, Result
from equipoise.values import Value, as_value

if TYPE_CHECKING:
    import pyarrow as pa

Cell: TypeAlias = tuple[Value, ...]
"""A value for every sensitive attribute, and the label."""

PLAN_SCHEMA = "equipoise.plan/1"
LEDGER_COLUMNS = ("action", "row", "source", "snapshot", "place", "source_hash", "hash", "cell")
"""The columns of a ledger that are looked at; it has others besides."""

EXAMPLES = 10
_KEYED_LENGTH = 64  # digits of a hash made with a key; one without has 32


@dataclass(frozen=True)
class Finding:
    """One thing that was checked: whether it holds, in a sentence, with examples if not.

    >>> Finding("base", holds=True, sentence="people.csv is the table of the plan.").examples
    ()
    """

    name: str
    holds: bool
    sentence: str
    examples: tuple[str, ...] = ()
    noted: bool = False
    """Whether it holds only since what was found had been asked for."""

    @property
    def word(self) -> str:
        """What came out, in a word."""
        return "noted" if self.noted else "holds" if self.holds else "BROKEN"


def finding(name: str, wrong: Iterable[str], right: str) -> Finding:
    """Say what is right if nothing is wrong, else the first that is, how many, and examples.

    >>> finding("kept", ["row 3 is lost", "row 5 is lost"], "All rows are kept.").sentence
    'Row 3 is lost, and 1 more.'
    """
    said = list(wrong)
    if not said:
        return Finding(name, holds=True, sentence=right)
    first = said[0] + (f", and {len(said) - 1:,} more." if len(said) > 1 else ".")
    if first.startswith(("row ", "entry ", "the ")):  # and not by the name of a file
        first = first[0].upper() + first[1:]
    return Finding(name, holds=False, sentence=first, examples=tuple(said[:EXAMPLES]))


@dataclass(frozen=True)
class Verification(Result):
    """What an independent look at a repair found: always the same eight things in one order.

    >>> found = Verification((Finding("base", holds=False, sentence="It is another table."),))
    >>> found.ok, found.exit_code
    (False, 1)
    """

    findings: tuple[Finding, ...]
    reading: Reading = field(default_factory=Reading)

    @property
    def ok(self) -> bool:
        """Whether everything holds."""
        return all(finding.holds for finding in self.findings)

    @property
    def exit_code(self) -> int:
        """What the command line returns: 0, or 1 if something does not hold."""
        return 0 if self.ok else 1

    @property
    def sentences(self) -> tuple[str, ...]:
        """What was found, in sentences: what does not hold first."""
        broken = [f.sentence for f in self.findings if not f.holds]
        verdict = f"{len(broken)} of {len(self.findings)} checks do not hold."
        kept = [f.sentence for f in self.findings if f.holds]
        noted = " One is noted." if any(f.noted for f in self.findings) else ""
        verdict = verdict if broken else f"All {len(kept)} checks hold.{noted}"
        return (verdict, *broken, *kept, *self.reading.sentences)

    def _table(self) -> FlatTable:
        names = ("name", "holds", "sentence", "examples")
        return names, [(f.name, f.holds, f.sentence, f.examples) for f in self.findings]

    def _said(self) -> tuple[str, ...]:
        return self.sentences[:1]

    def grid(self) -> Grid:
        """The findings as a table for people."""
        rows = ((f.name, f.word, f.sentence, "; ".join(f.examples)) for f in self.findings)
        return Grid(("check", "", "what was found", "examples"), tuple(rows))

    def text(self) -> str:
        """All findings, those that do not hold with examples."""
        lines = [self.sentences[0]]
        for finding in self.findings:
            lines.append(f"{finding.word:6}  {finding.sentence}")
            lines += [f"          {example}" for example in finding.examples]
        places = "Rows and the entries of a ledger are counted from 0."
        return "\n".join([*lines, *self.reading.sentences, places])

    def __str__(self) -> str:
        return self.text()

    def to_dict(self) -> dict[str, Any]:
        """Plain data: what ``--json`` prints."""
        from equipoise.version import __version__

        return {
            "schema": "equipoise.verify/1",
            "ok": self.ok,
            "findings": [{**vars(f), "examples": list(f.examples)} for f in self.findings],
            "reading": self.reading.to_dict(),
            "sentences": list(self.sentences),
            "version": __version__,
        }

    def to_json(self, *, indent: int | None = None) -> str:
        """One JSON document."""
        return json.dumps(self.to_dict(), ensure_ascii=False, indent=indent, allow_nan=False)


def public(name: str) -> str:
    """Name a file without the folders of this machine."""
    return Path(name).name if Path(name).is_absolute() else name


def cells_of(counts: Counts) -> dict[Cell, int]:
    """Give the rows of each cell."""
    values = [axis.values for axis in counts.axes]
    lines = zip(counts.codes.tolist(), counts.rows.tolist(), strict=True)
    return {tuple(v[c] for v, c in zip(values, codes, strict=True)): n for codes, n in lines}


# ---------------------------------------------------------------------------- the tables


@dataclass(frozen=True)
class Table:
    """All rows of a table with the md5 of each, and its rows by cell, or why there are none."""

    name: str
    kind: str
    rows: pa.Table
    md5s: pa.Array
    key: bytes | None
    cells: Mapping[Cell, int] | None
    why_not: str

    @property
    def has_types(self) -> bool:
        """Whether its kind of file gives columns types."""
        return self.kind not in ("csv", "json")

    def hash_at(self, place: int) -> str:
        """Hash a row as ledgers do: by its md5 or, with a key, an HMAC of that."""
        md5 = str(self.md5s[place])
        return md5 if self.key is None else hmac.digest(self.key, md5.encode(), "sha256").hex()


def read_table(source: Source, plan: PlanFile, engine: Engine, key: bytes | None) -> Table:
    """Read a table, and count it as the plan does."""
    where = "" if source.where is None else f" (where {source.where.one_line})"
    name, cells, why_not = f"{public(source.name)}{where}", None, ""
    try:
        cells = cells_of(engine.counts(source, plan.request))
    except ColumnNotFound:
        raise
    except InputError as error:
        why_not = f"{name} cannot be counted as the plan counts: {error}".rstrip(".")
    rows = _all_rows(source, plan.request.columns, engine, located=True)
    *own, _, md5 = rows.column_names
    md5s = rows[md5].combine_chunks()
    return Table(name, source.kind, rows.select(own), md5s, key, cells, why_not)


def rows_outside(source: Source, table: Table, plan: PlanFile, engine: Engine) -> int:
    """How many rows of a table do not satisfy the condition that the plan was made with."""
    where = plan.counts.reading.where
    if where is None:
        return 0
    try:
        counts = engine.counts(replace(source, where=where), plan.request)
    except ColumnNotFound:
        raise
    except InputError:  # none does, or it cannot be evaluated
        return len(table.rows)
    return len(table.rows) - counts.n - counts.dropped


def _all_rows(
    source: Source, columns: Sequence[str], engine: Engine, *, located: bool = False
) -> pa.Table:
    """Give all rows of a table, which must have some columns: those left when none is chosen."""
    request = CountRequest(sensitive=tuple(columns[:-1]), label=columns[-1])
    none = Counts.from_mapping({}, sensitive=columns[:-1], label=columns[-1])
    return engine.rows(source, request, none, rest=True, located=located)


# ------------------------------------------------------------------------------ the plan


class Move(NamedTuple):
    """What a plan does with a cell, in rows."""

    before: int
    add: int
    delete: int
    after: int


@dataclass(frozen=True)
class PlanFile:
    """A plan as its file has it; ``planned`` is worked out from ``counted`` and the moves."""

    name: str
    data: Mapping[str, Any]
    counts: Counts
    request: CountRequest
    moves: Mapping[Cell, Move]
    repeated: tuple[Cell, ...]
    counted: Mapping[Cell, int]
    planned: Mapping[Cell, int]

    def named(self, cell: Cell) -> str:
        """Write a cell as a pattern."""
        return str(Group(dict(zip(self.request.columns, cell, strict=True))))


def read_plan(path: Path) -> PlanFile:
    """Read a plan, or say why the file is none."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise SourceNotFound(f"there is no plan {path}; give the file the repair is of.") from None
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(f"the plan {path} cannot be read: {error}.") from None
    schema = data.get("schema") if isinstance(data, dict) else None
    if schema != PLAN_SCHEMA:
        raise InputError(f"{path} is not a plan of the schema {PLAN_SCHEMA} but {schema!r}.")
    try:
        return _plan_from(public(str(path)), data)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        raise InputError(f"the plan {path} is damaged ({error!r}); find the one made.") from None


def _plan_from(name: str, data: Mapping[str, Any]) -> PlanFile:
    counts = Counts.from_dict(data["counts"])
    columns = tuple(axis.name for axis in counts.axes)
    request = counts.request or CountRequest(sensitive=columns[:-1], label=columns[-1])
    if request.columns != columns:
        raise InputError(f"its counts are of {in_words(columns)}, but ask for others.")
    for total in ("additions", "deletions", "n_before", "n_after"):
        operator.index(data[total])  # as below: refuse what is no whole number, or no number
    math.fsum(
        data["certificate"][number]
        for number in ("max_abs_ub_before", "max_abs_ub_after", "tolerance")
    )
    dict(data["request"])
    cells = [_cell({**c["group"], columns[-1]: c["label"]}, columns) for c in data["cells"]]
    lines = [Move(*(operator.index(c[field]) for field in Move._fields)) for c in data["cells"]]
    repeated = tuple(cell for cell, times in Counter(cells).items() if times > 1)
    moves = dict(zip(cells, lines, strict=True))
    counted = cells_of(counts)
    planned = Counter(counted)
    planned.update({cell: move.add - move.delete for cell, move in moves.items()})
    # A row that lacks a value where that was refused is a finding, not an error: count it.
    refused = [n for n in ("missing", "missing_label") if getattr(request, n) == "raise"]
    policies: dict[str, Any] = dict.fromkeys(refused, "group")
    request = replace(request, count=None, weight=None, **policies).with_edges(counts.bins)
    return PlanFile(name, data, counts, request, moves, repeated, counted, planned)


def _cell(values: Mapping[str, Any], columns: Sequence[str]) -> Cell:
    return tuple(as_value(values[name]) for name in columns)


# ---------------------------------------------------------------------------- the ledger


class Entry(NamedTuple):
    """A line of a ledger; ``at`` is its row in the repaired table or, if removed, in the base."""

    ledger: str
    number: int
    action: str
    at: int
    source: str | None
    snapshot: str | None
    place: int
    source_hash: str | None
    hash: str | None
    cell: Cell | None
    keeps_values: bool = False
    """Whether values were asked to be kept as the source writes them."""

    def __str__(self) -> str:
        return f"entry {self.number:,} of {self.ledger}"


def read_ledger(
    path: str | os.PathLike[str], columns: Sequence[str], engine: Engine, *, keyed: bool
) -> list[Entry]:
    """Read the entries of a ledger, or say why the file is no ledger."""
    source = locate(path)
    if source.kind not in ("csv", "json", "parquet"):
        raise InputError(f"{path} is not a ledger; that is a Parquet, CSV or JSON-lines file.")
    if source.kind == "json" and not any(p.stat().st_size for p in source.paths):
        return []  # no line is no entry, though a file without lines names no columns
    table = _all_rows(source, ("action", "cell"), engine)
    for name in LEDGER_COLUMNS:
        if name not in table.column_names:
            raise ColumnNotFound(name, table=f"the ledger {path}", columns=table.column_names)
    lines = zip(*(table[name].to_pylist() for name in LEDGER_COLUMNS), strict=True)
    entries = [_entry(public(source.name), i, line, columns) for i, line in enumerate(lines)]
    if "mapping" in table.column_names:
        told = zip(entries, table["mapping"].to_pylist(), strict=True)
        entries = [entry._replace(keeps_values=_keeps(mapping)) for entry, mapping in told]
    lengths = {len(str(entry.hash)) for entry in entries}
    if not keyed and lengths == {_KEYED_LENGTH}:
        raise InputError(
            f"the hashes in {path} were made with a key; give it with --hash-key-file."
        )
    if keyed and lengths and _KEYED_LENGTH not in lengths:
        raise InputError(
            f"the hashes in {path} were made without a key; leave out --hash-key-file."
        )
    return entries


def _keeps(mapping: Any) -> bool:
    """Tell whether an entry says that values were kept as the source writes them."""
    try:
        told = mapping if isinstance(mapping, dict) else json.loads(mapping)
        return bool(told["other_columns"] == "keep")
    except (TypeError, ValueError, LookupError, RecursionError):
        return False


def _entry(name: str, number: int, line: Sequence[Any], columns: Sequence[str]) -> Entry:
    action, row, source, snapshot, place, source_hash, hash_, cell = line
    if action not in ("add", "remove"):
        raise InputError(
            f'entry {number:,} of {name} has the action {action!r}; it is "add" or "remove".'
        )
    try:
        at, origin = _place(row if action == "add" else place), _place(place)
    except (TypeError, ValueError):
        raise InputError(
            f"entry {number:,} of {name} has the row {row!r} and the place {place!r}; both are "
            "whole numbers, that of the first row being 0."
        ) from None
    said = (source, snapshot, origin, source_hash, hash_)
    return Entry(name, number, action, at, *said, _stated(cell, columns))


def _place(given: Any) -> int:
    """Read a place; −1, where no row is, if none is given."""
    if isinstance(given, float) and not given.is_integer():
        raise ValueError
    return -1 if given is None else int(given)


def _stated(cell: Any, columns: Sequence[str]) -> Cell | None:
    """Read the cell an entry states; none if it cannot be read, or is one of other columns."""
    try:
        values = cell if isinstance(cell, dict) else json.loads(cell)
        return _cell(values, columns) if values.keys() == set(columns) else None
    except (TypeError, ValueError, AttributeError, RecursionError):
        return None
