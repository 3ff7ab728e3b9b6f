"""Tables of our own in PostgreSQL, read and written a few records at a time."""

from __future__ import annotations

import contextlib
import zlib
from collections.abc import Iterator, Sequence
from typing import Any

import psycopg
from psycopg import sql

from equipoise.engines.postgres import addresses
from equipoise.engines.postgres._session import Session
from equipoise.errors import InputError
from equipoise.progress import silent


class RecordConnection:
    """A connection to the tables of a schema, used by one thread at a time.

    ``schema`` in the address names the schema; by default it is the first of the user's.
    """

    def __init__(self, address: str) -> None:
        server, ours = addresses.split(address)
        for name in ("table", "id"):
            if name in ours:
                raise InputError(
                    f"a store in PostgreSQL is a schema and not a table; leave out {name}= in "
                    f"{addresses.public(address)}, or write schema=."
                )
        self.name = addresses.public(address)
        schema = ours.get("schema")
        # A connection that was lost is made again, and must not find the tables of another schema.
        path = f"SET search_path TO {sql.Identifier(schema).as_string()}" if schema else ""
        self._session = Session(server, silent, first=path)
        if schema and not self.run("SELECT 1 FROM pg_namespace WHERE nspname = ?", [schema]):
            self.close()
            raise InputError(f"there is no schema {schema!r} in {self.name}; create it first.")

    @contextlib.contextmanager
    def transaction(self, *, write: bool) -> Iterator[None]:
        """Work in one transaction; one that only reads sees one state of the database."""
        mode, isolation = ("", "READ COMMITTED") if write else ("READ ONLY", "REPEATABLE READ")
        with self._session.transaction(mode=mode, isolation=isolation):
            yield

    def lock(self, name: str) -> None:
        """Wait until nobody else works under a name in this schema, until the transaction ends."""
        key = zlib.crc32(name.encode())
        self.run(
            "SELECT pg_advisory_xact_lock(?::int, hashtext(current_schema()))",
            [key - 2**31],
        )

    def run(self, statement: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Run a statement; parameters are question marks."""
        with self._explained():
            cursor = self._session.connection.execute(_with_percents(statement), values or None)
            return [] if cursor.description is None else cursor.fetchall()

    def run_many(self, statement: str, lines: Sequence[Sequence[Any]]) -> None:
        """Run a statement for each line of values."""
        with self._explained(), self._session.connection.cursor() as cursor:
            cursor.executemany(_with_percents(statement), lines)

    def close(self) -> None:
        """Close the connection."""
        self._session.close()

    @contextlib.contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except psycopg.Error as error:
            raise self._session.explained(error) from None


def _with_percents(statement: str) -> bytes:
    return statement.replace("?", "%s").encode()
