"""The history of a stream: biases, evidence, sizes and label rates over time."""

from __future__ import annotations

import datetime
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise.lattice import Group, format_value
from equipoise.measures.display import number, percent, whole
from equipoise.measures.measurement import group_of
from equipoise.monitoring.check import StreamCheck
from equipoise.monitoring.comparisons import named
from equipoise.monitoring.evidence.intervals import confidence_sequence
from equipoise.monitoring.examination import Examination, check_series
from equipoise.monitoring.moments import floor, from_number, shown, to_number
from equipoise.monitoring.store.records import Event
from equipoise.monitoring.watch import track
from equipoise.plain import Grid, csv_text
from equipoise.results import Drawable, FlatTable
from equipoise.values import Value, plain

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from equipoise.monitoring.evidence.samples import Floats

SCHEMA = "equipoise.history/1"
_PERIODS = 150
"""Maximum number of periods that are drawn."""
_LINES = 6
"""Number of groups and labels whose biases are drawn, unless some are named."""


@dataclass(frozen=True)
class Period:
    """Some time of the history, mostly one batch or one day."""

    start: datetime.datetime
    end: datetime.datetime
    """Start of the last batch in it."""
    batches: int
    rows: int
    rates: tuple[float, ...]
    """The rate of each label."""
    distance: float
    """Share of rows that would have to be of other cells to have the mix of all other periods."""
    expected_distance: float
    """The distance that chance alone gives to that many rows."""

    def to_dict(self) -> dict[str, Any]:
        """Plain data, for JSON."""
        told = {k: plain(v) for k, v in vars(self).items()}
        times = {"start": self.start.isoformat(), "end": self.end.isoformat()}
        return {**told, **times, "rates": [plain(rate) for rate in self.rates]}


@dataclass(frozen=True)
class BiasLine:
    """The bias of one group and label over time; one value for each period."""

    group: Group
    label: Value
    limits: tuple[float, float]
    rows: tuple[int, ...]
    ub: tuple[float, ...]
    """UB of each period by itself."""
    window_ub: tuple[float, ...]
    """UB of the last periods together, which describes and tests nothing."""
    low: tuple[float, ...]
    """Limits of the confidence sequence after each period."""
    high: tuple[float, ...]
    log10_e: tuple[float, ...]

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


@dataclass(frozen=True)
class Alarm:
    """The alerts of one group and label."""

    group: Group
    label: Value
    start: datetime.datetime | None
    """When the first was raised; None if before batches that were merged."""
    end: datetime.datetime | None
    """When the last one ended; None if it is on."""
    times: int
    """How often it was raised; evidence near the threshold raises and ends alerts."""

    def to_dict(self) -> dict[str, Any]:
        """Plain data, for JSON."""
        return {
            "pattern": str(self.group),
            "label": plain(self.label),
            "start": None if self.start is None else self.start.isoformat(),
            "end": None if self.end is None else self.end.isoformat(),
            "times": self.times,
        }


@dataclass(frozen=True, eq=False, kw_only=True)
class History(Drawable):
    """The history of a stream: how biases, sizes and rates went, and which alerts there were."""

    check: StreamCheck
    label: str
    labels: tuple[Value, ...]
    periods: tuple[Period, ...]
    window: int
    """Number of periods that a sliding window has."""
    lines: tuple[BiasLine, ...]
    sizes: tuple[tuple[Group, tuple[float, ...]], ...]
    """The share of each group of one attribute in each period."""
    alarms: tuple[Alarm, ...]
    events: tuple[Event, ...]

    @property
    def zone(self) -> datetime.tzinfo:
        """The time zone in which times are shown."""
        return self.check.zone

    @property
    def exit_code(self) -> int:
        """Showing a history succeeds, whatever it shows."""
        return 0

    @property
    def heading(self) -> str:
        """What the history is about."""
        return self.check.heading

    @property
    def sentences(self) -> tuple[str, ...]:
        """What the check says, and how many alerts, changes and unusual batches there were."""
        said = [*self.check.sentences]
        ended = sum(alarm.end is not None for alarm in self.alarms)
        if ended:
            alerts = (
                "alert of another group or label"
                if ended == 1
                else "alerts of other groups or labels"
            )
            said.append(f"{ended:,} {alerts} ended, as the evidence fell.")
        far = self.unusual
        if far:
            said.append(
                f"{len(far):,} of {len(self.periods):,} periods have another mix of groups and labels than "
                f"the others, by more than twice what chance gives; the most {shown(far[0].start, self.zone)} "
                f"({percent(far[0].distance)} of the rows, {percent(far[0].expected_distance)} by chance)."
            )
        return tuple(said)

    @property
    def unusual(self) -> tuple[Period, ...]:
        """The periods whose mix of cells is far from that of the others, the farthest first."""
        far = [p for p in self.periods if p.distance > 2 * p.expected_distance]
        return tuple(sorted(far, key=lambda p: p.expected_distance - p.distance))

    def grid(self, top: int | None = None) -> Grid:
        """The last periods as a table."""
        shown_lines = self.lines[:3]
        headers = [
            *("period", "batches", "rows"),
            *(f"rate of {format_value(v)}" for v in self.labels[:3]),
            *(f"UB {line.group} → {format_value(line.label)}" for line in shown_lines),
            "mix differs by",
        ]
        first = 0 if top is None else max(len(self.periods) - top, 0)
        rows = tuple(
            (
                *(shown(p.start, self.zone), whole(p.batches), whole(p.rows)),
                *(percent(rate) for rate in p.rates[:3]),
                *(number(line.ub[i]) for line in shown_lines),
                percent(p.distance),
            )
            for i, p in enumerate(self.periods)
            if i >= first
        )
        return Grid(tuple(headers), rows, frozenset(range(1, len(headers))))

    def to_csv(self) -> str:
        """A line for each period, in full precision."""
        return csv_text(*self._table())

    def alarm_grid(self) -> Grid:
        """The alerts as a table."""
        rows = tuple(
            (
                "before merged batches" if a.start is None else shown(a.start, self.zone),
                "still on" if a.end is None else shown(a.end, self.zone),
                str(a.group),
                format_value(a.label),
                whole(a.times),
            )
            for a in self.alarms
        )
        return Grid(("raised", "ended", "group", "label", "times"), rows, frozenset({4}))

    def event_grid(self) -> Grid:
        """Late, corrected, withdrawn and merged batches, and changes of columns and values."""
        rows = tuple((shown(e.noted, self.zone), e.kind, e.text) for e in self.events)
        return Grid(("noted", "what", "about"), rows)

    def _grids(self) -> Sequence[Grid]:
        return [self.grid(12), self.check.grid(20)]

    def _table(self) -> FlatTable:
        names = ("start", "end", "batches", "rows", "distance", "expected_distance")
        rates = tuple(f"rate.{value}" for value in self.labels)
        rows = (
            (
                *(p.start.isoformat(), p.end.isoformat(), p.batches, p.rows, plain(p.distance)),
                *(plain(p.expected_distance), *(plain(rate) for rate in p.rates)),
            )
            for p in self.periods
        )
        return (*names, *rates), rows

    def to_dict(self) -> dict[str, Any]:
        """Plain data, as written to JSON."""
        return {
            "schema": SCHEMA,
            "check": self.check.to_dict(),
            "label": self.label,
            "labels": [plain(v) for v in self.labels],
            "window": self.window,
            "periods": [p.to_dict() for p in self.periods],
            "lines": [line.to_dict() for line in self.lines],
            "sizes": [
                {"pattern": str(group), "shares": [plain(s) for s in shares]}
                for group, shares in self.sizes
            ],
            "alarms": [alarm.to_dict() for alarm in self.alarms],
            "events": [event.to_dict() for event in self.events],
            "sentences": list(self.sentences),
            "version": self.version,
            "time": self.time,
        }


# ---------------------------------------------------------------------------- computing


def make_history(
    tested: Examination,
    *,
    store: str,
    zone: datetime.tzinfo,
    group: Group | None = None,
    label: Value | None = None,
) -> History:
    """Make the history of a stream; ``group`` and ``label`` are drawn, by default the worst are."""
    checked = check_series(tested, store=store, zone=zone)
    series, groups = tested.series, tested.groups
    of_period, starts = _periods(series.starts, zone)
    count = len(starts)
    window = max(3, round(count / 12))
    cases = _summed(groups.cases, of_period, count)
    labels = _summed(groups.labels[None], of_period, count)[0]
    return History(
        check=checked,
        label=groups.counts.label.name,
        labels=groups.counts.label.values,
        periods=_described(tested, of_period, starts, labels),
        window=window,
        lines=tuple(
            _line(tested, pair, of_period, cases, labels, window)
            for pair in _chosen(tested, checked, group, label)
        ),
        sizes=_sizes(tested, cases, labels),
        alarms=_alarms(tested),
        events=series.events,
    )


def _periods(
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


def _summed(
    cases: NDArray[np.int64], of_period: NDArray[np.int64], count: int
) -> NDArray[np.int64]:
    """Sum the batches of each period; the second axis are batches."""
    order = np.argsort(of_period, kind="stable")
    firsts = np.searchsorted(of_period[order], np.arange(count))
    if not count:
        return cases
    return np.asarray(np.add.reduceat(cases[:, order], firsts, axis=1))


def _described(
    tested: Examination,
    of_period: NDArray[np.int64],
    starts: Sequence[int],
    labels: NDArray[np.int64],
) -> tuple[Period, ...]:
    series = tested.series
    mixes = _summed(series.rows, of_period, len(starts))
    distance, expected = _distances(mixes)
    batches = np.zeros(len(starts), np.int64)
    np.add.at(batches, of_period, [batch.merged for batch in series.batches])
    ends = np.zeros(len(starts), np.int64)
    np.maximum.at(ends, of_period, series.starts)
    sizes = labels.sum(axis=1)
    rates = _ratio(labels, sizes[:, None])
    return tuple(
        Period(
            start=from_number(int(starts[i])),
            end=from_number(int(ends[i])),
            batches=int(batches[i]),
            rows=int(sizes[i]),
            rates=tuple(rates[i].tolist()),
            distance=float(distance[i]),
            expected_distance=float(expected[i]),
        )
        for i in range(len(starts))
    )


def _distances(mixes: NDArray[np.int64]) -> tuple[Floats, Floats]:
    """How far the mix of cells of each period is from that of all others, and would be by chance.

    The distance is half the sum of the absolute differences of shares.
    """
    sizes = mixes.sum(axis=0)
    others = mixes.sum(axis=1, keepdims=True) - mixes
    rest = others.sum(axis=0)
    share, usual = _ratio(mixes, sizes), _ratio(others, rest)
    distance = 0.5 * np.abs(share - usual).sum(axis=0)
    spread = usual * (1 - usual) * (_ratio(1, sizes) + _ratio(1, rest))
    expected = 0.5 * np.sqrt(2 / math.pi * spread).sum(axis=0)
    return distance, expected


def _ratio(top: Any, bottom: Any) -> Floats:
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.true_divide(top, bottom))


def _chosen(
    tested: Examination, checked: StreamCheck, group: Group | None, label: Value | None
) -> list[int]:
    """The pairs to draw: those that are named, or those with alerts and the most evidence."""
    pairs = tested.watch.comparisons.pairs
    known: dict[tuple[Group, Value], int] = {}
    for i, pair in enumerate(pairs):
        known.setdefault(named(tested.groups, pair), i)
    found = [
        known[f.group, f.label]
        for f in checked.findings
        if (group is None or f.group == group) and (label is None or f.label == label)
    ]
    if group is None and len(tested.groups.counts.label) == 2:
        # Of two labels the second mirrors the first, so each group is drawn once.
        seen: set[int] = set()
        found = [i for i in found if not (pairs[i].line in seen or seen.add(pairs[i].line))]  # type: ignore[func-returns-value]
    return list(dict.fromkeys(found))[:_LINES]


def _line(
    tested: Examination,
    pair: int,
    of_period: NDArray[np.int64],
    cases: NDArray[np.int64],
    labels: NDArray[np.int64],
    window: int,
) -> BiasLine:
    each = tested.watch.comparisons.pairs[pair]
    group, label = named(tested.groups, each)
    x = cases[each.line, :, each.label]
    m = cases[each.line].sum(axis=1)
    y, n = labels[:, each.label], labels.sum(axis=1)
    low, high, log_e = _evidence(tested, pair, of_period, len(x))
    rule = tested.watch.comparisons.rules[each.rule]
    return BiasLine(
        group=group,
        label=label,
        limits=_limits(rule),
        rows=tuple(m.tolist()),
        ub=tuple(_ub(x, m, y, n).tolist()),
        window_ub=tuple(_ub(*(_sliding(part, window) for part in (x, m, y, n))).tolist()),
        low=tuple(low.tolist()),
        high=tuple(high.tolist()),
        log10_e=tuple((log_e / math.log(10)).tolist()),
    )


def _limits(rule: Any) -> tuple[float, float]:
    """The bounds of UB that a rule sets; a rule on ratios sets none."""
    if rule.measure != "uniform_bias":
        return -math.inf, math.inf
    low, high = rule.bounds
    return 1 - rule.k * (1 - low), 1 - rule.k * (1 - high)


def _ub(x: Any, m: Any, y: Any, n: Any) -> Floats:
    return 1 - _ratio(_ratio(x, m), _ratio(y, n))


def _sliding(part: NDArray[np.int64], window: int) -> NDArray[np.int64]:
    sums = np.concatenate([np.zeros(1, np.int64), np.cumsum(part)])
    ends = np.arange(1, len(part) + 1)
    return np.asarray(sums[ends] - sums[np.maximum(ends - window, 0)])


def _evidence(
    tested: Examination, pair: int, of_period: NDArray[np.int64], count: int
) -> tuple[Floats, Floats, Floats]:
    """The confidence sequence and the evidence after the last batch of each period."""
    last = np.full(count, -1)
    np.maximum.at(last, of_period, np.arange(len(of_period)))
    last = np.maximum.accumulate(last)  # late batches count where they are taken into account
    low, high, log_e = np.full((3, count), np.nan)
    at = last - tested.start
    there = at >= 0
    log_e[there] = track(tested.watch, pair)[at[there]]
    times, number = np.unique(at[there] + 1, return_inverse=True)
    if len(times):
        alone = tested.watch.comparisons.of([pair]).against_rest()
        samples = alone.samples(slice(tested.start, len(tested.series)))
        found = confidence_sequence(samples, times, tested.watched.alpha)
        low[there], high[there] = found.low[number], found.high[number]
    return low, high, log_e


def _sizes(
    tested: Examination, cases: NDArray[np.int64], labels: NDArray[np.int64]
) -> tuple[tuple[Group, tuple[float, ...]], ...]:
    """The shares of the groups of one attribute, the largest first."""
    groups = tested.groups
    lines = np.flatnonzero(groups.orders == 1)
    totals = groups.rows[lines].sum(axis=1)
    largest = lines[np.argsort(-totals, kind="stable")][:12]
    shares = _ratio(cases[largest].sum(axis=2), labels.sum(axis=1))
    return tuple(
        (group_of(groups.counts, groups.codes[line]), tuple(share.tolist()))
        for line, share in zip(largest.tolist(), shares, strict=True)
    )


def _alarms(tested: Examination) -> tuple[Alarm, ...]:
    found: dict[int, Alarm] = {}
    for episode in tested.watch.episodes:
        start, end = (
            None if at is None or at < 0 else tested.series.batches[at].starts
            for at in (episode.start, episode.end)
        )
        before = found.get(episode.pair)
        if before is None:
            group, label = named(tested.groups, tested.watch.comparisons.pairs[episode.pair])
            before = Alarm(group, label, start, end, 0)
        found[episode.pair] = replace(before, end=end, times=before.times + 1)
    return tuple(found.values())
