"""Tables for publication: small counts are hidden, with whatever they could be derived from."""

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
"""Maximum number of audits that hide single groups; after that, whole orders are hidden."""


def suppress(table: BiasTable, below: int) -> BiasTable:
    """Hide small counts, and whatever they could be derived from.

    Whole groups are hidden: a hidden row keeps its group, its label and the overall rate,
    and has the note ``"suppressed"`` instead of numbers. A group is hidden

    - if it has fewer than ``below`` rows of any label, including none at all. (Labels that no
      row of the table has are ignored.)
    - if that is needed to keep such a group secret. Every published group (the group of all
      rows is always published) is split by each attribute into smaller groups. Either all of
      these are shown, or at least two are hidden that together have at least ``below`` rows of
      each label; the smallest are hidden first. Groups of the very same rows are hidden together.
    - if some secret group could then still be computed from the published ones. This is audited
      with linear algebra on all finest groups at once.

    Measures that compare with a hidden group are hidden too, and the ``"best"`` group is the best
    one that is shown. Numbers of the whole table that would reveal a hidden one (missing values
    of a column, the fingerprint) are left out. Suppress before you sort and select rows: hidden
    rows of a selection are dropped, because being selected may reveal them.

    All other counts, rates and biases are unchanged. Groups that ``min_count`` or ``max_order``
    left out are kept secret if they are small, like any other group. If there are too many finest
    groups and attributes to audit, :class:`~equipoise.errors.LatticeTooLarge` is raised.

    Protected: no count of a group with a count below ``below`` can be computed by adding,
    subtracting or scaling published counts, even by someone who knows which groups of the
    whole lattice have rows. The audit draws a random change of the finest groups among all
    changes that leave every published number the same: a count that the change does not move
    could be derived. The change is computed iteratively to eleven digits, and a group counts as
    derivable unless it moves a thousand times more than published numbers do. In doubt more is
    hidden; only a derivation that multiplies published numbers by a thousand could be missed.
    If a pruned table belongs to a lattice of more than 4 million groups, the audit covers secret
    groups with up to one attribute more than the published ones, and the finest groups.

    Not protected:

    - bounds. Counts are whole and not negative, so published numbers always bound hidden
      ones; only the rule for sums above takes this into account. Where attributes nearly
      determine one another, the bounds can meet: of the 756 small counts of Adult by sex, race,
      relationship and marital status, they fix 82 (with ``below=5``); by sex, race and education
      they fix none. A hidden row that is listed also says that the group has rows (at least
      ``min_count``), and one that is not listed that it has none (or fewer).
    - totals. The numbers of all rows, of rows of each label and of dropped rows stay.
    - several releases. The difference of two suppressed tables may reveal what neither does
      alone: other attributes, another threshold, the same data a month later.
    - what readers know already, for example about themselves; or what q of a shown row implies
      about how many rows have a smaller p.
    - the object in memory. ``table.counts`` and ``table.measured.lattice`` still hold all
      counts: publish ``to_dict()``, ``to_arrow()`` or text, not pickles.
    """
    at_least("below", below, 1)
    measured = table.measured
    hidden = _hidden_groups(measured, below)
    view = table.view
    if view is not None:
        view = view[~hidden[view // len(measured.counts.label)]]
    return BiasTable(_masked(measured, hidden, below), view, table.order)


def _hidden_groups(measured: Measurement, below: int) -> Flags:
    """Decide which lines of the lattice to hide."""
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
        interval=None if interval is None else Interval(*map(mask, interval)),
        p_value=None if p is None else mask(p),
        q_value=None if q is None else mask(q),
        suppressed=suppressed,
        options=replace(measured.options, suppress_below=below),
    )


def _without_small_gaps(measured: Measurement, hidden: Flags, below: int) -> Counts:
    """Leave out numbers of missing values that would reveal the size of a hidden group."""
    counts, lattice = measured.counts, measured.lattice
    told = dict(counts.missing_values)
    for position, axis in enumerate(counts.sensitive):
        shown = told.get(axis.name, 0) >= below
        if MISSING in axis.codes:
            codes = np.array([lattice.sizes], np.int32)
            codes[0, position] = axis.codes[MISSING]
            line = int(lattice.find(codes)[0])
            shown &= line >= 0 and not hidden[line]
        if not shown and told.get(axis.name):
            del told[axis.name]
    return replace(counts, missing_values=told)
