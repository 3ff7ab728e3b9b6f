"""Iceberg tables, read by the list of files of one snapshot; columns are found by their field ids."""

from __future__ import annotations

import contextlib
import datetime
import os
import re
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from equipoise.engines.addresses import scrubbed, split, without_password
from equipoise.engines.column_names import refuse_duplicates
from equipoise.engines.sources import Source
from equipoise.engines.stored import FilePath, StoredFile, reason_of, stamp
from equipoise.engines.stores.file_lists import FileList, ListedColumn, constant_text, struct_type
from equipoise.engines.stores.marks import Mark
from equipoise.errors import (
    EquipoiseError,
    InputError,
    MissingDependency,
    SourceNotFound,
    did_you_mean,
)

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog
    from pyiceberg.manifest import DataFile
    from pyiceberg.schema import Schema
    from pyiceberg.table import Table
    from pyiceberg.types import IcebergType, NestedField

FORMS = (
    "iceberg:sqlite:///catalog.db?table=NAMESPACE.TABLE, iceberg:https://host/…?table=…, "
    "iceberg:NAME?table=… for a catalogue of pyiceberg's own settings, or iceberg:…/v1.metadata.json"
)
_SIMPLE = {
    "string": "VARCHAR",
    "long": "BIGINT",
    "int": "INTEGER",
    "float": "FLOAT",
    "double": "DOUBLE",
    "boolean": "BOOLEAN",
    "binary": "BLOB",
    "date": "DATE",
    "time": "TIME",
    "timestamp": "TIMESTAMP",
    "timestamptz": "TIMESTAMP WITH TIME ZONE",
    "timestamp_ns": "TIMESTAMP_NS",
    "uuid": "UUID",
}
_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
_SHOWN = 10
_NO_SNAPSHOT = "none"
"""Stands for the snapshot of a table that never had rows."""


@dataclass(frozen=True)
class Address:
    """The parts of an address: a catalogue, a table or a namespace of it, and settings."""

    catalog: str
    table: str | None = None
    namespace: str | None = None
    snapshot: str | None = None
    settings: Mapping[str, str] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, text: str) -> Address:
        """Read an address.

        >>> Address.of("iceberg:sqlite:///c.db?table=a.people")
        Address(catalog='sqlite:///c.db', table='a.people', namespace=None, snapshot=None)
        """
        place, given = split(text)
        own = {name: given.pop(name, None) for name in ("table", "namespace", "snapshot")}
        return cls(place.partition(":")[2], **own, settings=given)

    @property
    def is_file(self) -> bool:
        """Whether it names the metadata of one table itself."""
        return self.catalog.endswith(".metadata.json")


def locate(address: str, options: dict[str, Any]) -> Source:
    """Find an Iceberg table, at the snapshot that is asked for or else its newest one."""
    parts = Address.of(address)
    if parts.namespace is not None:
        raise InputError(
            f"{without_password(address)} names a namespace, which may be a place of a lake; a table "
            "is named by table=NAMESPACE.TABLE."
        )
    if parts.table is None and not parts.is_file:
        raise _unnamed(address, tables(address))
    if parts.snapshot is not None and not parts.snapshot.isdecimal():
        raise InputError(f"{parts.snapshot!r} is not a snapshot, which is a whole number.")
    source = Source(name=address, kind="iceberg", address=address, **options)
    return pinned(source)


def tables(address: str) -> tuple[str, ...]:
    """List the tables of a catalogue, or of the namespace that an address names."""
    parts = Address.of(address)
    with _explained(address):
        if parts.catalog.startswith("sqlite:"):
            known = tuple(_sqlite_tables(parts, address))
        else:
            known = tuple(_listed(_catalog(parts), parts.namespace))
    space = parts.namespace
    found = sorted(name for name in known if space is None or name.rpartition(".")[0] == space)
    if space is not None and not found:
        spaces = sorted({name.rpartition(".")[0] for name in known})
        raise SourceNotFound(
            f"{without_password(address)} has no tables in the namespace {space!r}; there are: "
            f"{', '.join(spaces) or 'none'}.{did_you_mean(space, spaces)}"
        )
    return tuple(found)


def table_address(address: str, table: str) -> str:
    """Return the address of a table of a catalogue.

    >>> table_address("iceberg:prod?namespace=a&warehouse=w", "a.people")
    'iceberg:prod?warehouse=w&table=a.people'
    """
    before, _, after = address.partition("?") if "?" in address else (address, "", "")
    kept = [pair for pair in after.split("&") if pair and not pair.startswith("namespace=")]
    return f"{before}?{'&'.join([*kept, f'table={quote(table)}'])}"


def pinned(source: Source) -> Source:
    """Decide the snapshot of a table, so that everything that follows sees the same rows."""
    table = _opened(source)
    asked = Address.of(source.address or "").snapshot
    if source.version is not None:
        return source
    if asked is not None:
        snapshot = _snapshot(table, asked, source)
        schema = snapshot.schema_id
        return replace(
            source, version=f"{asked}/{table.schema().schema_id if schema is None else schema}"
        )
    now = table.current_snapshot()
    # A column may be renamed without a new snapshot.
    version = f"{_NO_SNAPSHOT if now is None else now.snapshot_id}/{table.schema().schema_id}"
    return replace(source, version=version)


def mark(source: Source) -> Mark:
    """Name the state of a table: its own name, which moves with it, the snapshot and the schema."""
    found = pinned(source)
    table = _opened(found)
    number = (found.version or "").partition("/")[0]
    size = 0
    if number != _NO_SNAPSHOT:
        summary = _snapshot(table, number, found).summary
        size = int((summary and summary.additional_properties.get("total-files-size")) or 0)
    snapshot = f"iceberg:{table.metadata.table_uuid}@{found.version}"
    return Mark(snapshot, size, stamp(snapshot))


def tables_at(address: str) -> list[Source]:
    """Find the tables of a catalogue or a namespace, or the one that an address names."""
    parts = Address.of(address)
    if parts.is_file or parts.table is not None:
        return [locate(address, {})]
    addresses = [table_address(address, name) for name in tables(address)]
    return [Source(name=one, kind="iceberg", address=one) for one in addresses]


def address_in(place: str, name: str) -> str | None:
    """Return the address of a table of a place by its name, if it is one."""
    if without_password(place) == name:
        return place
    table = Address.of(name).table
    found = None if table is None else table_address(place, table)
    return found if found is not None and without_password(found) == name else None


def reopened(name: str, kind: Any, address: str, snapshot: str) -> Source:
    """Return a table of a known name in a known state, without opening it."""
    return Source(name=name, kind=kind, address=address, version=version_in(snapshot) or None)


def version_in(snapshot: str) -> str:
    """Return the version that a snapshot names.

    >>> version_in("iceberg:6b1f@12/0")
    '12/0'
    """
    return snapshot.rpartition("@")[2]


def file_list(source: Source) -> FileList:
    """Read the files of a snapshot; refuse what cannot be read as it is meant."""
    source = pinned(source)
    table = _opened(source)
    number, _, schema_id = (source.version or "").partition("/")
    schema = table.schemas().get(int(schema_id))
    if schema is None:
        raise SourceNotFound(
            f"{source.name} no longer has the schema {schema_id}; name a newer snapshot."
        )
    files = [] if number == _NO_SNAPSHOT else _data_files(table, number, source)
    _require_field_ids(table, files, source)
    _require_nested_names(table, schema, source)
    columns = tuple(_column(column, table, files, source) for column in schema.fields)
    refuse_duplicates([column.name for column in columns], source.name)
    return FileList(
        files=tuple(_file(f.file_path) for f in files),
        columns=columns,
        snapshot=f"iceberg:{table.metadata.table_uuid}@{source.version}",
        size=sum(f.file_size_in_bytes for f in files),
    )


# ------------------------------------------------------------------------- catalogues


def _opened(source: Source) -> Table:
    address = source.address or ""
    parts = Address.of(address)
    with _explained(address):
        if parts.is_file:
            return _static(parts.catalog)
        if parts.catalog.startswith("sqlite:"):
            known = _sqlite_tables(parts, address)
            if parts.table not in known:
                raise _unnamed(address, tuple(known))
            return _static(known[parts.table])
        catalog = _catalog(parts)
        from pyiceberg.exceptions import NoSuchNamespaceError, NoSuchTableError

        try:
            return catalog.load_table(parts.table or "")
        except (NoSuchTableError, NoSuchNamespaceError):
            raise _unnamed(address, tuple(_listed(catalog, None))) from None


def _static(location: str) -> Table:
    from pyiceberg.table import StaticTable

    return StaticTable.from_metadata(location, _settings())


def _catalog(parts: Address) -> Catalog:
    from pyiceberg.catalog import load_catalog

    if parts.catalog.startswith(("http:", "https:")):
        own = {"type": "rest", "uri": parts.catalog}
        return load_catalog("rest", **_settings(), **own, **parts.settings)
    return load_catalog(parts.catalog, **parts.settings)


def _listed(catalog: Catalog, namespace: str | None) -> Iterator[str]:
    spaces = catalog.list_namespaces() if namespace is None else [tuple(namespace.split("."))]
    for space in spaces:
        for name in catalog.list_tables(space):
            yield ".".join(name)


def _sqlite_tables(parts: Address, address: str) -> dict[str, str]:
    """Read where the metadata of each table is, without writing to the catalogue, as opening it would."""
    path = Path(re.sub("^sqlite:(///)?", "", parts.catalog))
    if not path.is_file():
        raise SourceNotFound(f"{without_password(address)}: the catalogue {path} does not exist.")
    with contextlib.closing(
        sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)
    ) as connection:
        rows = connection.execute(
            "SELECT catalog_name, table_namespace, table_name, metadata_location FROM iceberg_tables"
        ).fetchall()
    catalogs = sorted({catalog for catalog, *_ in rows})
    asked = parts.settings.get("catalog")
    if asked is None and len(catalogs) > 1:
        raise InputError(
            f"{without_password(address)} holds several catalogues; name one as catalog=NAME; it has: "
            f"{', '.join(catalogs)}."
        )
    kept = [row for row in rows if asked in (None, row[0])]
    return {f"{space}.{name}": where for _, space, name, where in kept if where}


def _settings() -> dict[str, str]:
    """Where the environment says that a store of objects is, and who asks."""
    names = {
        "s3.endpoint": ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"),
        "s3.access-key-id": ("AWS_ACCESS_KEY_ID",),
        "s3.secret-access-key": ("AWS_SECRET_ACCESS_KEY",),
        "s3.session-token": ("AWS_SESSION_TOKEN",),
        "s3.region": ("AWS_REGION", "AWS_DEFAULT_REGION"),
    }
    found = {key: next(filter(None, map(os.environ.get, n)), None) for key, n in names.items()}
    return {key: value for key, value in found.items() if value}


def _unnamed(address: str, known: Sequence[str]) -> SourceNotFound:
    """Make the error for a table that is not there, or was not named."""
    asked = Address.of(address).table
    what = "names no table" if asked is None else f"has no table {asked!r}"
    more = f" and {len(known) - _SHOWN:,} more" if len(known) > _SHOWN else ""
    near = "" if asked is None else did_you_mean(asked, known)
    return SourceNotFound(
        f"{without_password(address)} {what}; a table is named as {FORMS}; there are: "
        f"{', '.join(known[:_SHOWN]) or 'none'}{more}.{near}"
    )


@contextlib.contextmanager
def _explained(address: str) -> Iterator[None]:
    """Turn errors of the library and of stores into sentences without the secrets of an address."""
    try:
        yield
    except EquipoiseError as error:
        error.args = (scrubbed(str(error), [address]),)
        raise
    except ImportError as error:
        name = getattr(error, "name", None) or ""
        package = name.partition(".")[0] or "pyiceberg"
        raise MissingDependency(
            package, extra="lakehouse", purpose="reading an Iceberg table"
        ) from None
    except Exception as error:  # noqa: BLE001 (errors of many stores and catalogues)
        raise SourceNotFound(
            f"{without_password(address)} cannot be read: {reason_of(error, address)}."
        ) from None


# ------------------------------------------------------------------------------ files


def _snapshot(table: Table, number: str, source: Source) -> Any:
    found = table.snapshot_by_id(int(number))
    if found is None:
        known = [str(s.snapshot_id) for s in table.snapshots()][-_SHOWN:]
        raise SourceNotFound(
            f"the snapshot {number} of {source.name} does not exist, or has gone; there are: "
            f"{', '.join(known) or 'none'}."
        )
    return found


def _data_files(table: Table, number: str, source: Source) -> list[DataFile]:
    """List the files of a snapshot in the order of their names; refuse those with deleted rows."""
    _snapshot(table, number, source)
    with _explained(source.address or ""):
        tasks = list(table.scan(snapshot_id=int(number)).plan_files())
    if any(task.delete_files for task in tasks):
        raise InputError(
            f"{source.name} has delete files: some rows in its files are marked as deleted, and would be "
            "counted; rewrite its files first (CALL system.rewrite_data_files)."
        )
    for task in tasks:
        if str(task.file.file_format.value).upper() != "PARQUET":
            raise InputError(
                f"{source.name} has files of the format {task.file.file_format.value}; only Parquet "
                "files are read."
            )
    return sorted((task.file for task in tasks), key=lambda file: file.file_path)


def _file(location: str) -> FilePath:
    """Find a file; in metadata its name is not quoted."""
    if location.startswith("file:"):
        return Path(re.sub("^file:(//)?", "", location))
    if "://" not in location:
        return Path(location)
    return StoredFile(re.sub("^s3[an]:", "s3:", location))


def _require_field_ids(table: Table, files: Sequence[DataFile], source: Source) -> None:
    """Refuse files without field ids, whose columns would be read as missing.

    Such files were added to a table as they are, which then has names for its fields; otherwise a
    look into one file is enough.
    """
    import pyarrow.parquet as pq

    asked = files if "schema.name-mapping.default" in table.properties else files[:1]
    for one in asked:
        file = _file(one.file_path)
        try:
            with file.open("rb") as content:
                schema = pq.read_schema(content)
        except OSError:
            return  # the engine says why it cannot be read
        if not any(b"PARQUET:field_id" in (column.metadata or {}) for column in schema):
            raise InputError(
                f"{source.name} has files without field ids, which were added as they are ({file}); "
                "rewrite its files first."
            )


# ---------------------------------------------------------------------------- columns


def _column(
    column: NestedField, table: Table, files: Sequence[DataFile], source: Source
) -> ListedColumn:
    kind = _type(column.field_type, f"column {column.name!r} of {source.name}")
    values = [_shared_value(file, column, table) for file in files]
    default = constant_text(getattr(column, "initial_default", None))
    constants = tuple(values) if any(value is not None for value in values) else None
    return ListedColumn(column.name, kind, column.field_id, constants, default)


def _shared_value(file: DataFile, column: NestedField, table: Table) -> str | None:
    """The value that all rows of a file share, if the table is partitioned by the column itself."""
    spec = table.specs().get(file.spec_id)
    for i, part in enumerate(spec.fields if spec is not None else ()):
        if part.source_id == column.field_id and str(part.transform) == "identity":
            return constant_text(_python_value(file.partition[i], str(column.field_type)))
    return None


def _python_value(value: Any, kind: str) -> Any:
    """Read a partition value, in which dates and times are numbers."""
    if not isinstance(value, int) or isinstance(value, bool):
        return value
    if kind == "date":
        return (_EPOCH + datetime.timedelta(days=value)).date()
    if kind in ("timestamp", "timestamptz"):
        moment = _EPOCH + datetime.timedelta(microseconds=value)
        return moment if kind == "timestamptz" else moment.replace(tzinfo=None)
    if kind == "time":
        return (_EPOCH + datetime.timedelta(microseconds=value)).time()
    return value


def _type(kind: IcebergType, what: str) -> str:
    from pyiceberg import types

    if isinstance(kind, types.StructType):
        return struct_type([(f.name, _type(f.field_type, what)) for f in kind.fields])
    if isinstance(kind, types.ListType):
        return f"{_type(kind.element_type, what)}[]"
    if isinstance(kind, types.MapType):
        return f"MAP({_type(kind.key_type, what)}, {_type(kind.value_type, what)})"
    text = str(kind)
    if text in _SIMPLE:
        return _SIMPLE[text]
    if text.startswith("fixed"):
        return "BLOB"
    if text.startswith("decimal"):
        return text.upper()
    raise InputError(f"{what} is of the type {text}, which cannot be read here.")


def _require_nested_names(table: Table, schema: Schema, source: Source) -> None:
    """Refuse a nested field that once had another name: inside a column, names are compared."""
    top = {column.field_id for column in schema.fields}
    names: dict[int, set[str]] = {}
    for known in table.schemas().values():
        for number, column in _fields(known).items():
            names.setdefault(number, set()).add(column)
    for number, column in _fields(schema).items():
        if number not in top and len(names[number]) > 1:
            raise InputError(
                f"the nested field {column!r} of {source.name} has been renamed, which cannot be read here."
            )


def _fields(schema: Schema) -> dict[int, str]:
    from pyiceberg.schema import index_by_id

    return {number: column.name for number, column in index_by_id(schema).items()}
