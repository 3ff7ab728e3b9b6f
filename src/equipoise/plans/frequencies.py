"""The label frequencies of a problem: which a plan is compared with, and how far they may move."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from equipoise.errors import InputError
from equipoise.lattice import format_value
from equipoise.plans.judgement import Against, worst_off

if TYPE_CHECKING:
    from equipoise.plans.cells import Real, Whole
    from equipoise.plans.problem import Problem


def reference_of(problem: Problem) -> str:
    """The label frequencies a plan is compared with; K is a ratio to the present ones."""
    request = problem.request
    if problem.special and not request.tolerance:
        return "original"
    return request.reference or ("original" if problem.special else "new")


def against(problem: Problem, base: Real, rows: Whole) -> Against:
    """The label frequencies that rows are compared with, as fractions."""
    if reference_of(problem) == "new":
        return Against.rows(rows.sum(axis=0))
    return given_frequencies(problem, base)


def given_frequencies(problem: Problem, base: Real) -> Against:
    """The label frequencies a plan starts from, as fractions."""
    if np.array_equal(base, problem.rates):
        return Against.rows(problem.have.sum(axis=0))
    return Against.shares(base)


def base_rates(problem: Problem) -> Real:
    """The label frequencies to keep: the present ones, or those the request gives."""
    labels = problem.request.labels
    if isinstance(labels, str):
        return problem.rates
    axis = problem.counts.label
    rates = np.full(len(axis), np.nan)
    for value, share in labels:
        rates[axis.code(value)] = share
    for value, share, have in zip(axis.values, rates, problem.have.sum(axis=0), strict=True):
        if np.isnan(share) and not have:
            rates[axis.code(value)] = 0.0  # rows with a missing label are set aside
            continue
        if np.isnan(share):
            raise InputError(f"`labels` has no share for {format_value(value)}.")
        if not share and have:
            raise InputError(
                f"`labels` gives {format_value(value)} the share 0, but {have:,} rows have this "
                "label, which no plan can change; give it a share above 0."
            )
    if abs(rates.sum() - 1) > 1e-6:
        rescaled = ", ".join(
            f"{format_value(v)} = {r / rates.sum():.6g}"
            for v, r in zip(axis.values, rates, strict=True)
        )
        raise InputError(
            f"the shares of `labels` add up to {rates.sum():.6g}, not 1; rescaled they would be "
            f"{rescaled}."
        )
    return np.asarray(rates / rates.sum())


def drifts(problem: Problem) -> bool:
    """Whether label frequencies could move too far if nothing limits them.

    Where every group comes to K = 1 within the tolerance, so does the table as their mixture.
    """
    request = problem.request
    if request.labels == "free":
        return request.label_drift is not None
    return not problem.plain or request.label_drift is not None


def drift(rows: Whole, base: Real, on: str) -> float:
    """The largest move of a label frequency, as a share of itself or absolute."""
    moved = np.abs(rows.sum(axis=0) / max(int(rows.sum()), 1) - base)
    if on == "rate":
        return float(moved.max())
    return float((moved[base > 0] / base[base > 0]).max())


def off_by(problem: Problem, rows: Whole, base: Real) -> float:
    """The distance of the worst judged group from its target."""
    return worst_off(problem, rows, against(problem, base, rows))
