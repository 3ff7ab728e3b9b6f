"""Take the pictures of the explorer's rooms for docs/pictures: `make pictures`.

All of them show the example, so that they are the same each time.
"""
# ruff: noqa: INP001, T201

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from browsing import Explorer, changing, enter, launch, running, settle

if TYPE_CHECKING:
    from collections.abc import Mapping

    from playwright.sync_api import Page

ROOT = Path(__file__).parent.parent
PICTURES = ROOT / "docs" / "pictures"
EXAMPLE = {
    "data": "example/adult.parquet",
    "sensitive_features": ["sex", "race"],
    "label": "income",
}
WANTED = {**EXAMPLE, "tolerance": "0.2", "min_group": "30"}
PINS = ["name=careful&tolerance=0.1&min_group=30", "name=both&tolerance=0.1&min_group=30&allow=both"]
ASKED: Mapping[str, tuple[str, Mapping[str, str | list[str]]]] = {
    "table": ("table", EXAMPLE),
    "bias": ("bias", {**EXAMPLE, "at": "sex=Female, race=Black"}),
    "plan": ("plan", {**WANTED, "pin": PINS[:1]}),
    "map": ("map", {**EXAMPLE, "at_x": "150", "at_y": "260"}),
    "lake": ("lake", {**WANTED, "lake": "example/lake"}),
    "compare": ("compare", {**EXAMPLE, "pin": PINS}),
}
"""What each picture shows."""
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
            page.screenshot(path=path)
            print(f"{path.name}: {path.stat().st_size / 1000:.0f} kB")
        browser.close()
    return 0


def prepare(page: Page, explorer: Explorer) -> dict[str, str]:
    """Enter, index the lake and repair the example; return what to open for each picture."""
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


def aim(page: Page, name: str) -> None:
    """Scroll to what a picture is about."""
    if name == "meaning":
        for box in page.locator(f"details[data-table]:not([data-table='{CODED}'])[open]").all():
            box.locator("summary").first.click()
        place = page.locator("#meaning")
        place.evaluate("(e) => scrollTo(0, e.getBoundingClientRect().top + scrollY - 70)")
    page.mouse.move(0, 0)


if __name__ == "__main__":
    sys.exit(main())
