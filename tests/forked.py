"""Processes that add batches to a store, to be killed, stopped or run at once.

They are forked from one that has loaded everything, so that a test can have dozens of them.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import io
import itertools
import json
import os
import random
import resource
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections import Counter
from pathlib import Path

import equipoise as eq

NAME = "loans"
COLUMNS = ("sex", "race")
UNLIMITED = resource.RLIM_INFINITY


def cells_of(number):
    """The cells of a batch, the same in every process; every fifth has one that is new."""
    draw = random.Random(number)
    races = ["a", "b", "c"] + [f"d{number // 5}"] * (number % 5 == 0)
    return {cell: draw.randint(1, 40) for cell in itertools.product("mw", races, ("no", "yes"))}


def add(monitor, number):
    """Add a batch, whose id is its number."""
    counts = eq.Counts.from_mapping(cells_of(number), sensitive=COLUMNS, label="granted")
    at = f"2026-{number // 28 % 12 + 1:02}-{number % 28 + 1:02}"
    return monitor.add(counts, name=NAME, id=str(number), at=at)


def sums(numbers):
    """The cells of batches together, computed by hand."""
    total = Counter()
    for number in numbers:
        total.update(cells_of(number))
    return total


def kept(monitor):
    """The cells of all batches that a store has."""
    counts = monitor.counts(NAME).to_dict()
    values = [axis["values"] for axis in counts["axes"]]
    cells = [tuple(v[c] for v, c in zip(values, line, strict=True)) for line in counts["codes"]]
    return Counter(dict(zip(cells, counts["rows"], strict=True)))


class Process:
    """A forked process; what it prints is in a file."""

    def __init__(self, parent, pid, answers):
        self._parent, self.pid, self.answers = parent, pid, answers

    def send(self, how):
        os.kill(self.pid, how)

    def wait(self):
        """Wait until it has ended; its exit code, or a signal as a number below 0."""
        return self._parent.ask({"wait": self.pid})

    @property
    def said(self):
        # A full disk may cut a letter in two.
        return self.answers.read_text(encoding="utf-8", errors="replace")

    @property
    def told(self):
        """The numbers of the batches that it was told are added; a line that is cut off tells none."""
        lines = self.said.rpartition("\n")[0].splitlines()
        return [int(line) for line in lines if line.isdigit()]

    def wait_for_more(self, seconds=20):
        """Wait until it has printed something."""
        end = time.monotonic() + seconds
        while not self.answers.stat().st_size:
            assert time.monotonic() < end, "nothing was printed"
            time.sleep(0.002)


class Parent:
    """The process that others are forked from."""

    def __init__(self, folder):
        self._folder, self._numbers = Path(folder), itertools.count()
        self._process = subprocess.Popen(
            [sys.executable, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def ask(self, asked):
        self._process.stdin.write(json.dumps(asked) + "\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())

    def _start(self, **asked):
        answers = self._folder / f"answers{next(self._numbers)}"
        answers.touch()
        return Process(self, self.ask({**asked, "answers": str(answers)}), answers)

    def add(self, store, numbers, **how):
        """Start to add batches; the number of each is printed once it is added."""
        return self._start(store=str(store), numbers=list(numbers), **how)

    def type(self, *words, **how):
        """Start a command of ``equipoise monitor``."""
        return self._start(words=["monitor", *map(str, words)], **how)

    def close(self):
        self._process.communicate()


@contextlib.contextmanager
def parent(folder):
    """Start the process that others are forked from."""
    made = Parent(folder)
    try:
        made.ask({"wait": 0})  # until it is loaded
        yield made
    finally:
        made.close()


# ------------------------------------------------------------------- in the processes


def _load():
    """Load what the processes need; pyarrow would load pandas, and not hear Ctrl-C while it does."""
    import duckdb
    import pandas
    import psycopg

    from equipoise.cli.app import run

    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
        store = f"{folder}/bias.sqlite"
        with eq.Monitor(store) as monitor:
            add(monitor, 0)
        for command in ("check", "show", "list", "merge"):
            run(["monitor", command, "--name", NAME, "--store", store])
    return duckdb, pandas, psycopg


def _serve():
    _load()
    for line in sys.stdin:
        asked = json.loads(line)
        if "wait" in asked:
            said = asked["wait"] and os.waitstatus_to_exitcode(os.waitpid(asked["wait"], 0)[1])
        elif (said := os.fork()) == 0:
            _work(asked)
        _say(json.dumps(said))


def _work(asked):
    """Do what is requested, and end."""
    code = 70
    try:
        answers = os.open(asked["answers"], os.O_WRONLY | os.O_APPEND)
        for stream in (1, 2):
            os.dup2(answers, stream)
        _limit(asked)
        time.sleep(max(0, asked.get("start", 0) - time.time()))
        code = _typed(asked["words"]) if "words" in asked else _added(asked)
    except BaseException:  # noqa: BLE001  it must not go on as its parent
        resource.setrlimit(resource.RLIMIT_FSIZE, (UNLIMITED, UNLIMITED))
        traceback.print_exc()
    finally:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        gc.collect()  # as at the end of a program, stores are closed
        sys.stdout.flush()
        os._exit(code)


def _limit(asked):
    if "room" in asked:
        # With less room than a file takes, a process gets an error; or it is killed while it writes.
        how = signal.SIG_DFL if asked.get("deadly") else signal.SIG_IGN
        signal.signal(signal.SIGXFSZ, how)
        resource.setrlimit(resource.RLIMIT_FSIZE, (asked["room"], UNLIMITED))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if asked.get("usual_rights"):
        # As a user who may do what files say, and no more; root has rights to all of them.
        capset = getattr(ctypes.CDLL(None), "capset", None)
        if capset is not None:
            version = 0x20080522
            capset((ctypes.c_uint32 * 2)(version, 0), (ctypes.c_uint32 * 6)())


def _typed(words):
    from equipoise.cli.app import run

    return run(words)


def _added(asked):
    with eq.Monitor(asked["store"]) as monitor:
        for number in asked["numbers"]:
            add(monitor, number)
            _say(number)
    return 0


def _say(what):
    sys.stdout.write(f"{what}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    _serve()
