"""An explorer and a browser. No page may log an error or ask another host for anything."""

from __future__ import annotations

import contextlib
import re
from dataclasses import dataclass, field
from urllib.parse import urlsplit

import browsing
import pytest

REFUSED = re.compile(r"Failed to load resource: the server responded with a status of (\d+)")


@dataclass
class Watch:
    """What a page says that it should not say."""

    origin: str
    faults: list[str] = field(default_factory=list)
    refusals: list[int] = field(default_factory=list)
    """Statuses of answers that a test expects; the browser logs each as an error."""

    def follow(self, context):
        context.on("request", self._asked)
        context.on("page", self._opened)

    def _opened(self, page):
        page.on("console", self._said)
        page.on("pageerror", lambda error: self.faults.append(f"error in a page: {error}"))

    def _asked(self, request):
        place = urlsplit(request.url)
        if place.scheme not in {"data", "blob"} and f"http://{place.netloc}" != self.origin:
            self.faults.append(f"asked {request.url}")

    def _said(self, message):
        if message.type not in {"error", "warning"}:
            return
        refused = REFUSED.match(message.text)
        if refused and int(refused[1]) in self.refusals:
            return
        self.faults.append(f"{message.type}: {message.text} ({message.location.get('url')})")


@pytest.fixture(scope="session")
def cache(tmp_path_factory):
    """Where explorers keep the library of charts, for all processes of this run."""
    return tmp_path_factory.getbasetemp().parent / "explorer-cache"


@pytest.fixture(scope="session")
def explorer(tmp_path_factory, cache):
    with browsing.running(tmp_path_factory.mktemp("explorer"), cache=cache) as made:
        made.wait_for_example()
        yield made


# One for each module: while it runs, nothing else in this process can use asyncio.
@pytest.fixture(scope="module")
def browser():
    if browsing.chromium() is None:
        pytest.skip(browsing.MISSING)
    from playwright.sync_api import expect, sync_playwright

    expect.set_options(timeout=20_000)
    with sync_playwright() as playwright:
        made = browsing.launch(playwright)
        yield made
        made.close()


@pytest.fixture
def opened(browser):
    """Open a page of an explorer, of one of its users, in a window of some size."""
    with contextlib.ExitStack() as stack:
        watches = []

        def make(explorer, *, user=0, width=1280, height=900, **options):
            size = {"width": width, "height": height}
            context = browser.new_context(viewport=size, **options)
            stack.callback(context.close)
            context.set_default_timeout(30_000)
            watch = Watch(explorer.origin)
            watch.follow(context)
            watches.append(watch)
            page = context.new_page()
            page.watch = watch
            if user is not None:
                browsing.enter(page, explorer, user)
            return page

        yield make
        for watch in watches:
            assert watch.faults == []


@pytest.fixture
def page(opened, explorer):
    return opened(explorer)
