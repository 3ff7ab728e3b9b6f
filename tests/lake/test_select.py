"""Selection: as much as can be had, for the least, within the limits, and a bound that holds."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from equipoise.errors import InputError
from equipoise.lake.cover.model import CoverAnswer, CoverModel
from equipoise.lake.cover.selection import select

COSTS = st.sampled_from([0.0, 0.5, 1.0, 1.0, 3.0, 8.0])


@st.composite
def lakes(draw, tables=7, cells=3, most=9):
    """Rows, need, and costs that are the same for all tables or differ."""
    n, g = draw(st.integers(1, tables)), draw(st.integers(1, cells))

    def costs():
        return draw(st.one_of(COSTS, st.lists(COSTS, min_size=n, max_size=n)))

    offered = st.lists(st.one_of(st.just(0), st.integers(0, most)), min_size=g, max_size=g)
    rows = draw(st.lists(offered, min_size=n, max_size=n))
    need = draw(st.lists(st.integers(0, 2 * most), min_size=g, max_size=g))
    return np.array(rows), np.array(need), {"table_cost": costs(), "row_cost": costs()}


def of_each(cost, n):
    return np.broadcast_to(np.asarray(cost, float), n)


def cost_of(take, table_cost, row_cost):
    f, c = of_each(table_cost, len(take)), of_each(row_cost, len(take))
    return float(f[take.any(axis=1)].sum() + (c * take.sum(axis=1)).sum())


def cheapest_cover(rows, need, table_cost, row_cost):
    """The least cost over all subsets of the tables, each cell filled from the cheapest."""
    n, wanted = len(rows), np.minimum(need, rows.sum(axis=0))
    f, c = of_each(table_cost, n), of_each(row_cost, n)
    costs = []
    for chosen in itertools.product([False, True], repeat=n):
        tables = sorted(np.flatnonzero(chosen), key=lambda t: c[t])
        left, cost = wanted.copy(), f[list(tables)].sum()
        for t in tables:
            taken = np.minimum(left, rows[t])
            left, cost = left - taken, cost + c[t] * taken.sum()
        if not left.any():
            costs.append(cost)
    return min(costs)


@pytest.mark.slow
@settings(max_examples=80)
@given(lakes())
def test_all_that_can_be_had_is_taken_at_the_least_cost(lake):
    rows, need, costs = lake
    chosen = select(rows, need, **costs)
    assert (chosen.take >= 0).all()
    assert (chosen.take <= rows).all()
    assert list(chosen.found) == list(np.minimum(need, rows.sum(axis=0)))
    assert chosen.cost == pytest.approx(cost_of(chosen.take, **costs))
    assert chosen.cost == pytest.approx(cheapest_cover(rows, need, **costs))
    assert chosen.bound == chosen.cost
    assert not chosen.timed_out


@pytest.mark.slow
@given(lakes())
def test_without_time_the_choice_still_covers_and_the_bound_still_holds(lake):
    rows, need, costs = lake
    least = cheapest_cover(rows, need, **costs)
    chosen = select(rows, need, time_limit=0, **costs)
    assert list(chosen.found) == list(np.minimum(need, rows.sum(axis=0)))
    assert chosen.bound <= least * (1 + 1e-9)
    assert chosen.cost >= least * (1 - 1e-9)
    assert chosen.method == "greedy"
    assert chosen.timed_out == (chosen.bound < chosen.cost)


def all_selections(rows, need):
    """Every whole number of rows from every table for every cell."""
    n, g = rows.shape
    for taken in itertools.product(*(range(r + 1) for r in rows.ravel())):
        take = np.array(taken).reshape(n, g)
        if (take.sum(axis=0) <= need).all():
            yield take


def allowed(take, costs, budget=None, max_share=None, max_tables=None):
    return (
        (budget is None or cost_of(take, **costs) <= budget + 1e-9)
        and (max_tables is None or take.any(axis=1).sum() <= max_tables)
        and (max_share is None or take.sum(axis=1).max() <= max_share * take.sum() + 1e-9)
    )


LIMITS = st.fixed_dictionaries(
    {},
    optional={
        "budget": st.sampled_from([0.0, 1.0, 2.5, 4.0, 9.0]),
        "max_share": st.sampled_from([0.3, 0.5, 0.6, 1.0]),
        "max_tables": st.integers(1, 3),
    },
)


@pytest.mark.slow
@settings(max_examples=80)
@given(lakes(tables=3, cells=2, most=2), LIMITS)
def test_within_limits_the_rows_are_the_most_and_then_cost_the_least(lake, limits):
    rows, need, costs = lake
    fewer, cost = min(
        (-take.sum(), cost_of(take, **costs))
        for take in all_selections(rows, need)
        if allowed(take, costs, **limits)
    )
    chosen = select(rows, need, **costs, **limits)
    assert (chosen.take <= rows).all()
    assert (chosen.found <= need).all()
    assert allowed(chosen.take, costs, **limits)
    assert chosen.take.sum() == -fewer
    assert chosen.cost == pytest.approx(cost)
    assert chosen.bound == chosen.cost
    assert chosen.most == chosen.take.sum()


@pytest.mark.slow
@settings(max_examples=40)
@given(lakes(), LIMITS)
def test_without_time_the_limits_are_kept_and_the_bounds_hold(lake, limits):
    rows, need, costs = lake
    quick = select(rows, need, time_limit=0, **costs, **limits)
    sure = select(rows, need, **costs, **limits)
    for chosen in (quick, sure):
        assert (chosen.take <= rows).all()
        assert (chosen.found <= need).all()
        assert allowed(chosen.take, costs, **limits)
    assert quick.take.sum() <= sure.take.sum() <= quick.most
    if quick.take.sum() == sure.take.sum():
        assert quick.bound <= sure.cost * (1 + 1e-9) <= quick.cost * (1 + 1e-6)


@settings(max_examples=30)
@given(lakes())
def test_limits_that_bind_nothing_change_nothing(lake):
    rows, need, costs = lake
    free = select(rows, need, **costs)
    held = select(rows, need, **costs, budget=1e6, max_share=1.0, max_tables=100)
    assert held.cost == free.cost
    assert list(held.found) == list(free.found)


def random_lake(tables, cells, seed=0):
    draw = np.random.default_rng(seed)
    rows = np.where(draw.random((tables, cells)) < 0.3, draw.poisson(20, (tables, cells)), 0)
    return rows, draw.integers(50, 200, cells), draw


def test_a_lake_of_many_tables_is_covered_at_a_proved_cost():
    rows, need, draw = random_lake(150, 8)
    costs = {"table_cost": draw.uniform(1, 9, 150), "row_cost": draw.uniform(0.1, 2, 150)}
    quick, sure = (select(rows, need, time_limit=t, **costs) for t in (0, 30))
    assert sure.bound == sure.cost
    assert quick.bound <= sure.cost <= quick.cost <= 1.05 * quick.bound
    assert (sure.found == need).all()


def test_the_fewest_tables_are_counted_in_whole_tables():
    rows, need, _ = random_lake(60, 4)
    chosen = select(rows, need, time_limit=0)
    assert chosen.bound == int(chosen.bound)
    assert chosen.cost == len(chosen.opened)


def test_a_share_of_the_rows_spreads_them_over_tables():
    chosen = select([[9, 9], [3, 0], [0, 4]], [6, 4], max_share=0.5)
    assert chosen.take.sum() == 10
    assert chosen.take.sum(axis=1).max() == 5
    assert len(chosen.opened) == 3


def test_rows_spread_by_a_share_are_whole_and_no_more_than_are_needed():
    rows, need, _ = random_lake(100, 12, seed=112)
    chosen = select(rows, need, max_share=0.079)
    assert chosen.method == "HiGHS"
    assert list(chosen.found) == list(need)
    assert chosen.take.sum(axis=1).max() <= 0.079 * need.sum()
    assert chosen.bound == chosen.cost


def test_a_share_that_no_number_of_tables_can_keep_leaves_nothing():
    chosen = select([[9], [9]], [10], max_share=0.4)
    assert chosen.take.sum() == 0
    assert chosen.cost == 0
    assert chosen.most == 0


def test_a_budget_buys_as_many_rows_as_it_can():
    chosen = select([[5, 5]], [5, 5], table_cost=1, row_cost=1, budget=7)
    assert (chosen.take.sum(), chosen.most, chosen.cost) == (6, 6, 7)


def test_large_numbers_of_rows_do_not_slip_through_an_almost_closed_table():
    big = 10_000_000
    chosen = select(
        [[big, 0], [big - 1, 5], [1, 5]], [big, 5], table_cost=[50, 9, 9], row_cost=[0, 1e-6, 0]
    )
    assert list(chosen.found) == [big, 5]
    assert chosen.cost == pytest.approx(9 + 9 + (big - 1) * 1e-6)


def test_a_solver_that_finds_nothing_leaves_the_greedy_choice_and_its_bound(monkeypatch):
    lost = CoverAnswer(bound=-np.inf, timed_out=True)
    monkeypatch.setattr(CoverModel, "_solve", lambda *_: lost)
    rows, need, draw = random_lake(60, 6)
    cover = select(rows, need, table_cost=draw.uniform(1, 9, 60))
    assert cover.timed_out
    assert 0 < cover.bound < cover.cost
    assert cover.cost < 1.5 * cover.bound
    within = select(rows, need, budget=5)
    assert within.timed_out
    assert within.method == "greedy"
    assert within.cost == 5
    assert within.take.sum() < within.most <= need.sum()


def test_of_no_tables_nothing_is_taken():
    chosen = select(np.zeros((0, 2), int), [3, 4])
    assert chosen.take.shape == (0, 2)
    assert list(chosen.found) == [0, 0]
    assert (chosen.cost, chosen.bound) == (0, 0)
    assert list(chosen.opened) == []


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"need": [1]}, "rows have 2 cells but need has 1"),
        ({"need": [1, 0.5]}, "need must hold whole numbers of zero or more"),
        ({"rows": [1, 2]}, "rows must have 2 axes"),
        ({"rows": [[1, -2]]}, "rows must hold whole numbers of zero or more"),
        ({"table_cost": [1, 2]}, "table_cost must be 1 numbers"),
        ({"row_cost": -1}, "row_cost must hold numbers of zero or more, not -1"),
        ({"max_share": 0}, "max_share must be above 0 and at most 1, not 0"),
        ({"max_tables": 0}, "`max_tables` must be a whole number of at least 1, not 0"),
        ({"budget": -1}, "`budget` must be a number of at least 0, not -1"),
        ({"time_limit": -1}, "`time_limit` must be a number of at least 0"),
    ],
)
def test_requests_that_cannot_be_are_refused(options, message):
    asked = {"rows": [[1, 2]], "need": [1, 1], **options}
    with pytest.raises(InputError, match=message):
        select(asked.pop("rows"), asked.pop("need"), **asked)
