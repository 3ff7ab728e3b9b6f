"""Small tables that a database is given: cells that rows are chosen by, and places of rows."""

from __future__ import annotations

import collections
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from equipoise.engines import sql
from equipoise.engines.base import Column, Identity
from equipoise.engines.column_types import is_float

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from equipoise.counts import CountRequest, Counts

_DIGITS = 12
_ALL = "g"  # after every hexadecimal digit
_MOST_LISTED = 50  # cells that are written into a query


def wanted_cells(
    take: Counts, columns: Sequence[Column], request: CountRequest, there: Counts | None = None
) -> pa.Table:
    """Make the table of cells that rows are chosen by; see :func:`equipoise.engines.sql.choose_rows`.

    ``there`` are the rows of each cell, if rows have a key. Their md5s are uniform, so a little more
    than the wanted share of them is enough.
    """
    types = {c.name: c.type for c in columns}
    cells = take.to_arrow()
    keys = {}
    for i, axis in enumerate(take.axes):
        texts = cells.column(i).cast(pa.string()).to_pylist()
        if axis.name not in request.bins and is_float(types[axis.name]):
            texts = [None if text is None else sql.float_bits(text) for text in texts]
        keys[f"k{i}"] = pa.array(texts, pa.string())
    many = {} if there is None else there.cells()
    limits = [below(want, many.get(cell)) for cell, want in take.cells().items()]
    return pa.table(
        {
            **keys,
            "want": pa.array(take.rows, pa.int64()),
            "cell": pa.array(range(len(cells)), pa.int64()),
            "below": pa.array(limits, pa.string()),
        }
    )


def as_wanted(name: str, cells: pa.Table) -> sql.WantedCells:
    """Tell of a table of cells, which the database has under a name, what helps to choose rows.

    >>> limits = ["000000100000", "800000000000"]
    >>> cells = pa.table({"k0": ["F", None], "want": [1, 2], "cell": [0, 1], "below": limits})
    >>> as_wanted("cells", cells)
    WantedCells(name='cells', absent=(0,), below='000000100000', spared=((None,),))
    """
    keys = [n for n in cells.column_names if n.startswith("k")]
    absent = tuple(i for i, key in enumerate(keys) if cells[key].null_count)
    limits = np.array(cells["below"].to_pylist(), str)
    if (limits == _ALL).all():
        return sql.WantedCells(name, absent)
    rare = _rare(cells["want"].to_numpy(), limits)
    texts = list(zip(*(cells[key].to_pylist() for key in keys), strict=True))
    return sql.WantedCells(
        name,
        absent,
        max(np.delete(limits, rare).tolist(), default=""),
        tuple(texts[i] for i in rare.tolist()),
    )


def _rare(want: NDArray[np.int64], limits: NDArray[np.str_]) -> NDArray[np.int64]:
    """Find the cells, best listed, of which many rows are wanted though they have few.

    All rows of these are looked at, so that few are of all others.
    """
    shares = np.array([1.0 if t == _ALL else int(t, 16) / 16**_DIGITS for t in limits.tolist()])
    there = _enough(want) / np.maximum(shares, 16.0**-_DIGITS)
    order = np.argsort(-shares, kind="stable")
    of_these = np.concatenate([[0.0], np.cumsum(there[order])])[: _MOST_LISTED + 1]
    of_others = np.append(shares[order], 0.0)[: len(of_these)] * there.sum()
    return order[: int(np.argmin(of_these + of_others))]


def below(want: int, there: int | None) -> str:
    """Return the md5 below which there are very likely as many rows as are wanted.

    >>> below(100, 1_000_000), below(100, 110), below(100, None)
    ('000d1b71758e', 'g', 'g')
    """
    enough = float(_enough(want))
    if not there or enough >= there:
        return _ALL
    return f"{int(enough / there * 16**_DIGITS):0{_DIGITS}x}"


def _enough(want: Any) -> Any:
    """So many rows with a small md5 that almost certainly as many as are wanted are among them."""
    return want + 8 * np.sqrt(want) + 20


def named_places(places: Sequence[Any], known: Identity) -> pa.Table:
    """Make the table of places that rows are fetched by: keys, or hashes and occurrences."""
    texts = [str(place) for place in places]
    if known.key:
        return pa.table({"place": pa.array(texts, pa.string())})
    parts = [text.rpartition("#") for text in texts]
    good = [(md5, int(nth)) for md5, _, nth in parts if nth.isdecimal()]
    return pa.table(
        {
            "md5": pa.array([md5 for md5, _ in good], pa.string()),
            "nth": pa.array([nth for _, nth in good], pa.int64()),
        }
    )


def departed(places: Sequence[Any], known: Identity) -> pa.Table:
    """Make the table of rows that are left out: keys, or hashes and how many rows have them."""
    if known.key:
        return named_places(places, known)
    rows = collections.Counter(str(place).rpartition("#")[0] for place in places)
    return pa.table(
        {
            "md5": pa.array(list(rows), pa.string()),
            "n": pa.array(list(rows.values()), pa.int64()),
        }
    )


def rows_but(rows: pa.Table, places: Sequence[int]) -> pa.Table:
    """Return the rows of a table in memory but for those at some places.

    >>> rows_but(pa.table({"a": [1, 2, 3]}), [1])["a"].to_pylist()
    [1, 3]
    """
    if not len(places):
        return rows
    stay = np.ones(len(rows), bool)
    stay[np.asarray(places, np.int64)] = False
    return rows.filter(pa.array(stay))
