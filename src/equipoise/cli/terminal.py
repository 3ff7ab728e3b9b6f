"""What the commands print: results to stdout, progress and hints to stderr."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import sys
import textwrap
import threading
import time
from collections.abc import Iterator
from typing import Any

import click

from equipoise.atomic import write_text
from equipoise.cli.flags import with_flags
from equipoise.plain import terminal_width, width_of
from equipoise.progress import Reporter, silent

AFTER = 1.0
"""Seconds of work after which a bar appears."""


def use_colour() -> bool:
    """Return whether stdout is a terminal that wants colour."""
    return _is_terminal() and "NO_COLOR" not in os.environ


def _is_terminal() -> bool:
    return sys.stdout is not None and sys.stdout.isatty()


def width() -> int | None:
    """The terminal's width, or none if stdout is no terminal."""
    return shutil.get_terminal_size().columns if _is_terminal() else None


def emit(text: str, output: str | None, *, quiet: bool = False, sentences: bool = False) -> None:
    """Print a text, or write it to a file atomically.

    In ``sentences``, parameters become flags, and a terminal wraps long lines.
    """
    if sentences:
        text = with_flags(text)
    if output is None:
        most = terminal_width.get()
        click.echo(_folded(text, most) if sentences and most else text)
        return
    write_text(output, text if text.endswith("\n") else text + "\n")
    wrote(output, quiet=quiet)


def _folded(text: str, most: int) -> str:
    """Wrap the lines that are wider than the terminal, without breaking words."""
    folded = []
    for line in text.split("\n"):
        # A table must keep its columns; the rule below its header shows where one is.
        if width_of(line) <= most or _RULE in line:
            folded.append(line)
            continue
        indent = " " * (len(line) - len(line.lstrip(" -")))
        start = line[: len(indent)]
        folded += textwrap.wrap(
            line[len(indent) :],
            max(most, 20),
            initial_indent=start,
            subsequent_indent=indent,
            break_long_words=False,
            break_on_hyphens=False,
        )
    return "\n".join(folded)


_RULE = "──"


@contextlib.contextmanager
def uninterrupted() -> Iterator[None]:
    """End what has been done already; Ctrl-C comes too late to stop it."""
    before = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or before is None:
        yield
        return
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def wrote(path: object, *, quiet: bool = False) -> None:
    """Report on stderr which file was written."""
    say(f"wrote {path}", quiet=quiet)


def say(sentence: str, *, quiet: bool = False) -> None:
    """Print a message to stderr, in addition to the result."""
    if not quiet:
        click.echo(with_flags(sentence), err=True)


@contextlib.contextmanager
def progress(*, quiet: bool) -> Iterator[Reporter]:
    """Show progress: a bar on a terminal, a line every ten seconds otherwise."""
    if quiet:
        yield silent
        return
    shown = _Bar() if sys.stderr.isatty() else _Lines()
    try:
        yield shown.report
    finally:
        shown.close()


class _Bar:
    """A bar that appears when work takes more than a second, even before the first report."""

    def __init__(self) -> None:
        self.start, self.done = time.monotonic(), 0
        self.bar: Any = None
        self.closed, self.lock = False, threading.Lock()
        self.timer = threading.Timer(AFTER, self._draw, args=("working", 0.0))
        self.timer.daemon = True
        self.timer.start()

    def report(self, title: str, share: float) -> None:
        if time.monotonic() - self.start >= AFTER:
            self._draw(title, share)  # most work is done before, and a bar would only flicker

    def _draw(self, title: str, share: float) -> None:
        with self.lock:
            if self.closed:
                return  # the timer ran out just then
            if self.bar is None:
                self.bar = click.progressbar(length=100, label=title, file=sys.stderr)
                self.bar.__enter__()
            # Never backwards, since each stage reports from its own beginning; 100 is for the end.
            done = max(self.done, min(int(share * 100), 99))
            self.bar.label = title
            self.bar.update(done - self.done)
            self.done = done

    def close(self) -> None:
        self.timer.cancel()
        with self.lock:
            self.closed = True
            if self.bar is not None:
                self.bar.update(100 - self.done)
                self.bar.__exit__(None, None, None)


class _Lines:
    """A line every ten seconds, for logs."""

    def __init__(self) -> None:
        self.last = time.monotonic()

    def report(self, title: str, share: float) -> None:
        if time.monotonic() - self.last >= 10:
            self.last = time.monotonic()
            click.echo(f"{title}: {share:.0%}", err=True)

    def close(self) -> None:
        pass
