"""The page about missing values: all that was found, escaped, and nothing fetched."""

from __future__ import annotations

import json
import re
from html import unescape
from xml.etree import ElementTree

import numpy as np
import pyarrow as pa
import pytest

from equipoise.counts import CountRequest
from equipoise.evaluation.missing.comparison import compare_missing
from equipoise.evaluation.missing.imputation import METHODS
from equipoise.evaluation.missing.simulation import simulate_missing
from equipoise.reports.missing.data import summarize_missing
from reports.parsing import rendered

pytest.importorskip("sklearn")
pytest.importorskip("altair")
pytest.importorskip("vl_convert")

W = "<i>w</i>"
"""A value that would be markup if a page did not escape it."""
REQUEST = CountRequest(sensitive=("sex", "town"), label="y", na=("?",))
KINDS = ["comparison", "simulation", "once"]


@pytest.fixture(scope="module")
def results():
    chance = np.random.default_rng(0)
    n = 400
    sex = chance.choice([W, "m", "?"], n, p=[0.4, 0.5, 0.1])
    town = chance.choice(["a", "b", "c & d"], n)
    y = np.where(chance.random(n) < 0.3 + 0.4 * (sex == "m"), "yes", "no")
    table = pa.table({"sex": sex, "town": town, "y": y, "<u>id</u>": [f"p{i}" for i in range(n)]})
    methods = ["group", "drop", "most_frequent", "knn"]
    return {
        "comparison": compare_missing(table, REQUEST, methods=methods),
        "simulation": simulate_missing(table, REQUEST, methods=methods, mechanism="by_value"),
        "once": simulate_missing(table, REQUEST, methods=["drop"], repeats=1),
    }


@pytest.fixture(scope="module")
def pages(results):
    return {name: rendered(found, source="people & more.csv") for name, found in results.items()}


@pytest.mark.parametrize("name", KINDS)
def test_the_page_says_all_that_was_found_and_fetches_nothing(name, results, pages):
    page = pages[name]
    ids = re.findall(r'<section id="([^"]+)"', page)
    assert ids == ["said", "methods", "groups", "meanings", "provenance"]
    assert not re.search(r"url\((?!#)|@import|<script|<link|src=|href=\"(?!#)", page)
    words = unescape(page)
    for sentence in results[name].sentences:
        assert sentence in words
    for method in results[name].names:
        assert f"{method}: {METHODS[method].sentence}." in words
    assert "people & more.csv" in words
    assert not re.search(r"(?i)\b(fair|unbiased|compliant)\b", words)


@pytest.mark.parametrize("name", KINDS)
def test_nothing_of_the_data_becomes_markup(name, pages):
    assert not re.search(r"<[iu]>", pages[name])
    assert "&lt;i&gt;w&lt;/i&gt;" in pages[name]


@pytest.mark.parametrize("name", KINDS)
def test_the_page_is_made_of_plain_data(name, results):
    data = summarize_missing(results[name], top=5)
    assert data == json.loads(json.dumps(data, allow_nan=False))
    assert len(data["groups"]["rows"]) == 5
    assert data["left_out"] == len(results[name].groups) - 5
    assert data["source"] == "400 rows"
    more = f"… and {data['left_out']:,} more groups and labels."
    assert more in rendered(results[name], charts=False, top=5)


@pytest.mark.parametrize("name", KINDS)
def test_the_chart_shows_the_mean_and_the_largest_of_each_method(name, results, pages):
    result = results[name]
    pairs = {pair["name"]: pair for pair in summarize_missing(result)["chart"]["pairs"]}
    if name == "comparison":
        assert set(pairs) == set(result.names) - {"drop"}
        expected = {m: (result[m].mean_change, result[m].largest_change) for m in pairs}
    else:
        assert set(pairs) == set(result.names)
        expected = {m: (result[m].mean_abs_error.mean, result[m].largest_error.mean) for m in pairs}
    assert {m: (pair["before"], pair["after"]) for m, pair in pairs.items()} == expected
    (picture,) = re.findall(r"<svg.*?</svg>", pages[name], re.DOTALL)
    ElementTree.fromstring(picture)


def test_the_numbers_at_the_top_are_those_of_the_result(results):
    compared, simulated = results["comparison"], results["simulation"]
    figures = summarize_missing(compared)["figures"]
    assert figures[0] == ["400", "rows"]
    most = max(compared.methods, key=lambda treated: treated.largest_change)
    assert figures[3] == [f"{most.largest_change:.3f}", f"largest change of UB ({most.method})"]
    figures = summarize_missing(simulated)["figures"]
    assert figures[1][1] == "lose sex"
    errors = [s.mean_abs_error.mean for s in simulated.methods]
    assert figures[3][0] == f"{min(errors):.3f} – {max(errors):.3f}"


def test_where_it_comes_from_is_told(results):
    facts = dict(summarize_missing(results["comparison"], source="people.csv")["facts"])
    assert facts["table"] == "people.csv"
    assert facts["texts that mean a missing value"] == "?"
    assert facts["columns that they did not use"] == "<u>id</u>"
    assert facts["schema"] == "equipoise.missing/1"
    assert facts["made by"].startswith("equipoise ")


def test_without_the_drawing_library_the_page_says_so(results):
    text = rendered(results["comparison"], charts=False)
    assert "<svg" not in text
    assert "equipoise[charts]" in text
