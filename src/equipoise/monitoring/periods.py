"""The history of a stream in periods: its rows, its label rates, and how its mix differs."""

from __future__ import annotations

import datetime
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise.lattice import Group
from equipoise.measures.measurement import group_of
from equipoise.monitoring.examination import Examination
from equipoise.monitoring.moments import floor, from_number, iso, to_number
from equipoise.values import plain

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from equipoise.monitoring.evidence.samples import Floats

_PERIODS = 150
"""Maximum number of periods that are drawn."""
_CHANCE = 0.05
"""How likely it is that chance alone makes any period of a history unusual."""


@dataclass(frozen=True)
class Period:
    """A period of the history, usually one batch or one day."""

    start: datetime.datetime
    end: datetime.datetime
    """Start of the last batch in it."""
    batches: int
    rows: int
    rates: tuple[float, ...]
    """The rate of each label."""
    distance: float
    """Share of rows that would have to move to other cells to obtain the mix of all other periods."""
    expected_distance: float
    """Distance expected by chance for this number of rows."""
    unusual: bool
    """Whether the distance is more than twice the expected one, and more than chance explains."""

    def to_dict(self, zone: datetime.tzinfo = datetime.UTC) -> dict[str, Any]:
        """Plain data, for JSON, with times in a zone."""
        told = {k: plain(v) for k, v in vars(self).items()}
        times = {"start": iso(self.start, zone), "end": iso(self.end, zone)}
        return {**told, **times, "rates": [plain(rate) for rate in self.rates]}


def periods_of(
    starts: NDArray[np.int64], zone: datetime.tzinfo
) -> tuple[NDArray[np.int64], list[int]]:
    """The period of each batch, and when each begins: a batch each, or an hour, a day, and so on."""
    distinct, number = np.unique(starts, return_inverse=True)
    units = ("hour", "day", "week", "month")
    for unit in units:
        if len(distinct) <= _PERIODS:
            break
        days = (distinct[-1] - distinct[0]) / 86_400e6
        if days * {"hour": 24, "day": 1, "week": 1 / 7, "month": 1 / 31}[unit] > 2 * _PERIODS:
            continue
        floors = [to_number(floor(from_number(int(s)), unit, zone)) for s in distinct]
        fewer, place = np.unique(floors, return_inverse=True)
        if len(fewer) <= 2 * _PERIODS:
            return place[number], fewer.tolist()
    if len(distinct) > _PERIODS:  # decades of batches, or many an hour
        parts = np.linspace(0, len(distinct), _PERIODS + 1).astype(int)[:-1]
        place = np.searchsorted(parts, np.arange(len(distinct)), side="right") - 1
        return place[number], distinct[parts].tolist()
    return number, distinct.tolist()


def summed(cases: NDArray[np.int64], of_period: NDArray[np.int64], count: int) -> NDArray[np.int64]:
    """Sum the batches of each period; the second axis are batches."""
    order = np.argsort(of_period, kind="stable")
    firsts = np.searchsorted(of_period[order], np.arange(count))
    if not count:
        return cases
    return np.asarray(np.add.reduceat(cases[:, order], firsts, axis=1))


def described(
    tested: Examination,
    of_period: NDArray[np.int64],
    starts: Sequence[int],
    labels: NDArray[np.int64],
) -> tuple[Period, ...]:
    """Describe all periods; ``labels`` are the rows with each label in each of them."""
    series = tested.series
    mixes = summed(series.rows, of_period, len(starts))
    distance, expected, unusual = differences(mixes)
    batches = np.zeros(len(starts), np.int64)
    np.add.at(batches, of_period, [batch.merged for batch in series.batches])
    ends = np.zeros(len(starts), np.int64)
    np.maximum.at(ends, of_period, series.starts)
    sizes = labels.sum(axis=1)
    rates = ratio(labels, sizes[:, None])
    return tuple(
        Period(
            start=from_number(int(starts[i])),
            end=from_number(int(ends[i])),
            batches=int(batches[i]),
            rows=int(sizes[i]),
            rates=tuple(rates[i].tolist()),
            distance=float(distance[i]),
            expected_distance=float(expected[i]),
            unusual=bool(unusual[i]),
        )
        for i in range(len(starts))
    )


def differences(mixes: NDArray[np.int64]) -> tuple[Floats, Floats, NDArray[np.bool_]]:
    """How far the mix of cells of each period is from that of all others, and whether this is unusual.

    The distance is half the sum of the absolute differences of shares. Beside it is the distance that
    is expected by chance. ``mixes`` has a line for each cell, and a column for each period.
    """
    sizes = mixes.sum(axis=0)
    others = mixes.sum(axis=1, keepdims=True) - mixes
    rest = others.sum(axis=0)
    share, usual = ratio(mixes, sizes), ratio(others, rest)
    distance = 0.5 * np.abs(share - usual).sum(axis=0)
    with np.errstate(invalid="ignore"):
        spread = usual * (1 - usual) * (ratio(1, sizes) + ratio(1, rest))
        expected = 0.5 * np.sqrt(2 / math.pi * spread).sum(axis=0)
    unusual = (distance > 2 * expected) & (_chances(mixes) * len(sizes) < _CHANCE)
    return distance, expected, unusual


def _chances(mixes: NDArray[np.int64]) -> Floats:
    """The chance that the mix of a period is as far from the others as it is (a χ² test of two samples).

    The χ² statistic is compared with the gamma distribution that has its mean and variance, which is
    wider than the χ² distribution where cells have few rows.
    """
    from scipy.special import gammaincc

    mixes = mixes[mixes.any(axis=1)]
    sizes, total, cells = mixes.sum(axis=0), mixes.sum(), len(mixes)
    rest = total - sizes
    usual = mixes.sum(axis=1) / max(total, 1)
    far = ratio(mixes, sizes) - ratio(mixes.sum(axis=1, keepdims=True) - mixes, rest)
    with np.errstate(divide="ignore", invalid="ignore"):
        statistic = (far**2 / usual[:, None]).sum(axis=0) / (1 / sizes + 1 / rest)
        mean = cells - 1
        variance = 2 * mean + ((1 / usual).sum() - cells**2 - 2 * cells + 2) / sizes
        return np.asarray(gammaincc(mean**2 / variance, statistic * mean / variance))


def ratio(top: Any, bottom: Any) -> Floats:
    """A ratio; nan where nothing is divided by nothing."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.true_divide(top, bottom))


def shares_of_groups(
    tested: Examination, cases: NDArray[np.int64], labels: NDArray[np.int64]
) -> tuple[tuple[Group, tuple[float, ...]], ...]:
    """The shares of the groups of one attribute in each period, the largest first."""
    groups = tested.groups
    lines = np.flatnonzero(groups.orders == 1)
    totals = groups.rows[lines].sum(axis=1)
    largest = lines[np.argsort(-totals, kind="stable")][:12]
    shares = ratio(cases[largest].sum(axis=2), labels.sum(axis=1))
    return tuple(
        (group_of(groups.counts, groups.codes[line]), tuple(share.tolist()))
        for line, share in zip(largest.tolist(), shares, strict=True)
    )
