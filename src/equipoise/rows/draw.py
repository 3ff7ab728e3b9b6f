"""Choose rows that are in memory by cell, where the engine's own choice is not needed.

:meth:`equipoise.engines.base.Engine.rows` chooses from tables of any size, the same rows on
every engine. Here the rows are numbered already, and a generator of random numbers decides.
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
    """Choose as many rows of each cell as are asked for, or all there are; in rising order.

    Parameters
    ----------
    cells
        The number of each row's cell; rows of none have a negative one.
    take
        How many rows of each cell.
    generator
        What decides.
    again
        Whether a row may be taken several times; a cell without rows gives none even so.

    Examples
    --------
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
