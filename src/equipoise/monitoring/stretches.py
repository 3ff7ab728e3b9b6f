"""The tests of a stream from one acknowledgement to the next, and the alerts that they raised.

Batches are tested in the order of their arrival. So what the tests find is placed at the latest time
that a batch had so far; a late batch does not bring it back to its own time.
"""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from equipoise.lattice import Group
from equipoise.monitoring.comparisons import named
from equipoise.monitoring.examination import Examination
from equipoise.monitoring.moments import from_number, iso
from equipoise.monitoring.watch import Episode, Watch, watch
from equipoise.values import Value, plain

if TYPE_CHECKING:
    from numpy.typing import NDArray

Ended: TypeAlias = Literal["evidence", "acknowledgement"]


@dataclass(frozen=True)
class Acknowledgement:
    """An acknowledgement of alerts, after which all tests restarted."""

    at: datetime.datetime | None
    """The latest time of a batch until then; None if there was no batch yet."""
    noted: datetime.datetime
    text: str
    known: bool
    """Whether the tests before it can be repeated, because none of their batches were merged."""

    def to_dict(self, zone: datetime.tzinfo = datetime.UTC) -> dict[str, Any]:
        """Plain data, for JSON, with times in a zone."""
        times = {"at": iso(self.at, zone), "noted": iso(self.noted, zone)}
        return {**times, "text": self.text, "alerts_known": self.known}


@dataclass(frozen=True)
class Alarm:
    """The alerts of one group and label between two acknowledgements."""

    group: Group
    label: Value
    start: datetime.datetime | None
    """The latest time of a batch when the first was raised; None if before batches that were merged."""
    end: datetime.datetime | None
    """The latest time of a batch when the last one ended; None if it is on."""
    times: int
    """Number of times it was raised. Evidence near the threshold can raise and end an alert repeatedly."""
    start_batch: datetime.datetime | None = None
    """Time of the batch that raised the first; before ``start`` if it came late."""
    end_batch: datetime.datetime | None = None
    """Time of the batch with which the last one ended; None if no batch ended it."""
    ended: Ended | None = None
    """What ended the last one: that the evidence fell, or an acknowledgement."""

    def to_dict(self, zone: datetime.tzinfo = datetime.UTC) -> dict[str, Any]:
        """Plain data, for JSON, with times in a zone."""
        names = ("start", "end", "start_batch", "end_batch")
        times = {name: iso(getattr(self, name), zone) for name in names}
        return {
            "pattern": str(self.group),
            "label": plain(self.label),
            **times,
            "times": self.times,
            "ended": self.ended,
        }


@dataclass(frozen=True, eq=False)
class Stretch:
    """Some batches in the order of tests, tested by themselves."""

    watch: Watch
    end: int
    """Number of the batch after the last one."""
    acknowledged: Acknowledgement | None = None
    """What ended it; None for the present one."""

    def alerts_of(self, pair: int) -> list[tuple[int, int]]:
        """From which batch and before which batch there was an alert of a pair."""
        found = [episode for episode in self.watch.episodes if episode.pair == pair]
        return [(each.start, self.end if each.end is None else each.end) for each in found]


def latest_times(starts: NDArray[np.int64]) -> NDArray[np.int64]:
    """The latest time so far after each batch, in the order of tests."""
    return np.maximum.accumulate(starts) if len(starts) else starts


def find_stretches(tested: Examination) -> tuple[list[Stretch], list[Acknowledgement]]:
    """Test the batches between acknowledgements; what merged batches no longer tell is left out."""
    series = tested.series
    places = np.array([batch.place for batch in series.batches], np.int64)
    merged = max((b.place for b in series.batches if b.state == "merged"), default=0)
    latest = latest_times(series.starts)
    found, noted, begin = list[Stretch](), list[Acknowledgement](), 0
    for event in (e for e in series.events if e.kind == "acknowledged"):
        first, end = np.searchsorted(places, [begin, event.place], side="right").tolist()
        # The first batches are merged, so that there is nothing merged behind a whole stretch.
        known = merged <= begin
        at = from_number(int(latest[end - 1])) if end else None
        noted.append(Acknowledgement(at, event.noted, event.text, known))
        if known and first < end:
            found.append(_stretch(tested, first, end, noted[-1]))
        begin = max(begin, event.place)
    return [*found, Stretch(tested.watch, len(series))], noted


def _stretch(tested: Examination, first: int, end: int, acknowledged: Acknowledgement) -> Stretch:
    all_of, groups = tested.watch.comparisons, tested.groups
    until = replace(groups, cases=groups.cases[:, :end], labels=groups.labels[:end])
    found = watch(replace(all_of, groups=until), tested.watched.alpha, start=first)
    return Stretch(found, end, acknowledged)


def find_alarms(tested: Examination, stretches: Sequence[Stretch]) -> tuple[Alarm, ...]:
    """The alerts of all stretches, for each group and label together."""
    latest = latest_times(tested.series.starts)
    return tuple(
        alarm for stretch in stretches for alarm in _alarms_of(tested, stretch, latest).values()
    )


def _alarms_of(
    tested: Examination, stretch: Stretch, latest: NDArray[np.int64]
) -> dict[int, Alarm]:
    found: dict[int, Alarm] = {}
    for episode in stretch.watch.episodes:
        now = _alarm(tested, stretch, episode, latest)
        first = found.get(episode.pair)
        if first is not None:
            begun, batch = first.start, first.start_batch
            now = replace(now, start=begun, start_batch=batch, times=first.times + 1)
        found[episode.pair] = now
    return found


def _alarm(
    tested: Examination, stretch: Stretch, episode: Episode, latest: NDArray[np.int64]
) -> Alarm:
    group, label = named(tested.groups, tested.watch.comparisons.pairs[episode.pair])
    starts = tested.series.starts
    start, start_batch = _moment(latest, episode.start), _moment(starts, episode.start)
    end, end_batch = _moment(latest, episode.end), _moment(starts, episode.end)
    ended: Ended | None = None if episode.end is None else "evidence"
    if episode.end is None and stretch.acknowledged is not None:
        end, ended = stretch.acknowledged.at, "acknowledgement"
    return Alarm(group, label, start, end, 1, start_batch, end_batch, ended)


def _moment(numbers: NDArray[np.int64], place: int | None) -> datetime.datetime | None:
    return None if place is None or place < 0 else from_number(int(numbers[place]))
