"""Data as scikit-learn passes it, checked and counted."""

from __future__ import annotations

import numbers
from typing import TYPE_CHECKING, Any

import numpy as np
from imblearn.utils import check_target_type
from sklearn.utils import check_array
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _num_samples, check_consistent_length, validate_data

from equipoise.engines.sources import locate
from equipoise.errors import InputError
from equipoise.estimators._rows import CountedRows, count_rows, sensitive_columns
from equipoise.frames import flat, indexable
from equipoise.plain import rows_text

if TYPE_CHECKING:
    from numpy.typing import NDArray

COLUMNS = [list, tuple, str, numbers.Integral, None]
"""Types that ``sensitive_columns`` may have."""


def count_input(estimator: Any, X: Any, y: Any, features: Any) -> CountedRows:
    """Check the data of an estimator, and count it by sensitive features and labels."""
    labels, X = _checked_labels(estimator, X, y), indexable(X)
    names = estimator.sensitive_columns
    columns = sensitive_columns(features, _num_samples(X), X=X, names=names)
    return count_rows(labels, columns, X=X, label=getattr(y, "name", None))


def _checked_labels(estimator: Any, X: Any, y: Any) -> NDArray[Any]:
    """Check data as scikit-learn does, but allow features of any type."""
    validate_data(estimator, X=X, y=y, skip_check_array=True)
    if not hasattr(X, "columns"):  # a frame always has two dimensions
        anything = {"dtype": None, "accept_sparse": True, "ensure_all_finite": False}
        check_array(X, ensure_min_samples=0, **anything)
    if not _num_samples(X):
        raise InputError("there are 0 samples in X; a minimum of 1 is required.")
    check_consistent_length(X, y)
    lacking = locate({"y": flat(y)}).data["y"].null_count
    if lacking:
        raise InputError(f"Input y contains NaN or None in {rows_text(lacking)}; leave them out.")
    check_classification_targets(y)
    return np.asarray(check_target_type(np.asarray(y) if np.ndim(y) == 2 else y))
