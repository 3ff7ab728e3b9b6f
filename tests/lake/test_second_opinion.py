"""Valentine is asked only on request, and its doubt leaves a table open."""

from __future__ import annotations

import sys

import pytest

import equipoise as eq
from equipoise.errors import MissingDependency
from equipoise.lake.matching.columns.alignment import ColumnMatch
from equipoise.lake.matching.columns.target import wanted
from equipoise.lake.matching.second_opinion import second_opinion

pytest.importorskip("valentine", reason="pip install 'equipoise[valentine]'")

PEOPLE = {
    "sex": ["Female", "Male"] * 30,
    "race": ["White", "Black", "Other"] * 20,
    "hired": ["yes", "no", "no", "no"] * 15,
}


def lake_with(tmp_path, header, rows):
    folder = tmp_path / "lake"
    folder.mkdir(exist_ok=True)
    (folder / "staff.csv").write_text("\n".join([header, *rows]) + "\n", "utf-8")
    return eq.Lake(folder)


def plan():
    return eq.plan(PEOPLE, sensitive_features=["sex"], label="hired")


def test_an_opinion_that_agrees_changes_nothing(tmp_path):
    lake = lake_with(tmp_path, "sex,race,hired", ["Female,Asian,no", "Male,Asian,yes"])
    plain = lake.find(plan(), base=PEOPLE)
    asked = lake.find(plan(), base=PEOPLE, second_opinion=True)
    assert [offer.offer.name for offer in asked.offers] == ["staff.csv"]
    assert asked.to_dict()["offers"] == plain.to_dict()["offers"]


def test_a_column_valentine_clearly_prefers_is_named(tmp_path):
    lake = lake_with(tmp_path, "a,b,hired", ["x,Female,yes", "y,Male,no"] * 20)
    (profile,) = lake.profiles(lake.tables).values()
    want = wanted(plan().counts)
    ours = ColumnMatch("sex", "a", 1.0)
    assert second_opinion(want, profile, [ours]) == {"sex": ("b", 1.0)}
    assert second_opinion(want, profile, [ColumnMatch("sex", "b", 1.0)]) == {}


def test_a_table_it_doubts_is_left_open(tmp_path, monkeypatch):
    lake = lake_with(tmp_path, "sex,race,hired", ["Female,Asian,yes", "Male,Asian,no"] * 20)
    monkeypatch.setattr(
        "equipoise.lake.matching.second_opinion.second_opinion", lambda *_: {"sex": ("race", 0.8)}
    )
    found = lake.find(plan(), base=PEOPLE, second_opinion=True)
    assert not found.offers
    (table,) = found.survey.open
    assert table.alignment.doubts == {"sex": "Valentine takes race for sex (0.80)"}


def test_without_the_package_it_says_how_to_get_it(tmp_path, monkeypatch):
    lake = lake_with(tmp_path, "sex,race,hired", ["Female,White,yes", "Male,Black,no"] * 20)
    monkeypatch.setitem(sys.modules, "valentine", None)
    with pytest.raises(MissingDependency, match=r"equipoise\[valentine\]"):
        lake.find(plan(), base=PEOPLE, second_opinion=True)
