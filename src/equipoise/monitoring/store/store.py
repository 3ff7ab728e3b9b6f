"""The history of streams: what is kept of each batch, and how it is added, corrected and read."""

from __future__ import annotations

import contextlib
import datetime
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace as changed
from typing import Any, Self, TypeVar

import numpy as np

from equipoise.counts import Counts
from equipoise.errors import InputError, UnknownName
from equipoise.monitoring.moments import from_number, to_number
from equipoise.monitoring.names import folded, stream_name
from equipoise.monitoring.store.cells import KnownCells
from equipoise.monitoring.store.database import StoreDatabase, open_database
from equipoise.monitoring.store.entries import Entry, Outcome, Receipt, correction
from equipoise.monitoring.store.recognition import Recognition
from equipoise.monitoring.store.records import (
    PAIR,
    Batch,
    Event,
    EventKind,
    Periods,
    Stream,
    StreamCells,
    cell_values,
    plain_text,
    tags_text,
)

_Read = TypeVar("_Read")
_SLACK = datetime.timedelta(minutes=5)
"""How far a clock may go back, as when it is set by a time server, before a time is not believed."""


class Store:
    """A history of streams in SQLite or PostgreSQL."""

    def __init__(
        self,
        address: str,
        *,
        create: bool = False,
        write: bool = False,
        read_only: bool = False,
        clock: Callable[[], datetime.datetime] = lambda: datetime.datetime.now(datetime.UTC),
    ) -> None:
        self.database: StoreDatabase = open_database(
            address, create=create, write=write, read_only=read_only
        )
        self._clock = clock
        self.writes = write
        """Whether it was opened to be written."""
        self._known: dict[int, dict[str, int]] = {}
        self._is_reading = self._is_writing = False

    @property
    def name(self) -> str:
        """How the store is shown."""
        return self.database.name

    def close(self) -> None:
        """Close the connection."""
        self.database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # ------------------------------------------------------------------ streams

    def streams(self) -> tuple[Stream, ...]:
        """All streams, by name."""
        with self.reading():
            lines = self.database.run(
                "SELECT stream, name, definition FROM equipoise_stream ORDER BY folded"
            )
        return self.read_all(Stream.stored, lines)

    def stream(self, name: str) -> Stream:
        """The stream of a name."""
        found = self.find(name)
        if found is None:
            raise UnknownName(
                "stream", name, [each.name for each in self.streams()] or ["none yet"]
            )
        return found

    def find(self, name: str) -> Stream | None:
        """The stream of a name, or None; names that differ in case only are refused."""
        with self.reading():
            return self._find(name)

    def _find(self, name: str) -> Stream | None:
        name = stream_name(name)
        lines = self.database.run(
            "SELECT stream, name, definition FROM equipoise_stream WHERE folded = ?",
            [folded(name)],
        )
        if lines and lines[0][1] != name:
            raise InputError(
                f"there is already a stream {lines[0][1]!r}, and names must not differ only in case; use this "
                "spelling, or another name."
            )
        return self.read_all(Stream.stored, lines)[0] if lines else None

    def define(self, wanted: Stream) -> Stream:
        """Make a stream, or return the one that another program has made at the same time."""
        wanted = changed(wanted, name=stream_name(wanted.name))
        with self.writing():
            found = self._find(wanted.name)
            if found is not None:
                return found
            self.database.run(
                "INSERT INTO equipoise_stream (name, folded, definition, created) VALUES (?, ?, ?, ?)",
                [wanted.name, folded(wanted.name), wanted.definition(), self._now()],
            )
            made = self._find(wanted.name)
        assert made is not None  # noqa: S101  it was inserted in this transaction
        return made

    def settle_split(self, stream: Stream, split: Periods) -> Periods:
        """Keep how a stream is split, if it has no batches that were split before; return how it is."""
        with self.writing():
            there = self._find(stream.name)
            assert there is not None  # noqa: S101  streams are never deleted
            if there.split is not None and self.sizes(there)[0]:
                return there.split
            self.database.run(
                "UPDATE equipoise_stream SET definition = ? WHERE stream = ?",
                [changed(there, split=split).definition(), there.number],
            )
        return split

    def _now(self) -> int:
        return to_number(self._clock())

    # ------------------------------------------------------------------- adding

    def add(
        self, stream: Stream, entries: Sequence[Entry], *, replace: bool = False
    ) -> list[Receipt]:
        """Add batches, all or none; with ``replace`` those that are there are corrected."""
        with self.writing():
            cells = KnownCells(self._cell_numbers(stream), self.read_all)
            return [self._add_one(stream, entry, cells, replace=replace) for entry in entries]

    def _add_one(
        self, stream: Stream, entry: Entry, cells: KnownCells, *, replace: bool
    ) -> Receipt:
        known = Recognition(self.database, stream, self._newest)
        entry = known.find(entry, to_replace=replace)
        fingerprint = entry.counts.fingerprint
        there = self._newest(stream, entry.own_id)
        if there is not None and there.state == "current":
            if entry.is_as(there) or (there.fingerprint == fingerprint and not replace):
                return Receipt("there", there)
            if not replace:
                raise InputError(
                    f"{stream.name} already has a batch {entry.own_id!r} with other counts; correct it with "
                    "`replace`, or give this batch another `id`. Nothing was changed."
                )
        elif there is not None and there.state == "withdrawn" and not replace:
            raise InputError(
                f"the batch {entry.own_id!r} of {stream.name} was withdrawn; add it again with `replace`. "
                "Nothing was changed."
            )
        if self._was_merged(stream, entry, fingerprint):
            return Receipt("there", _unwritten(entry, fingerprint))
        if entry.is_now:
            self._require_clock(stream, self._clock())
        remarks = [*entry.remarks, *cells.drift(entry.counts)]
        late = self._late(stream, entry) if there is None else []
        moved = there is None or there.starts != entry.at
        ahead = entry.ahead(self._clock()) if moved else []
        if there is not None and there.state == "current":
            self.database.run(
                "UPDATE equipoise_batch SET state = 'replaced' WHERE arrival = ?", [there.arrival]
            )
        batch = self._insert(stream, entry, cells, self._place_kept(stream, there))
        if there is not None:
            self._note_all(stream, batch, "corrected", [correction(batch, there)])
        self._note_all(stream, batch, "late", late)
        self._note_all(stream, batch, "ahead", ahead)
        self._note_all(stream, batch, "drift", remarks)
        outcome: Outcome = "added" if there is None else "corrected"
        return Receipt(outcome, batch, (*remarks, *late, *ahead))

    def _note_all(
        self, stream: Stream, batch: Batch, kind: EventKind, texts: Sequence[str]
    ) -> None:
        for text in texts:
            self.note(stream, batch.place, kind, {"id": batch.id, "text": text})

    def _newest(self, stream: Stream, id_: str) -> Batch | None:
        lines = self.database.run(
            f"SELECT {Batch.COLUMNS} FROM equipoise_batch WHERE stream = ? AND id = ? "
            "AND state <> 'merged' ORDER BY arrival DESC LIMIT 1",
            [stream.number, id_],
        )
        return self.read_all(Batch.stored, lines)[0] if lines else None

    def _was_merged(self, stream: Stream, entry: Entry, fingerprint: str) -> bool:
        """Whether a batch was merged with others as it is; a correction of it comes too late."""
        former = self.database.run(
            "SELECT fingerprint FROM equipoise_former WHERE stream = ? AND id = ?",
            [stream.number, entry.own_id],
        )
        if former and former[0][0] != fingerprint:
            raise InputError(
                f"the batch {entry.own_id!r} of {stream.name} was merged with others and can no longer be "
                "corrected. Nothing was changed."
            )
        return bool(former)

    def _place_kept(self, stream: Stream, there: Batch | None) -> int | None:
        """The place of the batch that is corrected; none where those after it were merged.

        Batches there are no longer tested, and one that is added again must be.
        """
        if there is None:
            return None
        merged = self.database.run(
            "SELECT max(place) FROM equipoise_batch WHERE stream = ? AND state = 'merged'",
            [stream.number],
        )[0][0]
        return None if there.place < (merged or 0) else there.place

    def _require_clock(self, stream: Stream, now: datetime.datetime) -> None:
        """Refuse the time of a clock that has gone backwards."""
        last = self.database.run(
            "SELECT max(added) FROM equipoise_batch WHERE stream = ?", [stream.number]
        )[0][0]
        if last is not None and now < from_number(last) - _SLACK:
            raise InputError(
                f"the clock of this machine says {now:%Y-%m-%d %H:%M} UTC, but the last batch was added at "
                f"{from_number(last):%Y-%m-%d %H:%M} UTC; set the clock, or give the time of the batch with "
                "`at`. Nothing was changed."
            )

    def _late(self, stream: Stream, entry: Entry) -> list[str]:
        last = self.database.run(
            "SELECT max(ends) FROM equipoise_batch WHERE stream = ? AND state IN ('current', 'merged')",
            [stream.number],
        )[0][0]
        if last is None or to_number(entry.at) >= last:
            return []
        return [
            (
                f"The batch {entry.own_id} of {entry.at:%Y-%m-%d %H:%M} arrived after the batch of "
                f"{from_number(last):%Y-%m-%d %H:%M} (UTC). The tests use batches in the order of arrival."
            )
        ]

    def _insert(self, stream: Stream, entry: Entry, cells: KnownCells, place: int | None) -> Batch:
        counts = entry.counts
        numbers, new = cells.number(counts)
        if new:
            self.database.run_many(
                "INSERT INTO equipoise_cell (stream, cell, cell_values) VALUES (?, ?, ?)",
                [(stream.number, number, text) for text, number in new.items()],
            )
        pairs = np.zeros(len(numbers), PAIR)
        pairs["cell"] = numbers
        pairs["rows"] = counts.rows
        about = _about(counts)
        at, now = to_number(entry.at), self._now()
        arrival = self.database.run(
            "INSERT INTO equipoise_batch (stream, place, id, starts, ends, added, state, tags, "
            "fingerprint, n, merged, about, cells) VALUES (?, ?, ?, ?, ?, ?, 'current', ?, ?, ?, 1, ?, ?) "
            "RETURNING arrival",
            [
                *(stream.number, place or 0, entry.own_id, at, at, now),
                *(tags_text(entry.tags), counts.fingerprint, counts.n),
                *(plain_text(about), pairs.tobytes()),
            ],
        )[0][0]
        if place is None:
            place = arrival
            self.database.run(
                "UPDATE equipoise_batch SET place = arrival WHERE arrival = ?", [arrival]
            )
        return Batch(
            *(arrival, place, entry.own_id, entry.at, entry.at, from_number(now), "current"),
            *(dict(entry.tags), counts.fingerprint, counts.n, 1, about, pairs.tobytes()),
        )

    def _cell_numbers(self, stream: Stream) -> dict[str, int]:
        """The numbers of all cells; of those that are known already only what is new is read."""
        known = self._known.setdefault(stream.number, {})
        found = self.database.run(
            "SELECT cell_values, cell FROM equipoise_cell WHERE stream = ? AND cell >= ? ORDER BY cell",
            [stream.number, len(known)],
        )
        # A transaction that fails must leave no trace here.
        numbers = {**known, **dict(found)}
        self._known[stream.number] = numbers
        return dict(numbers)

    # ------------------------------------------------------------------ changing

    def withdraw(self, stream: Stream, id_: str, reason: str) -> Batch:
        """Take a batch out of all sums and tests; it is kept, with the reason."""
        with self.writing():
            there = self._newest(stream, id_)
            if there is None or there.state != "current":
                former = self.database.run(
                    "SELECT 1 FROM equipoise_former WHERE stream = ? AND id = ?",
                    [stream.number, id_],
                )
                why = (
                    "was merged with others and can no longer be withdrawn"
                    if former
                    else ("is already withdrawn" if there is not None else "is not there")
                )
                raise InputError(f"the batch {id_!r} of {stream.name} {why}; nothing was changed.")
            self.database.run(
                "UPDATE equipoise_batch SET state = 'withdrawn' WHERE arrival = ?", [there.arrival]
            )
            said = f"The batch {id_} was withdrawn{f': {reason}' if reason else ''}."
            self.note(stream, there.place, "withdrawn", {"id": id_, "text": said})
        return there

    def acknowledge(self, stream: Stream, reason: str) -> Event:
        """Begin all tests anew with the next batch."""
        with self.writing():
            said = f"All alerts so far were acknowledged{f': {reason}' if reason else ''}."
            place = self.last_place(stream)
            self.note(stream, place, "acknowledged", {"text": said})
        return self.events(stream)[-1]

    def last_place(self, stream: Stream) -> int:
        """The place of the last batch."""
        found = self.database.run(
            "SELECT max(place) FROM equipoise_batch WHERE stream = ?", [stream.number]
        )[0][0]
        return int(found or 0)

    def note(self, stream: Stream, place: int, kind: EventKind, about: Mapping[str, Any]) -> None:
        """Note an event, in a transaction that writes."""
        self.database.run(
            "INSERT INTO equipoise_event (stream, place, noted, kind, about) VALUES (?, ?, ?, ?, ?)",
            [stream.number, place, self._now(), kind, plain_text(about)],
        )

    # ------------------------------------------------------------------- reading

    def events(self, stream: Stream) -> tuple[Event, ...]:
        """What happened to a stream other than usual batches, in order."""
        lines = self.database.run(
            "SELECT place, noted, kind, about FROM equipoise_event WHERE stream = ? ORDER BY event",
            [stream.number],
        )
        return self.read_all(Event.stored, lines)

    def batches(self, stream: Stream, *, everything: bool = False) -> tuple[Batch, ...]:
        """The batches in the order in which they are tested, with their cells.

        With ``everything``, versions that were corrected or withdrawn are among them.
        """
        which = "" if everything else "AND state IN ('current', 'merged')"
        lines = self.database.run(
            f"SELECT {Batch.COLUMNS}, cells FROM equipoise_batch WHERE stream = ? {which} "
            "ORDER BY place, arrival",
            [stream.number],
        )
        return self.read_all(Batch.stored, lines)

    def sizes(self, stream: Stream) -> tuple[int, int, list[datetime.datetime]]:
        """Numbers of batches and rows of a stream, and its first and last time, if it has batches."""
        batches, rows, *times = self.database.run(
            "SELECT coalesce(sum(merged), 0), coalesce(sum(n), 0), min(starts), max(ends) "
            "FROM equipoise_batch WHERE stream = ? AND state IN ('current', 'merged')",
            [stream.number],
        )[0]
        known = [(time,) for time in times if time is not None]
        return int(batches), int(rows), list(self.read_all(from_number, known))

    def cells(self, stream: Stream) -> StreamCells:
        """The cells of a stream by number."""
        lines = self.database.run(
            "SELECT cell_values FROM equipoise_cell WHERE stream = ? ORDER BY cell", [stream.number]
        )
        return StreamCells(stream, self.read_all(cell_values, lines))

    def read_all(
        self, read: Callable[..., _Read], lines: Iterable[Sequence[Any]]
    ) -> tuple[_Read, ...]:
        """Read the lines of a table; a database may be damaged in places that it does not check."""
        try:
            return tuple(read(*line) for line in lines)
        except (ValueError, TypeError, LookupError, ArithmeticError) as error:
            raise self.damaged(type(error).__name__) from None

    def damaged(self, why: str) -> InputError:
        """An error that says that what was written cannot be read."""
        return InputError(f"{self.name} is damaged ({why}); restore it from a backup.")

    @contextlib.contextmanager
    def reading(self) -> Iterator[None]:
        """See one state of the store until the block ends."""
        if self._is_reading:
            yield
            return
        with self.database.reading():
            self._is_reading = True
            try:
                yield
            finally:
                self._is_reading = False

    @contextlib.contextmanager
    def writing(self) -> Iterator[None]:
        """Change the store until the block ends, all of it or nothing."""
        if self._is_writing:
            yield
            return
        with self.database.writing():
            self._is_writing = True
            try:
                yield
            finally:
                self._is_writing = False


def _unwritten(entry: Entry, fingerprint: str) -> Batch:
    """A batch that is known, and no longer kept by itself."""
    return Batch(
        *(0, 0, entry.own_id, entry.at, entry.at, entry.at, "merged"),
        *(dict(entry.tags), fingerprint, entry.counts.n, 1),
    )


def _about(counts: Counts) -> dict[str, Any]:
    absent = {name: n for name, n in counts.missing_values.items() if n}
    told: dict[str, Any] = {"missing_values": absent} if absent else {}
    if counts.dropped:
        told["dropped"] = counts.dropped
    if counts.skipped:
        told["skipped"] = counts.skipped.to_dict()
    return told
