"""The two samples of each batch that a comparison is about, and their sums over past batches."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]

HALF_LIFE, QUICK = 20, 5
"""Numbers of batches after which a past batch counts half in bets that forget."""
_HALVINGS = 13
"""Number of half-lives whose sums are computed together: weights in them differ by 2^13."""


class Samples(NamedTuple):
    """Rows of the group and of what it is compared with, and of both those with the label."""

    x: Floats
    """Rows of the group with the label."""
    m: Floats
    """Rows of the group."""
    z: Floats
    """Other rows with the label."""
    r: Floats
    """Other rows."""

    @classmethod
    def none(cls, comparisons: int) -> Samples:
        """Samples without rows: the sums before the first batch."""
        return cls(*np.zeros((4, comparisons)))

    @property
    def used(self) -> NDArray[np.bool_]:
        """Batches in which both samples have rows; the others say nothing and are skipped."""
        return (self.m > 0) & (self.r > 0)

    @property
    def share(self) -> Floats:
        """The group's share of all rows, P."""
        return self.m / np.maximum(self.m + self.r, 1)

    def blocks(self, size: int) -> Iterator[Samples]:
        """The samples in blocks of batches."""
        for start in range(0, self.x.shape[1], size):
            yield Samples(*(part[:, start : start + size] for part in self))

    def rows(self, lines: slice) -> Samples:
        """Some of the comparisons."""
        return Samples(*(part[lines] for part in self))


def sums_before(samples: Samples, start: Samples) -> tuple[Samples, Samples]:
    """The sums over all batches before each one, and after the last; ``start`` is what came before.

    >>> one = np.array([[1.0, 2.0, 3.0]])
    >>> before, after = sums_before(Samples(one, one, one, one), Samples.none(1))
    >>> before.x.tolist(), after.x.tolist()
    ([[0.0, 1.0, 3.0]], [6.0])
    """
    before, after = [], []
    for part, first in zip(samples, start, strict=True):
        sums = np.cumsum(part, axis=1)
        sums += first[:, None]
        before.append(np.concatenate([first[:, None], sums[:, :-1]], axis=1))
        after.append(sums[:, -1] if part.shape[1] else first)
    return Samples(*before), Samples(*after)


def recent_sums_before(
    samples: Samples, start: Samples, half_life: int = HALF_LIFE
) -> tuple[Samples, Samples]:
    """The same, where a batch counts half after ``half_life`` more."""
    parts = [_decayed(part, first, half_life) for part, first in zip(samples, start, strict=True)]
    before, after = zip(*parts, strict=True)
    return Samples(*before), Samples(*after)


def sums_after(counts: Floats, before: Floats) -> Floats:
    """Sums of counts after the last batch: of all batches, of recent, and of the latest ones."""
    past, recent, latest = before
    return np.stack(
        [
            past + counts.sum(axis=1),
            _decayed(counts, recent, HALF_LIFE)[1],
            _decayed(counts, latest, QUICK)[1],
        ]
    )


def _decayed(part: Floats, first: Floats, half_life: int) -> tuple[Floats, Floats]:
    """Decaying sums: within a block of batches sums of rows that grow with time, then scaled back.

    Sums of positive numbers lose no digits, whatever the block. A product of matrices would do the
    same, with threads that take tens of times as long where other programs keep a core busy.
    """
    before = np.empty_like(part)
    carried = first
    length = _HALVINGS * half_life
    for start in range(0, part.shape[1], length):
        block = part[:, start : start + length]
        size = block.shape[1]
        weights = 0.5 ** (np.arange(size + 1) / half_life)
        sums = np.cumsum(block / weights[:-1], axis=1)
        here = before[:, start : start + size]
        here[:, 0] = carried
        here[:, 1:] = (carried[:, None] + sums[:, :-1]) * weights[1:-1]
        carried = (carried + sums[:, -1]) * weights[-1]
    return before, carried
