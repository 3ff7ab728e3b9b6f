"""New tables of PostgreSQL, made of the rows of others inside of one transaction."""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from equipoise.engines.base import Column, Identity
from equipoise.engines.postgres._dialect import DIALECT
from equipoise.engines.postgres._session import Session
from equipoise.engines.postgres.addresses import name_of_new
from equipoise.engines.sources import Source
from equipoise.engines.sql import canonical_row, key_text, mark_of
from equipoise.errors import InputError

if TYPE_CHECKING:
    import pyarrow as pa

_LENGTH = 63
"""Maximum length of a name in PostgreSQL."""

_COLUMNS = (
    "SELECT a.attname, format_type(a.atttypid, a.atttypmod), a.attgenerated <> '', "
    "pg_get_expr(d.adbin, d.adrelid), CASE WHEN t.typtype = 'e' THEN 'enum' "
    "WHEN a.atttypid IN (1042, 1043) AND a.atttypmod > 0 THEN 'length' "
    "WHEN a.atttypid = 2950 THEN 'uuid' ELSE '' END, a.atttypmod - 4, a.attnotnull "
    "FROM pg_attribute AS a JOIN pg_type AS t ON t.oid = a.atttypid "
    "LEFT JOIN pg_attrdef AS d ON d.adrelid = a.attrelid AND d.adnum = a.attnum "
    "WHERE a.attrelid = %s::regclass AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum"
)
_COUNTERS = (
    "SELECT a.attname, a.attidentity <> '', pg_get_serial_sequence(%s, a.attname) FROM pg_attribute AS a "
    "LEFT JOIN pg_attrdef AS d ON d.adrelid = a.attrelid AND d.adnum = a.attnum "
    "WHERE a.attrelid = %s::regclass AND a.attnum > 0 AND NOT a.attisdropped "
    "AND pg_get_serial_sequence(%s, a.attname) IS NOT NULL "
    "AND (a.attidentity <> '' OR pg_get_expr(d.adbin, d.adrelid) LIKE 'nextval(%%')"
)
_STANDING = (
    "SELECT c.relkind::text, coalesce(obj_description(c.oid, 'pg_class'), ''), "
    "(SELECT min(inhparent::regclass::text) FROM pg_inherits WHERE inhrelid = c.oid) FROM pg_class AS c "
    "JOIN pg_namespace AS n ON n.oid = c.relnamespace WHERE n.nspname = %s AND c.relname = %s"
)


class NewColumn(NamedTuple):
    """A column of a new table."""

    name: str
    type: str
    is_generated: bool
    default: str | None
    """The expression that the server fills it with, if it has one."""

    limit: str
    length: int
    is_required: bool
    """Whether it cannot be null."""

    @property
    def text(self) -> str:
        """The name in SQL."""
        return DIALECT.identifier(self.name)

    def taken(self, *, foreign: bool) -> str:
        """Write a value that was sent.

        One of another table is null if the column cannot hold it. If it is missing, and the column must
        have a value, it is the default, whatever other rows have.
        """
        if not foreign:
            return self._sent
        value = f"CASE WHEN {self._fits} THEN {self._cast} END" if self._fits else self._sent
        if self.is_required and self.default:
            filled = f"CAST({self.default} AS {self.type})"
            return f"CASE WHEN {self.text} IS NULL THEN {filled} ELSE {value} END"
        return value

    @property
    def _sent(self) -> str:
        # Only what is not cast is refused if it is too long; a cast would shorten it.
        return self.text if self.limit == "length" else self._cast

    @property
    def _cast(self) -> str:
        return f"CAST({self.text} AS {self.type})"

    @property
    def _fits(self) -> str | None:
        """Whether the column can hold a value, if not all values are refused that it cannot."""
        return {
            "enum": f"{self.text} = ANY (enum_range(NULL::{self.type})::text[])",
            "length": f"length({self.text}) <= {self.length}",
            "uuid": f"{self.text} ~* '^[0-9a-f]{{8}}(-[0-9a-f]{{4}}){{3}}-[0-9a-f]{{12}}$'",
        }.get(self.limit)


class NewTable(NamedTuple):
    """A table under a temporary name, its columns, and the sequences that number its rows."""

    schema: str
    name: str
    final: str
    columns: tuple[NewColumn, ...]
    counters: dict[str, str]

    @property
    def text(self) -> str:
        """The name in SQL."""
        return _text(self.schema, self.name)

    @property
    def writable(self) -> list[NewColumn]:
        """The columns that the server does not compute."""
        return [column for column in self.columns if not column.is_generated]

    @contextlib.contextmanager
    def named(self) -> Iterator[None]:
        """Call the table by its own name in errors."""
        try:
            yield
        except InputError as error:
            error.args = (str(error).replace(self.name, self.final),)
            raise


def _text(schema: str, name: str) -> str:
    return f"{DIALECT.identifier(schema)}.{DIALECT.identifier(name)}"


def split_name(session: Session, name: str) -> tuple[str, str]:
    """Split the name of a table that need not exist into its schema and its own name."""
    schema, table = name_of_new(name)
    if schema:
        return schema, table
    ((current,),) = session.execute("SELECT current_schema()")
    if current is None:
        raise InputError(
            f"the search_path of this connection has no schema for a new table {name!r}; name one, as in "
            f"table=public.{name}."
        )
    return current, table


def require_free(session: Session, target: Source, *, only: str) -> None:
    """Refuse a name that cannot be given to a new table."""
    schema, table = split_name(session, target.table or "")
    known = session.lines("SELECT nspname FROM pg_namespace WHERE nspname = %s", schema)
    if not known:
        raise InputError(f"{target.name} has no schema {schema!r}; create it first.")
    if len(table.encode()) > _LENGTH:
        raise InputError(
            f"{table!r} is longer than the {_LENGTH} bytes that a name has in PostgreSQL; choose a shorter name."
        )
    for kind, comment, whole in session.lines(_STANDING, schema, table):
        if kind != "r":
            raise InputError(
                f"{schema}.{table} exists and is not a plain table; write to a table of another name."
            )
        if whole is not None:  # a partition, or a table that inherits from another
            raise InputError(
                f"{schema}.{table} is a part of {whole}, which would lose its rows; write to a table of another name."
            )
        if not comment.startswith(only):
            raise InputError(
                f"{target.name} exists and its comment does not begin with {only!r}, so it is not replaced; "
                "write to a table of another name."
            )


def make_table(session: Session, target: Source, like: str, *, is_table: bool) -> NewTable:
    """Make an empty table with the columns of another one, and with its constraints if it has some."""
    schema, final = split_name(session, target.table or "")
    new = NewTable(schema, f"equipoise_{uuid.uuid4().hex}", final, (), {})
    counters = {}
    if is_table:
        session.execute(f"CREATE TABLE {new.text} (LIKE {like} INCLUDING ALL)")
        for name, is_identity, _ in session.lines(_COUNTERS, like, like, like):
            if not is_identity:
                _give_own_sequence(session, new, name)
            ((counters[name],),) = session.lines(
                "SELECT pg_get_serial_sequence(%s, %s)", new.text, name
            )
    else:
        session.execute(f"CREATE TABLE {new.text} AS SELECT * FROM {like} AS given WITH NO DATA")
    columns = tuple(NewColumn(*line) for line in session.lines(_COLUMNS, new.text))
    return new._replace(columns=columns, counters=counters)


def _give_own_sequence(session: Session, new: NewTable, column: str) -> None:
    """Number a column by a sequence of the new table, not by that of the old one, which stays as it is."""
    sequence = _text(new.schema, f"{new.name}_{column}_seq"[:_LENGTH])
    name = DIALECT.identifier(column)
    session.execute(
        f"CREATE SEQUENCE {sequence} OWNED BY {new.text}.{name}; "
        f"ALTER TABLE {new.text} ALTER COLUMN {name} SET DEFAULT nextval({DIALECT.literal(sequence)})"
    )


def copy_rows(session: Session, new: NewTable, table: str) -> None:
    """Copy all rows of a table of the same columns, on the server."""
    names = ", ".join(column.text for column in new.writable)
    values = ", ".join(f"CAST({column.text} AS {column.type})" for column in new.writable)
    session.run(
        f"INSERT INTO {new.text} ({names}) OVERRIDING SYSTEM VALUE SELECT {values} FROM {table} AS given"
    )
    _count_on(session, new)


def insert_rows(
    session: Session, new: NewTable, sent: str, some: Sequence[str], line: str, *, foreign: bool
) -> str:
    """Insert rows that were sent, in the order of the column ``line``, with values of some columns.

    The others are left to the server. Returns the name of a table of the rows as they are inserted.
    """
    given = [_given(new, column, some, foreign=foreign) for column in new.writable]
    complete = [
        f"CAST({column.default} AS {column.type}) AS {column.text}"
        if column.is_generated
        else column.text
        for column in new.columns
    ]
    stage, at = f"equipoise_{uuid.uuid4().hex}", DIALECT.identifier(line)
    session.run(
        f"CREATE TEMPORARY TABLE {stage} ON COMMIT DROP AS SELECT {', '.join(complete)}, {at} "
        f"FROM (SELECT {', '.join(given)}, {at} FROM {sent} ORDER BY {at}) AS given"
    )
    names = ", ".join(column.text for column in new.writable)
    session.run(
        f"INSERT INTO {new.text} ({names}) OVERRIDING SYSTEM VALUE SELECT {names} FROM {stage} ORDER BY {at}"
    )
    _count_on(session, new)
    return stage


def _given(new: NewTable, column: NewColumn, some: Sequence[str], *, foreign: bool) -> str:
    """Write a value of a row to insert: what was sent, a number of the server, or its default."""
    counter = new.counters.get(column.name)
    is_numbered = counter is not None and (foreign or column.name not in some)
    if is_numbered:
        value = f"CAST(nextval({DIALECT.literal(counter or '')}) AS {column.type})"
    elif column.name in some:
        value = column.taken(foreign=foreign)
    else:
        value = f"CAST({column.default or 'NULL'} AS {column.type})"
    return f"{value} AS {column.text}"


def _count_on(session: Session, new: NewTable) -> None:
    """Let numbers that the server gives to later rows start after those that are there."""
    for name, counter in new.counters.items():
        column = DIALECT.identifier(name)
        session.execute(
            f"SELECT setval({DIALECT.literal(counter)}, greatest(max({column}), 1), max({column}) IS NOT NULL) "
            f"FROM {new.text}"
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
    common, at = f"{with_ctid(new, columns, shown)} AS common", f"at{mark_of(columns)}"
    if known.key:
        place = key_text(DIALECT, columns, known)
        which = f"SELECT {at} FROM {common} WHERE {place} IN (SELECT place FROM {gone} AS g)"
    else:
        hashed = (
            f"SELECT {at} AS at, {DIALECT.md5(canonical_row(DIALECT, columns))} AS h FROM {common}"
        )
        # Of equal rows any may go.
        nth = "row_number() OVER (PARTITION BY h ORDER BY at) AS nth"
        some = f"SELECT at, h, {nth} FROM ({hashed}) AS hashed WHERE h IN (SELECT md5 FROM {gone} AS g)"
        which = f"SELECT at FROM ({some}) AS few JOIN {gone} AS g ON g.md5 = h WHERE nth <= g.n"
    return session.run(f"DELETE FROM {new.text} WHERE ctid IN ({which})")


def with_ctid(new: NewTable, columns: Sequence[Column], shown: Sequence[str]) -> str:
    """Write a new table in types that all engines know, with the places of its rows as ``at…``."""
    listed = ", ".join(
        f"{e} AS {DIALECT.identifier(c.name)}" for e, c in zip(shown, columns, strict=True)
    )
    return f"(SELECT ctid AS at{mark_of(columns)}, {listed} FROM {new.text})"


def upload_rows(session: Session, rows: pa.Table, types: Sequence[str]) -> str:
    """Make a temporary table of rows, which ends with the transaction; return its name."""
    name = f"equipoise_{uuid.uuid4().hex}"
    session.upload(rows, name, types)
    return name


def put_in_place(session: Session, new: NewTable, comment: str) -> None:
    """Give a new table its name; an older table of that name goes."""
    final = _text(new.schema, new.final)
    session.execute(f"DROP TABLE IF EXISTS {final}")
    session.execute(f"ALTER TABLE {new.text} RENAME TO {DIALECT.identifier(new.final)}")
    if comment:
        session.execute(f"COMMENT ON TABLE {final} IS {DIALECT.literal(comment)}")
    owned = session.lines(
        "SELECT c.relname, c.relkind::text FROM pg_class AS c WHERE starts_with(c.relname, %s) AND "
        "(c.oid IN (SELECT indexrelid FROM pg_index WHERE indrelid = %s::regclass) OR c.oid IN "
        "(SELECT objid FROM pg_depend WHERE refobjid = %s::regclass AND classid = 'pg_class'::regclass))",
        new.name,
        final,
        final,
    )
    for name, kind in owned:
        called = name.replace(new.name, new.final, 1)[:_LENGTH]
        taken = session.lines(
            "SELECT 1 FROM pg_class WHERE relname = %s AND relnamespace = %s::regnamespace",
            called,
            DIALECT.identifier(new.schema),
        )
        if not taken:
            what = "SEQUENCE" if kind == "S" else "INDEX"
            old = _text(new.schema, name)
            session.execute(f"ALTER {what} {old} RENAME TO {DIALECT.identifier(called)}")
