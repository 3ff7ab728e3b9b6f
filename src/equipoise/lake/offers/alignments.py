"""Alignments of many tables with a base, which a second process helps with."""

from __future__ import annotations

import contextlib
import os
import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from equipoise.engines.profiling import Profile
from equipoise.lake.matching.columns.alignment import Alignment, align
from equipoise.lake.matching.columns.target import Wanted
from equipoise.workers import Cancelled, Worker, WorkerEnded

if TYPE_CHECKING:
    from typing import Self

MANY = 200
"""Number of tables from which on the start of a process is worth its second."""

_BATCH = 20
"""Number of tables that the other process is given at a time."""

_SECONDS = 600.0
"""Seconds that a batch may take in the other process, which is thousands of times what it takes."""


@dataclass
class Aligner:
    """Aligns tables with a base; if they are many, a second process aligns some of them.

    Both start at opposite ends of the tables. What the other process could not do is done here.
    """

    want: Wanted
    same_codes: bool
    codebook: Mapping[str, Mapping[str, str]]
    helped: bool
    _worker: Worker = field(default_factory=Worker)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._worker.close()

    def align(
        self, tables: Sequence[Profile], progress: Callable[[int], None]
    ) -> list[Alignment | None]:
        """Align tables; ``progress`` is told how many are done."""
        found: dict[int, Alignment | None] = {}
        left, stop = deque(range(len(tables))), threading.Event()
        helper = threading.Thread(target=self._help, args=(tables, left, found, stop))
        if self.helped:
            helper.start()
        try:
            self._align_rest(tables, left, found, progress)
            if self.helped:
                helper.join()
        except BaseException:  # a reporter that cannot go on, or Ctrl-C
            stop.set()
            if self.helped:
                helper.join()
            raise
        # Those of a process that ended too early.
        left.extend(i for i in range(len(tables)) if i not in found)
        self._align_rest(tables, left, found, progress)
        return [found[i] for i in range(len(tables))]

    def _align_rest(
        self,
        tables: Sequence[Profile],
        left: deque[int],
        found: dict[int, Alignment | None],
        progress: Callable[[int], None],
    ) -> None:
        while left:
            progress(len(found))
            try:
                i = left.popleft()
            except IndexError:  # the other thread was faster
                return
            (found[i],) = align_some(self.want, [tables[i]], self.same_codes, self.codebook)

    def _help(
        self,
        tables: Sequence[Profile],
        left: deque[int],
        found: dict[int, Alignment | None],
        stop: threading.Event,
    ) -> None:
        while left and not stop.is_set():
            some: list[int] = []
            with contextlib.suppress(IndexError):  # the other thread was faster
                while len(some) < _BATCH:
                    some.append(left.pop())
            try:
                aligned = self._worker.run(
                    align_some,
                    *(self.want, [tables[i] for i in some], self.same_codes, self.codebook),
                    time_limit=_SECONDS,
                    cancelled=stop.is_set,
                )
            except (Cancelled, WorkerEnded, OSError):  # the last if no process can be started
                return
            found.update(zip(some, aligned, strict=True))


def is_worth_help(tables: int) -> bool:
    """Whether a second process would save time."""
    return tables >= MANY and (os.cpu_count() or 1) > 1


def align_some(
    want: Wanted,
    tables: Sequence[Profile],
    same_codes: bool,
    codebook: Mapping[str, Mapping[str, str]],
) -> list[Alignment | None]:
    """Align a few tables with a base."""
    return [align(want, table, same_codes=same_codes, codebook=codebook) for table in tables]
