"""How long the command line takes to start, over what Python itself takes."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from bars import Bar, Section, markdown_table
from timing import Timing, interleaved

LEAST_REPEATS = 15
BARE_PYTHON = "python -c pass"
LIMITS_MS = {
    "equipoise --version": 150,
    "equipoise --help": 150,
    # Loads numpy, scipy and DuckDB, and counts 32,561 rows: an answer in less than half a second.
    "equipoise measure adult -s sex,race -l income": 450,
}
"""The most that each command may take over bare Python."""


def section(repeats: int) -> Section:
    """Start each command many times, in turn."""
    repeats = max(repeats, LEAST_REPEATS)
    program = str(Path(sys.executable).with_name("equipoise"))
    commands = {BARE_PYTHON: [sys.executable, "-c", "pass"]}
    commands |= {name: [program, *name.split()[1:]] for name in LIMITS_MS}
    calls = {name: _starter(command) for name, command in commands.items()}
    for call in calls.values():
        call()  # writes the bytecode, fills the file cache
    medians = {name: Timing.of(s).median * 1e3 for name, s in interleaved(calls, repeats).items()}
    over = {name: ms - medians[BARE_PYTHON] for name, ms in medians.items()}
    rows = [(f"`{name}`", f"{ms:.0f}", f"{over[name]:.0f}") for name, ms in medians.items()]
    note = f"Median of {repeats} interleaved starts, milliseconds."
    bars = [
        Bar(f"{name}, over bare Python", over[name], limit, unit=" ms")
        for name, limit in LIMITS_MS.items()
    ]
    return Section(
        "Start-up", [note, markdown_table(["command", "ms", "over bare Python"], rows)], bars
    )


def _starter(command: list[str]) -> Callable[[], object]:
    # With this variable set, each start would compile packages that were installed without bytecode.
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    return lambda: subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=environment)
