"""Carry out a plan: take rows out of a table, and put real rows of a pool into it."""

from __future__ import annotations

import datetime
import json
import os
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol, TypeAlias

import numpy as np

from equipoise.atomic import atomic_path
from equipoise.counts import CountRequest, Counts
from equipoise.counts.columns import encode_arrow
from equipoise.engines.base import Engine, require_writable
from equipoise.engines.sources import Source, locate
from equipoise.errors import ColumnNotFound, CountsError, InputError, PoolTooSmall
from equipoise.lattice import Group
from equipoise.measures.measured import Options
from equipoise.measures.table import bias_table
from equipoise.plain import csv_text, sentences
from equipoise.plans.problem import known_rows
from equipoise.progress import Reporter, silent
from equipoise.validate import one_of
from equipoise.values import MISSING, Value, as_value, plain

if TYPE_CHECKING:
    import pyarrow as pa

SCHEMA = "equipoise.apply/1"

MissingColumns: TypeAlias = Literal["refuse", "null"]
MISSING_COLUMNS: tuple[MissingColumns, ...] = ("refuse", "null")
"""What to do where a pool lacks a column of the base: refuse, or leave its values missing."""

STEPS = 6
"""How many steps are reported, each by what it does and the share of all that is done."""

_SHOWN = 5


class Planned(Protocol):
    """What is needed of a plan: the counts it was made for, and the rows to add and delete."""

    @property
    def counts(self) -> Counts:
        """The counts of the table it was made for."""

    @property
    def add(self) -> Counts:
        """How many rows of each cell to add."""

    @property
    def delete(self) -> Counts:
        """How many rows of each cell to delete."""


class Shortfall(NamedTuple):
    """A cell of which a pool has fewer rows than are needed."""

    cell: Group
    need: int
    found: int


@dataclass(frozen=True, eq=False, kw_only=True)
class Acquired:
    """What became of a plan: the files written, and the written table counted again.

    Attributes
    ----------
    output, sidecar
        The repaired table, and the list of every row added or removed.
    base, pool
        What messages call the tables the rows are from.
    added, removed
        How many rows.
    shortfall
        The cells of which the pool had too few rows, with the rows needed and found.
    before, after
        The counts of the base, and of the file that was written.
    planned
        The counts the file should have.
    max_abs_ub_before, max_abs_ub_after
        The largest |UB| over the whole lattice.
    seed
        By which rows were chosen.
    """

    output: str
    sidecar: str
    base: str
    pool: str | None
    added: int
    removed: int
    shortfall: tuple[Shortfall, ...]
    before: Counts
    after: Counts
    planned: Counts
    max_abs_ub_before: float
    max_abs_ub_after: float
    seed: int
    time: str = field(
        default_factory=lambda: datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    )

    @property
    def as_planned(self) -> bool:
        """Whether the written file has exactly the counts that were planned."""
        return self.after == self.planned

    @property
    def n_rows(self) -> int:
        """How many rows the written file has, those among them that are not counted."""
        return self.after.n + self.after.dropped

    @property
    def exit_code(self) -> int:
        """The exit code of the command: 0, or 1 if the file is not as planned."""
        return 0 if self.as_planned else 1

    @property
    def sentences(self) -> tuple[str, ...]:
        """What was done, in sentences."""
        came = f" from {self.pool}" if self.added else ""
        change = f"{_rows(self.added)} added{came} and {_rows(self.removed)} removed"
        said = [
            f"Wrote {self.output}: {self.base} with {change}, {_rows(self.n_rows)} in all.",
            (
                f"The largest |UB| was {_ub(self.max_abs_ub_before)} in {self.base} and is "
                f"{_ub(self.max_abs_ub_after)} in {self.output}, as counted there."
            ),
        ]
        if self.shortfall:
            said.append(f"{self.pool} has too few rows: {_listed(self.shortfall)}.")
        if not self.as_planned:
            said.append(
                f"{self.output} is not as planned: {_difference(self.after, self.planned)}."
            )
        said.append(f"Every row added or removed is listed in {self.sidecar}.")
        return tuple(said)

    def text(self) -> str:
        """The sentences, a line each."""
        return "\n".join(self.sentences)

    def __str__(self) -> str:
        return self.text()

    def to_dict(self) -> dict[str, Any]:
        """Plain data: what ``--json`` prints."""
        from equipoise.version import __version__

        own = ("output", "sidecar", "base", "pool", "added", "removed", "as_planned", "seed")
        return {
            "schema": SCHEMA,
            **{name: getattr(self, name) for name in own},
            "shortfall": [
                {
                    "cell": {k: plain(v) for k, v in lack.cell.items()},
                    "need": lack.need,
                    "found": lack.found,
                }
                for lack in self.shortfall
            ],
            "n_before": self.before.n,
            "n_after": self.after.n,
            "max_abs_ub_before": plain(self.max_abs_ub_before),
            "max_abs_ub_after": plain(self.max_abs_ub_after),
            "fingerprint_before": self.before.fingerprint,
            "fingerprint_after": self.after.fingerprint,
            "sentences": list(self.sentences),
            "version": __version__,
            "time": self.time,
        }

    def to_json(self, *, indent: int | None = None) -> str:
        """One JSON document."""
        return json.dumps(self.to_dict(), ensure_ascii=False, indent=indent, allow_nan=False)


def acquire(
    plan: Planned,
    base: Source,
    pool: Source | None,
    output: str | os.PathLike[str],
    *,
    engine: Engine,
    seed: int = 0,
    force: bool = False,
    partial: bool = False,
    missing_columns: MissingColumns = "refuse",
    sidecar: str | os.PathLike[str] | None = None,
    progress: Reporter = silent,
) -> Acquired:
    """Write a base table with the rows of a plan removed, and such rows of a pool added.

    The rows that stay keep their order and their values; the added ones stand behind them,
    with the base's columns and types. The file is written to a temporary folder beside its
    place and counted there; only then it and the list of changes are moved, in this order,
    each whole. After any failure before that, nothing is there that was not there before.

    Parameters
    ----------
    plan
        What to add and delete, with the counts it was made for.
    base, pool
        The table to repair, and the one that has rows to add; no pool if none are added.
    output
        The file to write, which may be the base's own.
    engine
        Reads, chooses and writes.
    seed
        Of the choice among the rows of a cell.
    force
        Whether to go on if the base has other counts than the plan was made for.
    partial
        Whether to take what there is if the pool has too few rows.
    missing_columns
        ``"refuse"`` a pool that lacks columns of the base, or fill them with ``"null"``.
    sidecar
        Where the list of changes goes; beside the output unless given.
    progress
        Is told which step has begun, and the share of all that is done.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> from equipoise.engines.duckdb import DuckDBEngine
    >>> engine = DuckDBEngine()
    >>> people = locate({"sex": ["w", "w", "m"], "hired": ["no", "no", "yes"]})
    >>> more = locate({"sex": ["w", "m"], "hired": ["yes", "no"]})
    >>> counts = engine.counts(people, CountRequest(sensitive=("sex",), label="hired"))
    >>> add = Counts.from_mapping({("w", "yes"): 1}, sensitive=["sex"], label="hired")
    >>> plan = SimpleNamespace(counts=counts, add=add, delete=counts - counts)
    >>> output = Path(tempfile.mkdtemp()) / "repaired.csv"
    >>> acquired = acquire(plan, people, more, output, engine=engine)
    >>> acquired.added, acquired.as_planned
    (1, True)
    >>> output.read_text().split()
    ['sex,hired', 'w,no', 'w,no', 'm,yes', 'w,yes']
    """
    one_of("missing_columns", missing_columns, MISSING_COLUMNS)
    listing = Path(f"{os.fspath(output)}.changes.csv" if sidecar is None else sidecar)
    require_writable(output, engine.writes)
    _require_apart(base, pool, Path(output), listing)
    request = _request(plan.counts)
    add, delete = _bare(plan.add, request), _bare(plan.delete, request)
    progress(f"counting {base.name}", 0)
    before = engine.counts(base, request)
    _require_counts(base, before, plan.counts, force=force)
    _require_deletable(base, before, delete)
    bias_before = _max_abs_ub(before, plan)
    added, shortfall = _Chosen(), tuple[Shortfall]()
    if add.n:
        offer = _required(pool, add)
        _require_columns(base, offer, request, engine, missing_columns)
        progress(f"counting {offer.name}", 1 / STEPS)
        there = engine.counts(offer, _lenient(request))
        shortfall = _shortfall(add, there)
        _require_enough(offer, shortfall, partial=partial)
        progress(f"choosing rows of {offer.name}", 2 / STEPS)
        added = _choose(engine, offer, request, add, there, seed)
    progress(f"reading {base.name}", 3 / STEPS)
    removed = _choose(engine, base, request, delete, before, seed)
    stay = _without_categories(engine.rows(base, request, delete, seed, rest=True))
    rows = _joined(stay, added, base.name)
    after = _published(
        rows,
        _changes(request, removed, added),
        (Path(output), listing),
        request,
        engine=engine,
        progress=progress,
    )
    return Acquired(
        output=os.fspath(output),
        sidecar=str(listing),
        base=base.name,
        pool=None if pool is None else pool.name,
        added=len(added.lines),
        removed=len(removed.lines),
        shortfall=shortfall,
        before=before,
        after=after,
        planned=before + add - delete,
        max_abs_ub_before=bias_before,
        max_abs_ub_after=_max_abs_ub(after, plan),
        seed=seed,
    )


# ---------------------------------------------------------------------------- counting


def _request(counts: Counts) -> CountRequest:
    """Ask for the rows of the cells a plan was made for, by the same bins."""
    made_by = counts.request or CountRequest(
        sensitive=tuple(a.name for a in counts.sensitive), label=counts.label.name
    )
    return replace(made_by, count=None, weight=None).with_edges(counts.bins)


def _lenient(request: CountRequest) -> CountRequest:
    """Leave out rows of a pool that lack a value, where those of the base are refused."""
    return replace(
        request,
        missing="drop" if request.missing == "raise" else request.missing,
        missing_label="drop" if request.missing_label == "raise" else request.missing_label,
    )


def _bare(change: Counts, request: CountRequest) -> Counts:
    """Give the cells of a change alone, so that they combine with counts of the base."""
    edges = {n: b for n, b in request.bins.items() if isinstance(b, tuple)}
    return replace(change, bins=edges, weights=None, missing_values={}, dropped=0, request=request)


def _cells(counts: Counts) -> dict[tuple[Value, ...], int]:
    values = [a.values for a in counts.axes]
    lines = zip(counts.codes.tolist(), counts.rows.tolist(), strict=True)
    return {tuple(v[c] for v, c in zip(values, codes, strict=True)): n for codes, n in lines}


def _named(counts: Counts, cell: Sequence[Value]) -> Group:
    return Group(dict(zip((a.name for a in counts.axes), cell, strict=True)))


def _max_abs_ub(counts: Counts, plan: Planned) -> float:
    """The largest |UB|, of the rows the plan was about: those that lack a value stay aside."""
    asked = getattr(plan, "request", None)
    known, _ = known_rows(counts, plan_missing=asked is not None and asked.plan_missing)
    if not known.n:
        return float("nan")
    ub = np.abs(bias_table(known, Options(uncertainty=False)).measured.ub)
    return float(np.nanmax(ub)) if not np.isnan(ub).all() else float("nan")


def _shortfall(add: Counts, there: Counts) -> tuple[Shortfall, ...]:
    """Tell of which cells there are too few rows, the largest lack first."""
    found = _cells(there)
    lacks = [
        Shortfall(_named(add, cell), need, found.get(cell, 0))
        for cell, need in _cells(add).items()
        if need > found.get(cell, 0)
    ]
    return tuple(sorted(lacks, key=lambda lack: lack.found - lack.need))


# ---------------------------------------------------------------------------- refusing


def _require_apart(base: Source, pool: Source | None, output: Path, listing: Path) -> None:
    """Refuse to read rows twice, or to write over what is not the base."""
    if pool is not None and _same_table(base, pool):
        raise InputError(
            f"{pool.name} is both the table to repair and the pool, so its rows would be there "
            "twice; give another table as --pool."
        )
    if _files([listing]) & (_files(base.paths) | _files(pool.paths if pool else ())) or (
        os.path.realpath(listing) == os.path.realpath(output)
    ):
        raise InputError(f"the list of changes cannot go to {listing}, which is a table; name it.")
    if pool is not None and _files([output]) & _files(pool.paths):
        raise InputError(f"{output} is the pool, which stays as it is; write to another file.")
    if len(base.paths) > 1 and _files([output]) & _files(base.paths):
        raise InputError(f"{output} is but a part of {base.name}; write to another file.")


def _same_table(base: Source, pool: Source) -> bool:
    if base.kind == pool.kind == "frame":
        return base.sql == pool.sql and bool(base.data.equals(pool.data))
    if base.kind == pool.kind == "relation":
        return base.data is pool.data
    if not _files(base.paths) & _files(pool.paths):
        return False
    tables = {source.table and source.table.removeprefix("main.") for source in (base, pool)}
    return len(tables) == 1 or None in tables


def _files(paths: Iterable[Path]) -> set[tuple[int, int]]:
    """Tell files apart by what they are, since one may have several names."""
    stats = [path.stat() for path in paths if path.exists()]
    return {(stat.st_dev, stat.st_ino) for stat in stats}


def _require_counts(base: Source, found: Counts, planned: Counts, *, force: bool) -> None:
    expected = replace(planned, weights=None)
    if not force and found.fingerprint != expected.fingerprint:
        raise InputError(
            f"{base.name} has other counts than the plan was made for: "
            f"{_difference(found, expected)}; plan again for this table, or apply the plan as far "
            "as the cells allow with --force."
        )


def _difference(found: Counts, expected: Counts) -> str:
    """Say how counts differ: in rows, and in the first cell that does."""
    rows = f"{found.n:,} rows against {expected.n:,}"
    here, there = _cells(found), _cells(expected)
    for cell in {**there, **here}:
        a, b = here.get(cell, 0), there.get(cell, 0)
        if a != b:
            return f"{rows}, and {_named(expected, cell)} has {a:,} against {b:,}"
    return rows


def _require_deletable(base: Source, before: Counts, delete: Counts) -> None:
    there = _cells(before)
    for cell, n in _cells(delete).items():
        if n > there.get(cell, 0):
            raise CountsError(
                f"the plan deletes {_rows(n)} of {_named(delete, cell)}, of which {base.name} has "
                f"{there.get(cell, 0):,}; plan again for this table."
            )


def _required(pool: Source | None, add: Counts) -> Source:
    if pool is None:
        raise InputError(f"the plan adds {_rows(add.n)}; name the table that has them with --pool.")
    return pool


def _require_columns(
    base: Source,
    pool: Source,
    request: CountRequest,
    engine: Engine,
    missing_columns: MissingColumns,
) -> None:
    """Refuse a pool that lacks columns, of which the counted ones cannot be filled."""
    there = [c.name for c in engine.schema(pool)]
    for name in request.columns:
        if name not in there:
            raise ColumnNotFound(name, table=pool.name, columns=there)
    lacking = [repr(c.name) for c in engine.schema(base) if c.name not in there]
    if lacking and missing_columns == "refuse":
        raise InputError(
            f"{pool.name} lacks {sentences(lacking)} of {base.name}; it has: {', '.join(there)}. "
            "Give it these columns, or leave them empty with --missing-columns null."
        )


def _require_enough(pool: Source, shortfall: Sequence[Shortfall], *, partial: bool) -> None:
    if shortfall and not partial:
        raise PoolTooSmall(
            f"{pool.name} has too few rows for the plan: {_listed(shortfall)}; plan again with "
            f"--available-from {pool.name}, or take what there is with --partial."
        )


# ---------------------------------------------------------------------------- choosing


@dataclass(frozen=True)
class _Chosen:
    """Rows of a source, and for each a line: the source, its place, its md5 and its cell."""

    source: str = ""
    rows: pa.Table | None = None
    lines: tuple[tuple[object, ...], ...] = ()


def _choose(
    engine: Engine, source: Source, request: CountRequest, take: Counts, there: Counts, seed: int
) -> _Chosen:
    if not take.n:
        return _Chosen()
    found = engine.rows(source, request, take, seed, located=True)
    place, md5 = (column.to_pylist() for column in found.columns[-2:])
    # Rows come cell by cell as they are asked for, from each as many as there are.
    has = _cells(there)
    cells = [
        [None if v is MISSING else v for v in cell]
        for cell, want in _cells(take).items()
        for _ in range(min(want, has.get(cell, 0)))
    ]
    shown = _public_name(source)
    lines = ((shown, p, m, *cell) for p, m, cell in zip(place, md5, cells, strict=True))
    return _Chosen(source.name, found.select(found.column_names[:-2]), tuple(lines))


def _public_name(source: Source) -> str:
    """Name a source as it was given, but without the folders of this machine."""
    path = Path(source.name)
    return path.name if path.is_absolute() else source.name


def _changes(request: CountRequest, removed: _Chosen, added: _Chosen) -> str:
    """List every row that changes: those removed as they stood, those added as they stand."""
    named = [_unused(n, request.columns) for n in ("action", "source", "row", "md5")]
    gone = sorted(removed.lines, key=lambda line: int(str(line[1])))
    lines = [*(("remove", *line) for line in gone), *(("add", *line) for line in added.lines)]
    return csv_text([*named, *request.columns], lines)


def _unused(name: str, taken: Sequence[str]) -> str:
    while name in taken:
        name += "_"
    return name


# ----------------------------------------------------------------------------- joining


def _without_categories(table: pa.Table) -> pa.Table:
    """Give categories as the values they stand for, since a pool may have others."""
    import pyarrow as pa

    for i, column in enumerate(table.columns):
        if pa.types.is_dictionary(column.type):
            plain_column = column.cast(column.type.value_type)
            table = table.set_column(i, table.column_names[i], plain_column)
    return table


def _joined(stay: pa.Table, added: _Chosen, base: str) -> pa.Table:
    """Put rows of a pool below those of the base, in its columns and types."""
    import pyarrow as pa

    if added.rows is None:
        return stay
    columns = []
    for column in stay.schema:
        if column.name not in added.rows.column_names:
            columns.append(pa.nulls(len(added.rows), column.type))
            continue
        try:
            columns.append(_cast(added.rows[column.name], column.type))
        except pa.ArrowException:
            strange = _strange(added.rows[column.name], column.type)
            raise InputError(
                f"column {column.name!r} of {added.source} holds {strange!r}, which cannot become "
                f"{column.type} as in {base}; mend the pool, or leave such rows out of it."
            ) from None
    below = pa.table(columns, names=stay.column_names)
    return pa.concat_tables([stay, below], promote_options="default")


def _cast(column: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray | pa.Array:
    """Turn values into another type, text by the text that counts know them by."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if column.type == kind or pa.types.is_null(kind):
        return column
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if pa.types.is_floating(column.type) and not pa.types.is_floating(kind):
        column = pc.if_else(pc.is_nan(column), None, column)  # not-a-number is a missing value
    if _is_text(kind):
        return _texts(column).cast(kind)
    if pa.types.is_boolean(kind) and not _is_text(column.type):
        column = _texts(column)  # or every number but 0 would be true
    return column.cast(kind)


def _is_text(kind: pa.DataType) -> bool:
    import pyarrow as pa

    return bool(
        pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)
    )


def _texts(column: pa.ChunkedArray) -> pa.Array:
    import pyarrow as pa

    values, codes = encode_arrow(column, None)
    texts = pa.array([None if v is MISSING else v for v in values], pa.string())
    return texts.take(pa.array(codes))


def _strange(column: pa.ChunkedArray, kind: pa.DataType) -> Value:
    """Find the first value that cannot be cast, by halving."""
    import pyarrow as pa

    while len(column) > 1:
        half = len(column) // 2
        try:
            _cast(column.slice(0, half), kind)
            column = column.slice(half)
        except pa.ArrowException:
            column = column.slice(0, half)
    return as_value(column[0].as_py())


# ----------------------------------------------------------------------------- writing


def _published(
    rows: pa.Table,
    changes: str,
    places: tuple[Path, Path],
    request: CountRequest,
    *,
    engine: Engine,
    progress: Reporter,
) -> Counts:
    """Write the table and the list aside, count the table there, then move both."""
    output, listing = places
    with (
        atomic_path(listing) as listed,
        atomic_path(output) as whole,
        tempfile.TemporaryDirectory(dir=whole.parent, prefix=f".{output.name}.") as folder,
    ):
        written = Path(folder) / output.name
        progress(f"writing {output}", 4 / STEPS)
        engine.write(rows, written)
        progress(f"counting {output}", 5 / STEPS)
        delimiter = "\t" if output.name.endswith(".tsv") else ","
        source = replace(locate(written, delimiter=delimiter), name=str(output))
        after = engine.counts(source, request)
        listed.write_text(changes, encoding="utf-8")
        written.replace(whole)
    return after


# ------------------------------------------------------------------------------- words


def _rows(n: int) -> str:
    return f"{n:,} row{'' if n == 1 else 's'}"


def _ub(value: float) -> str:
    return "undefined" if value != value else f"{value:.3f}"


def _listed(shortfall: Sequence[Shortfall]) -> str:
    shown = [f"{s.cell} needs {s.need:,} and has {s.found:,}" for s in shortfall[:_SHOWN]]
    more = len(shortfall) - len(shown)
    return sentences([*shown, *([f"so on for {more:,} more cells"] if more else [])])
