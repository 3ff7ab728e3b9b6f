"""How long the command line takes to start, over what Python itself takes."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from bars import Bar, Section, markdown_table
from timing import Timing, interleaved

LEAST_REPEATS = 15
MOST_MS = 150
BARE_PYTHON = "python -c pass"


def section(repeats: int) -> Section:
    """Start each command many times, in turn."""
    repeats = max(repeats, LEAST_REPEATS)
    program = str(Path(sys.executable).with_name("equipoise"))
    commands = {
        BARE_PYTHON: [sys.executable, "-c", "pass"],
        "equipoise --version": [program, "--version"],
        "equipoise --help": [program, "--help"],
    }
    calls = {name: _starter(command) for name, command in commands.items()}
    for call in calls.values():
        call()  # writes the byte code, fills the file cache
    medians = {name: Timing.of(s).median * 1e3 for name, s in interleaved(calls, repeats).items()}
    over = {name: ms - medians[BARE_PYTHON] for name, ms in medians.items()}
    rows = [(f"`{name}`", f"{ms:.0f}", f"{over[name]:.0f}") for name, ms in medians.items()]
    note = f"Median of {repeats} interleaved starts, milliseconds."
    bars = [
        Bar(f"{name}, over bare Python", ms, MOST_MS, unit=" ms")
        for name, ms in over.items()
        if name != BARE_PYTHON
    ]
    return Section(
        "Start-up", [note, markdown_table(["command", "ms", "over bare Python"], rows)], bars
    )


def _starter(command: list[str]) -> Callable[[], object]:
    return lambda: subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
