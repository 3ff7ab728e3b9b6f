"""The tests of a whole stream, and what they find for each group and label."""

from __future__ import annotations

import datetime
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from equipoise.errors import InputError
from equipoise.monitoring.check import Kind, StreamCheck, StreamFinding, Watched
from equipoise.monitoring.comparisons import find_comparisons, named
from equipoise.monitoring.evidence.factors import log_factors
from equipoise.monitoring.evidence.intervals import confidence_sequence
from equipoise.monitoring.evidence.samples import Samples
from equipoise.monitoring.kept import KeptEvidence, load
from equipoise.monitoring.moments import from_number, to_number
from equipoise.monitoring.series import GroupSeries, Series
from equipoise.monitoring.tallies import Tally, ratios_within, sum_up
from equipoise.monitoring.watch import Watch, watch

if TYPE_CHECKING:
    from numpy.typing import NDArray

_BACK = 40
"""Number of batches before an excursion in which a change may have begun."""
_GONE = 15.0
"""Expected number of rows since a group was last seen; at 15, chance alone has odds of e^-15."""


@dataclass(frozen=True, eq=False)
class Examination:
    """A stream with the outcome of its tests."""

    series: Series
    groups: GroupSeries
    watched: Watched
    watch: Watch
    start: int
    """Number of batches before the first that is tested."""
    begin: int
    """The place after which batches are tested."""
    before: KeptEvidence | None
    """What merged batches have left."""
    remarks: tuple[str, ...]


def run_tests(
    series: Series, watched: Watched, kept: Mapping[str, tuple[int, bytes | None]]
) -> Examination:
    """Run all tests of a stream; ``kept`` is the evidence that merged batches left, by key."""
    if watched.tags:
        series = _tagged(series, watched.tags)
    groups = series.groups(watched.max_order)
    comparisons = find_comparisons(groups, watched.rules, watched.favourable)
    begin, remarks = tests_begin(series), []
    places = np.array([batch.place for batch in series.batches], np.int64)
    last_merged = max((b.place for b in series.batches if b.state == "merged"), default=0)
    before: KeptEvidence | None = None
    if last_merged > begin:
        merged_to, evidence = kept.get(watched.key(begin), (0, None))
        if evidence is not None and merged_to >= last_merged:
            start = int(np.searchsorted(places, merged_to, side="right"))
            before = load(evidence, comparisons, start, watched.alpha)
        else:
            start = int(np.searchsorted(places, last_merged, side="right"))
            remarks.append(
                "The tests begin after the merged batches, because these rules were not checked before "
                "the batches were merged."
            )
    else:
        start = int(np.searchsorted(places, begin, side="right"))
    found = watch(comparisons, watched.alpha, start=start, before=before)
    if begin:
        when = next(e for e in reversed(series.events) if e.kind == "acknowledged")
        remarks.append(
            f"{when.text} The tests begin with the batches after {when.noted:%Y-%m-%d %H:%M} UTC."
        )
    return Examination(series, groups, watched, found, start, begin, before, tuple(remarks))


def _tagged(series: Series, tags: Mapping[str, str]) -> Series:
    found = series.tagged(tags)
    if len(series) and not len(found):
        known = sorted({f"{k}={v}" for batch in series.batches for k, v in batch.tags.items()})
        asked = ", ".join(f"{k}={v}" for k, v in tags.items())
        there = f"there are {', '.join(known[:10])}" if known else "its batches have no tags"
        raise InputError(f"no batch of {series.stream.name} has the tag {asked}; {there}.")
    return found


def tests_begin(series: Series) -> int:
    """The place after which batches are tested: that of the last alert that was acknowledged."""
    return max((e.place for e in series.events if e.kind == "acknowledged"), default=0)


def check_series(
    tested: Examination, *, store: str, zone: datetime.tzinfo = datetime.UTC, intervals: int = 20
) -> StreamCheck:
    """Say what the tests of a stream have found; intervals are computed for the first findings."""
    series = tested.series
    findings = _findings(tested)
    told = sum(f.kind != "inside" for f, _ in findings)
    chosen = [
        _with_interval(tested, f, pair) if i < min(told, intervals) else f
        for i, (f, pair) in enumerate(findings)
    ]
    return StreamCheck(
        name=series.stream.name,
        store=store,
        watched=tested.watched,
        findings=tuple(chosen),
        batches=sum(batch.merged for batch in series.batches),
        rows=sum(batch.n for batch in series.batches),
        tested=sum(batch.merged for batch in series.batches if batch.place > tested.begin),
        first=series.first if len(series) else None,
        last=series.last if len(series) else None,
        remarks=tested.remarks,
        zone=zone,
    )


_ORDER: Sequence[Kind] = ("outside", "changed", "vanished", "too small", "inside")


def _findings(tested: Examination) -> list[tuple[StreamFinding, int]]:
    """All findings with the numbers of their pairs, alerts first, then by evidence."""
    watch_, groups = tested.watch, tested.groups
    tally = _tally(tested)
    ub, value, small = tally.ub, _values(tested, tally), _small(tested, tally)
    changed = watch_.changed
    gone = _vanished(groups)
    found = []
    for i, pair in enumerate(watch_.comparisons.pairs):
        if not watch_.active[i]:
            continue
        group, label = named(groups, pair)
        kind: Kind = "inside"
        if watch_.alerted[i]:
            kind = "outside"
        elif changed[i]:
            kind = "changed"
        elif gone[pair.line]:
            kind = "vanished"
        elif small[i]:
            kind = "too small"
        told = kind in ("outside", "changed")
        finding = StreamFinding(
            group=group,
            label=label,
            rule=watch_.comparisons.rules[pair.rule],
            kind=kind,
            rows=int(tally.rows[i]),
            cases=int(tally.cases[i]),
            batches=int(tally.batches[i]),
            ub=float(ub[i]),
            ub_low=math.nan,
            ub_high=math.nan,
            value=float(value[i]),
            log10_e=float(watch_.log_e[i] / math.log(10)),
            since=_since(tested, i) if told else None,
            raised=_raised(tested, i),
            changed=bool(changed[i]),
            last_seen=_last_seen(tested, pair.line) if kind == "vanished" else None,
        )
        found.append((finding, i))
    found.sort(key=lambda each: (_ORDER.index(each[0].kind), -each[0].log10_e))
    return found


def _since(tested: Examination, pair: int) -> datetime.datetime | None:
    """Since when a bias has been outside: where the last excursion of the change detector began.

    Bets that forget leave the null only some batches after a change. So the batches before are asked
    whether they are more likely under the rates that came after than under the null.
    """
    place = int(tested.watch.since[pair])
    if tested.before is not None and place <= tested.start:
        # Of an excursion that begins with the batches here, those that were merged know nothing.
        known = tested.before.since_at.get(pair)
        if known is not None:
            return from_number(known)
    return _time(tested, place - _earlier(tested, pair, place))


def _earlier(tested: Examination, pair: int, place: int) -> int:
    """By how many batches a change is likely to have begun before its excursion."""
    alone = tested.watch.comparisons.of([pair])
    first = max(tested.start, place - _BACK)
    samples = alone.samples(slice(first, None))
    x, m, z, r = (part[:, place - first :].sum(axis=1, keepdims=True) for part in samples)
    if place <= first or not (x.all() and z.all()):
        return 0
    ratio = (x / m) / (z / r)
    here = Samples(*(part[:, : place - first] for part in samples))
    low, high = alone.bounds(here)
    # The overall rate of each batch is its own, so that only the ratio is judged.
    rate = (here.x + here.z) / np.maximum(here.m + here.r, 1)
    others = rate / (here.share * ratio + 1 - here.share)
    gains = log_factors(here, (np.minimum(ratio * others, 1.0), others), low, high).sum(axis=0)
    sums = np.cumsum(gains[::-1])
    return int(np.argmax(sums)) + 1 if sums.max() > 0 else 0


def _raised(tested: Examination, pair: int) -> datetime.datetime | None:
    place = tested.watch.raised(pair)
    if place is not None and place < 0 and tested.before is not None:
        return _moment(tested.before.raised_at.get(pair))
    return None if place is None else _time(tested, place)


def _moment(number: int | None) -> datetime.datetime | None:
    return None if number is None else from_number(number)


def kept_times(tested: Examination) -> dict[int, tuple[int | None, int | None]]:
    """Since when each pair has been outside, and when its alert was raised, to be kept."""
    times = {}
    for pair in range(len(tested.watch.comparisons.pairs)):
        found = (_since(tested, pair), _raised(tested, pair))
        times[pair] = tuple(None if at is None else to_number(at) for at in found)
    return times  # type: ignore[return-value]


def _time(tested: Examination, place: int) -> datetime.datetime | None:
    """The time of a batch by its number."""
    if not 0 <= place < len(tested.series):
        return None
    return from_number(int(tested.series.starts[place]))


def _last_seen(tested: Examination, line: int) -> datetime.datetime | None:
    there = np.flatnonzero(tested.groups.rows[line])
    return _time(tested, int(there[-1])) if len(there) else None


def _tally(tested: Examination) -> Tally:
    """Sums over the tested batches, with those that were merged since the tests began."""
    comparisons = tested.watch.comparisons
    here = sum_up(comparisons, tested.start)
    if tested.before is None:
        return here
    merged = tested.before.sums.tally_of(comparisons)
    return Tally(*(one + other for one, other in zip(here, merged, strict=True)))


def _values(tested: Examination, tally: Tally) -> NDArray[np.float64]:
    """The value that the rule of each pair limits: UB relative to K, or a ratio of rates."""
    comparisons = tested.watch.comparisons
    rules = [comparisons.rules[pair.rule] for pair in comparisons.pairs]
    found = 1 - (1 - tally.ub) / np.array([rule.k for rule in rules], np.float64)
    for i, rule in enumerate(rules):
        if rule.measure == "impact_ratio":
            ratios = ratios_within(comparisons.of([i]), tested.start)
            known = ratios[np.isfinite(ratios)]
            # Of several groups that it is compared with, that of the farthest one.
            farthest = np.min if rule.bounds[0] > -math.inf else np.max
            found[i] = farthest(known) if len(known) else math.nan
    return found


def _small(tested: Examination, tally: Tally) -> NDArray[np.bool_]:
    """Where UB is outside the limit, and even the most extreme rows could not have raised an alert."""
    ub, rate, rows = tally.ub, tally.rate, tally.rows
    comparisons = tested.watch.comparisons
    rules = [comparisons.rules[pair.rule] for pair in comparisons.pairs]
    on_ub = np.array([rule.measure == "uniform_bias" for rule in rules], np.bool_)
    low = np.array([rule.bounds[0] for rule in rules])
    high = np.array([rule.bounds[1] for rule in rules])
    k = np.array([rule.k for rule in rules])
    relative = 1 - (1 - ub) / k if len(k) else ub
    with np.errstate(divide="ignore", invalid="ignore"):
        fewer = on_ub & (relative > high)
        more = on_ub & (relative < low)
        none = -np.log1p(-np.clip(k * (1 - high) * rate, 0, 1 - 1e-12)) if len(k) else ub
        every = -np.log(np.clip(k * (1 - low) * rate, 1e-300, 1)) if len(k) else ub
        most = rows * np.where(fewer, none, every)
    return np.asarray((fewer | more) & (most < -math.log(tested.watch.alpha)))


def _vanished(groups: GroupSeries) -> NDArray[np.bool_]:
    """Groups that had rows, and now have none where many were to be expected."""
    rows, every = groups.rows, groups.all_rows
    if not rows.shape[1]:
        return np.zeros(len(rows), np.bool_)
    before = np.cumsum(every)
    last = rows.shape[1] - 1 - np.argmax(rows[:, ::-1] > 0, axis=1)
    share = rows.sum(axis=1) / np.maximum(before[last], 1)
    return np.asarray(share * (before[-1] - before[last]) >= _GONE)


def _with_interval(tested: Examination, finding: StreamFinding, pair: int) -> StreamFinding:
    alone = tested.watch.comparisons.of([pair]).against_rest()
    # Merged batches are sums of batches with different rates, which have no ratio in common.
    samples = alone.samples(slice(tested.start, len(tested.series)))
    end = np.array([samples.x.shape[1]])
    found = confidence_sequence(samples, end, tested.watched.alpha)
    return replace(finding, ub_low=float(found.low[0]), ub_high=float(found.high[0]))
