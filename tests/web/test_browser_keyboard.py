"""Everything without a mouse, and bins whose edges are moved."""

from __future__ import annotations

from urllib.parse import parse_qs, urlsplit

import pytest
from browsing import changing, settle, visit

pytestmark = pytest.mark.slow
EXAMPLE = {
    "data": "example/adult.parquet",
    "sensitive_features": ["sex", "race"],
    "label": "income",
}


def expect(it):
    from playwright.sync_api import expect as expected

    return expected(it)


def asked(page):
    return parse_qs(urlsplit(page.url).query)


def tab_to(page, selector):
    """Press Tab until an element has the focus."""
    for _ in range(80):
        page.keyboard.press("Tab")
        if page.locator(f"{selector}:focus").count():
            return
    raise AssertionError(f"{selector} cannot be reached with the keyboard")


def test_the_content_can_be_skipped_to(page, explorer):
    visit(page, explorer, "table", **EXAMPLE)
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to the content")).to_be_focused()
    page.keyboard.press("Enter")
    assert page.url.endswith("#main")


def test_the_slider_of_the_tolerance(page, explorer):
    visit(page, explorer, "plan", **EXAMPLE, tolerance="0.2")
    tab_to(page, "input[type=range][data-for=f-tolerance]")
    with changing(page):
        page.keyboard.press("ArrowRight")
    assert asked(page)["tolerance"] == ["0.205"]
    expect(page.locator("input[type=range][data-for=f-tolerance]")).to_be_focused()


def test_the_point_of_the_map(page, explorer):
    visit(page, explorer, "map", **EXAMPLE, at_x="100", at_y="200")
    expect(page.locator(".handle")).to_be_visible()
    tab_to(page, ".handle")
    with changing(page):
        page.keyboard.press("ArrowRight")
    moved = int(asked(page)["at_x"][0])
    assert 100 < moved < 120
    expect(page.locator(".handle")).to_be_focused()
    with changing(page):
        page.keyboard.press("Shift+ArrowDown")
    assert 100 < int(asked(page)["at_y"][0]) < 200
    assert int(asked(page)["at_x"][0]) == moved
    tab_to(page, "#make-plan")
    page.keyboard.press("Enter")
    settle(page)
    assert urlsplit(page.url).path == "/plan"


def test_the_list_of_groups(page, explorer):
    visit(page, explorer, "bias", **EXAMPLE)
    tab_to(page, "#rows")
    rows = page.locator("#rows")
    page.keyboard.press("ArrowDown")
    expect(rows).to_have_attribute("aria-activedescendant", "row-1")
    second = page.locator("#row-1 span").first.inner_text()
    with changing(page):
        page.keyboard.press("Enter")
    expect(page.get_by_role("region", name="Why").get_by_role("heading", level=2)).to_have_text(
        second
    )
    expect(page.get_by_role("region", name="Why")).to_be_in_viewport()
    # The focus stays in the list, where the arrow keys go on.
    expect(rows).to_be_focused()
    for _ in range(30):
        page.keyboard.press("ArrowDown")
    expect(rows).to_have_attribute("aria-activedescendant", "row-31")
    expect(page.locator("#row-31")).to_be_attached()
    page.keyboard.press("End")
    expect(page.locator("#row-33")).to_be_attached()
    with changing(page):
        page.keyboard.press("Enter")
    # Choosing does not scroll the list back to its beginning.
    expect(page.locator("#row-33")).to_have_attribute("aria-selected", "true")
    assert page.evaluate("document.getElementById('rows').scrollTop") > 300


def bins(page, explorer, **more):
    visit(page, explorer, "table", data="adult", sensitive_features=["age"], label="income", **more)
    return page.locator(".bins[data-column=age]")


def test_edges_of_bins_with_the_keyboard(page, explorer):
    place = bins(page, explorer, bins="age=30,50")
    expect(place.get_by_role("slider")).to_have_count(2)
    tab_to(page, ".edge")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    with changing(page):
        page.keyboard.press("Tab")
    assert asked(page)["bins"] == ["age=32,50"]
    expect(place.get_by_role("slider").first).to_have_attribute("aria-valuenow", "32")
    place.get_by_role("slider").first.focus()
    with changing(page):
        page.keyboard.press("Delete")
    assert asked(page)["bins"] == ["age=50"]


def test_edges_of_bins_are_dragged(page, explorer):
    place = bins(page, explorer)
    with changing(page):
        place.get_by_role("button", name="Add an edge").click()
    with changing(page):
        place.get_by_role("button", name="Add an edge").click()
    edges = place.get_by_role("slider")
    expect(edges).to_have_count(2)
    before = [float(edge) for edge in asked(page)["bins"][0].partition("=")[2].split(",")]
    edges.first.scroll_into_view_if_needed()
    box = edges.first.bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + 20)
    page.mouse.down()
    page.mouse.move(box["x"] + 20, box["y"] + 25)
    page.mouse.move(box["x"] + 60, box["y"] + 25)
    with changing(page):
        page.mouse.up()
    after = [float(edge) for edge in asked(page)["bins"][0].partition("=")[2].split(",")]
    assert after[0] > before[0]
    assert after[1] == before[1]
    page.get_by_role("link", name="Measure the bias").click()
    settle(page)
    expect(page.locator("#rows [role=option]").first).to_contain_text("age=")
    assert "6 of 6" in page.locator("#total").inner_text()
    place = bins(page, explorer, bins="age=30,50")
    with changing(page):
        place.get_by_label("Edges of the bins of age").fill("quantiles:4")
        page.keyboard.press("Enter")
    assert asked(page)["bins"] == ["age=quantiles:4"]
