"""Missing values: what each way to treat them makes of UB, against numbers found another way."""

from __future__ import annotations

import datetime
import functools
import json
import re
import subprocess
import sys
from collections import Counter
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

import equipoise
from equipoise.counts import CountRequest, Counts
from equipoise.errors import ColumnNotFound, InputError, MissingDependency, UnknownName
from equipoise.evaluation.intervals import Mean
from equipoise.evaluation.missing import comparison, imputation
from equipoise.evaluation.missing.imputation import METHODS
from equipoise.evaluation.missing.mechanisms import loss_of
from equipoise.evaluation.missing.rows import ABSENT, read_rows
from equipoise.evaluation.missing.simulation import simulate_missing
from equipoise.lattice import Group
from equipoise.measures.request import MeasureRequest
from equipoise.measures.table import bias_table
from equipoise.values import MISSING

pytest.importorskip("sklearn")

# Here the label may be missing as any other value; tests/evaluation/test_missing_labels.py is about
# what becomes of it otherwise.
compare_missing = functools.partial(comparison.compare_missing, treat_label=True)

FILLING = [name for name, method in METHODS.items() if method.fill]
REQUEST = CountRequest(sensitive=("sex",), label="y")
CELLS = {("w", "1"): 100, ("w", "0"): 300, ("m", "1"): 360, ("m", "0"): 240}


@pytest.fixture(autouse=True, scope="module")
def _small_forests():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(imputation, "TREES", 8)
        yield


def people(cells=CELLS, **more):
    rows = [cell for cell, n in cells.items() for _ in range(n)]
    table = {"sex": [sex for sex, _ in rows], "y": [y for _, y in rows]}
    return pa.table(table | {name: make(len(rows)) for name, make in more.items()})


def noise(n):
    return np.random.default_rng(5).normal(size=n)


def holes(table, seed=0, **shares):
    """The same table with values taken out here and there."""
    chance = np.random.default_rng(seed)
    columns = {}
    for name in table.column_names:
        lost = chance.random(len(table)) < shares.get(name, 0)
        columns[name] = pa.array(
            [None if gone else v for v, gone in zip(table[name].to_pylist(), lost, strict=True)]
        )
    return pa.table(columns)


def ub_of(cells):
    """UB of both sexes and labels, from the definition; cells may be of any size."""
    n = sum(cells.values())
    found = {}
    for sex, y in cells:
        size = sum(rows for (s, _), rows in cells.items() if s == sex)
        rate = sum(rows for (_, label), rows in cells.items() if label == y) / n
        found[sex, y] = 1 - cells[sex, y] / size / rate
    return found


def by_name(result, name):
    return {(entry.group["sex"], entry.label): entry.ub[name] for entry in result.groups}


# ------------------------------------------------------------------- a table as it is


TWO = CountRequest(sensitive=("sex", "town"), label="y")


@pytest.fixture(scope="module")
def incomplete():
    chance = np.random.default_rng(1)
    n = 800
    sex, town = chance.choice(["w", "m"], n), chance.choice(["a", "b", "c"], n, p=[0.5, 0.3, 0.2])
    y = np.where(chance.random(n) < 0.3 + 0.3 * (sex == "m") - 0.1 * (town == "c"), "1", "0")
    age = chance.normal(40, 10, n) + 10 * (sex == "m")
    table = pa.table({"sex": sex, "town": town, "y": y, "age": age})
    return holes(table, sex=0.15, town=0.1, y=0.05, age=0.02)


@pytest.fixture(scope="module")
def compared(incomplete):
    return compare_missing(incomplete, TWO, min_count=1)


@pytest.mark.parametrize("policy", ["group", "drop"])
def test_what_is_kept_apart_or_left_out_is_what_counting_makes_of_it(policy, incomplete, compared):
    request = CountRequest(sensitive=TWO.sensitive, label="y", missing=policy, missing_label=policy)
    counts = Counts.from_arrow(incomplete, request)
    table = bias_table(counts, MeasureRequest(uncertainty=False))
    expected = {
        (row.group, row.label): row.ub
        for row in table
        if row.label is not MISSING and MISSING not in row.group.values()
    }
    found = {(entry.group, entry.label): entry.ub[policy] for entry in compared.groups}
    assert found == pytest.approx(expected)
    assert len(found) == 2 * (2 + 3 + 6)
    assert (compared[policy].rows, compared[policy].dropped) == (counts.n, counts.dropped)
    shares = {y: counts.of(f"y={y}") / counts.n for y in "01"}
    assert compared[policy].label_frequencies == pytest.approx(shares)


def test_changes_are_against_the_baseline(compared):
    assert compared.baseline == "drop"
    for name in compared.names:
        change = np.array([e.ub[name] - e.reference for e in compared.groups])
        sign = np.sign([e.reference for e in compared.groups])
        treated = compared[name]
        assert treated.largest_change == pytest.approx(np.abs(change).max())
        assert treated.mean_change == pytest.approx(np.abs(change).mean())
        assert treated.away_from_zero == pytest.approx((sign * change).mean())
    assert compared["drop"].largest_change == 0
    assert all(compared[name].largest_change > 0 for name in compared.names if name != "drop")
    moved = [entry.largest for entry in compared.groups]
    assert moved == sorted(moved, reverse=True)


def test_rows_that_are_filled_are_those_that_lack_a_value(incomplete, compared):
    lacking = sum(
        None in row for row in zip(*(incomplete[c].to_pylist() for c in TWO.columns), strict=True)
    )
    assert compared.incomplete == lacking
    assert compared.missing_values == {c: incomplete[c].null_count for c in TWO.columns}
    for name in compared.names:
        assert compared[name].imputed == (lacking if name in FILLING else 0)
        assert compared[name].rows == (800 - lacking if name == "drop" else 800)


def test_the_first_method_is_the_baseline_where_nothing_is_dropped(incomplete):
    found = compare_missing(incomplete, TWO, methods="most_frequent, group", min_count=1)
    assert (found.baseline, found.names) == ("most_frequent", ("most_frequent", "group"))
    assert found.groups_grid().headers == ("group", "y", "rows", "most_frequent", "group")


def test_groups_and_labels_that_a_method_does_not_know_are_not_compared():
    known = people({("w", "1"): 40, ("w", "0"): 60, ("m", "1"): 50, ("m", "0"): 50})
    town = pa.array(["a", "b"] * 100)
    rest = pa.table({"sex": ["x"] * 9 + [None] * 9, "y": ["1"] * 9 + ["2"] * 9})
    rest = rest.append_column("town", pa.array([None] * 9 + ["a"] * 9, pa.string()))
    table = pa.concat_tables([known.append_column("town", town), rest])
    found = compare_missing(table, TWO, methods=["group", "drop", "most_frequent"], min_count=1)
    assert {entry.group.get("sex", "w") for entry in found.groups} == {"w", "m"}  # none has x
    assert {entry.label for entry in found.groups} == {"0", "1"}  # nobody left has 2
    assert found.labels == ("0", "1", "2")


def test_small_groups_are_not_compared_unless_asked_for(incomplete):
    sizes = {}
    for least in (1, 30, 150):
        found = compare_missing(incomplete, TWO, methods=["group", "drop"], min_count=least)
        sizes[least] = {entry.group for entry in found.groups}
        assert all(entry.rows >= least for entry in found.groups)
        assert f"at least {least} row" in found.sentences[1]
    assert sizes[1] > sizes[150]
    with pytest.raises(InputError, match="no group without a missing value has 5,000 rows"):
        compare_missing(incomplete, TWO, methods=["group", "drop"], min_count=5000)


def test_bins_and_texts_that_mean_missing_are_those_of_the_request():
    age = [str(20 + i % 50) if i % 7 else "?" for i in range(400)]
    table = pa.table({"age": age, "y": ["1" if i % 50 > 20 else "0" for i in range(400)]})
    request = CountRequest(sensitive=("age",), label="y", bins={"age": (30.0, 50.0)}, na=("?",))
    found = compare_missing(table, request, min_count=1)
    drop = CountRequest(**{**vars(request), "missing": "drop"})
    expected = bias_table(Counts.from_arrow(table, drop), MeasureRequest(uncertainty=False))
    assert {(str(e.group), e.label): e.reference for e in found.groups} == pytest.approx(
        {(str(row.group), row.label): row.ub for row in expected}
    )
    assert {str(entry.group) for entry in found.groups} == {
        "age=<30",
        "age=30 to <50",
        "age=>=50",
    }
    quantiles = CountRequest(sensitive=("age",), label="y", bins={"age": 4}, na=("?",))
    assert len(compare_missing(table, quantiles, methods="drop,group").request.bins["age"]) == 3


# ---------------------------------------------------------------------------- filling


@st.composite
def rows_with_holes(draw):
    """A few rows of two attributes, a label and two more columns, some values missing."""
    cell = st.tuples(
        st.sampled_from(["w", "m", None]),
        st.sampled_from(["a", "b", "*", None]),
        st.sampled_from(["0", "1", None]),
        st.floats(-5, 5) | st.none(),
        st.sampled_from(["p", "q", None]),
    )
    rows = draw(st.lists(cell, min_size=3, max_size=25))
    rows += [("w", "a", "1", 0.5, "p"), ("m", "b", "0", 1.5, "q")]
    names = ("sex", "town", "y", "age", "job")
    return pa.table({name: [row[i] for row in rows] for i, name in enumerate(names)})


@pytest.mark.slow
@pytest.mark.parametrize("name", FILLING)
@settings(max_examples=15)
@given(table=rows_with_holes(), seed=st.integers(0, 9))
def test_known_values_stay_and_missing_ones_become_values_of_the_column(name, table, seed):
    rows = read_rows(table, TWO)
    before = rows.codes.copy()
    after = METHODS[name].codes(rows, seed)
    assert (rows.codes == before).all()
    known = before != ABSENT
    assert (after[known] == before[known]).all()
    assert (after >= 0).all()
    assert (after < [len(values) for values in rows.values]).all()


def test_the_most_frequent_value_is_filled_in(incomplete):
    rows = read_rows(incomplete, TWO)
    filled = METHODS["most_frequent"].codes(rows, 0)
    for place, column in enumerate(TWO.columns):
        most = Counter(filter(None, incomplete[column].to_pylist())).most_common(1)[0][0]
        assert set(filled[rows.absent[:, place], place].tolist()) == {
            rows.values[place].index(most)
        }


@pytest.mark.parametrize("name", ["knn", "iterative", "iterative_drawn", "iterative_blind"])
def test_a_column_that_says_the_same_gives_every_value_back(name):
    table = people(same=lambda n: [f"is {sex}" for sex, _ in CELLS for _ in range(CELLS[sex, _])])
    found = simulate_missing(table, REQUEST, methods=[name], repeats=1)
    assert found[name].right == 1
    assert found[name].largest_error.mean == pytest.approx(0)


def test_among_rows_as_near_chance_decides():
    rows = read_rows(holes(people(), sex=0.3), REQUEST)
    filled = METHODS["knn"].codes(rows, 0)
    for y in (0, 1):
        here = rows.codes[:, 1] == y
        known = rows.codes[here & ~rows.absent[:, 0], 0].mean()
        assert filled[here & rows.absent[:, 0], 0].mean() == pytest.approx(known, abs=0.12)


def test_the_blind_imputer_sees_the_label_for_no_attribute_and_no_attribute_for_the_label():
    table = holes(people(age=noise), sex=0.2, y=0.2)
    rows = read_rows(table, REQUEST)
    mixed = rows.codes.copy()
    known = mixed[:, 1] != ABSENT
    mixed[known, 1] = np.random.default_rng(0).permutation(mixed[known, 1])
    other = replace(rows, codes=mixed)
    for name, same in (("iterative_blind", True), ("iterative", False)):
        ways = [METHODS[name].codes(r, 3)[:, 0] for r in (rows, other)]
        assert (ways[0] == ways[1]).all() == same


def test_other_columns_are_scaled_lumped_or_left_out():
    n = 200
    table = pa.table(
        {
            "sex": ["w", "m"] * 100,
            "y": ["0", "1", "1", "0"] * 50,
            "income": [float(i) for i in range(n - 2)] + [float("inf"), None],
            "typed": [str(i) for i in range(n - 1)] + ["?"],
            "day": [datetime.date(2020, 1, 1) + datetime.timedelta(i) for i in range(n)],
            "job": ["p"] * 120 + ["q"] * 70 + [f"rare {i}" for i in range(9)] + ["?"],
            "flag": [True, False] * 100,
            "id": [f"person {i}" for i in range(n)],
            "one": [1] * n,
            "nothing": pa.nulls(n),
            "nested": [[i] for i in range(n)],
        }
    )
    others = read_rows(table, CountRequest(sensitive=("sex",), label="y", na=("?",))).others
    assert dict(zip(others.names, others.sizes, strict=True)) == {
        "income": 0,
        "typed": 0,
        "day": 0,
        "job": 4,  # p, q, a rare one, none
        "flag": 2,
    }
    assert others.left_out == ("id", "one", "nothing", "nested")
    numbers = others.matrix[:, :3]
    assert np.isfinite(others.matrix).all()
    assert numbers.mean(axis=0) == pytest.approx(0, abs=1e-9)
    assert numbers.std(axis=0) == pytest.approx(1)
    assert numbers[-1, 0] == pytest.approx(np.median(numbers[:-2, 0]))
    assert others.spread().shape == (n, 3 + 4 + 2)
    assert (others.spread()[:, 3:7].sum(axis=1) == 1).all()


# ------------------------------------------------------------------------- the truth known


def kept(cells, rates):
    """How many rows of each cell keep their value if each loses it at its rate."""
    return {cell: n * (1 - rates[cell]) for cell, n in cells.items()}


def rates_of(mechanism, share=0.2):
    favoured = {"random": lambda _: False, "by_label": lambda c: c[1] == "1"}
    favoured["by_value"] = lambda c: c[0] == "w"
    weights = {cell: 3 if favoured[mechanism](cell) else 1 for cell in CELLS}
    total = sum(CELLS[cell] * weights[cell] for cell in CELLS)
    return {cell: share * sum(CELLS.values()) * weights[cell] / total for cell in CELLS}


def expected_ub(method, mechanism):
    """UB if every cell lost its expected part: what the mean over many repeats comes to."""
    left = kept(CELLS, rates_of(mechanism))
    if method == "drop":
        return ub_of(left)
    if method == "most_frequent":
        gone = {cell: CELLS[cell] - left[cell] for cell in CELLS}
        return ub_of(
            {(s, y): left[s, y] + (gone["w", y] + gone["m", y]) * (s == "m") for s, y in CELLS}
        )
    n = sum(CELLS.values())
    totals = {y: sum(rows for (_, label), rows in CELLS.items() if label == y) for y in "01"}
    sizes = {s: left[s, "0"] + left[s, "1"] for s in "wm"}
    return {(s, y): 1 - left[s, y] / sizes[s] / (totals[y] / n) for s, y in CELLS}


@pytest.mark.parametrize("mechanism", ["random", "by_label", "by_value"])
def test_errors_are_those_that_the_way_of_losing_values_implies(mechanism):
    methods = ["group", "drop", "most_frequent"]
    found = simulate_missing(people(), REQUEST, mechanism=mechanism, methods=methods, repeats=40)
    assert {(e.group["sex"], e.label): e.reference for e in found.groups} == pytest.approx(
        ub_of(CELLS)
    )
    for name in methods:
        assert by_name(found, name) == pytest.approx(expected_ub(name, mechanism), abs=0.015)


def test_at_random_nothing_is_wrong_with_leaving_rows_out():
    found = simulate_missing(people(), REQUEST, methods=["drop"], repeats=30)["drop"]
    assert found.mean_error.mean == pytest.approx(0, abs=0.004)
    assert found.away_from_zero.mean == pytest.approx(0, abs=0.006)
    assert found.mean_abs_error.mean < 0.03


def test_losing_values_by_the_value_moves_what_is_left_but_no_value_of_its_own():
    found = simulate_missing(
        people(), REQUEST, mechanism="by_value", methods=["group", "drop"], repeats=20
    )
    assert found["group"].mean_abs_error.mean < 0.03
    assert found["drop"].mean_abs_error.low > 1.5 * found["group"].mean_abs_error.high


def test_losing_values_by_the_label_moves_both():
    found = simulate_missing(
        people(), REQUEST, mechanism="by_label", methods=["group", "drop"], repeats=20
    )
    assert found["drop"].mean_abs_error.low > 0.03
    assert found["group"].mean_abs_error.low > found["drop"].mean_abs_error.high


STRONG = {("w", "1"): 60, ("w", "0"): 420, ("m", "1"): 480, ("m", "0"): 40}


def test_not_to_see_the_label_draws_uniform_bias_towards_0():
    table = people(STRONG, age=noise)
    methods = ["iterative", "iterative_drawn", "iterative_blind"]
    found = simulate_missing(table, REQUEST, share=0.4, methods=methods, repeats=4)
    blind, drawn, likeliest = (found[m].away_from_zero for m in reversed(methods))
    assert blind.high < -0.1
    assert abs(drawn.mean) < 0.05
    assert likeliest.low > 0.01  # the likeliest value is more alike than values are
    assert "closer to 0" in next(s for s in found.sentences if s.startswith("iterative_blind"))
    assert "farther from 0" in next(s for s in found.sentences if s.startswith("iterative is"))


@pytest.mark.parametrize("mechanism", ["random", "by_label", "by_value"])
def test_the_label_can_be_taken_away(mechanism):
    found = simulate_missing(
        people(),
        REQUEST,
        column="y",
        mechanism=mechanism,
        methods=["group", "drop", "most_frequent"],
        repeats=10,
    )
    assert found["most_frequent"].label_frequencies["0"] > 0.54 + 0.05
    lost = 0 if mechanism == "random" else 0.05
    assert 0.46 - found["drop"].label_frequencies["1"] == pytest.approx(lost, abs=0.02)
    assert sum(found["group"].label_frequencies.values()) == pytest.approx(0.8)
    # Whether rows are left out or labels kept apart is the same to the ratio of two shares.
    if mechanism == "random":
        assert found["drop"].mean_abs_error.mean < 0.04
        assert found["group"].mean_abs_error.mean < 0.04


def test_a_label_that_is_lost_in_one_repeat_is_compared_in_none():
    table = people({**CELLS, ("w", "2"): 1, ("m", "2"): 1})
    found = simulate_missing(table, REQUEST, share=0.6, methods=["drop", "group"], repeats=8)
    assert found.labels == ("0", "1", "2")
    assert {entry.label for entry in found.groups} == {"0", "1"}
    assert json.loads(found.to_json())["methods"][0]["mean_abs_error"]["mean"] < 0.2


# ----------------------------------------------------------------------------- taking away


@settings(max_examples=60)
@given(
    st.lists(st.integers(5, 60), min_size=4, max_size=4),
    st.floats(0.05, 0.5),
    st.sampled_from(["random", "by_label", "by_value"]),
    st.integers(0, 5),
)
def test_as_many_rows_lose_a_value_as_were_asked_for_and_some_three_times_as_often(
    sizes, share, mechanism, seed
):
    table = people(dict(zip(CELLS, sizes, strict=True)))
    rows = read_rows(table, REQUEST)
    try:
        loss = loss_of(rows, 0, share, mechanism)
    except InputError:  # more than there are, or too few are left
        smaller = min(sizes[0] + sizes[1], sizes[2] + sizes[3], sizes[0] + sizes[2])
        assert sum(sizes) * (1 - share) < 20.5 or 3 * share * sum(sizes) > smaller
        return
    lost = loss.draw(np.random.default_rng(seed))
    assert len(lost) == len(set(lost.tolist())) == round(share * len(table))
    assert loss.favoured[lost].sum() == loss.often
    if mechanism != "random":
        inside, outside = loss.favoured.sum(), (~loss.favoured).sum()
        # The one is rounded, the other what is left of a rounded sum: half a row and one row off.
        ratio = 3 * inside / outside
        assert abs(loss.often - ratio * loss.seldom) <= 0.5 + ratio + 1e-9
        column = table["y" if mechanism == "by_label" else "sex"].to_pylist()
        (value,) = {v for v, chosen in zip(column, loss.favoured, strict=True) if chosen}
        second = sorted(Counter(column).values())[-2]
        assert Counter(column)[value] == second


def test_who_loses_a_value_more_often_is_said():
    found = simulate_missing(people(), REQUEST, mechanism="by_label", methods=["drop"])
    assert found.chosen == Group({"y": "1"})
    assert found.sentences[1] == (
        "5 times, sex was removed from 200 of them (20.0%), from rows with y=1, the second most "
        "frequent label, 3 times as often as from others."
    )
    found = simulate_missing(people(), REQUEST, mechanism="by_value", methods=["drop"], repeats=1)
    assert found.chosen == Group({"sex": "w"})
    assert "Once, sex was removed" in found.sentences[1]
    assert "the second most frequent value" in found.sentences[1]
    found = simulate_missing(people(), REQUEST, methods=["drop"])
    assert found.chosen is None
    assert found.sentences[1].endswith("completely at random.")


def test_rows_are_drawn_and_this_is_said(incomplete):
    found = simulate_missing(incomplete, TWO, methods=["drop"], max_rows=500)
    assert (found.n, found.table_rows, found.taken) == (500, 800, 100)
    lacking = found.incomplete + found.without_label
    complete = 800 - lacking
    assert lacking == compare_missing(incomplete, TWO, methods="drop,group").incomplete
    assert found.sentences[0].startswith("500 of 800 rows were counted")
    assert f"rows with a missing value ({found.incomplete:,}) were set aside" in found.sentences[0]
    assert simulate_missing(incomplete, TWO, methods=["drop"], max_rows=None).n == complete
    few = compare_missing(incomplete, TWO, methods="drop,group", max_rows=600)
    assert (few.n, few.table_rows) == (600, 800)


# ----------------------------------------------------------------------------- results


@pytest.mark.slow
def test_a_seed_decides_everything(incomplete, compared):
    def told(result):
        return {k: v for k, v in result.to_dict().items() if k != "time"}

    again = compare_missing(incomplete, TWO, min_count=1)
    assert told(again) == told(compared)
    chosen = ["drop", "knn", "iterative_drawn"]
    other = compare_missing(incomplete, TWO, methods=chosen, min_count=1, seed=1)
    assert other["drop"] == compared["drop"]
    assert other["knn"] != compared["knn"]
    assert other["iterative_drawn"] != compared["iterative_drawn"]
    how = {"methods": ["drop", "knn"], "repeats": 2}
    first, second = (simulate_missing(people(), REQUEST, **how) for _ in range(2))
    assert told(first) == told(second)
    assert told(simulate_missing(people(), REQUEST, **how, seed=2)) != told(first)


def test_results_are_plain_data(compared):
    told = compared.to_dict()
    assert told == json.loads(compared.to_json(indent=1))
    assert (told["schema"], told["kind"]) == ("equipoise.missing/1", "comparison")
    assert told["parameters"]["baseline"] == "drop"
    assert told["groups"][0]["ub"].keys() == METHODS.keys()
    once = simulate_missing(people(), REQUEST, methods=["drop", "knn"], repeats=1)
    told = once.to_dict()
    assert told == json.loads(once.to_json())
    assert told["kind"] == "simulation"
    assert (told["methods"][0]["mean_error"]["low"], told["methods"][0]["right"]) == (None, None)
    assert told["methods"][1]["right"] > 0.5
    assert {"column", "share", "mechanism", "repeats", "seed"} <= told["parameters"].keys()


def test_sentences_tell_what_happened(compared):
    text = compared.text(3)
    for sentence in compared.sentences:
        assert sentence in text
    lacking = compared.incomplete
    assert f"drop leaves out {lacking:,} rows" in text
    assert f"knn imputes values in {lacking:,} rows" in text
    assert "group keeps all rows and moves UB by at most" in text
    assert "… and 19 more groups and labels" in text
    assert "at most 5,000 complete rows" in text
    assert not re.search(r"(?i)\b(fair|unbiased|compliant|best|recommend)", text)
    bare = compare_missing(holes(people(), sex=0.1), REQUEST, methods="drop,group")
    assert "Imputers" not in str(bare)


def test_the_group_that_moves_most_is_named(compared):
    name = "most_frequent"
    most = max(compared.groups, key=lambda e: abs(e.ub[name] - e.reference))
    said = next(s for s in compared.sentences if s.startswith(name))
    assert f"({most.group}, y={most.label}: " in said
    assert f"at most {compared[name].largest_change:.3f}" in said


def test_an_interval_is_that_of_student():
    values = [0.1, 0.4, 0.2, 0.25]
    low, high = stats.t.interval(0.95, 3, np.mean(values), stats.sem(values))
    assert Mean.of(values) == pytest.approx((np.mean(values), low, high))
    assert Mean.of([0.0, 1.0], least=0) == pytest.approx((0.5, 0, 0.5 + 12.706 * 0.5), rel=1e-4)
    assert np.isnan(Mean.of([0.3])[1:]).all()


def test_work_tells_how_far_it_is():
    told = []
    simulate_missing(
        people(),
        REQUEST,
        methods=["drop", "group"],
        repeats=3,
        progress=lambda title, share: told.append((title, share)),
    )
    assert [share for _, share in told] == pytest.approx([i / 6 for i in range(6)])
    assert told[-1][0] == "treating missing values: group, 3 of 3"


# ---------------------------------------------------------------------------- refusing


def refused(call, *arguments, kind=InputError, **options):
    with pytest.raises(kind) as error:
        call(*arguments, **options)
    said = str(error.value)
    assert said.endswith((".", "?"))
    assert "\n" not in said
    return said


def replaced(**changes):
    return CountRequest(**{**vars(REQUEST), **changes})


def test_a_table_without_missing_values_is_nothing_to_compare():
    said = refused(compare_missing, people(), REQUEST)
    assert said.startswith("no value of sex and y is missing in 1,000 rows")
    assert "`na`" in said
    assert "simulation" in said
    marked = people({**CELLS, ("?", "1"): 3})
    assert "(as perhaps '?' in sex)" in refused(compare_missing, marked, REQUEST)
    assert compare_missing(marked, replaced(na=("?",)), methods="drop,group")["drop"].dropped == 3


@pytest.mark.parametrize("call", [compare_missing, simulate_missing])
def test_columns_that_cannot_be_compared_are_refused(call):
    table = holes(people(), sex=0.1)
    n = len(table)
    for name, values, said in (
        ("none", pa.nulls(n, pa.string()), "column 'none' has no value in any of 1,000 rows"),
        (
            "one",
            pa.array(["a", None] * (n // 2)),
            "column 'one' has only one value, a, in addition to missing",
        ),
        ("nested", pa.array([[1]] * n), "column 'nested' of the frame holds nested values"),
    ):
        more = table.append_column(name, values)
        assert said in refused(call, more, replaced(sensitive=("sex", name)))
    assert "column 'sexe' not found" in refused(
        call, table, replaced(sensitive=("sexe",)), kind=ColumnNotFound
    )
    assert "column 'y' has only one value" in refused(
        call, people({("w", "1"): 30, ("m", "1"): 30, (None, "1"): 4}), REQUEST
    )


@pytest.mark.parametrize("call", [equipoise.compare_missing, equipoise.simulate_missing])
@pytest.mark.parametrize("what", ["count", "weight"])
def test_tables_that_are_not_of_rows_are_refused(call, what):
    table = people(n=lambda n: [2] * n)
    said = refused(call, table, sensitive_features=["sex"], label="y", **{what: "n"})
    assert "give the rows themselves, without the column 'n' of counts or weights" in said


@pytest.mark.parametrize("call", [compare_missing, simulate_missing])
def test_tables_that_are_too_small_are_refused(call):
    small = people({("w", "1"): 5, ("m", "0"): 6, (None, "0"): 9})
    assert "11 of 20 rows have a value of each of sex and y; at least 20" in refused(
        call, small, REQUEST
    )
    assert "min_count" in refused(call, people(), REQUEST, min_count=0)
    assert "seed" in refused(call, people(), REQUEST, seed=-1)
    assert "`max_rows` must be a whole number of at least 20" in refused(
        call, people(), REQUEST, max_rows=3
    )


@pytest.mark.parametrize("call", [compare_missing, simulate_missing])
def test_unknown_methods_are_refused(call):
    said = refused(call, people(), REQUEST, methods=["drop", "kn"], kind=UnknownName)
    assert "unknown method of treating missing values 'kn'" in said
    assert "Did you mean 'knn'?" in said
    assert "name at least one" in refused(call, people(), REQUEST, methods=[])
    assert "'drop'" not in METHODS["drop"].sentence


def test_one_method_is_nothing_to_compare():
    said = refused(compare_missing, holes(people(), sex=0.1), REQUEST, methods="knn")
    assert said.startswith("a comparison needs at least two methods")
    assert "only knn was given" in said


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"share": 0}, "`share` must be a number above 0 and below 1, not 0."),
        ({"share": 1.0}, "`share` must be a number above 0 and below 1"),
        ({"share": float("nan")}, "`share` must be a number"),
        ({"share": 0.99}, "`share=0.99` removes 990 of 1,000 values; remove at least one"),
        ({"share": 0.0001}, "removes 0 of 1,000 values"),
        ({"share": 0.7, "mechanism": "by_value"}, "all 400 rows with sex=w would lose their value"),
        ({"mechanism": "at random"}, "`mechanism` must be one of"),
        ({"column": "age"}, "column 'age' not found in the counted columns; it has: sex, y."),
        ({"repeats": 0}, "`repeats` must be a whole number of at least 1"),
        ({"repeats": 1.5}, "`repeats` must be a whole number"),
    ],
)
def test_a_simulation_that_cannot_be_meant_is_refused(options, said):
    assert said in refused(simulate_missing, people(), REQUEST, **options)


def test_without_scikit_learn_only_what_needs_no_imputer_is_done(monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn", None)
    table = holes(people(), sex=0.1)
    with pytest.raises(MissingDependency, match=r"imputation needs .*equipoise\[models\]"):
        compare_missing(table, REQUEST)
    assert compare_missing(table, REQUEST, methods="group,drop").incomplete > 0


def test_heavy_libraries_are_loaded_when_they_are_used():
    code = (
        "import sys, equipoise.evaluation.missing.comparison, equipoise.reports.missing.page; "
        "print(*{'sklearn', 'pandas', 'pyarrow', 'scipy', 'altair'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []
