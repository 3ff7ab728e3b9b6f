"""The verbs over PostgreSQL."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, TypeVar, cast

import psycopg
import pyarrow as pa
import pyarrow.compute as pc

from equipoise.counts import CountRequest, Counts
from equipoise.engines import sql
from equipoise.engines.base import Column, Identity, MadeTable, Middle, Part, has_changed
from equipoise.engines.choices import departed, rows_but
from equipoise.engines.column_names import refuse_duplicates
from equipoise.engines.column_types import collated_type, is_text, unencoded_type
from equipoise.engines.database import Database, as_type, require_comparable
from equipoise.engines.postgres._catalogue import (
    all_tables,
    is_plain,
    is_unique,
    loose_collations,
    other_types,
    table_text,
    whole_table,
)
from equipoise.engines.postgres._creation import (
    NewTable,
    complete_table,
    copy_rows,
    delete_rows,
    insert_rows,
    make_table,
    put_in_place,
    upload_rows,
    with_ctid,
)
from equipoise.engines.postgres._dialect import DIALECT, PostgresDialect
from equipoise.engines.postgres._encodings import is_known
from equipoise.engines.postgres._profiles import profile_table
from equipoise.engines.postgres._session import Lost, Session
from equipoise.engines.postgres._standing import lock_standing, require_free
from equipoise.engines.postgres._types import type_of
from equipoise.engines.profiling import Profile
from equipoise.engines.sources import Source
from equipoise.errors import InputError, Unsupported
from equipoise.progress import Reporter, silent
from equipoise.values import Value

V = TypeVar("V", bound=Callable[..., Any])


def _retried(verb: V) -> V:
    """Repeat a verb that only reads, once, if the connection was lost; but not a part of a transaction."""

    @functools.wraps(verb)
    def tried(self: PostgresEngine, source: Source, *args: Any, **options: Any) -> Any:
        try:
            return verb(self, source, *args, **options)
        except Lost:
            if not self.session(source).can_reconnect:
                raise
            return verb(self, source, *args, **options)

    return cast("V", tried)


class PostgresEngine(Database):
    """The verbs over tables of PostgreSQL 13 or newer.

    Only counts and chosen rows leave the server. Each verb works in one transaction, which is
    repeatable and read-only, and a statement has a limit of an hour unless the server or the address
    sets another one. ``address`` names the server that frames are given to.
    """

    name: ClassVar[str] = "postgres"
    dialect = DIALECT
    reads: ClassVar[Mapping[str, str]] = {
        "PostgreSQL table": "postgresql://user@host/database?table=schema.table, also a view",
        "psycopg connection": "(connection, 'schema.table') in Python",
        "ibis table": "of its backend postgres, in Python",
        "frame": "pandas, polars, Arrow; sent to the server",
        "SQL": "that of PostgreSQL, over a table called input",
    }
    writes: ClassVar[tuple[str, ...]] = ()
    ways: ClassVar[Mapping[str, str]] = {
        "rows are known by": "the columns that ?id= names, which must be a key, else by hash and occurrence",
        "tables are made": "in one transaction, with the constraints, foreign keys and indexes of the first table; an old "
        "one is locked and replaced, and keeps its owner and rights; its own copy also policies, triggers and comment",
        "reading is": "one repeatable, read-only transaction for each step",
        "not comparable": "types other than numbers, text, booleans, dates and times; loose collations",
    }

    def __init__(self, address: str | None = None, *, report: Reporter = silent) -> None:
        self._default = address
        self._report = report
        self._sessions: dict[str | int, Session] = {}

    def close(self) -> None:
        """Close the connections that were made."""
        for session in self._sessions.values():
            session.close()
        self._sessions.clear()

    def session(self, source: Source) -> Session:
        """Return the session of a source's server."""
        if source.kind not in ("postgres", "frame"):
            raise Unsupported(
                f"the postgres engine cannot read {source.kind} ({source.name}), only "
                f"{', '.join(self.reads)}; use the duckdb engine."
            )
        given = source.data if source.kind == "postgres" else None
        where = given if given is not None else source.address or self._default
        if where is None:
            raise Unsupported(
                "the postgres engine needs the address of a server for a frame; use the duckdb engine."
            )
        name = where if isinstance(where, str) else id(where)
        return self._sessions.setdefault(name, Session(where, self._report))

    def _dialect(self, source: Source) -> PostgresDialect:
        return self.session(source).dialect

    def table_text(self, source: Source) -> str:
        """Return the quoted name of a table; refuse one that does not exist or cannot be read."""
        session = self.session(source)
        with session.transaction():
            return table_text(session, source)

    def _guarantees_key(self, source: Source) -> bool:
        """Whether an index of the table keeps the columns of its key unique, none of which can be null."""
        if source.kind != "postgres" or source.sql is not None:
            return False
        session = self.session(source)
        return is_unique(session, table_text(session, source), source.key)

    @_retried
    def snapshot(self, source: Source) -> str:
        """Name the state of a table by its rows."""
        return super().snapshot(source)

    # -------------------------------------------------------------------- verbs

    @_retried
    def tables(self, source: Source) -> tuple[str, ...]:
        """Names of the tables of a schema, or of all schemas but those of the server."""
        if source.kind == "frame":
            return (source.name,)
        with self.session(source).transaction():
            return tuple(all_tables(self.session(source), source.table))

    @_retried
    def schema(self, source: Source) -> tuple[Column, ...]:
        """The columns of a table."""
        return super().schema(source)

    @_retried
    def profile(self, source: Source) -> Profile:
        """Profile the columns of a table; refuse a key that is not one."""
        title = f"profiling {source.name}"
        with self._opened(source) as (table, columns):
            self._refuse_wrong_key(source, table, columns)
            return profile_table(
                self._dialect(source),
                table,
                columns,
                lambda query: self._arrow(source, query, title),
            )

    @_retried
    def counts(self, source: Source, request: CountRequest) -> Counts:
        """Count the rows of each cell, in one scan."""
        return super().counts(source, request)

    @_retried
    def distinct(self, source: Source, column: str, limit: int = 1000) -> dict[Value, int]:
        """Count the rows of each value of a column, most frequent first."""
        return super().distinct(source, column, limit)

    @_retried
    def middle(self, source: Source, column: str, na: Sequence[str] = ()) -> Middle:
        """Find the middle of the numbers of a column."""
        return super().middle(source, column, na)

    @_retried
    def read(self, source: Source, columns: Sequence[str] | None = None) -> pa.Table:
        """Read all rows of a table, or of some of its columns, in no certain order."""
        return super().read(source, columns)

    @_retried
    def rows(
        self,
        source: Source,
        request: CountRequest,
        take: Counts,
        seed: int = 0,
        *,
        rest: bool = False,
        located: bool = False,
    ) -> pa.Table:
        """Choose rows by cell; see :class:`~equipoise.engines.base.Engine`."""
        return super().rows(source, request, take, seed, rest=rest, located=located)

    @_retried
    def fetch(self, source: Source, places: Sequence[Any]) -> pa.Table:
        """Fetch the rows at some places; see :class:`~equipoise.engines.base.Engine`."""
        return super().fetch(source, places)

    @_retried
    def require_key(self, source: Source) -> None:
        """Refuse a table whose rows are known by a key that is none."""
        super().require_key(source)

    def is_near(self, target: Source, source: Source) -> bool:
        """Whether the connection of a table sees the same rows of a source as the source's own one.

        A table of an open transaction is by itself. A query or a view may mean something else to another
        connection, whose user and search path may differ.
        """
        if source.kind == "frame" or self.session(target) is self.session(source):
            return True
        if target.data is not None or source.data is not None:
            return False
        if source.sql is not None or source.query is not None:
            return False
        own, near = self.session(source), self.session(target)
        with own.transaction():
            ((number,),) = own.lines("SELECT %s::regclass::oid", table_text(own, source))
            seen = whole_table(own, number)
        with near.transaction():
            return seen is not None and whole_table(near, number) == seen

    def database_of(self, source: Source) -> tuple[Any, ...]:
        """Name the server and the database of a source, however they are addressed."""
        session = self.session(source)
        with session.transaction():
            (found,) = session.lines("SELECT pg_postmaster_start_time()::text, current_database()")
        return found

    def require_free(self, target: Source, *, only: str = "") -> None:
        """Refuse a name under which no table can be made; see :class:`~equipoise.engines.base.Engine`."""
        session = self.session(target)
        with session.transaction(mode=""):
            require_free(session, target, only=only)

    @contextlib.contextmanager
    def creating(
        self, target: Source, parts: Sequence[Part], comment: str = ""
    ) -> Iterator[MadeTable]:
        """Make a table in one transaction; see :class:`~equipoise.engines.base.Engine`.

        It has the constraints of the first part's table. An older table of its name is replaced, and
        locked before the first row is read: rows that others add to it meanwhile wait for the new one.
        """
        session = self.session(target)
        with session.transaction(mode=""):
            found = require_free(session, target, only="")
        locked = "" if found is None else found.text
        with session.transaction(mode="", locked=locked):
            standing = lock_standing(session, target, locked)
            first = parts[0].source
            if first.kind == "frame":
                first = replace(first, data=first.data.slice(0, 0))
            with self._stored(session, first) as (text, is_table):
                new = make_table(session, target, text, standing, is_table=is_table)
            with new.named():
                written = replace(target, table=f"{new.schema}.{new.name}")
                stage = ""
                for part in parts:
                    stage = self._insert(session, new, part, written)
                complete_table(session, new)
                numbered = tuple(new.counters) if parts[-1].foreign else ()
                generated = tuple(c.name for c in new.columns if c.is_generated)
                yield MadeTable(
                    written, lambda: self._staged(session, written, stage), numbered, generated
                )
                put_in_place(session, new, target, comment)

    def _insert(self, session: Session, new: NewTable, part: Part, written: Source) -> str:
        """Insert the rows of a part; return the name of a table of those that were sent."""
        if part.source.kind == "frame":
            left = rows_but(part.source.data, part.without)
            rows, types = _plain_columns(left, part.source.name, is_foreign=part.foreign)
            lacking = part.lacking
            if lacking is None:
                empty = [n for n in rows.column_names if rows[n].null_count == len(rows)]
                lacking = {name: [range(len(rows))] for name in empty}
            line = f"line{sql.mark_of([Column(c.name, '') for c in new.columns])}"
            rows = rows.append_column(line, pa.array(range(len(rows)), pa.int64()))
            sent = upload_rows(session, rows, [*types, "bigint"])
            return insert_rows(session, new, sent, lacking, line, foreign=part.foreign)
        with self._stored(session, part.source) as (text, _):
            copy_rows(session, new, text)
        if part.without or part.source.where is not None:
            self._leave_out(session, new, part, written)
        return ""

    def _leave_out(self, session: Session, new: NewTable, part: Part, written: Source) -> None:
        """Delete the rows of a part that are removed, or that do not satisfy its condition."""
        columns, shown = self._common_columns(session, written, new.text)
        if part.source.where is not None:
            here = replace(written, name=part.source.name, where=part.source.where)
            at = f"at{sql.mark_of(columns)}"
            text, own = with_ctid(new, columns, shown), (Column(at, "other"), *columns)
            kept = (
                f"SELECT 1 FROM {self._restricted(here, text, own)} AS kept WHERE {at} = new.ctid"
            )
            session.run(f"DELETE FROM {new.text} AS new WHERE NOT EXISTS ({kept})")
        if not part.without:
            return
        known = Identity(key=tuple(part.source.key))
        gone = inline_table(departed(part.without, known))
        if delete_rows(session, new, columns, shown, gone, known) != len(part.without):
            raise has_changed(part.source, "the rows to remove were chosen")

    def _staged(self, session: Session, written: Source, stage: str) -> pa.Table:
        """Return the rows of a table of those that were sent, in their order, with their md5."""
        text, columns = self._with_common_types(session, written, stage)
        own = columns[:-1]  # the last is the line
        require_comparable(own, written.name)
        return self._arrow(written, sql.in_order(session.dialect, text, own), "reading rows")

    @contextlib.contextmanager
    def _stored(self, session: Session, source: Source) -> Iterator[tuple[str, bool]]:
        """Yield the text of a table as it is stored, and whether it is a plain table."""
        with self._input(session, source) as table:
            if source.sql is None and source.view is None:
                is_table = source.kind == "postgres" and source.query is None
                yield table, is_table and is_plain(session, table)
                return
            text = table if source.sql is None else sql.over(table, _one_query(source.sql))
            if source.view is not None:  # which knows the types that all engines know
                text, _ = self._with_common_types(session, source, text)
                text = sql.over(text, source.view.query(session.dialect))
            yield text, False

    # ------------------------------------------------------------------ queries

    @contextlib.contextmanager
    def _opened(
        self, source: Source, *, carried: str = ""
    ) -> Iterator[tuple[str, tuple[Column, ...]]]:
        session = self.session(source)
        with (
            session.transaction(mode="READ WRITE" if source.kind == "frame" else "READ ONLY"),
            self._input(session, source) as table,
            self._asked(source) as asked,
        ):
            text = table if source.sql is None else sql.over(table, _one_query(source.sql))
            text, columns = self._with_common_types(session, source, text)
            text = self._restricted(source, text, columns)
            if source.view is not None:
                text = self._viewed_text(source, text, columns, carried, asked)
                text, columns = self._with_common_types(session, source, text)
            yield text, columns

    @contextlib.contextmanager
    def _input(self, session: Session, source: Source) -> Iterator[str]:
        if source.kind == "postgres":
            # Its own session knows which table is meant; another one may find another of its name.
            yield self.table_text(source) if source.query is None else f"({source.query})"
            return
        with self._uploaded(session, source.data, source.name) as name:
            yield name

    def _common_columns(
        self, session: Session, source: Source, text: str
    ) -> tuple[tuple[Column, ...], list[str]]:
        """Return the columns of a table in types that all engines know, and how they are selected."""
        described = session.describe(f"SELECT * FROM {text} AS input")
        refuse_duplicates([c.name for c in described], source.name)
        if not described:
            raise InputError(f"{source.name} has no columns; there is nothing to measure.")
        others = other_types(session, described)
        columns = tuple(Column(c.name, c.common_type(others)) for c in described)
        return columns, [
            d.expression(DIALECT.identifier(c.name), c.type)
            for d, c in zip(described, columns, strict=True)
        ]

    def _with_common_types(
        self, session: Session, source: Source, text: str
    ) -> tuple[str, tuple[Column, ...]]:
        """Return the text of a table whose columns have types that all engines know."""
        columns, shown = self._common_columns(session, source, text)
        names = [DIALECT.identifier(c.name) for c in columns]
        if shown != names:
            listed = (f"{e} AS {name}" for e, name in zip(shown, names, strict=True))
            text = f"(SELECT {', '.join(listed)} FROM {text} AS stored)"
        if not is_known(session.encoding):
            unknown = unencoded_type(session.encoding)
            return text, tuple(Column(c.name, unknown) if is_text(c.type) else c for c in columns)
        loose = loose_collations(session, text, columns)
        return text, tuple(
            Column(c.name, collated_type(loose[c.name])) if c.name in loose else c for c in columns
        )

    def _arrow(self, source: Source, query: str, title: str) -> pa.Table:
        session = self.session(source)
        described = session.describe(query)
        others = other_types(session, described)
        types = [(c.name, c.common_type(others)) for c in described]
        return session.arrow(query, types, title)

    @contextlib.contextmanager
    def _registered(self, rows: pa.Table) -> Iterator[str]:
        """Write a few rows into the query itself, for which a read-only transaction is enough."""
        yield inline_table(rows)

    @contextlib.contextmanager
    def _uploaded(self, session: Session, rows: pa.Table, name: str) -> Iterator[str]:
        table = upload_rows(session, *_plain_columns(rows, name))
        try:
            yield table
        finally:
            with contextlib.suppress(psycopg.Error, Lost):  # a failed transaction drops it anyway
                session.execute(f"DROP TABLE IF EXISTS {table}")


def inline_table(rows: pa.Table) -> str:
    r"""Write rows as a table of a query.

    >>> inline_table(pa.table({"k": ["a", None], "n": [1, 2]}))
    '(SELECT * FROM unnest(\'{"a",NULL}\'::text[], \'{1,2}\'::bigint[]) AS inline("k", "n"))'
    """
    arrays = []
    for column in rows.columns:
        is_number = pa.types.is_integer(column.type)
        values = (
            "NULL" if v is None else str(v) if is_number else _array_item(v)
            for v in column.to_pylist()
        )
        kind = "bigint" if is_number else "text"
        arrays.append(f"{DIALECT.literal('{' + ','.join(values) + '}')}::{kind}[]")
    names = ", ".join(map(DIALECT.identifier, rows.column_names))
    return f"(SELECT * FROM unnest({', '.join(arrays)}) AS inline({names}))"


def _array_item(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _plain_columns(
    rows: pa.Table, name: str, *, is_foreign: bool = False
) -> tuple[pa.Table, list[str]]:
    """Return rows that PostgreSQL can hold, and the types of their columns.

    Its texts have no NUL; of other tables, such texts become missing.
    """
    types = []
    for i, field in enumerate(rows.schema):
        kind = type_of(field.type)
        if kind is None:
            raise InputError(
                f"column {field.name!r} of {name} has the type {field.type}, which has no counterpart in "
                "PostgreSQL; convert it to text first."
            )
        types.append(kind)
        if pa.types.is_dictionary(field.type):
            rows = rows.set_column(i, field.name, rows.column(i).cast(field.type.value_type))
        elif pa.types.is_timestamp(field.type) and field.type.unit == "ns":
            moments = as_type(rows, i, pa.timestamp("us", field.type.tz), name)
            rows = rows.set_column(i, field.name, moments)
        if is_foreign and pa.types.is_string(rows.schema.field(i).type):
            texts = rows.column(i)
            texts = pc.if_else(pc.match_substring(texts, "\0"), pa.scalar(None, pa.string()), texts)
            rows = rows.set_column(i, field.name, texts)
    return rows, types


def _one_query(text: str) -> str:
    return text.strip().rstrip(";")
