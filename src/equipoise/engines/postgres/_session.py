"""A connection to PostgreSQL: its transactions, queries and errors."""

from __future__ import annotations

import contextlib
import io
import re
import threading
import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

import psycopg
import pyarrow as pa
from psycopg import errors, sql
from psycopg.pq import TransactionStatus
from pyarrow import csv

from equipoise.credentials import scrubbed, without_password
from equipoise.engines.postgres._types import MOMENTS, Described, arrow_type
from equipoise.errors import EquipoiseError, InputError
from equipoise.progress import Reporter, watched

T = TypeVar("T")

_SECONDS = 3600
"""Limit of a statement, unless the server, the role or the address sets one."""

_SETTINGS = (
    "SET LOCAL TimeZone = 'UTC'; SET LOCAL DateStyle = 'ISO, YMD'; SET LOCAL extra_float_digits = 1; "
    "SET LOCAL standard_conforming_strings = on; SET LOCAL client_encoding = 'UTF8'; "
    f"SELECT set_config('statement_timeout', '{_SECONDS}s', true) "
    "WHERE current_setting('statement_timeout') = '0'"
)
_LOST = (
    errors.AdminShutdown,
    errors.CrashShutdown,
    errors.CannotConnectNow,
    errors.ConnectionException,
    errors.SerializationFailure,
)


class Lost(EquipoiseError):
    """A connection that was lost while a query ran."""


class Session:
    """One connection to a server, used by one thread at a time."""

    def __init__(self, address: str | psycopg.Connection[Any], report: Reporter) -> None:
        self.lock = threading.RLock()
        self.report = report
        self.fetched = 0
        """Number of bytes that came from the server as results."""
        self._given = address if isinstance(address, psycopg.Connection) else None
        self._address = "" if isinstance(address, psycopg.Connection) else address
        self._own: psycopg.Connection[Any] | None = None
        self._depth = 0

    @property
    def connection(self) -> psycopg.Connection[Any]:
        """The connection, made when it is first used, and again if it was lost."""
        if self._given is not None:
            return self._given
        if self._own is None or self._own.closed or self._own.broken:
            try:
                self._own = psycopg.connect(
                    self._address, autocommit=True, application_name="equipoise"
                )
                # If nobody closes it, this happens when the session is collected.
                weakref.finalize(self, self._own.close)
            except psycopg.Error as error:
                raise self.unopened(error) from None
        return self._own

    def close(self) -> None:
        """Close the connection, unless the user gave it."""
        if self._own is not None:
            self._own.close()

    # ------------------------------------------------------------- transactions

    @contextlib.contextmanager
    def transaction(self, *, read_only: bool = True) -> Iterator[None]:
        """Work in one transaction that sees one state of the database.

        A transaction that the user has begun is used as it is.
        """
        with self.lock:
            if self._depth:
                yield
                return
            connection = self.connection
            idle = connection.info.transaction_status == TransactionStatus.IDLE
            self._depth += 1
            try:
                with connection.transaction():
                    if idle:
                        mode = "READ ONLY" if read_only else "READ WRITE"
                        self.execute(f"SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, {mode}")
                    self.execute(_SETTINGS)
                    yield
            except psycopg.Error as error:
                raise self.explained(error) from None
            finally:
                self._depth -= 1

    # ------------------------------------------------------------------ queries

    def execute(self, statement: str) -> list[tuple[Any, ...]]:
        """Run statements that take no time; return the rows of the last one that has some."""
        cursor = self.connection.execute(statement.encode())
        while cursor.nextset():
            pass
        return [] if cursor.description is None else cursor.fetchall()

    def run(self, statement: str, title: str = "writing rows") -> int:
        """Run a statement that may take long; return how many rows it changed."""
        return self.work(lambda: self.connection.execute(statement.encode()).rowcount, title)

    def lines(self, statement: str, *values: Any) -> list[tuple[Any, ...]]:
        """Run a query of the catalogue with parameters."""
        return self.connection.execute(statement.encode(), values).fetchall()

    def describe(self, query: str) -> list[Described]:
        """Tell the columns of a query without running it."""
        raw = self.connection.pgconn
        prepared = raw.prepare(b"", query.encode())
        if prepared.error_message:
            raise errors.lookup(_state(prepared))(_message(prepared))
        found = raw.describe_prepared(b"")
        return [
            Described((found.fname(i) or b"").decode(), found.ftype(i), found.fmod(i))
            for i in range(found.nfields)
        ]

    def arrow(self, query: str, types: Sequence[tuple[str, str]], title: str) -> pa.Table:
        """Run a query whose columns have the given names and types; return all rows."""
        return self.work(lambda: self._copied(query, types), title)

    def work(self, work: Callable[[], T], title: str) -> T:
        """Work in a thread, so that it can be interrupted, and explain errors."""
        connection = self.connection
        try:
            return watched(
                work,
                title=title,
                share=lambda: 0.0,
                interrupt=lambda: connection.cancel_safe(timeout=5.0),
                report=self.report,
            )
        except psycopg.Error as error:
            raise self.explained(error) from None

    def _copied(self, query: str, types: Sequence[tuple[str, str]]) -> pa.Table:
        """Read a result as CSV, which Arrow parses many times faster than Python makes objects."""
        with self.connection.cursor() as cursor:
            with cursor.copy(f"COPY ({query}) TO STDOUT (FORMAT csv)".encode()) as copy:
                # Without a header, a byte order mark that begins the first value would be lost.
                names = ",".join(f"c{i}" for i in range(len(types)))
                stream = _Stream(copy, f"{names}\n".encode())
                table = _parsed(stream, types)
            self.fetched += stream.bytes
        return table

    def upload(self, rows: pa.Table, name: str, types: Sequence[str]) -> None:
        """Make a temporary table of rows."""
        columns = ", ".join(
            f"{sql.Identifier(column).as_string()} {kind}"
            for column, kind in zip(rows.column_names, types, strict=True)
        )
        self.execute(f"CREATE TEMPORARY TABLE {name} ({columns}) ON COMMIT DROP")
        names = ", ".join(sql.Identifier(column).as_string() for column in rows.column_names)
        with (
            self.connection.cursor() as cursor,
            cursor.copy(f"COPY {name} ({names}) FROM STDIN".encode()) as copy,
        ):
            for batch in rows.to_batches(max_chunksize=10_000):
                for line in zip(*(column.to_pylist() for column in batch.columns), strict=True):
                    copy.write_row(line)

    # ------------------------------------------------------------------- errors

    def reason(self, error: BaseException) -> str:
        """Say in one line, without the password, why the server refused something."""
        diagnosed = getattr(getattr(error, "diag", None), "message_primary", None)
        lines = (diagnosed or str(error) or type(error).__name__).splitlines()
        return scrubbed(lines[0].removeprefix("connection failed: "), [self._address]).rstrip(".")

    def unopened(self, error: psycopg.Error) -> InputError:
        """Say why a connection could not be made, and what may help."""
        why = re.sub(r"^connection to server .* failed: FATAL:\s+", "", self.reason(error))
        shown = without_password(self._address)
        hint = "check the address, and that the server runs and can be reached"
        if "password" in why or "authentication" in why:
            hint = (
                "check the user and the password, which may also come from PGPASSWORD or ~/.pgpass"
            )
        elif "does not exist" in why or "service" in why:
            hint = "check the address"
        return InputError(f"{shown} cannot be opened: {why}; {hint}.")

    def explained(self, error: psycopg.Error) -> EquipoiseError:
        """Turn an error of the server into one of ours."""
        why = self.reason(error)
        if isinstance(error, errors.QueryCanceled) and "timeout" in why:
            return InputError(
                f"a query took longer than the limit of the database ({why}); set statement_timeout in "
                "the address, as in ?options=-c%20statement_timeout=2h."
            )
        is_lost = isinstance(error, _LOST) or self.connection_lost(error)
        if is_lost:
            return Lost(f"the connection to the database was lost: {why}; try again.")
        if isinstance(error, errors.InsufficientPrivilege):
            return InputError(
                f"the database does not allow that: {why}; ask its owner for the right."
            )
        return InputError(f"the database refused a query: {why}.")

    def connection_lost(self, error: psycopg.Error) -> bool:
        """Whether an error ended the connection."""
        connection = self._given or self._own
        broken = connection is None or connection.broken or connection.closed
        return isinstance(error, psycopg.OperationalError) and broken

    @property
    def can_reconnect(self) -> bool:
        """Whether a lost connection can be made again, which only its owner can do."""
        return self._given is None


class _Stream(io.RawIOBase):
    """The bytes of a COPY as a file, after a header."""

    def __init__(self, copy: psycopg.Copy, header: bytes) -> None:
        self._copy = copy
        self._left = header
        self.bytes = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        view = memoryview(buffer)
        while not self._left:
            chunk = self._copy.read()
            if not chunk:
                return 0
            self._left = bytes(chunk)
            self.bytes += len(chunk)
        taken = self._left[: len(view)]
        view[: len(taken)] = taken
        self._left = self._left[len(taken) :]
        return len(taken)


def _parsed(stream: _Stream, types: Sequence[tuple[str, str]]) -> pa.Table:
    """Parse CSV; a column with a moment that Arrow does not have comes as text."""
    numbers = [f"c{i}" for i in range(len(types))]  # names may be equal, or empty
    as_read = {
        number: pa.string() if kind in MOMENTS else arrow_type(kind)
        for number, (_, kind) in zip(numbers, types, strict=True)
    }
    table = csv.read_csv(
        io.BufferedReader(stream, 1 << 20),
        read_options=csv.ReadOptions(use_threads=False),
        parse_options=csv.ParseOptions(newlines_in_values=True),
        convert_options=csv.ConvertOptions(
            column_types=as_read,
            null_values=[""],
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
            true_values=["t"],
            false_values=["f"],
        ),
    )
    arrays = [_moments(table[n], kind) for n, (_, kind) in zip(numbers, types, strict=True)]
    return pa.table(arrays, names=[name for name, _ in types])


def _moments(column: pa.ChunkedArray, kind: str) -> pa.ChunkedArray:
    if kind in MOMENTS:
        with contextlib.suppress(pa.ArrowException):
            return column.cast(arrow_type(kind))
    return column


def _state(result: Any) -> str:
    from psycopg.pq import DiagnosticField

    return (result.error_field(DiagnosticField.SQLSTATE) or b"XX000").decode()


def _message(result: Any) -> str:
    from psycopg.pq import DiagnosticField

    return (result.error_field(DiagnosticField.MESSAGE_PRIMARY) or b"").decode()
