"""New tables of PostgreSQL, made of the rows of others inside of one transaction."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from equipoise.engines.base import Column, Identity
from equipoise.engines.postgres._dialect import DIALECT
from equipoise.engines.postgres._session import Session
from equipoise.engines.sources import Source
from equipoise.engines.sql import canonical_row, key_text
from equipoise.errors import InputError

if TYPE_CHECKING:
    import pyarrow as pa


class NewTable(NamedTuple):
    """A table under a temporary name, and the columns that can be written."""

    schema: str
    name: str
    final: str
    types: dict[str, str]
    """Types by column, without columns that the server computes."""

    @property
    def text(self) -> str:
        """The name in SQL."""
        return f"{DIALECT.identifier(self.schema)}.{DIALECT.identifier(self.name)}"


def split_name(session: Session, name: str) -> tuple[str, str]:
    """Split the name of a table that need not exist into its schema and its own name."""
    schema, _, table = name.rpartition(".")
    if schema:
        return schema, table
    ((current,),) = session.execute("SELECT current_schema()")
    return current, table


def make_table(session: Session, target: Source, like: str, *, is_table: bool) -> NewTable:
    """Make an empty table with the columns of another one, and with its constraints if it has some."""
    schema, final = split_name(session, target.table or "")
    name = f"equipoise_{uuid.uuid4().hex}"
    new = NewTable(schema, name, final, {})
    if is_table:
        session.execute(f"CREATE TABLE {new.text} (LIKE {like} INCLUDING ALL)")
    else:
        session.execute(f"CREATE TABLE {new.text} AS SELECT * FROM {like} AS given WITH NO DATA")
    rows = session.lines(
        "SELECT attname, format_type(atttypid, atttypmod) FROM pg_attribute WHERE attrelid = %s::regclass "
        "AND attnum > 0 AND NOT attisdropped AND attgenerated = '' ORDER BY attnum",
        new.text,
    )
    return new._replace(types=dict(rows))


def insert_rows(session: Session, new: NewTable, table: str, columns: Sequence[str]) -> None:
    """Copy rows of another table, on the server, into some columns."""
    some = [name for name in new.types if name in columns]
    names = ", ".join(map(DIALECT.identifier, some))
    values = ", ".join(f"CAST({DIALECT.identifier(n)} AS {new.types[n]})" for n in some)
    session.run(
        f"INSERT INTO {new.text} ({names}) OVERRIDING SYSTEM VALUE SELECT {values} FROM {table} AS given"
    )
    # Numbers that the server gives to later rows start after those that are there.
    counters = session.lines(
        "SELECT attname FROM pg_attribute WHERE attrelid = %s::regclass AND attidentity <> ''",
        new.text,
    )
    for (name,) in counters:
        column = DIALECT.identifier(name)
        counter = f"pg_get_serial_sequence({DIALECT.literal(new.text)}, {DIALECT.literal(name)})"
        session.execute(
            f"SELECT setval({counter}, greatest(max({column}), 1), max({column}) IS NOT NULL) FROM {new.text}"
        )


def delete_rows(
    session: Session,
    new: NewTable,
    columns: Sequence[Column],
    shown: Sequence[str],
    gone: str,
    known: Identity,
) -> int:
    """Delete rows that are named by keys, or by hashes and numbers; return how many there were."""
    listed = ", ".join(
        f"{e} AS {DIALECT.identifier(c.name)}" for e, c in zip(shown, columns, strict=True)
    )
    common = f"(SELECT ctid AS at, {listed} FROM {new.text}) AS common"
    if known.key:
        place = key_text(DIALECT, columns, known)
        which = f"SELECT at FROM {common} WHERE {place} IN (SELECT place FROM {gone} AS g)"
    else:
        hashed = f"SELECT at, {DIALECT.md5(canonical_row(DIALECT, columns))} AS h FROM {common}"
        # Of equal rows any may go.
        nth = "row_number() OVER (PARTITION BY h ORDER BY at) AS nth"
        some = f"SELECT at, h, {nth} FROM ({hashed}) AS hashed WHERE h IN (SELECT md5 FROM {gone} AS g)"
        which = f"SELECT at FROM ({some}) AS few JOIN {gone} AS g ON g.md5 = h WHERE nth <= g.n"
    return session.run(f"DELETE FROM {new.text} WHERE ctid IN ({which})")


def upload_rows(session: Session, rows: pa.Table, types: Sequence[str]) -> str:
    """Make a temporary table of rows, which ends with the transaction; return its name."""
    name = f"equipoise_{uuid.uuid4().hex}"
    session.upload(rows, name, types)
    return name


def put_in_place(session: Session, new: NewTable) -> None:
    """Give a new table its name; an older table of that name goes."""
    final = f"{DIALECT.identifier(new.schema)}.{DIALECT.identifier(new.final)}"
    found = session.lines(
        "SELECT c.relkind FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace "
        "WHERE n.nspname = %s AND c.relname = %s",
        new.schema,
        new.final,
    )
    for (kind,) in found:
        if kind not in ("r", b"r"):
            raise InputError(
                f"{new.schema}.{new.final} exists and is not a plain table; write to a table of another name."
            )
        session.execute(f"DROP TABLE {final}")
    session.execute(f"ALTER TABLE {new.text} RENAME TO {DIALECT.identifier(new.final)}")
    indexes = session.lines(
        "SELECT c.relname FROM pg_index AS i JOIN pg_class AS c ON c.oid = i.indexrelid "
        "WHERE i.indrelid = %s::regclass AND starts_with(c.relname, %s)",
        final,
        new.name,
    )
    for (index,) in indexes:
        called = index.replace(new.name, new.final, 1)[:63]
        taken = session.lines(
            "SELECT 1 FROM pg_class WHERE relname = %s AND relnamespace = %s::regnamespace",
            called,
            DIALECT.identifier(new.schema),
        )
        if not taken:
            old = f"{DIALECT.identifier(new.schema)}.{DIALECT.identifier(index)}"
            session.execute(f"ALTER INDEX {old} RENAME TO {DIALECT.identifier(called)}")
