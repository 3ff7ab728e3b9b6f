"""The groups of a lattice, the families that split them, and the groups a small count hides."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

from equipoise.errors import LatticeTooLarge
from equipoise.lattice import Lattice, roll_up

if TYPE_CHECKING:
    from equipoise.measures.measurement import Measurement

Lines: TypeAlias = NDArray[np.int64]
Flags: TypeAlias = NDArray[np.bool_]

WHOLE_ENTRIES = 4_000_000
"""Maximum size at which a pruned lattice is completed before the audit."""

AUDIT_ENTRIES = 400_000_000
"""Maximum number of finest groups times sets of attributes that is audited."""


@dataclass(frozen=True, eq=False)
class Units:
    """Groups of the very same rows, merged into units, and the families that split them."""

    lattice: Lattice  # all groups, including those that are not listed
    unit: Lines  # the unit of each group, and at the end that of all rows
    up: Lines  # for each group and attribute, the group without it
    deepest: int  # the largest number of attributes that a group of the lattice fixes
    # Of each unit: its rows by label and in total, whether one of these is too small to be shown,
    # whether the table lists it, the fewest attributes that fix it, and one of its groups.
    counts: Lines
    size: Lines
    secret: Flags
    listed: Flags
    order: Lines
    example: Lines
    all_rows: int  # the unit of all rows
    of_line: Lines  # the unit of each line of the table
    # Family f splits parent[f] into child[start[f] : start[f + 1]], at least two, smallest first.
    child: Lines
    start: Lines
    parent: Lines
    # The finest groups: their codes, their line and unit, or −1 if the lattice is too shallow for
    # them, and whether a count is too small to be shown.
    cells: NDArray[np.int32]
    cell_line: Lines
    cell_unit: Lines
    cell_secret: Flags

    @classmethod
    def of(cls, measured: Measurement, below: int) -> Units:
        lattice, line, cells, rows = _whole(measured)
        present = measured.n_label > 0
        counts = np.vstack([lattice.columns[0], measured.n_label])[:, present]
        up = _parents(lattice)
        child, start, parent = _families(up, counts.sum(axis=1))
        length = np.diff(start, append=len(child))
        alone = length == 1
        unit = _same(parent[alone], child[start[alone]], len(counts))
        orders = np.append(lattice.orders, 0)
        by_order = np.argsort(orders, kind="stable")
        example = by_order[np.unique(unit[by_order], return_index=True)[1]]
        listed = np.zeros(len(example), np.bool_)
        listed[unit[np.append(line, len(lattice))]] = True
        cell_line = lattice.find(cells)
        return cls(
            lattice=lattice,
            unit=unit,
            up=up,
            deepest=int(orders.max()),
            counts=counts[example],
            size=counts[example].sum(axis=1),
            secret=counts[example].min(axis=1) < below,
            listed=listed,
            order=orders[example],
            example=example,
            all_rows=int(unit[-1]),
            of_line=unit[line],
            child=unit[child[np.repeat(~alone, length)]],
            start=np.cumsum(length[~alone]) - length[~alone],
            parent=unit[parent[~alone]],
            cells=cells,
            cell_line=cell_line,
            cell_unit=np.where(cell_line < 0, -1, unit[cell_line]),
            cell_secret=rows[:, present].min(axis=1) < below,
        )


def _whole(measured: Measurement) -> tuple[Lattice, Lines, NDArray[np.int32], Lines]:
    """The complete lattice, the lines of the listed groups in it, and the finest groups."""
    lattice, options = measured.lattice, measured.options
    cells, columns = measured.counts.finest()
    width = len(lattice.sizes)
    pruned = options.min_count > 1 or (options.max_order or width) < width
    cube = math.prod(d + 1 for d in lattice.sizes)
    deepest = width
    if pruned and min(cube, len(cells) << width) > WHOLE_ENTRIES:
        deepest = min(width, int(lattice.orders.max()) + 1)
    _check_work(len(cells), width, deepest)
    if not pruned:
        return lattice, np.arange(len(lattice)), cells, columns[0]
    whole = roll_up(cells, lattice.sizes, columns[:1], max_order=deepest, memory=options.memory)
    return whole, whole.find(lattice.codes), cells, columns[0]


def _check_work(cells: int, width: int, deepest: int) -> None:
    sets = sum(math.comb(width, order) for order in range(deepest + 1))
    if cells * sets > AUDIT_ENTRIES:
        raise LatticeTooLarge(
            f"suppression would have to audit each of {cells:,} finest groups in {sets:,} sets of "
            f"attributes, and {AUDIT_ENTRIES // cells:,} sets can be audited; measure fewer "
            "attributes, or use a smaller `max_order`."
        )


def _parents(lattice: Lattice) -> Lines:
    """For each group and attribute, the group without it, or −1 where it takes any value."""
    up = np.full(lattice.codes.shape, -1)
    for axis, size in enumerate(lattice.sizes):
        line = np.flatnonzero(lattice.codes[:, axis] != size)
        codes = lattice.codes[line].copy()
        codes[:, axis] = size
        found = lattice.find(codes)
        up[line, axis] = np.where(found < 0, len(lattice), found)
    return up


def _families(up: Lines, size: Lines) -> tuple[Lines, Lines, Lines]:
    children, starts, parents, so_far = [], [], [], 0
    for parent in up.T:
        child = np.flatnonzero(parent >= 0)
        child = child[np.lexsort((size[child], parent[child]))]
        of = parent[child]
        start = np.flatnonzero(np.diff(of, prepend=-1))
        children.append(child)
        starts.append(start + so_far)
        parents.append(of[start])
        so_far += len(child)
    return np.concatenate(children), np.concatenate(starts), np.concatenate(parents)


def _same(parent: Lines, child: Lines, groups: int) -> Lines:
    """Number the sets of groups that are joined by families of a single child."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    joined = coo_array((np.ones(len(child)), (parent, child)), shape=(groups, groups))
    return np.asarray(connected_components(joined, directed=False)[1], np.int64)


def settle(units: Units, hidden: Flags, below: int) -> None:
    """Hide groups until every family keeps the rule of `suppress`; changes ``hidden``."""
    # A large group that was left out for another reason need not stay secret.
    matters = units.secret | units.listed
    while True:
        inside = hidden[units.child]
        out = np.add.reduceat(inside, units.start, dtype=np.int64)
        watched = np.logical_or.reduceat(inside & matters[units.child], units.start)
        told = ~hidden[units.parent]
        broken = ~told & matters[units.parent] & (out == 0)
        broken |= told & (out == 1) & watched
        family = np.flatnonzero(told & (out > 1) & watched)
        broken[family] = (_hidden_sums(units, family, inside) < below).any(axis=1)
        if not broken.any():
            return
        hidden[_smallest_shown(units, np.flatnonzero(broken), inside)] = True


def _members(units: Units, family: Lines) -> tuple[Lines, Lines]:
    """The positions of the children of some families, and where each family starts."""
    end = np.append(units.start[1:], len(units.child))
    lengths = end[family] - units.start[family]
    first = np.cumsum(lengths) - lengths
    places = np.arange(lengths.sum()) + np.repeat(units.start[family] - first, lengths)
    return places, first


def _hidden_sums(units: Units, family: Lines, inside: Flags) -> NDArray[np.int64]:
    places, first = _members(units, family)
    return np.add.reduceat(units.counts[units.child[places]] * inside[places, None], first)


def _smallest_shown(units: Units, family: Lines, inside: Flags) -> Lines:
    """The first shown child of each family, which is the smallest; each family has one."""
    places, first = _members(units, family)
    shown = np.where(inside[places], len(units.child), places)
    return units.child[np.minimum.reduceat(shown, first)]
