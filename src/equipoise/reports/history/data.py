"""The charts of a history, as plain data."""

from __future__ import annotations

import datetime
import itertools
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from equipoise.lattice import format_value
from equipoise.measures.display import magnitude, number, percent, whole
from equipoise.monitoring.moments import shown
from equipoise.reports.history.times import Times

if TYPE_CHECKING:
    from equipoise.monitoring.history import History
    from equipoise.monitoring.lines import BiasLine
    from equipoise.monitoring.stretches import Alarm

_GREATEST = 2.0
"""UB has no lower bound; beyond this a chart is cut off."""
SHOWN = 9
"""Maximum number of labels whose rates, and of groups whose sizes, are drawn."""
_STEPS = 5
"""Maximum number of steps between the numbers at the axis of the evidence."""


def biases(history: History) -> list[dict[str, Any]]:
    """For each drawn group and label, its UB over time, its confidence sequence and its limits."""
    times = Times.of(history)
    return [_bias(history, line, times) for line in history.lines]


def _bias(history: History, line: BiasLine, times: Times) -> dict[str, Any]:
    places = times.periods()
    pieces = _pieces(history)
    band = [
        {"t": places[i], "low": low, "high": high, "piece": pieces[i]}
        for i, (low, high) in enumerate(zip(line.low, line.high, strict=True))
        if math.isfinite(low)
    ]
    window = [
        {"t": t, "ub": ub}
        for t, ub in zip(places, line.window_ub, strict=True)
        if math.isfinite(ub)
    ]
    limits = [limit for limit in line.limits if math.isfinite(limit)]
    return {
        "name": _name(line),
        "domain": _domain(band, window, limits),
        "points": _points(history, line, places),
        "band": band,
        "window": window,
        "limits": [{"limit": limit} for limit in limits],
        "alarms": _alarms(history, line, times),
        "breaks": _breaks(history, times),
        **times.axis(),
    }


def _name(line: BiasLine) -> str:
    return f"{line.group} → {format_value(line.label)}"


def _points(history: History, line: BiasLine, places: Sequence[float]) -> list[dict[str, Any]]:
    return [
        {
            "t": places[i],
            "ub": ub,
            "rows": rows,
            "about": f"{_name(line)}, {shown(history.periods[i].start, history.zone)}: UB {number(ub)} "
            f"of {whole(rows)} rows",
        }
        for i, (ub, rows) in enumerate(zip(line.ub, line.rows, strict=True))
        if math.isfinite(ub)
    ]


def _domain(
    band: Sequence[dict[str, Any]], window: Sequence[dict[str, Any]], limits: Sequence[float]
) -> list[float]:
    """Which values of UB are shown: single periods of few rows may be far off what they have in common."""
    # The band of each stretch begins with all values there are.
    pieces = [[b for b in band if b["piece"] == piece] for piece in {b["piece"] for b in band}]
    settled = [b for piece in pieces for b in piece[min(max(len(piece) // 8, 3), len(piece) - 1) :]]
    seen = [b[k] for b in settled for k in ("low", "high")]
    seen += [w["ub"] for w in window[len(window) // 8 :]] + [*limits, 0.0]
    low, high = max(min(seen), -_GREATEST), min(max(seen), 1.0)
    room = 0.25 * (high - low) or 0.1
    return [low - room, min(high + room, 1.02)]


def _alarms(history: History, line: BiasLine, times: Times) -> list[dict[str, Any]]:
    """Where alerts of a group and label were raised; words that would lie on others are left out."""
    found: list[dict[str, Any]] = []
    first, last = times.axis()["span"]
    for alarm in history.alarms:
        if (alarm.group, alarm.label) != (line.group, line.label):
            continue
        at = times.at(alarm.start or _known_from(history, line))
        word = "alert" if alarm.start else "earlier alert"
        near = [each for each in found if each["word"] and abs(each["t"] - at) < (last - first) / 7]
        told = {"t": at, "about": _told(history, line, alarm), "word": "" if near else word}
        found.append({**told, "share": (at - first) / (last - first) if last > first else 0.5})
    return found


def _known_from(history: History, line: BiasLine) -> datetime.datetime:
    """The first period whose evidence is known; that of batches that were merged is not."""
    known = (p for p, e in zip(history.periods, line.log10_e, strict=True) if math.isfinite(e))
    return next(known, history.periods[0]).start


def _told(history: History, line: BiasLine, alarm: Alarm) -> str:
    if alarm.start is None:
        return f"alert for {_name(line)}, raised in batches that were merged"
    told = f"alert for {_name(line)}, raised {shown(alarm.start, history.zone)}"
    if alarm.start_batch is not None and alarm.start_batch != alarm.start:
        told += f" by the late batch of {shown(alarm.start_batch, history.zone)}"
    return told


def _breaks(history: History, times: Times) -> list[dict[str, Any]]:
    """Where alerts were acknowledged."""
    return [
        {"t": times.at(each.at), "about": each.text}
        for each in history.acknowledgements
        if each.at is not None
    ]


def _pieces(history: History) -> list[int]:
    """How many acknowledgements there were before each period, which its lines do not cross."""
    ends = [each.at for each in history.acknowledgements if each.at is not None]
    return [sum(end < period.start for end in ends) for period in history.periods]


def evidence(history: History) -> dict[str, Any]:
    """The evidence of the drawn groups over time, the thresholds of alerts, and what the axis says."""
    times, pieces = Times.of(history), _pieces(history)
    places = times.periods()
    points = [
        {
            "t": places[i],
            "name": _name(line),
            "log10_e": e,
            "piece": pieces[i],
            "about": f"{_name(line)}, {shown(history.periods[i].start, history.zone)}: e-value {magnitude(e)}",
        }
        for line in history.lines
        for i, e in enumerate(line.log10_e)
        if math.isfinite(e)
    ]
    drawn = thresholds(history)
    known = (e for line in history.lines for e in line.log10_e if math.isfinite(e))
    seen = [0.0, 1.0, *known, *drawn]
    low, high = min(seen), max(seen)
    # Above the upper threshold is room for its words.
    domain = [low - 0.04 * (high - low), high + 0.1 * (high - low)]
    return {
        "names": [_name(line) for line in history.lines],
        "points": points,
        "domain": domain,
        "powers": _powers(domain),
        "thresholds": _told_thresholds(drawn, domain),
        "breaks": _breaks(history, times),
        **times.axis(),
    }


def thresholds(history: History) -> list[float]:
    """The e-values, as decimal logarithms, below which there is never an alert and from which there is.

    They are the thresholds of e-BH for all groups and labels together, and for one of them.
    """
    watched, pairs = history.check.watched, len(history.check.findings)
    if watched.alert_on == "changes":
        return []
    alone = -math.log10(watched.alpha)
    return [alone + math.log10(n) for n in sorted({1, max(pairs, 1)})]


def _told_thresholds(drawn: Sequence[float], domain: Sequence[float]) -> list[dict[str, Any]]:
    """The thresholds with their words: above the upper one, and below the lower one if there is room."""
    if not drawn:
        return []
    told = [{"at": drawn[-1], "above": f"alert from {magnitude(drawn[-1])}", "below": ""}]
    if len(drawn) > 1:
        room = drawn[0] - domain[0] > 0.1 * (domain[1] - domain[0])
        below = f"no alert below {magnitude(drawn[0])}" if room else ""
        told.append({"at": drawn[0], "above": "", "below": below})
    return told


def _powers(domain: Sequence[float]) -> list[dict[str, Any]]:
    """Powers of ten at the axis, at even steps."""
    steps = (factor * 10**power for power in itertools.count() for factor in (1, 2, 5))
    step = next(step for step in steps if (domain[1] - domain[0]) / step <= _STEPS)
    first, last = math.ceil(domain[0] / step), math.floor(domain[1] / step)
    return [{"at": i * step, "text": magnitude(i * step)} for i in range(first, last + 1)]


def population(history: History) -> dict[str, Any]:
    """Rows, label rates, shares of groups, and the distance from the usual mix, over time."""
    times = Times.of(history)
    places = times.periods()
    return {
        "label": history.label,
        "labels": [format_value(label) for label in history.labels[:SHOWN]],
        "rates": _rates(history, places),
        "groups": [str(group) for group, _ in history.sizes[:SHOWN]],
        "sizes": _sizes(history, places),
        "distances": _distances(history, places),
        "rows": _rows(history, places),
        **times.axis(),
    }


def _rates(history: History, places: Sequence[float]) -> list[dict[str, Any]]:
    return [
        {
            "t": t,
            "name": format_value(label),
            "share": period.rates[i],
            "about": f"{format_value(label)}: {percent(period.rates[i])} of {whole(period.rows)} rows",
        }
        for i, label in enumerate(history.labels[:SHOWN])
        for t, period in zip(places, history.periods, strict=True)
        if period.rows
    ]


def _sizes(history: History, places: Sequence[float]) -> list[dict[str, Any]]:
    return [
        {
            "t": t,
            "name": str(group),
            "share": share,
            "about": f"{group}: {percent(share)} of the rows",
        }
        for group, shares in history.sizes[:SHOWN]
        for t, share in zip(places, shares, strict=True)
        if math.isfinite(share)
    ]


def _distances(history: History, places: Sequence[float]) -> list[dict[str, Any]]:
    return [
        {
            "t": t,
            "distance": period.distance,
            "expected": period.expected_distance,
            "far": period.unusual,
            "about": f"{shown(period.start, history.zone)}: {percent(period.distance)} of the rows, "
            f"{percent(period.expected_distance)} by chance",
        }
        for t, period in zip(places, history.periods, strict=True)
        if math.isfinite(period.distance)
    ]


def _rows(history: History, places: Sequence[float]) -> list[dict[str, Any]]:
    return [
        {
            "t": t,
            "rows": period.rows,
            "about": f"{shown(period.start, history.zone)}: {whole(period.rows)} rows in "
            f"{whole(period.batches)} {'batch' if period.batches == 1 else 'batches'}",
        }
        for t, period in zip(places, history.periods, strict=True)
    ]
