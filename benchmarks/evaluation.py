"""Evaluations: how long a first look takes, and whether killed runs go on to the same numbers."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from bars import Bar, Section, markdown_table

LOOKS = {
    "adult": ["adult", "-s", "sex", "-l", "income", "--quick"],
    "the paper's data, but COMPAS": ["--paper", "--studies", "adult,credit", "--quick"],
}
WORK = ["adult", "-s", "sex", "-l", "income", "--max-rows", "4000", "--repeats", "4"]
KILLS = 10


def section() -> Section:
    """Time first looks, then kill runs at random moments and hold what they end with together."""
    seconds = {name: _timed(line) for name, line in LOOKS.items()}
    with tempfile.TemporaryDirectory() as scratch:
        kills, unlike = _killed(Path(scratch))
    rows = [(name, f"{each:.1f} s") for name, each in seconds.items()]
    how = (
        "`--quick` has 3 repeats of gradient boosting and logistic regression, on at most 10,000 rows. "
        f"{kills} runs of 4 repeats were killed (SIGKILL) at random moments, each going on from the "
        "file of the one before; what they end with is held against a run that was left alone, on one "
        "core and on all."
    )
    bars = [Bar(f"first look, {n}", s, 60, unit=" s") for n, s in seconds.items()]
    bars.append(Bar("evaluations that differ after kills, or by cores", unlike, 0, unit=""))
    return Section("Evaluation", [how, markdown_table(["first look", "time"], rows)], bars)


def _command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "equipoise", "evaluate", *arguments, "-q"]


def _timed(line: list[str]) -> float:
    print(f"evaluation: {' '.join(line)} ...", file=sys.stderr, flush=True)
    start = time.perf_counter()
    subprocess.run(_command(*line), check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - start


def _killed(folder: Path) -> tuple[int, int]:
    draw, kills = random.Random(5), 0
    broken = _command(*WORK, "-o", str(folder / "broken.json"))
    for _ in range(KILLS):
        work = subprocess.Popen(broken, start_new_session=True)
        try:
            work.wait(timeout=draw.uniform(2, 8))
        except subprocess.TimeoutExpired:
            work.send_signal(signal.SIGKILL)
            work.wait()
            kills += 1
    subprocess.run(broken, check=True)
    for name, jobs in (("one", "1"), ("all", "2")):
        out = str(folder / f"{name}.json")
        subprocess.run(_command(*WORK, "--jobs", jobs, "-o", out), check=True)
    found = [_studies(folder / f"{name}.json") for name in ("one", "all", "broken")]
    return kills, sum(each != found[0] for each in found[1:])


def _studies(path: Path) -> object:
    return json.loads(path.read_text(encoding="utf-8"))["studies"]
