"""Explorers for tests: the real program in a process of its own, and clients that ask it."""

from __future__ import annotations

import contextlib
import os
import queue
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import psutil

TOKENS = ("first-token-0123456789", "second-token-0123456789")


@dataclass
class Explorer:
    """A running explorer."""

    process: subprocess.Popen[str]
    address: str
    root: Path
    home: Path
    tokens: tuple[str, ...]
    said: list[str] = field(default_factory=list)
    """Lines that it printed to standard error."""

    @property
    def port(self) -> int:
        return int(self.address.rpartition(":")[2])

    def client(self, user: int = 0, **options) -> httpx.Client:
        """A client with the token of a user."""
        headers = {"Authorization": f"Bearer {self.tokens[user]}"}
        return httpx.Client(base_url=self.address, headers=headers, timeout=60, **options)

    def workers(self) -> list[int]:
        """The numbers of the processes that it started."""
        return [each.pid for each in psutil.Process(self.process.pid).children(recursive=True)]

    def stop(self, how: signal.Signals = signal.SIGINT) -> None:
        self.process.send_signal(how)
        self.process.wait(timeout=20)


@contextlib.contextmanager
def explorer(
    folder: Path,
    *arguments: str,
    root: Path | None = None,
    tokens: Sequence[str] = TOKENS,
    variables: Mapping[str, str] | None = None,
) -> Iterator[Explorer]:
    """Start an explorer that keeps everything below a folder, and end it at the end."""
    root = folder / "root" if root is None else root
    root.mkdir(parents=True, exist_ok=True)
    home = folder / "home"
    command = [sys.executable, "-m", "equipoise", "explore", "--no-open", "--root", str(root)]
    command += ["--home", str(home), "--users", str(len(tokens)), *arguments]
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(p for p in sys.path if p),
        "EQUIPOISE_TOKEN": ",".join(tokens),
        "XDG_CACHE_HOME": str(folder / "cache"),
        "TMPDIR": str(_made(folder / "temporary")),
        **(variables or {}),
    }
    pipe = subprocess.PIPE
    process = subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True, env=environment)
    printed: queue.SimpleQueue[str] = queue.SimpleQueue()
    said: list[str] = []
    threading.Thread(target=_pass_on, args=(process.stdout, printed.put), daemon=True).start()
    threading.Thread(target=_pass_on, args=(process.stderr, said.append), daemon=True).start()
    try:
        first = printed.get(timeout=60)
        found = re.match(r"(http://\S+)/\?token=", first)
        if found is None:
            raise RuntimeError(f"the explorer did not start: {first}{said}")
        yield Explorer(process, found[1], root, home, tuple(tokens), said)
    finally:
        _end(process)


def _made(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _pass_on(pipe, put) -> None:
    for line in pipe:
        put(line)
    put("")


def _end(process: subprocess.Popen[str]) -> None:
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(timeout=15)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
    for pipe in (process.stdout, process.stderr):
        if pipe is not None:
            pipe.close()


def until(condition, seconds: float = 10.0) -> bool:
    """Wait until a condition holds; whether it did in time."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.02)
    return bool(condition())


def is_alive(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
