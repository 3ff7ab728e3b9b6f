"""Streams of batches in a store: how fast they are added, checked and shown, how much they take, and
what is left when writers are killed.

MONITOR_BATCHES=1000 makes the longest stream shorter.
"""

from __future__ import annotations

import contextlib
import datetime
import itertools
import os
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import stream_writer
from bars import Bar, Section, markdown_table
from stream_writer import CELLS, ENVIRONMENT, NAME, Kept

import equipoise as eq

BATCHES = int(os.environ.get("MONITOR_BATCHES", "10000"))
WRITERS, KILLS = 4, 100
ROUNDS = 9
PROGRAM = str(Path(sys.executable).with_name("equipoise"))
SMALL, WIDE = 30, 365
WIDE_SIZES, WIDE_ROWS = (2, 6, 4, 3, 5), 2000

MOST_CHECK, MOST_SHOW, MOST_BYTES = 1.0, 3.0, 200.0


def section() -> Section:
    """Add batches by several processes at once, then check and show them from the shell."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        store = folder / "bias.sqlite"
        took, largest, kept = _written_at_once(store)
        size = _size(store)
        timed = {f"{BATCHES:,} batches of {len(CELLS)} cells": _timed(store, NAME)}
        others = folder / "others.sqlite"
        for name, words in _others(others).items():
            timed[words] = _timed(others, name)
        killed = _killed(folder / "killed.sqlite")
    cells = BATCHES * len(CELLS)
    how = (
        f"{WRITERS} processes added {BATCHES:,} batches of {stream_writer.ROWS} rows in "
        f"{len(CELLS)} cells to one SQLite file in {took:.0f} s ({BATCHES / took:,.0f} a second). "
        "Each is on the disk before it is acknowledged. What was acknowledged was compared with what "
        f"is there, cell by cell. The store takes {size / cells:.1f} bytes per cell and batch, and at "
        f"most {largest / cells:.1f} with its log while there were writers. Times are those of "
        f"processes as they are started in a shell, medians of {ROUNDS}, with the fastest in brackets. "
        "In the first stream limits are broken."
    )
    killing = (
        f"Then {KILLS} writers were killed with `kill -9` at random moments, one after the other, "
        f"{killed.adding} of them during an add. Each went on where the one before was killed; "
        f"{killed.found} found a batch there that the one before had not yet acknowledged. In the end "
        f"there were {killed.batches:,} batches."
    )
    check, show = (statistics.median(seconds) for seconds in next(iter(timed.values())).values())
    bars = [
        Bar("acknowledged batches that are lost", kept.lost, 0, unit=""),
        Bar("batches that are there twice", kept.twice, 0, unit=""),
        Bar("batches with other cells than were added", kept.wrong, 0, unit=""),
        *_killed_bars(killed.kept),
        Bar(f"`monitor check` of {BATCHES:,} batches", check, MOST_CHECK, unit=" s"),
        Bar(f"`monitor show` of {BATCHES:,} batches", show, MOST_SHOW, unit=" s"),
        Bar("bytes per cell and batch, with the log", largest / cells, MOST_BYTES, unit=""),
    ]
    rows = [[words, *map(_seconds, times.values())] for words, times in timed.items()]
    header = ["stream", "`monitor check`, s", "`monitor show -o history.html`, s"]
    return Section("Monitoring", [how, markdown_table(header, rows), killing], bars)


def _killed_bars(kept: Kept) -> list[Bar]:
    whole = int(kept.integrity != "ok")
    return [
        Bar(f"acknowledged batches that are lost after {KILLS} kills", kept.lost, 0, unit=""),
        Bar(f"batches that are there twice after {KILLS} kills", kept.twice, 0, unit=""),
        Bar(f"batches with other cells after {KILLS} kills", kept.wrong, 0, unit=""),
        Bar(f"faults that SQLite finds after {KILLS} kills", whole, 0, unit=""),
    ]


def _written_at_once(store: Path) -> tuple[float, int, Kept]:
    """Add batches by several processes; the seconds, the most bytes there were, and what is wrong."""
    answers = [store.with_name(f"writer{first}.txt") for first in range(WRITERS)]
    with contextlib.ExitStack() as stack:
        files = [stack.enter_context(path.open("w")) for path in answers]
        start = time.perf_counter()
        writers = [
            stream_writer.started(store, file, first, BATCHES, WRITERS)
            for first, file in enumerate(files)
        ]
        largest = 0
        while any(writer.poll() is None for writer in writers):
            largest = max(largest, _size(store))
            time.sleep(0.05)
        took = time.perf_counter() - start
    if any(writer.returncode for writer in writers):
        raise RuntimeError("a writer failed")
    told = [n for path in answers for n in stream_writer.answers_of(path).acknowledged]
    if sorted(told) != list(range(BATCHES)):
        raise RuntimeError("not every batch was acknowledged once")
    kept = stream_writer.examine(store, told)
    with eq.Monitor(store) as monitor:
        sums = sum((np.array(stream_writer.cells_of(n)) for n in told), np.zeros(len(CELLS), int))
        if monitor.counts(NAME).rows.tolist() != sums.tolist():
            kept = kept._replace(wrong=max(kept.wrong, 1))
    return took, largest, kept


class Killed(NamedTuple):
    """What killing writers has shown."""

    adding: int
    """How many were killed during an add."""
    found: int
    """How many batches were there that had not been acknowledged."""
    batches: int
    kept: Kept


def _killed(store: Path) -> Killed:
    """Kill writers at random moments, from when they are loaded to when they have added many batches."""
    draw, answers, told = random.Random(5), store.with_name("killed.txt"), []
    adding = found = 0
    start = time.perf_counter()
    with answers.open("w") as file:
        stream_writer.started(store.with_name("first.sqlite"), file, 0, 1).wait()
    loaded = time.perf_counter() - start
    for _ in range(KILLS):
        with answers.open("w") as file:
            writer = stream_writer.started(store, file, len(told), sys.maxsize)
            time.sleep(draw.uniform(0.6, 1.6) * loaded)
            writer.kill()
            if writer.wait() != -signal.SIGKILL:
                raise RuntimeError("a writer failed")
        said = stream_writer.answers_of(answers)
        told += said.acknowledged
        adding, found = adding + said.is_adding, found + said.found
    kept = stream_writer.examine(store, told)
    with eq.Monitor(store) as monitor:
        batches = len(monitor.batches(NAME).batches)
    return Killed(adding, found, batches, kept)


def _size(store: Path) -> int:
    """Bytes of a store and of its log."""
    found = 0
    for path in (store, Path(f"{store}-wal")):
        with contextlib.suppress(FileNotFoundError):
            found += path.stat().st_size
    return found


def _others(store: Path) -> dict[str, str]:
    """Make a short stream, and one of many groups; their names, and what they are in words."""
    with eq.Monitor(store) as monitor:
        for number in range(SMALL):
            stream_writer.add(monitor, number)
        names = [f"a{i}" for i in range(len(WIDE_SIZES))]
        cells = list(itertools.product(*(map(str, range(size)) for size in WIDE_SIZES), "ny"))
        rng = np.random.default_rng(11)
        share = rng.dirichlet(np.full(len(cells) // 2, 0.5)).repeat(2) / 2
        for number in range(WIDE):
            rows = rng.multinomial(WIDE_ROWS, share).tolist()
            counts = eq.Counts.from_mapping(
                {cell: n for cell, n in zip(cells, rows, strict=True) if n},
                sensitive=names,
                label="label",
            )
            at = stream_writer.START + datetime.timedelta(days=number)
            monitor.add(counts, name="wide", at=at)
        groups = len({str(f.group) for f in monitor.check("wide").findings})
    return {
        NAME: f"{SMALL} batches of {len(CELLS)} cells",
        "wide": f"{WIDE} batches, 5 attributes, {groups:,} groups",
    }


def _timed(store: Path, name: str) -> dict[str, list[float]]:
    """Seconds of commands that check and show a stream, in turn."""
    where = ("--store", str(store), "--name", name)
    page = store.with_name("history.html")
    commands = {"check": ("check", *where), "show": ("show", *where, "-o", str(page))}
    seconds: dict[str, list[float]] = {command: [] for command in commands}
    for round_ in range(ROUNDS + 1):
        for command, words in commands.items():
            took = _run(words)
            if round_:  # the first one compiles modules, and fills the file cache
                seconds[command].append(took)
    if "<svg" not in page.read_text(encoding="utf-8"):
        raise RuntimeError("the page has no charts; install equipoise[charts]")
    return seconds


def _run(words: Sequence[str]) -> float:
    start = time.perf_counter()
    done = subprocess.run(
        [PROGRAM, "monitor", *words], capture_output=True, check=False, env=ENVIRONMENT
    )
    took = time.perf_counter() - start
    if done.returncode not in (0, 1, 3):  # an alert, or too few rows, are answers
        raise RuntimeError(done.stderr.decode())
    return took


def _seconds(times: Sequence[float]) -> str:
    return f"{statistics.median(times):.2f} ({min(times):.2f})"
