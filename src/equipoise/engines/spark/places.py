"""Spark as a place of a lake: the tables of a schema of its catalog, and their states."""

from __future__ import annotations

import functools
from typing import Any

from pyspark.errors import PySparkException

from equipoise.engines.addresses import split
from equipoise.engines.sources import Source
from equipoise.engines.spark._engine import SparkEngine
from equipoise.engines.spark._errors import explained
from equipoise.engines.spark.addresses import locate
from equipoise.engines.stored import stamp
from equipoise.engines.stores.marks import Mark
from equipoise.errors import EquipoiseError, InputError, NoTables, SourceNotFound, did_you_mean

__all__ = [
    "address_in",
    "database_of",
    "found_at",
    "locate",
    "made_at",
    "mark",
    "reopened",
    "snapshot",
    "tables_at",
]


def tables_at(address: str) -> list[Source]:
    """Find the tables of a schema of the catalog, or the one that an address names.

    Views are left out, and so are tables that were made for a result.
    """
    before, _ = split(address)
    name = before.partition(":")[2].strip("/")
    engine = _engine()
    if name and engine.has_table(name):
        return [locate(address, {})]
    found = engine.stored_tables(name)
    if not found:
        raise _nothing_at(engine, address, name)
    return [locate(_table_address(address, table), {}) for table in found]


def address_in(place: str, name: str) -> str | None:
    """Return the address of a table of a place by its name, if it is one."""
    table = split(name)[0].partition(":")[2]
    schema = split(place)[0].partition(":")[2].strip("/")
    is_there = name == place or table.startswith(f"{schema}.") or not schema
    return _table_address(place, table) if is_there else None


def reopened(name: str, kind: Any, address: str, snapshot: str) -> Source:  # noqa: ARG001 (kept nowhere)
    """Return a table of a known name, without opening it; older states cannot be read again."""
    found = locate(address, {})
    return Source(name=name, kind=kind, address=found.address, table=found.table, key=found.key)


def mark(source: Source) -> Mark:
    """Name the state of a table by its files, without reading it.

    Spark writes new files whenever rows change. A table without files, as of another database, is
    read as a whole.
    """
    files = _engine().files_of(source)
    state = "\n".join(files) if files else snapshot(source)
    return Mark(None, len(files), stamp(f"{source.name}\n{state}"))


def snapshot(source: Source) -> str:
    """Name the state of a table by its rows, all of which are read."""
    return _engine().snapshot(source)


def found_at(source: Source) -> tuple[str, ...]:
    """Name a table in full, however it is addressed; refuse one that does not exist."""
    return _engine().full_name(source)


def made_at(target: Source) -> tuple[str, ...]:
    """Name in full the table that would be made at an address."""
    return _engine().new_name(target)


def database_of(source: Source) -> tuple[str, ...]:  # noqa: ARG001 (tables of all catalogs can be joined)
    """Name what one query can read, which is all that a session knows."""
    return ()


def _nothing_at(engine: SparkEngine, address: str, name: str) -> EquipoiseError:
    """Make the error for a place without tables, which names schemas and near names; or say why Spark cannot."""
    place = Source(name=address, kind="spark", address=address, table=name.rpartition(".")[0])
    catalog = engine.session.catalog
    try:
        is_schema = not name or catalog.databaseExists(name)
        schemas = [schema.name for schema in catalog.listDatabases()]
    except PySparkException as error:
        return explained(error, place) or InputError(f"{address} cannot be looked at.")
    said = (
        f"{address} names neither a table nor a schema with tables in the catalog of Spark; views are "
        "not tables of a lake"
    )
    if is_schema:
        return NoTables(f"{said}.")
    near = did_you_mean(name, [*schemas, *engine.tables(place)])
    return SourceNotFound(f"{said}; there are the schemas {', '.join(schemas[:20])}.{near}")


@functools.cache
def _engine() -> SparkEngine:
    return SparkEngine()


def _table_address(place: str, table: str) -> str:
    """Return the address of a table of a place.

    >>> _table_address("spark:warehouse?id=number", "warehouse.people")
    'spark:warehouse.people?id=number'
    """
    _, ours = split(place)
    return f"spark:{table}?id={ours['id']}" if "id" in ours else f"spark:{table}"
