"""A policy map as a page: what its chart draws, as plain data, and the page around it."""

from __future__ import annotations

import os
from html import escape
from typing import TYPE_CHECKING

from equipoise import atomic
from equipoise.errors import MissingDependency
from equipoise.measures.display import number, whole
from equipoise.plans.maps.sentences import rows_text
from equipoise.reports.frame.html import Section, bullets, html_table, render_page
from equipoise.reports.policy_map.data import chart_data, drawn_limits

if TYPE_CHECKING:
    from equipoise.plans.maps.policy_map import PolicyMap


def write_map(map_: PolicyMap, path: str | os.PathLike[str], *, source: str | None = None) -> None:
    """Write a policy map as a page; without the chart if that cannot be drawn.

    Parameters
    ----------
    map_
        The map.
    path
        The file to write; it is whole or not there.
    source
        What was mapped, as the reader knows it.
    """
    from equipoise.reports.charts.vega import to_html_fragment
    from equipoise.reports.policy_map.charts import policy_map_chart

    try:
        chart = to_html_fragment(policy_map_chart(chart_data(map_)))
    except MissingDependency as absent:
        chart = f"<p>{escape(str(absent))}</p>"
    atomic.write_text(path, render_map(map_, chart, source=source))


def render_map(map_: PolicyMap, chart: str = "", *, source: str | None = None) -> str:
    """Write a policy map as a page.

    Parameters
    ----------
    map_
        The map.
    chart
        An HTML fragment.
    source
        What was mapped.

    Examples
    --------
    >>> from equipoise.counts import Counts
    >>> from equipoise.plans.maps.policy_map import policy_map
    >>> counts = Counts.from_mapping(
    ...     {("<m>", "y"): 60, ("<m>", "n"): 40, ("w", "y"): 20, ("w", "n"): 80},
    ...     sensitive=["sex"],
    ...     label="l",
    ... )
    >>> page = render_map(policy_map(counts, x="add sex=<m>, l=n", y="add sex=w, l=y"))
    >>> "add sex=&lt;m&gt;, l=n" in page, "<m>" in page
    (True, False)
    """
    grid = map_.grid()
    table = {"headers": grid.headers, "rows": grid.rows, "numbers": grid.numbers}
    figure = f"<figure><figcaption>{escape(_caption(map_))}</figcaption>{chart}</figure>"
    return render_page(
        title=map_.heading,
        source=source or f"{whole(map_.counts.n)} rows",
        figures=_figures(map_),
        sections=[
            Section("said", "What the map says", bullets(map_.sentences)),
            Section("chart", "The map", figure),
            Section("points", "Points worth knowing", html_table(table)),
        ],
        facts=_facts(map_, source),
    )


def _figures(map_: PolicyMap) -> list[list[str]]:
    best = map_.cheapest or map_.nearest
    figures = [[number(map_.points[0].ub), "UB now"]]
    if best is None:
        return [*figures, ["none", "points inside all limits"]]
    which = "of the cheapest point" if map_.reached else "of the least |UB|"
    return [
        *figures,
        [rows_text(best.x), f"x {which}"],
        [rows_text(best.y), f"y {which}"],
        [number(best.ub), "UB there"],
        [rows_text(best.cost), "its cost"],
    ]


def _caption(map_: PolicyMap) -> str:
    whose = f"UB of {map_.group} for {map_.label_pattern} after x and y rows are moved"
    colours = "red where the group still has fewer such rows than its share, blue where it has more"
    zero = "On the dark line UB is 0." if map_.curve(0.0, 21) else "UB is 0 nowhere on the map."
    parts = [f"{whose}: {colours}.", zero]
    if map_.tolerance and any(map_.curve(ub, 21) for ub in (map_.tolerance, -map_.tolerance)):
        parts.append(f"Dotted lines are where |UB| is {map_.tolerance:g}.")
    if drawn_limits(map_):
        parts.append("Dashed lines are the limits; what is outside them is greyed.")
    best = map_.cheapest or map_.nearest
    if best is not None and best.x <= map_.x_max and best.y <= map_.y_max:
        which = "the cheapest point" if map_.reached else "the point of the least |UB|"
        parts.append(f"The ring is {which} inside the limits.")
    return " ".join(parts)


def _facts(map_: PolicyMap, source: str | None) -> list[list[str]]:
    counts = map_.counts
    facts = [["source", source]] if source else []
    return [
        *facts,
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
