from __future__ import annotations

import itertools
import json
import re

import pytest

import equipoise as eq
from equipoise.counts import Counts
from equipoise.plans.maps.policy_map import policy_map
from equipoise.reports.charts.vega import to_svg
from equipoise.reports.policy_map import charts as map_charts
from equipoise.reports.policy_map import page as map_page
from equipoise.reports.policy_map.charts import policy_map_chart
from equipoise.reports.policy_map.data import chart_data
from reports.parsing import Page, draw_and_check, rendered

altair = pytest.importorskip("altair")
pytest.importorskip("vl_convert")

WOMEN = "add sex=Female, income=>50K"
MAPS = {
    "hyperbola": {"x": "add sex=Male, income=<=50K", "limits": ["x<=4500", "y<=3000", "n>=30000"]},
    "line": {"x": "delete sex=Male, income=>50K", "limits": ["y<=3000", "n>=30000"]},
    "two lines": {"x": "delete sex=Male"},
    "tolerance": {"x": "delete sex=Male", "tolerance": 0.05, "cost_y": 3},
    "out of reach": {"x": "add sex=Male", "limits": ["x<=100", "y<=100", "cost<=150"]},
    "empty": {"x": "add sex=Male", "limits": ["y<=100", "y>=200"]},
    "many limits": {"x": "add sex=Male", "limits": [f"x<={n}" for n in range(90, 100)]},
    "small window": {"x": "add sex=Male", "x_max": 5, "y_max": 5},
}


@pytest.fixture(scope="module")
def adult():
    return eq.count("adult", sensitive_features=["sex"], label="income")


@pytest.mark.slow
@pytest.mark.parametrize("name", MAPS)
def test_every_map_can_be_drawn(name, adult):
    data = chart_data(policy_map(adult, y=WOMEN, **MAPS[name]))
    assert data == json.loads(json.dumps(data, allow_nan=False))
    spec = policy_map_chart(data)
    draw_and_check(spec)


@pytest.mark.slow
def test_white_is_0_and_limits_are_named_where_they_leave_the_map(adult):
    data = chart_data(policy_map(adult, y=WOMEN, **MAPS["hyperbola"]))
    spec = policy_map_chart(data)
    (scale,) = (
        layer["encoding"]["color"]["scale"]
        for layer in spec["layer"]
        if "scale" in layer["encoding"].get("color", {})
    )
    assert scale["domain"][3] == 0
    assert scale["domain"][0] == -scale["domain"][-1]
    assert [(li["text"], li["side"]) for li in data["limits"]] == [
        ("x<=4500", "top"),
        ("y<=3000", "right"),
    ]
    svg = to_svg(spec)
    for words in ("x&lt;=4500", "y&lt;=3000", "UB = 0", "x 163.20, y 3,000"):
        assert words in svg


@pytest.mark.slow
def test_names_of_limits_do_not_cover_each_other(adult):
    data = chart_data(policy_map(adult, y=WOMEN, **MAPS["many limits"]))
    placed = map_charts._apart(data["limits"], "top", data)
    assert [p["shift"] for p in placed] == [-15.0 * i for i in range(10)]
    sideways = [{**li, "ends": [p[::-1] for p in li["ends"]]} for li in data["limits"]]
    placed = map_charts._apart(sideways, "right", data)
    tops = [map_charts._pixels(data, (p["x"], p["y"]))[1] + p["shift"] for p in placed]
    assert all(b - a >= 15 - 1e-9 for a, b in itertools.pairwise(tops))


def test_the_colours_are_those_of_ub(adult):
    made = policy_map(adult, y=WOMEN, **MAPS["hyperbola"])
    data = chart_data(made)
    for cell in data["cells"][::97]:
        middle = (cell["x"] + cell["x2"]) / 2, (cell["y"] + cell["y2"]) / 2
        assert cell["ub"] == pytest.approx(float(made.ub(*middle)), abs=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("name", MAPS)
def test_the_page_is_whole_and_fetches_nothing(name, adult):
    made = policy_map(adult, y=WOMEN, **MAPS[name])
    text = rendered(made, source="adult")
    page = Page(text)
    groups = [] if made.effect is None else ["groups"]
    assert page.ids == ["said", "chart", "points", *groups, "provenance"]
    assert page.fetched == []
    assert "<svg" in text
    for row in made.effects().rows:
        assert all(cell in page.cells for cell in row)
    for sentence in made.sentences:
        assert sentence in page.words
    for point in made.points:
        assert point.name in page.words
    assert f"sha256:{made.counts.fingerprint}" in page.words
    assert not re.search(r"(?i)\b(fair|compliant)\b", page.words)


@pytest.mark.slow
def test_the_chosen_point_is_drawn(adult):
    made = policy_map(adult, y=WOMEN, **MAPS["hyperbola"], at=(100, 2000))
    data = chart_data(made)
    assert data == json.loads(json.dumps(data, allow_nan=False))
    assert (data["chosen"]["x"], data["chosen"]["y"]) == (100, 2000)
    assert chart_data(policy_map(adult, y=WOMEN, **MAPS["hyperbola"]))["chosen"] is None
    spec = policy_map_chart(data)
    draw_and_check(spec)
    assert sum(layer["mark"].get("shape") == "diamond" for layer in spec["layer"]) == 1
    page = Page(rendered(made))
    assert "The diamond is the chosen point." in page.words
    assert "x = 100 and y = 2,000" in page.words


def test_the_caption_says_what_is_drawn(adult):
    made = {name: policy_map(adult, y=WOMEN, **how) for name, how in MAPS.items()}
    pages = {name: map_page._caption(found) for name, found in made.items()}
    assert "On the dark line UB is 0." in pages["line"]
    assert "UB is 0 nowhere on the map." in pages["out of reach"]
    assert "Dotted lines are where |UB| is 0.05." in pages["tolerance"]
    assert "The ring is the cheapest point inside the limits." in pages["line"]
    assert "The ring is the point with the smallest |UB|" in pages["out of reach"]
    assert "The ring" not in pages["empty"]
    assert "Dashed lines" not in pages["two lines"]


@pytest.mark.slow
def test_names_from_the_data_are_escaped():
    bad = "<script>alert(1)</script>"
    cells = {(bad, "y"): 60, (bad, "n"): 40, ("w", "y"): 20, ("w", "n"): 80}
    counts = Counts.from_mapping(cells, sensitive=["sex"], label="l")
    made = policy_map(counts, x=f"add sex={bad}, l=n", y="add sex=w, l=y", limits=["y<=90"])
    text = rendered(made)
    assert "<script" not in text
    assert "&lt;script&gt;" in text


def test_the_page_is_written_without_the_chart_if_need_be(adult):
    text = rendered(policy_map(adult, y=WOMEN, **MAPS["line"]), charts=False)
    assert "<svg" not in text
    assert "pip install &#x27;equipoise[charts]&#x27;" in text
