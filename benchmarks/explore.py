"""The explorer: from a dragged control to the redrawn result, many users, large tables, memory.

A real browser (Chromium, by Playwright) drags and waits; other users are clients in threads of one
process. EXPLORE_CALLS sets the number of calls that are made up from the OpenAPI document.
"""

from __future__ import annotations

import contextlib
import os
import random
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import data
from bars import Bar, Section, markdown_table

sys.path.insert(0, str(data.HERE.parent / "tools"))

import browsing
import httpx
import psutil

ROWS = 10_000_000
USERS, SECONDS, WARM_UP = 20, 20.0, 5.0
REQUESTS, FIRST = 1000, 200
STARTS, DRAGS = 7, 40
CALLS = int(os.environ.get("EXPLORE_CALLS", "5000"))

ADULT = {"data": "adult", "label": data.LABEL}
TWO = {**ADULT, "sensitive_features": data.ATTRIBUTES["A2"]}
FOUR = {
    **ADULT,
    "sensitive_features": data.ATTRIBUTES["A4"],
    "bins": "age=" + ",".join(map(str, data.AGE_EDGES)),
}


def section() -> Section:
    """Start explorers, use them, and judge how long that takes."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        started = _starts(folder)
        drags = {name: _dragged(folder, asked) for name, asked in (("2", TWO), ("4", FOUR))}
        large = _large(folder)
        users = _users(folder)
        memory = _memory(folder)
        calls = _calls(folder)
    load = os.getloadavg()[0]
    return _section(started, drags, large, users, memory, calls, load)


def _told(text: str) -> None:
    print(f"explore: {text} ...", file=sys.stderr, flush=True)


@contextlib.contextmanager
def _running(
    folder: Path, *options: str, users: int = 1, root: Path | None = None
) -> Iterator[Any]:
    """An explorer with a home of its own, and a cache that all of them share."""
    tokens = tuple(f"a-token-of-user-{number:04}" for number in range(users))
    home = Path(tempfile.mkdtemp(dir=folder))
    for name in ("root", "cache"):
        (folder / name).mkdir(exist_ok=True)
    made = browsing.Explorer(root or folder / "root", home, folder / "cache", options, tokens)
    made.start()
    try:
        yield made
    finally:
        made.stop()


def _client(explorer: Any, user: int = 0) -> httpx.Client:
    headers = {"Authorization": f"Bearer {explorer.tokens[user]}"}
    return httpx.Client(base_url=explorer.origin, headers=headers, timeout=120)


@contextlib.contextmanager
def _browser(explorer: Any) -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = browsing.launch(playwright)
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        browsing.enter(page, explorer)
        browsing.settle(page)
        yield page
        browser.close()


# --- start ----------------------------------------------------------------------------------------


def _starts(folder: Path) -> dict[str, list[float]]:
    """Seconds from the command to its address, to the first page, and to what the page shows."""
    _told("starting")
    told: dict[str, list[float]] = {"address": [], "page": [], "shown": [], "shown, first time": []}
    home = Path(tempfile.mkdtemp(dir=folder))
    for name in ("root", "cache"):
        (folder / name).mkdir(exist_ok=True)
    for number in range(STARTS + 1):
        begin = time.perf_counter()
        made = browsing.Explorer(folder / "root", home, folder / "cache")
        made.start()
        address = time.perf_counter() - begin
        with _client(made) as client:
            page = client.get("/", follow_redirects=True)
            page.raise_for_status()
            seen = time.perf_counter() - begin
            client.get(f"/table/part?{page.url.query.decode()}").raise_for_status()
            shown = time.perf_counter() - begin
            client.get("/static/vega.js").raise_for_status()  # so that the next start finds it
        made.stop()
        if number:
            for name, seconds in (("address", address), ("page", seen), ("shown", shown)):
                told[name].append(seconds)
        else:
            told["shown, first time"].append(shown)
    return told


# --- a browser ------------------------------------------------------------------------------------

_DRAG = """
async (values) => {
  const html = document.documentElement;
  const range = document.querySelector('input[type=range][data-for="f-tolerance"]');
  const took = [];
  for (const value of values) {
    const before = html.dataset.loads;
    const begin = performance.now();
    range.value = value;
    range.dispatchEvent(new Event("input", { bubbles: true }));
    await new Promise((done) => {
      const seen = new MutationObserver(() => {
        if (html.dataset.loads === before) return;
        seen.disconnect();
        requestAnimationFrame(() => setTimeout(done));
      });
      seen.observe(html, { attributes: true });
    });
    took.push(performance.now() - begin);
  }
  return took;
}
"""


def _dragged(folder: Path, asked: Mapping[str, Any]) -> list[float]:
    """Milliseconds from each move of the tolerance to the redrawn plan."""
    _told(f"dragging, {len(asked['sensitive_features'])} attributes")
    values = [round(0.04 + 0.004 * ((7 * i) % DRAGS), 4) for i in range(DRAGS)]
    with _running(folder) as explorer, _browser(explorer) as page:
        browsing.visit(page, explorer, "plan", **asked, tolerance="0.1")
        _await_frontier(page)
        page.evaluate(_DRAG, [0.301, 0.302, 0.303])
        took: list[float] = page.evaluate(_DRAG, values)
    return took


def _await_frontier(page: Any) -> None:
    """Wait for the frontier, which is computed beside the plan when a room is opened."""
    end = time.monotonic() + 30
    while time.monotonic() < end:
        if page.evaluate("() => document.querySelector('#frontier svg') !== null"):
            return
        time.sleep(0.1)


def _large(folder: Path) -> list[float]:
    """Seconds until the bias of ten million rows is shown, in explorers that have not seen them."""
    path = data.resampled(ROWS).resolve()
    data.warm(path)
    asked = {"data": path.name, "sensitive_features": data.ATTRIBUTES["A2"], "label": data.LABEL}
    seconds = []
    for _ in range(3):
        _told(f"bias of {ROWS:,} rows")
        with _running(folder, root=path.parent) as explorer, _browser(explorer) as page:
            time.sleep(2)  # a person takes longer to choose the columns
            begin = time.perf_counter()
            browsing.visit(page, explorer, "bias", **asked)
            seconds.append(time.perf_counter() - begin)
    return seconds


# --- many users -----------------------------------------------------------------------------------


def _users(folder: Path) -> dict[str, list[float]]:
    """Seconds of each answer, by room, while all users ask at once, one request after another."""
    _told(f"{USERS} users")
    found: dict[str, list[float]] = {"plan": [], "bias": [], "map": []}
    failed: list[str] = []
    with _running(folder, users=USERS) as explorer:
        begin = time.monotonic()
        threads = [
            threading.Thread(target=_use, args=(explorer, user, begin, found, failed))
            for user in range(USERS)
        ]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
    if failed:
        raise RuntimeError(f"{len(failed)} requests failed, such as: {failed[0]}")
    return found


def _use(
    explorer: Any, user: int, begin: float, found: dict[str, list[float]], failed: list[str]
) -> None:
    chance = random.Random(user)
    with _client(explorer, user) as client:
        while (now := time.monotonic() - begin) < WARM_UP + SECONDS:
            room = chance.choices(("plan", "bias", "map"), (8, 1, 1))[0]
            start = time.perf_counter()
            answer = client.get(f"/{room}/part", params=_asked(room, chance))
            took = time.perf_counter() - start
            if answer.status_code != 200:
                failed.append(f"{room}: {answer.status_code} {answer.text[:200]}")
            if now > WARM_UP:
                found[room].append(took)


def _asked(room: str, chance: random.Random) -> dict[str, Any]:
    """What a user asks for: a plan while dragging, groups of a bias, a point of a map."""
    own: dict[str, Any] = {
        "plan": {"tolerance": round(chance.uniform(0.04, 0.2), 4), "draft": "true"},
        "bias": {"limit": round(chance.uniform(0.05, 0.3), 3), "at": "sex=Female"},
        "map": {"at_x": chance.randrange(3000), "at_y": chance.randrange(300), "still": "true"},
    }[room]
    return {**TWO, **own}


# --- memory ---------------------------------------------------------------------------------------


def _memory(folder: Path) -> list[float]:
    """Megabytes of the server and its workers, after every hundred requests of all kinds."""
    _told(f"{REQUESTS} requests")
    chance, sizes = random.Random(1), []
    with _running(folder) as explorer, _client(explorer) as client:
        for number in range(REQUESTS + FIRST):
            room = ("plan", "plan", "plan", "bias", "map", "table")[number % 6]
            asked = _asked(room, chance) if room != "table" else {**TWO, "na": str(number)}
            if room == "plan" and number % 2:
                asked.pop("draft")
            client.get(f"/{room}/part", params=asked).raise_for_status()
            if (number + 1) % 100 == 0:
                sizes.append(_megabytes(explorer.process.pid))
    return sizes


def _megabytes(pid: int) -> float:
    server = psutil.Process(pid)
    each = [server, *server.children(recursive=True)]
    return sum(process.memory_full_info().uss for process in each) / 1e6


# --- calls that are made up -----------------------------------------------------------------------


def _calls(folder: Path) -> Any:
    from calling import call

    _told(f"{CALLS} calls")
    root = folder / "root"
    (root / "lake").mkdir(parents=True, exist_ok=True)
    rows = "sex,race,hired\n" + "w,a,yes\nw,b,no\nw,a,no\nm,a,yes\nm,b,yes\nm,a,no\n" * 30
    for name in ("people.csv", "lake/more.csv"):
        (root / name).write_text(rows)
    with _running(folder) as explorer:
        return call(explorer.origin, explorer.tokens[0], calls=CALLS)


# --- what is told ---------------------------------------------------------------------------------


def _section(
    started: Mapping[str, Sequence[float]],
    drags: Mapping[str, Sequence[float]],
    large: Sequence[float],
    users: Mapping[str, Sequence[float]],
    memory: Sequence[float],
    calls: Any,
    load: float,
) -> Section:
    note = (
        f"On loopback. Chromium drags the tolerance of a plan of Adult {DRAGS} times, from the event of "
        f"the control to the frame with the redrawn charts. {USERS} users ask one request after "
        f"another without pausing, for {SECONDS:.0f} s: 8 of 10 are plans while dragging. Memory is that "
        f"of the server and its workers which nobody else shares. Load average at the end: {load:.1f}."
    )
    every = sorted(seconds for room in users.values() for seconds in room)
    rows = [
        ("from the command to its address", *_spread(started["address"], 1e3, "ms")),
        ("… to the first page", *_spread(started["page"], 1e3, "ms")),
        ("… to what the first page shows", *_spread(started["shown"], 1e3, "ms")),
        ("… the first time of all", *_spread(started["shown, first time"], 1e3, "ms")),
        *((f"drag, {n} attributes", *_spread(ms, 1, "ms")) for n, ms in drags.items()),
        (f"bias of {ROWS:,} rows shown", *_spread(large, 1e3, "ms")),
        *((f"{USERS} users: {r}", *_spread(s, 1e3, "ms")) for r, s in users.items() if s),
    ]
    growth = max(memory[FIRST // 100 :]) - memory[FIRST // 100 - 1]
    told = f"{len(every) / SECONDS:.0f} answers a second for {USERS} users. Memory after {FIRST} requests "
    told += f"{memory[FIRST // 100 - 1]:.0f} MB, largest after that {max(memory[FIRST // 100 :]):.0f} MB. "
    told += f"{calls.calls:,} calls were answered: {dict(sorted(calls.statuses.items()))}."
    allowed = max(30.0, 0.1 * memory[FIRST // 100 - 1])
    errors = sum(number for status, number in calls.statuses.items() if status >= 500)
    bars = [
        Bar("drag, 2 attributes, median", statistics.median(drags["2"]), 150, unit=" ms"),
        Bar("drag, 4 attributes, median", statistics.median(drags["4"]), 300, unit=" ms"),
        Bar("bias of 10 million rows first shown", statistics.median(large), 2, unit=" s"),
        Bar(f"{USERS} users, 95th percentile", every[int(0.95 * len(every))], 1, unit=" s"),
        Bar("growth of memory", growth, allowed, unit=" MB"),
        Bar("first page ready", statistics.median(started["shown"]), 1.5, unit=" s"),
        Bar("calls answered", calls.calls, CALLS, "at least", unit=""),
        Bar("errors of the server among them", errors, 0, unit=""),
        Bar("answers that are not as described", len(calls.problems), 0, unit=""),
    ]
    header = ["what", "median", "95th percentile", "largest"]
    return Section("The explorer", [note, markdown_table(header, rows), told], bars)


def _spread(values: Sequence[float], scale: float, unit: str) -> tuple[str, str, str]:
    ordered = sorted(value * scale for value in values)
    middle, high = statistics.median(ordered), ordered[int(0.95 * (len(ordered) - 1))]
    return (f"{middle:,.0f} {unit}", f"{high:,.0f} {unit}", f"{ordered[-1]:,.0f} {unit}")


if __name__ == "__main__":
    print(section().markdown())
