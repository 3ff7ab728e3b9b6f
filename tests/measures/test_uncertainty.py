"""Intervals and tests of UB against textbook formulas, exact fractions and scipy.stats."""

from __future__ import annotations

import math
import subprocess
import sys
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats

from equipoise.errors import CountsError, InputError
from equipoise.measures.uncertainty import arrays, p_values
from equipoise.measures.uncertainty.intervals import ub_change_interval, ub_interval
from equipoise.measures.uncertainty.p_values import adjust, p_value, too_small, weighted_p_value
from equipoise.options.measure import Sampling

Table = tuple[int, int, int, int]
SAMPLINGS: tuple[Sampling, ...] = ("rows", "groups")


@st.composite
def tables(draw: st.DrawFn, largest: int = 10**7) -> Table:
    """Draw (x, m, X, N) with a group, a rest and a label that some row has."""
    N = draw(st.integers(2, 60) | st.integers(2, largest))
    m = draw(st.integers(1, N - 1))
    X = draw(st.integers(1, N))
    return draw(st.integers(max(0, m + X - N), min(m, X))), m, X, N


def all_tables(N: int) -> np.ndarray[Any, np.dtype[np.int64]]:
    """List every table of N rows with a group, a rest, and both labels."""
    rows = [
        (x, m, X, N)
        for m in range(1, N)
        for X in range(1, N)
        for x in range(max(0, m + X - N), min(m, X) + 1)
    ]
    return np.array(rows).T


def ub(x: int, m: int, X: int, N: int) -> float:
    return float(1 - Fraction(x, m) / Fraction(X, N))


# --- intervals -----------------------------------------------------------------------------


def textbook_wilson(x: int, n: int, confidence: float) -> tuple[float, float]:
    ci = stats.binomtest(x, n).proportion_ci(confidence, method="wilson")
    low, high = float(ci.low), float(ci.high)
    near = 2 if n <= 50 else 3
    # the replacement is meant to widen; at 80 % and less it would narrow
    if 1 <= x <= near:
        low = min(low, stats.chi2.ppf(1 - confidence, 2 * x) / (2 * n))
    if 1 <= n - x <= near:
        high = max(high, 1 - stats.chi2.ppf(1 - confidence, 2 * (n - x)) / (2 * n))
    return low, high


def textbook_interval(x: int, m: int, X: int, N: int, confidence: float) -> tuple[float, float]:
    """Donner and Zou's limits of p1/p0 as printed, mapped to UB."""
    p1, p0, P = x / m, (X - x) / (N - m), m / N
    l1, u1 = textbook_wilson(x, m, confidence)
    l0, u0 = textbook_wilson(X - x, N - m, confidence)
    low = p1 * p0 - math.sqrt((p1 * p0) ** 2 - l1 * u0 * (2 * p1 - l1) * (2 * p0 - u0))
    high = p1 * p0 + math.sqrt((p1 * p0) ** 2 - u1 * l0 * (2 * p1 - u1) * (2 * p0 - l0))
    ratios = high / (l0 * (2 * p0 - l0)), low / (u0 * (2 * p0 - u0))
    return (1 - 1 / (P + (1 - P) / ratios[0])), (1 - 1 / (P + (1 - P) / ratios[1]))


@pytest.mark.parametrize("confidence", [0.8, 0.95, 0.999])
@pytest.mark.parametrize(
    "table",
    [
        (1179, 10771, 7841, 32561),
        (4, 10, 30, 100),
        (1, 12, 30, 100),
        (2, 30, 30, 100),
        (3, 40, 30, 1000),
        (3, 60, 30, 1000),
        (58, 60, 500, 1000),
        (38, 60, 39, 1000),
    ],
)
def test_interval_is_the_textbook_one(table: Table, confidence: float) -> None:
    interval = ub_interval(*table, confidence=confidence, sampling="groups")
    assert_allclose(interval, textbook_interval(*table, confidence), rtol=1e-7)


def test_random_rows_add_the_variance_of_the_share() -> None:
    x, m, X, N = 2_000_000, 10_000_000, 30_000_000, 100_000_000
    p1, p0, f, P = x / m, (X - x) / (N - m), X / N, m / N
    fixed = ub_interval(x, m, X, N, sampling="groups")
    random = ub_interval(x, m, X, N, sampling="rows")
    z = stats.norm.ppf(0.975)
    added = (z * p1 / f * (p1 - p0) / f) ** 2 * P * (1 - P) / N
    estimate = ub(x, m, X, N)
    for limit, wider in zip(fixed, random, strict=True):
        assert_allclose((wider - estimate) ** 2, (limit - estimate) ** 2 + added, rtol=1e-3)


@given(tables(), st.sampled_from(SAMPLINGS), st.sampled_from([0.01, 0.5, 0.8, 0.95, 0.9999]))
def test_interval_contains_the_estimate_and_stays_in_range(
    table: Table, sampling: Sampling, confidence: float
) -> None:
    low, high = ub_interval(*table, sampling=sampling, confidence=confidence)
    tolerance = 1e-12 * table[3] / table[1]
    assert -np.inf < low <= ub(*table) + tolerance
    assert ub(*table) - tolerance <= high <= 1
    if sampling == "groups":
        assert low >= 1 - table[3] / table[1] - tolerance


@given(tables(), st.sampled_from(SAMPLINGS))
def test_more_confidence_is_a_wider_interval(table: Table, sampling: Sampling) -> None:
    levels = [0.1, 0.5, 0.6, 0.8, 0.9, 0.95, 0.99, 0.9999]
    limits = [ub_interval(*table, confidence=c, sampling=sampling) for c in levels]
    lows, highs = np.array(limits).T
    tolerance = 1e-9 * (1 + np.abs(lows).max())
    assert (np.diff(lows) <= tolerance).all()
    assert (np.diff(highs) >= -1e-9).all()


@given(tables())
def test_random_rows_are_never_more_certain_than_fixed_groups(table: Table) -> None:
    fixed, random = ub_interval(*table, sampling="groups"), ub_interval(*table, sampling="rows")
    assert random.low <= fixed.low + 1e-9 * abs(fixed.low) + 1e-12
    assert random.high >= fixed.high - 1e-12


@given(tables(largest=10_000))
def test_group_and_rest_have_the_same_interval_in_other_units(table: Table) -> None:
    """P·R_g + (1-P)·R_rest = 1 holds for the limits too when group sizes are fixed."""
    x, m, X, N = table
    low, high = ub_interval(x, m, X, N, sampling="groups")
    rest_low, rest_high = ub_interval(X - x, N - m, X, N, sampling="groups")
    assert_allclose(m * low + (N - m) * rest_high, 0, atol=1e-7 * N)
    assert_allclose(m * high + (N - m) * rest_low, 0, atol=1e-7 * N)


def test_both_labels_agree_on_whether_zero_is_inside_when_groups_are_fixed() -> None:
    """The limits themselves do not map to each other, since f is estimated; the verdict does."""
    x, m, X, N = all_tables(24)
    low, high = ub_interval(x, m, X, N, sampling="groups")
    other_low, other_high = ub_interval(m - x, m, N - X, N, sampling="groups")
    clear = (np.abs(low) > 1e-9) & (np.abs(high) > 1e-9)
    assert clear.mean() > 0.9
    assert_array_equal((low > 0)[clear], (other_high < 0)[clear])
    assert_array_equal((high < 0)[clear], (other_low > 0)[clear])
    assert (low > 0).any()


@pytest.mark.parametrize("sampling", SAMPLINGS)
def test_edges_of_the_interval(sampling: Sampling) -> None:
    def interval(*table: int) -> tuple[float, float]:
        low, high = ub_interval(*table, sampling=sampling)
        return float(low), float(high)

    low, high = interval(0, 20, 30, 100)
    assert high == 1
    assert 0 < low < 1
    low, high = interval(20, 20, 30, 100)
    assert low < ub(20, 20, 30, 100) < high < 0
    low, high = interval(20, 30, 20, 100)  # no label outside the group
    assert low <= 1 - 100 / 30 + 1e-12 < high < 0
    low, high = interval(20, 20, 100, 100)  # every row has the label
    assert low < 0 < high


def test_whole_table_is_zero_and_the_undefined_is_nan() -> None:
    assert [float(v) for v in ub_interval(30, 100, 30, 100)] == [0, 0]
    rounded = ub_interval(0.1, 0.3 - 1e-16, 0.1, 0.3, effective=(3, 0))
    assert [float(v) for v in rounded] == [0, 0]
    for table in (0, 0, 30, 100), (0, 20, 0, 100), (0, 100, 0, 100), (0, 0, 0, 0):
        assert np.isnan(ub_interval(*table)).all(), table


@given(tables(largest=10_000), st.sampled_from(SAMPLINGS), st.floats(0.01, 100))
def test_equal_weights_change_nothing(table: Table, sampling: Sampling, weight: float) -> None:
    x, m, X, N = table
    weighted = ub_interval(
        x * weight, m * weight, X * weight, N * weight, sampling=sampling, effective=(m, N - m)
    )
    plain = ub_interval(*table, sampling=sampling)
    assert_allclose(weighted, plain, rtol=1e-6, atol=1e-6)


def test_unequal_weights_widen() -> None:
    plain = ub_interval(40, 100, 300, 1000)
    weighted = ub_interval(40, 100, 300, 1000, effective=(25.5, 400.0))
    assert weighted.low < plain.low
    assert plain.high < weighted.high
    none = ub_interval([0.0, 0.3], [9.5, 9.5], 20.5, 80.0, effective=([4.0, 4.0], 60.0))
    assert none.high[0] == 1
    assert none.low[0] < 1
    assert (none.low[1], none.high[1]) > (-np.inf, ub_interval(0.3, 9.5, 20.5, 80).low)


# --- p-values ---------------------------------------------------------------------------------


def exact_mid_p(x: int, m: int, X: int, N: int) -> Fraction:
    ways = [
        math.comb(X, j) * math.comb(N - X, m - j) for j in range(max(0, m + X - N), min(m, X) + 1)
    ]
    seen = math.comb(X, x) * math.comb(N - X, m - x)
    twice = 2 * sum(w for w in ways if w < seen) + sum(w for w in ways if w == seen)
    return Fraction(twice, 2 * math.comb(N, m))


@pytest.mark.parametrize("N", [2, 3, 7, 12, 19])
def test_small_tables_have_the_exact_mid_p(N: int) -> None:
    grid = all_tables(N)
    assert_allclose(p_value(*grid), [float(exact_mid_p(*t)) for t in grid.T.tolist()], rtol=1e-12)


@pytest.mark.parametrize(
    "table",
    [
        (3, 20, 2_400_000, 10_000_000),
        (20, 20, 2_400_000, 10_000_000),
        (0, 9_999_985, 15, 10_000_000),
        (9, 400, 3_000, 1_000_000),
        (60, 400, 3_000, 1_000_000),
        (140, 400, 3_000, 1_000_000),
        (3_000 - 2, 999_600, 3_000, 1_000_000),
        (1, 490, 1_000, 100_000),
        (0, 490, 1_000, 100_000),
        (45, 99, 99, 2_000),
    ],
)
def test_rare_labels_in_large_tables_have_the_exact_mid_p(table: Table) -> None:
    expected = exact_mid_p(*table)
    assert expected > Fraction(1, 10**300)
    assert_allclose(p_value(*table), float(expected), rtol=1e-11)


def test_hopelessly_small_p_is_zero() -> None:
    assert p_value(900, 1_000, 900, 10**7) == 0


@pytest.mark.parametrize(
    "table",
    [(1179, 10771, 7841, 32561), (10, 30, 50, 100), (5, 30, 50, 100), (480, 500, 900, 1000)],
)
def test_large_tables_have_the_chi_squared_p(table: Table) -> None:
    x, m, X, N = table
    cells = [[x, m - x], [X - x, N - m - X + x]]
    statistic = stats.chi2_contingency(cells, correction=False).statistic * (N - 1) / N
    assert_allclose(p_value(*table), stats.chi2.sf(statistic, 1), rtol=1e-9)


def test_the_choice_of_test_follows_the_least_expected_count() -> None:
    at_five, below_five = (2, 10, 50, 100), (2, 10, 49, 100)
    statistic = 99 * (2 - 5) ** 2 * 100**2 / (10 * 90 * 50 * 50)
    assert_allclose(p_value(*at_five), stats.chi2.sf(statistic, 1), rtol=1e-12)
    assert_allclose(p_value(*below_five), float(exact_mid_p(*below_five)), rtol=1e-12)


@given(tables())
def test_p_is_that_of_any_turn_of_the_table(table: Table) -> None:
    x, m, X, N = table
    turns = [(x, m, X, N), (m - x, m, N - X, N), (X - x, N - m, X, N), (x, X, m, N)]
    p = p_value(*np.array(turns).T)
    assert_array_equal(p, np.full(4, p[0]))
    assert np.isnan(p[0]) == (X == N)


@pytest.mark.parametrize("table", [(0, 0, 3, 9), (0, 4, 0, 9), (3, 9, 3, 9), (4, 4, 9, 9)])
def test_p_is_nan_where_nothing_can_be_compared(table: Table) -> None:
    assert np.isnan(p_value(*table))
    assert too_small([True, False], *table[1:]).all()


def test_impossible_and_fractional_counts_are_refused() -> None:
    with pytest.raises(CountsError, match="fewer than 0"):
        p_value(5, 4, 10, 40)
    with pytest.raises(CountsError, match="fewer than 0"):
        p_value(0, 35, 10, 40)
    with pytest.raises(CountsError, match="whole"):
        p_value(1.5, 4, 10, 40)


@given(tables(largest=10_000), st.floats(0.01, 100))
def test_equal_weights_have_the_p_of_the_rows(table: Table, weight: float) -> None:
    x, m, X, N = table
    sums = x * weight, m * weight, X * weight, N * weight
    assert_array_equal(weighted_p_value(*sums, effective=(m, N - m)), p_value(*table))


def test_weighted_p_counts_effective_rows_and_keeps_the_undefined() -> None:
    assert weighted_p_value(40, 100, 300, 1000, effective=(20.3, 200.2)) > p_value(
        40, 100, 300, 1000
    )
    m, X = np.array([[0.0], [2.5], [9.0]]), np.array([0.0, 0.1, 8.9, 9.0])
    p = weighted_p_value(
        np.minimum(m, X) / 3, m, X, 9.0, effective=([[0], [2], [6]], [[6], [4], [0]])
    )
    assert_array_equal(np.isnan(p[1]), [True, False, False, True])
    assert p[1, 1] == 1
    assert np.isnan(p[[0, 2]]).all()


@pytest.mark.parametrize("N", [2, 9, 20, 40])
def test_too_small_asks_what_the_most_extreme_outcome_of_a_side_could_say(N: int) -> None:
    x, m, X, _ = all_tables(N)
    p, fewer = p_value(x, m, X, N), x * N < m * X
    for side in (True, False):
        least = np.full((N, N), np.inf)
        chosen = (fewer == side) & (x * N != m * X)
        np.minimum.at(least, (m[chosen], X[chosen]), p[chosen])
        sizes, totals = np.arange(1, N)[:, None], np.arange(1, N)
        there = np.isfinite(least[1:, 1:])
        mark = too_small(side, sizes, totals, N, alpha=0.05)
        assert_array_equal(mark[there], (least[1:, 1:] > 0.05)[there])


def test_a_rare_label_needs_a_large_group_to_be_missed() -> None:
    sizes = np.arange(1, 600)[:, None]
    lacking = too_small(True, sizes, [100, 5_000], 10_000)
    assert lacking.shape == (599, 2)
    assert lacking[:, 0].sum() > 50 * lacking[:, 1].sum()
    assert not too_small(False, 1, 100, 10_000)  # a single row can be a surprise


# --- shapes ----------------------------------------------------------------------------------


def lattice(labels: int, groups: int = 3000) -> tuple[Any, Any, Any, int]:
    rng = np.random.default_rng(labels)
    x = rng.integers(0, rng.integers(1, 60, (groups, 1)), (groups, labels))
    m = x.sum(axis=1, keepdims=True)
    share = rng.dirichlet(np.full(labels, 0.5))
    X = x.max(axis=0) + np.rint(1e6 * share).astype(int)
    X[-1] += m.max()
    return x, m, X, int(X.sum())


@pytest.mark.parametrize("labels", [1, 2, 3, 5])
def test_a_lattice_is_answered_cell_by_cell(labels: int) -> None:
    x, m, X, N = lattice(labels)
    every = [np.broadcast_to(a, x.shape).reshape(-1) for a in (x, m, X, N)]
    assert_array_equal(p_value(x, m, X, N).reshape(-1), p_value(*every))
    for one, other in zip(ub_interval(x, m, X, N), ub_interval(*every), strict=True):
        assert_array_equal(one.reshape(-1), other)


def test_chunks_do_not_show(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = lattice(3, groups=200)
    before = [p_value(*whole), *ub_interval(*whole)]
    monkeypatch.setattr(arrays, "CHUNK", 50)
    monkeypatch.setattr(p_values, "CHUNK", 50)
    after = [p_value(*whole), *ub_interval(*whole)]
    for one, other in zip(before, after, strict=True):
        assert_array_equal(one, other)


def test_every_argument_broadcasts() -> None:
    assert p_value([1, 2, 3], 9, 30, 100).shape == (3,)
    assert p_value(1, 9, [30, 31], 100).shape == (2,)
    assert p_value(1, [8, 9], 30, [[100], [200], [300]]).shape == (3, 2)
    assert ub_interval(1, 9, [30, 31], [[100], [200], [300]]).low.shape == (3, 2)
    assert ub_interval(1, 9, 30, 100, effective=([5, 6], [[50]])).low.shape == (1, 2)
    assert p_value(1, 9, 30, 100).shape == ()
    assert p_value(np.empty((0, 2), int), np.empty((0, 1), int), [3, 4], 7).shape == (0, 2)
    assert ub_interval(np.empty((0, 2)), np.empty((0, 1)), [3, 4], 7).high.shape == (0, 2)


# --- q-values --------------------------------------------------------------------------------


def slow_adjust(p: list[float], method: str) -> list[float]:
    """The definition: the least level, over all cuts t >= p, at which the cut would be made."""
    n = len(p)
    factor = sum(1 / i for i in range(1, n + 1)) if method == "by" else 1.0
    return [
        min(1.0, *(n * factor * t / sum(other <= t for other in p) for t in p if t >= mine))
        for mine in p
    ]


@given(st.lists(st.floats(0, 1), min_size=1, max_size=30), st.sampled_from(["bh", "by"]))
def test_adjusted_is_the_definition(p: list[float], method: Any) -> None:
    q = adjust(p, method)
    reference = stats.false_discovery_control(p, method=method)
    assert_allclose(q, slow_adjust(p, method), rtol=1e-12, atol=1e-300)
    assert_allclose(q, reference, rtol=1e-12, atol=1e-300)


def test_nan_is_no_test() -> None:
    p = np.array([[0.01, np.nan], [0.2, 0.02]])
    q = adjust(p)
    assert_allclose(q, [[0.03, np.nan], [0.2, 0.03]])
    assert np.isnan(p[0, 1])
    assert p[1, 1] == 0.02
    assert np.isnan(adjust([np.nan, np.nan])).all()
    assert adjust([]).shape == (0,)
    assert_array_equal(adjust(0.03), 0.03)


# --- change ------------------------------------------------------------------------------------


def test_change_squares_and_adds() -> None:
    change = ub_change_interval(0.1, 0.0, 0.4, 0.6, 0.2, 0.7)
    assert_allclose(change.change, 0.5)
    assert_allclose(change.low, 0.5 - math.hypot(0.4, 0.3))
    assert_allclose(change.high, 0.5 + math.hypot(0.1, 0.1))
    z = stats.norm.ppf(0.975)
    assert_allclose(change.p, 2 * stats.norm.sf(z * 0.5 / math.hypot(0.4, 0.3)))


widths = st.floats(0.001, 2)


@given(st.floats(-3, 1), st.floats(-3, 1), st.tuples(widths, widths, widths, widths))
def test_change_and_its_p_agree(a: float, b: float, w: tuple[float, ...]) -> None:
    before, after = (a, a - w[0], a + w[1]), (b, b - w[2], b + w[3])
    there = ub_change_interval(*before, *after)
    back = ub_change_interval(*after, *before)
    assert_allclose([there.low, there.high], [-back.high, -back.low])
    assert_allclose(there.p, back.p)
    if abs(there.p - 0.05) > 1e-9:
        assert (there.p < 0.05) == (there.low > 0 or there.high < 0)


def test_change_of_the_certain_and_the_undefined() -> None:
    same = ub_change_interval(0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
    moved = ub_change_interval(0.0, 0.0, 0.0, 0.2, 0.2, 0.2)
    undefined = ub_change_interval(np.nan, np.nan, np.nan, 0.2, 0.1, 0.3)
    assert (float(same.p), float(moved.p)) == (1, 0)
    assert np.isnan([undefined.change, undefined.low, undefined.high, undefined.p]).all()


# --- options and imports -------------------------------------------------------------------------


def test_wrong_options_say_what_is_allowed() -> None:
    wrong: Any = "columns"
    with pytest.raises(InputError, match="one of 'rows', 'groups', not 'columns'"):
        ub_interval(1, 2, 3, 4, sampling=wrong)
    with pytest.raises(InputError, match="one of 'bh', 'by', not 'columns'"):
        adjust([0.1], wrong)
    with pytest.raises(
        InputError, match="`confidence` must be a number above 0 and below 1, not 95"
    ):
        ub_interval(1, 2, 3, 4, confidence=95)
    with pytest.raises(InputError, match="alpha"):
        too_small(True, 2, 3, 4, alpha=0)


def test_scipy_is_loaded_late_and_stats_never() -> None:
    script = """
import sys
from equipoise.measures.uncertainty import intervals as i, p_values as u
assert "scipy" not in sys.modules
u.adjust(u.p_value(3, 9, 30, 100)), i.ub_interval(3, 9, 30, 100), u.too_small(True, 9, 30, 100)
i.ub_change_interval(0, 0, 0, 0, 0, 0)
assert "scipy" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", script], check=True)
