"""Rows of a base that stay in an engine, and are asked by queries."""

from __future__ import annotations

import functools
import weakref
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise.counts import CountRequest, Counts
from equipoise.engines.base import Column, Engine, Part
from equipoise.engines.choices import wanted_cells
from equipoise.engines.column_types import family
from equipoise.engines.kinds import DATABASES
from equipoise.engines.profiling import ColumnProfile
from equipoise.engines.sources import WORD, Source, View
from equipoise.lake.offers.base_views import (
    AlikeRows,
    EqualRows,
    NoRows,
    RepeatedRows,
    RowCount,
    SampledRows,
)
from equipoise.lake.offers.duplicates import Known
from equipoise.lake.offers.fingerprints import (
    DIGITS,
    RowHashes,
    as_texts,
    from_texts,
    loose_hashes,
    value_hashes,
)
from equipoise.lake.offers.held_rows import Chances, Located, Sample, in_place_of
from equipoise.lake.offers.meanings import HashedColumn
from equipoise.lake.offers.need import Need
from equipoise.progress import pulse
from equipoise.rows.texts import without_categories
from equipoise.scratch import make_folder
from equipoise.values import MISSING

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray

    from equipoise.lake.cover.worth import Whole

_SAMPLED = 50_000
"""Maximum number of rows of the base that are fetched to be compared with the added rows."""

_FEWEST, _OF_DATABASE = 1_000, 0.005
"""Of a database fewer are fetched: at most this number, or this share of its rows if that is more."""

_DIGESTS = 250_000
"""About how many rows the share of equal rows is estimated from."""

_AT_ONCE = 250_000
"""Maximum number of digests in a query."""

_IDENTIFYING = 0.8
"""Estimated share of different values from which on a column may identify rows."""

_ALL = "g"  # after every hexadecimal digit


@dataclass(frozen=True, eq=False)
class StoredRows:
    """Rows of a base that stay in an engine, which answers how many of them are as asked.

    Columns whose type engines do not write alike, such as lists, are not compared.
    """

    source: Source
    engine: Engine
    gone: Mapping[str, int] = field(default_factory=dict)
    """How many rows are removed, by the first digits of their md5."""

    profiles: Mapping[str, ColumnProfile] = field(default_factory=dict)
    loose: tuple[str, ...] = ()
    _known: dict[str, Any] = field(default_factory=dict)
    """What was asked so far."""

    @functools.cached_property
    def table(self) -> tuple[Column, ...]:
        """The columns that can be compared."""
        columns = self.engine.schema(self.source)
        return tuple(c for c in columns if family(c.type) != "other")

    @functools.cached_property
    def columns(self) -> dict[str, HashedColumn]:
        """The columns by the names of their hashes."""
        types = {c.name: c.type for c in self.table}
        plain = [self._hashed(name, kind, is_loose=False) for name, kind in types.items()]
        loose = [self._hashed(name, types[name], is_loose=True) for name in self.loose]
        return {column.key: column for column in (*plain, *loose)}

    def _hashed(self, name: str, column_type: str, *, is_loose: bool) -> HashedColumn:
        import pyarrow as pa

        profile = self.profiles.get(name)
        kind = family(column_type)
        if profile is None or not profile.values or kind in ("float", "boolean"):
            return HashedColumn(name, column_type, is_loose)
        texts = list(profile.values)
        column = pa.chunked_array([pa.array(texts, pa.string())])
        hashes = loose_hashes(column) if is_loose else value_hashes(column)
        known = {t: f"{h:0{DIGITS}x}" for t, h in zip(texts, hashes.tolist(), strict=True)}
        return HashedColumn(name, column_type, is_loose, known)

    def _asked(self, view: View) -> pa.Table:
        return self.engine.read(replace(self.source, view=view))

    @property
    def n(self) -> int:
        """Number of rows."""
        return self._rows - sum(self.gone.values())

    @property
    def _rows(self) -> int:
        if "rows" not in self._known:
            self._known["rows"] = self._asked(RowCount())["n"][0].as_py()
        rows: int = self._known["rows"]
        return rows

    @functools.cached_property
    def like(self) -> pa.Table:
        """The columns in their types, without rows."""
        return without_categories(self._asked(NoRows()))

    def informed(self, profiles: Sequence[ColumnProfile]) -> StoredRows:
        """The same rows; hashes of few values need not be computed."""
        return replace(self, profiles={profile.name: profile for profile in profiles})

    def hashes(self, loose: Collection[str] = ()) -> StoredRows:
        """The rows themselves, which count their equals."""
        return replace(self, loose=tuple(sorted(loose)))

    def in_order(self) -> Source:
        """A copy in a temporary file; rows of a database are known by their values anyway."""
        if self.source.kind in DATABASES:
            return self.source
        if "copy" not in self._known:
            folder = make_folder()
            self._known["copy"] = folder.path / "base.parquet"
            weakref.finalize(self, folder.remove)
            self.engine.write(self._known["copy"], [Part(self.source)])
        return in_place_of(self.source, kind="parquet", paths=(self._known["copy"],))

    def counts(self, request: CountRequest) -> Counts:
        """Count the rows of each cell."""
        key = f"counts {request!r}"
        if key not in self._known:
            self._known[key] = self.engine.counts(self.source, request)
        counts: Counts = self._known[key]
        self._known["rows"] = counts.n + counts.dropped
        return counts

    # ------------------------------------------------------------------ equal rows

    def count_equal(self, rows: RowHashes, names: Sequence[str]) -> Whole:
        """Count the rows that equal each of some others in some columns."""
        if not names:
            return np.full(rows.length, self._rows, np.int64)
        digests = rows.digests(names)
        self._count(names, digests)
        asked, counted = self._known[_key("equal", names)]
        found: Whole = counted[np.searchsorted(asked, digests)]
        return found

    def expect(self, tables: Iterable[RowHashes], known: Known) -> None:
        """Count the equals of rows of several tables, with a query for each set of columns."""
        sets: dict[tuple[str, ...], list[NDArray[np.uint64]]] = {}
        for rows in tables:
            names = tuple(sorted(known.compared(rows, self)))
            if names:
                sets.setdefault(names, []).append(rows.digests(names))
        for names, digests in sets.items():
            self._count(names, np.concatenate(digests))

    def _count(self, names: Sequence[str], digests: NDArray[np.uint64]) -> None:
        """Count the rows with each of some digests, unless they are counted already."""
        key = _key("equal", names)
        none = np.zeros(0, np.uint64), np.zeros(0, np.int64)
        asked, counted = self._known.get(key, none)
        new = np.setdiff1d(digests, asked)
        parts = [(asked, counted)]
        for start in range(0, len(new), _AT_ONCE):
            some = new[start : start + _AT_ONCE]
            parts.append((some, self._counted(names, some)))
            pulse()
        asked, counted = (np.concatenate(column) for column in zip(*parts, strict=True))
        order = np.argsort(asked)
        self._known[key] = asked[order], counted[order]

    def _counted(self, names: Sequence[str], digests: NDArray[np.uint64]) -> Whole:
        """Count the rows with each of some digests, which rise."""
        import pyarrow as pa

        view = EqualRows(self.table, self._compared(names))
        asked = pa.table({WORD: as_texts(digests)})
        found = self.engine.read(replace(self.source, view=view, asked=asked))
        rows = np.zeros(len(digests), np.int64)
        rows[np.searchsorted(digests, from_texts(found["digest"]))] = found["n"].to_numpy()
        return rows

    def _compared(self, names: Sequence[str]) -> list[HashedColumn]:
        return [self.columns[name] for name in sorted(set(names))]

    def chances(self, known: Known, need: Need) -> Chances:
        """Return a function that estimates the share of new rows that equal a row here by chance.

        Of many rows, those of a sample of digests are counted.
        """

        def estimate(rows: RowHashes) -> NDArray[np.float64]:
            names = known.compared(rows, self)
            if known.policy == "key" or not names:
                return np.zeros(len(need.rows))
            shares = self._alike(names, need.request)
            texts = _texts(need.cells, self.table, need.request)
            return np.array([shares.get(cell, 0.0) for cell in texts], np.float64)

        return estimate

    def _alike(
        self, names: Sequence[str], request: CountRequest
    ) -> Mapping[tuple[str, ...], float]:
        """Estimate the share of rows of each cell that equal another row of it in some columns."""
        key = _key(f"alike {request!r}", names)
        if key not in self._known:
            below = _below(_DIGESTS / max(self._rows, 1))
            found = self._asked(AlikeRows(self.table, self._compared(names), request, below))
            *cells, there, alike = (column.to_pylist() for column in found.columns)
            shares = (b / a for a, b in zip(there, alike, strict=True))
            self._known[key] = dict(zip(zip(*cells, strict=True), shares, strict=True))
        known: Mapping[tuple[str, ...], float] = self._known[key]
        return known

    # ---------------------------------------------------------------------- sample

    def without(self, removed: Sequence[Located]) -> StoredRows:
        """The rows but for those that are removed."""
        return replace(self, gone=Counter(md5[:DIGITS] for _, md5, _ in removed))

    def sample(self, need: Need) -> Sample:
        """Return a sample of the rows of the needed cells, or all of them if they are few."""
        there = self.counts(need.request).cells()
        rows = {
            texts: there.get(cell, 0)
            for cell, texts in zip(
                need.values, _texts(need.cells, self.table, need.request), strict=True
            )
            if MISSING not in cell and there.get(cell, 0)
        }
        total = sum(rows.values())
        outside = self._rows - total
        if not rows:
            return Sample(self.like, outside=outside)
        limit = self._sample_size
        most = _level(list(rows.values()), limit)
        shares = {cell: most / n for cell, n in rows.items()}
        found = self._sampled(need, shares)
        if len(found) < limit / 2 < sum(min(n, most) for n in rows.values()):
            # Equal rows have one md5, so a sample of few different rows would be a rough one.
            more = limit / max(len(found), 1)
            found = self._sampled(need, {cell: more * share for cell, share in shares.items()})
        chosen = self._repeated(found, need, most)
        of = total if total > limit else None
        return Sample(without_categories(chosen), of, outside)

    @property
    def _sample_size(self) -> int:
        if self.source.kind not in DATABASES:
            return _SAMPLED
        return min(max(int(self._rows * _OF_DATABASE), _FEWEST), _SAMPLED)

    def _sampled(self, need: Need, shares: Mapping[tuple[str, ...], float]) -> pa.Table:
        limits = {cell: _below(share) for cell, share in shares.items()}
        found = self._asked(SampledRows(self.table, need.request, limits))
        return found.sort_by(found.column_names[-2])

    def _repeated(self, found: pa.Table, need: Need, most: int) -> pa.Table:
        """Repeat different rows as often as they are there, up to a number of rows of a cell."""
        import pyarrow as pa

        md5, n = found.columns[-2:]
        rows = found.select(found.column_names[:-2])
        left = dict(self.gone)
        times = n.to_numpy().astype(np.int64)
        for i, text in enumerate(md5.to_pylist() if left else ()):
            fewer = min(left.get(text, 0), int(times[i]))
            if fewer:
                times[i] -= fewer
                left[text] -= fewer
        cells = need.numbers(rows)
        for cell in np.unique(cells[cells >= 0]).tolist():
            at = np.flatnonzero(cells == cell)
            total = int(times[at].sum())
            if total > most:
                up_to = np.concatenate([[0], np.cumsum(times[at])]) * most // total
                times[at] = np.diff(up_to)
        times[cells < 0] = 0
        return rows.take(pa.array(np.repeat(np.arange(len(rows)), times)))

    # ----------------------------------------------------------------- known again

    def known_again(self, added: pa.Table, counted: Collection[str]) -> dict[str, int]:
        """Count added rows that may be a person of the base, by columns that identify its rows."""
        found = {}
        for column in self.table if len(added) and self._rows > 1 else ():
            name = column.name
            if name in counted or not self._may_identify(name):
                continue
            same = int((self.count_equal(RowHashes.of(added, [name]), [name]) > 0).sum())
            if (
                same
                and not self._asked(RepeatedRows(self.table, self._compared([name])))["n"][
                    0
                ].as_py()
            ):
                found[name] = same
        return found

    def _may_identify(self, name: str) -> bool:
        profile = self.profiles.get(name)
        if profile is None or self.source.where is not None:  # it is of all rows
            return True
        return profile.nulls <= 1 and profile.distinct >= _IDENTIFYING * self._rows


def _key(what: str, names: Sequence[str]) -> str:
    return f"{what} {sorted(set(names))!r}"


def _texts(
    cells: Counts, columns: Sequence[Column], request: CountRequest
) -> list[tuple[str, ...]]:
    """Write the values of cells as queries do."""
    table = wanted_cells(cells, columns, request)
    keys = [table[f"k{i}"].to_pylist() for i in range(len(cells.axes))]
    return list(zip(*keys, strict=True))


def _level(sizes: Sequence[int], total: int) -> int:
    """Find how many rows to take at most of each cell so that there are no more than a total.

    >>> _level([5, 10, 1000], 100), _level([5, 10], 100)
    (85, 10)
    """
    rising = sorted(sizes)
    for i, size in enumerate(rising):
        each = total // (len(rising) - i)
        if size > each:
            return max(each, 1)
        total -= size
    return rising[-1]


def _below(share: float) -> str:
    """Return the hexadecimal digits that such a share of hashes is below.

    >>> _below(0.5), _below(2)
    ('800000000000', 'g')
    """
    return _ALL if share >= 1 else f"{int(share * 16**12):012x}"
