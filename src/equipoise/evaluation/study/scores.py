"""Scores of predictions, as functions of counts of rows by group, label and prediction.

An array of outcomes ends in two axes: the label, and the prediction. Whatever stands before
(repeats, groups) stays. A score that is undefined is nan.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

Outcomes: TypeAlias = "NDArray[Any]"
Floats: TypeAlias = "NDArray[np.float64]"


def _share(part: Any, whole: Any) -> Floats:
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(np.where(whole > 0, part / whole, np.nan))


def _hits(outcomes: Outcomes) -> Any:
    return np.diagonal(outcomes, axis1=-2, axis2=-1)


def _mean_over_labels(scores: Floats, positive: int | None) -> Floats:
    if positive is not None:
        return scores[..., positive]
    known = ~np.isnan(scores)
    return _share(np.where(known, scores, 0.0).sum(axis=-1), known.sum(axis=-1))


def accuracy(outcomes: Outcomes, positive: int | None = None) -> Floats:  # noqa: ARG001
    """The share of rows whose label is predicted.

    >>> float(accuracy(np.array([[8, 2], [1, 9]])))
    0.85
    """
    return _share(_hits(outcomes).sum(axis=-1), outcomes.sum(axis=(-2, -1)))


def precision(outcomes: Outcomes, positive: int | None = None) -> Floats:
    """Of the rows predicted to have the positive label the share that have it, or the mean.

    A label that rows have and that is never predicted counts as 0, as in scikit-learn.

    >>> float(precision(np.array([[8, 2], [1, 8]]), 1))
    0.8
    """
    shares = _share(_hits(outcomes), outcomes.sum(axis=-2))
    never = np.isnan(shares) & (outcomes.sum(axis=-1) > 0)
    return _mean_over_labels(np.where(never, 0.0, shares), positive)


def recall(outcomes: Outcomes, positive: int | None = None) -> Floats:
    """Of the rows that have the positive label the share predicted to have it, or the mean.

    >>> float(recall(np.array([[8, 2], [1, 9]]), 1))
    0.9
    """
    return _mean_over_labels(_share(_hits(outcomes), outcomes.sum(axis=-1)), positive)


MEASURES: Mapping[str, Callable[[Outcomes, int | None], Floats]] = {
    "accuracy": accuracy,
    "precision": precision,
    "recall": recall,
}
"""The measures of the paper."""

PREDICTION_UB = "prediction UB"
"""The largest |UB| of predictions over the groups of the sensitive attributes."""


def selection_rates(outcomes: Outcomes) -> Floats:
    """The share of rows for which each label is predicted.

    >>> selection_rates(np.array([[8, 2], [2, 8]])).tolist()
    [0.5, 0.5]
    """
    return _share(outcomes.sum(axis=-2), outcomes.sum(axis=(-2, -1))[..., None])


def prediction_ub(groups: Outcomes, whole: Outcomes) -> Floats:
    """UB of the predictions of groups: 1 − the group's share of a prediction over that of all.

    >>> whole = np.array([[50, 10], [10, 30]])
    >>> group = np.array([[20, 0], [10, 10]])
    >>> prediction_ub(group, whole).round(3).tolist()
    [-0.25, 0.375]
    """
    rates, overall = selection_rates(groups), selection_rates(whole)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(np.where(overall > 0, 1 - rates / overall, np.nan))


def misses(outcomes: Outcomes) -> Floats:
    """Of the rows of each label the share predicted to have another.

    >>> misses(np.array([[8, 2], [1, 9]])).round(3).tolist()
    [0.2, 0.1]
    """
    return 1 - _share(_hits(outcomes), outcomes.sum(axis=-1))
