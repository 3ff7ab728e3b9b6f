"""What a server of PostgreSQL has: tables, rights, types and collations."""

from __future__ import annotations

from collections.abc import Sequence

from equipoise.engines.base import Column
from equipoise.engines.postgres._dialect import DIALECT
from equipoise.engines.postgres._session import Session
from equipoise.engines.postgres._types import Described
from equipoise.engines.postgres.addresses import possible_names
from equipoise.engines.sources import Source
from equipoise.errors import InputError, SourceNotFound, did_you_mean


def all_tables(session: Session, schema: str | None) -> list[str]:
    """List tables and views that can be read, as schema.table."""
    rows = session.lines(
        "SELECT n.nspname, c.relname FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace "
        "WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND n.nspname !~ '^pg_' "
        "AND n.nspname <> 'information_schema' AND NOT c.relispartition "
        "AND has_schema_privilege(n.oid, 'USAGE') AND has_table_privilege(c.oid, 'SELECT') "
        "AND (%s::text IS NULL OR n.nspname = %s) ORDER BY 1, 2",
        schema,
        schema,
    )
    return [f"{schema}.{table}" for schema, table in rows]


def table_text(session: Session, source: Source) -> str:
    """Return the quoted name of a table; refuse one that does not exist, and list near names."""
    name = source.table or ""
    for schema, table in possible_names(name):
        found = session.lines(
            "SELECT n.nspname, c.relname, has_table_privilege(c.oid, 'SELECT'), array(SELECT attname::text "
            "FROM pg_attribute WHERE attrelid = c.oid AND attnum > 0 AND NOT attisdropped "
            "AND has_column_privilege(c.oid, attnum, 'SELECT') ORDER BY attnum) "
            "FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace "
            "WHERE c.relname = %s AND c.relkind IN ('r', 'p', 'v', 'm', 'f') AND "
            "CASE WHEN %s = '' THEN pg_table_is_visible(c.oid) ELSE n.nspname = %s END",
            table,
            schema,
            schema,
        )
        for owner, known, readable, columns in found:
            if not readable:
                raise _no_right(source, f"{owner}.{known}", columns)
            return f"{DIALECT.identifier(owner)}.{DIALECT.identifier(known)}"
    known = all_tables(session, None)
    listed = f"; it has: {', '.join(known[:20])}{' …' if len(known) > 20 else ''}" if known else ""
    raise SourceNotFound(
        f"{source.name} has no table {name!r}{listed}.{_near_name(session, name, known)}"
    )


def _near_name(session: Session, name: str, known: Sequence[str]) -> str:
    """Ask for the nearest table; one of a schema that is not searched is named with it."""
    ((searched,),) = session.lines("SELECT current_schemas(false)::text[]")
    pairs = [table.partition(".")[::2] for table in known]
    other = [f"{schema}.{table}" for schema, table in pairs if table == name]
    if other:
        return f" Did you mean {other[0]!r}?"
    return did_you_mean(name, [*known, *(table for schema, table in pairs if schema in searched)])


_WHOLE = """
    SELECT pg_postmaster_start_time()::text, current_database(), c.oid FROM pg_class AS c
    WHERE c.oid = %s AND c.relkind IN ('r', 'p', 'm') AND has_schema_privilege(c.relnamespace, 'USAGE')
    AND has_table_privilege(c.oid, 'SELECT') AND NOT row_security_active(c.oid)
"""


def whole_table(session: Session, number: int) -> tuple[str, str, int] | None:
    """Return server, database and number of a stored table; None if not every row of it can be read."""
    for server, database, known in session.lines(_WHOLE, number):
        return server, database, known
    return None


# Tables that inherit from another have indexes of their own; partitions share those of the whole.
_UNIQUE = """
    WITH named AS (
        SELECT a.attnum, a.attnotnull FROM pg_attribute AS a
        WHERE a.attrelid = %s::regclass AND a.attname = ANY(%s)
    )
    SELECT 1 FROM pg_index AS i JOIN pg_class AS c ON c.oid = i.indrelid
    WHERE i.indrelid = %s::regclass AND i.indisunique AND i.indisvalid AND i.indimmediate
    AND i.indpred IS NULL AND i.indexprs IS NULL AND (SELECT bool_and(attnotnull) FROM named)
    AND NOT EXISTS (
        SELECT FROM unnest(i.indkey[0:i.indnkeyatts - 1]) AS own(number)
        WHERE own.number NOT IN (SELECT attnum FROM named)
    )
    AND (c.relkind = 'p' OR NOT EXISTS (SELECT FROM pg_inherits WHERE inhparent = c.oid))
    LIMIT 1
"""


def is_unique(session: Session, table: str, columns: Sequence[str]) -> bool:
    """Whether an index keeps the values of columns unique, and none of them can be null."""
    return bool(session.lines(_UNIQUE, table, list(columns), table))


def _no_right(source: Source, table: str, columns: Sequence[str]) -> InputError:
    some = (
        f" You may read {', '.join(columns)}: a view of these columns would do." if columns else ""
    )
    what = "all columns of " if columns else ""
    return InputError(
        f"{source.name} cannot be read: you have no right to select from {what}{table}; ask its owner "
        f"for it.{some}"
    )


def is_plain(session: Session, text: str) -> bool:
    """Whether a name is that of a table, and not of a view."""
    ((kind,),) = session.lines("SELECT relkind FROM pg_class WHERE oid = %s::regclass", text)
    return kind in ("r", "p", b"r", b"p")


def other_types(session: Session, described: Sequence[Described]) -> dict[int, tuple[str, bool]]:
    """Return the names of types that not every server has, and whether they are enumerations."""
    oids = [column.oid for column in described if not column.is_known]
    if not oids:
        return {}
    rows = session.lines(
        "SELECT oid, lower(format_type(oid, NULL)), typtype = 'e' FROM pg_type WHERE oid = ANY(%s)",
        oids,
    )
    return {oid: (name, is_enum) for oid, name, is_enum in rows}


def loose_collations(session: Session, text: str, columns: Sequence[Column]) -> dict[str, str]:
    """Find columns whose collation takes different texts for equal, as one regardless of case."""
    texts = [c.name for c in columns if c.type == "VARCHAR"]
    if not texts or not session.lines("SELECT 1 FROM pg_collation WHERE NOT collisdeterministic"):
        return {}
    asked = ", ".join(f"pg_collation_for({DIALECT.identifier(name)})" for name in texts)
    # An outer join, so that a table without rows is answered, too.
    (row,) = session.execute(
        f"SELECT {asked} FROM (SELECT 1) AS one LEFT JOIN {text} AS input ON false"
    )
    collations = dict(zip(texts, row, strict=True))
    loose = session.lines(
        "SELECT name FROM unnest(%s::text[]) AS name WHERE EXISTS (SELECT 1 FROM pg_collation WHERE "
        "NOT collisdeterministic AND oid = to_regcollation(name))",
        list({name for name in row if name is not None}),
    )
    named = {name for (name,) in loose}
    return {column: name for column, name in collations.items() if name in named}
