"""Small counts hidden, with what they could be derived from, in tables meant for others."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

from equipoise.counts import Counts
from equipoise.errors import LatticeTooLarge
from equipoise.lattice import Lattice, roll_up
from equipoise.measures.measurement import Measurement
from equipoise.measures.table import BiasTable
from equipoise.measures.uncertainty.intervals import Interval
from equipoise.validate import at_least
from equipoise.values import MISSING

if TYPE_CHECKING:
    from scipy.sparse import csr_array

Lines: TypeAlias = NDArray[np.int64]
Flags: TypeAlias = NDArray[np.bool_]
Floats: TypeAlias = NDArray[np.float64]

WHOLE_ENTRIES = 4_000_000
"""A pruned lattice of at most this many groups is completed before the audit."""

AUDIT_ENTRIES = 400_000_000
"""No more than so many finest groups times sets of attributes are audited."""

EVEN = 1e-11
"""Sums this near to 0 are 0; what moves a thousand times more, moves."""

STEPS = 3_000
"""After so many steps an iteration is stopped; what it leaves in doubt counts as derivable."""

ROUNDS = 40
"""After so many audits that found something, whole orders of groups are hidden."""

TARGETS = 30
"""So many derivable groups are looked into in one audit."""


def suppress(table: BiasTable, below: int) -> BiasTable:
    """Hide small counts, and whatever they could be derived from.

    Whole groups are hidden: a hidden row keeps its group, its label and the overall rate,
    and has the note ``"suppressed"`` instead of numbers. A group is hidden

    - if it has fewer than ``below`` rows of any label, none at all included. (A label that
      no row of the table has does not count.)
    - if that is needed to keep such a group secret. For every published group (that of all
      rows is always published) and every attribute, the groups that the attribute splits it
      into are all shown, or at least two are not, and together these have at least ``below``
      rows of each label; the smallest are hidden first. Groups of the very same rows are
      hidden together.
    - if after that some secret group could still be computed from the published ones. This
      is audited with linear algebra on all finest groups at once.

    What is measured against a hidden group is hidden too, the ``"best"`` group is the best
    that is shown, and numbers of the whole table that would tell a hidden one (missing values
    of a column, the fingerprint) are left out. Suppress first, then sort and choose rows: of
    rows already chosen the hidden ones are left out, since the choice may tell of them.

    Parameters
    ----------
    table
        What was measured. Groups that ``min_count`` or ``max_order`` left out are secret if
        they are small, like any other.
    below
        The smallest count that may be shown.

    Returns
    -------
    BiasTable
        The same table with hidden rows; all other counts, rates and biases are unchanged.

    Raises
    ------
    LatticeTooLarge
        If there are too many finest groups and attributes to audit.

    Notes
    -----
    Protected: no count of a group with a count below ``below`` is the result of adding,
    subtracting or scaling published counts, even for someone who knows which groups of the
    whole lattice have rows. The audit draws a change of the finest groups at random among
    all those that leave every published number as it is: what the change does not move could
    be derived. It is found by iteration, to eleven digits; a group counts as derivable unless
    it moves a thousand times more than published numbers do. So doubt hides more, and only a
    derivation that weighs published numbers by factors of a thousand in all could be missed.
    If a pruned table is part of a lattice of more than 4 million groups, secret groups are
    audited to one attribute more than the finest that is published, and the finest of all.

    Not protected:

    - bounds. Counts are whole and not negative, so published numbers always bound hidden
      ones; beyond the rule for sums above this is not examined. Where attributes nearly
      determine one another bounds can meet: of the 756 small counts of Adult by sex, race,
      relationship and marital status, 82 (with ``below=5``) are fixed by them, by sex, race
      and education none.
      A row that is listed, though hidden, also says that the group has rows (at least
      ``min_count``), one that is not listed that it has none (or fewer).
    - totals. The number of rows, that of each label, and of rows dropped stay.
    - several releases. Two tables, each suppressed alone, may give away by their difference
      what neither does: other attributes, another threshold, the same data a month later.
    - what others know already, for example of themselves; or, from q of a shown row, how
      many rows in all have a smaller p.
    - the object in memory. ``table.counts`` and ``table.measured.lattice`` still hold all
      counts: hand out ``to_dict()``, ``to_arrow()`` and text, not pickles.

    Examples
    --------
    >>> from equipoise.counts import Counts
    >>> from equipoise.measures.table import bias_table
    >>> cells = {
    ...     ("a", "y"): 40,
    ...     ("a", "n"): 60,
    ...     ("b", "y"): 30,
    ...     ("b", "n"): 20,
    ...     ("c", "y"): 2,
    ...     ("c", "n"): 9,
    ... }
    >>> shown = suppress(bias_table(Counts.from_mapping(cells, sensitive=["s"], label="l")), 5)
    >>> [(str(row.group), row.label, row.n_cell) for row in shown]
    [('s=a', 'y', 40), ('s=a', 'n', 60), ('s=b', 'y', None), ('s=b', 'n', None),
     ('s=c', 'y', None), ('s=c', 'n', None)]
    """
    at_least("below", below, 1)
    measured = table.measured
    hidden = hidden_groups(measured, below)
    view = table.view
    if view is not None:
        view = view[~hidden[view // len(measured.counts.label)]]
    return BiasTable(_masked(measured, hidden, below), view, table.order)


def hidden_groups(measured: Measurement, below: int) -> Flags:
    """Which lines of the lattice are to be hidden."""
    if not len(measured.lattice):
        return np.zeros(0, np.bool_)
    units = _Units.of(measured, below)
    if units.secret[units.all_rows]:
        return np.ones(len(measured.lattice), np.bool_)
    hidden = units.secret | ~units.listed
    for audits in itertools.count():
        _settle(units, hidden, below)
        system = _System.of(units, hidden)
        derivable = _derivable(units, system)
        if not len(derivable):
            break
        more = _giving_away(units, system, derivable)
        hidden[more if audits < ROUNDS and len(more) else _finest_shown(units, hidden)] = True
    return hidden[units.of_line]


# ------------------------------------------------------------------------------- structure


@dataclass(frozen=True, eq=False)
class _Units:
    """Groups of the very same rows taken as one, and the families that split them.

    Attributes
    ----------
    lattice
        All groups, with those that are not listed; ``unit`` tells the unit of each, and of
        all rows at the end, and ``up`` for each attribute the group without it.
    deepest
        The most attributes a group of the lattice fixes.
    counts, size, secret, listed, order, example
        Of each unit: its rows per label and in all, whether one is too small to be shown,
        whether the table has it, the fewest attributes that fix it, and one of its groups.
    all_rows
        The unit of all rows.
    of_line
        The unit of each line of the table.
    child, start, parent
        Family f splits ``parent[f]`` into ``child[start[f] : start[f + 1]]``, at least two,
        the smallest first.
    cells, cell_line, cell_unit, cell_secret
        The finest groups: their codes, their line and unit, or −1 if the lattice is too
        shallow for them, and whether a count is too small to be shown.
    """

    lattice: Lattice
    unit: Lines
    up: Lines
    deepest: int
    counts: Lines
    size: Lines
    secret: Flags
    listed: Flags
    order: Lines
    example: Lines
    all_rows: int
    of_line: Lines
    child: Lines
    start: Lines
    parent: Lines
    cells: NDArray[np.int32]
    cell_line: Lines
    cell_unit: Lines
    cell_secret: Flags

    @classmethod
    def of(cls, measured: Measurement, below: int) -> _Units:
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
    """The lattice with what was left out, the lines of the listed groups, the finest groups."""
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
            f"to hide what small counts could be derived from, each of {cells:,} finest groups "
            f"is looked for in {sets:,} sets of attributes, and {AUDIT_ENTRIES // cells:,} sets "
            "can be done; look at fewer attributes, or use a smaller --max-order."
        )


def _parents(lattice: Lattice) -> Lines:
    """For each group and attribute the group without it, or −1 where it takes any value."""
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


# ----------------------------------------------------------------------------- family rule


def _settle(units: _Units, hidden: Flags, below: int) -> None:
    """Hide groups until every family keeps the rule; changes ``hidden``."""
    # A group that is large, and was left out for another reason, may be derived.
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


def _members(units: _Units, family: Lines) -> tuple[Lines, Lines]:
    """The places of the children of some families, and where each family starts among them."""
    end = np.append(units.start[1:], len(units.child))
    lengths = end[family] - units.start[family]
    first = np.cumsum(lengths) - lengths
    places = np.arange(lengths.sum()) + np.repeat(units.start[family] - first, lengths)
    return places, first


def _hidden_sums(units: _Units, family: Lines, inside: Flags) -> NDArray[np.int64]:
    places, first = _members(units, family)
    return np.add.reduceat(units.counts[units.child[places]] * inside[places, None], first)


def _smallest_shown(units: _Units, family: Lines, inside: Flags) -> Lines:
    """The first child of each family that is shown; each must have one."""
    places, first = _members(units, family)
    shown = np.where(inside[places], len(units.child), places)
    return units.child[np.minimum.reduceat(shown, first)]


# ----------------------------------------------------------------------------------- audit


@dataclass(frozen=True, eq=False)
class _System:
    """What is published of the hidden finest groups: a line a sum, a column a finest group."""

    matrix: csr_array
    told: Lines
    cells: Lines

    @classmethod
    def of(cls, units: _Units, hidden: Flags) -> _System:
        from scipy.sparse import csr_array

        cells = np.flatnonzero((units.cell_unit < 0) | hidden[units.cell_unit])
        # A published group that a family splits into published ones says nothing more.
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

    def fit(self, wish: Floats, even: float = EVEN) -> tuple[Floats, Floats]:
        """Weights of the sums that come nearest to the wish, and what is left of it.

        Conjugate gradients, until no sum of what is left differs from 0. Dot products by
        einsum: BLAS would start threads for them, which costs more than it saves.
        """
        scale = 1 / np.sqrt(np.maximum(np.diff(self.matrix.indptr), 1))
        across, down = self.matrix, self.matrix.T.tocsr()
        weights, left = np.zeros(len(scale)), wish.copy()
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


def _holding(units: _Units, cells: Lines) -> Iterator[Lines]:
    """For each set of attributes the group that each finest group is in."""
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


def _climb(units: _Units, line: Lines, axes: int) -> Iterator[Lines]:
    yield line
    for axis in range(axes):
        yield from _climb(units, units.up[line, axis], axis)


def _derivable(units: _Units, system: _System) -> NDArray[np.int32]:
    """The codes of the secret groups whose counts follow from published ones.

    A change is drawn at random among all that leave what is published as it is; what it
    does not move is derivable.
    """
    wish = np.random.default_rng(0).standard_normal(len(system.cells))
    _, change = system.fit(wish)
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


def _giving_away(units: _Units, system: _System, derivable: NDArray[np.int32]) -> Lines:
    """For each derivable group the smallest of the published groups that give it away."""
    sizes, cells = np.array(units.lattice.sizes), units.cells[system.cells]
    chosen = []
    for codes in derivable[:TARGETS]:
        inside = ((cells == codes) | (codes == sizes)).all(axis=1)
        weight = np.abs(system.fit(inside.astype(float), even=1e-6)[0])
        weight[system.told == units.all_rows] = 0
        # Where sums depend on one another, others get small weights that say nothing.
        strong = system.told[weight > max(weight.max(initial=0) / 2, 1e-6)]
        if len(strong):
            chosen.append(strong[np.argmin(units.size[strong])])
    return np.array(chosen, np.int64)


def _finest_shown(units: _Units, hidden: Flags) -> Lines:
    shown = np.flatnonzero(~hidden)
    return np.asarray(shown[units.order[shown] == units.order[shown].max()])


# ---------------------------------------------------------------------------------- result


def _masked(measured: Measurement, hidden: Flags, below: int) -> Measurement:
    suppressed = np.repeat(hidden[:, None], len(measured.counts.label), axis=1)

    def mask(numbers: Floats) -> Floats:
        return np.where(suppressed, np.nan, numbers)

    interval, p, q = measured.interval, measured.p_value, measured.q_value
    return replace(
        measured,
        counts=_without_small_gaps(measured, hidden, below),
        ub=mask(measured.ub),
        interval=None if interval is None else Interval(mask(interval.low), mask(interval.high)),
        p_value=None if p is None else mask(p),
        q_value=None if q is None else mask(q),
        suppressed=suppressed,
        options=replace(measured.options, suppress_below=below),
    )


def _without_small_gaps(measured: Measurement, hidden: Flags, below: int) -> Counts:
    """Leave out how many values a column lacks, where that tells the size of a hidden group."""
    counts, lattice = measured.counts, measured.lattice
    told = dict(counts.missing_values)
    for position, axis in enumerate(counts.sensitive):
        shown = told.get(axis.name, 0) >= below
        if MISSING in axis.codes:
            codes = np.array([lattice.sizes], np.int32)
            codes[0, position] = axis.codes[MISSING]
            line = int(lattice.find(codes)[0]) if len(lattice) else -1
            shown &= line >= 0 and not hidden[line]
        if not shown and told.get(axis.name):
            del told[axis.name]
    return replace(counts, missing_values=told)
