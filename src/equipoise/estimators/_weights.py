"""Weights that bring the weighted Uniform Bias of every group to 0, as an estimator."""

from __future__ import annotations

from typing import Any, ClassVar

from sklearn.base import BaseEstimator

from equipoise.counts.rows import cells_of_rows
from equipoise.estimators._input import COLUMNS, count_input
from equipoise.plans.reweighing import Reweighing


class UniformBiasWeights(BaseEstimator):  # type: ignore[misc]
    """Weights for rows that bring the weighted Uniform Bias of every group to 0, without new rows.

    Rows with a missing sensitive value are a separate group.

    Parameters
    ----------
    sensitive_columns
        Names or positions of the columns of ``X`` that are the sensitive features, as an
        alternative to ``sensitive_features``.

    Attributes
    ----------
    sample_weight_
        Weight of each row, in order: the expected over the actual number of rows of its cell.
    counts_
        The :class:`~equipoise.counts.Counts` of the data.
    sentences_
        The largest weight, and the cells that no weight can help because they have no rows.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Examples
    --------
    >>> X, hired = [[0]] * 6, [1, 1, 0, 1, 0, 0]
    >>> weights = UniformBiasWeights().fit(X, hired, sensitive_features=list("mmmwww"))
    >>> weights.sample_weight_.tolist()
    [0.75, 0.75, 1.5, 1.5, 0.75, 0.75]
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {"sensitive_columns": COLUMNS}

    def __init__(self, *, sensitive_columns: Any = None) -> None:
        self.sensitive_columns = sensitive_columns

    def fit(self, X: Any, y: Any, *, sensitive_features: Any = None) -> UniformBiasWeights:
        """Compute the weights.

        Parameters
        ----------
        X, y
            The data. Features may be of any type.
        sensitive_features
            A series, a frame, a mapping, an array, or a list of arrays, matched by position.
            Without it and without ``sensitive_columns``, every weight is 1.
        """
        self._validate_params()
        given = count_input(self, X, y, sensitive_features)
        weighed = Reweighing.of(given.counts)
        self.counts_ = given.counts
        self.sentences_ = weighed.sentences
        self.sample_weight_ = weighed.weights[cells_of_rows(given.table, given.counts)]
        return self

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.input_tags.allow_nan = True
        tags.input_tags.sparse = True
        tags.input_tags.string = True
        return tags
