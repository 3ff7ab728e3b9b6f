from __future__ import annotations

import json
import math
from dataclasses import replace

import pytest

import equipoise as eq
from equipoise.counts import Counts
from equipoise.plans.frontier import Bought
from equipoise.reports.charts.vega import to_svg
from equipoise.reports.frontier.charts import step_chart
from equipoise.reports.frontier.data import steps
from reports.parsing import draw_and_check, read, rendered

pytest.importorskip("altair")
pytest.importorskip("vl_convert")

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
def frontiers(compas):
    found = {name: eq.frontier(compas, **how) for name, how in FRONTIERS.items()}
    exact = found["exact"]
    loose = tuple(replace(p, bound=0.9 * p.cost) for p in exact.points)
    found["bounded"] = replace(exact, points=loose, reference="new")
    bought = (Bought(10**9, 0.0, 5_000.0), Bought(1.0, None, None))
    found["budgets"] = replace(exact, budgets=(*exact.budgets, *bought))
    return found


@pytest.mark.parametrize("name", [*FRONTIERS, "bounded", "budgets"])
def test_the_page_of_a_frontier_is_whole_and_fetches_nothing(name, frontiers):
    found = frontiers[name]
    text, page = read(found, source="compas")
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
    assert "nothing is drawn" in rendered(frontiers["all without"])


def test_bounds_are_drawn_only_below_costs(frontiers):
    bounds = steps(frontiers["bounded"])["bounds"]
    assert [b["high"] for b in bounds] == [p.cost for p in frontiers["exact"].points if p.cost]
    assert all(b["low"] < b["high"] for b in bounds)
    assert steps(frontiers["exact"])["bounds"] == []


def test_names_from_the_data_are_escaped():
    bad = "<script>alert(1)</script>"
    cells = {(bad, "<b>"): 60, (bad, "n"): 40, ("w", "<b>"): 20, ("w", "n"): 80}
    counts = Counts.from_mapping(cells, sensitive=["<i>"], label="$l ${x}")
    text, _ = read(eq.frontier(counts, points=3), source=bad)
    assert "&lt;script&gt;" in text


def test_the_page_is_written_without_the_chart_if_need_be(frontiers):
    text = rendered(frontiers["one"], charts=False)
    assert "<svg" not in text
    assert "pip install &#x27;equipoise[charts]&#x27;" in text
