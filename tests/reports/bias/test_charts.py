from __future__ import annotations

import json
import re
import sys
from html import escape
from xml.etree import ElementTree

import pytest

import equipoise as eq
from equipoise.errors import MissingDependency
from equipoise.reports.bias.charts import heat_map, interval_chart
from equipoise.reports.bias.data import summarize
from equipoise.reports.charts.vega import BLUE, RED, to_html_fragment, to_png, to_svg
from reports.parsing import draw_and_check, rendered
from reports.tables import NASTY, TABLES, crossed, hiring, nasty, table_of, three

altair = pytest.importorskip("altair")
pytest.importorskip("vl_convert")

DRAWN = [name for name in TABLES if name != "no-group-left"]


def data(table):
    return summarize(table)["charts"]


def drawn_values(spec):
    panels = spec.get("concat", [spec])
    return [value for panel in panels for value in panel["data"]["values"]]


@pytest.mark.slow
@pytest.mark.parametrize("name", DRAWN)
def test_every_chart_is_valid_vega_lite_and_can_be_drawn(name):
    found = data(TABLES[name]())
    specs = [heat_map(m) for m in found["matrices"]]
    specs += [interval_chart(found["ranking"])] if found["ranking"]["bars"] else []
    assert specs
    for spec in specs:
        draw_and_check(spec)


@pytest.mark.parametrize(
    ("table", "shapes"),
    [
        (hiring(), [(2, 2, 0)]),
        (crossed(), [(4, 3, 2)]),
        (three(), [(4, 3, 3), (3, 3, 3), (4, 3, 3)]),
        (three(max_order=1), [(2, 3, 0), (3, 3, 0), (2, 3, 0)]),
    ],
)
def test_matrices_have_a_margin_of_any_value(table, shapes):
    found = data(table)["matrices"]
    assert [(len(m["rows"]), len(m["columns"]), len(m["labels"])) for m in found] == shapes
    assert all((m["rows"][0] == "*") == bool(m["labels"]) for m in found)


def test_a_matrix_holds_the_ub_of_every_group_of_its_attributes():
    table = three()
    for matrix in data(table)["matrices"]:
        names = (matrix["row_name"], matrix["column_name"])
        for cell in matrix["cells"]:
            values = zip(names, (cell["row"], cell["column"]), strict=True)
            group = ", ".join(f"{name}={value}" for name, value in values if value != "*")
            assert cell["ub"] == table[group, cell["label"]].ub
        assert len(matrix["cells"]) == 3 * (len(matrix["rows"]) * len(matrix["columns"]) - 1)


def test_cells_too_small_are_grey_and_in_brackets():
    spec = heat_map(data(crossed())["matrices"][0])
    small = [v for v in drawn_values(spec) if v["unsure"]]
    assert small
    assert all("too small to say" in v["about"] and v["shown"].startswith("(") for v in small)
    condition = spec["concat"][0]["layer"][0]["encoding"]["color"]["condition"]
    assert "datum.unsure" in condition["test"]


def test_the_colours_are_centred_on_nought_and_red_is_fewer():
    spec = heat_map(data(hiring())["matrices"][0])
    colour = json.dumps(spec["layer"][0]["encoding"]["color"])
    scale = json.loads(re.search(r'"scale": (\{.*?\})', colour).group(1))
    assert scale["domain"][3] == 0
    assert scale["domain"] == [-x for x in reversed(scale["domain"])]
    assert (scale["range"][0], scale["range"][-1]) == (BLUE, RED)


def test_the_ranking_is_worst_first_with_intervals_that_hold_ub():
    bars = data(three())["ranking"]["bars"]
    assert len(bars) == 30
    assert [abs(b["ub"]) for b in bars] == sorted((abs(b["ub"]) for b in bars), reverse=True)
    assert all(b["low"] <= b["ub"] <= b["high"] for b in bars)


def test_two_labels_mirror_each_other_so_one_is_ranked():
    assert len(data(hiring())["ranking"]["bars"]) == 2
    assert "outcome=hired" in data(hiring())["ranking"]["title"]
    assert "outcome=not" in data(hiring(favourable="not"))["ranking"]["title"]


def test_many_values_and_labels_are_cut_and_the_caption_says_so():
    cells = {(f"v{i:02}", f"y{i % 8}"): 10 + i for i in range(45)}
    summary = summarize(table_of(cells, ["town"], favourable="y7"))
    matrix = summary["charts"]["matrices"][0]
    assert len(matrix["rows"]) == 30
    assert "y7" in matrix["columns"]
    assert "15 are left out" in summary["captions"]["matrix-1"]
    assert "2 labels with smaller |UB| are left out" in summary["captions"]["matrix-1"]


def test_values_are_drawn_as_text_and_tooltips_are_escaped():
    for spec in (heat_map(m) for m in data(nasty())["matrices"]):
        fragment = to_html_fragment(spec)
        assert "<script" not in fragment
        root = ElementTree.fromstring(fragment)
        titles = [e.text for e in root.iter("{http://www.w3.org/2000/svg}title")]
        assert len(titles) == len(data(nasty())["matrices"][0]["cells"])
        assert any(NASTY.replace("'", "\\'") in title for title in titles)


def test_a_fragment_takes_the_ink_of_its_page():
    fragment = to_html_fragment(heat_map(data(hiring())["matrices"][0]))
    assert 'fill="currentColor"' in fragment
    assert 'fill="white"' not in fragment.split("<text")[0]


def test_pictures_are_png_and_svg():
    spec = interval_chart(data(hiring())["ranking"])
    assert to_png(spec).startswith(b"\x89PNG")
    assert to_svg(spec).startswith("<svg")


@pytest.mark.slow
def test_a_page_with_charts_is_small_and_whole(tmp_path):
    path = tmp_path / "page.html"
    eq.report(three(favourable="high"), path, source="people.csv")
    text = path.read_text(encoding="utf-8")
    assert len(text) < 1_000_000
    assert text.count("<svg") == 4
    assert "<script" not in text
    assert [p.name for p in tmp_path.iterdir()] == ["page.html"]


@pytest.mark.slow
def test_charts_have_captions():
    captions = summarize(three())["captions"]
    page = rendered(three())
    for caption in captions.values():
        assert f"<figcaption>{escape(caption)}</figcaption>" in page
    assert page.count("<figure>") == page.count("<svg") == len(captions)


def test_without_the_library_the_error_says_what_to_install(monkeypatch):
    matrix = data(hiring())["matrices"][0]
    spec = heat_map(matrix)
    monkeypatch.setitem(sys.modules, "altair", None)
    monkeypatch.setitem(sys.modules, "vl_convert", None)
    with pytest.raises(MissingDependency, match=r"equipoise\[charts\]"):
        heat_map(matrix)
    with pytest.raises(MissingDependency, match=r"equipoise\[charts\]"):
        to_svg(spec)
