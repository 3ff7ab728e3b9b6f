"""Plans of the same cost: no exchange of rows gives one that comes earlier in the documented order."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import equipoise as eq
from enumeration import within
from equipoise.plans.planner import make_plan
from equipoise.plans.problem import pose
from equipoise.plans.request import PlanRequest
from equipoise.plans.ties import order_of, settle_ties

TABLES = st.sampled_from([(2, 2), (3, 2), (2, 3)]).flatmap(
    lambda shape: st.lists(
        st.integers(1, 9), min_size=shape[0] * shape[1], max_size=shape[0] * shape[1]
    ).map(lambda n: np.reshape(n, shape))
)


def counts_of(have):
    cells = {(f"g{i}", f"y{y}"): int(n) for i, line in enumerate(have) for y, n in enumerate(line)}
    return eq.Counts.from_mapping(cells, sensitive=["s"], label="y")


def rows_after(plan):
    problem = pose(plan.counts, plan.request)
    rows = problem.have.copy()
    for counts, sign in ((plan.add, 1), (plan.delete, -1)):
        for (line, label), n in zip(counts.codes.tolist(), counts.rows.tolist(), strict=True):
            rows[line, label] += sign * n
    return problem, rows


def exchanged(rows, steps):
    """All tables that differ from some rows in one cell, or in two."""
    cells = range(rows.size)
    pairs = [*((i, i) for i in cells), *itertools.combinations(cells, 2)]
    for (i, j), a, b in itertools.product(pairs, steps, steps):
        new = rows.ravel().copy()
        new[i] += a
        new[j] += b if i != j else 0
        if (new >= 0).all():
            yield new.reshape(rows.shape)


def value_of(rows, have, objective):
    change = rows - have
    return {
        "cost": 0,
        "rows": int(rows.sum()),
        "additions": int(change.clip(0).sum()),
        "groups": int(change.any(axis=1).sum()),
    }[objective]


@pytest.mark.slow
@pytest.mark.parametrize("objective", ["cost", "rows", "additions", "groups"])
@settings(max_examples=5, deadline=None)
@given(
    have=TABLES,
    tolerance=st.sampled_from([0.2, 0.34, 0.5]),
    reference=st.sampled_from(["new", "original"]),
    delete=st.sampled_from([0.5, 1, 2]),
)
def test_no_exchange_gives_an_earlier_plan_of_the_same_cost(
    objective, have, tolerance, reference, delete
):
    request = PlanRequest(
        objective=objective,
        tolerance=tolerance,
        allow="both",
        reference=reference,
        cost_delete={"*": delete},
    )
    plan = make_plan(counts_of(have), request, explain=False)
    problem, rows = rows_after(plan)
    tables = np.array(list(exchanged(rows, (1, -1) if delete == 1 else (1, -1, 2, -2))))
    good = within(tables, have, tolerance, reference=reference)
    good &= (tables.sum(axis=2) > 0).all(axis=1) & (tables.sum(axis=1) > 0).all(axis=1)
    value = value_of(rows, have, objective)
    for other in tables[good]:
        cost = problem.cells.total_cost(other)
        if abs(cost - plan.cost) > 1e-9 or value_of(other, have, objective) > value:
            continue
        assert order_of(problem, rows) <= order_of(problem, other), (rows, other)


def test_the_first_cells_change():
    problem = pose(counts_of([[4, 6], [4, 6]]), PlanRequest(tolerance=0.5, min_rows=24))
    last = np.array([[4, 6], [4, 10]])
    assert settle_ties(problem, last, None).tolist() == [[8, 6], [4, 6]]


def test_fewer_rows_change_at_the_same_cost():
    """Deleting a row of the first group costs as much as adding two to the second."""
    request = PlanRequest(tolerance=0.5, allow="both", cost_delete={"*": 2.0})
    problem = pose(counts_of([[6, 6], [6, 6]]), request)
    more = np.array([[6, 6], [8, 6]])
    assert settle_ties(problem, more, None).tolist() == [[5, 6], [6, 6]]


def test_large_tables_are_left_as_they_are():
    have = np.full((60, 2), 5)
    problem = pose(counts_of(have), PlanRequest(tolerance=0.5))
    rows = have.copy()
    rows[-1, 0] += 1
    assert settle_ties(problem, rows, None) is rows


def test_prices_that_differ_a_little_are_no_tie_beside_one_that_is_far_larger():
    rows = {(f"g{g}", f"y{y}"): 1000 for g in range(3) for y in range(2)}
    counts = eq.Counts.from_mapping(rows, sensitive=["g"], label="y")
    plan = eq.plan(
        counts,
        tolerance=0.1,
        reference="original",
        at_least={"y=y0": 3030, "g=g2, y=y1": 1010},
        cost_add={"g=g0": 1000.3, "g=g1": 1000, "g=g2": 1e9},
    )
    assert plan.cost == 30 * 1000 + 10 * 1e9
