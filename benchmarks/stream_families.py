"""Quiet streams of many groups, tested by the code that checks a stream: how often is there an alert?"""

from __future__ import annotations

import datetime
import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from equipoise.measures.policy import Policy
from equipoise.monitoring.check import Watched
from equipoise.monitoring.examination import run_tests
from equipoise.monitoring.series import Series
from equipoise.monitoring.store.records import Batch, Stream, StreamCells
from equipoise.options.count import CountRequest

BATCHES = 200
_START = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)


@dataclass(frozen=True)
class Family:
    """A kind of stream: the numbers of values of its attributes, and when groups come."""

    sizes: tuple[int, ...]
    rows: int
    late: bool = False
    """Whether half of the values of the last attribute appear at some time in the stream."""
    part: int = 1
    """By how much fewer streams are drawn."""

    @property
    def groups(self) -> int:
        return int(np.prod([size + 1 for size in self.sizes])) - 1

    def words(self, streams: int) -> tuple[str, str]:
        """What it is, for a table."""
        attributes = " × ".join(map(str, self.sizes))
        late = ", some of which appear later" if self.late else ""
        return (
            f"{self.groups:,} ({attributes} values, {self.rows:,} rows a batch){late}",
            f"{streams:,}",
        )


FAMILIES = (
    Family((2, 5), 500),
    Family((2, 5), 500, late=True),
    Family((2, 5, 6), 1000, late=True, part=10),
)


def family_rows(
    rng: np.random.Generator, streams: int, alpha: float
) -> list[tuple[str, str, float]]:
    """For each kind of stream what it is, how many were drawn, and the share with any alert."""
    rows = []
    for family in FAMILIES:
        drawn = streams // family.part
        blank = _blank(family)
        watched = Watched(rules=Policy.of({"max_abs_ub": 0.0}).rules, alpha=alpha)
        alarms = [_has_alert(rng, family, blank, watched) for _ in range(drawn)]
        rows.append((*family.words(drawn), float(np.mean(alarms))))
    return rows


def _has_alert(rng: np.random.Generator, family: Family, blank: Series, watched: Watched) -> bool:
    rows = _drawn(rng, family)
    series = Series(blank.stream, blank.cells, blank.batches, rows, ())
    return bool(run_tests(series, watched, {}).watch.episodes)


def _drawn(rng: np.random.Generator, family: Family) -> np.ndarray:
    """The rows of each cell in each batch: the label does not depend on the group, but on the batch."""
    shares = rng.dirichlet(np.ones(int(np.prod(family.sizes))))
    there = np.ones((len(shares), BATCHES))
    if family.late:
        last = np.arange(len(shares)) % family.sizes[-1]
        begins = rng.integers(0, BATCHES, family.sizes[-1])
        begins[: family.sizes[-1] // 2] = 0
        there = (np.arange(BATCHES) >= begins[last][:, None]).astype(float)
    mixed = shares[:, None] * there
    mixed /= mixed.sum(axis=0)
    groups = rng.multinomial(family.rows, mixed.T).T
    rate = 1 / (1 + np.exp(1 - np.sin(np.linspace(0, 6, BATCHES))))
    yes = rng.binomial(groups, rate)
    return np.stack([groups - yes, yes], axis=1).reshape(-1, BATCHES)


def _blank(family: Family) -> Series:
    """A stream with the cells and batches of a family, and no rows."""
    names = tuple(f"a{i}" for i in range(len(family.sizes)))
    stream = Stream(1, "quiet", CountRequest(sensitive=names, label="label"), {}, {})
    values: Sequence[tuple[str, ...]] = list(
        itertools.product(*(map(str, range(size)) for size in family.sizes), "ny")
    )
    batches = tuple(_batch(number) for number in range(BATCHES))
    return Series(stream, StreamCells(stream, tuple(values)), batches, np.zeros((0, 0), int), ())


def _batch(number: int) -> Batch:
    at = _START + datetime.timedelta(days=number)
    return Batch(number + 1, number + 1, str(number), at, at, at, "current", {}, "", 0, 1)
