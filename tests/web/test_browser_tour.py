"""The tour of docs/explore.md is true: what it says to click is there, and then shows what it says."""

from __future__ import annotations

import re
from pathlib import Path

import browsing
import pytest
from browsing import settle

pytestmark = pytest.mark.slow
PAGE = Path(__file__).parents[2] / "docs" / "explore.md"
# What is clicked (bold, perhaps followed by what it is set to), and what is seen (in quotation marks).
TOKEN = re.compile(r"\*\*(?P<click>[^*]+)\*\*(?:\s+to\s+`(?P<value>[^`]+)`)?|“(?P<seen>[^”]+)”")
ROLES = ("link", "button", "option")


def steps():
    tour = PAGE.read_text("utf-8").partition("## A tour in two minutes")[2].partition("\n## ")[0]
    found = re.findall(r"^(\d+)\. (.*?)(?=^\d+\. |^\S|\Z)", tour, re.DOTALL | re.MULTILINE)
    assert [int(number) for number, _ in found] == list(range(1, len(found) + 1))
    return [" ".join(text.split()) for _, text in found]


def do(page, name, value):
    if value is not None:
        field = page.get_by_label(name, exact=True)
        if field.evaluate("(each) => each.tagName") == "SELECT":
            field.select_option(value)
        else:
            field.fill(value)
            field.press("Enter")
        return
    for exact in (True, False):
        for role in ROLES:
            for each in page.get_by_role(role, name=name, exact=exact).all():
                if each.is_visible():
                    each.click()
                    return
    raise AssertionError(f"the tour says to click {name!r}, which is not there")


def test_the_tour_can_be_walked(opened, tmp_path, cache):
    from playwright.sync_api import expect

    walked = seen = 0
    with browsing.running(tmp_path, cache=cache) as explorer:
        explorer.wait_for_example()
        page = opened(explorer)
        settle(page)
        for step in steps():
            for token in TOKEN.finditer(step):
                if token["seen"]:
                    shown = page.locator("main").get_by_text(token["seen"]).locator("visible=true")
                    expect(shown.first, f"step: {step}").to_be_visible(timeout=60_000)
                    seen += 1
                else:
                    do(page, token["click"], token["value"])
                    page.wait_for_timeout(150)
                    settle(page)
                    walked += 1
    assert walked >= 20
    assert seen >= 20
