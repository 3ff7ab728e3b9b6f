"""The two tables of a repair, whose rows stay where they are: counts, hashes and single rows of them."""

from __future__ import annotations

import hmac
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from equipoise.engines.base import Column, Engine, Identity
from equipoise.engines.column_types import family
from equipoise.engines.sources import WORD, Source, View
from equipoise.errors import ColumnNotFound, InputError
from equipoise.lake.verify.files import Cell, LedgerEntry, PlanFile, has_places
from equipoise.lake.verify.views import ComparedRows, ListedRows, RowComparison, SummedRows
from equipoise.rows.former_hashes import former_md5s

if TYPE_CHECKING:
    import pyarrow as pa


class Sum(NamedTuple):
    """A number of rows, and the sum of their salted hashes."""

    n: int = 0
    total: int = 0


class ListedRow(NamedTuple):
    """What a row is known by, its md5, and the hash by which it is compared with the other table."""

    place: Any
    md5: str
    hash: str


@dataclass(frozen=True, eq=False)
class CheckedTable:
    """A table that is verified, and its counts or the reason why there are none."""

    name: str
    source: Source
    engine: Engine
    columns: tuple[Column, ...]
    key: bytes | None
    cells: Mapping[Cell, int] | None
    why_not: str
    comparison: RowComparison

    @property
    def has_types(self) -> bool:
        """Whether files of this kind store column types."""
        return self.source.kind not in ("csv", "json")

    @property
    def numbered(self) -> bool:
        """Whether rows have numbers; those of a database are known by a key or by their hash."""
        return has_places(self.source)

    def read(self, view: View) -> pa.Table:
        """Read a view of the table."""
        return self.engine.read(replace(self.source, view=view))

    def sums(self, salt: str, digits: int = 0) -> dict[str, Sum]:
        """Count the rows and add up their salted hashes, by the digits that these begin with."""
        found = self.read(SummedRows(self.comparison, salt, digits))
        lines = zip(*(found[n].to_pylist() for n in ("part", "n", "total")), strict=True)
        return {part: Sum(int(n), int(total)) for part, n, total in lines}

    def listed(self, parts: Sequence[str]) -> list[ListedRow]:
        """List the rows whose hash begins with some digits, in the order of their places."""
        import pyarrow as pa

        known = Identity(key=tuple(self.source.key), numbered=self.numbered)
        view = ListedRows(self.columns, self.comparison, len(parts[0]), known)
        asked = pa.table({WORD: pa.array(parts, pa.string())})
        found = self.engine.read(replace(self.source, view=view, asked=asked))
        lines = zip(*(found[n].to_pylist() for n in ("place", "md5", "h")), strict=True)
        return sorted(ListedRow(*line) for line in lines)

    def place_of(self, entry: LedgerEntry) -> int | str:
        """Return where an entry says that a row is; a place that is made of an MD5 may be encrypted."""
        told = re.fullmatch(r"keyed:([0-9a-f]{32})(#[0-9]+)", str(entry.at))
        if told is None or self.key is None or self.numbered or self.source.key:
            return entry.at
        pad = hmac.digest(self.key, f"place of {entry.source_hash}".encode(), "sha256")[:16]
        md5 = int(told[1], 16) ^ int.from_bytes(pad, "big")
        return f"{md5:032x}{told[2]}"

    def fetched(self, places: Sequence[Any], *, by_hash: bool = False) -> FetchedRows:
        """Fetch the rows at some places, or with some hashes and occurrences."""
        source = replace(self.source, key=()) if by_hash else self.source
        rows = self.engine.fetch(source, places)
        *own, place, md5 = rows.column_names
        found, md5s = (rows[name].to_pylist() for name in (place, md5))
        hashes = md5s
        if self.comparison != RowComparison(self.columns):
            view = replace(source, view=ComparedRows(self.comparison))
            compared = self.engine.fetch(view, places)
            by_place = dict(zip(*(compared.column(i).to_pylist() for i in (1, 0)), strict=True))
            hashes = [by_place[place] for place in found]
        return FetchedRows(rows.select(own), found, md5s, hashes, self.key)


@dataclass(frozen=True, eq=False)
class FetchedRows:
    """Some rows of a table, with their places, their md5s, and hashes to compare them by."""

    rows: pa.Table
    places: Sequence[Any]
    md5s: Sequence[str]
    hashes: Sequence[str]
    key: bytes | None

    def has_hash(self, i: int, stated: str | None) -> bool:
        """Whether a row has the hash that a ledger states: its MD5 or, with a key, an HMAC of that."""
        if keyed(self.md5s[i], self.key) == stated:
            return True
        (former,) = former_md5s(self.rows.slice(i, 1))
        return bool(former) and keyed(former, self.key) == stated


def keyed(md5: str, key: bytes | None) -> str:
    """Return an MD5, or with a key an HMAC of it."""
    return md5 if key is None else hmac.digest(key, md5.encode(), "sha256").hex()


def open_tables(
    old: Source, new: Source, plan: PlanFile, engine: Engine, key: bytes | None
) -> tuple[CheckedTable, CheckedTable]:
    """Count both tables as the plan does, and decide how their rows are compared."""
    columns = engine.schema(old), engine.schema(new)
    comparisons = _comparisons(old, new, *columns)
    base, repaired = (
        _open(source, own, comparison, plan, engine, key)
        for source, own, comparison in zip((old, new), columns, comparisons, strict=True)
    )
    return base, repaired


def _open(
    source: Source,
    columns: tuple[Column, ...],
    comparison: RowComparison,
    plan: PlanFile,
    engine: Engine,
    key: bytes | None,
) -> CheckedTable:
    where = "" if source.where is None else f" (where {source.where.one_line})"
    name, cells, why_not = f"{source.public_name}{where}", None, ""
    try:
        cells = engine.counts(source, plan.request).cells()
    except ColumnNotFound:
        raise
    except InputError as error:
        why_not = f"{name} cannot be counted as the plan counts: {error}".rstrip(".")
    return CheckedTable(name, source, engine, columns, key, cells, why_not, comparison)


def _comparisons(
    old: Source, new: Source, ours: tuple[Column, ...], theirs: tuple[Column, ...]
) -> tuple[RowComparison, RowComparison]:
    """Decide how rows are compared: by their values as they are stored, or by what these mean.

    Equal values of different types, or of a file that has neither types nor nulls, can be stored
    differently.
    """
    mine, yours = ({c.name: c.type for c in columns} for columns in (ours, theirs))
    if mine.keys() != yours.keys():
        return RowComparison(ours), RowComparison(theirs)
    is_loose = (old.kind == "csv") != (new.kind == "csv")
    meant = [n for n, kind in mine.items() if is_loose or _stored(kind) != _stored(yours[n])]
    ordered = tuple(Column(c.name, yours[c.name]) for c in ours)
    return (
        RowComparison(ours, {n: yours[n] for n in meant}),
        RowComparison(ordered, {n: mine[n] for n in meant}),
    )


def _stored(column_type: str) -> str:
    """Return what two types have in common if all their values are hashed alike."""
    kind = family(column_type)
    return kind if kind not in ("float", "decimal", "other") else column_type.upper()


def rows_outside(table: CheckedTable, rows: int, plan: PlanFile) -> int:
    """Count the rows of a table that do not satisfy the condition of the plan."""
    where = plan.counts.reading.where
    if where is None:
        return 0
    try:
        counts = table.engine.counts(replace(table.source, where=where), plan.request)
    except ColumnNotFound:
        raise
    except InputError:  # no row does, or the condition cannot be evaluated
        return rows
    return rows - counts.n - counts.dropped
