"""Profiles of tables, gathered batch by batch in one pass, the same on every engine."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence, Sized
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from equipoise.counts.columns import as_number
from equipoise.counts.skipped import NOTHING, Skipped

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray

FEW_VALUES = 500
"""Maximum number of distinct values that are counted value by value."""

SKETCH = 256
"""Number of hashes that represent the values of a column with more."""

SAMPLE = 256
"""Number of rows that are kept unchanged."""

_QUANTILES = 21
_SAMPLED_FOR_QUANTILES = 1024


@dataclass(frozen=True)
class ColumnProfile:
    """Profile of a column. If it has too many values, some figures are estimates from a sample."""

    name: str
    type: str
    nulls: int
    distinct: int
    values: Mapping[str, int] | None
    """Rows of each value, if there are at most :data:`FEW_VALUES`."""
    sketch: tuple[int, ...]
    """Otherwise the smallest hashes of its values (:func:`value_hash`), in ascending order."""
    numeric: float
    """Share of its values that are numbers."""
    quantiles: tuple[float, ...] | None
    """Minimum of these numbers, every twentieth, and maximum."""
    sample: tuple[str | None, ...]
    """Values of some rows, the same rows for every column."""


@dataclass(frozen=True)
class Profile:
    """Profile of a table, and the lines that were skipped because they are not rows."""

    rows: int
    columns: tuple[ColumnProfile, ...]
    skipped: Skipped = NOTHING


def value_hash(text: str) -> int:
    """Hash a value regardless of case and surrounding blanks, the same on every machine."""
    plain = text.strip().casefold().encode()
    return int.from_bytes(hashlib.md5(plain, usedforsecurity=False).digest()[:8], "big")


@dataclass
class Profiler:
    """Gathers a profile from batches of rows, whose values are text or null.

    A part of a table that starts at the row ``start`` can be profiled by itself: merged, profilers of
    parts give the profile of the whole.
    """

    names: Sequence[str]
    types: Sequence[str]
    rows: int = 0
    start: int = 0

    def __post_init__(self) -> None:
        self._columns = [Gathered() for _ in self.names]
        # Every row has a random key that depends on its number alone.
        self._random = np.random.Generator(np.random.PCG64(0).advance(self.start))
        self._keys = np.empty(0)
        self._sample: list[list[str | None]] = [[] for _ in self.names]

    def add(self, columns: Sequence[pa.Array]) -> None:
        """Add a batch of rows."""
        found = (column.value_counts() for column in columns)
        counted = ((c.field(0).to_pylist(), c.field(1).to_pylist()) for c in found)
        self._add(columns, counted, lambda i, rows: columns[i].take(rows).to_pylist())

    def add_texts(self, columns: Sequence[Sequence[str | None]]) -> None:
        """Add a few rows, without the time it takes to make arrays of them."""
        counted = ((list(c), list(c.values())) for c in map(Counter, columns))
        self._add(columns, counted, lambda i, rows: [columns[i][j] for j in rows])

    def _add(
        self,
        columns: Sequence[Sized],
        counted: Iterable[tuple[Sequence[str | None], Sequence[int]]],
        taken: Callable[[int, NDArray[np.int64]], list[str | None]],
    ) -> None:
        if not columns or not len(columns[0]):
            return
        for gathered, (texts, counts) in zip(self._columns, counted, strict=True):
            gathered.add(texts, counts)
        rows, kept = len(columns[0]), len(self._keys)
        self.rows += rows
        # The rows with the smallest random keys are kept, so that all rows are equally likely.
        keys = np.concatenate([self._keys, self._random.random(rows)])
        best = np.sort(np.argsort(keys, kind="stable")[:_SAMPLED_FOR_QUANTILES])
        fresh = best[best >= kept] - kept
        if len(fresh):
            stay = best[best < kept].tolist()
            for i, old in enumerate(self._sample):
                self._sample[i] = [*(old[j] for j in stay), *taken(i, fresh)]
            self._keys = keys[best]

    def merge(self, later: Profiler) -> None:
        """Add what was gathered from rows that come after these."""
        self.rows += later.rows
        for gathered, more in zip(self._columns, later._columns, strict=True):
            gathered.merge(more)
        keys = np.concatenate([self._keys, later._keys])
        best = np.sort(np.argsort(keys, kind="stable")[:_SAMPLED_FOR_QUANTILES]).tolist()
        for i, texts in enumerate(later._sample):
            both = [*self._sample[i], *texts]
            self._sample[i] = [both[j] for j in best]
        self._keys = keys[best]

    def profile(self) -> Profile:
        """Return the profile of all rows so far."""
        kept = np.sort(np.argsort(self._keys, kind="stable")[:SAMPLE]).tolist()
        columns = list(zip(self.names, self.types, strict=True))
        return summarize(columns, self.rows, self._columns, self._sample, kept)


def summarize(
    columns: Sequence[tuple[str, str]],
    rows: int,
    gathered: Sequence[Gathered],
    sample: Sequence[Sequence[str | None]],
    kept: Sequence[int] | None = None,
) -> Profile:
    """Make a profile of what was gathered, and of a sample, whose first rows are kept by default.

    ``columns`` are names and types.
    """
    found = []
    for (name, kind), values, texts in zip(columns, gathered, sample, strict=True):
        numeric, quantiles = values.numbers(texts)
        shown = range(min(SAMPLE, len(texts))) if kept is None else kept
        found.append(
            ColumnProfile(
                name=name,
                type=kind,
                nulls=values.nulls,
                distinct=values.distinct,
                values=values.values,
                sketch=tuple(values.hashes.tolist()),
                numeric=numeric,
                quantiles=quantiles,
                sample=tuple(texts[j] for j in shown),
            )
        )
    return Profile(rows, tuple(found))


@dataclass
class Gathered:
    """Values of one column so far: counted, or only the smallest of their hashes."""

    nulls: int = 0
    values: dict[str, int] | None = field(default_factory=dict)
    hashes: NDArray[np.uint64] = field(default_factory=lambda: np.empty(0, np.uint64))

    def add(self, texts: Sequence[str | None], counts: Sequence[int]) -> None:
        """Add values with their numbers of rows."""
        known: dict[str, int] = {} if self.values is None else self.values
        for text, n in zip(texts, counts, strict=True):
            if text is None:
                self.nulls += n
            else:
                known[text] = known.get(text, 0) + n
        if self.values is None:
            self._add_hashes(known)
        elif len(self.values) > FEW_VALUES:
            self._add_hashes(self.values)
            self.values = None

    def merge(self, more: Gathered) -> None:
        """Add what was gathered from other rows."""
        self.nulls += more.nulls
        if more.values is not None:
            self.add(list(more.values), list(more.values.values()))
            return
        if self.values is not None:
            self._add_hashes(self.values)
            self.values = None
        self.hashes = np.unique(np.concatenate([self.hashes, more.hashes]))[:SKETCH]

    def _add_hashes(self, texts: Iterable[str]) -> None:
        fresh = np.fromiter(map(value_hash, texts), np.uint64)
        self.hashes = np.unique(np.concatenate([self.hashes, fresh]))[:SKETCH]

    @property
    def distinct(self) -> int:
        """Number of values, estimated if they are not counted."""
        if self.values is not None:
            return len(self.values)
        if len(self.hashes) < SKETCH:
            return len(self.hashes)
        # An estimate: the more values there are, the smaller are the smallest hashes.
        return round((SKETCH - 1) / (float(self.hashes[-1]) / 2**64))

    def numbers(self, rows: Sequence[str | None]) -> tuple[float, tuple[float, ...] | None]:
        """Return the share of numbers and their quantiles, by a sample if values are not counted."""
        if self.values is not None:
            texts, counts = list(self.values), list(self.values.values())
        else:
            texts = [text for text in rows if text is not None]
            counts = [1] * len(texts)
        if not texts:
            return 0.0, None
        numbers = np.array([as_number(text) for text in texts], float)  # None becomes nan
        weights = np.array(counts)
        are = ~np.isnan(numbers)
        share = float(weights[are].sum() / weights.sum())
        return share, _quantiles(numbers[are], weights[are])


def _quantiles(numbers: NDArray[np.float64], rows: NDArray[np.int64]) -> tuple[float, ...] | None:
    if not len(numbers):
        return None
    order = np.argsort(numbers)
    up_to = np.cumsum(rows[order])
    places = np.maximum(np.ceil(np.linspace(0, 1, _QUANTILES) * up_to[-1]), 1)
    return tuple(numbers[order][np.searchsorted(up_to, places)].tolist())
