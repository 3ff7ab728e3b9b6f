"""Bounds on what a sample says: against whole enumerations, and against published numbers."""

from __future__ import annotations

import math
import time
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from equipoise.errors import InputError
from equipoise.lake.sampling import bounds
from equipoise.lake.sampling.bounds import (
    draws_needed,
    hypergeometric_interval,
    hypergeometric_lower,
    hypergeometric_upper,
    serfling_error,
    serfling_sample_size,
)

CONFIDENCES = (0.5, 0.8, 0.9, 0.95, 0.99)


def chance(x, population, rows, sample):
    """Exactly how likely it is to find just so many."""
    if x > sample or x > rows or sample - x > population - rows:
        return Fraction(0)
    ways = math.comb(rows, x) * math.comb(population - rows, sample - x)
    return Fraction(ways, math.comb(population, sample))


def at_least_so_many(x, *table):
    return sum(chance(i, *table) for i in range(x, table[2] + 1))


@st.composite
def samples(draw, largest=30):
    population = draw(st.integers(1, largest))
    sample = draw(st.integers(0, population))
    return population, sample


# ---------------------------------------------------------------------------- Serfling


def test_the_published_size_is_the_floor_and_the_guarantee_needs_one_row_more():
    asked = {"cells": 12, "error": 0.05, "failure": 0.05}
    assert serfling_sample_size(60_798, **asked, rounding="floor") == 1_210
    assert serfling_sample_size(60_798, **asked) == 1_211
    assert serfling_error(60_798, 1_210, cells=12) > 0.05 >= serfling_error(60_798, 1_211, cells=12)


@given(
    st.integers(1, 10**7),
    st.integers(1, 500),
    st.floats(0.001, 0.5),
    st.floats(1e-6, 0.5),
)
def test_a_size_is_the_smallest_whose_error_is_within(population, cells, error, failure):
    n = serfling_sample_size(population, cells, error, failure)
    assert 1 <= n <= population
    assert serfling_error(population, n, cells, failure) <= error * (1 + 1e-9)
    if n > 1:
        assert serfling_error(population, n - 1, cells, failure) > error * (1 - 1e-9)


def test_frequencies_stay_within_the_error_at_least_as_often_as_promised():
    population, rows = 400, 150
    n = serfling_sample_size(population, cells=1, error=0.1, failure=0.2)
    far = sum(
        chance(x, population, rows, n) for x in range(n + 1) if abs(x / n - rows / population) > 0.1
    )
    assert n < population
    assert 0 < far <= 0.2


def test_all_rows_leave_no_error():
    assert serfling_error(50, 50, cells=3) == 0


# ----------------------------------------------------------------------- hypergeometric


@given(samples(), st.sampled_from(CONFIDENCES))
def test_intervals_hold_whatever_the_table_as_often_as_promised(drawn, confidence):
    population, sample = drawn
    found = [hypergeometric_interval(population, sample, x, confidence) for x in range(sample + 1)]
    for rows in range(population + 1):
        covered = sum(
            chance(x, population, rows, sample)
            for x, (low, high) in enumerate(found)
            if low <= rows <= high
        )
        assert covered >= Fraction(str(confidence))


@given(samples(), st.data(), st.sampled_from(CONFIDENCES))
def test_bounds_are_the_tightest_that_brute_force_finds(drawn, data, confidence):
    population, sample = drawn
    found = data.draw(st.integers(0, sample))
    possible = range(found, population - (sample - found) + 1)
    limit = 1 - Fraction(str(confidence))
    low = min(r for r in possible if at_least_so_many(found, population, r, sample) >= limit)
    high = max(
        r for r in possible if 1 - at_least_so_many(found + 1, population, r, sample) >= limit
    )
    assert hypergeometric_lower(population, sample, found, confidence) == low
    assert hypergeometric_upper(population, sample, found, confidence) == high


@pytest.mark.parametrize(("population", "sample", "found"), [(1200, 600, 280), (1500, 300, 150)])
def test_bounds_of_larger_tables_are_exact_to_the_row(population, sample, found):
    low = hypergeometric_lower(population, sample, found, 0.9)
    tails = [at_least_so_many(found, population, low - less, sample) for less in (0, 1)]
    assert tails[0] >= Fraction(1, 10) > tails[1]
    high = hypergeometric_upper(population, sample, found, 0.9)
    tails = [1 - at_least_so_many(found + 1, population, high + more, sample) for more in (0, 1)]
    assert tails[0] >= Fraction(1, 10) > tails[1]


@pytest.mark.parametrize("found", [20, 50_000])
def test_terms_left_out_change_nothing(found, monkeypatch):
    short = hypergeometric_interval(10**7, 10**5, found)
    monkeypatch.setattr(bounds, "_FIRST_BLOCK", 10**5)
    assert hypergeometric_interval(10**7, 10**5, found) == short


def test_a_probability_of_just_what_was_asked_for_is_enough():
    # One row drawn is of the cell with a probability of rows / population.
    for rows in range(1, 10):
        assert hypergeometric_lower(10, 1, 1, confidence=1 - rows / 10) == rows
        assert draws_needed(10, cell_rows=1, want=1, confidence=rows / 10) == rows


def test_a_rare_cell_is_bounded_where_an_additive_error_says_nothing():
    population, sample = 1_000_000, 5_000
    low, high = hypergeometric_interval(population, sample, found=10)
    assert 900 < low < 2_000 < high < 3_700
    assert serfling_error(population, sample) * population > 15_000


@pytest.mark.parametrize("found", [0, 3, 500, 50_000, 99_990, 100_000])
def test_a_large_table_takes_little_time(found):
    start = time.perf_counter()
    low, high = hypergeometric_interval(10**7, 10**5, found)
    assert time.perf_counter() - start < 0.5  # a busy machine; it takes some ten milliseconds
    assert low <= found * 100 <= high
    # The large-sample interval is near where there are many of both.
    if found == 50_000:
        half = 1.96 * math.sqrt(0.25 / 10**5 * 0.99) * 10**7
        assert low == pytest.approx(5e6 - half, rel=1e-4)
        assert high == pytest.approx(5e6 + half, rel=1e-4)


@given(st.integers(1, 40), st.data(), st.sampled_from(CONFIDENCES))
def test_draws_needed_are_the_fewest_that_brute_force_finds(population, data, confidence):
    rows = data.draw(st.integers(0, population))
    want = data.draw(st.integers(0, rows))
    needed = next(
        n
        for n in range(population + 1)
        if at_least_so_many(want, population, rows, n) >= Fraction(str(confidence))
    )
    assert draws_needed(population, rows, want, confidence) == needed


def test_draws_needed_agree_with_a_simulation():
    n = draws_needed(50_000, cell_rows=600, want=12, confidence=0.9)
    found = np.random.default_rng(1).hypergeometric(600, 49_400, n, 20_000)
    assert np.mean(found >= 12) == pytest.approx(0.9, abs=0.01)


# ----------------------------------------------------------------------------- refusals


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda: hypergeometric_interval(10, 11, 0), "`sample` is 11"),
        (lambda: hypergeometric_upper(10, 5, 6), "`found` is 6"),
        (lambda: hypergeometric_lower(10, 5, 2, 1), "`confidence` must be a number above"),
        (lambda: draws_needed(10, 3, 4), "`want` is 4"),
        (lambda: serfling_error(10, 11), "`population` must be a whole number of at least 11"),
        (lambda: serfling_sample_size(10, error=0), "`error` must be a number above"),
        (lambda: serfling_sample_size(10, rounding="up"), "`rounding` must be one of"),
    ],
)
def test_what_cannot_be_is_refused(call, told):
    with pytest.raises(InputError, match=told):
        call()
