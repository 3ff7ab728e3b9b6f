"""Which hidden groups could still be computed from published ones, by linear algebra."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from equipoise.lattice import roll_up

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray
    from scipy.sparse import csr_array

    from equipoise.measures._families import Flags, Lines, Units
    from equipoise.measures.measure import Floats

EVEN = 1e-11
"""Sums this close to 0 count as 0; a count has moved if it moves a thousand times more."""

STEPS = 3_000
"""Maximum number of steps of an iteration; counts still in doubt then count as derivable."""

TARGETS = 30
"""Maximum number of derivable groups that one audit treats, since each needs a solution."""


@dataclass(frozen=True, eq=False)
class System:
    """The published sums over hidden finest groups: a line per sum, a column per finest group."""

    matrix: csr_array
    told: Lines
    cells: Lines

    @classmethod
    def of(cls, units: Units, hidden: Flags) -> System:
        from scipy.sparse import csr_array

        cells = np.flatnonzero((units.cell_unit < 0) | hidden[units.cell_unit])
        # A published group that is split into published ones adds no information.
        out = np.add.reduceat(hidden[units.child], units.start, dtype=np.int64)
        implied = np.zeros(len(units.size), np.bool_)
        implied[units.parent[out == 0]] = True
        told = np.flatnonzero(~hidden & ~implied)
        row = np.full(len(units.unit), -1, np.int32)
        row[units.example[told]] = np.arange(len(told))
        rows, columns = [], []
        for group in _holding(units, cells):
            column = np.flatnonzero(row[group] >= 0)
            rows.append(row[group[column]])
            columns.append(column.astype(np.int32))
        places = (np.concatenate(rows), np.concatenate(columns))
        ones = np.ones(len(places[0]))
        return cls(csr_array((ones, places), shape=(len(told), len(cells))), told, cells)

    def fit(self, target: Floats, even: float = EVEN) -> tuple[Floats, Floats]:
        """Fit weights of the sums to a target by least squares; return them and the residual.

        Conjugate gradients run until all sums of the residual are 0.
        """
        # Dot products by einsum: BLAS would start threads for them, which costs more than it saves.
        scale = 1 / np.sqrt(np.maximum(np.diff(self.matrix.indptr), 1))
        across, down = self.matrix, self.matrix.T.tocsr()
        weights, left = np.zeros(len(scale)), target.copy()
        slope = scale * (across @ left)
        step, length = slope, float(np.einsum("i,i", slope, slope))
        for _ in range(STEPS):
            if np.abs(slope / scale).max(initial=0) <= even:
                break
            move = down @ (scale * step)
            far = length / float(np.einsum("i,i", move, move))
            weights += far * step
            left -= far * move
            slope = scale * (across @ left)
            length, before = float(np.einsum("i,i", slope, slope)), length
            step = slope + length / before * step
        return scale * weights, left


def _holding(units: Units, cells: Lines) -> Iterator[Lines]:
    """For each set of attributes, the group that each finest group belongs to."""
    sizes, codes = units.lattice.sizes, units.cells[cells]
    if units.deepest == len(sizes):
        yield from _climb(units, units.cell_line[cells], len(sizes))
        return
    for order in range(units.deepest):  # the deepest groups are not published
        for fixed in itertools.combinations(range(len(sizes)), order):
            wider = np.broadcast_to(np.array(sizes, np.int32), codes.shape).copy()
            wider[:, fixed] = codes[:, fixed]
            found = units.lattice.find(wider)
            yield np.where(found < 0, len(units.lattice), found)


def _climb(units: Units, line: Lines, axes: int) -> Iterator[Lines]:
    yield line
    for axis in range(axes):
        yield from _climb(units, units.up[line, axis], axis)


def derivable_groups(units: Units, system: System) -> NDArray[np.int32]:
    """The codes of the secret groups whose counts follow from published ones.

    Of all changes that leave published numbers the same, one is drawn at random: almost surely
    it moves every count that is not determined.
    """
    target = np.random.default_rng(0).standard_normal(len(system.cells))
    _, change = system.fit(target)
    slack = float(np.abs(system.matrix @ change).max(initial=0))
    still = max(1_000 * EVEN, 1_000 * slack)
    codes = units.cells[system.cells]
    rows = np.ones((len(codes), 1), np.int64)
    sums = roll_up(codes, units.lattice.sizes, [rows, change[:, None]], max_order=units.deepest)
    unit = units.unit[units.lattice.find(sums.codes)]
    fixed = units.secret[unit] & (np.abs(sums.columns[1][:, 0]) <= still)
    _, first = np.unique(unit[fixed], return_index=True)
    beyond = (units.cell_unit[system.cells] < 0) & units.cell_secret[system.cells]
    return np.concatenate([sums.codes[fixed][first], codes[beyond & (np.abs(change) <= still)]])


def revealing_groups(units: Units, system: System, derivable: NDArray[np.int32]) -> Lines:
    """For each derivable group, the smallest of the published groups that reveal it."""
    sizes, cells = np.array(units.lattice.sizes), units.cells[system.cells]
    chosen = []
    for codes in derivable[:TARGETS]:
        inside = ((cells == codes) | (codes == sizes)).all(axis=1)
        weight = np.abs(system.fit(inside.astype(float), even=1e-6)[0])
        weight[system.told == units.all_rows] = 0
        # Where sums depend on one another, uninvolved ones get small weights: ignore these.
        strong = system.told[weight > max(weight.max(initial=0) / 2, 1e-6)]
        if len(strong):
            chosen.append(strong[np.argmin(units.size[strong])])
    return np.array(chosen, np.int64)


def finest_shown(units: Units, hidden: Flags) -> Lines:
    shown = np.flatnonzero(~hidden)
    return np.asarray(shown[units.order[shown] == units.order[shown].max()])
