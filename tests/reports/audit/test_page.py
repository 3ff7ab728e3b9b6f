"""Pages of audit forms: their sections, charts and tables."""

from __future__ import annotations

import math
import re

import pytest

import equipoise as eq
from equipoise.options.audit import FORMS
from equipoise.reports.audit.charts import ratio_chart
from equipoise.reports.audit.data import ratios, summarize_audit
from equipoise.reports.audit.page import plot, render
from hires import hires


def filled(form, **options):
    given = {"sex": "sex", "race": "race", "selected": "hired", "unknown": "Unknown", **options}
    return eq.audit(hires(), form=form, **given)


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMS)
def test_a_page_has_every_section_once(form):
    pytest.importorskip("vl_convert")
    made = filled(form)
    page = render(made, source="hires.csv")
    ids = re.findall(r'<section id="([^"]+)">', page)
    assert ids == [*(part.id for part in made.all_sections), "provenance"]
    assert '<p class="source">hires.csv</p>' in page
    assert page.count("<figure>") == len(plot(made)) > 0
    assert "/tmp" not in page


def test_the_chart_has_the_ratios_the_lowest_first_and_the_line_of_four_fifths():
    made = filled("uniform-guidelines")
    for table in made.tables:
        data = ratios(table)
        shown = [bar["ratio"] for bar in data["bars"]]
        assert shown == sorted(shown)
        assert len(shown) == len(table)
        for bar in data["bars"]:
            assert bar["low"] <= bar["ratio"] <= bar["high"]
            assert bar["below"] == (bar["ratio"] < 0.8)
        import altair as alt

        spec = ratio_chart(data)
        alt.Chart.from_dict(spec)  # validates it
        drawn = [each for part in spec["layer"] for each in _values(part)]
        assert {"at": 0.8, "dash": True} in drawn
        for each in drawn:
            if "shape" in each:
                assert each["shape"] == ("diamond" if each["at"] < 0.8 else "circle")


def _values(part):
    found = part.get("data", {}).get("values", [])
    return found + [v for inner in part.get("layer", []) for v in _values(inner)]


def test_a_long_interval_ends_in_an_arrow_at_the_end_of_the_scale():
    data = ratios(filled("local-law-144").tables[2])
    assert max(bar["high"] for bar in data["bars"]) > 2
    drawn = [v for part in ratio_chart(data)["layer"] for v in _values(part) if "cut" in v]
    assert any(v["cut"] for v in drawn)
    assert all(math.isfinite(v["high"]) and v["high"] <= 2.1 for v in drawn)


def test_hidden_categories_are_not_drawn():
    made = filled("local-law-144", suppress_below=5)
    data = summarize_audit(made)["charts"]["table-3"]
    assert not any("Two or more" in bar["name"] for bar in data["bars"])
    assert not any("<missing>" in bar["name"] for bar in data["bars"])


def test_a_long_table_says_how_many_rows_are_left_out():
    page = render(filled("datasheet"), top=3)
    assert "… and" in page
    assert "more rows" in page
