"""Work that is cancelled at any step leaves no half of a file, and the next run ends as ever."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import equipoise as eq
from equipoise.errors import EquipoiseError
from lakes import write

HEADER = ("id", "sex", "age", "hired")
INDEX = ".equipoise-index.duckdb"
MAY_STAY = {f"lake/{INDEX}", f"lake/{INDEX}.lock", f"lake/{INDEX}.new"}
"""The index, its lock, and the copy with which the next run continues."""


def people(start, women, men):
    cells = [("Female", "yes")] * women + [("Male", "no")] * men
    return [(f"p{start + i}", sex, 20 + i % 40, hired) for i, (sex, hired) in enumerate(cells)]


def make_files(folder):
    base = people(0, 4, 16) + [(f"q{i}", "Male", 30 + i, "yes") for i in range(14)]
    base += [(f"r{i}", "Female", 25 + i, "no") for i in range(16)]
    write(folder / "people.csv", HEADER, base)
    for i in range(3):
        write(folder / f"lake/t{i}.csv", HEADER, people(1000 * (i + 1), 5, 5))
    write(folder / "lake/weather.csv", ("day", "rain"), [(i, i % 7) for i in range(60)])
    made = eq.plan(
        str(folder / "people.csv"),
        sensitive_features=["sex"],
        label="hired",
        tolerance=0.1,
        allow="add",
    )
    made.write(folder / "plan.json")


@pytest.fixture
def here(tmp_path, monkeypatch):
    make_files(tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def lake(report):
    return eq.Lake("lake", progress=report)


WORK = {
    "index": lambda report: lake(report).refresh(),
    "find": lambda report: lake(report).find("plan.json"),
    "questions": lambda report: lake(report).questions("plan.json"),
    "mapping": lambda report: lake(report).mapping("plan.json"),
    "acquire": lambda report: lake(report).acquire("plan.json", "out.csv"),
    "repair": lambda report: eq.repair(
        "people.csv",
        lake(report),
        "out.csv",
        sensitive_features=["sex"],
        label="hired",
        tolerance=0.1,
        allow="add",
        progress=report,
    ),
}


def files(folder):
    found = (path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in found}


def clear(folder, before):
    for name in files(folder).keys() - set(before):
        (folder / name).unlink()


def outputs(folder):
    """What a run writes apart from the index; a plan holds the time at which it was made."""
    return {n: b for n, b in files(folder).items() if n not in MAY_STAY and "plan.json" not in n}


class Steps:
    """A reporter that raises an error at one step; a slow step is reported again and again."""

    def __init__(self, at=None, error=None):
        self.at, self.error, self.titles, self.last = at, error, [], None

    def __call__(self, title, share):
        assert 0 <= share <= 1
        if (title, share) == self.last:
            return
        self.last = title, share
        self.titles.append(title)
        if len(self.titles) - 1 == self.at:
            raise self.error


class Refusal(EquipoiseError):
    """An error of ours, which an index might take for a problem of a table."""


ERRORS = (RuntimeError("stop"), TimeoutError("stop"), Refusal("stop"))


@pytest.mark.slow
@pytest.mark.parametrize("name", WORK)
def test_a_reporter_that_raises_at_any_step_leaves_nothing_behind(here, name):
    before = files(here)
    steps = Steps()
    WORK[name](steps)
    whole, every = outputs(here), files(here).keys()
    expected = _known(here)
    assert len(steps.titles) >= 5
    for i in _some(len(steps.titles), name):
        clear(here, before)
        error = ERRORS[i % len(ERRORS)]
        with pytest.raises(type(error)) as caught:
            WORK[name](Steps(i, error))
        assert caught.value is error
        left = files(here)
        new = left.keys() - before.keys() - MAY_STAY
        assert not new or steps.titles[i] == "verifying the result", steps.titles[i]
        assert not new or left.keys() - MAY_STAY == every - MAY_STAY  # all were in place
        assert {n: left[n] for n in before} == before
        # The next run continues, and ends as if nothing had happened.
        WORK[name](lambda title, share: None)
        assert outputs(here) == whole, steps.titles[i]
        assert f"lake/{INDEX}.new" not in files(here)
        assert _known(here) == expected


def _some(steps, name):
    """All steps, or in long work some of them and the last ones, in which files are written."""
    every = {"find": 3, "acquire": 6, "repair": 6}.get(name, 1)
    return [i for i in range(steps) if i % every == 0 or i >= steps - 4]


def _known(folder):
    tables = eq.Lake(folder / "lake", refresh=False).tables
    return [(t.name, t.rows, t.problem, t.profiled, t.snapshot) for t in tables]


def test_an_output_that_was_there_stays_as_it_was(here):
    Path("out.csv").write_text("mine")
    steps = Steps()
    eq.Lake("lake").refresh()
    lake(steps).acquire("plan.json", "other.csv")
    for i, title in enumerate(steps.titles):
        if "writing" in title or "counting" in title:
            with pytest.raises(RuntimeError):
                lake(Steps(i, RuntimeError())).acquire("plan.json", "out.csv")
            assert Path("out.csv").read_text() == "mine"
            assert not Path("out.csv.ledger.parquet").exists()


def test_every_table_is_a_step(here):
    before = files(here)
    for name, verb in (("index", "looking at"), ("acquire", "scanning"), ("find", "scanning")):
        clear(here, before)
        steps = Steps()
        WORK[name](steps)
        assert {f"{verb} t{i}.csv" for i in range(3)} <= set(steps.titles), name


# --------------------------------------------------------------------------- SIGTERM


PROGRAM = """
import contextlib, os, signal, sys
from equipoise.cli import terminal

at, count, last = int(sys.argv[1]), 0, None

def report(title, share):
    global count, last
    if (title, share) == last:
        return
    last = title, share
    if count == at:
        os.kill(os.getpid(), signal.SIGTERM)
    count += 1

@contextlib.contextmanager
def progress(*, quiet):
    yield report

terminal.progress = progress
from equipoise.cli.app import run
code = run(sys.argv[2:])
print(count, file=sys.stderr)
sys.exit(code)
"""

COMMANDS = {
    "index": ["lake", "index", "lake"],
    "find": ["find", "plan.json", "lake"],
    "acquire": ["acquire", "plan.json", "lake", "-o", "out.csv"],
}


def start(at, command, temporary):
    given = {**os.environ, "TMPDIR": str(temporary)}
    return subprocess.run(
        [sys.executable, "-c", PROGRAM, str(at), *COMMANDS[command]],
        env=given,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGTERM")
@pytest.mark.parametrize("command", COMMANDS)
def test_a_run_that_is_asked_to_stop_leaves_nothing_behind(here, tmp_path_factory, command):
    temporary = tmp_path_factory.mktemp("tmp")
    before = files(here)
    done = start(-1, command, temporary)
    assert done.returncode in (0, 1), done.stderr
    whole, steps = outputs(here), int(done.stderr.splitlines()[-1])
    for at in sorted({0, steps // 2, steps - 1}):
        clear(here, before)
        done = start(at, command, temporary)
        assert done.returncode == 143, (at, done.stderr)
        assert "Traceback" not in done.stderr
        left = files(here)
        assert left.keys() - before.keys() <= MAY_STAY, at
        assert {n: left[n] for n in before} == before
        assert [path.name for path in temporary.iterdir()] == []
    assert start(-1, command, temporary).returncode in (0, 1)
    assert outputs(here) == whole
    assert f"lake/{INDEX}.new" not in files(here)
