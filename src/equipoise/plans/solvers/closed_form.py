"""Zero bias in closed form: how large each group becomes, and its rows as whole numbers.

At zero bias a group of size t has t·q rows of each label, where q is its target. Its cost
is convex and piecewise linear in t, with a corner wherever t·q equals the present rows. The
minimum is a weighted quantile of those corners; without deletions it is the largest one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise.plans.cells import UNLIMITED, Cells
from equipoise.plans.judgement import exact_rows

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from equipoise.options.plan import Rounding
    from equipoise.plans.cells import Real, Whole

_HAIR = 1e-12


@dataclass(frozen=True, eq=False)
class Sizes:
    """The cheapest real-valued size of each group at zero bias, and whether it can reach its target."""

    size: Real
    feasible: NDArray[np.bool_]
    least: Real  # bounds on the size
    most: Real


def best_sizes(cells: Cells, targets: Real, extra: Whole | None = None) -> Sizes:
    """Find the cheapest size of each group at exactly its target rates.

    ``targets`` has one line per group, or one for all. ``extra`` rows beyond the minimum are added
    to each group's free label, the label of which it has most relative to its target.
    """
    q = np.broadcast_to(targets, cells.have.shape)
    with np.errstate(divide="ignore", invalid="ignore"):
        least = np.where(cells.least > 0, cells.least / q, 0.0).max(axis=1)
        corners = np.where(cells.have > 0, cells.have / q, 0.0)
    least = np.maximum(least, cells.group_least)
    most = _largest(cells, q)
    # Rows are whole: where a maximum excludes every size, a label may exceed it by almost a row.
    most = np.where(least <= most * (1 + _HAIR) + _HAIR, most, _largest(cells, q, 1 - 1e-6))
    quantile = _weighted_quantile(corners, q * (cells.add + cells.drop), (q * cells.drop).sum(1))
    size = np.clip(quantile, least, np.maximum(least, most))
    if extra is not None:
        free = corners.argmax(axis=1)
        more = extra / np.take_along_axis(q, free[:, None], axis=1)[:, 0]
        size = np.where(extra > 0, np.maximum(corners.max(axis=1) + more, size), size)
        least = np.maximum(least, np.where(extra > 0, size, 0.0))
    return Sizes(size, least <= most * (1 + _HAIR) + _HAIR, least, np.maximum(least, most))


def _largest(cells: Cells, q: Real, room: float = 0.0) -> Real:
    """The largest size at which no label exceeds its maximum by more than ``room`` rows."""
    with np.errstate(divide="ignore", invalid="ignore"):
        most = np.where((cells.most < UNLIMITED) & (q > 0), (cells.most + room) / q, np.inf)
    return np.asarray(most.min(axis=1))


def _weighted_quantile(corners: Real, weights: Real, wanted: Real) -> Real:
    """The smallest corner at which the cumulated weights reach a value."""
    order = np.argsort(corners, axis=1, kind="stable")
    reached = np.cumsum(np.take_along_axis(weights, order, axis=1), axis=1)
    enough = reached >= (wanted * (1 - _HAIR))[:, None]
    first = enough.argmax(axis=1)[:, None]
    return np.take_along_axis(np.take_along_axis(corners, order, axis=1), first, axis=1)[:, 0]


def whole_rows(cells: Cells, targets: Real, size: Real, rounding: Rounding) -> Whole:
    """Round the rows of groups of given sizes to whole numbers.

    ``"floor"`` rounds down, ``"nearest"`` to the nearest number, and ``"optimal"`` rounds each label
    up or down so that the largest |UB| of the group is smallest.
    """
    exact = exact_rows(size, targets)
    if rounding == "nearest":
        rows = np.floor(exact + 0.5)
    elif rounding == "floor":
        rows = np.floor(exact)
    else:
        rows = _optimal(cells, targets, exact)
    rows = np.clip(rows, cells.least, cells.most).astype(np.int64)
    return _filled_up(cells, exact, rows)


def _optimal(cells: Cells, targets: Real, exact: Real) -> Real:
    """Round each label up or down: find the best choice for each number of labels rounded up."""
    below = np.clip(np.floor(exact), cells.least, cells.most)
    above = np.clip(np.ceil(exact), cells.least, cells.most)
    free = above > below
    best = np.full(len(exact), np.inf)
    chosen = below.copy()
    for extra in range(exact.shape[1] + 1):
        total = below.sum(axis=1) + extra
        with np.errstate(divide="ignore", invalid="ignore"):
            if_below = np.abs(below / (total[:, None] * targets) - 1)
            if_above = np.abs(above / (total[:, None] * targets) - 1)
        rows, worst = _fewest_regrets(below, above, if_below, if_above, free, extra)
        possible = (free.sum(axis=1) >= extra) & (total >= cells.group_least) & (total > 0)
        better = possible & (worst < best * (1 - 1e-12))
        best[better], chosen[better] = worst[better], rows[better]
    return chosen


def _fewest_regrets(
    below: Real, above: Real, if_below: Real, if_above: Real, free: Any, extra: int
) -> tuple[Real, Real]:
    """Round a given number of labels up so that the largest deviation is smallest.

    For a limit on the deviation, labels that exceed it when rounded down must go up, and those that
    exceed it when rounded up must go down. The smallest limit that works is one of the deviations.
    """
    if_above = np.where(free, if_above, np.inf)
    limits = np.sort(np.concatenate([if_below, np.where(free, if_above, if_below)], axis=1), axis=1)
    up = np.zeros(below.shape, np.bool_)
    open_ = np.ones(len(below), np.bool_)
    for limit in limits.T[:, :, None]:
        must = if_below > limit
        may = if_above <= limit
        works = open_ & (must <= may).all(axis=1)
        works &= (must.sum(axis=1) <= extra) & (may.sum(axis=1) >= extra)
        if works.any():
            rank = np.argsort(np.argsort(np.where(must, -1.0, if_above), axis=1), axis=1)
            up[works] = (rank < extra)[works]
            open_ &= ~works
    rows = np.where(up, above, below)
    worst = np.where(up, if_above, if_below).max(axis=1)
    return rows, np.where(open_, np.inf, worst)


def _filled_up(cells: Cells, exact: Real, rows: Whole) -> Whole:
    """If rounding down leaves a group below its minimum size, round the largest remainders up."""
    short = cells.group_least - rows.sum(axis=1)
    for line in np.flatnonzero(short > 0):
        order = np.argsort(rows[line] - exact[line], kind="stable")
        room = order[rows[line][order] < cells.most[line][order]]
        rows[line, room[: short[line]]] += 1
    return rows


def rounding_bound(targets: Real, size: Real) -> Real:
    """Upper bound of the |UB| that rounding to whole rows leaves to a group at zero bias.

    Every label is at most one row off its exact number, and the size of the group is off by the sum
    of these errors. A rate q is then at most 1 + (k − 2)·q rows off its share of the rows.
    """
    k = targets.shape[1]
    rare = np.where(targets > 0, targets, 1.0).min(axis=1)
    rows = (1 / rare + k - 2) / np.maximum(size, 1.0)
    anything = np.maximum(1.0, 1 / rare - 1)  # the largest deviation a rate can have
    return np.asarray(np.minimum(rows, anything))
