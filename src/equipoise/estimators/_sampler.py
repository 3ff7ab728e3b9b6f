"""A sampler that repairs training data with real rows."""

from __future__ import annotations

import numbers
import warnings
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from imblearn.base import BaseSampler
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions

from equipoise.errors import InputError
from equipoise.estimators._input import COLUMNS, count_input
from equipoise.estimators._moves import Moves, asked_moves, planned_moves
from equipoise.estimators._pool import count_pool
from equipoise.estimators._resampling import Resampling, max_abs_ub, resample
from equipoise.estimators._rows import CountedRows
from equipoise.estimators._strategy import spelled
from equipoise.frames import with_index_of
from equipoise.plain import ub_text
from equipoise.plans.request import ALLOW, REFERENCES, PlanRequest

if TYPE_CHECKING:
    from equipoise.counts import Counts


class RowsDeletedWarning(UserWarning):
    """Rows were deleted without an explicit request, because there is no pool to add rows from."""


class UniformBiasSampler(BaseSampler):  # type: ignore[misc]
    """Bring the Uniform Bias of every group within a tolerance, with real rows only.

    As few rows as possible are added from a pool or deleted; none is invented or repeated. Features
    may be of any type and stay as they are. Rows with a missing sensitive value are kept.

    Parameters
    ----------
    sampling_strategy
        ``"auto"`` plans the smallest repair. A mapping ``{(group, label): rows}`` sets the number of
        rows of some cells instead: a group is a value, or a tuple of values for several sensitive
        features; with a single group, ``{label: rows}`` will do. A function returns such a mapping
        for ``y``.
    pool
        Rows that can be added: ``(X, y)``, whose ``X`` has columns with the names of the sensitive
        features, or ``(X, y, sensitive_features)``. Frames may have more columns, and in another
        order. Whether the pool shares rows with the data is not checked.
    tolerance
        Largest remaining |UB| of any group. At 0 only rounding to whole rows remains.
    reference
        Label frequencies that groups are compared with: ``"original"`` is exact and much faster,
        ``"new"`` are those after the repair. By default as in a plan.
    labels
        ``"keep"`` keeps label frequencies, ``"free"`` lets them change, and ``{label: share}`` sets
        them.
    allow
        ``"add"``, ``"delete"`` or ``"both"``. By default a plan adds rows if there is a pool.
        Without a pool it deletes rows, and a :class:`RowsDeletedWarning` reports how many.
    partial
        Whether to come as close as possible, with a warning, if the pool has too few rows. A plan
        then never leaves a larger |UB| than before, and a mapping uses the rows available.
    sensitive_columns
        Names or positions of the columns of ``X`` that are the sensitive features, as an
        alternative to ``sensitive_features``.
    random_state
        Seed or generator for the choice of rows within a cell.

    Attributes
    ----------
    sample_indices_
        Indices of the rows, in order. An index ``i`` of at least ``len(X)`` is row ``i - len(X)`` of
        the pool.
    provenance_
        The same as a structured array with ``source``, ``"given"`` or ``"pool"``, and ``row``.
    plan_
        The :class:`~equipoise.plans.plan.Plan`; None for a mapping.
    counts_, resampled_counts_
        The :class:`~equipoise.counts.Counts` before and after.
    max_abs_ub_
        Largest |UB| after resampling, of the rows without a missing sensitive value.
    sampling_strategy_
        Rows of each cell after resampling, as a mapping that ``sampling_strategy`` takes.
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
        "sensitive_columns": COLUMNS,
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

    # The argument is not named: scikit-learn would otherwise ask every pipeline whether to route it
    # to this method, which pipelines never call.
    def fit(self, X: Any, y: Any, **params: Any) -> UniformBiasSampler:
        """Choose the rows without returning them; see :meth:`fit_resample`.

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
        """Return the rows that are kept, in order, followed by rows from the pool.

        Parameters
        ----------
        X
            An array, a sparse matrix, a pandas, polars or Arrow frame, or a list of rows.
        y
            Labels.
        sensitive_features
            A series, a frame, a mapping, an array, or a list of arrays, matched by position.
            Without it and without ``sensitive_columns`` the data is one group, and
            ``sampling_strategy`` or ``labels`` must say what to do.

        Returns
        -------
        X, y
            In the types they were given in. Rows of pandas frames keep their index.

        Raises
        ------
        PoolTooSmall
            If the pool has too few rows.
        Infeasible
            If no plan reaches what was asked.
        InputError
            If there are no sensitive features, and neither ``sampling_strategy`` nor ``labels``
            says what to do without them.

        Warns
        -----
        RowsDeletedWarning
            If rows are deleted because there is no pool, and ``allow`` is not set.
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
        given = count_input(self, X, y, sensitive_features)
        chosen = self._chosen(given, y)
        rows = chosen.features()
        labels = with_index_of(chosen.labels(y), rows)
        self.plan_ = chosen.moves.plan
        self.counts_ = given.counts
        self.resampled_counts_ = chosen.moves.after
        self.max_abs_ub_ = max_abs_ub(self.resampled_counts_)
        self.sampling_strategy_ = chosen.strategy
        self.sample_indices_ = chosen.indices
        self.provenance_ = chosen.provenance
        self._warn_of_deletions(given.n, chosen)
        if chosen.moves.shortfall:
            before = max_abs_ub(given.counts)
            warnings.warn(
                f"{chosen.moves.shortfall}; with the rows available the largest |UB| is "
                f"{ub_text(self.max_abs_ub_)}, and was {ub_text(before)}.",
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
                "were deleted; provide `pool=(X, y)`, or set `allow='delete'` if this is intended.",
                RowsDeletedWarning,
                stacklevel=4,  # where fit or fit_resample is called
            )

    def _require_groups(self, given: CountedRows) -> None:
        """Refuse data of one group, in which a plan would silently change nothing."""
        says = not isinstance(self.sampling_strategy, str) or not isinstance(self.labels, str)
        if not given.sensitive and not says:
            raise InputError(
                "no sensitive features were given, so there are no groups to repair; pass "
                "`sensitive_features` to fit_resample, or name columns of X with `sensitive_columns`. In "
                "a pipeline, `sensitive_features` must be routed: "
                "set_fit_resample_request(sensitive_features=True)."
            )

    def _chosen(self, given: CountedRows, y: Any) -> Resampling:
        if len(given.counts.label) < 2:
            raise InputError(
                f"y has only 1 class, {given.counts.label.values[0]}, so there is no bias to repair; at "
                "least 2 classes are required."
            )
        self._require_groups(given)
        names, pool = self.sensitive_columns, self.pool
        pool = None if pool is None else count_pool(pool, given, names=names)
        moves = self._moves(given.counts, None if pool is None else pool.counts, y)
        # scikit-learn accepts old-style random states only, from which a new generator is seeded.
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
