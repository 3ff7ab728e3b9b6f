"""The room of a stream: the numbers of the library, read from a store that it never changes."""

from __future__ import annotations

import csv
import html
import io
import json
import re
import shutil
import sqlite3
from urllib.parse import parse_qsl, urlsplit

import pytest

pytest.importorskip("fastapi", reason="the explorer needs the extra web: pip install '.[web]'")

import equipoise as eq
import serving
import stream_stores as streams
from equipoise.monitoring.store.files import is_store
from equipoise.web.desk import Desk, fingerprint
from equipoise.web.places import Places
from equipoise.web.settings import ExplorerSettings
from equipoise.web.tasks import answer, room_named

ODD = ("<b>se,x</b>", "a 'b'", "=1+1")
LOANS = {"store": "bias.sqlite", "stream": "loans"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Stores, and what looks like one."""
    folder = tmp_path_factory.mktemp("monitor")
    root, outside = folder / "root", folder / "outside"
    (root / "deep").mkdir(parents=True)
    outside.mkdir()
    streams.write_store(root / "bias.sqlite")
    streams.write_store(root / "bias.sqlite", name="-odd 'name'", days=8, columns=ODD)
    with eq.Monitor(root / "bias.sqlite") as monitor:
        monitor.withdraw("loans", id="day-3", reason="a <i>test</i>")
    streams.write_store(root / "deep" / "watched", days=3)
    streams.write_store(outside / "secret.sqlite", name="secret", days=3)
    (root / "link.sqlite").symlink_to(outside / "secret.sqlite")
    (root / ".hidden.sqlite").write_bytes((root / "deep" / "watched").read_bytes())
    with sqlite3.connect(root / "other.sqlite") as base:
        base.execute("CREATE TABLE people (sex TEXT)")
    base.close()
    (root / "text.sqlite").write_text("no database")
    whole = (root / "bias.sqlite").read_bytes()
    (root / "damaged.sqlite").write_bytes(whole[:4096] + b"x" * (len(whole) - 4096))
    (root / "short.sqlite").write_bytes(whole[:5000])
    shutil.copy(root / "bias.sqlite", root / "empty.sqlite")
    with sqlite3.connect(root / "empty.sqlite") as base:
        base.execute("DELETE FROM equipoise_stream")
    base.close()
    (root / "people.csv").write_text("sex,granted\nw,yes\nm,no\n")
    return folder


@pytest.fixture
def desk(folder):
    """A desk without processes."""

    class NoCrew:
        def run(self, task, *given, user, **_):
            return task(*given)

    root = folder / "root"
    return Desk(ExplorerSettings(root=root, home=folder / "home", workers=1), NoCrew())


def told(desk, form="json", **asked):
    room = room_named("monitor")
    query = room.query.model_validate(asked)
    return desk.answer(room, query, "me", form=form).decode()


def part(desk, **asked):
    return told(desk, "part", **asked)


# --- the numbers --------------------------------------------------------------------------------


def test_the_check_is_that_of_the_library(desk, folder):
    shown = json.loads(told(desk, **LOANS, max_abs_ub=0.15, min_count=20))
    with eq.Monitor(folder / "root" / "bias.sqlite", read_only=True) as monitor:
        history = monitor.history("loans", max_abs_ub=0.15, min_count=20)
    expected = json.loads(history.to_json())
    check = expected["check"]
    assert shown["status"] == check["status"] == "outside"
    assert shown["sentences"] == expected["sentences"]
    assert [f["pattern"] for f in shown["findings"] if f["alert"]] == [
        f["pattern"] for f in check["alerts"]
    ]
    assert "sex=w, race=b" in [f["pattern"] for f in shown["findings"] if f["alert"]]
    for name in ("periods", "lines", "sizes", "alarms", "events", "labels", "window"):
        assert shown[name] == expected[name], name
    own = [f for f in check["findings"] if f["kind"] != "inside"]
    assert [{k: f[k] for k in o} for f, o in zip(shown["findings"], own, strict=True)] == own
    assert shown["batches"] == 29
    assert [each["name"] for each in shown["streams"]] == ["-odd 'name'", "loans"]


def test_a_group_is_looked_into(desk):
    shown = json.loads(told(desk, **LOANS, group="sex=w, race=b"))
    assert [(line["pattern"], line["label"]) for line in shown["lines"]] == [
        ("sex=w, race=b", "yes"),
        ("sex=w, race=b", "no"),
    ]
    assert {f["pattern"] for f in shown["findings"]} == {"sex=w, race=b"}
    near = shown["group"]
    assert {f["pattern"] for f in near["parents"]} == {"sex=w", "race=b"}
    assert near["children"] == []
    assert any("outside the limit" in sentence for sentence in near["sentences"])
    above = json.loads(told(desk, **LOANS, group="sex=w"))
    assert {f["pattern"] for f in above["group"]["children"]} == {"sex=w, race=a", "sex=w, race=b"}
    assert above["group"]["parents"] == []
    for finding in above["findings"]:
        assert finding["ub_low"] <= finding["ub"] <= finding["ub_high"]
    page = part(desk, **LOANS, group="sex=w, race=b")
    assert "← All groups" in page
    assert re.search(r'href="/monitor\?[^"]*group=sex%3Dw"', page)


def test_a_pattern_may_name_a_label(desk):
    shown = json.loads(told(desk, **LOANS, group="sex=w, granted=yes"))
    assert [(line["pattern"], line["label"]) for line in shown["lines"]] == [("sex=w", "yes")]
    assert shown["group"]["pattern"] == "sex=w"


def test_a_label_alone_is_looked_into(desk):
    shown = json.loads(told(desk, **LOANS, group="granted=no"))
    assert {line["label"] for line in shown["lines"]} == {"no"}
    assert {f["label"] for f in shown["findings"]} == {"no"}
    assert shown["group"] is None


def test_each_group_of_the_table_is_a_link_to_itself(desk):
    page = part(desk, **LOANS, max_abs_ub="0.2")
    table = page.partition('aria-label="Alerts, changes')[2].partition("</table>")[0]
    links = [html.unescape(each) for each in re.findall(r'href="([^"]*)"', table)]
    assert links
    for link in links:
        asked = dict(parse_qsl(urlsplit(link).query))
        assert asked.pop("group")
        assert asked == {**LOANS, "max_abs_ub": "0.2"}


def test_times_are_those_of_the_zone(desk):
    page = part(desk, **LOANS, timezone="America/New_York")
    assert "2026-08-31 20:00-04:00" in page
    assert "2026-09-01<" not in page


def test_other_rules(desk):
    shown = json.loads(told(desk, **LOANS, four_fifths=True, favourable="yes"))
    assert shown["status"] == "outside"
    assert shown["charts"]["biases"][0]["limits"] == []
    page = part(desk, **LOANS, four_fifths=True, favourable="yes")
    assert "impact_ratio" in page


def test_the_charts_have_the_captions_and_thresholds_of_the_page(desk):
    charts = json.loads(told(desk, **LOANS))["charts"]
    assert "Dots: UB of each batch" in charts["captions"]["biases"]
    (upper, _) = charts["evidence"]["thresholds"]
    number = upper["above"].removeprefix("alert from ")
    assert f"an e-value of {number} (upper dashed line)" in charts["captions"]["evidence"]
    assert charts["captions"]["rates"] == "Rates of granted"


def test_the_states_of_the_table_are_explained(desk):
    page = part(desk, **LOANS)
    table, _, below = page.partition("The limit is")
    for state in ("alert", "changed lately"):
        assert (state in table) == (f"<strong>{state}</strong>: " in below), state
    assert "<strong>alert</strong>: the evidence is strong enough" in below
    assert "<strong>outside</strong>" not in below
    assert "While the limit holds, an e-value of 100 or more" in below


def test_the_page_and_the_twin_tell_the_same(desk):
    page = part(desk, **LOANS)
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)
    assert json.loads(found[1]) == json.loads(told(desk, **LOANS))


def test_names_and_values_are_text(desk):
    page = part(desk, store="bias.sqlite", stream="-odd 'name'", min_count=1)
    assert "<b>" not in page
    page += part(desk, **LOANS)
    assert "<i>" not in page
    assert "a &lt;i&gt;test&lt;/i&gt;" in page


def test_without_an_alert_the_nearest_groups_are_shown(desk):
    shown = json.loads(told(desk, **LOANS, max_abs_ub=0.9))
    assert (shown["status"], shown["nearest"], len(shown["findings"])) == ("inside", True, 5)
    assert {f["kind"] for f in shown["findings"]} == {"inside"}
    assert "These have the most evidence" in part(desk, **LOANS, max_abs_ub=0.9)
    assert not json.loads(told(desk, **LOANS))["nearest"]


def test_acknowledged_alerts_and_late_batches(desk, folder):
    path = streams.write_store(folder / "root" / "acknowledged.sqlite")
    counts = eq.Counts.from_mapping(
        streams.day(1, biased=True), sensitive=["sex", "race"], label="granted"
    )
    with eq.Monitor(path) as monitor:
        monitor.acknowledge("loans", reason="mended")
        for number in range(12):
            monitor.add(counts, name="loans", at=f"2026-08-03T{number + 1:02}:00")
    asked = {"store": "acknowledged.sqlite"}
    shown = json.loads(told(desk, **asked))
    assert {alarm["ended"] for alarm in shown["alarms"]} == {"acknowledgement", None}
    bars = shown["charts"]["biases"]
    assert all(len(bar["breaks"]) == 1 for bar in bars)
    assert any(bar["alarms"] for bar in bars)
    page = part(desk, **asked)
    assert "2026-09-01, acknowledged" in page
    assert "2026-09-01 by the late batch of 2026-08-03" in page
    assert "All alerts so far were acknowledged: mended." in page
    path.unlink()


def test_one_batch_is_numbers_without_charts(desk, folder):
    path = streams.write_store(folder / "root" / "single.sqlite", days=1)
    shown = json.loads(told(desk, store="single.sqlite"))
    assert shown["charts"] is None
    assert len(shown["periods"]) == 1
    assert "There is only one period so far" in part(desk, store="single.sqlite")
    path.unlink()


# --- what cannot be shown -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({}, "no store is chosen"),
        ({"store": "people.csv"}, "people.csv is not a store of equipoise monitor"),
        ({"store": "other.sqlite"}, "other.sqlite is not a store of equipoise monitor"),
        ({"store": "text.sqlite"}, "text.sqlite is not a store of equipoise monitor"),
        ({"store": "deep"}, "deep is not a store of equipoise monitor"),
        ({"store": "nowhere.sqlite"}, "there is no table or file 'nowhere.sqlite'"),
        ({"store": "empty.sqlite"}, "empty.sqlite has no stream yet"),
        ({"store": "bias.sqlite", "stream": "x"}, "unknown stream 'x'; there are: -odd 'name', loans"),
        ({"store": "bias.sqlite", "stream": "Loans"}, "there is already a stream 'loans'"),
        ({**LOANS, "group": "sex=x"}, "'sex' has no value x"),
        ({**LOANS, "group": "age=9"}, "no attribute 'age'"),
        ({**LOANS, "group": "sex"}, "is not a pattern"),
        (
            {**LOANS, "group": "sex=w, race=b", "max_order": 1},
            "no group sex=w, race=b that can be compared",
        ),
        ({**LOANS, "group": "sex=*"}, "'sex' has no value '*'"),
        ({**LOANS, "group": "*"}, "the group of all rows cannot be compared with other rows"),
        ({"store": "bias.sqlite", "timezone": "Mars"}, "there is no time zone 'Mars'"),
        ({"store": "bias.sqlite", "tags": ["north"]}, "a tag must be written as name=value"),
        ({"store": "postgresql://me:hunter2@host/db"}, "there is no table or file"),
    ],
)  # fmt: skip
def test_bad_input_is_a_sentence(desk, folder, asked, said):
    with pytest.raises(eq.EquipoiseError) as refused:
        part(desk, **asked)
    text = desk.places("me").without_paths(str(refused.value))
    assert said in text
    assert str(folder) not in text
    assert "hunter2" not in text


@pytest.mark.parametrize("name", ["damaged.sqlite", "short.sqlite"])
def test_a_damaged_store_is_told(desk, name):
    with pytest.raises(eq.EquipoiseError, match=r"damaged|no store"):
        part(desk, store=name)


def test_a_stream_without_batches(desk, folder):
    path = streams.write_store(folder / "root" / "gone.sqlite", days=2)
    with eq.Monitor(path) as monitor:
        for number in range(2):
            monitor.withdraw("loans", id=f"day-{number}")
    shown = json.loads(told(desk, store="gone.sqlite"))
    assert (shown["status"], shown["charts"], shown["periods"]) == ("undecided", None, [])
    page = part(desk, store="gone.sqlite")
    assert "Not enough evidence" in page
    assert "there is nothing to test yet" in page
    assert "The numbers of the charts" not in page
    path.unlink()


@pytest.mark.parametrize(
    "name",
    [
        "../outside/secret.sqlite",
        "link.sqlite",
        ".hidden.sqlite",
        "deep/../../outside/secret.sqlite",
        "/etc/passwd",
        "file:bias.sqlite",
        "postgresql://localhost/base",
        "bias.sqlite::loans",
        "sqlite:///bias.sqlite",
    ],
)
def test_no_file_outside_of_the_root_is_opened(desk, folder, name):
    for form in ("json", "part"):
        with pytest.raises(eq.EquipoiseError, match="there is no table or file") as refused:
            told(desk, form, store=name)
        assert "secret" not in str(refused.value).replace(name, "")
    absolute = str(folder / "outside" / "secret.sqlite")
    with pytest.raises(eq.EquipoiseError, match="there is no table or file"):
        part(desk, store=absolute)


# --- files that are stores ----------------------------------------------------------------------


def test_stores_are_told_by_their_content(desk, folder):
    places = Places(folder / "root", folder / "home" / "one")
    listed = places.stores_listed()
    assert set(listed) >= {"bias.sqlite", "deep/watched"}
    assert not {"other.sqlite", "text.sqlite", "link.sqlite", ".hidden.sqlite"} & set(listed)
    # A store is no table.
    assert "bias.sqlite" not in places.listed()
    assert {"people.csv", "other.sqlite"} <= set(places.listed())


def test_a_new_store_whose_mark_is_in_the_log_only(tmp_path):
    path = tmp_path / "new.sqlite"
    monitor = eq.Monitor(path)
    counts = eq.Counts.from_mapping(streams.day(0), sensitive=["sex", "race"], label="granted")
    monitor.add(counts, name="loans", at="2026-11-01")
    copy = tmp_path / "copy.sqlite"  # without the log
    shutil.copy(path, copy)
    assert not is_store(copy)
    assert is_store(path)
    monitor.close()
    assert is_store(path)


# --- the store stays as it is -------------------------------------------------------------------


def state(path):
    log = path.with_name(f"{path.name}-wal")
    return path.read_bytes(), path.stat().st_mtime_ns, log.read_bytes() if log.exists() else b""


def test_the_room_changes_nothing(desk, folder):
    path = folder / "root" / "bias.sqlite"
    before = state(path)
    for limit in (0.07, 0.08):
        told(desk, store="bias.sqlite", max_abs_ub=limit)
        part(desk, **LOANS, group="sex=w", max_abs_ub=limit)
    assert state(path) == before


def test_what_is_added_is_seen_at_once(desk, folder):
    path = streams.write_store(folder / "root" / "growing.sqlite", days=2)
    asked = {"store": "growing.sqlite"}
    assert json.loads(told(desk, **asked))["batches"] == 2
    first = fingerprint(str(path))
    assert told(desk, **asked) is not None
    assert fingerprint(str(path)) == first, "looking alone changes no key"
    counts = eq.Counts.from_mapping(streams.day(2), sensitive=["sex", "race"], label="granted")
    with eq.Monitor(path) as monitor:
        monitor.add(counts, name="loans", at="2026-12-01")
        before = path.read_bytes()
        # The file itself is as before; the batch is in the log.
        assert fingerprint(str(path)) != first
        assert json.loads(told(desk, **asked))["batches"] == 3
        assert path.read_bytes() == before
    assert json.loads(told(desk, **asked))["batches"] == 3


def test_answers_are_kept_while_nothing_changes(desk):
    asked = LOANS
    told(desk, **asked)

    def fail(*_, **__):
        raise AssertionError("it was computed again")

    desk.crew.run = fail
    assert json.loads(told(desk, **asked))["stream"] == "loans"


# --- a running explorer -------------------------------------------------------------------------


@pytest.fixture(scope="module")
def explorer(folder):
    root = folder / "root"
    with serving.explorer(folder, str(root / "bias.sqlite"), root=root) as running:
        yield running


@pytest.mark.slow
def test_an_explorer_that_is_started_with_a_store_leads_to_it(explorer):
    with explorer.client() as client:
        start = client.get("/")
        assert start.status_code == 303
        assert start.headers["location"] == "/monitor?store=bias.sqlite"
        page = client.get("/monitor", params={"store": "bias.sqlite"}).text
        assert "deep/watched" in page
        assert "Store: <strong>bias.sqlite</strong>" in page
        listed = client.get("/api/files").json()
        assert "bias.sqlite" in listed["stores"]
        answered = client.get("/api/monitor", params=LOANS)
        assert answered.json()["status"] == "outside"
        refused = client.get("/api/monitor", params={"store": "damaged.sqlite"})
        assert refused.status_code == 422
        assert str(explorer.root) not in refused.text


@pytest.mark.slow
def test_downloads(explorer):
    asked = {**LOANS, "group": "sex=w"}
    with explorer.client() as client:
        files = {
            k: client.get(f"/api/monitor/file.{k}", params=asked) for k in ("csv", "json", "html")
        }
    for kind, file in files.items():
        assert file.status_code == 200, file.text
        assert f'filename="bias-monitor.{kind}"' in file.headers["content-disposition"]
    rows = list(csv.DictReader(io.StringIO(files["csv"].text)))
    assert [row["label"] for row in rows] == [*["yes"] * 29, *["no"] * 29]
    data = files["json"].json()
    assert {line["pattern"] for line in data["lines"]} == {"sex=w"}
    assert data["check"]["store"] == "bias.sqlite"
    assert "Monitor: loans" in files["html"].text
    assert str(explorer.root) not in "".join(file.text for file in files.values())


def test_every_answer_is_one_of_the_forms(desk):
    """The task that a worker runs gives what the desk keeps."""
    room = room_named("monitor")
    ask = desk.ask(room, room.query.model_validate(LOANS), "me")
    assert ask.table == {}
    assert json.loads(answer("monitor", ask, "json"))["store"] == "bias.sqlite"
