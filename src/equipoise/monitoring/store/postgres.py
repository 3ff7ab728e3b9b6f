"""A store in a schema of a PostgreSQL database, for many machines that write to one history."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

from equipoise.errors import InputError, SourceNotFound
from equipoise.monitoring.store import schema

_STREAMS = "equipoise_stream"


class PostgresDatabase:
    """A schema of PostgreSQL that holds a store."""

    is_replaced = False

    def __init__(self, address: str, *, create: bool, read_only: bool = False) -> None:
        from equipoise.engines.postgres.records import RecordConnection

        self._records = RecordConnection(address)
        self.name = self._records.name
        try:
            self._prepare(create=create, read_only=read_only)
        except BaseException:
            self.close()
            raise

    def _prepare(self, *, create: bool, read_only: bool) -> None:
        with self.reading():
            version = self._version()
        if version is None and not create:
            raise SourceNotFound(
                f"there is no store in {self.name}; equipoise monitor add creates one with the first batch."
            )
        if version is not None and version > schema.present():
            raise InputError(
                f"the store in {self.name} was written by a newer version of Equipoise (its format is "
                f"{version}, this version reads up to {schema.present()}); update Equipoise. Nothing was "
                "changed."
            )
        if version == schema.present():
            return
        if read_only:
            raise InputError(schema.too_old(f"the store in {self.name}"))
        with self._records.transaction(write=True):
            self._records.lock("equipoise store")
            found = self._version()
            if found is None:
                self.run("CREATE TABLE equipoise_store (version BIGINT NOT NULL)")
                self.run("INSERT INTO equipoise_store VALUES (0)")
            for statement in schema.statements("postgres", found or 0):
                self.run(statement)
            self.run("UPDATE equipoise_store SET version = ?", [schema.present()])

    def _version(self) -> int | None:
        # Not to_regclass: in a transaction that has waited, it does not see tables made meanwhile.
        if not self._records.run(
            "SELECT 1 FROM pg_class JOIN pg_namespace ON pg_namespace.oid = relnamespace "
            "WHERE relname = 'equipoise_store' AND nspname = ANY(current_schemas(false))"
        ):
            return None
        found: int = self._records.run("SELECT version FROM equipoise_store")[0][0]
        return found

    def close(self) -> None:
        """Close the connection."""
        self._records.close()

    @contextlib.contextmanager
    def reading(self) -> Iterator[None]:
        """See one state of the store until the block ends."""
        with self._records.transaction(write=False):
            yield

    @contextlib.contextmanager
    def writing(self) -> Iterator[None]:
        """Change the store, as the only one who does; all of it at the end of the block, or nothing."""
        with self._records.transaction(write=True):
            # Batches then arrive in the order of their numbers, as in SQLite.
            self._records.lock("equipoise store")
            yield

    def run(self, statement: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Run a statement; parameters are question marks."""
        return self._records.run(statement, values)

    def run_many(self, statement: str, lines: Sequence[Sequence[Any]]) -> None:
        """Run a statement for each line of values."""
        self._records.run_many(statement, lines)
