"""Whether rows reach what was asked: worked out from whole numbers, apart from any solver."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from equipoise.plans.cells import Real, Whole
    from equipoise.plans.problem import Problem

_NEAR = 1e-9


@dataclass(frozen=True, eq=False)
class Against:
    """Label frequencies as fractions: those a repaired table is held against."""

    parts: tuple[Fraction, ...]

    @classmethod
    def rows(cls, totals: Any) -> Against:
        """The label frequencies of a table with so many rows of each label."""
        n = int(sum(int(t) for t in totals))
        return cls(tuple(Fraction(int(t), n) for t in totals))

    @classmethod
    def shares(cls, shares: Any) -> Against:
        """Label frequencies that a user gave."""
        return cls(tuple(Fraction(repr(float(s))) for s in shares))

    @property
    def real(self) -> Real:
        """The same as floats."""
        return np.array([float(p) for p in self.parts])


def off_target(rows: Whole, ratios: Real, rates: Real, on: str) -> Real:
    """How far each group's rates are from its targets: relative or absolute; nan if empty."""
    size = rows.sum(axis=1, keepdims=True)
    target = ratios * rates
    with np.errstate(divide="ignore", invalid="ignore"):
        got = rows / size
        off = np.abs(got / target - 1) if on == "ub" else np.abs(got - target)
    return np.where(size > 0, off, np.nan)


def within(
    rows: Whole, ratios: Real, against: Against, tolerance: float, on: str = "ub"
) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Whether every label's rate in every group is within the tolerance, exactly.

    Floats decide what is far from the edge; what is near is worked out in whole numbers,
    with the tolerance taken as the decimal number that was written.

    >>> rows = np.array([[3, 7], [30, 70]])
    >>> within(rows, np.ones((2, 2)), Against.rows([25, 75]), 0.2).tolist()
    [[True, True], [True, True]]
    >>> within(rows, np.ones((2, 2)), Against.rows([25, 75]), 0.1999999999999).tolist()
    [[False, True], [False, True]]
    """
    off = off_target(rows, ratios, against.real, on)
    held = np.isnan(off) | (off <= tolerance)
    near = np.abs(off - tolerance) <= _NEAR * max(1.0, tolerance)
    limit = Fraction(repr(float(tolerance)))
    sizes = rows.sum(axis=1)
    for line, y in zip(*np.nonzero(near), strict=True):
        got = Fraction(int(rows[line, y]), int(sizes[line]))
        held[line, y] = _exactly(got, float(ratios[line, y]), against.parts[y], limit, on)
    return np.asarray(held)


def _exactly(got: Fraction, ratio: float, rate: Fraction, limit: Fraction, on: str) -> bool:
    if ratio == 1.0:
        target = rate
    else:  # a ratio of floats is known to a few digits less than they have
        target = Fraction(ratio) * rate
        limit += Fraction(1, 10**12)
    if not target:
        return got == 0
    off = abs(got / target - 1) if on == "ub" else abs(got - target)
    return off <= limit


def coarse_rows(problem: Problem, rows: Whole) -> Whole:
    """The rows of the coarser groups that are held to the tolerance."""
    if not problem.coarse:
        return np.zeros((0, rows.shape[1]), np.int64)
    return np.stack([rows[j.lines].sum(axis=0) for j in problem.coarse])


def coarse_ratios(problem: Problem) -> Real:
    """Their K."""
    return np.array([j.k for j in problem.coarse]).reshape(-1, problem.have.shape[1])


def within_tolerance(
    problem: Problem, rows: Whole, against: Against, tolerance: float | None = None
) -> bool:
    """Whether every group that counts is within the tolerance."""
    tolerance = problem.request.tolerance if tolerance is None else tolerance
    on = problem.request.tolerance_on
    finest = rows[problem.judged]
    if not within(finest, problem.ratios[problem.judged], against, tolerance, on).all():
        return False
    coarse = coarse_rows(problem, rows)
    return bool(within(coarse, coarse_ratios(problem), against, tolerance, on).all())


def worst_off(problem: Problem, rows: Whole, against: Against) -> float:
    """The largest distance from its target of any group that counts."""
    on = problem.request.tolerance_on
    parts = [
        off_target(rows[problem.judged], problem.ratios[problem.judged], against.real, on),
        off_target(coarse_rows(problem, rows), coarse_ratios(problem), against.real, on),
    ]
    values = np.concatenate([p.ravel() for p in parts])
    values = values[~np.isnan(values)]
    return float(values.max()) if len(values) else 0.0
