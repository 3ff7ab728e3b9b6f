"""Limits are linear functions of the rows: solvers get floats, the judge decides in fractions."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import equipoise as eq
from equipoise.errors import InputError
from equipoise.plans.limits import limit_rows, limit_share

HAVE = np.array([[3, 7], [4, 6]])
CELLS = np.array([0, 1])


@pytest.mark.parametrize(
    ("kind", "rows", "slack"),
    [("at_least", 12, -1), ("available", 1, 0), ("min_rows", 20, 3), ("max_rows", 20, 0)],
)
def test_a_limit_on_rows_leaves_a_whole_number(kind, rows, slack):
    cells = CELLS if kind in ("at_least", "available") else np.arange(4)
    aside = 1 if kind == "min_rows" else 0
    limit = limit_rows(kind, "*", rows, cells, aside=aside)
    after = np.array([[4, 7], [5, 6]] if kind == "min_rows" else [[4, 7], [4, 5]])
    assert limit.slack(after, HAVE) == slack


@given(
    rows=st.lists(st.integers(0, 60), min_size=4, max_size=4),
    share=st.sampled_from([0.5, 0.3, 0.333, 0.12345, 0.9]),
    tolerance=st.sampled_from([0.0, 0.05, 0.2]),
)
def test_a_share_is_judged_exactly_and_solvers_get_the_same_limit(rows, share, tolerance):
    after = np.array(rows).reshape(2, 2)
    exact, room = Fraction(str(share)), Fraction(str(tolerance))
    group, everything = int(after[0].sum()), int(after.sum())
    off = abs(group - exact * everything)
    limits = list(limit_share("g", share, tolerance, CELLS, 4))
    held = all(limit.slack(after, HAVE) >= 0 for limit in limits)
    assert held == (off <= room * everything if room else off < 1)
    for limit in limits:
        cells, factors = limit.coefficients
        value = float(factors @ after.ravel()[cells])
        assert value == pytest.approx(float(limit.value(after, HAVE)), abs=1e-9)
        inside = limit.low - 1e-9 <= value <= limit.high + 1e-9
        assert inside == (limit.slack(after, HAVE) >= 0)


def test_limits_say_what_they_ask_for():
    (near,) = limit_share("sex=w", 0.5, 0.0, CELLS, 4)
    low, high = limit_share("sex=w", 0.5, 0.01, CELLS, 4)
    assert near.words == "0.5 of all rows are sex=w, within a row"
    assert low.words == "at least 0.49 of all rows are sex=w"
    assert high.words == "at most 0.51 of all rows are sex=w"
    assert high.measured(HAVE, HAVE, 0) == 0.5


@pytest.mark.parametrize("most", [10**15, 10**18, 10**30])
def test_huge_numbers_of_available_rows_are_no_limit(most):
    counts = eq.count("adult", sensitive_features=["sex"], label="income")
    plan = eq.plan(counts, tolerance=0.1)
    limits = {"available": {"*": most, "sex=Male, income=>50K": most}, "max_rows": most}
    assert eq.plan(counts, tolerance=0.1, **limits).cells == plan.cells


@pytest.mark.parametrize("limit", [{"min_rows": 10**19}, {"at_least": {"sex=Male": 10**16}}])
def test_more_rows_than_can_be_planned_for_are_refused(limit):
    counts = eq.count("adult", sensitive_features=["sex"], label="income")
    with pytest.raises(InputError, match="more than can be planned for"):
        eq.plan(counts, tolerance=0.1, **limit)


@pytest.mark.parametrize(
    "costs",
    [
        {"cost_add": {"*": 1e300}},
        {"cost_add": {"*": 1e9}, "cost_delete": {"*": 1e-9}, "objective": "groups"},
    ],
)
def test_costs_of_any_size_overflow_nowhere(costs):
    counts = eq.count("adult", sensitive_features=["sex"], label="income")
    plan = eq.plan(counts, tolerance=0.1, allow="both", **costs)
    assert plan.reached
    assert 0 <= plan.bound <= plan.cost
