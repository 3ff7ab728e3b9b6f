"""Sweeps: every point is the plan for its value, and dominated points are marked."""

from __future__ import annotations

import csv
import io
import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import equipoise as eq
from enumeration import all_tables, costs, within
from equipoise.cli.app import run
from equipoise.errors import InputError
from equipoise.plans.sweeps import SweepPoint, _marked
from equipoise.reports.pages import page_of

PEOPLE = {
    ("m", "a", "y"): 30, ("m", "a", "n"): 60, ("m", "b", "y"): 10, ("m", "b", "n"): 20,
    ("w", "a", "y"): 10, ("w", "a", "n"): 40, ("w", "b", "y"): 4, ("w", "b", "n"): 11,
}  # fmt: skip
SMALL = st.lists(st.integers(1, 4), min_size=4, max_size=4).map(lambda n: np.reshape(n, (2, 2)))
VALUES = {
    "coverage": [0, 20, 60],
    "budget": [0, 5, 20],
    "cost-ratio": [0.1, 1, 5],
    "label-drift": [0, 0.02, 0.3],
}


@pytest.fixture
def people():
    return eq.Counts.from_mapping(PEOPLE, sensitive=["sex", "race"], label="hired")


OPTIONS = {
    "coverage": lambda v: {"at_least_each": {"sex, race": int(v)}},
    "cost-ratio": lambda v: {"cost_delete": {"*": v}},
    "label-drift": lambda v: {"labels": "free", "label_drift": v},
}


@pytest.mark.slow
@pytest.mark.parametrize("sweep", OPTIONS)
@pytest.mark.parametrize("tolerance", [0.05, 0.2])
def test_each_point_is_the_plan_for_its_value(people, sweep, tolerance):
    how = {"tolerance": tolerance, "allow": "both", "reference": "original"}
    found = eq.frontier(people, sweep=sweep, values=VALUES[sweep], **how)
    assert [p.value for p in found.points] == VALUES[sweep]
    for point in found.points:
        plan = eq.plan(people, **how, **OPTIONS[sweep](point.value))
        assert point.cost == pytest.approx(plan.cost)
        assert point.bound == pytest.approx(plan.bound, rel=1e-3)
        assert point.rows == people.n + point.additions - point.deletions
        assert point.reached <= tolerance + 1e-12


def test_a_budget_leaves_what_the_plan_with_that_budget_leaves(people):
    how = {"tolerance": 0.01, "allow": "both", "reference": "original"}
    found = eq.frontier(people, sweep="budget", values=VALUES["budget"], **how)
    for point in found.points:
        plan = eq.plan(people, budget=point.value, **how)
        assert point.cost <= point.value
        assert point.reached == pytest.approx(plan.certificate.off_after, abs=1e-6)
    biases = [p.reached for p in found.points]
    assert biases == sorted(biases, reverse=True)


@pytest.mark.slow
@settings(max_examples=15, deadline=None)
@given(have=SMALL, tolerance=st.sampled_from([0.2, 0.5]))
def test_the_least_cost_at_each_label_drift_is_that_of_all_tables(have, tolerance):
    cells = {(g, y): int(have[i, j]) for i, g in enumerate(["m", "w"]) for j, y in enumerate("ny")}
    counts = eq.Counts.from_mapping(cells, sensitive=["sex"], label="hired")
    values = [0.0, 0.1, 0.25, 0.5]
    how = {"tolerance": tolerance, "allow": "both", "gap": 0.0}
    found = eq.frontier(counts, sweep="label-drift", values=values, **how)
    tables = all_tables(have, more=4)
    n, n_y = int(have.sum()), have.sum(axis=0)
    moved = abs(tables.sum(axis=1) * n - tables.sum(axis=(1, 2))[:, None] * n_y)
    for point, (part, whole) in zip(found.points, [(0, 1), (1, 10), (1, 4), (1, 2)], strict=True):
        near = (moved * whole <= part * tables.sum(axis=(1, 2))[:, None] * n_y).all(axis=1)
        best = costs(tables[within(tables, have, tolerance) & near], have).min(initial=10**9)
        assert point.cost <= best
        assert point.bound <= best + 1e-6
        assert point.drift <= point.value + 1e-9
    assert [p.cost for p in found.points] == sorted((p.cost for p in found.points), reverse=True)


def test_points_that_others_beat_in_both_respects_are_dominated():
    def point(cost, drift):
        return SweepPoint(drift, cost, 0.0, 0, 0, 10, 1, 0.0, drift)

    none = SweepPoint(9, np.inf, np.inf, 0, 0, 0, 0, np.nan, np.nan)
    points = [point(10, 0.0), point(10, 0.1), point(8, 0.2), point(9, 0.2), point(8, 0.2), none]
    marked = [p.dominated for p in _marked(points, "label-drift")]
    assert marked == [False, True, False, True, False, False]


@pytest.mark.slow
@pytest.mark.parametrize("sweep", VALUES)
def test_a_sweep_is_json_csv_a_page_and_a_chart(people, sweep, tmp_path):
    found = eq.frontier(people, sweep=sweep, values=VALUES[sweep], tolerance=0.1, allow="both")
    data = json.loads(found.to_json())
    assert (data["schema"], data["sweep"]) == ("equipoise.sweep/1", sweep)
    assert [p["value"] for p in data["points"]] == VALUES[sweep]
    lines = list(csv.DictReader(io.StringIO(found.to_csv())))
    assert [float(line["cost"]) for line in lines] == [p.cost for p in found.points]
    page = page_of(found).render(found)
    assert sweep in page
    assert "<svg" in page
    assert found.plot().to_png()[1:4] == b"PNG"


def test_values_without_a_plan_are_named(people):
    how = {"allow": "delete", "tolerance": 0.2}
    found = eq.frontier(people, sweep="coverage", values=[5, 1000], **how)
    assert [p.found for p in found.points] == [True, False]
    assert "There is no plan at 1000." in found.sentences
    assert json.loads(found.to_json())["points"][1]["cost"] is None


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"sweep": "rows"}, "'coverage'"),
        ({"sweep": "cost-ratio"}, "allow='both'"),
        ({"sweep": "coverage", "values": [1.5]}, "whole"),
        ({"sweep": "coverage", "values": []}, "at least one"),
        ({"sweep": "label-drift", "tolerances": [0.1]}, "one `tolerance`"),
    ],
)
def test_what_cannot_be_swept_is_refused_with_the_reason(people, options, words):
    with pytest.raises(InputError, match=words):
        eq.frontier(people, **options)


def test_the_command_sweeps(capsys):
    command = ["frontier", "compas", "--allow", "both", "--tolerance", "0.1", "--quiet"]
    assert run([*command, "--sweep", "cost-ratio", "--value", "0.5", "--value", "2", "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert [p["value"] for p in data["points"]] == [0.5, 2]
    assert run([*command, "--tolerance", "0.2", "--sweep", "coverage"]) == 2
    assert "give --tolerance once" in capsys.readouterr().err
