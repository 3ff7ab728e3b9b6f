"""Temporary folders of killed programs are removed by the next one; those in use are not."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from equipoise import scratch
from equipoise.atomic import atomic_path, folder_beside
from equipoise.scratch import take_lock

TWO_DAYS = 2 * 24 * 60 * 60


def make_old(*paths):
    then = time.time() - TWO_DAYS
    for path in paths:
        os.utime(path, (then, then))


@pytest.fixture
def left(tmp_path):
    """What a killed program leaves: a folder with content and a lock that nobody holds."""
    folder = tmp_path / "equipoise-abcd_123"
    folder.mkdir()
    (folder / "spilled.tmp").write_text("rows")
    (folder / scratch.LOCK).touch()
    return folder


def test_an_abandoned_folder_is_removed_after_a_day(left):
    scratch.sweep(left.parent)
    assert left.is_dir()  # killed just now: somebody may want to look at it
    make_old(left / scratch.LOCK, left)
    scratch.sweep(left.parent)
    assert not left.exists()


def test_a_folder_in_use_stays_however_old_it_is(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    folder = scratch.make_folder()
    make_old(folder.path / scratch.LOCK, folder.path)
    scratch.sweep(tmp_path)
    assert folder.path.is_dir()
    folder.remove()
    assert list(tmp_path.iterdir()) == []


def test_a_folder_killed_before_its_lock_was_made_is_removed_if_empty(tmp_path):
    empty, full = tmp_path / "equipoise-00000000", tmp_path / "equipoise-11111111"
    for folder in (empty, full):
        folder.mkdir()
    (full / "notes.txt").write_text("somebody's own")
    make_old(empty, full)
    scratch.sweep(tmp_path)
    assert list(tmp_path.iterdir()) == [full]


def test_nothing_of_other_names_and_no_link_is_touched(tmp_path, left):
    other, link = tmp_path / "equipoise-notes", tmp_path / "equipoise-22222222"
    left.rename(other)
    link.symlink_to(other)
    make_old(other / scratch.LOCK, other)
    scratch.sweep(tmp_path)
    assert sorted(tmp_path.iterdir()) == [link, other]
    assert (other / "spilled.tmp").exists()


@pytest.mark.slow
def test_the_next_program_removes_what_a_killed_one_left(tmp_path):
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    code = (
        "from equipoise.engines.duckdb import DuckDBEngine; engine = DuckDBEngine();"
        "import os; os.kill(os.getpid(), 9)"
    )
    killed = subprocess.run([sys.executable, "-c", code], env=environment, check=False)
    assert killed.returncode == -signal.SIGKILL
    (folder,) = tmp_path.iterdir()
    make_old(folder / scratch.LOCK, folder)
    measure = [sys.executable, "-m", "equipoise", "measure", "adult", "-s", "sex", "-l", "income"]
    subprocess.run(measure, env=environment, check=True, stdout=subprocess.DEVNULL)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="Windows knows no SIGKILL")
def test_what_was_read_from_standard_input_goes_too(tmp_path):
    code = (
        "from equipoise.engines.sources import locate; locate('-');"
        "import os; os.kill(os.getpid(), 9)"
    )
    killed = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "TMPDIR": str(tmp_path)},
        input=b"a,b\n1,2\n",
        check=False,
    )
    assert killed.returncode == -signal.SIGKILL
    (folder,) = tmp_path.iterdir()
    assert (folder / "input").read_bytes() == b"a,b\n1,2\n"
    make_old(*folder.iterdir(), folder)
    scratch.sweep(tmp_path)
    assert not folder.exists()


# ------------------------------------------------------------- temporary files beside a target


def leave(target):
    """Leave what a program that is killed while it writes leaves beside its target."""
    temporary = target.with_name(f".{target.name}.abcdefgh.tmp{target.suffix}")
    temporary.write_text("half")
    folder = temporary.with_name(f"{temporary.name}.folder")
    folder.mkdir()
    (folder / target.name).write_text("half")
    return temporary, folder


def test_writing_to_a_target_removes_what_was_left_beside_it(tmp_path):
    target, other = tmp_path / "out.csv", tmp_path / "other.csv"
    temporary, folder = leave(target)
    kept, _ = leave(other)
    with atomic_path(target) as path:
        path.write_text("whole")
    assert temporary.exists()  # not yet a day old
    make_old(temporary, kept)
    with atomic_path(target) as path:
        path.write_text("whole")
    assert not temporary.exists()
    assert not folder.exists()
    assert kept.exists()


@pytest.mark.skipif(sys.platform == "win32", reason="open files are not replaced on Windows")
def test_a_temporary_file_that_is_being_written_stays(tmp_path):
    target = tmp_path / "out.csv"
    with atomic_path(target) as first, folder_beside(first) as folder:
        first.write_text("first")
        make_old(first)
        with atomic_path(target) as second:
            second.write_text("second")
        assert (first.exists(), folder.exists()) == (True, True)
    assert target.read_text() == "first"
    assert [p.name for p in tmp_path.iterdir()] == ["out.csv"]


# ------------------------------------------------------------------------------- signals

WAITING = """
import signal, sys, time
from equipoise.cli import app
from equipoise.engines.duckdb import DuckDBEngine
{before}
app._make_ready()
engine = DuckDBEngine()
print("ready", flush=True)
time.sleep({seconds})
"""


@pytest.mark.skipif(not hasattr(signal, "SIGHUP"), reason="Windows knows no SIGHUP")
@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP"])
def test_a_program_that_is_asked_to_stop_removes_its_folder(tmp_path, name):
    number = getattr(signal, name)
    code = WAITING.format(before="", seconds=60)
    with started(code, tmp_path) as process:
        assert len(list(tmp_path.iterdir())) == 1
        process.send_signal(number)
        assert process.wait(30) == 128 + number
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(not hasattr(signal, "SIGHUP"), reason="Windows knows no SIGHUP")
def test_a_program_under_nohup_goes_on(tmp_path):
    before = "signal.signal(signal.SIGHUP, signal.SIG_IGN)"  # what nohup does
    with started(WAITING.format(before=before, seconds=0.5), tmp_path) as process:
        process.send_signal(signal.SIGHUP)
        assert process.wait(30) == 0


def started(code, folder: Path) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", code],
        env={**os.environ, "TMPDIR": str(folder)},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout.readline() == "ready\n"
    return process


def test_a_lock_is_taken_once(tmp_path):
    path = tmp_path / "lock"
    path.touch()
    first, second = os.open(path, os.O_RDWR), os.open(path, os.O_RDWR)
    try:
        take_lock(first)
        with pytest.raises(BlockingIOError):
            take_lock(second)
    finally:
        os.close(first)
        os.close(second)
