"""What a store needs of a database: transactions, and statements with parameters."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol


class StoreDatabase(Protocol):
    """A database that holds a store, used by one thread at a time."""

    @property
    def name(self) -> str:
        """How it is shown: its path or its address, without a password."""

    @property
    def is_replaced(self) -> bool:
        """Whether there is no longer what was opened, or something else in its place."""

    def reading(self) -> AbstractContextManager[None]:
        """See one state of the store until the block ends."""

    def writing(self) -> AbstractContextManager[None]:
        """Change the store, as the only one who does; all of it at the end of the block, or nothing."""

    def run(self, statement: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Run a statement; parameters are question marks."""

    def run_many(self, statement: str, lines: Sequence[Sequence[Any]]) -> None:
        """Run a statement for each line of values."""

    def close(self) -> None:
        """Close the connection."""


def is_postgres(address: str) -> bool:
    """Whether a store is named by an address of PostgreSQL."""
    return address.partition(":")[0].lower() in ("postgresql", "postgres") and ":" in address


def open_database(
    address: str, *, create: bool, write: bool, read_only: bool = False
) -> StoreDatabase:
    """Open a database that holds a store, and bring the store to the present version.

    With ``read_only`` a store of an older version is refused, and nothing is changed.
    """
    if is_postgres(address):
        from equipoise.monitoring.store.postgres import PostgresDatabase

        return PostgresDatabase(address, create=create, read_only=read_only)
    from equipoise.monitoring.store.sqlite import SqliteDatabase

    return SqliteDatabase(address, create=create, write=write, read_only=read_only)


@contextlib.contextmanager
def opened(address: str, *, create: bool = False, write: bool = False) -> Any:
    """Open a database for a block."""
    database = open_database(address, create=create, write=write)
    try:
        yield database
    finally:
        database.close()
