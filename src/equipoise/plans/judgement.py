"""Whether rows reach the tolerance: decided in whole numbers, independently of all solvers."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise.measures.request import MeasureRequest
from equipoise.measures.table import bias_table
from equipoise.plans.demands import bias_of

if TYPE_CHECKING:
    from equipoise.measures.policy import Check
    from equipoise.plans.cells import Real, Whole
    from equipoise.plans.policy import PlanPolicy
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


def compared_with(problem: Problem, rows: Whole, base: Real) -> Against:
    """The label frequencies that rows are compared with: their own, or ``base``."""
    if problem.reference == "new":
        return Against.rows(rows.sum(axis=0))
    if np.array_equal(base, problem.rates):
        return Against.rows(problem.have.sum(axis=0))
    return Against.shares(base)


def within_tolerance(problem: Problem, rows: Whole, base: Real) -> bool:
    """Whether every judged group of a plan for the frequencies ``base`` is within the tolerance."""
    if problem.ruled is not None:
        return _keeps_rules(problem, rows)
    asked, against = problem.request, compared_with(problem, rows, base)
    judged, ratios = problem.judged_rows(rows), problem.judged_ratios
    return bool(within(judged, ratios, against, asked.tolerance, asked.tolerance_on).all())


def _keeps_rules(problem: Problem, rows: Whole) -> bool:
    """Whether every judged group is inside the limits of its rule, in the floats of a check."""
    ub = bias_of(problem.judged_rows(rows), rows.sum(axis=0))
    pairs = zip(problem.own, problem.shared, strict=True)
    slack, finest = problem.request.slack, int(problem.judged.sum())
    return all(
        own.take(problem.judged).widened(slack).met(ub[:finest]).all()
        and coarse.widened(slack).met(ub[finest:]).all()
        for own, coarse in pairs
    )


def check_rules(problem: Problem, rows: Whole) -> Check:
    """Check a table with the given rows against the policy of a request."""
    policy: PlanPolicy = problem.request.policy
    lines, labels = np.nonzero(rows)
    codes = np.concatenate([problem.codes[lines], labels[:, None]], axis=1).astype(np.int32)
    counts = replace(problem.counts, codes=codes, rows=rows[lines, labels])
    options = MeasureRequest(uncertainty=False, max_order=policy.max_order)
    return policy.checked.check(bias_table(counts, options))


def exact_rows(sizes: Real, targets: Real) -> Real:
    """The rows of groups of given sizes at zero bias, before rounding.

    What is a whole number but for the rounding of floats is that number: plans, their bounds and
    their certificates all ask this function, so that they mean the same by "within a row".

    >>> exact_rows(np.array([10.0]), np.array([[0.1 + 0.2, 0.7]])).tolist()
    [[3.0, 7.0]]
    """
    exact = sizes[:, None] * targets
    whole = np.rint(exact)
    return np.where(np.abs(exact - whole) <= _NEAR * np.maximum(whole, 1.0), whole, exact)


def within_a_row(problem: Problem, rows: Whole, base: Real, sizes: Real) -> bool:
    """Whether each label of each judged group is less than a row off its exact number.

    ``sizes`` are those of the judged groups before rounding, the coarser groups last.
    """
    exact = exact_rows(sizes, problem.judged_ratios * base)
    return bool((np.abs(problem.judged_rows(rows) - exact) < 1).all())


def keeps_drift(problem: Problem, rows: Whole) -> bool:
    """Whether no label frequency moves further than a request allows.

    At zero tolerance rounding may move a label by a row per group, whatever the limit is.
    """
    request, n, totals = problem.request, float(rows.sum()), rows.sum(axis=0)
    if (
        request.label_drift is None
        or drift(rows, problem.base, "ub") <= request.label_drift + 1e-12
    ):
        return True
    room = np.maximum(request.label_drift * problem.base * n, len(rows) + 1.0)
    return not request.tolerance and bool((np.abs(totals - problem.base * n) <= room).all())


def keeps_limits(problem: Problem, rows: Whole) -> bool:
    """Whether rows keep all limits on rows and on the move of label frequencies."""
    return problem.holds(rows) and keeps_drift(problem, rows)


def off_by(problem: Problem, rows: Whole, base: Real) -> float:
    """The largest distance of a judged group from its target.

    With a policy, it is the tolerance that its limits would have to be widened to.
    """
    if problem.ruled is not None:
        return max(float(problem.request.policy.tolerance) + problem.ruled.excess(rows), 0.0)
    rates, on = compared_with(problem, rows, base).real, problem.request.tolerance_on
    off = off_target(problem.judged_rows(rows), problem.judged_ratios, rates, on)
    return float(off[~np.isnan(off)].max(initial=0.0))


def drift(rows: Whole, base: Real, on: str) -> float:
    """The largest move of a label frequency, relative (``"ub"``) or absolute (``"rate"``)."""
    moved = np.abs(rows.sum(axis=0) / max(int(rows.sum()), 1) - base)
    if on == "rate":
        return float(moved.max())
    return float((moved[base > 0] / base[base > 0]).max())
