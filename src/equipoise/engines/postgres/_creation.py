"""New tables of PostgreSQL, made of the rows of others inside of one transaction."""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from psycopg import errors

from equipoise.engines.base import Column, Identity
from equipoise.engines.postgres._belongings import (
    Belongings,
    add_foreign_keys,
    former_names,
    hand_over,
    take_over,
)
from equipoise.engines.postgres._dialect import DIALECT
from equipoise.engines.postgres._session import Session, reason_of
from equipoise.engines.postgres._standing import LENGTH, Standing, name_taken, name_text, split_name
from equipoise.engines.sources import Source
from equipoise.engines.sql import canonical_row, key_text, mark_of
from equipoise.errors import InputError

if TYPE_CHECKING:
    import pyarrow as pa

# The values of a domain are those of the type below, which another domain may stand between.
_COLUMNS = """
    WITH RECURSIVE known AS (
        SELECT a.attnum AS number, t.*, a.atttypmod AS modifier FROM pg_attribute AS a JOIN pg_type AS t ON t.oid = a.atttypid
        WHERE a.attrelid = %s::regclass AND a.attnum > 0 AND NOT a.attisdropped
        UNION ALL SELECT k.number, t.*, k.typtypmod FROM known AS k JOIN pg_type AS t ON t.oid = k.typbasetype WHERE k.typtype = 'd'
    )
    SELECT a.attname, format_type(a.atttypid, a.atttypmod), a.attgenerated <> '',
        coalesce(pg_get_expr(d.adbin, d.adrelid), own.typdefault), CASE WHEN k.typtype = 'e' THEN 'enum'
        WHEN k.oid IN (1042, 1043) AND k.modifier > 0 THEN 'length' WHEN k.oid = 2950 THEN 'uuid' ELSE '' END,
        format_type(k.oid, NULL), k.modifier - 4,
        a.attnotnull OR (SELECT bool_or(typnotnull) FROM known WHERE number = a.attnum)
    FROM known AS k JOIN pg_attribute AS a ON a.attrelid = %s::regclass AND a.attnum = k.number
    JOIN pg_type AS own ON own.oid = a.atttypid LEFT JOIN pg_attrdef AS d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
    WHERE k.typtype <> 'd' ORDER BY a.attnum
"""
_COUNTERS = (
    "SELECT a.attname, a.attidentity <> '', pg_get_serial_sequence(%s, a.attname) FROM pg_attribute AS a "
    "LEFT JOIN pg_attrdef AS d ON d.adrelid = a.attrelid AND d.adnum = a.attnum "
    "WHERE a.attrelid = %s::regclass AND a.attnum > 0 AND NOT a.attisdropped "
    "AND pg_get_serial_sequence(%s, a.attname) IS NOT NULL "
    "AND (a.attidentity <> '' OR pg_get_expr(d.adbin, d.adrelid) LIKE 'nextval(%%')"
)

_SEQUENCE = (
    "SELECT format('AS %%s INCREMENT %%s MINVALUE %%s MAXVALUE %%s START %%s CACHE %%s %%s', "
    "format_type(seqtypid, NULL), seqincrement, seqmin, seqmax, seqstart, seqcache, "
    "CASE WHEN seqcycle THEN 'CYCLE' ELSE 'NO CYCLE' END) FROM pg_sequence WHERE seqrelid = %s::regclass"
)
_KINDS = {"S": "SEQUENCE", "statistics": "STATISTICS"}
_OWNED = (
    "SELECT c.relname, c.relkind::text FROM pg_class AS c WHERE "
    "c.oid IN (SELECT indexrelid FROM pg_index WHERE indrelid = %s::regclass) OR c.relkind = 'S' AND c.oid IN "
    "(SELECT objid FROM pg_depend WHERE refobjid = %s::regclass AND classid = 'pg_class'::regclass) "
    "UNION ALL SELECT stxname, 'statistics' FROM pg_statistic_ext WHERE stxrelid = %s::regclass"
)
_TAKEN = (
    "SELECT 1 FROM pg_class WHERE relname = %s AND relnamespace = %s::regnamespace UNION ALL "
    "SELECT 1 FROM pg_statistic_ext WHERE stxname = %s AND stxnamespace = %s::regnamespace"
)


class NewColumn(NamedTuple):
    """A column of a new table."""

    name: str
    type: str
    is_generated: bool
    default: str | None
    """The expression that the server fills it with, if it has one."""

    limit: str
    base: str
    """The type of its values; of a domain that below it."""

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
            "enum": f"{self.text} = ANY (enum_range(NULL::{self.base})::text[])",
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
    reached: dict[str, int]
    """By column that a sequence numbers, the last number that was given before."""

    like: str = ""
    """The table that it has the constraints of, if there is one."""

    kept: Belongings | None = None
    """What it takes over from the table that it replaces."""

    @property
    def text(self) -> str:
        """The name in SQL."""
        return name_text(self.schema, self.name)

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


def make_table(
    session: Session, target: Source, like: str, standing: Standing | None, *, is_table: bool
) -> NewTable:
    """Make an empty table with the columns of another one, and with its constraints if it has some.

    It will take the place of a standing table, which may be the other one itself.
    """
    schema, final = split_name(session, target.table or "")
    new = NewTable(schema, f"equipoise_{uuid.uuid4().hex}", final, (), {}, {})
    former = {}
    if is_table:
        new = new._replace(like=like)
        session.execute(f"CREATE TABLE {new.text} (LIKE {like} INCLUDING ALL)")
        for name, is_identity, sequence in session.lines(_COUNTERS, like, like, like):
            former[name] = sequence
            if not is_identity:
                _give_own_sequence(session, new, name, sequence)
            ((new.counters[name],),) = session.lines(
                "SELECT pg_get_serial_sequence(%s, %s)", new.text, name
            )
    else:
        session.execute(f"CREATE TABLE {new.text} AS SELECT * FROM {like} AS given WITH NO DATA")
    columns = tuple(NewColumn(*line) for line in session.lines(_COLUMNS, new.text, new.text))
    new = new._replace(columns=columns)
    if standing is None:
        return new
    is_copy = is_table and session.lines("SELECT %s::regclass::oid", like) == [(standing.number,)]
    if is_copy:  # numbers of rows that are gone are not given again
        for name, sequence in former.items():
            for (last,) in session.execute(f"SELECT last_value FROM {sequence} WHERE is_called"):
                new.reached[name] = last
    return new._replace(kept=take_over(session, standing, former, is_copy=is_copy))


def _give_own_sequence(session: Session, new: NewTable, column: str, like: str) -> None:
    """Number a column by a sequence of the new table, not by that of the old one, which stays as it is."""
    sequence = name_text(new.schema, f"{new.name}_{column}_seq"[:LENGTH])
    name = DIALECT.identifier(column)
    ((counting,),) = session.lines(_SEQUENCE, like)
    session.execute(
        f"CREATE SEQUENCE {sequence} {counting} OWNED BY {new.text}.{name}; "
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
    session: Session,
    new: NewTable,
    sent: str,
    lacking: Mapping[str, Sequence[range]],
    line: str,
    *,
    foreign: bool,
) -> str:
    """Insert rows that were sent, in the order of their numbers in the column ``line``.

    What rows are ``lacking`` is left to the server, which may have a default for it. Returns the name
    of a table of the rows as they are inserted.
    """
    given = [
        _given(new, column, line, lacking.get(column.name, ()), foreign=foreign)
        for column in new.writable
    ]
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


def _given(
    new: NewTable, column: NewColumn, line: str, lacking: Sequence[range], *, foreign: bool
) -> str:
    """Write a value of a row to insert: what was sent, or a number or the default of the server."""
    counter = new.counters.get(column.name)
    own = f"CAST({column.default or 'NULL'} AS {column.type})"
    if counter is not None:
        own = f"CAST(nextval({DIALECT.literal(counter)}) AS {column.type})"
    at = DIALECT.identifier(line)
    gaps = " OR ".join(f"{at} BETWEEN {r.start} AND {r.stop - 1}" for r in lacking)
    if counter is not None and foreign:
        value = own
    elif gaps:
        value = f"CASE WHEN {gaps} THEN {own} ELSE {column.taken(foreign=foreign)} END"
    else:
        value = column.taken(foreign=foreign)
    return f"{value} AS {column.text}"


def _count_on(session: Session, new: NewTable) -> None:
    """Let numbers that the server gives to later rows start after those that are there."""
    for name, counter in new.counters.items():
        last = f"greatest(max({DIALECT.identifier(name)}), {new.reached.get(name, 'NULL')})"
        named = DIALECT.literal(counter)
        session.execute(
            f"SELECT setval({named}, {last}) FROM {new.text} "
            f"HAVING {last} >= (SELECT seqmin FROM pg_sequence WHERE seqrelid = {named}::regclass)"
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
    d = session.dialect
    if known.key:
        place = key_text(d, columns, known)
        which = f"SELECT {at} FROM {common} WHERE {place} IN (SELECT place FROM {gone} AS g)"
    else:
        hashed = f"SELECT {at} AS at, {d.md5(canonical_row(d, columns))} AS h FROM {common}"
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


def complete_table(session: Session, new: NewTable) -> None:
    """Give a table that has all of its rows the foreign keys that these must satisfy."""
    if new.like:
        add_foreign_keys(session, new.like, new.text)


def put_in_place(session: Session, new: NewTable, target: Source, comment: str) -> None:
    """Give a new table its name; the table that has it goes, if it was locked before."""
    final = name_text(new.schema, new.final)
    if new.kept is not None:
        _drop(session, final)
    try:
        session.execute(f"ALTER TABLE {new.text} RENAME TO {DIALECT.identifier(new.final)}")
    except errors.DuplicateTable:
        raise name_taken(target) from None
    comment = comment or (new.kept.comment if new.kept else "")
    if comment:
        session.execute(f"COMMENT ON TABLE {final} IS {DIALECT.literal(comment)}")
    _rename_owned(session, new, final)
    if new.kept is not None:
        hand_over(session, final, new.kept)


def _drop(session: Session, table: str) -> None:
    """Drop a table, unless something else needs it."""
    session.lock_table(table, "ACCESS EXCLUSIVE")
    try:
        session.execute(f"DROP TABLE {table}")
    except errors.DependentObjectsStillExist as error:
        why = "; ".join((error.diag.message_detail or reason_of(error)).splitlines())
        raise InputError(
            f"{table} is not replaced, because other things need it: {why}. Nothing was written; write to a "
            "table of another name."
        ) from None


def _rename_owned(session: Session, new: NewTable, final: str) -> None:
    """Call indexes, statistics and sequences as they were called before, or else after the table."""
    former = former_names(session, final, new.kept) if new.kept else {}
    for name, kind in session.lines(_OWNED, final, final, final):
        after = name.replace(new.name, new.final, 1)[:LENGTH]
        called = former.get(name, after)
        taken = session.lines(
            _TAKEN,
            *(called, DIALECT.identifier(new.schema)) * 2,
        )
        if called != name and not taken:
            old = name_text(new.schema, name)
            session.execute(
                f"ALTER {_KINDS.get(kind, 'INDEX')} {old} RENAME TO {DIALECT.identifier(called)}"
            )
