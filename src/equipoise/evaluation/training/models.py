"""The models that can be evaluated: those of the paper by name, and any scikit-learn classifier."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from equipoise.errors import InputError, MissingDependency, UnknownName


@dataclass(frozen=True)
class Model:
    """A kind of model, with a title for pages and a function that makes an estimator for a seed."""

    name: str
    title: str
    make: Callable[[int], Any]
    takes_missing: bool = False
    takes_weights: bool = True
    is_own: bool = False  # provided by the user

    @property
    def settings(self) -> str:
        """All parameters of the estimator, nested ones included; empty for a built-in model."""
        if not self.is_own:
            return ""
        parameters = self.make(0).get_params(deep=True)
        leaves = {k: v for k, v in parameters.items() if not hasattr(v, "get_params")}
        kinds = {k: type(v).__qualname__ for k, v in parameters.items()}
        texts = sorted((k, kinds[k], repr(v)) for k, v in leaves.items())
        return repr(texts) + repr(sorted(kinds.items()))


def _make(module: str, name: str, seed: int, **settings: Any) -> Any:
    # Imported when it is used, since scikit-learn takes a second to load.
    kind = getattr(importlib.import_module(f"sklearn.{module}"), name)
    return kind(random_state=seed, **settings)


_forest = partial(_make, "ensemble", "RandomForestClassifier")
_boosting = partial(_make, "ensemble", "GradientBoostingClassifier")
_extra_trees = partial(_make, "ensemble", "ExtraTreesClassifier")
_adaboost = partial(_make, "ensemble", "AdaBoostClassifier")
_perceptron = partial(_make, "neural_network", "MLPClassifier", early_stopping=True)
_logistic = partial(_make, "linear_model", "LogisticRegression", max_iter=1000)

MODELS: Mapping[str, Model] = {
    model.name: model
    for model in (
        Model("random_forest", "random forest", _forest, takes_missing=True),
        Model("gbdt", "gradient boosting", _boosting),
        Model("extra_trees", "extra trees", _extra_trees, takes_missing=True),
        Model("adaboost", "AdaBoost", _adaboost),
        Model("mlp", "multilayer perceptron", _perceptron),
        Model("logistic", "logistic regression", _logistic),
    )
}
"""The six models of the paper with scikit-learn's default settings, except that logistic regression
may take 1,000 iterations and the perceptron stops early."""

_DEFAULT_MODELS = ("gbdt", "logistic")


def choose_models(
    models: str | Iterable[str] | Mapping[str, Any] | None = None,
) -> tuple[Model, ...]:
    """Find models by name, or take a mapping of names to scikit-learn classifiers.

    Examples
    --------
    >>> [model.title for model in choose_models("gbdt, logistic")]
    ['gradient boosting', 'logistic regression']
    >>> len(choose_models("all"))
    6
    """
    require_scikit_learn("an evaluation of models")
    models = _DEFAULT_MODELS if models is None else models
    if isinstance(models, Mapping):
        chosen = tuple(_own(name, estimator) for name, estimator in models.items())
    else:
        chosen = tuple(MODELS[name] for name in _names(models))
    if not chosen:
        raise InputError(f"`models` must name at least one of: {', '.join(MODELS)}.")
    return chosen


def _names(models: str | Iterable[str]) -> Iterable[str]:
    if not isinstance(models, Iterable):
        raise InputError(
            "`models` must be names of models, or a mapping of names to scikit-learn classifiers, not "
            f"{models!r}."
        )
    given = models.split(",") if isinstance(models, str) else list(models)
    names = dict.fromkeys(str(name).strip() for name in given)
    for name in names:
        if name not in (*MODELS, "all"):
            raise UnknownName("model", name, MODELS)
    return MODELS if "all" in names else names


def _own(name: str, estimator: Any) -> Model:
    from sklearn.base import clone, is_classifier
    from sklearn.utils import get_tags
    from sklearn.utils.validation import has_fit_parameter

    if not hasattr(estimator, "get_params") or not is_classifier(estimator):
        raise InputError(
            f"model {name!r} must be a scikit-learn classifier or compatible with one, not "
            f"{type(estimator).__name__}."
        )

    def make(seed: int) -> Any:
        fresh = clone(estimator)
        seeds = [p for p in fresh.get_params(deep=True) if p.split("__")[-1] == "random_state"]
        return fresh.set_params(**dict.fromkeys(seeds, seed))

    return Model(
        str(name),
        str(name),
        make,
        takes_missing=bool(get_tags(estimator).input_tags.allow_nan),
        takes_weights=has_fit_parameter(estimator, "sample_weight"),
        is_own=True,
    )


def require_scikit_learn(purpose: str) -> None:
    """Refuse to go on without scikit-learn, and say how to install it."""
    try:
        import sklearn  # noqa: F401
    except ImportError:
        raise MissingDependency("scikit-learn", extra="models", purpose=purpose) from None
