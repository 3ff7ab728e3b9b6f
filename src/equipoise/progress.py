"""Progress of long work: a callback that takes a title and the share that is done.

The library draws nothing; the command line passes a callback that does.
"""

from __future__ import annotations

import concurrent.futures
from collections.abc import Callable
from typing import TypeAlias, TypeVar

Reporter: TypeAlias = Callable[[str, float], None]
"""Progress callback: called every tenth of a second with a title and the share done, 0 to 1."""

T = TypeVar("T")


def silent(title: str, share: float) -> None:
    """Report nothing."""


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
        except BaseException:  # Ctrl-C, or a reporter that cannot go on
            # Work that had not quite begun may miss an interrupt, so one is not enough.
            while not concurrent.futures.wait([future], timeout=0.05).done:
                interrupt()
            raise
        return future.result()
