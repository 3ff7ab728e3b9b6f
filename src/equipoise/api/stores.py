"""The store of a monitor: opened when it is needed, and used by one thread at a time."""

from __future__ import annotations

import atexit
import contextlib
import datetime
import functools
import os
import re
import threading
import weakref
from collections.abc import Callable, Iterator
from typing import Any, Self, TypeVar, cast

from equipoise.credentials import without_password
from equipoise.errors import InputError
from equipoise.monitoring.store.database import is_postgres
from equipoise.monitoring.store.files import mode_of
from equipoise.monitoring.store.store import Store

_OTHER = re.compile(r"([a-z][a-z0-9+.-]+://|file:|:memory:$)", re.IGNORECASE)
"""How addresses begin that are none of a file."""
_FOREIGN = re.compile(
    r"\s*jdbc:|\s+postgres(ql)?:|.*\b(dbname|password)\s*=|"
    r"\s*(hostaddr|host|port|user|service|sslmode)\s*=([^/]*$|.*\s\w+\s*=)",
    re.IGNORECASE | re.DOTALL,
)
"""How databases are named elsewhere, often with a password."""
_OWNERS: weakref.WeakSet[StoreOwner] = weakref.WeakSet()
_PATIENCE = 5.0
"""Number of seconds that a fork, or the end of the program, waits for other threads that use a store."""
_forking = threading.Lock()
_held: list[threading.RLock] = []
_inherited: list[Store] = []
"""Connections of another process, which to close would end its locks."""
_Method = TypeVar("_Method", bound=Callable[..., Any])


class StoreOwner:
    """Has a store, which is opened once for reading, and again when something is written first."""

    def __init__(self, store: str | os.PathLike[str], *, read_only: bool = False) -> None:
        self._address = _read_address(store)
        self._read_only = read_only
        self._clock: Callable[[], datetime.datetime] = _utc_now
        self._begin()

    def _begin(self) -> None:
        self._open: Store | None = None
        self._lock = threading.RLock()
        self._is_used = False
        _OWNERS.add(self)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {without_password(self._address)}>"

    def __getstate__(self) -> dict[str, Any]:
        # Other processes open the store themselves.
        kept = ("_address", "_read_only", "_clock")
        return {name: getattr(self, name) for name in kept}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._begin()

    def _store(self, *, create: bool = False, write: bool = False) -> Store:
        if write and self._read_only:
            raise InputError(f"{self} is read-only; leave out `read_only` to change its store.")
        if self._is_used:
            self._require_same()
        else:
            self._let_go_if_replaced()
        if self._open is None or (write and not self._open.writes):
            self.close()
            self._open = Store(
                self._address,
                create=create,
                write=write,
                read_only=self._read_only,
                clock=self._clock,
            )
        return self._open

    @contextlib.contextmanager
    def _use(self) -> Iterator[None]:
        """Work with one store until the block ends."""
        if self._is_used:
            yield
            return
        self._let_go_if_replaced()
        self._is_used = True
        try:
            yield
        finally:
            self._is_used = False

    def _let_go_if_replaced(self) -> None:
        if self._open is not None and self._open.database.is_replaced:
            self.close()

    def _require_same(self) -> None:
        """Refuse to go on with another store than the one that something was already read from."""
        if self._open is not None and self._open.database.is_replaced:
            raise InputError(
                f"{self._address} was removed or replaced while it was in use; nothing was changed. Try again."
            )

    @property
    def _exists(self) -> bool:
        return is_postgres(self._address) or mode_of(self._address) is not None

    @property
    def _is_writable(self) -> bool:
        if self._read_only:
            return False
        return is_postgres(self._address) or os.access(self._address, os.W_OK)

    def close(self) -> None:
        """Close the store; the next call opens it again."""
        with self._lock:
            if self._open is not None:
                self._open.close()
                self._open = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        # A connection of SQLite is part of a cycle, and does not close itself when nothing refers to it.
        if getattr(self, "_open", None) is not None:
            self.close()


def alone(method: _Method) -> _Method:
    """Let threads that share a store wait for each other."""

    @functools.wraps(method)
    def locked(self: StoreOwner, *given: Any, **named: Any) -> Any:
        with self._lock, self._use():
            return method(self, *given, **named)

    return cast("_Method", locked)


def _close_all() -> list[threading.RLock]:
    """Close all stores that are not in use; return their locks, which are held."""
    held = []
    for owner in list(_OWNERS):
        lock = owner._lock  # noqa: SLF001  of a class of this module
        if lock.acquire(timeout=_PATIENCE):
            held.append(lock)
            owner.close()
    return held


def _close_before_fork() -> None:
    """Close all stores; SQLite would take the locks of this process for those of its children."""
    _forking.acquire()
    _held.extend(_close_all())


def _go_on_after_fork() -> None:
    while _held:
        _held.pop().release()
    _forking.release()


def _begin_after_fork() -> None:
    global _forking  # noqa: PLW0603  a thread that is not here may hold it
    _forking = threading.Lock()
    _held.clear()
    for owner in list(_OWNERS):
        if owner._open is not None:  # noqa: SLF001
            _inherited.append(owner._open)  # noqa: SLF001
        owner._begin()  # noqa: SLF001


# What a program leaves open would stay in the log of SQLite, beside the file of the store.
atexit.register(_close_all)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_close_before_fork,
        after_in_parent=_go_on_after_fork,
        after_in_child=_begin_after_fork,
    )


def _read_address(store: Any) -> str:
    """The path or address of a store as text; what can be neither is refused."""
    if not isinstance(store, (str, os.PathLike)) or not isinstance(os.fspath(store), str):
        raise InputError(f"a store must be a path or an address of PostgreSQL, not {store!r}.")
    found = os.fspath(store)
    if not found.strip():
        raise InputError("the name of a store must not be empty; use a name such as bias.sqlite.")
    if _FOREIGN.match(found) and not is_postgres(found):
        raise InputError(
            "write the address of a PostgreSQL database as postgresql://user@host/db. The given address has another "
            "form. It is not repeated here, because it may contain a password."
        )
    if _OTHER.match(found) and not is_postgres(found):
        raise InputError(
            f"a store must be a SQLite file or a PostgreSQL database (postgresql://user@host/db), not "
            f"{without_password(found)!r}."
        )
    return found


def _utc_now() -> datetime.datetime:
    return datetime.datetime.now(datetime.UTC)
