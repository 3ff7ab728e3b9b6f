"""Plans made in a process of their own, for programs that must not end with a crash of the solver.

A solver is native code: an error in it ends the process that called it. A program that makes plans
for others, such as a server, keeps an :class:`Aside`: its worker process makes the plans, and if it
dies, an error says so and the next plan starts a new one.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import queue
import signal
import subprocess
import sys
import threading
import time
from typing import TYPE_CHECKING, Any

from equipoise.errors import EquipoiseError, InputError
from equipoise.progress import Reporter, silent

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import IO, Self

    from equipoise.counts import Counts
    from equipoise.plans.plan import Plan
    from equipoise.plans.request import PlanRequest

LOOK = 0.05
"""Seconds between looks at the clock and at what may cancel the work."""

GRACE = 30.0
"""Seconds beyond the time limit of a request that its explanation may take."""

_COMMAND = "from equipoise.plans.aside import serve; serve()"


class WorkerEnded(EquipoiseError):
    """The process that made a plan ended before it was done."""

    exit_code = 1


class Cancelled(EquipoiseError):
    """A plan that was cancelled while it was made."""

    exit_code = 1


def plan_aside(
    counts: Counts,
    request: PlanRequest,
    *,
    progress: Reporter = silent,
    cancelled: Callable[[], bool] = lambda: False,
) -> Plan:
    """Make one plan in a process of its own.

    Parameters
    ----------
    counts, request
        The table and what is requested, as for a plan in this process.
    progress
        Called with a title and the share done.
    cancelled
        Asked many times a second; if it returns true, the work ends with :class:`Cancelled`.

    Raises
    ------
    WorkerEnded
        If the process died, or took longer than the time limit of the request allows.

    Examples
    --------
    >>> from equipoise.counts import Counts
    >>> from equipoise.plans.request import PlanRequest
    >>> cells = {("w", "yes"): 2, ("w", "no"): 8, ("m", "yes"): 5, ("m", "no"): 5}
    >>> counts = Counts.from_mapping(cells, sensitive=["sex"], label="hired")
    >>> plan_aside(counts, PlanRequest(tolerance=0.1, reference="original")).cost
    5.0
    """
    with Aside() as aside:
        return aside.plan(counts, request, progress=progress, cancelled=cancelled)


class Aside:
    """A worker process that makes plans one after another; it starts when it is first needed.

    Threads may share it: each waits for its turn.
    """

    def __init__(self) -> None:
        self._turn = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._said: queue.SimpleQueue[Any] = queue.SimpleQueue()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def pid(self) -> int | None:
        """The number of the worker process, if there is one."""
        return None if self._process is None else self._process.pid

    def plan(
        self,
        counts: Counts,
        request: PlanRequest,
        *,
        progress: Reporter = silent,
        cancelled: Callable[[], bool] = lambda: False,
    ) -> Plan:
        """Make a plan, as :func:`plan_aside` does."""
        from equipoise.plans.planner import make_plan

        limit = 1.1 * request.time_limit + GRACE
        made: Plan = self.run(
            make_plan, counts, request, time_limit=limit, progress=progress, cancelled=cancelled
        )
        return made

    def run(
        self,
        function: Callable[..., Any],
        *given: Any,
        time_limit: float,
        progress: Reporter | None = None,
        cancelled: Callable[[], bool] = lambda: False,
    ) -> Any:
        """Call a function that can be imported, in the worker process, and return its result.

        It takes a keyword ``progress`` if one is given here.
        """
        with self._turn:
            end = time.monotonic() + time_limit
            process = self._started()
            try:
                self._send(process, (function, given, progress is not None))
                return self._answer(process, end, time_limit, progress or silent, cancelled)
            except BaseException as error:
                # The worker waits for the next task only after an answer, be it an error.
                if not getattr(error, "from_worker", False):
                    self._end()
                raise

    def close(self) -> None:
        """End the worker process."""
        with self._turn:
            self._end()

    def _started(self) -> subprocess.Popen[bytes]:
        if self._process is None or self._process.poll() is not None:
            self._end()
            variables = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
            self._process = subprocess.Popen(  # noqa: S603  the command is ours
                [sys.executable, "-c", _COMMAND],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                env=variables,
            )
            self._said = queue.SimpleQueue()
            reader = (self._process.stdout, self._said)
            threading.Thread(target=_listen, args=reader, daemon=True).start()
        return self._process

    def _send(self, process: subprocess.Popen[bytes], task: Any) -> None:
        assert process.stdin is not None  # noqa: S101 - it is a pipe
        try:
            pickle.dump(task, process.stdin, protocol=pickle.HIGHEST_PROTOCOL)
            process.stdin.flush()
        except OSError:
            raise _ended(process) from None

    def _answer(
        self,
        process: subprocess.Popen[bytes],
        end: float,
        time_limit: float,
        progress: Reporter,
        cancelled: Callable[[], bool],
    ) -> Any:
        while True:
            if cancelled():
                raise Cancelled("the plan was cancelled while it was made.")
            if time.monotonic() > end:
                raise WorkerEnded(
                    f"the process that makes plans took longer than {time_limit:,.0f} seconds and "
                    "was ended; ask for less with a smaller `time_limit`, or for fewer groups."
                )
            try:
                kind, value = self._said.get(timeout=LOOK)
            except queue.Empty:
                continue
            if kind == "progress":
                progress(*value)
            elif kind == "result":
                return value
            elif kind == "error":
                value.from_worker = True
                raise value
            else:
                raise _ended(process)

    def _end(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()


def _listen(pipe: IO[bytes], said: queue.SimpleQueue[Any]) -> None:
    """Pass on what the worker says, until it ends."""
    try:
        while True:
            said.put(pickle.load(pipe))  # noqa: S301  the worker is our own
    except Exception:  # noqa: BLE001  whatever stands in the pipe of a process that died
        said.put(("ended", None))


def _ended(process: subprocess.Popen[bytes]) -> WorkerEnded:
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(timeout=5.0)
    code = process.returncode
    how = "" if code is None else f" with exit code {code}"
    if code is not None and code < 0:
        with contextlib.suppress(ValueError):
            how = f" by signal {signal.Signals(-code).name}"
    return WorkerEnded(
        f"the process that makes plans ended{how} before the plan was done; this program goes on. "
        "Ask for the plan again, or with other limits: the solver may have failed on this one."
    )


# --- in the worker --------------------------------------------------------------------------------


def serve() -> None:
    """Do tasks from standard input until it ends, and answer on what was standard output."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # whatever a solver prints must not be in the middle of an answer
    tasks = sys.stdin.buffer
    lock = threading.Lock()

    def say(kind: str, value: Any) -> None:
        with lock:
            answers.write(pickle.dumps((kind, value), protocol=pickle.HIGHEST_PROTOCOL))
            answers.flush()

    while True:
        try:
            function, given, reports = pickle.load(tasks)  # noqa: S301  from our own process
        except (EOFError, KeyboardInterrupt):
            return
        _do(function, given, reports=reports, say=say)


def _do(
    function: Callable[..., Any], given: Any, *, reports: bool, say: Callable[[str, Any], None]
) -> None:
    options: dict[str, Any] = {}
    if reports:
        options["progress"] = lambda title, share: say("progress", (title, share))
    try:
        result = function(*given, **options)
    except Exception as error:  # noqa: BLE001  it is raised again, in the other process
        say("error", _portable(error))
    else:
        say("result", result)


def _portable(error: Exception) -> Exception:
    """The error itself if it can be sent, or one of its kind with the same text."""
    try:
        pickle.loads(pickle.dumps(error))  # noqa: S301  made here
    except Exception:  # noqa: BLE001  a class that cannot be made again from its text
        kind = next(k for k in (InputError, EquipoiseError, RuntimeError) if _fits(error, k))
        return kind(str(error))
    return error


def _fits(error: Exception, kind: type[Exception]) -> bool:
    return isinstance(error, kind) or kind is RuntimeError
