"""Random splits of rows into parts, in which rows of one unit always stay together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray


def cut(
    units: NDArray[np.int64], shares: Sequence[float], generator: np.random.Generator
) -> list[NDArray[np.int64]]:
    """Split rows, given by their units, into parts of about these shares and a part with the rest.

    Examples
    --------
    >>> first, rest = cut(np.arange(10), [0.2], np.random.default_rng(0))
    >>> len(first), len(rest)
    (2, 8)
    >>> first, rest = cut(np.array([7, 7, 7, 7, 7, 3]), [0.3], np.random.default_rng(0))
    >>> sorted([len(first), len(rest)])
    [1, 5]
    """
    _, unit = np.unique(units, return_inverse=True)
    place = generator.permutation(int(unit.max()) + 1 if len(unit) else 0)[unit]
    order = np.argsort(place, kind="stable")
    ordered = place[order]
    # A part may only end where a unit ends, so each cut moves to the nearest such place.
    bounds = np.concatenate([[0], np.flatnonzero(np.diff(ordered)) + 1, [len(ordered)]])
    wanted = np.cumsum(shares) * len(units)
    cuts = bounds[np.abs(bounds[:, None] - wanted).argmin(axis=0)]
    return [np.sort(part) for part in np.split(order, cuts)]


def generator_for(*numbers: int) -> np.random.Generator:
    """Make a random number generator that depends on these numbers alone."""
    # A sequence of numbers, unlike their sum, gives independent streams for (0, 1) and (1, 0).
    return np.random.default_rng(np.random.SeedSequence(numbers))
