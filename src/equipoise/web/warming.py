"""What workers load before they are asked, so that the first answer does not wait for it.

The module itself loads nothing: it is named before the explorer has loaded what it needs for itself.
"""

from __future__ import annotations

import importlib

FIRST = (
    "equipoise.web.tasks",
    "equipoise.web.rooms.table",
    "equipoise.engines.duckdb",
    "equipoise.engines.profiling",
    "equipoise.datasets.lookup",
    "equipoise.web.pages",
    "equipoise.web.twins",
)
"""What the room of the table needs, which is the first to be opened."""

THEN = (
    "equipoise.api.measurement",
    "equipoise.api.plans",
    "equipoise.measures.table",
    "equipoise.measures.sentences",
    "equipoise.plans.planner",
    "equipoise.reports.bias.chart_data",
    "equipoise.reports.plan.data",
    "equipoise.reports.policy_map.data",
    "equipoise.web.rooms.bias",
    "equipoise.web.rooms.map",
    "equipoise.web.rooms.monitor",
    "equipoise.web.rooms.plan",
)
"""What the next rooms need."""


def warm() -> None:
    """Load what the first answer needs."""
    for name in FIRST:
        importlib.import_module(name)


def warm_more() -> None:
    """Load what the next answers need."""
    for name in THEN:
        importlib.import_module(name)
