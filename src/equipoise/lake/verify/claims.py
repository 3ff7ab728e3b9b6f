"""What a ledger says of rows of the two tables, and whether it is true."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from equipoise.counts.columns import bin_codes, encode_arrow, numbers_in
from equipoise.lake.verify.files import Cell, LedgerEntry, PlanFile
from equipoise.lake.verify.rows import Explained
from equipoise.lake.verify.tables import CheckedTable, FetchedRows, keyed
from equipoise.values import MISSING

if TYPE_CHECKING:
    import pyarrow as pa

_AT_ONCE = 100_000
"""Maximum number of rows that are fetched at once."""

_MOST = 2**63 - 1


class TrueEntry(NamedTuple):
    """A true entry: the row that it is of, and its cell if the table can be counted."""

    entry: LedgerEntry
    at: int | str
    cell: Cell | None


@dataclass
class Claims:
    """Entries of a ledger that are true, and the others with their rows and the reasons."""

    true: list[TrueEntry] = field(default_factory=list)
    untrue: list[tuple[LedgerEntry, int | str, str]] = field(default_factory=list)
    explained: Explained = field(default_factory=Explained)
    md5s: list[str] = field(default_factory=list)
    """MD5s of the rows of true entries."""

    values: dict[bool, dict[str, Counter[str]]] = field(default_factory=dict)
    """How many rows have each value of each column, by whether values were kept as they were."""


def claims_of(
    table: CheckedTable,
    rows: int,
    entries: Sequence[LedgerEntry],
    plan: PlanFile,
    md5s: Iterable[str] | None = None,
) -> Claims:
    """Compare what entries say with the rows of a table, which has so many.

    Rows that are known by their hash alone are found by the ``md5s`` that they may have, if hashes
    were made with a key.
    """
    claims = Claims()
    by_hash = bool(entries) and not table.numbered and entries[0].action == "add"
    if by_hash:
        places: list[int | str] = list(_hash_places(entries, table.key, md5s))
    else:
        places = [table.place_of(entry) for entry in entries]
    taken: dict[int | str, LedgerEntry] = {}
    for start in range(0, len(entries), _AT_ONCE):
        some = range(start, min(start + _AT_ONCE, len(entries)))
        there = list(dict.fromkeys(p for i in some if _is_possible(p := places[i], table, rows)))
        found = table.fetched(there, by_hash=by_hash)
        true = _compare(claims, [(entries[i], places[i]) for i in some], found, taken)
        cells = [] if table.cells is None else cells_of(found.rows, plan)
        for entry, i in true:
            place = found.places[i]
            claims.true.append(TrueEntry(entry, place, cells[i] if cells else None))
            claims.md5s.append(found.md5s[i])
            claims.explained.places.add(place)
            claims.explained.hashes.append(found.hashes[i])
        _count_values(claims.values, true, found.rows)
    return claims


def _is_possible(place: int | str, table: CheckedTable, rows: int) -> bool:
    if table.numbered:
        return isinstance(place, int) and 0 <= place < min(rows, _MOST)
    return bool(place)


def _hash_places(
    entries: Sequence[LedgerEntry], key: bytes | None, md5s: Iterable[str] | None
) -> Iterator[str]:
    """Number entries of the same hash, as equal rows of a database are."""
    meant = {keyed(md5, key): md5 for md5 in md5s or ()}
    seen: Counter[str] = Counter()
    for entry in entries:
        text = str(entry.hash)
        md5 = text if key is None else meant.get(text, text)
        seen[md5] += 1
        yield f"{md5}#{seen[md5]}"


def _compare(
    claims: Claims,
    said: Sequence[tuple[LedgerEntry, int | str]],
    found: FetchedRows,
    taken: dict[int | str, LedgerEntry],
) -> list[tuple[LedgerEntry, int]]:
    """Return the entries that are true, each with the number of its row among those that were fetched."""
    at, true = {place: i for i, place in enumerate(found.places)}, []
    for entry, place in said:
        i = at.get(place)
        if i is None:
            claims.untrue.append((entry, place, "which is not there"))
        elif place in taken:
            claims.untrue.append((entry, place, f"as does entry {taken[place].number:,}"))
        elif not found.has_hash(i, entry.hash):
            claims.untrue.append((entry, place, "which has another hash"))
        else:
            taken[place] = entry
            true.append((entry, i))
    return true


def _count_values(
    counted: dict[bool, dict[str, Counter[str]]],
    true: Sequence[tuple[LedgerEntry, int]],
    rows: pa.Table,
) -> None:
    """Count the values of added rows, column by column."""
    import pyarrow as pa

    for is_kept in (True, False):
        added = [i for e, i in true if e.action == "add" and e.keeps_values is is_kept]
        chosen = rows.take(pa.array(added, pa.int64()))
        of_column = counted.setdefault(is_kept, {})
        for name in chosen.column_names if added else ():
            of_column.setdefault(name, Counter()).update(values_by_rows(chosen[name]))


def values_by_rows(column: pa.ChunkedArray) -> Counter[str]:
    """Count the rows of each value as text, without missing values, lists and structures."""
    import numpy as np
    from pyarrow import types

    if types.is_nested(column.type) or types.is_null(column.type):
        return Counter()
    values, codes = encode_arrow(column, None)
    rows = np.bincount(codes, minlength=len(values)).tolist()
    return present(dict(zip(values, rows, strict=True)))


def present(values: Mapping[Any, int]) -> Counter[str]:
    """Leave out values that are missing.

    >>> present({"a": 2, " ": 1, "nan": 3, MISSING: 1})
    Counter({'a': 2})
    """
    return Counter(
        {
            value: n
            for value, n in values.items()
            if value is not MISSING and n and str(value).strip() not in ("", "nan")
        }
    )


def cells_of(rows: pa.Table, plan: PlanFile) -> list[Cell]:
    """Return the cells of some rows."""
    columns = []
    for name in plan.request.columns:
        edges, na = plan.request.bins.get(name), plan.request.na
        if isinstance(edges, tuple):
            values, codes = bin_codes(numbers_in(name, rows[name], na), edges)
        else:
            values, codes = encode_arrow(rows[name], None)
            values = tuple(MISSING if value in na else value for value in values)
        columns.append([values[code] for code in codes.tolist()])
    return list(zip(*columns, strict=True))
