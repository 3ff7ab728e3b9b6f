"""Numbers with their intervals on one scale, and the colours of the versions compared."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from equipoise.measures.display import number
from equipoise.reports.charts.vega import PAGE_WIDTH

if TYPE_CHECKING:
    from types import ModuleType

    import altair

ABOUT = {"description": "about:N", "tooltip": "about:N"}
"""Channels that say what a mark stands for."""
FAINT = "#8a8f9844"
_GREY, _ORANGE, _BLUE = "#8a8f98", "#e07b1a", "#2273b5"
_OWN = {"u": _GREY, "before": _GREY, "n": _ORANGE, "p": _BLUE, "after": _BLUE}
_SPARE = ("#7d4f26", "#d4a572", "#50b9e4", "#645372", "#7358e1", "#947a5e")
"""Versions, told apart by colour-blind people too, on white and on black."""


def cleaned(item: Mapping[str, Any]) -> dict[str, Any]:
    """An item with ``None`` for every number that is undefined.

    >>> cleaned({"model": "tree", "mean": 0.5, "low": float("nan")})
    {'model': 'tree', 'mean': 0.5, 'low': None}
    """
    return {
        key: None if isinstance(value, float) and not math.isfinite(value) else value
        for key, value in item.items()
    }


def spanned(items: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Those items that have both ends of an interval."""
    return [item for item in items if item.get("low") is not None and item.get("high") is not None]


def limits(items: Sequence[Mapping[str, Any]], value: str) -> tuple[float, float]:
    """Ends of a scale: 0 and every number is on it, and intervals as far as is useful.

    One interval that is far wider than the others would press all numbers together.

    >>> low, high = limits([{"ub": 0.5, "low": 0.4, "high": 0.6}], "ub")
    >>> round(low, 3), round(high, 3)
    (-0.024, 0.624)
    """
    points = [0.0, *(item[value] for item in items)]
    low, high = min(points), max(points)
    spans = spanned(items)
    usual = statistics.median([s["high"] - s["low"] for s in spans] or [0.0])
    reach = max((high - low) / 2, 1.5 * usual)
    least = max(min([low, *(s["low"] for s in spans)]), low - reach)
    most = min(max([high, *(s["high"] for s in spans)]), high + reach)
    margin = 0.04 * (most - least) or 0.011
    return least - margin, most + margin


def whiskers(items: Sequence[Mapping[str, Any]], ends: tuple[float, float]) -> list[dict[str, Any]]:
    """The intervals of items, as far as they are on the scale."""
    return [
        {**item, "low": max(item["low"], ends[0]), "high": min(item["high"], ends[1])}
        for item in spanned(items)
    ]


def cuts(
    items: Sequence[Mapping[str, Any]], ends: tuple[float, float], shapes: tuple[str, str]
) -> list[dict[str, Any]]:
    """Where intervals leave the scale, below and above, with the shape of an arrow that says so."""
    spans = spanned(items)
    below = [{**s, "at": ends[0], "arrow": shapes[0]} for s in spans if s["low"] < ends[0]]
    return below + [{**s, "at": ends[1], "arrow": shapes[1]} for s in spans if s["high"] > ends[1]]


def said(item: Mapping[str, Any], value: str, *, signed: bool = True) -> str:
    """Write a number with its interval.

    >>> said({"mean": 0.0124, "low": -0.004, "high": 0.028}, "mean")
    '+0.012 (−0.004 … +0.028)'
    """
    ends = [f" ({number(s['low'])} … {number(s['high'])})" for s in spanned([item])]
    text = number(item[value]) + "".join(ends)
    return text if signed else text.replace("+", "")


def version_names(versions: Sequence[Sequence[str]]) -> dict[str, str]:
    """How versions are called in a legend.

    >>> version_names([["u", ""], ["p", "label frequencies kept"]])
    {'u': 'u', 'p': 'p: label frequencies kept'}
    """
    return {key: key if words in ("", key) else f"{key}: {words}" for key, words in versions}


def version_colours(versions: Sequence[Sequence[str]]) -> dict[str, str]:
    """The colour of each version; those of a repair have the same on every chart."""
    others = [key for key, _ in versions if key not in _OWN]
    spare = {key: _SPARE[i % len(_SPARE)] for i, key in enumerate(others)}
    return {key: _OWN.get(key) or spare[key] for key, _ in versions}


def legend(
    alt: ModuleType, names: Sequence[str], *, room: float = PAGE_WIDTH, **more: Any
) -> altair.Legend:
    """A legend under the chart, with as many names abreast as there is room for."""
    abreast = len(names)
    if legend_width(names) > room:
        abreast = int(room // legend_width([max(names, key=len)]))
    found: altair.Legend = alt.Legend(
        title=None,
        orient="bottom",
        columns=max(1, abreast),
        columnPadding=16,
        rowPadding=4,
        padding=4,
        labelLimit=max(room - 40, 120),
        **more,
    )
    return found


def legend_width(names: Sequence[str]) -> float:
    """About how many pixels a legend takes with all its names abreast."""
    return sum(32 + text_width(name) for name in names)


def text_width(text: str, size: float = 12) -> float:
    """About how many pixels a text takes."""
    return 0.48 * size * len(text)


def version_colour(
    alt: ModuleType, versions: Sequence[Sequence[str]], *, room: float
) -> altair.Color:
    """The colour of a version, with its legend."""
    names = list(version_names(versions).values())
    scale = alt.Scale(domain=names, range=list(version_colours(versions).values()))
    key = legend(alt, names, room=room, symbolType="circle", symbolStrokeWidth=0)
    colour: altair.Color = alt.Color("name:N", scale=scale, legend=key)
    return colour
