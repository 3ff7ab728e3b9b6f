"""What merged batches leave: the evidence of each comparison, and the rows that bets are made of."""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise.measures.measurement import group_of
from equipoise.monitoring.comparisons import REST, Comparisons
from equipoise.monitoring.evidence.process import State
from equipoise.monitoring.evidence.samples import Floats, sums_after
from equipoise.monitoring.tallies import OF_GROUP, Tally, of_all_groups
from equipoise.values import plain

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from equipoise.monitoring.series import GroupSeries


@dataclass(frozen=True, eq=False)
class Sums:
    """Rows by group and label, and of all groups, in the last line: of past and of recent batches.

    Comparisons that begin later bet on them as if no batch had been merged.
    """

    past: Floats
    recent: Floats
    tally: Floats
    """What describes biases within batches, by sum, group and label."""

    @classmethod
    def none(cls, groups: GroupSeries) -> Sums:
        """The sums before the first batch."""
        n, labels = len(groups.codes), len(groups.counts.label)
        tally = np.zeros((len(Tally._fields), n, labels))
        return cls(np.zeros((n + 1, labels)), np.zeros((n + 1, labels)), tally)

    def after(self, groups: GroupSeries, start: int) -> Sums:
        """The sums after the last batch, where these are those before the batch ``start``."""
        n = len(groups.codes)
        past, recent = self.past.copy(), self.recent.copy()
        for line in range(n + 1):
            cases = groups.labels if line == n else groups.cases[line]
            counts = cases[start:].T.astype(np.float64)
            past[line], recent[line] = sums_after(counts, past[line], recent[line])
        return Sums(past, recent, self.tally + of_all_groups(groups, start))

    def tally_of(self, comparisons: Comparisons) -> Tally:
        """What describes the biases of pairs."""
        lines = [pair.line for pair in comparisons.pairs]
        return Tally(*self.tally[:, lines, [pair.label for pair in comparisons.pairs]])


@dataclass(frozen=True, eq=False)
class KeptEvidence:
    """What a watch leaves after some batches."""

    state: State
    there: NDArray[np.bool_]
    """Which of the comparisons have joined."""
    sums: Sums
    since_at: Mapping[int, int | None]
    """By pair, the time from which the bias has been outside."""
    raised_at: Mapping[int, int | None]
    """By pair, the time at which its alert was raised."""


def dump(kept: KeptEvidence, comparisons: Comparisons, alpha: float) -> bytes:
    """Write what is kept, by the names of groups and labels."""
    state = kept.state
    lines = {
        key: [
            *(state.log_e[i], plain(float(state.log_s[i])), state.drift[i], state.lowest[i]),
            *(bool(kept.there[i]), kept.since_at.get(pair), kept.raised_at.get(pair)),
        ]
        for i, (key, pair) in enumerate(
            zip(_keys(comparisons), comparisons.pair.tolist(), strict=True)
        )
    }
    sums = kept.sums
    data = {
        "alpha": alpha,
        "lines": lines,
        "labels": _labels(comparisons.groups),
        "groups": _names(comparisons.groups),
        "sums": [sums.past.tolist(), sums.recent.tolist(), sums.tally.tolist()],
    }
    return zlib.compress(json.dumps(data).encode())


def load(data: bytes, comparisons: Comparisons, start: int, alpha: float) -> KeptEvidence:
    """Read what was kept, for the comparisons of today and the batches from ``start`` on."""
    told = json.loads(zlib.decompress(data))
    sums = _sums(told, comparisons.groups)
    state = State.start(len(comparisons), start)._replace(
        past=comparisons.sums(sums.past), recent=comparisons.sums(sums.recent)
    )
    there = np.zeros(len(comparisons), np.bool_)
    log_e, log_s, drift, lowest = (
        part.copy() for part in (state.log_e, state.log_s, state.drift, state.lowest)
    )
    since_at: dict[int, int | None] = {}
    raised_at: dict[int, int | None] = {}
    for i, (key, pair) in enumerate(
        zip(_keys(comparisons), comparisons.pair.tolist(), strict=True)
    ):
        if key in told["lines"]:
            log_e[i], s, drift[i], lowest[i], there[i], since, raised = told["lines"][key]
            log_s[i] = -np.inf if s is None else s
            since_at[pair] = since
            # At another level an alert was raised at another time.
            raised_at[pair] = raised if told["alpha"] == alpha else None
    state = state._replace(log_e=log_e, log_s=log_s, drift=drift, lowest=lowest)
    return KeptEvidence(state, there, sums, since_at, raised_at)


def _sums(told: Mapping[str, Any], groups: GroupSeries) -> Sums:
    """The sums of the groups and labels of today; those that are new had no rows."""
    here = {name: line for line, name in enumerate(_names(groups))}
    lines = [here[name] for name in told["groups"]]
    place = {label: i for i, label in enumerate(_labels(groups))}
    columns = [place[label] for label in told["labels"]]
    past, recent, tally = (np.array(each, np.float64) for each in told["sums"])
    found = Sums.none(groups)
    at = np.ix_([*lines, len(here)], columns)
    found.past[at], found.recent[at] = past, recent
    found.tally[np.ix_(range(len(tally)), lines, columns)] = tally
    # A label that is new had no rows, but the groups had.
    found.tally[:OF_GROUP] = found.tally[:OF_GROUP].max(axis=2, keepdims=True)
    return found


def _names(groups: GroupSeries) -> list[str]:
    return [str(group_of(groups.counts, line)) for line in groups.codes]


def _labels(groups: GroupSeries) -> list[Any]:
    return [plain(value) for value in groups.counts.label.values]


def _keys(comparisons: Comparisons) -> list[str]:
    names, labels = _names(comparisons.groups), _labels(comparisons.groups)
    keys = []
    for i, against in zip(comparisons.pair.tolist(), comparisons.against.tolist(), strict=True):
        pair = comparisons.pairs[i]
        words = comparisons.rules[pair.rule].words
        other = "" if against == REST else names[against]
        keys.append(json.dumps([words, names[pair.line], labels[pair.label], other]))
    return keys
