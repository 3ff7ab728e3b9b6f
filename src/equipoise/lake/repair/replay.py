"""Replay a ledger: fetch every added row from its source again, and compare."""

from __future__ import annotations

import contextlib
import json
import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from equipoise.counts.columns import values_in
from equipoise.engines.base import Engine
from equipoise.engines.column_types import family
from equipoise.engines.kinds import DATABASES
from equipoise.engines.sources import Source, locate
from equipoise.engines.stores.states import at_snapshot, snapshot_of
from equipoise.errors import EquipoiseError, InputError, NoTables
from equipoise.lake.matching.conversions import Conversion, MeantView
from equipoise.lake.offers.fingerprints import RowHashes
from equipoise.lake.repair.ledger import keyed, plain_place, read_ledger
from equipoise.lake.repair.output import cast, cast_where_possible
from equipoise.lake.tables.contents import Contents
from equipoise.lake.tables.index import Table
from equipoise.plain import Grid
from equipoise.progress import Reporter, cancellable, silent
from equipoise.results import FlatTable, Result
from equipoise.rows.former_hashes import former_md5s
from equipoise.values import MISSING

if TYPE_CHECKING:
    import os

_KEYED = 64
"""Number of digits of a hash made with a key; one without has 32."""

_TYPE = r"[A-Z_]+( WITH TIME ZONE)?(\([0-9]+(,[0-9]+)?\))?"
"""Names of types of columns that values are converted to."""


@dataclass(frozen=True)
class Replayed(Result):
    """Result of fetching every added row again.

    Attributes
    ----------
    rows, sources
        Number of rows fetched again, and of the tables they come from.
    problems
        Differences from the ledger, in sentences.
    """

    rows: int
    sources: int
    problems: tuple[str, ...] = field(default_factory=tuple)

    @property
    def ok(self) -> bool:
        """Whether every row is in its place and unchanged."""
        return not self.problems

    @property
    def exit_code(self) -> int:
        """0, or 1 if there are problems."""
        return 0 if self.ok else 1

    def _table(self) -> FlatTable:
        return ("problem",), [(problem,) for problem in self.problems]

    def _said(self) -> list[str]:
        return [f"{self.rows:,} rows of {self.sources:,} tables, {len(self.problems):,} problems."]

    def grid(self) -> Grid:
        """Differences from the ledger as a table for people."""
        return Grid(("problem",), tuple((problem,) for problem in self.problems))

    @property
    def sentences(self) -> tuple[str, ...]:
        """Differences from the ledger, or a sentence that there are none."""
        if not self.ok:
            return self.problems
        tables = f"{self.sources:,} table{'' if self.sources == 1 else 's'}"
        all_rows = f"All {self.rows:,} added rows were fetched again from {tables}"
        return (f"{all_rows}, and match the ledger.",)

    def text(self) -> str:
        """Sentences, one per line."""
        return "\n".join(self.sentences)

    def to_dict(self) -> dict[str, Any]:
        """Plain data, as ``--json`` prints it."""
        return {
            "schema": "equipoise.replay/1",
            "ok": self.ok,
            "rows": self.rows,
            "sources": self.sources,
            "problems": list(self.problems),
        }


@cancellable
def replay(
    ledger: str | os.PathLike[str] | Source,
    lake: Contents,
    *,
    repaired: Source | None = None,
    hash_key: bytes | None = None,
    progress: Reporter = silent,
) -> Replayed:
    """Fetch every added row again from its source, and compare it with the ledger.

    With a repaired table, its added rows are also compared with those of the sources, value by
    value, after the mapping that the ledger records. Rows are fetched by their places alone, in files
    as in databases, whose other rows stay where they are.
    """
    source = locate(ledger)
    listed = read_ledger(source, lake.engine).to_pylist()
    lines = [line for line in listed if line["action"] == "add"]
    _require_key(source.name, lines, hash_key)
    if repaired is not None and repaired.kind in DATABASES:
        lines = _known_by_hash(lines, repaired, hash_key)
    by_source = defaultdict(list)
    for line in lines:
        by_source[str(line["source"])].append(line)
    problems: list[str] = []
    for i, (name, own) in enumerate(by_source.items()):
        progress(f"fetching rows of {name}", i / len(by_source))
        problems += _replay_source(name, own, lake, repaired, hash_key)
    return Replayed(len(lines), len(by_source), tuple(problems))


def _known_by_hash(
    lines: Sequence[Mapping[str, Any]], repaired: Source, key: bytes | None
) -> list[dict[str, Any]]:
    """Say by what added rows are known in a database: by their hash, and the number of equal ones before."""
    if key is not None:
        raise InputError(
            f"rows of {repaired.name} cannot be found by hashes that were made with a key; leave out the "
            "repaired table, and compare it with `verify`."
        )
    seen: Counter[str] = Counter()
    known = []
    for line in lines:
        text = str(line["hash"])
        seen[text] += 1
        known.append({**line, "row": f"{text}#{seen[text]}"})
    return known


def _require_key(ledger: str, lines: Sequence[Mapping[str, Any]], key: bytes | None) -> None:
    """Refuse a missing or superfluous key: all rows would seem to have changed."""
    lengths = {len(line["source_hash"] or "") for line in lines}
    if key is None and lengths == {_KEYED}:
        raise InputError(f"the hashes in {ledger} were made with a key; pass it as `hash_key`.")
    if key is not None and lengths and _KEYED not in lengths:
        raise InputError(f"the hashes in {ledger} were made without a key; do not pass `hash_key`.")


def _replay_source(
    name: str,
    lines: Sequence[Mapping[str, Any]],
    lake: Contents,
    repaired: Source | None,
    key: bytes | None,
) -> list[str]:
    snapshots = {line["snapshot"] for line in lines}
    table = _table_of(name, snapshots, lake)
    if table is None:
        return [f"{name} is no longer in the lake; {len(lines):,} rows came from it."]
    problems = _listed_twice(name, lines)
    if table.name != name:
        problems.append(f"{name} is no longer in the lake, but its content is, as {table.name}.")
    try:
        source = at_snapshot(table.source, next(iter(snapshots)) if len(snapshots) == 1 else "")
        is_same = snapshots == {snapshot_of(source)}
        lines = [{**line, "place": _place_in(source, line, key)} for line in lines]
        places = sorted({line["place"] for line in lines if line["place"] is not None})
        fetched = lake.engine.fetch(source, places)
    except (EquipoiseError, OSError) as error:
        return [f"{name} cannot be read: {error}"]
    place, md5 = (column.to_pylist() for column in fetched.columns[-2:])
    former = former_md5s(fetched.select(fetched.column_names[:-2]))
    now = {
        p: (keyed(m, key), keyed(old, key)) for p, m, old in zip(place, md5, former, strict=True)
    }
    wrong = [line for line in lines if line["source_hash"] not in now.get(line["place"], ())]
    if wrong:
        first = wrong[0]
        what = "does not exist" if first["place"] not in now else "is another row"
        problems.append(
            f"{len(wrong):,} of {len(lines):,} rows of {name} differ from the ledger; the first is "
            f"row {_number(first['place'])}, which {what}."
        )
    elif not is_same:
        problems.append(
            f"{name} has changed since, but the {len(lines):,} rows that were taken from it have "
            "not."
        )
    elif repaired is not None and not problems:
        problems += _unlike(name, lines, fetched, source, lake.engine, repaired, key)
    return problems


def _table_of(name: str, snapshots: set[str], lake: Contents) -> Table | None:
    """Find a source by its name, or by its content if it was moved or renamed."""
    inner = name.partition("::")[2] or None
    try:
        tables = lake.tables
    except NoTables:  # all have gone
        return None
    same = [t for t in tables if {t.snapshot} == snapshots and t.source.table == inner]
    return next((t for t in tables if t.name == name), same[0] if same else None)


def _listed_twice(name: str, lines: Sequence[Mapping[str, Any]]) -> list[str]:
    times = Counter(line["place"] for line in lines)
    return [
        f"row {_number(place)} of {name} is listed {n} times, but was taken once."
        for place, n in times.items()
        if n > 1
    ][:1]


def _place_in(source: Source, line: Mapping[str, Any], key: bytes | None) -> int | str | None:
    """Read a place as those of a source are: a number in files, a text in a database."""
    place: int | str | None = line["place"]
    if source.kind in DATABASES and not source.key:
        place = plain_place(place, line["source_hash"], key)
    if place is None:
        return None
    if source.kind in DATABASES:
        return str(place)
    return int(place) if str(place).isdecimal() else -1


def _number(place: int | str | None) -> str:
    if isinstance(place, str):
        return place
    return "without a number" if place is None else f"{place:,}"


def _unlike(
    name: str,
    lines: Sequence[Mapping[str, Any]],
    fetched: pa.Table,
    source: Source,
    engine: Engine,
    repaired: Source,
    key: bytes | None,
) -> list[str]:
    """Compare rows of the repaired table with those of their source, value by value."""
    ordered = sorted(lines, key=lambda line: line["place"])
    at = [-1 if n["row"] is None else n["row"] for n in ordered]
    # In a database rows are known by their hash, whatever key the table has.
    written = engine.fetch(replace(repaired, key=()), at)
    row, md5 = (column.to_pylist() for column in written.columns[-2:])
    by_row = {row: i for i, row in enumerate(row)}
    if any(line["row"] not in by_row for line in ordered):
        return [f"{repaired.name} does not have all rows that the ledger lists from {name}."]
    places = np.array([by_row[line["row"]] for line in ordered])
    try:
        (told,) = {line["mapping"] for line in ordered}
        mapping = json.loads(told)
        columns = list(mapping["columns"])
        types = _types(mapping, engine, repaired)
        meant = _meant(fetched, source, engine, mapping, types)
        mapped = _as_mapped(meant, mapping, written.schema, types)
        theirs = RowHashes.of(_completed(mapped, written.take(places), mapping))
        ours = RowHashes.of(written, columns).take(places)
    except (TypeError, ValueError, LookupError, AttributeError, InputError):
        return [f"the ledger records a mapping of {name} that cannot be right."]
    former = former_md5s(written.select(written.column_names[:-2]))
    hashes = [
        line["hash"] not in (keyed(md5[at], key), keyed(former[at], key))
        for line, at in zip(ordered, places, strict=True)
    ]
    wrong = np.flatnonzero((ours.over(columns) != theirs.over(columns)) | np.array(hashes))
    if not len(wrong):
        return []
    line = ordered[int(wrong[0])]
    came = f"{len(wrong):,} of {len(ordered):,} rows of {repaired.name} that came from {name}"
    first = f"row {_number(line['row'])}, which was row {_number(line['place'])} there"
    return [f"{came} differ from it; the first is {first}."]


def _types(mapping: Mapping[str, Any], engine: Engine, repaired: Source) -> dict[str, str]:
    """Return the types that values were converted to; older ledgers record none.

    Without a record, only decimals are read from the repaired table: all other types convert alike.
    """
    types = mapping.get("types")
    if types is None:
        known = {c.name: c.type for c in engine.schema(repaired)}
        own = [n for n in mapping["columns"] if n not in mapping.get("values", {})]
        types = {n: known[n] for n in own if family(known.get(n, "")) == "decimal"}
    # A ledger may have been edited, and types become a part of a query.
    if not all(re.fullmatch(_TYPE, kind) and family(kind) != "other" for kind in types.values()):
        raise ValueError("no such type")
    return dict(types)


def _meant(
    fetched: pa.Table,
    source: Source,
    engine: Engine,
    mapping: Mapping[str, Any],
    types: Mapping[str, str],
) -> pa.Table:
    """Convert values of a source as the ledger records, by the queries that converted them before."""
    told = {n: Conversion.from_dict(how) for n, how in mapping.get("conversions", {}).items()}
    absent = set(mapping.get("absent", ()))
    if not told and not absent and not types:
        return fetched
    kinds = {column.name: column.type for column in engine.schema(source)}
    sources = mapping["columns"]
    treated = {*told, *absent, *types}
    columns = {n: (sources[n], kinds[sources[n]]) for n in sources if n in treated}
    view = MeantView(columns, told, absent, mapping.get("spellings", {}), types)
    places = fetched.column(fetched.num_columns - 2).to_pylist()
    meant = engine.fetch(replace(source, view=view), places)
    for name, (column, _) in columns.items():
        place = fetched.column_names.index(column)
        fetched = fetched.set_column(place, column, meant[name])
    return fetched


def _as_mapped(
    rows: pa.Table, mapping: Mapping[str, Any], written: pa.Schema, types: Mapping[str, str]
) -> pa.Table:
    """Map rows of a source to the base's columns and values, and if possible to its types.

    Columns of ``types`` have these already, and the spellings of the base with them.
    """
    columns = {}
    for base, source in mapping["columns"].items():
        column = rows[source]
        values, spellings = (mapping.get(part, {}).get(base) for part in ("values", "spellings"))
        if base not in types and (values is not None or spellings is not None):
            # A value without a counterpart is missing; one without another spelling stays.
            known = dict(spellings or {}) if values is None else values
            texts = [None if t is MISSING else t for t in values_in(column)]
            told = [known.get(t, t if values is None else None) for t in texts]
            column = pa.array(told, pa.string())
        kind = written.field(base).type
        if base in mapping.get("lost", ()) and column.type != kind:
            column = cast_where_possible(pa.chunked_array(column).cast(pa.string()), kind)
        with contextlib.suppress(pa.ArrowException):
            column = cast(pa.chunked_array(column), kind)
        columns[base] = column
    return pa.table(columns)


def _completed(rows: pa.Table, written: pa.Table, mapping: Mapping[str, Any]) -> pa.Table:
    """Take the values that a database gave to rows whose sources have none, and leave out those it cannot hold."""
    for name in mapping.get("lost", ()):
        if name in rows.column_names:
            held = pc.if_else(pc.is_valid(written[name]), rows[name], None)
            rows = rows.set_column(rows.column_names.index(name), name, held)
    for name in mapping.get("completed", ()):
        if name in rows.column_names and rows[name].type == written[name].type:
            filled = pc.coalesce(rows[name], written[name])
            rows = rows.set_column(rows.column_names.index(name), name, filled)
    return rows
