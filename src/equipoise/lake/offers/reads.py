"""Rows of tables as a base has them, read in one pass for all needs of a search or a repair."""

from __future__ import annotations

import functools
import itertools
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from equipoise.counts import Axis, CountRequest, Counts
from equipoise.counts.rows import cells_of_rows
from equipoise.engines.base import Engine
from equipoise.engines.memory import MemoryEngine
from equipoise.engines.sources import Source
from equipoise.lake.matching.columns.alignment import Alignment
from equipoise.lake.matching.columns.target import Wanted
from equipoise.lake.matching.mapped_table import (
    MappedView,
    failed_column,
    failed_text,
    mapped_source,
    number_of_failed,
    said_columns,
)
from equipoise.lake.matching.restriction import OUTSIDE, Restriction, inside
from equipoise.lake.offers.copies import RowFiles, TableCopies, read_rows
from equipoise.lake.offers.fingerprints import RowHashes, loose_hashes, loosely
from equipoise.lake.offers.need import EVERY_ROW, Need
from equipoise.lake.offers.survey import Candidate
from equipoise.values import MISSING, Value

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray

    from equipoise.lake.cover.worth import Whole

_Counted: TypeAlias = "tuple[Counter[tuple[Value, ...]], Counter[str], int]"

_MOST_CELLS = 5_000
"""Maximum number of possible cells; with more, tables are read for the needed cells only."""

_FEW = 5_000
"""Number of rows up to which planning the query that chooses rows takes longer than choosing them."""


@dataclass(frozen=True)
class Drawn:
    """Rows of a table in the needed cells, mapped to the base, in the order of a seed."""

    table: pa.Table
    lines: Whole
    places: Whole | NDArray[np.object_]
    cells: Whole
    hashes: RowHashes

    @functools.cached_property
    def rows(self) -> pa.Table:
        """The rows themselves."""
        import pyarrow as pa

        return self.table.take(pa.array(self.lines, pa.int64()))

    def by_cell(self, chosen: NDArray[np.bool_], cells: int) -> Whole:
        """Count some of the rows in each cell."""
        return np.bincount(self.cells[chosen], minlength=cells).astype(np.int64)

    def take(self, chosen: NDArray[np.bool_] | Whole) -> Drawn:
        """Return some of the rows."""
        rows = np.arange(len(self.cells))[chosen]
        return Drawn(
            self.table,
            self.lines[rows],
            self.places[rows],
            self.cells[rows],
            self.hashes.take(rows),
        )


@dataclass(frozen=True)
class ReadTable:
    """All rows of a table that are in some cell, and why its other rows are in none."""

    cells: Mapping[tuple[Value, ...], int]
    """The number of each cell."""

    starts: Whole
    """Where the rows of each cell start, and where the last of them end."""

    rows: Drawn
    failures: Mapping[str, int]
    outside: int

    def there(self, need: Need) -> Whole:
        """Count the rows of each needed cell."""
        return np.array([end - start for start, end in self._spans(need)], np.int64)

    def drawn(self, need: Need) -> Drawn:
        """Return the rows of the needed cells, cell by cell."""
        spans = self._spans(need)
        none = np.zeros(0, np.int64)
        lines = np.concatenate([none, *(np.arange(start, end) for start, end in spans)])
        drawn = self.rows.take(lines)
        cells = np.repeat(np.arange(len(spans)), [end - start for start, end in spans])
        return replace(drawn, cells=cells)

    def _spans(self, need: Need) -> list[tuple[int, int]]:
        numbers = [self.cells.get(cell) for cell in need.values]
        return [
            (0, 0) if i is None else (int(self.starts[i]), int(self.starts[i + 1])) for i in numbers
        ]


@dataclass(frozen=True)
class Reads:
    """Reads tables as a base has them, each once: see :class:`TableCopies` for those too large for it."""

    engine: Engine
    want: Wanted
    seed: int = 0
    within: Restriction | None = None
    copies: TableCopies | None = None
    _read: dict[tuple[str, tuple[Axis, ...]], ReadTable] = field(default_factory=dict)
    _counted: dict[tuple[str, tuple[Axis, ...]], _Counted] = field(default_factory=dict)
    _chosen: dict[tuple[str, tuple[Axis, ...], bytes, bytes], Path] = field(default_factory=dict)
    _files: RowFiles = field(default_factory=RowFiles)

    @functools.cached_property
    def _copies(self) -> TableCopies:
        return self.copies or TableCopies(self.engine)

    def whole(self, candidate: Candidate, need: Need) -> ReadTable | None:
        """Read a table with all possible cells; None if that is too much of one."""
        axes = need.cells.axes
        key = candidate.name, axes
        if key in self._read:
            return self._read[key]
        known = [[v for v in axis.values if v is not MISSING] for axis in axes]
        if np.prod([float(len(k)) for k in known]) > _MOST_CELLS:
            return None
        if not self._copies.holds(candidate):
            return None
        self._read[key] = self._in_one_pass(candidate, need, list(itertools.product(*known)))
        return self._read[key]

    def _in_one_pass(
        self, candidate: Candidate, need: Need, cells: list[tuple[Value, ...]]
    ) -> ReadTable:
        """Fetch the rows of all cells, and those that are in none because a value of them fails."""
        asked = self._with_failed(need.request)
        lost = self._lost_cells(need)
        take = _all_of([*((MISSING, *cell) for cell in cells), *lost], need.cells, asked)
        if candidate.profile.rows <= _FEW:
            rows = self._read_whole(candidate)
            source = replace(candidate.table.source, kind="frame", data=rows, paths=(), table=None)
            found = MemoryEngine().rows(source, asked, take, self.seed, located=True)
        else:
            mapped = self._mapped(candidate)
            found = self.engine.rows(mapped, asked, take, self.seed, located=True)
        numbers = cells_of_rows(found, take)
        rows = np.bincount(numbers, minlength=len(cells) + len(lost))
        failures: Counter[str] = Counter()
        outside = 0
        for (place, *_), n in zip(lost, rows[len(cells) :].tolist(), strict=True):
            if place == OUTSIDE:
                outside += n
            elif n:
                failures[self.want.columns[number_of_failed(str(place))].name] += n
        kept = found.slice(0, int(rows[: len(cells)].sum()))
        drawn = self._drawn(candidate.alignment, kept, numbers[: len(kept)])
        starts = np.cumsum([0, *rows[: len(cells)]])
        named = {cell: i for i, cell in enumerate(cells)}
        return ReadTable(named, starts, drawn, dict(failures), outside)

    def _read_whole(self, candidate: Candidate) -> pa.Table:
        """Read all rows of a table as the base has them; a table that is not copied yet is, with them."""
        if self.within is not None or self._copies.has(candidate):
            return self.engine.read(self._mapped(candidate))
        columns = candidate.profile.columns
        view = MappedView(candidate.profile, candidate.alignment, self.want, with_copy=True)
        both = self.engine.read(replace(candidate.table.source, view=view))
        own = both.num_columns - len(columns)
        copy = both.select(range(own, both.num_columns))
        self._copies.keep(candidate, copy.rename_columns([c.name for c in columns]))
        return both.select(range(own))

    def _lost_cells(self, need: Need) -> list[tuple[Value, ...]]:
        """List the cells of rows with a value that fails, or that are outside of the condition.

        Their required values are missing, except numbers that are binned.
        """
        places: list[Value] = [failed_text(i) for i in range(len(self.want.columns))]
        places += [OUTSIDE] if self.within is not None else []
        values = [
            [MISSING, *(v for v in axis.values if v is not MISSING)]
            if axis.name in self.want.bins
            else [MISSING]
            for axis in need.cells.axes
        ]
        return list(itertools.product(places, *values))

    def count(self, candidate: Candidate, need: Need) -> tuple[Whole, dict[str, int], int]:
        """Count the rows of each needed cell, those that cannot be converted, and those outside.

        The rows outside do not satisfy the condition of the base.
        """
        key = candidate.name, need.cells.axes
        if key not in self._counted:
            self._counted[key] = self._count(candidate, need)
        there, failures, outside = self._counted[key]
        return need.found_in(there), dict(failures), outside

    def _count(self, candidate: Candidate, need: Need) -> _Counted:
        # One pass counts all three: a further column names the first value that fails, if any.
        asked = self._with_failed(need.request)
        found = self.engine.counts(self._mapped(candidate), asked).cells()
        there: Counter[tuple[Value, ...]] = Counter()
        failures: Counter[str] = Counter()
        outside = 0
        for (place, *cell), n in found.items():
            if place is MISSING:
                there[tuple(cell)] += n
            elif place == OUTSIDE:
                outside += n
            else:
                failures[self.want.columns[number_of_failed(place)].name] += n
        return there, failures, outside

    def rows(self, candidate: Candidate, need: Need, many: Whole) -> Drawn:
        """Fetch so many rows of each needed cell of a table, the first in the order of the seed.

        They are kept in a file, since choosing them again may take long.
        """
        cells = need.cells
        key = candidate.name, cells.axes, cells.codes.tobytes(), many.tobytes()
        if key in self._chosen:
            found = read_rows(self._chosen[key])
        else:
            take, asked = replace(cells, rows=many), _with_missing(need.request)
            found = self.engine.rows(self._mapped(candidate), asked, take, self.seed, located=True)
            self._chosen[key] = self._files.write(found)
        return self._drawn(candidate.alignment, found, np.repeat(np.arange(len(many)), many))

    def _drawn(self, alignment: Alignment, found: pa.Table, cells: Whole) -> Drawn:
        said = said_columns(self.want, alignment)
        hidden = {failed_column(self.want), *said.values()}
        rows = found.select([n for n in found.column_names[:-2] if n not in hidden])
        places = found.column(found.num_columns - 2).to_numpy()
        if places.dtype != object:  # rows of databases are known by texts
            places = places.astype(np.int64)
        hashes = _hashes(rows, found, alignment, said)
        return Drawn(rows, np.arange(len(places)), places, cells, hashes)

    def _with_failed(self, request: CountRequest) -> CountRequest:
        asked = _with_missing(request)
        return replace(asked, sensitive=(failed_column(self.want), *asked.sensitive))

    def _mapped(self, candidate: Candidate) -> Source:
        mapped = mapped_source(
            self._copies.of(candidate), candidate.profile, candidate.alignment, self.want
        )
        if self.within is None:
            return mapped
        return inside(mapped, self.want, candidate.alignment, self.within)


def _with_missing(request: CountRequest) -> CountRequest:
    return replace(request, missing="group", missing_label="group")


def _all_of(cells: list[tuple[Value, ...]], like: Counts, request: CountRequest) -> Counts:
    """Ask for all rows of some cells; the first value of each is in the column of failures."""
    names = [request.sensitive[0], *(axis.name for axis in like.axes)]
    values = [tuple(dict.fromkeys(column)) for column in zip(*cells, strict=True)]
    roles = ["sensitive", *(axis.role for axis in like.axes)]
    axes = tuple(Axis(*about) for about in zip(names, values, roles, strict=True))
    codes = np.array([[a.codes[v] for a, v in zip(axes, c, strict=True)] for c in cells], np.int32)
    return replace(
        like,
        axes=axes,
        codes=codes.reshape(len(cells), len(axes)),
        rows=np.full(len(cells), EVERY_ROW, np.int64),
        request=request,
    )


def _hashes(
    rows: pa.Table, found: pa.Table, alignment: Alignment, said: Mapping[str, str]
) -> RowHashes:
    """Hash rows by their meaning, even of values that are kept as written or left missing."""
    plain = [name for name in rows.column_names if name not in said]
    columns = dict(RowHashes.of(rows, plain).columns)
    for name, column in said.items():
        if alignment.compared[name].has_readings:
            columns[loosely(name)] = loose_hashes(found[column])
        else:
            columns[name] = RowHashes.of(found, [column]).columns[column]
    return RowHashes(columns, len(rows))
