"""The history of a stream as a page: what the check says, biases over time, and the population."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from equipoise.lattice import format_value
from equipoise.measures.display import UNKNOWN, number, percent, whole
from equipoise.monitoring.check import (
    E_VALUE_TOLD,
    KINDS,
    SEQUENCE_TOLD,
    SINCE_TOLD,
    TIMES_TOLD,
    UB_TOLD,
)
from equipoise.monitoring.moments import shown
from equipoise.plain import Grid
from equipoise.reports.charts.vega import CaptionedChart, Spec
from equipoise.reports.frame.html import (
    Part,
    Section,
    bullets,
    first_rows,
    folded,
    html_table,
    note,
    paragraph,
    render_page,
)
from equipoise.reports.history.captions import (
    POPULATION,
    bias_caption,
    evidence_caption,
    population_captions,
)
from equipoise.reports.history.charts import (
    NARROW,
    WIDE,
    bias_charts,
    evidence_chart,
    population_charts,
)
from equipoise.reports.history.data import biases, evidence, population

if TYPE_CHECKING:
    from typing import Any

    from equipoise.monitoring.history import History

_STATES = {"outside": "alert", "undecided": "not all can be judged", "inside": "no alert"}
_WHOLE = ("state", "since", "limits", "e-value", "raised", "ended", "noted", "period", "what")
"""Columns of tables whose dates and limits stay on one line."""


def render(history: History, *, source: str | None = None, top: int = 50, **_: Any) -> str:
    """The page of a history."""
    check = history.check
    return render_page(
        title=f"Monitor: {check.name}",
        source=_subtitle(history, source),
        figures=_figures(history),
        sections=[
            Section("said", "Summary", [bullets(history.sentences)]),
            Section(
                "alerts", "Alerts, changes and groups that cannot be judged", _findings(history)
            ),
            Section("bias", "Biases over time", _biases(history)),
            Section("population", "The population over time", _population(history)),
            Section("past", "Alerts so far", _alarms(history)),
            Section("events", "Late and corrected batches, and acknowledgements", _events(history)),
            Section("periods", "Periods", _periods(history, top)),
        ],
        facts=_facts(history),
    )


def plot(history: History) -> list[CaptionedChart]:
    """Biases, the evidence against their limits, and the population over time."""
    drawn = [*_bias_charts(history), *_population_charts(history)]
    # A single period has no course: its biases are dots, and the rest would be empty.
    return drawn[:1] if len(history.periods) == 1 else drawn


def _subtitle(history: History, source: str | None) -> str:
    """Where the stream is kept, and from when to when it goes; its name is the title."""
    check = history.check
    where = check.store if source in (None, check.name) else str(source)
    if check.first is None or check.last is None:
        return where
    first, last = shown(check.first, check.zone), shown(check.last, check.zone)
    return f"{where}, {first}" + (f" to {last}" if last != first else "")


def _figures(history: History) -> list[list[str]]:
    check = history.check
    figures = [
        [_STATES[check.status] if check.findings else "not judged yet", "now"],
        [whole(check.batches), "batch" if check.batches == 1 else "batches"],
        [whole(check.rows), "rows"],
        [whole(len(check.alerts)), "groups and labels with an alert"],
    ]
    if check.last is not None:
        # Hyphens at which no line is broken.
        figures.append([shown(check.last, check.zone).replace("-", "\u2011"), "last batch"])
    return figures


def _findings(history: History) -> list[Part]:
    check = history.check
    grid, near = check.grid(), check.nearest()
    if grid.rows:
        table, limits = _by_group(grid)
        kinds = {finding.kind for finding in check.telling}
        states = " ".join(f"{kind.capitalize()}: {KINDS[kind]}." for kind in KINDS if kind in kinds)
        told = f"{states} {E_VALUE_TOLD} {SEQUENCE_TOLD} {SINCE_TOLD}"
        return [first_rows(table, whole=_WHOLE), note(f"{limits}{UB_TOLD}"), note(told)]
    if not near.rows:
        said = "There are none." if check.findings else "No group has been tested yet."
        return [paragraph(said)]
    table, limits = _by_group(near)
    told = "There are none. These groups have the most evidence against their limits so far."
    below = f"{limits}{UB_TOLD} {E_VALUE_TOLD}"
    return [paragraph(told), html_table(table, below, whole=_WHOLE)]


def _by_group(grid: Grid) -> tuple[Grid, str]:
    """The group and the label in the first columns, which have the most room, then the state.

    If the last column, that of the limits, has but one, it is left out and told.
    """

    def moved(cells: tuple[str, ...]) -> tuple[str, ...]:
        state, group, label, *rest = cells
        return (group, label, state, *(rest[:-1] if single else rest))

    limits = {row[-1] for row in grid.rows}
    single = len(limits) == 1
    found = Grid(moved(grid.headers), tuple(map(moved, grid.rows)), grid.numbers)
    return found, f"The limit is {limits.pop()}. " if single else ""


# ------------------------------------------------------------------------------ charts


def _biases(history: History) -> list[Part]:
    if not history.lines or not history.periods:
        return []
    if len(history.periods) > 1:
        return [*_bias_charts(history)]
    told = "There is only one period so far. Charts need at least two."
    return [paragraph(told), html_table(_numbers(history))]


def _numbers(history: History) -> Grid:
    """The biases of a single period as a table."""
    rows = tuple(
        (
            *(str(line.group), format_value(line.label)),
            *(f"{whole(line.cases[0])} of {whole(line.rows[0])}", number(line.ub[0])),
            f"{number(line.low[0])} … {number(line.high[0])}"
            if line.low[0] == line.low[0]
            else UNKNOWN,
        )
        for line in history.lines
    )
    sequence = f"{history.check.watched.level} sequence"
    return Grid(("group", "label", "rows", "UB", sequence), rows, frozenset({2, 3, 4}))


def _bias_charts(history: History) -> list[CaptionedChart]:
    if not history.lines or not history.periods:
        return []
    return [
        _chart(bias_caption(history), bias_charts, {"lines": biases(history)}),
        _chart(evidence_caption(history), evidence_chart, evidence(history)),
    ]


def _chart(
    caption: str, draw: Callable[[Mapping[str, Any]], Spec], data: Mapping[str, Any]
) -> CaptionedChart:
    return CaptionedChart(caption, draw, {**data, "width": WIDE}, {**data, "width": NARROW})


def _population(history: History) -> list[Part]:
    if len(history.periods) != 1:
        return [*_population_charts(history)]
    rates = [
        (format_value(label), rate)
        for label, rate in zip(history.labels, history.periods[0].rates, strict=True)
    ]
    sizes = [(str(group), shares[0]) for group, shares in history.sizes]
    return [
        html_table(
            Grid((head, "share"), tuple((name, percent(s)) for name, s in each), frozenset({1}))
        )
        for head, each in ((history.label, rates), ("group", sizes))
    ]


def _population_charts(history: History) -> list[CaptionedChart]:
    if not history.periods:
        return []
    titles = {"titles": population_captions(history)}
    return [_chart(POPULATION, population_charts, {**population(history), **titles})]


# ------------------------------------------------------------------------------ tables


def _alarms(history: History) -> list[Part]:
    lost: list[Part] = [paragraph(history.forgotten)] * bool(history.forgotten)
    if not history.alarms:
        return lost or [paragraph("No alert has been raised.")]
    return [first_rows(history.alarm_grid(), whole=_WHOLE), note(TIMES_TOLD), *lost]


def _events(history: History) -> list[Part]:
    if not history.events:
        return [paragraph("There were none.")]
    grid = history.event_grid()
    n = len(grid.rows)
    return [folded(f"{n:,} {'event' if n == 1 else 'events'}", first_rows(grid, whole=_WHOLE))]


def _periods(history: History, top: int) -> list[Part]:
    n = len(history.periods)
    if not n:
        return []
    title = f"The last {top:,} of {n:,} periods" if top < n else f"All {n:,} periods"
    table = html_table(history.grid(top), whole=_WHOLE)
    return [folded(title if n > 1 else "The only period", table)]


def _facts(history: History) -> list[list[str]]:
    check = history.check
    rules = "; ".join(
        rule.words.replace(" for *", " for all groups") for rule in check.watched.rules
    )
    return [
        ["store", check.store],
        ["stream", check.name],
        ["limits", rules],
        ["chance of a false alert, ever", f"at most {check.watched.alpha:g}"],
        ["time zone", str(check.zone)],
        ["made by", f"equipoise {history.version}"],
        ["time", history.time],
    ]
