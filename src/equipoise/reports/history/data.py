"""The charts of a history, as plain data.

Times are milliseconds of the clock of the zone that is shown, so that a chart needs no zones.
"""

from __future__ import annotations

import datetime
import math
from typing import TYPE_CHECKING, Any

from equipoise.lattice import format_value
from equipoise.measures.display import number, percent, whole
from equipoise.monitoring.moments import shown

if TYPE_CHECKING:
    from equipoise.monitoring.history import BiasLine, History

_GREATEST = 2.0
"""UB has no lower bound; beyond this a chart is cut off."""
_SIZES = 9
"""Maximum number of groups whose sizes are drawn."""


def biases(history: History) -> list[dict[str, Any]]:
    """For each drawn group and label, its UB over time, its confidence sequence and its limits."""
    return [_bias(history, line) for line in history.lines]


def _bias(history: History, line: BiasLine) -> dict[str, Any]:
    times = [clock(history, period.start) for period in history.periods]
    name = f"{line.group} → {format_value(line.label)}"
    points = [
        {
            "t": times[i],
            "ub": ub,
            "rows": rows,
            "about": f"{name}, {shown(history.periods[i].start, history.zone)}: UB {number(ub)} of "
            f"{whole(rows)} rows",
        }
        for i, (ub, rows) in enumerate(zip(line.ub, line.rows, strict=True))
        if math.isfinite(ub)
    ]
    band = [
        {"t": t, "low": low, "high": high}
        for t, low, high in zip(times, line.low, line.high, strict=True)
        if math.isfinite(low)
    ]
    window = [
        {"t": t, "ub": ub} for t, ub in zip(times, line.window_ub, strict=True) if math.isfinite(ub)
    ]
    alarms = [
        {
            "t": clock(history, alarm.start or history.periods[0].start),
            "about": f"alert for {name}, raised {shown(alarm.start, history.zone)}"
            if alarm.start is not None
            else f"alert for {name}",
        }
        for alarm in history.alarms
        if (alarm.group, alarm.label) == (line.group, line.label)
    ]
    limits = [limit for limit in line.limits if math.isfinite(limit)]
    seen = [b[k] for b in band[len(band) // 8 :] for k in ("low", "high")]
    seen += [w["ub"] for w in window[len(window) // 8 :]] + limits + [0.0]
    # Single periods of few rows are far off; what they have in common decides what is shown.
    low, high = max(min(seen), -_GREATEST), min(max(seen), 1.0)
    room = 0.25 * (high - low) or 0.1
    return {
        "name": name,
        "domain": [low - room, min(high + room, 1.02)],
        "points": points,
        "band": band,
        "window": window,
        "limits": [{"limit": limit} for limit in limits],
        "alarms": alarms,
        "span": [times[0], times[-1]],
    }


def evidence(history: History) -> dict[str, Any]:
    """The evidence of the drawn groups over time, and the threshold of an alert of one alone."""
    times = [clock(history, period.start) for period in history.periods]
    names = [f"{line.group} → {format_value(line.label)}" for line in history.lines]
    points = [
        {
            "t": t,
            "name": name,
            "log10_e": e,
            "about": f"{name}: evidence of 10^{e:.1f} to 1",
        }
        for name, line in zip(names, history.lines, strict=True)
        for t, e in zip(times, line.log10_e, strict=True)
        if math.isfinite(e)
    ]
    return {
        "names": names,
        "points": points,
        "threshold": -math.log10(history.check.watched.alpha),
        "span": [times[0], times[-1]],
    }


def population(history: History) -> dict[str, Any]:
    """Rows, label rates, shares of groups, and the distance from the usual mix, over time."""
    times = [clock(history, period.start) for period in history.periods]
    rates = [
        {
            "t": t,
            "name": format_value(label),
            "share": period.rates[i],
            "about": f"{format_value(label)}: {percent(period.rates[i])} of {whole(period.rows)} rows",
        }
        for i, label in enumerate(history.labels[:_SIZES])
        for t, period in zip(times, history.periods, strict=True)
        if period.rows
    ]
    sizes = [
        {
            "t": t,
            "name": str(group),
            "share": share,
            "about": f"{group}: {percent(share)} of the rows",
        }
        for group, shares in history.sizes[:_SIZES]
        for t, share in zip(times, shares, strict=True)
        if math.isfinite(share)
    ]
    distances = [
        {
            "t": t,
            "distance": period.distance,
            "expected": period.expected_distance,
            "about": f"{shown(period.start, history.zone)}: {percent(period.distance)} of the rows, "
            f"{percent(period.expected_distance)} by chance",
        }
        for t, period in zip(times, history.periods, strict=True)
        if math.isfinite(period.distance)
    ]
    rows = [
        {
            "t": t,
            "rows": period.rows,
            "about": f"{shown(period.start, history.zone)}: {whole(period.rows)} rows in "
            f"{whole(period.batches)} {'batch' if period.batches == 1 else 'batches'}",
        }
        for t, period in zip(times, history.periods, strict=True)
    ]
    return {
        "label": history.label,
        "labels": [format_value(label) for label in history.labels[:_SIZES]],
        "rates": rates,
        "groups": [str(group) for group, _ in history.sizes[:_SIZES]],
        "sizes": sizes,
        "distances": distances,
        "rows": rows,
        "span": [times[0], times[-1]],
    }


def clock(history: History, moment: datetime.datetime) -> int:
    """What the clock of the shown zone says, in milliseconds."""
    local = moment.astimezone(history.zone).replace(tzinfo=datetime.UTC)
    return round(local.timestamp() * 1000)
