"""The processes that work for the explorer, and what each user's work is doing."""

from __future__ import annotations

import contextlib
import queue
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from equipoise.errors import EquipoiseError
from equipoise.web.settings import UNNAMED, ExplorerSettings
from equipoise.workers import Cancelled, Worker

_KEPT = 60.0
"""Seconds for which the end of a piece of work is remembered."""
_OWN = 8
"""Maximum number of pieces of work that one user may have at the same time."""


class TooMuchWork(EquipoiseError):
    """A user has too much work under way already."""


@dataclass
class Work:
    """A piece of work of a user, with its progress."""

    title: str = "waiting"
    share: float = 0.0
    began: float = field(default_factory=time.monotonic)
    ended: float | None = None
    user: str = ""
    slow: bool = False
    running: bool = False
    stop: threading.Event = field(default_factory=threading.Event)

    def report(self, title: str, share: float) -> None:
        """Note how far the work is."""
        self.title, self.share = title, min(max(float(share), 0.0), 1.0)

    def to_dict(self) -> dict[str, Any]:
        """Plain data, for JSON."""
        return {
            "title": self.title,
            "share": round(self.share, 4),
            "seconds": round((self.ended or time.monotonic()) - self.began, 2),
            "done": self.ended is not None,
        }


class _Explorer(Worker):
    doing = "works for the explorer"


class Crew:
    """A few processes that are ready, and further ones for long work."""

    def __init__(self, settings: ExplorerSettings) -> None:
        self.settings = settings
        self._ready: queue.SimpleQueue[Worker] = queue.SimpleQueue()
        self._all = [self._new() for _ in range(settings.workers)]
        for worker in self._all:
            self._ready.put(worker)
        self._works: dict[tuple[str, str], Work] = {}
        self._lock = threading.Lock()
        self._closed = False
        self.warmed = threading.Event()

    def _new(self) -> Worker:
        # Names of tables are relative to the root, and so is the folder that workers look in.
        return _Explorer(memory=self.settings.memory, folder=str(self.settings.root))

    def start(self, warm: Callable[[], Any], warm_more: Callable[[], Any]) -> None:
        """Start the processes, and let each of them load what it will need first, and then.

        The first one is ready sooner if it does not compete with the others.
        """

        def prepare(workers: Sequence[Worker], *tasks: Callable[[], Any]) -> None:
            for worker in workers:
                for task in tasks:
                    with contextlib.suppress(EquipoiseError):
                        worker.run(task, time_limit=60, cancelled=lambda: self._closed)

        def work() -> None:
            prepare(self._all[:1], warm)
            prepare(self._all[1:], warm, warm_more)
            prepare(self._all[:1], warm_more)
            self.warmed.set()

        threading.Thread(target=work, daemon=True).start()

    def run(
        self,
        task: Callable[..., Any],
        *given: Any,
        user: str,
        work: str | None = None,
        time_limit: float | None = None,
        aside: bool = False,
        slow: bool = False,
    ) -> Any:
        """Do a task in one of the processes, and return its result.

        Parameters
        ----------
        task, given
            A function that can be imported and takes ``progress``, and what it is given.
        user
            Whose work it is.
        work
            Name by which the user can ask for its progress and cancel it.
        time_limit
            Seconds it may take, if not those of the settings.
        aside
            Whether it takes long, and gets a process of its own.
        slow
            Whether it may take long, so that one process is left to work that does not.
        """
        limit = time_limit or self.settings.time_limit
        with (
            self._noted(user, work, slow=slow) as doing,
            self._worker(doing, limit, aside=aside) as worker,
        ):
            return worker.run(
                task,
                *given,
                time_limit=limit,
                progress=doing.report,
                cancelled=lambda: doing.stop.is_set() or self._closed,
            )

    @contextlib.contextmanager
    def _worker(self, doing: Work, limit: float, *, aside: bool) -> Iterator[Worker]:
        if aside:
            with self._new() as own:
                yield own
            return
        worker = self._free(doing, time.monotonic() + limit)
        try:
            yield worker
        finally:
            doing.running = False
            self._ready.put(worker)

    def _free(self, doing: Work, end: float) -> Worker:
        while time.monotonic() < end:
            if doing.stop.is_set() or self._closed:
                raise Cancelled("the work was cancelled.")
            if not self._is_next(doing):
                time.sleep(0.02)
                continue
            with contextlib.suppress(queue.Empty):
                return self._ready.get(timeout=0.05)
            doing.running = False
        raise TooMuchWork("the explorer is busy with other work; try again in a moment.")

    def _is_next(self, doing: Work) -> bool:
        """Whether this work may have a process; one is left to other users, and to short work."""
        fewer, alone = max(len(self._all) - 1, 1), len(self.settings.tokens) == 1
        with self._lock:
            running = [w for w in self._works.values() if w.running]
            own = sum(w.user == doing.user for w in running)
            slow = sum(w.slow for w in running) if doing.slow else 0
            doing.running = (alone or own < fewer) and slow < fewer
        return doing.running

    @contextlib.contextmanager
    def _noted(self, user: str, work: str | None, *, slow: bool) -> Iterator[Work]:
        doing = Work(user=user, slow=slow)
        with self._lock:
            now = time.monotonic()
            for key, each in list(self._works.items()):
                if each.ended is not None and now - each.ended > _KEPT:
                    del self._works[key]
            mine = [w for (owner, _), w in self._works.items() if owner == user and not w.ended]
            if len(mine) >= _OWN:
                raise TooMuchWork("you have too much work under way; wait for it, or cancel some.")
            known = self._works.get((user, work or ""))
            free = work is not None and (known is None or known.ended is not None)
            key = (user, str(work) if free else f"{UNNAMED}{id(doing)}")
            self._works[key] = doing
        try:
            yield doing
        finally:
            doing.ended = time.monotonic()
            if key[1].startswith(UNNAMED):
                with self._lock:
                    self._works.pop(key, None)

    def work(self, user: str, work: str) -> Work | None:
        """The work of a user with this name, if there is any."""
        return self._works.get((user, work))

    def cancel(self, user: str, work: str) -> bool:
        """Cancel a user's work; whether there was any under way."""
        found = self.work(user, work)
        if found is None or found.ended is not None:
            return False
        found.stop.set()
        return True

    def close(self) -> None:
        """End all work and all processes."""
        self._closed = True
        for worker in self._all:
            worker.close()
