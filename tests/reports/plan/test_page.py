from __future__ import annotations

import json

import pytest

import equipoise as eq
from equipoise.counts import Counts
from equipoise.reports.charts.before_after import bias_chart
from equipoise.reports.plan.charts import change_chart
from equipoise.reports.plan.data import biases, changes
from equipoise.values import MISSING
from reports.parsing import Page, draw_and_check, read, rendered

pytest.importorskip("altair")
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


@pytest.fixture(scope="module")
def compas():
    return eq.count("compas", sensitive_features=["sex", "race"], label="risk", count="n")


@pytest.fixture(scope="module")
def plans(compas):
    return {name: eq.plan(compas, **how) for name, how in PLANS.items()}


@pytest.mark.parametrize("name", PLANS)
def test_the_page_of_a_plan_is_whole_and_fetches_nothing(name, plans):
    plan = plans[name]
    text, page = read(plan, source="compas")
    steps = ["budget"] if plan.steps else []
    reasons = ["reasons"] if len(plan.reasons) > 3 else []
    first = ["said", "charts", "cells", *reasons, "certificate"]
    assert page.ids == [*first, *steps, "asked", "provenance"]
    for sentence in (*plan.explanation, *plan.reasons):
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


def test_a_plan_that_changes_nothing_says_so(plans):
    text, page = read(plans["empty"])
    assert "Nothing needs to change." in page.words
    assert "None." in page.words
    assert "<strong>0</strong><span>rows to add</span>" in text


def test_a_plan_that_falls_short_says_so(plans):
    text = rendered(plans["short"], charts=False)
    reached = "<strong>NO</strong><span>tolerance 0.01 against original frequencies reached</span>"
    assert reached in text
    assert "NOT reached" in text


def test_what_was_asked_is_told(plans):
    words = {name: Page(rendered(plan, charts=False)).words for name, plan in plans.items()}
    assert "sex=w: 2" in words["costs"]
    assert "keep rates of: sex" in words["priorities"]
    assert "sex=w; sex=m, risk=H" in words["priorities"]
    assert "sex=w, race=c: H 0.9" in words["targets"]
    assert "L 0.6, M 0.25, H 0.15" in words["labels"]
    assert "original label frequencies" in words["rate"]


def test_only_the_top_cells_are_listed_and_the_rest_counted(plans):
    words = Page(rendered(plans["zero"], charts=False, top=3)).words
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


BAD = "<script>alert(1)</script>"


def test_names_from_the_data_are_escaped():
    cells = {(BAD, "<b>"): 60, (BAD, "n"): 40, ("w", "<b>"): 20, ("w", "n"): 80}
    counts = Counts.from_mapping(cells, sensitive=["<i>"], label="$l ${x}")
    text, _ = read(eq.plan(counts), source=BAD)
    assert "&lt;script&gt;" in text
    assert "<b>" not in text
    assert "<i>" not in text


def test_the_page_is_written_without_charts_if_need_be(plans):
    text = rendered(plans["zero"], charts=False)
    assert "<svg" not in text
    assert "pip install &#x27;equipoise[charts]&#x27;" in text


def test_a_group_that_loses_all_its_rows_is_drawn_without_a_number_after():
    cells = {("m", "y"): 60, ("m", "n"): 40, ("w", "y"): 20, ("w", "n"): 80, ("x", "y"): 3}
    counts = Counts.from_mapping(cells, sensitive=["sex"], label="l")
    plan = eq.plan(counts, allow="delete", may_vanish=True)
    assert "x" not in {cell[0] for cell, n in plan.after().cells().items() if n}
    (gone,) = [pair for pair in biases(plan)["pairs"] if pair["name"] == "sex=x"]
    assert gone["after"] is None
    assert "sex=x" in read(plan)[1].words


def test_the_page_of_a_plan_made_by_hand_says_so(compas):
    plan = eq.scenario(compas, add={"sex=w, risk=H": 500})
    _, page = read(plan, source="compas")
    assert "made by hand and is not optimised" in page.words
    assert "hand, not optimised" in page.words
    assert "every limit holds" in page.words
    assert "zero bias" not in page.words
    told = eq.scenario(compas, add={"sex=w, risk=H": 500}, tolerance=0.3)
    assert "tolerance 0.3 reached" in read(told, source="compas")[1].words


def test_many_sentences_are_folded():
    cells = {(f"g{i}", y): 20 + (7 * i + 3 * j) % 31 for i in range(30) for j, y in enumerate("hn")}
    plan = eq.plan(Counts.from_mapping(cells, sensitive=["g"], label="o"))
    text, page = read(plan)
    assert len(plan.reasons) > 20
    assert f"All {len(plan.reasons)} groups that change" in page.words
    assert all(reason in page.words for reason in plan.reasons)
    assert "<details>" in text
