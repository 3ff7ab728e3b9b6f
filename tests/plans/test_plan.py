"""A plan as a thing: its JSON, its cells, what it may be applied to, and missing values."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import equipoise as eq
from equipoise.errors import CountsError, InputError
from equipoise.values import MISSING
from strategies import repairable, rows_of

CELLS = {("m", "h"): 160, ("m", "n"): 290, ("w", "h"): 40, ("w", "n"): 110}


@pytest.fixture
def counts():
    return eq.Counts.from_mapping(CELLS, sensitive=["sex"], label="o")


@pytest.fixture
def plan(counts):
    return eq.plan(counts, tolerance=0.05, allow="both", reference="original")


# --- JSON -----------------------------------------------------------------------------------------


@pytest.mark.slow
@settings(max_examples=20)
@given(
    repairable(shape=(2, 2), labels=3, largest=40),
    st.sampled_from(
        [
            {},
            {"costs": {"a=a0": 2.5, "delete *": 0.1}, "available": {"*": 500}},
            {"at_least": {"a=a0": 3}, "budget": 20, "priority": ["y=y0"]},
            {"labels": {"y0": 0.2, "y1": 0.3, "y2": 0.5}},
            {"target": "keep rates of: a", "constrain": "all"},
            {"target": {"a=a0, b=b0": {"y0": 0.9}}, "min_group": 1},
        ]
    ),
    st.sampled_from([0.0, 0.1]),
)
def test_json_reads_back_the_same(counts, options, tolerance):
    if "a0" not in counts.axis("a").values or ("a0", "b0") not in {c[:2] for c in rows_of(counts)}:
        return
    made = eq.plan(counts, tolerance=tolerance, reference="original", allow="both", **options)
    text = made.to_json()
    again = eq.Plan.from_json(text)
    assert again.to_json() == text
    assert again.cells == made.cells
    assert again.certificate == made.certificate
    assert again.counts == counts
    assert again.after() == made.after()


def test_json_has_the_cells_the_totals_and_the_certificate(plan):
    data = json.loads(plan.to_json(indent=2))
    top = {"cells", "additions", "deletions", "cost", "n_before", "n_after", "certificate"}
    assert top | {"explanation"} <= set(data)
    proof = {"tolerance", "reached", "max_abs_ub_before", "max_abs_ub_after", "worst_after"}
    assert proof | {"label_drift"} <= set(data["certificate"])
    assert set(data["certificate"]["worst_after"]) >= {"group", "label"}
    cell = data["cells"][0]
    assert set(cell) == {"group", "label", "before", "add", "delete", "after"}
    assert cell["group"].keys() == {"sex"}
    assert sum(c["add"] for c in data["cells"]) == data["additions"] == plan.additions
    assert sum(c["delete"] for c in data["cells"]) == data["deletions"] == plan.deletions
    assert all(c["after"] == c["before"] + c["add"] - c["delete"] for c in data["cells"])
    assert sum(c["after"] for c in data["cells"]) == data["n_after"]
    assert data["certificate"]["reached"] is True


def test_a_target_file_is_in_the_plan(counts, tmp_path):
    file = tmp_path / "targets.toml"
    file.write_text('keep-rates-of = "sex"\n')
    made = eq.plan(counts, target=file)
    file.unlink()
    again = eq.Plan.from_json(made.to_json())
    assert "keep-rates-of" in json.dumps(again.to_dict()["request"])


def swapped(data):
    one, other = [c for c in data["cells"] if c["add"] or c["delete"]][:2]
    key, other_key = ("add" if c["add"] else "delete" for c in (one, other))
    one[key] += 1
    other[other_key] += 1
    data["additions" if key == "add" else "deletions"] += 1
    data["additions" if other_key == "add" else "deletions"] += 1


def twice(data):
    moved = next(c for c in data["cells"] if c["add"])
    data["cells"].append(dict(moved))
    data["additions"] += moved["add"]


def changed(*path, to):
    def change(data):
        for key in path[:-1]:
            data = data[key]
        data[path[-1]] = to

    return change


NOTICED = {
    "total": changed("additions", to=1),
    "schema": changed("schema", to="equipoise.plan/9"),
    "fingerprint": changed("fingerprint", to="0" * 64),
    "counts": changed("counts", "rows", 0, to=7),
    "cell without a group": changed("cells", 0, "group", to={}),
    "a value that is not there": changed("cells", 0, "group", to={"sex": "x"}),
    "half a row": changed("cells", 0, "add", to=0.5),
    "fewer than none": changed("cells", 0, "add", to=-3),
    "cells that are none": changed("cells", to=7),
    "an unknown request": changed("request", "tolerances", to=0.1),
    "no certificate": changed("certificate", to=None),
    "rows moved between cells": swapped,
    "a cell twice": twice,
    "a proof that says otherwise": changed("certificate", "max_abs_ub_after", to=0.5),
    "a promise that is not kept": changed("certificate", "reached", to=False),
    "another cost": changed("cost", to=1.0),
    "rows before": changed("cells", 0, "before", to=999),
    "rows after": changed("cells", 0, "after", to=999),
    "size after": changed("n_after", to=999),
}


@pytest.mark.parametrize("name", NOTICED)
def test_a_plan_that_was_tampered_with_is_refused(plan, name):
    data = json.loads(plan.to_json())
    NOTICED[name](data)
    with pytest.raises(InputError):
        eq.Plan.from_dict(data).after()


@pytest.mark.parametrize("text", ["", "[]", "{}", "null", "{", '"plan"', "7"])
def test_what_is_no_plan_is_refused(text):
    with pytest.raises(InputError):
        eq.Plan.from_json(text)


def test_a_plan_that_is_not_there(tmp_path):
    with pytest.raises(InputError, match="there is no plan"):
        eq.Plan.read(tmp_path / "none.json")


# --- applying -------------------------------------------------------------------------------------


def test_after_is_the_counts_and_the_moves(plan, counts):
    assert plan.after() == plan.after(counts)
    after = rows_of(plan.after())
    for cell in plan.cells:
        assert after[(*cell.group.values(), cell.label)] == cell.after
    assert rows_of(plan.counts) == CELLS  # the counts it was made for stay


def test_other_counts_are_refused_unless_forced(plan):
    other = eq.Counts.from_mapping({**CELLS, ("m", "h"): 161}, sensitive=["sex"], label="o")
    with pytest.raises(CountsError, match="`force=True`"):
        plan.after(other)
    assert plan.after(other, force=True).n == other.n + plan.additions - plan.deletions


def test_rows_that_are_not_there_cannot_be_deleted(counts):
    made = eq.plan(counts, tolerance=0.05, allow="delete", reference="original")
    assert made.deletions
    few = eq.Counts.from_mapping(dict.fromkeys(CELLS, 1), sensitive=["sex"], label="o")
    with pytest.raises(CountsError):
        made.after(few, force=True)


def test_moves_come_largest_first(plan):
    sizes = [c.add + c.delete for c in plan.moves]
    assert sizes == sorted(sizes, reverse=True)
    assert all(sizes)
    assert plan.to_csv().splitlines()[0] == "sex,o,before,add,delete,after"
    assert len(plan.to_csv().splitlines()) == 1 + len(plan.moves)


def test_the_sentences_say_the_numbers(plan):
    text = plan.explain()
    assert f"dd {plan.additions:,} rows" in text
    assert f"{plan.certificate.n_before:,} to {plan.certificate.n_after:,} rows" in text
    assert "No plan for this request costs less." in text


# --- missing values -------------------------------------------------------------------------------


@pytest.fixture
def gaps():
    cells = {**CELLS, (MISSING, "h"): 10, (MISSING, "n"): 1}
    return eq.Counts.from_mapping(cells, sensitive=["sex"], label="o")


@pytest.mark.parametrize("tolerance", [0.0, 0.05])
def test_rows_without_a_value_stay_aside(gaps, counts, tolerance):
    made = eq.plan(gaps, tolerance=tolerance, reference="original")
    without = eq.plan(counts, tolerance=tolerance, reference="original")
    assert [c for c in made.moves if MISSING in c.group.values()] == []
    assert made.moves == without.moves
    assert made.certificate.n_before == gaps.n
    assert made.certificate.n_after == made.after().n
    assert any("11 rows have a missing value" in s for s in made.explanation)
    assert eq.Plan.from_json(made.to_json()).cells == made.cells


def test_missing_values_can_be_planned_for(gaps):
    made = eq.plan(gaps, tolerance=0.05, reference="original", plan_missing=True)
    assert made.add.of("sex=<missing>") > 0
    after = rows_of(made.after())
    f = (160 + 40 + 10) / gaps.n
    got = after[MISSING, "h"] / (after[MISSING, "h"] + after[MISSING, "n"])
    assert abs(got / f - 1) <= 0.05


def test_rows_aside_are_not_planned_for(gaps):
    with pytest.raises(InputError, match="`plan_missing=True`"):
        eq.plan(gaps, at_least={"sex=<missing>": 5})


@pytest.mark.slow
def test_a_missing_label_is_no_label_to_plan_for():
    rows = {"sex": ["m"] * 6 + ["w"] * 6, "o": ["h", "n", "h", "n", "h", None] * 2}
    options = {"sensitive_features": ["sex"], "label": "o", "missing_label": "group"}
    import pandas as pd

    made = eq.plan(pd.DataFrame(rows), **options)
    assert made.add.of("o=<missing>") == 0
    assert eq.Plan.from_json(made.to_json()).cells == made.cells
    assert eq.plan(pd.DataFrame(rows), tolerance=0.1, reference="original", **options).reached


def test_weighted_counts_are_refused():
    import pandas as pd

    rows = pd.DataFrame({"sex": ["m", "w", "w"], "o": ["h", "n", "h"], "w": [1.0, 2.0, 0.5]})
    with pytest.raises(InputError, match="weighted"):
        eq.plan(rows, sensitive_features=["sex"], label="o", weight="w")


def test_a_label_without_rows_is_refused():
    """Its only rows lack the sensitive value, so its frequency is 0 among those planned for."""
    cells = {**CELLS, (MISSING, "other"): 4}
    counts = eq.Counts.from_mapping(cells, sensitive=["sex"], label="o")
    with pytest.raises(InputError, match="frequency is 0"):
        eq.plan(counts)


def test_one_label_is_no_bias():
    counts = eq.Counts.from_mapping({("m", "h"): 3, ("w", "h"): 4}, sensitive=["sex"], label="o")
    with pytest.raises(InputError, match="only one value"):
        eq.plan(counts)


# --- requests -------------------------------------------------------------------------------------

BAD = {
    "tolerance below zero": {"tolerance": -0.1},
    "tolerance nan": {"tolerance": float("nan")},
    "tolerance infinite": {"tolerance": float("inf")},
    "tolerance true": {"tolerance": True},
    "negative cost": {"costs": {"sex=w": -1}},
    "infinite cost": {"costs": {"delete sex=w": float("inf")}},
    "half a row": {"available": {"sex=w": 2.5}},
    "negative rows": {"at_least": {"sex=w": -1}},
    "unknown value": {"available": {"sex=x": 3}},
    "unknown attribute": {"at_least": {"gender=w": 3}},
    "unknown word": {"allow": "addd"},
    "unknown rounding": {"rounding": "ceil"},
    "sizes that cross": {"min_rows": 10, "max_rows": 9},
    "labels that do not add up": {"labels": {"h": 0.5, "n": 0.6}},
    "labels that lack one": {"labels": {"h": 0.5}},
    "labels that are not there": {"labels": {"h": 0.5, "n": 0.4, "q": 0.1}},
    "a share of none": {"labels": {"h": 0.0, "n": 1.0}},
    "extra with tolerance": {"extra": {"sex=w": 3}, "tolerance": 0.1},
    "no time": {"time_limit": 0},
    "negative drift": {"label_drift": -1},
    "constrain nothing there": {"constrain": "sex=x"},
    "deletable nothing there": {"deletable": "sex=x", "allow": "both"},
    "min_group of none": {"min_group": 0},
}


@pytest.mark.parametrize("name", BAD)
def test_a_request_that_cannot_be_is_one_sentence(counts, name):
    with pytest.raises(InputError) as caught:
        eq.plan(counts, **BAD[name])
    assert str(caught.value).endswith((".", "?"))


def test_a_heuristic_is_not_given_as_proved():
    """Labels free with deletions: the explanation says that nothing is proved, the gap says 0."""
    made = eq.plan(
        "compas", sensitive_features=["sex", "race"], label="risk", labels="free", allow="both"
    )
    assert any("does not prove" in s for s in made.explanation)
    assert made.bound < made.cost


def test_a_share_for_missing_labels_is_written_and_read_again():
    rows = {"sex": ["m"] * 85 + ["w"] * 78, "hired": ["y"] * 30 + ["n"] * 50 + [None] * 5}
    rows["hired"] += ["y"] * 10 + ["n"] * 60 + [None] * 8
    how = {"sensitive_features": ["sex"], "label": "hired", "missing_label": "group"}
    made = eq.plan(rows, **how, labels={"y": 0.3, "n": 0.6, MISSING: 0.1}, plan_missing=True)
    again = eq.Plan.from_json(made.to_json())
    assert again.cells == made.cells
    assert again.request.labels == made.request.labels
