"""Numbers with their intervals on one scale, and the colours of the versions compared."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from equipoise.measures.display import number
from equipoise.reports.charts.vega import PAGE_WIDTH, alt

Items = Sequence[Mapping[str, Any]]
Versions = Sequence[Sequence[str]]
"""Versions of a table, each with its short name and what it means."""
Ends = tuple[float, float]
"""Both ends of a scale."""
FAINT = "#8a8f9844"
_GREY, _ORANGE, _BLUE = "#8a8f98", "#e07b1a", "#2273b5"
_OWN = {"u": _GREY, "before": _GREY, "n": _ORANGE, "p": _BLUE, "after": _BLUE}
_SPARE = ("#7d4f26", "#d4a572", "#50b9e4", "#645372", "#7358e1", "#947a5e")
"""Colours that colour-blind people can tell apart, on white and on black."""


def drawable(items: Items, *values: str) -> list[dict[str, Any]]:
    """The items that have all these values, with ``None`` for other numbers that are undefined.

    >>> drawable([{"mean": 0.5, "low": float("nan")}, {"mean": None, "low": 0.1}], "mean")
    [{'mean': 0.5, 'low': None}]
    """
    # A specification is JSON, which has no NaN and no infinity.
    found = [
        {
            key: None if isinstance(value, float) and not math.isfinite(value) else value
            for key, value in item.items()
        }
        for item in items
    ]
    return [item for item in found if all(item[value] is not None for value in values)]


def _spanned(items: Items) -> list[Mapping[str, Any]]:
    """The items that have both ends of an interval."""
    return [item for item in items if item.get("low") is not None and item.get("high") is not None]


def limits(items: Items, value: str) -> Ends:
    """Ends of a scale with 0, every number, and intervals as far as is useful.

    One interval that is far wider than the others would press all numbers together.

    >>> low, high = limits([{"ub": 0.5, "low": 0.4, "high": 0.6}], "ub")
    >>> round(low, 3), round(high, 3)
    (-0.024, 0.624)
    """
    points = [0.0, *(item[value] for item in items)]
    low, high = min(points), max(points)
    spans = _spanned(items)
    # The median, since it does not depend on the wide intervals that are to be cut off.
    usual = statistics.median([s["high"] - s["low"] for s in spans] or [0.0])
    reach = max((high - low) / 2, 1.5 * usual)
    least = max(min([low, *(s["low"] for s in spans)]), low - reach)
    most = min(max([high, *(s["high"] for s in spans)]), high + reach)
    # If all numbers are 0, the scale still needs some length.
    margin = 0.04 * (most - least) or 0.011
    return least - margin, most + margin


def whiskers(items: Items, ends: Ends) -> list[dict[str, Any]]:
    """The intervals of items, cut off at the ends of the scale."""
    return [
        {**item, "low": max(item["low"], ends[0]), "high": min(item["high"], ends[1])}
        for item in _spanned(items)
    ]


def cuts(items: Items, ends: Ends, shapes: tuple[str, str]) -> list[dict[str, Any]]:
    """Where intervals leave the scale, below and above, and the shape of the arrow to draw."""
    spans = _spanned(items)
    below = [{**s, "at": ends[0], "arrow": shapes[0]} for s in spans if s["low"] < ends[0]]
    return below + [{**s, "at": ends[1], "arrow": shapes[1]} for s in spans if s["high"] > ends[1]]


def said(item: Mapping[str, Any], value: str, *, signed: bool = True) -> str:
    """Write a number with its interval.

    >>> said({"mean": 0.0124, "low": -0.004, "high": 0.028}, "mean")
    '+0.012 (−0.004 … +0.028)'
    """
    ends = [f" ({number(s['low'])} … {number(s['high'])})" for s in _spanned([item])]
    text = number(item[value]) + "".join(ends)
    return text if signed else text.replace("+", "")


def version_looks(versions: Versions) -> dict[str, dict[str, str]]:
    """The name of each version in a legend, and its colour, the same on every chart.

    >>> version_looks([["u", ""], ["p", "label frequencies kept"]])["p"]
    {'name': 'p: label frequencies kept', 'colour': '#2273b5'}
    """
    others = [key for key, _ in versions if key not in _OWN]
    spare = {key: _SPARE[i % len(_SPARE)] for i, key in enumerate(others)}
    return {
        key: {
            "name": key if words in ("", key) else f"{key}: {words}",
            "colour": _OWN.get(key) or spare[key],
        }
        for key, words in versions
    }


def legend(names: Sequence[str], *, room: float = PAGE_WIDTH, **more: Any) -> alt.Legend:
    """A legend under the chart, with as many names beside each other as there is room for."""
    abreast = len(names)
    if legend_width(names) > room:
        abreast = int(room // legend_width([max(names, key=len)]))
    return alt.Legend(
        title=None,
        orient="bottom",
        columns=max(1, abreast),
        columnPadding=16,
        rowPadding=4,
        padding=4,
        labelLimit=max(room - 40, 120),
        **more,
    )


def legend_width(names: Sequence[str]) -> float:
    """About how many pixels a legend takes with all its names on one line."""
    return sum(32 + text_width(name) for name in names)


def text_width(text: str, size: float = 12) -> float:
    """About how many pixels a text takes."""
    return 0.48 * size * len(text)


def version_colour(versions: Versions, *, room: float) -> alt.Color:
    """The colour of a version, with its legend."""
    looks = version_looks(versions).values()
    names = [look["name"] for look in looks]
    scale = alt.Scale(domain=names, range=[look["colour"] for look in looks])
    key = legend(names, room=room, symbolType="circle", symbolStrokeWidth=0)
    return alt.Color("name:N", scale=scale, legend=key)
