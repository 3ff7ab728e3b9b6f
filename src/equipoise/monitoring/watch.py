"""The tests of all comparisons over all batches, and which alerts they raise."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise.errors import InputError
from equipoise.measures.measurement import group_of
from equipoise.monitoring.comparisons import REST, Comparisons
from equipoise.monitoring.evidence.families import rejected
from equipoise.monitoring.evidence.process import State, Track, advance
from equipoise.monitoring.evidence.samples import Floats, Samples
from equipoise.values import plain

if TYPE_CHECKING:
    from numpy.typing import NDArray

_ENTRIES = 1_000_000
"""Maximum number of entries of an array; more batches are tested in blocks."""
MEAN_TIME = 1000
"""Mean number of batches from one false alarm of the change detector to the next, at least."""


@dataclass(frozen=True)
class Episode:
    """An alert, from the batch that raised it to the one that ended it."""

    pair: int
    start: int
    """Number of the batch, from 0; −1 if it was raised before the first one here."""
    end: int | None


@dataclass(frozen=True, eq=False)
class Watch:
    """The outcome of the tests after the last batch, for each pair of a policy."""

    comparisons: Comparisons
    alpha: float
    log_e: Floats
    log_s: Floats
    since: NDArray[np.int64]
    """Number of batches before the latest excursion of the change detector began."""
    alerted: NDArray[np.bool_]
    active: NDArray[np.bool_]
    """Whether there was a batch with rows of both samples, and the group has rows enough."""
    entry: Floats
    """Logarithm of the evidence that a pair began with: 0 unless it came when others were there."""
    episodes: tuple[Episode, ...]
    state: State
    """The state of every comparison, with which further batches can be tested."""

    @property
    def changed(self) -> NDArray[np.bool_]:
        """Where the change detector is above its threshold."""
        family = max(int(self.active.sum()), 1)
        return np.asarray(self.active & (self.log_s >= np.log(MEAN_TIME * family)))

    def raised(self, pair: int) -> int | None:
        """The number of the batch that raised the present alert of a pair."""
        return next((e.start for e in self.episodes if e.pair == pair and e.end is None), None)


@dataclass(frozen=True, eq=False)
class Before:
    """What earlier batches, which were merged, have left of a watch."""

    state: State
    active: NDArray[np.bool_]
    alerted: NDArray[np.bool_]
    since_at: Mapping[int, int | None]
    """By pair, the time from which the bias has been outside."""
    raised_at: Mapping[int, int | None]
    """By pair, the time at which its alert was raised."""

    def of(self, comparisons: Comparisons, pairs: Sequence[int]) -> Before:
        """What is left of some of the pairs."""
        lines = np.flatnonzero(np.isin(comparisons.pair, list(pairs)))
        state = self.state
        past, recent = (
            Samples(*(part[lines] for part in each)) for each in (state.past, state.recent)
        )
        kept = State(
            *(past, recent, state.log_e[lines], state.log_s[lines]),
            *(state.drift[lines], state.lowest[lines], state.since[lines]),
        )
        return Before(kept, self.active[list(pairs)], self.alerted[list(pairs)], {}, {})


def watch(
    comparisons: Comparisons,
    alpha: float,
    *,
    start: int = 0,
    before: Before | None = None,
) -> Watch:
    """Test all comparisons over the batches from ``start`` on."""
    n_pairs = len(comparisons.pairs)
    active = np.zeros(n_pairs, np.bool_) if before is None else before.active.copy()
    alerted = np.zeros(n_pairs, np.bool_) if before is None else before.alerted.copy()
    raised = {int(i): -1 for i in np.flatnonzero(alerted)}
    begun_at = State.start(len(comparisons), start) if before is None else before.state
    state = begun_at
    log_e, log_s, since = np.zeros(n_pairs), np.full(n_pairs, -np.inf), np.zeros(n_pairs, np.int64)
    if before is not None:
        log_e, log_s, since = _by_pair(comparisons, _last(begun_at))
    entry = np.zeros(n_pairs)
    enough, met = comparisons.enough(), active
    episodes: list[Episode] = []
    for first, samples, track, after in _tracks(comparisons, start, begun_at):
        state = after
        log_e_t, log_s_t, since_t = _by_pair(comparisons, track)
        used = np.zeros(log_e_t.shape, np.bool_)
        np.logical_or.at(used, comparisons.pair, samples.used)
        compared = np.logical_or.accumulate(used, axis=1) | met[:, None]
        numbers = np.arange(first, first + log_e_t.shape[1])
        begun = compared & (numbers >= enough[:, None]) | active[:, None]
        entry = entry + _beginnings(log_e_t + entry[:, None], log_e, begun, active)
        log_e_t = log_e_t + entry[:, None]
        found = rejected(np.where(begun, log_e_t, -np.inf), begun.sum(axis=0), alpha)
        _note(found, alerted, first, raised, episodes)
        log_e, log_s, since = log_e_t[:, -1], log_s_t[:, -1], since_t[:, -1]
        met, active, alerted = compared[:, -1], begun[:, -1], found[:, -1]
    episodes += [Episode(pair, begin, None) for pair, begin in raised.items()]
    episodes.sort(key=lambda each: (each.start, each.pair))
    state = state._replace(log_e=state.log_e + entry[comparisons.pair])
    return Watch(
        *(comparisons, alpha, log_e, log_s, since, alerted, active, entry, tuple(episodes), state)
    )


def _beginnings(
    log_e: Floats, last: Floats, begun: NDArray[np.bool_], active: NDArray[np.bool_]
) -> Floats:
    """Add to the evidence of pairs that join others what makes it begin at the mean of theirs.

    If it is above 1, at 1. So pairs that join never raise the mean of all evidence, which stays an
    e-process, however many there will be. If they began at 1, each would have a chance of its own.
    ``last`` and ``active`` are of the batch before the first one here.
    """
    found = np.zeros(len(log_e))
    joined = np.argmax(begun, axis=1)
    joins = begun.any(axis=1) & ~active
    for column in np.unique(joined[joins]).tolist():
        there = begun[:, column - 1] if column else active
        earlier = log_e[:, column - 1] + found if column else last
        new = joins & (joined == column)
        mean = _log_mean(earlier[there]) if there.any() else 0.0
        found[new] = min(mean, 0.0) - earlier[new]
    return found


def _log_mean(values: Floats) -> float:
    return float(np.logaddexp.reduce(values) - np.log(len(values)))


def tracks(comparisons: Comparisons, *, start: int = 0, before: Before | None = None) -> Track:
    """The evidence of every pair after each batch from ``start`` on."""
    state = State.start(len(comparisons), start) if before is None else before.state
    parts = [_by_pair(comparisons, t) for _, _, t, _ in _tracks(comparisons, start, state)]
    if not parts:
        empty = np.zeros((len(comparisons.pairs), 0))
        return Track(empty, empty, empty.astype(np.int64))
    return Track(*(np.concatenate(column, axis=1) for column in zip(*parts, strict=True)))


def _tracks(
    comparisons: Comparisons, start: int, state: State
) -> Iterator[tuple[int, Samples, Track, State]]:
    batches = len(comparisons.groups.labels)
    size = max(_ENTRIES // max(len(comparisons), 1), 1)
    for first in range(start, batches if len(comparisons) else 0, size):
        samples = comparisons.samples(slice(first, min(first + size, batches)))
        low, high = comparisons.bounds(samples)
        track, state = advance(state, samples, low, high, first)
        yield first, samples, track, state


def _note(
    found: NDArray[np.bool_],
    alerted: NDArray[np.bool_],
    first: int,
    raised: dict[int, int],
    episodes: list[Episode],
) -> None:
    """Note where alerts begin and end in some batches."""
    before = np.concatenate([alerted[:, None], found[:, :-1]], axis=1)
    for column, pair in np.argwhere((found != before).T).tolist():
        if found[pair, column]:
            raised[pair] = first + column
        else:
            episodes.append(Episode(pair, raised.pop(pair), first + column))


def _last(state: State) -> Track:
    return Track(state.log_e[:, None], state.log_s[:, None], state.since[:, None])


def _by_pair(comparisons: Comparisons, track: Track) -> tuple[Floats, Floats, NDArray[np.int64]]:
    """Average the evidence of the comparisons of each pair; the mean of e-processes is one."""
    n = len(comparisons.pairs)
    if len(comparisons) == n:
        parts = track
    else:
        starts = np.searchsorted(comparisons.pair, np.arange(n))
        sizes = np.bincount(comparisons.pair, minlength=n)[:, None]
        log_e = np.logaddexp.reduceat(track.log_e, starts, axis=0) - np.log(sizes)
        log_s = np.logaddexp.reduceat(track.log_s, starts, axis=0) - np.log(sizes)
        # Since when is said of the comparison with the most evidence.
        strongest = [
            np.argmax(track.log_s[s : s + k, -1]) + s
            for s, k in zip(starts.tolist(), sizes[:, 0].tolist(), strict=True)
        ]
        parts = Track(log_e, log_s, track.since[strongest])
    return parts.log_e, parts.log_s, parts.since


# ------------------------------------------------------------------------- kept evidence


def dump(found: Watch, times: Mapping[int, tuple[int | None, int | None]]) -> bytes:
    """Write the state of a watch, by the names of groups and labels; ``times`` are in `Before`."""
    keys = _keys(found.comparisons)
    state = found.state
    lines = [
        [
            *(key, state.log_e[i], plain(float(state.log_s[i])), state.drift[i], state.lowest[i]),
            *([part[i] for part in state.past], [part[i] for part in state.recent]),
            bool(found.active[found.comparisons.pair[i]]),
            bool(found.alerted[found.comparisons.pair[i]]),
            times[int(found.comparisons.pair[i])],
        ]
        for i, key in enumerate(keys)
    ]
    return zlib.compress(json.dumps(lines).encode())


def load(data: bytes, comparisons: Comparisons, since: int) -> Before:
    """Read the state of a watch for the comparisons of today; those that are new start afresh."""
    try:
        kept = {key: line for key, *line in json.loads(zlib.decompress(data))}
    except (zlib.error, ValueError):
        raise InputError(
            "the evidence that merged batches left is damaged; restore the store from a copy."
        ) from None
    state = State.start(len(comparisons), since)
    past, recent = ([np.array(part) for part in sums] for sums in (state.past, state.recent))
    log_e, log_s, drift, lowest = (
        np.array(part) for part in (state.log_e, state.log_s, state.drift, state.lowest)
    )
    active, alerted = np.zeros((2, len(comparisons.pairs)), np.bool_)
    since_at: dict[int, int | None] = {}
    raised_at: dict[int, int | None] = {}
    for i, key in enumerate(_keys(comparisons)):
        if key not in kept:
            continue
        log_e[i], s, drift[i], lowest[i], p, r, was_active, was_alerted, times = kept[key]
        log_s[i] = -np.inf if s is None else s
        for j in range(4):
            past[j][i], recent[j][i] = p[j], r[j]
        active[comparisons.pair[i]] |= was_active
        alerted[comparisons.pair[i]] |= was_alerted
        since_at[int(comparisons.pair[i])], raised_at[int(comparisons.pair[i])] = times
    made = State(Samples(*past), Samples(*recent), log_e, log_s, drift, lowest, state.since)
    return Before(made, active, alerted, since_at, raised_at)


def _keys(comparisons: Comparisons) -> list[str]:
    counts, codes = comparisons.groups.counts, comparisons.groups.codes
    keys = []
    for i, against in zip(comparisons.pair.tolist(), comparisons.against.tolist(), strict=True):
        pair = comparisons.pairs[i]
        other = "" if against == REST else str(group_of(counts, codes[against]))
        label: Any = plain(counts.label.values[pair.label])
        group = str(group_of(counts, codes[pair.line]))
        keys.append(json.dumps([comparisons.rules[pair.rule].words, group, label, other]))
    return keys
