"""How many pairs of a group and a label lie where: the numbers that sentences are made of."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from equipoise.measures.measurement import NOTES, SURE, Note

if TYPE_CHECKING:
    from equipoise.counts import Counts
    from equipoise.lattice import Group
    from equipoise.measures.measurement import Measurement
    from equipoise.measures.request import MeasureRequest
    from equipoise.measures.row import Row
    from equipoise.values import Value

Mask = NDArray[np.bool_]


class MeasuredTable(Protocol):
    """What sentences need of a bias table, which stands above them and says them."""

    @property
    def measured(self) -> Measurement:
        """All numbers of the table."""

    @property
    def counts(self) -> Counts:
        """The counts it was measured on."""

    @property
    def options(self) -> MeasureRequest:
        """How it was measured."""

    @property
    def places(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Line and label of each row that is shown."""

    def __len__(self) -> int: ...

    def __getitem__(self, key: Any, /) -> Row: ...


@dataclass(frozen=True, eq=False)
class Pairs:
    """The pairs a table shows, as arrays of one number a pair; suppressed ones are nowhere.

    >>> from equipoise.counts import Counts
    >>> from equipoise.measures.table import bias_table
    >>> counts = Counts.from_mapping(
    ...     {("m", "hired"): 160, ("m", "not"): 290, ("w", "hired"): 40, ("w", "not"): 110},
    ...     sensitive=["sex"],
    ...     label="outcome",
    ... )
    >>> tally = Pairs(bias_table(counts))
    >>> int(tally.outside.sum()), int(tally.sure.sum())
    (1, 1)
    """

    table: MeasuredTable

    @functools.cached_property
    def line(self) -> NDArray[np.int64]:
        """The lattice line of each pair."""
        return self.table.places[0]

    @functools.cached_property
    def label(self) -> NDArray[np.int64]:
        """The label number of each pair."""
        return self.table.places[1]

    @functools.cached_property
    def ub(self) -> NDArray[np.float64]:
        """UB, or nan where it is undefined or suppressed."""
        ub = self.table.measured.ub[self.line, self.label]
        return np.where(self.noted("suppressed"), np.nan, ub)

    @functools.cached_property
    def telling(self) -> Mask:
        """Where UB is known and the group is large enough to say something."""
        return np.asarray(np.isfinite(self.ub) & (self._notes == 0))

    @functools.cached_property
    def outside(self) -> Mask:
        """Where |UB| is above the limit, in groups large enough to say something."""
        return self.telling & (np.abs(self.ub) > self.table.options.limit)

    @functools.cached_property
    def sure(self) -> Mask:
        """Where, outside the limit, q is small."""
        q = self.table.measured.q_value
        if q is None:
            return np.zeros(len(self.line), np.bool_)
        return self.outside & (q[self.line, self.label] < SURE)

    @functools.cached_property
    def evident(self) -> Mask:
        """Where the rows suffice to tell: by more than chance, or to be inside the limit."""
        return self.telling & self.table.measured.evident[self.line, self.label]

    @functools.cached_property
    def untold(self) -> Mask:
        """Where they do not suffice."""
        return np.asarray(self.table.measured.inconclusive[self.line, self.label])

    @functools.cached_property
    def hidden(self) -> Mask:
        """Where a group is outside the limit and all its parents are inside, and rows suffice."""
        return self.outside & self.evident & self.table.measured.hidden[self.line, self.label]

    @functools.cached_property
    def perhaps_hidden(self) -> Mask:
        """Where a group would be hidden by its UB, but has too few rows to tell."""
        return np.asarray(self.untold & self.table.measured.hidden[self.line, self.label])

    @functools.cached_property
    def orders(self) -> NDArray[np.int64]:
        """How many attributes each pair's group fixes."""
        return np.asarray(self.table.measured.lattice.orders[self.line])

    def noted(self, note: Note) -> Mask:
        """Where a pair carries this note."""
        return np.asarray(self._notes == 1 + list(NOTES).index(note))

    def note(self, place: int) -> Note | None:
        """The note of a pair."""
        code = int(self._notes[place])
        return list(NOTES)[code - 1] if code else None

    def group(self, place: int) -> Group:
        """The group of a pair."""
        return self.table.measured.group(int(self.line[place]))

    def label_value(self, place: int) -> Value:
        """The label value of a pair."""
        return self.table.counts.label.values[int(self.label[place])]

    def worst(self, mask: Mask, n: int | None = None) -> list[int]:
        """The pairs of a mask by falling |UB|, larger groups first where equal."""
        places = np.flatnonzero(mask)
        rows = self.table.measured.n_group[self.line[places]]
        order = np.lexsort((-rows, -np.abs(np.round(self.ub[places], 12))))
        chosen: list[int] = places[order][:n].tolist()
        return chosen

    def leading_labels(self, mask: Mask, most: int = 6) -> list[int]:
        """The favourable label, then those of the largest |UB|; of two labels only the first.

        With two labels the second mirrors the first.
        """
        found = list(dict.fromkeys(self.label[self.worst(mask)].tolist()))
        favourable = self.table.options.favourable
        if favourable is not None:
            good = self.table.counts.label.code(favourable)
            found.sort(key=lambda code: code != good)
        return found[: 1 if len(self.table.counts.label) == 2 else most]

    @functools.cached_property
    def _notes(self) -> NDArray[np.int8]:
        return np.asarray(self.table.measured.notes[self.line, self.label])
