"""The history of a stream as a page: what the check says, biases over time, and the population."""

from __future__ import annotations

from typing import TYPE_CHECKING

from equipoise.measures.display import whole
from equipoise.monitoring.moments import shown
from equipoise.reports.charts.vega import CaptionedChart
from equipoise.reports.frame.html import (
    Section,
    bullets,
    folded,
    html_table,
    paragraph,
    render_page,
)
from equipoise.reports.history.charts import bias_charts, evidence_chart, population_charts
from equipoise.reports.history.data import biases, evidence, population

if TYPE_CHECKING:
    from typing import Any

    from equipoise.monitoring.history import History

_STATES = {"outside": "alert", "undecided": "not all can be judged", "inside": "no alert"}


def render(history: History, *, source: str | None = None, top: int = 50, **_: Any) -> str:
    """The page of a history."""
    check = history.check
    return render_page(
        title=f"Monitor: {check.name}",
        source=source or check.store,
        figures=_figures(history),
        sections=[
            Section("said", "Summary", [bullets(history.sentences)]),
            Section(
                "alerts", "Alerts, changes and groups that cannot be judged", _findings(history)
            ),
            Section("bias", "Biases over time", _biases(history)),
            Section("population", "The population over time", _population(history)),
            Section("past", "Alerts so far", _alarms(history)),
            Section("events", "Late, corrected and unusual batches", _events(history)),
            Section("periods", "Periods", [folded("All periods", html_table(history.grid(top)))]),
        ],
        facts=_facts(history),
    )


def plot(history: History) -> list[CaptionedChart]:
    """Biases, the evidence against their limits, and the population over time."""
    return [*_biases(history), *_population(history)]


def _figures(history: History) -> list[list[str]]:
    check = history.check
    figures = [
        [_STATES[check.status], "now"],
        [whole(check.batches), "batches"],
        [whole(check.rows), "rows"],
        [whole(len(check.alerts)), "groups and labels with an alert"],
    ]
    if check.last is not None:
        figures.append([shown(check.last, check.zone), "last batch"])
    return figures


def _findings(history: History) -> list[str]:
    grid = history.check.grid()
    if not grid.rows:
        return [paragraph("There are none.")]
    return [html_table(grid)]


def _biases(history: History) -> list[CaptionedChart]:
    if not history.lines or not history.periods:
        return []
    alpha = history.check.watched.alpha
    caption = (
        f"Dots: UB of each {_period(history)}. Line: UB of {history.window} of them together, which "
        f"describes and tests nothing. Band: {1 - alpha:.0%} confidence sequence for UB, if the ratio of "
        "rates is the same in all batches. Dashed: limits. Red: an alert was raised."
    )
    told = (
        "Evidence against the limit over time. One group and label alone raise an alert above the dashed "
        f"line, 1/{alpha:g}; among many the threshold is higher."
    )
    return [
        CaptionedChart(caption, bias_charts, {"lines": biases(history)}),
        CaptionedChart(told, evidence_chart, evidence(history)),
    ]


def _period(history: History) -> str:
    single = all(period.batches == 1 for period in history.periods)
    return "batch" if single else "period"


def _population(history: History) -> list[CaptionedChart]:
    if not history.periods:
        return []
    caption = (
        "Rows, label rates, group sizes, and how far the mix of groups and labels is from usual."
    )
    return [CaptionedChart(caption, population_charts, population(history))]


def _alarms(history: History) -> list[str]:
    if not history.alarms:
        return [paragraph("No alert has been raised.")]
    return [html_table(history.alarm_grid())]


def _events(history: History) -> list[str]:
    if not history.events:
        return [paragraph("There were none.")]
    grid = history.event_grid()
    return [folded(f"{len(grid.rows):,} events", html_table(grid))]


def _facts(history: History) -> list[list[str]]:
    check = history.check
    rules = "; ".join(rule.words for rule in check.watched.rules)
    return [
        ["store", check.store],
        ["stream", check.name],
        ["limits", rules],
        ["chance of a false alert, ever", f"at most {check.watched.alpha:g}"],
        ["time zone", str(check.zone)],
        ["made by", f"equipoise {history.version}"],
        ["time", history.time],
    ]
