"""What an engine is: ten verbs over tables, and what it declares it cannot do."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Protocol

from equipoise.counts import Counts
from equipoise.counts.columns import nested_values
from equipoise.errors import ColumnNotFound, CountsError, InputError

if TYPE_CHECKING:
    import os

    import pyarrow as pa

    from equipoise.counts import CountRequest
    from equipoise.engines.profiling import Profile
    from equipoise.engines.sources import Source
    from equipoise.values import Value


@dataclass(frozen=True)
class Column:
    """A column's name and the engine's name for its type."""

    name: str
    type: str


class Engine(Protocol):
    """Counts rows and fetches them; nothing else in the library touches rows."""

    name: ClassVar[str]
    reads: ClassVar[Mapping[str, str]]
    """The kinds of data it can open, and how; the table of support is printed from this."""

    writes: ClassVar[tuple[str, ...]]
    """The file extensions it can write."""

    def tables(self, source: Source) -> tuple[str, ...]:
        """Names of the tables at a source."""

    def schema(self, source: Source) -> tuple[Column, ...]:
        """The columns of a table."""

    def settled(self, source: Source) -> Source:
        """The same source, with it decided as what its condition compares columns.

        Every verb sees only rows that satisfy the condition of a source. Texts are compared as
        numbers, dates, times or truth values where every value that is present reads so. A
        source without a condition is given back.
        """

    def profile(self, source: Source) -> Profile:
        """Profile the columns of a table, in one pass."""

    def counts(self, source: Source, request: CountRequest) -> Counts:
        """How many rows each cell has."""

    def distinct(self, source: Source, column: str, limit: int = 1000) -> dict[Value, int]:
        """The values of a column with their rows, most frequent first."""

    def read(self, source: Source, columns: Sequence[str] | None = None) -> pa.Table:
        """Read a whole table, or some of its columns, in the table's own order."""

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
        """Choose real rows by cell, each at most once.

        From every cell as many rows as ``take`` says, or all there are. Rows come cell by
        cell as ``take`` has them, and in the order of md5(seed, row, occurrence), where
        ``occurrence`` numbers equal rows: the choice depends on the rows alone, not on
        their order or on the engine.

        With ``rest`` all rows come that this choice leaves, those among them that were not
        counted, in the table's own order. With ``located`` two columns stand behind the
        table's own, named by :func:`location_names`: the place of each row in the table,
        the first being 0, and the md5 of the row as one text.
        """

    def fetch(self, source: Source, places: Sequence[int]) -> pa.Table:
        """Fetch the rows at some places of a table again, in the table's own order.

        They come as :meth:`rows` gives them with ``located``: the place of each, and its md5,
        stand behind the table's own columns. A place the table does not have gives no row.
        """

    def write(self, rows: pa.Table, path: str | os.PathLike[str]) -> None:
        """Write rows to a file, atomically."""


def require_names(
    columns: tuple[Column, ...], wanted: Sequence[str] | None, table: str
) -> list[str]:
    """The names of the wanted columns, all by default; refuse one the table does not have."""
    names = [c.name for c in columns]
    for name in wanted or ():
        if name not in names:
            raise ColumnNotFound(name, table=table, columns=names)
    return names if wanted is None else list(wanted)


_NESTED = re.compile(r"\[\d*\]$|^(struct|map|union|(\w+_)?list)", re.IGNORECASE)


def require_columns(columns: tuple[Column, ...], request: CountRequest, table: str) -> None:
    """Refuse a request for columns that the table does not have, or that hold nested values."""
    types = {c.name: c.type for c in columns}
    for name in (*request.columns, *filter(None, (request.count, request.weight))):
        if name not in types:
            raise ColumnNotFound(name, table=table, columns=types)
        if _NESTED.search(types[name]):
            raise nested_values(name, table, types[name])


def require_choice(request: CountRequest, take: Counts) -> CountRequest:
    """Refuse to choose by other cells than were counted; give the request with its bin edges."""
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
    return request.with_edges(take.bins)


def location_names(columns: Iterable[str]) -> tuple[str, str]:
    """Name the columns of a row's place and md5 as no column of its table is named.

    >>> location_names(["sex", "MD5"])
    ('place', 'md5_')
    """
    taken = {name.casefold() for name in columns}
    place, md5 = "place", "md5"
    while place in taken:
        place += "_"
    while md5 in taken:
        md5 += "_"
    return place, md5


def count_frame(table: pa.Table, request: CountRequest, name: str) -> Counts:
    """Count a table that is in memory where it is, by the numbers of its values."""
    columns = tuple(Column(field.name, str(field.type)) for field in table.schema)
    require_columns(columns, request, name)
    return require_rows(Counts.from_arrow(table, request), name)


def require_rows(counts: Counts, table: str) -> Counts:
    """Refuse counts of nothing, and say whether rows or values were missing."""
    if counts.n:
        return counts
    if not counts.dropped:
        raise InputError(f"{table} has no rows; there is nothing to measure.")
    lacking = [f"{name!r} in {n:,}" for name, n in counts.missing_values.items() if n]
    raise InputError(
        f"every row of {table} has a missing value ({', '.join(lacking)} of {counts.dropped:,} rows) and "
        "was left out; name another column, or keep them with `missing_label='group'`."
    )


def require_writable(path: str | os.PathLike[str], writes: tuple[str, ...]) -> str:
    """Return the extension of a file to write, or say which extensions can be written."""
    name = str(path)
    for extension in sorted(writes, key=len, reverse=True):
        if name.endswith(extension):
            return extension
    raise InputError(
        f"{name} has an extension that cannot be written; use one of {', '.join(writes)}."
    )
