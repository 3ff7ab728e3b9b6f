"""The tests of all comparisons over all batches, and which alerts they raise."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from equipoise.monitoring.comparisons import Comparisons
from equipoise.monitoring.evidence.families import Joining, entries, means, rejected
from equipoise.monitoring.evidence.process import State, advance
from equipoise.monitoring.evidence.samples import Floats
from equipoise.monitoring.kept import KeptEvidence, Sums
from equipoise.monitoring.tallies import ratio_sums

if TYPE_CHECKING:
    from collections.abc import Mapping

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
    start: int
    """The number of the first batch that was tested."""
    before: KeptEvidence | None
    """What earlier batches, which were merged, have left."""
    log_e: Floats
    log_s: Floats
    since: NDArray[np.int64]
    """Number of batches before the latest excursion of the change detector began."""
    alerted: NDArray[np.bool_]
    active: NDArray[np.bool_]
    """Whether a comparison of the pair has joined."""
    entry: Floats
    """Logarithm of the evidence that each comparison began with, if it joined in these batches."""
    episodes: tuple[Episode, ...]
    state: State
    """The state of every comparison, with which further batches can be tested."""
    there: NDArray[np.bool_]
    """Which of the comparisons have joined."""

    @property
    def changed(self) -> NDArray[np.bool_]:
        """Where the change detector is above its threshold."""
        family = max(int(self.active.sum()), 1)
        return np.asarray(self.active & (self.log_s >= np.log(MEAN_TIME * family)))

    @functools.cached_property
    def raised(self) -> Mapping[int, int]:
        """By pair, the number of the batch that raised its present alert."""
        return {each.pair: each.start for each in self.episodes if each.end is None}

    def kept(self, times: Mapping[int, tuple[int | None, int | None]]) -> KeptEvidence:
        """What is left if all batches are merged; ``times`` are since when, and when raised."""
        groups = self.comparisons.groups
        sums = Sums.none(groups) if self.before is None else self.before.sums
        since_at = {pair: since for pair, (since, _) in times.items()}
        raised_at = {pair: raised for pair, (_, raised) in times.items()}
        above, below = ratio_sums(self.comparisons, self.start)
        if self.before is not None:
            above, below = above + self.before.above, below + self.before.below
        sums = sums.after(groups, self.start)
        return KeptEvidence(self.state, self.there, sums, above, below, since_at, raised_at)


def watch(
    comparisons: Comparisons, alpha: float, *, start: int = 0, before: KeptEvidence | None = None
) -> Watch:
    """Test all comparisons over the batches from ``start`` on."""
    state, there = _begin(comparisons, start, before)
    entry = np.zeros(len(comparisons))
    log_e, active, alerted = _judged(comparisons, state.log_e[:, None], there[:, None], alpha)
    episodes: list[Episode] = []
    raised = {int(i): -1 for i in np.flatnonzero(alerted)}
    for block in _blocks(comparisons, start, state, there):
        seen = comparisons.seen - block.first
        joining = Joining(block.there, there, seen, comparisons.pair)
        entry += entries(block.log_e + entry[:, None], state.log_e + entry, joining)
        found = _judged(comparisons, block.log_e + entry[:, None], block.there, alpha)
        _note(found[2], alerted[:, -1], block.first, raised, episodes)
        log_e, active, alerted = found
        state, there = block.after, block.there[:, -1]
    episodes += [Episode(pair, begin, None) for pair, begin in raised.items()]
    episodes.sort(key=lambda each: (each.start, each.pair))
    return Watch(
        *(comparisons, alpha, start, before),
        log_e=log_e[:, -1],
        log_s=means(state.log_change, there, comparisons.pair),
        since=_latest(comparisons, state),
        alerted=alerted[:, -1],
        active=active[:, -1],
        entry=entry,
        episodes=tuple(episodes),
        state=state._replace(log_entry=state.log_entry + entry),
        there=there,
    )


def _begin(
    comparisons: Comparisons, start: int, before: KeptEvidence | None
) -> tuple[State, NDArray[np.bool_]]:
    if before is not None:
        return before.state, before.there
    return State.start(len(comparisons), start), np.zeros(len(comparisons), np.bool_)


def _judged(
    comparisons: Comparisons, log_e: Floats, there: NDArray[np.bool_], alpha: float
) -> tuple[Floats, NDArray[np.bool_], NDArray[np.bool_]]:
    """The evidence of each pair, whether it has any, and whether it is strong enough."""
    found = means(log_e, there, comparisons.pair)
    active = np.isfinite(found)
    return found, active, rejected(found, active.sum(axis=0), alpha)


def _latest(comparisons: Comparisons, state: State) -> NDArray[np.int64]:
    """Since when is said of the comparison of a pair with the most evidence."""
    order = np.lexsort((state.log_change, comparisons.pair))
    last = np.searchsorted(comparisons.pair, np.arange(len(comparisons.pairs)), side="right") - 1
    return state.since[order[last]]


def track(found: Watch, pair: int) -> Floats:
    """The evidence of a pair after each batch that was tested; nan before it joined."""
    lines = np.flatnonzero(found.comparisons.pair == pair)
    alone = found.comparisons.of([pair])
    state, there = _begin(found.comparisons, found.start, found.before)
    entry = found.entry[lines, None]
    parts = [
        means(block.log_e + entry, block.there, alone.pair)[0]
        for block in _blocks(alone, found.start, state.of(lines), there[lines])
    ]
    log_e = np.concatenate([np.zeros(0), *parts])
    return np.where(np.isfinite(log_e), log_e, np.nan)


class _Block(NamedTuple):
    """Some batches of all comparisons."""

    first: int
    log_e: Floats
    there: NDArray[np.bool_]
    after: State


def _blocks(
    comparisons: Comparisons, start: int, state: State, there: NDArray[np.bool_]
) -> Iterator[_Block]:
    batches = len(comparisons.groups.labels)
    size = max(_ENTRIES // max(len(comparisons), 1), 1)
    for first in range(start, batches if len(comparisons) else 0, size):
        samples = comparisons.samples(slice(first, min(first + size, batches)))
        numbers = first + np.arange(samples.x.shape[1])
        # Before they join, comparisons only gather rows to bet on.
        told = samples.used & (numbers >= comparisons.ready[:, None])
        joined = np.logical_or.accumulate(told, axis=1) | there[:, None]
        low, high = comparisons.bounds(samples)
        found, state = advance(state, samples, low, high, first, told)
        there = joined[:, -1]
        yield _Block(first, found.log_e, joined, state)


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
