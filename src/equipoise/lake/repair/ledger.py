"""The ledger: the source of every added row, and the place of every removed one."""

from __future__ import annotations

import hashlib
import hmac
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from equipoise.engines.base import Engine, Part
from equipoise.engines.kinds import DATABASES
from equipoise.engines.sources import Source, locate
from equipoise.errors import InputError
from equipoise.plain import in_words

if TYPE_CHECKING:
    import os

SCHEMA = "equipoise.ledger/1"
_NOTE = b"equipoise"

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
``source_hash`` that of the row in its source. With a key both are HMACs, and places that are made of
hashes are encrypted, as in ``keyed:8c40…#1``. If the repaired table is one
of a database, ``row`` is empty, and an added row is known by its hash.
"""

ABOUT = "about"
"""Action of the line of a stored ledger that describes the repair, as JSON in ``mapping``."""


def keyed(md5: str, key: bytes | None) -> str:
    """Return the md5 of a row, or with a key an HMAC of it.

    A row with few columns can be guessed from its md5, but not from an HMAC without the key.

    >>> keyed("d41d8cd98f00b204e9800998ecf8427e", b"secret")[:8]
    '4a75b667'
    """
    return md5 if key is None else hmac.new(key, md5.encode(), hashlib.sha256).hexdigest()


def keyed_place(place: Any, md5: str, key: bytes | None) -> Any:
    """Return the place of a row; with a key, one that is made of the row's md5 is encrypted.

    The HMAC of the md5, which the ledger states beside it, is what the pad is derived from, so that equal rows have
    equal places but for their occurrence, and only the key gives the md5 back (:func:`plain_place`).

    >>> md5 = "d41d8cd98f00b204e9800998ecf8427e"
    >>> keyed_place(f"{md5}#2", md5, b"secret"), keyed_place(7, md5, b"secret")
    ('keyed:9b9580d3a0b1785e94d371047e62d8f9#2', 7)
    """
    if key is None or not isinstance(place, str) or not place.startswith(f"{md5}#"):
        return place
    return f"keyed:{_padded(md5, keyed(md5, key), key)}{place[len(md5) :]}"


def plain_place(place: Any, source_hash: str | None, key: bytes | None) -> Any:
    """Return the place of a row of a database without a key, as it was before :func:`keyed_place`.

    >>> md5 = "d41d8cd98f00b204e9800998ecf8427e"
    >>> plain_place(keyed_place(f"{md5}#2", md5, b"secret"), keyed(md5, b"secret"), b"secret")
    'd41d8cd98f00b204e9800998ecf8427e#2'
    """
    found = re.fullmatch(r"keyed:([0-9a-f]{32})(#[0-9]+)", str(place))
    if key is None or found is None:
        return place
    return f"{_padded(found[1], str(source_hash), key)}{found[2]}"


def _padded(digits: str, source_hash: str, key: bytes) -> str:
    """Encrypt or decrypt the digits of an md5."""
    pad = hmac.digest(key, f"place of {source_hash}".encode(), "sha256")
    return bytes(a ^ b for a, b in zip(bytes.fromhex(digits), pad, strict=False)).hex()


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
    return pa.table(columns).replace_schema_metadata({_NOTE: note})


def _places(places: Sequence[Any]) -> pa.Array:
    """Write places as whole numbers if all are, else as texts."""
    if any(isinstance(place, str) for place in places):
        return pa.array([None if p is None else str(p) for p in places], pa.string())
    return pa.array(places, pa.int64())


def _read_places(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Read places as whole numbers if all are; 007 is a key, and not the number 7."""
    if not pa.types.is_string(column.type):
        return pc.cast(column, pa.int64())
    try:
        numbers = pc.cast(column, pa.int64())
    except pa.ArrowInvalid:
        return column
    return numbers if pc.cast(numbers, pa.string()).equals(column) else column


def stored_ledger(ledger: pa.Table) -> pa.Table:
    """Return a ledger as a table of a database holds it, which has no metadata.

    Its first line describes the repair, and its places are texts, whatever the sources are.

    >>> stored_ledger(ledger_table([], {"base": "people"}))["mapping"].to_pylist()
    ['{"schema": "equipoise.ledger/1", "base": "people"}']
    """
    note = (ledger.schema.metadata or {})[_NOTE].decode()
    line = ledger_table([{"action": ABOUT, "mapping": note}], {})
    lines = pa.concat_tables([_with_texts(line), _with_texts(ledger)])
    return lines.replace_schema_metadata(None)


def _with_texts(ledger: pa.Table) -> pa.Table:
    at = ledger.column_names.index("place")
    column = pc.cast(ledger["place"], pa.string())
    return ledger.set_column(at, "place", column).replace_schema_metadata(None)


def about(ledger: pa.Table) -> Mapping[str, Any]:
    """Return what a ledger says of the repair; nothing if its file cannot hold that.

    >>> about(ledger_table([], {"base": "people"}))["base"]
    'people'
    """
    try:
        told = json.loads((ledger.schema.metadata or {}).get(_NOTE, b"{}"))
    except (ValueError, RecursionError):
        return {}
    return told if isinstance(told, dict) else {}


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


def read_ledger(ledger: str | os.PathLike[str] | Source, engine: Engine) -> pa.Table:
    """Read a ledger of any format or database, with the column types of :data:`COLUMNS`.

    Lines of a database come in an order of their own, since its tables have none.
    """
    source = locate(ledger)
    if source.kind == "json" and not any(p.stat().st_size for p in source.paths):
        return ledger_table([], {})  # a file without lines names no columns
    names = [column.name for column in engine.schema(source)]
    lacking = [name for name in COLUMNS if name not in names]
    if lacking:
        raise InputError(
            f"{source.name} is not a ledger: it has no column "
            f"{in_words([repr(n) for n in lacking[:3]])}; give the ledger that equipoise acquire wrote."
        )
    rows = engine.read(source)
    is_note = pc.equal(rows["action"], ABOUT).fill_null(False)
    notes = [str(note) for note in rows.filter(is_note)["mapping"].to_pylist()]
    rows = rows.filter(pc.invert(is_note))
    try:
        read = {n: pc.cast(rows[n], getattr(pa, k)()) for n, k in COLUMNS.items() if n != "place"}
        read["place"] = _read_places(rows["place"])
    except pa.ArrowException as error:
        raise InputError(f"{source.name} is damaged: {str(error).splitlines()[0]}.") from None
    lines = pa.table({name: read[name] for name in COLUMNS})
    if source.kind in DATABASES:
        lines = lines.sort_by([(name, "ascending") for name in ("action", "source", "place")])
    return lines.replace_schema_metadata({_NOTE: notes[0] if notes else _note_of(source)})


def _note_of(source: Source) -> str:
    """Return the metadata of a Parquet file, which engines do not read."""
    if source.kind != "parquet" or len(source.paths) != 1:
        return "{}"
    import pyarrow.parquet as pq

    metadata = pq.read_schema(source.paths[0]).metadata or {}
    return bytes(metadata.get(_NOTE, b"{}")).decode(errors="replace")
