"""Applications for loans, a file for each day, and what runs the examples of docs/pipelines on them."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import equipoise as eq

ROOT = Path(__file__).parent.parent
EXAMPLES = ROOT / "docs" / "pipelines"
TOOLS = ROOT / ".venv-pipelines" / "bin"
DAYS = tuple(f"2026-11-{number:02}" for number in range(1, 10))
KINDS = {
    # Applications by cell, and the share of them that is approved for women and for men.
    "quiet": ((130, 70, 60, 40), 0.5, 0.5),
    "biased": ((130, 70, 60, 40), 0.2, 0.5),
    "without black women": ((130, 70, 0, 40), 0.5, 0.5),
    "few": ((10, 8, 4, 2), 0.5, 0.5),
}
_CELLS = (("Female", "White"), ("Male", "White"), ("Female", "Black"), ("Male", "Black"))


def write_day(file: Path, kind: str) -> None:
    """Write the applications of a day."""
    sizes, women, men = KINDS[kind]
    lines = ["sex,race,approved"]
    for (sex, race), n in zip(_CELLS, sizes, strict=True):
        approved = round(n * (women if sex == "Female" else men))
        lines += [f"{sex},{race},yes"] * approved + [f"{sex},{race},no"] * (n - approved)
    file.parent.mkdir(exist_ok=True)
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")


def prepare(folder: Path, kinds=()) -> Path:
    """A folder with the configuration of the examples, and a file for each day."""
    folder.mkdir(exist_ok=True)
    shutil.copy(EXAMPLES / "equipoise.toml", folder)
    for day, kind in zip(DAYS, kinds, strict=False):
        write_day(folder / "data" / f"{day}.csv", kind)
    return folder


def watch(folder: Path, kinds) -> None:
    """Make a stream with a batch for each day."""
    prepare(folder, kinds)
    with eq.Monitor(folder / "bias.sqlite") as monitor:
        for day in DAYS[: len(kinds)]:
            file = folder / "data" / f"{day}.csv"
            columns = {"sensitive_features": ["sex", "race"], "label": "approved"}
            monitor.add(file, name="loans", id=day, at=day, **columns)


def surroundings(folder: Path, *, first=(), **more: str) -> dict[str, str]:
    """The environment of a service: its own home, `equipoise` on PATH, and little else."""
    places = [*map(str, first), str(Path(sys.executable).parent), os.defpath, "/usr/local/bin"]
    kept = {name: os.environ[name] for name in ("PYTHONPATH", "TMPDIR") if name in os.environ}
    return {**kept, "PATH": os.pathsep.join(places), "HOME": str(folder), **more}


def run(command, folder: Path, environment) -> subprocess.CompletedProcess[str]:
    """Run a command in a folder."""
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False
    )


def require_tool(name: str) -> Path:
    """A tool of the environment that `make pipelines` makes."""
    if not (TOOLS / name).exists():
        pytest.skip(f"no {name} in {TOOLS.parent.name}: make pipelines")
    return TOOLS / name
