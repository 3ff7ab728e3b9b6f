"""Selection rates, impact ratios and tests, recomputed from rows and by brute force."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from equipoise.counts import Counts
from equipoise.measures.request import MeasureRequest
from equipoise.measures.selection import SelectionTable
from equipoise.measures.suppression import suppress
from equipoise.measures.table import bias_table
from equipoise.measures.uncertainty.comparisons import fisher_p, normal_p, pooled_z
from equipoise.values import MISSING

sizes = st.integers(1, 40)


def counts_of(cells):
    return Counts.from_mapping(cells, sensitive=["sex", "race"], label="hired")


@st.composite
def cells(draw):
    """Rows of each cell, some of an unknown category."""
    keys = [
        (s, r, y)
        for s in ("w", "m", MISSING)
        for r in ("a", "b", "c", MISSING)
        for y in ("yes", "no")
    ]
    rows = draw(st.lists(st.integers(0, 30), min_size=len(keys), max_size=len(keys)))
    found = {key: n for key, n in zip(keys, rows, strict=True) if n}
    found[("w", "a", "yes")] = found.get(("w", "a", "yes"), 0) + 1
    found[("w", "a", "no")] = found.get(("w", "a", "no"), 0) + 1
    return found


def table_of(counts, *names, **options):
    measured = bias_table(counts, MeasureRequest()).measured
    return SelectionTable.of(measured, counts.label.code("yes"), names, **options)


@given(cells(), st.sampled_from([("sex",), ("race",), ("sex", "race")]))
@settings(max_examples=60, deadline=None)
def test_rates_and_ratios_are_those_of_the_rows(found, names):
    counts = counts_of(found)
    table = table_of(counts, *names, exclude_below=0.1)
    listed = [
        [None if v is MISSING else v for v in key] for key, n in found.items() for _ in range(n)
    ]
    rows = pd.DataFrame(listed, columns=["sex", "race", "hired"])
    known = rows.dropna(subset=list(names))
    assert table.unknown == len(rows) - len(known)
    groups = known.groupby(list(names) if len(names) > 1 else names[0])["hired"]
    n, selected = groups.size(), groups.apply(lambda column: int((column == "yes").sum()))
    highest = (selected / n).max()
    large = n / len(rows) >= 0.1
    highest_large = (selected / n)[large].max() if large.any() else math.nan
    assert len(table) == len(n)
    for i in range(len(table)):
        key = table.values(i)[0] if len(names) == 1 else table.values(i)
        assert (table.n[i], table.selected[i]) == (n[key], selected[key])
        assert table.small[i] == (n[key] / len(rows) < 0.1)
        assert _same(table.ratio[i], selected[key] / n[key] / highest if highest else math.nan)
        without = selected[key] / n[key] / highest_large if highest_large > 0 else math.nan
        assert _same(table.ratio_without_small[i], without if large[key] else math.nan)


def _same(one, other):
    return (math.isnan(one) and math.isnan(other)) or math.isclose(one, other, rel_tol=1e-12)


@given(cells())
@settings(max_examples=40, deadline=None)
def test_ratios_are_at_most_1_and_one_of_them_is_1(found):
    table = table_of(counts_of(found), "sex", "race")
    ratios = table.ratio[np.isfinite(table.ratio)]
    if len(ratios):
        assert ratios.max() == 1
        assert ratios.min() >= 0
        low, high = table.interval
        assert (low <= table.ratio + 1e-12).all()
        assert (table.ratio <= high + 1e-12).all()


@given(cells())
@settings(max_examples=30, deadline=None)
def test_without_unknowns_the_best_off_category_is_that_of_the_four_fifths_rule(found):
    kept = {key: n for key, n in found.items() if MISSING not in key}
    counts = counts_of(kept)
    if len(counts.label) < 2:
        return
    measured = bias_table(counts, MeasureRequest(favourable="yes"))
    rule = measured.four_fifths
    for names in (("sex",), ("race",), ("sex", "race")):
        table = SelectionTable.of(
            measured.measured, counts.label.code("yes"), names, eligible="sound"
        )
        for i, line in enumerate(table.line.tolist()):
            assert table.line[table.best] == rule.best[line]
            assert _same(table.ratio[i], rule.impact_ratio[line])


def test_small_categories_are_not_the_one_that_others_are_compared_with():
    found = {("w", "a", "yes"): 50, ("w", "a", "no"): 50, ("m", "a", "yes"): 40}
    found |= {("m", "a", "no"): 60, ("m", "b", "yes"): 9, ("m", "b", "no"): 1}
    counts = counts_of(found)
    assert table_of(counts, "race", exclude_below=0.1).values(1) == ("b",)
    assert table_of(counts, "race", exclude_below=0.1).best == 1
    sound = table_of(counts, "race", exclude_below=0.1, eligible="sound")
    assert sound.values(sound.best) == ("a",)


def test_a_hidden_category_is_neither_shown_nor_compared_with():
    found = {(s, r, y): 40 for s in ("w", "m") for r in "abcd" for y in ("yes", "no")}
    found |= {("m", "b", "yes"): 3, ("m", "b", "no"): 1, (MISSING, "a", "no"): 2}
    counts = counts_of(found)
    hidden = suppress(bias_table(counts, MeasureRequest()), 5).measured
    table = SelectionTable.of(hidden, counts.label.code("yes"), ("sex", "race"))
    assert table.suppressed.any()
    assert not table.suppressed.all()
    assert np.isnan(table.ratio[table.suppressed]).all()
    assert np.isnan(table.rate[table.suppressed]).all()
    assert not table.suppressed[table.best]
    assert table.unknown is None
    assert table.compare(int(np.flatnonzero(table.suppressed)[0])) is None


# ----------------------------------------------------------------------------------- tests


@given(sizes, sizes, st.data())
@settings(max_examples=150, deadline=None)
def test_fishers_test_is_exact(n1, n0, data):
    x1, x0 = data.draw(st.integers(0, n1)), data.draw(st.integers(0, n0))
    p = fisher_p(x1, n1, x0, n0)
    drawn, marked = n1, x1 + x0
    if not 0 < marked < n1 + n0:
        assert math.isnan(p)
        return
    ways = {
        k: math.comb(marked, k) * math.comb(n1 + n0 - marked, drawn - k)
        for k in range(max(0, drawn + marked - n1 - n0), min(drawn, marked) + 1)
    }
    exact = Fraction(sum(w for w in ways.values() if w <= ways[x1]), sum(ways.values()))
    assert p == pytest.approx(float(exact), rel=1e-9)


@pytest.mark.parametrize(
    "numbers",
    [(400, 1000, 500, 1000), (1, 10**6, 30, 10**6), (100_000, 10**6, 101_000, 10**6), (3, 5, 9, 9)],
)
def test_fishers_test_and_z_are_those_of_scipy(numbers):
    from scipy.stats import chi2_contingency, fisher_exact

    x1, n1, x0, n0 = numbers
    square = [[x1, n1 - x1], [x0, n0 - x0]]
    assert fisher_p(*numbers) == pytest.approx(fisher_exact(square).pvalue, rel=1e-8)
    plain = chi2_contingency(square, correction=False)
    assert pooled_z(*numbers) ** 2 == pytest.approx(plain.statistic, rel=1e-9)
    assert normal_p(pooled_z(*numbers)) == pytest.approx(plain.pvalue, rel=1e-9)


def test_what_cannot_be_compared_has_no_p():
    for numbers in ((0, 0, 1, 2), (1, 2, 0, 0), (0, 5, 0, 5), (5, 5, 3, 3)):
        assert math.isnan(fisher_p(*numbers))
        assert math.isnan(pooled_z(*numbers))
    assert math.isnan(normal_p(math.nan))
    assert fisher_p(0, 10**6, 9 * 10**5, 10**6) == 0  # far beyond what a float can tell from 0


@given(st.integers(1, 25), st.integers(1, 25), st.data())
@settings(max_examples=150, deadline=None)
def test_selections_that_change_the_result_are_the_fewest(n1, n0, data):
    x1, x0 = data.draw(st.integers(0, n1)), data.draw(st.integers(0, n0))
    if Fraction(x1, n1) > Fraction(x0, n0):  # the second is the best-off
        x1, n1, x0, n0 = x0, n0, x1, n1
    cells = {("w", "yes"): x1, ("w", "no"): n1 - x1, ("m", "yes"): x0, ("m", "no"): n0 - x0}
    counts = Counts.from_mapping(
        {key: n for key, n in cells.items() if n}, sensitive=["sex"], label="hired"
    )
    if "yes" not in counts.label.codes or Fraction(x1, n1) == Fraction(x0, n0):
        return
    table = table_of(counts, "sex")
    place = next(i for i in range(2) if i != table.best)
    found = table.compare(place)
    below = Fraction(x1, n1) < Fraction(4, 5) * Fraction(x0, n0)
    assert bool(table.below[place]) == below
    sign = 1 if below else -1

    def changed(k, *, moved):
        one, other = x1 + sign * k, x0 - sign * k * moved
        if not (0 <= one <= n1 and 0 <= other <= n0):
            return None
        return (Fraction(one, n1) < Fraction(4, 5) * Fraction(other, n0)) != below

    for number, moved in ((found.selections, False), (found.moved, True)):
        tried = [k for k in range(1, n1 + n0) if changed(k, moved=moved)]
        assert number == (sign * tried[0] if tried else None)
