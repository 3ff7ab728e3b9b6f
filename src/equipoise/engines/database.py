"""What engines over a database share: verbs as queries, and their results as counts and rows."""

from __future__ import annotations

import abc
import contextlib
import functools
import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from equipoise.counts import CountRequest, Counts
from equipoise.counts.columns import (
    checked_counts,
    distinct_edges,
    not_a_count,
    not_a_number,
    not_numbers,
    not_weights,
    values_in,
)
from equipoise.engines import sql
from equipoise.engines.base import (
    Column,
    Identity,
    MadeTable,
    Middle,
    Part,
    has_changed,
    require_choice,
    require_columns,
    require_names,
    require_plain,
    require_rows,
)
from equipoise.engines.choices import as_wanted, departed, named_places, wanted_cells
from equipoise.engines.column_types import family, is_shared, is_unencoded
from equipoise.engines.filtering import Filtering
from equipoise.errors import InputError, Unsupported
from equipoise.plain import rows_text
from equipoise.values import MISSING, Value

if TYPE_CHECKING:
    import os

    from equipoise.engines.dialect import Dialect
    from equipoise.engines.sources import Source


class Database(Filtering):
    """Verbs over a database; an engine says how it opens tables and runs queries.

    A query runs over the text of a table that :meth:`_opened` gives, whose columns have the types of
    :mod:`equipoise.engines.column_types`.
    """

    # ---------------------------------------------------- what an engine provides

    @abc.abstractmethod
    def _registered(self, rows: pa.Table) -> contextlib.AbstractContextManager[str]:
        """Give rows to the database, under a name that queries can use."""

    # -------------------------------------------------------------------- verbs

    def schema(self, source: Source) -> tuple[Column, ...]:
        """The columns of a table."""
        with self._opened(source) as (_, columns):
            return columns

    def counts(self, source: Source, request: CountRequest) -> Counts:
        """Count the rows of each cell, in one scan."""
        with self._opened(source) as (table, columns):
            if source.sql is None and source.view is None:
                require_names([c.name for c in columns], source.key, source.name)
            require_columns(columns, request, source.name)
            counted = [c for c in columns if c.name in request.columns and not is_shared(c.type)]
            require_comparable([c for c in counted if not is_unencoded(c.type)], source.name)
            request = self._with_edges(source, table, columns, request)
            counts = self._counted(source, table, columns, request)
            where = "" if source.where is None else f" where {source.where.one_line}"
            return require_rows(counts, f"{source.name}{where}")

    def distinct(self, source: Source, column: str, limit: int = 1000) -> dict[Value, int]:
        """Count the rows of each value of a column, most frequent first."""
        with self._opened(source) as (table, columns):
            require_names([c.name for c in columns], [column], source.name)
            known = next(c for c in columns if c.name == column)
            query = sql.values_by_frequency(self._dialect(source), table, known, limit)
            found = self._arrow(source, query, "listing values")
        return dict(zip(values_in(found["v"]), found["n"].to_pylist(), strict=True))

    def middle(self, source: Source, column: str, na: Sequence[str] = ()) -> Middle:
        """Find the middle of the numbers of a column; see :class:`~equipoise.engines.base.Engine`."""
        with self._opened(source) as (table, columns):
            require_plain(columns, column, source.name)
            known = next(c for c in columns if c.name == column)
            strange, numbers = self._strange_text(source, table, known, na)
            if strange is not None or not numbers:
                raise not_numbers(column, strange)
            low, high = self._numbers_at(source, table, known, na, Middle.places(numbers))
            return Middle(low + 0.0, high + 0.0, numbers)  # −0.0 is 0.0

    def read(self, source: Source, columns: Sequence[str] | None = None) -> pa.Table:
        """Read all rows of a table, or of some of its columns."""
        with self._opened(source) as (table, known):
            wanted = require_names([c.name for c in known], columns, source.name)
            names = ", ".join(map(self._dialect(source).identifier, wanted))
            return self._arrow(source, f"SELECT {names} FROM {table} AS input", "reading rows")

    def rows(
        self,
        source: Source,
        request: CountRequest,
        take: Counts,
        seed: int = 0,
        *,
        rest: bool = False,
        located: bool = False,
    ) -> pa.Table:
        """Choose rows by cell; see :class:`~equipoise.engines.base.Engine`.

        All other rows are returned in no certain order, since tables of a database have none.
        """
        # Rows that have a key are counted before they are chosen, which tells if it must be checked again.
        is_counted = bool(take.n) and source.view is None
        with self._located(source, located=located, checked=not is_counted) as (
            table,
            columns,
            known,
        ):
            if not rest:
                return self._chosen(
                    source, table, columns, request, take, seed, known, located=located
                )
            if located and take.n:
                raise Unsupported("rows of a database that are left over have no places.")
            if located:
                query = sql.all_located(self._dialect(source), table, columns, known)
                return self._arrow(source, query, "reading rows")
            gone = self._chosen(source, table, columns, request, take, seed, known, located=True)
            places = gone.column(gone.num_columns - 2).to_pylist()
            with self._registered(departed(places, known)) as name:
                query = sql.rows_without(self._dialect(source), table, columns, name, known)
                return self._arrow(source, query, "reading rows")

    def fetch(self, source: Source, places: Sequence[Any]) -> pa.Table:
        """Fetch the rows at some places, in the order of these; see :class:`~equipoise.engines.base.Engine`."""
        with (
            self._located(source, located=True, checked=False) as (table, columns, known),
            self._registered(named_places(places, known)) as chosen,
        ):
            query = sql.rows_known(self._dialect(source), table, columns, chosen, known)
            found = self._arrow(source, query, "reading rows")
        return found.sort_by(found.column_names[-2])

    def require_key(self, source: Source) -> None:
        """Refuse a table whose rows are known by a key that is none; see :class:`~equipoise.engines.base.Engine`."""
        if source.key:
            with self._opened(source) as (table, columns):
                self._identity(source, table, columns)

    def snapshot(self, source: Source) -> str:
        """Name the state of a table by its columns, its number of rows and a sum of their hashes."""
        with self._opened(source) as (table, columns):
            require_comparable(columns, source.name)
            query = sql.fingerprint(self._dialect(source), table, columns)
            found = self._arrow(source, query, f"hashing {source.name}")
        names = hashlib.md5(repr([c.name for c in columns]).encode()).hexdigest()  # noqa: S324 (a mark)
        total = int(found["total"][0].as_py() or 0)
        return f"rows:{int(found['n'][0].as_py())}:{total:x}:{names[:8]}"

    @abc.abstractmethod
    def require_free(self, target: Source, *, only: str = "") -> None:
        """Refuse a name under which no table can be made; see :class:`~equipoise.engines.base.Engine`."""

    @abc.abstractmethod
    def creating(
        self, target: Source, parts: Sequence[Part], comment: str = ""
    ) -> contextlib.AbstractContextManager[MadeTable]:
        """Make a table of the rows of some parts; see :class:`~equipoise.engines.base.Engine`."""

    def is_near(self, target: Source, source: Source) -> bool:  # noqa: ARG002
        """Whether rows of a source of this engine can be copied to a table without leaving the database."""
        return True

    def part_rows(self, part: Part) -> pa.Table:
        """Return the rows of a part, for an engine that has no access to them."""
        if not part.without:
            return self.read(part.source)
        with self._opened(part.source) as (table, columns):
            known = Identity(key=tuple(part.source.key))
            all_rows = self._number_of_rows(part.source, table)
            with self._registered(departed(part.without, known)) as name:
                query = sql.rows_without(self._dialect(part.source), table, columns, name, known)
                rows = self._arrow(part.source, query, "reading rows")
        if len(rows) != all_rows - len(part.without):
            raise has_changed(part.source, "the rows to remove were chosen")
        return rows

    def _number_of_rows(self, source: Source, table: str) -> int:
        query = f"SELECT count(*) AS n FROM {table} AS input"
        return int(self._arrow(source, query, f"counting {source.name}")["n"][0].as_py())

    def write(
        self,
        target: str | os.PathLike[str],
        parts: Sequence[Part],  # noqa: ARG002
        types: Mapping[str, str] | None = None,  # noqa: ARG002
    ) -> None:
        """Refuse to write a file."""
        raise Unsupported(
            f"{target} cannot be written by a database, which makes tables; use the duckdb engine."
        )

    # ----------------------------------------------------------------- counting

    def _counted(
        self, source: Source, table: str, columns: tuple[Column, ...], request: CountRequest
    ) -> Counts:
        query = sql.count_cells(self._dialect(source), table, columns, request)
        cells = self._arrow(source, query, f"counting {source.name}")
        known = {c.name: c for c in columns}
        # The table is read again only to name a value that is not a number.
        for i, name in enumerate(request.columns):
            if name in request.bins and -1 in cells[f"c{i}"].unique().to_pylist():
                self._require_numbers(source, table, known[name], request.na)
        _refuse_bad_numbers(cells, request)
        names = {name: cells[f"c{i}"] for i, name in enumerate(request.columns)}
        rows = checked_counts(cells["n"].to_numpy())
        weights = None
        if request.weight is not None:
            weights = np.stack([cells["w"].to_numpy(), cells["w2"].to_numpy()], axis=1)
        return Counts.from_encoded(names, rows, weights, request)

    def _with_edges(
        self, source: Source, table: str, columns: tuple[Column, ...], request: CountRequest
    ) -> CountRequest:
        edges = {}
        for column in columns:
            bins = request.bins.get(column.name)
            if isinstance(bins, int):
                present = self._require_numbers(source, table, column, request.na)
                if not present:
                    raise InputError(f"column {column.name!r} has no numbers to bin.")
                # The ceiling of present · i / bins, in integers; the first is the minimum.
                places = [max(-(-present * i // bins), 1) for i in range(bins)]
                least, *found = self._numbers_at(source, table, column, request.na, places)
                edges[column.name] = distinct_edges(column.name, found, least)
        return request.with_edges(edges)

    def _numbers_at(
        self, source: Source, table: str, column: Column, na: Sequence[str], places: Sequence[int]
    ) -> list[float]:
        """Return the numbers of a column at some places, counted from 1, in ascending order."""
        query = sql.numbers_at(self._dialect(source), table, column, na, places)
        found = self._arrow(source, query, "binning")
        return [float(column[0].as_py()) for column in found.columns]

    def _require_numbers(
        self, source: Source, table: str, column: Column, na: Sequence[str]
    ) -> int:
        """Refuse a column to bin that holds text; return the number of numbers it holds."""
        strange, numbers = self._strange_text(source, table, column, na)
        if strange is not None:
            raise not_a_number(column.name, strange)
        return numbers

    def _strange_text(
        self, source: Source, table: str, column: Column, na: Sequence[str]
    ) -> tuple[str | None, int]:
        """Return a text of a column that is no number, if there is one, and how many numbers it has."""
        query = sql.strange_text(self._dialect(source), table, column, na)
        found = self._arrow(source, query, "binning")
        return found["strange"][0].as_py(), int(found["numbers"][0].as_py())

    # ----------------------------------------------------------------- choosing

    def _chosen(
        self,
        source: Source,
        table: str,
        columns: tuple[Column, ...],
        request: CountRequest,
        take: Counts,
        seed: int,
        known: Identity,
        *,
        located: bool,
    ) -> pa.Table:
        """Choose rows; those with a key are chosen among the few whose md5 is small enough."""
        request = require_choice(columns, request, take, source.name)
        there = None
        if known.key and not known.carried and take.n:
            plainly = replace(request, missing="group", missing_label="group", weight=None)
            there = self._counted(source, table, columns, plainly)
            self._identity(source, table, columns, there.n)
        for limited in (True, False):
            wanted = wanted_cells(take, columns, request, there if limited else None)
            wanted = _possible(self._dialect(source), wanted)
            with self._registered(wanted) as name:
                asked = as_wanted(name, wanted)
                query = sql.choose_rows(
                    self._dialect(source),
                    table,
                    columns,
                    request,
                    asked,
                    seed,
                    known=known,
                    located=located,
                )
                found = self._arrow(source, query, "choosing rows")
            if there is None or not limited or len(found) >= _available(take, there):
                break
        return found

    @contextlib.contextmanager
    def _located(
        self, source: Source, *, located: bool, checked: bool = True
    ) -> Iterator[tuple[str, tuple[Column, ...], Identity]]:
        """Open a table to choose rows from it; also tell what these are known by."""
        if source.view is None:
            with self._opened(source) as (table, columns):
                require_comparable(columns, source.name)
                known = Identity(key=tuple(source.key))
                yield table, columns, self._identity(source, table, columns) if checked else known
            return
        if checked and source.key:
            stored = replace(source, view=None, where=None)
            with self._opened(stored) as (table, columns):
                self._identity(stored, table, columns)
        name = _CARRIED if located else ""
        with self._opened(source, carried=name) as (table, all_columns):
            own = tuple(c for c in all_columns if c.name != name)
            require_comparable(own, source.name)
            key = tuple(source.key) if located else ()
            yield table, own, Identity(key=key, carried=name)

    @contextlib.contextmanager
    def _asked(self, source: Source) -> Iterator[str]:
        """Give the rows that a view asks for to the database; their name is empty if there are none."""
        if source.asked is None:
            yield ""
            return
        with self._registered(source.asked) as name:
            yield name

    def _viewed_text(
        self,
        source: Source,
        table: str,
        columns: tuple[Column, ...],
        carried: str,
        asked: str,
    ) -> str:
        """Return the text of the view of an opened table."""
        if source.view is None:
            return table
        # Views of tables with other types of their own leave these out, but any text may be compared.
        require_comparable([c for c in columns if is_unencoded(c.type)], source.name)
        if not carried:
            return sql.over(table, source.view.query(self._dialect(source)), asked)
        require_comparable(columns, source.name)
        table = sql.with_origin(self._dialect(source), table, columns, source.key, carried)
        return sql.over(table, source.view.query(self._dialect(source), (carried,)))

    def _identity(
        self, source: Source, table: str, columns: tuple[Column, ...], rows: int | None = None
    ) -> Identity:
        """Tell what rows of a table are known by; refuse a key that is not one.

        ``rows`` is the number of rows of the table, if that is known.
        """
        if not source.key:
            return Identity()
        require_names([c.name for c in columns], source.key, source.name)
        if not self._guarantees_key(source):
            self._require_key(source, table, rows)
        return Identity(key=tuple(source.key))

    def _refuse_wrong_key(self, source: Source, table: str, columns: tuple[Column, ...]) -> None:
        """Refuse a key that is not one of a whole table, before rows are chosen from it."""
        if source.sql is None and source.view is None and source.where is None:
            self._identity(source, table, columns)

    def _guarantees_key(self, source: Source) -> bool:  # noqa: ARG002
        """Whether the database itself sees to it that the key of a table is one."""
        return False

    @functools.cached_property
    def _checked_keys(self) -> dict[Source, int]:
        """Tables whose keys were checked, and how many rows they had."""
        return {}

    def _require_key(self, source: Source, table: str, there: int | None) -> None:
        """Refuse a key that is not one; a table of as many rows as before is not checked again."""
        title = f"checking the key of {source.name}"
        before = self._checked_keys.get(source) if source.data is None else None
        if before is not None:
            now = self._number_of_rows(source, table) if there is None else there
            if now == before:
                return
        found = self._arrow(source, sql.count_keys(self._dialect(source), table, source.key), title)
        rows, absent, repeated = (int(column[0].as_py()) for column in found.columns)
        if absent or repeated:
            key = ", ".join(source.key)
            raise InputError(
                f"{key} is not a key of {source.name}: {rows_text(absent)} without a value of it, and "
                f"{rows_text(repeated)} with the value of another row; name columns whose values are "
                "all different, or none."
            )
        if source.data is None:
            self._checked_keys[source] = rows


def as_type(rows: pa.Table, place: int, kind: pa.DataType, table: str) -> pa.ChunkedArray:
    """Convert a column of rows to a type of a database; refuse values that it would change."""
    try:
        return rows.column(place).cast(kind)
    except pa.ArrowInvalid as error:
        raise InputError(
            f"column {rows.column_names[place]!r} of {table} has a value that the database cannot hold: "
            f"{str(error).splitlines()[0]}; convert it to text first."
        ) from None


def require_comparable(columns: Sequence[Column], table: str) -> None:
    """Refuse to choose rows of a table with values that engines do not write alike."""
    for column in columns:
        if column.type.startswith("collated"):
            raise InputError(
                f"column {column.name!r} of {table} is {column.type}, which takes different texts for equal; "
                "give it another collation with `sql`."
            )
        if is_unencoded(column.type):
            raise InputError(
                f"column {column.name!r} of {table} is {column.type}: its encoding does not tell which characters "
                "of Unicode its bytes mean, so that its values can be counted, but not be compared with those of "
                "other tables; copy the table to a database with the encoding UTF8."
            )
        if family(column.type) == "other":
            raise InputError(
                f"column {column.name!r} of {table} has the type {column.type}, whose values cannot be "
                "compared with those of other tables; leave it out, or convert it, in a view or with `sql`."
            )


_CARRIED = "equipoise origin"


def _possible(d: Dialect, wanted: pa.Table) -> pa.Table:
    """Leave out cells whose texts the database cannot even be asked for, so that no row is in them."""
    texts = [column.to_pylist() for column in wanted.columns if pa.types.is_string(column.type)]
    kept = [all(t is None or d.can_hold(t) for t in cell) for cell in zip(*texts, strict=True)]
    return wanted if all(kept) else wanted.filter(pa.array(kept))


def _available(take: Counts, there: Counts) -> int:
    """Count the rows of a choice that a table can give."""
    many = there.cells()
    return sum(min(want, many.get(cell, 0)) for cell, want in take.cells().items())


def _refuse_bad_numbers(cells: pa.Table, request: CountRequest) -> None:
    if request.count is None and request.weight is None:
        return  # without loading Arrow's functions, which takes long
    import pyarrow.compute as pc

    if request.count is not None:
        bad = [b for b in values_in(cells["bad"]) if b is not MISSING]
        if bad or pc.sum(cells["unknown"]).as_py():
            raise not_a_count(request.count, bad[0] if bad else MISSING)
    if request.weight is not None and pc.sum(cells["bad_weights"]).as_py():
        raise not_weights(request.weight, pc.sum(cells["bad_weights"]).as_py())
