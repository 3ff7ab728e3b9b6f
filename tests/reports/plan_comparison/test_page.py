from __future__ import annotations

import json

import pytest

import equipoise as eq
from equipoise.counts import Counts
from equipoise.reports.plan_comparison.charts import group_chart, row_chart
from equipoise.reports.plan_comparison.data import LINES, group_lines, moved_rows
from reports.parsing import draw_and_check, read, rendered

pytest.importorskip("altair")
pytest.importorskip("vl_convert")


@pytest.fixture(scope="module")
def compas():
    return eq.count("compas", sensitive_features=["sex", "race"], label="risk", count="n")


@pytest.fixture(scope="module")
def both(compas):
    return eq.compare(
        {
            "found": eq.plan(compas, tolerance=0.05, allow="both", reference="original"),
            "drawn": eq.scenario(compas, add={"sex=w, risk=H": 500}),
            "deleting": eq.scenario(compas, delete={"sex=m, race=o, risk=H": 900}),
        }
    )


@pytest.mark.slow
def test_the_page_is_whole_and_fetches_nothing(both):
    text, page = read(both, source="compas")
    assert page.ids == ["said", "totals", "charts", "groups", "cells", "provenance"]
    for sentence in both.sentences:
        assert sentence in page.words
    for grid in (both.totals(), both.grid(), both.changes()):
        for row in grid.rows:
            assert all(cell in page.cells for cell in row)
    assert text.count("<svg") == 2
    assert not page.fetched


@pytest.mark.slow
def test_tables_are_cut_with_a_word_about_the_rest(both):
    _, page = read(both, top=2)
    assert f"… and {len(both.biases) - 2} more groups." in page.words
    assert f"… and {len(both.cells) - 2} more cells." in page.words


@pytest.mark.slow
def test_charts_hold_the_numbers_of_the_comparison(both):
    data = group_lines(both)
    assert data == json.loads(json.dumps(data, allow_nan=False))
    drawn = {(p["name"], p["table"]): p["ub"] for p in data["points"]}
    for row in both.biases.telling(3):
        name = f"{row.group} → {row.label}"
        for table, ub in zip(("now", *both.names), (row.before, *row.after), strict=True):
            assert drawn[name, table] == ub
    assert len(data["lines"]) + data["left_out"] == len(both.biases)
    draw_and_check(group_chart(data))
    rows = moved_rows(both)
    assert [(b["add"], b["delete"]) for b in rows["bars"]] == [
        (p.additions, p.deletions) for p in both.plans
    ]
    draw_and_check(row_chart(rows))


@pytest.mark.slow
def test_undefined_numbers_and_many_plans_are_drawn():
    cells = {("m", "h"): 5, ("m", "n"): 7, ("w", "n"): 4, ("w", "h"): 3}
    cells |= {(f"g{i}", "n"): 2 + i for i in range(LINES)}
    counts = Counts.from_mapping(cells, sensitive=["sex"], label="o")
    plans = [eq.scenario(counts, delete={"sex=w": 7}, may_vanish=True)]
    plans += [eq.scenario(counts, add={"sex=w, o=h": n}) for n in range(1, 11)]
    both = eq.compare(plans)
    data = group_lines(both)
    assert len(data["lines"]) == LINES
    assert data["left_out"] == 2
    assert all(p["ub"] == p["ub"] for p in data["points"])
    draw_and_check(group_chart(data))
    assert "2 more lines are not drawn" in rendered(both)


def test_plans_that_change_nothing_have_no_bars():
    counts = Counts.from_mapping(
        {("m", "h"): 5, ("m", "n"): 5, ("w", "h"): 5, ("w", "n"): 5}, sensitive=["sex"], label="o"
    )
    text, page = read(eq.compare([eq.plan(counts)]))
    assert text.count("<svg") == 1
    assert "None." in page.words


def test_names_are_escaped(compas):
    plan = eq.scenario(compas, add={"sex=w, risk=H": 5})
    text, _ = read(eq.compare({"<script>": plan}))
    assert "<script" not in text
