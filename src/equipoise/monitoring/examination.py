"""The tests of a whole stream, and what they find for each group and label."""

from __future__ import annotations

import datetime
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from equipoise.errors import InputError
from equipoise.lattice import Group
from equipoise.measures.measurement import group_of
from equipoise.monitoring.check import Kind, StreamCheck, StreamFinding, Watched
from equipoise.monitoring.comparisons import find_comparisons, unseen
from equipoise.monitoring.evidence.factors import log_factors
from equipoise.monitoring.evidence.intervals import confidence_sequence
from equipoise.monitoring.evidence.samples import Samples
from equipoise.monitoring.kept import KeptEvidence, load
from equipoise.monitoring.moments import from_number, to_number
from equipoise.monitoring.series import GroupSeries, Series
from equipoise.monitoring.tallies import Tally, ratio_sums, sum_up
from equipoise.monitoring.watch import Watch, watch

if TYPE_CHECKING:
    from numpy.typing import NDArray

_BACK = 40
"""Number of batches before an excursion in which a change may have begun."""
_GONE = 15.0
"""A group has vanished if chance puts all its rows before now with a probability of e^-15 or less."""
_MANY = 100_000
"""Number of groups and labels of which a check says how there would be fewer."""


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
        series = series.tagged(watched.tags)
    groups = series.groups(watched.max_order)
    comparisons = find_comparisons(groups, watched.rules, watched.favourable)
    begin, remarks = tests_begin(series), _unseen(groups, watched)
    places = np.array([batch.place for batch in series.batches], np.int64)
    last_merged = max((b.place for b in series.batches if b.state == "merged"), default=0)
    before: KeptEvidence | None = None
    after = max(begin, last_merged)
    if last_merged > begin:
        merged_to, evidence = kept.get(watched.key(begin), (0, None))
        if evidence is not None and merged_to >= last_merged:
            first = int(np.searchsorted(places, merged_to, side="right"))
            before = load(evidence, comparisons, first, watched.alpha)
        if before is not None:
            after = merged_to
        else:
            remarks.append(
                "The tests begin after the merged batches, because no evidence of these rules was kept when "
                "they were merged."
            )
    start = int(np.searchsorted(places, after, side="right"))
    found = watch(comparisons, watched.alpha, start=start, before=before)
    if begin:
        when = next(e for e in reversed(series.events) if e.kind == "acknowledged")
        remarks.append(
            f"{when.text} The tests begin with the batches added after {when.noted:%Y-%m-%d %H:%M} UTC."
        )
    return Examination(series, groups, watched, found, start, begin, before, tuple(remarks))


def _unseen(groups: GroupSeries, watched: Watched) -> list[str]:
    """What rules name that no batch has had; nothing is held against it before there are rows."""
    missing = {text: None for rule in watched.rules for text in unseen(rule, groups.counts)}
    return [f"No batch has had {text} so far, which a rule names." for text in missing]


def require_tags(series: Series, tags: Mapping[str, str]) -> None:
    """Refuse tags that no batch has."""
    if len(series) and not len(series.tagged(tags)):
        known = sorted({f"{k}={v}" for batch in series.batches for k, v in batch.tags.items()})
        asked = ", ".join(f"{k}={v}" for k, v in tags.items())
        there = f"there are {', '.join(known[:10])}" if known else "its batches have no tags"
        raise InputError(f"no batch of {series.stream.name} has the tag {asked}; {there}.")


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
        tested=_tested(tested),
        first=series.first if len(series) else None,
        last=series.last if len(series) else None,
        remarks=(*tested.remarks, *_of_merged(tested), *_many(len(findings))),
        zone=zone,
    )


def _tested(tested: Examination) -> int:
    """Number of batches that are tested; those that were merged only if their evidence was kept."""
    here = tested.series.batches[tested.start :] if tested.before is None else tested.series.batches
    return sum(batch.merged for batch in here if batch.place > tested.begin)


def _of_merged(tested: Examination) -> list[str]:
    if tested.before is None:
        return []
    since = len(tested.series) - tested.start
    batches = "batch that was" if since == 1 else "batches that were"
    return [f"Confidence sequences are those of the {since:,} {batches} not merged."]


def _many(n: int) -> list[str]:
    if n <= _MANY:
        return []
    return [f"{n:,} pairs take long; `max_order` and `min_count` leave small groups out."]


_ORDER: Sequence[Kind] = ("outside", "changed", "vanished", "too small", "inside")


def _findings(tested: Examination) -> list[tuple[StreamFinding, int]]:
    """All findings with the numbers of their pairs, alerts first, then by evidence."""
    watch_ = tested.watch
    tally = _tally(tested)
    kinds = _kinds(tested, tally)
    order = np.lexsort((-watch_.log_e, kinds))
    chosen = order[watch_.active[order]]
    columns = (kinds, tally.rows, tally.cases, tally.batches, tally.ub, _values(tested, tally))
    listed = [column[chosen].tolist() for column in (*columns, watch_.log_e, watch_.changed)]
    labels = tested.groups.counts.label.values
    groups: dict[int, Group] = {}
    found = []
    for i, kind, rows, cases, batches, ub, value, log_e, changed in zip(
        chosen.tolist(), *listed, strict=True
    ):
        pair = watch_.comparisons.pairs[i]
        if pair.line not in groups:
            groups[pair.line] = group_of(tested.groups.counts, tested.groups.codes[pair.line])
        finding = StreamFinding(
            group=groups[pair.line],
            label=labels[pair.label],
            rule=watch_.comparisons.rules[pair.rule],
            kind=_ORDER[kind],
            rows=int(rows),
            cases=int(cases),
            batches=int(batches),
            ub=ub,
            ub_low=math.nan,
            ub_high=math.nan,
            value=value,
            log10_e=log_e / math.log(10),
            since=_since(tested, i) if _ORDER[kind] in ("outside", "changed") else None,
            raised=_raised(tested, i),
            changed=changed,
            last_seen=_last_seen(tested, pair.line) if _ORDER[kind] == "vanished" else None,
        )
        found.append((finding, i))
    return found


def _kinds(tested: Examination, tally: Tally) -> NDArray[np.intp]:
    """The place in `_ORDER` of the state of each pair; the first that fits."""
    comparisons = tested.watch.comparisons
    lines = np.array([pair.line for pair in comparisons.pairs], np.intp)
    gone = _vanished(tested.groups)[lines]
    fits = [tested.watch.alerted, tested.watch.changed, gone, _small(tested, tally)]
    return np.asarray(np.argmax([*fits, np.ones(len(lines), np.bool_)], axis=0))


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
    place = tested.watch.raised.get(pair)
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
    found = 1 - (1 - tally.ub) / comparisons.of_rules(lambda rule: rule.k)
    ratios = np.flatnonzero(comparisons.are_on("impact_ratio"))
    if len(ratios):
        chosen = comparisons.of(ratios.tolist())
        # Of several groups that one is compared with, that of the farthest.
        sign = np.where(chosen.of_rules(lambda rule: rule.bounds[0]) > -math.inf, 1.0, -1.0)
        least = np.full(len(ratios), math.inf)
        above, below = ratio_sums(chosen, tested.start)
        if tested.before is not None:
            lines = np.isin(comparisons.pair, ratios)
            above, below = above + tested.before.above[lines], below + tested.before.below[lines]
        with np.errstate(divide="ignore", invalid="ignore"):
            values = above / below
        np.fmin.at(least, chosen.pair, sign[chosen.pair] * values)
        found[ratios] = np.where(np.isfinite(least), sign * least, math.nan)
    return found


def _small(tested: Examination, tally: Tally) -> NDArray[np.bool_]:
    """Where UB is outside the limit, and even the most extreme rows could not have raised an alert."""
    ub, rate, rows = tally.ub, tally.rate, tally.rows
    comparisons = tested.watch.comparisons
    low = comparisons.of_rules(lambda rule: rule.bounds[0])
    high = comparisons.of_rules(lambda rule: rule.bounds[1])
    k = comparisons.of_rules(lambda rule: rule.k)
    with np.errstate(divide="ignore", invalid="ignore"):
        relative = 1 - (1 - ub) / k
        fewer, more = relative > high, relative < low
        none = -np.log1p(-np.clip(k * (1 - high) * rate, 0, 1 - 1e-12))
        every = -np.log(np.clip(k * (1 - low) * rate, 1e-300, 1))
        most = rows * np.where(fewer, none, every)
    small = (fewer | more) & (most < -math.log(tested.watch.alpha))
    return np.asarray(small & comparisons.are_on("uniform_bias"))


def _vanished(groups: GroupSeries) -> NDArray[np.bool_]:
    """Groups that had rows, and now have none where many were to be expected."""
    rows, every = groups.rows, groups.all_rows
    if not rows.shape[1]:
        return np.zeros(len(rows), np.bool_)
    before = np.cumsum(every)
    last = rows.shape[1] - 1 - np.argmax(rows[:, ::-1] > 0, axis=1)
    # Each row is among those up to the last batch of the group with this share of all rows as chance.
    shares = np.maximum(before[last], 1) / max(int(before[-1]), 1)
    return np.asarray(-rows.sum(axis=1) * np.log(shares) >= _GONE)


def _with_interval(tested: Examination, finding: StreamFinding, pair: int) -> StreamFinding:
    alone = tested.watch.comparisons.of([pair]).against_rest()
    # Merged batches are sums of batches with different rates, which have no ratio in common.
    samples = alone.samples(slice(tested.start, len(tested.series)))
    end = np.array([samples.x.shape[1]])
    found = confidence_sequence(samples, end, tested.watched.alpha)
    return replace(finding, ub_low=float(found.low[0]), ub_high=float(found.high[0]))
