"""Plans of the same cost, in a documented order: the better one by an exchange of rows is taken.

Of two plans of the same cost the one that changes fewer rows is better, then the one with fewer
deletions, then the one that changes more rows of the first cell in which they differ.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from equipoise.plans.judgement import within_tolerance

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

    from equipoise.plans.cells import Whole
    from equipoise.plans.problem import Problem
    from equipoise.plans.solvers.box import Box

MOST_CELLS = 100
"""Number of cells up to which exchanges are tried."""

SAME, ROUNDED = 1e-9, 1e-15
"""Relative difference of two prices that are the same, and rounding error of a total cost."""

MOST_TRIALS = 400
"""Maximum number of exchanges that are judged, so that this takes milliseconds."""


def order_of(problem: Problem, rows: Whole) -> tuple[Any, ...]:
    """What plans of the same cost are compared by: the smaller one is better."""
    change = (rows - problem.have).ravel()
    earliest = (-np.abs(change)).tolist(), (-change).tolist()
    return int(np.abs(change).sum()), int((-change).clip(0).sum()), *earliest


def settle_ties(problem: Problem, rows: Whole, box: Box | None) -> Whole:
    """Exchange rows of one or two cells while that gives a better plan of the same cost.

    The label frequencies stay in ``box``, if it is given. Large tables are left as they are.
    """
    if rows.size > MOST_CELLS:
        return rows
    trials = 0
    better = True
    while better:
        better = False
        for step in _exchanges(problem, rows):
            if trials >= MOST_TRIALS:
                return rows
            trials += 1
            if _accepts(problem, rows + step, box):
                rows, better = _repeated(problem, rows, step, box), True
                break
    return rows


def _repeated(problem: Problem, rows: Whole, step: Whole, box: Box | None) -> Whole:
    """Make an exchange as often as it goes on giving better plans, doubling it each time."""
    cost, rows = problem.cells.total_cost(rows), rows + step
    dearest = np.maximum(np.abs(problem.cells.add), np.abs(problem.cells.drop))
    while True:
        step = 2 * step
        trial = rows + step
        near = SAME * float((dearest * np.abs(step)).sum()) + ROUNDED * abs(cost)
        same = abs(problem.cells.total_cost(trial) - cost) <= near
        earlier = same and order_of(problem, trial) < order_of(problem, rows)
        if not (earlier and _accepts(problem, trial, box)):
            return rows
        rows = trial


def _accepts(problem: Problem, rows: Whole, box: Box | None) -> bool:
    """Whether rows hold every limit, in whole numbers and fractions."""
    if (rows < 0).any() or not rows.sum() or not problem.holds(rows):
        return False
    if box is not None:
        shares = rows.sum(axis=0) / rows.sum()
        slack = min(1e-12, 1e-2 / float(rows.sum()))  # less than a row, in tables of any size
        if ((shares < box.low - slack) | (shares > box.high + slack)).any():
            return False
    return within_tolerance(problem, rows, problem.base)


class _Moves(NamedTuple):
    """Changes of one cell by a row or two, and what they do."""

    cell: NDArray[np.int64]
    by: NDArray[np.int64]
    cost: NDArray[np.float64]
    changed: NDArray[np.int64]  # rows, more than before
    deleted: NDArray[np.int64]
    possible: NDArray[np.bool_]  # for its group, if no other cell changes


def _exchanges(problem: Problem, rows: Whole) -> Iterator[Whole]:
    """Changes of one or two cells that give better plans of the same cost, the best first."""
    one = _moves(problem, rows)
    first, second = np.triu_indices(len(one.cell))
    alone = first == second
    kept = alone | (one.cell[first] != one.cell[second])
    first, second, alone = first[kept], second[kept], alone[kept]

    def both(part: Any) -> Any:
        return part[first] + np.where(alone, 0, part[second])

    changed, deleted = both(one.changed), both(one.deleted)
    # Cells are in the order of the table, so that the first cell decides between equal plans.
    better = (changed < 0) | (
        (changed == 0) & ((deleted < 0) | ((deleted == 0) & (one.changed[first] > 0)))
    )
    # Prices are compared with those of the exchanged rows, not with a cost that may be far larger.
    good = better & (np.abs(both(one.cost)) <= SAME * both(np.abs(one.cost)))
    k = problem.cells.labels
    same = one.cell[first] // k == one.cell[second] // k
    good &= (one.possible[first] & one.possible[second]) | (same & ~alone)
    first, second, alone = first[good], second[good], alone[good]
    for i in np.lexsort([-second, first, deleted[good], changed[good]]).tolist():
        step = np.zeros(rows.size, np.int64)
        step[one.cell[first[i]]] += one.by[first[i]]
        if not alone[i]:
            step[one.cell[second[i]]] += one.by[second[i]]
        yield step.reshape(rows.shape)


def _moves(problem: Problem, rows: Whole) -> _Moves:
    """All changes of one cell by a row, or two where prices differ, in the order of the cells."""
    cells, k = problem.cells, problem.cells.labels
    steps = [1, -1] if np.ptp([cells.add, cells.drop]) == 0 else [1, -1, 2, -2]
    cell, by = np.repeat(np.arange(rows.size), len(steps)), np.tile(steps, rows.size)
    change = (rows - cells.have).ravel()[cell]

    def gained(measure: Callable[[Any], Any]) -> Any:
        return measure(change + by) - measure(change)

    add, drop = cells.add.ravel()[cell], cells.drop.ravel()[cell]
    cost = gained(lambda x: np.where(x > 0, add * x, -drop * x))
    new = rows.ravel()[cell] + by
    inside = (new >= cells.least.ravel()[cell]) & (new <= cells.most.ravel()[cell])
    keep = np.flatnonzero(inside)
    own = rows[cell // k].astype(float)
    own[np.arange(len(cell)), cell % k] += by
    possible = _possible(problem, rows, own, cell // k)
    return _Moves(
        cell[keep],
        by[keep],
        cost[keep],
        gained(np.abs)[keep],
        gained(lambda x: (-x).clip(0))[keep],
        possible[keep],
    )


def _possible(problem: Problem, rows: Whole, own: Any, line: Any) -> Any:
    """Whether groups with new rows can be within their limits while up to four rows change in all."""
    n = max(float(rows.sum()), 5.0)
    at = problem.base if problem.reference == "original" else rows.sum(axis=0) / n
    room = 0.0 if problem.reference == "original" else 4 / (n - 4)
    band = problem.band((at - room).clip(0), most=at + room).take(line)
    share = own / np.maximum(own.sum(axis=1, keepdims=True), 1.0)
    inside = (share >= band.low - 1e-9) & (share <= band.high + 1e-9)
    return inside.all(axis=1) | (own.sum(axis=1) <= 0)
