"""Repairs and measures for those who train models: a sampler, weights and a score.

The sampler is one of imbalanced-learn, the weights are an estimator of scikit-learn, the score
is a metric as scikit-learn has them. Each counts the rows it is given and leaves the work to
:mod:`equipoise.plans` and :mod:`equipoise.measures`; of the data only the sensitive features
and the labels are looked at.
"""

from __future__ import annotations

import numbers
import warnings
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from equipoise.counts.rows import cells_of_rows
from equipoise.engines.sources import locate
from equipoise.errors import InputError, MissingDependency
from equipoise.estimators._moves import Moves, asked_moves, planned_moves, spelled
from equipoise.estimators._resampling import Resampling, resample
from equipoise.estimators._rows import (
    CountedRows,
    count_pool,
    count_rows,
    sensitive_columns,
)
from equipoise.frames import flat, indexable, with_index_of
from equipoise.measures.request import MeasureRequest
from equipoise.measures.table import bias_table
from equipoise.plain import rows_text, ub_text
from equipoise.plans.request import ALLOW, REFERENCES, PlanRequest
from equipoise.plans.reweighing import Reweighing

try:
    from sklearn import config_context
    from sklearn.base import BaseEstimator
    from sklearn.exceptions import UndefinedMetricWarning
    from sklearn.metrics import make_scorer
    from sklearn.utils import check_array, check_random_state
    from sklearn.utils._param_validation import Interval, StrOptions
    from sklearn.utils.multiclass import check_classification_targets
    from sklearn.utils.validation import _num_samples, check_consistent_length, validate_data
except ImportError as error:
    raise MissingDependency(
        "scikit-learn", extra="models", purpose="equipoise.estimators"
    ) from error
try:
    from imblearn.base import BaseSampler
    from imblearn.utils import check_target_type
except ImportError as error:
    raise MissingDependency(
        "imbalanced-learn", extra="models", purpose="equipoise.estimators"
    ) from error

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from equipoise.counts import Counts

__all__ = [
    "RowsDeletedWarning",
    "UniformBiasSampler",
    "UniformBiasWeights",
    "make_uniform_bias_scorer",
    "uniform_bias_score",
]

_COLUMNS = [list, tuple, str, numbers.Integral, None]


class RowsDeletedWarning(UserWarning):
    """Rows were deleted that nobody asked to delete: a sampler has no pool to add rows from."""


class UniformBiasSampler(BaseSampler):  # type: ignore[misc]
    """Bring the Uniform Bias of every group within a tolerance, by real rows only.

    Rows are added from a pool or left out, as few as will do; none is made up or repeated.
    Features may be of any type, and come back as they are; rows that lack a sensitive value stay.

    Parameters
    ----------
    sampling_strategy
        ``"auto"`` plans the smallest repair. Or the rows wanted of each cell that shall change,
        ``{(group, label): rows}``: a group is a value, or a tuple of values if there are several
        sensitive features; where there is one group, ``{label: rows}`` will do. Or a function
        that makes such a mapping of ``y``.
    pool
        Where rows can be taken from: ``(X, y)``, whose ``X`` has the sensitive features as
        columns of the same names, or ``(X, y, sensitive_features)``. Frames may have their
        columns in another order, and more of them. It is not checked whether a row of the pool
        is in the data as well.
    tolerance
        The largest |UB| left to any group; 0 is zero bias, which whole rows reach up to rounding.
    reference
        Hold a tolerance against the ``"original"`` label frequencies, exact and much quicker, or
        the ``"new"`` ones; if not given, as a plan does.
    labels
        ``"keep"`` label frequencies, leave them ``"free"``, or the shares wanted, ``{label: share}``.
    allow
        ``"add"``, ``"delete"`` or ``"both"``. If not given, a plan adds if there is a pool; if
        there is none it deletes, and a :class:`RowsDeletedWarning` says how many rows. A mapping
        says itself what it does.
    partial
        Whether to come as near as the pool allows, and warn, if it has too few rows. A plan then
        never leaves a larger |UB| than there was; a mapping takes what there is.
    sensitive_columns
        Names or positions of the columns of ``X`` that are the sensitive features, instead of
        ``sensitive_features``.
    random_state
        Decides which rows of a cell are taken.

    Attributes
    ----------
    sample_indices_
        Which rows were taken, in order: below ``len(X)`` it is a row of ``X``, and ``i`` from
        there on is row ``i - len(X)`` of the pool.
    provenance_
        The same to read: a structured array with ``source``, ``"given"`` or ``"pool"``, and ``row``.
    plan_
        The :class:`~equipoise.plans.plan.Plan`; None if a mapping said what to do.
    counts_, resampled_counts_
        The :class:`~equipoise.counts.Counts` before and after.
    max_abs_ub_
        The largest |UB| after, of the rows that lack no sensitive value.
    sampling_strategy_
        The rows of each cell after, as a mapping that ``sampling_strategy`` takes.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Examples
    --------
    >>> sex, hired = np.array(["w", "m"] * 4), np.array([0, 1, 0, 1, 0, 1, 1, 0])
    >>> pool = (np.array([[10], [11]]), [1, 0], ["w", "m"])
    >>> sampler = UniformBiasSampler(pool=pool, tolerance=0.4, random_state=0)
    >>> X, y = sampler.fit_resample(np.arange(8)[:, None], hired, sensitive_features=sex)
    >>> X.ravel().tolist(), y.tolist()
    ([0, 1, 2, 3, 4, 5, 6, 7, 10, 11], [0, 1, 0, 1, 0, 1, 1, 0, 1, 0])
    >>> print(sampler.provenance_[-2:], f"{sampler.max_abs_ub_:.2f}")
    [('pool', 0) ('pool', 1)] 0.20
    """

    _sampling_type = "bypass"
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "sampling_strategy": [StrOptions({"auto"}), Mapping, callable],
        "pool": [tuple, list, None],
        "tolerance": [Interval(numbers.Real, 0, None, closed="left")],
        "reference": [StrOptions(set(REFERENCES)), None],
        "labels": [StrOptions({"keep", "free"}), Mapping],
        "allow": [StrOptions(set(ALLOW)), None],
        "partial": ["boolean"],
        "sensitive_columns": _COLUMNS,
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        *,
        sampling_strategy: Any = "auto",
        pool: Any = None,
        tolerance: float = 0.0,
        reference: str | None = None,
        labels: Any = "keep",
        allow: str | None = None,
        partial: bool = False,
        sensitive_columns: Any = None,
        random_state: Any = None,
    ) -> None:
        super().__init__(sampling_strategy=sampling_strategy)
        self.pool = pool
        self.tolerance = tolerance
        self.reference = reference
        self.labels = labels
        self.allow = allow
        self.partial = partial
        self.sensitive_columns = sensitive_columns
        self.random_state = random_state

    # Without the name of the argument, so that a pipeline, which never calls it, does not ask
    # whether to route it here.
    def fit(self, X: Any, y: Any, **params: Any) -> UniformBiasSampler:
        """Choose the rows without giving them; see :meth:`fit_resample`.

        Parameters
        ----------
        X, y
            The data.
        **params
            ``sensitive_features``, as in :meth:`fit_resample`.
        """
        self._fit_resample(X, y, **params)
        return self

    def fit_resample(self, X: Any, y: Any, *, sensitive_features: Any = None) -> tuple[Any, Any]:
        """Give the rows that are left, in order, and behind them those of the pool.

        Parameters
        ----------
        X
            An array, a sparse matrix, a pandas, polars or Arrow frame, or a list of rows.
        y
            The labels.
        sensitive_features
            A series, a frame, a mapping, an array, or a list of arrays; rows go by position.
            Without, and without ``sensitive_columns``, the data is one group: then give
            ``sampling_strategy`` or ``labels``, or there is nothing to repair.

        Returns
        -------
        X, y
            Of the types they were given as. Rows of pandas keep their index, those of the pool
            theirs.

        Raises
        ------
        PoolTooSmall
            If the pool lacks rows that are needed.
        Infeasible
            If no plan reaches what was asked.
        InputError
            If no sensitive features are given, and neither ``sampling_strategy`` nor ``labels``
            says what to do without them.

        Warns
        -----
        RowsDeletedWarning
            If rows are deleted because there is no pool, and ``allow`` does not ask for it.
        """
        return self._fit_resample(X, y, sensitive_features=sensitive_features)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.string = True
        tags.sampler_tags.sample_indices = True
        return tags

    def _fit_resample(self, X: Any, y: Any, *, sensitive_features: Any = None) -> tuple[Any, Any]:
        self._validate_params()
        given = _counted(self, X, y, sensitive_features)
        chosen = self._chosen(given, y)
        rows = chosen.features()
        labels = with_index_of(chosen.labels(y), rows)
        self.plan_ = chosen.moves.plan
        self.counts_ = given.counts
        self.resampled_counts_ = chosen.counts
        self.max_abs_ub_ = chosen.max_abs_ub
        self.sampling_strategy_ = chosen.strategy
        self.sample_indices_ = chosen.indices
        self.provenance_ = chosen.provenance
        self._warn_of_deletions(given.n, chosen)
        if chosen.moves.shortfall:
            warnings.warn(
                f"{chosen.moves.shortfall}; with what there is the largest |UB| is "
                f"{ub_text(self.max_abs_ub_)}, and was {ub_text(chosen.max_abs_ub_before)}.",
                UserWarning,
                stacklevel=3,  # where fit or fit_resample is called
            )
        return rows, labels

    def _warn_of_deletions(self, n: int, chosen: Resampling) -> None:
        asked = self.allow is not None or not isinstance(self.sampling_strategy, str)
        deleted = n - len(chosen.kept)
        if self.pool is None and deleted and not asked:
            warnings.warn(
                f"there is no pool to add rows from, so {deleted:,} of {n:,} rows ({deleted / n:.1%}) "
                "were deleted; give pool=(X, y), or allow='delete' if that is what you want.",
                RowsDeletedWarning,
                stacklevel=4,  # where fit or fit_resample is called
            )

    def _require_groups(self, given: CountedRows) -> None:
        """Refuse data of one group, of which a plan would silently change nothing."""
        says = not isinstance(self.sampling_strategy, str) or not isinstance(self.labels, str)
        if not given.sensitive and not says:
            raise InputError(
                "no sensitive features were given, so there are no groups to repair; pass "
                "sensitive_features to fit_resample, or name columns of X with sensitive_columns. In a "
                "pipeline, sensitive_features have to be routed: "
                "set_fit_resample_request(sensitive_features=True)."
            )

    def _chosen(self, given: CountedRows, y: Any) -> Resampling:
        if len(given.counts.label) < 2:
            raise InputError(
                f"y has 1 class, {given.counts.label.values[0]}, and needs more; with one there is "
                "no bias to repair."
            )
        self._require_groups(given)
        names, pool = self.sensitive_columns, self.pool
        pool = None if pool is None else count_pool(pool, given, names=names)
        moves = self._moves(given.counts, None if pool is None else pool.counts, y)
        state = check_random_state(self.random_state)
        generator = np.random.default_rng(state.randint(2**31, size=4, dtype=np.int64))
        return resample(given, moves, generator, pool=pool)

    def _moves(self, counts: Counts, pool: Counts | None, y: Any) -> Moves:
        strategy = self.sampling_strategy
        strategy = strategy(y) if callable(strategy) else strategy
        if not isinstance(strategy, str):
            return asked_moves(counts, strategy, pool, allow=self.allow, partial=self.partial)
        labels = self.labels
        if not isinstance(labels, str):
            labels = {spelled(counts.label, label): share for label, share in labels.items()}
        allow: Any = self.allow or ("delete" if pool is None else "add")
        reference: Any = self.reference
        request = PlanRequest(
            tolerance=self.tolerance, reference=reference, labels=labels, allow=allow
        )
        return planned_moves(counts, request, pool, partial=self.partial)


class UniformBiasWeights(BaseEstimator):  # type: ignore[misc]
    """A weight per row that brings the weighted Uniform Bias of every group to 0, without new rows.

    Rows that lack a sensitive value are a group of their own.

    Parameters
    ----------
    sensitive_columns
        Names or positions of the columns of ``X`` that are the sensitive features, instead of
        ``sensitive_features``.

    Attributes
    ----------
    sample_weight_
        The weight of each row, in order: the rows expected of its cell over those there are.
    counts_
        The :class:`~equipoise.counts.Counts` that were weighed.
    sentences_
        The largest weight, and the cells that no weight helps since they have no rows.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Examples
    --------
    >>> X, hired = np.zeros((6, 1)), [1, 1, 0, 1, 0, 0]
    >>> weights = UniformBiasWeights().fit(X, hired, sensitive_features=list("mmmwww"))
    >>> weights.sample_weight_.tolist()
    [0.75, 0.75, 1.5, 1.5, 0.75, 0.75]
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {"sensitive_columns": _COLUMNS}

    def __init__(self, *, sensitive_columns: Any = None) -> None:
        self.sensitive_columns = sensitive_columns

    def fit(self, X: Any, y: Any, *, sensitive_features: Any = None) -> UniformBiasWeights:
        """Weigh the rows.

        Parameters
        ----------
        X, y
            The data; any type of feature will do.
        sensitive_features
            A series, a frame, a mapping, an array, or a list of arrays; rows go by position.
            Without, and without ``sensitive_columns``, every weight is 1.
        """
        self._validate_params()
        given = _counted(self, X, y, sensitive_features)
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


def uniform_bias_score(
    y_true: Any,
    y_pred: Any,
    *,
    sensitive_features: Any,
    label: Any = None,
    min_count: int = 1,
    sample_weight: Any = None,
) -> float:
    """Give the largest |UB| of predictions, over all groups of one or more sensitive features.

    Parameters
    ----------
    y_true
        As metrics have it; of what is true only the length is looked at.
    y_pred
        The predicted labels.
    sensitive_features
        A series, a frame, a mapping, an array, or a list of arrays; rows go by position. Rows that
        lack a value are a group of their own.
    label
        The only label to look at; all if not given.
    min_count
        Leave out groups with fewer rows.
    sample_weight
        A weight per row.

    Returns
    -------
    score
        0 if every group gets every label at the rate all rows do. Undefined, and not a number,
        if no row is predicted to have the label or no group is large enough.

    Examples
    --------
    >>> predicted = [1, 1, 1, 0, 1, 0, 0, 0]
    >>> uniform_bias_score([1] * 8, predicted, sensitive_features=list("mmmmwwww"))
    0.5
    """
    check_consistent_length(y_true, y_pred, sample_weight)
    if sensitive_features is None:
        raise InputError("give the sensitive_features of the rows that were predicted.")
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
        f"Uniform Bias is undefined and set to nan: predicted are {there}, and asked for were "
        f"label={label!r} and groups of at least {min_count:,} rows.",
        UndefinedMetricWarning,
        stacklevel=2,
    )
    return float("nan")


def make_uniform_bias_scorer(*, label: Any = None, min_count: int = 1) -> Any:
    """Make a scorer for model selection: the less bias of predictions, the higher its score.

    It asks for ``sensitive_features`` by scikit-learn's metadata routing, which has to be enabled
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
    with config_context(enable_metadata_routing=True):  # without, nothing may be asked for
        return scorer.set_score_request(sensitive_features=True)


def _counted(estimator: Any, X: Any, y: Any, features: Any) -> CountedRows:
    labels, X = _checked_labels(estimator, X, y), indexable(X)
    names = estimator.sensitive_columns
    columns = sensitive_columns(features, _num_samples(X), X=X, names=names)
    return count_rows(labels, columns, X=X, label=getattr(y, "name", None))


def _checked_labels(estimator: Any, X: Any, y: Any) -> NDArray[Any]:
    """Check data as scikit-learn does, but take features of any type."""
    validate_data(estimator, X=X, y=y, skip_check_array=True)
    if not hasattr(X, "columns"):  # frames have two dimensions
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
