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
    """Gathers a profile from batches of rows, whose values are text or null."""

    names: Sequence[str]
    types: Sequence[str]
    rows: int = 0

    def __post_init__(self) -> None:
        self._columns = [_Gathered() for _ in self.names]
        self._random = np.random.default_rng(0)
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

    def profile(self) -> Profile:
        """Return the profile of all rows so far."""
        kept = np.sort(np.argsort(self._keys, kind="stable")[:SAMPLE]).tolist()
        columns = []
        for name, kind, gathered, rows in zip(
            self.names, self.types, self._columns, self._sample, strict=True
        ):
            numeric, quantiles = gathered.numbers(rows)
            columns.append(
                ColumnProfile(
                    name=name,
                    type=kind,
                    nulls=gathered.nulls,
                    distinct=gathered.distinct,
                    values=gathered.values,
                    sketch=tuple(gathered.hashes.tolist()),
                    numeric=numeric,
                    quantiles=quantiles,
                    sample=tuple(rows[j] for j in kept),
                )
            )
        return Profile(self.rows, tuple(columns))


@dataclass
class _Gathered:
    """Values of one column so far."""

    nulls: int = 0
    values: dict[str, int] | None = field(default_factory=dict)
    hashes: NDArray[np.uint64] = field(default_factory=lambda: np.empty(0, np.uint64))

    def add(self, texts: Sequence[str | None], counts: Sequence[int]) -> None:
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

    def _add_hashes(self, texts: Iterable[str]) -> None:
        fresh = np.fromiter(map(value_hash, texts), np.uint64)
        self.hashes = np.unique(np.concatenate([self.hashes, fresh]))[:SKETCH]

    @property
    def distinct(self) -> int:
        if self.values is not None:
            return len(self.values)
        if len(self.hashes) < SKETCH:
            return len(self.hashes)
        # An estimate: the more values there are, the smaller are the smallest hashes.
        return round((SKETCH - 1) / (float(self.hashes[-1]) / 2**64))

    def numbers(self, rows: Sequence[str | None]) -> tuple[float, tuple[float, ...] | None]:
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
