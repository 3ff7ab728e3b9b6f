"""Where a chart of a history draws a moment."""

from __future__ import annotations

import datetime
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise.monitoring.moments import shown, to_number

if TYPE_CHECKING:
    from equipoise.monitoring.history import History

_NEAR = 300
"""Periods nearer to each other than this part of the whole time would lie on one another."""
_TICKS = 8
_DATES = 8, 100
"""Days that a time axis with dates has, at least and at most."""


@dataclass(frozen=True)
class Times:
    """Moments on the axis of a chart.

    They are milliseconds of the clock of the zone that is shown, so that a chart needs no zones. Where
    many periods would lie on one another, all are drawn side by side instead, and a moment is its place
    among them.
    """

    history: History
    even: bool
    """Whether the axis is that of a clock."""

    @classmethod
    def of(cls, history: History) -> Times:
        """The axis of a history."""
        starts = np.array([to_number(period.start) for period in history.periods], np.int64)
        gaps = np.diff(starts)
        near = gaps < (starts[-1] - starts[0]) / _NEAR if len(gaps) else gaps
        return cls(history, bool(len(gaps)) and float(near.mean()) <= 0.1)

    def at(self, moment: datetime.datetime) -> float:
        """Where a moment is drawn."""
        if self.even:
            return clock(self.history, moment)
        starts = [to_number(period.start) for period in self.history.periods]
        return round(float(np.interp(to_number(moment), starts, range(len(starts)))), 3)

    def periods(self) -> list[float]:
        """Where each period is drawn."""
        found = self.history.periods
        return (
            [self.at(p.start) for p in found]
            if self.even
            else [float(i) for i in range(len(found))]
        )

    def axis(self) -> dict[str, Any]:
        """The ends of the axis; and what is written at it where a clock would not say it."""
        places = self.periods()
        few = len(places) <= _TICKS
        ticks = self._ticks(places) if few or not self.even else None
        days = (places[-1] - places[0]) / 86_400e3
        # Of weeks, whole dates; by itself a chart would mix days of the week and names of months.
        form = "%Y-%m-%d" if self.even and _DATES[0] <= days <= _DATES[1] else None
        return {
            "span": [places[0], places[-1]],
            "even": self.even,
            "ticks": ticks,
            "format": form,
        }

    def _ticks(self, places: list[float]) -> list[dict[str, Any]]:
        chosen = np.unique(np.linspace(0, len(places) - 1, _TICKS).round().astype(int)).tolist()
        times = [shown(period.start, self.history.zone)[:16] for period in self.history.periods]
        return [{"at": places[i], "text": times[i]} for i in chosen]


def clock(history: History, moment: datetime.datetime) -> int:
    """What the clock of the shown zone says, in milliseconds."""
    local = moment.astimezone(history.zone).replace(tzinfo=datetime.UTC)
    return round(local.timestamp() * 1000)
