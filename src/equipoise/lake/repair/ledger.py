"""The ledger: the source of every added row, and the place of every removed one."""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from equipoise.engines.base import Engine, Part
from equipoise.engines.sources import locate
from equipoise.errors import InputError
from equipoise.plain import in_words

if TYPE_CHECKING:
    import os

SCHEMA = "equipoise.ledger/1"

COLUMNS = {
    "action": "string",
    "row": "int64",
    "source": "string",
    "snapshot": "string",
    "place": "int64",
    "source_hash": "string",
    "hash": "string",
    "cell": "string",
    "mapping": "string",
    "cost": "float64",
    "licence": "string",
    "consent": "bool_",
}
"""Columns of a ledger, which has a line for each row added or removed.

``row`` is the position in the repaired table and ``place`` that in the source, both from 0. If a
source is a table of a database, whose rows have no positions, the places of all are texts: of such a
source keys, or hashes and occurrences, as in ``6b1f…#1``.
``hash`` is the md5 of the row in the repaired table (of a removed row: in the base), and
``source_hash`` that of the row in its source. With a key both are HMACs.
"""


def keyed(md5: str, key: bytes | None) -> str:
    """Return the md5 of a row, or with a key an HMAC of it.

    A row with few columns can be guessed from its md5, but not from an HMAC without the key.

    >>> keyed("d41d8cd98f00b204e9800998ecf8427e", b"secret")[:8]
    '4a75b667'
    """
    return md5 if key is None else hmac.new(key, md5.encode(), hashlib.sha256).hexdigest()


def ledger_table(lines: Sequence[Mapping[str, Any]], about: Mapping[str, Any]) -> pa.Table:
    """Make a table of the lines; the metadata describes the repair."""
    columns = {
        name: pa.array([line.get(name) for line in lines], getattr(pa, kind)())
        for name, kind in COLUMNS.items()
        if name != "place"
    }
    columns["place"] = _places([line.get("place") for line in lines])
    columns = {name: columns[name] for name in COLUMNS}
    note = json.dumps({"schema": SCHEMA, **about}, ensure_ascii=False)
    return pa.table(columns).replace_schema_metadata({"equipoise": note})


def _places(places: Sequence[Any]) -> pa.Array:
    """Write places as whole numbers if all are, else as texts."""
    if any(isinstance(place, str) for place in places):
        return pa.array([None if p is None else str(p) for p in places], pa.string())
    return pa.array(places, pa.int64())


def _read_places(column: pa.ChunkedArray) -> pa.ChunkedArray:
    try:
        return pc.cast(column, pa.int64())
    except pa.ArrowInvalid:
        if not pa.types.is_string(column.type):
            raise
        return column


def write_ledger(ledger: pa.Table, path: Path, engine: Engine, extension: str) -> None:
    """Write a ledger; only Parquet keeps the metadata."""
    if extension == ".parquet":
        import pyarrow.parquet as pq

        pq.write_table(ledger, path, compression="zstd")
        return
    # Engines choose the format by the extension, which a temporary name does not have.
    aside = path.with_name(f"{path.name}{extension}")
    engine.write(aside, [Part(locate(ledger))])
    aside.replace(path)


def read_ledger(path: str | os.PathLike[str], engine: Engine) -> pa.Table:
    """Read a ledger of any format, with the column types of :data:`COLUMNS`."""
    source = locate(path)
    if source.kind == "json" and not any(p.stat().st_size for p in source.paths):
        return ledger_table([], {})  # a file without lines names no columns
    names = [column.name for column in engine.schema(source)]
    lacking = [name for name in COLUMNS if name not in names]
    if lacking:
        raise InputError(
            f"{path} is not a ledger: it has no column {in_words([repr(n) for n in lacking[:3]])}; "
            "give the file that equipoise acquire wrote as `ledger`."
        )
    rows = engine.read(source)
    try:
        read = {n: pc.cast(rows[n], getattr(pa, k)()) for n, k in COLUMNS.items() if n != "place"}
        return pa.table({**read, "place": _read_places(rows["place"])}).select(list(COLUMNS))
    except pa.ArrowException as error:
        raise InputError(f"{path} is damaged: {str(error).splitlines()[0]}.") from None
