"""Which column is which, and when that is certain."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from equipoise.counts import Counts
from equipoise.engines.profiling import Profiler
from equipoise.lake.matching.columns.alignment import align, nearest_columns
from equipoise.lake.matching.columns.assignment import assigned, improved, one_to_one
from equipoise.lake.matching.columns.headers import header_similarity, ordinal, other_referent
from equipoise.lake.matching.columns.likeness import ColumnContents, Likeness
from equipoise.lake.matching.columns.relations import Comparison, relations
from equipoise.lake.matching.columns.target import wanted
from equipoise.lake.tables.headers import is_opaque

ROWS = 300
RANDOM = np.random.default_rng(7)


def drawn(rng: np.random.Generator, rows: int = ROWS) -> dict[str, list[str]]:
    """People, with three bills each of which is like the one before, and what was paid of it."""
    sex = rng.choice(["Male", "Female"], rows, p=[0.6, 0.4])
    race = rng.choice(["White", "Black", "Other"], rows, p=[0.6, 0.3, 0.1])
    age = rng.integers(18, 80, rows)
    bills = [rng.lognormal(7, 1, rows)]
    for _ in range(2):
        bills.append(bills[-1] * rng.uniform(0.8, 1.1, rows))
    paid = [np.where(rng.random(rows) < 0.3, b, b * rng.uniform(0.01, 0.2, rows)) for b in bills]
    late = np.where(rng.random(rows) < 0.3, "late", "on time")
    columns = {"sex": sex, "race": race, "age": age, "outcome": late}
    columns |= {f"bill{i}": np.round(b) for i, b in enumerate(bills, 1)}
    columns |= {f"paid{i}": np.round(p) for i, p in enumerate(paid, 1)}
    return {name: [str(v) for v in values] for name, values in columns.items()}


def profiled(columns: dict[str, list[str]]):
    profiler = Profiler(list(columns), ["VARCHAR"] * len(columns))
    profiler.add([pa.array(values, pa.string()) for values in columns.values()])
    return profiler.profile()


BASE = drawn(np.random.default_rng(1))


def want(sensitive=("sex", "race"), label="outcome", *, alone=False):
    import equipoise as eq

    counts: Counts = eq.count(BASE, sensitive_features=list(sensitive), label=label)
    return wanted(counts, None if alone else profiled(BASE))


WANT = want()


def other(**renamed: str) -> dict[str, list[str]]:
    """Other people under some other headers."""
    rows = drawn(np.random.default_rng(2))
    return {renamed.get(name, name): values for name, values in rows.items()}


def sources(found) -> dict[str, str]:
    return {name: match.source for name, match in found.columns.items()}


def test_a_table_with_the_same_headers_is_certain():
    found = align(WANT, profiled(other()))
    assert found.certain
    assert sources(found) == {name: name for name in BASE}
    assert found.confidence(WANT.required) > 0.9


def test_columns_without_a_header_are_told_apart_by_how_they_relate():
    names = {name: f"c{i}" for i, name in enumerate(sorted(BASE))}
    found = align(WANT, profiled(other(**names)))
    told = {name: match.source for name, match in (found.columns | found.proposed).items()}
    assert told == names
    assert {"bill1", "paid2"} <= found.proposed.keys()  # alike in all but their relations


@pytest.mark.slow
@settings(max_examples=15, deadline=None)
@given(st.permutations(list(BASE)))
def test_the_order_of_columns_decides_nothing(order):
    rows = other(sex="gender", bill2="c3", paid2="c9")
    names = {"sex": "gender", "bill2": "c3", "paid2": "c9"}
    shuffled = {names.get(name, name): rows[names.get(name, name)] for name in order}
    found, again = align(WANT, profiled(rows)), align(WANT, profiled(shuffled))
    assert sources(found) == sources(again)
    assert found.certain == again.certain


def test_a_column_that_was_left_out_gets_no_other_in_its_place():
    rows = {name: values for name, values in other().items() if name != "age"}
    rows["remarks"] = [f"note {i % 40}" for i in range(ROWS)]
    found = align(WANT, profiled(rows))
    assert "age" not in found.columns
    assert "remarks" not in sources(found).values()


def test_a_table_that_lacks_a_required_column_is_of_no_use():
    rows = {name: values for name, values in other().items() if name != "outcome"}
    assert align(WANT, profiled(rows)) is None


def test_a_table_about_something_else_is_of_no_use():
    rivers = {"river": [f"r{i}" for i in range(50)], "length": [str(i * 7) for i in range(50)]}
    assert align(WANT, profiled(rivers)) is None
    assert align(WANT, profiled({"a": [], "b": []})) is None


@pytest.mark.parametrize(
    "header",
    [
        "spouse_sex",
        "partnerGender",
        "mother sex",
        "Manager_Gender",
        "previous_sex",
        "household_sex",
        "predicted_gender",
        "victim.sex",
        "interested_in_sex",
        "not_sex",
        "opposite_sex",
    ],
)
def test_someone_elses_column_instead_of_the_wanted_one_is_never_certain(header):
    found = align(WANT, profiled(other(sex=header)))
    assert found is None or "sex" in found.doubts


@pytest.mark.parametrize("header", ["spouse_sex", "parent_gender", "previous_sex"])
def test_someone_elses_column_beside_the_wanted_one_is_not_taken(header):
    rows = other()
    found = align(WANT, profiled({header: rows["sex"][::-1], **rows}))
    assert found.certain
    assert sources(found)["sex"] == "sex"


@pytest.mark.parametrize("header", ["parent_race", "previous_race", "Spouse Ethnicity"])
def test_another_race_than_the_persons_is_never_certain(header):
    found = align(WANT, profiled(other(race=header)))
    assert found is None or "race" in found.doubts


def test_a_header_that_says_something_else_is_asked_about_though_the_values_fit():
    found = align(WANT, profiled(other(sex="connector")))
    assert "sex" in found.doubts
    assert "connector" in found.doubts["sex"]


def test_values_that_tell_their_meaning_are_enough_where_the_header_says_nothing():
    found = align(WANT, profiled(other(sex="c7")))
    assert sources(found)["sex"] == "c7"
    assert found.certain


def test_two_columns_with_the_values_of_one_are_asked_about():
    rows = other(sex="c7")
    found = align(WANT, profiled({"c8": rows["c7"][::-1], **rows}))
    assert "sex" in found.doubts


def test_codes_are_matched_but_never_certain():
    codes = {"Male": "1", "Female": "2"}
    rows = other()
    rows["sex"] = [codes[value] for value in rows["sex"]]
    swapped = dict(rows, sex=["3" if v == "x" else str(3 - int(v)) for v in rows["sex"]])
    for table in (rows, swapped):
        found = align(WANT, profiled(table))
        assert sources(found)["sex"] == "sex"
        assert "sex" in found.doubts
        assert found.values["sex"].values == {}


def test_the_same_header_with_other_values_is_never_certain():
    rows = other()
    rows["outcome"] = RANDOM.choice(["North", "South"], ROWS).tolist()
    found = align(WANT, profiled(rows))
    assert found is None or "outcome" in found.doubts


def test_a_required_column_of_very_many_values_is_asked_about():
    columns = {name: [*values, *values] for name, values in other().items()}
    columns["race"] = [f"tribe {i}" for i in range(2 * ROWS)]
    found = align(WANT, profiled(columns))
    assert found.doubts["race"] == "race has more than 500 values, too many for groups"


def test_a_plan_alone_is_enough_to_match_the_required_columns():
    alone = want(alone=True)
    found = align(alone, profiled(other(sex="gender")))
    assert found.certain
    assert sources(found) == {"sex": "gender", "race": "race", "outcome": "outcome"}


def test_the_nearest_columns_are_named_with_a_score():
    near = nearest_columns(WANT, profiled(other(sex="gndr")))
    assert {name: column for name, (_, column) in near.items()} == {
        "sex": "gndr",
        "race": "race",
        "outcome": "outcome",
    }
    assert all(0 <= score <= 1 for score, _ in near.values())
    assert nearest_columns(WANT, profiled({})) == {}


# --- headers ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ("sex", "gender"),
        ("sex", "SEX"),
        ("race", "race_category"),
        ("sex", "customer_sex"),
        ("default", "is_default"),
        ("hours-per-week", "HoursPerWeek"),
    ],
)
def test_headers_of_one_meaning(a, b):
    assert header_similarity(a, b) == header_similarity(b, a) >= 0.9


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ("sex", "spouse_sex"),
        ("income", "previous_income"),
        ("income", "household_income"),
        ("bill_1", "bill_2"),
        ("customer_age", "employee_age"),
        ("sex", "c7"),
    ],
)
def test_headers_that_are_not_of_one_meaning(a, b):
    assert header_similarity(a, b) < 0.9


@given(st.text(max_size=12), st.text(max_size=12))
def test_header_similarity_is_a_share_and_the_same_both_ways(a, b):
    assert 0 <= header_similarity(a, b) == header_similarity(b, a) <= 1
    assert header_similarity(a, a) == 1


def test_family_status_is_no_one_elses_status():
    assert other_referent("marital status", "family status") is None
    assert other_referent("income", "family income") == "family"


def test_months_and_numbers_order_headers():
    assert ordinal("paid_sep") == ("paid", 9)
    assert ordinal("bill amt 12") == ("bill amt", 12)
    assert ordinal("2019") is ordinal("a1_b2") is None
    assert is_opaque("X12")


# --- parts --------------------------------------------------------------------------------------


def test_the_similarity_of_values_knows_numbers_and_texts():
    ours, theirs = (ColumnContents(profiled(rows).columns) for rows in (BASE, other()))
    found, places = Likeness(ours, theirs).similarity, {name: i for i, name in enumerate(BASE)}
    age, race, bill = (places[name] for name in ("age", "race", "bill1"))
    assert found[age, age] > 0.8
    assert found[age, bill] < 0.3
    assert found[race, race] > 0.9
    assert found[race, age] < 0.3


def test_a_relation_has_a_sign_and_a_number_of_rows():
    numbers = [str(n) for n in range(50)]
    found = relations(ColumnContents(profiled({"a": numbers, "b": numbers[::-1]}).columns))
    assert found.rows[0] == 50
    assert found.measured[0, 0, 1] < 0


def test_evidence_for_a_pair_is_evidence_against_others():
    likely = one_to_one(np.array([[9.0, 0.0], [0.0, 9.0]]))
    assert (likely > 0.9).tolist() == [[True, False], [False, True]]


def test_relations_support_the_true_pairs():
    ours, theirs = (relations(ColumnContents(profiled(rows).columns)) for rows in (BASE, other()))
    truth = np.eye(len(BASE))
    support = Comparison(ours, theirs).support(truth)
    bills = [list(BASE).index(f"{kind}{i}") for kind in ("bill", "paid") for i in (1, 2, 3)]
    among = support[np.ix_(bills, bills)]
    assert (among.argmax(axis=1) == np.arange(len(bills))).all()


def test_support_is_the_sum_over_pairs_of_what_they_say_of_each_other():
    ours, theirs = (relations(ColumnContents(profiled(rows).columns)) for rows in (BASE, other()))
    comparison, places = Comparison(ours, theirs), np.arange(len(BASE))
    together, _ = comparison.between(places, places)
    found = comparison.support(np.eye(len(BASE)))
    assert np.diag(found) == pytest.approx(together.sum(axis=1))


@pytest.mark.parametrize("order", [[1, 0, 2, 3, 4, 5], [0, 1, 2, 5, 4, 3], [0, 3, 2, 1, 4, 5]])
def test_columns_of_a_series_that_were_swapped_are_put_right(order):
    series = [f"{kind}{i}" for kind in ("bill", "paid") for i in (1, 2, 3)]
    ours, theirs = (
        relations(ColumnContents(profiled({name: rows[name] for name in series}).columns))
        for rows in (BASE, other())
    )
    found = improved(np.zeros((6, 6)), Comparison(ours, theirs), np.eye(6)[order])
    assert found.tolist() == np.eye(6).tolist()


@given(st.lists(st.lists(st.floats(-9, 9), min_size=3, max_size=3), min_size=1, max_size=5))
def test_chances_of_pairs_sum_to_one_at_most(logs):
    likely = one_to_one(np.array(logs))
    assert (likely >= 0).all()
    assert (likely.sum(axis=0) <= 1 + 1e-9).all()
    assert len(assigned(likely, 0.2)) <= min(likely.shape)


def test_a_similarity_does_not_depend_on_the_order_of_sets():
    """Texts hash differently in each process; shares that are no binary fractions show it."""
    script = (
        "from equipoise.lake.matching.columns.likeness import Likeness\n"
        "class Side:\n"
        "    columns = [type('Column', (), {'values': {}})]\n"
        "    def __init__(self, step): "
        "self.shares = [{f'value {i}': (i * step % 97 + 1) / 4803 for i in range(97)}]\n"
        "print(repr(Likeness(Side(1), Side(7))._overlap(0, 0)))\n"
    )
    found = {
        subprocess.run(
            [sys.executable, "-c", script],
            env={**os.environ, "PYTHONHASHSEED": str(seed)},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in range(4)
    }
    assert len(found) == 1
