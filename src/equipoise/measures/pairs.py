"""Pairs of a group and a label, sorted into inside, outside and inconclusive ones."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from equipoise.measures.measurement import SURE, Measurement
from equipoise.measures.row import NOTE_CODES, Note, Row

if TYPE_CHECKING:
    from equipoise.lattice import Group
    from equipoise.values import Value

Mask = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Pairs:
    """The pairs that a table shows, as arrays; suppressed pairs are in none of the masks.

    `line` and `label` hold the lattice line and the label number of each pair.

    >>> import equipoise as eq
    >>> pairs = eq.measure("adult", sensitive_features=["sex"], label="income").pairs
    >>> int(pairs.outside.sum()), int(pairs.sure.sum())
    (3, 3)
    """

    measured: Measurement
    line: NDArray[np.int64]
    label: NDArray[np.int64]

    @functools.cached_property
    def ub(self) -> NDArray[np.float64]:
        """UB, or nan where it is undefined or suppressed."""
        ub = self.measured.ub[self.line, self.label]
        return np.where(self.noted("suppressed"), np.nan, ub)

    @functools.cached_property
    def telling(self) -> Mask:
        """Where UB is known and the group is large enough to say something."""
        return np.asarray(np.isfinite(self.ub) & (self._notes == 0))

    @functools.cached_property
    def outside(self) -> Mask:
        """Where |UB| is above the limit, in groups large enough to say something."""
        return self.telling & (np.abs(self.ub) > self.measured.options.limit)

    @functools.cached_property
    def sure(self) -> Mask:
        """Where, outside the limit, q is small."""
        q = self.measured.q_value
        if q is None:
            return np.zeros(len(self.line), np.bool_)
        return self.outside & (q[self.line, self.label] < SURE)

    @functools.cached_property
    def evident(self) -> Mask:
        """Where the rows suffice to tell: by more than chance, or to be inside the limit."""
        return self.telling & self.measured.evident[self.line, self.label]

    @functools.cached_property
    def untold(self) -> Mask:
        """Where they do not suffice."""
        return np.asarray(self.measured.inconclusive[self.line, self.label])

    @functools.cached_property
    def hidden(self) -> Mask:
        """Where a group is outside the limit and all its parents are inside, and rows suffice."""
        return self.outside & self.evident & self.measured.hidden[self.line, self.label]

    @functools.cached_property
    def perhaps_hidden(self) -> Mask:
        """Where a group would be hidden by its UB, but has too few rows to tell."""
        return np.asarray(self.untold & self.measured.hidden[self.line, self.label])

    @functools.cached_property
    def orders(self) -> NDArray[np.int64]:
        """How many attributes each pair's group fixes."""
        return np.asarray(self.measured.lattice.orders[self.line])

    def noted(self, note: Note) -> Mask:
        """Where a pair carries this note."""
        return np.asarray(self._notes == NOTE_CODES.index(note))

    def note(self, place: int) -> Note | None:
        """The note of a pair."""
        return NOTE_CODES[int(self._notes[place])]

    def row(self, place: int) -> Row:
        """The row of a pair."""
        return next(self.measured.rows_at(self.line[[place]], self.label[[place]]))

    def group(self, place: int) -> Group:
        """The group of a pair."""
        return self.measured.group(int(self.line[place]))

    def label_value(self, place: int) -> Value:
        """The label value of a pair."""
        return self.measured.counts.label.values[int(self.label[place])]

    def worst(self, mask: Mask, n: int | None = None) -> list[int]:
        """The pairs of a mask by falling |UB|, larger groups first where equal."""
        places = np.flatnonzero(mask)
        rows = self.measured.n_group[self.line[places]]
        order = np.lexsort((-rows, -np.abs(np.round(self.ub[places], 12))))
        chosen: list[int] = places[order][:n].tolist()
        return chosen

    def leading_labels(self, mask: Mask, most: int = 6) -> list[int]:
        """The favourable label, then those of the largest |UB|; of two labels only the first.

        With two labels the second mirrors the first.
        """
        found = list(dict.fromkeys(self.label[self.worst(mask)].tolist()))
        favourable = self.measured.options.favourable
        if favourable is not None:
            good = self.measured.counts.label.code(favourable)
            found.sort(key=lambda code: code != good)
        return found[: 1 if len(self.measured.counts.label) == 2 else most]

    @functools.cached_property
    def _notes(self) -> NDArray[np.int8]:
        return np.asarray(self.measured.notes[self.line, self.label])
