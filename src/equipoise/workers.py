"""Work in a process of its own, for programs that must not end with it.

Native code can end the process that calls it, and work that takes too long can only be stopped from
outside. A program that works for others, such as a server, keeps a :class:`Worker`: its process does
the work, and if it dies, an error says so and the next task starts a new one.
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
import traceback
from typing import TYPE_CHECKING, Any, NoReturn

from equipoise.errors import EquipoiseError, InputError
from equipoise.progress import Reporter, silent

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import IO, Self

LOOK = 0.05
"""Seconds between looks at the clock and at what may cancel the work."""

_COMMAND = "from equipoise.workers import serve; serve({memory})"


class WorkerEnded(EquipoiseError):
    """The process that did the work ended before it was done."""

    exit_code = 1


class Cancelled(EquipoiseError):
    """Work that was cancelled."""

    exit_code = 1


class Worker:
    """A process that does one task after another; it starts when it is first needed.

    Threads may share it: each waits for its turn.

    Parameters
    ----------
    memory
        Maximum number of bytes that the process may allocate, where the system can limit that.
    folder
        Folder that the process works in, if not the present one.

    Examples
    --------
    >>> with Worker() as worker:
    ...     worker.run(divmod, 17, 5, time_limit=60)
    (3, 2)
    """

    doing = "works"
    """What errors say the process does."""

    def __init__(self, *, memory: int | None = None, folder: str | None = None) -> None:
        self._turn = threading.Lock()
        self._memory, self._folder = memory, folder
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
                # The worker waits for the next task only after an answer, be it an error. One that
                # ran out of memory may not have given it back.
                if not getattr(error, "from_worker", False) or _is_exhausted(error):
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
            if self._memory is not None:
                # Arrow would reserve a gigabyte at once, which counts though it is not used.
                variables.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")
            self._process = subprocess.Popen(  # noqa: S603  the command is ours
                # -P: no module is imported from the folder that it works in.
                [sys.executable, "-P", "-c", _COMMAND.format(memory=self._memory)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                env=variables,
                cwd=self._folder,
                start_new_session=True,  # so that it ends together with processes of its own
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
            raise self._ended(process) from None

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
                raise Cancelled("the work was cancelled.")
            if time.monotonic() > end:
                raise WorkerEnded(
                    f"the process that {self.doing} took longer than {time_limit:,.0f} seconds and "
                    "was ended; ask for less, such as fewer groups."
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
                raise self._ended(process)

    def _ended(self, process: subprocess.Popen[bytes]) -> WorkerEnded:
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(timeout=5.0)
        code = process.returncode
        how = "" if code is None else f" with exit code {code}"
        if code is not None and code < 0:
            with contextlib.suppress(ValueError):
                how = f" by signal {signal.Signals(-code).name}"
        return WorkerEnded(
            f"the process that {self.doing} ended{how} before the work was done; this program goes on. "
            "Ask again, or with other limits: it may have failed on this one."
        )

    def _end(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        _kill(process)
        process.wait()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()


def _is_exhausted(error: BaseException) -> bool:
    return isinstance(error, MemoryError) and not isinstance(error, EquipoiseError)


def _kill(process: subprocess.Popen[bytes]) -> None:
    """Kill a process and those that it started."""
    if hasattr(os, "killpg"):
        with contextlib.suppress(OSError):
            os.killpg(process.pid, signal.SIGKILL)
    process.kill()


def _listen(pipe: IO[bytes], said: queue.SimpleQueue[Any]) -> None:
    """Pass on what the worker says, until it ends."""
    try:
        while True:
            said.put(pickle.load(pipe))  # noqa: S301  the worker is our own
    except Exception:  # noqa: BLE001  whatever stands in the pipe of a process that died
        said.put(("ended", None))


# --- in the worker --------------------------------------------------------------------------------


def serve(memory: int | None = None) -> None:
    """Do tasks from standard input until it ends, and answer on what was standard output."""
    _limit_memory(memory)
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # whatever a solver prints must not be in the middle of an answer
    tasks: queue.SimpleQueue[Any] = queue.SimpleQueue()
    threading.Thread(target=_receive, args=(sys.stdin.buffer, tasks), daemon=True).start()
    lock = threading.Lock()

    def say(kind: str, value: Any) -> None:
        answer = pickle.dumps((kind, value), protocol=pickle.HIGHEST_PROTOCOL)
        with lock:
            try:
                answers.write(answer)
                answers.flush()
            except OSError:
                _end_all()

    while True:
        try:
            function, given, reports = tasks.get()
        except KeyboardInterrupt:
            return
        _do(function, given, reports=reports, say=say)


def _receive(pipe: IO[bytes], tasks: queue.SimpleQueue[Any]) -> None:
    """Pass on tasks; end this process and those it started as soon as nobody is left to ask for any."""
    try:
        while True:
            tasks.put(pickle.load(pipe))  # noqa: S301  from our own process
    except Exception as error:  # noqa: BLE001  the other end is closed, or sent what is not there
        if not isinstance(error, (EOFError, OSError)):
            traceback.print_exc()
        _end_all()


def _end_all() -> NoReturn:
    """End this process and those it started, because nobody listens to it any more."""
    if hasattr(os, "killpg") and os.getpgrp() == os.getpid():
        os.killpg(os.getpid(), signal.SIGKILL)
    os._exit(0)


def _limit_memory(memory: int | None) -> None:
    """Let allocations beyond a limit fail in this process, where the system supports that."""
    if memory is None:
        return
    try:
        import resource
    except ImportError:  # on Windows
        return
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_DATA, (memory, memory))


def _do(
    function: Callable[..., Any], given: Any, *, reports: bool, say: Callable[[str, Any], None]
) -> None:
    options: dict[str, Any] = {}
    if reports:
        options["progress"] = lambda title, share: say("progress", (title, share))
    try:
        result = function(*given, **options)
    except Exception as raised:  # noqa: BLE001  it is raised again, in the other process
        error = MemoryError(str(raised)) if "can't start new thread" in str(raised) else raised
        if not isinstance(error, (EquipoiseError, MemoryError)):
            # Errors lose their traceback on the way, and this one is a mistake in the program.
            traceback.print_exc()
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
