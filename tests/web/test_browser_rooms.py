"""What a user does in the rooms with a mouse."""

from __future__ import annotations

import re
from urllib.parse import parse_qs, urlsplit

import pytest
from browsing import changing, settle, visit

pytestmark = pytest.mark.slow
EXAMPLE = {
    "data": "example/adult.parquet",
    "sensitive_features": ["sex", "race"],
    "label": "income",
}
FOUR = ["sex", "race", "relationship", "workclass"]


def expect(it):
    from playwright.sync_api import expect as expected

    return expected(it)


def asked(page):
    return parse_qs(urlsplit(page.url).query)


def figure(page, name):
    """The number above a caption."""
    return page.locator(".figures > div").filter(has_text=name).first.locator("strong")


def drag(page, locator, dx, dy):
    box = locator.bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    page.mouse.move(x, y)
    page.mouse.down()
    for step in range(1, 6):
        page.mouse.move(x + dx * step / 5, y + dy * step / 5)
        page.wait_for_timeout(30)
    page.mouse.up()


def test_the_point_of_the_map_is_dragged_and_becomes_a_plan(page, explorer):
    visit(page, explorer, "map", **EXAMPLE)
    handle = page.get_by_role("button", name="The point")
    expect(handle).to_be_visible()
    before = figure(page, "UB at the point").inner_text()
    with changing(page):
        drag(page, handle, 180, 90)
    at_x, at_y = (int(asked(page)[name][0]) for name in ("at_x", "at_y"))
    assert at_x > 20
    assert at_y > 20
    assert figure(page, "UB at the point").inner_text() != before
    assert page.get_by_label("Rows of the first move", exact=True).input_value() == str(at_x)
    page.get_by_role("link", name="Make this a plan").click()
    settle(page)
    moves = page.get_by_label("Plan by hand").input_value().splitlines()
    assert moves == [f"sex=Male, income=>50K -{at_x}", f"sex=Female, income=>50K +{at_y}"]
    expect(figure(page, "rows added")).to_have_text(f"+{at_y:,}")
    expect(figure(page, "rows deleted")).to_have_text(f"−{at_x:,}")
    expect(page.get_by_role("region", name="Cells that change")).to_contain_text("sex=Female")
    page.go_back()
    settle(page)
    expect(page.get_by_label("Rows of the first move", exact=True)).to_have_value(str(at_x))


def test_a_limit_of_the_map_is_locked_and_unlocked(page, explorer):
    visit(page, explorer, "map", **EXAMPLE, at_x="100", at_y="200")
    with changing(page):
        page.get_by_role("link", name="Lock y ≤ 200").click()
    assert asked(page)["limits"] == ["y<=200"]
    with changing(page):
        page.get_by_role("link", name="Unlock y ≤ 200").click()
    assert "limits" not in asked(page)


def test_a_slider_redraws_the_plan_while_it_is_dragged(page, explorer):
    visit(page, explorer, "plan", **EXAMPLE, tolerance="0.05")
    cost = int(figure(page, "cost").inner_text().replace(",", ""))
    slider = page.get_by_role("slider", name="Tolerance: largest |UB|, slider")
    box = slider.bounding_box()
    with changing(page):
        page.mouse.click(box["x"] + box["width"] * 0.6, box["y"] + box["height"] / 2)
    assert 0.3 < float(asked(page)["tolerance"][0]) < 0.45
    assert int(figure(page, "cost").inner_text().replace(",", "")) < cost
    expect(page.locator("#biases svg")).to_be_visible()
    expect(page.locator("#frontier svg")).to_be_visible()


def test_two_plans_are_pinned_and_compared(page, explorer):
    visit(page, explorer, "plan", **EXAMPLE, tolerance="0.1")
    costs = [figure(page, "cost").inner_text()]
    page.get_by_role("button", name="Pin this plan").click()
    expect(page.locator("#pins .pinned")).to_have_count(1)
    with changing(page):
        page.get_by_label("Tolerance: largest |UB|", exact=True).fill("0.2")
        page.keyboard.press("Enter")
    with changing(page):
        page.get_by_label("Rows may be").select_option("both")
    costs.append(figure(page, "cost").inner_text())
    page.get_by_role("button", name="Pin this plan").click()
    expect(page.locator("#pins .pinned")).to_have_count(2)
    page.get_by_role("link", name="Compare side by side").click()
    settle(page)
    plans = page.get_by_role("region", name="Plans", exact=True)
    for name, cost in zip(("plan 1", "plan 2"), costs, strict=True):
        row = plans.get_by_role("row").filter(has_text=name)
        expect(row).to_contain_text(cost)
    expect(page.get_by_text("Only “plan 1”")).to_be_visible()
    expect(page.locator("#plans svg")).to_be_visible()
    # The pinned plans are still there on the way back, and lead to what they were.
    page.locator(".rooms").get_by_role("link", name="Plan").click()
    settle(page)
    page.locator("#pins .pinned").first.get_by_role("button", name="plan 1", exact=True).click()
    settle(page)
    expect(page.get_by_label("Tolerance: largest |UB|", exact=True)).to_have_value("0.1")
    expect(figure(page, "cost")).to_have_text(costs[0])


def test_a_plan_that_is_impossible_offers_what_would_help(page, explorer):
    visit(page, explorer, "plan", **EXAMPLE, available="* 3")
    expect(page.get_by_role("heading", name="No plan can meet this")).to_be_visible()
    expect(page.locator("#charts")).to_be_hidden()


def test_a_switch_that_is_on_can_be_turned_off(page, explorer):
    visit(page, explorer, "bias", **EXAMPLE)
    page.locator("summary", has_text="Uncertainty").click()
    switch = page.get_by_role("checkbox", name="Uncertainty")
    expect(switch).to_be_checked()
    with changing(page):
        page.get_by_label("Order", exact=True).select_option("n")
    assert "uncertainty" not in asked(page)
    with changing(page):
        switch.uncheck()
    assert asked(page)["uncertainty"] == ["false"]
    assert page.locator("#rows [role=option]").first.locator("span").nth(5).inner_text() == "–"
    with changing(page):
        page.go_back()
    expect(switch).to_be_checked()


def test_a_room_without_a_table_says_what_to_do(page, explorer):
    visit(page, explorer, "plan")
    page.get_by_role("link", name="Choose one").click()
    settle(page)
    expect(page.locator("#result")).to_have_text("Choose a table on the left.")
    page.get_by_role("link", name="adult", exact=True).click()
    settle(page)
    page.locator(".rooms").get_by_role("link", name="Bias").click()
    settle(page)
    page.get_by_role("link", name="Choose columns").click()
    settle(page)
    with changing(page):
        page.get_by_role("link", name="Use sex and race, with the label income").click()
    expect(page.get_by_role("checkbox", name="sex is a sensitive attribute")).to_be_checked()


def test_the_back_button_restores_what_was_shown(page, explorer):
    visit(page, explorer, "bias", **EXAMPLE)
    with changing(page):
        page.get_by_label("Attributes of a group", exact=True).select_option("1")
    with changing(page):
        page.locator("#rows [role=option]").first.click()
    expect(page.get_by_role("region", name="Why")).to_contain_text("sex=Female")
    with changing(page):
        page.go_back()
    expect(page.get_by_role("region", name="Why")).to_have_count(0)
    expect(page.get_by_label("Attributes of a group", exact=True)).to_have_value("1")
    with changing(page):
        page.go_back()
    expect(page.get_by_label("Attributes of a group", exact=True)).to_have_value("")
    with changing(page):
        page.go_forward()
    expect(page.get_by_label("Attributes of a group", exact=True)).to_have_value("1")


def test_links_between_rooms_carry_the_state(page, explorer):
    visit(page, explorer, "plan", **EXAMPLE, tolerance="0.2", min_group="30", na="?")
    rooms = page.locator(".rooms")
    rooms.get_by_role("link", name="Bias").click()
    settle(page)
    assert {"data", "sensitive_features", "label", "na"} <= set(asked(page))
    assert "tolerance" not in asked(page)
    page.go_back()
    settle(page)
    rooms.get_by_role("link", name="Lake").click()
    settle(page)
    shown = asked(page)
    assert shown["tolerance"] == ["0.2"]
    assert shown["min_group"] == ["30"]
    assert shown["lake"] == ["example/lake"]
    expect(page.get_by_label("Tolerance: largest |UB|", exact=True)).to_have_value("0.2")


def test_an_attribute_of_sixty_values(page, explorer):
    rows = "".join(
        f"g{i % 60:02},{'yes' if (i * 7) % 11 < 3 + i % 60 // 20 else 'no'}\n" for i in range(6000)
    )
    (explorer.root / "sixty.csv").write_text(f"place,hired\n{rows}", "utf-8")
    visit(page, explorer, "bias", data="sixty.csv", sensitive_features="place", label="hired")
    expect(page.locator("#total")).to_contain_text("120 of 120")
    expect(page.locator("#matrix svg")).to_be_visible()
    assert page.locator("#matrix svg").get_by_text(re.compile(r"^g\d\d$")).count() == 30
    expect(page.locator("#cap-matrix")).to_contain_text(
        "30 values of place with fewer rows are left out"
    )
    with changing(page):
        page.get_by_label("Search groups").fill("g41")
    expect(page.locator("#rows [role=option]")).to_have_count(2)
    page.locator(".rooms").get_by_role("link", name="Plan").click()
    settle(page)
    expect(page.locator("#biases svg")).to_be_visible()


def test_four_attributes_of_adult(page, explorer):
    visit(page, explorer, "bias", data="adult", sensitive_features=FOUR, label="income")
    total = page.locator("#total")
    expect(total).to_contain_text(re.compile(r"[\d,]{4,} of [\d,]{4,} pairs"))
    number = int(total.inner_text().split()[0].replace(",", ""))
    down, across = page.get_by_label("First attribute"), page.get_by_label("Second attribute")
    assert {down.input_value(), across.input_value()} == {"sex", "race"}
    with changing(page):
        across.select_option("workclass")
    expect(page.locator("#cap-matrix")).to_contain_text("by workclass and race")
    rows = page.locator("#rows")
    assert rows.locator("[role=option]").count() < 40
    page.evaluate("document.getElementById('rows').scrollTop = 1e9")
    last = rows.locator(f"[aria-posinset='{number}']")
    expect(last).to_be_visible()
    assert last.get_attribute("aria-setsize") == str(number)
    with changing(page):
        page.get_by_label("Search groups").fill("female black self-emp")
    found = rows.locator("[role=option]")
    expect(found.first).to_contain_text("Self-emp")
    assert 0 < int(total.inner_text().split()[0].replace(",", "")) < number
    with changing(page):
        page.get_by_label("Show", exact=True).select_option("worse")
    expect(total).to_contain_text(re.compile(r"^\d{1,2} of"))


def test_what_does_the_same_is_copied(opened, explorer):
    page = opened(explorer, permissions=["clipboard-read", "clipboard-write"])
    visit(page, explorer, "plan", **EXAMPLE, tolerance="0.2")
    page.get_by_text("The same in the shell and in Python").click()
    page.get_by_role("button", name="Copy shell").click()
    expect(page.get_by_role("button", name="Copied")).to_be_visible()
    text = page.evaluate("navigator.clipboard.readText()")
    assert text.splitlines()[-1] == (
        "equipoise plan demo/people.parquet --sensitive sex,race --label income --tolerance 0.2"
    )
    page.get_by_role("button", name="Copy Python").click()
    assert "eq.plan(" in page.evaluate("navigator.clipboard.readText()")


def test_light_and_dark(opened, explorer):
    page = opened(explorer, color_scheme="dark")
    visit(page, explorer, "map", **EXAMPLE)
    background = "getComputedStyle(document.body).backgroundColor"
    assert page.evaluate(background) == "rgb(20, 24, 30)"
    page.get_by_role("button", name="Switch between light and dark").click()
    assert page.evaluate(background) == "rgb(247, 248, 250)"
    # The chart is drawn anew, and the point is still on it.
    expect(page.get_by_role("button", name="The point")).to_be_visible()
    page.reload()
    settle(page)
    assert page.evaluate(background) == "rgb(247, 248, 250)"


def test_a_chart_fits_a_window_whose_width_changes(page, explorer):
    visit(page, explorer, "plan", **EXAMPLE, tolerance="0.2")
    expect(page.locator("#frontier svg")).to_be_visible()
    page.set_viewport_size({"width": 700, "height": 900})
    fits = "(() => { const e = document.getElementById('frontier'); return e.scrollWidth <= e.clientWidth; })()"
    page.wait_for_timeout(600)
    assert page.evaluate(fits)
