"""Queries, written once for all databases; a dialect writes what they say differently."""

from __future__ import annotations

import itertools
import math
import struct
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from equipoise.counts.columns import as_number
from equipoise.engines.base import Column, Identity, location_names
from equipoise.engines.column_types import is_float, is_text, is_whole
from equipoise.values import as_value

if TYPE_CHECKING:
    from equipoise.counts import CountRequest
    from equipoise.engines.dialect import Dialect


def without_na(d: Dialect, name: str, column_type: str, na: Iterable[str]) -> str:
    """Read a column with null for the texts that mean a missing value."""
    column = d.identifier(name)
    texts = d.texts(exact_texts(na, column_type))
    if not texts:
        return column
    return f"CASE WHEN {d.exact(column, column_type)} NOT IN ({texts}) THEN {column} END"


def exact_texts(texts: Iterable[str], column_type: str) -> list[str]:
    """Write texts of values as :meth:`Dialect.exact` does; a text of no value is left out.

    >>> exact_texts(["a", "0.5", "1"], "VARCHAR"), exact_texts(["a", "0.5", "1"], "DOUBLE")
    (['a', '0.5', '1'], ['3fe0000000000000'])
    """
    if not is_float(column_type):
        return list(texts)
    return [bits for text in texts if (bits := float_bits(text)) is not None]


def float_bits(text: str) -> str | None:
    """Write the bits of the number that a text is the shortest text of; None if there is none."""
    number = as_number(text)
    if number is None or math.isnan(number) or as_value(number) != text:
        return None
    return struct.pack(">d", number).hex()


def bin_number(
    d: Dialect, name: str, column_type: str, edges: Sequence[float], na: Sequence[str]
) -> str:
    """Number the bin of a value; −1 for a value that is not a number."""
    column = d.identifier(name)
    value = d.number(column, column_type)
    if is_whole(column_type) and not na and _evenly_whole(edges):
        first, step, last = int(edges[0]), int(edges[1] - edges[0]), int(edges[-1])
        # Three times faster than a CASE over the edges, which the general form needs. The
        # cast comes last, when the value is known to fit.
        above = f"(CAST({value} AS {d.whole_type}) - {first})"
        return (
            f"CASE WHEN {value} < {first} THEN 0 WHEN {value} >= {last} THEN {len(edges)} "
            f"ELSE {d.quotient(above, str(step))} + 1 END"
        )
    whens = " ".join(f"WHEN {value} < {d.double(edge)} THEN {i}" for i, edge in enumerate(edges))
    absent = f"WHEN {without_na(d, name, column_type, na)} IS NULL THEN NULL"
    is_nan = d.is_unknown_number(column, column_type)
    not_a_number = f"WHEN {value} IS NULL THEN CASE WHEN NOT {is_nan} THEN -1 END"
    return f"CASE {absent} {not_a_number} {whens} ELSE {len(edges)} END"


def _evenly_whole(edges: Sequence[float]) -> bool:
    steps = {b - a for a, b in itertools.pairwise(edges)}
    return len(steps) == 1 and all(float(e).is_integer() and abs(e) < 2**53 for e in edges)


# ---------------------------------------------------------------------------- counting


def count_cells(d: Dialect, table: str, columns: Sequence[Column], request: CountRequest) -> str:
    """Count the rows of every cell: the one scan of a measurement.

    The keys are ``c0``, ``c1``, …: text, numbers and booleans as they are stored, so that the
    database hashes plain columns, and all others as text. Texts that mean a missing value are
    replaced afterwards, in the few cells.
    """
    types = {c.name: c.type for c in columns}
    selected = [
        f"{_key(d, name, types[name], request)} AS c{i}" for i, name in enumerate(request.columns)
    ]
    if request.count is None:
        selected.append("count(*) AS n")
    else:
        column = d.identifier(request.count)
        value = d.number(column, types[request.count])
        # The bounds come first, since some databases refuse to round what no integer can hold.
        fits = f"{value} >= 0 AND {value} < 9.2e18"
        good = f"CASE WHEN {fits} THEN {value} = floor({value}) ELSE false END"
        shown = column if is_float(types[request.count]) else d.text(column, types[request.count])
        total = f"sum(CASE WHEN {good} THEN {value} ELSE 0 END)"
        selected += [
            f"CAST({total} AS {d.whole_type}) AS n",
            f"min({shown}) FILTER (WHERE NOT {good}) AS bad",
            f"count(*) FILTER (WHERE {value} IS NULL) AS unknown",
        ]
    if request.weight is not None:
        number = d.number(d.identifier(request.weight), types[request.weight])
        value = f"CAST({number} AS {d.double_type})"
        bad = f"coalesce({value} < 0 OR {d.is_infinite(value)}, true)"
        selected += [
            f"sum({value}) AS w",
            f"sum({value} * {value}) AS w2",
            f"count(*) FILTER (WHERE {bad}) AS bad_weights",
        ]
    keys = ", ".join(str(i + 1) for i in range(len(request.columns)))
    return f"SELECT {', '.join(selected)} FROM {table} AS input GROUP BY {keys}"


def _key(d: Dialect, name: str, column_type: str, request: CountRequest) -> str:
    edges = request.bins.get(name)
    if isinstance(edges, tuple):
        return bin_number(d, name, column_type, edges, request.na)
    return d.key(d.identifier(name), column_type)


def values_by_frequency(d: Dialect, table: str, column: Column, limit: int) -> str:
    """Count the rows of each value of a column as ``v`` and ``n``, most frequent first.

    Values of the same frequency come in ascending order, and missing values after them.
    """
    name = d.identifier(column.name)
    value = d.float(name) if is_float(column.type) else d.key(name, column.type)
    grouped = f"SELECT {value} AS v, count(*) AS n FROM {table} AS input GROUP BY 1"
    order = (
        "v" if d.key(name, column.type) == name and not is_text(column.type) else d.by_bytes("v")
    )
    return (
        f"SELECT v, n FROM ({grouped}) AS grouped "
        f"ORDER BY n DESC, {order} ASC NULLS LAST LIMIT {int(limit)}"
    )


def numbers_by_size(d: Dialect, table: str, column: Column, na: Sequence[str]) -> str:
    """Select the distinct numbers of a column as ``x``, with their frequencies ``n``."""
    present = f"{without_na(d, column.name, column.type, na)} IS NOT NULL"
    number = d.number(d.identifier(column.name), column.type)
    numbers = f"SELECT {number} AS x FROM {table} AS input WHERE {present}"
    return f"SELECT x, count(*) AS n FROM ({numbers}) AS numbers WHERE x IS NOT NULL GROUP BY x"


def numbers_in_order(d: Dialect, table: str, column: Column, na: Sequence[str]) -> str:
    """Select the distinct numbers of a column in ascending order, with their frequencies.

    Read as a stream this takes little memory: grouping and sorting can spill to disk, but a
    running sum over all numbers cannot.
    """
    return f"{numbers_by_size(d, table, column, na)} ORDER BY x"


def numbers_at(
    d: Dialect, table: str, column: Column, na: Sequence[str], places: Sequence[int]
) -> str:
    """Select the numbers at some places, counted from 1, of the numbers of a column in order."""
    grouped = numbers_by_size(d, table, column, na)
    running = f"SELECT x, sum(n) OVER (ORDER BY x) AS up_to FROM ({grouped}) AS grouped"
    found = ", ".join(
        f"min(x) FILTER (WHERE up_to >= {place}) AS x{i}" for i, place in enumerate(places)
    )
    return f"SELECT {found} FROM ({running}) AS running"


def strange_text(d: Dialect, table: str, column: Column, na: Sequence[str]) -> str:
    """Select a text of a column that is no number, if there is one, and how many numbers it has."""
    number = bin_number(d, column.name, column.type, (0,), na)
    text = d.text(d.identifier(column.name), column.type)
    return (
        f"SELECT min({text}) FILTER (WHERE {number} = -1) AS strange, "
        f"count(*) FILTER (WHERE {number} >= 0) AS numbers FROM {table} AS input"
    )


# ---------------------------------------------------------------------------- choosing


def cell_text(d: Dialect, name: str, column_type: str, request: CountRequest) -> str:
    """Write a value as the text that counts use for it, or null if it is missing.

    Floating-point numbers are written by their bits, as by :func:`exact_texts`.
    """
    edges = request.bins.get(name)
    if isinstance(edges, tuple):
        from equipoise.counts import bin_names

        whens = " ".join(f"WHEN {i} THEN {d.literal(t)}" for i, t in enumerate(bin_names(edges)))
        return f"CASE {bin_number(d, name, column_type, edges, request.na)} {whens} END"
    text = d.exact(d.identifier(name), column_type)
    texts = d.texts(exact_texts(request.na, column_type))
    return f"CASE WHEN {text} NOT IN ({texts}) THEN {text} END" if texts else text


def canonical_row(d: Dialect, columns: Sequence[Column]) -> str:
    """Write a row as one text; the length before each value makes it unambiguous."""
    return d.joined([d.exact(d.identifier(c.name), c.type) for c in columns])


class WantedCells(NamedTuple):
    """A table of cells that rows are chosen by, and what is known of it before the query runs.

    It has the exact texts of each cell as ``k0``, ``k1``, …, its number as ``cell``, its rows as ``want``,
    and as ``below`` the md5 from which on rows with a key need not be looked at: the database then
    sorts only a few more rows than are wanted.
    """

    name: str
    absent: Collection[int] = ()
    """Numbers of the texts that are null in some cell."""
    below: str = ""
    """The largest ``below`` of most cells; a row of them with a larger md5 is in no case wanted.
    Without it, only the cells that are spared are."""
    spared: Sequence[Sequence[str | None]] = ()
    """The texts of the other cells, which have so few rows that all of them are looked at."""


def choose_rows(
    d: Dialect,
    table: str,
    columns: Sequence[Column],
    request: CountRequest,
    wanted: WantedCells,
    seed: int,
    *,
    known: Identity,
    located: bool = False,
) -> str:
    """Choose rows by cell in the order of the md5 of a seed and what a row is known by.

    Rows of a view are known by the rows that they are made of, but chosen by what they say.
    """
    types = {c.name: c.type for c in columns}
    names = ", ".join(d.identifier(c.name) for c in columns)
    mark = mark_of(columns)
    if located:
        names += f", {_location(d, columns, known)}"
        table = numbered(table, columns) if known.numbered else table
    cells = [f"cell{i}{mark}" for i in range(len(request.columns))]
    texts = ", ".join(
        f"{cell_text(d, name, types[name], request)} AS {cell}"
        for name, cell in zip(request.columns, cells, strict=True)
    )
    matches = " AND ".join(
        d.same(f"w.k{i}", f"t.{cell}") if i in wanted.absent else f"w.k{i} = t.{cell}"
        for i, cell in enumerate(cells)
    )
    hashed, few, early = f"text{mark}", "", ""
    if known.key and not known.carried:
        few = f" WHERE {d.by_bytes(f'hash{mark}')} < {d.by_bytes(f'below{mark}')}"
    else:  # equal rows are numbered, so that their hashes differ
        hashed = f"{d.as_text(f'nth{mark}')} || '/' || {hashed}"
    in_order = f"line{mark}" if located and known.numbered else f"text{mark}"
    own = ""
    if known.carried:  # equal rows of a view may be made of different ones
        carried = d.identifier(known.carried)
        in_order = d.by_bytes(carried)
        own = f", row_number() OVER (PARTITION BY {carried} ORDER BY nth{mark}) AS occurrence{mark}"
    nth = f", row_number() OVER (PARTITION BY text{mark} ORDER BY {in_order}) AS nth{mark}"
    by = () if known.carried else known.key
    text = canonical_row(d, [c for c in columns if c.name in by] or columns)
    order = d.by_bytes(f"hash{mark}")
    digest = d.md5(f"{d.literal(f'{seed}/')} || {hashed}")
    if few and (wanted.below or wanted.spared):  # most rows are passed over before they are joined
        looked_at = [_is_cell(d, cells, texts) for texts in wanted.spared]
        if wanted.below:
            looked_at.append(f"{d.by_bytes(digest)} < {d.by_bytes(d.literal(wanted.below))}")
        early = f" WHERE {' OR '.join(looked_at)}"
    return (
        f"WITH texts AS (SELECT *, {text} AS text{mark}, {texts} FROM {table} AS input), "
        f"picked AS (SELECT t.*, w.cell AS cell{mark}, w.want AS want{mark}, w.below AS below{mark} "
        f"FROM (SELECT * FROM texts{early}) AS t JOIN {wanted.name} AS w ON {matches}), "
        f"counted AS (SELECT *{'' if known.key and not known.carried else nth} FROM picked), "
        f"hashed AS (SELECT *, {digest} AS hash{mark}{own} "
        f"FROM counted), placed AS (SELECT *, row_number() OVER "
        f"(PARTITION BY cell{mark} ORDER BY {order}) AS place{mark} FROM hashed{few}) "
        f"SELECT {names} FROM placed WHERE place{mark} <= want{mark} ORDER BY cell{mark}, {order}"
    )


def _is_cell(d: Dialect, names: Sequence[str], texts: Sequence[str | None]) -> str:
    """Whether the texts of a row are those of a cell."""
    same = (
        f"{name} IS NULL" if text is None else f"{name} = {d.literal(text)}"
        for name, text in zip(names, texts, strict=True)
    )
    return f"({' AND '.join(same)})"


def count_keys(d: Dialect, table: str, key: Sequence[str]) -> str:
    """Count the rows, those without a key, and those whose key an earlier row has."""
    names = [d.identifier(name) for name in key]
    absent = " OR ".join(f"{name} IS NULL" for name in names)
    return (
        f"SELECT coalesce(sum(n), 0) AS n, coalesce(sum(CASE WHEN {absent} THEN n END), 0) AS absent, "
        f"coalesce(sum(CASE WHEN NOT ({absent}) THEN n - 1 END), 0) AS repeated "
        f"FROM (SELECT {', '.join(names)}, count(*) AS n FROM {table} AS input "
        f"GROUP BY {', '.join(names)}) AS grouped"
    )


def rows_at(
    d: Dialect, table: str, columns: Sequence[Column], chosen: str, *, others: bool, located: bool
) -> str:
    """Select the rows at the places of the table ``chosen``, or all others, in their order."""
    exists = "NOT EXISTS" if others else "EXISTS"
    line = f"line{mark_of(columns)}"
    names = ", ".join(d.identifier(c.name) for c in columns)
    if located:
        names += (
            f", {_location(d, columns, Identity(numbered=True), text=canonical_row(d, columns))}"
        )
    return (
        f"SELECT {names} FROM {numbered(table, columns)} AS t WHERE {exists} "
        f"(SELECT 1 FROM {chosen} AS c WHERE c.place = t.{line}) ORDER BY t.{line}"
    )


def rows_to_write(
    d: Dialect,
    table: str,
    columns: Sequence[Column],
    without: str | None,
    types: Mapping[str, str],
) -> str:
    """Select the rows of a table but for those at the places of ``without``, with other types."""
    line = f"line{mark_of(columns)}"
    names = [d.identifier(c.name) for c in columns]
    shown = [
        f"{d.tried(name, types[c.name])} AS {name}" if c.name in types else name
        for c, name in zip(columns, names, strict=True)
    ]
    if without is None:
        return f"SELECT {', '.join(shown)} FROM {table} AS input"
    # Without sorting: a row number is given, and rows are left out, in the order of the table.
    return (
        f"SELECT {', '.join(shown)} FROM {numbered(table, columns)} AS t "
        f"WHERE NOT EXISTS (SELECT 1 FROM {without} AS c WHERE c.place = t.{line})"
    )


def rows_known(
    d: Dialect, table: str, columns: Sequence[Column], chosen: str, known: Identity
) -> str:
    """Select the rows that ``chosen`` names by key, or by hash and occurrence, with their location."""
    mark = mark_of(columns)
    names = ", ".join(d.identifier(c.name) for c in columns)
    text = f"SELECT *, {canonical_row(d, columns)} AS text{mark} FROM {table} AS input"
    carried = d.identifier(known.carried)
    if known.key:
        place = carried if known.carried else key_text(d, columns, known)
        found = f"SELECT t.*, {place} AS given{mark} FROM ({text}) AS t"
        same = f"c.place = t.given{mark}"
    else:
        place = carried if known.carried else d.md5(f"text{mark}")
        hashed = f"SELECT t.*, {place} AS hash{mark} FROM ({text}) AS t"
        some = f"EXISTS (SELECT 1 FROM {chosen} AS c WHERE c.md5 = h.hash{mark})"
        found = (
            f"SELECT h.*, row_number() OVER (PARTITION BY hash{mark} ORDER BY hash{mark}) AS nth{mark} "
            f"FROM ({hashed}) AS h WHERE {some}"
        )
        same = f"c.md5 = t.hash{mark} AND c.nth = t.nth{mark}"
    if known.carried and not known.key:
        found = f"SELECT f.*, nth{mark} AS occurrence{mark} FROM ({found}) AS f"
    return (
        f"SELECT {names}, {_location(d, columns, known)} FROM ({found}) AS t "
        f"WHERE EXISTS (SELECT 1 FROM {chosen} AS c WHERE {same})"
    )


def in_order(d: Dialect, table: str, columns: Sequence[Column]) -> str:
    """Select all rows in the order of their column ``line…`` (see :func:`mark_of`), with their md5."""
    _, md5 = location_names(c.name for c in columns)
    names = ", ".join(d.identifier(c.name) for c in columns)
    hashed = f"{d.md5(canonical_row(d, columns))} AS {md5}"
    return f"SELECT {names}, {hashed} FROM {table} AS input ORDER BY line{mark_of(columns)}"


def all_located(d: Dialect, table: str, columns: Sequence[Column], known: Identity) -> str:
    """Select all rows with their location."""
    mark = mark_of(columns)
    names = ", ".join(d.identifier(c.name) for c in columns)
    text = f"SELECT *, {canonical_row(d, columns)} AS text{mark} FROM {table} AS input"
    nth = f"row_number() OVER (PARTITION BY text{mark} ORDER BY text{mark}) AS nth{mark}"
    counted = f"SELECT t.*, {nth} FROM ({text}) AS t"
    return f"SELECT {names}, {_location(d, columns, known)} FROM ({counted}) AS t"


def rows_without(
    d: Dialect, table: str, columns: Sequence[Column], gone: str, known: Identity
) -> str:
    """Select the rows that are not among ``gone``, which has keys, or hashes and their numbers."""
    mark = mark_of(columns)
    names = ", ".join(d.identifier(c.name) for c in columns)
    if known.key:
        found = f"SELECT *, {key_text(d, columns, known)} AS given{mark} FROM {table} AS input"
        return (
            f"SELECT {names} FROM ({found}) AS t "
            f"WHERE NOT EXISTS (SELECT 1 FROM {gone} AS g WHERE g.place = t.given{mark})"
        )
    hashed = (
        f"(SELECT *, {d.md5(canonical_row(d, columns))} AS hash{mark} FROM {table} AS input) AS t"
    )
    # Only rows that equal one of those that go are numbered; of these as many stay as are left.
    same = f"{gone} AS g WHERE g.md5 = t.hash{mark}"
    nth = f"row_number() OVER (PARTITION BY hash{mark} ORDER BY hash{mark}) AS nth{mark}"
    return (
        f"SELECT {names} FROM {hashed} WHERE NOT EXISTS (SELECT 1 FROM {same}) UNION ALL "
        f"SELECT {names} FROM (SELECT t.*, g.n AS gone{mark}, {nth} FROM {hashed} "
        f"JOIN {gone} AS g ON g.md5 = t.hash{mark}) AS e WHERE nth{mark} > gone{mark}"
    )


def with_origin(
    d: Dialect, table: str, columns: Sequence[Column], key: Sequence[str], name: str
) -> str:
    """Add a column to a table that says by what each row is known: its key, or its hash."""
    known = Identity(key=tuple(key))
    origin = key_text(d, columns, known) if key else d.md5(canonical_row(d, columns))
    return f"(SELECT *, {origin} AS {d.identifier(name)} FROM {table} AS given)"


def fingerprint(d: Dialect, table: str, columns: Sequence[Column]) -> str:
    """Count the rows of a table as ``n``, and add up 60 bits of the md5 of each as ``total``.

    The sum does not depend on the order of the rows, which tables of a database do not have.
    """
    hashed = d.md5_bits(d.md5(canonical_row(d, columns)))
    # Inside, since Spark adds up nothing that it calls a method of Java for, as for floating-point numbers.
    bits = f"SELECT {hashed} AS bits FROM {table} AS input"
    return f"SELECT count(*) AS n, {d.as_text('sum(bits)')} AS total FROM ({bits}) AS hashed"


def over(table: str, query: str, asked: str = "") -> str:
    """Return the result of a query over a table, which it calls ``input``, and perhaps over ``asked``."""
    beside = f", asked AS (SELECT * FROM {asked} AS listed)" if asked else ""
    # On separate lines, since it may end in a comment.
    return (
        f"(WITH input AS (SELECT * FROM {table} AS given){beside} "
        f"SELECT * FROM (\n{query}\n) AS result)"
    )


def numbered(table: str, columns: Sequence[Column]) -> str:
    """Number the rows of a table as they are read, for which an engine must keep their order."""
    return f"(SELECT *, row_number() OVER () - 1 AS line{mark_of(columns)} FROM {table} AS input)"


def _location(
    d: Dialect, columns: Sequence[Column], known: Identity, text: str | None = None
) -> str:
    place, md5 = location_names(c.name for c in columns)
    mark = mark_of(columns)
    whole = canonical_row(d, columns) if known.key else f"text{mark}"
    hashed = d.md5(text or whole)
    if known.carried:
        carried = d.identifier(known.carried)
        nth = f"{carried} || '#' || {d.as_text(f'occurrence{mark}')}"
        return f"{carried if known.key else nth} AS {place}, {hashed} AS {md5}"
    if known.numbered:
        found = f"line{mark}"
    elif known.key:
        found = key_text(d, columns, known)
    else:
        found = f"{hashed} || '#' || {d.as_text(f'nth{mark}')}"
    return f"{found} AS {place}, {hashed} AS {md5}"


def key_text(d: Dialect, columns: Sequence[Column], known: Identity) -> str:
    """Write the key of a row as text: its value if it is one column."""
    of = {c.name: c for c in columns}
    key = [of[name] for name in known.key]
    if len(key) == 1:
        return d.exact(d.identifier(key[0].name), key[0].type)
    return canonical_row(d, key)


def mark_of(columns: Sequence[Column]) -> str:
    """Return a suffix that is longer than any column name, so that names with it are unused."""
    return "_" * (1 + max(len(c.name) for c in columns))
