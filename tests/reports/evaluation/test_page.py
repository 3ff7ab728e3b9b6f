"""The page of an evaluation, and the plain data it is made of."""

from __future__ import annotations

import re

import pytest

import equipoise as eq
from equipoise.reports.evaluation import page as evaluation_page
from equipoise.reports.evaluation.data import score_data, summarize_evaluation
from people import people
from reports.parsing import rendered


@pytest.fixture(scope="module")
def evaluation():
    return eq.evaluate(
        people(500),
        sensitive_features=["sex"],
        label="hired",
        models="logistic",
        sample=[20, 40],
        repeats=3,
        also=["race"],
        jobs=1,
    )


@pytest.mark.slow
def test_the_page_says_what_the_data_says(evaluation, tmp_path):
    page = tmp_path / "page.html"
    eq.report(evaluation, page)
    text = page.read_text(encoding="utf-8")
    for study in evaluation.studies:
        for row in study["scores"]:
            mean, low, high = row["accuracy"]
            assert f"{mean:.3f} ± {(high - low) / 2:.3f}" in text
    assert text.count("<svg") == 6
    assert "Benjamini" in text


def test_bars_stand_in_two_halves(evaluation):
    bars = score_data(evaluation.studies[0], "logistic", "untouched")
    assert bars["halves"] == ["mitigated", "as it is"]
    assert bars["order"] == ["p20%", "n20%", "p40%", "n40%", "u20%", "u40%"]
    halves = {bar["version"]: bar["half"] for bar in bars["bars"]}
    assert halves["u20%"] == "as it is"
    assert {halves[v] for v in bars["order"][:4]} == {"mitigated"}
    assert len(bars["bars"]) == 18


def test_names_in_the_data_are_escaped(evaluation, monkeypatch):
    data = summarize_evaluation(evaluation)
    data["studies"][0]["sentences"] = ["<script>alert(1)</script>"]
    monkeypatch.setattr(evaluation_page, "summarize_evaluation", lambda _: data)
    text = rendered(evaluation, charts=False)
    assert "<script>" not in text
    assert "&lt;script&gt;" in text


def test_without_the_drawing_library_the_page_says_so_once(evaluation):
    text = rendered(evaluation, charts=False)
    assert text.count("equipoise[charts]") == 1
    assert "<figure" not in text


@pytest.mark.slow
def test_one_repeat_is_drawn_without_intervals(tmp_path):
    once = eq.evaluate(
        people(300),
        sensitive_features=["sex"],
        label="hired",
        models="logistic",
        versions=["p"],
        repeats=1,
        jobs=1,
    )
    page = tmp_path / "once.html"
    eq.report(once, page)
    text = page.read_text(encoding="utf-8")
    assert "nan" not in re.sub(r"<svg.*?</svg>", "", text, flags=re.DOTALL).lower().split()
    assert text.count("<svg") == 6
