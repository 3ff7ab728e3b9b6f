"""Distance between two samples of a column, and the distance expected by chance."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Whole: TypeAlias = NDArray[np.int64]
Real: TypeAlias = NDArray[np.float64]
Flags: TypeAlias = NDArray[np.bool_]

MOST_PERMUTED = 20_000
"""Maximum number of rows for permutations; beyond it a formula is used."""

_PERMUTATIONS = 100


@dataclass(frozen=True, eq=False)
class Sides:
    """Cells and value numbers of the rows that have a value of a column."""

    base: Whole
    added: Whole
    base_cells: Whole
    added_cells: Whole
    values: int

    @property
    def weights(self) -> Real:
        """Weight of a base row of each cell, which gives the base the cell mix of the added rows."""
        cells = 1 + max(int(self.base_cells.max()), int(self.added_cells.max()))
        n = np.bincount(self.base_cells, minlength=cells)
        m = np.bincount(self.added_cells, minlength=cells)
        # No base row has the weight of a cell without base rows; 1 avoids a division by zero.
        return np.asarray(m / (len(self.added) * np.maximum(n, 1)))

    def shares(self) -> tuple[Real, Real]:
        """Share of each value in the weighted base and in the added rows."""
        weight = self.weights[self.base_cells]
        base = np.bincount(self.base, weight, minlength=self.values).astype(np.float64)
        return base, np.bincount(self.added, minlength=self.values) / len(self.added)

    @property
    def noise(self) -> float:
        """Sum 1/m + 1/n for the added rows and the effective number of weighted base rows."""
        return 1 / len(self.added) + float((self.weights[self.base_cells] ** 2).sum())


def distance_of(base: Real, added: Real, *, ordered: bool) -> float:
    """Compute the Kolmogorov–Smirnov distance of ordered values, or the total variation."""
    apart = np.abs(np.cumsum(base - added)).max() if ordered else np.abs(base - added).sum() / 2
    return min(round(float(apart), 12), 1.0)  # rounding errors must not make equal samples differ


def by_chance(
    sides: Sides, shares: tuple[Real, Real], shuffles: dict[bytes, Whole], *, ordered: bool
) -> float:
    """Estimate the 99 % quantile of the distance between samples of the same cells.

    ``shuffles`` keeps what was drawn for the next column with the same gaps.
    """
    if len(sides.base) + len(sides.added) > MOST_PERMUTED:
        return chance_of_many(*shares, sides.noise, ordered=ordered)
    codes = np.concatenate([sides.base, sides.added])
    cells = np.concatenate([sides.base_cells, sides.added_cells])
    each = sides.weights[cells]
    every = np.bincount(codes, each, minlength=sides.values).astype(np.float64)
    found = []
    for chosen in _shuffled(cells, sides.added_cells, shuffles):
        drawn = codes[chosen]
        base = every - np.bincount(drawn, each[chosen], minlength=sides.values)
        added = np.bincount(drawn, minlength=sides.values) / len(drawn)
        found.append(distance_of(base, added, ordered=ordered))
    return float(np.quantile(found, 0.99, method="higher"))


def _shuffled(cells: Whole, added: Whole, known: dict[bytes, Whole]) -> Whole:
    """Draw as many rows of each cell as were added, repeatedly, with the same draws by column."""
    key = cells.tobytes() + added.tobytes()
    if key not in known:
        known.clear()  # columns with the same missing rows are mostly adjacent
        random = np.random.default_rng(0)
        first = np.searchsorted(np.sort(cells), added)
        nth = np.arange(len(added)) - np.searchsorted(np.sort(added), np.sort(added))
        places = np.sort(first) + nth
        orders = (np.argsort(cells + random.random(len(cells))) for _ in range(_PERMUTATIONS))
        known[key] = np.stack([order[places] for order in orders])
    return known[key]


def chance_of_many(base: Real, added: Real, noise: float, *, ordered: bool) -> float:
    """Bound the 99 % quantile of the distance by chance for many rows, conservatively.

    For numbers the quantile of Kolmogorov's distribution; for categories the expected
    distance, and beyond it what bounded differences allow.
    """
    if ordered:  # 1.628 is the 99 % quantile of Kolmogorov's distribution
        return min(1.628 * math.sqrt(noise), 1.0)
    share = (base + added) / 2
    each = np.minimum(np.sqrt(2 / math.pi * share * (1 - share) * noise), 2 * share)
    return min(float(each.sum()) / 2 + math.sqrt(math.log(100) / 2 * noise), 1.0)
