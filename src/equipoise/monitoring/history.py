"""The history of a stream: UB, evidence, group sizes and label rates over time."""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from equipoise.counts import Counts
from equipoise.errors import InputError
from equipoise.lattice import Group, format_value, parse_pattern
from equipoise.measures.display import number, percent, whole
from equipoise.monitoring.check import UB_TOLD, StreamCheck
from equipoise.monitoring.comparisons import named
from equipoise.monitoring.examination import Examination, check_series
from equipoise.monitoring.lines import BiasLine, Table, line_of
from equipoise.monitoring.moments import iso, shown
from equipoise.monitoring.periods import Period, described, periods_of, shares_of_groups, summed
from equipoise.monitoring.store.records import Event
from equipoise.monitoring.stretches import Acknowledgement, Alarm, find_alarms, find_stretches
from equipoise.plain import Grid, csv_text
from equipoise.results import Drawable, FlatTable
from equipoise.values import ANY, Value, plain

SCHEMA = "equipoise.history/1"
SHOWN = 12
"""Maximum number of periods in a text, unless another is given."""
_FINDINGS = 20
_LINES = 6
"""Number of groups and labels whose biases are drawn, unless some are named."""


@dataclass(frozen=True, eq=False, kw_only=True)
class History(Drawable):
    """The history of a stream: UB, group sizes and label rates over time, and all alerts."""

    check: StreamCheck
    label: str
    labels: tuple[Value, ...]
    periods: tuple[Period, ...]
    window: int
    """Number of periods in a sliding window."""
    lines: tuple[BiasLine, ...]
    sizes: tuple[tuple[Group, tuple[float, ...]], ...]
    """The share of each group of one attribute in each period."""
    alarms: tuple[Alarm, ...]
    acknowledgements: tuple[Acknowledgement, ...]
    events: tuple[Event, ...]
    group: Group | None = None
    """The group that was asked for."""
    only_label: Value | None = None
    """The label that was asked for."""

    @property
    def zone(self) -> datetime.tzinfo:
        """The time zone in which times are shown."""
        return self.check.zone

    @property
    def exit_code(self) -> int:
        """Always 0: showing a history succeeds even if there are alerts."""
        return 0

    @property
    def heading(self) -> str:
        """What the history is about."""
        return self.check.heading

    @property
    def sentences(self) -> tuple[str, ...]:
        """The result of the check, and the number of earlier alerts and unusual periods."""
        said = [*self.check.sentences]
        for why, words in _ENDINGS.items():
            n = sum(alarm.ended == why for alarm in self.alarms)
            if n:
                said.append(f"{n:,} earlier {'alert' if n == 1 else 'alerts'} {words}.")
        if self.forgotten:
            said.append(self.forgotten)
        far = self.unusual
        if far:
            said.append(
                f"In {len(far):,} of {len(self.periods):,} periods, the mix of groups and labels differs from that "
                "of the other periods by more than twice what is expected, and by more than chance explains. The "
                f"period of {shown(far[0].start, self.zone)} differs most ({percent(far[0].distance)} of the rows, "
                f"{percent(far[0].expected_distance)} expected by chance)."
            )
        return tuple(said)

    @property
    def forgotten(self) -> str:
        """A sentence about alerts that are not listed because their batches were merged; empty if there are none."""
        lost = [each for each in self.acknowledgements if not each.known]
        if not lost:
            return ""
        when = shown(lost[-1].noted, self.zone)
        return (
            f"Alerts before the acknowledgement of {when} are not listed if their batches have been merged "
            "since, because their evidence is no longer stored."
        )

    @property
    def unusual(self) -> tuple[Period, ...]:
        """The periods whose mix of cells differs from that of the others, largest difference first."""
        far = [p for p in self.periods if p.unusual]
        return tuple(sorted(far, key=lambda p: p.expected_distance - p.distance))

    # ------------------------------------------------------------------------ tables

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

    def alarm_grid(self) -> Grid:
        """The alerts as a table."""
        rows = tuple(
            (
                self._both(a.start, a.start_batch) or "before the merged batches",
                self._ended(a),
                str(a.group),
                format_value(a.label),
                whole(a.times),
            )
            for a in self.alarms
        )
        return Grid(("raised", "ended", "group", "label", "times"), rows, frozenset({4}))

    def _ended(self, alarm: Alarm) -> str:
        if alarm.ended is None:
            return "not ended"
        when = self._both(alarm.end, alarm.end_batch)
        return f"{when}, acknowledged" if alarm.ended == "acknowledgement" else when

    def _both(self, at: datetime.datetime | None, batch: datetime.datetime | None) -> str:
        """When something happened, and the time of the batch that did it if that came late."""
        if at is None:
            return ""
        late = batch is not None and batch != at
        told = f" by the late batch of {shown(batch, self.zone)}" if batch and late else ""
        return f"{shown(at, self.zone)}{told}"

    def event_grid(self) -> Grid:
        """Late, corrected, withdrawn and merged batches, acknowledgements, and changes of columns."""
        rows = tuple((shown(e.noted, self.zone), e.kind, e.text) for e in self.events)
        return Grid(("noted", "what", "about"), rows)

    # -------------------------------------------------------------------------- text

    def text(self, top: int | None = None) -> str:
        """The heading, the sentences, the last periods and the findings as text."""
        parts = [f"{above}\n\n{grid.text()}{below}" for above, grid, below in self._tables(top)]
        return "\n\n".join(["\n".join(self._said()), *parts])

    def markdown(self, top: int | None = None) -> str:
        """The heading, the sentences, the last periods and the findings as Markdown."""
        said = "\n".join(f"- {sentence}" for sentence in self._said())
        tables = self._tables(top)
        parts = [f"{above}\n\n{grid.markdown()}\n{below}" for above, grid, below in tables]
        return "\n\n".join([said, *(part.rstrip("\n") for part in parts)])

    def _tables(self, top: int | None) -> Iterator[tuple[str, Grid, str]]:
        """The tables, each with what is written above and below it."""
        if self.periods:
            yield f"{self._extent(SHOWN if top is None else top)}\n{UB_TOLD}", self._last(top), ""
        found = self.check.grid(_FINDINGS)
        if found.rows:
            more = len(self.check.telling) - len(found.rows)
            title = "Alerts, changes and groups that cannot be judged:"
            yield title, found, f"\n… and {more:,} more" if more > 0 else ""

    def _last(self, top: int | None = None) -> Grid:
        return self.grid(SHOWN if top is None else top)

    def _extent(self, top: int) -> str:
        """Which periods a table has."""
        n = len(self.periods)
        if top < n:
            return f"The last {top:,} of {n:,} periods:"
        return f"All {n:,} periods:" if n > 1 else "The only period:"

    def _grids(self) -> Sequence[Grid]:
        return [self._last(), self.check.grid(_FINDINGS)]

    # -------------------------------------------------------------------------- data

    def to_csv(self) -> str:
        """One line per period, group and label that is drawn, in full precision."""
        return csv_text(*self._table())

    def _table(self) -> FlatTable:
        names = ("start", "end", "batches", "rows", "distance", "expected_distance")
        rates = tuple(f"rate.{value}" for value in self.labels)
        drawn: Sequence[BiasLine | None] = self.lines or [None]
        rows = (
            (*self._period(period), *_bias(line, i))
            for line in drawn
            for i, period in enumerate(self.periods)
        )
        return (*names, *rates, *_OF_LINE), rows

    def _period(self, p: Period) -> tuple[Any, ...]:
        times = iso(p.start, self.zone), iso(p.end, self.zone)
        mix = plain(p.distance), plain(p.expected_distance)
        return (*times, p.batches, p.rows, *mix, *(plain(rate) for rate in p.rates))

    def to_dict(self) -> dict[str, Any]:
        """Plain data, as written to JSON."""
        zone = self.zone
        return {
            "schema": SCHEMA,
            "check": self.check.to_dict(),
            "label": self.label,
            "labels": [plain(v) for v in self.labels],
            "window": self.window,
            "periods": [p.to_dict(zone) for p in self.periods],
            "lines": [line.to_dict() for line in self.lines],
            "sizes": [
                {"pattern": str(group), "shares": [plain(s) for s in shares]}
                for group, shares in self.sizes
            ],
            "alarms": [alarm.to_dict(zone) for alarm in self.alarms],
            "acknowledgements": [each.to_dict(zone) for each in self.acknowledgements],
            "events": [{**e.to_dict(), "noted": iso(e.noted, zone)} for e in self.events],
            "sentences": list(self.sentences),
            "version": self.version,
            "time": self.time,
        }


_ENDINGS = {
    "evidence": "ended because the evidence fell",
    "acknowledgement": "lasted until the acknowledgement",
}
_OF_LINE = (
    *("group", "label", "n_group", "n_cell", "ub", "window_ub", "ub_low", "ub_high", "log10_e"),
    "alert",
)


def _bias(line: BiasLine | None, i: int) -> tuple[Any, ...]:
    """What a table has of the bias of a group in a period; nothing if no group can be compared."""
    if line is None:
        return (None,) * len(_OF_LINE)
    numbers = (line.ub, line.window_ub, line.low, line.high, line.log10_e)
    of_group = (str(line.group), str(line.label), line.rows[i], line.cases[i])
    return (*of_group, *(plain(each[i]) for each in numbers), line.alert[i])


# ---------------------------------------------------------------------------- computing


def make_history(
    tested: Examination,
    *,
    store: str,
    zone: datetime.tzinfo,
    asked: Group | str | None = None,
) -> History:
    """Make the history of a stream; the group and label that are asked for are drawn."""
    group, label = (None, None) if asked is None else _named(asked, tested.groups.counts)
    checked = check_series(tested, store=store, zone=zone)
    stretches, acknowledged = find_stretches(tested)
    alarms = find_alarms(tested, stretches)
    groups = tested.groups
    of_period, starts = periods_of(tested.series.starts, zone)
    count = len(starts)
    cases = summed(groups.cases, of_period, count)
    labels = summed(groups.labels[None], of_period, count)[0]
    table = Table(of_period, cases, labels, window=max(3, round(count / 12)))
    chosen = _chosen(tested, checked, alarms, group, label)
    if asked is not None and count and not chosen:
        raise InputError(
            f"{checked.name} has no group {asked} that can be compared with others. The group never had rows, "
            "has fewer rows than `min_count`, or has more attributes than `max_order`."
        )
    return History(
        check=checked,
        label=groups.counts.label.name,
        labels=groups.counts.label.values,
        periods=described(tested, of_period, starts, labels),
        window=table.window,
        lines=tuple(line_of(tested, stretches, pair, table) for pair in chosen),
        sizes=shares_of_groups(tested, cases, labels),
        alarms=alarms,
        acknowledgements=tuple(acknowledged),
        events=tested.series.events,
        group=group,
        only_label=label,
    )


def _named(group: Group | str, counts: Counts) -> tuple[Group | None, Value | None]:
    """The group and the label that a pattern names; either may be left out."""
    if not isinstance(group, (Group, str)):
        raise InputError(f"`group` is a Group or a pattern such as 'sex=Female', not {group!r}.")
    wanted = dict(group) if isinstance(group, Group) else parse_pattern(group)
    if not wanted:
        names = " or ".join(axis.name for axis in counts.sensitive)
        raise InputError(
            f"the group of all rows cannot be compared with other rows; name a value of {names}."
        )
    # A star would be any value, and a group of any value is the group without the attribute.
    named: dict[str, Value] = {name: "*" if v is ANY else v for name, v in wanted.items()}
    for name, value in named.items():
        counts.axis(name).code(value)
    label = named.pop(counts.label.name, None)
    return Group(named) if named else None, label


def _chosen(
    tested: Examination,
    checked: StreamCheck,
    alarms: Sequence[Alarm],
    group: Group | None,
    label: Value | None,
) -> list[int]:
    """The pairs to draw: those that are named, or those with alerts and the most evidence."""
    pairs = tested.watch.comparisons.pairs
    known: dict[tuple[Group, Value], int] = {}
    # Of several rules that limit the same, the one with an alert or the most evidence is drawn.
    for i in np.lexsort((-tested.watch.log_e, ~tested.watch.alerted)).tolist():
        known.setdefault(named(tested.groups, pairs[i]), i)
    # Alerts of now come before those of earlier times, and these before groups without any.
    ranked = [(f.group, f.label) for f in checked.findings if f.kind == "outside"]
    latest = sorted(alarms, key=lambda a: (a.end is None, a.end), reverse=True)
    ranked += [(alarm.group, alarm.label) for alarm in latest]
    ranked += [(f.group, f.label) for f in checked.findings]
    ranked += known  # right after an acknowledgement there are no findings
    found = [
        known[each]
        for each in dict.fromkeys(ranked)
        if group in (None, each[0]) and label in (None, each[1])
    ]
    if group is None and label is None and len(tested.groups.counts.label) == 2:
        # Of two labels the second mirrors the first, so each group is drawn once.
        of_line: dict[int, int] = {}
        for i in found:
            of_line.setdefault(pairs[i].line, i)
        found = list(of_line.values())
    return found[:_LINES]
