"""What is seen of a stream in narrow windows: nothing is cut off, neither on its page nor in its room."""

from __future__ import annotations

import itertools

import pytest
from browsing import visit

import equipoise as eq
from equipoise.reports.pages import write_page

pytestmark = pytest.mark.slow
RACES = ("African-American", "Caucasian")


@pytest.fixture(scope="module")
def store(explorer):
    """Ten days of groups whose names differ from each other at their ends only."""
    path = explorer.root / "narrow.sqlite"
    cells = itertools.product(("Male", "Female"), RACES, ("High score", "Low score"))
    rows = {cell: 200 if cell[1] == RACES[0] and cell[2] == "High score" else 60 for cell in cells}
    counts = eq.Counts.from_mapping(rows, sensitive=["sex", "race"], label="score")
    with eq.Monitor(path) as monitor:
        for day in range(1, 11):
            monitor.add(counts, name="scores", at=f"2026-03-{day:02}")
    yield path
    path.unlink()


@pytest.mark.parametrize("width", [400, 900])
def test_the_page_is_not_cut_off(browser, store, tmp_path, width):
    with eq.Monitor(store, read_only=True) as monitor:
        write_page(monitor.history("scores"), tmp_path / "h.html")
    page = browser.new_page(viewport={"width": width, "height": 900})
    faults = []
    page.on("console", lambda message: faults.append(message.text))
    page.goto((tmp_path / "h.html").as_uri())
    assert page.evaluate("document.documentElement.scrollWidth") == width
    figures = page.locator(".figures > div")
    for i in range(figures.count()):
        inside = "box => box.scrollWidth <= box.clientWidth && box.parentElement.scrollWidth <= box.parentElement.clientWidth"
        assert figures.nth(i).evaluate(inside), figures.nth(i).inner_text()
    assert faults == []
    page.close()


def test_the_legends_of_the_room_have_whole_names(opened, explorer, store):
    page = opened(explorer, width=400)
    visit(page, explorer, "monitor", store=store.name, max_abs_ub="0.01")
    page.locator("#evidence svg").wait_for()
    texts = page.locator("#evidence svg text").all_text_contents()
    # Names are in several lines, which are joined here without the spaces between them.
    names = ["".join(text.split()) for text in texts]
    assert "sex=Male,race=African-American→Lowscore" in names
    assert any(text.startswith("alert from ") for text in texts)
    assert page.evaluate("document.documentElement.scrollWidth") == 400


def test_names_of_charts_beside_each_other_are_at_one_height(opened, explorer, store):
    """Also if a word stands above one of them only: an alert was raised for some of the groups."""
    page = opened(explorer, width=1400)
    visit(page, explorer, "monitor", store=store.name, max_abs_ub="0.3")
    page.locator("#biases svg").wait_for()
    names = page.locator("#biases svg .role-title-text text")
    assert page.locator("#biases svg").get_by_text("alert", exact=True).count() >= 3
    tops = [names.nth(i).bounding_box()["y"] for i in range(6)]
    assert tops[::2] == pytest.approx(tops[1::2], abs=1)
