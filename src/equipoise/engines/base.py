"""The interface of engines: verbs over tables, and checks that all engines share."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol

from equipoise.counts import Counts
from equipoise.counts.columns import nested_values
from equipoise.engines.addresses import is_address, without_password
from equipoise.errors import ColumnNotFound, CountsError, InputError, NoRowsLeft, Unsupported

if TYPE_CHECKING:
    import contextlib
    import os

    import pyarrow as pa

    from equipoise.counts import CountRequest
    from equipoise.engines.profiling import Profile
    from equipoise.engines.sources import Source
    from equipoise.values import Value


@dataclass(frozen=True)
class Column:
    """Name of a column, and the engine's name of its type."""

    name: str
    type: str


class Identity(NamedTuple):
    """What a row of a table is known by: a key, its number, or else its hash and occurrence.

    Equal rows are interchangeable, so that a hash and the number of earlier rows with the same hash
    tell rows apart well enough.
    """

    key: tuple[str, ...] = ()
    numbered: bool = False
    """Whether rows have numbers, as in files, whose order never changes."""
    carried: str = ""
    """The column in which a view carries the key or the hash of the row that each row was made of."""


@dataclass(frozen=True)
class Part:
    """Rows to be written: all rows of a table, but for those at some places."""

    source: Source
    without: Sequence[Any] = ()
    foreign: bool = False
    """Whether rows of other tables are added: a value that a column cannot hold becomes missing, and a
    database that numbers the rows of its table numbers these, too."""

    lacking: Mapping[str, Sequence[range]] | None = None
    """By column, the rows of a frame whose sources do not have it, so that a database may fill it in by its
    default. If it is not known, these are all rows of a column without any value, and no others."""


def has_changed(source: Source, since: str) -> InputError:
    """Return the error that a table has changed while it was worked on."""
    return InputError(f"{source.name} has changed since {since}; nothing was written. Try again.")


MADE = "Made by Equipoise"
"""How the comment on a table begins that was made for a result, which is no source of others."""


@dataclass(frozen=True)
class MadeTable:
    """A table of a database that is being made."""

    source: Source
    """The table, which can be read; it may have a temporary name."""

    last: Callable[[], pa.Table]
    """Returns the rows of the last part, a frame, as they are in the table, in their order, with their
    md5 as the last column."""

    numbered: tuple[str, ...] = ()
    """Columns in which the database numbered the rows of other tables."""

    generated: tuple[str, ...] = ()
    """Columns that the database computes of the others."""


class Middle(NamedTuple):
    """The two numbers in the middle of a column, which are the same if it has an odd number."""

    low: float
    high: float
    numbers: int
    """How many numbers the column has."""

    @property
    def median(self) -> float:
        """The median.

        >>> Middle(1.0, 2.0, 4).median
        1.5
        """
        return self.low if self.low == self.high else self.low / 2 + self.high / 2

    @classmethod
    def places(cls, numbers: int) -> list[int]:
        """The places of the two numbers, counted from 1.

        >>> Middle.places(4), Middle.places(5)
        ([2, 3], [3, 3])
        """
        return [(numbers + 1) // 2, numbers // 2 + 1]


class Engine(Protocol):
    """Counts and fetches rows of tables."""

    name: ClassVar[str]
    reads: ClassVar[Mapping[str, str]]
    """Kinds of data that it opens, and how; the documentation prints its table from this."""

    writes: ClassVar[tuple[str, ...]]
    """File extensions that it writes."""

    ways: ClassVar[Mapping[str, str]]
    """How it does what engines do differently: what rows are known by, how tables are made, and so on."""

    def close(self) -> None:
        """Close connections and remove temporary files."""

    def tables(self, source: Source) -> tuple[str, ...]:
        """Names of the tables at a source."""

    def schema(self, source: Source) -> tuple[Column, ...]:
        """The columns of a table."""

    def settled(self, source: Source) -> Source:
        """Return the source with the types decided that its condition compares columns as.

        Every verb sees only rows that satisfy the condition. Texts are compared as numbers,
        dates, times or booleans if all values that are present can be read as such.
        """

    def profile(self, source: Source) -> Profile:
        """Profile the columns of a table, in one pass."""

    def counts(self, source: Source, request: CountRequest) -> Counts:
        """Count the rows of each cell."""

    def distinct(self, source: Source, column: str, limit: int = 1000) -> dict[Value, int]:
        """Count the rows of each value of a column, most frequent first."""

    def middle(self, source: Source, column: str, na: Sequence[str] = ()) -> Middle:
        """Find the middle of the numbers of a column, whose mean is their median.

        Missing values, and texts in ``na``, do not count. Other texts are refused.
        """

    def read(self, source: Source, columns: Sequence[str] | None = None) -> pa.Table:
        """Read all rows of a table, or of some of its columns, in their order."""

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
        """Choose as many rows of each cell as ``take`` has, or all there are, each at most once.

        Rows are returned cell by cell in the order of ``take``, and within a cell in the order of
        md5(seed, row, occurrence), where ``occurrence`` numbers equal rows. So the choice depends
        neither on the order of the rows nor on the engine.

        With ``rest``, all other rows are returned, including those of no cell, those of files in
        their order. With ``located``, two columns named by :func:`location_names` follow those of the
        table: the place of each row, and the md5 of its canonical text. The place is what
        :class:`Identity` says: a number counted from 0, a key, or a hash with an occurrence.
        """

    def fetch(self, source: Source, places: Sequence[Any]) -> pa.Table:
        """Fetch the rows at some places, located as by :meth:`rows`; files return them in their order.

        Places that the table does not have are ignored.
        """

    def require_key(self, source: Source) -> None:
        """Refuse a table whose rows are known by a key that is none, before anything relies on it."""

    def require_free(self, target: Source, *, only: str = "") -> None:
        """Refuse the name of a table of a database under which none can be made.

        A table of that name, if there is one, must have a comment that begins with ``only``.
        """

    def creating(
        self, target: Source, parts: Sequence[Part], comment: str = ""
    ) -> contextlib.AbstractContextManager[MadeTable]:
        """Make a table of a database of the rows of some parts, with the columns of the first.

        Yields the new table, which can be read, and is in place when the block ends. After an error
        everything is as it was.
        """

    def write(
        self,
        target: str | os.PathLike[str],
        parts: Sequence[Part],
        types: Mapping[str, str] | None = None,
    ) -> None:
        """Write the rows of some parts, one part after the other, atomically.

        All parts have the columns of the first. Columns in ``types`` are converted to these; values that
        cannot be converted become missing.
        """


def require_names(names: Sequence[str], wanted: Sequence[str] | None, table: str) -> list[str]:
    """Return the wanted columns, all by default; refuse one that the table does not have."""
    for name in wanted or ():
        if name not in names:
            raise ColumnNotFound(name, table=table, columns=names)
    return list(names if wanted is None else wanted)


# INTEGER[], STRUCT, MAP and UNION of DuckDB; list<…>, large_list<…>, struct<…> of Arrow.
_NESTED = re.compile(r"\[\d*\]$|^(struct|map|union|(\w+_)?list)", re.IGNORECASE)


def require_columns(columns: tuple[Column, ...], request: CountRequest, table: str) -> None:
    """Refuse columns that the table does not have, or that hold nested values."""
    types = {c.name: c.type for c in columns}
    for name in (*request.columns, *filter(None, (request.count, request.weight))):
        if name not in types:
            raise ColumnNotFound(name, table=table, columns=types)
        if _NESTED.search(types[name]):
            raise nested_values(name, table, types[name])


def require_plain(columns: Sequence[Column], name: str, table: str) -> None:
    """Refuse a column that the table does not have, or that holds nested values."""
    types = {c.name: c.type for c in columns}
    require_names(list(types), [name], table)
    if _NESTED.search(types[name]):
        raise nested_values(name, table, types[name])


def require_choice(
    columns: tuple[Column, ...], request: CountRequest, take: Counts, table: str
) -> CountRequest:
    """Refuse a choice by other cells than were counted; return the request with its bin edges."""
    if request.count is not None:
        raise InputError(
            f"rows cannot be chosen from a table of counts (column {request.count!r}); give the "
            "rows themselves."
        )
    if tuple(a.name for a in take.axes) != request.columns:
        raise CountsError(
            f"rows are chosen by {', '.join(request.columns)}, not by "
            f"{', '.join(a.name for a in take.axes)}; count the same columns."
        )
    require_columns(columns, request, table)
    return request.with_edges(take.bins)


def location_names(columns: Iterable[str]) -> tuple[str, str]:
    """Name the columns of places and md5s so that they differ from those of the table."""
    taken = {name.casefold() for name in columns}
    return unused("place", taken), unused("md5", taken)


def unused(name: str, taken: Collection[str]) -> str:
    """Append underscores to a name until it is not taken."""
    while name in taken:
        name += "_"
    return name


def columns_of(table: pa.Table) -> tuple[Column, ...]:
    """Return the columns of a table in memory."""
    return tuple(Column(field.name, str(field.type)) for field in table.schema)


def count_frame(table: pa.Table, request: CountRequest, name: str) -> Counts:
    """Count a table in memory, without an engine."""
    require_columns(columns_of(table), request, name)
    return require_rows(Counts.from_arrow(table, request), name)


def require_rows(counts: Counts, table: str) -> Counts:
    """Refuse counts without rows, and say whether rows or values were missing."""
    if counts.n:
        return counts
    if not counts.dropped:
        raise InputError(f"{table} has no rows; there is nothing to measure.")
    missing = [f"{name!r} in {n:,}" for name, n in counts.missing_values.items() if n]
    raise NoRowsLeft(
        f"every row of {table} has a missing value ({', '.join(missing)} of {counts.dropped:,} rows) and "
        "was left out; name another column, or keep them with `missing_label='group'`."
    )


def cannot_create(engine: str, target: Source) -> Unsupported:
    """Make the error for a table that an engine cannot make."""
    return Unsupported(f"the {engine} engine cannot make {target.name}; it writes files.")


def require_writable(path: str | os.PathLike[str], writes: tuple[str, ...]) -> str:
    """Return the extension of a file to write; refuse one that cannot be written."""
    if is_address(str(path)):
        raise InputError(
            f"{without_password(str(path))} cannot be written; rows are written to files of this "
            "machine, and addresses are only read."
        )
    # The longest first, in case an extension is the end of another.
    for extension in sorted(writes, key=len, reverse=True):
        if str(path).endswith(extension):
            return extension
    raise InputError(
        f"{path} has an extension that cannot be written; use one of {', '.join(writes)}."
    )
