"""The results of adding batches, and the lists of streams and batches in a store."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from equipoise.counts import Counts
from equipoise.measures.display import whole
from equipoise.monitoring.moments import iso, shown
from equipoise.monitoring.store.entries import Receipt
from equipoise.monitoring.store.records import Batch, Stream
from equipoise.plain import Grid, rows_text
from equipoise.results import FlatTable, Result


@dataclass(frozen=True, eq=False, kw_only=True)
class Added(Result):
    """The result of adding batches to a stream."""

    name: str
    receipts: tuple[Receipt, ...]
    zone: datetime.tzinfo = datetime.UTC
    left_out: int = 0
    """Number of rows without a time, which were left out."""
    dropped: int = 0
    """Number of rows that were left out because of a missing value, by default of the label."""
    lacking: str = "a label"
    """What these rows lack."""

    @classmethod
    def of(
        cls,
        name: str,
        receipts: Sequence[Receipt],
        zone: datetime.tzinfo,
        counts: Counts,
        left_out: int,
    ) -> Added:
        """Collect the outcomes of the batches into which counts were split."""
        return cls(
            name=name,
            receipts=tuple(receipts),
            zone=zone,
            left_out=left_out,
            dropped=counts.dropped,
            lacking=_lacking(counts),
        )

    @property
    def added(self) -> int:
        """Number of batches that are new."""
        return sum(receipt.outcome == "added" for receipt in self.receipts)

    @property
    def batch(self) -> Batch:
        """The batch, or the last one."""
        return self.receipts[-1].batch

    @property
    def sentences(self) -> tuple[str, ...]:
        """What was added, what was already there, and what differs from earlier batches."""
        said = self._one() if len(self.receipts) == 1 else self._several()
        if self.left_out:
            said.append(
                f"{rows_text(self.left_out)} without a time {_be(self.left_out, 'was', 'were')} left out."
            )
        if self.dropped and any(r.outcome != "there" for r in self.receipts):
            were = _be(self.dropped, "was", "were")
            said.append(f"{rows_text(self.dropped)} without {self.lacking} {were} left out.")
        remarks = [text for receipt in self.receipts for text in receipt.remarks]
        more = [f"… and {len(remarks) - 5:,} more remarks; the history lists them."]
        return (*said, *remarks[:5], *(more * (len(remarks) > 5)))

    def _one(self) -> list[str]:
        (receipt,) = self.receipts
        batch = receipt.batch
        if receipt.outcome == "there":
            return [f"The batch {batch.id} of {self.name} is already there. Nothing was changed."]
        when, rows = shown(batch.starts, self.zone), rows_text(batch.n)
        if receipt.outcome == "added":
            return [f"Added the batch {batch.id} of {when} with {rows} to {self.name}."]
        return [
            f"Corrected the batch {batch.id} of {self.name}. It now has {rows} and the time {when}."
        ]

    def _several(self) -> list[str]:
        rows = sum(r.batch.n for r in self.receipts if r.outcome == "added")
        first = min(r.batch.starts for r in self.receipts)
        last = max(r.batch.starts for r in self.receipts)
        number = {o: sum(r.outcome == o for r in self.receipts) for o in ("corrected", "there")}
        said = [
            (
                f"Added {self.added:,} {_be(self.added, 'batch', 'batches')} with {rows_text(rows)} to {self.name}, "
                f"{shown(first, self.zone)} to {shown(last, self.zone)}."
            )
        ]
        corrected, there = number["corrected"], number["there"]
        if corrected:
            said.append(f"Corrected {corrected:,} {_be(corrected, 'batch', 'batches')}.")
        if there:
            were = _be(there, "batch that was", "batches that were")
            said.append(f"Skipped {there:,} {were} already there.")
        return said

    def grid(self) -> Grid:
        """The batches as a table."""
        rows = tuple(
            (r.outcome, r.batch.id, shown(r.batch.starts, self.zone), whole(r.batch.n))
            for r in self.receipts
        )
        return Grid(("outcome", "id", "time", "rows"), rows, frozenset({3}))

    def text(self) -> str:
        """What was added, in sentences. No table is shown, because there may be thousands of batches."""
        return "\n".join(self.sentences)

    def _table(self) -> FlatTable:
        rows = ((r.outcome, *_columns(r.batch, self.zone).values()) for r in self.receipts)
        return ("outcome", *_BATCH), rows

    def to_dict(self) -> dict[str, Any]:
        """Plain data, as written to JSON."""
        return {
            "schema": "equipoise.added/1",
            "name": self.name,
            "sentences": list(self.sentences),
            "added": self.added,
            "left_out": self.left_out,
            "dropped": self.dropped,
            "batches": [
                {"outcome": r.outcome, **_told(r.batch, self.zone), "remarks": list(r.remarks)}
                for r in self.receipts
            ],
            "version": self.version,
            "time": self.time,
        }


def _lacking(counts: Counts) -> str:
    """What the rows do not have that were left out of counts."""
    request = counts.request
    others = request is not None and request.missing == "drop"
    absent = any(n for name, n in counts.missing_values.items() if name != counts.label.name)
    return "a value" if others and absent else "a label"


def _be(n: int, one: str, several: str) -> str:
    return one if n == 1 else several


_BATCH = ("id", "at", "until", "state", "rows", "batches", "tags")


def _told(batch: Batch, zone: datetime.tzinfo) -> dict[str, Any]:
    """The plain data of a batch, with its times in a zone."""
    times = {"at": batch.starts, "until": batch.ends, "added": batch.added}
    return {**batch.to_dict(), **{name: iso(at, zone) for name, at in times.items()}}


def _columns(batch: Batch, zone: datetime.tzinfo) -> dict[str, Any]:
    told = _told(batch, zone)
    return {name: told[name] for name in _BATCH}


@dataclass(frozen=True, eq=False, kw_only=True)
class BatchList(Result):
    """The batches of a stream, including corrected and withdrawn versions."""

    name: str
    batches: tuple[Batch, ...]
    zone: datetime.tzinfo = datetime.UTC
    _most: ClassVar[int | None] = 50

    @property
    def heading(self) -> str:
        """How many there are."""
        n = sum(batch.state in ("current", "merged") for batch in self.batches)
        other = len(self.batches) - n
        more = f", and {other:,} that were corrected or withdrawn" if other else ""
        return f"{self.name}: {n:,} {'batch' if n == 1 else 'batches'}{more}"

    def grid(self, top: int | None = None) -> Grid:
        """The last batches as a table."""
        chosen = self.batches if top is None else self.batches[max(len(self.batches) - top, 0) :]
        rows = tuple(
            (
                *(shown(b.starts, self.zone), b.id, whole(b.n), whole(b.merged), b.state),
                ", ".join(f"{k}={v}" for k, v in b.tags.items()),
            )
            for b in chosen
        )
        return Grid(("time", "id", "rows", "batches", "state", "tags"), rows, frozenset({2, 3}))

    def _table(self) -> FlatTable:
        return _BATCH, (tuple(_columns(b, self.zone).values()) for b in self.batches)

    def to_dict(self) -> dict[str, Any]:
        """Plain data, as written to JSON."""
        return {
            "schema": "equipoise.batches/1",
            "name": self.name,
            "batches": [_told(batch, self.zone) for batch in self.batches],
            "version": self.version,
            "time": self.time,
        }


@dataclass(frozen=True)
class StreamSummary:
    """One stream of a store: its columns, batches and rows."""

    stream: Stream
    batches: int
    rows: int
    first: datetime.datetime | None
    last: datetime.datetime | None

    def to_dict(self, zone: datetime.tzinfo = datetime.UTC) -> dict[str, Any]:
        """Plain data, for JSON, with times in a zone."""
        return {
            "name": self.stream.name,
            "sensitive": list(self.stream.request.sensitive),
            "label": self.stream.request.label,
            "batches": self.batches,
            "rows": self.rows,
            "first": iso(self.first, zone),
            "last": iso(self.last, zone),
        }


@dataclass(frozen=True, eq=False, kw_only=True)
class StreamList(Result):
    """The streams of a store."""

    store: str
    streams: tuple[StreamSummary, ...]
    zone: datetime.tzinfo = datetime.UTC

    @property
    def heading(self) -> str:
        """How many there are."""
        n = len(self.streams)
        return f"{self.store}: {n:,} {'stream' if n == 1 else 'streams'}"

    def grid(self) -> Grid:
        """The streams as a table."""
        rows = tuple(
            (
                each.stream.name,
                ", ".join(each.stream.request.sensitive),
                each.stream.request.label,
                *(whole(each.batches), whole(each.rows)),
                *("–" if at is None else shown(at, self.zone) for at in (each.first, each.last)),
            )
            for each in self.streams
        )
        headers = ("name", "sensitive", "label", "batches", "rows", "first", "last")
        return Grid(headers, rows, frozenset({3, 4}))

    def _table(self) -> FlatTable:
        told: list[Mapping[str, Any]] = [each.to_dict(self.zone) for each in self.streams]
        names = ("name", "sensitive", "label", "batches", "rows", "first", "last")
        return names, (tuple(each[name] for name in names) for each in told)

    def to_dict(self) -> dict[str, Any]:
        """Plain data, as written to JSON."""
        return {
            "schema": "equipoise.streams/1",
            "store": self.store,
            "streams": [each.to_dict(self.zone) for each in self.streams],
            "version": self.version,
            "time": self.time,
        }
