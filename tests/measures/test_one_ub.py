"""Every part of the package that speaks of UB computes the same number, exact at limits."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import equipoise as eq
from equipoise.evaluation.study.scores import prediction_ub
from equipoise.lake.verify.checks import _largest_ub
from equipoise.measures.table import largest_ub
from equipoise.measures.uniform_bias import ub_of
from equipoise.plans.maps.policy_map import policy_map
from equipoise.reports.plan.data import biases

CELLS = st.lists(st.integers(1, 60), min_size=4, max_size=4)


def counts_of(cells):
    a, b, c, d = cells
    return eq.Counts.from_mapping(
        {("m", "y"): a, ("m", "n"): b, ("w", "y"): c, ("w", "n"): d}, sensitive=["sex"], label="l"
    )


@settings(max_examples=10, deadline=None)
@given(cells=CELLS)
def test_all_ways_to_a_ub_agree(cells):
    a, b, c, d = cells
    counts, n = counts_of(cells), sum(cells)
    exact = ub_of(n=Fraction(n), n_y=Fraction(a + c), n_g=Fraction(c + d), n_gy=Fraction(c))
    ub = ub_of(n=n, n_y=a + c, n_g=c + d, n_gy=c)
    assert ub == float(exact)  # correctly rounded, so never on the wrong side of a limit
    assert eq.measure(counts)["sex=w", "y"].ub == ub
    surface = policy_map(
        counts, x="add sex=m, l=n", y="add sex=w, l=y", group="sex=w", label_value="y"
    )
    assert surface.search.surface.exact(0, 0) == exact
    assert surface.ub(0, 0) == ub
    group, whole = np.array([[c, 0], [0, d]]), np.array([[a + c, 0], [0, b + d]])
    assert prediction_ub(group, whole)[0] == ub
    # What is compared is the table before the plan; this reference gives a plan the fastest.
    plan = eq.plan(counts, tolerance=0.1, allow="both", reference="original")
    largest = largest_ub(counts)
    assert _largest_ub(counts.cells(), with_missing=True)[0] == largest
    assert plan.certificate.max_abs_ub_before == pytest.approx(largest, abs=1e-12)
    shown = {pair["name"]: pair["before"] for pair in biases(plan)["pairs"]}
    rarer = "y" if a + c <= b + d else "n"
    assert shown["sex=w"] == abs(eq.measure(counts)["sex=w", rarer].ub)


def test_a_ub_is_exact_at_a_limit():
    assert ub_of(n=600, n_y=200, n_g=150, n_gy=40) == 0.2
    assert ub_of(n=1000, n_y=300, n_g=100, n_gy=27) == 0.1


def test_large_counts_do_not_overflow():
    many = np.array([[4_000_000_000]])
    assert ub_of(n=8_000_000_000, n_y=np.array([4_000_000_000]), n_g=many, n_gy=many // 2) == 0


def test_without_rows_there_is_no_ub():
    assert math.isnan(
        ub_of(n=5, n_y=np.array([0]), n_g=np.array([[5]]), n_gy=np.array([[0]]))[0, 0]
    )
