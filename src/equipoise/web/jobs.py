"""Long work of users: it goes on while pages come and go, and its result is kept."""

from __future__ import annotations

import json
import re
import secrets
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from equipoise import atomic
from equipoise.errors import EquipoiseError, InputError
from equipoise.web.crew import Crew, Work
from equipoise.web.places import JOBS, Places
from equipoise.workers import Cancelled

_ID = re.compile(r"[0-9a-f]{12}")
_AT_ONCE = 2
"""Maximum number of jobs of one user that run at the same time."""
_LONGEST = 4 * 60 * 60.0
"""Seconds after which a job is ended."""


@dataclass
class UserJob:
    """A piece of long work."""

    id: str
    kind: str
    about: str
    state: str = "running"
    began: float = field(default_factory=time.time)
    result: Any = None
    error: str | None = None
    work: Work | None = None

    def to_dict(self) -> dict[str, Any]:
        """Plain data, for JSON."""
        doing = {"title": "", "share": 1.0, "seconds": None}
        if self.work is not None:
            doing = {k: self.work.to_dict()[k] for k in doing}
        told = {k: getattr(self, k) for k in ("id", "kind", "about", "state", "began")}
        return {**told, **doing, "result": self.result, "error": self.error}


class Jobs:
    """The jobs of all users, each seen by its user alone."""

    def __init__(self, crew: Crew) -> None:
        self.crew = crew
        self._jobs: dict[tuple[str, str], UserJob] = {}
        self._lock = threading.Lock()

    def start(
        self,
        kind: str,
        about: str,
        task: Callable[..., Any],
        *given: Any,
        user: str,
        places: Places,
    ) -> UserJob:
        """Start a job in a process of its own."""
        job = UserJob(secrets.token_hex(6), kind, about)
        with self._lock:
            mine = [j for (u, _), j in self._jobs.items() if u == user and j.state == "running"]
            if len(mine) >= _AT_ONCE:
                raise InputError("two jobs are running already; wait for them, or cancel one.")
            self._jobs[user, job.id] = job
        thread = threading.Thread(
            target=self._run, args=(job, task, given, user, places), daemon=True
        )
        thread.start()
        return job

    def _run(
        self, job: UserJob, task: Callable[..., Any], given: Any, user: str, places: Places
    ) -> None:
        name = f"job-{job.id}"
        watch = threading.Thread(target=self._follow, args=(job, user, name), daemon=True)
        watch.start()
        try:
            job.result = self.crew.run(
                task, *given, user=user, work=name, aside=True, time_limit=_LONGEST
            )
            state = "done"
        except Cancelled:
            state, job.error = "cancelled", "the work was cancelled; nothing was written."
        except EquipoiseError as error:
            state, job.error = "failed", str(error)
        except MemoryError:
            state, job.error = "failed", "this needs more memory than allowed."
        except Exception as error:  # noqa: BLE001  a user sees no traceback
            state = "failed"
            job.error = f"an unexpected error ({type(error).__name__}); please report it."
        self._keep(job, state, places)

    def _follow(self, job: UserJob, user: str, name: str) -> None:
        while job.work is None and job.state == "running":
            job.work = self.crew.work(user, name)
            time.sleep(0.01)

    def _keep(self, job: UserJob, state: str, places: Places) -> None:
        """Write how a job ended, so that it is known after the explorer has started again."""
        folder = places.home / JOBS
        folder.mkdir(parents=True, exist_ok=True)
        told = {**job.to_dict(), "state": state, "share": 1.0}
        text = places.without_paths(json.dumps(told, ensure_ascii=False))
        atomic.write_text(folder / f"{job.id}.json", text)
        kept = json.loads(text)
        job.result, job.error = kept["result"], kept["error"]
        job.state = state

    def find(self, user: str, job: str, places: Places) -> dict[str, Any] | None:
        """A job of a user, as plain data, also of an earlier run of the explorer."""
        found = self._jobs.get((user, job))
        if found is not None:
            return found.to_dict()
        path = places.home / JOBS / f"{job}.json"
        if not _ID.fullmatch(job) or not path.is_file():
            return None
        kept: dict[str, Any] = json.loads(path.read_text("utf-8"))
        return kept

    def forget(self, user: str) -> None:
        """Forget the jobs of a user that have ended."""
        with self._lock:
            for key, job in list(self._jobs.items()):
                if key[0] == user and job.state != "running":
                    del self._jobs[key]

    def cancel(self, user: str, job: str) -> bool:
        """Cancel a job; whether it was running."""
        return (user, job) in self._jobs and self.crew.cancel(user, f"job-{job}")
