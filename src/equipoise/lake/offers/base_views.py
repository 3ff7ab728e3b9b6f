"""Queries over the rows of a base that stay where they are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from equipoise.counts import CountRequest
from equipoise.engines import sql
from equipoise.engines.base import Column
from equipoise.engines.dialect import Dialect
from equipoise.engines.sources import WORD
from equipoise.lake.offers.fingerprints import DIGITS
from equipoise.lake.offers.meanings import HashedColumn, digested


@dataclass(frozen=True)
class NoRows:
    """A view of the columns of a table, without its rows."""

    def query(self, d: Dialect, carried: Sequence[str] = ()) -> str:  # noqa: ARG002
        """Write the query; see :class:`~equipoise.engines.sources.View`."""
        return "SELECT * FROM input WHERE 1 = 0"


@dataclass(frozen=True)
class RowCount:
    """A view of one row: the number of rows."""

    def query(self, d: Dialect, carried: Sequence[str] = ()) -> str:  # noqa: ARG002
        """Write the query; see :class:`~equipoise.engines.sources.View`."""
        return "SELECT count(*) AS n FROM input"


@dataclass(frozen=True)
class EqualRows:
    """A view of how many rows of a table have each of the digests that are asked for."""

    table: Sequence[Column]
    compared: Sequence[HashedColumn]

    def query(self, d: Dialect, carried: Sequence[str] = ()) -> str:  # noqa: ARG002
        """Write the query; see :class:`~equipoise.engines.sources.View`."""
        rows = digested(d, self.compared, {}, sql.mark_of(self.table))
        return (
            f"SELECT digest, count(*) AS n FROM ({rows}) AS rows_of_base "
            f"JOIN asked ON asked.{WORD} = digest GROUP BY digest"
        )


@dataclass(frozen=True)
class RepeatedRows:
    """A view of one row: how many rows equal another in some columns, or at least one of them."""

    table: Sequence[Column]
    compared: Sequence[HashedColumn]

    def query(self, d: Dialect, carried: Sequence[str] = ()) -> str:  # noqa: ARG002
        """Write the query; see :class:`~equipoise.engines.sources.View`."""
        rows = digested(d, self.compared, {}, sql.mark_of(self.table))
        some = f"SELECT digest FROM ({rows}) AS rows_of_base GROUP BY digest HAVING count(*) > 1"
        return f"SELECT count(*) AS n FROM ({some} LIMIT 1) AS repeated"


@dataclass(frozen=True)
class AlikeRows:
    """A view of the number of rows of each cell, and of those that equal another in some columns.

    Only rows with a digest below a limit are counted. Equal rows have one digest, so the share of
    them is about that of all rows.
    """

    table: Sequence[Column]
    compared: Sequence[HashedColumn]
    request: CountRequest
    below: str

    def query(self, d: Dialect, carried: Sequence[str] = ()) -> str:  # noqa: ARG002
        """Write the query; see :class:`~equipoise.engines.sources.View`."""
        cells = _cells(d, self.table, self.request)
        rows = digested(d, self.compared, cells, sql.mark_of(self.table))
        names = ", ".join(cells)
        some = f"{d.by_bytes('digest')} < {d.by_bytes(d.literal(self.below))}"
        equal = (
            f"SELECT {names}, digest, count(*) AS n FROM ({rows}) AS rows_of_base "
            f"WHERE {some} GROUP BY {names}, digest"
        )
        return (
            f"SELECT {names}, CAST(sum(n) AS {d.whole_type}) AS there, "
            f"CAST(sum(CASE WHEN n > 1 THEN n ELSE 0 END) AS {d.whole_type}) AS alike "
            f"FROM ({equal}) AS equal_rows GROUP BY {names}"
        )


@dataclass(frozen=True)
class SampledRows:
    """A view of the different rows of some cells whose md5 is below a limit, without sorting.

    The last two columns hold the first digits of the md5, and the number of equal rows.
    """

    table: Sequence[Column]
    request: CountRequest
    limits: Mapping[tuple[str, ...], str]
    """For each cell, by the exact texts of its values, the limit."""

    def query(self, d: Dialect, carried: Sequence[str] = ()) -> str:  # noqa: ARG002
        """Write the query; see :class:`~equipoise.engines.sources.View`."""
        mark = sql.mark_of(self.table)
        names = ", ".join(d.identifier(c.name) for c in self.table)
        cells = {f"{n}{mark}": text for n, text in _cells(d, self.table, self.request).items()}
        found = ", ".join(f"{text} AS {name}" for name, text in cells.items())
        lines = ", ".join(
            f"({', '.join(map(d.literal, (*cell, below)))})" for cell, below in self.limits.items()
        )
        keys = [f"k{i}{mark}" for i in range(len(cells))]
        asked = f"(SELECT * FROM (VALUES {lines}) AS listed({', '.join(keys)}, below{mark}))"
        same = " AND ".join(f"{a} = {b}" for a, b in zip(cells, keys, strict=True))
        text = f"substr({d.md5(sql.canonical_row(d, self.table))}, 1, {DIGITS})"
        hashed = (
            f"SELECT {names}, below{mark}, {text} AS md5{mark} "
            f"FROM (SELECT *, {found} FROM input) AS told JOIN {asked} AS asked ON {same}{d.fence}"
        )
        return (
            f"SELECT {names}, md5{mark}, count(*) AS n{mark} FROM ({hashed}) AS hashed "
            f"WHERE {d.by_bytes(f'md5{mark}')} < {d.by_bytes(f'below{mark}')} "
            f"GROUP BY {names}, md5{mark}"
        )


def _cells(d: Dialect, table: Sequence[Column], request: CountRequest) -> dict[str, str]:
    """Name the texts of the values that make up the cell of a row."""
    types = {c.name: c.type for c in table}
    return {
        f"c{i}": sql.cell_text(d, name, types[name], request)
        for i, name in enumerate(request.columns)
    }
