"""Means over repeats with their intervals, and paired differences.

The intervals are Student's t. They say how far a mean would move with other random choices, such as
other splits of the same table; they say nothing about other tables.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

LEAST_REPEATS = 5
"""Minimum number of repeats for a difference to be called clear."""
_ROUNDING = 1e-12  # values that coincide may still differ by this much


class Mean(NamedTuple):
    """Mean over repeats and its interval; nan where undefined, as the interval of a single repeat."""

    mean: float
    low: float
    high: float

    @classmethod
    def of(cls, values: ArrayLike, confidence: float = 0.95, *, least: float = -math.inf) -> Mean:
        """Compute the mean over the repeats that have a value; no interval goes below ``least``."""
        n, mean, error = _moments(values)
        half = _half(n, error, confidence)
        return cls(mean, max(mean - half, least), mean + half)

    def plain(self, digits: int = 5) -> list[float | None]:
        """Return the three numbers rounded, and None where undefined."""
        return [None if x != x else round(x, digits) for x in self]


class Difference(NamedTuple):
    """Mean of paired differences, its interval, and the p-value of no difference."""

    mean: float
    low: float
    high: float
    p: float

    @classmethod
    def of(cls, values: ArrayLike, others: ArrayLike, confidence: float = 0.95) -> Difference:
        """Compare two versions repeat by repeat."""
        from scipy.special import stdtr

        n, mean, error = _moments(np.asarray(values, np.float64) - np.asarray(others, np.float64))
        half = _half(n, error, confidence)
        # Scores of few rows can coincide in all repeats, which is no evidence of a difference.
        told = n >= LEAST_REPEATS and error > 0
        p = float(2 * stdtr(n - 1, -abs(mean / error))) if told else math.nan
        return cls(mean, mean - half, mean + half, p)


def _moments(values: ArrayLike) -> tuple[int, float, float]:
    """Return the number of values that are known, their mean, and its standard error."""
    known = [v for v in np.asarray(values, np.float64).tolist() if v == v]
    n = len(known)
    mean = math.fsum(known) / n if n else math.nan
    if n < 2:
        return n, mean, math.nan
    error = math.sqrt(math.fsum((v - mean) ** 2 for v in known) / (n - 1) / n)
    return n, mean, error if error > _ROUNDING else 0.0


def _half(n: int, error: float, confidence: float) -> float:
    from scipy.special import stdtrit

    return float(stdtrit(n - 1, 0.5 + confidence / 2)) * error if n > 1 else math.nan
