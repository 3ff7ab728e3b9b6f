"""Large lakes: tables that are worth a close comparison are found by their words."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linear_sum_assignment

import equipoise as eq
from equipoise.lake.lake import Lake
from equipoise.lake.offers import proposals
from equipoise.lake.tables._assignment import best_pairs

PEOPLE = "sex,hired,age\n" + "Female,no,31\nMale,yes,45\nMale,no,52\nFemale,no,28\n" * 5

USED = {
    "same.csv": "sex,hired,age\nFemale,yes,33\nMale,no,41\n",
    "words.csv": "gender,hired,years\nwoman,yes,33\nman,no,41\n",
    "letters.csv": "Gender,Hired\nF,Yes\nM,No\n",
    "silent.csv": "c1,hired\nfemale,yes\nmale,no\n",
}
OTHERS = {
    f"plants{i}.csv": f"plant,height {i}\nfir {i},{i}3\noak,{i}1\nplum,{i}2\n" for i in range(8)
}


@pytest.fixture
def lake(tmp_path, monkeypatch):
    monkeypatch.setattr(proposals, "SIMILAR", 1)
    (tmp_path / "lake").mkdir()
    for name, text in (USED | OTHERS).items():
        (tmp_path / "lake" / name).write_text(text * 1)
    (tmp_path / "people.csv").write_text(PEOPLE)
    return tmp_path


def found(folder, **options):
    plan = eq.plan(folder / "people.csv", sensitive_features=["sex"], label="hired", tolerance=0.2)
    return Lake(folder / "lake").find(plan, top=20, **options)


def names(candidates):
    return {candidate.name for candidate in candidates}


def test_what_is_certain_is_found_among_many_tables_and_the_others_are_counted(lake, monkeypatch):
    whole = found(lake)
    assert names(whole.survey.usable) == set(USED)
    assert whole.survey.passed_over == 0
    monkeypatch.setattr(proposals, "SURVEYED", 5)
    some = found(lake)
    assert names(some.survey.usable) == set(USED)
    assert some.survey.passed_over == len(OTHERS)
    assert (some.survey.looked_at, some.to_dict()["passed_over"]) == (12, 8)
    assert any(said.startswith("8 were not compared closely") for said in some.sentences)
    assert [r.offer.name for r in some.offers] == [r.offer.name for r in whole.offers]


def test_a_table_that_a_mapping_names_is_always_compared(lake, monkeypatch):
    (lake / "lake" / "coded.csv").write_text("q1,q2\n1,1\n2,0\n2,1\n")
    plan = eq.plan(lake / "people.csv", sensitive_features=["sex"], label="hired", tolerance=0.2)
    meant = {"q1": ("sex", {"1": "Male", "2": "Female"}), "q2": ("hired", {"0": "no", "1": "yes"})}
    answers = [
        {"table": "coded.csv", "column": column, "source": source}
        for source, (column, _) in meant.items()
    ]
    answers += [
        {"table": "coded.csv", "column": column, "value": value, "means": meaning}
        for column, values in meant.values()
        for value, meaning in values.items()
    ]
    mapping = Lake(lake / "lake").answer(plan, answers)
    monkeypatch.setattr(proposals, "SURVEYED", 5)
    assert "coded.csv" not in names(found(lake).survey.usable)
    assert "coded.csv" in names(found(lake, mapping=mapping).survey.usable)


def test_a_repair_says_what_was_passed_over(lake, monkeypatch):
    monkeypatch.setattr(proposals, "SURVEYED", 5)
    done = eq.repair(
        lake / "people.csv",
        Lake(lake / "lake"),
        None,
        sensitive_features=["sex"],
        label="hired",
        tolerance=0.2,
    )
    assert done.acquired.passed_over == len(OTHERS)
    assert any("8 tables of the lake were not compared closely" in s for s in done.sentences)


@given(
    shape=st.tuples(st.integers(1, 7), st.integers(1, 7)),
    numbers=st.lists(st.sampled_from([0.0, 0.25, 0.5, 0.7, 1.0]), min_size=49, max_size=49),
)
def test_pairs_of_columns_have_the_largest_sum(shape, numbers):
    similarity = np.array(numbers[: shape[0] * shape[1]]).reshape(shape)
    rows, columns = best_pairs(similarity)
    best = similarity[linear_sum_assignment(similarity, maximize=True)].sum()
    assert similarity[rows, columns].sum() == pytest.approx(best)
    assert len(rows) == min(shape) == len(set(rows.tolist())) == len(set(columns.tolist()))
    assert rows.tolist() == sorted(rows.tolist())
