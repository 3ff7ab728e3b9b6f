"""What merged batches leave: the evidence of each comparison, and the rows that bets are made of."""

from __future__ import annotations

import json
import math
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise.errors import InputError
from equipoise.measures.measurement import group_of
from equipoise.monitoring.comparisons import REST, Comparisons
from equipoise.monitoring.evidence.process import State
from equipoise.monitoring.evidence.samples import Floats, sums_after
from equipoise.monitoring.tallies import OF_GROUP, Tally, of_all_groups
from equipoise.values import plain

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from equipoise.monitoring.series import GroupSeries

_FORMAT = 1
"""Changes whenever the evidence is computed in another way."""


@dataclass(frozen=True, eq=False)
class Sums:
    """Rows by group and label, and of all groups, in the last line.

    Comparisons that begin later bet on them as if no batch had been merged.
    """

    rows: Floats
    """Sums of all batches, of recent and of the latest ones: by kind, group and label."""
    tally: Floats
    """What describes biases within batches: by sum, group and label."""

    @classmethod
    def none(cls, groups: GroupSeries) -> Sums:
        """The sums before the first batch."""
        n, labels = len(groups.codes), len(groups.counts.label)
        return cls(np.zeros((3, n + 1, labels)), np.zeros((len(Tally._fields), n, labels)))

    def after(self, groups: GroupSeries, start: int) -> Sums:
        """The sums after the last batch, where these are those before the batch ``start``."""
        n = len(groups.codes)
        found = self.rows.copy()
        for line in range(n + 1):
            cases = groups.labels if line == n else groups.cases[line]
            counts = cases[start:].T.astype(np.float64)
            found[:, line] = sums_after(counts, self.rows[:, line])
        return Sums(found, self.tally + of_all_groups(groups, start))

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
    above: Floats
    below: Floats
    """For each comparison the sums whose ratio is the common ratio of rates."""
    since_at: Mapping[int, int | None]
    """By pair, the time from which the bias has been outside."""
    raised_at: Mapping[int, int | None]
    """By pair, the time at which its alert was raised."""


def dump(kept: KeptEvidence, comparisons: Comparisons, alpha: float) -> bytes:
    """Write what is kept, by the names of groups and labels."""
    numbers = _numbers(kept.state).tolist()
    lines = {
        key: [
            [None if number == -math.inf else number for number in numbers[i]],
            *(bool(kept.there[i]), kept.above[i], kept.below[i]),
            *(kept.since_at.get(pair), kept.raised_at.get(pair)),
        ]
        for i, (key, pair) in enumerate(
            zip(_keys(comparisons), comparisons.pair.tolist(), strict=True)
        )
    }
    data = {
        "format": _FORMAT,
        "alpha": alpha,
        "lines": lines,
        "labels": _labels(comparisons.groups),
        "groups": _names(comparisons.groups),
        "sums": [kept.sums.rows.tolist(), kept.sums.tally.tolist()],
    }
    return zlib.compress(json.dumps(data).encode())


def load(data: bytes, comparisons: Comparisons, start: int, alpha: float) -> KeptEvidence | None:
    """Read what was kept, for the comparisons of today and the batches from ``start`` on.

    What another version has kept in another format cannot be gone on with, and is None.
    """
    try:
        told = json.loads(zlib.decompress(data))
    except (zlib.error, ValueError):
        raise InputError(
            "the evidence of merged batches is damaged; restore the store from a backup."
        ) from None
    if told.get("format") != _FORMAT:
        return None
    sums = _sums(told, comparisons.groups)
    state = State.start(len(comparisons), start)
    numbers = _numbers(state)
    there = np.zeros(len(comparisons), np.bool_)
    above, below = np.zeros((2, len(comparisons)))
    since_at: dict[int, int | None] = {}
    raised_at: dict[int, int | None] = {}
    for i, (key, pair) in enumerate(
        zip(_keys(comparisons), comparisons.pair.tolist(), strict=True)
    ):
        if key in told["lines"]:
            line, there[i], above[i], below[i], since, raised = told["lines"][key]
            numbers[i] = [-math.inf if number is None else number for number in line]
            since_at[pair] = since
            # At another level an alert was raised at another time.
            raised_at[pair] = raised if told["alpha"] == alpha else None
    past, recent, latest = map(comparisons.sums, sums.rows)
    others: list[Any] = [*numbers.T.copy(), state.since]
    state = State(past, recent, latest, *others)
    return KeptEvidence(state, there, sums, above, below, since_at, raised_at)


def _numbers(state: State) -> Floats:
    """What a state has beside sums of rows and since when: a line per comparison."""
    return np.column_stack(state[3:-1])


def _sums(told: Mapping[str, Any], groups: GroupSeries) -> Sums:
    """The sums of the groups and labels of today; those that are new had no rows."""
    here = {name: line for line, name in enumerate(_names(groups))}
    lines = [here[name] for name in told["groups"]]
    place = {label: i for i, label in enumerate(_labels(groups))}
    columns = [place[label] for label in told["labels"]]
    rows, tally = (np.array(each, np.float64) for each in told["sums"])
    found = Sums.none(groups)
    found.rows[np.ix_(range(len(rows)), [*lines, len(here)], columns)] = rows
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
