"""Tools for scikit-learn and imbalanced-learn: a sampler, weights and a score.

Each counts the rows it is given and leaves the work to :mod:`equipoise.plans` and
:mod:`equipoise.measures`. Only the sensitive features and the labels of the data are inspected.
"""

from __future__ import annotations

from equipoise.errors import MissingDependency

try:
    import sklearn  # noqa: F401
except ImportError as error:
    raise MissingDependency(
        "scikit-learn", extra="models", purpose="equipoise.estimators"
    ) from error
try:
    import imblearn  # noqa: F401
except ImportError as error:
    raise MissingDependency(
        "imbalanced-learn", extra="models", purpose="equipoise.estimators"
    ) from error

from equipoise.estimators._sampler import RowsDeletedWarning, UniformBiasSampler
from equipoise.estimators._score import make_uniform_bias_scorer, uniform_bias_score
from equipoise.estimators._weights import UniformBiasWeights

__all__ = [
    "RowsDeletedWarning",
    "UniformBiasSampler",
    "UniformBiasWeights",
    "make_uniform_bias_scorer",
    "uniform_bias_score",
]
