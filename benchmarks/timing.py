"""Timing several contestants fairly on a noisy machine."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Timing:
    """Seconds. Bars are judged by `best`: it is what other work on the machine disturbs least."""

    best: float
    median: float

    @classmethod
    def of(cls, seconds: list[float]) -> Timing:
        return cls(min(seconds), statistics.median(seconds))


def seconds_of(call: Callable[[], object]) -> float:
    start = time.perf_counter()
    result = call()
    elapsed = time.perf_counter() - start
    del result  # freed outside the time, before the next contestant starts
    return elapsed


def interleaved(
    contestants: Mapping[str, Callable[[], object]], repeats: int
) -> dict[str, list[float]]:
    """Call every contestant once a round, so that a slow spell of the machine hits all alike."""
    names = list(contestants)
    seconds: dict[str, list[float]] = {name: [] for name in names}
    for round_ in range(repeats):
        # Another one starts each round: nobody always runs in the wake of the same neighbour.
        shift = round_ % len(names)
        for name in names[shift:] + names[:shift]:
            seconds[name].append(seconds_of(contestants[name]))
    return seconds


def in_fresh_process(script: Path, case: Mapping[str, Any]) -> Any:
    """Run `script` as a worker on one case; what it prints last is its answer, as JSON."""
    command = [sys.executable, str(script), json.dumps(case)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        message = f"{script.name} failed on {dict(case)}:\n{done.stderr}"
        raise RuntimeError(message)
    return json.loads(done.stdout.splitlines()[-1])


def peak_memory_mb() -> float:
    """Peak resident memory of this process so far.

    `getrusage` is only the fall-back: Linux lets a child start with the peak of the
    process it was forked from, so a small worker of a large parent would look large.
    """
    try:
        status = Path("/proc/self/status").read_text()
    except OSError:
        import resource

        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    line = next(line for line in status.splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) / 1024


def milliseconds(seconds: float) -> str:
    return f"{seconds * 1e3:,.1f}" if seconds < 0.01 else f"{seconds * 1e3:,.0f}"
