"""Uniform Bias of predictions as a metric and a scorer."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn import config_context
from sklearn.exceptions import UndefinedMetricWarning
from sklearn.metrics import make_scorer
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _num_samples, check_consistent_length

from equipoise.errors import InputError
from equipoise.estimators._rows import count_rows, sensitive_columns
from equipoise.estimators._strategy import spelled
from equipoise.frames import flat
from equipoise.measures.request import MeasureRequest
from equipoise.measures.table import bias_table


def uniform_bias_score(
    y_true: Any,
    y_pred: Any,
    *,
    sensitive_features: Any,
    label: Any = None,
    min_count: int = 1,
    sample_weight: Any = None,
) -> float:
    """Compute the largest |UB| of predictions over all groups of one or more sensitive features.

    Parameters
    ----------
    y_true
        True labels, as in every metric; only their number is used.
    y_pred
        Predicted labels.
    sensitive_features
        A series, a frame, a mapping, an array, or a list of arrays, matched by position. Rows with
        a missing value are a separate group.
    label
        Label to consider; by default all labels.
    min_count
        Minimum number of rows of a group.
    sample_weight
        Weight of each row.

    Returns
    -------
    score
        0 if every group gets every label as often as all rows do. It is undefined, and nan, if
        the label is never predicted or no group is large enough.

    Examples
    --------
    >>> predicted = [1, 1, 1, 0, 1, 0, 0, 0]
    >>> uniform_bias_score([1] * 8, predicted, sensitive_features=list("mmmmwwww"))
    0.5
    """
    check_consistent_length(y_true, y_pred, sample_weight)
    if sensitive_features is None:
        raise InputError("provide the `sensitive_features` of the predicted rows.")
    check_classification_targets(y_pred)
    columns = sensitive_columns(sensitive_features, _num_samples(y_pred))
    name = getattr(y_pred, "name", None)
    counts = count_rows(flat(y_pred), columns, label=name, weight=sample_weight).counts
    ub = bias_table(counts, MeasureRequest(uncertainty=False, min_count=min_count)).measured.ub
    if label is not None:
        code = counts.label.codes.get(spelled(counts.label, label))
        ub = ub[:, [] if code is None else [code]]
    if not np.isnan(ub).all():
        return float(np.nanmax(np.abs(ub)))
    there = ", ".join(map(str, counts.label.values))
    warnings.warn(
        f"Uniform Bias is undefined and set to nan: the predicted labels are {there}, and the score is "
        f"for `label={label!r}` and groups of at least {min_count:,} rows.",
        UndefinedMetricWarning,
        stacklevel=2,
    )
    return float("nan")


def make_uniform_bias_scorer(*, label: Any = None, min_count: int = 1) -> Any:
    """Make a scorer for model selection: the less bias the predictions have, the higher the score.

    It requests ``sensitive_features`` through scikit-learn's metadata routing, which must be enabled
    where it is used: ``cross_validate(…, params={"sensitive_features": A})``.

    Parameters
    ----------
    label, min_count
        As in :func:`uniform_bias_score`.

    Examples
    --------
    >>> make_uniform_bias_scorer(label=1)
    make_scorer(uniform_bias_score, greater_is_better=False, ..., label=1, min_count=1)
    """
    scorer = make_scorer(
        uniform_bias_score, greater_is_better=False, label=label, min_count=min_count
    )
    with config_context(enable_metadata_routing=True):  # otherwise scikit-learn refuses requests
        return scorer.set_score_request(sensitive_features=True)
