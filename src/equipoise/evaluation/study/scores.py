"""Scores of predictions, computed from counts of rows by label and prediction.

The last two axes of an array of outcomes are the label and the prediction; axes before them
(repeats, groups) are kept. An undefined score is nan.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from equipoise.measures.uniform_bias import ub_of

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
    return mean_of_known(scores, axis=-1) if positive is None else scores[..., positive]


def mean_of_known(values: Floats, axis: int) -> Floats:
    """Compute means along an axis over the values that are defined."""
    # As np.nanmean does, but without a warning where no value is defined.
    known = ~np.isnan(values)
    return _share(np.where(known, values, 0.0).sum(axis=axis), known.sum(axis=axis))


def accuracy(outcomes: Outcomes, positive: int | None = None) -> Floats:  # noqa: ARG001
    """Compute the share of rows whose label is predicted correctly."""
    return _share(_hits(outcomes).sum(axis=-1), outcomes.sum(axis=(-2, -1)))


def precision(outcomes: Outcomes, positive: int | None = None) -> Floats:
    """Compute the precision for the positive label, or the mean over all labels.

    It is 0 for a label that is never predicted although rows have it, as in scikit-learn.
    """
    shares = _share(_hits(outcomes), outcomes.sum(axis=-2))
    never = np.isnan(shares) & (outcomes.sum(axis=-1) > 0)
    return _mean_over_labels(np.where(never, 0.0, shares), positive)


def recall(outcomes: Outcomes, positive: int | None = None) -> Floats:
    """Compute the recall for the positive label, or the mean over all labels."""
    return _mean_over_labels(_share(_hits(outcomes), outcomes.sum(axis=-1)), positive)


MEASURES: Mapping[str, Callable[[Outcomes, int | None], Floats]] = {
    "accuracy": accuracy,
    "precision": precision,
    "recall": recall,
}
"""The performance measures of the paper."""

PREDICTION_UB = "prediction UB"
"""Name of the largest |UB| of predictions over the groups by sensitive attributes."""


def selection_rates(outcomes: Outcomes) -> Floats:
    """Compute the share of rows for which each label is predicted.

    Examples
    --------
    >>> selection_rates(np.array([[8, 2], [2, 8]])).tolist()
    [0.5, 0.5]
    """
    return _share(outcomes.sum(axis=-2), outcomes.sum(axis=(-2, -1))[..., None])


def prediction_ub(groups: Outcomes, whole: Outcomes) -> Floats:
    """Compute UB of predictions: 1 − a group's share of a prediction over that of all rows."""
    (n_gy, n_g), (n_y, n) = (
        (outcomes.sum(axis=-2), outcomes.sum(axis=(-2, -1))[..., None])
        for outcomes in (groups, whole)
    )
    return np.asarray(ub_of(n=n, n_y=n_y, n_g=n_g, n_gy=n_gy))


def misses(outcomes: Outcomes) -> Floats:
    """Compute the share of the rows of each label that are predicted to have another one.

    Examples
    --------
    >>> misses(np.array([[8, 2], [1, 9]])).round(3).tolist()
    [0.2, 0.1]
    """
    return 1 - _share(_hits(outcomes), outcomes.sum(axis=-1))
