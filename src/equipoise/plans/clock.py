"""One deadline for everything that is done for a request, however many searches that takes."""

from __future__ import annotations

import contextlib
import math
import time
from contextvars import ContextVar
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

SHORTEST = 0.01
"""Seconds that a step gets at least: solvers take none as no limit."""

_end: ContextVar[float] = ContextVar("end", default=math.inf)


@contextlib.contextmanager
def ending_after(seconds: float) -> Iterator[None]:
    """Let all searches inside end after some seconds, or earlier if that was set around them."""
    token = _end.set(end_after(seconds))
    try:
        yield
    finally:
        _end.reset(token)


def end_after(seconds: float) -> float:
    """The time of the monotonic clock at which a search ends that may take so many seconds."""
    return min(time.monotonic() + seconds, _end.get())


def seconds_left(seconds: float) -> float:
    """The same as a number of seconds from now."""
    return max(end_after(seconds) - time.monotonic(), SHORTEST)


def is_late() -> bool:
    """Whether the time for everything has run out."""
    return time.monotonic() > _end.get()
