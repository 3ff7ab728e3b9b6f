"""A policy map in sentences."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from equipoise.measures.display import number, whole
from equipoise.plain import in_words

if TYPE_CHECKING:
    from equipoise.plans.maps.effects import Effect
    from equipoise.plans.maps.landscape import Landscape, MapPoint


def map_sentences(map_: Landscape, effect: Effect | str | None) -> tuple[str, ...]:
    """Describe a map: UB now, where UB is 0, what the limits allow, the best point, and its effect.

    The effect is a text if it could not be measured, for this reason.
    """
    return (
        _start(map_),
        _curve(map_),
        *_region(map_),
        *_best(map_),
        *(move.split for move in (map_.x, map_.y) if move.split),
        *_chosen(map_),
        _others(effect),
        *map_.counts.reading.sentences,
    )


def rows_text(value: float) -> str:
    """Write a number of rows that need not be whole.

    >>> rows_text(3045.0837), rows_text(4500.0), rows_text(float("nan"))
    ('3,045.08', '4,500', '–')
    """
    rounded = round(value, 2) if math.isfinite(value) else value
    if not math.isfinite(value) or rounded == round(value):
        return whole(value)
    return f"{rounded:,.2f}".replace("-", "−")


def _start(map_: Landscape) -> str:
    rows = map_.search.surface
    n_gy, n_g, n_y, n = (whole(int(f.const)) for f in (rows.n_gy, rows.n_g, rows.n_y, rows.n))
    now = f"{n_gy} of the {n_g} rows of {map_.group} have {map_.label_pattern}, {n_y} of all {n}"
    if rows.exact(0, 0) is None:
        return f"UB is undefined now: {now}."
    return f"UB is {number(map_.points[0].ub)} now: {now}."


def _curve(map_: Landscape) -> str:
    kind = map_.zero.name
    if kind == "everywhere":
        return "UB is 0 wherever it is defined: the moves do not change it."
    zeros = [(0.0, y) for y in map_.zero_y(0)] + [(x, 0.0) for x in map_.zero_x(0) if x]
    alone = [f"{rows_text(x or y)} rows of {'x' if x else 'y'} alone" for x, y in zeros]
    if not alone:
        return "Neither move alone brings UB to 0."
    shape = _SHAPES.get(kind, f"a {kind}")
    return f"UB is 0 on {shape}: after {' or '.join(alone)}, or after both moves along the curve."


_SHAPES = {
    "ellipse": "an ellipse",
    "two lines": "straight lines",
    "parallel lines": "straight lines",
}


def _region(map_: Landscape) -> list[str]:
    caps = [
        f"{name} can delete at most the existing {whole(move.rows)} rows"
        for name, move in (("x", map_.x), ("y", map_.y))
        if move.kind == "delete"
    ]
    said = [f"{in_words(caps)}."] if caps else []
    if map_.kept:
        kept = in_words([limit.text for limit in map_.kept])
        said.append(
            f"{kept[0].upper()}{kept[1:]} must stay: otherwise UB is undefined or always 0."
        )
    if map_.is_empty:
        given = [limit.text for limit in (*map_.limits, *map_.built_in)]
        said.append(f"No point is inside all limits: {in_words([*given, 'x>=0', 'y>=0'])}.")
    return said


def _best(map_: Landscape) -> list[str]:
    best, rows = map_.cheapest or map_.nearest, map_.whole
    if best is None:
        return []
    said = [_where(map_, best)]
    if rows is None:
        also = " and the tolerance" if map_.tolerance and map_.reached else ""
        return [*said, f"Near it no point of whole rows is inside all limits{also}."]
    said.append(
        f"In whole rows that is x = {rows_text(rows.x)} and y = {rows_text(rows.y)}: UB "
        f"{_fine(rows.ub)}, cost {rows_text(rows.cost)}, {rows_text(rows.n)} rows after."
    )
    if map_.x.split or map_.y.split:
        said.append("Each cell gets a share of these rows, which need not be a whole number.")
    return said


def _where(map_: Landscape, best: MapPoint) -> str:
    goal = f"|UB| up to {map_.tolerance:g}" if map_.tolerance else "UB 0"
    place = f"x = {rows_text(best.x)} and y = {rows_text(best.y)}"
    if map_.reached:
        cost = f"at a cost of {rows_text(best.cost)}"
        return f"The cheapest point with {goal} inside the limits is {place}, {cost}."
    least = f"the smallest |UB| is {abs(best.ub):.3f}, at {place}"
    return f"No point inside the limits has {goal}; {least}."


def _chosen(map_: Landscape) -> list[str]:
    point = map_.chosen
    if map_.at is None or point is None:
        return []
    inside = "inside" if point.inside else "outside"
    place = f"x = {rows_text(point.x)} and y = {rows_text(point.y)}"
    ub = f"UB is {_fine(point.ub)} at a cost of {rows_text(point.cost)}"
    return [f"At the chosen point, {place}, {ub}; it is {inside} the limits."]


def _others(effect: Effect | str | None) -> str:
    only = "The map shows only this group and label; the moves change the UB of others as well"
    if effect is None:
        return f"{only}."
    if isinstance(effect, str):
        return f"{only}. That cannot be measured in whole rows: {effect}"
    c, point = effect.plan.certificate, effect.point
    where = "" if c.worst_after is None else f" ({c.worst_after})"
    return (
        f"{only}: at x = {rows_text(point.x)} and y = {rows_text(point.y)} the largest |UB| of all "
        f"{c.groups:,} groups goes from {c.max_abs_ub_before:.3g} to {c.max_abs_ub_after:.3g}{where}."
    )


def _fine(ub: float) -> str:
    """Write a UB near 0 with enough digits to tell it from 0."""
    return number(ub) if abs(ub) >= 0.0005 or not ub else f"{ub:+.1e}".replace("-", "−")
