"""A process that adds batches to a stream, and prints each before it is added and once it is acknowledged.

Run with a case in JSON, or imported for the batches that it adds: batch n is the same in every
process, so that what a store holds can be compared with what was added, cell by cell.
"""

from __future__ import annotations

import contextlib
import datetime
import itertools
import json
import os
import sqlite3
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import IO, NamedTuple

import numpy as np

import equipoise as eq

NAME = "loans"
SENSITIVE, LABEL = ("sex", "race"), "decision"
RACES = ("Asian", "Black", "Native", "Other", "Pacific", "White")
LABELS = ("denied", "granted", "pending")
CELLS = tuple(itertools.product(("Female", "Male"), RACES, LABELS))
ROWS = 500
START = datetime.datetime(2025, 1, 1, tzinfo=datetime.UTC)

# Modules are compiled, as in an installed program.
ENVIRONMENT = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}


def cells_of(number: int) -> list[int]:
    """Rows of each cell of a batch: women are granted less than men, by more than 0.1 of UB."""
    weights = np.ones((2, len(RACES), len(LABELS)))
    weights[0, :, 1] *= 0.6
    shares = weights.ravel() / weights.sum()
    return np.random.default_rng([7, number]).multinomial(ROWS, shares).tolist()


def add(monitor: eq.Monitor, number: int) -> str:
    """Add a batch; what became of it."""
    rows = dict(zip(CELLS, cells_of(number), strict=True))
    counts = eq.Counts.from_mapping(rows, sensitive=SENSITIVE, label=LABEL)
    at = START + datetime.timedelta(hours=number)
    return monitor.add(counts, name=NAME, id=f"batch {number}", at=at).receipts[0].outcome


def started(store: Path, answers: IO[str], first: int, end: int, step: int = 1) -> subprocess.Popen:
    """Start a process that adds batches; what it acknowledges is written to a file."""
    case = json.dumps({"store": str(store), "first": first, "end": end, "step": step})
    return subprocess.Popen([sys.executable, __file__, case], stdout=answers, env=ENVIRONMENT)


class Answers(NamedTuple):
    """What a process has said until it ended or was killed."""

    acknowledged: list[int]
    """The numbers of the batches that were added, or that it found there."""
    found: int
    is_adding: bool
    """Whether it was killed while it added a batch."""


def answers_of(path: Path) -> Answers:
    """Read what a process has said; a last line that is cut off tells nothing."""
    text = path.read_text()
    lines = [line.split() for line in text[: text.rfind("\n") + 1].splitlines()]
    done = [(int(number), outcome) for number, outcome in lines if outcome != "begins"]
    found = sum(outcome == "there" for _, outcome in done)
    return Answers([number for number, _ in done], found, bool(lines) and lines[-1][1] == "begins")


class Kept(NamedTuple):
    """What is wrong with a store: numbers of batches, and what SQLite finds."""

    lost: int
    twice: int
    wrong: int
    integrity: str


def examine(store: Path, told: Sequence[int]) -> Kept:
    """Compare a store with the batches that were acknowledged, read without our code."""
    with contextlib.closing(sqlite3.connect(store)) as connection:
        (integrity,) = connection.execute("PRAGMA integrity_check").fetchone()
        query = "SELECT cell, cell_values FROM equipoise_cell"
        cells = {cell: tuple(json.loads(text)) for cell, text in connection.execute(query)}
        query = "SELECT id, cells FROM equipoise_batch WHERE state = 'current'"
        batches = [(int(id_.split()[1]), blob) for id_, blob in connection.execute(query)]
    numbers = {number for number, _ in batches}
    wrong = sum(_rows(cells, blob) != cells_of(number) for number, blob in batches)
    return Kept(len(set(told) - numbers), len(batches) - len(numbers), wrong, integrity)


def _rows(cells: dict[int, tuple[str, ...]], blob: bytes) -> list[int]:
    pairs = np.frombuffer(blob, np.dtype([("cell", "<u4"), ("rows", "<i8")]))
    rows = {cells[cell]: n for cell, n in pairs.tolist()}
    return [rows.get(cell, 0) for cell in CELLS]


def main() -> None:
    asked = json.loads(sys.argv[1])
    with eq.Monitor(asked["store"]) as monitor:
        for number in range(asked["first"], asked["end"], asked["step"]):
            print(number, "begins", flush=True)
            print(number, add(monitor, number), flush=True)


if __name__ == "__main__":
    main()
