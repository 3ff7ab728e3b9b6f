"""What is called certain is right, on pairs of schemas whose matches are known."""

from __future__ import annotations

import functools
from collections import Counter
from dataclasses import replace

import pytest

from equipoise.engines.profiling import Profile
from equipoise.lake.matching.columns.alignment import Alignment, align
from equipoise.lake.matching.columns.target import Wanted
from equipoise.lake.matching.columns.wording import Level, compare_headers
from equipoise.lake.matching.mapping import read_mapping, write_mapping
from schema_pairs import HALVES, Pair, pairs

MOST_VALUES = 12
LEAST_PRECISION = 0.98
LEAST_RECALL = {
    ("development", "other"): 0.70,
    ("held_out", "other"): 0.22,
    ("development", "required"): 0.85,
    ("held_out", "required"): 0.20,
}


@functools.cache
def both_ways(half: str) -> list[tuple[Pair, Profile, Profile]]:
    """Every pair, either table being the base, and what is known of both tables."""
    turned = [way for pair in pairs(half) for way in (pair, pair.turned())]
    return [(pair, pair.base.profile(), pair.table.profile()) for pair in turned]


def wanted(base: Profile, required=()) -> Wanted:
    known = {column.name: column.values for column in base.columns}
    return Wanted(base.columns, {name: known[name] for name in required}, {})


def certain(found: Alignment | None, names) -> dict[str, str]:
    """The columns among some that are matched without a doubt."""
    if found is None:
        return {}
    return {
        n: found.columns[n].source for n in names if n in found.columns and n not in found.doubts
    }


def counted(half: str, kind: str) -> Counter[str]:
    """How many matches there are, how many are certain, and how many of these are right."""
    seen: Counter[str] = Counter()
    for pair, base, table in both_ways(half):
        names = [pair.base.header(m) for m in pair.required] if kind == "required" else []
        found = align(wanted(base, names), table)
        true = pair.matches()
        taken = certain(found, names or list(pair.base.meanings))
        seen["true"] += len(names or true)
        seen["certain"] += len(taken)
        seen["right"] += sum(true.get(name) == source for name, source in taken.items())
    return seen


@pytest.mark.parametrize("half", HALVES)
def test_the_pairs_are_many_and_say_what_they_mean(half):
    listed = pairs(half)
    assert len(listed) >= 6
    assert sum(len(pair.matches()) for pair in listed) >= 75
    assert sum(len(pair.traps) for pair in listed) >= 40
    for pair in listed:
        assert all(pair.matches().get(ours) != theirs for ours, theirs in pair.traps)
        assert all(
            ours in pair.base.rows and theirs in pair.table.rows for ours, theirs in pair.traps
        )


@pytest.mark.slow
@pytest.mark.parametrize("half", HALVES)
def test_certain_matches_of_other_columns_are_right(half):
    seen = counted(half, "other")
    assert seen["right"] >= LEAST_PRECISION * seen["certain"] > 0
    assert seen["right"] >= LEAST_RECALL[half, "other"] * seen["true"]


@pytest.mark.parametrize("half", HALVES)
def test_no_certain_match_of_a_required_column_is_wrong(half):
    seen = counted(half, "required")
    assert seen["right"] == seen["certain"]
    assert seen["right"] >= LEAST_RECALL[half, "required"] * seen["true"]


@pytest.mark.slow
@pytest.mark.parametrize("half", HALVES)
def test_a_required_column_whose_match_was_left_out_is_never_certain(half):
    for pair, base, table in both_ways(half):
        true = pair.matches()
        for meaning in pair.required:
            name = pair.base.header(meaning)
            less = replace(table, columns=tuple(c for c in table.columns if c.name != true[name]))
            assert not certain(align(wanted(base, [name]), less), [name]), (pair.name, name)


@pytest.mark.slow
@pytest.mark.parametrize("half", HALVES)
def test_a_column_whose_match_was_left_out_gets_no_other_for_certain(half):
    for pair, base, table in both_ways(half):
        for name, source in list(pair.matches().items())[::4]:
            less = replace(table, columns=tuple(c for c in table.columns if c.name != source))
            assert not certain(align(wanted(base), less), [name]), (pair.name, name)


@pytest.mark.slow
@pytest.mark.parametrize("half", HALVES)
def test_columns_under_bare_codes_are_certain_only_if_right(half):
    for pair, base, table in both_ways(half):
        codes = {column.name: f"c{k}" for k, column in enumerate(table.columns)}
        bare = replace(table, columns=tuple(replace(c, name=codes[c.name]) for c in table.columns))
        true = {name: codes[source] for name, source in pair.matches().items()}
        for names in ([], [pair.base.header(meaning) for meaning in pair.required]):
            taken = certain(align(wanted(base, names), bare), names or list(pair.base.meanings))
            assert all(true.get(name) == source for name, source in taken.items()), pair.name


@pytest.mark.parametrize(
    ("base", "column"),
    [
        ("income", "household_income"),
        ("household_income", "income"),
        ("admission_date", "discharge_date"),
        ("start", "end"),
        ("patient_id", "id"),
        ("race", "race_other"),
        ("alive", "dead"),
        ("glucose", "glucose_max"),
        ("monthly_income", "annual_income"),
        ("bill_1", "bill_2"),
        ("gender_source_value", "gender_concept_id"),
        ("transfer_to", "transfer_from"),
        ("default", "no_default"),
    ],
)
def test_a_word_too_many_is_a_doubt(base, column):
    assert compare_headers(base, column).level == Level.OTHER


def test_the_same_header_over_other_values_is_not_certain():
    pair = next(p for p in pairs("development") if "status" in p.base.rows)
    found = align(wanted(pair.base.profile()), pair.table.profile())
    assert "status" not in found.columns
    assert found.proposed["status"].doubt


def test_what_is_not_certain_is_asked_in_the_mapping_file(tmp_path):
    pair = pairs("development")[0]
    names = [pair.base.header("sex")]
    want = wanted(pair.base.profile(), names)
    found = align(want, pair.table.profile())
    file = tmp_path / "mapping.toml"
    text = write_mapping([("records.csv", found)], want)
    file.write_text(text, "utf-8")
    assert "Glucose" in found.proposed
    assert "Glucose" not in read_mapping(file)["records.csv"].columns
    file.write_text(text.replace("#? Glucose", "Glucose"), "utf-8")
    assert read_mapping(file)["records.csv"].columns["Glucose"] == found.proposed["Glucose"].source
