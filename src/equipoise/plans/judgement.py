"""Whether rows reach the tolerance: decided in whole numbers, independently of all solvers."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from equipoise.plans.cells import Real, Whole
    from equipoise.plans.problem import Problem

_NEAR = 1e-9  # far above the rounding of floats, far below the effect of a row


@dataclass(frozen=True, eq=False)
class Against:
    """The label frequencies that a repaired table is compared with, as fractions."""

    parts: tuple[Fraction, ...]

    @classmethod
    def rows(cls, totals: Any) -> Against:
        """The label frequencies of a table with the given numbers of rows per label."""
        n = int(sum(int(t) for t in totals))
        return cls(tuple(Fraction(int(t), n) for t in totals))

    @classmethod
    def shares(cls, shares: Any) -> Against:
        """Label frequencies given by the user, as the decimal numbers that were written."""
        return cls(tuple(Fraction(repr(float(s))) for s in shares))

    @property
    def real(self) -> Real:
        """The frequencies as floats."""
        return np.array([float(p) for p in self.parts])


def off_target(rows: Whole, ratios: Real, rates: Real, on: str) -> Real:
    """The distance of each group's rates from its targets, relative or absolute; nan if empty."""
    size = rows.sum(axis=1, keepdims=True)
    target = ratios * rates
    with np.errstate(divide="ignore", invalid="ignore"):
        got = rows / size
        off = np.abs(got / target - 1) if on == "ub" else np.abs(got - target)
    return np.where(size > 0, off, np.nan)


def within(
    rows: Whole, ratios: Real, against: Against, tolerance: float, on: str = "ub"
) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Decide exactly whether every label's rate in every group is within the tolerance.

    Floats decide rates that are far from the edge of the tolerance; the others are computed in
    whole numbers, with the tolerance as the decimal number that was written.

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
    else:  # K is a quotient of floats, so its last digits are not known
        target = Fraction(ratio) * rate
        limit += Fraction(1, 10**12)
    if not target:
        return got == 0
    off = abs(got / target - 1) if on == "ub" else abs(got - target)
    return off <= limit


def coarse_rows(problem: Problem, rows: Whole) -> Whole:
    """The rows of the coarser groups that must stay within the tolerance."""
    if not problem.coarse:
        return np.zeros((0, rows.shape[1]), np.int64)
    return np.stack([rows[j.lines].sum(axis=0) for j in problem.coarse])


def coarse_ratios(problem: Problem) -> Real:
    """The K of the coarser groups that must stay within the tolerance."""
    return np.array([j.k for j in problem.coarse]).reshape(-1, problem.have.shape[1])


def within_tolerance(
    problem: Problem, rows: Whole, against: Against, tolerance: float | None = None
) -> bool:
    """Whether every judged group is within the tolerance."""
    tolerance = problem.request.tolerance if tolerance is None else tolerance
    on = problem.request.tolerance_on
    finest = rows[problem.judged]
    if not within(finest, problem.ratios[problem.judged], against, tolerance, on).all():
        return False
    coarse = coarse_rows(problem, rows)
    return bool(within(coarse, coarse_ratios(problem), against, tolerance, on).all())


def worst_off(problem: Problem, rows: Whole, against: Against) -> float:
    """The largest distance of a judged group from its target."""
    on = problem.request.tolerance_on
    parts = [
        off_target(rows[problem.judged], problem.ratios[problem.judged], against.real, on),
        off_target(coarse_rows(problem, rows), coarse_ratios(problem), against.real, on),
    ]
    values = np.concatenate([p.ravel() for p in parts])
    values = values[~np.isnan(values)]
    return float(values.max()) if len(values) else 0.0
