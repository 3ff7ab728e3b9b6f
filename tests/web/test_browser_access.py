"""No serious finding of axe-core, and nothing out of reach on a phone, in any room."""

from __future__ import annotations

import build_pictures
import pytest
from browsing import settle

from equipoise.web.application import ROOMS

pytestmark = pytest.mark.slow
WINDOWS = {
    "light": {"color_scheme": "light"},
    "dark": {"color_scheme": "dark"},
    "phone": {"width": 390, "height": 844},
}
CHECKED = {"dark": {"runOnly": ["color-contrast"]}}
"""The rules that are checked if not all are: a dark window differs from a light one only in colours."""
OVERHANG = """() => {
  const seen = [];
  for (const e of document.querySelectorAll("main *, header *")) {
    const box = e.getBoundingClientRect();
    if (!box.width || box.right <= innerWidth + 1) continue;
    let inside = e.parentElement;
    while (inside && !["auto", "scroll", "hidden"].includes(getComputedStyle(inside).overflowX)) inside = inside.parentElement;
    if (!inside) seen.push(`${e.tagName}.${e.className} ${Math.round(box.right)}`);
  }
  return seen;
}"""


@pytest.fixture(scope="module")
def shown(explorer, browser):
    """The addresses of all rooms, each with something to see."""
    context = browser.new_context()
    page = context.new_page()
    addresses = build_pictures.prepare(page, explorer)
    context.close()
    del addresses["meaning"]  # which is the same page
    form = "form=local-law-144&sex=sex&race=race&selected_value=%3E50K"
    addresses["audit"] = addresses["table"].replace("/table?", "/audit?") + f"&{form}"
    return addresses


@pytest.mark.parametrize("window", WINDOWS)
def test_no_serious_finding(opened, explorer, shown, window):
    from axe_playwright_python.sync_playwright import Axe

    page = opened(explorer, **WINDOWS[window])
    for name, address in shown.items():
        page.goto(address)
        settle(page)
        build_pictures.wait_for_charts(page)
        page.evaluate(
            "document.querySelectorAll('details').forEach((each) => { each.open = true; })"
        )
        found = Axe().run(page, options=CHECKED.get(window)).response["violations"]
        serious = [
            (each["id"], [node["html"][:200] for node in each["nodes"][:5]])
            for each in found
            if each["impact"] in {"serious", "critical"}
        ]
        assert serious == [], name


def test_nothing_is_cut_off_on_a_phone(opened, explorer, shown):
    page = opened(explorer, width=390, height=844)
    for name, address in shown.items():
        page.goto(address)
        settle(page)
        build_pictures.wait_for_charts(page)
        page.evaluate(
            "document.querySelectorAll('details').forEach((each) => { each.open = true; })"
        )
        assert page.evaluate(OVERHANG) == [], name
        assert page.evaluate("document.documentElement.scrollWidth") <= 390, name
        links = page.locator(".rooms a")
        assert links.count() == len(ROOMS)
        for link in links.all():
            box = link.bounding_box()
            assert box["x"] >= 0, name
            assert box["x"] + box["width"] <= 390, name


def test_the_result_is_one_step_away_on_a_phone(opened, explorer, shown):
    page = opened(explorer, width=390, height=844)
    page.goto(shown["plan"])
    settle(page)
    page.get_by_role("link", name="Go to the result").click()
    page.wait_for_timeout(300)
    settle(page)
    top = page.locator("#result").bounding_box()["y"]
    assert -50 < top < 300


def test_motion_is_reduced(opened, explorer, shown):
    page = opened(explorer, reduced_motion="reduce")
    page.goto(shown["bias"])
    settle(page)
    moving = "document.getAnimations().filter((each) => each.playState === 'running').length"
    assert page.evaluate(moving) == 0
