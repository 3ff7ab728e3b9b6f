"""Sums over batches that describe the bias of groups within batches."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from equipoise.monitoring.comparisons import REST, Comparisons, WatchedPair
from equipoise.monitoring.evidence.samples import Floats

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from equipoise.monitoring.series import GroupSeries

_ENTRIES = 1_000_000
"""Maximum number of entries of an array; more batches are summed in blocks."""


class Tally(NamedTuple):
    """Sums over the batches with rows of a group and of the others, a number for each pair."""

    rows: Floats
    """Rows of the group."""
    everyone: Floats
    """All rows."""
    batches: Floats
    cases: Floats
    """Rows of the group with the label."""
    labelled: Floats
    """All rows with the label."""
    above: Floats
    """Σ x·r/(m + r), of which that below is the ratio of rates that batches have in common."""
    below: Floats
    """Σ z·m/(m + r)."""

    @property
    def rate(self) -> Floats:
        """The overall rate of the label."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(self.labelled / self.everyone)

    @property
    def ub(self) -> Floats:
        """UB of the ratio of rates that all batches have in common (Mantel–Haenszel)."""
        with np.errstate(divide="ignore", invalid="ignore"):
            share = self.rows / self.everyone
            # 1 − UB = 1/(P + (1 − P)·p0/p1)
            return np.asarray(1 - self.above / (share * self.above + (1 - share) * self.below))


OF_GROUP = 3
"""So many of these sums do not depend on the label."""


def sum_up(comparisons: Comparisons, start: int) -> Tally:
    """The sums of each pair, compared with all other rows, over the batches from ``start`` on."""
    comparisons = comparisons.against_rest()
    return _sums(comparisons, start, np.zeros(len(comparisons), np.int64))


def ratio_sums(comparisons: Comparisons, start: int) -> tuple[Floats, Floats]:
    """Two sums over the batches from ``start`` on, whose ratio is the common ratio of rates of each comparison.

    Batches before a comparison could join are left out, since those that were merged have no sums of it.
    """
    sums = _sums(comparisons, start, comparisons.ready)
    return sums.above, sums.below


def _sums(comparisons: Comparisons, start: int, ready: NDArray[np.int64]) -> Tally:
    n, batches = len(comparisons), len(comparisons.groups.labels)
    found = np.zeros((len(Tally._fields), n))
    size = max(_ENTRIES // max(n, 1), 1)
    for first in range(start, batches if n else 0, size):
        samples = comparisons.samples(slice(first, min(first + size, batches)))
        numbers = first + np.arange(samples.x.shape[1])
        used = samples.used & (numbers >= ready[:, None])
        x, m, z, r = (np.where(used, part, 0.0) for part in samples)
        every = np.maximum(m + r, 1.0)
        parts = (m, m + r, used, x, x + z, x * r / every, z * m / every)
        found += [part.sum(axis=1) for part in parts]
    return Tally(*found)


def of_all_groups(groups: GroupSeries, start: int) -> Floats:
    """The sums of every group and label, whatever a policy compares: by sum, group and label."""
    n, labels = len(groups.codes), len(groups.counts.label)
    pairs = tuple(WatchedPair(i, y, 0, (REST,)) for i in range(n) for y in range(labels))
    number = np.arange(len(pairs))
    everything = Comparisons(pairs, (), groups, number, np.full(len(pairs), REST))
    return np.array(sum_up(everything, start)).reshape(len(Tally._fields), n, labels)
