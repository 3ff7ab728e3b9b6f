"""Draw rows in memory at random, by cell.

:meth:`equipoise.engines.base.Engine.rows` draws from tables of any size, the same rows on every
engine. Here the cells of the rows are known already, so a random number generator is enough, and much
faster for the thousands of draws of an evaluation.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray


def draw(
    cells: NDArray[np.int64],
    take: NDArray[np.int64],
    generator: np.random.Generator,
    *,
    again: bool = False,
) -> NDArray[np.int64]:
    """Draw ``take`` rows of each cell, or all there are; return their places in ascending order.

    ``cells`` holds the cell of each row, negative for rows in no cell. With ``again``, a row may be
    drawn several times.

    >>> generator = np.random.default_rng(0)
    >>> draw(np.array([0, 1, 0, 1, -1]), np.array([0, 9]), generator).tolist()
    [1, 3]
    >>> len(draw(np.array([0, 1, 0, 1, -1]), np.array([5, 0]), generator, again=True))
    5
    """
    order = np.argsort(cells, kind="stable")
    starts = np.searchsorted(cells[order], np.arange(len(take) + 1))
    chosen = [np.zeros(0, np.int64)]
    for cell in np.flatnonzero(take):
        there = order[starts[cell] : starts[cell + 1]]
        if len(there):
            size = int(take[cell]) if again else min(int(take[cell]), len(there))
            chosen.append(generator.choice(there, size, replace=again))
    return np.sort(np.concatenate(chosen))
