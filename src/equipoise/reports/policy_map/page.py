"""A policy map as a page."""

from __future__ import annotations

from typing import TYPE_CHECKING

from equipoise.measures.display import number, whole
from equipoise.plans.maps.sentences import rows_text
from equipoise.reports.charts.vega import CaptionedChart
from equipoise.reports.frame.html import Section, bullets, html_table, more, paragraph, render_page
from equipoise.reports.policy_map.charts import policy_map_chart
from equipoise.reports.policy_map.data import best_point, chart_data, drawn_limits

if TYPE_CHECKING:
    from equipoise.plans.maps.policy_map import PolicyMap


def render(map_: PolicyMap, *, source: str | None = None, top: int = 50) -> str:
    """The page of a policy map."""
    chart = CaptionedChart(_caption(map_), policy_map_chart, chart_data(map_))
    return render_page(
        title=map_.heading,
        source=source or f"{whole(map_.counts.n)} rows",
        figures=_figures(map_),
        sections=[
            Section("said", "Summary", [bullets(map_.sentences)]),
            Section("chart", "Map", [chart]),
            Section("points", "Key points", [html_table(map_.grid())]),
            *_effect(map_, top),
        ],
        facts=_facts(map_, source),
    )


def _effect(map_: PolicyMap, top: int) -> list[Section]:
    """What the moves of the chosen point do to all groups."""
    effect = map_.effect
    if effect is None:
        return []
    x, y = (rows_text(v) for v in (effect.point.x, effect.point.y))
    said = paragraph(
        f"UB of every group before and after x = {x} and y = {y}, each against the label "
        "frequencies of its own table; the largest changes come first."
    )
    table = html_table(map_.effects(top), more(max(len(effect.biases) - top, 0), "groups"))
    return [Section("groups", "What the moves do to all groups", [said, table])]


def plot(map_: PolicyMap) -> list[CaptionedChart]:
    """UB over both moves, its zero curve, the limits and the best point."""
    return [CaptionedChart(map_.heading, policy_map_chart, chart_data(map_))]


def _figures(map_: PolicyMap) -> list[list[str]]:
    best = map_.cheapest or map_.nearest
    figures = [[number(map_.points[0].ub), "UB now"]]
    if best is None:
        return [*figures, ["none", "points inside all limits"]]
    which = "of the cheapest point" if map_.reached else "where |UB| is smallest"
    return [
        *figures,
        [rows_text(best.x), f"x {which}"],
        [rows_text(best.y), f"y {which}"],
        [number(best.ub), "UB there"],
        [rows_text(best.cost), "cost there"],
    ]


def _caption(map_: PolicyMap) -> str:
    whose = f"UB of {map_.group} for {map_.label_pattern} after x and y rows have been moved"
    colours = "red where the group still has fewer such rows than its share, blue where it has more"
    zero = "On the dark line UB is 0." if map_.curve(0.0, 21) else "UB is 0 nowhere on the map."
    parts = [f"{whose}: {colours}.", zero]
    if map_.tolerance and any(map_.curve(ub, 21) for ub in (map_.tolerance, -map_.tolerance)):
        parts.append(f"Dotted lines are where |UB| is {map_.tolerance:g}.")
    if drawn_limits(map_):
        parts.append("Dashed lines are the limits; the area outside them is grey.")
    if best_point(map_) is not None:
        which = "the cheapest point" if map_.reached else "the point with the smallest |UB|"
        parts.append(f"The ring is {which} inside the limits.")
    if map_.at is not None:
        parts.append("The diamond is the chosen point.")
    return " ".join(parts)


def _facts(map_: PolicyMap, source: str | None) -> list[list[str]]:
    counts = map_.counts
    return [
        *([["source", source]] if source else []),
        *counts.reading.facts,
        ["rows", whole(counts.n)],
        ["x", str(map_.x)],
        ["y", str(map_.y)],
        ["limits", ", ".join(limit.text for limit in map_.limits) or "none"],
        ["cost of a row", f"{map_.cost_x:g} of x, {map_.cost_y:g} of y"],
        ["tolerance", f"|UB| up to {map_.tolerance:g}"],
        ["zero curve", _equation(map_)],
        ["sensitive attributes", ", ".join(a.name for a in counts.sensitive)],
        ["label", counts.label.name],
        ["fingerprint of the counts", f"sha256:{counts.fingerprint}"],
        ["made by", f"equipoise {map_.version}"],
        ["time", map_.time],
    ]


def _equation(map_: PolicyMap) -> str:
    names = ("x²", "xy", "y²", "x", "y", "")
    pairs = zip(map_.zero.coefficients, names, strict=True)
    terms = [f"{float(c):+,.10g} {name}".rstrip() for c, name in pairs if c]
    return (" ".join(terms) or "0").replace("-", "−") + f" = 0 ({map_.zero.name})"
