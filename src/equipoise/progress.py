"""Progress of long work: a callback that takes a title and the share that is done.

The library draws nothing; the command line passes a callback that does. A callback that raises an
exception cancels the work: what was begun is cleaned up, and the exception comes through.
"""

from __future__ import annotations

import concurrent.futures
import contextlib
import functools
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from typing import Any, ParamSpec, TypeAlias, TypeVar, cast

Reporter: TypeAlias = Callable[[str, float], None]
"""Progress callback: called every tenth of a second with a title and the share done, 0 to 1."""

T = TypeVar("T")
P = ParamSpec("P")

_pulse: ContextVar[Callable[[], None] | None] = ContextVar("pulse", default=None)
"""Repeats the last report of the work around a long step; None outside of such work."""


class _Stopped(BaseException):
    """Carries an exception of a reporter past code that takes errors for those of a table."""

    def __init__(self, error: Exception) -> None:
        super().__init__(error)
        self.error = error


def silent(title: str, share: float) -> None:
    """Report nothing."""


def pulse() -> None:
    """Repeat the last report of the work that this is a step of, so that it can be cancelled."""
    if (repeat := _pulse.get()) is not None:
        repeat()


def watched(
    work: Callable[[], T],
    *,
    title: str,
    share: Callable[[], float],
    interrupt: Callable[[], None],
    report: Reporter,
) -> T:
    """Run work in a thread, report its progress, and interrupt it on Ctrl-C."""
    with concurrent.futures.ThreadPoolExecutor(max_workers=1) as pool:
        future = pool.submit(work)
        try:
            while not concurrent.futures.wait([future], timeout=0.1).done:
                report(title, share())
                pulse()
        except BaseException:  # Ctrl-C, or a reporter that cannot go on
            # Work that had not quite begun may miss an interrupt, so one is not enough.
            while not concurrent.futures.wait([future], timeout=0.05).done:
                interrupt()
            raise
        return future.result()


def cancellable(work: Callable[P, T]) -> Callable[P, T]:
    """Let the reporter of some work, its keyword ``progress``, cancel it even in a long step.

    While a step such as the scan of a large table runs, the last report is repeated every tenth
    of a second. Whatever exception the reporter raises then or in between ends the work, and is
    never mistaken for an error of a table.
    """

    @functools.wraps(work)
    def run(*args: P.args, **options: P.kwargs) -> T:
        given: Any = options.get("progress", silent)
        if given is silent:
            return work(*args, **options)
        with _pulsing(given) as report:
            return cast("Callable[..., T]", work)(*args, **{**options, "progress": report})

    return run


@contextlib.contextmanager
def _pulsing(report: Reporter) -> Iterator[Reporter]:
    last = ("working", 0.0)

    def guarded(title: str, share: float) -> None:
        try:
            report(title, share)
        except Exception as error:
            raise _Stopped(error) from error

    def told(title: str, share: float) -> None:
        nonlocal last
        last = title, share
        guarded(title, share)

    outer = _pulse.get()
    token = _pulse.set(lambda: guarded(*last))
    try:
        yield told
    except _Stopped as stopped:
        if outer is not None:  # the work around this one is cancelled as well
            raise
        raise stopped.error from None
    finally:
        _pulse.reset(token)
