"""An explorer and a browser to look at it with: for the tests in tests/web, and for the pictures."""
# ruff: noqa: INP001, S603

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlencode

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page, Playwright

SRC = Path(__file__).parent.parent / "src"
TOKEN = "a-token-for-tests-0123456789"  # noqa: S105  of explorers that run for a minute
MISSING = (
    "there is no Chromium; install one (Debian: apt-get install chromium) so that `chromium`, "
    "`chromium-browser` or `google-chrome` is on PATH"
)
_FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-quic",
    "--no-first-run",
)
_READY = 60.0
SETTLED = "html[data-loads] #result[aria-busy=false]"
"""What a page has when its room is shown. Its policy forbids `wait_for_function`."""


def chromium() -> str | None:
    """The path of a Chromium of the system."""
    names = ("chromium", "chromium-browser", "google-chrome")
    return next(filter(None, map(shutil.which, names)), None)


def launch(playwright: Playwright) -> Browser:
    """Start a browser."""
    path = chromium()
    if path is None:
        raise SystemExit(MISSING)
    return playwright.chromium.launch(executable_path=path, args=list(_FLAGS))


@dataclass
class Explorer:
    """An explorer in a process of its own."""

    root: Path
    home: Path
    cache: Path
    options: tuple[str, ...] = ()
    tokens: tuple[str, ...] = (TOKEN,)
    port: int = 0
    addresses: list[str] = field(default_factory=list)
    process: subprocess.Popen[str] | None = None

    def start(self) -> None:
        """Start it and wait until it answers; once it had a port, it has the same again."""
        command = [sys.executable, "-m", "equipoise", "explore", *self.options, "--no-open"]
        places = ["--root", str(self.root), "--home", str(self.home), "--port", str(self.port)]
        variables = {
            **os.environ,
            "PYTHONPATH": str(SRC),
            "EQUIPOISE_TOKEN": ",".join(self.tokens),
            "XDG_CACHE_HOME": str(self.cache),
        }
        self.process = subprocess.Popen(
            [*command, *places], stdout=subprocess.PIPE, text=True, env=variables
        )
        assert self.process.stdout is not None  # noqa: S101 - it is a pipe
        self.addresses = [self.process.stdout.readline().strip() for _ in self.tokens]
        found = re.fullmatch(r"http://127\.0\.0\.1:(\d+)/\?token=\S+", self.addresses[0])
        if found is None:
            raise RuntimeError(f"the explorer did not start: {self.addresses[0]!r}")
        self.port = int(found[1])

    def stop(self) -> None:
        """End it, as Ctrl-C does."""
        if self.process is None:
            return
        self.process.send_signal(signal.SIGINT)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(timeout=10)
        self.process.kill()
        self.process.wait()
        if self.process.stdout is not None:
            self.process.stdout.close()
        self.process = None

    @property
    def origin(self) -> str:
        """Its address, without a token."""
        return f"http://127.0.0.1:{self.port}"

    def address(self, room: str, asked: Mapping[str, str | Sequence[str]] | None = None) -> str:
        """The address of a room."""
        return f"{self.origin}/{room}" + (f"?{urlencode(asked, doseq=True)}" if asked else "")

    def wait_for_example(self) -> None:
        """Wait until the example is written."""
        end = time.monotonic() + _READY
        while not (self.home / "example" / "lake" / "sources.toml").exists():
            if time.monotonic() > end:
                raise RuntimeError("the example was not written")
            time.sleep(0.05)


@contextlib.contextmanager
def running(
    folder: Path,
    *options: str,
    cache: Path | None = None,
    tokens: tuple[str, ...] = (TOKEN,),
) -> Iterator[Explorer]:
    """Run an explorer whose files are all below a folder."""
    for name in ("root", "home", "cache"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    made = Explorer(folder / "root", folder / "home", cache or folder / "cache", options, tokens)
    made.start()
    try:
        yield made
    finally:
        made.stop()


def enter(page: Page, explorer: Explorer, user: int = 0) -> None:
    """Open the address that the explorer printed, which leaves its token in the browser."""
    page.goto(explorer.addresses[user])


def settle(page: Page) -> None:
    """Wait until the room is shown."""
    page.wait_for_selector(SETTLED, state="attached", timeout=60_000)


@contextlib.contextmanager
def changing(page: Page) -> Iterator[None]:
    """Do something that changes what is shown, and wait until it is."""
    before = page.locator("html").get_attribute("data-loads")
    yield
    page.wait_for_selector(f"html:not([data-loads='{before}'])", state="attached", timeout=60_000)
    settle(page)


def visit(page: Page, explorer: Explorer, room: str, **asked: str | Sequence[str]) -> None:
    """Open a room and wait until it is shown."""
    page.goto(explorer.address(room, asked))
    settle(page)
