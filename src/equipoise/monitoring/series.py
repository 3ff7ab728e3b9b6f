"""The batches of a stream as arrays: the rows of every group and label in every batch."""

from __future__ import annotations

import datetime
import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from equipoise.counts import Counts
from equipoise.lattice import roll_up
from equipoise.monitoring.cuts import require_uncut, require_window
from equipoise.monitoring.moments import to_number
from equipoise.monitoring.store.records import Batch, Event, Stream, StreamCells, rows_of
from equipoise.monitoring.store.store import Store

if TYPE_CHECKING:
    from numpy.typing import NDArray

_MICROSECOND = datetime.timedelta(microseconds=1)


@dataclass(frozen=True, eq=False)
class Series:
    """The batches of a stream in the order in which they are tested."""

    stream: Stream
    cells: StreamCells
    batches: tuple[Batch, ...]
    rows: NDArray[np.int64]
    """A line per cell, a column per batch."""
    events: tuple[Event, ...]

    @classmethod
    def read(cls, store: Store, name: str) -> Series:
        """Read all batches of a stream."""
        with store.reading():
            stream = store.stream(name)
            batches, cells = store.batches(stream), store.cells(stream)
            events = store.events(stream)
        try:
            rows = rows_of(batches, len(cells.values))
        except (ValueError, IndexError) as error:
            raise store.damaged(type(error).__name__) from None
        return cls(stream, cells, batches, rows, events)

    def __len__(self) -> int:
        return len(self.batches)

    @functools.cached_property
    def starts(self) -> NDArray[np.int64]:
        """When each batch starts, in microseconds."""
        return np.array([to_number(b.starts) for b in self.batches], np.int64)

    @property
    def first(self) -> datetime.datetime:
        """The earliest time of a batch."""
        return min(batch.starts for batch in self.batches)

    @property
    def last(self) -> datetime.datetime:
        """The latest time of a batch."""
        return max(batch.ends for batch in self.batches)

    def last_at(self, now: datetime.datetime) -> datetime.datetime:
        """The latest time of a batch that is not in the future; if all are, of all."""
        known = [batch.ends for batch in self.batches if batch.ends <= now]
        return max(known, default=self.last)

    def where(self, kept: NDArray[np.bool_]) -> Series:
        """Some of the batches."""
        chosen = tuple(b for b, k in zip(self.batches, kept.tolist(), strict=True) if k)
        return replace(self, batches=chosen, rows=self.rows[:, kept])

    def tagged(self, tags: Mapping[str, str]) -> Series:
        """The batches that have all of some tags."""
        kept = [tags.items() <= batch.tags.items() for batch in self.batches]
        return self.where(np.array(kept, np.bool_))

    def between(
        self,
        since: datetime.datetime | None,
        until: datetime.datetime | None,
        zone: datetime.tzinfo = datetime.UTC,
    ) -> Series:
        """The batches from a time on, and before another; neither may be inside a merged batch."""
        for bound in (since, until):
            if bound is not None:
                require_uncut(self.batches, bound, zone)
        kept = [
            (since is None or batch.starts >= since) and (until is None or batch.starts < until)
            for batch in self.batches
        ]
        return self.where(np.array(kept, np.bool_))

    def lately(self, span: datetime.timedelta, zone: datetime.tzinfo = datetime.UTC) -> Series:
        """The batches of the last days; a window of 7 days has 7 daily batches.

        It may not begin inside a merged batch.
        """
        if not len(self):
            return self
        require_window(self.batches, span, zone)
        return self.where(self.starts > to_number(self.last) - span // _MICROSECOND)

    @functools.cached_property
    def total(self) -> Counts:
        """The sum of all batches."""
        absent: dict[str, int] = {}
        dropped = 0
        for batch in self.batches:
            dropped += batch.about.get("dropped", 0)
            for name, n in batch.about.get("missing_values", {}).items():
                absent[name] = absent.get(name, 0) + n
        told = {"missing_values": absent, "dropped": dropped}
        return self.cells.counts(self.rows.sum(axis=1), told)

    def groups(self, max_order: int | None = None) -> GroupSeries:
        """The rows of every group and label in every batch."""
        total = self.total
        if not len(self):
            none = np.zeros((0, len(total.sensitive)), np.int32)
            cases = np.zeros((0, 0, len(total.label)), np.int64)
            return GroupSeries(total, none, np.zeros(0, np.intp), cases, cases[0:0].sum(axis=0))
        finest, _ = total.finest()
        place = {tuple(line): i for i, line in enumerate(finest.tolist())}
        pivot = np.zeros((len(finest), len(self), len(total.label)), np.int64)
        codes = [axis.codes for axis in total.axes]
        for number in np.flatnonzero(self.rows.any(axis=1)).tolist():
            values = self.cells.values[number]
            *group, label = (code[value] for code, value in zip(codes, values, strict=True))
            pivot[place[tuple(group)], :, label] = self.rows[number]
        sizes = [len(axis) for axis in total.sensitive]
        lattice = roll_up(finest, sizes, [pivot.reshape(len(finest), -1)], max_order=max_order)
        cases = lattice.columns[0].reshape(len(lattice), len(self), len(total.label))
        return GroupSeries(total, lattice.codes, lattice.orders, cases, pivot.sum(axis=0))


@dataclass(frozen=True, eq=False)
class GroupSeries:
    """The rows of every group and label in every batch."""

    counts: Counts
    """The sum of all batches."""
    codes: NDArray[np.int32]
    """A line per group, a column per attribute, as in a lattice."""
    orders: NDArray[np.intp]
    cases: NDArray[np.int64]
    """Rows of a group with a label, by group, batch and label."""
    labels: NDArray[np.int64]
    """Rows with a label, by batch and label."""

    @functools.cached_property
    def rows(self) -> NDArray[np.int64]:
        """Rows of a group, by group and batch."""
        return np.asarray(self.cases.sum(axis=2))

    @functools.cached_property
    def all_rows(self) -> NDArray[np.int64]:
        """Rows of each batch."""
        return np.asarray(self.labels.sum(axis=1))

    @functools.cached_property
    def n_rows(self) -> int:
        """Rows of all batches."""
        return int(self.labels.sum())

    def shares(self, lines: Sequence[int]) -> NDArray[np.float64]:
        """The share of some groups in each batch; nan where a batch is empty."""
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.asarray(self.rows[list(lines)] / self.all_rows)
