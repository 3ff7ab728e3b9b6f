"""Words beside points, placed where they cover as little as possible."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from equipoise.reports.evaluation.charts.intervals import text_width

Point = tuple[float, float]
_Box = tuple[float, float, float, float]
_Side = tuple[int, float]
WORDS, _ASIDE = 11, 9
_NEAR = ((1, 0), (-1, 0), (1, -10), (-1, -10), (1, 10), (-1, 10), (0, -15), (0, 15))
_SIDES = [
    (way, down + math.copysign(far, down) if down else 0)
    for far in (0, 13, 26)
    for way, down in _NEAR
    if down or not far
]


@dataclass(frozen=True)
class Frame:
    """A rectangle of pixels, and the numbers at its edges."""

    x: tuple[float, float]
    y: tuple[float, float]
    width: int = 744
    height: int = 430

    def pixels(self, point: Point) -> Point:
        """Where a point is drawn, from the upper left corner."""
        (x0, x1), (y0, y1) = self.x, self.y
        return (point[0] - x0) / (x1 - x0) * self.width, (y1 - point[1]) / (y1 - y0) * self.height

    def zeros(self) -> list[list[Point]]:
        """The lines on which either number is 0."""
        return [[(0, self.y[0]), (0, self.y[1])], [(self.x[0], 0), (self.x[1], 0)]]

    def numbers(self, place: Point) -> Point:
        """The numbers at a place in pixels."""
        (x0, x1), (y0, y1) = self.x, self.y
        return x0 + place[0] / self.width * (x1 - x0), y1 - place[1] / self.height * (y1 - y0)


def placed(
    names: Sequence[tuple[str, Point]], lines: Sequence[Sequence[Point]], frame: Frame
) -> list[dict[str, Any]]:
    """Words for points, each on the side where it covers the least of lines and other words."""
    drawn = [p for line in lines for p in _along([frame.pixels(point) for point in line])]
    spots = [(text, frame.pixels(point)) for text, point in names]
    sides: dict[int, _Side] = {}
    # Three rounds: the best side of a word depends on where words after it end up.
    for i in [*range(len(spots))] * 3:
        others = [_box(*spots[j], side=side) for j, side in sides.items() if j != i]
        costs = [
            _cost(*spots[i], side=side, drawn=drawn, others=others, frame=frame) for side in _SIDES
        ]
        sides[i] = _SIDES[costs.index(min(costs))]
    return [_word(text, spot, sides[i], frame) for i, (text, spot) in enumerate(spots)]


def _word(text: str, spot: Point, side: _Side, frame: Frame) -> dict[str, Any]:
    x, y = frame.numbers((spot[0] + _ASIDE * side[0], spot[1] + side[1]))
    at = dict(zip(("x2", "y2"), frame.numbers(spot), strict=True))
    align, far = ("center", "left", "right")[side[0]], abs(side[1]) > 16
    return {"text": text, "x": x, "y": y, **at, "align": align, "far": far}


def _box(text: str, spot: Point, *, side: _Side) -> _Box:
    """Left, top, right and bottom of words beside a spot."""
    width, (way, down) = text_width(text, WORDS), side
    left = spot[0] + _ASIDE * way - (width if way < 0 else 0 if way else width / 2)
    return left, spot[1] + down - 7, left + width, spot[1] + down + 7


def _cost(
    text: str,
    spot: Point,
    *,
    side: _Side,
    drawn: Sequence[Point],
    others: Sequence[_Box],
    frame: Frame,
) -> float:
    left, top, right, bottom = _box(text, spot, side=side)
    outside = left < 0 or top < 0 or right > frame.width or bottom > frame.height
    covered = sum(left < x < right and top < y < bottom for x, y in drawn)
    hit = sum(left < r and x < right and top < b and y < bottom for x, y, r, b in others)
    # Outside the chart a word is cut off; on another word both are illegible; a line matters less.
    return 10_000 * outside + 300 * hit + covered + abs(side[1]) / 3


def _along(line: Sequence[Point]) -> list[Point]:
    """Points of a line, a few pixels apart."""
    found = list(line)
    for (x0, y0), (x1, y1) in itertools.pairwise(line):
        steps = int(math.hypot(x1 - x0, y1 - y0) / 4)
        found += [(x0 + (x1 - x0) * i / steps, y0 + (y1 - y0) * i / steps) for i in range(steps)]
    return found
