"""What is refused, and what is only shown as text."""

from __future__ import annotations

import re

import browsing
import pytest
from browsing import changing, settle, visit

pytestmark = pytest.mark.slow
SCRIPT = "<script>alert(1)</script>"
EXAMPLE = {
    "data": "example/adult.parquet",
    "sensitive_features": ["sex", "race"],
    "label": "income",
}


def expect(it):
    from playwright.sync_api import expect as expected

    return expected(it)


def upload(page, path):
    page.locator("#upload").set_input_files(path)


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("empty.csv", b"", "the file is empty"),
        ("garbage.parquet", bytes(range(256)) * 40, "cannot be read"),
        ("program.exe", b"MZ", "program.exe cannot be opened"),
        ("people.duckdb", b"DUCK", "people.duckdb cannot be opened"),
    ],
)
def test_a_bad_upload_is_refused_with_a_reason(page, explorer, tmp_path, name, content, said):
    page.watch.refusals.append(422)
    settle(page)
    (tmp_path / name).write_bytes(content)
    upload(page, tmp_path / name)
    expect(page.locator("#uploaded.problem")).to_contain_text(said)
    text = page.locator("#uploaded").inner_text()
    assert "Traceback" not in text
    assert str(explorer.home) not in text
    assert not list(explorer.home.glob("*/uploads/*" + name))


def test_garbage_in_a_csv_file_is_shown_or_refused(page, explorer, tmp_path):
    page.watch.refusals.append(422)
    settle(page)
    (tmp_path / "noise.csv").write_bytes(bytes(reversed(range(256))) * 40)
    upload(page, tmp_path / "noise.csv")
    expect(page.locator("#uploaded.problem, .figures")).not_to_have_count(0)
    assert "unexpected error" not in page.locator("main").inner_text()


def test_names_and_values_of_an_upload_are_text(opened, explorer, tmp_path):
    page = opened(explorer)
    page.on("dialog", lambda dialog: page.watch.faults.append(f"a dialog: {dialog.message}"))
    rows = ["=cmd(),yes", "=cmd(),no", "<img src=x onerror=alert(2)>,yes", "<b>b</b>,no"]
    path = tmp_path / "odd.csv"
    path.write_text(f"{SCRIPT},hired\n" + "\n".join(rows * 40) + "\n", "utf-8")
    with page.expect_navigation(url=re.compile("uploads")):
        upload(page, path)
    settle(page)
    expect(page.get_by_role("rowheader", name=SCRIPT)).to_be_visible()
    with changing(page):
        page.get_by_role("checkbox", name=f"{SCRIPT} is a sensitive attribute").check()
    with changing(page):
        page.get_by_role("radio", name="hired is the label").check()
    page.get_by_role("link", name="Measure the bias").click()
    settle(page)
    groups = page.locator("#rows [role=option] span:first-child")
    expect(groups.filter(has_text="onerror=alert(2)").first).to_be_visible()
    with changing(page):
        groups.filter(has_text="=cmd()").first.click()
    expect(page.get_by_role("region", name="Why")).to_contain_text("=cmd()")
    assert page.locator("#main b, #main img").count() == 0
    with page.expect_download() as waiting:
        page.get_by_role("link", name="CSV").click()
    waiting.value.save_as(tmp_path / "bias.csv")
    cells = (tmp_path / "bias.csv").read_text("utf-8").replace("\n", ",").split(",")
    assert "'=cmd()" in cells
    assert not [cell for cell in cells if cell.lstrip('"').startswith("=")]
    for room in ("plan", "map", "compare"):
        page.locator(".rooms").get_by_role("link", name=room.title()).click()
        settle(page)
        assert page.locator("#main b, #main img").count() == 0


@pytest.mark.parametrize(
    ("address", "title"),
    [("/?token=wrong-token-0123456789", "Wrong token"), ("/bias", "No valid token")],
)
def test_nobody_enters_without_the_token(opened, explorer, address, title):
    page = opened(explorer, user=None)
    page.watch.refusals.append(401)
    answer = page.goto(explorer.origin + address)
    assert answer.status == 401
    expect(page.get_by_role("heading", name=title)).to_be_visible()
    expect(page.get_by_role("alert")).to_contain_text("the address that equipoise explore printed")
    expect(page.locator("nav")).to_have_count(0)


def test_the_token_does_not_stay_in_the_address(page, explorer):
    assert "token" not in page.url
    assert page.evaluate("document.cookie") == ""


def test_a_file_outside_of_the_root_is_refused(page, explorer, tmp_path):
    page.watch.refusals.append(422)
    (tmp_path / "secret.csv").write_text("a,b\n1,2\n", "utf-8")
    (explorer.root / "link.csv").unlink(missing_ok=True)
    (explorer.root / "link.csv").symlink_to(tmp_path / "secret.csv")
    for name in ("/etc/passwd", "../secret.csv", str(tmp_path / "secret.csv"), "link.csv"):
        visit(page, explorer, "table", data=name)
        expect(page.locator("#result .problem")).to_contain_text("There is no table or file")


def test_an_address_with_nonsense_is_answered_with_a_sentence(page, explorer):
    page.watch.refusals.append(422)
    page.goto(explorer.address("plan", {**EXAMPLE, "tolerance": "much"}))
    expect(page.get_by_role("heading", name="This cannot be shown")).to_be_visible()
    expect(page.get_by_role("alert")).to_contain_text("tolerance")
    visit(page, explorer, "bias", **{**EXAMPLE, "label": "wages"})
    expect(page.locator("#result .problem")).to_contain_text("wages")


@pytest.fixture(scope="module")
def cautious(tmp_path_factory, cache):
    folder = tmp_path_factory.mktemp("cautious")
    with browsing.running(folder, "--read-only", cache=cache) as made:
        made.wait_for_example()
        yield made


def test_read_only_hides_and_refuses_what_writes(opened, cautious):
    page = opened(cautious)
    settle(page)
    expect(page.locator("#upload")).to_have_count(0)
    expect(page.locator("#forget")).to_have_count(0)
    asked = {**EXAMPLE, "lake": "example/lake"}
    visit(page, cautious, "lake", **asked)
    expect(page.locator("button[data-job], button[data-answer]")).to_have_count(0)
    expect(page.locator("#result")).to_contain_text("not indexed")
    visit(page, cautious, "compare", **EXAMPLE)
    expect(page.locator("#evaluate")).to_have_count(0)
    # What a page does not offer is refused as well.
    before = sorted(cautious.home.rglob("*"))
    page.watch.refusals.append(422)
    written = {
        "api/lake/index": asked,
        "api/lake/repair": asked,
        "api/evaluations": EXAMPLE,
    }
    for path, given in written.items():
        address = cautious.address(path, given)
        told = page.evaluate("p => fetch(p, {method: 'POST'}).then(a => a.json())", address)
        assert "started to read only" in told["error"], path
    told = page.evaluate("fetch('/api/uploads', {method: 'DELETE'}).then(a => a.json())")
    assert "started to read only" in told["error"]
    assert sorted(cautious.home.rglob("*")) == before
    # Looking is as good as ever.
    visit(page, cautious, "plan", **EXAMPLE, tolerance="0.3")
    expect(page.locator("#biases svg")).to_be_visible()


@pytest.fixture(scope="module")
def shared(tmp_path_factory, cache):
    tokens = ("token-of-the-first-user", "token-of-the-second-user")
    folder = tmp_path_factory.mktemp("shared")
    with browsing.running(folder, "--users", "2", cache=cache, tokens=tokens) as made:
        made.wait_for_example()
        yield made


def test_users_do_not_see_each_other(opened, shared, tmp_path):
    ann, bob = opened(shared, user=0), opened(shared, user=1)
    path = tmp_path / "salaries.csv"
    path.write_text("sex,hired\n" + "w,yes\nw,no\nm,yes\nm,no\n" * 30, "utf-8")
    with ann.expect_navigation(url=re.compile("uploads")):
        upload(ann, path)
    settle(ann)
    name = re.search(r"uploads%2F([^&]+)", ann.url)[1]
    expect(ann.locator(".choices")).to_contain_text("salaries.csv")
    bob.reload()
    settle(bob)
    expect(bob.locator(".choices")).not_to_contain_text("salaries.csv")
    bob.watch.refusals += [404, 422]
    visit(bob, shared, "table", data=f"uploads/{name}")
    expect(bob.locator("#result .problem")).to_contain_text("There is no table or file")

    visit(ann, shared, "compare", data=f"uploads/{name}", sensitive_features="sex", label="hired")
    ann.locator("#models").fill("logistic")
    ann.locator("#repeats").fill("50")
    ann.get_by_role("button", name="Evaluate models").click()
    expect(ann.locator("#job-doing")).to_contain_text("evaluation of")
    job = re.search(r"evaluation=(\w+)", ann.url)[1]
    assert bob.evaluate(f"fetch('/api/jobs/{job}').then(a => a.status)") == 404
    cancelled = f"fetch('/api/jobs/{job}', {{method: 'DELETE'}}).then(a => a.json())"
    assert bob.evaluate(cancelled) == {"cancelled": False}
    visit(bob, shared, "compare", **EXAMPLE, evaluation=job)
    expect(bob.locator("#job-result")).to_contain_text("there is no such job")
    ann.get_by_role("button", name="Cancel the job").click()
    expect(ann.locator("#job-result")).to_contain_text("cancelled")

    ann.goto(shared.address("table"))
    settle(ann)
    ann.once("dialog", lambda dialog: dialog.dismiss())
    ann.get_by_role("button", name="Delete my uploads and results").click()
    expect(ann.locator("#uploaded")).to_be_empty()
    assert list(shared.home.glob("*/uploads/*"))
    ann.once("dialog", lambda dialog: dialog.accept())
    ann.get_by_role("button", name="Delete my uploads and results").click()
    expect(ann.locator("#uploaded")).to_contain_text("Deleted")
    assert not list(shared.home.glob("*/uploads/*"))
