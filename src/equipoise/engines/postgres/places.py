"""PostgreSQL as a place of a lake: the tables of a schema or of a database, and their states."""

from __future__ import annotations

import functools
from typing import Any

from equipoise.engines.addresses import without_password
from equipoise.engines.base import MADE
from equipoise.engines.postgres._engine import PostgresEngine
from equipoise.engines.postgres._standing import split_name
from equipoise.engines.postgres.addresses import locate, split, table_address
from equipoise.engines.sources import Source
from equipoise.engines.stored import stamp
from equipoise.engines.stores.marks import Mark
from equipoise.errors import NoTables, SourceNotFound, did_you_mean

__all__ = [
    "address_in",
    "database_of",
    "found_at",
    "locate",
    "made_at",
    "mark",
    "reopened",
    "sees_all",
    "snapshot",
    "tables_at",
]

_TABLES = (
    "SELECT n.nspname, c.relname FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace "
    "WHERE c.relkind IN ('r', 'p') AND NOT c.relispartition AND n.nspname !~ '^pg_' "
    "AND n.nspname <> 'information_schema' AND has_schema_privilege(n.oid, 'USAGE') "
    "AND (%s::text IS NULL OR n.nspname = %s) "
    f"AND NOT starts_with(coalesce(obj_description(c.oid, 'pg_class'), ''), '{MADE}') ORDER BY 1, 2"
)
_SCHEMAS = (
    "SELECT nspname FROM pg_namespace WHERE nspname !~ '^pg_' AND nspname <> 'information_schema' "
    "AND has_schema_privilege(oid, 'USAGE') ORDER BY 1"
)
# Partitions have the rows of their table, and their own counters. A file node changes when a table is
# rewritten or emptied, and the counters whenever rows are added, changed or deleted.
_STATE = (
    "SELECT coalesce(sum(pg_relation_size(t.relid)), 0)::bigint, "
    "string_agg(concat_ws('/', c.oid, c.relfilenode, s.n_tup_ins, s.n_tup_upd, s.n_tup_del), ',' "
    "ORDER BY c.oid), (SELECT string_agg(concat_ws('/', attname, atttypid, atttypmod), ',' ORDER BY attnum) "
    "FROM pg_attribute WHERE attrelid = %s::regclass AND attnum > 0 AND NOT attisdropped) "
    "FROM (SELECT %s::regclass AS relid UNION SELECT relid FROM pg_partition_tree(%s::regclass)) AS t "
    "JOIN pg_class AS c ON c.oid = t.relid LEFT JOIN pg_stat_all_tables AS s ON s.relid = t.relid"
)
_WHICH = (
    "SELECT n.nspname, c.relname FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace "
    "WHERE c.oid = %s::regclass"
)


def tables_at(address: str) -> list[Source]:
    """Find the tables of a schema, or of all schemas, or the one that an address names.

    Views are left out, and so are tables that were made for a result.
    """
    server, ours = split(address)
    if "table" in ours:
        return [_source(address, ours["table"])]
    session = _engine().session(Source(name=address, kind="postgres", address=server))
    schema = ours.get("schema")
    with session.transaction():
        found = [f"{owner}.{table}" for owner, table in session.lines(_TABLES, schema, schema)]
        schemas = [name for (name,) in session.lines(_SCHEMAS)]
    if not found:
        shown = without_password(address)
        if schema is None or schema in schemas:
            raise NoTables(f"{shown} has no tables; views are not tables of a lake.")
        raise SourceNotFound(
            f"{shown} has no schema {schema!r}; there are: {', '.join(schemas)}."
            f"{did_you_mean(schema, schemas)}"
        )
    return [_source(address, table) for table in found]


def address_in(place: str, name: str) -> str | None:
    """Return the address of a table of a place by its name, if it is one."""
    table = split(name)[1].get("table")
    if table is None:
        return None
    found = table_address(place, table)
    return found if without_password(found) == name else None


def reopened(name: str, kind: Any, address: str, snapshot: str) -> Source:  # noqa: ARG001 (kept nowhere)
    """Return a table of a known name, without opening it; older states cannot be read again."""
    found = locate(address, {})
    return Source(name=name, kind=kind, address=found.address, table=found.table, key=found.key)


def mark(source: Source) -> Mark:
    """Name the state of a table by what the server counts, without reading it.

    The server counts changes after a transaction has ended, up to ten seconds later if its connection
    is idle. Without statistics (``track_counts``) only changes of size, file and columns are seen.
    """
    size, counted, columns = _asked(source, _STATE, 3)
    return Mark(None, int(size), stamp(f"{source.name} {counted} {columns}"))


def snapshot(source: Source) -> str:
    """Name the state of a table by its rows, all of which are read."""
    return _engine().snapshot(source)


def found_at(source: Source) -> tuple[str, ...]:
    """Name a table in full, however it is addressed; refuse one that does not exist."""
    return (*database_of(source), *_asked(source, _WHICH, 1))


def made_at(target: Source) -> tuple[str, ...]:
    """Name in full the table that would be made at an address."""
    session = _engine().session(target)
    with session.transaction():
        return (*database_of(target), *split_name(session, target.table or ""))


def sees_all(source: Source) -> bool:
    """Whether row-level security hides no row of a table from the user."""
    return not _asked(source, "SELECT row_security_active(%s::regclass)", 1)[0]


def database_of(source: Source) -> tuple[str, ...]:
    """Name the server and its database, whose tables one query can read, however it is addressed."""
    return _engine().database_of(source)


@functools.cache
def _engine() -> PostgresEngine:
    return PostgresEngine()


def _asked(source: Source, query: str, times: int) -> tuple[Any, ...]:
    """Ask a question about a table, whose name stands in the query so many times."""
    engine = _engine()
    session = engine.session(source)
    with session.transaction():
        (found,) = session.lines(query, *[engine.table_text(source)] * times)
    return found


def _source(place: str, table: str) -> Source:
    return locate(table_address(place, table), {})
