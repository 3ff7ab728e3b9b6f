"""From a table to a repaired one in the browser, and what the command line says of its files."""

from __future__ import annotations

import re
import time

import browsing
import pytest
from browsing import changing, settle, visit

from equipoise.cli.app import run

pytestmark = pytest.mark.slow
EXAMPLE = {
    "data": "example/adult.parquet",
    "sensitive_features": ["sex", "race"],
    "label": "income",
}
LAKE = {**EXAMPLE, "lake": "example/lake", "tolerance": "0.2"}
CODED = "partners/registry.csv"


def expect(it):
    from playwright.sync_api import expect as expected

    return expected(it)


def index(page):
    """Index the lake, if nobody did before."""
    button = page.get_by_role("button", name="Index the lake")
    if button.count():
        with changing(page):
            button.click()
    expect(page.get_by_role("heading", name="What the tables mean")).to_be_visible()


def download(page, name, folder):
    with page.expect_download() as waiting:
        page.locator("#job-result .downloads").get_by_role("link", name=name, exact=True).click()
    path = folder / waiting.value.suggested_filename
    waiting.value.save_as(path)
    return path


def repaired(page):
    page.get_by_role("button", name="Repair the table with these rows").click()
    done = page.get_by_role("region", name="Result of the repair")
    expect(done).to_be_visible(timeout=60_000)
    return done


def test_from_the_start_to_a_repaired_table_that_verify_accepts(page, explorer, tmp_path, capsys):
    settle(page)
    assert page.url == explorer.address("table", {"data": EXAMPLE["data"]})
    with changing(page):
        page.get_by_role("checkbox", name="sex is a sensitive attribute").check()
    with changing(page):
        page.get_by_role("checkbox", name="race is a sensitive attribute").check()
    with changing(page):
        page.get_by_role("radio", name="income is the label").check()
    page.get_by_role("link", name="Measure the bias").click()
    settle(page)
    expect(page.locator("#rows [role=option]").first).to_contain_text("race=Black, sex=Female")
    page.get_by_role("link", name="Plan a repair").click()
    settle(page)
    with changing(page):
        page.get_by_label("Tolerance: largest |UB|", exact=True).fill("0.2")
        page.keyboard.press("Enter")
    page.get_by_role("link", name="Find the rows").click()
    settle(page)
    index(page)
    done = repaired(page)
    expect(done).to_contain_text("verified")
    files = {name: download(page, name, tmp_path) for name in ("table", "ledger", "plan", "report")}
    base = explorer.home / "example" / "adult.parquet"
    table, ledger, plan = (str(files[name]) for name in ("table", "ledger", "plan"))
    assert run(["verify", table, "--base", str(base), "--plan", plan, "--ledger", ledger]) == 0
    assert "All 8 checks hold." in capsys.readouterr().out
    assert "<svg" in files["report"].read_text("utf-8")
    page.get_by_role("link", name="Compare before and after").click()
    settle(page)
    expect(page.get_by_role("region", name="Change of every group")).to_be_visible()


def test_what_codes_mean_is_confirmed_and_the_command_line_uses_it(
    page, explorer, tmp_path, capsys
):
    visit(page, explorer, "lake", **LAKE)
    index(page)
    offers = page.get_by_role("region", name="Offers")
    expect(offers).not_to_contain_text(CODED)
    table = page.locator(f"details[data-table='{CODED}']")
    expect(table.locator("summary .tag")).to_have_text("open")
    sex = table.locator("fieldset[data-column=sex]")
    for code, meaning in (("1", "Male"), ("2", "Female")):
        field = sex.get_by_label(f"Meaning of {code} in sex")
        expect(field).to_have_value("choose …")
        field.select_option(meaning)
    with changing(page):
        table.get_by_role("button", name="Confirm").click()
    assert "mapping=results" in page.url
    expect(table.locator("summary .tag")).to_have_text("used")
    expect(offers).to_contain_text(CODED)
    with page.expect_download() as waiting:
        page.get_by_role("link", name="mapping.toml").click()
    mapping = tmp_path / "mapping.toml"
    waiting.value.save_as(mapping)
    assert CODED in mapping.read_text("utf-8")

    base, lake = explorer.home / "example" / "adult.parquet", explorer.home / "example" / "lake"
    plan, out = tmp_path / "plan.json", tmp_path / "acquired.parquet"
    wanted = ["--sensitive", "sex,race", "--label", "income", "--tolerance", "0.2"]
    assert run(["plan", str(base), *wanted, "-o", str(plan), "-q"]) == 0
    taken = ["acquire", str(plan), str(lake), "-o", str(out), "--base", str(base)]
    capsys.readouterr()
    assert run([*taken, "--partial"]) == 1  # some rows are nowhere
    assert CODED not in capsys.readouterr().out
    assert run([*taken, "--mapping", str(mapping)]) == 0
    assert CODED in capsys.readouterr().out

    table.locator("summary").click()
    with changing(page):
        table.get_by_role("button", name="Take back").click()
    expect(table.locator("summary .tag")).to_have_text("open")
    with changing(page):
        table.get_by_role("button", name="Refuse this table").click()
    expect(table.locator("summary .tag")).to_have_text("refused")


def test_a_job_is_cancelled(page, explorer):
    visit(page, explorer, "compare", **{**EXAMPLE, "data": "adult"})
    page.locator("#repeats").fill("50")
    page.get_by_role("button", name="Evaluate models").click()
    expect(page.locator("#job-doing")).to_contain_text("evaluation of adult")
    assert re.search(r"evaluation=\w+", page.url)
    began = time.monotonic()
    page.get_by_role("button", name="Cancel the job").click()
    expect(page.locator("#job-result")).to_contain_text("the work was cancelled", timeout=2_000)
    assert time.monotonic() - began < 2
    page.reload()
    expect(page.locator("#job-result")).to_contain_text("the work was cancelled")


def test_a_slow_request_is_cancelled(page, explorer):
    page.watch.refusals.append(409)
    slow = {"tolerance": "0.02", "gap": "0.0000001", "label": "workclass", "data": "adult"}
    page.goto(
        explorer.address("plan", {**slow, "sensitive_features": ["sex", "race", "education"]})
    )
    expect(page.locator("#busy")).to_be_visible()
    expect(page.locator("#doing")).to_contain_text("(1 s)")
    began = time.monotonic()
    page.get_by_role("button", name="Cancel", exact=True).click()
    settle(page)
    assert time.monotonic() - began < 2
    expect(page.locator("#result .problem")).to_contain_text("The work was cancelled.")
    expect(page.locator("#busy")).to_be_hidden()


def test_everything_is_there_again_after_a_restart(opened, tmp_path, cache):
    with browsing.running(tmp_path, cache=cache) as explorer:
        explorer.wait_for_example()
        page = opened(explorer)
        people = tmp_path / "people.csv"
        people.write_text("sex,hired\n" + "w,yes\nw,no\nw,no\nm,yes\n" * 50, "utf-8")
        with page.expect_navigation(url=re.compile("uploads")):
            page.locator("#upload").set_input_files(people)
        settle(page)
        uploaded = page.url
        figures = page.locator("#result .figures").first.inner_text()
        visit(page, explorer, "lake", **{**LAKE, "sensitive_features": "sex"})
        index(page)
        done = repaired(page)
        told, address = done.inner_text(), page.url
        explorer.stop()
        explorer.start()
        page.goto(address)
        settle(page)
        expect(page.get_by_role("heading", name="What the tables mean")).to_be_visible()
        expect(done).to_be_visible()
        assert done.inner_text() == told
        assert download(page, "table", tmp_path).stat().st_size > 1000
        page.goto(uploaded)
        settle(page)
        assert page.locator("#result .figures").first.inner_text() == figures
