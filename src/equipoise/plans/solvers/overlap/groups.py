"""All judged groups of a problem as arrays, and their limits as linear cuts.

The limits follow the label frequencies f of the table. For frequencies in a box, the product of a
group's size M and a frequency lies in McCormick's envelope, with N the rows of the table and T those
of a label: ``f·M + s·(T − f·N)`` at ends of the ranges of f and of the group's share s of the table.
At fixed frequencies s is 0, and a cut is the limit itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise.plans.cells import Band, Edges
from equipoise.plans.solvers.separable import solve_separable

if TYPE_CHECKING:
    from equipoise.plans.cells import Real
    from equipoise.plans.problem import Problem
    from equipoise.plans.solvers.box import Box
    from equipoise.plans.solvers.separable import Separated


@dataclass(frozen=True, eq=False)
class Groups:
    """The judged groups, the finest first: which lines they contain, and their limits."""

    inside: Any  # sparse, groups × lines
    edges: Edges

    @classmethod
    def of(cls, problem: Problem) -> Groups:
        """Collect the judged groups of a problem."""
        from scipy import sparse

        finest = np.flatnonzero(problem.judged)
        ones = np.ones(len(finest))
        shape = (len(finest), len(problem.cells))
        inside = sparse.csr_array((ones, (np.arange(len(finest)), finest)), shape=shape)
        edges = problem.edges.take(finest)
        if problem.coarse:
            inside = sparse.vstack([inside, problem.membership]).tocsr()
            edges = _joined(edges, problem.coarse_edges)
        return cls(inside, edges)

    def __len__(self) -> int:
        return int(self.inside.shape[0])

    def alone(self, problem: Problem, band: Band) -> Separated:
        """The cheapest whole rows of each judged finest group on its own."""
        lines = np.flatnonzero(problem.judged)
        return solve_separable(problem.cells.take(lines), band.take(np.arange(len(lines))))

    def band(self, low: Real, high: Real) -> Band:
        """The shares allowed at all label frequencies from ``low`` to ``high``."""
        band = self.edges.at(high, low)
        return Band(band.low, np.minimum(band.high, 1.0))

    def union(self, low: Real, high: Real) -> Band:
        """The shares allowed at some label frequencies from ``low`` to ``high``."""
        band = self.edges.at(low, high)
        return Band(band.low, np.minimum(band.high, 1.0))


def _joined(one: Edges, other: Edges) -> Edges:
    parts = ("low", "low_shift", "high", "high_shift")
    return Edges(**{p: np.concatenate([getattr(one, p), getattr(other, p)]) for p in parts})


def folded(band: Band) -> Band:
    """For two labels, both limits as limits on the first label, with none on the second."""
    low = np.maximum(band.low[:, 0], 1 - band.high[:, 1])
    high = np.minimum(band.high[:, 0], 1 - band.low[:, 1])
    return Band(
        np.stack([low, np.zeros_like(low)], axis=1), np.stack([high, np.ones_like(high)], axis=1)
    )


@dataclass(frozen=True, eq=False)
class Cuts:
    """One cut for each group and label: ``sign·(S − slope·W − shift·M) ≤ 0`` at an end for W.

    S and M are the rows of the group with the label and in all; W stands for M times the label's
    frequency and is taken as ``f·M + s·(T − f·N)``.
    """

    sign: int
    slope: Real
    shift: Real
    f: Real  # one for each label
    s: Real  # one for each group

    def excess(self, sums: Real, totals: Real) -> Real:
        """By how much rows break each cut; ``sums`` are those of groups and labels."""
        size = sums.sum(axis=1, keepdims=True)
        product = self.f * size + self.s[:, None] * (totals - self.f * totals.sum())
        return np.asarray(self.sign * (sums - self.slope * product - self.shift * size))

    def on_group(self, c: Any, y: Any) -> Real:
        """Coefficients of the group's rows by label, a line for each chosen cut."""
        k = len(self.f)
        own = np.eye(k)[y]
        every = self.slope[c, y] * self.f[y] + self.shift[c, y]
        return np.asarray(self.sign * (own - every[:, None]))

    def on_totals(self, c: Any, y: Any) -> Real:
        """Coefficients of the label totals."""
        k = len(self.f)
        factor = self.sign * self.slope[c, y] * self.s[c]
        return np.asarray(factor[:, None] * (self.f[y][:, None] - np.eye(k)[y]))


def cuts_at(edges: Edges, low: Real, high: Real | None = None) -> tuple[Cuts, ...]:
    """The limits at label frequencies, or those that hold at all from ``low`` to ``high``."""
    none = np.zeros(len(edges.low))
    return (
        Cuts(1, edges.high, edges.high_shift, low, none),
        Cuts(-1, edges.low, edges.low_shift, low if high is None else high, none),
    )


def cuts_in(edges: Edges, box: Box, least: Real, most: Real) -> tuple[Cuts, ...]:
    """Cuts that hold at all frequencies in a box, for groups with shares from least to most."""
    high, low = (edges.high, edges.high_shift), (edges.low, edges.low_shift)
    return (
        Cuts(1, *high, box.high, least),
        Cuts(1, *high, box.low, most),
        Cuts(-1, *low, box.low, least),
        Cuts(-1, *low, box.high, most),
    )
