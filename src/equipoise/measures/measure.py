"""A measure: what it computes from counts, and what a reader must know about it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from collections.abc import Callable

Floats: TypeAlias = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Margins:
    """The input of a measure, for G groups and k labels: numbers of rows, or sums of weights.

    >>> hiring = Margins.of(n=600, n_y=[200, 400], n_g=[150, 450], n_gy=[[40, 110], [160, 290]])
    >>> hiring.reference.round(3).tolist()
    [[0.356, 0.644], [0.267, 0.733]]
    """

    n: float
    n_y: Floats  # shape (k,)
    n_g: Floats  # shape (G, 1)
    n_gy: Floats  # shape (G, k)
    reference: Floats
    """The rate that each group's rate is compared with, shape (G, k)."""

    @classmethod
    def of(
        cls, *, n: float, n_y: object, n_g: object, n_gy: object, reference: Floats | None = None
    ) -> Margins:
        """Make margins from array-likes; by default, groups are compared with the rest."""
        totals, groups = np.asarray(n_y, float), np.asarray(n_g, float).reshape(-1, 1)
        cells = np.asarray(n_gy, float)
        rest = ratio(totals - cells, n - groups) if reference is None else reference
        return cls(float(n), totals, groups, cells, rest)

    @property
    def rate(self) -> Floats:
        """f_gy, the share of a group's rows that have a label."""
        return ratio(self.n_gy, self.n_g)

    @property
    def overall_rate(self) -> Floats:
        """f_y, the share of all rows that have a label."""
        return ratio(self.n_y, np.float64(self.n))


@dataclass(frozen=True, kw_only=True)
class Measure:
    """A registered measure, whose values range from `low` to `high`."""

    name: str
    symbol: str
    formula: str
    function: Callable[[Margins], Floats]
    neutral: float | None
    """Value for a group whose rate equals the rate it is compared with, if there is one."""
    sentence: str
    """Explains a value, with ``{group}``, ``{label}`` and ``{value}`` to fill in."""
    low: float = -math.inf
    high: float = math.inf
    against: str | None = "overall"
    """What a group is compared with: ``"overall"``, ``"reference"`` or None for nothing."""
    more_is_more: bool = True
    """Whether it increases with the group's own rate."""
    scale_invariant: bool = True
    """Whether multiplying all counts by one number leaves it unchanged."""
    symmetric: bool = False
    """Whether swapping the labels of a binary table changes only its sign."""

    @property
    def title(self) -> str:
        """The name as words."""
        return self.name.replace("_", " ")

    @property
    def bounded(self) -> bool:
        """Whether its range is finite."""
        return bool(np.isfinite([self.low, self.high]).all())


MEASURES: dict[str, Measure] = {}
"""The measures by name, in the order of entry; read them through the registry, which loads all."""


RATIO = {"low": 0.0, "neutral": 1.0}
DIFFERENCE = {"low": -1.0, "high": 1.0, "neutral": 0.0}
"""Ranges of quotients and of differences of rates."""


def register(**entry: Any) -> Callable[[Callable[[Margins], Floats]], Callable[[Margins], Floats]]:
    """Enter a function in the registry under its own name, with the other fields of `Measure`."""

    def enter(function: Callable[[Margins], Floats]) -> Callable[[Margins], Floats]:
        MEASURES[function.__name__] = Measure(name=function.__name__, function=function, **entry)
        return function

    return enter


def ratio(numerator: Floats, denominator: Floats | np.float64) -> Floats:
    """Divide; the result is nan where the denominator is 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(denominator == 0, np.nan, np.divide(numerator, denominator))
