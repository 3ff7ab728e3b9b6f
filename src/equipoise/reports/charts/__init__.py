"""Charts of results: Vega-Lite specifications, and pictures made of them.

The only package that imports altair and vl-convert, and both only when something is drawn.
"""

from __future__ import annotations

from equipoise.reports.charts.biases import draw, heat_map, interval_chart
from equipoise.reports.charts.drawing import (
    BLUE,
    GREY,
    RED,
    require_drawing,
    stacked,
    to_altair,
    to_html_fragment,
    to_png,
    to_svg,
)
from equipoise.reports.charts.evaluation import (
    difference_chart,
    prediction_chart,
    relation_chart,
    score_chart,
)
from equipoise.reports.charts.frontiers import step_chart
from equipoise.reports.charts.maps import policy_map_chart
from equipoise.reports.charts.plans import bias_chart, change_chart
from equipoise.reports.charts.sources import MISSING_ROWS, source_chart

__all__ = [
    "BLUE",
    "GREY",
    "MISSING_ROWS",
    "RED",
    "bias_chart",
    "change_chart",
    "difference_chart",
    "draw",
    "heat_map",
    "interval_chart",
    "policy_map_chart",
    "prediction_chart",
    "relation_chart",
    "require_drawing",
    "score_chart",
    "source_chart",
    "stacked",
    "step_chart",
    "to_altair",
    "to_html_fragment",
    "to_png",
    "to_svg",
]
