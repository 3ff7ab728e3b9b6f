"""A line for each name and in it a lane for each version: marks with their intervals."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from equipoise.reports.charts.axes import signed_axis
from equipoise.reports.charts.names import LINE, WrappedNames
from equipoise.reports.charts.vega import GREY, PAGE_WIDTH, Layer, alt, marks
from equipoise.reports.evaluation.charts.intervals import (
    FAINT,
    Ends,
    Items,
    Versions,
    cuts,
    text_width,
    whiskers,
)

Places = Callable[[str], dict[str, Any]]
"""Returns the channels that place a mark by one of its numbers."""
LANES_APART = 22
"""Pixels between charts beside each other."""
_LANE, _BETWEEN = 13, 12
_OVERHANG = 26
"""Pixels to the right of a chart that the last number of its axis may take."""


@dataclass(frozen=True)
class Lanes:
    """A chart with a line for each name."""

    key: str
    """The field that holds the name."""
    names: Sequence[str]
    versions: Versions
    ends: Ends
    title: str
    letters: int = 56
    """Maximum number of letters of a name on a line."""
    abreast: int = 1
    """Number of such charts that share the names on their left."""

    @property
    def line(self) -> int:
        """Pixels that the lanes of a name take, with the space before the next."""
        lanes = _LANE * max(len(self.versions), 1)
        return max(lanes, LINE * self.written.height) + _BETWEEN

    @property
    def written(self) -> WrappedNames:
        """The names as they are written."""
        return WrappedNames.wrapped(self.names, self.letters)

    @property
    def size(self) -> dict[str, float]:
        """Width and height of one chart."""
        left = self.room - _OVERHANG - LANES_APART * (self.abreast - 1)
        wide = min(left / self.abreast, 560 if self.abreast == 1 else 320)
        return {"width": wide, "height": self.line * max(len(self.names), 1)}

    @property
    def room(self) -> float:
        """Pixels that the page leaves beside the names."""
        return PAGE_WIDTH - 36 - text_width("x" * int(self.written.letters))

    def places(self, *, named: bool = True) -> Places:
        """The scales of the chart, with or without the names on the left."""
        x_axis, y_axis = self._axes(named=named)
        x_scale = alt.Scale(domain=list(self.ends), nice=False)
        y_scale = alt.Scale(domain=list(self.names), padding=0)
        keys = [version for version, _ in self.versions]
        lanes = alt.Scale(
            type="band", domain=keys, paddingInner=0, paddingOuter=_BETWEEN / 2 / _LANE
        )

        def channels(field: str) -> dict[str, Any]:
            return {
                "x": alt.X(f"{field}:Q", scale=x_scale, axis=x_axis),
                "y": alt.Y(f"{self.key}:N", scale=y_scale, axis=y_axis),
                "yOffset": alt.YOffset("version:N", scale=lanes),
            }

        return channels

    def _axes(self, *, named: bool) -> tuple[alt.Axis, alt.Axis]:
        marks = signed_axis(self.ends, self.size["width"])
        x = alt.Axis(title=self.title, orient="top", grid=False, tickSize=4, **marks)
        y = alt.Axis(
            title=None,
            labels=named,
            **self.written.beside(),
            labelPadding=8,
            ticks=False,
            domain=False,
            grid=True,
            gridColor=FAINT,
            tickBand="extent",  # so that faint lines are between the names, not on them
        )
        return x, y


def zero_line(place: Places) -> Layer:
    """A line at 0 through all lanes."""
    line = marks([{"at": 0}]).mark_rule(color=GREY, aria=False)
    return line.encode(x=place("at")["x"])


def spans(items: Items, ends: Ends, place: Places) -> list[Layer]:
    """Whiskers in the colour of their item, with an arrow where one goes beyond the scale."""
    colour = alt.Color("colour:N", scale=None)
    rules = marks(whiskers(items, ends)).mark_rule(strokeWidth=2, aria=False)
    gone = marks(cuts(items, ends, ("triangle-left", "triangle-right")))
    arrows = gone.mark_point(filled=True, size=50, opacity=1, aria=False)
    return [
        rules.encode(color=colour, x2="high:Q", **place("low")),
        arrows.encode(color=colour, shape=alt.Shape("arrow:N", scale=None), **place("at")),
    ]
