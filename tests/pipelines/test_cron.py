"""The command of the crontab, run by sh as cron runs it, on days of our choice."""

from __future__ import annotations

import re

import pytest

import equipoise as eq
from loans import DAYS, EXAMPLES, prepare, run, surroundings


def command():
    """The command of the only entry; cron reads an escaped % as itself, and others as new lines."""
    lines = (EXAMPLES / "cron" / "crontab").read_text(encoding="utf-8").splitlines()
    (entry,) = (line for line in lines if not re.match(r"#|\w+=|$", line))
    times, text = entry.split(maxsplit=5)[:5], entry.split(maxsplit=5)[5]
    assert all(re.fullmatch(r"[\d*/,-]+", time) for time in times)
    assert not re.search(r"(?<!\\)%", text)
    return text.replace(r"\%", "%")


def run_on(day, home):
    """Run the command on a day: cron has a short environment, and mails what is printed."""
    clock = home / "bin" / "date"
    clock.parent.mkdir(exist_ok=True)
    clock.write_text(f'#!/bin/sh\n[ "$*" = "-u +%F" ] && echo {day}\n', encoding="utf-8")
    clock.chmod(0o755)
    return run(["/bin/sh", "-c", command()], home, surroundings(home, first=[clock.parent]))


@pytest.mark.slow
def test_a_quiet_day_sends_no_mail_and_counts_once(tmp_path):
    prepare(tmp_path / "loans", ["quiet"])
    for _ in range(2):
        done = run_on(DAYS[0], tmp_path)
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert eq.Monitor(tmp_path / "loans" / "bias.sqlite").counts("loans").n == 300
    assert "already there" in (tmp_path / "loans" / "bias.txt").read_text(encoding="utf-8")


@pytest.mark.slow
def test_an_alert_sends_mail(tmp_path):
    prepare(tmp_path / "loans", ["biased"] * 2)
    quiet, alert = (run_on(day, tmp_path) for day in DAYS[:2])
    assert (quiet.returncode, quiet.stdout) == (0, "")
    assert alert.returncode == 1
    assert "Alert: " in alert.stdout


@pytest.mark.slow
def test_too_little_evidence_sends_no_mail(tmp_path):
    prepare(tmp_path / "loans", ["quiet"] * 3 + ["without black women"])
    for day in DAYS[:4]:
        done = run_on(day, tmp_path)
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert "1 group has vanished" in (tmp_path / "loans" / "bias.txt").read_text(encoding="utf-8")


@pytest.mark.slow
def test_a_file_that_did_not_come_sends_mail(tmp_path):
    prepare(tmp_path / "loans")
    done = run_on(DAYS[0], tmp_path)
    assert done.returncode == 1
    assert f"data/{DAYS[0]}.csv" in done.stderr
