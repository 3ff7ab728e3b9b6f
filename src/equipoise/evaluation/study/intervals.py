"""Means over repeats with their intervals, and paired differences.

A repeat is a new random split of the same table. The interval (Student's t) says how far the mean
would move with other splits of this table; it says nothing about other tables.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    Floats: TypeAlias = NDArray[np.float64]


LEAST_REPEATS = 5
"""Minimum number of repeats for a difference to be called clear."""


class Mean(NamedTuple):
    """Mean over repeats and its interval; nan where undefined."""

    mean: float
    low: float
    high: float

    @classmethod
    def of(cls, values: ArrayLike, confidence: float = 0.95) -> Mean:
        """Compute the mean over the repeats that have a value.

        Examples
        --------
        >>> [round(x, 3) for x in Mean.of([0.80, 0.82, 0.84, float("nan")])]
        [0.82, 0.77, 0.87]
        """
        mean, half, _ = _moments(values, confidence)
        return cls(mean, mean - half, mean + half)

    def plain(self, digits: int = 5) -> list[float | None]:
        """Give the three numbers rounded, and None where undefined."""
        return [None if x != x else round(float(x), digits) for x in self]


class Difference(NamedTuple):
    """Mean of paired differences, its interval, and the p-value of no difference."""

    mean: float
    low: float
    high: float
    p: float

    @classmethod
    def of(cls, values: ArrayLike, others: ArrayLike, confidence: float = 0.95) -> Difference:
        """Compare two versions repeat by repeat.

        Examples
        --------
        >>> difference = Difference.of(
        ...     [0.81, 0.83, 0.85, 0.84, 0.86], [0.80, 0.82, 0.83, 0.82, 0.85]
        ... )
        >>> round(difference.mean, 4), difference.p < 0.01
        (0.014, True)
        """
        from scipy.special import stdtr

        gaps = np.asarray(values, np.float64) - np.asarray(others, np.float64)
        mean, half, t = _moments(gaps, confidence)
        n = int((~np.isnan(gaps)).sum())
        p = float(2 * stdtr(n - 1, -abs(t))) if n >= LEAST_REPEATS and t == t else float("nan")
        return cls(mean, mean - half, mean + half, p)


def _moments(values: ArrayLike, confidence: float) -> tuple[float, float, float]:
    """Compute the mean, half the width of its interval, and t."""
    from scipy.special import stdtrit

    known = np.asarray(values, np.float64)
    known = known[~np.isnan(known)]
    n = len(known)
    if n == 0:
        return float("nan"), float("nan"), float("nan")
    mean = float(known.mean())
    if n == 1:
        return mean, float("nan"), float("nan")
    error = float(known.std(ddof=1)) / n**0.5
    if error <= 1e-12:  # scores of few rows can coincide in all repeats, which is no evidence
        return mean, 0.0, float("nan")
    return mean, float(stdtrit(n - 1, 0.5 + confidence / 2)) * error, mean / error
