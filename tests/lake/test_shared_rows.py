"""Tables that have rows in common: who is alike, and the cheapest choice, against trying all."""

from __future__ import annotations

import itertools

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from equipoise.lake.cover import shared_rows
from equipoise.lake.cover.shared_rows import Shared, cheapest_tables
from equipoise.lake.offers import duplicates
from equipoise.lake.offers.duplicates import Known, alike_rows
from equipoise.lake.offers.fingerprints import RowHashes
from equipoise.plans.highs import Answer, LinearModel

COLUMNS = {"x": st.sampled_from("ab"), "y": st.integers(0, 2), "z": st.integers(0, 2)}


@st.composite
def tables(draw):
    """A table with some of three columns."""
    names = draw(st.sampled_from([("x", "y", "z"), ("x", "y"), ("y", "z"), ("x", "y", "z")]))
    rows = draw(st.lists(st.fixed_dictionaries({n: COLUMNS[n] for n in names}), max_size=5))
    types = {"x": pa.string(), "y": pa.int64(), "z": pa.int64()}
    return rows, pa.table({n: pa.array([r[n] for r in rows], types[n]) for n in names})


BASE = RowHashes.of(pa.table({"x": ["c"], "y": [9], "z": [9]}))


def is_alike(one, other, policy):
    shared = ["y"] if policy == "key" else [n for n in one if n in other]
    enough = policy == "key" or len(shared) > min(len(one), len(other)) / 2
    return enough and all(one[n] == other[n] for n in shared)


@pytest.mark.slow
@pytest.mark.parametrize("policy", ["strict", "key"])
@given(some=st.lists(tables(), max_size=5))
def test_alike_are_rows_that_agree_where_both_say_something(policy, some):
    known = Known(BASE, policy, ("y",) if policy == "key" else ())
    rows, hashes = [], []
    for number, (mine, table) in enumerate(some):
        found = RowHashes.of(table)
        new = np.flatnonzero(known.is_new(found))
        hashes.append(found.take(new))
        rows += [(number, mine[i]) for i in new]
    told = {tuple(sorted(pair)) for pair in alike_rows(known, hashes).tolist()}
    expected = {
        (i, j)
        for (i, (t, one)), (j, (u, other)) in itertools.combinations(enumerate(rows), 2)
        if t != u and is_alike(one, other, policy)
    }
    assert told == expected


def test_of_equal_rows_as_many_can_be_taken_as_one_table_has():
    known = Known(BASE, "multiset")
    one, other = (pa.table({"x": ["a"] * n, "y": [1] * n, "z": [1] * n}) for n in (2, 3))
    pairs = alike_rows(known, [RowHashes.of(one), RowHashes.of(other)])
    assert pairs.tolist() == [[0, 2], [1, 3]]


def test_too_many_pairs_are_none(monkeypatch):
    known, hashes = Known(BASE), [RowHashes.of(pa.table({"x": ["a"], "y": [1], "z": [1]}))] * 4
    assert len(alike_rows(known, hashes)) == 6
    monkeypatch.setattr(duplicates, "_MOST_ALIKE", 5)
    assert alike_rows(known, hashes) is None


# --- the choice ---------------------------------------------------------------------------------


@st.composite
def choices(draw):
    """Rows of a few tables, some alike, and what is needed of two cells."""
    table = np.sort(draw(st.lists(st.integers(0, 3), min_size=1, max_size=8)))
    cell = np.array(draw(st.lists(st.integers(0, 1), min_size=len(table), max_size=len(table))))
    may = [(i, j) for i, j in itertools.combinations(range(len(table)), 2) if table[i] != table[j]]
    pairs = draw(st.lists(st.sampled_from(may), unique=True, max_size=6)) if may else []
    alike = np.array(pairs, np.int64).reshape(-1, 2)
    some: list[int] = []
    for row in draw(st.permutations(range(len(table)))):
        some += [row] if independent([*some, row], alike) else []
    most = np.bincount(cell[some], minlength=2)
    need = np.array([draw(st.integers(0, int(n))) for n in most])
    kept = need[cell] > 0
    place = np.cumsum(kept) - 1
    alike = place[alike[kept[alike].all(axis=1)]].reshape(-1, 2)
    costs = st.lists(st.sampled_from([0.0, 0.5, 1.0, 3.0]), min_size=4, max_size=4)
    shared = Shared(table=table[kept], cell=cell[kept], alike=alike)
    return shared, need, np.array(draw(costs)), np.array(draw(costs))


def independent(rows, alike):
    return not any({i, j} <= set(rows) for i, j in alike.tolist())


def least(shared, need, table_cost, row_cost):
    """The least cost, by trying all sets of rows."""
    costs = []
    rows = range(len(shared.table))
    for chosen in itertools.chain.from_iterable(
        itertools.combinations(rows, n) for n in (need.sum(),)
    ):
        found = np.bincount(shared.cell[list(chosen)], minlength=2)
        if (found == need).all() and independent(chosen, shared.alike):
            opened = shared.table[list(chosen)]
            costs.append(table_cost[np.unique(opened)].sum() + row_cost[opened].sum())
    return min(costs)


@pytest.mark.slow
@settings(deadline=None)
@given(case=choices())
def test_the_choice_is_the_cheapest_of_all(case):
    shared, need, table_cost, row_cost = case
    if not need.any():
        return
    choice = cheapest_tables(shared, need, table_cost, row_cost, time_limit=30)
    wanted = least(*case)
    assert choice.bound == pytest.approx(wanted, abs=1e-6)
    inside = np.isin(shared.table, choice.tables)
    few = Shared(
        table=shared.table[inside], cell=shared.cell[inside], alike=renumbered(shared.alike, inside)
    )
    assert least(few, need, table_cost, row_cost) == pytest.approx(wanted, abs=1e-6)
    assert independent(choice.rows.tolist(), shared.alike)


def renumbered(alike, inside):
    place = np.cumsum(inside) - 1
    return place[alike[inside[alike].all(axis=1)]].reshape(-1, 2)


def test_a_table_with_few_columns_is_left_where_it_would_shut_out_many():
    # The row of the third table is like both of the first, which are not alike.
    shared = Shared(
        table=np.array([0, 0, 1]), cell=np.zeros(3, np.int64), alike=np.array([[0, 2], [1, 2]])
    )
    choice = cheapest_tables(
        shared, np.array([2]), np.array([5.0, 1.0]), np.zeros(2), time_limit=30
    )
    assert (choice.tables, choice.rows.tolist()) == ([0], [0, 1])
    assert choice.bound == pytest.approx(5)


# Three rows of three cells, of which one can be taken, and a table with rows of all cells. The
# relaxation takes half of each row, at a cost of 6.5.
HALVED = Shared(
    table=np.array([0, 1, 2, 3, 3, 3]),
    cell=np.array([0, 1, 2, 0, 1, 2]),
    alike=np.array([[0, 1], [0, 2], [1, 2]]),
)


def choice_of_halved():
    cost = np.array([1.0, 1.0, 1.0, 10.0])
    return cheapest_tables(HALVED, np.ones(3, np.int64), cost, np.zeros(4), time_limit=30)


def test_what_the_relaxation_halves_is_searched_as_a_whole():
    choice = choice_of_halved()
    assert choice.tables == [3]
    assert choice.bound == pytest.approx(10)


def test_what_was_found_is_kept_if_the_time_ends_in_the_last_search(monkeypatch):
    searches, solve = [], LinearModel.solve

    def solved(self, **limits):
        searches.append(limits)
        return Answer("limit") if len(searches) == 3 else solve(self, **limits)

    monkeypatch.setattr(LinearModel, "solve", solved)
    choice = choice_of_halved()
    assert len(searches) == 3
    assert choice.tables == [3]
    assert choice.bound == pytest.approx(6.5)


def test_a_choice_among_many_tables_is_close_to_the_cheapest(monkeypatch):
    random = np.random.default_rng(5)
    table = np.sort(random.integers(0, 60, 900))
    person = random.integers(0, 500, 900)
    pairs = [(i, j) for i, j in itertools.combinations(range(900), 2) if person[i] == person[j]]
    alike = np.array([(i, j) for i, j in pairs if 0 < table[j] - table[i] < 20])
    need, row_cost = np.full(4, 70), random.uniform(0, 1, 60)
    table_cost = random.uniform(1, 9, 60)

    def bound(inside):
        few = Shared(table=table[inside], cell=person[inside] % 4, alike=renumbered(alike, inside))
        return cheapest_tables(few, need, table_cost, row_cost, time_limit=30)

    choice = bound(np.ones(900, bool))
    monkeypatch.setattr(shared_rows, "_GAP", 0.0)
    exact = bound(np.ones(900, bool)).bound
    assert choice.bound <= exact * (1 + 1e-9)
    assert exact <= bound(np.isin(table, choice.tables)).bound <= choice.bound * 1.002
