"""The bias of a group and label over time, with its evidence."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise.lattice import Group
from equipoise.monitoring.comparisons import named
from equipoise.monitoring.evidence.intervals import confidence_sequence
from equipoise.monitoring.examination import Examination
from equipoise.monitoring.periods import ratio
from equipoise.monitoring.stretches import Stretch
from equipoise.monitoring.watch import track
from equipoise.values import Value, plain

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from equipoise.monitoring.evidence.samples import Floats


@dataclass(frozen=True)
class BiasLine:
    """The bias of one group and label over time; one value for each period."""

    group: Group
    label: Value
    limits: tuple[float, float]
    rows: tuple[int, ...]
    """Rows of the group."""
    cases: tuple[int, ...]
    """Those with the label."""
    ub: tuple[float, ...]
    """UB of each single period."""
    window_ub: tuple[float, ...]
    """UB of the last periods together. It describes the data and is not tested."""
    low: tuple[float, ...]
    """Bounds of the confidence sequence when each period was the latest."""
    high: tuple[float, ...]
    log10_e: tuple[float, ...]
    """The evidence when each period was the latest. Late batches count at the time of their test."""
    alert: tuple[bool | None, ...]
    """Whether there was an alert at that time, by any rule; None if nothing was tested."""

    def to_dict(self) -> dict[str, Any]:
        """Plain data, for JSON."""
        lists = {
            k: [plain(v) for v in value]
            for k, value in vars(self).items()
            if isinstance(value, tuple)
        }
        return {
            "group": {k: plain(v) for k, v in self.group.items()},
            "pattern": str(self.group),
            "label": plain(self.label),
            **lists,
        }


@dataclass(frozen=True, eq=False)
class Table:
    """The rows of all groups and labels in all periods."""

    of_period: NDArray[np.int64]
    """The period of each batch."""
    cases: NDArray[np.int64]
    """By group, period and label."""
    labels: NDArray[np.int64]
    """By period and label."""
    window: int


def line_of(tested: Examination, stretches: Sequence[Stretch], pair: int, table: Table) -> BiasLine:
    """The bias of a pair over time."""
    each = tested.watch.comparisons.pairs[pair]
    group, label = named(tested.groups, each)
    x = table.cases[each.line, :, each.label]
    m = table.cases[each.line].sum(axis=1)
    y, n = table.labels[:, each.label], table.labels.sum(axis=1)
    proof = _Proof.none(len(x))
    for stretch in stretches:
        proof.add(tested, stretch, pair, table.of_period)
    window = (_sliding(part, table.window) for part in (x, m, y, n))
    return BiasLine(
        group=group,
        label=label,
        limits=_limits(tested.watch.comparisons.rules[each.rule]),
        rows=tuple(m.tolist()),
        cases=tuple(x.tolist()),
        ub=tuple(_ub(x, m, y, n).tolist()),
        window_ub=tuple(_ub(*window).tolist()),
        low=tuple(proof.low.tolist()),
        high=tuple(proof.high.tolist()),
        log10_e=tuple((proof.log_e / math.log(10)).tolist()),
        alert=tuple(None if on < 0 else bool(on) for on in proof.alert.tolist()),
    )


def _limits(rule: Any) -> tuple[float, float]:
    """The bounds of UB that a rule sets; a rule on ratios sets none."""
    if rule.measure != "uniform_bias":
        return -math.inf, math.inf
    low, high = rule.bounds
    return 1 - rule.k * (1 - low), 1 - rule.k * (1 - high)


def _ub(x: Any, m: Any, y: Any, n: Any) -> Floats:
    return 1 - ratio(ratio(x, m), ratio(y, n))


def _sliding(part: NDArray[np.int64], window: int) -> NDArray[np.int64]:
    sums = np.concatenate([np.zeros(1, np.int64), np.cumsum(part)])
    ends = np.arange(1, len(part) + 1)
    return np.asarray(sums[ends] - sums[np.maximum(ends - window, 0)])


@dataclass(frozen=True, eq=False)
class _Proof:
    """The confidence sequence, the evidence and the alerts of a pair when each period was the latest."""

    low: Floats
    high: Floats
    log_e: Floats
    alert: NDArray[np.int64]
    """1 for an alert, 0 for none, and -1 where nothing was tested."""

    @classmethod
    def none(cls, count: int) -> _Proof:
        """Without any evidence."""
        low, high, log_e = np.full((3, count), np.nan)
        return cls(low, high, log_e, np.full(count, -1))

    def add(
        self, tested: Examination, stretch: Stretch, pair: int, of_period: NDArray[np.int64]
    ) -> None:
        """Add what the batches of a stretch say."""
        first = stretch.watch.start
        last = _last_tested(of_period, first, stretch.end, len(self.low))
        there = np.flatnonzero(last >= 0)
        if not len(there):
            return
        numbers = last[there]
        self.log_e[there] = track(stretch.watch, pair)[numbers - first]
        alerts = (alert for each in _alike(stretch, pair) for alert in stretch.alerts_of(each))
        on = [(numbers >= begin) & (numbers < end) for begin, end in alerts]
        self.alert[there] = np.any(on, axis=0) if on else 0
        alone = stretch.watch.comparisons.of([pair]).against_rest()
        times, place = np.unique(numbers - first + 1, return_inverse=True)
        samples = alone.samples(slice(first, stretch.end))
        found = confidence_sequence(samples, times, tested.watched.alpha)
        self.low[there], self.high[there] = found.low[place], found.high[place]


def _alike(stretch: Stretch, pair: int) -> list[int]:
    """The pairs of the same group and label, which several rules may limit."""
    pairs = stretch.watch.comparisons.pairs
    wanted = pairs[pair].line, pairs[pair].label
    return [i for i, each in enumerate(pairs) if (each.line, each.label) == wanted]


def _last_tested(
    of_period: NDArray[np.int64], first: int, end: int, count: int
) -> NDArray[np.int64]:
    """The last of some batches that was tested while each period was the latest; -1 if there is none."""
    latest = np.maximum.accumulate(of_period)[first:end] if len(of_period) else of_period
    last = np.full(count, -1)
    if len(latest):
        np.maximum.at(last, latest, np.arange(first, end))
        # Periods that only late batches are in come and go without a test.
        inside = slice(latest[0], latest[-1] + 1)
        last[inside] = np.maximum.accumulate(last[inside])
    return last
