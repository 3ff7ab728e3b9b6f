"""The charts of a history, as plain data."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from equipoise.lattice import format_value
from equipoise.measures.display import number, percent, whole
from equipoise.monitoring.moments import shown
from equipoise.reports.history.times import Times

if TYPE_CHECKING:
    from equipoise.monitoring.history import History
    from equipoise.monitoring.lines import BiasLine
    from equipoise.monitoring.stretches import Alarm

_GREATEST = 2.0
"""UB has no lower bound; beyond this a chart is cut off."""
_SIZES = 9
"""Maximum number of groups whose sizes are drawn."""


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
        at = times.at(alarm.start or history.periods[0].start)
        near = [each for each in found if each["word"] and abs(each["t"] - at) < (last - first) / 7]
        told = {"t": at, "about": _told(history, line, alarm), "word": "" if near else "alert"}
        found.append({**told, "share": (at - first) / (last - first) if last > first else 0.5})
    return found


def _told(history: History, line: BiasLine, alarm: Alarm) -> str:
    if alarm.start is None:
        return f"alert for {_name(line)}"
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
    """The evidence of the drawn groups over time, and the threshold of an alert of one alone."""
    times, pieces = Times.of(history), _pieces(history)
    places = times.periods()
    points = [
        {
            "t": places[i],
            "name": _name(line),
            "log10_e": e,
            "piece": pieces[i],
            "about": f"{_name(line)}: evidence of 10^{e:.1f} to 1",
        }
        for line in history.lines
        for i, e in enumerate(line.log10_e)
        if math.isfinite(e)
    ]
    return {
        "names": [_name(line) for line in history.lines],
        "points": points,
        "threshold": -math.log10(history.check.watched.alpha),
        "breaks": _breaks(history, times),
        **times.axis(),
    }


def population(history: History) -> dict[str, Any]:
    """Rows, label rates, shares of groups, and the distance from the usual mix, over time."""
    times = Times.of(history)
    places = times.periods()
    return {
        "label": history.label,
        "labels": [format_value(label) for label in history.labels[:_SIZES]],
        "rates": _rates(history, places),
        "groups": [str(group) for group, _ in history.sizes[:_SIZES]],
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
        for i, label in enumerate(history.labels[:_SIZES])
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
        for group, shares in history.sizes[:_SIZES]
        for t, share in zip(places, shares, strict=True)
        if math.isfinite(share)
    ]


def _distances(history: History, places: Sequence[float]) -> list[dict[str, Any]]:
    return [
        {
            "t": t,
            "distance": period.distance,
            "expected": period.expected_distance,
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
