from __future__ import annotations

import json
import math
import re
import sys
from dataclasses import replace
from html.parser import HTMLParser
from xml.etree import ElementTree

import pytest

import equipoise as eq
from equipoise.counts import Counts
from equipoise.plans.frontier import Bought
from equipoise.reports.charts.before_after import bias_chart
from equipoise.reports.charts.vega import to_html_fragment, to_svg
from equipoise.reports.frontier.charts import step_chart
from equipoise.reports.frontier.data import steps
from equipoise.reports.frontier.page import render_frontier, write_frontier
from equipoise.reports.plan.charts import change_chart
from equipoise.reports.plan.data import biases, changes
from equipoise.reports.plan.page import render_plan, write_plan
from equipoise.values import MISSING

altair = pytest.importorskip("altair")
pytest.importorskip("vl_convert")

ORIGINAL = {"allow": "both", "reference": "original"}
PLANS = {
    "zero": {},
    "tolerance": {**ORIGINAL, "tolerance": 0.05},
    "rate": {**ORIGINAL, "tolerance": 0.02, "tolerance_on": "rate"},
    "costs": {"costs": {"add sex=w": 2, "delete *": 0.5}, "allow": "both"},
    "short": {**ORIGINAL, "tolerance": 0.01, "budget": 2000},
    "priorities": {
        "target": "keep rates of: sex",
        "budget": 7500,
        "priority": ["sex=w", "sex=m, risk=H"],
    },
    "targets": {"target": {"sex=w, race=c": {"H": 0.9}}},
    "labels": {"labels": {"L": 0.6, "M": 0.25, "H": 0.15}},
    "empty": {"tolerance": 0.5},
}
FRONTIERS = {
    "exact": {"allow": "both", "points": 8, "budget": 2000},
    "narrow": {"allow": "both", "tolerances": [0.05, 0.06]},
    "one": {"tolerances": [0.05]},
    "some without": {"available": {"risk=H": 600}, "tolerances": [0.01, 0.2, 0.3]},
    "all without": {"available": {"risk=H": 1}, "tolerances": [0.01]},
}


@pytest.fixture(scope="module")
def compas():
    return eq.count("compas", sensitive_features=["sex", "race"], label="risk", count="n")


@pytest.fixture(scope="module")
def plans(compas):
    return {name: eq.plan(compas, **how) for name, how in PLANS.items()}


@pytest.fixture(scope="module")
def frontiers(compas):
    found = {name: eq.frontier(compas, **how) for name, how in FRONTIERS.items()}
    exact = found["exact"]
    loose = tuple(replace(p, bound=0.9 * p.cost) for p in exact.points)
    found["bounded"] = replace(exact, points=loose, reference="new")
    bought = (Bought(10**9, 0.0, 5_000.0), Bought(1.0, None, None))
    found["budgets"] = replace(exact, budgets=(*exact.budgets, *bought))
    return found


class Page(HTMLParser):
    """Ids of the sections, the words, and what a browser would fetch; complains if not nested."""

    VOID = frozenset({"meta", "br", "link", "img", "hr", "wbr"})

    def __init__(self, text):
        super().__init__()
        self.ids, self.words, self.fetched, self.open = [], "", [], []
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        self.ids += [given["id"]] if tag == "section" else []
        self.fetched += [v for k, v in attrs if k in ("src", "href") and not v.startswith("#")]
        self.open += [] if tag in self.VOID else [tag]

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.words += data


def written(write, result, tmp_path, **options):
    path = tmp_path / "page.html"
    write(result, path, **options)
    text = path.read_text(encoding="utf-8")
    page = Page(text)
    assert page.fetched == []
    assert not re.search(r"url\((?!#)|@import|<script|<link", text)
    assert not re.search(r"(?i)\b(fair|unbiased|compliant)\b", page.words)
    return text, page


# --- plans ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", PLANS)
def test_the_page_of_a_plan_is_whole_and_fetches_nothing(name, plans, tmp_path):
    plan = plans[name]
    text, page = written(write_plan, plan, tmp_path, source="compas")
    steps = ["budget"] if plan.steps else []
    assert page.ids == ["said", "charts", "cells", "certificate", *steps, "asked", "provenance"]
    for sentence in plan.explanation:
        assert sentence in page.words
    for held in plan.certificate.constraints:
        assert held.constraint in page.words
    for step in plan.steps:
        assert step.pattern in page.words
    for fact in (plan.counts.fingerprint, plan.created, f"equipoise {plan.version}"):
        assert fact in page.words
    assert text.count("<svg") == 1 + bool(plan.moves)


@pytest.mark.slow
@pytest.mark.parametrize("name", PLANS)
def test_every_chart_of_a_plan_can_be_drawn(name, plans):
    for data, chart in (
        (changes(plans[name]), change_chart),
        (biases(plans[name]), bias_chart),
    ):
        assert data == json.loads(json.dumps(data, allow_nan=False))
        if data.get("bars", data.get("pairs")):
            draw_and_check(chart(data))


def draw_and_check(spec):
    json.dumps(spec, allow_nan=False)
    altair.Chart.from_dict(spec, validate=True)
    ElementTree.fromstring(to_svg(spec))
    assert not re.search(r'(?:href|src)="|url\((?!#)', to_html_fragment(spec))


def test_a_plan_that_changes_nothing_says_so(plans, tmp_path):
    text, page = written(write_plan, plans["empty"], tmp_path)
    assert "Nothing needs to change." in page.words
    assert "None." in page.words
    assert "<strong>0</strong><span>rows to add</span>" in text


def test_a_plan_that_falls_short_says_so(plans):
    text = render_plan(plans["short"])
    reached = "<strong>NO</strong><span>tolerance 0.01 against original frequencies reached</span>"
    assert reached in text
    assert "NOT reached" in text


def test_what_was_asked_is_told(plans):
    words = {name: Page(render_plan(plan)).words for name, plan in plans.items()}
    assert "sex=w: 2" in words["costs"]
    assert "keep rates of: sex" in words["priorities"]
    assert "sex=w; sex=m, risk=H" in words["priorities"]
    assert "sex=w, race=c: H 0.9" in words["targets"]
    assert "L 0.6, M 0.25, H 0.15" in words["labels"]
    assert "original label frequencies" in words["rate"]


def test_only_the_top_cells_are_listed_and_the_rest_counted(plans):
    words = Page(render_plan(plans["zero"], top=3)).words
    assert f"… and {len(plans['zero'].moves) - 3} more cells." in words


def test_the_bars_are_the_rows_of_the_cells(plans):
    plan = plans["tolerance"]
    bars = changes(plan)["bars"]
    for bar, cell in zip(bars, plan.moves, strict=False):
        assert bar["stay"] + bar["delete"] == cell.before
        assert bar["stay"] + bar["add"] == cell.after
    assert len(bars) + changes(plan)["left_out"] == len(plan.moves)


@pytest.mark.parametrize("name", ["zero", "empty"])
def test_the_biases_before_and_after_are_those_of_measure(name, plans):
    plan = plans[name]
    before, after = (eq.measure(c, uncertainty=False) for c in (plan.counts, plan.after()))
    pairs = biases(plan)["pairs"]
    assert len(pairs) == 24
    for pair in pairs:
        key = pair["name"].split(" → ")
        assert pair["before"] == pytest.approx(abs(before[tuple(key)].ub), abs=1e-12)
        assert pair["after"] == pytest.approx(abs(after[tuple(key)].ub), abs=1e-12)
    worst = [max(p["before"], p["after"]) for p in pairs]
    assert worst == sorted(worst, reverse=True)


def test_against_the_original_frequencies_no_dot_is_beyond_the_tolerance(plans):
    data = biases(plans["tolerance"])
    assert data["limit"] == 0.05
    assert not any(pair["outside"] for pair in data["pairs"])
    assert max(pair["after"] for pair in data["pairs"]) == pytest.approx(
        plans["tolerance"].certificate.off_after, abs=1e-12
    )
    assert any(pair["outside"] for pair in biases(plans["short"])["pairs"])


def test_where_targets_or_labels_are_given_no_tolerance_is_drawn(compas):
    for how in ({"target": "keep rates of: sex"}, {"labels": {"L": 0.6, "M": 0.25, "H": 0.15}}):
        data = biases(eq.plan(compas, tolerance=0.05, **ORIGINAL, **how))
        assert data["limit"] is None


def test_rows_without_a_value_are_not_drawn():
    cells = {("m", "y"): 60, ("m", "n"): 40, ("w", "y"): 20, ("w", "n"): 80, (MISSING, "y"): 7}
    counts = Counts.from_mapping(cells, sensitive=["sex"], label="l")
    names = [pair["name"] for pair in biases(eq.plan(counts))["pairs"]]
    assert sorted(names) == ["sex=m", "sex=w"]


def test_of_many_groups_small_ones_are_left_out_unless_they_are_beyond():
    cells = {(f"g{i}", y): 40 + 7 * i * (y == "y") for i in range(40) for y in "yn"}
    cells |= {("small", "y"): 1}
    counts = Counts.from_mapping(cells, sensitive=["group"], label="l")
    plan = eq.plan(counts, tolerance=0.1, allow="both", reference="original")
    data = biases(plan)
    assert data["least"] == 30
    assert len(data["pairs"]) == 24
    assert "group=small" not in [pair["name"] for pair in data["pairs"]]
    assert data["left_out"] == 41 - 24


# --- frontiers -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [*FRONTIERS, "bounded", "budgets"])
def test_the_page_of_a_frontier_is_whole_and_fetches_nothing(name, frontiers, tmp_path):
    found = frontiers[name]
    text, page = written(write_frontier, found, tmp_path, source="compas")
    assert page.ids == ["said", "charts", "points", "asked", "provenance"]
    for sentence in found.sentences:
        assert sentence in page.words
    for row in found.grid().rows:
        assert row[0] in page.words
    assert f"sha256:{found.fingerprint}" in page.words
    assert ("<svg" in text) == any(math.isfinite(p.cost) for p in found.points)


@pytest.mark.parametrize("name", [*FRONTIERS, "bounded", "budgets"])
def test_every_frontier_can_be_drawn(name, frontiers):
    data = steps(frontiers[name])
    assert data == json.loads(json.dumps(data, allow_nan=False))
    if data["pieces"]:
        draw_and_check(step_chart(data))


def test_the_steps_go_down_and_meet_the_points(frontiers):
    data = steps(frontiers["exact"])
    costs = [corner["cost"] for corner in data["path"]]
    places = [corner["x"] for corner in data["path"]]
    assert costs == sorted(costs, reverse=True)
    assert places == sorted(places)
    assert [(p["high"], p["cost"]) for p in data["pieces"]] == [
        (p.tolerance, p.cost) for p in frontiers["exact"].points
    ]
    assert all(piece["low"] <= piece["high"] for piece in data["pieces"])
    assert data["log"]
    assert not steps(frontiers["narrow"])["log"]


def test_budgets_are_drawn_where_there_is_room(frontiers):
    shown = steps(frontiers["budgets"])["budgets"]
    assert [b["text"] for b in shown] == ["budget 2,000 buys 0.1186", "budget 1 buys nothing"]


def test_tolerances_without_a_plan_are_marked(frontiers):
    data = steps(frontiers["some without"])
    assert data["none"] == [0.01]
    svg = to_svg(step_chart(data))
    assert "no plan" in svg
    assert "nothing is drawn" in render_frontier(frontiers["all without"])


def test_bounds_are_drawn_only_below_costs(frontiers):
    bounds = steps(frontiers["bounded"])["bounds"]
    assert [b["high"] for b in bounds] == [p.cost for p in frontiers["exact"].points if p.cost]
    assert all(b["low"] < b["high"] for b in bounds)
    assert steps(frontiers["exact"])["bounds"] == []


# --- both ----------------------------------------------------------------------------------------


def test_names_from_the_data_are_escaped(tmp_path):
    bad = "<script>alert(1)</script>"
    cells = {(bad, "<b>"): 60, (bad, "n"): 40, ("w", "<b>"): 20, ("w", "n"): 80}
    counts = Counts.from_mapping(cells, sensitive=["<i>"], label="$l ${x}")
    text, _ = written(write_plan, eq.plan(counts), tmp_path, source=bad)
    assert "&lt;script&gt;" in text
    assert "<b>" not in text
    assert "<i>" not in text
    text, _ = written(write_frontier, eq.frontier(counts, points=3), tmp_path, source=bad)
    assert "&lt;script&gt;" in text


@pytest.mark.slow
def test_pages_are_written_without_charts_if_need_be(plans, frontiers, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "altair", None)
    write_plan(plans["zero"], tmp_path / "plan.html")
    write_frontier(frontiers["one"], tmp_path / "frontier.html")
    for name in ("plan", "frontier"):
        text = (tmp_path / f"{name}.html").read_text(encoding="utf-8")
        assert "<svg" not in text
        assert "pip install &#x27;equipoise[charts]&#x27;" in text
