"""Delta tables, read by the list of files in their log."""

from __future__ import annotations

import importlib
import json
import os
import re
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from equipoise.engines.addresses import local_path, split, without_password
from equipoise.engines.column_names import refuse_duplicates
from equipoise.engines.sources import Source
from equipoise.engines.stored import FilePath, StoredFile, reason_of, stamp
from equipoise.engines.stores.file_lists import FileList, ListedColumn, constant_text, struct_type
from equipoise.engines.stores.marks import Mark
from equipoise.errors import InputError, MissingDependency, SourceNotFound

if TYPE_CHECKING:
    from deltalake import DeltaTable

LOG = "_delta_log"
"""The folder by which a Delta table is recognized."""

_SIMPLE = {
    "string": "VARCHAR",
    "long": "BIGINT",
    "integer": "INTEGER",
    "short": "SMALLINT",
    "byte": "TINYINT",
    "float": "FLOAT",
    "double": "DOUBLE",
    "boolean": "BOOLEAN",
    "binary": "BLOB",
    "date": "DATE",
    "timestamp": "TIMESTAMP WITH TIME ZONE",
    "timestamp_ntz": "TIMESTAMP",
}
_FEATURES = {
    "columnMapping",
    "deletionVectors",  # if no file has one
    "timestampNtz",
    "typeWidening",
    "typeWidening-preview",
    "v2Checkpoint",
    "vacuumProtocolCheck",
}
"""What a table may ask of its readers."""
_NEWEST = 3


def locate(address: str, options: dict[str, Any]) -> Source:
    """Find a Delta table, at the version that is asked for or else its newest one."""
    place, parameters = split(address)
    asked = parameters.pop("version", None)
    if parameters:
        raise InputError(
            f"{without_password(address)} has the parameter {next(iter(parameters))!r}; a Delta table "
            "has only version, as in delta:./people?version=3."
        )
    if asked is not None and not asked.isdecimal():
        raise InputError(f"{asked!r} is not a version of a Delta table, which is a whole number.")
    name = place if asked is None else f"{place}?version={asked}"
    source = Source(name=name, kind="delta", address=place, version=asked, **options)
    return pinned(source)


def pinned(source: Source) -> Source:
    """Decide the version of a table, so that everything that follows sees the same rows."""
    return replace(source, version=str(_opened(source).version()))


def file_list(source: Source) -> FileList:
    """Read the files of a version from the log; refuse what cannot be read as it is meant."""
    table = _opened(source)
    _require_readable(table, source)
    import pyarrow as pa

    added = pa.table(table.get_add_actions()).sort_by("path")
    has_parts = "partition" in added.column_names
    parts: list[Mapping[str, Any]] = (
        added["partition"].to_pylist() if has_parts else [{}] * len(added)
    )
    details = table.metadata()
    fields = json.loads(table.schema().to_json())["fields"]
    mode = details.configuration.get("delta.columnMapping.mode", "none")
    columns = tuple(_column(f, mode, details.partition_columns, parts, source) for f in fields)
    refuse_duplicates([column.name for column in columns], source.name)
    return FileList(
        files=tuple(_file(path, _place(source)) for path in added["path"].to_pylist()),
        columns=columns,
        snapshot=f"delta:{details.id}@{table.version()}",
        size=sum(added["size_bytes"].to_pylist()),
    )


def mark(source: Source) -> Mark:
    """Name the state of a table: its own name, which moves with it, and the version."""
    import pyarrow as pa

    table = _opened(source)
    snapshot = f"delta:{table.metadata().id}@{table.version()}"
    sizes = pa.table(table.get_add_actions())["size_bytes"].to_pylist()
    return Mark(snapshot, sum(sizes), stamp(snapshot))


def tables_at(address: str) -> list[Source]:
    """Find the table of an address."""
    return [locate(address, {})]


def address_in(place: str, name: str) -> str | None:
    """Return the address of a table of a place by its name, if it is one."""
    return place if without_password(place) == name else None


def reopened(name: str, kind: Any, address: str, snapshot: str) -> Source:
    """Return a table of a known name in a known state, without opening it."""
    place = split(address)[0]
    return Source(name=name, kind=kind, address=place, version=version_in(snapshot) or None)


def version_in(snapshot: str) -> str:
    """Return the version that a snapshot names, or nothing.

    >>> version_in("delta:6b1f@12")
    '12'
    """
    return snapshot.rpartition("@")[2]


# ----------------------------------------------------------------------------- tables


def _opened(source: Source) -> DeltaTable:
    try:
        deltalake = _loaded()
    except ImportError:
        raise MissingDependency(
            "deltalake", extra="lakehouse", purpose="reading a Delta table"
        ) from None
    place, version = _place(source), source.version
    if "://" not in place and not Path(place, LOG).is_dir():
        raise SourceNotFound(
            f"{source.name} is not a Delta table: there is no folder {LOG} in it; check its path."
        )
    if version is not None and "://" not in place:
        _require_version(place, int(version), source)
    try:
        table: DeltaTable = deltalake.DeltaTable(
            place,
            version=None if version is None else int(version),
            storage_options=_storage_options(place),
        )
    except Exception as error:  # noqa: BLE001 (errors of many stores; the library has no base class)
        state = "" if version is None else f"version {version} of "
        stored = "; check its address, and the login and the region of its store"
        raise SourceNotFound(
            f"{state}{source.name} cannot be read: {reason_of(error, source.address or '')}"
            f"{stored if '://' in place else ''}."
        ) from None
    return table


def _loaded() -> ModuleType:
    """Load the library; it prints warnings of stores unless it is told not to before."""
    is_told = "deltalake" in sys.modules or "RUST_LOG" in os.environ
    if not is_told:
        os.environ["RUST_LOG"] = "error"
    try:
        return importlib.import_module("deltalake")
    finally:
        if not is_told:
            del os.environ["RUST_LOG"]


def _require_version(place: str, version: int, source: Source) -> None:
    """Refuse a version that the log does not have, or no longer has; the library only says that it failed."""
    logged = [re.match(r"(\d{20})\.", name) for name in os.listdir(Path(place, LOG))]  # noqa: PTH208
    known = sorted({int(found[1]) for found in logged if found})
    if known and not known[0] <= version <= known[-1]:
        gone = "is no longer in its log" if version < known[0] else "does not exist yet"
        raise SourceNotFound(
            f"version {version} of {source.name} {gone}; there are {known[0]} to {known[-1]}."
        )


def _place(source: Source) -> str:
    """The path or the address of the folder of a table."""
    place = (source.address or "").removeprefix("delta:")
    return local_path(place) if place.startswith("file:") else place


def _storage_options(place: str) -> dict[str, str] | None:
    """Allow a store without encryption where the environment names one, as a local one is."""
    endpoint = os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL", "")
    if not place.startswith("s3://") or not endpoint:
        return None
    options = {"aws_endpoint": endpoint}
    return options | {"allow_http": "true"} if endpoint.startswith("http:") else options


def _require_readable(table: DeltaTable, source: Source) -> None:
    protocol = table.protocol()
    features = set(protocol.reader_features or ())
    unknown = sorted(features - _FEATURES)
    if protocol.min_reader_version > _NEWEST or unknown:
        what = f"the features {', '.join(unknown)}" if unknown else "a newer protocol"
        raise InputError(f"{source.name} uses {what}, which cannot be read here.")
    if "deletionVectors" in features and _has_deletion_vectors(table):
        raise InputError(
            f"{source.name} has deletion vectors: some rows in its files are marked as deleted, and "
            "would be counted; rewrite its files first (REORG TABLE … APPLY (PURGE))."
        )


def _has_deletion_vectors(table: DeltaTable) -> bool:
    try:
        return any(batch.num_rows for batch in table.deletion_vectors())
    except Exception:  # noqa: BLE001 (one that cannot be read is there)
        return True


def _file(path: str, place: str) -> FilePath:
    """Find a file of a log, where it is a URI relative to the table, or a whole one."""
    whole = unquote(path) if "://" in path else f"{place.rstrip('/')}/{unquote(path)}"
    if whole.startswith("file:"):
        return Path(local_path(path))
    return StoredFile(whole) if "://" in whole else Path(whole)


# ---------------------------------------------------------------------------- columns


def _column(
    field: Mapping[str, Any],
    mode: str,
    partitions: list[str],
    parts: list[Mapping[str, Any]],
    source: Source,
) -> ListedColumn:
    name, about = field["name"], field.get("metadata", {})
    physical = about.get("delta.columnMapping.physicalName", name)
    kind = _type(field["type"], f"column {name!r} of {source.name}", mode)
    if name in partitions:
        values = (part.get(name, part.get(physical)) for part in parts)
        return ListedColumn(name, kind, None, tuple(map(constant_text, values)))
    key = about["delta.columnMapping.id"] if mode == "id" else physical
    return ListedColumn(name, kind, name if mode == "none" else key)


def _type(kind: Any, what: str, mode: str) -> str:
    if isinstance(kind, str):
        if kind in _SIMPLE:
            return _SIMPLE[kind]
        if re.fullmatch(r"decimal\(\d+, ?\d+\)", kind):
            return kind.upper()
        raise InputError(f"{what} is of the type {kind}, which cannot be read here.")
    if mode != "none" and kind["type"] == "struct":
        raise InputError(f"{what} is a structure whose fields have other names in the files.")
    if kind["type"] == "array":
        return f"{_type(kind['elementType'], what, mode)}[]"
    if kind["type"] == "map":
        key, value = (_type(kind[part], what, mode) for part in ("keyType", "valueType"))
        return f"MAP({key}, {value})"
    return struct_type([(f["name"], _type(f["type"], what, mode)) for f in kind["fields"]])
