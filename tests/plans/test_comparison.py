"""Plans side by side: the numbers of each, and what each does that the others do not."""

from __future__ import annotations

import csv
import io
import itertools
import json

import pytest

import equipoise as eq
from equipoise.errors import InputError, SourceNotFound

CELLS = {("m", "h"): 160, ("m", "n"): 290, ("w", "h"): 40, ("w", "n"): 110}


@pytest.fixture
def counts():
    return eq.Counts.from_mapping(CELLS, sensitive=["sex"], label="o")


@pytest.fixture
def plans(counts):
    return {
        "found": eq.plan(counts, tolerance=0.05, reference="original"),
        "add": eq.scenario(counts, add={"sex=w, o=h": 10}),
        "both": eq.scenario(
            counts, add={"sex=w, o=h": 5}, delete={"sex=m, o=h": 7}, tolerance=0.01
        ),
    }


def test_every_number_is_that_of_measuring_each_repaired_table(plans, counts):
    both = eq.compare(plans)
    tables = [eq.measure(t) for t in (counts, *(p.after() for p in plans.values()))]
    assert len(both.biases.rows) == 4
    for row in both.biases.rows:
        wanted = [table[str(row.group), row.label].ub for table in tables]
        assert [row.before, *row.after] == pytest.approx(wanted, abs=1e-12)
    changes = [row.change for row in both.biases.rows]
    assert changes == sorted(changes, reverse=True)
    assert {row.label for row in both.biases.telling()} == {"h"}


def test_all_groups_of_the_lattice_are_compared_also_those_that_are_new():
    cells = {c: 5 + i for i, c in enumerate(itertools.product("mw", "ab", "hno"))}
    cells = {c: n for c, n in cells.items() if c[:2] != ("w", "b")}
    counts = eq.Counts.from_mapping(cells, sensitive=["sex", "race"], label="o")
    both = eq.compare([eq.scenario(counts, add={"sex=w, race=b": 9})])
    found = {(str(r.group), r.label): r for r in both.biases.rows}
    assert len(found) == (2 + 2 + 4) * 3
    new = found["sex=w, race=b", "h"]
    assert new.before != new.before
    assert new.after[0] == pytest.approx(eq.measure(both.plans[0].after())["sex=w, race=b", "h"].ub)
    assert both.biases.told is None
    assert len(both.biases) == len(found)
    assert json.loads(both.to_json())["groups"]
    assert len(both.to_csv().splitlines()) == 1 + len(found)


def test_what_each_does_alone_is_what_no_other_does(plans):
    both = eq.compare(plans)
    alone = [{(str(c.group), c.label) for c in both.only(i)} for i in range(3)]
    done = [{((str(c.group), c.label), c.add > 0) for c in plan.moves} for plan in plans.values()]
    for i, mine in enumerate(done):
        others = set().union(*(d for j, d in enumerate(done) if j != i))
        assert alone[i] == {cell for cell, _ in mine - others}
    said = " ".join(both.sentences)
    assert "Only “both” deletes 7 rows of sex=m, h." in said
    assert "“add” changes no cell that no other plan changes in the same direction." in said
    assert "“add” and “both” were made by hand, not optimised." in said
    assert "“found” keeps the tolerance against the original label frequencies" in said


def test_totals_are_those_of_the_plans(plans):
    both = eq.compare(plans)
    data = both.to_dict()
    for name, plan, told in zip(both.names, both.plans, data["plans"], strict=True):
        assert told["name"] == name
        assert told["additions"] == plan.additions
        assert told["deletions"] == plan.deletions
        assert told["cost"] == plan.cost
        assert told["label_drift"] == plan.certificate.label_drift
        assert told["max_abs_ub"] == plan.certificate.max_abs_ub_after
        assert told["reached"] == plan.reached
    assert [p["tolerance"] for p in data["plans"]] == [0.05, None, 0.01]
    assert [row[-1] for row in both.totals().rows] == [
        "", "0.05 reached", "no tolerance", "0.01 NOT reached",
    ]  # fmt: skip
    least = min(plans, key=lambda name: plans[name].certificate.max_abs_ub_after)
    assert f"The largest |UB| is smallest after “{least}”" in both.sentences[0]


def test_csv_has_a_line_for_each_group_and_label_and_a_column_for_each_plan(plans):
    both = eq.compare(plans)
    lines = list(csv.DictReader(io.StringIO(both.to_csv())))
    assert list(lines[0]) == ["sex", "o", "now", "found", "add", "both"]
    assert len(lines) == 4
    assert [float(line["add"]) for line in lines] == [r.after[1] for r in both.biases.rows]
    assert both.to_pandas()["both"].tolist() == [r.after[2] for r in both.biases.rows]


def test_text_is_limited_and_says_by_how_much(plans):
    both = eq.compare(plans)
    assert "… and 1 more" in both.text(top=1)
    assert "… and" not in both.text()
    for grid in (both.totals(), both.grid(), both.changes()):
        assert grid.markdown() in both.markdown()


def test_costs_are_only_compared_if_a_row_costs_the_same(counts):
    moves = {"add": {"sex=w, o=h": 10}}
    cheap, dear = eq.scenario(counts, **moves), eq.scenario(counts, **moves, costs={"sex=w": 3})
    said = " ".join(eq.compare([cheap, dear]).sentences)
    assert "lowest cost" not in said
    assert "different costs of a row" in said
    assert "All plans make the same change to 1 cell." in said


def test_names_are_those_of_files_and_unique(plans, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
    plans["add"].write("a/plan.json")
    plans["both"].write("b/plan.json")
    plans["both"].write("b/other.json")
    assert eq.compare(["a/plan.json", "b/other.json"]).names == ("plan", "other")
    assert eq.compare(["a/plan.json", "b/plan.json"]).names == ("a/plan.json", "b/plan.json")
    assert eq.compare([plans["add"], plans["both"]]).names == ("plan 1", "plan 2")
    assert eq.compare(["a/plan.json"], names=["x"]).names == ("x",)
    with pytest.raises(InputError, match=r"'a/plan\.json' is given twice"):
        eq.compare(["a/plan.json", "a/plan.json"])
    with pytest.raises(InputError, match="`names` has 1 names for 2 plans"):
        eq.compare(["a/plan.json", "b/plan.json"], names=["x"])
    with pytest.raises(InputError, match="'now' stands for the table as it is now"):
        eq.compare({"now": plans["add"]})
    with pytest.raises(SourceNotFound, match=r"no plan c\.json"):
        eq.compare(["c.json"])
    with pytest.raises(InputError, match="no plan to compare"):
        eq.compare([])


def test_plans_for_other_counts_are_refused(plans):
    other = eq.Counts.from_mapping({**CELLS, ("w", "h"): 41}, sensitive=["sex"], label="o")
    drawn = eq.scenario(other, add={"sex=w, o=h": 10})
    with pytest.raises(
        InputError, match=r"add and drawn are plans for different counts: 600 rows by"
    ):
        eq.compare({"add": plans["add"], "drawn": drawn})


def test_missing_values_are_values_if_some_plan_takes_them_for_that():
    cells = {**CELLS, (eq.MISSING, "h"): 6, (eq.MISSING, "n"): 6}
    counts = eq.Counts.from_mapping(cells, sensitive=["sex"], label="o")
    one = eq.scenario(counts, add={"sex=w, o=h": 10})
    other = eq.scenario(counts, add={"sex=w, o=h": 10}, plan_missing=True)
    assert len(eq.compare([one]).biases) == 2
    both = eq.compare([one, other])
    assert len(both.biases) == 3
    assert any("treat missing values as values" in s for s in both.sentences)
