"""Carry out a plan: take rows out of a table, and put real rows of a pool into it."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

from equipoise.counts import CountRequest, Counts
from equipoise.engines.base import Engine, require_writable
from equipoise.engines.sources import Source
from equipoise.errors import ColumnNotFound, InputError, PoolTooSmall
from equipoise.lake.offers.need import Planned
from equipoise.lake.repair.base import (
    bare,
    cell_grid,
    cell_table,
    difference,
    largest_known_ub,
    require_counts,
    require_deletable,
    say_restricted,
)
from equipoise.lake.repair.output import (
    Part,
    published,
    put_together,
    typed_for,
)
from equipoise.lattice import Group
from equipoise.plain import Grid, csv_text, in_words, rows_text, ub_text
from equipoise.progress import Reporter, silent
from equipoise.results import FlatTable, Result
from equipoise.rows.texts import without_categories
from equipoise.validate import one_of
from equipoise.values import MISSING, plain

if TYPE_CHECKING:
    import pyarrow as pa

SCHEMA = "equipoise.apply/1"

MissingColumns: TypeAlias = Literal["refuse", "null"]
MISSING_COLUMNS: tuple[MissingColumns, ...] = ("refuse", "null")
"""What to do where a pool lacks a column of the base: refuse, or leave its values missing."""

STEPS = 6
"""How many steps are reported, each by what it does and the share of all that is done."""

_SHOWN = 5


class Shortfall(NamedTuple):
    """A cell of which a pool has fewer rows than are needed."""

    cell: Group
    need: int
    found: int


@dataclass(frozen=True, eq=False, kw_only=True)
class Applied(Result):
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
        change = f"{rows_text(self.added)} added{came} and {rows_text(self.removed)} removed"
        said = [
            f"Wrote {self.output}: {self.base} with {change}, {rows_text(self.n_rows)} in all.",
            (
                f"The largest |UB| was {ub_text(self.max_abs_ub_before)} in {self.base} and is "
                f"{ub_text(self.max_abs_ub_after)} in {self.output}, as counted there."
            ),
        ]
        said += say_restricted(self.before.reading, self.base)
        if self.shortfall:
            said.append(f"{self.pool} has too few rows: {_listed(self.shortfall)}.")
        if not self.as_planned:
            said.append(f"{self.output} is not as planned: {difference(self.after, self.planned)}.")
        said.append(f"Every row added or removed is listed in {self.sidecar}.")
        return tuple(said)

    def text(self) -> str:
        """The sentences, a line each."""
        return "\n".join(self.sentences)

    def _table(self) -> FlatTable:
        return cell_table({"before": self.before, "planned": self.planned, "after": self.after})

    def grid(self) -> Grid:
        """Every cell with its rows before, as planned and after, as a table for people."""
        return cell_grid(*self._table())

    def to_dict(self) -> dict[str, Any]:
        """Plain data: what ``--json`` prints."""
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
            "reading": self.before.reading.to_dict(),
            "sentences": list(self.sentences),
            "version": self.version,
            "time": self.time,
        }


def apply_plan(
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
) -> Applied:
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
    >>> import tempfile
    >>> from types import SimpleNamespace
    >>> from equipoise.engines.duckdb import DuckDBEngine
    >>> from equipoise.engines.sources import locate
    >>> engine = DuckDBEngine()
    >>> people = locate({"sex": ["w", "w", "m"], "hired": ["no", "no", "yes"]})
    >>> more = locate({"sex": ["w", "m"], "hired": ["yes", "no"]})
    >>> counts = engine.counts(people, CountRequest(sensitive=("sex",), label="hired"))
    >>> add = Counts.from_mapping({("w", "yes"): 1}, sensitive=["sex"], label="hired")
    >>> plan = SimpleNamespace(counts=counts, add=add, delete=counts - counts)
    >>> output = Path(tempfile.mkdtemp()) / "repaired.csv"
    >>> applied = apply_plan(plan, people, more, output, engine=engine)
    >>> applied.added, applied.as_planned
    (1, True)
    >>> output.read_text().split()
    ['sex,hired', 'w,no', 'w,no', 'm,yes', 'w,yes']
    """
    one_of("missing_columns", missing_columns, MISSING_COLUMNS)
    listing = Path(f"{os.fspath(output)}.changes.csv" if sidecar is None else sidecar)
    require_writable(output, engine.writes)
    _require_apart(base, pool, Path(output), listing)
    request = plan.counts.request_for_rows()
    add, delete = bare(plan.add, request), bare(plan.delete, request)
    progress(f"counting {base.name}", 0)
    before = replace(engine.counts(base, request), reading=base.reading)
    require_counts(base, before, plan.counts, force=force)
    require_deletable(base, before, delete)
    bias_before = largest_known_ub(before, plan)
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
    stay = without_categories(engine.rows(base, request, delete, seed, rest=True))
    parts = [] if added.rows is None else [Part(added.source, added.rows)]
    rows = put_together(stay, parts, base.name)
    progress(f"writing {output}", 4 / STEPS)
    rows = typed_for(Path(output), base, rows, len(rows))
    with published(rows, Path(output), listing, engine) as (written, listed):
        progress(f"counting {output}", 5 / STEPS)
        after = engine.counts(written, request)
        listed.write_text(_changes(request, removed, added), encoding="utf-8")
    return Applied(
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
        max_abs_ub_after=largest_known_ub(after, plan),
        seed=seed,
    )


# ---------------------------------------------------------------------------- counting


def _lenient(request: CountRequest) -> CountRequest:
    """Leave out rows of a pool that lack a value, where those of the base are refused."""
    return replace(
        request,
        missing="drop" if request.missing == "raise" else request.missing,
        missing_label="drop" if request.missing_label == "raise" else request.missing_label,
    )


def _shortfall(add: Counts, there: Counts) -> tuple[Shortfall, ...]:
    """Tell of which cells there are too few rows, the largest lack first."""
    found = there.cells()
    lacks = [
        Shortfall(add.pattern(cell), need, found.get(cell, 0))
        for cell, need in add.cells().items()
        if need > found.get(cell, 0)
    ]
    return tuple(sorted(lacks, key=lambda lack: lack.found - lack.need))


# ---------------------------------------------------------------------------- refusing


def _require_apart(base: Source, pool: Source | None, output: Path, listing: Path) -> None:
    """Refuse to read rows twice, or to write over what is not the base."""
    if pool is not None and _same_table(base, pool):
        raise InputError(
            f"{pool.name} is both the table to repair and the pool, so its rows would be there "
            "twice; give another table as `pool`."
        )
    if _files([listing]) & (_files(base.paths) | _files(pool.paths if pool else ())) or (
        os.path.realpath(listing) == os.path.realpath(output)
    ):
        raise InputError(f"the list of changes cannot go to {listing}, which is a table; name it.")
    if pool is not None and _files([output]) & _files(pool.paths):
        raise InputError(f"{output} is the pool, which stays as it is; write to another file.")
    if len(base.paths) > 1 and _files([output]) & _files(base.paths):
        raise InputError(f"{output} is but a part of {base.name}; write to another file.")
    is_part = base.where is not None or base.sql is not None or base.lenient
    if is_part and _files([output]) & _files(base.paths):
        raise InputError(
            f"the plan is about a part of {base.name} only, and what else is in it would be lost; "
            "write to another file."
        )


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


def _required(pool: Source | None, add: Counts) -> Source:
    if pool is None:
        raise InputError(
            f"the plan adds {rows_text(add.n)}; name the table that has them with `pool`."
        )
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
            f"{pool.name} lacks {in_words(lacking)} of {base.name}; it has: {', '.join(there)}. "
            "Give it these columns, or leave them empty with `missing_columns='null'`."
        )


def _require_enough(pool: Source, shortfall: Sequence[Shortfall], *, partial: bool) -> None:
    if shortfall and not partial:
        raise PoolTooSmall(
            f"{pool.name} has too few rows for the plan: {_listed(shortfall)}; plan again with "
            f"`available_from={pool.name!r}`, or set `partial` to take what there is."
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
    has = there.cells()
    cells = [
        [None if v is MISSING else v for v in cell]
        for cell, want in take.cells().items()
        for _ in range(min(want, has.get(cell, 0)))
    ]
    shown = source.public_name
    lines = ((shown, p, m, *cell) for p, m, cell in zip(place, md5, cells, strict=True))
    return _Chosen(source.name, found.select(found.column_names[:-2]), tuple(lines))


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


# ------------------------------------------------------------------------------- words


def _listed(shortfall: Sequence[Shortfall]) -> str:
    shown = [f"{s.cell} needs {s.need:,} and has {s.found:,}" for s in shortfall[:_SHOWN]]
    more = len(shortfall) - len(shown)
    return in_words([*shown, *([f"so on for {more:,} more cells"] if more else [])])
