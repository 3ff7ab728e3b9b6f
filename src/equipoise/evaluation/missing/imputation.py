"""Methods of treating missing values: a separate value, left out, or imputed."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise.counts import MissingPolicy
from equipoise.errors import InputError, UnknownName
from equipoise.evaluation.missing.rows import ABSENT, LEAST_ROWS, Codes, Floats, Rows, one_hot
from equipoise.evaluation.training.models import require_scikit_learn
from equipoise.validate import at_least

if TYPE_CHECKING:
    from numpy.typing import NDArray

DONORS = 5_000
"""Maximum number of complete rows that imputers learn from; more would take minutes."""
ROUNDS = 3
"""Rounds in which columns are imputed in turn, if several have missing values."""
TREES = 40
_JITTER = 1e-3  # far below the distance of any two different values


# ----------------------------------------------------------------------------- methods


@dataclass(frozen=True)
class Method:
    """A method of treating missing values."""

    name: str
    sentence: str
    policy: MissingPolicy  # for values that are still missing when rows are counted
    fill: Callable[[Rows, int], Codes] | None = None  # imputes codes, for rows and a seed

    def codes(self, rows: Rows, seed: int) -> Codes:
        """Return the codes of the counted columns after treatment."""
        if self.fill is None or not rows.absent.any():
            return rows.codes
        return self.fill(rows, seed)


def choose_methods(names: str | Iterable[str]) -> tuple[Method, ...]:
    """Find methods by name.

    Examples
    --------
    >>> [method.name for method in choose_methods(["drop", "knn"])]
    ['drop', 'knn']
    >>> len(choose_methods("all"))
    7
    """
    asked = names.split(",") if isinstance(names, str) else list(names)
    asked = [str(name).strip() for name in asked]
    asked = list(METHODS) if asked == ["all"] else list(dict.fromkeys(asked))
    if not any(asked):
        raise InputError(f"`methods` must name at least one of: {', '.join(METHODS)}, or all.")
    for name in asked:
        if name not in METHODS:
            raise UnknownName("method of treating missing values", name, METHODS)
    chosen = tuple(METHODS[name] for name in asked)
    if any(method.fill for method in chosen):
        require_scikit_learn("imputation")
    return chosen


@dataclass(frozen=True)
class Settings:
    """Settings that a comparison and a simulation of methods share."""

    methods: tuple[Method, ...]
    min_count: int  # of the rows of a group under every method
    seed: int
    max_rows: int | None

    @classmethod
    def of(
        cls,
        methods: str | Iterable[str] = "all",
        min_count: int = 30,  # UB of smaller groups moves with single rows
        seed: int = 0,
        max_rows: int | None = None,
    ) -> Settings:
        """Check the settings, and find the methods by name."""
        at_least("min_count", min_count, 1, whole=True)
        at_least("seed", seed, 0, whole=True)
        if max_rows is not None:
            at_least("max_rows", max_rows, LEAST_ROWS, whole=True)
        return cls(choose_methods(methods), int(min_count), int(seed), max_rows)


# ------------------------------------------------------------------------------ imputers


def _with_nan(codes: Codes) -> Floats:
    return np.where(codes == ABSENT, np.nan, codes.astype(np.float64))


def _filled(rows: Rows, lines: NDArray[np.intp], found: Floats) -> Codes:
    """Insert imputed values where values are missing, and nowhere else."""
    codes = rows.codes.copy()
    absent = rows.absent[lines]
    part = codes[lines]
    part[absent] = np.rint(found[absent]).astype(np.int32)
    codes[lines] = part
    return codes


def _lacking(rows: Rows) -> NDArray[np.intp]:
    return np.flatnonzero(rows.absent.any(axis=1))


def _donors(rows: Rows, seed: int) -> NDArray[np.intp]:
    """Draw complete rows to learn from."""
    whole = np.flatnonzero(~rows.absent.any(axis=1))
    chosen = np.random.default_rng(seed).choice(whole, min(DONORS, len(whole)), replace=False)
    return np.sort(chosen)


def _most_frequent(rows: Rows, seed: int) -> Codes:  # noqa: ARG001
    from sklearn.impute import SimpleImputer

    found = SimpleImputer(strategy="most_frequent").fit_transform(_with_nan(rows.codes))
    return _filled(rows, np.arange(len(rows.codes)), found)


def _nearest(rows: Rows, seed: int) -> Codes:
    """Take the value of the nearest row; ties are broken at random."""
    from sklearn import config_context
    from sklearn.impute import KNNImputer

    donors, lacking = _donors(rows, seed), _lacking(rows)
    both = rows.take(np.concatenate([donors, lacking]))
    sizes = [len(values) for values in rows.values]
    counted = [one_hot(c, d) for c, d in zip(both.codes.T, sizes, strict=True)]
    # Without jitter, all rows would take the value of the first of several equally near rows.
    jitter = np.random.default_rng([seed, 1]).normal(scale=_JITTER, size=(len(both.codes), 1))
    matrix = np.hstack([*counted, both.others.spread(), jitter])
    with config_context(working_memory=64):
        imputer = KNNImputer(n_neighbors=1).fit(matrix[: len(donors)])
        found = imputer.transform(matrix[len(donors) :])
    ends = np.cumsum([0, *sizes])
    codes = [found[:, a:b].argmax(axis=1) for a, b in itertools.pairwise(ends.tolist())]
    return _filled(rows, lacking, np.column_stack(codes).astype(np.float64))


def _iterative(rows: Rows, seed: int, *, drawn: bool = False, blind: bool = False) -> Codes:
    """Predict each column with missing values from the others; a blind label from no attribute."""
    lines = np.concatenate([_donors(rows, seed), _lacking(rows)])
    some = rows.take(lines)
    found = np.zeros(some.codes.shape)
    columns = np.arange(len(rows.values))  # the label is the last
    for part in np.split(columns, [-1]) if blind else [columns]:
        matrix = np.hstack([_with_nan(some.codes[:, part]), some.others.matrix])
        found[:, part] = _round_robin(matrix, seed, drawn=drawn)[:, : len(part)]
    return _filled(rows, lines, found)


def _round_robin(matrix: Floats, seed: int, *, drawn: bool) -> Floats:
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.experimental import enable_iterative_imputer  # noqa: F401
    from sklearn.impute import IterativeImputer

    incomplete = int(np.isnan(matrix).any(axis=0).sum())
    # Every column is considered at every split, so that the label is never left out by chance.
    forest: Any = RandomForestClassifier(
        n_estimators=TREES, min_samples_leaf=5, max_features=None, random_state=seed % 2**32
    )
    imputer = IterativeImputer(
        _Drawing(forest, np.random.default_rng([seed, 2])) if drawn else forest,
        max_iter=ROUNDS if incomplete > 1 else 1,
        initial_strategy="most_frequent",
        skip_complete=True,
    )
    with warnings.catch_warnings():  # codes do not converge gradually
        warnings.simplefilter("ignore", ConvergenceWarning)
        return np.asarray(imputer.fit_transform(matrix))


class _Drawing:
    """A classifier that draws a class by its probability instead of taking the likeliest."""

    def __init__(self, classifier: Any, chance: np.random.Generator) -> None:
        self.classifier, self.chance = classifier, chance

    def __sklearn_clone__(self) -> _Drawing:
        from sklearn.base import clone

        # All draws come from one generator, so that draws for two columns are independent.
        return _Drawing(clone(self.classifier), self.chance)

    def fit(self, X: Floats, y: Floats) -> _Drawing:
        self.classifier.fit(X, y)
        return self

    def predict(self, X: Floats) -> Floats:
        up_to = self.classifier.predict_proba(X).cumsum(axis=1)
        place = (self.chance.random((len(X), 1)) * up_to[:, -1:] >= up_to).sum(axis=1)
        return np.asarray(self.classifier.classes_[place])


METHODS: Mapping[str, Method] = {
    method.name: method
    for method in (
        Method("group", "a missing value is a separate value, also for the label", "group"),
        Method("drop", "rows with a missing counted value are left out", "drop"),
        Method(
            "most_frequent",
            "the column's most frequent value (SimpleImputer)",
            "raise",
            _most_frequent,
        ),
        Method(
            "knn",
            "the value of the most similar row over all columns (KNNImputer with one neighbour)",
            "raise",
            _nearest,
        ),
        Method(
            "iterative",
            "the likeliest value, by a random forest on all columns (IterativeImputer)",
            "raise",
            _iterative,
        ),
        Method(
            "iterative_drawn",
            "as iterative, but drawn by the probabilities of the forest",
            "raise",
            partial(_iterative, drawn=True),
        ),
        Method(
            "iterative_blind",
            "as iterative, but sensitive attributes are imputed without the label, and the label "
            "without them",
            "raise",
            partial(_iterative, blind=True),
        ),
    )
}
"""All methods of treating missing values."""
