"""Ranking: the score is the best there is, bounds hold, and the best k are the best k."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from equipoise.errors import InputError
from equipoise.lake.offers.ranking import frechet, score, top

COSTS = st.sampled_from([0.0, 0.1, 0.5, 1.0, 3.0, 40.0])


@st.composite
def offers(draw):
    """A table's offer and what is asked: rows, need, and the options of ``score``."""
    n = draw(st.integers(1, 5))

    def numbers(values):
        return draw(st.lists(values, min_size=n, max_size=n))

    options = {
        "price": numbers(st.sampled_from([0.0, 0.1, 0.5, 1.0, 1.0, 7.0])),
        "confidence": draw(st.sampled_from([0.1, 0.7, 1.0])),
        "table_cost": draw(COSTS),
        "row_cost": draw(COSTS),
    }
    return numbers(st.integers(0, 30)), numbers(st.integers(0, 20)), options


def best_of_all_subsets(rows, need, price, confidence, table_cost, row_cost):
    """The score over all subsets of the cells, in fractions; none if all is free."""
    useful = [Fraction(min(r, n)) for r, n in zip(need, rows, strict=True)]
    best = Fraction(0)
    for chosen in itertools.product([0, 1], repeat=len(rows)):
        taken = sum(t for t, c in zip(useful, chosen, strict=True) if c)
        worth = sum(Fraction(p) * t for p, t, c in zip(price, useful, chosen, strict=True) if c)
        cost = Fraction(table_cost) + Fraction(row_cost) * taken
        if taken and cost:
            best = max(best, worth / cost)
    return float(Fraction(confidence) * best)


@pytest.mark.slow
@given(offers())
def test_no_subset_of_the_cells_is_better_than_the_best_prefix(offer):
    rows, need, options = offer
    if options["table_cost"] or options["row_cost"]:
        assert score(rows, need, **options) == pytest.approx(
            best_of_all_subsets(rows, need, **options), rel=1e-12
        )


@given(offers(), st.data())
def test_no_part_of_the_rows_is_better_than_the_best_prefix(offer, data):
    rows, need, options = offer
    part = [data.draw(st.floats(0, 1)) * n for n in rows]
    useful = np.minimum(need, part)
    cost = options["table_cost"] + options["row_cost"] * useful.sum()
    if cost > 1e-6:
        worth = options["confidence"] * (options["price"] * useful).sum() / cost
        assert worth <= score(rows, need, **options) * (1 + 1e-12)


@given(offers(), st.data())
def test_a_table_that_offers_more_never_scores_less(offer, data):
    rows, need, options = offer
    more = [n + data.draw(st.integers(0, 10)) for n in rows]
    assert score(more, need, **options) >= score(rows, need, **options) * (1 - 1e-12)


@given(offers(), st.data())
def test_without_row_costs_not_even_rounding_lowers_the_score(offer, data):
    rows, need, options = offer
    options["row_cost"] = 0.0
    more = [n + data.draw(st.integers(0, 10)) for n in rows]
    bound = score(more, need, **options | {"confidence": 1.0})
    assert bound >= score(rows, need, **options)


def test_taking_all_cells_would_score_a_larger_offer_lower():
    asked = {"need": [10, 100], "price": [6, 0.1], "table_cost": 5, "row_cost": 1}
    small, large = score([10, 0], **asked), score([10, 90], **asked)
    everything = (6 * 10 + 0.1 * 90) / (5 + 100)
    assert large == small > everything


@given(offers())
def test_what_costs_nothing_is_ahead_of_all_else_by_its_worth(offer):
    rows, need, options = offer
    free = options | {"table_cost": 0.0, "row_cost": 0.0, "confidence": 1.0}
    worth = (np.minimum(rows, need) * options["price"]).sum()
    assert score(rows, need, **free) == pytest.approx(worth * 1e100)


def test_an_offer_of_nothing_scores_zero():
    assert score([0, 5], [3, 0]) == 0.0
    assert score([], []) == 0.0
    assert score([0], [3], table_cost=0.0) == 0.0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"confidence": 0.0}, "confidence must be above 0 and at most 1, not 0.0"),
        ({"table_cost": -1}, "`table_cost` must be a number of at least 0, not -1"),
        ({"price": [1, 2, 3]}, r"price must be 2 numbers; it has the shape \(3,\)"),
        ({"price": [1, float("nan")]}, "price must hold numbers of zero or more, not nan"),
    ],
)
def test_options_that_cannot_be_are_refused(options, message):
    with pytest.raises(InputError, match=message):
        score([1, 2], [3, 4], **options)


@given(st.data())
def test_no_cell_has_more_rows_than_its_bound_and_single_columns_are_exact(data):
    table = data.draw(
        st.lists(st.tuples(st.integers(0, 2), st.integers(0, 1), st.integers(0, 3)), min_size=1)
    )
    sizes = (3, 2, 4)
    marginals = [np.bincount([r[i] for r in table], minlength=s) for i, s in enumerate(sizes)]
    cells = list(itertools.product(*map(range, sizes)))
    bound = frechet(marginals, cells)
    assert all(table.count(c) <= b for c, b in zip(cells, bound, strict=True))
    assert all(
        b == min(m[v] for m, v in zip(marginals, c, strict=True))
        for c, b in zip(cells, bound, strict=True)
    )
    assert list(frechet(marginals[:1], [[v] for v in range(3)])) == list(marginals[0])


def test_a_value_that_is_absent_has_no_rows():
    assert list(frechet([[4, 2], [6]], [[0, -1], [-1, 0], [1, 0]])) == [0, 0, 2]


@pytest.mark.parametrize("code", [-2, 2])
def test_a_value_that_was_not_counted_is_refused(code):
    with pytest.raises(InputError, match="has the values 0 to 1"):
        frechet([[4, 2]], [[code]])


def test_cells_of_other_columns_are_refused():
    with pytest.raises(InputError, match="each of the 1 columns"):
        frechet([[4, 2]], [[0, 1]])


class Lake:
    """Scores that can be scanned, and which were."""

    def __init__(self, scores):
        self.scores, self.scanned = scores, []

    def __call__(self, i):
        self.scanned.append(i)
        return self.scores[i]


def brute_force(scores, k):
    return sorted(range(len(scores)), key=lambda i: (-scores[i], i))[:k]


@given(
    st.lists(st.tuples(st.sampled_from([0.0, 0.5, 1.0, 2.0]), st.sampled_from([0, 0, 1, 2.5]))),
    st.integers(1, 6),
)
def test_the_best_k_are_those_of_a_full_scan(tables, k):
    lake = Lake([s for s, _ in tables])
    ranking = top([s + more for s, more in tables], lake, k)
    assert ranking == [(i, lake.scores[i]) for i in brute_force(lake.scores, k)]
    assert len(lake.scanned) == len(set(lake.scanned))


@given(st.lists(st.sampled_from([1.0, 2.0, 3.0, 4.0]), min_size=1, max_size=30), st.integers(1, 5))
def test_with_exact_bounds_only_the_best_are_scanned_even_where_many_tie(scores, k):
    lake = Lake(scores)
    ranking = top(scores, lake, k)
    assert lake.scanned == brute_force(scores, k) == [i for i, _ in ranking]


def test_a_scan_ends_when_no_bound_reaches_the_best_found():
    lake = Lake([5.0, 1.0, 4.0, 3.0, 0.0])
    ranking = top([6.0, 3.5, 4.5, 4.1, 0.0], lake, 1)
    assert ranking == [(0, 5.0)]
    assert lake.scanned == [0]


def test_an_equal_bound_is_scanned_where_its_table_would_come_first():
    lake = Lake([4.0, 4.0])
    assert top([4.0, 5.0], lake, 1) == [(0, 4.0)]
    assert lake.scanned == [1, 0]


@pytest.mark.slow
@given(st.data())
def test_bounds_from_single_columns_find_the_best_tables(data):
    cells = list(itertools.product(range(2), range(2)))
    tables = [
        np.array(data.draw(st.lists(st.integers(0, 9), min_size=4, max_size=4))) for _ in range(6)
    ]
    need = data.draw(st.lists(st.integers(0, 9), min_size=4, max_size=4))
    options = data.draw(offers())[2] | {"price": [1.0, 0.3, 0.3, 7.0]}

    def exact(i):
        return score(tables[i], need, **options)

    def bound(rows):
        square = rows.reshape(2, 2)
        upper = frechet([square.sum(1), square.sum(0)], cells)
        return score(upper, need, **options)

    ranking = top([bound(rows) for rows in tables], exact, 3)
    assert [s for _, s in ranking] == pytest.approx(sorted(map(exact, range(6)), reverse=True)[:3])


def test_a_table_whose_bound_is_zero_is_ranked_without_a_scan():
    lake = Lake([0.0, 1.0, 0.0])
    ranking = top([0.0, 2.0, 0.0], lake, 3)
    assert ranking == [(1, 1.0), (0, 0.0), (2, 0.0)]
    assert lake.scanned == [1]


def test_a_score_above_its_bound_is_an_error_rather_than_a_wrong_order():
    with pytest.raises(InputError, match=r"table 1 scores 3\.0, outside 0 to its bound 2\.0"):
        top([1.0, 2.0], Lake([1.0, 3.0]), 2)


def test_of_no_tables_none_is_best():
    assert top([], Lake([]), 3) == []
    with pytest.raises(InputError, match="`k` must be a whole number of at least 1"):
        top([1.0], Lake([1.0]), 0)
