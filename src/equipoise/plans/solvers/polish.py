"""Undoing single rows of a plan that it does not need, relative to its own label frequencies."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from equipoise.plans.cells import Edges, Real, Whole
    from equipoise.plans.problem import Problem
    from equipoise.plans.solvers.box import Box

STEPS = (64, 16, 4, 1)
"""Numbers of rows that are undone at once, in turn."""

TURNS = 100
"""Maximum number of changes for each step."""

_INSIDE = 1e-12


def polish(problem: Problem, rows: Whole, box: Box) -> Whole:
    """Undo changes of single cells while every group stays within its limits.

    Each time the change that saves most is undone. Only limits of single groups are considered.
    """
    cells, edges = problem.cells, problem.edges
    rows = rows.copy()
    for step in STEPS:
        for _ in range(TURNS):
            change = rows - cells.have
            size = np.minimum(np.abs(change), step)
            saved = np.where(change > 0, cells.add, cells.drop) * size
            line, y = np.nonzero((size == step) & (saved > 0))
            if not len(line):
                break
            new = rows[line, y] - np.sign(change[line, y]) * step
            good = _allowed(rows, line, y, new, edges, box)
            good &= (new >= cells.least[line, y]) & (new <= cells.most[line, y])
            good &= rows[line].sum(axis=1) - rows[line, y] + new >= cells.group_least[line]
            if not good.any():
                break
            best = int(np.where(good, saved[line, y], -1.0).argmax())
            rows[line[best], y[best]] = new[best]
    return rows


def _allowed(rows: Whole, line: Any, y: Any, new: Any, edges: Edges, box: Box) -> Any:
    """Whether each of some changes of one cell keeps every group within its limits."""
    move = new - rows[line, y]
    totals = np.repeat(rows.sum(axis=0)[None], len(line), axis=0).astype(float)
    totals[np.arange(len(line)), y] += move
    share = totals / np.maximum(totals.sum(axis=1, keepdims=True), 1.0)
    good = ((share >= box.low - _INSIDE) & (share <= box.high + _INSIDE)).all(axis=1)
    # The label frequencies at which each group is within its limits, without the changed one.
    least, most = frequencies_allowed(rows, edges)
    for y_, (low, high) in enumerate(zip(least.T, most.T, strict=True)):
        good &= share[:, y_] >= _without(low, line, -1) - _INSIDE
        good &= share[:, y_] <= _without(high, line, 1) + _INSIDE
    own = rows[line].copy()
    own[np.arange(len(line)), y] = new
    low, high = frequencies_allowed(own, edges.take(line))
    good &= ((share >= low - _INSIDE) & (share <= high + _INSIDE)).all(axis=1)
    return good


def frequencies_allowed(rows: Whole, edges: Edges) -> tuple[Real, Real]:
    """The range of each label's frequency at which each group is within its limits."""
    size = rows.sum(axis=1, keepdims=True)
    with np.errstate(divide="ignore", invalid="ignore"):
        share = rows / size
        most = (share - edges.low_shift) / edges.low
        least = (share - edges.high_shift) / edges.high
    # A limit that does not depend on the frequency holds or not, whatever it is.
    most = np.where(edges.low > 0, most, np.where(share >= edges.low_shift, np.inf, -np.inf))
    least = np.where(edges.high > 0, least, np.where(share <= edges.high_shift, -np.inf, np.inf))
    return np.where(size > 0, least, -np.inf), np.where(size > 0, most, np.inf)


def _without(values: Real, line: Any, sign: int) -> Real:
    """The smallest (or with −1 the largest) value of all groups but one, for each of some groups."""
    signed = sign * values
    order = np.argsort(signed, kind="stable")[:2]
    first = values[order[0]]
    second = values[order[1]] if len(order) > 1 else sign * np.inf
    return np.where(line == order[0], second, first)
