"""Rows in memory: how many of each cell move, which ones, and what a pool must be for that."""

from __future__ import annotations

import itertools
from collections import Counter

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from equipoise.counts import Axis, Counts
from equipoise.errors import InputError, PoolTooSmall
from equipoise.estimators import _moves as module
from equipoise.estimators._moves import asked_moves, planned_moves
from equipoise.estimators._pool import count_pool
from equipoise.estimators._resampling import max_abs_ub, resample
from equipoise.estimators._rows import count_rows, sensitive_columns
from equipoise.estimators._strategy import spelled
from equipoise.plans.infeasibility import Infeasible
from equipoise.plans.planner import make_plan, nearest_plan
from equipoise.plans.request import PlanRequest
from strategies import label_rates, largest_bias, repairable, rows_of

HIRED = {("m", "yes"): 6, ("m", "no"): 6, ("w", "yes"): 2, ("w", "no"): 10}
QUICKLY = PlanRequest(tolerance=0.01, reference="original")
"""As good as zero bias for the tables here, and much quicker to plan."""


def counted(cells=HIRED):
    return Counts.from_mapping(cells, sensitive=["sex"], label="label")


def listed(cells=HIRED):
    """The sex and the label of each row."""
    rows = [cell for cell, n in cells.items() for _ in range(n)]
    return np.array([sex for sex, _ in rows]), np.array([label for _, label in rows])


def people(cells=HIRED):
    """Rows with a number as their feature."""
    sex, label = listed(cells)
    return count_rows(label, {"sex": sex}, X=np.arange(len(sex))[:, None])


def others(n=30, first=1000):
    """A pool with as many rows of each cell."""
    sex, label = listed(dict.fromkeys(HIRED, n))
    return np.arange(first, first + len(sex))[:, None], label, sex


# ------------------------------------------------------------------------------ rows are counted


def test_rows_without_sensitive_features_are_one_group():
    rows = count_rows(["a", "b", "a"], {})
    assert (rows.sensitive, rows.n) == ((), 3)
    assert rows.counts.of("group=all, label=a") == 2
    chosen = resample(rows, asked_moves(rows.counts, {"a": 1}), np.random.default_rng(0))
    assert chosen.strategy == {"a": 1, "b": 1}


@pytest.mark.parametrize(
    ("name", "called"),
    [("hired", "hired"), (None, "label"), ("", "label"), (7, "label"), ("SEX", "SEX_"), ("sex", "sex_")],
)  # fmt: skip
def test_the_label_is_called_by_its_name_unless_a_feature_is(name, called):
    assert count_rows([1, 0], {"sex": ["m", "w"]}, label=name).counts.label.name == called


def test_weights_are_counted_whatever_the_columns_are_called():
    rows = count_rows([1, 0, 1], {"weight": ["m", "w", "w"]}, weight=[1, 2, 0.5])
    assert rows.counts.weights[:, 0].tolist() == [1, 2, 0.5]
    assert [axis.name for axis in rows.counts.axes] == ["weight", "label"]


def test_sensitive_features_are_beside_the_others_or_among_them():
    X = [["m", 1], ["w", 2]]
    assert sensitive_columns(None, 2) == {}
    assert sensitive_columns(None, 2, X=X, names=0) == {"x0": ["m", "w"]}
    assert sensitive_columns({"sex": ["m", "w"]}, 2, X=X) == {"sex": ["m", "w"]}
    with pytest.raises(InputError, match="either `sensitive_features` or `sensitive_columns`"):
        sensitive_columns(["m", "w"], 2, X=X, names=0)
    with pytest.raises(InputError, match="has 3 rows and the data has 2"):
        sensitive_columns(["m", "w", "m"], 2)
    with pytest.raises(InputError, match="5 is a single value and has no rows"):
        sensitive_columns(5, 2)


# ---------------------------------------------------------------------------------- the pool


@pytest.mark.parametrize(("kind", "other"), [(float, 7), (int, 1.5), (bool, 2), (int, np.nan)])
def test_numbers_of_the_pool_match_those_given_of_another_type(kind, other):
    sex, label = listed()
    given = count_rows(label, {"sex": (sex == "w").astype(kind)}, X=np.zeros((24, 1)))
    X, labels, theirs = others()
    numbers = np.where(np.arange(120) % 2 == 0, other, theirs == "w")  # every other is of no group
    pool = count_pool((X, labels, numbers), given)
    there = rows_of(pool.counts)
    assert [there[cell] for cell in rows_of(given.counts)] == [15] * 4
    moves = planned_moves(given.counts, QUICKLY, pool.counts)
    chosen = resample(given, moves, np.random.default_rng(0), pool=pool)
    assert len(chosen.added) == 9
    assert set(chosen.added % 2) == {1}
    assert max_abs_ub(chosen.moves.after) == 0


@pytest.mark.parametrize(
    ("parts", "words"),
    [
        (lambda X, y: (X.drop(columns="sex"), y), r"'sex' are not found in the pool, which has the columns id; .*pool=\(X, y, sens"),
        (lambda X, y: (X, y, X["sex"].rename("gender")), "of the pool are gender, those of the data sex"),
        (lambda X, y: (X, y, X[["sex", "id"]]), "of the pool are sex and id, those of the data sex"),
        (lambda X, y: (X, y, "sex"), r"use `sensitive_columns=\['sex'\]"),
        (lambda X, y: (X.to_numpy(), y, X["sex"]), "X is a frame of pandas, but the X of the pool is a ndarray"),
        (lambda X, y: (X.drop(columns="id"), y), "the pool does not have 'id' of X"),
        (lambda X, y: (X, y[:-1]), r"the same length, not \[119, 120\]"),
        (lambda X, y: (X, y, X["sex"][:7]), r"the same length, not \[7, 120\]"),
        (lambda X, y: (X,), "and has 1 part\\."),
        (lambda X, y: (X, y, X["sex"], y), "and has 4 parts"),
    ],
)  # fmt: skip
def test_a_pool_that_cannot_be_used_is_refused(parts, words):
    def framed(numbers, sex):
        return pd.DataFrame({"id": numbers.ravel(), "sex": sex})

    sex, label = listed()
    given = count_rows(label, {"sex": sex}, X=framed(np.arange(24), sex))
    numbers, labels, theirs = others()
    with pytest.raises(InputError, match=words):
        count_pool(parts(framed(numbers, theirs), labels), given)


def test_a_pool_without_names_needs_its_features_and_as_many_columns():
    given = people()
    X, labels, sex = others()
    with pytest.raises(
        InputError, match=r"'sex' are not found in the pool, which has no column names"
    ):
        count_pool((X, labels), given)
    with pytest.raises(InputError, match="X has 1 columns, but the X of the pool has 2"):
        count_pool((np.hstack([X, X]), labels, sex), given)
    with pytest.raises(InputError, match="a ndarray of 1D has no columns"):
        count_pool((X.ravel(), labels, sex), given)


def test_features_of_a_pool_are_matched_by_name_and_else_by_position():
    sex, label = listed()
    X, labels, theirs = others()
    race = np.full(120, "a")
    both = {"sex": sex, "race": np.full(24, "a")}
    named = count_rows(label, both, X=np.zeros((24, 1)))
    for features in (
        {"race": race, "sex": theirs},
        [theirs, race],
        np.column_stack([theirs, race]),
    ):
        assert count_pool((X, labels, features), named).counts.of("sex=w, race=a") == 60
    nameless = count_rows(label, sensitive_columns(list(both.values()), 24), X=np.zeros((24, 1)))
    pool = count_pool((X, labels, {"sex": theirs, "race": race}), nameless)
    assert pool.counts.of("feature_0=w, feature_1=a") == 60


# --------------------------------------------------------------------------- moves that are planned


def test_a_plan_keeps_to_what_the_pool_has_where_it_can():
    freely = planned_moves(counted(), QUICKLY.but(allow="both"), counted(dict.fromkeys(HIRED, 30)))
    assert freely.add.of("sex=w, label=yes") == 3
    little = counted({("w", "yes"): 1})
    moves = planned_moves(counted(), PlanRequest(allow="both"), little)
    assert (moves.add.n, moves.shortfall) == (1, "")
    assert moves.after == moves.plan.after()
    assert moves.plan.reached


def test_a_pool_that_lacks_rows_is_refused_with_what_it_lacks_most_first():
    pool = counted({("m", "no"): 5, ("w", "yes"): 1, ("x", "yes"): 9})
    lacks = "sex=w, label=yes needs 3 and has 1 and sex=m, label=no needs 6 and has 5"
    with pytest.raises(PoolTooSmall, match=f"too few rows: {lacks}; provide a larger pool"):
        planned_moves(counted(), QUICKLY, pool)


def test_at_most_five_cells_that_lack_rows_are_named():
    cells = {(f"g{i}", label): 5 for i in range(7) for label in ("no", "yes")}
    wanted = {cell: 6 for cell in cells if cell[1] == "yes"}
    with pytest.raises(
        PoolTooSmall, match="sex=g4, label=yes needs 1 and has 0 and so on for 2 more"
    ):
        asked_moves(counted(cells), wanted, counted({("x", "no"): 1}))


def test_additions_need_a_pool():
    with pytest.raises(InputError, match=r"rows must be added .* `pool=\(X, y\)`, or .*'delete'"):
        planned_moves(counted(), QUICKLY)
    assert planned_moves(counted(), QUICKLY.but(allow="delete")).delete.n > 0


def test_what_no_pool_could_give_is_not_the_fault_of_the_pool():
    never = counted({("m", "yes"): 5, ("m", "no"): 5, ("w", "no"): 5})
    request = PlanRequest(tolerance=0.5, reference="original", allow="delete")
    for partial in (False, True):
        with pytest.raises(Infeasible):
            planned_moves(never, request, counted(dict.fromkeys(HIRED, 30)), partial=partial)


def test_a_partial_plan_is_the_plan_asked_for_where_the_pool_has_its_rows():
    pool = counted(dict.fromkeys(HIRED, 30))
    whole = planned_moves(counted(), QUICKLY, pool)
    part = planned_moves(counted(), QUICKLY, pool, partial=True)
    assert (part.add, part.delete, part.shortfall) == (whole.add, whole.delete, "")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("reference", "pool"),
    [
        (None, {("m", "yes"): 1, ("m", "no"): 2, ("w", "yes"): 2, ("w", "no"): 1}),
        ("original", {("m", "no"): 9, ("w", "yes"): 1}),
    ],
)
def test_a_partial_plan_comes_as_near_as_the_pool_allows(reference, pool):
    request = PlanRequest(reference=reference)
    moves = planned_moves(counted(), request, counted(pool), partial=True)
    assert moves.shortfall.startswith("the pool has too few rows: sex=")
    assert "sex=w, label=yes needs 3 and has " in moves.shortfall
    assert moves.after == moves.plan.after()
    assert distance(rows_of(moves.after), reference) == min(
        distance({cell: n + m for (cell, n), m in zip(HIRED.items(), more, strict=True)}, reference)
        for more in itertools.product(*(range(pool.get(cell, 0) + 1) for cell in HIRED))
    )


def distance(cells, reference):
    """How far rows are from what a plan that keeps labels is held to: no bias, the same labels."""
    before, after = label_rates(HIRED), label_rates(cells)
    if reference == "original":
        return largest_bias(cells, rates=before)
    drift = max(abs(after[label] / before[label] - 1) for label in before)
    return max(largest_bias(cells), drift)


small = repairable(shape=(2,), largest=6)
few = st.dictionaries(
    st.sampled_from([(a, y) for a in ("a0", "a1") for y in ("y0", "y1")]), st.integers(1, 2)
)
WORSE_BY_ROUNDING = (
    {("m", "0"): 1, ("m", "1"): 1, ("w", "0"): 4, ("w", "1"): 4, ("x", "0"): 6, ("x", "1"): 4},
    {("m", "1"): 1, ("w", "0"): 1, ("w", "1"): 1, ("x", "0"): 1},
    {"allow": "both"},
)
WORSE_BY_REFERENCE = (
    {("m", "0"): 3, ("m", "1"): 1, ("m", "2"): 3, ("w", "0"): 5, ("w", "1"): 1, ("w", "2"): 2,
     ("x", "0"): 5, ("x", "1"): 4, ("x", "2"): 2},
    {("m", "0"): 1, ("m", "1"): 3, ("w", "0"): 1, ("w", "2"): 1, ("x", "1"): 1},
    {"reference": "original"},
)  # fmt: skip
WORSE_FOR_SHARES = (
    {("m", "0"): 3, ("m", "1"): 2, ("w", "0"): 5, ("w", "1"): 3, ("x", "0"): 6, ("x", "1"): 4},
    {("m", "0"): 1, ("m", "1"): 3, ("w", "0"): 2, ("w", "1"): 1, ("x", "1"): 1},
    {"reference": "original", "labels": {"0": 0.5, "1": 0.5}},
)
WORSE_THAN_ZERO = (
    {("m", "0"): 2, ("m", "1"): 3, ("w", "0"): 4, ("w", "1"): 6},
    {("m", "0"): 1, ("m", "1"): 2, ("w", "0"): 3, ("w", "1"): 2},
    {"reference": "original", "labels": {"0": 0.5, "1": 0.5}, "tolerance": 0.1},
)


@pytest.mark.slow
@given(small, few, st.sampled_from(["keep", "free"]))
@settings(max_examples=10)
def test_a_partial_plan_is_never_worse_than_no_plan(counts, pool, labels):
    assume(len(counts.label) == 2)
    pool = Counts.from_mapping(pool, sensitive=["a"], label="y")
    request = PlanRequest(reference="original", labels=labels)
    moves = planned_moves(counts, request, pool, partial=True)
    assert largest_bias(rows_of(moves.after)) <= largest_bias(rows_of(counts))
    assert all(n <= rows_of(pool).get(cell, 0) for cell, n in rows_of(moves.add).items())
    assert moves.after == moves.plan.after()


@pytest.mark.slow
@pytest.mark.parametrize("cells", [{("m", "1"): 2, ("m", "0"): 1, ("w", "0"): 2}, HIRED])
def test_a_partial_plan_is_never_worse_against_the_new_frequencies(cells):
    moves = planned_moves(counted(cells), PlanRequest(), counted({("w", "no"): 2}), partial=True)
    assert moves.shortfall
    assert largest_bias(rows_of(moves.after)) <= largest_bias(cells)


@pytest.mark.parametrize(
    "case", [WORSE_BY_ROUNDING, WORSE_BY_REFERENCE, WORSE_FOR_SHARES, WORSE_THAN_ZERO]
)
def test_rows_stay_as_they_are_where_the_nearest_plan_would_make_it_worse(case):
    cells, pool, options = case
    request = PlanRequest(**options)
    nearest = nearest_plan(counted(cells), request.but(pool=counted(pool)))
    assert largest_bias(rows_of(nearest.after())) > largest_bias(cells)
    moves = planned_moves(counted(cells), request, counted(pool), partial=True)
    assert moves.add.n == moves.delete.n == moves.plan.additions == 0
    assert moves.after == counted(cells)
    assert moves.shortfall


def test_a_plan_that_was_not_found_within_the_pool_is_used_if_its_rows_are_there(monkeypatch):
    def blind(counts, request, **options):
        if request.pool is not None:
            raise Infeasible("nothing found", proved=False)
        return make_plan(counts, request, **options)

    monkeypatch.setattr(module, "make_plan", blind)
    moves = planned_moves(counted(), QUICKLY, counted(dict.fromkeys(HIRED, 30)))
    assert (moves.add.n, moves.shortfall) == (9, "")


# ----------------------------------------------------------------------- moves that are asked for


@pytest.mark.parametrize(
    ("strategy", "options", "words"),
    [
        ({("w", "yes"): 1}, {"allow": "add"}, "asks for 1 rows of sex=w, label=yes, which has 2; ask for no fewer"),
        ({("w", "yes"): 3}, {"allow": "delete"}, "asks for 3 rows of sex=w, label=yes, which has 2; ask for no more"),
        ({("w", "yes"): 3}, {}, "1 row must be added and there is no pool"),
        ({("w", "yes"): -1}, {}, "asks for -1 rows .* whole number of at least 0"),
        ({("w", "yes"): 2.5}, {}, "asks for 2.5 rows"),
        ({("w", "yes"): True}, {}, "asks for True rows"),
        ({("w", "maybe"): 3}, {}, "'label' has no value maybe; it has: yes, no"),
        ({("x", "yes"): 3}, {}, "'sex' has no value x; it has: m, w"),
        ({("w", 1, "yes"): 3}, {}, r"is not a key .* a key is \(sex, label\)"),
        ({(("w", 1), "yes"): 3}, {}, r"is not a key .* a key is \(sex, label\)"),
        ({"yes": 3}, {}, r"'yes' is not a key .* a key is \(sex, label\)"),
        ({(None, "yes"): 3}, {}, "with a missing value of 'sex', which stay as they are"),
        ({("w", "yes"): 2, (("w",), "yes"): 2}, {}, "names sex=w, label=yes twice"),
        (dict.fromkeys(HIRED, 0), {}, "leaves no row at all"),
        (7, {}, r"mapping \{\(group, label\): rows\}, not 7"),
    ],
)  # fmt: skip
def test_a_mapping_that_cannot_be_is_refused_with_what_there_is(strategy, options, words):
    with pytest.raises(InputError, match=words):
        asked_moves(counted(), strategy, **options)


def test_a_mapping_moves_the_cells_it_names():
    pool = counted({("w", "yes"): 30})
    moves = asked_moves(counted(), {("w", "yes"): 10, ("m", "no"): 2, ("m", "yes"): 0}, pool)
    assert rows_of(moves.add) == {("w", "yes"): 8}
    assert rows_of(moves.delete) == {("m", "no"): 4, ("m", "yes"): 6}
    assert (moves.plan, moves.shortfall) == (None, "")


def test_a_mapping_of_more_rows_than_the_pool_has_is_done_in_part_if_that_will_do():
    pool = counted({("w", "yes"): 30})
    with pytest.raises(PoolTooSmall, match="sex=w, label=yes needs 38 and has 30"):
        asked_moves(counted(), {("w", "yes"): 40}, pool)
    moves = asked_moves(counted(), {("w", "yes"): 40, ("m", "no"): 5}, pool, partial=True)
    assert moves.after.of("sex=w, label=yes") == 32
    assert moves.after.of("sex=m, label=no") == 5
    assert moves.shortfall == "the pool has too few rows: sex=w, label=yes needs 38 and has 30"


def test_a_value_is_found_however_a_person_writes_it():
    booleans, reals = Axis("a", ("false", "true")), Axis("a", ("0.0", "1.0", "2.5"))
    assert [spelled(booleans, raw) for raw in (True, 1, 1.0, np.True_, "true")] == ["true"] * 5
    assert [spelled(reals, raw) for raw in (1, True, np.float32(1), "1.0")] == ["1.0"] * 4
    assert spelled(reals, 2.5) == "2.5"
    assert spelled(reals, 3) == "3"
    assert spelled(Axis("a", ("1", "1.0")), 1) == "1"


# --------------------------------------------------------------------------------- rows are chosen


def test_rows_that_stay_come_first_and_each_says_where_it_is_from():
    given = people()
    pool = count_pool(others(), given)
    moves = asked_moves(given.counts, {("w", "yes"): 4, ("m", "no"): 1}, pool.counts)
    chosen = resample(given, moves, np.random.default_rng(0), pool=pool)
    assert (len(chosen.kept), len(chosen.added)) == (19, 2)
    assert chosen.indices.tolist() == [*chosen.kept, *(24 + chosen.added)]
    assert chosen.provenance["row"].tolist() == [*chosen.kept, *chosen.added]
    assert Counter(chosen.provenance["source"].tolist()) == {"given": 19, "pool": 2}
    assert chosen.features().ravel().tolist() == [*chosen.kept, *(1000 + chosen.added)]
    sex = np.concatenate([listed()[0], others()[2]])[chosen.indices]
    assert count_rows(chosen.labels(listed()[1]), {"sex": sex}).counts == chosen.moves.after
    assert chosen.strategy == rows_of(chosen.moves.after)


def test_a_generator_decides_which_rows():
    given = people()
    moves = asked_moves(given.counts, {("w", "no"): 5})

    def left(seed):
        return resample(given, moves, np.random.default_rng(seed)).kept.tolist()

    assert left(0) == left(0) == sorted(set(left(0)))
    assert set(range(14)) <= set(left(0))  # who has another sex or label stays
    assert len({tuple(left(seed)) for seed in range(9)}) > 1


@pytest.mark.parametrize(
    ("ours", "other"),
    [
        (lambda y: (y == "yes").astype(int), lambda y: (y == "yes").astype(float)),
        (lambda y: y == "yes", lambda y: np.where(y == "yes", "true", "false")),
        (lambda y: pl.Series("y", y), list),
        (list, lambda y: pd.Series(y, dtype="category")),
    ],
)
def test_the_labels_of_added_rows_are_written_as_those_given(ours, other):
    sex, label = listed()
    X, labels, theirs = others()
    given = count_rows(ours(label), {"sex": sex}, X=np.zeros((24, 1)))
    pool = count_pool((X, other(labels), theirs), given)
    moves = planned_moves(given.counts, QUICKLY, pool.counts)
    chosen = resample(given, moves, np.random.default_rng(0), pool=pool)
    written = chosen.labels(ours(label))
    assert type(written) is type(ours(label))
    assert list(written) == list(ours(np.concatenate([label, labels[chosen.added]])))
    assert len(written) == 33


def test_deleting_never_leaves_more_bias_where_a_part_will_do():
    given = count_rows([1, 2, 0, 1, 2, 2, 1, 1, 0, 1, 1, 2], {"sex": list("bbcccbccbccc")})
    request = PlanRequest(allow="delete", reference="original")
    worse = planned_moves(given.counts, request)
    assert worse.plan.certificate.max_abs_ub_after > worse.plan.certificate.max_abs_ub_before
    moves = planned_moves(given.counts, request, partial=True)
    assert moves.delete.n == 0
    assert moves.shortfall


def test_a_pool_that_writes_values_otherwise_is_told():
    given = count_rows([1.5, 0.5], {"sex": ["m", "w"]}, X=[[5], [6]])
    with pytest.raises(
        InputError, match="no value in common: Frau, Mann in the pool, m, w in the data"
    ):
        count_pool(([[7], [8]], [1.5, 0.5], ["Frau", "Mann"]), given)
