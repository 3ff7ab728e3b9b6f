"""Carry out a plan: remove rows of a table, and add real rows of a pool."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

from equipoise.atomic import atomic_path
from equipoise.counts import CountRequest, Counts
from equipoise.engines.addresses import beside
from equipoise.engines.base import Engine, Part, has_changed, unused
from equipoise.engines.kinds import DATABASES
from equipoise.engines.sources import Source, locate
from equipoise.engines.stores.states import is_replaced, is_same_place, sees_all
from equipoise.errors import ColumnNotFound, InputError, PoolTooSmall
from equipoise.lake.offers.need import Planned
from equipoise.lake.repair.base import (
    CarriedOut,
    LocatedRow,
    PlannedChange,
    cell_table,
    choose_located,
    choose_removed,
    difference,
    has_order,
    with_order,
)
from equipoise.lake.repair.destinations import require_other_tables, require_unread
from equipoise.lake.repair.output import (
    CHANGES,
    columns_like,
    lacking_rows,
    place_named,
    published_table,
    put_together,
    repaired_comment,
    typed_for,
    written_file,
)
from equipoise.lattice import Group
from equipoise.plain import Grid, csv_text, in_words, rows_text
from equipoise.progress import Reporter, silent
from equipoise.results import FlatTable
from equipoise.validate import one_of
from equipoise.values import MISSING, Value, plain

if TYPE_CHECKING:
    import pyarrow as pa

SCHEMA = "equipoise.apply/1"

MissingColumns: TypeAlias = Literal["refuse", "null"]
MISSING_COLUMNS: tuple[MissingColumns, ...] = ("refuse", "null")
"""Whether a pool without a column of the base is refused, or its values are left missing."""

STEPS = 6
"""Number of steps that are reported to the progress callback."""

_SHOWN = 5


class Shortfall(NamedTuple):
    """A cell with fewer rows in the pool than needed."""

    cell: Group
    need: int
    found: int


@dataclass(frozen=True, eq=False, kw_only=True)
class Applied(CarriedOut):
    """Result of a plan: the files written, and the counts of the written table.

    Attributes
    ----------
    output, sidecar
        Files of the repaired table and of the list of changes.
    base, pool
        Names of the tables that the rows come from.
    added, removed
        Numbers of rows added and removed.
    shortfall
        Cells for which the pool has too few rows, with the rows needed and found.
    before, after, planned
        Counts of the base, of the file that was written, and those it should have.
    max_abs_ub_before, max_abs_ub_after
        Largest |UB| over the whole lattice.
    seed
        Seed of the choice of rows.
    """

    output: str
    sidecar: str
    pool: str | None
    added: int
    shortfall: tuple[Shortfall, ...]

    @property
    def sentences(self) -> tuple[str, ...]:
        """Summary in sentences."""
        came = f" from {self.pool}" if self.added else ""
        change = f"{rows_text(self.added)} added{came} and {rows_text(self.removed)} removed"
        said = [
            f"Wrote {self.output}: {self.base} with {change}, {rows_text(self.n_rows)} in all.",
            *self._say_bias(self.output),
        ]
        if self.shortfall:
            said.append(f"{self.pool} has too few rows: {_listed(self.shortfall)}.")
        if not self.as_planned:
            said.append(f"{self.output} is not as planned: {difference(self.after, self.planned)}.")
        said.append(f"Every row added or removed is listed in {self.sidecar}.")
        return tuple(said)

    def text(self) -> str:
        """Sentences, one per line."""
        return "\n".join(self.sentences)

    def _table(self) -> FlatTable:
        return cell_table({"before": self.before, "planned": self.planned, "after": self.after})

    def grid(self) -> Grid:
        """Table for people with the rows of each cell before, as planned, and after."""
        names, cells = self._table()
        # The last three columns are numbers of rows; before them are values of the data.
        rows = ((*(v or "" for v in cell[:-3]), *(f"{n:,}" for n in cell[-3:])) for cell in cells)
        return Grid(tuple(names), tuple(rows), frozenset(range(len(names) - 3, len(names))))

    def to_dict(self) -> dict[str, Any]:
        """Plain data, as ``--json`` prints it."""
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
            **self._measured(),
            "reading": self.before.reading.to_dict(),
            **self._made(),
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
    """Carry out a plan on a base table with rows of a pool; the output may be the base itself.

    The rows that stay keep their order and values. The added rows follow them, with the columns
    and types of the base. The file is written to a temporary folder next to its place and counted
    there; only then it and the list of changes are moved into place, each atomically. A failure
    before that leaves no trace.
    """
    one_of("missing_columns", missing_columns, MISSING_COLUMNS)
    place = place_named(output, engine)
    listing = Path(f"{os.fspath(output)}.changes.csv" if sidecar is None else sidecar)
    if isinstance(place, Path):
        _require_apart(base, pool, place, listing)
    else:
        listed_in = locate(beside(os.fspath(output), "_changes"))
        _require_other_table(base, pool, place, listed_in, sidecar, engine)
    engine.require_key(base)
    named = os.fspath(output) if isinstance(place, Path) else place.name
    request = plan.counts.request_for_rows()
    progress(f"counting {base.name}", 0)
    change = PlannedChange.of(plan, base, engine.counts(base, request), force=force)
    parts, added, shortfall = _take(
        change, pool, engine, seed, missing_columns, progress, partial=partial
    )
    progress(f"reading {base.name}", 3 / STEPS)
    if change.delete.n and not has_order(base):
        change = replace(change, base=with_order(base, engine.read(base)))
    removed = choose_removed(engine, change, seed)
    like = columns_like(base, engine)
    new = put_together(like, parts, base.name)
    progress(f"writing {named}", 4 / STEPS)
    # Removed rows are listed in the order of the base, and not as they were chosen.
    changes = [("remove", base, *line) for line in sorted(removed, key=lambda line: line[0])]
    changes += [("add", pool or base, *line) for line in added]
    stay = Part(change.base, [place for place, *_ in removed])
    listed = _changes(request, changes)

    def count(written: Source) -> Counts:
        progress(f"counting {named}", 5 / STEPS)
        after = engine.counts(written, request)
        expected = change.before.n + change.before.dropped + len(added) - len(removed)
        if base.kind in DATABASES and after.n + after.dropped != expected:
            raise has_changed(base, "its rows were counted")
        return after

    if isinstance(place, Path):
        after = _write_file(stay, new, place, listing, listed, engine, count)
    else:
        changed = [stay, Part(locate(new), lacking=lacking_rows(like, parts))]
        # The base itself, if it is replaced, may be a source of other repairs as before.
        said = "" if is_replaced(base, place) else repaired_comment(base)
        with published_table(changed, place, listed_in, engine, said) as (written, list_changes):
            after = count(written)
            list_changes(_as_table(*listed))
    return Applied(
        output=named,
        sidecar=str(listing) if isinstance(place, Path) else listed_in.name,
        pool=None if pool is None else pool.name,
        added=len(added),
        shortfall=shortfall,
        seed=seed,
        **change.measured(after),
    )


def _take(
    change: PlannedChange,
    pool: Source | None,
    engine: Engine,
    seed: int,
    missing_columns: MissingColumns,
    progress: Reporter,
    *,
    partial: bool,
) -> tuple[list[tuple[str, pa.Table]], list[LocatedRow], tuple[Shortfall, ...]]:
    """Choose the rows of the pool that a plan adds: these, where they stand, and what is lacking."""
    if not change.add.n:
        return [], [], ()
    if pool is None:
        raise InputError(
            f"the plan adds {rows_text(change.add.n)}; name the table that has them with `pool`."
        )
    _require_columns(change.base, pool, change.request, engine, missing_columns)
    shortfall = _require_enough(pool, change.add, change.request, engine, partial, progress)
    progress(f"choosing rows of {pool.name}", 2 / STEPS)
    rows, added = choose_located(engine, pool, change.request, change.add, seed)
    return [(pool.name, rows)], added, shortfall


def _write_file(
    stay: Part,
    new: pa.Table,
    output: Path,
    listing: Path,
    changes: tuple[list[str], list[tuple[Any, ...]]],
    engine: Engine,
    count: Callable[[Source], Counts],
) -> Counts:
    """Write the repaired file and the list of changes; return the counts of the file."""
    types, new = typed_for(output, stay.source, new, engine, added_decide=True)
    parts = [stay, Part(locate(new))]
    with (
        atomic_path(listing) as listed,
        written_file(parts, types, output, engine) as written,
    ):
        after = count(written)
        listed.write_text(csv_text(*changes), encoding="utf-8")
    return after


# ---------------------------------------------------------------------------- counting


def _lenient(request: CountRequest) -> CountRequest:
    """Skip rows of a pool with a missing value where such rows of the base are refused."""
    names = ("missing", "missing_label")
    skip: dict[str, Any] = {n: "drop" for n in names if getattr(request, n) == "raise"}
    return replace(request, **skip)


def _shortfall(add: Counts, there: Counts) -> tuple[Shortfall, ...]:
    """List the cells with too few rows, the largest shortfall first."""
    found = there.cells()
    lacks = [
        Shortfall(add.pattern(cell), need, found.get(cell, 0))
        for cell, need in add.cells().items()
        if need > found.get(cell, 0)
    ]
    return tuple(sorted(lacks, key=lambda lack: lack.found - lack.need))


# ---------------------------------------------------------------------------- refusing


def _require_apart(base: Source, pool: Source | None, output: Path, listing: Path) -> None:
    """Refuse to read rows twice, or to overwrite a file other than the base."""
    if pool is not None:
        _require_two(base, pool)
    if _files([listing]) & (_files(base.paths) | _files(pool.paths if pool else ())) or (
        os.path.realpath(listing) == os.path.realpath(output)
    ):
        raise InputError(
            f"the list of changes cannot be written to {listing}, which is a table; name another file."
        )
    if pool is not None and _files([output]) & _files(pool.paths):
        raise InputError(f"{output} is the pool, which must not change; write to another file.")
    if len(base.paths) > 1 and _files([output]) & _files(base.paths):
        raise InputError(f"{output} is only a part of {base.name}; write to another file.")
    is_part = base.where is not None or base.sql is not None or base.lenient
    if is_part and _files([output]) & _files(base.paths):
        raise InputError(
            f"the plan covers only a part of {base.name}, and its other rows would be lost; write "
            "to another file."
        )


def _require_other_table(
    base: Source,
    pool: Source | None,
    output: Source,
    listing: Source,
    sidecar: object,
    engine: Engine,
) -> None:
    """Refuse to replace the pool, a table of which the plan covers a part, or one of one's own."""
    if sidecar is not None:
        raise InputError(
            f"the list of changes of {output.name} is the table {output.table}_changes; leave out `sidecar`."
        )
    if pool is not None:
        _require_two(base, pool)
        require_other_tables([output, listing], [("the pool", pool)], engine)
    require_other_tables([listing], [("the base", base)], engine)
    engine.require_free(output)
    # A table of one's own may have such a name by chance, and a list is not worth its rows.
    engine.require_free(listing, only=CHANGES)
    if not is_replaced(base, output):
        require_unread(output, base, engine)
    else:
        _require_whole(base)


def _require_whole(base: Source) -> None:
    """Refuse to replace a base of which not every row is copied while it is locked."""
    if base.where is not None or base.sql is not None:
        raise InputError(
            f"the plan covers only a part of {base.name}, and its other rows would be lost; write "
            "to another table."
        )
    if base.data is not None:
        raise InputError(
            f"{base.name} is read by a connection of yours, and rows that are added to it meanwhile would be lost "
            "if it were replaced; give the table to repair by its address, or write to another table."
        )
    if not sees_all(base):
        raise InputError(
            f"{base.name} has row-level security, and rows of it that you cannot see would be lost; write "
            "to another table, or repair it as a user who sees all rows."
        )


def _require_two(base: Source, pool: Source) -> None:
    if _same_table(base, pool):
        raise InputError(
            f"{pool.name} is both the table to repair and the pool, so its rows would occur "
            "twice; give another table as `pool`."
        )


def _same_table(base: Source, pool: Source) -> bool:
    if base.kind in DATABASES or pool.kind in DATABASES:
        return is_same_place(base, pool)
    if base.kind == pool.kind == "frame":
        return base.sql == pool.sql and bool(base.data.equals(pool.data))
    if base.kind == pool.kind == "relation":
        return base.data is pool.data
    if not _files(base.paths) & _files(pool.paths):
        return False
    tables = {source.table and source.table.removeprefix("main.") for source in (base, pool)}
    return len(tables) == 1 or None in tables


def _files(paths: Iterable[Path]) -> set[tuple[int, int]]:
    """Identify files by device and inode, since a file may have several names."""
    stats = [path.stat() for path in paths if path.exists()]
    return {(stat.st_dev, stat.st_ino) for stat in stats}


def _require_columns(
    base: Source,
    pool: Source,
    request: CountRequest,
    engine: Engine,
    missing_columns: MissingColumns,
) -> None:
    """Refuse a pool without some columns; counted columns cannot be left missing."""
    there = [c.name for c in engine.schema(pool)]
    for name in request.columns:
        if name not in there:
            raise ColumnNotFound(name, table=pool.name, columns=there)
    lacking = [repr(c.name) for c in engine.schema(base) if c.name not in there]
    if lacking and missing_columns == "refuse":
        raise InputError(
            f"{pool.name} does not have {in_words(lacking)} of {base.name}; it has: "
            f"{', '.join(there)}. Add these columns, or leave them empty with "
            "`missing_columns='null'`."
        )


def _require_enough(
    pool: Source,
    add: Counts,
    request: CountRequest,
    engine: Engine,
    partial: bool,
    progress: Reporter,
) -> tuple[Shortfall, ...]:
    """Refuse a pool with too few rows, unless a part of them is enough; return what is missing."""
    progress(f"counting {pool.name}", 1 / STEPS)
    shortfall = _shortfall(add, engine.counts(pool, _lenient(request)))
    if shortfall and not partial:
        raise PoolTooSmall(
            f"{pool.name} has too few rows for the plan: {_listed(shortfall)}; plan again with "
            f"`available_from={pool.name!r}`, or set `partial` to take what there is."
        )
    return shortfall


# ------------------------------------------------------------------------------- words


def _changes(
    request: CountRequest, changes: Iterable[tuple[str, Source, Any, str, tuple[Value, ...]]]
) -> tuple[list[str], list[tuple[Any, ...]]]:
    """List every change: the names of the columns, and the lines."""
    named = [unused(n, request.columns) for n in ("action", "source", "row", "md5")]
    lines = [
        (action, source.public_name, place, md5, *(None if v is MISSING else v for v in cell))
        for action, source, place, md5, cell in changes
    ]
    return [*named, *request.columns], lines


def _as_table(names: Sequence[str], lines: Sequence[tuple[Any, ...]]) -> pa.Table:
    import pyarrow as pa

    texts = [
        [None if line[i] is None else str(line[i]) for line in lines] for i in range(len(names))
    ]
    return pa.table([pa.array(column, pa.string()) for column in texts], names=list(names))


def _listed(shortfall: Sequence[Shortfall]) -> str:
    shown = [f"{s.cell} needs {s.need:,} and has {s.found:,}" for s in shortfall[:_SHOWN]]
    more = len(shortfall) - len(shown)
    return in_words([*shown, *([f"so on for {more:,} more cells"] if more else [])])
