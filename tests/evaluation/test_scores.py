"""Scores against scikit-learn's, and means against plain arithmetic."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from sklearn import metrics

from equipoise.counts import Counts
from equipoise.evaluation.intervals import Difference, Mean
from equipoise.evaluation.study.scores import MEASURES, misses, prediction_ub, selection_rates
from equipoise.measures.table import bias_table


def outcomes(truth, predicted, k):
    table = np.zeros((k, k), np.int64)
    np.add.at(table, (truth, predicted), 1)
    return table


@st.composite
def predictions(draw, k):
    n = draw(st.integers(1, 40))
    numbers = st.lists(st.integers(0, k - 1), min_size=n, max_size=n)
    return np.array(draw(numbers)), np.array(draw(numbers))


def scores_by_label(name, truth, predicted, labels):
    """Of scikit-learn; 0 for a label that rows have and that is never predicted."""
    score = getattr(metrics, f"{name}_score")
    theirs = score(truth, predicted, labels=labels, average=None, zero_division=np.nan)
    return np.where(np.isnan(theirs) & np.isin(labels, truth), 0.0, theirs)


@pytest.mark.slow
@given(predictions(2), st.integers(0, 1))
def test_of_two_labels_as_scikit_learn(drawn, positive):
    truth, predicted = drawn
    table = outcomes(truth, predicted, 2)
    assert MEASURES["accuracy"](table, None) == pytest.approx(
        metrics.accuracy_score(truth, predicted)
    )
    for name in ("precision", "recall"):
        theirs = scores_by_label(name, truth, predicted, [0, 1])[positive]
        assert MEASURES[name](table, positive) == pytest.approx(theirs, nan_ok=True)


@pytest.mark.slow
@given(predictions(3))
def test_of_three_labels_as_the_macro_average_of_scikit_learn(drawn):
    truth, predicted = drawn
    table = outcomes(truth, predicted, 3)
    for name in ("precision", "recall"):
        theirs = np.nanmean(scores_by_label(name, truth, predicted, [0, 1, 2]))
        assert MEASURES[name](table, None) == pytest.approx(theirs)


@pytest.mark.slow
@given(predictions(3), st.integers(0, 3))
def test_ub_of_predictions_is_ub_of_a_table_with_them_for_labels(drawn, seed):
    truth, predicted = drawn
    group = np.random.default_rng(seed).integers(0, 2, len(truth))
    whole = outcomes(truth, predicted, 3)
    counts = Counts.from_columns(
        {"g": group.tolist(), "y": predicted.tolist()},
        [1] * len(truth),
        _request(),
    )
    table = bias_table(counts)
    for g in set(group.tolist()):
        inside = outcomes(truth[group == g], predicted[group == g], 3)
        ours = prediction_ub(inside, whole)
        for y in range(3):
            if whole[:, y].sum():
                assert ours[y] == pytest.approx(table[f"g={g}", str(y)].ub)
            else:
                assert np.isnan(ours[y])


def _request():
    from equipoise.counts import CountRequest

    return CountRequest(sensitive=("g",), label="y")


def test_rates_and_misses():
    table = np.array([[6, 2], [1, 1]])
    assert selection_rates(table).tolist() == [0.7, 0.3]
    assert misses(table).tolist() == [0.25, 0.5]


def test_what_is_undefined_is_nan_and_never_a_number():
    empty = np.zeros((2, 2), np.int64)
    for measure in MEASURES.values():
        assert np.isnan(measure(empty, 0))
    assert np.isnan(misses(np.array([[3, 0], [0, 0]]))[1])


@given(st.lists(st.floats(-1, 1), min_size=2, max_size=30), st.floats(0.5, 0.99))
def test_means_have_student_intervals(values, confidence):
    mean = Mean.of(values, confidence)
    assert mean.mean == pytest.approx(np.mean(values))
    if np.std(values) > 1e-9:
        low, high = stats.t.interval(
            confidence, len(values) - 1, np.mean(values), stats.sem(values)
        )
        assert (mean.low, mean.high) == pytest.approx((low, high))


@given(st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), min_size=5, max_size=20))
def test_differences_are_paired(pairs):
    first, second = map(list, zip(*pairs, strict=True))
    gaps = np.subtract(first, second)
    found = Difference.of(first, second)
    assert found.mean == pytest.approx(gaps.mean())
    if gaps.std() > 1e-9:
        assert found.p == pytest.approx(stats.ttest_rel(first, second).pvalue)


def test_few_repeats_and_equal_differences_prove_nothing():
    assert np.isnan(Difference.of([0.5, 0.6, 0.7, 0.8], [0.4, 0.4, 0.4, 0.4]).p)
    equal = Difference.of([0.55] * 8, [0.5] * 8)
    assert np.isnan(equal.p)
    assert equal.mean == pytest.approx(0.05)


def test_one_repeat_has_no_interval():
    assert Mean.of([0.5]).plain() == [0.5, None, None]
    assert np.isnan(Difference.of([0.5], [0.4]).p)


def test_a_repeat_without_a_value_is_left_out():
    assert Mean.of([0.2, float("nan"), 0.4]).mean == pytest.approx(0.3)
    assert Mean.of([float("nan")]).plain() == [None, None, None]
