"""Take the pictures of the explorer's rooms for docs/pictures: `make pictures`.

All of them show the example, so that they are the same each time.
"""
# ruff: noqa: INP001, T201

from __future__ import annotations

import argparse
import base64
import datetime
import struct
import sys
import tempfile
import zlib
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from browsing import Explorer, changing, enter, launch, running, settle

import equipoise as eq

if TYPE_CHECKING:
    from collections.abc import Mapping

    from playwright.sync_api import Browser, Page

ROOT = Path(__file__).parent.parent
PICTURES = ROOT / "docs" / "pictures"
EXAMPLE = {
    "data": "example/adult.parquet",
    "sensitive_features": ["sex", "race"],
    "label": "income",
}
WANTED = {**EXAMPLE, "tolerance": "0.2"}
PINS = ["name=additions&tolerance=0.2", "name=both&tolerance=0.2&allow=both"]
ASKED: Mapping[str, tuple[str, Mapping[str, str | list[str]]]] = {
    "table": ("table", EXAMPLE),
    "bias": ("bias", EXAMPLE),
    "why": ("bias", {**EXAMPLE, "at": "sex=Female, race=Black"}),
    "plan": ("plan", {**WANTED, "pin": PINS[:1]}),
    "map": ("map", {**EXAMPLE, "at_x": "150", "at_y": "260"}),
    "lake": ("lake", {**WANTED, "lake": "example/lake"}),
    "compare": ("compare", {**EXAMPLE, "pin": PINS}),
    "monitor": ("monitor", {"store": "loans.sqlite"}),
}
"""What each picture shows."""
DAYS = 90
"""Length of the stream that is watched; its bias begins in the middle."""
CODED = "partners/registry.csv"


def main() -> int:
    """Take all pictures."""
    from playwright.sync_api import sync_playwright

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, default=PICTURES)
    parser.add_argument("--dark", action="store_true")
    parser.add_argument("--width", type=int, default=1280)
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    with (
        tempfile.TemporaryDirectory() as folder,
        running(Path(folder)) as explorer,
        sync_playwright() as playwright,
    ):
        explorer.wait_for_example()
        browser = launch(playwright)
        size = {"width": given.width, "height": 900}
        page = browser.new_context(
            viewport=size,  # type: ignore[arg-type]
            color_scheme="dark" if given.dark else "light",
            reduced_motion="reduce",
        ).new_page()
        for name, address in prepare(page, explorer).items():
            page.goto(address)
            settle(page)
            wait_for_charts(page)
            aim(page, name)
            path = given.folder / f"explore-{name}.png"
            shrink(browser, page.screenshot(), path)
            print(f"{path.name}: {path.stat().st_size / 1000:.0f} kB")
        browser.close()
    return 0


_INDEXED = """async (address) => {
  const image = new Image();
  image.src = address;
  await image.decode();
  const canvas = document.createElement("canvas");
  [canvas.width, canvas.height] = [image.width, image.height];
  const place = canvas.getContext("2d");
  place.drawImage(image, 0, 0);
  const pixels = new Uint32Array(place.getImageData(0, 0, image.width, image.height).data.buffer);
  const often = new Map();
  for (const each of pixels) often.set(each, (often.get(each) ?? 0) + 1);
  const parts = (each) => [each & 255, (each >> 8) & 255, (each >> 16) & 255];
  const far = (a, b) => parts(a).reduce((sum, part, i) => sum + (part - parts(b)[i]) ** 2, 0);
  // Half of the colours are the most frequent ones, the others those that most pixels would miss most.
  const order = [...often].sort((a, b) => b[1] - a[1] || a[0] - b[0]);
  const kept = order.slice(0, 128).map(([each]) => each);
  const rest = order.slice(128).map(([each, n]) => ({ each, n, miss: Math.min(...kept.map((one) => far(one, each))) }));
  while (kept.length < 256 && rest.some(({ miss }) => miss)) {
    const worst = rest.reduce((a, b) => (b.n * b.miss > a.n * a.miss ? b : a));
    kept.push(worst.each);
    for (const other of rest) other.miss = Math.min(other.miss, far(other.each, worst.each));
  }
  const number = new Map(kept.map((each, i) => [each, i]));
  for (const each of often.keys()) if (!number.has(each)) {
    let best = 0;
    for (let i = 1; i < kept.length; i++) if (far(each, kept[i]) < far(each, kept[best])) best = i;
    number.set(each, best);
  }
  let text = "";
  for (const each of pixels) text += String.fromCharCode(number.get(each));
  return [image.width, image.height, kept.map(parts).flat(), btoa(text)];
}"""
"""Read a picture as the numbers of 256 of its colours, others as the nearest of these."""


def shrink(browser: Browser, picture: bytes, path: Path) -> None:
    """Write a picture with at most 256 colours, in a third of the bytes."""
    page = browser.new_page()
    address = f"data:image/png;base64,{base64.b64encode(picture).decode()}"
    width, height, colours, pixels = page.evaluate(_INDEXED, address)
    page.close()
    lines = base64.b64decode(pixels)
    rows = b"".join(b"\0" + lines[y * width : (y + 1) * width] for y in range(height))
    parts = (
        (b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0)),
        (b"PLTE", bytes(colours)),
        (b"IDAT", zlib.compress(rows, 9)),
        (b"IEND", b""),
    )
    written = [
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        for kind, data in parts
    ]
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + b"".join(written))


def write_stream(path: Path) -> None:
    """Write a stream of 90 days in which Black women are granted half as many loans from day 46 on."""
    rng = np.random.default_rng(17)
    first = datetime.date(2026, 8, 17)
    mix = {
        ("Female", "Black"): 32,
        ("Female", "White"): 118,
        ("Male", "Black"): 34,
        ("Male", "White"): 136,
    }
    with eq.Monitor(path) as monitor:
        for day in range(DAYS):
            usual = 0.38 + 0.06 * np.sin(day / 14)
            cells = {}
            for group, mean in mix.items():
                rows = int(rng.poisson(mean * (1 + 0.15 * np.cos(day / 20))))
                late = day >= DAYS // 2 and group == ("Female", "Black")
                granted = int(rng.binomial(rows, usual * (0.5 if late else 1)))
                cells |= {(*group, "yes"): granted, (*group, "no"): rows - granted}
            if day == DAYS - 12:  # a day of other applicants
                cells["Female", "White", "no"] += 110
            counts = eq.Counts.from_mapping(cells, sensitive=["sex", "race"], label="granted")
            when = first + datetime.timedelta(days=day)
            monitor.add(counts, name="loans", at=when, id=f"day-{day + 1}")
        monitor.withdraw("loans", id="day-21", reason="a test run")


def prepare(page: Page, explorer: Explorer) -> dict[str, str]:
    """Write a stream, enter, index the lake and repair the example; return what to open for each picture."""
    if not (explorer.root / "loans.sqlite").exists():
        write_stream(explorer.root / "loans.sqlite")
    enter(page, explorer)
    addresses = {name: explorer.address(room, asked) for name, (room, asked) in ASKED.items()}
    page.goto(addresses["lake"])
    settle(page)
    if page.get_by_role("button", name="Index the lake").count():
        with changing(page):
            page.get_by_role("button", name="Index the lake").click()
    page.get_by_role("button", name="Repair the table with these rows").click()
    page.get_by_role("region", name="Result of the repair").wait_for(timeout=120_000)
    return {**addresses, "meaning": addresses["lake"], "repair": page.url}


def wait_for_charts(page: Page) -> None:
    """Wait until every chart that is shown is drawn."""
    for chart in page.locator(".chart").all():
        if chart.is_visible():
            chart.locator("svg").first.wait_for()
    if page.locator("#job").is_visible():
        page.locator("#job-result > *").first.wait_for()


# Each result has a random name, which would make every picture a new one.
_RENAMED = r"""() => {
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) texts.currentNode.data = texts.currentNode.data.replace(/[0-9a-f]{8}(?=-adult)/g, "4f2a91c7");
}"""


def aim(page: Page, name: str) -> None:
    """Scroll to what a picture is about."""
    if name == "meaning":
        for box in page.locator(f"details[data-table]:not([data-table='{CODED}'])[open]").all():
            box.evaluate("(e) => { e.open = false; }")
        place = page.locator("#meaning")
        place.evaluate(
            "(e) => scrollTo(0, Math.round(e.getBoundingClientRect().top + scrollY - 70))"
        )
        page.wait_for_timeout(300)  # until what sticks to the window has moved, too
    page.evaluate(_RENAMED)
    page.mouse.move(0, 0)


if __name__ == "__main__":
    sys.exit(main())
