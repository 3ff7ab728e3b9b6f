"""Small counts hidden, with what they could be derived from, in tables meant for others."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from equipoise.measures._audit import System, derivable_groups, finest_shown, revealing_groups
from equipoise.measures._families import Flags, Units, settle
from equipoise.measures.table import BiasTable
from equipoise.measures.uncertainty.intervals import Interval
from equipoise.validate import at_least
from equipoise.values import MISSING

if TYPE_CHECKING:
    from equipoise.counts import Counts
    from equipoise.measures.measure import Floats
    from equipoise.measures.measurement import Measurement


ROUNDS = 40
"""After so many audits that found something, whole orders of groups are hidden."""


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
    units = Units.of(measured, below)
    if units.secret[units.all_rows]:
        return np.ones(len(measured.lattice), np.bool_)
    hidden = units.secret | ~units.listed
    for audits in itertools.count():
        settle(units, hidden, below)
        system = System.of(units, hidden)
        derivable = derivable_groups(units, system)
        if not len(derivable):
            break
        more = revealing_groups(units, system, derivable)
        hidden[more if audits < ROUNDS and len(more) else finest_shown(units, hidden)] = True
    return hidden[units.of_line]


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
