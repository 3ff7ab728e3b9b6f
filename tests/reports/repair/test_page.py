from __future__ import annotations

import json
import re
import shlex
from dataclasses import replace
from xml.etree import ElementTree

import pytest

import equipoise as eq
from equipoise.cli.app import run
from equipoise.lake.offers.shortfall import Lack
from equipoise.lake.verify.verification import CheckOutcome
from equipoise.reports.repair import page as repair_page
from equipoise.reports.repair import sources
from equipoise.reports.repair.charts import source_chart
from equipoise.reports.repair.data import summarize_repair
from reports.parsing import Page, draw_and_check, rendered

altair = pytest.importorskip("altair")
pytest.importorskip("vl_convert")

W, M = "<i>w</i>", "m & m"
"""Values that would be markup if a page did not escape them."""

HOW = {"sensitive_features": ["sex"], "label": "hired"}


def people(first, **kinds):
    rows = [kind.split("_") for kind, n in kinds.items() for _ in range(n)]
    return [(first + i, sex, hired, 20 + i % 40) for i, (sex, hired) in enumerate(rows)]


def write(path, rows, header="id,sex,hired,age"):
    path.parent.mkdir(parents=True, exist_ok=True)
    spelled = {"w": W, "m": M}
    lines = [",".join(str(spelled.get(v, v)) for v in row) for row in rows]
    path.write_text("\n".join([header, *lines]) + "\n", encoding="utf-8")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("repair")
    write(place / "people.csv", people(0, w_yes=10, w_no=70, m_yes=50, m_no=50))
    write(place / "lake" / "<script>a.csv", people(1000, w_yes=20, m_no=20))
    write(place / "lake" / "b.csv", people(2000, w_yes=25, m_no=30), "id,gender,hired,years")
    (place / "lake" / "sources.toml").write_text(
        '[default]\nlicence = "<u>none</u>"\n[tables."b.csv"]\nrow_cost = 0.25\n', encoding="utf-8"
    )
    return place


QUICK = {"reference": "original"}  # of which plans take milliseconds
RUNS = {
    "whole": {"tolerance": 0.1},
    "both ways": {"tolerance": 0.05, "allow": "both", "hash_key": b"secret"},
    "one table": {"tolerance": 0.1, "deny": ["b.csv"], "allow": "both", "costs": {"delete *": 9}},
    "nothing": {"tolerance": 0.9},
}


@pytest.fixture(scope="module")
def repairs(folder):
    lake = eq.Lake(folder / "lake")
    base = folder / "people.csv"
    done = {
        name: eq.repair(base, lake, folder / f"{name}.csv", **HOW, **QUICK, **how)
        for name, how in RUNS.items()
    }
    done["dry"] = eq.repair(base, lake, None, **HOW, **QUICK, tolerance=0.1)
    return done


@pytest.fixture(scope="module")
def pages(repairs):
    return {name: rendered(done, source="people.csv") for name, done in repairs.items()}


ALL = [*RUNS, "dry"]


@pytest.mark.slow
@pytest.mark.parametrize("name", ALL)
def test_the_page_of_a_repair_is_whole_and_fetches_nothing(name, repairs, pages):
    done, page = repairs[name], Page(pages[name])
    shift = ["shift"] if done.acquired.shift else []
    checks = ["verification", "commands"] if done.verification else []
    expected = ["said", "before", "plan", "sources", "lacks", *shift, "after", *checks]
    assert page.ids == [*expected, "provenance"]
    assert page.fetched == []
    assert not re.search(r"url\((?!#)|@import|<script|<link", pages[name])
    assert not re.search(r"(?i)\b(fair|unbiased|compliant)\b", page.words)
    for sentence in done.sentences:
        assert sentence in page.words


@pytest.mark.parametrize("name", ALL)
def test_nothing_of_the_data_becomes_markup(name, pages):
    assert not {"script", "i", "u"} & Page(pages[name]).tags


def test_sources_are_named_with_terms_and_how_they_were_read(repairs, pages):
    page = Page(pages["whole"])
    for share in repairs["whole"].acquired.shares:
        for text in (share.name, share.licence, share.why, share.snapshot):
            assert text in page.words
    assert "sex ← gender; 2 columns of the same name" in page.words


@pytest.mark.parametrize("name", ALL)
def test_every_chart_is_drawn_from_plain_data(name, repairs, pages):
    data = summarize_repair(repairs[name])
    assert data == json.loads(json.dumps(data, allow_nan=False))
    changed = 1 if repairs[name].plan.moves else 0
    needed = 1 if repairs[name].plan.additions else 0
    pictures = re.findall(r"<svg.*?</svg>", pages[name], re.DOTALL)
    assert len(pictures) == 3 + changed + needed
    for picture in pictures:
        ElementTree.fromstring(picture)


# --- where rows come from ------------------------------------------------------------------------


def parts(bar):
    return {part["table"]: part["end"] - part["start"] for part in bar["parts"]}


@pytest.mark.parametrize("name", ["whole", "both ways", "one table"])
def test_bars_of_sources_add_up_to_what_was_taken(name, repairs):
    done = repairs[name]
    data = summarize_repair(done)["sources"]["chart"]
    totals = {}
    for bar in data["bars"]:
        for table, n in parts(bar).items():
            totals[table] = totals.get(table, 0) + n
    missing = sum(lack.missing for _, lack in done.acquired.lacks)
    assert totals.pop("missing", 0) == missing
    assert totals == {share.name: share.rows for share in done.acquired.shares}
    assert set(data["names"]) == {*totals, *(["missing"] if missing else [])}


def test_a_dry_run_draws_what_would_be_found(repairs, pages):
    done = repairs["dry"]
    bars = summarize_repair(done)["sources"]["chart"]["bars"]
    assert sum(parts(bar)["found in the lake"] for bar in bars) == done.acquired.added
    assert "expected" in Page(pages["dry"]).words


def lacking(done, n):
    """The same repair, had the lake had fewer rows of the first cell."""
    cell = next(cell for cell in done.plan.moves if cell.add)
    name = f"{cell.group}, hired={cell.label}"
    lack = Lack(0, cell.add, cell.add - n, n, {"duplicates": 1, "no <table> has them": n - 1})
    fewer = eq.Counts.from_mapping(
        {(cell.group["sex"], cell.label): n}, sensitive=["sex"], label="hired"
    )
    fewer = replace(fewer, request=done.acquired.after.request)
    counts = replace(done.acquired, lacks=((name, lack),), after=done.acquired.after - fewer)
    return replace(done, acquired=counts)


def test_missing_rows_are_drawn_and_explained(repairs):
    done = lacking(repairs["dry"], 3)
    data = summarize_repair(done)
    assert parts(data["sources"]["chart"]["bars"][0])["missing"] == 3
    assert data["lacks"]["table"]["rows"][0][3:] == ["3", "1: duplicates; 2: no <table> has them"]
    assert data["after"]["table"]["rows"][-1][-1] == "1"  # a cell that is not as planned
    assert "Rows that no table has are red." in Page(rendered(done)).words


def test_of_many_tables_the_smaller_are_drawn_together(repairs):
    done = repairs["whole"]
    cells = [cell for cell in done.plan.moves if cell.add]
    keys = [(cell.group["sex"], cell.label) for cell in cells]
    names = [f"t{i}.csv" for i in range(12)]
    shares = [replace(done.acquired.shares[0], name=n, rows=12 - i) for i, n in enumerate(names)]
    listing = sources.Listing(rows={n: {keys[0]: 1} for n in names})
    data = sources.source_bars(replace(done.acquired, shares=tuple(shares)), done.plan, listing)
    assert data["names"][:-1] == [*names[: sources.TABLES - 1], "other tables"]
    assert data["others"] == 12 - (sources.TABLES - 1)
    assert parts(data["bars"][0])["other tables"] == data["others"]
    draw_and_check(source_chart(data))


def test_needs_that_differ_much_are_drawn_as_shares(repairs):
    counts = eq.Counts.from_mapping(
        {
            ("a", "yes"): 2000,
            ("a", "no"): 8000,
            ("b", "yes"): 8,
            ("b", "no"): 2,
            ("c", "yes"): 5000,
        },
        sensitive=["sex"],
        label="hired",
    )
    plan = eq.plan(counts)
    needs = {f"{c.group} → {c.label}": c.add for c in plan.moves if c.add}
    assert max(needs.values()) > sources.WIDE * min(needs.values())
    nothing = replace(repairs["dry"].acquired, shares=())
    data = sources.source_bars(nothing, plan, sources.Listing())
    assert data["shares"]
    assert [bar["text"] for bar in data["bars"]] == [
        f"{n:,}, {n:,} missing" for n in needs.values()
    ]
    assert all(parts(bar) == {"missing": 1} for bar in data["bars"])


# --- before and after ----------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["whole", "both ways", "one table"])
def test_biases_after_are_those_of_the_written_file(name, repairs):
    done = repairs[name]
    pairs = {p["name"]: p for p in summarize_repair(done)["after"]["biases"]["pairs"]}
    written = eq.measure(done.acquired.output, **HOW)
    base = eq.measure(done.acquired.base, **HOW)
    for pattern, pair in pairs.items():
        assert pair["after"] == pytest.approx(abs(written[pattern, "yes"].ub))
        assert pair["before"] == pytest.approx(abs(base[pattern, "yes"].ub))


def test_the_plan_that_was_wished_for_stands_beside_the_one_carried_out(repairs, pages):
    done = repairs["one table"]
    assert done.ideal is not done.plan
    words = Page(pages["one table"]).words
    assert "cheapest, whether or not such rows exist" in words
    assert "The lake does not have all rows of the cheapest plan" in words
    assert "whether or not such rows exist" not in Page(pages["whole"]).words


def test_a_tolerance_that_was_not_reached_is_said_at_the_top(repairs):
    for done, word in ((repairs["dry"], "yes"), (lacking(repairs["dry"], 3), "NO")):
        figures = summarize_repair(done)["figures"]
        assert [word, "tolerance 0.1 reached"] in figures


# --- proof ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["whole", "one table"])
def test_the_commands_on_the_page_run(name, repairs, folder, monkeypatch):
    data = summarize_repair(repairs[name], lake=shlex.quote(str(folder / "lake")))
    monkeypatch.chdir(folder)
    for line in data["commands"]:
        assert run([*shlex.split(line)[1:], "--quiet"]) == 0


def test_a_key_and_unknown_places_are_named_in_the_commands(repairs, pages, tmp_path):
    assert "Replace words in capitals" in pages["whole"]
    verify, replay = summarize_repair(repairs["both ways"])["commands"]
    assert verify.endswith(" --hash-key-file KEY")
    assert " LAKE --repaired " in replay
    moved = replace(repairs["whole"].acquired, output=str(tmp_path / "elsewhere.csv"))
    data = summarize_repair(replace(repairs["whole"], acquired=moved))
    assert " --plan PLAN " in data["commands"][0]


def test_a_check_that_fails_is_marked(repairs):
    done = repairs["whole"]
    broken = CheckOutcome(
        "base", holds=False, sentence="It is <another> table.", examples=("row 3",)
    )
    found = replace(done.verification, findings=(broken, *done.verification.findings[1:]))
    text = rendered(replace(done, verification=found), charts=False)
    assert '<td class="text fewer">BROKEN</td>' in text
    assert "It is &lt;another&gt; table. · row 3" in text
    assert "7 of 8" in text


def test_without_the_drawing_library_the_page_says_so(repairs):
    text = rendered(repairs["whole"], charts=False)
    assert "<svg" not in text
    assert "equipoise[charts]" in text


def test_two_pictures_share_one_scale_of_colours(repairs, monkeypatch):
    bounds, heat_map = [], repair_page.heat_map
    monkeypatch.setattr(
        repair_page, "heat_map", lambda matrix: bounds.append(matrix["bound"]) or heat_map(matrix)
    )
    rendered(repairs["whole"])
    assert len(bounds) == 2
    assert bounds[0] == bounds[1]
