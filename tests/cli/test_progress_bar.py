"""The bar that commands show on a terminal."""

import io
import sys
import time
from types import SimpleNamespace

import pytest

from equipoise.cli import terminal


class Screen(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def screen(monkeypatch):
    monkeypatch.setattr(terminal, "AFTER", 0.05)
    shown = Screen()
    # pytest puts its own stream there once the test begins, so the module gets another sys.
    monkeypatch.setattr(terminal, "sys", SimpleNamespace(stderr=shown, stdout=sys.stdout))
    return shown


def test_it_appears_before_the_first_report(screen):
    with terminal.progress(quiet=False):
        time.sleep(0.2)
        assert "working" in screen.getvalue()
    assert "100%" in screen.getvalue()


def test_a_report_names_what_is_done(screen):
    with terminal.progress(quiet=False) as report:
        time.sleep(0.1)
        report("planning", 0.5)
        assert "planning" in screen.getvalue()
        assert "50%" in screen.getvalue()
        report("planning", 0.2)
        assert "20%" not in screen.getvalue()


def test_quick_work_shows_none(screen):
    with terminal.progress(quiet=False) as report:
        report("planning", 0.5)
    time.sleep(0.1)
    assert not screen.getvalue()


def test_quiet_work_shows_none(screen):
    with terminal.progress(quiet=True) as report:
        time.sleep(0.1)
        report("planning", 0.5)
    assert not screen.getvalue()
